/*
 * Publishing a folder (checkpoint/publish.h, docs/formats/sharded-checkpoint.md).
 *
 * The lock is flock() on the partial folder itself: it goes with the process, and it needs no file that would
 * be published too. A folder that was just made and not yet locked looks dead to another run; so after
 * locking we look whether the name still leads to the folder, and make another one when it does not.
 */
#include "checkpoint/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/status.h"
#include "checkpoint/replace.h"

static const char MARK[] = ".partial-";

enum { ATTEMPTS = 16 };

static void close_listing(DIR **listing)
{
    if (*listing != NULL)
        (void)closedir(*listing);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status fail_listing(const char *path, sw_error *err)
{
    char space[128];
    int code = errno;

    return SW_FAIL(err, SW_E_IO, "check the path and its permissions", "%s: cannot read the folder: %s", path,
                   strerror_r(code, space, sizeof space));
}

/* "a" + "b" + "c" as heap memory */
static sw_status join(char **out, const char *a, const char *b, const char *c, sw_error *err)
{
    size_t capacity = strlen(a) + strlen(b) + strlen(c) + 1;

    *out = sw_alloc(capacity);
    if (*out == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a path of %zu bytes", capacity);
    (void)snprintf(*out, capacity, "%s%s%s", a, b, c);
    return SW_OK;
}

/* ---- names ---- */

/* The last name of a path without slashes at its end. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static sw_status folder_of(char **out, const char *path, sw_error *err)
{
    *out = sw_folder_of(path);
    return *out != NULL ? SW_OK : SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the folder of %s", path);
}

static sw_status take_out(sw_publication *publication, const char *out, sw_error *err)
{
    SW_TRY(join(&publication->out, out, "", "", err));
    size_t length = strlen(publication->out);
    while (length > 0 && publication->out[length - 1] == '/')
        publication->out[--length] = '\0';

    const char *base = base_of(publication->out);
    if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give a folder with a name of its own, as in ../model-tp4",
                       "'%s' cannot be the output: it is not the name of a new folder", out);
    }
    if (strstr(base, MARK) != NULL) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give a name without it",
                       "'%s' cannot be the output: '%s' in a name is the mark of unfinished output, which no "
                       "command reads",
                       out, MARK);
    }
    return SW_OK;
}

/* ---- an output that is there already ---- */

static sw_status check_out(const sw_publication *publication, sw_error *err)
{
    const char *out = publication->out;
    struct stat about;

    if (lstat(out, &about) != 0)
        return SW_OK; /* absent; a path that cannot be looked at fails when the folder is made beside it */
    if (!publication->choices.replace) {
        return SW_FAIL(err, SW_E_ARGUMENT,
                       "give another folder, or --replace to exchange it when all is written",
                       "%s: is there already", out);
    }
    if (!S_ISDIR(about.st_mode)) {
        return SW_FAIL(err, SW_E_ARGUMENT,
                       S_ISLNK(about.st_mode) ? "give the folder that it leads to" : "give another folder",
                       "%s: is %s, only a folder can be replaced", out,
                       S_ISLNK(about.st_mode) ? "a symbolic link" : "not a folder");
    }
    return sw_replace_check(out, publication->choices.source, err);
}

/* ---- partial folders ---- */

/* Whether a name is one that begin_partial() could have made for this output. */
static bool is_partial_name(const char *name, const char *base)
{
    size_t length = strlen(base);

    if (strncmp(name, base, length) != 0 || strncmp(name + length, MARK, sizeof MARK - 1) != 0)
        return false;
    const char *id = name + length + sizeof MARK - 1;
    return *id != '\0' && strspn(id, "0123456789-") == strlen(id);
}

typedef enum hold {
    HOLD_TAKEN = 0,   /* open and locked */
    HOLD_IN_USE,      /* by another process, or gone, or something else by that name now */
    HOLD_WITHOUT_LOCK /* the file system has no locks: open only */
} hold;

/* Open and lock a folder; *folder is -1 when it is in use. */
static hold open_locked(int *folder, const char *path)
{
    struct stat opened;
    struct stat named;

    *folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder < 0)
        return HOLD_IN_USE;
    bool is_locked = flock(*folder, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno != EWOULDBLOCK)
        return HOLD_WITHOUT_LOCK;
    if (is_locked && fstat(*folder, &opened) == 0 && lstat(path, &named) == 0 &&
        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
        return HOLD_TAKEN;
    (void)close(*folder);
    *folder = -1;
    return HOLD_IN_USE;
}

/* What runs for the same output left behind when they were killed. */
static sw_status remove_dead(const char *out, const char *folder, sw_error *err)
{
    DIR *listing SW_AUTO(close_listing) = opendir(folder);

    if (listing == NULL)
        return fail_listing(folder, err);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the listing is ours alone
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        char *path SW_AUTO(drop_text) = NULL;
        if (!is_partial_name(entry->d_name, base_of(out)))
            continue;
        SW_TRY(join(&path, folder, "/", entry->d_name, err));
        int lock = -1;
        sw_status status = SW_OK;
        if (open_locked(&lock, path) == HOLD_TAKEN) /* where it cannot be told, the folder stays */
            status = sw_disk_remove_tree(path, err);
        if (lock >= 0)
            (void)close(lock);
        SW_TRY(status);
    }
    return SW_OK;
}

static sw_status check_space(const char *out, const char *folder, uint64_t need_bytes, sw_error *err)
{
    uint64_t free_bytes = 0;

    SW_TRY(sw_disk_free_bytes(folder, &free_bytes, err));
    if (free_bytes >= need_bytes)
        return SW_OK;
    return SW_FAIL(err, SW_E_IO, "free some space there, or write to another place",
                   "%s: needs %" PRIu64 " bytes, %" PRIu64 " are free", out, need_bytes, free_bytes);
}

static sw_status make_partial(sw_publication *publication, sw_error *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        char *path SW_AUTO(drop_text) = NULL;
        char id[64];
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)snprintf(id, sizeof id, "%ld-%lld%09ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
        SW_TRY(join(&path, publication->out, MARK, id, err));
        SW_TRY(sw_disk_mkdir(path, err));
        if (open_locked(&publication->lock, path) == HOLD_IN_USE)
            continue; /* another run took it for a dead one's and removes it */
        publication->partial = path;
        path = NULL;
        return SW_OK;
    }
    return SW_FAIL(err, SW_E_IO, "wait for the other runs that write there",
                   "%s: other runs remove what is written", publication->out);
}

