/*
 * Calls that change a disk (base/disk.h). Each one asks sw_disk_must_fail() first, so that the fault tests
 * reach every place where a real disk can refuse. Invariant: a failed call leaves the thing it names as it
 * was, but for writes (a part may be there) and removals (a part may be gone).
 */
#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/status.h"

/* ---- faults on purpose ---- */

static const char *const call_names[] = {"create", "allocate", "write", "sync",
                                         "rename", "remove",   "mkdir", "any"};

_Static_assert(SW_COUNT(call_names) == SW_DISK_CALL_COUNT_ + 1, "every call has its word, and any");

typedef struct fault_code {
    const char *word;
    int signal; /* 0: the call fails */
    int code;
} fault_code;

static const fault_code fault_codes[] = {
    {"kill",         SIGKILL, 0     },
    {"term",         SIGTERM, 0     },
    {"error=EACCES", 0,       EACCES},
    {"error=EDQUOT", 0,       EDQUOT},
    {"error=EIO",    0,       EIO   },
    {"error=ENOSPC", 0,       ENOSPC},
    {"error=EROFS",  0,       EROFS },
};

/* The only state of a process: tests set it once, workers only count. */
static struct {
    atomic_bool is_set;
    unsigned call; /* SW_DISK_CALL_COUNT_: any */
    const fault_code *what;
    atomic_uint_fast64_t left; /* calls that pass before */
} fault;

/* The readers of the text's three parts move *text behind what they took. */
static bool read_call(const char **text, unsigned *out)
{
    size_t length = strcspn(*text, ":");

    for (size_t i = 0; i < SW_COUNT(call_names); i++) {
        if (strlen(call_names[i]) == length && memcmp(*text, call_names[i], length) == 0) {
            *text += length;
            *out = (unsigned)i;
            return true;
        }
    }
    return false;
}

static bool read_after(const char **text, uint64_t *out)
{
    static const char key[] = ":after=";
    char *end = NULL;

    if (strncmp(*text, key, sizeof key - 1) != 0)
        return false;
    *text += sizeof key - 1;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return **text == ':';
}

static bool read_code(const char *word, const fault_code **out)
{
    for (size_t i = 0; i < SW_COUNT(fault_codes); i++) {
        if (strcmp(word, fault_codes[i].word) == 0) {
            *out = &fault_codes[i];
            return true;
        }
    }
    return false;
}

sw_status sw_disk_fault_set(const char *text, sw_error *err)
{
    const char *at = text;
    uint64_t after = 0;

    atomic_store(&fault.is_set, false);
    if (text == NULL)
        return SW_OK;
    if (!read_call(&at, &fault.call) || !read_after(&at, &after) || !read_code(at + 1, &fault.what)) {
        return SW_FAIL(
            err, SW_E_ARGUMENT, "for example write:after=3:error=ENOSPC or rename:after=0:kill",
            "fault '%.100s' is not CALL:after=N:error=NAME, CALL:after=N:kill or CALL:after=N:term", text);
    }
    atomic_store(&fault.left, after);
    atomic_store(&fault.is_set, true);
    return SW_OK;
}

bool sw_disk_must_fail(sw_disk_call call)
{
    if (!atomic_load_explicit(&fault.is_set, memory_order_acquire))
        return false;
    if (fault.call != SW_DISK_CALL_COUNT_ && fault.call != (unsigned)call)
        return false;
    if (atomic_fetch_sub(&fault.left, 1) != 0)
        return false;
    if (fault.what->signal != 0) {
        (void)kill(getpid(), fault.what->signal);
        return false; /* it was noted only: the work goes on */
    }
    errno = fault.what->code;
    return true;
}

/* ---- failures ---- */

static const char *help_for(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
        return "free some space there, or write to another place";
    case EACCES:
    case EPERM:
    case EROFS:
        return "check the permissions of the folder";
    case ENOENT:
    case ENOTDIR:
        return "check the path: the folder it is in must be there";
    case EEXIST:
        return "give another path";
    default:
        return sw_errno_help(code, "check the path and the disk");
    }
}

static sw_status fail_io(sw_error *err, const char *path, const char *doing, int code)
{
    char space[128];
    return SW_FAIL(err, SW_E_IO, help_for(code), "%s: cannot %s: %s", path, doing,
                   strerror_r(code, space, sizeof space));
}

