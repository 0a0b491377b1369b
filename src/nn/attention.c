/*
 * Attention of heads: queries, keys and values from apart or fused projections, norms of q and k, the rotary
 * embedding, the cache; what attends is a module of its own. Heads are [B, T, H, D], and views where they
 * stand in a fused projection.
 */
#include "nn/classes.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"

/* Queries, keys and values while they are made. */
typedef struct heads {
    const sw_module *module;
    sw_step *step;
    uint64_t n_q;
    uint64_t n_kv;
    uint64_t width;
    const sw_tensor *q;
    const sw_tensor *k;
    const sw_tensor *v;
} heads;

/* [B, T, n * D] to [B, T, n, D] */
static sw_tensor *split(const heads *h, const sw_tensor *x)
{
    return sw_view_split(h->step, x, 2, h->width);
}

/* ---- projections ---- */

/* A norm over all heads, whose mean square may have to be summed over ranks. */
static const sw_tensor *full_norm(const heads *h, sw_slot slot, const sw_tensor *x, uint64_t full_width)
{
    const sw_held *held = &h->module->held[slot];
    const sw_net_settings *s = &h->module->net->settings;
    const sw_statistic_stage *statistic = &h->module->stages->statistic;
    sw_rms_args args = {.eps = s->eps, .offset = s->decoder->norm_offset, .full_width = full_width};

    if (held->weight == NULL || (held->weight->row->flags & SW_ROW_FULL_NORM) == 0)
        return x;
    if (statistic->run == NULL)
        return sw_normalise(h->module->net, h->step, held, x);
    const sw_tensor *sums = sw_op_square_sums(h->step, x);
    sums = statistic->run(statistic->context, h->step, sums, held->weight);
    return sw_op_rms_by_sums(h->step, x, sums, held->weight->tensor, &args);
}

static void project_apart(heads *h, const sw_tensor *x)
{
    const sw_held *held = h->module->held;
    const sw_net_settings *s = &h->module->net->settings;

    sw_step_gather_products(h->step);
    h->q = sw_project(h->step, &held[SW_SLOT_Q], x);
    h->k = sw_project(h->step, &held[SW_SLOT_K], x);
    h->v = sw_project(h->step, &held[SW_SLOT_V], x);
    sw_step_run_gathered(h->step);
    h->q = split(h, full_norm(h, SW_SLOT_Q_NORM, h->q, s->heads * s->head_dim));
    h->k = split(h, full_norm(h, SW_SLOT_K_NORM, h->k, s->kv_heads * s->head_dim));
    h->v = split(h, h->v);
}

/* [q; k; v]: runs of rows of the weight, or of columns of what a Conv1D gives. */
static void project_stacked(heads *h, const sw_tensor *x)
{
    const sw_held *held = &h->module->held[SW_SLOT_QKV];
    uint64_t q = h->n_q * h->width;
    uint64_t kv = h->n_kv * h->width;

    if (held->weight->row->form == SW_FORM_CONV1D) {
        const sw_tensor *y = sw_project(h->step, held, x);
        h->q = split(h, sw_view_slice(h->step, y, 2, 0, q));
        h->k = split(h, sw_view_slice(h->step, y, 2, q, kv));
        h->v = split(h, sw_view_slice(h->step, y, 2, q + kv, kv));
        return;
    }
    sw_step_gather_products(h->step);
    h->q = split(h, sw_project_rows(h->step, held, x, 0, q));
    h->k = split(h, sw_project_rows(h->step, held, x, q, kv));
    h->v = split(h, sw_project_rows(h->step, held, x, q + kv, kv));
    sw_step_run_gathered(h->step);
}

