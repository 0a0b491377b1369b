/*
 * Latent attention: queries (or not), keys and values are projected down to a low rank, normed, and up to
 * heads. A head's elements are those that are not turned, then those that are; of keys the latter are one row
 * a token, for all heads. What attends is a module of its own, as with other attention.
 */
#include <inttypes.h>

#include "base/status.h"
#include "nn/classes.h"

/* Norms between the projections have it whatever the config says. */
static const double low_rank_eps = 1e-6;

static const sw_tensor *through_low_rank(const sw_module *module, sw_step *step, const sw_tensor *low,
                                         sw_slot norm, sw_slot up)
{
    const sw_tensor *weight = module->held[norm].weight->tensor;

    return sw_project(step, &module->held[up], sw_op_rms_norm(step, low, weight, low_rank_eps, 0));
}

static sw_tensor *turn(const sw_module *module, sw_step *step, const sw_pass *pass, const sw_tensor *x)
{
    sw_rope_args args = {.cos = pass->rotary->cos,
                         .sin = pass->rotary->sin,
                         .positions = pass->positions,
                         .is_interleaved = module->net->settings.is_interleaved};

    return sw_op_rope(step, x, &args);
}

/* [B, T, H, plain + turned] */
static sw_tensor *queries(const sw_module *module, sw_step *step, const sw_pass *pass, const sw_tensor *x)
{
    const sw_net_settings *s = &module->net->settings;
    const sw_held *down = &module->held[SW_SLOT_Q_DOWN];
    const sw_tensor *q = NULL;

    if (down->weight == NULL)
        q = sw_project(step, &module->held[SW_SLOT_Q], x);
    else
        q = through_low_rank(module, step, sw_project(step, down, x), SW_SLOT_Q_DOWN_NORM, SW_SLOT_Q_UP);
    q = sw_view_split(step, q, 2, s->plain_dim + s->turned_dim);
    const sw_tensor *turned = sw_view_slice(step, q, 3, s->plain_dim, s->turned_dim);
    return sw_op_concat(step, sw_view_slice(step, q, 3, 0, s->plain_dim), turn(module, step, pass, turned));
}

/* Keys [B, T, H, plain + turned] and values [B, T, H, value]. */
static void keys_and_values(const sw_module *module, sw_step *step, const sw_pass *pass, const sw_tensor *x,
                            const sw_tensor **k, const sw_tensor **v)
{
    const sw_net_settings *s = &module->net->settings;
    const sw_held *down = &module->held[SW_SLOT_KV_DOWN];
    uint64_t rank = down->weight->dims[0] - s->turned_dim;
    const sw_tensor *low = sw_project(step, down, x);
    const sw_tensor *turned = sw_view_slice(step, low, 2, rank, s->turned_dim);
    const sw_tensor *up = through_low_rank(module, step, sw_view_slice(step, low, 2, 0, rank),
                                           SW_SLOT_KV_DOWN_NORM, SW_SLOT_KV_UP);

    turned = turn(module, step, pass, sw_view_split(step, turned, 2, s->turned_dim));
    up = sw_view_split(step, up, 2, s->plain_dim + s->value_dim);
    *k = sw_op_append(step, sw_view_slice(step, up, 3, 0, s->plain_dim), sw_view_merge(step, turned, 2));
    *v = sw_view_slice(step, up, 3, s->plain_dim, s->value_dim);
}

static sw_tensor *forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                          const sw_tensor *const *in)
{
    const sw_tensor *q = queries(module, step, pass, in[0]);
    const sw_tensor *k = NULL;
    const sw_tensor *v = NULL;

    keys_and_values(module, step, pass, in[0], &k, &v);
    if (pass->cache != NULL && sw_cache_put(pass->cache, step, (uint32_t)module->layer, &k, &v) != SW_OK)
        return NULL;
    const sw_tensor *y = sw_module_run(module->core, step, pass, (const sw_tensor *[]){q, k, v});
    return sw_project(step, &module->held[SW_SLOT_O], sw_view_merge(step, y, 2));
}

static void prepare(sw_module *module)
{
    const sw_net_settings *s = &module->net->settings;

    module->attributes[SW_ATTENTION_HEADS] = (int64_t)s->heads;
    module->attributes[SW_ATTENTION_KV_HEADS] = (int64_t)s->heads;
}

static sw_cached_shape cached(const sw_module *module)
{
    const sw_net_settings *s = &module->net->settings;

    return (sw_cached_shape){(uint64_t)module->attributes[SW_ATTENTION_HEADS], s->plain_dim + s->turned_dim,
                             s->value_dim};
}

/* After memory was taken: the heads that a rank has are those of its weights. */
static sw_status validate_materialized(const sw_module *module, sw_error *err)
{
    uint64_t heads = (uint64_t)module->attributes[SW_ATTENTION_HEADS];
    uint64_t width = module->net->settings.value_dim;
    const sw_parameter *o = module->held[SW_SLOT_O].weight;

    if (o->dims[1] == heads * width)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "cut attributes and weights alike",
                   "%s: %" PRIu64 " heads of %" PRIu64 " do not fit %" PRIu64 " columns of %s", module->fqn,
                   heads, width, o->dims[1], o->fqn);
}

const sw_module_class sw_class_latent = {
    .name = "latent_attention",
    .arguments = {"hidden_states"},
    .attributes = { "num_heads", "num_key_value_heads", "first_head"},
    .forward = forward,
    .prepare = prepare,
    .cached = cached,
    .validate_materialized = validate_materialized,
};