static void close_file(const int *file)
{
    if (*file >= 0)
        (void)close(*file);
}

/* ---- files ---- */

sw_status sw_disk_mkdir(const char *path, sw_error *err)
{
    if (sw_disk_must_fail(SW_DISK_MKDIR) || mkdir(path, 0777) != 0)
        return fail_io(err, path, "make the folder", errno);
    return SW_OK;
}

sw_status sw_disk_create(int *fd, const char *path, sw_error *err)
{
    int file = sw_disk_must_fail(SW_DISK_CREATE)
                   ? -1
                   : open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_io(err, path, "create it", errno);
    *fd = file;
    return SW_OK;
}

sw_status sw_disk_open(int *fd, const char *path, sw_error *err)
{
    int file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return fail_io(err, path, "open it for writing", errno);
    *fd = file;
    return SW_OK;
}

sw_status sw_disk_allocate(int fd, const char *path, uint64_t n_bytes, sw_error *err)
{
    char doing[64];
    int result = 0;

    if (n_bytes == 0)
        return SW_OK;
    if (n_bytes > INT64_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "", "%s: no file has %" PRIu64 " bytes", path, n_bytes);
    do
        result = sw_disk_must_fail(SW_DISK_ALLOCATE) ? -1 : fallocate(fd, 0, 0, (off_t)n_bytes);
    while (result != 0 && errno == EINTR);
    if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) /* no reservation there: only the size */
        result = ftruncate(fd, (off_t)n_bytes);
    if (result == 0)
        return SW_OK;
    int code = errno;
    (void)snprintf(doing, sizeof doing, "reserve %" PRIu64 " bytes", n_bytes);
    return fail_io(err, path, doing, code);
}

sw_status sw_disk_pwrite(int fd, const char *path, const void *bytes, size_t n_bytes, uint64_t offset,
                         sw_error *err)
{
    const char *at = bytes;

    while (n_bytes > 0) {
        ssize_t written = sw_disk_must_fail(SW_DISK_WRITE) ? -1 : pwrite(fd, at, n_bytes, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int code = written == 0 ? EIO : errno;
            char doing[64];
            (void)snprintf(doing, sizeof doing, "write at byte %" PRIu64, offset);
            return fail_io(err, path, doing, code);
        }
        at += written;
        n_bytes -= (size_t)written;
        offset += (uint64_t)written;
    }
    return SW_OK;
}

void sw_disk_write_soon(int fd, uint64_t offset, uint64_t n_bytes)
{
    (void)sync_file_range(fd, (off_t)offset, (off_t)n_bytes, SYNC_FILE_RANGE_WRITE);
}

sw_status sw_disk_sync(int fd, const char *path, sw_error *err)
{
    if (sw_disk_must_fail(SW_DISK_SYNC) || fdatasync(fd) != 0)
        return fail_io(err, path, "sync it", errno);
    return SW_OK;
}

sw_status sw_disk_close(int *fd, const char *path, sw_error *err)
{
    int file = *fd;

    *fd = -1;
    if (file >= 0 && close(file) != 0 && errno != EINTR)
        return fail_io(err, path, "close it", errno);
    return SW_OK;
}

sw_status sw_disk_write_file(const char *path, const void *bytes, size_t n_bytes, bool no_sync, sw_error *err)
{
    int file SW_AUTO(close_file) = -1;

    SW_TRY(sw_disk_create(&file, path, err));
    SW_TRY(sw_disk_pwrite(file, path, bytes, n_bytes, 0, err));
    if (!no_sync)
        SW_TRY(sw_disk_sync(file, path, err));
    return sw_disk_close(&file, path, err);
}

/* ---- names ---- */

sw_status sw_disk_sync_folder(const char *path, sw_error *err)
{
    int folder SW_AUTO(close_file) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return fail_io(err, path, "open it", errno);
    if (sw_disk_must_fail(SW_DISK_SYNC) || fsync(folder) != 0) {
        if (errno != EINVAL && errno != EOPNOTSUPP) /* some file systems have no folders to sync */
            return fail_io(err, path, "sync it", errno);
    }
    return SW_OK;
}