/* Head by head q, k, v; or by key/value group its queries, its key, its value. */
static void project_grouped(heads *h, const sw_tensor *x)
{
    sw_step *step = h->step;
    uint64_t n_in_group = h->n_q / h->n_kv;
    uint64_t q = n_in_group * h->width;
    const sw_tensor *y = sw_project(step, &h->module->held[SW_SLOT_QKV], x);

    y = sw_view_split(step, y, 2, q + 2 * h->width); /* [B, T, groups, (n + 2) * D] */
    h->q = sw_view_slice(step, y, 3, 0, q);
    h->k = sw_view_slice(step, y, 3, q, h->width);
    h->v = sw_view_slice(step, y, 3, q + h->width, h->width);
    if (n_in_group > 1) /* queries of a group follow one another, groups do not */
        h->q = sw_view_merge(step, sw_view_split(step, h->q, 3, h->width), 2);
}

/* In blocks, each with the queries, the values and the keys of its share of the heads (CodeGen). */
static void project_blocks(heads *h, const sw_tensor *x)
{
    sw_step *step = h->step;
    const sw_held *held = &h->module->held[SW_SLOT_QKV];
    uint64_t n_blocks = held->weight->row->parts * h->n_q / h->module->net->settings.heads;
    uint64_t share = n_blocks == 0 ? 0 : h->n_q * h->width / n_blocks;
    const sw_tensor *y = sw_view_split(step, sw_project(step, held, x), 2, 3 * share);

    h->q = split(h, sw_view_merge(step, sw_view_slice(step, y, 3, 0, share), 2));
    h->v = split(h, sw_view_merge(step, sw_view_slice(step, y, 3, share, share), 2));
    h->k = split(h, sw_view_merge(step, sw_view_slice(step, y, 3, 2 * share, share), 2));
}

/* Where ranks share a key/value group each has some of its queries, then its key, its value. */
static bool has_part_of_group(const heads *h)
{
    const sw_net_settings *s = &h->module->net->settings;
    return h->n_q * s->kv_heads < h->n_kv * s->heads;
}

static void project(heads *h, const sw_tensor *x)
{
    const sw_parameter *fused = h->module->held[SW_SLOT_QKV].weight;

    if (fused == NULL)
        project_apart(h, x);
    else if (fused->row->layout == SW_LAYOUT_QKV_BLOCKS)
        project_blocks(h, x);
    else if (fused->row->layout == SW_LAYOUT_QKV_STACKED || has_part_of_group(h))
        project_stacked(h, x);
    else
        project_grouped(h, x);
}

/* ---- what is done to heads ---- */

static void clip(heads *h)
{
    double limit = h->module->net->settings.clip_qkv;

    if (limit <= 0)
        return;
    h->q = sw_op_clamp(h->step, h->q, limit);
    h->k = sw_op_clamp(h->step, h->k, limit);
    h->v = sw_op_clamp(h->step, h->v, limit);
}

