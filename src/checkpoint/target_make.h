/* What the makers of a target share: room for files and parts, sizes in bytes. */
#ifndef SW_CHECKPOINT_TARGET_MAKE_H
#define SW_CHECKPOINT_TARGET_MAKE_H

#include "checkpoint/regions.h"
#include "checkpoint/target.h"

typedef struct sw_target_maker {
    sw_target *target;
    const sw_store *source;
    uint32_t parts_capacity;
    sw_error *err;
} sw_target_maker;

/* An empty target with room for so many files. */
sw_status sw_target_begin(sw_target_maker *maker, sw_target **out, const sw_store *source, uint32_t n_files,
                          sw_error *err);

/* Append a part of tensor `tensor` to the last file; `held` must outlive the target. Refuses what cannot be
 * cut there (see below). */
sw_status sw_target_add(sw_target_maker *maker, uint32_t tensor, const sw_held *held);

/* Once a file has all of its parts: where they begin, and the sizes of header and data. */
sw_status sw_target_lay_out(sw_target_maker *maker, uint32_t number);

/*
 * Bytes of a part. Elements of a few bits are cut at whole bytes only, those of a dtype that we do not know
 * between rows of dim 0 only: SW_E_FORMAT otherwise.
 */
sw_status sw_target_part_bytes(const sw_store *source, const sw_store_tensor *tensor, const sw_part *part,
                               uint64_t *out, sw_error *err);

#endif
