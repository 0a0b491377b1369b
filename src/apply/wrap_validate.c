/*
 * The wrap of validate mode (apply/wrap.h): tensors carry layouts, every operation inside checks its rule,
 * and what comes in and out is compared with the contract. A region that the plan declares opaque, or whose
 * tokens go to the experts of other ranks, computes on local tensors and is believed what it declares.
 */
#include <stdio.h>
#include <string.h>

#include "apply/wrap.h"
#include "base/status.h"

enum { WHERE = 480 };

/* The layout of `x` as a contract has it; NULL when the step has failed. */
static const sw_tensor_layout *layout_by(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass,
                                         const sw_tensor *x, const sw_placement *places)
{
    const sw_active *active = &b->applied->active;
    sw_tensor_layout *made = sw_stack_take(sw_step_stack(step), sizeof *made);
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    sw_error err = {0};

    sw_apply_whole_dims(&active->grid, places, x, sw_apply_whole(b, pass), dims);
    sw_status status = made == NULL
                           ? SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for a layout")
                           : sw_tensor_layout_make(made, &active->grid, x->n_dims, dims, places, &err);
    if (status == SW_OK)
        return made;
    SW_IGNORE(sw_step_fail(step, status, &err));
    return NULL;
}

/* Is `x` where the contract says? The first that is not fails the step, with both layouts. */
static bool agrees(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass, const sw_tensor *x,
                   const sw_placement *places, const char *what)
{
    char expected[SW_TENSOR_LAYOUT_TEXT];
    char actual[SW_TENSOR_LAYOUT_TEXT];
    sw_error err = {0};

    if (x == NULL || x->layout == NULL)
        return x != NULL;
    const sw_tensor_layout *wanted = layout_by(b, step, pass, x, places);
    if (wanted == NULL || sw_tensor_layout_equal(wanted, x->layout))
        return wanted != NULL;
    sw_tensor_layout_text(wanted, expected);
    sw_tensor_layout_text(x->layout, actual);
    SW_IGNORE(
        sw_step_fail(step,
                     SW_FAIL(&err, SW_E_PLAN, "correct the contract or what comes before it",
                             "placement mismatch at %s: expected %s, actual %s", what, expected, actual),
                     &err));
    return false;
}

/* A black box by the plan's word, or one whose experts are bound to their ranks: tokens cross those inside.
 */
static bool is_region(const sw_spec *spec)
{
    return spec->region_dispatch == 0 || (spec->region_dispatch < 0 && spec->ep_size > 1);
}

/* The class's forward on local tensors; what comes out is laid out as declared. */
static sw_tensor *run_region(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass,
                             const sw_tensor *const *in)
{
    sw_step_validate(step, false);
    sw_tensor *y = b->module->class->forward(b->module, step, pass, in);
    sw_step_validate(step, true);
    if (y != NULL && b->has_out_src)
        y->layout = layout_by(b, step, pass, y, b->out_src);
    return y;
}

static sw_tensor *run_checked(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass,
                              const sw_tensor *const *in)
{
    const sw_tensor *moved[SW_MODULE_MAX_INPUTS] = {NULL};

    for (uint32_t i = 0; b->module->class->arguments[i] != NULL; i++) {
        if (b->has_in[i] && !agrees(b, step, pass, in[i], b->in_src[i], "in_src"))
            return NULL;
    }
    sw_apply_enter(b, step, pass, in, moved);
    sw_tensor *y = is_region(b->spec) ? run_region(b, step, pass, moved)
                                      : b->module->class->forward(b->module, step, pass, moved);
    if (y == NULL || (b->has_out_src && !agrees(b, step, pass, y, b->out_src, "out_src")))
        return NULL;
    return sw_apply_leave(b, step, pass, y);
}

/* ---- between boundaries ---- */

