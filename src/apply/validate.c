/* Layouts of validate mode (apply/validate.h). */
#include "apply/validate.h"

#include "apply/applied.h"
#include "base/status.h"
#include "parallel/node.h"

/* Whole on every rank. */
static sw_status place_whole(const sw_applied *a, sw_tensor *tensor, sw_error *err)
{
    const sw_placement whole[SW_GRID_MAX_AXES] = {{0}};

    if (tensor == NULL)
        return SW_OK;
    sw_tensor_layout *layout = sw_arena_zero(a->arena, 1, sizeof *layout);
    if (layout == NULL)
        return sw_arena_fail(a->arena, "the layouts of a net", err);
    SW_TRY(sw_tensor_layout_make(layout, &a->active.grid, tensor->n_dims, tensor->dims, whole, err));
    tensor->layout = layout;
    return SW_OK;
}

/* Slopes go with the heads: those of this rank, cut as attention is. */
static sw_status place_slopes(const sw_applied *a, sw_error *err)
{
    sw_tensor *slopes = a->net->slopes;
    sw_module *attention = a->net->layers[0].attention;
    const int64_t *heads = sw_module_attribute(attention, "num_heads");
    const int64_t *first = sw_module_attribute(attention, "first_head");
    sw_placement places[SW_GRID_MAX_AXES] = {{0}};

    if (slopes == NULL || heads == NULL || first == NULL || slopes->dims[0] == (uint64_t)*heads)
        return place_whole(a, slopes, err);
    sw_tensor_layout *layout = sw_arena_zero(a->arena, 1, sizeof *layout);
    if (layout == NULL)
        return sw_arena_fail(a->arena, "the layouts of a net", err);
    for (uint32_t k = 0; k < a->active.grid.n_axes; k++) {
        if (a->active.grid.axis[k] == SW_AXIS_TP)
            places[k] = (sw_placement){SW_PLACE_SHARD, 0, NULL};
    }
    SW_TRY(sw_tensor_layout_make(layout, &a->active.grid, 1, slopes->dims, places, err));
    SW_TRY(sw_tensor_cut(slopes, 0, (uint64_t)*first, (uint64_t)*heads, err));
    slopes->layout = layout;
    return SW_OK;
}

sw_status sw_apply_layouts(sw_net *net, sw_error *err)
{
    const sw_applied *a = sw_applied_of(net);
    sw_tensor *const tables[] = {net->rotary.usual.cos, net->rotary.usual.sin, net->rotary.longer.cos,
                                 net->rotary.longer.sin};

    if (a == NULL || !a->validates)
        return SW_OK;
    for (uint32_t i = 0; i < a->n_parameters; i++)
        a->parameters[i].parameter->tensor->layout = &a->parameters[i].layout;
    for (size_t i = 0; i < SW_COUNT(tables); i++)
        SW_TRY(place_whole(a, tables[i], err));
    return place_slopes(a, err);
}

/* Cut over cp, as the sequence is. */
static sw_status make_layout(const sw_applied *a, const sw_tensor *x, sw_tensor_layout *out, sw_error *err)
{
    sw_placement places[SW_GRID_MAX_AXES] = {{0}};
    const uint64_t dims[] = {x->dims[0], x->dims[1] * sw_mesh_axis_size(a->plan->mesh, SW_AXIS_CP)};

    for (uint32_t k = 0; k < a->active.grid.n_axes; k++) {
        if (a->active.grid.axis[k] == SW_AXIS_CP)
            places[k] = (sw_placement){SW_PLACE_SHARD, 1, NULL};
    }
    return sw_tensor_layout_make(out, &a->active.grid, 2, dims, places, err);
}

typedef struct placed {
    sw_tensor tensor;
    sw_tensor_layout layout;
} placed;

const sw_tensor *sw_apply_tokens(const sw_net *net, sw_step *step, const sw_tensor *x)
{
    const sw_applied *a = sw_applied_of(net);
    sw_error err = {0};

    if (a == NULL || !a->validates || x == NULL)
        return x;
    placed *p = sw_node_context(step, sizeof *p);
    if (p == NULL)
        return NULL;
    sw_status status = make_layout(a, x, &p->layout, &err);
    if (status != SW_OK) {
        SW_IGNORE(sw_step_fail(step, status, &err));
        return NULL;
    }
    p->tensor = *x;
    p->tensor.layout = &p->layout;
    return &p->tensor;
}
