/*
 * The lowering rows of plans (src/plan/lowering.c) against transitions compiled from the same contracts: two
 * ways to the collectives of every boundary of every model of the corpus ($SW_SHARED/corpus), which must
 * agree, forward and backward, in order, axis and dim.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "corpus.h"
#include "dtensor/redistribution.h"
#include "plan/lowering.h"

static const struct mesh_case {
    const char *axes;
    uint32_t ep;
    bool no_sp;
    bool loss_parallel;
} meshes[] = {
    {"tp=2",           0, false, false},
    {"tp=2",           0, true,  false},
    {"cp=2,tp=2",      0, false, true },
    {"cp=2,tp=2",      0, true,  false},
    {"cp=2",           0, false, false},
    {"cp=2,ep=2,tp=2", 0, false, false},
    {"ep=2,tp=2",      0, true,  false},
    {"dp=2,tp=2",      4, false, true },
    {"dp=2,tp=2",      4, true,  false},
    {"dp=2,cp=2,tp=2", 2, true,  false},
};

/* A boundary's tensor under comparison. */
typedef struct subject {
    const char *model;
    const char *axes;
    const sw_plan *plan;
    const sw_spec *spec;
    bool is_input;
    uint64_t n_compared;
    uint64_t n_moved; /* with a row or a step at all */
    uint64_t n_different;
} subject;

/* Axes of boundaries, as SW_ON_*; without ep where it is no axis of the mesh. */
static uint32_t grid_axes(const sw_plan *plan, int *on, sw_axis *axes)
{
    uint32_t n = 0;

    for (int i = 0; i < SW_ON_COUNT_; i++) {
        if (i == SW_ON_EP && plan->ep_mode == SW_EP_TP_EXTEND)
            continue;
        on[n] = i;
        axes[n++] = (sw_axis)(SW_AXIS_CP + i);
    }
    return n;
}

static const char *collective_of(const sw_lowered *row, bool is_forward)
{
    return sw_collective_name(is_forward ? row->collective : row->backward);
}

static bool has_dim(const char *collective)
{
    return strcmp(collective, "all_reduce") != 0;
}

/* "all_gather tp 1; " for each row of the argument: in the order of the plan, backward from the end. */
static void put_rows(const subject *s, const char *arg, bool is_forward, sw_buffer *out)
{
    const sw_lowered *rows = s->is_input ? s->spec->lower_in : s->spec->lower_out;
    uint32_t n = s->is_input ? s->spec->n_lower_in : s->spec->n_lower_out;

    for (uint32_t i = 0; i < n; i++) {
        const sw_lowered *row = &rows[is_forward ? i : n - 1 - i];
        const char *name = collective_of(row, is_forward);
        bool is_moved_back = !is_forward && row->collective == SW_COLL_ALL_TO_ALL;
        int32_t dim = is_moved_back ? row->other_dim : row->dim;
        if (strcmp(row->arg, arg) != 0 || strcmp(name, "none") == 0)
            continue;
        sw_buffer_printf(out, "%s %s", name, sw_axis_name(row->axis));
        if (has_dim(name))
            sw_buffer_printf(out, " %d", (int)(dim < 0 ? dim + 3 : dim));
        sw_buffer_puts(out, "; ");
    }
}

static void put_steps(const sw_grid *grid, const sw_step_list *list, sw_buffer *out)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const sw_list_step *step = &list->steps[i];
        const char *name = sw_step_kind_name(step->kind);
        sw_buffer_puts(out, name);
        for (uint32_t a = 0; a < grid->n_axes; a++) {
            if ((step->axes >> a & 1) != 0)
                sw_buffer_printf(out, " %s", sw_axis_name(grid->axis[a]));
        }
        if (has_dim(name))
            sw_buffer_printf(out, " %d", (int)step->dim);
        sw_buffer_puts(out, "; ");
    }
}

/* Axes of the grid over which the plan says that the input is used in parts: their backward is a sum. */
static uint32_t split_of(const subject *s, const char *arg, const sw_grid *grid)
{
    uint32_t split = 0;

    for (uint32_t i = 0; s->is_input && i < s->spec->n_lower_in; i++) {
        const sw_lowered *row = &s->spec->lower_in[i];
        bool is_sum = row->backward == SW_COLL_ALL_REDUCE || row->backward == SW_COLL_REDUCE_SCATTER;
        for (uint32_t a = 0; a < grid->n_axes; a++) {
            if (strcmp(row->arg, arg) == 0 && is_sum && grid->axis[a] == row->axis)
                split |= 1U << a;
        }
    }
    return split;
}

