/* Folders that --replace may take away (checkpoint/replace.h). */
#include "checkpoint/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"

static const char by_hand[] = "give another folder, or remove it yourself if it is to go";

/* What is seen of a folder, name by name. */
typedef struct content {
    bool is_empty;
    bool has_tensors;
    bool has_description; /* a config or an index: what else a Hugging Face folder has */
} content;

static void close_listing(DIR **listing)
{
    if (*listing != NULL)
        (void)closedir(*listing);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* What a checkpoint has no place for; NULL: it has. */
static const char *what_is_foreign(const char *name, const struct stat *about)
{
    if (S_ISDIR(about->st_mode))
        return "a folder";
    if (name[0] == '.')
        return "a hidden file";
    if (!S_ISREG(about->st_mode) && !S_ISLNK(about->st_mode))
        return "no regular file";
    if (S_ISREG(about->st_mode) && about->st_size > SW_CARRY_MOST_BYTES && !ends_with(name, ".safetensors") &&
        !ends_with(name, ".json"))
        return "a large file without tensors that are known";
    return NULL;
}

static sw_status look_at(content *found, const char *out, int folder, const char *name, sw_error *err)
{
    struct stat about;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return SW_OK;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return SW_OK; /* it has just gone */
    const char *foreign = what_is_foreign(name, &about);
    if (foreign != NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, by_hand, "%s: is not replaced, it holds '%.100s', %s", out, name,
                       foreign);
    found->is_empty = false;
    found->has_tensors = found->has_tensors || ends_with(name, ".safetensors");
    found->has_description =
        found->has_description || strcmp(name, "config.json") == 0 || strcmp(name, SW_INDEX_NAME) == 0;
    return SW_OK;
}

static sw_status check_source(const char *out, const char *source, sw_error *err)
{
    char folder[PATH_MAX];
    char inside[PATH_MAX];

    if (source == NULL || realpath(out, folder) == NULL || realpath(source, inside) == NULL)
        return SW_OK;
    size_t n = strlen(folder);
    if (strncmp(inside, folder, n) != 0 || inside[n] != '/')
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "give another folder",
                   "%s: is not replaced, the source %.200s stands in it", out, source);
}

sw_status sw_replace_check(const char *out, const char *source, sw_error *err)
{
    DIR *listing SW_AUTO(close_listing) = opendir(out);
    content found = {.is_empty = true};
    sw_store_kind kind = SW_STORE_HF;
    char space[128];

    if (listing == NULL)
        return SW_FAIL(err, SW_E_IO, "check the path and its permissions", "%s: cannot read the folder: %s",
                       out, strerror_r(errno, space, sizeof space));
    SW_TRY(check_source(out, source, err));
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the listing is ours alone
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing))
        SW_TRY(look_at(&found, out, dirfd(listing), entry->d_name, err));
    if (found.is_empty || (found.has_tensors && found.has_description))
        return SW_OK;
    SW_TRY(sw_store_kind_of(out, &kind, err));
    if (kind == SW_STORE_SHARDED)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, by_hand, "%s: is no checkpoint, so it is not replaced", out);
}
