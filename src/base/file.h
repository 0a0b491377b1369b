/* Files: read-only maps of regular files, and whole-file writes that appear under their name only when
 * complete. */
#ifndef SW_BASE_FILE_H
#define SW_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/error.h"

typedef struct sw_file_map {
    const uint8_t *bytes;
    size_t n_bytes;
    bool is_owned; /* mapped by us, not borrowed */
} sw_file_map;     /* all zero is no file */

/* A view of memory that is already there (tests, fuzzers). */
sw_file_map sw_file_map_of(const void *bytes, size_t n_bytes);

/* Map a regular file of at most `limit` bytes. SW_E_FORMAT: it is not there or no regular file;
 * SW_E_IO: the system refused (both name the path and the reason); SW_E_LIMIT. */
sw_status sw_file_map_open(sw_file_map *out, const char *path, uint64_t limit, sw_error *err);

/* Map only the first `n_bytes` (or the whole file when shorter); *file_bytes gets the true size. */
sw_status sw_file_map_head(sw_file_map *out, const char *path, uint64_t n_bytes, uint64_t *file_bytes,
                           sw_error *err);
void sw_file_map_close(sw_file_map *map);

/* Whether the bytes begin like a Git LFS pointer: a checkout without the data itself. */
bool sw_file_is_lfs_pointer(sw_file_map map);

/* UNREACHABLE: something stands there that cannot be looked at, such as a link that leads nowhere; opening it
 * says why. */
typedef enum sw_file_kind {
    SW_FILE_ABSENT = 0,
    SW_FILE_REGULAR,
    SW_FILE_FOLDER,
    SW_FILE_OTHER,
    SW_FILE_UNREACHABLE
} sw_file_kind;
sw_file_kind sw_file_kind_of(const char *path); /* follows symlinks */

/* The folder that a path is in, with its slash, "." for a bare name. On the heap; NULL: no memory. */
char *sw_folder_of(const char *path);

/* Write bytes to a temporary name beside `path`, sync, rename over it. The old file stays on failure. */
sw_status sw_file_write_atomic(const char *path, const void *bytes, size_t n_bytes, sw_error *err);

/* Whether that could begin: to be asked before the work whose result goes there. Nothing is left behind. */
sw_status sw_file_write_check(const char *path, sw_error *err);

#endif
