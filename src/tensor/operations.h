/*
 * The operations, all of them: what a decoder is made of. Each takes a step and tensors and gives a tensor of
 * the step; NULL when the step has failed, now or before (tensor/step.h). Which shapes and layouts they take
 * stands in the table of operations.c and in docs/reference/operations.md. Arguments that may be NULL say so.
 */
#ifndef SW_TENSOR_OPERATIONS_H
#define SW_TENSOR_OPERATIONS_H

#include "kernel/elementwise.h"
#include "tensor/step.h"

/* x W^T + bias, W [out, in] as Hugging Face stores it; bias may be NULL */
sw_tensor *sw_op_linear(sw_step *step, const sw_tensor *x, const sw_tensor *weight, const sw_tensor *bias);
/* x W + bias, W [in, out]: GPT-2's Conv1D */
sw_tensor *sw_op_linear_in_out(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                               const sw_tensor *bias);

/*
 * The same for rows of experts: x [rows, in], those of an expert one after the other, ends [experts] where
 * each one's end (I32; an expert may have none). Rows behind the last end give zeros. W [experts, out, in],
 * or [experts, in, out]; bias [experts, out], may be NULL.
 */
sw_tensor *sw_op_expert_linear(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                               const sw_tensor *bias, const sw_tensor *ends);
sw_tensor *sw_op_expert_linear_in_out(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                                      const sw_tensor *bias, const sw_tensor *ends);

sw_tensor *sw_op_add(sw_step *step, const sw_tensor *a, const sw_tensor *b); /* of one shape */
sw_tensor *sw_op_add_bias(sw_step *step, const sw_tensor *x, const sw_tensor *bias);
sw_tensor *sw_op_multiply(sw_step *step, const sw_tensor *a, const sw_tensor *b);
sw_tensor *sw_op_row_scale(sw_step *step, const sw_tensor *x, const sw_tensor *scale); /* a factor a row */
sw_tensor *sw_op_scale(sw_step *step, const sw_tensor *x, double factor);
sw_tensor *sw_op_activate(sw_step *step, const sw_tensor *x, sw_activation activation);
sw_tensor *sw_op_glu(sw_step *step, const sw_tensor *gate, const sw_tensor *up, sw_activation activation);
/* (up + 1) * g * sigmoid(alpha * g), both clamped at `limit`: gpt-oss */
sw_tensor *sw_op_clamped_glu(sw_step *step, const sw_tensor *gate, const sw_tensor *up, double limit,
                             double alpha);
sw_tensor *sw_op_soft_cap(sw_step *step, const sw_tensor *x, double cap); /* cap * tanh(x / cap) */
sw_tensor *sw_op_clamp(sw_step *step, const sw_tensor *x, double limit);  /* within [-limit, limit] */

/* Over the last dim. */
sw_tensor *sw_op_softmax(sw_step *step, const sw_tensor *x);
/* Each row divided by its sum and eps. */
sw_tensor *sw_op_normalise(sw_step *step, const sw_tensor *x, double eps);
/* The weight may be NULL; it counts as `offset` + weight. */
sw_tensor *sw_op_rms_norm(sw_step *step, const sw_tensor *x, const sw_tensor *weight, double eps,
                          double offset);
/* The same in two pieces, for rows that are cut over ranks: sums of squares, to be summed over ranks, and
 * what follows from them. */
sw_tensor *sw_op_square_sums(sw_step *step, const sw_tensor *x);
typedef struct sw_rms_args {
    double eps;
    double offset;
    uint64_t full_width; /* of a whole row */
} sw_rms_args;

sw_tensor *sw_op_rms_by_sums(sw_step *step, const sw_tensor *x, const sw_tensor *sums,
                             const sw_tensor *weight, const sw_rms_args *args);
/* Weight, or both, may be NULL; a bias without a weight is refused. */
sw_tensor *sw_op_layer_norm(sw_step *step, const sw_tensor *x, const sw_tensor *weight, const sw_tensor *bias,
                            double eps);

