/*
 * Attention by tiles: no matrix of queries by keys is ever in memory, tiles of it that a mask hides are
 * passed over. Dims: B batch, T queries, S keys, H heads, K key/value heads (a divisor of H), D width of
 * queries and keys, E width of values.
 *
 *     x = soft_cap(scale * q.k) + slope * (k_position - q_position);  hidden: x = -inf
 *     lse = log(exp(sink) + sum over keys of exp(x));  out = sum over keys of exp(x - lse) * v
 *
 * A key is seen when its position is not negative (padding has -1), in causal attention not after the
 * query's, and with a window less than `window` before it. Positions are global, so a rank may hold any part
 * of the keys: with the lse of all of them the backward is right for its part (sinks then enter where parts
 * are merged: kernel/attention_merge.h). A query that sees nothing has out 0 and lse -inf.
 */
#ifndef SW_KERNEL_ATTENTION_H
#define SW_KERNEL_ATTENTION_H

#include "kernel/kernel.h"

/* A tensor of heads, with the strides from batch to batch, token to token and head to head in elements. */
typedef struct sw_heads {
    const void *values;
    size_t batch;
    size_t token;
    size_t head;
} sw_heads;

typedef struct sw_heads_out {
    void *values;
    size_t batch;
    size_t token;
    size_t head;
} sw_heads_out;

typedef struct sw_attention_args {
    size_t n_batch;
    size_t n_queries;
    size_t n_keys;
    size_t n_heads;
    size_t n_kv_heads;
    size_t width;
    size_t v_width;
    double scale;
    double soft_cap; /* 0: none */
    bool is_causal;
    uint32_t window;            /* 0: none */
    const int32_t *q_positions; /* [T] or, with a stride, [B, T]; NULL: their index */
    const int32_t *k_positions; /* [S] or [B, S]; NULL: their index */
    size_t q_positions_batch;   /* from batch to batch; 0: the same for all */
    size_t k_positions_batch;
    const void *slopes; /* [H] or NULL: ALiBi */
    /* 0: none. Else slopes count as Falcon has them: this times (slope * k_position, rounded to BF16). */
    double rounded_alibi;
    const void *sinks; /* [H] or NULL: logits that take weight and give nothing */
    sw_heads q;        /* [B, T, H, D] */
    sw_heads k;        /* [B, S, K, D] */
    sw_heads v;        /* [B, S, K, E] */
    sw_heads_out out;  /* [B, T, H, E]; the backward reads it */
    void *lse;         /* [B, H, T]; the forward writes it, the backward reads it */
    sw_heads d_out;    /* backward: [B, T, H, E] */
    sw_heads_out d_q;
    sw_heads_out d_k;
    sw_heads_out d_v;
    bool adds;     /* d_q, d_k and d_v are added to what is there */
    void *d_sinks; /* [H] or NULL; added to what is there */
} sw_attention_args;

/*
 * Bytes of workspace of the forward or the backward (pointers are not looked at but for NULL), at malloc's
 * alignment. SW_E_ARGUMENT: key/value heads that do not divide the heads; SW_E_LIMIT: sizes that overflow.
 */
sw_status sw_attention_workspace(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                                 bool is_backward, size_t *n_bytes, sw_error *err);

void sw_kernel_attention(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                         void *workspace);
void sw_kernel_attention_back(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                              void *workspace);

#endif
