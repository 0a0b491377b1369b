/* Placement rules of operations, from their signatures (tensor/rule.h). */
#include "tensor/rule.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "tensor/held.h"

/* A dim of the operation: a letter, or one of the leading dims. */
typedef struct dim_key {
    bool is_rest;
    uint32_t index;
} dim_key;

typedef struct axis_result {
    sw_placement_kind kind;
    dim_key key; /* of a shard */
} axis_result;

typedef struct rule {
    const sw_call *call;
    const sw_signature *signature;
    sw_extents extents; /* of the whole tensors */
    uint32_t axis;
    char why[160];
} rule;

static const sw_tensor_layout *layout_of(const rule *r, uint32_t i)
{
    return r->call->in[i] == NULL ? NULL : r->call->in[i]->layout;
}

/* The dim of value `v` that a key names; -1: it does not have it. Divisors go with what they divide. */
static int dim_in(const rule *r, uint32_t v, dim_key key)
{
    const sw_value *value = &r->signature->values[v];
    uint32_t n_rest = value->has_rest ? r->extents.n_rest : 0;

    if (key.is_rest)
        return value->has_rest ? (int)key.index : -1;
    for (uint32_t d = 0; d < value->n_letters; d++) {
        if (sw_signature_base(r->signature, value->letters[d]) == key.index)
            return (int)(n_rest + d);
    }
    return -1;
}

static dim_key key_of(const rule *r, uint32_t v, uint32_t dim)
{
    const sw_value *value = &r->signature->values[v];
    uint32_t n_rest = value->has_rest ? r->extents.n_rest : 0;

    if (dim < n_rest)
        return (dim_key){true, dim};
    return (dim_key){false, sw_signature_base(r->signature, value->letters[dim - n_rest])};
}

/* ---- sets in which the operation is linear: "x+bias weight+bias" ---- */

/* The inputs of the set that `text` begins with, as bits; *text goes on to the next. */
static uint32_t next_set(const rule *r, const char **text)
{
    uint32_t set = 0;

    while (**text != '\0' && **text != ' ') {
        size_t length = strcspn(*text, "+ ");
        int i = sw_signature_find(r->signature, *text, length);
        set |= i < 0 ? 0 : 1U << (uint32_t)i;
        *text += length;
        *text += **text == '+';
    }
    *text += **text == ' ';
    return set;
}

static uint32_t present(const rule *r)
{
    uint32_t set = 0;

    for (uint32_t i = 0; i < r->signature->n_inputs; i++)
        set |= r->call->in[i] == NULL ? 0 : 1U << i;
    return set;
}

static bool is_linear_in(const rule *r, uint32_t inputs)
{
    const char *text = r->call->operation->linear;

    while (*text != '\0') {
        if ((next_set(r, &text) & present(r)) == inputs)
            return true;
    }
    return false;
}

/* Is input `i` only added to what the inputs with this dim make? */
static bool is_added(const rule *r, uint32_t i, dim_key key)
{
    const char *text = r->call->operation->linear;

    while (*text != '\0') {
        uint32_t set = next_set(r, &text);
        for (uint32_t j = 0; j < r->signature->n_inputs; j++) {
            if ((set & 1U << i) != 0 && (set & 1U << j) != 0 && dim_in(r, j, key) >= 0)
                return true;
        }
    }
    return false;
}

/* ---- one axis ---- */

static bool explain(rule *r, uint32_t i, const char *text)
{
    const sw_value *value = &r->signature->values[i];

    (void)snprintf(r->why, sizeof r->why, "%.*s %s", value->name_length, value->name, text);
    return false;
}