/* In validate mode: the layout of numbers that each row of `x` has one of, whole where rows are cut. */
static const sw_tensor_layout *layout_of_rows(sw_step *step, const sw_tensor_layout *x)
{
    sw_tensor_layout *made = x == NULL ? NULL : sw_stack_take(sw_step_stack(step), sizeof *made);

    if (made == NULL)
        return NULL;
    *made = *x;
    made->n_dims--;
    for (uint32_t k = 0; k < made->grid.n_axes; k++) {
        if (made->on[k].kind == SW_PLACE_SHARD && made->on[k].dim == (int32_t)made->n_dims)
            made->on[k] = (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    }
    return made;
}

/* A factor a column, which is what is left of a norm when the sums of squares are 0 and eps is 1. */
static const sw_tensor *scale_columns(sw_step *step, const sw_tensor *x, const sw_tensor *weight)
{
    sw_rms_args args = {.eps = 1, .full_width = 1};
    sw_tensor *sums = x == NULL ? NULL : sw_step_tensor(step, sw_tensor_dtype(x), x->n_dims - 1, x->dims);

    if (sums == NULL)
        return NULL;
    sums->layout = layout_of_rows(step, x->layout);
    memset(sw_tensor_data(sums), 0, (size_t)sw_tensor_elems(sums) * sw_elem_bytes(sw_tensor_dtype(sums)));
    return sw_op_rms_by_sums(step, x, sums, weight, &args);
}

/* In validate mode: numbers of heads [H, D], cut as the heads of `x` [B, T, H, D] are. */
static const sw_tensor_layout *layout_of_heads(sw_step *step, const sw_tensor_layout *x)
{
    sw_tensor_layout *made = x == NULL ? NULL : sw_stack_take(sw_step_stack(step), sizeof *made);

    if (made == NULL)
        return NULL;
    *made = *x;
    made->n_dims = 2;
    made->dims[0] = x->dims[2];
    made->dims[1] = x->dims[3];
    for (uint32_t k = 0; k < made->grid.n_axes; k++) {
        bool is_cut = made->on[k].kind == SW_PLACE_SHARD && made->on[k].dim == 2;
        made->on[k] = is_cut ? (sw_placement){SW_PLACE_SHARD, 0, made->on[k].cut}
                             : (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    }
    return made;
}

/* Weights [H, D] of the heads that are here; a rank may hold those of all. */
static const sw_tensor *weights_of(const heads *h, sw_slot slot, const sw_tensor *x)
{
    const sw_net_settings *s = &h->module->net->settings;
    const sw_tensor *all = h->module->held[slot].weight->tensor;
    uint64_t first = (uint64_t)h->module->attributes[SW_ATTENTION_FIRST_HEAD];

    if (x == NULL || all->dims[0] == x->dims[2])
        return all;
    if (slot == SW_SLOT_K_NORM)
        first = first * s->kv_heads / s->heads;
    sw_tensor *mine = sw_view_slice(h->step, all, 0, first, x->dims[2]);
    if (mine != NULL)
        mine->layout = layout_of_heads(h->step, x->layout);
    return mine;
}

/* One weight for all heads, [D], or one for each, [H, D]. */
static const sw_tensor *head_norm(const heads *h, sw_slot slot, const sw_tensor *x)
{
    const sw_held *held = &h->module->held[slot];
    const sw_held bare = {NULL, NULL};

    if (held->weight == NULL || (held->weight->row->flags & SW_ROW_FULL_NORM) != 0)
        return x;
    if (held->weight->n_dims == 1)
        return sw_normalise(h->module->net, h->step, held, x);
    const sw_tensor *weights = weights_of(h, slot, x);
    x = sw_view_merge(h->step, sw_normalise(h->module->net, h->step, &bare, x), 2);
    return split(h, scale_columns(h->step, x, sw_view_merge(h->step, weights, 0)));
}

static void turn(heads *h, const sw_pass *pass)
{
    const sw_net *net = h->module->net;
    sw_rope_args args = {.cos = pass->rotary->cos,
                         .sin = pass->rotary->sin,
                         .positions = pass->positions,
                         .is_interleaved = net->settings.is_interleaved};

    if (!net->layers[h->module->layer].is_turned)
        return;
    h->q = sw_op_rope(h->step, h->q, &args);
    h->k = sw_op_rope(h->step, h->k, &args);
}

static sw_tensor *forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                          const sw_tensor *const *in)
{
    heads h = {.module = module,
               .step = step,
               .n_q = (uint64_t)module->attributes[SW_ATTENTION_HEADS],
               .n_kv = (uint64_t)module->attributes[SW_ATTENTION_KV_HEADS],
               .width = module->net->settings.head_dim};

    project(&h, in[0]);
    clip(&h);
    h.q = head_norm(&h, SW_SLOT_Q_NORM, h.q);
    h.k = head_norm(&h, SW_SLOT_K_NORM, h.k);
    turn(&h, pass);
    if (pass->cache != NULL && sw_cache_put(pass->cache, step, (uint32_t)module->layer, &h.k, &h.v) != SW_OK)
        return NULL;
    const sw_tensor *y = sw_module_run(module->core, step, pass, (const sw_tensor *[]){h.q, h.k, h.v});
    return sw_project(step, &module->held[SW_SLOT_O], sw_view_merge(step, y, 2));
}

static void prepare(sw_module *module)
{
    const sw_net_settings *s = &module->net->settings;

    module->attributes[SW_ATTENTION_HEADS] = (int64_t)s->heads;
    module->attributes[SW_ATTENTION_KV_HEADS] = (int64_t)s->kv_heads;
}

static sw_cached_shape cached(const sw_module *module)
{
    uint64_t width = module->net->settings.head_dim;
    return (sw_cached_shape){(uint64_t)module->attributes[SW_ATTENTION_KV_HEADS], width, width};
}

/* After memory was taken: the heads that a rank has are those of its weights. */
static sw_status validate_materialized(const sw_module *module, sw_error *err)
{
    uint64_t q = (uint64_t)module->attributes[SW_ATTENTION_HEADS];
    uint64_t kv = (uint64_t)module->attributes[SW_ATTENTION_KV_HEADS];
    const sw_parameter *o = module->held[SW_SLOT_O].weight;
    uint64_t width = o->dims[o->row->form == SW_FORM_CONV1D ? 0 : 1];

    if (kv > 0 && q % kv == 0 && width == q * module->net->settings.head_dim)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "cut attributes and weights alike",
                   "%s: %" PRIu64 " heads and %" PRIu64 " key/value heads of %" PRIu64 " do not fit %" PRIu64
                   " columns of %s",
                   module->fqn, q, kv, module->net->settings.head_dim, width, o->fqn);
}

