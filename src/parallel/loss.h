/*
 * Loss parallel: the cross-entropy of logits whose vocabulary is cut over ranks. Logits are never gathered:
 * each rank reduces its columns of a row to a maximum, a sum and the logit of the target, and those are
 * reduced over the ranks: two messages a step, of three numbers a row.
 */
#ifndef SW_PARALLEL_LOSS_H
#define SW_PARALLEL_LOSS_H

#include "comm/comm.h"
#include "tensor/step.h"

/* The columns of this rank. Parts may be uneven or empty; over the ranks each token is in one of them. */
typedef struct sw_vocabulary_part {
    const sw_group *group;
    uint64_t extent; /* of the whole vocabulary */
    uint64_t first;  /* the token that column 0 stands for */
} sw_vocabulary_part;

/*
 * factor * the sum of the rows' cross-entropies, a scalar that is the same on all ranks of the group. Logits
 * [.., V of this rank]; targets I32 [..], the same on all ranks, tokens of the whole vocabulary; negative:
 * the row counts nothing. `part` is copied. Collective over the group.
 */
sw_tensor *sw_loss_parallel(sw_step *step, const sw_vocabulary_part *part, const sw_tensor *logits,
                            const sw_tensor *targets, double factor);

/*
 * 1 / the number of targets that count, over all ranks of a group (those that hold different tokens: dp and
 * cp); 0 when there is none. `n_before` are those of micro-batches of this rank that are not among these.
 */
double sw_loss_factor(const sw_group *group, const int32_t *targets, uint64_t n, uint64_t n_before);

#endif