/* Text of a contract's placements for hidden states; false: they fit nothing, and another check says so. */
static bool contract_text(const sw_applied_boundary *b, const sw_pass *pass, const sw_placement *places,
                          char text[SW_TENSOR_LAYOUT_TEXT])
{
    const sw_whole whole = sw_apply_whole(b, pass);
    const uint64_t dims[] = {pass->tokens->dims[0], whole.tokens, whole.width};
    sw_tensor_layout layout;
    bool is_made = sw_tensor_layout_make(&layout, &b->applied->active.grid, 3, dims, places, NULL) == SW_OK;

    if (is_made)
        sw_tensor_layout_text(&layout, text);
    return is_made;
}

static const sw_applied_boundary *boundary_of(const sw_applied *a, const sw_module *module)
{
    for (uint32_t i = 0; i < a->n_boundaries; i++) {
        if (a->boundaries[i].module == module)
            return &a->boundaries[i];
    }
    return NULL;
}

/* The boundary that takes the hidden states behind another one; NULL: none does. */
static const sw_applied_boundary *boundary_behind(const sw_applied_boundary *left)
{
    const sw_net *net = left->applied->net;

    for (const sw_module *m = left->module + 1; m < net->modules + net->n_modules; m++) {
        const sw_applied_boundary *next = m->parent != NULL ? NULL : boundary_of(left->applied, m);
        if (next != NULL && next->has_in[0])
            return next;
    }
    return NULL;
}

/* Does what a boundary leaves not fit what takes it? Then the step's failure says so, with both contracts. */
static bool name_misfit(const sw_applied_boundary *left, sw_step *step, const sw_pass *pass)
{
    const sw_applied_boundary *next = boundary_behind(left);
    char expected[SW_TENSOR_LAYOUT_TEXT];
    char actual[SW_TENSOR_LAYOUT_TEXT];
    char where[WHERE];

    if (next == NULL || !contract_text(next, pass, next->in_src[0], expected) ||
        !contract_text(left, pass, left->out_dst, actual) || strcmp(expected, actual) == 0)
        return false;
    (void)snprintf(where, sizeof where,
                   "%.120s: placement mismatch at out_dst: expected %.60s as %.120s takes it, actual %.60s",
                   left->module->fqn, expected, next->module->fqn, actual);
    sw_step_fail_in(step, where);
    return true;
}

/*
 * An operation between boundaries has failed, a residual's sum say, and that is seen at one of those behind
 * it: of the last two that ended one has left what does not fit.
 */
static void name_left(sw_applied_trail *trail, sw_step *step, const sw_pass *pass)
{
    bool is_named = trail->depth > 0;

    for (uint32_t i = 0; i < SW_COUNT(trail->left) && trail->left[i] != NULL && !is_named; i++)
        is_named = name_misfit(trail->left[i], step, pass);
    *trail = (sw_applied_trail){.depth = trail->depth};
}

static void leave_trail(const sw_applied_boundary *b)
{
    sw_applied_trail *trail = &b->applied->trail;

    trail->depth--;
    trail->left[1] = trail->left[0];
    trail->left[0] = b;
}

sw_tensor *sw_apply_wrap_validate(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                                  const sw_tensor *const *in)
{
    const sw_applied_boundary *b = context;
    sw_applied_trail *trail = &b->applied->trail;

    if (module == module->net->embedding) /* a run begins */
        *trail = (sw_applied_trail){0};
    if (sw_step_status(step, NULL) != SW_OK) {
        name_left(trail, step, pass);
        return NULL;
    }
    if (in[0] == NULL || in[0]->layout == NULL) /* inside of a region */
        return sw_apply_wrap_production(context, module, step, pass, in);
    trail->depth++;
    sw_tensor *y = run_checked(b, step, pass, in);
    if (y == NULL) {
        sw_step_fail_in(step, module->fqn);
        *trail = (sw_applied_trail){.depth = 1}; /* it is said who it was */
    } else {
        leave_trail(b);
    }
    return y;
}
