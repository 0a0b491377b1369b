/*
 * Placement rules of views (tensor/rule.h). A cut goes to the outer of two dims that a dim is split into, and
 * two dims are merged with the outer one cut, as long as ranks hold the same as if the whole were cut.
 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "tensor/held.h"
#include "tensor/rule.h"

static sw_status copy_layout(sw_step *step, const sw_tensor *x, sw_tensor_layout **out, sw_error *err)
{
    *out = sw_stack_take(sw_step_stack(step), sizeof **out);
    if (*out == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the layouts of a step");
    **out = *x->layout;
    return SW_OK;
}

static sw_status refuse(const sw_tensor *x, uint32_t dim, const char *why, sw_error *err)
{
    char text[SW_TENSOR_LAYOUT_TEXT];

    sw_tensor_layout_text(x->layout, text);
    return SW_FAIL(err, SW_E_PLAN, "redistribute it before, or change the plan",
                   "dim %" PRIu32 " of x %s: not without communication: %s", dim, text, why);
}

/* Cut dims from `first` on move by `by`. */
static void move_cuts(sw_tensor_layout *layout, uint32_t first, int32_t by)
{
    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        sw_placement *on = &layout->on[k];
        if (on->kind == SW_PLACE_SHARD && on->dim >= (int32_t)first)
            on->dim += by;
    }
}

static bool is_cut(const sw_tensor_layout *layout, uint32_t dim)
{
    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        if (layout->on[k].kind == SW_PLACE_SHARD && layout->on[k].dim == (int32_t)dim)
            return true;
    }
    return false;
}

sw_status sw_rule_split(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t inner,
                        const sw_tensor_layout **out, sw_error *err)
{
    sw_tensor_layout *layout = NULL;

    SW_TRY(copy_layout(step, x, &layout, err));
    if (inner == 0 || x->layout->dims[dim] % inner != 0)
        return refuse(x, dim, "the whole dim is no whole number of rows", err);
    layout->n_dims = x->layout->n_dims + 1;
    memmove(layout->dims + dim + 1, layout->dims + dim, (x->layout->n_dims - dim) * sizeof *layout->dims);
    layout->dims[dim] /= inner;
    layout->dims[dim + 1] = inner;
    move_cuts(layout, dim + 1, 1);
    *out = layout;
    if (!sw_held_agree(&(sw_held_dim){x->layout, dim, 1}, &(sw_held_dim){layout, dim, inner}))
        return refuse(x, dim, "ranks do not hold whole rows, or not those of an even cut", err);
    return SW_OK;
}

sw_status sw_rule_merge(sw_step *step, const sw_tensor *x, uint32_t dim, const sw_tensor_layout **out,
                        sw_error *err)
{
    sw_tensor_layout *layout = NULL;
    uint64_t inner = x->layout->dims[dim + 1];

    SW_TRY(copy_layout(step, x, &layout, err));
    layout->n_dims = x->layout->n_dims - 1;
    layout->dims[dim] *= inner;
    memmove(layout->dims + dim + 1, layout->dims + dim + 2,
            (layout->n_dims - dim - 1) * sizeof *layout->dims);
    move_cuts(layout, dim + 1, -1);
    *out = layout;
    if (x->layout->dims[dim] != 1 && is_cut(x->layout, dim + 1))
        return refuse(x, dim, "the inner dim is cut", err);
    if (is_cut(x->layout, dim) && is_cut(x->layout, dim + 1))
        return refuse(x, dim, "both dims are cut", err);
    if (is_cut(x->layout, dim) &&
        !sw_held_agree(&(sw_held_dim){x->layout, dim, inner}, &(sw_held_dim){layout, dim, 1}))
        return refuse(x, dim, "the rows of a rank are not those of an even cut", err);
    return SW_OK;
}

sw_status sw_rule_swap(sw_step *step, const sw_tensor *x, uint32_t a, uint32_t b,
                       const sw_tensor_layout **out, sw_error *err)
{
    sw_tensor_layout *layout = NULL;

    SW_TRY(copy_layout(step, x, &layout, err));
    layout->dims[a] = x->layout->dims[b];
    layout->dims[b] = x->layout->dims[a];
    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        sw_placement *on = &layout->on[k];
        if (on->kind == SW_PLACE_SHARD && (on->dim == (int32_t)a || on->dim == (int32_t)b))
            on->dim = (int32_t)(a + b) - on->dim;
    }
    *out = layout;
    return SW_OK;
}

/*
 * The axis that cuts a dim in segments, each of them evenly, and the segment that these rows of a rank's part
 * are; NULL: they are none.
 */
static const sw_segment *segment_at(const sw_tensor_layout *layout, uint32_t dim, const sw_range *rows,
                                    uint32_t *axis)
{
    const sw_cut *cut = NULL;
    uint64_t at = 0;

    for (uint32_t k = 0; k < layout->grid.n_axes; k++) {
        if (layout->on[k].kind != SW_PLACE_SHARD || layout->on[k].dim != (int32_t)dim)
            continue;
        if (cut != NULL || layout->on[k].cut == NULL || layout->on[k].cut->n_groups > 1)
            return NULL;
        cut = layout->on[k].cut;
        *axis = k;
    }
    for (uint32_t i = 0; cut != NULL && i < cut->n_segments; i++) {
        const sw_segment *segment = &cut->segments[i];
        uint64_t replicas = segment->replicas == 0 ? 1 : segment->replicas;
        uint64_t parts = layout->grid.size[*axis] / replicas;
        uint64_t unit = segment->unit == 0 ? 1 : segment->unit;
        if (parts == 0 || segment->extent % (parts * unit) != 0)
            return NULL;
        uint64_t end = at + segment->extent / parts;
        if (at == rows->begin && end == rows->end)
            return segment;
        at = end;
    }
    return NULL;
}

/* The cut of a dim that is one even segment: NULL, unless it has replicas. */
static sw_status one_segment(sw_step *step, const sw_segment *of, const sw_cut **out, sw_error *err)
{
    typedef struct made {
        sw_cut cut;
        sw_segment segment;
    } made;

    *out = NULL;
    if (of->replicas < 2)
        return SW_OK;
    made *fresh = sw_stack_take(sw_step_stack(step), sizeof *fresh);
    if (fresh == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the layouts of a step");
    fresh->segment = (sw_segment){.replicas = of->replicas};
    fresh->cut = (sw_cut){1, 1, &fresh->segment};
    *out = &fresh->cut;
    return SW_OK;
}

sw_status sw_rule_slice(sw_step *step, const sw_tensor *x, uint32_t dim, const sw_range *rows,
                        const sw_tensor_layout **out, sw_error *err)
{
    sw_tensor_layout *layout = NULL;
    uint64_t length = rows->end - rows->begin;
    uint32_t axis = 0;

    SW_TRY(copy_layout(step, x, &layout, err));
    *out = layout;
    if (!is_cut(x->layout, dim)) {
        layout->dims[dim] = length;
        return SW_OK;
    }
    const sw_segment *segment = segment_at(x->layout, dim, rows, &axis);
    if (segment == NULL)
        return refuse(x, dim, "it is cut, and the rows are no segment of the cut", err);
    layout->dims[dim] = segment->extent;
    return one_segment(step, segment, &layout->on[axis].cut, err);
}
