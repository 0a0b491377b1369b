/*
 * The bytes of a store where they lie: its files are mapped, each when something of it is first wanted, and
 * nothing else of them is read. For loading; what is copied from disk to disk is read (checkpoint/source.h).
 */
#ifndef SW_CHECKPOINT_MAPPED_H
#define SW_CHECKPOINT_MAPPED_H

#include "checkpoint/store.h"

typedef struct sw_mapped {
    const sw_store *store;
    sw_file_map *maps;   /* by file; all zero: not yet */
    uint64_t bytes_read; /* copied out, or lent */
} sw_mapped;

/* `store` is borrowed. SW_E_NO_MEMORY. */
sw_status sw_mapped_create(sw_mapped **out, const sw_store *store, sw_error *err);
void sw_mapped_destroy(sw_mapped *mapped); /* NULL is fine */

/*
 * The bytes of a tensor that one file holds whole, lent until then; *bytes NULL: no file does. They are
 * compared with their checksum, if they have one. Failures as those of sw_mapped_take().
 */
sw_status sw_mapped_lend(sw_mapped *mapped, const sw_store_tensor *tensor, const uint8_t **bytes,
                         sw_error *err);

/*
 * A part of a tensor, row-major, to memory that has room for it. Stored parts that are taken whole are
 * compared with their checksums. SW_E_FORMAT: a checksum is another, or files do not hold what is said;
 * SW_E_IO: a file is gone or has changed.
 */
sw_status sw_mapped_take(sw_mapped *mapped, const sw_store_tensor *tensor, const sw_part *part, void *to,
                         sw_error *err);

/*
 * A number for all that is stored: of recorded checksums, and where there are none of the first bytes of each
 * part, for reading all of them is not worth it. Failures as those of sw_mapped_take().
 */
sw_status sw_mapped_sample(sw_mapped *mapped, uint64_t *out, sw_error *err);

#endif
