/* Making and sealing the files of a target (checkpoint/target_file.h). */
#include "checkpoint/target_file.h"

#include <unistd.h>

#include "base/checked.h"
#include "base/disk.h"
#include "base/status.h"

enum { LENGTH_BYTES = 8 }; /* of the header's length, in front of it */

static void close_file(const int *file)
{
    if (*file >= 0)
        (void)close(*file);
}

sw_status sw_target_file_create(const sw_target *target, uint32_t number, const char *path, sw_error *err)
{
    const sw_target_file *file = &target->files[number];
    uint64_t n_bytes = 0;
    int fd SW_AUTO(close_file) = -1;

    if (!sw_add_u64(file->header_bytes, file->data_bytes, &n_bytes))
        return SW_FAIL(err, SW_E_LIMIT, "", "%s: no file is that large", path);
    SW_TRY(sw_disk_create(&fd, path, err));
    SW_TRY(sw_disk_allocate(fd, path, n_bytes, err));
    return sw_disk_close(&fd, path, err);
}

sw_status sw_target_file_seal(const sw_target *target, uint32_t number, const char *path, sw_error *err)
{
    sw_buffer header SW_AUTO(sw_buffer_clear) = {0};
    int fd SW_AUTO(close_file) = -1;

    SW_TRY(sw_target_header(target, number, &header, err));
    SW_TRY(sw_disk_open(&fd, path, err));
    SW_TRY(sw_disk_pwrite(fd, path, header.bytes + LENGTH_BYTES, header.length - LENGTH_BYTES, LENGTH_BYTES,
                          err));
    SW_TRY(sw_disk_pwrite(fd, path, header.bytes, LENGTH_BYTES, 0, err));
    return sw_disk_close(&fd, path, err);
}
