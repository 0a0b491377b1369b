/*
 * Every call that changes a disk, in one place: errors name the path and the reason, short writes are
 * finished, and a test can make the n-th call of a kind fail or end the process there (SW_FAULT in the
 * environment, read once by sw_disk_fault_from_environment(); nothing happens without it).
 */
#ifndef SW_BASE_DISK_H
#define SW_BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/error.h"

typedef enum sw_disk_call {
    SW_DISK_CREATE = 0,
    SW_DISK_ALLOCATE,
    SW_DISK_WRITE,
    SW_DISK_SYNC,
    SW_DISK_RENAME,
    SW_DISK_REMOVE,
    SW_DISK_MKDIR,
    SW_DISK_CALL_COUNT_
} sw_disk_call;

/*
 * Fault to inject, from text "write:after=3:error=ENOSPC" or "rename:after=0:kill" (SIGKILL to ourselves);
 * `any` counts every call. Process-wide and for tests only: the program calls it first thing when SW_FAULT is
 * set.
 */
sw_status sw_disk_fault_set(const char *text, sw_error *err);

sw_status sw_disk_mkdir(const char *path, sw_error *err);
sw_status sw_disk_create(int *fd, const char *path,
                         sw_error *err); /* new file, 0666 & ~umask, refuses an existing one */
sw_status sw_disk_allocate(int fd, const char *path, uint64_t n_bytes,
                           sw_error *err); /* posix_fallocate; ENOSPC said */
sw_status sw_disk_pwrite(int fd, const char *path, const void *bytes, size_t n_bytes, uint64_t offset,
                         sw_error *err);
sw_status sw_disk_sync(int fd, const char *path, sw_error *err);
sw_status sw_disk_sync_folder(const char *path, sw_error *err);
sw_status sw_disk_rename(const char *from, const char *to, sw_error *err);
sw_status sw_disk_exchange(const char *a, const char *b,
                           sw_error *err);                      /* renameat2(RENAME_EXCHANGE), else refused */
sw_status sw_disk_remove_tree(const char *path, sw_error *err); /* never follows links, never leaves `path` */
sw_status sw_disk_free_bytes(const char *folder, uint64_t *out, sw_error *err);

#endif
