/*
 * Experts over ranks (parallel/experts.h). Rows stand in two orders: as they are sent, by expert and so by
 * owner; and by own expert, where they came to. The exchange between both is its own inverse with the counts
 * swapped, so forward and backward of dispatch and combine are made of the same two moves.
 */
#include "parallel/experts.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/elementwise.h"
#include "kernel/rows.h"
#include "mesh/shard.h"
#include "parallel/expert_route.h"
#include "parallel/node.h"

sw_range sw_experts_own(const sw_expert_ranks *ranks)
{
    if (ranks->mode == SW_EP_NONE)
        return (sw_range){0, ranks->n_experts};
    return sw_shard_range(ranks->n_experts, ranks->group->size, ranks->group->index);
}

static bool sends(const sw_expert_route *r)
{
    return r->ranks.mode == SW_EP_TP_EXTEND && r->ranks.group->size > 1;
}

/* ---- the route ---- */

static sw_status check_choices(const sw_expert_ranks *ranks, const sw_tensor *x, const sw_tensor *experts,
                               const int32_t *choices, sw_error *err)
{
    char shape[2][SW_SHAPE_TEXT];

    sw_shape_text(x->n_dims, x->dims, shape[0]);
    sw_shape_text(experts->n_dims, experts->dims, shape[1]);
    if (x->n_dims != 2 || experts->n_dims != 2 || experts->dims[0] != x->dims[0] ||
        sw_tensor_dtype(experts) != SW_DTYPE_I32) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give I32 choices for each token",
                       "tokens %s with choices %s of %s", shape[0], shape[1],
                       sw_dtype_name(sw_tensor_dtype(experts)));
    }
    SW_TRY(sw_node_check_real("tokens", x, NULL, err));
    uint64_t n = sw_tensor_elems(experts);
    if (n > INT32_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "give fewer tokens a step", "%" PRIu64 " choices of experts", n);
    for (uint64_t i = 0; i < n; i++) {
        if (choices[i] >= 0 && (uint64_t)choices[i] >= ranks->n_experts) {
            return SW_FAIL(err, SW_E_ARGUMENT, "", "token %" PRIu64 " goes to expert %" PRId32 " of %" PRIu64,
                           i / experts->dims[1], choices[i], ranks->n_experts);
        }
    }
    return SW_OK;
}

static sw_status take_numbers(sw_step *step, uint64_t n, int32_t **out, sw_error *err)
{
    void *memory = NULL;

    if (n > INT32_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "give fewer tokens a step", "%" PRIu64 " rows for experts", n);
    SW_TRY(sw_node_take(step, (size_t)n * sizeof **out, &memory, err));
    *out = memory;
    return SW_OK;
}

static sw_status take_counts(sw_step *step, uint64_t n, uint64_t **out, sw_error *err)
{
    void *memory = NULL;

    SW_TRY(sw_node_take(step, (size_t)n * sizeof **out, &memory, err));
    memset(memory, 0, (size_t)n * sizeof **out);
    *out = memory;
    return SW_OK;
}

