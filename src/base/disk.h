/*
 * Every call that changes a disk, in one place: errors name the path and the reason, short writes are
 * finished, and a test can make the n-th call of a kind fail or end the process there (sw_disk_fault_set();
 * the program calls it with SW_FAULT of its environment). Nothing of that happens without being asked for.
 * Only the replacement of one whole file stands in base/file.c, under the same faults.
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
 * The fault to inject from now on, from text: "write:after=3:error=ENOSPC" lets three writes pass and fails
 * the fourth, once; "rename:after=0:kill" sends SIGKILL to ourselves instead of the first rename, `term`
 * sends SIGTERM before it, and the call is made if that does not end the process; the kind
 * `any` counts every call. The kinds are create, allocate, write, sync, rename, remove, mkdir. NULL: none.
 * Process-wide, and for tests only: set it before other threads are there. SW_E_ARGUMENT: not such a text.
 */
sw_status sw_disk_fault_set(const char *text, sw_error *err);

/* Whether the call that comes now is the one that the test wants to fail: then errno is set. */
bool sw_disk_must_fail(sw_disk_call call);

sw_status sw_disk_mkdir(const char *path, sw_error *err);

/* A new file for writing, 0666 less the umask; an existing one is refused. */
sw_status sw_disk_create(int *fd, const char *path, sw_error *err);

/* An existing file for writing in place; never through a symbolic link. */
sw_status sw_disk_open(int *fd, const char *path, sw_error *err);

/* Reserve the blocks of a file of `n_bytes`. A file system that cannot only sets the size. */
sw_status sw_disk_allocate(int fd, const char *path, uint64_t n_bytes, sw_error *err);
sw_status sw_disk_pwrite(int fd, const char *path, const void *bytes, size_t n_bytes, uint64_t offset,
                         sw_error *err);
/* Begin to write these bytes to the device, without waiting: a later sync has less to do. Only a hint. */
void sw_disk_write_soon(int fd, uint64_t offset, uint64_t n_bytes);
sw_status sw_disk_sync(int fd, const char *path, sw_error *err); /* data, and the size with it */

/* Close and say what closing says: network file systems report a full disk here. *fd is -1 afterwards. */
sw_status sw_disk_close(int *fd, const char *path, sw_error *err);

/* A small new file at once: create, write, close; synced unless the caller does that later. */
sw_status sw_disk_write_file(const char *path, const void *bytes, size_t n_bytes, bool no_sync,
                             sw_error *err);

sw_status sw_disk_sync_folder(const char *path, sw_error *err);
sw_status sw_disk_rename(const char *from, const char *to, sw_error *err); /* refuses an existing `to` */

/* Each gets the other's place at once. Refused where the file system cannot. */
sw_status sw_disk_exchange(const char *a, const char *b, sw_error *err);

/*
 * Remove a file, a link, or a folder and what is in it. Links are removed, never followed; what lies on
 * another file system is refused. What is not there is fine.
 */
sw_status sw_disk_remove_tree(const char *path, sw_error *err);

sw_status sw_disk_free_bytes(const char *folder, uint64_t *out, sw_error *err);

#endif
