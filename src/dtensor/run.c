/*
 * The executor (dtensor/run.h): a loop over steps. Where a step is a collective it is comm's; rows of slices,
 * pads and exchanges are copied here.
 */
#include "dtensor/run.h"

#include <string.h>

#include "base/status.h"
#include "comm/collective.h"
#include "dtensor/runs.h"
#include "dtensor/short_sum.h"

enum { ALIGNMENT = 64 };

static const uint64_t MOST_ELEMS = SIZE_MAX / 64; /* of a buffer, so that no sum of buffers overflows */

/* ---- workspace ---- */

/* Where things stand in the workspace, and how much of it there is. */
typedef struct room {
    size_t between[2]; /* tensors between steps, in turn */
    size_t sent;       /* of exchanges */
    size_t received;
    size_t sums; /* of short floats */
    size_t total;
} room;

/* Never 0: what is empty has an address too. */
static size_t aligned(uint64_t bytes)
{
    return (size_t)(bytes / ALIGNMENT * ALIGNMENT + ALIGNMENT);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static room room_of(const sw_step_list *list, sw_dtype dtype)
{
    size_t width = sw_dtype_bits(dtype) / 8;
    size_t between[2] = {0, 0};
    size_t sent = 0;
    size_t received = 0;
    size_t sums = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const sw_list_step *step = &list->steps[i];
        const sw_exchange *exchange = step->exchange;
        uint64_t n_out = sw_step_out_elems(step);
        if (i + 1 < list->n)
            between[i % 2] = most(between[i % 2], aligned(n_out * width));
        if (exchange == NULL)
            continue;
        sent = most(sent, aligned(exchange->sent_elems * width));
        received = most(received, aligned(exchange->received_elems * width));
        if (exchange->is_added && sw_is_short_float(dtype))
            sums = most(sums, aligned(n_out * sizeof(float)));
    }
    room r = {
        .between = {0, between[0]},
          .sent = between[0] + between[1]
    };
    r.received = r.sent + sent;
    r.sums = r.received + received;
    r.total = r.sums + sums;
    return r;
}

static bool adds(const sw_list_step *step)
{
    return step->kind == SW_STEP_REDUCE_SCATTER || step->kind == SW_STEP_ALL_REDUCE ||
           (step->exchange != NULL && step->exchange->is_added);
}

sw_status sw_step_list_workspace(const sw_step_list *list, sw_dtype dtype, size_t *out, sw_error *err)
{
    uint32_t bits = sw_dtype_bits(dtype);

    if (bits == 0 || bits % 8 != 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a transition of %s elements", sw_dtype_name(dtype));
    for (uint32_t i = 0; i < list->n; i++) {
        const sw_exchange *exchange = list->steps[i].exchange;
        if (adds(&list->steps[i]) && !sw_can_combine(dtype, SW_COMBINE_SUM))
            return SW_FAIL(err, SW_E_ARGUMENT, "", "a sum of %s elements", sw_dtype_name(dtype));
        if (exchange != NULL && (exchange->sent_elems > MOST_ELEMS || exchange->received_elems > MOST_ELEMS))
            return SW_FAIL(err, SW_E_LIMIT, "", "an exchange of more elements than an address has bytes");
    }
    *out = room_of(list, dtype).total;
    return SW_OK;
}

/* ---- communicators ---- */

static const sw_group_kind group_of[SW_AXIS_COUNT_] = {
    [SW_AXIS_PP] = SW_GROUP_PP, [SW_AXIS_DP] = SW_GROUP_DP, [SW_AXIS_CP] = SW_GROUP_CP,
    [SW_AXIS_EP] = SW_GROUP_EP, [SW_AXIS_TP] = SW_GROUP_TP, [SW_AXIS_EDP] = SW_GROUP_EDP,
};

static bool is_alone(const sw_list_step *step)
{
    return step->kind == SW_STEP_SLICE || step->kind == SW_STEP_PAD || step->kind == SW_STEP_KEEP;
}

/* The communicator over the axes of a step. */
static sw_status bind_step(sw_list_step *step, const sw_grid *grid, sw_comm *comm, sw_error *err)
{
    uint32_t axes = 0;
    uint32_t n_axes = 0;

    for (uint32_t a = 0; a < grid->n_axes; a++) {
        if ((step->axes >> a & 1) == 0)
            continue;
        step->group = sw_comm_group(comm, group_of[grid->axis[a]]);
        axes |= 1U << grid->axis[a];
        n_axes++;
    }
    return n_axes == 1 ? SW_OK : sw_comm_over(comm, axes, &step->group, err);
}

static sw_status bind_list(sw_step_list *list, const sw_grid *grid, sw_comm *comm, sw_error *err)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (!is_alone(&list->steps[i]))
            SW_TRY(bind_step(&list->steps[i], grid, comm, err));
    }
    return SW_OK;
}

