/*
 * The decoder, of all families: embedding, layers, last norm, head. A family without one of these modules
 * goes past it.
 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "nn/net.h"

/* Through a module that the family may lack. */
static const sw_tensor *through(const sw_module *module, sw_step *step, const sw_pass *pass,
                                const sw_tensor *x)
{
    return module == NULL ? x : sw_module_run_on(module, step, pass, x);
}

static const sw_tensor *scaled(sw_step *step, const sw_tensor *x, double factor)
{
    return factor == 1 ? x : sw_op_scale(step, x, factor);
}

/* ---- a layer ---- */

typedef struct layer_run {
    const sw_net *net;
    const sw_layer *layer;
    const sw_pass *pass;
} layer_run;

/* Attention, or the MLP, with its norm behind it. */
static const sw_tensor *branch(const layer_run *r, sw_step *step, const sw_module *module,
                               const sw_module *norm, const sw_tensor *h)
{
    const sw_tensor *y = sw_module_run_on(module, step, r->pass, h);
    return scaled(step, through(norm, step, r->pass, y), r->net->settings.residual_scale);
}

static const sw_tensor *attend(const layer_run *r, sw_step *step, const sw_tensor *h)
{
    return branch(r, step, r->layer->attention, r->layer->attention_out_norm, h);
}

static const sw_tensor *widen(const layer_run *r, sw_step *step, const sw_tensor *h)
{
    return branch(r, step, r->layer->mlp, r->layer->mlp_out_norm, h);
}

/* Attention and MLP of the same hidden states, under one norm or two. */
static sw_tensor *run_side_by_side(const layer_run *r, sw_step *step, const sw_tensor *x)
{
    const sw_tensor *h = through(r->layer->attention_norm, step, r->pass, x);
    const sw_tensor *for_mlp = r->layer->mlp_norm == NULL ? h : through(r->layer->mlp_norm, step, r->pass, x);
    const sw_tensor *a = attend(r, step, h);

    return sw_op_add(step, sw_op_add(step, a, widen(r, step, for_mlp)), x);
}

/* Norms before what they are for. */
static sw_tensor *run_in_turn(const layer_run *r, sw_step *step, const sw_tensor *x)
{
    bool is_of_norm = r->net->settings.is_sum_of_norm;
    const sw_tensor *h = through(r->layer->attention_norm, step, r->pass, x);

    x = sw_op_add(step, is_of_norm ? h : x, attend(r, step, h));
    h = through(r->layer->mlp_norm, step, r->pass, x);
    return sw_op_add(step, is_of_norm ? h : x, widen(r, step, h));
}

/* Norms behind the sums. */
static sw_tensor *run_norms_behind(const layer_run *r, sw_step *step, const sw_tensor *x)
{
    x = through(r->layer->attention_norm, step, r->pass, sw_op_add(step, x, attend(r, step, x)));
    sw_tensor *y = sw_op_add(step, x, widen(r, step, x));
    return r->layer->mlp_norm == NULL ? y : sw_module_run_on(r->layer->mlp_norm, step, r->pass, y);
}

static sw_tensor *run_branches(const layer_run *r, sw_step *step, const sw_tensor *x)
{
    if (r->net->settings.is_parallel)
        return run_side_by_side(r, step, x);
    return r->net->settings.is_norm_behind ? run_norms_behind(r, step, x) : run_in_turn(r, step, x);
}

/* With a trace, what the layer's router said stands behind the hidden states where the layer runs again: such
 * a region has one output. Its rows may be of other tokens than the layer gives, so all elements are put into
 * one row. */
static sw_tensor *run_layer(void *context, sw_step *step, const sw_tensor *const *in)
{
    const layer_run *r = context;
    sw_router_trace *trace = r->pass->routers;

    if (trace != NULL)
        trace->last = NULL;
    sw_tensor *y = run_branches(r, step, in[0]);
    if (y == NULL || !r->pass->recomputes || trace == NULL || trace->last == NULL)
        return y;
    return sw_op_concat(step, sw_view_merge(step, sw_view_merge(step, y, 0), 0),
                        sw_view_merge(step, trace->last, 0));
}

