/* Moves (apply/move.h): compiled by shape, run as nodes of the tape. */
#include "apply/move.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "dtensor/run.h"
#include "mesh/placement.h"
#include "parallel/node.h"

/* ---- finding ---- */

static bool is_move(const sw_move *move, const sw_placement *from, const sw_placement *to, uint32_t split)
{
    bool is_it = move->split == split;

    for (uint32_t a = 0; a < move->moves->active->grid.n_axes && is_it; a++)
        is_it = sw_placement_equal(&move->from[a], &from[a]) && sw_placement_equal(&move->to[a], &to[a]);
    return is_it;
}

/* Nothing forward, and nothing to sum backward. */
static bool moves_nothing(const sw_grid *grid, const sw_placement *from, const sw_placement *to,
                          uint32_t split)
{
    bool is_nothing = true;

    for (uint32_t a = 0; a < grid->n_axes && is_nothing; a++) {
        bool sums = (split >> a & 1) != 0 && from[a].kind == SW_PLACE_REPLICATE;
        is_nothing = sw_placement_equal(&from[a], &to[a]) && !sums;
    }
    return is_nothing;
}

sw_status sw_moves_find(sw_moves *moves, const sw_placement *from, const sw_placement *to, uint32_t split,
                        sw_move **out, sw_error *err)
{
    uint32_t n_axes = moves->active->grid.n_axes;

    *out = NULL;
    if (moves_nothing(&moves->active->grid, from, to, split))
        return SW_OK;
    for (sw_move *m = moves->first; m != NULL; m = m->next) {
        if (!is_move(m, from, to, split))
            continue;
        *out = m;
        return SW_OK;
    }
    sw_move *move = sw_arena_zero(moves->arena, 1, sizeof *move);
    if (move == NULL)
        return sw_arena_fail(moves->arena, "the moves of a plan", err);
    move->moves = moves;
    move->split = split;
    memcpy(move->from, from, n_axes * sizeof *from);
    memcpy(move->to, to, n_axes * sizeof *to);
    move->next = moves->first;
    moves->first = move;
    *out = move;
    return SW_OK;
}

/* ---- compiling ---- */

static sw_status compile(sw_compiled_move *c, const sw_move *move, uint32_t n_dims, const uint64_t *whole,
                         sw_arena *arena, sw_error *err)
{
    const sw_active *active = move->moves->active;
    sw_tensor_layout from;
    sw_tensor_layout to;

    SW_TRY(sw_tensor_layout_make(&from, &active->grid, n_dims, whole, move->from, err));
    SW_TRY(sw_tensor_layout_make(&to, &active->grid, n_dims, whole, move->to, err));
    SW_TRY(sw_redistribution_make(&c->made, &from, &to, move->split, active->at, arena, err));
    sw_tensor_layout_local(&from, active->at, c->from_dims);
    sw_tensor_layout_local(&to, active->at, c->to_dims);
    return SW_OK;
}

sw_status sw_move_check(const sw_move *move, uint32_t n_dims, sw_error *err)
{
    const uint64_t ones[SW_TENSOR_MAX_DIMS] = {1, 1, 1, 1, 1};
    sw_arena *arena = sw_arena_create(0);
    sw_compiled_move compiled;

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a move");
    sw_status status = compile(&compiled, move, n_dims, ones, arena, err);
    sw_arena_destroy(arena);
    return status;
}

static sw_status compile_for(sw_compiled_move **out, const sw_move *move, sw_dtype dtype, uint32_t n_dims,
                             const uint64_t *whole, sw_error *err)
{
    sw_compiled_move *c = sw_arena_zero(move->moves->arena, 1, sizeof *c);

    if (c == NULL)
        return sw_arena_fail(move->moves->arena, "a move", err);
    c->moves = move->moves;
    c->dtype = dtype;
    SW_TRY(compile(c, move, n_dims, whole, move->moves->arena, err));
    SW_TRY(sw_redistribution_bind(&c->made, move->moves->active->comm, err));
    SW_TRY(sw_step_list_workspace(&c->made.forward, dtype, &c->forward_bytes, err));
    if (dtype != SW_DTYPE_I32) /* which has no gradient */
        SW_TRY(sw_step_list_workspace(&c->made.backward, dtype, &c->backward_bytes, err));
    *out = c;
    return SW_OK;
}

void sw_apply_whole_dims(const sw_grid *grid, const sw_placement *places, const sw_tensor *x, sw_whole whole,
                         uint64_t *dims)
{
    memcpy(dims, x->dims, x->n_dims * sizeof *dims);
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        uint32_t dim = 0;
        if (places[a].kind != SW_PLACE_SHARD || !sw_placement_dim(&places[a], x->n_dims, &dim))
            continue;
        if (dim == 1)
            dims[dim] = whole.tokens;
        else if (dim + 1 == x->n_dims)
            dims[dim] = whole.width;
    }
}