/* Tables [positions, half of what turns]; a row of them for each token. Pairs: kernel/rotary.h. */
typedef struct sw_rope_args {
    const sw_tensor *cos;
    const sw_tensor *sin;
    const sw_tensor *positions; /* I32, the shape of x without its last two dims */
    bool is_interleaved;
} sw_rope_args;

sw_tensor *sw_op_rope(sw_step *step, const sw_tensor *x, const sw_rope_args *args);

/* Masks by positions: kernel/attention.h. */
typedef struct sw_attend_args {
    const sw_tensor *q_positions; /* I32 [batch, queries] */
    const sw_tensor *k_positions; /* I32 [batch, keys], -1: padding */
    const sw_tensor *slopes;      /* [heads] or NULL: ALiBi */
    double rounded_alibi;         /* 0; or Falcon's form of it: kernel/attention.h */
    const sw_tensor *sinks;       /* [heads] or NULL */
    double scale;
    double soft_cap; /* 0: none */
    uint32_t window; /* 0: none */
    bool is_causal;
} sw_attend_args;

sw_tensor *sw_op_attention(sw_step *step, const sw_tensor *q, const sw_tensor *k, const sw_tensor *v,
                           const sw_attend_args *args);

/* Rows of a table by token; a token that the table does not have gives zeros. */
sw_tensor *sw_op_embedding(sw_step *step, const sw_tensor *ids, const sw_tensor *weight);
/* The same from a part of a table: its row 0 is token `first`. */
sw_tensor *sw_op_embedding_part(sw_step *step, const sw_tensor *ids, const sw_tensor *weight, int64_t first);

/* How the largest of a row are chosen: kernel/rows.h. */
typedef struct sw_top_k_choice {
    uint64_t k;
    const sw_tensor *correction; /* [width] or NULL */
    uint64_t n_groups;           /* 0: no groups */
    uint64_t n_kept;
    uint64_t group_best; /* 1 or 2 */
} sw_top_k_choice;

/* The k largest of each row, and where they were, in *indices (may be NULL). */
sw_tensor *sw_op_top_k(sw_step *step, const sw_tensor *x, const sw_top_k_choice *choice,
                       const sw_tensor **indices);
/* y[r] = x[ids[r]]; an id below 0 gives zeros */
sw_tensor *sw_op_gather_rows(sw_step *step, const sw_tensor *x, const sw_tensor *ids);
/* y[ids[r]] += weights[r] * x[r] over all r, on `n_rows` rows of zeros; weights may be NULL: 1 */
sw_tensor *sw_op_scatter_rows(sw_step *step, const sw_tensor *x, const sw_tensor *weights,
                              const sw_tensor *ids, uint64_t n_rows);

/* factor * the sum of the rows' cross-entropies, a scalar; rows with a negative target count nothing */
sw_tensor *sw_op_cross_entropy(sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                               double factor);
sw_tensor *sw_op_sum(sw_step *step, const sw_tensor *x); /* of all elements, a scalar */

sw_tensor *sw_op_concat(sw_step *step, const sw_tensor *a, const sw_tensor *b); /* along the last dim */
/* A row of b behind each of the rows of a (its last dim but one) that it stands for. */
sw_tensor *sw_op_append(sw_step *step, const sw_tensor *a, const sw_tensor *b);
sw_tensor *sw_op_copy(sw_step *step, const sw_tensor *x); /* without gaps, in memory of its own */

/* Views: no elements move (but in a merge of dims that do not follow one another), no gradient is computed.
 */
sw_tensor *sw_view_split(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t inner); /* a dim in two */
sw_tensor *sw_view_split_into(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t outer); /* the same */
sw_tensor *sw_view_merge(sw_step *step, const sw_tensor *x, uint32_t dim); /* a dim and the next in one */
sw_tensor *sw_view_swap(sw_step *step, const sw_tensor *x, uint32_t a, uint32_t b);
sw_tensor *sw_view_slice(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t begin, uint64_t length);

#endif
