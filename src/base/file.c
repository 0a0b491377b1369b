/*
 * Files by map and by atomic replacement. Nothing here blocks on a pipe or a device: files are opened without
 * waiting and looked at before they are read. Every failure names the path and the system's reason.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/status.h"

enum { TEMPORARY_NAMES = 100 };

static sw_status fail_io(sw_error *err, const char *path, const char *doing, int code)
{
    char space[128];
    return SW_FAIL(err, SW_E_IO, sw_errno_help(code, "check the path, its permissions and the free space"),
                   "%s: cannot %s: %s", path, doing, strerror_r(code, space, sizeof space));
}

static void close_file(const int *file)
{
    if (*file >= 0)
        (void)close(*file);
}

sw_file_map sw_file_map_of(const void *bytes, size_t n_bytes)
{
    return (sw_file_map){.bytes = n_bytes == 0 ? (const uint8_t *)"" : bytes, .n_bytes = n_bytes};
}

/* An input that is not there, or is no file, is a wrong input; anything else that stops us is the system's
 * doing. */
static sw_status fail_open(sw_error *err, const char *path, int code)
{
    bool is_input =
        code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENAMETOOLONG || code == ENXIO;
    char space[128];

    if (!is_input)
        return fail_io(err, path, "open", code);
    return SW_FAIL(err, SW_E_FORMAT, "check the path", "%s: cannot open: %s", path,
                   strerror_r(code, space, sizeof space));
}

static sw_status open_regular(int *file, uint64_t *n_bytes, const char *path, sw_error *err)
{
    struct stat about;

    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*file < 0)
        return fail_open(err, path, errno);
    if (fstat(*file, &about) != 0)
        return fail_io(err, path, "look at it", errno);
    if (!S_ISREG(about.st_mode)) {
        return SW_FAIL(err, SW_E_FORMAT, "give the path of a regular file", "%s: is %s, not a regular file",
                       path, S_ISDIR(about.st_mode) ? "a folder" : "a pipe, socket or device");
    }
    *n_bytes = (uint64_t)about.st_size;
    return SW_OK;
}

static sw_status map_bytes(sw_file_map *out, int file, size_t n_bytes, const char *path, sw_error *err)
{
    if (n_bytes == 0) { /* an empty map is not possible, an empty file is */
        *out = sw_file_map_of("", 0);
        return SW_OK;
    }
    void *bytes = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        return fail_io(err, path, "map it", errno);
    *out = (sw_file_map){.bytes = bytes, .n_bytes = n_bytes, .is_owned = true};
    return SW_OK;
}

sw_status sw_file_map_open(sw_file_map *out, const char *path, uint64_t limit, sw_error *err)
{
    int file SW_AUTO(close_file) = -1;
    uint64_t n_bytes = 0;

    SW_TRY(open_regular(&file, &n_bytes, path, err));
    if (n_bytes > limit || n_bytes > SIZE_MAX) {
        return SW_FAIL(err, SW_E_LIMIT, "check that this is the file you mean",
                       "%s: %" PRIu64 " bytes, at most %" PRIu64 " are read", path, n_bytes, limit);
    }
    return map_bytes(out, file, (size_t)n_bytes, path, err);
}

sw_status sw_file_map_head(sw_file_map *out, const char *path, uint64_t n_bytes, uint64_t *file_bytes,
                           sw_error *err)
{
    int file SW_AUTO(close_file) = -1;
    uint64_t all = 0;

    SW_TRY(open_regular(&file, &all, path, err));
    uint64_t wanted = n_bytes < all ? n_bytes : all;
    if (wanted > SIZE_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "read it on a 64-bit machine",
                       "%s: %" PRIu64 " bytes cannot be mapped", path, wanted);
    SW_TRY(map_bytes(out, file, (size_t)wanted, path, err));
    *file_bytes = all;
    return SW_OK;
}

void sw_file_map_close(sw_file_map *map)
{
    if (map->is_owned)
        (void)munmap((void *)map->bytes, map->n_bytes);
    *map = (sw_file_map){0};
}

bool sw_file_is_lfs_pointer(sw_file_map map)
{
    static const char sign[] = "version https://git-lfs";
    return map.n_bytes >= sizeof sign - 1 && memcmp(map.bytes, sign, sizeof sign - 1) == 0;
}