/* Input `i` on the axis where `key` is cut. */
static bool goes_with_cut(rule *r, uint32_t i, dim_key key, bool output_has_it)
{
    sw_placement_kind kind = sw_tensor_layout_kind(layout_of(r, i), r->axis);
    int dim = dim_in(r, i, key);

    if (dim >= 0) {
        if (kind == SW_PLACE_SHARD && layout_of(r, i)->on[r->axis].dim == dim)
            return true;
        if (kind == SW_PLACE_REPLICATE && layout_of(r, i)->dims[dim] == 1)
            return true; /* its one row serves all rows of the others */
        return explain(r, i, "would have to be cut over the same dim");
    }
    if (kind == SW_PLACE_SHARD)
        return explain(r, i, "is cut over another dim");
    bool must_be_summand = !output_has_it && is_added(r, i, key);
    if (must_be_summand && kind != SW_PLACE_PARTIAL)
        return explain(r, i, "would be added once on every rank");
    if (!must_be_summand && kind == SW_PLACE_PARTIAL)
        return explain(r, i, "is a summand where the others are cut");
    return true;
}

static bool match_cut(rule *r, uint32_t first, axis_result *out)
{
    uint32_t dim = (uint32_t)layout_of(r, first)->on[r->axis].dim;
    dim_key key = key_of(r, first, dim);
    bool output_has_it = dim_in(r, r->signature->n_inputs, key) >= 0;

    if (!key.is_rest && isupper((unsigned char)r->signature->letters[key.index]))
        return explain(r, first, "is cut over a dim of which every rank needs the whole");
    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        if (r->call->in[i] != NULL && !goes_with_cut(r, i, key, output_has_it))
            return false;
    }
    *out = (axis_result){.kind = SW_PLACE_SHARD, .key = key};
    return true;
}

static bool match_axis(rule *r, axis_result *out)
{
    uint32_t summands = 0;
    uint32_t last = 0;

    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        if (r->call->in[i] == NULL)
            continue;
        sw_placement_kind kind = sw_tensor_layout_kind(layout_of(r, i), r->axis);
        if (kind == SW_PLACE_SHARD)
            return match_cut(r, i, out);
        if (kind == SW_PLACE_PARTIAL) {
            summands |= 1U << i;
            last = i;
        }
    }
    *out = (axis_result){.kind = summands == 0 ? SW_PLACE_REPLICATE : SW_PLACE_PARTIAL};
    if (summands == 0 || is_linear_in(r, summands))
        return true;
    return explain(r, last, "is a summand, in which the operation is not linear by itself");
}

/* ---- all axes ---- */

static sw_status refuse(const rule *r, sw_error *err)
{
    char layouts[300] = "";

    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        const sw_value *value = &r->signature->values[i];
        char text[SW_TENSOR_LAYOUT_TEXT];
        size_t at = strlen(layouts);
        if (r->call->in[i] == NULL)
            continue;
        sw_tensor_layout_text(layout_of(r, i), text);
        (void)snprintf(layouts + at, sizeof layouts - at, "%s%.*s %s", at == 0 ? "" : ", ",
                       value->name_length, value->name, text);
    }
    return SW_FAIL(err, SW_E_PLAN, "redistribute an input before it, or change the plan",
                   "%s: not without communication over %s: %s", layouts,
                   sw_axis_name(layout_of(r, 0)->grid.axis[r->axis]), r->why);
}

/* Do all inputs with this dim hold the same part of it? Cuts may differ where kinds do not. */
static bool inputs_agree(rule *r, dim_key key)
{
    sw_held_dim first = {0};

    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        int dim = r->call->in[i] == NULL ? -1 : dim_in(r, i, key);
        if (dim < 0)
            continue;
        sw_held_dim here = {layout_of(r, i), (uint32_t)dim, 1};
        if (first.layout == NULL) {
            first = here;
            continue;
        }
        uint64_t extent = here.layout->dims[dim];
        here.rows = extent == 0 ? 1 : first.layout->dims[first.dim] / extent;
        /* One row of a divisor serves several rows; its rank may hold some of these only. */
        bool agrees = here.rows > 1 ? sw_held_serves(&first, &here) : sw_held_agree(&first, &here);
        if (!agrees)
            return explain(r, i, "is cut at other rows than the inputs before it");
    }
    return true;
}

