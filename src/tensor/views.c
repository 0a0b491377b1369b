/* Views of tensors in a step, with their placement rules (tensor/operations.h). */
#include "base/status.h"
#include "tensor/operations.h"
#include "tensor/rule.h"
#include "tensor/step_state.h"

/* A copy of the struct, to be made a view of; NULL when the step has failed. */
static sw_tensor *begin_view(sw_step *step, const sw_tensor *x, const char *name)
{
    sw_error err = {0};
    sw_status status = SW_OK;

    if (step->status != SW_OK)
        return NULL;
    sw_tensor *view = sw_stack_take(step->stack, sizeof *view);
    if (x == NULL)
        status = SW_FAIL(&err, SW_E_ARGUMENT, "give it", "%s: x is missing", name);
    else if (view == NULL)
        status = SW_FAIL(&err, SW_E_NO_MEMORY, "", "%s: no memory for a tensor", name);
    else
        *view = *x;
    return sw_step_fail(step, status, &err) == SW_OK ? view : NULL;
}

static sw_tensor *end_view(sw_step *step, sw_tensor *view, const char *name, sw_status status, sw_error *err)
{
    if (status != SW_OK)
        sw_error_context(err, "%s", name);
    return sw_step_fail(step, status, err) == SW_OK ? view : NULL;
}

/* Is there a rule to ask? First, for layouts tell more than sizes that do not fit. */
static bool is_checked(const sw_step *step, const sw_tensor *x, uint32_t last_dim)
{
    return step->validates && x->layout != NULL && last_dim < x->n_dims;
}

/* The dim in parts of `n` rows each, or, `into`, in `n` parts. */
static sw_tensor *split(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t n, bool into)
{
    sw_error err = {0};
    sw_status status = SW_OK;
    sw_tensor *view = begin_view(step, x, "split");

    if (view == NULL)
        return NULL;
    if (is_checked(step, x, dim) && x->n_dims < SW_TENSOR_MAX_DIMS && n > 0)
        status = sw_rule_split(step, x, dim, into ? x->layout->dims[dim] / n : n, &view->layout, &err);
    if (status == SW_OK)
        status = (into ? sw_tensor_split_into : sw_tensor_split)(view, dim, n, &err);
    return end_view(step, view, "split", status, &err);
}

sw_tensor *sw_view_split(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t inner)
{
    return split(step, x, dim, inner, false);
}

sw_tensor *sw_view_split_into(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t outer)
{
    return split(step, x, dim, outer, true);
}

sw_tensor *sw_view_merge(sw_step *step, const sw_tensor *x, uint32_t dim)
{
    sw_error err = {0};
    sw_status status = SW_OK;
    bool is_view = true;
    sw_tensor *view = begin_view(step, x, "merge");

    if (view == NULL)
        return NULL;
    if (dim < x->n_dims && is_checked(step, x, dim + 1))
        status = sw_rule_merge(step, x, dim, &view->layout, &err);
    if (status == SW_OK)
        status = sw_tensor_merge(view, dim, &is_view, &err);
    if (status == SW_OK && !is_view)
        return sw_view_merge(step, sw_op_copy(step, x),
                             dim); /* NOLINT(misc-no-recursion): a copy has no gaps */
    return end_view(step, view, "merge", status, &err);
}

sw_tensor *sw_view_swap(sw_step *step, const sw_tensor *x, uint32_t a, uint32_t b)
{
    sw_error err = {0};
    sw_status status = SW_OK;
    sw_tensor *view = begin_view(step, x, "swap");

    if (view == NULL)
        return NULL;
    if (is_checked(step, x, a > b ? a : b))
        status = sw_rule_swap(step, x, a, b, &view->layout, &err);
    if (status == SW_OK)
        status = sw_tensor_swap(view, a, b, &err);
    return end_view(step, view, "swap", status, &err);
}

sw_tensor *sw_view_slice(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t begin, uint64_t length)
{
    sw_error err = {0};
    sw_status status = SW_OK;
    sw_tensor *view = begin_view(step, x, "slice");

    if (view == NULL)
        return NULL;
    if (is_checked(step, x, dim))
        status = sw_rule_slice(step, x, dim, &(sw_range){begin, begin + length}, &view->layout, &err);
    if (status == SW_OK)
        status = sw_tensor_cut(view, dim, begin, length, &err);
    return end_view(step, view, "slice", status, &err);
}
