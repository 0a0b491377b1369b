/*
 * A target: the files that are to be written and the part of which tensor each stored tensor in them is. Made
 * from a plan (a sharded folder) or from a size limit (a Hugging Face folder); the copy engine fills it. A
 * large model has a million parts: a part is small, and headers are made when they are written.
 */
#ifndef SW_CHECKPOINT_TARGET_H
#define SW_CHECKPOINT_TARGET_H

#include "base/sink.h"
#include "checkpoint/store.h"

typedef struct sw_target_part {
    const sw_held *held; /* in the dims of sw_store_dims(); the extents of its part are the shape as stored */
    uint64_t n_bytes;
    uint64_t begin;  /* from the start of the data section */
    uint64_t hash;   /* xxh3 of its bytes, filled by the copy */
    uint32_t tensor; /* index in the source store */
} sw_target_part;

typedef struct sw_target_file {
    const char *name;
    int32_t pp, tp, ep; /* coordinate; -1: the axis does not tell files of this set apart */
    uint32_t first_part;
    uint32_t n_parts;
    uint64_t header_bytes; /* the 8-byte length and the header */
    uint64_t data_bytes;
} sw_target_file;

typedef struct sw_target {
    const sw_store *source; /* borrowed, as the plan is */
    const sw_plan *plan;    /* NULL: a Hugging Face folder */
    const uint32_t *facts;  /* of the plan, by tensor of the source; NULL without a plan */
    sw_arena *arena;
    sw_target_file *files;
    uint32_t n_files;
    sw_target_part *parts; /* file after file, in each in the order of the source */
    uint32_t n_parts;
    sw_small_file *carried; /* small files that stand beside, filled by sw_carry() */
    uint32_t n_carried;
    bool has_plan_hash; /* of plan.json, which stands beside */
    uint64_t plan_hash; /* xxh3 of its bytes */
    uint64_t run; /* of a sharded folder: what its files have in common and those of other runs have not */
    uint32_t n_state_files; /* of a Hugging Face folder: the last ones, with optimizer state */
} sw_target;

/* Files of a sharded folder (decisions 30 and 48): every tensor of the source by its place in the plan. */
sw_status sw_target_of_plan(sw_target **out, const sw_store *source, const sw_plan *plan, sw_error *err);

/* Files of a Hugging Face folder, filled in order up to `max_bytes` of tensor data each; optimizer state
 * apart. */
sw_status sw_target_of_folder(sw_target **out, const sw_store *source, uint64_t max_bytes, sw_error *err);

/* The number of the run, once the hashes of all parts are filled in: equal bytes give equal numbers. */
void sw_target_number_run(sw_target *target);

/* Bytes of the header of a file, the 8-byte length in front included. SW_E_LIMIT, SW_E_NO_MEMORY. */
sw_status sw_target_header_measure(const sw_target *target, uint32_t number, uint64_t *header_bytes,
                                   sw_error *err);

/* The header without that length, to `sink`. */
sw_status sw_target_header_write(const sw_target *target, uint32_t number, const sw_sink *sink,
                                 sw_error *err);

/* model.safetensors.index.json of a Hugging Face folder. */
sw_status sw_target_index(sw_buffer *out, const sw_target *target, sw_error *err);

/* Parts by tensor: those of tensor i are order[starts[i]] to order[starts[i + 1] - 1], in file order. */
typedef struct sw_target_order {
    uint32_t *starts;
    uint32_t *order;
    uint32_t *file_of; /* of a part */
} sw_target_order;

sw_status sw_target_order_make(sw_target_order *out, const sw_target *target, uint32_t n_tensors,
                               sw_error *err);
void sw_target_order_clear(sw_target_order *order);

void sw_target_destroy(sw_target *target);

/* Bytes of all files, headers included. */
uint64_t sw_target_bytes(const sw_target *target);

#endif
