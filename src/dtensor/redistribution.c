/* Compiling (dtensor/redistribution.h): the legs of the route, each filled in with this rank's extents. */
#include "dtensor/redistribution.h"

#include <inttypes.h>

#include "base/status.h"
#include "dtensor/route.h"

typedef struct compiler {
    sw_grid_coord at;
    sw_arena *arena;
    sw_error *err;
} compiler;

static uint64_t product(const uint64_t *dims, uint32_t n)
{
    uint64_t elems = 1;

    for (uint32_t d = 0; d < n; d++)
        elems *= dims[d];
    return elems;
}

uint64_t sw_step_in_elems(const sw_list_step *step)
{
    return product(step->in, step->n_dims);
}

uint64_t sw_step_out_elems(const sw_list_step *step)
{
    return product(step->out, step->n_dims);
}

/* The axis whose bit is the only one. */
static uint32_t only_axis(uint32_t axes)
{
    uint32_t a = 0;

    while (axes >> a != 1)
        a++;
    return a;
}

/* Rows that the rank keeps, where they stand and where they are put. */
static sw_status fill_slice(const compiler *c, sw_list_step *step, const sw_tensor_layout *from,
                            const sw_tensor_layout *to)
{
    const sw_share all = {.holder = c->at};
    sw_rows held;
    sw_rows kept;

    SW_TRY(sw_tensor_layout_rows(&held, from, step->dim, &all, c->arena, c->err));
    SW_TRY(sw_tensor_layout_rows(&kept, to, step->dim, &all, c->arena, c->err));
    SW_TRY(sw_rows_places(&step->from, &kept, &held, c->arena, c->err));
    return sw_rows_whole(&step->to, kept.count, c->arena, c->err);
}

/* Rows of which the rank is the owner, where they stand and where they are put. */
static sw_status fill_pad(const compiler *c, sw_list_step *step, const sw_tensor_layout *from,
                          const sw_tensor_layout *to)
{
    const sw_share all = {.holder = c->at};
    const sw_share owned = {.holder = c->at, .chosen = step->axes};
    sw_rows held;
    sw_rows kept;
    sw_rows wide;

    SW_TRY(sw_tensor_layout_rows(&held, from, step->dim, &all, c->arena, c->err));
    SW_TRY(sw_tensor_layout_rows(&wide, to, step->dim, &all, c->arena, c->err));
    SW_TRY(sw_tensor_layout_rows(&kept, from, step->dim, &owned, c->arena, c->err));
    SW_TRY(sw_rows_places(&step->from, &kept, &held, c->arena, c->err));
    return sw_rows_places(&step->to, &kept, &wide, c->arena, c->err);
}

static sw_status fill_exchange(const compiler *c, sw_list_step *step, const sw_tensor_layout *from,
                               const sw_tensor_layout *to)
{
    sw_exchange *exchange = sw_arena_zero(c->arena, 1, sizeof *exchange);

    if (exchange == NULL)
        return sw_arena_fail(c->arena, "an exchange", c->err);
    step->axes = sw_exchange_axes(from, to);
    step->exchange = exchange;
    return sw_exchange_make(exchange, from, to, c->at, c->arena, c->err);
}

/* `leg` on this rank, from a layout to the leg's. */
static sw_status fill_step(const compiler *c, sw_list_step *step, const sw_tensor_layout *from,
                           const sw_leg *leg)
{
    const sw_tensor_layout *to = &leg->to;

    *step = (sw_list_step){.kind = leg->kind, .axes = leg->changed, .n_dims = from->n_dims};
    sw_tensor_layout_local(from, c->at, step->in);
    sw_tensor_layout_local(to, c->at, step->out);
    if (leg->kind == SW_STEP_EXCHANGE)
        return fill_exchange(c, step, from, to);

    uint32_t a = only_axis(leg->changed);
    const sw_placement *before = &from->on[a];
    const sw_placement *after = &to->on[a];
    step->is_kept = c->at.at[a] == 0;
    step->dim = (uint32_t)(after->kind == SW_PLACE_SHARD ? after->dim : before->dim);
    step->other_dim = (uint32_t)before->dim;
    step->extent = after->kind == SW_PLACE_SHARD ? step->in[step->dim] : step->out[step->dim];
    step->other_extent = step->out[step->other_dim];
    if (leg->kind == SW_STEP_SLICE)
        return fill_slice(c, step, from, to);
    return leg->kind == SW_STEP_PAD ? fill_pad(c, step, from, to) : SW_OK;
}

sw_status sw_step_list_make(sw_step_list *out, const sw_tensor_layout *from, const sw_tensor_layout *to,
                            sw_grid_coord at, sw_arena *arena, sw_error *err)
{
    const compiler c = {at, arena, err};
    sw_step_list list = {0};
    sw_route route = {0};

    sw_route_find(&route, from, to);
    for (; list.n < route.n; list.n++) {
        SW_TRY(fill_step(&c, &list.steps[list.n], from, &route.legs[list.n]));
        from = &route.legs[list.n].to;
    }
    *out = list;
    return SW_OK;
}

static sw_status check(const sw_tensor_layout *from, const sw_tensor_layout *to, sw_grid_coord at,
                       sw_error *err)
{
    bool is_same = from->grid.n_axes == to->grid.n_axes && from->n_dims == to->n_dims;

    for (uint32_t a = 0; is_same && a < from->grid.n_axes; a++) {
        is_same = from->grid.axis[a] == to->grid.axis[a] && from->grid.size[a] == to->grid.size[a];
        if (at.at[a] >= from->grid.size[a]) {
            return SW_FAIL(err, SW_E_ARGUMENT, "", "index %" PRIu32 " of %s, which has %" PRIu32 " ranks",
                           at.at[a], sw_axis_name(from->grid.axis[a]), from->grid.size[a]);
        }
    }
    if (!is_same)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a transition between layouts of different grids or dims");
    for (uint32_t d = 0; d < from->n_dims; d++) {
        if (from->dims[d] != to->dims[d]) {
            return SW_FAIL(err, SW_E_ARGUMENT, "a transition moves a tensor, it does not change its shape",
                           "dim %" PRIu32 " is %" PRIu64 " before a transition and %" PRIu64 " after", d,
                           from->dims[d], to->dims[d]);
        }
    }
    return SW_OK;
}

sw_status sw_redistribution_make(sw_redistribution *out, const sw_tensor_layout *from,
                                 const sw_tensor_layout *to, uint32_t split, sw_grid_coord at,
                                 sw_arena *arena, sw_error *err)
{
    sw_redistribution made = {.from = *from, .to = *to};

    SW_TRY(check(from, to, at, err));
    sw_tensor_layout_gradient(&made.to_gradient, to, split);
    sw_tensor_layout_gradient(&made.from_gradient, from, 0);
    SW_TRY(sw_step_list_make(&made.forward, from, to, at, arena, err));
    SW_TRY(sw_step_list_make(&made.backward, &made.to_gradient, &made.from_gradient, at, arena, err));
    *out = made;
    return SW_OK;
}
