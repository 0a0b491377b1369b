/*
 * Reading the bytes of a store by pread(): one reader a thread. A file that shrinks or fails under us is an
 * error with its name, where a map would end the process with a signal.
 */
#ifndef SW_CHECKPOINT_SOURCE_H
#define SW_CHECKPOINT_SOURCE_H

#include "checkpoint/store.h"

enum { SW_MOST_SLOTS = 64 };

/*
 * Files that each of `n_sets` sets of open files may keep open at once, so that all of them stay below the
 * process's limit: at least 1, at most SW_MOST_SLOTS. File i stands in slot i modulo that.
 */
uint32_t sw_file_slots(uint32_t n_sets);

typedef struct sw_source {
    const sw_store *store;
    struct {
        uint32_t file;
        int fd; /* -1: the slot is free */
    } open[SW_MOST_SLOTS];
    uint32_t n_slots;
    uint64_t bytes_read; /* copied out so far */
} sw_source;

/* `store` is borrowed until the source is closed; n_slots is of sw_file_slots(). */
void sw_source_init(sw_source *source, const sw_store *store, uint32_t n_slots);
void sw_source_clear(sw_source *source);

/*
 * Bytes [at, at + n_bytes) of a file, counted from its first byte. SW_E_IO: it cannot be opened or read, its
 * size is not what it was when the store was opened, or it ends before that.
 */
sw_status sw_source_read(sw_source *source, uint32_t file, uint64_t at, void *bytes, size_t n_bytes,
                         sw_error *err);

#endif