/* Hidden states [B, T, C] like x of what a layer gave, and the logits of its router. */
static const sw_tensor *take_logits(const layer_run *r, sw_step *step, const sw_tensor *y, const sw_tensor *x,
                                    uint32_t layer)
{
    sw_router_trace *trace = r->pass->routers;

    if (y == NULL || trace == NULL)
        return y;
    if (y->n_dims == 3) { /* as the layer gave it */
        trace->logits[layer] = trace->last;
        return y;
    }
    uint64_t n = sw_tensor_elems(x);
    const sw_tensor *logits = sw_view_slice(step, y, 0, n, y->dims[0] - n);
    trace->logits[layer] = sw_view_split(step, logits, 0, r->net->settings.router.n_experts);
    y = sw_view_split(step, sw_view_slice(step, y, 0, 0, n), 0, x->dims[2]);
    return sw_view_split_into(step, y, 0, x->dims[0]);
}

/* ---- all of them ---- */

static const sw_tensor *embed(const sw_net *net, sw_step *step, const sw_pass *pass)
{
    const sw_tensor *x = sw_module_run_on(net->embedding, step, pass, pass->tokens);

    x = through(net->embed_in, step, pass, x);
    x = scaled(step, x, net->settings.embed_scale);
    if (net->positions != NULL)
        x = sw_op_add(step, x, sw_module_run_on(net->positions, step, pass, pass->positions));
    return through(net->embed_norm, step, pass, x);
}