/* What leaves the tokens: in TP-extend-EP rows of all experts, else of the own ones. */
static sw_status sort_choices(sw_expert_route *r, sw_step *step, const int32_t *choices, uint64_t *counts,
                              sw_error *err)
{
    sw_range experts = sends(r) ? (sw_range){0, r->ranks.n_experts} : r->own;
    uint64_t n = r->n_tokens * r->n_choices;
    uint64_t *begins = NULL;

    r->n_sent = sw_choices_count(choices, n, experts, counts);
    SW_TRY(take_numbers(step, r->n_sent, &r->choices, err));
    SW_TRY(take_numbers(step, r->n_sent, &r->tokens, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(take_counts(step, experts.end - experts.begin, &begins, err));
    sw_choices_sort(choices, n, experts, counts, begins, r->choices);
    for (uint64_t i = 0; i < r->n_sent; i++)
        r->tokens[i] = r->choices[i] / (int32_t)r->n_choices;
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

/* Rows of an expert more for each rank: the chunk of experts of a rank, the last ones padded with none. */
static uint64_t chunk_of(const sw_expert_route *r)
{
    sw_range first = sw_shard_range(r->ranks.n_experts, r->ranks.group->size, 0);
    return sends(r) ? first.end : r->own.end - r->own.begin;
}

/* Rows of every chunk of `counts` together. */
static uint64_t add_chunks(const uint64_t *counts, uint32_t n, uint64_t chunk, uint64_t *sums)
{
    uint64_t total = 0;

    for (uint32_t m = 0; m < n; m++) {
        sums[m] = 0;
        for (uint64_t e = 0; e < chunk; e++)
            sums[m] += counts[m * chunk + e];
        total += sums[m];
    }
    return total;
}

/* `counts` of rows that this rank sends, by expert: what comes, from whom, in which order. */
static sw_status meet(sw_expert_route *r, sw_step *step, const uint64_t *counts, int32_t *ends, sw_error *err)
{
    const sw_group *group = r->ranks.group;
    uint32_t n_ranks = sends(r) ? group->size : 1;
    uint64_t chunk = chunk_of(r);
    uint64_t *come = NULL;
    uint64_t *begins = NULL;

    SW_TRY(take_counts(step, n_ranks * chunk, &come, err));
    SW_TRY(take_counts(step, n_ranks * chunk, &begins, err));
    if (sends(r))
        sw_exchange_counts(group, (uint32_t)chunk, counts, come);
    else
        memcpy(come, counts, (size_t)chunk * sizeof *come);
    (void)add_chunks(counts, n_ranks, chunk, r->to);
    r->n_rows = add_chunks(come, n_ranks, chunk, r->from);
    SW_TRY(take_numbers(step, r->n_rows, &r->place, err));
    SW_TRY(take_numbers(step, r->n_rows, &r->back, err));
    sw_rows_by_expert(come, n_ranks, chunk, begins, ends, r->place, r->back);
    return SW_OK;
}

static sw_status make_route(sw_expert_route *r, sw_step *step, const sw_tensor *x, const sw_tensor *experts,
                            sw_error *err)
{
    const void *choices = NULL;
    uint64_t *counts = NULL;
    int32_t *all_ends = NULL; /* of a whole chunk */
    sw_tensor *ends = NULL;
    uint64_t n_own = r->own.end - r->own.begin;

    SW_TRY(sw_node_dense(step, experts, &choices, err));
    SW_TRY(check_choices(&r->ranks, x, experts, choices, err));
    r->n_tokens = x->dims[0];
    r->n_choices = experts->dims[1];
    r->layout = x->layout;
    SW_TRY(take_counts(step, r->ranks.group->size, &r->to, err));
    SW_TRY(take_counts(step, r->ranks.group->size, &r->from, err));
    SW_TRY(take_counts(step, chunk_of(r) * r->ranks.group->size, &counts, err));
    SW_TRY(take_numbers(step, chunk_of(r), &all_ends, err));
    SW_TRY(sort_choices(r, step, choices, counts, err));
    SW_TRY(meet(r, step, counts, all_ends, err));
    SW_TRY(sw_tensor_create(&ends, sw_step_stack(step), SW_DTYPE_I32, 1, &n_own, all_ends, err));
    r->ends = ends;
    return SW_OK;
}

/* ---- the two moves ---- */

static size_t row_bytes(sw_dtype dtype, uint64_t width)
{
    return (size_t)width * sw_elem_bytes(dtype);
}

/* Elements of rows from and to each rank. */
static sw_status elems_of(const sw_expert_route *r, sw_step *step, const uint64_t *rows, uint64_t width,
                          uint64_t **out, sw_error *err)
{
    SW_TRY(take_counts(step, r->ranks.group->size, out, err));
    for (uint32_t m = 0; m < r->ranks.group->size; m++)
        (*out)[m] = rows[m] * width;
    return SW_OK;
}

typedef struct rows {
    sw_dtype dtype;
    uint64_t width;
} rows;

static void pick_rows(sw_step *step, rows form, const int32_t *ids, uint64_t n, const void *table,
                      uint64_t n_table, void *out)
{
    const sw_gather_args args = {.n_rows = (size_t)n,
                                 .n_table = (size_t)n_table,
                                 .width = (size_t)form.width,
                                 .table_type = form.dtype,
                                 .ids = ids,
                                 .table = table,
                                 .out = out};
    sw_kernel_gather(sw_step_kernel(step), form.dtype, &args);
}

/* Rows as they are sent, [n_sent], to the order of own experts, [n_rows]. */
static sw_status to_experts(const sw_expert_route *r, sw_step *step, rows form, const void *sent, void *out,
                            sw_error *err)
{
    uint64_t *n_to = NULL;
    uint64_t *n_from = NULL;
    void *came = NULL;

    if (!sends(r)) {
        memcpy(out, sent, (size_t)r->n_rows * row_bytes(form.dtype, form.width));
        return SW_OK;
    }
    SW_TRY(elems_of(r, step, r->to, form.width, &n_to, err));
    SW_TRY(elems_of(r, step, r->from, form.width, &n_from, err));
    SW_TRY(sw_node_take(step, (size_t)r->n_rows * row_bytes(form.dtype, form.width), &came, err));
    sw_exchange_elems(r->ranks.group, form.dtype, sent, n_to, came, n_from);
    pick_rows(step, form, r->place, r->n_rows, came, r->n_rows, out);
    return SW_OK;
}

/* And back. */
static sw_status from_experts(const sw_expert_route *r, sw_step *step, rows form, const void *made, void *out,
                              sw_error *err)
{
    uint64_t *n_to = NULL;
    uint64_t *n_from = NULL;
    void *goes = NULL;

    if (!sends(r)) {
        memcpy(out, made, (size_t)r->n_rows * row_bytes(form.dtype, form.width));
        return SW_OK;
    }
    SW_TRY(elems_of(r, step, r->from, form.width, &n_to, err));
    SW_TRY(elems_of(r, step, r->to, form.width, &n_from, err));
    SW_TRY(sw_node_take(step, (size_t)r->n_rows * row_bytes(form.dtype, form.width), &goes, err));
    pick_rows(step, form, r->back, r->n_rows, made, r->n_rows, goes);
    sw_exchange_elems(r->ranks.group, form.dtype, goes, n_to, out, n_from);
    return SW_OK;
}

/* Sums over tokens of their rows; weights [n_sent] or NULL. */
static void add_to_tokens(const sw_expert_route *r, sw_step *step, rows form, const void *sent,
                          const void *weights, void *out)
{
    const sw_gather_args args = {.n_rows = (size_t)r->n_sent,
                                 .n_table = (size_t)r->n_tokens,
                                 .width = (size_t)form.width,
                                 .ids = r->tokens,
                                 .weights = weights,
                                 .sums = out,
                                 .rows = sent};

    memset(out, 0, (size_t)r->n_tokens * row_bytes(form.dtype, form.width));
    sw_kernel_scatter_add(sw_step_kernel(step), form.dtype, &args);
}

/* ---- dispatch ---- */

static sw_status dispatch_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                  sw_error *err)
{
    sw_expert_route *r = context;
    const sw_tensor *x = in[0];
    const void *tokens = NULL;
    void *sent = NULL;

    SW_TRY(make_route(r, step, x, in[1], err));
    rows form = {sw_tensor_dtype(x), x->dims[1]};
    SW_TRY(sw_node_tensor(step, form.dtype, 2, (const uint64_t[]){r->n_rows, form.width}, out, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, x, &tokens, err));
    SW_TRY(sw_node_take(step, (size_t)r->n_sent * row_bytes(form.dtype, form.width), &sent, err));
    pick_rows(step, form, r->tokens, r->n_sent, tokens, r->n_tokens, sent);
    SW_TRY(to_experts(r, step, form, sent, sw_tensor_data(*out), err));
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

static sw_status dispatch_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const sw_expert_route *r = context;
    rows form = {sw_tensor_dtype(back->out), back->out->dims[1]};
    void *sent = NULL;

    SW_TRY(sw_node_take(step, (size_t)r->n_sent * row_bytes(form.dtype, form.width), &sent, err));
    SW_TRY(from_experts(r, step, form, back->d_out, sent, err));
    add_to_tokens(r, step, form, sent, NULL, back->d_in[0]);
    return SW_OK;
}

static const sw_custom dispatch_node = {"tokens to experts", dispatch_forward, dispatch_backward};

sw_tensor *sw_experts_dispatch(sw_step *step, const sw_expert_ranks *ranks, const sw_tensor *x,
                               const sw_tensor *experts, const sw_expert_route **route)
{
    const sw_tensor *in[] = {x, experts};
    sw_expert_route *r = sw_node_context(step, sizeof *r);

    *route = r;
    if (r == NULL)
        return NULL;
    *r = (sw_expert_route){.ranks = *ranks, .own = sw_experts_own(ranks)};
    return sw_step_custom(step, &dispatch_node, r, in, SW_COUNT(in));
}

/* ---- combine ---- */

typedef struct combine {
    const sw_expert_route *route;
    void *returned; /* [n_sent, C'] */
} combine;

/* Weights of the rows as they are sent. */
static sw_status pick_weights(const sw_expert_route *r, sw_step *step, const sw_tensor *weights, void **out,
                              sw_error *err)
{
    rows form = {sw_tensor_dtype(weights), 1};
    const void *values = NULL;

    SW_TRY(sw_node_take(step, (size_t)r->n_sent * row_bytes(form.dtype, 1), out, err));
    SW_TRY(sw_node_dense(step, weights, &values, err));
    pick_rows(step, form, r->choices, r->n_sent, values, r->n_tokens * r->n_choices, *out);
    return SW_OK;
}

static sw_status check_combine(const sw_expert_route *r, const sw_tensor *y, const sw_tensor *weights,
                               sw_error *err)
{
    char shape[2][SW_SHAPE_TEXT];

    SW_TRY(sw_node_check_real("rows", y, NULL, err));
    SW_TRY(sw_node_check_real("weights", weights, y, err));
    sw_shape_text(y->n_dims, y->dims, shape[0]);
    sw_shape_text(weights->n_dims, weights->dims, shape[1]);
    if (y->n_dims == 2 && y->dims[0] == r->n_rows && weights->n_dims == 2 &&
        weights->dims[0] == r->n_tokens && weights->dims[1] == r->n_choices)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "give the rows and weights of this route",
                   "rows %s and weights %s, there are %" PRIu64 " rows of %" PRIu64 " tokens with %" PRIu64
                   " choices",
                   shape[0], shape[1], r->n_rows, r->n_tokens, r->n_choices);
}

static sw_status combine_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                 sw_error *err)
{
    combine *c = context;
    const sw_expert_route *r = c->route;
    const sw_tensor *y = in[0];
    const void *made = NULL;
    void *weights = NULL;

    SW_TRY(check_combine(r, y, in[1], err));
    rows form = {sw_tensor_dtype(y), y->dims[1]};
    SW_TRY(sw_node_tensor(step, form.dtype, 2, (const uint64_t[]){r->n_tokens, form.width}, out, err));
    SW_TRY(sw_node_layout(step, r->layout, form.width, &(*out)->layout, err));
    SW_TRY(sw_node_take(step, (size_t)r->n_sent * row_bytes(form.dtype, form.width), &c->returned, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, y, &made, err));
    SW_TRY(pick_weights(r, step, in[1], &weights, err));
    SW_TRY(from_experts(r, step, form, made, c->returned, err));
    void *sum = sw_tensor_data(*out);
    add_to_tokens(r, step, form, c->returned, weights, sum);
    if (r->ranks.mode == SW_EP_AXIS)
        sw_all_reduce(r->ranks.group, r->n_tokens * form.width, form.dtype, sum, sum);
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

/* d_weight of a choice is its row times the gradient of its token; of a choice that did not go from here 0.
 */
static sw_status weigh_back(const combine *c, sw_step *step, rows form, const void *d_rows, void *d_weights,
                            sw_error *err)
{
    const sw_expert_route *r = c->route;
    size_t bytes = row_bytes(form.dtype, 1);
    void *dots = NULL;

    SW_TRY(sw_node_take(step, (size_t)r->n_sent * bytes, &dots, err));
    const sw_rows_args args = {
        .n_rows = (size_t)r->n_sent, .width = (size_t)form.width, .a = c->returned, .b = d_rows, .out = dots};
    sw_kernel_row_dot(sw_step_kernel(step), form.dtype, &args);
    memset(d_weights, 0, (size_t)(r->n_tokens * r->n_choices) * bytes);
    for (uint64_t i = 0; i < r->n_sent; i++)
        memcpy((char *)d_weights + (size_t)r->choices[i] * bytes, (char *)dots + i * bytes, bytes);
    return SW_OK;
}

static sw_status combine_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const combine *c = context;
    const sw_expert_route *r = c->route;
    rows form = {sw_tensor_dtype(back->out), back->out->dims[1]};
    void *d_rows = NULL;
    void *weights = NULL;

    SW_TRY(sw_node_take(step, (size_t)r->n_sent * row_bytes(form.dtype, form.width), &d_rows, err));
    pick_rows(step, form, r->tokens, r->n_sent, back->d_out, r->n_tokens, d_rows);
    if (back->d_in[1] != NULL)
        SW_TRY(weigh_back(c, step, form, d_rows, back->d_in[1], err));
    if (back->d_in[0] == NULL && !sends(r))
        return SW_OK;
    SW_TRY(pick_weights(r, step, back->in[1], &weights, err));
    const sw_rows_args args = {
        .n_rows = (size_t)r->n_sent, .width = (size_t)form.width, .a = d_rows, .b = weights, .out = d_rows};
    sw_kernel_row_scale(sw_step_kernel(step), form.dtype, &args);
    void *d_made = back->d_in[0];
    if (d_made == NULL)
        SW_TRY(sw_node_take(step, (size_t)r->n_rows * row_bytes(form.dtype, form.width), &d_made, err));
    return to_experts(r, step, form, d_rows, d_made, err);
}

static const sw_custom combine_node = {"tokens from experts", combine_forward, combine_backward};

sw_tensor *sw_experts_combine(sw_step *step, const sw_expert_route *route, const sw_tensor *y,
                              const sw_tensor *weights)
{
    const sw_tensor *in[] = {y, weights};
    combine *c = sw_node_context(step, sizeof *c);

    if (c == NULL)
        return NULL;
    *c = (combine){.route = route};
    return sw_step_custom(step, &combine_node, c, in, SW_COUNT(in));
}
