/*
 * The proofs that end merge, reshard and verify: owners hold every element once, and copies are equal.
 */
#ifndef SW_CHECKPOINT_PROVE_H
#define SW_CHECKPOINT_PROVE_H

#include "checkpoint/copy_plan.h"
#include "checkpoint/target.h"
#include "shardwright/checkpoint.h"

typedef struct sw_proof {
    uint64_t elements; /* of all tensors */
    uint64_t covered;  /* held by an owner, once */
    uint64_t replicas; /* regions that a lower coordinate holds too */
} sw_proof;

/* One tensor of a store; SW_E_FORMAT names it. *proof is added to. */
sw_status sw_prove_tensor(const sw_store *store, uint32_t tensor, sw_proof *proof, sw_error *err);

/* All tensors of a store, of a target. */
sw_status sw_prove_store(const sw_store *store, sw_proof *proof, sw_error *err);
sw_status sw_prove_target(const sw_store *source, const sw_target *target, sw_proof *proof, sw_error *err);

/*
 * Copies in a target whose hashes are filled in: the same bytes give the same hash. Copies in some of their
 * ranges only (key heads in a fused weight, say) have no hash of their own; they, too, are what the engine
 * took from the one owner of these ranges in the source, so that they differ only when the source was written
 * to between two reads. Of that every whole copy is a witness, and so is each checksum of the source.
 */
sw_status sw_prove_copies(const sw_store *source, const sw_target *target, sw_error *err);

/*
 * Compare every copy in a store with what its owners hold, byte for byte; not those that a pick decides
 * between: where it takes a copy, nobody asks about the others of the same place. NULL: no pick. Each that
 * differs is a finding "replica_differs" in `report` (may be NULL); SW_E_FORMAT tells of the first.
 * *bytes_read is added to.
 */
sw_status sw_compare_replicas(const sw_store *store, const sw_copy_pick *pick, sw_progress_fn *on_progress,
                              void *user, sw_report *report, uint64_t *bytes_read, sw_error *err);

#endif
