/* The runs of a check (apply/checking.h): one net, one forward and backward. */
#include "apply/checking.h"

#include <string.h>

#include "apply/applied.h"
#include "apply/apply.h"
#include "apply/gradients.h"
#include "apply/validate.h"
#include "base/status.h"
#include "comm/collective.h"

enum { BUCKET_BYTES = 1 << 22 };

/* A net that runs once; freed together. */
typedef struct running {
    sw_net *net;
    sw_step *step;
    sw_trace *trace;
    sw_gradients *gradients;
    sw_source_shards *shards;
} running;

static void clear(running *r)
{
    sw_gradients_destroy(r->gradients);
    sw_source_shards_destroy(r->shards);
    sw_step_destroy(r->step);
    sw_net_destroy(r->net);
    sw_trace_destroy(r->trace);
}

static sw_status make_net(const sw_checking *c, sw_dtype dtype, running *r, sw_error *err)
{
    SW_TRY(sw_step_create(&r->step, c->kernel, err));
    SW_TRY(sw_trace_create(&r->trace, err));
    return sw_net_create(&r->net, c->model, &(sw_net_options){.dtype = dtype}, err);
}

/* ---- the batch ---- */

/* Rows of the batch, and which rank of cp has them. */
typedef struct rows {
    sw_sequence sequence;
    uint32_t rank;
    uint64_t first;
    uint64_t n;
} rows;

static sw_tensor *matrix(sw_step *step, const rows *which)
{
    const uint64_t dims[] = {which->n, sw_sequence_local(&which->sequence)};
    return sw_step_tensor(step, SW_DTYPE_I32, 2, dims);
}

/* What a pass needs, and the targets of its loss. */
static const sw_tensor *cut_batch(const sw_checking *c, const running *r, const rows *which, sw_pass *pass)
{
    sw_tensor *tokens = matrix(r->step, which);
    sw_tensor *targets = matrix(r->step, which);
    sw_tensor *positions = matrix(r->step, which);
    sw_tensor *keys = matrix(r->step, which);
    const uint64_t begin = which->first * c->n_tokens;
    const sw_batch batch = {.n_rows = which->n, .ids = c->ids + begin, .labels = c->labels + begin};

    if (tokens == NULL || targets == NULL || positions == NULL || keys == NULL)
        return NULL;
    const sw_batch_part part = {sw_tensor_data(tokens), sw_tensor_data(targets), sw_tensor_data(keys)};
    sw_sequence_cut(&which->sequence, which->rank, &batch, &part);
    for (uint64_t i = 0; i < sw_tensor_elems(keys); i++) { /* padding is turned by something, and not seen */
        int32_t at = part.positions[i];
        ((int32_t *)sw_tensor_data(positions))[i] = at < 0 ? 0 : at;
    }
    *pass = (sw_pass){.tokens = sw_apply_tokens(r->net, r->step, tokens),
                      .positions = sw_apply_tokens(r->net, r->step, positions),
                      .key_positions = sw_apply_tokens(r->net, r->step, keys),
                      .n_positions = c->n_tokens};
    return sw_apply_tokens(r->net, r->step, targets);
}

/* ---- forward and backward ---- */

static double scalar_of(const sw_tensor *x)
{
    return sw_tensor_dtype(x) == SW_DTYPE_F64 ? *(const double *)sw_tensor_data(x)
                                              : (double)*(const float *)sw_tensor_data(x);
}

/* Outputs and loss into the trace; *loss is there for the backward. */
static sw_status run_forward(const sw_checking *c, const running *r, const rows *which, sw_tensor **loss,
                             sw_error *err)
{
    sw_pass pass;

    SW_TRY(sw_trace_outputs(r->trace, r->net, c->plan, err));
    sw_step_begin(r->step, true);
    sw_step_validate(r->step, sw_applied_of(r->net) != NULL && sw_applied_of(r->net)->validates);
    const sw_tensor *targets = cut_batch(c, r, which, &pass);
    *loss = targets == NULL ? NULL : sw_net_loss(r->net, r->step, &pass, targets, c->factor, NULL);
    SW_TRY(sw_step_status(r->step, err));
    r->trace->loss = scalar_of(*loss);
    return SW_OK;
}

static double square_of(const sw_parameter *p, const sw_kernel *kernel)
{
    const sw_storage *storage = p->tensor->storage;

    if (p->stack != NULL || !storage->has_gradient) /* a member is in its stack */
        return 0;
    return sw_kernel_square_sum(kernel, sw_gradient_dtype(p->dtype), storage->gradient,
                                (size_t)storage->n_elems);
}

/* As sw_gradients_square_sum() goes through them. */
static double square_sum(const sw_net *net, const sw_kernel *kernel)
{
    double sum = 0;

    for (uint32_t i = 0; i < net->n_parameters; i++)
        sum += square_of(&net->parameters[i], kernel);
    for (uint32_t i = 0; i < net->n_stacks; i++)
        sum += square_of(&net->stacks[i], kernel);
    return sum;
}

