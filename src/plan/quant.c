/*
 * Companions against their weights. Sizes come from the config (bits, group size, block) where it gives them,
 * else from the shapes; what the shapes contradict is a mismatch, never a guess.
 */
#include "plan/quant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Values in a word of so many bits; 0 when the config does not say. */
static uint64_t pack_of(const sw_quantization *q, int64_t word)
{
    return q->bits > 0 && q->bits <= word && word % q->bits == 0 ? (uint64_t)(word / q->bits) : 0;
}

/* Bits of a word of a packed weight: FP4 is packed in bytes, everything else in 32 bits. */
static int64_t word_of(const sw_tensor_entry *weight)
{
    return weight != NULL && weight->dtype == SW_DTYPE_U8 ? 8 : 32;
}

static bool ends_with(const sw_tensor_entry *t, const char *suffix)
{
    size_t n = strlen(suffix);
    return t->name_length > n && memcmp(t->name + t->name_length - n, suffix, n) == 0;
}

static uint64_t block_factor(int64_t said, uint64_t stored, uint64_t logical)
{
    if (stored == 1)
        return logical == 0 ? 1 : logical; /* one scale for all of them */
    if (stored == logical)
        return 1;
    if (said > 0)
        return (uint64_t)said;
    return stored != 0 && logical % stored == 0 ? logical / stored : 0;
}

static uint64_t factor_of(const sw_quantization *q, sw_factor factor, int64_t word, uint64_t stored,
                          uint64_t logical)
{
    switch (factor) {
    case SW_FACTOR_ONE:
        return 1;
    case SW_FACTOR_PACK:
        return pack_of(q, word);
    case SW_FACTOR_GROUP:
        if (q->group_size > 0)
            return (uint64_t)q->group_size;
        return q->group_size < 0 ? (logical == 0 ? 1 : logical) : 0; /* -1: one group for the whole row */
    case SW_FACTOR_BLOCK_ROWS:
        return block_factor(q->block_rows, stored, logical);
    case SW_FACTOR_BLOCK_COLS:
        return block_factor(q->block_cols, stored, logical);
    }
    return 0;
}

/* The weight beside the companion, or NULL. */
static const sw_tensor_entry *weight_of(const sw_plan *plan, const sw_companion *c, const char *fqn,
                                        size_t length)
{
    static const char *const leaves[] = {".weight", ".qweight", ".weight_packed"};
    size_t stem = length - strlen(c->suffix);
    char name[1024];

    for (size_t i = 0; i < SW_COUNT(leaves); i++) {
        int n = snprintf(name, sizeof name, "%.*s%s", (int)stem, fqn, leaves[i]);
        if (n <= 0 || (size_t)n >= sizeof name)
            return NULL;
        const sw_tensor_entry *t = sw_tensor_list_find(&plan->model->list, name, (size_t)n);
        if (t != NULL && t->shape != NULL && t->shape->n_dims == 2)
            return t;
    }
    return NULL;
}

/* Logical rows and columns of a stored weight, words unpacked. */
static void logical_extents(const sw_quantization *q, const sw_tensor_entry *weight, sw_quant_geometry *out)
{
    bool is_packed =
        weight->dtype == SW_DTYPE_I32 || weight->dtype == SW_DTYPE_U32 || ends_with(weight, ".weight_packed");
    uint64_t pack = is_packed ? pack_of(q, word_of(weight)) : 1;
    bool is_transposed = ends_with(weight, ".qweight");

    out->out = weight->shape->dims[is_transposed ? 1 : 0];
    out->in = weight->shape->dims[is_transposed ? 0 : 1];
    if (q->method == SW_QUANTIZATION_AWQ)
        out->out *= pack;
    else
        out->in *= pack;
}

static void check_side(sw_quant_geometry *out, const sw_shape *shape, int dim, uint64_t factor,
                       uint64_t logical, const char *rows)
{
    if (dim < 0 || factor == 0 || logical == 0)
        return;
    uint64_t expected = logical / factor + (logical % factor != 0);
    if (shape->dims[dim] == expected)
        return;
    (void)snprintf(out->mismatch, sizeof out->mismatch,
                   "dim %d has %" PRIu64 ", but the weight's %" PRIu64 " %s in groups of %" PRIu64
                   " are %" PRIu64,
                   dim, shape->dims[dim], logical, rows, factor, expected);
}

const sw_quantization_module *sw_quant_module_of(const sw_plan *plan, const sw_companion *companion,
                                                 const char *fqn, size_t fqn_length)
{
    return sw_quantization_module_of(&plan->model->config.quantization, fqn,
                                     fqn_length - strlen(companion->suffix));
}

/* The settings that hold for one module. */
static sw_quantization settings_of(const sw_plan *plan, const sw_companion *companion, const char *fqn,
                                   size_t fqn_length)
{
    sw_quantization q = plan->model->config.quantization;
    const sw_quantization_module *own = sw_quant_module_of(plan, companion, fqn, fqn_length);

    if (own != NULL) {
        q.bits = own->bits;
        q.group_size = own->group_size;
    }
    return q;
}

void sw_quant_geometry_of(const sw_plan *plan, const sw_companion *companion, const char *fqn,
                          size_t fqn_length, const sw_shape *shape, bool is_stacked, sw_quant_geometry *out)
{
    const sw_quantization q = settings_of(plan, companion, fqn, fqn_length);
    const sw_tensor_entry *weight = weight_of(plan, companion, fqn, fqn_length);
    int front = is_stacked ? 1 : 0;
    int n_dims = (int)shape->n_dims;
    int64_t word = companion->is_weight ? word_of(weight) : 32;

    *out = (sw_quant_geometry){
        .axes = {.expert_dim = is_stacked ? 0 : -1, .out_dim = -1, .in_dim = -1},
          .bits = q.bits
    };
    out->axes.out_factor = 1;
    out->axes.in_factor = 1;
    if (weight != NULL)
        logical_extents(&q, weight, out);
    if (companion->out_dim >= 0 && companion->out_dim + front < n_dims) {
        out->axes.out_dim = (companion->out_dim + front);
        out->axes.out_factor =
            factor_of(&q, companion->out_factor, word, shape->dims[out->axes.out_dim], out->out);
    }
    if (companion->in_dim >= 0 && companion->in_dim + front < n_dims) {
        out->axes.in_dim = (companion->in_dim + front);
        out->axes.in_factor =
            factor_of(&q, companion->in_factor, word, shape->dims[out->axes.in_dim], out->in);
    }
    if (companion->is_weight)
        return;
    check_side(out, shape, out->axes.out_dim, out->axes.out_factor, out->out, "rows");
    check_side(out, shape, out->axes.in_dim, out->axes.in_factor, out->in, "columns");
}