sw_status sw_redistribution_bind(sw_redistribution *made, sw_comm *comm, sw_error *err)
{
    SW_TRY(bind_list(&made->forward, &made->from.grid, comm, err));
    return bind_list(&made->backward, &made->from.grid, comm, err);
}

/* ---- steps ---- */

/* A step of a list on the way. */
typedef struct running {
    const sw_list_step *step;
    sw_dtype dtype;
    size_t width;
    const char *in;
    char *out;
    char *workspace;
    const room *room;
} running;

/* A tensor as seen along one dim. */
static sw_along along(const uint64_t *dims, uint32_t n_dims, uint32_t dim, uint64_t extent)
{
    sw_along seen = {1, extent, 1};

    for (uint32_t d = 0; d < n_dims; d++) {
        seen.n_outer *= d < dim ? dims[d] : 1;
        seen.n_inner *= d > dim ? dims[d] : 1;
    }
    return seen;
}

static void zero(const running *r)
{
    memset(r->out, 0, sw_step_out_elems(r->step) * r->width);
}

/* Rows of one dim are copied, all of the others. */
static void run_slice(const running *r)
{
    const sw_list_step *step = r->step;
    sw_range whole[SW_LAYOUT_MAX_DIMS];
    sw_box from = {.elems = 1};
    sw_box to = {.elems = 1};
    sw_runs from_runs;
    sw_runs to_runs;

    for (uint32_t d = 0; d < step->n_dims; d++) {
        whole[d] = (sw_range){0, step->in[d]};
        from.along[d] = to.along[d] = (sw_rows){step->in[d], step->in[d] != 0, &whole[d]};
    }
    from.along[step->dim] = step->from;
    to.along[step->dim] = step->to;
    for (uint32_t d = 0; d < step->n_dims; d++)
        from.elems *= from.along[d].count;
    to.elems = from.elems;
    sw_runs_begin(&from_runs, &from, step->in, step->n_dims);
    sw_runs_begin(&to_runs, &to, step->out, step->n_dims);
    sw_box_copy(r->out, &to_runs, r->in, &from_runs, r->width);
}

static void run_pad(const running *r)
{
    zero(r);
    run_slice(r);
}

static void run_keep(const running *r)
{
    if (r->step->is_kept)
        memcpy(r->out, r->in, sw_step_out_elems(r->step) * r->width);
    else
        zero(r);
}

static void run_all_gather(const running *r)
{
    const sw_list_step *step = r->step;
    sw_along seen = along(step->out, step->n_dims, step->dim, step->extent);

    sw_all_gather(step->group, &seen, r->dtype, r->in, r->out);
}

static void run_reduce_scatter(const running *r)
{
    const sw_list_step *step = r->step;
    sw_along seen = along(step->in, step->n_dims, step->dim, step->extent);

    sw_reduce_scatter(step->group, &seen, r->dtype, r->in, r->out);
}

static void run_all_reduce(const running *r)
{
    sw_all_reduce(r->step->group, sw_step_in_elems(r->step), r->dtype, r->in, r->out);
}

/* Whichever of the two dims stands first: the collective or the way back. */
static void run_all_to_all(const running *r)
{
    const sw_list_step *step = r->step;
    bool is_back = step->other_dim < step->dim;
    uint32_t first = is_back ? step->other_dim : step->dim;
    uint32_t second = is_back ? step->dim : step->other_dim;
    sw_across across = {.n_outer = 1, .n_middle = 1, .n_inner = 1};

    across.first = is_back ? step->other_extent : step->extent;
    across.second = is_back ? step->extent : step->other_extent;
    for (uint32_t d = 0; d < step->n_dims; d++) {
        across.n_outer *= d < first ? step->in[d] : 1;
        across.n_middle *= d > first && d < second ? step->in[d] : 1;
        across.n_inner *= d > second ? step->in[d] : 1;
    }
    if (is_back)
        sw_all_to_all_back(step->group, &across, r->dtype, r->in, r->out);
    else
        sw_all_to_all(step->group, &across, r->dtype, r->in, r->out);
}

/* ---- exchanges ---- */

static void pack(const running *r)
{
    const sw_exchange *exchange = r->step->exchange;
    char *packed = r->workspace + r->room->sent;
    sw_runs runs;

    for (uint32_t i = 0; i < exchange->n_members; i++) {
        if (exchange->n_sent[i] == 0)
            continue;
        sw_runs_begin(&runs, &exchange->sent[i], r->step->in, r->step->n_dims);
        packed += sw_box_pack(packed, r->in, &runs, r->width);
    }
}

/* What this rank keeps, from one tensor to the other. */
static void copy_own(const running *r)
{
    const sw_exchange *exchange = r->step->exchange;
    sw_runs from;
    sw_runs to;

    sw_runs_begin(&from, &exchange->sent[exchange->me], r->step->in, r->step->n_dims);
    sw_runs_begin(&to, &exchange->received[exchange->me], r->step->out, r->step->n_dims);
    sw_box_copy(r->out, &to, r->in, &from, r->width);
}