sw_file_kind sw_file_kind_of(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0) {
        bool is_absent = lstat(path, &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
        return is_absent ? SW_FILE_ABSENT : SW_FILE_UNREACHABLE;
    }
    if (S_ISREG(about.st_mode))
        return SW_FILE_REGULAR;
    return S_ISDIR(about.st_mode) ? SW_FILE_FOLDER : SW_FILE_OTHER;
}

static sw_status write_all(int file, const char *bytes, size_t n_bytes, const char *path, sw_error *err)
{
    while (n_bytes > 0) {
        ssize_t written = sw_disk_must_fail(SW_DISK_WRITE) ? -1 : write(file, bytes, n_bytes);
        if (written < 0 && errno != EINTR)
            return fail_io(err, path, "write", errno);
        if (written > 0) {
            bytes += written;
            n_bytes -= (size_t)written;
        }
    }
    return SW_OK;
}

/* A fresh file beside `path`, under the permissions any new file gets. The name is heap memory. */
static sw_status create_beside(int *file, char **name, const char *path, sw_error *err)
{
    size_t capacity = strlen(path) + 48;

    *name = sw_alloc(capacity);
    if (*name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the temporary name of %s", path);
    for (int i = 0; i < TEMPORARY_NAMES && *file < 0; i++) {
        (void)snprintf(*name, capacity, "%s.partial-%ld-%d", path, (long)getpid(), i);
        *file = sw_disk_must_fail(SW_DISK_CREATE)
                    ? -1
                    : open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (*file < 0 && errno != EEXIST)
            break;
    }
    return *file < 0 ? fail_io(err, path, "create", errno) : SW_OK;
}

char *sw_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 1 : (size_t)(slash - path) + 1;
    char *folder = sw_alloc(n + 1);

    if (folder == NULL)
        return NULL;
    memcpy(folder, slash == NULL ? "." : path, n);
    folder[n] = '\0';
    return folder;
}

/* Make the new name itself last. Some filesystems cannot sync a folder: the file is complete all the same. */
static void sync_folder_of(const char *path)
{
    char *folder = sw_folder_of(path);
    int file = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (file >= 0)
        (void)fsync(file);
    close_file(&file);
    sw_free(folder);
}

static sw_status fill_and_publish(int *file, const char *temporary, const char *path, const void *bytes,
                                  size_t n_bytes, sw_error *err)
{
    SW_TRY(write_all(*file, bytes, n_bytes, path, err));
    if (sw_disk_must_fail(SW_DISK_SYNC) || fsync(*file) != 0)
        return fail_io(err, path, "sync", errno);
    int closed = close(*file);
    *file = -1;
    if (closed != 0)
        return fail_io(err, path, "close", errno);
    if (sw_disk_must_fail(SW_DISK_RENAME) || rename(temporary, path) != 0)
        return fail_io(err, path, "replace it", errno);
    return SW_OK;
}

sw_status sw_file_write_atomic(const char *path, const void *bytes, size_t n_bytes, sw_error *err)
{
    int file SW_AUTO(close_file) = -1;

    if (sw_file_kind_of(path) == SW_FILE_OTHER) { /* a terminal, a pipe, /dev/null: nothing to replace */
        file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return file < 0 ? fail_io(err, path, "open", errno) : write_all(file, bytes, n_bytes, path, err);
    }

    char *temporary = NULL;
    sw_status status = create_beside(&file, &temporary, path, err);
    if (status == SW_OK) {
        status = fill_and_publish(&file, temporary, path, bytes, n_bytes, err);
        if (status != SW_OK)
            (void)unlink(temporary);
    }
    sw_free(temporary);
    if (status == SW_OK)
        sync_folder_of(path);
    return status;
}

sw_status sw_file_write_check(const char *path, sw_error *err)
{
    int file SW_AUTO(close_file) = -1;
    char *temporary = NULL;
    sw_file_kind kind = sw_file_kind_of(path);

    if (kind == SW_FILE_FOLDER)
        return fail_io(err, path, "replace it", EISDIR);
    if (kind == SW_FILE_OTHER)
        return access(path, W_OK) == 0 ? SW_OK : fail_io(err, path, "open", errno);
    sw_status status = create_beside(&file, &temporary, path, err);
    if (status == SW_OK)
        (void)unlink(temporary);
    sw_free(temporary);
    return status;
}