/* What was compiled for this shape, now or before; it comes to the front. */
static sw_status compiled_for(sw_compiled_move **out, sw_move *move, const sw_tensor *x, sw_whole whole,
                              sw_error *err)
{
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    sw_compiled_move **link = &move->compiled;

    sw_apply_whole_dims(&move->moves->active->grid, move->from, x, whole, dims);
    for (; *link != NULL; link = &(*link)->next) {
        const sw_compiled_move *c = *link;
        if (c->dtype == sw_tensor_dtype(x) && c->made.from.n_dims == x->n_dims &&
            memcmp(c->made.from.dims, dims, x->n_dims * sizeof *dims) == 0)
            break;
    }
    *out = *link;
    if (*link == NULL)
        SW_TRY(compile_for(out, move, sw_tensor_dtype(x), x->n_dims, dims, err));
    else
        *link = (*out)->next;
    (*out)->next = move->compiled;
    move->compiled = *out;
    return SW_OK;
}

/* ---- running ---- */

static const sw_collective collective_of[SW_STEP_KIND_COUNT_] = {
    [SW_STEP_SLICE] = SW_COLL_SLICE,
    [SW_STEP_ALL_GATHER] = SW_COLL_ALL_GATHER,
    [SW_STEP_REDUCE_SCATTER] = SW_COLL_REDUCE_SCATTER,
    [SW_STEP_ALL_REDUCE] = SW_COLL_ALL_REDUCE,
    [SW_STEP_ALL_TO_ALL] = SW_COLL_ALL_TO_ALL,
    [SW_STEP_EXCHANGE] = SW_COLL_ALL_TO_ALL,
};

static void count(const sw_step_list *list, uint64_t *counts)
{
    for (uint32_t i = 0; i < list->n; i++)
        counts[collective_of[list->steps[i].kind]]++;
}

static sw_status run_list(sw_step *step, const sw_step_list *list, size_t bytes, sw_dtype dtype,
                          const void *in, void *out, sw_error *err)
{
    sw_stack *stack = sw_step_stack(step);
    sw_stack_mark mark = sw_stack_top(stack);
    void *workspace = NULL;

    SW_TRY(sw_node_take(step, bytes, &workspace, err));
    sw_step_list_run(list, dtype, in, out, workspace);
    sw_stack_release(stack, mark);
    return SW_OK;
}

static sw_status forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                         sw_error *err)
{
    const sw_compiled_move *c = context;
    const sw_step_list *list = &c->made.forward;
    const void *dense = NULL;

    SW_TRY(sw_node_dense(step, in[0], &dense, err));
    if (list->n == 0) {
        SW_TRY(sw_tensor_create(out, sw_step_stack(step), c->dtype, in[0]->n_dims, in[0]->dims, (void *)dense,
                                err)); /* the same elements; only gradients move */
    } else {
        SW_TRY(sw_node_tensor(step, c->dtype, in[0]->n_dims, c->to_dims, out, err));
        SW_TRY(run_list(step, list, c->forward_bytes, c->dtype, dense, sw_tensor_data(*out), err));
    }
    count(list, c->moves->n_forward);
    if (in[0]->layout != NULL)
        (*out)->layout = &c->made.to;
    return SW_OK;
}

static sw_status backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const sw_compiled_move *c = context;
    const sw_step_list *list = &c->made.backward;

    if (back->d_in[0] == NULL)
        return SW_OK;
    count(list, c->moves->n_backward);
    if (list->n > 0)
        return run_list(step, list, c->backward_bytes, c->dtype, back->d_out, back->d_in[0], err);
    memcpy(back->d_in[0], back->d_out, (size_t)sw_tensor_elems(back->in[0]) * sw_elem_bytes(c->dtype));
    return SW_OK;
}

static const sw_custom node = {.name = "move", .forward = forward, .backward = backward};

static sw_status check_extents(const sw_compiled_move *c, const sw_tensor *x, sw_error *err)
{
    char layout[SW_TENSOR_LAYOUT_TEXT];

    for (uint32_t d = 0; d < x->n_dims; d++) {
        if (x->dims[d] == c->from_dims[d])
            continue;
        sw_tensor_layout_text(&c->made.from, layout);
        return SW_FAIL(err, SW_E_PLAN, "the module before it leaves another layout than the plan says",
                       "dim %" PRIu32 " comes with %" PRIu64 ", not the %" PRIu64 " of %s", d, x->dims[d],
                       c->from_dims[d], layout);
    }
    return SW_OK;
}

sw_tensor *sw_move_run(sw_move *move, sw_step *step, const sw_tensor *x, sw_whole whole)
{
    sw_compiled_move *compiled = NULL;
    sw_error err = {0};

    if (x == NULL || sw_step_status(step, NULL) != SW_OK)
        return NULL;
    sw_status status = compiled_for(&compiled, move, x, whole, &err);
    if (status == SW_OK)
        status = check_extents(compiled, x, &err);
    if (status != SW_OK) {
        SW_IGNORE(sw_step_fail(step, status, &err));
        return NULL;
    }
    return sw_step_custom(step, &node, compiled, &x, 1);
}