/* The shard of the first input that has the dim, with another number for it. */
static sw_placement shard_of(const rule *r, uint32_t axis, dim_key key, int dim)
{
    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        if (r->call->in[i] != NULL && dim_in(r, i, key) >= 0)
            return (sw_placement){SW_PLACE_SHARD, dim, layout_of(r, i)->on[axis].cut};
    }
    return (sw_placement){.kind = SW_PLACE_REPLICATE};
}

static void place_output(const rule *r, uint32_t o, const axis_result *results, sw_tensor_layout *out)
{
    uint32_t first = r->signature->n_inputs;

    for (uint32_t k = 0; k < out->grid.n_axes; k++) {
        bool is_cut = results[k].kind == SW_PLACE_SHARD;
        int dim = is_cut ? dim_in(r, first + o, results[k].key) : -1;
        out->on[k] = (sw_placement){.kind = SW_PLACE_REPLICATE};
        if (dim >= 0)
            out->on[k] = shard_of(r, k, results[k].key, dim);
        out->is_summed[k] = results[k].kind == SW_PLACE_PARTIAL ||
                            (is_cut && dim < 0 && dim_in(r, first, results[k].key) < 0);
    }
}

static sw_status set_outputs(const rule *r, const axis_result *results, const sw_tensor_layout **out,
                             sw_error *err)
{
    for (uint32_t o = 0; o < r->signature->n_outputs; o++) {
        sw_tensor_layout *layout = sw_stack_take(sw_step_stack(r->call->step), sizeof *layout);
        if (layout == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the layouts of a step");
        *layout = *layout_of(r, 0);
        memset(layout->dims, 0, sizeof layout->dims);
        SW_TRY(sw_extents_output(&r->extents, r->signature, o, r->call->args.extent, &layout->n_dims,
                                 layout->dims, err));
        place_output(r, o, results, layout);
        out[o] = layout;
    }
    return SW_OK;
}

/* Every input has a layout, over the same axes, of its number of dims. Whole extents on the way. */
static sw_status read_inputs(rule *r, sw_error *err)
{
    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        const sw_value *value = &r->signature->values[i];
        const sw_tensor_layout *layout = layout_of(r, i);
        if (r->call->in[i] == NULL)
            continue;
        if (layout == NULL) {
            return SW_FAIL(err, SW_E_PLAN, "give it the layout in which it is held",
                           "%.*s has no layout, others have", value->name_length, value->name);
        }
        if (layout_of(r, 0) == NULL || !sw_grid_equal(&layout->grid, &layout_of(r, 0)->grid) ||
            layout->n_dims != r->call->in[i]->n_dims) {
            return SW_FAIL(err, SW_E_PLAN, "all inputs are on one mesh",
                           "the layout of %.*s is over other axes or dims", value->name_length, value->name);
        }
        SW_TRY(sw_extents_add(&r->extents, r->signature, i, layout->n_dims, layout->dims, err));
    }
    return SW_OK;
}

static bool has_layout(const sw_call *call)
{
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        if (call->in[i] != NULL && call->in[i]->layout != NULL)
            return true;
    }
    return false;
}

sw_status sw_rule_apply(const sw_call *call, const sw_tensor_layout **out, sw_error *err)
{
    rule r = {.call = call, .signature = call->signature};
    axis_result results[SW_GRID_MAX_AXES] = {{0}};

    if (!has_layout(call))
        return SW_OK;
    SW_TRY(read_inputs(&r, err));
    for (r.axis = 0; r.axis < layout_of(&r, 0)->grid.n_axes; r.axis++) {
        if (!match_axis(&r, &results[r.axis]))
            return refuse(&r, err);
    }
    for (r.axis = 0; r.axis < layout_of(&r, 0)->grid.n_axes; r.axis++) {
        if (results[r.axis].kind == SW_PLACE_SHARD && !inputs_agree(&r, results[r.axis].key))
            return refuse(&r, err);
    }
    return set_outputs(&r, results, out, err);
}