const sw_module_class sw_class_attention = {
    .name = "attention",
    .arguments = {"hidden_states"},
    .attributes = {"num_heads",     "num_key_value_heads", "first_head"},
    .stages = {{"statistic", {"sums"}}  },
    .forward = forward,
    .prepare = prepare,
    .cached = cached,
    .bind_parallel = sw_module_bind_stages,
    .validate_materialized = validate_materialized,
};

/* ---- what attends ---- */

/* Slopes of the heads that are here. */
static const sw_tensor *slopes_of(const sw_module *attention, sw_step *step)
{
    const sw_tensor *all = attention->net->slopes;
    uint64_t n = (uint64_t)attention->attributes[SW_ATTENTION_HEADS];

    if (all == NULL || all->dims[0] == n)
        return all;
    return sw_view_slice(step, all, 0, (uint64_t)attention->attributes[SW_ATTENTION_FIRST_HEAD], n);
}

/* Over what each part of a cache has, or over all that is here. */
static sw_tensor *attend(const sw_module *module, sw_step *step, const sw_pass *pass,
                         const sw_tensor *const *in, const sw_attend_args *args)
{
    const sw_attend_stage *stage = &module->stages->attend;
    sw_error err = {0};

    if (pass->cache == NULL || !pass->cache->is_alike)
        return stage->run(stage->context, step, in[0], in[1], in[2], args);
    if (stage->run_alike != NULL)
        return stage->run_alike(stage->context, step, in[0], in[1], in[2], args);
    SW_IGNORE(sw_step_fail(step,
                           SW_FAIL(&err, SW_E_ARGUMENT, "bind it over the parts, or give a whole cache",
                                   "%s: the cache is part %" PRIu32 " of %" PRIu32, module->fqn,
                                   pass->cache->part, pass->cache->n_parts),
                           &err));
    return NULL;
}

static sw_tensor *core_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                               const sw_tensor *const *in)
{
    const sw_net_settings *s = &module->net->settings;
    double scale = s->attention_scale / (s->scales_by_layer ? module->layer + 1 : 1);
    sw_attend_args args = {.q_positions = pass->positions,
                           .k_positions = pass->key_positions == NULL ? pass->positions : pass->key_positions,
                           .slopes = slopes_of(module->parent, step),
                           .rounded_alibi = s->decoder->rounds_alibi ? scale : 0,
                           .sinks = sw_tensor_of(module->held[SW_SLOT_SINKS].weight),
                           .scale = scale,
                           .soft_cap = s->attention_soft_cap,
                           .window = module->net->layers[module->layer].window,
                           .is_causal = true};

    return attend(module, step, pass, in, &args);
}

const sw_module_class sw_class_attention_core = {
    .name = "attention_core",
    .arguments = {"q",  "k", "v"},
    .stages = {{"attend", {"q", "k", "v"}}},
    .forward = core_forward,
    .bind_parallel = sw_module_bind_stages,
};