static const sw_tensor *run_one(const sw_net *net, sw_step *step, const sw_pass *pass, uint32_t i,
                                const sw_tensor *x)
{
    const sw_tensor *in[] = {x};
    layer_run *r = sw_stack_take(sw_step_stack(step), sizeof *r);
    sw_error err = {0};

    if (r == NULL) {
        SW_IGNORE(sw_step_fail(step, SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for a layer"), &err));
        return NULL;
    }
    *r = (layer_run){net, &net->layers[i], pass};
    const sw_tensor *y =
        pass->recomputes ? sw_step_recompute(step, run_layer, r, in, 1) : run_layer(r, step, in);
    return take_logits(r, step, y, x, i);
}

/* Does anything of a layer stay: for a backward, for what is asked of routers, or with a layout? */
static bool leaves_something(const sw_step *step, const sw_pass *pass, const sw_tensor *x)
{
    return sw_step_records(step) || pass->routers != NULL || x->layout != NULL;
}

/* Hidden states go into `kept`, and what the layer took is given back. */
static const sw_tensor *keep_hidden(sw_step *step, sw_stack_mark mark, sw_tensor *kept, const sw_tensor *x)
{
    if (x == NULL || kept == NULL)
        return NULL;
    memcpy(sw_tensor_data(kept), sw_tensor_data(x),
           (size_t)sw_tensor_elems(x) * sw_elem_bytes(sw_tensor_dtype(x)));
    sw_stack_release(sw_step_stack(step), mark);
    return kept;
}

static const sw_tensor *run_layers(const sw_net *net, sw_step *step, const sw_pass *pass, const sw_tensor *x)
{
    bool keeps = x == NULL || leaves_something(step, pass, x);
    sw_tensor *kept = keeps ? NULL : sw_step_tensor(step, sw_tensor_dtype(x), x->n_dims, x->dims);

    for (uint32_t i = 0; i < net->n_layers && x != NULL; i++) {
        sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
        x = run_one(net, step, pass, i, x);
        if (!keeps)
            x = keep_hidden(step, mark, kept, x);
    }
    return x;
}

static uint64_t n_positions_of(const sw_pass *pass)
{
    const int32_t *at = pass->positions == NULL ? NULL : sw_tensor_data(pass->positions);
    uint64_t n = at == NULL ? 0 : sw_tensor_elems(pass->positions);
    int32_t last = 0;

    if (pass->n_positions > 0)
        return pass->n_positions;
    for (uint64_t i = 0; i < n; i++)
        last = at[i] > last ? at[i] : last;
    return (uint64_t)last + 1;
}

/* A pass of its own that lasts as long as the tape. */
static const sw_pass *keep_pass(const sw_net *net, sw_step *step, const sw_pass *given)
{
    sw_error err = {0};
    sw_pass *pass =
        sw_step_status(step, NULL) == SW_OK ? sw_stack_take(sw_step_stack(step), sizeof *pass) : NULL;

    if (pass == NULL) {
        SW_IGNORE(sw_step_fail(step, SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for a pass"), &err));
        return NULL;
    }
    *pass = *given;
    uint64_t n_whole = n_positions_of(given);
    pass->rotary = sw_rotary_for(&net->rotary, n_whole);
    pass->places = given->key_positions;
    if (pass->routers != NULL)
        pass->routers->places = pass->places;
    if (pass->cache == NULL)
        return pass;
    if (pass->positions != NULL && !sw_cache_holds(pass->cache, net, pass->positions->dims[1])) {
        SW_IGNORE(sw_step_fail(step,
                               SW_FAIL(&err, SW_E_ARGUMENT, "empty it and give all tokens",
                                       "keys in the cache do not hold beyond %" PRIu64 " positions",
                                       net->rotary.limit),
                               &err));
        return NULL;
    }
    const sw_tensor *keys = pass->key_positions == NULL ? pass->positions : pass->key_positions;
    pass->key_positions = sw_cache_begin(pass->cache, step, keys, n_whole);
    return pass;
}

const sw_tensor *sw_net_hidden(const sw_net *net, sw_step *step, const sw_pass *pass)
{
    const sw_pass *kept = keep_pass(net, step, pass);
    const sw_tensor *x = kept == NULL ? NULL : run_layers(net, step, kept, embed(net, step, kept));

    if (x == NULL)
        return NULL;
    if (kept->cache != NULL)
        sw_cache_end(kept->cache);
    x = through(net->final_norm, step, kept, x);
    return through(net->embed_out, step, kept, x);
}

const sw_tensor *sw_net_logits(const sw_net *net, sw_step *step, const sw_pass *pass, const sw_tensor *hidden)
{
    const sw_tensor *y = sw_module_run_on(net->head, step, pass, hidden);

    y = scaled(step, y, net->settings.logit_scale);
    return net->settings.logit_soft_cap > 0 ? sw_op_soft_cap(step, y, net->settings.logit_soft_cap) : y;
}

sw_tensor *sw_net_loss(const sw_net *net, sw_step *step, const sw_pass *pass, const sw_tensor *labels,
                       double factor, const sw_tensor **logits)
{
    const sw_loss_stage *loss = &net->stages->loss;
    const sw_tensor *y = sw_net_logits(net, step, pass, sw_net_hidden(net, step, pass));

    if (logits != NULL)
        *logits = y;
    return loss->run(loss->context, step, y, labels, factor);
}

bool sw_net_has_routers(const sw_net *net)
{
    for (uint32_t i = 0; i < net->n_layers; i++) {
        const sw_module *mlp = net->layers[i].mlp;
        if (mlp != NULL && mlp->held[SW_SLOT_ROUTER].weight != NULL)
            return true;
    }
    return false;
}

sw_router_trace *sw_net_trace_routers(const sw_net *net, sw_step *step)
{
    return sw_router_trace_begin(step, net->n_layers);
}

sw_tensor *sw_net_router_loss(const sw_net *net, sw_step *step, const sw_router_trace *trace, double factor)
{
    return sw_router_loss(&net->settings.router, &net->stages->router, step, trace, factor);
}

const sw_tensor *sw_net_positions(const sw_net *net, sw_step *step, uint64_t n_batch, uint64_t n_tokens,
                                  uint64_t first)
{
    uint64_t dims[] = {n_batch, n_tokens};
    uint64_t most = net->settings.n_positions;
    bool is_bounded = net->rotary.usual.cos != NULL || net->positions != NULL;
    sw_error err = {0};

    if ((is_bounded && first + n_tokens > most) || first + n_tokens > INT32_MAX) {
        SW_IGNORE(sw_step_fail(step,
                               SW_FAIL(&err, SW_E_ARGUMENT, "use a shorter sequence",
                                       "position %" PRIu64 " is beyond the %" PRIu64 " of the net",
                                       first + n_tokens - 1, most),
                               &err));
        return NULL;
    }
    sw_tensor *positions = sw_step_tensor(step, SW_DTYPE_I32, 2, dims);
    if (positions == NULL)
        return NULL;
    int32_t *at = sw_tensor_data(positions);
    for (uint64_t b = 0; b < n_batch; b++) {
        for (uint64_t t = 0; t < n_tokens; t++)
            *at++ = (int32_t)(first + t);
    }
    return positions;
}