static void unpack(const running *r)
{
    const sw_exchange *exchange = r->step->exchange;
    const char *packed = r->workspace + r->room->received;
    sw_runs runs;

    if (exchange->has_gaps)
        zero(r);
    copy_own(r);
    for (uint32_t i = 0; i < exchange->n_members; i++) {
        if (exchange->n_received[i] == 0)
            continue;
        sw_runs_begin(&runs, &exchange->received[i], r->step->out, r->step->n_dims);
        packed += sw_box_unpack(r->out, packed, &runs, r->width);
    }
}

/* Add `n` values to sums: short floats to F32. */
static void add(const running *r, char *sums, uint64_t to, const char *values, uint64_t from, uint64_t n)
{
    const char *value = values + from * r->width;

    if (sw_is_short_float(r->dtype)) {
        sw_short_add(r->dtype, (float *)(void *)sums + to, (const uint16_t *)(const void *)value, n);
        return;
    }
    const void *both[] = {sums + to * r->width, value};
    sw_combine(sums + to * r->width, both, 2, n, r->dtype, SW_COMBINE_SUM);
}

/* Add a member's values, which stand at the runs of `from`, or in a row without it. */
static void add_box(const running *r, char *sums, const sw_box *box, const char *values, sw_runs *from)
{
    sw_run target = {0, 0};
    sw_run source = {0, from == NULL ? box->elems : 0};
    sw_runs to;

    sw_runs_begin(&to, box, r->step->out, r->step->n_dims);
    for (;;) {
        if (target.length == 0 && !sw_runs_next(&to, &target))
            return;
        if (source.length == 0 && (from == NULL || !sw_runs_next(from, &source)))
            return;
        uint64_t n = target.length < source.length ? target.length : source.length;
        add(r, sums, target.begin, values, source.begin, n);
        target = (sw_run){target.begin + n, target.length - n};
        source = (sw_run){source.begin + n, source.length - n};
    }
}

/* In the order of the members, so that the sum is the same on every rank and every time. */
static void add_up(const running *r)
{
    const sw_exchange *exchange = r->step->exchange;
    bool is_short = sw_is_short_float(r->dtype);
    const char *packed = r->workspace + r->room->received;
    char *sums = is_short ? r->workspace + r->room->sums : r->out;
    uint64_t n_out = sw_step_out_elems(r->step);
    sw_runs own;

    memset(sums, 0, n_out * (is_short ? sizeof(float) : r->width));
    for (uint32_t i = 0; i < exchange->n_members; i++) {
        if (i == exchange->me) {
            sw_runs_begin(&own, &exchange->sent[i], r->step->in, r->step->n_dims);
            add_box(r, sums, &exchange->received[i], r->in, &own);
            continue;
        }
        add_box(r, sums, &exchange->received[i], packed, NULL);
        packed += exchange->n_received[i] * r->width;
    }
    if (is_short)
        sw_short_round(r->dtype, (uint16_t *)(void *)r->out, (const float *)(const void *)sums, n_out);
}

static void run_exchange(const running *r)
{
    const sw_exchange *exchange = r->step->exchange;

    pack(r);
    sw_exchange_elems(r->step->group, r->dtype, r->workspace + r->room->sent, exchange->n_sent,
                      r->workspace + r->room->received, exchange->n_received);
    if (exchange->is_added)
        add_up(r);
    else
        unpack(r);
}

/* ---- the list ---- */

// clang-format off
static void (*const run_step[SW_STEP_KIND_COUNT_])(const running *r) = {
    [SW_STEP_SLICE] = run_slice,
    [SW_STEP_PAD] = run_pad,
    [SW_STEP_KEEP] = run_keep,
    [SW_STEP_ALL_GATHER] = run_all_gather,
    [SW_STEP_REDUCE_SCATTER] = run_reduce_scatter,
    [SW_STEP_ALL_REDUCE] = run_all_reduce,
    [SW_STEP_ALL_TO_ALL] = run_all_to_all,
    [SW_STEP_EXCHANGE] = run_exchange,
};
// clang-format on

void sw_step_list_run(const sw_step_list *list, sw_dtype dtype, const void *in, void *out, void *workspace)
{
    const room r = room_of(list, dtype);
    running now = {
        .dtype = dtype, .width = sw_dtype_bits(dtype) / 8, .in = in, .workspace = workspace, .room = &r};

    for (uint32_t i = 0; i < list->n; i++) {
        now.step = &list->steps[i];
        now.out = i + 1 < list->n ? now.workspace + r.between[i % 2] : out;
        run_step[now.step->kind](&now);
        now.in = now.out;
    }
}
