/*
 * How the bytes of one part of a tensor are put together from stored parts. Dims that nobody cuts are merged
 * into the one before, so what remains is a few dims; along each the part is a list of stretches, and a
 * stretch says which sources hold its rows and where. Everything is in bytes of the files.
 *
 * Invariant: a plan never leads outside the bytes of a stored part, whatever the manifest said.
 */
#ifndef SW_CHECKPOINT_COPY_PLAN_H
#define SW_CHECKPOINT_COPY_PLAN_H

#include "base/arena.h"
#include "checkpoint/store.h"

/* A source that holds a stretch. */
typedef struct sw_copy_holder {
    uint32_t source;
    uint64_t at; /* bytes from where the outer dims have led to, to the first row of the stretch */
} sw_copy_holder;

typedef struct sw_copy_stretch {
    uint64_t n_rows; /* bytes in the last dim */
    uint32_t first_holder;
    uint32_t n_holders; /* in the order of preference */
} sw_copy_stretch;

typedef struct sw_copy_dim {
    sw_copy_stretch *stretches; /* in the order of the part */
    sw_copy_holder *holders;
    uint64_t *row_bytes; /* by source: from a row to the next one; 1 in the last dim */
    uint32_t n_stretches;
} sw_copy_dim;

typedef struct sw_copy_source {
    uint32_t part; /* counted from the tensor's first part */
    uint32_t file;
    uint64_t begin; /* from the start of the file */
} sw_copy_source;

typedef struct sw_copy_plan {
    const sw_store_tensor *tensor;
    sw_copy_dim dims[SW_MAX_DIMS]; /* outermost first */
    uint32_t n_dims;               /* 0: nothing to copy */
    uint32_t n_sources;
    sw_copy_source *sources;
    uint64_t n_bytes; /* of the part */
} sw_copy_plan;

/* Whose copy is taken where several files hold the same; zero is the owner's. */
typedef struct sw_copy_pick {
    bool by_rank; /* those of the files whose tp coordinate (without tp: ep) is `rank` */
    uint32_t rank;
} sw_copy_pick;

/* The coordinate of a file that a pick goes by. */
static inline int32_t sw_copy_rank(const sw_store_file *file)
{
    return file->tp >= 0 ? file->tp : file->ep;
}

/* Is a stored part one of those that are taken? */
bool sw_copy_is_picked(const sw_store *store, const sw_copy_pick *pick, const sw_store_part *stored);

/*
 * The plan of `part`, in memory of `arena`. SW_E_FORMAT: ranges outside the tensor, stored sizes that do not
 * fit their part, a cut through a byte (F4), or through rows of a dtype that is not known. SW_E_LIMIT.
 */
sw_status sw_copy_plan_make(sw_copy_plan *out, const sw_store *store, const sw_store_tensor *tensor,
                            const sw_part *part, const sw_copy_pick *pick, sw_arena *arena, sw_error *err);

#endif
