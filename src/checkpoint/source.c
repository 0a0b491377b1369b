/*
 * Reading the bytes of a store (checkpoint/source.h). A few files stay open, so that a tensor that is spread
 * over many files does not open them for every piece, and many files do not exhaust the process's limit.
 */
#include "checkpoint/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

enum { FDS_OF_OTHERS = 48 }; /* standard streams, locks, files that are looked at one by one */

uint32_t sw_file_slots(uint32_t n_sets)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SW_MOST_SLOTS;
    uint64_t ours = limit.rlim_cur < FDS_OF_OTHERS ? 0 : limit.rlim_cur - FDS_OF_OTHERS;
    uint64_t share = ours / n_sets;
    if (share > SW_MOST_SLOTS)
        return SW_MOST_SLOTS;
    return share == 0 ? 1 : (uint32_t)share;
}

static sw_status fail_io(const sw_source *source, uint32_t file, const char *doing, int code, sw_error *err)
{
    char space[128];

    return SW_FAIL(err, SW_E_IO, sw_errno_help(code, "check the path, its permissions and the disk"),
                   "%s: cannot %s: %s", source->store->files[file].path, doing,
                   strerror_r(code, space, sizeof space));
}

void sw_source_init(sw_source *source, const sw_store *store, uint32_t n_slots)
{
    *source = (sw_source){.store = store, .n_slots = n_slots};
    for (uint32_t i = 0; i < n_slots; i++)
        source->open[i].fd = -1;
}

void sw_source_clear(sw_source *source)
{
    for (uint32_t i = 0; i < source->n_slots; i++) {
        if (source->open[i].fd >= 0)
            (void)close(source->open[i].fd);
        source->open[i].fd = -1;
    }
}

static sw_status check_opened(const sw_source *source, uint32_t file, int fd, sw_error *err)
{
    const sw_store_file *about = &source->store->files[file];
    struct stat now;

    if (fstat(fd, &now) != 0)
        return fail_io(source, file, "look at it", errno, err);
    if (!S_ISREG(now.st_mode))
        return SW_FAIL(err, SW_E_IO, "", "%s: is no longer a regular file", about->path);
    if ((uint64_t)now.st_size != about->n_bytes) {
        return SW_FAIL(err, SW_E_IO, "let nothing write to it, and run again",
                       "%s: has %" PRIu64 " bytes now, it had %" PRIu64 " when it was opened", about->path,
                       (uint64_t)now.st_size, about->n_bytes);
    }
    return SW_OK;
}

static sw_status open_file(sw_source *source, uint32_t file, int *out, sw_error *err)
{
    size_t slot = file % source->n_slots;

    if (source->open[slot].fd < 0 || source->open[slot].file != file) {
        if (source->open[slot].fd >= 0)
            (void)close(source->open[slot].fd);
        int fd = open(source->store->files[file].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        source->open[slot].fd = fd;
        source->open[slot].file = file;
        if (fd < 0)
            return fail_io(source, file, "open", errno, err);
        SW_TRY(check_opened(source, file, fd, err));
    }
    *out = source->open[slot].fd;
    return SW_OK;
}

sw_status sw_source_read(sw_source *source, uint32_t file, uint64_t at, void *bytes, size_t n_bytes,
                         sw_error *err)
{
    uint8_t *to = bytes;
    int fd = -1;

    SW_TRY(open_file(source, file, &fd, err));
    while (n_bytes > 0) {
        ssize_t n_read = pread(fd, to, n_bytes, (off_t)at);
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read < 0)
            return fail_io(source, file, "read", errno, err);
        if (n_read == 0) {
            return SW_FAIL(err, SW_E_IO, "let nothing write to it, and run again",
                           "%s: ends at byte %" PRIu64 " now, it had %" PRIu64 " bytes when it was opened",
                           source->store->files[file].path, at, source->store->files[file].n_bytes);
        }
        to += n_read;
        at += (uint64_t)n_read;
        n_bytes -= (size_t)n_read;
        source->bytes_read += (uint64_t)n_read;
    }
    return SW_OK;
}