/* ---- one rank ---- */

static sw_status run_whole(const sw_checking *c, sw_dtype dtype, running *r, sw_error *err)
{
    rows all = {.n = c->n_rows};
    sw_tensor *loss = NULL;

    SW_TRY(sw_sequence_make(&all.sequence, c->n_tokens, 1, SW_SEQUENCE_CONTIGUOUS, err));
    SW_TRY(make_net(c, dtype, r, err));
    SW_TRY(sw_net_allocate(r->net, true, err));
    SW_TRY(c->options->fill(c->options->context, r->net, err));
    SW_TRY(run_forward(c, r, &all, &loss, err));
    SW_TRY(sw_step_backward(r->step, loss, NULL, err));
    SW_TRY(sw_trace_gradients(r->trace, r->net, c->kernel, err));
    r->trace->square = square_sum(r->net, c->kernel);
    return SW_OK;
}

sw_status sw_check_run_whole(sw_checking *c, sw_dtype dtype, sw_trace **out, sw_error *err)
{
    running r = {0};
    sw_status status = run_whole(c, dtype, &r, err);

    *out = NULL;
    if (status == SW_OK) {
        *out = r.trace;
        r.trace = NULL;
    }
    clear(&r);
    return status;
}

/* ---- all ranks ---- */

static sw_status fill_part(const sw_checking *c, const running *r, sw_error *err)
{
    SW_TRY(sw_net_allocate(r->net, true, err));
    SW_TRY(sw_validate_materialized_modules(r->net, err));
    SW_TRY(sw_apply_layouts(r->net, err));
    return c->options->fill(c->options->context, r->net, err);
}

static sw_status make_part(const sw_checking *c, running *r, sw_error *err)
{
    const sw_apply_options how = {.validates = c->mode == SW_CHECK_VALIDATE};
    const sw_bind_options bind = {.cp_form = c->options->form};

    SW_TRY(sw_comm_agree(c->comm, make_net(c, c->options->dtype, r, err), err));
    SW_TRY(sw_apply(&r->net, 1, c->plan, c->comm, &how, &r->shards, err));
    SW_TRY(sw_bind_parallel_modules(r->net, &bind, err));
    SW_TRY(sw_comm_agree(c->comm, fill_part(c, r, err), err));
    return sw_apply_gradients(&r->gradients, r->net, BUCKET_BYTES, err);
}

/*
 * The outcome of a step. What a plan makes impossible is seen by all ranks at the same operation; any other
 * failure is of one rank, for which the others wait in a collective: nothing can be agreed on.
 */
static sw_status agree_on_step(const sw_checking *c, sw_status mine, sw_error *err)
{
    return mine != SW_OK && mine != SW_E_PLAN ? mine : sw_comm_agree(c->comm, mine, err);
}

static sw_status run_backward(const sw_checking *c, const running *r, const sw_tensor *loss, sw_error *err)
{
    SW_TRY(agree_on_step(c, sw_step_backward(r->step, loss, NULL, err), err));
    sw_gradients_sum(r->gradients);
    r->trace->square = sw_gradients_square_sum(r->gradients, c->kernel);
    return sw_comm_agree(c->comm, sw_trace_gradients(r->trace, r->net, c->kernel, err), err);
}

/* Ranks that hold the same have the same loss: it is summed over those with different tokens. */
static double sum_loss(const sw_checking *c, double mine)
{
    sw_all_reduce(sw_comm_group(c->comm, SW_GROUP_DP_CP), 1, SW_DTYPE_F64, &mine, &mine);
    return mine;
}

static sw_status run_part(const sw_checking *c, running *r, bool *is_wrong, sw_error *err)
{
    const rows mine = {.sequence = c->sequence,
                       .rank = c->active.coord.at[SW_AXIS_CP],
                       .first = c->options->n_rows * c->active.coord.at[SW_AXIS_DP],
                       .n = c->options->n_rows};
    sw_tensor *loss = NULL;

    SW_TRY(make_part(c, r, err));
    sw_status status = agree_on_step(c, run_forward(c, r, &mine, &loss, err), err);
    *is_wrong = status == SW_E_PLAN;
    SW_TRY(status);
    r->trace->loss = sum_loss(c, r->trace->loss);
    return run_backward(c, r, loss, err);
}

sw_status sw_check_run_part(sw_checking *c, sw_trace **out, bool *is_wrong, sw_error *err)
{
    running r = {0};
    sw_status status = run_part(c, &r, is_wrong, err);

    *out = NULL;
    if (status == SW_OK) {
        *out = r.trace;
        c->net = r.net;
        r.trace = NULL;
        r.net = NULL;
    }
    clear(&r);
    return status;
}
