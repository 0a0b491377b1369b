/* Making and sealing the files of a target (checkpoint/target_file.h). */
#include "checkpoint/target_file.h"

#include <unistd.h>

#include "base/checked.h"
#include "base/disk.h"
#include "base/status.h"
#include "io/safetensors_write.h"

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

/* A file while its header goes into it. */
typedef struct open_file {
    const char *path;
    int fd;
    uint64_t at;
} open_file;

static sw_status write_piece(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    open_file *file = user;

    SW_TRY(sw_disk_pwrite(file->fd, file->path, bytes, n_bytes, file->at, err));
    file->at += n_bytes;
    return SW_OK;
}

sw_status sw_target_file_seal(const sw_target *target, uint32_t number, const char *path, sw_error *err)
{
    int fd SW_AUTO(close_file) = -1;
    char prefix[SW_SAFETENSORS_PREFIX];

    SW_TRY(sw_disk_open(&fd, path, err));
    open_file file = {path, fd, SW_SAFETENSORS_PREFIX};
    const sw_sink sink = {write_piece, &file};
    SW_TRY(sw_target_header_write(target, number, &sink, err));
    sw_safetensors_prefix(target->files[number].header_bytes, prefix); /* last: without it there is no file */
    SW_TRY(sw_disk_pwrite(fd, path, prefix, sizeof prefix, 0, err));
    return sw_disk_close(&fd, path, err);
}