static void compare_text(subject *s, const char *arg, const char *way, sw_buffer *rows, sw_buffer *steps)
{
    const char *expected = sw_buffer_text(rows);
    const char *found = sw_buffer_text(steps);

    s->n_compared++;
    s->n_moved += *expected != '\0' || *found != '\0';
    if (strcmp(expected, found) != 0 && s->n_different++ < 20)
        print_error("%s, %s: %s %s of %s, %s: the plan has '%s', compiled is '%s'\n", s->model, s->axes,
                    s->is_input ? "input" : "output", arg, s->spec->fqn, way, expected, found);
}

static void compare_entry(subject *s, const sw_io_entry *from, const sw_io_entry *to)
{
    static const uint64_t dims[] = {16, 32, 64}; /* batch, sequence, width: every axis divides them */
    sw_arena *arena = sw_arena_create(0);
    sw_placement places[2][SW_ON_COUNT_];
    sw_axis axes[SW_ON_COUNT_];
    int on[SW_ON_COUNT_];
    sw_grid grid;
    sw_tensor_layout before;
    sw_tensor_layout after;
    sw_redistribution made;
    sw_error err = {0};

    uint32_t n_axes = grid_axes(s->plan, on, axes);
    for (uint32_t a = 0; a < n_axes; a++) {
        places[0][a] = from->places.on[on[a]];
        places[1][a] = to->places.on[on[a]];
    }
    if (n_axes < SW_ON_COUNT_ && !sw_placement_equal(&from->places.on[SW_ON_EP], &to->places.on[SW_ON_EP]))
        fail_msg("%s, %s: %s of %s moves over the derived ep", s->model, s->axes, from->name, s->spec->fqn);
    if (sw_grid_of_mesh(&grid, s->plan->mesh, axes, n_axes, &err) != SW_OK ||
        sw_tensor_layout_make(&before, &grid, 3, dims, places[0], &err) != SW_OK ||
        sw_tensor_layout_make(&after, &grid, 3, dims, places[1], &err) != SW_OK ||
        sw_redistribution_make(&made, &before, &after, split_of(s, from->name, &grid), (sw_grid_coord){{0}},
                               arena, &err) != SW_OK)
        fail_msg("%s, %s: %s of %s: %s", s->model, s->axes, from->name, s->spec->fqn, err.what);
    for (int forward = 1; forward >= 0; forward--) {
        sw_buffer rows = {0};
        sw_buffer steps = {0};
        put_rows(s, from->name, forward != 0, &rows);
        put_steps(&grid, forward != 0 ? &made.forward : &made.backward, &steps);
        compare_text(s, from->name, forward != 0 ? "forward" : "backward", &rows, &steps);
        sw_buffer_clear(&rows);
        sw_buffer_clear(&steps);
    }
    sw_arena_destroy(arena);
}

static void compare_side(subject *s)
{
    const sw_io *src = s->is_input ? &s->spec->in_src : &s->spec->out_src;
    const sw_io *dst = s->is_input ? &s->spec->in_dst : &s->spec->out_dst;

    for (uint32_t i = 0; i < src->n; i++) {
        for (uint32_t k = 0; k < dst->n; k++) {
            if (strcmp(src->entries[i].name, dst->entries[k].name) == 0)
                compare_entry(s, &src->entries[i], &dst->entries[k]);
        }
    }
}

static void compare_plan(subject *s, const sw_model *model, const struct mesh_case *c)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;

    options.no_sequence_parallel = c->no_sp;
    options.loss_parallel = c->loss_parallel;
    options.allow_uncovered = true;
    assert_int_equal(sw_mesh_create(&mesh, c->axes, c->ep, NULL), SW_OK);
    if (sw_plan_create(&plan, model, mesh, &options, NULL) == SW_OK) { /* what is legal is not asked here */
        s->axes = c->axes;
        s->plan = plan;
        for (uint32_t i = 0; i < plan->n_specs; i++) {
            s->spec = &plan->specs[i];
            for (int side = 0; side < 2; side++) {
                s->is_input = side == 0;
                compare_side(s);
            }
        }
    }
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
}

static void compiled_collectives_are_those_of_the_plan(void **state)
{
    subject s = {0};
    char path[512];

    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < CORPUS_N_MODELS; i++) {
        sw_model *model = NULL;
        corpus_path(path, sizeof path, corpus_models[i], "");
        s.model = corpus_models[i];
        assert_int_equal(sw_model_open(&model, path, NULL), SW_OK);
        for (size_t m = 0; m < SW_COUNT(meshes); m++)
            compare_plan(&s, model, &meshes[m]);
        sw_model_close(model);
    }
    print_message("%d tensors compared, %d of them are moved\n", (int)s.n_compared, (int)s.n_moved);
    assert_true(s.n_moved > 10000);
    assert_int_equal(s.n_different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_collectives_are_those_of_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