sw_status sw_publish_begin(sw_publication *publication, const char *out, const sw_publish_choices *choices,
                           sw_error *err)
{
    char *folder SW_AUTO(drop_text) = NULL;
    sw_publication fresh SW_AUTO(sw_publish_drop) = {.choices = *choices, .lock = -1};

    SW_TRY(take_out(&fresh, out, err));
    SW_TRY(check_out(&fresh, err));
    SW_TRY(folder_of(&folder, fresh.out, err));
    SW_TRY(remove_dead(fresh.out, folder, err));
    SW_TRY(check_space(fresh.out, folder, choices->need_bytes, err));
    SW_TRY(make_partial(&fresh, err));
    *publication = fresh;
    fresh = (sw_publication){0};
    return SW_OK;
}

/* ---- the end ---- */

/* Every file again, whoever wrote it: what is published is on the disk. Synced ones cost next to nothing. */
static sw_status sync_files(const char *folder, sw_error *err)
{
    DIR *listing SW_AUTO(close_listing) = opendir(folder);

    if (listing == NULL)
        return fail_listing(folder, err);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the listing is ours alone
    for (const struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        char *path SW_AUTO(drop_text) = NULL;
        struct stat about;
        int file = -1;
        if (fstatat(dirfd(listing), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode))
            continue;
        SW_TRY(join(&path, folder, "/", entry->d_name, err));
        SW_TRY(sw_disk_open(&file, path, err));
        sw_status status = sw_disk_sync(file, path, err);
        if (status == SW_OK)
            status = sw_disk_close(&file, path, err);
        else
            (void)close(file);
        SW_TRY(status);
    }
    return sw_disk_sync_folder(folder, err);
}

/* Give the folder its name; an old one is left under the partial name. */
static sw_status name_it(const sw_publication *publication, bool *has_old, sw_error *err)
{
    struct stat about;

    *has_old = publication->choices.replace && lstat(publication->out, &about) == 0;
    if (!*has_old) {
        sw_status status = sw_disk_rename(publication->partial, publication->out, err);
        if (status == SW_OK || lstat(publication->out, &about) != 0)
            return status;
        return SW_FAIL(err, SW_E_IO, "give another folder, or --replace to exchange it",
                       "%s: was not there at the start, and is now: it stays as it is", publication->out);
    }
    SW_TRY(check_out(publication, err)); /* it may have changed while we wrote */
    return sw_disk_exchange(publication->partial, publication->out, err);
}

sw_status sw_publish_end(sw_publication *publication, sw_error *err)
{
    char *folder SW_AUTO(drop_text) = NULL;
    bool has_old = false;

    SW_TRY(folder_of(&folder, publication->out, err));
    if (!publication->choices.no_sync)
        SW_TRY(sync_files(publication->partial, err));
    SW_TRY(name_it(publication, &has_old, err));
    sw_status status = publication->choices.no_sync ? SW_OK : sw_disk_sync_folder(folder, err);
    if (status != SW_OK)
        sw_error_context(err, "%s: is there and whole, but its name may not be on the disk yet",
                         publication->out);
    /* The old one goes only when the new name is on the disk. If it stays, the next run removes it. */
    if (status == SW_OK && has_old)
        SW_IGNORE(sw_disk_remove_tree(publication->partial, NULL));
    sw_free(publication->partial);
    publication->partial = NULL;
    return status;
}

void sw_publish_drop(sw_publication *publication)
{
    if (publication == NULL || publication->out == NULL)
        return;
    if (publication->partial != NULL) /* a failure is on its way already, and the next run tries again */
        SW_IGNORE(sw_disk_remove_tree(publication->partial, NULL));
    if (publication->lock >= 0)
        (void)close(publication->lock);
    sw_free(publication->partial);
    sw_free(publication->out);
    *publication = (sw_publication){0};
}