/* For a file system without RENAME_NOREPLACE: looks first. */
static int rename_after_look(const char *from, const char *to)
{
    struct stat about;

    if (lstat(to, &about) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

sw_status sw_disk_rename(const char *from, const char *to, sw_error *err)
{
    int result = -1;

    if (!sw_disk_must_fail(SW_DISK_RENAME)) {
        result = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
        if (result != 0 && (errno == EINVAL || errno == ENOSYS))
            result = rename_after_look(from, to);
    }
    return result == 0 ? SW_OK : fail_io(err, to, "give it its name", errno);
}

sw_status sw_disk_exchange(const char *a, const char *b, sw_error *err)
{
    if (!sw_disk_must_fail(SW_DISK_RENAME) && renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0)
        return SW_OK;
    if (errno == EINVAL || errno == ENOSYS) {
        return SW_FAIL(err, SW_E_IO, "remove it first, or write to another folder",
                       "%s: this file system cannot exchange two folders at once", b);
    }
    return fail_io(err, b, "exchange it", errno);
}

/* ---- removing ---- */

enum { DEEPEST = 32 }; /* folders inside folders */

typedef struct removal {
    const char *path; /* for messages */
    dev_t device;
    sw_error *err;
} removal;

static sw_status remove_entry(const removal *all, int parent, const char *name, int depth);

static sw_status fail_entry(const removal *all, const char *name, int code)
{
    char doing[300];

    (void)snprintf(doing, sizeof doing, "remove '%s'", name);
    return fail_io(all->err, all->path, doing, code);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void close_listing(DIR **listing)
{
    if (*listing != NULL)
        (void)closedir(*listing);
}

/* Everything in an open folder. Removing may upset the listing, so it is read until nothing is in it. */
static sw_status remove_content(const removal *all, DIR *listing, int depth)
{
    for (bool is_empty = false; !is_empty;) {
        is_empty = true;
        rewinddir(listing);
        /* Each listing has its one reader. */
        // NOLINTNEXTLINE(concurrency-mt-unsafe)
        for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
            if (is_dots(entry->d_name))
                continue;
            is_empty = false;
            SW_TRY(remove_entry(all, dirfd(listing), entry->d_name, depth + 1));
        }
    }
    return SW_OK;
}

static sw_status remove_folder(const removal *all, int parent, const char *name, int depth)
{
    struct stat about;
    int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing SW_AUTO(close_listing) = file < 0 ? NULL : fdopendir(file);

    if (listing == NULL) {
        int code = errno;
        close_file(&file);
        return code == ENOENT ? SW_OK : fail_entry(all, name, code);
    }
    if (depth > DEEPEST)
        return SW_FAIL(all->err, SW_E_LIMIT, "remove it by hand", "%s: folders nested too deep to remove",
                       all->path);
    if (fstat(file, &about) != 0)
        return fail_entry(all, name, errno);
    if (about.st_dev != all->device)
        return fail_entry(all, name, EXDEV);
    SW_TRY(remove_content(all, listing, depth));
    if ((sw_disk_must_fail(SW_DISK_REMOVE) || unlinkat(parent, name, AT_REMOVEDIR) != 0) && errno != ENOENT)
        return fail_entry(all, name, errno);
    return SW_OK;
}

static sw_status remove_entry(const removal *all, int parent, const char *name, int depth)
{
    struct stat about;

    if (fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? SW_OK : fail_entry(all, name, errno);
    if (S_ISDIR(about.st_mode))
        return remove_folder(all, parent, name, depth);
    if ((sw_disk_must_fail(SW_DISK_REMOVE) || unlinkat(parent, name, 0) != 0) && errno != ENOENT)
        return fail_entry(all, name, errno);
    return SW_OK;
}

sw_status sw_disk_remove_tree(const char *path, sw_error *err)
{
    struct stat about;

    if (lstat(path, &about) != 0)
        return errno == ENOENT ? SW_OK : fail_io(err, path, "look at it", errno);
    return remove_entry(&(removal){path, about.st_dev, err}, AT_FDCWD, path, 0);
}

/* ---- space ---- */

sw_status sw_disk_free_bytes(const char *folder, uint64_t *out, sw_error *err)
{
    struct statvfs about;

    if (statvfs(folder, &about) != 0)
        return fail_io(err, folder, "ask for its free space", errno);
    *out = (uint64_t)about.f_bavail * about.f_frsize;
    return SW_OK;
}
