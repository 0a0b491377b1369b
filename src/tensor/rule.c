/* Placement rules of operations, from their signatures (tensor/rule.h). */
#include "tensor/rule.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

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

static const sw_places *places_of(const rule *r, uint32_t i)
{
    return r->call->in[i] == NULL ? NULL : r->call->in[i]->places;
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
    const sw_placement *on = &places_of(r, i)->on[r->axis];
    int dim = dim_in(r, i, key);

    if (dim >= 0) {
        if (on->kind == SW_PLACE_SHARD && on->dim == dim)
            return true;
        return explain(r, i, "would have to be cut over the same dim");
    }
    if (on->kind == SW_PLACE_SHARD)
        return explain(r, i, "is cut over another dim");
    bool must_be_summand = !output_has_it && is_added(r, i, key);
    if (must_be_summand && on->kind != SW_PLACE_PARTIAL)
        return explain(r, i, "would be added once on every rank");
    if (!must_be_summand && on->kind == SW_PLACE_PARTIAL)
        return explain(r, i, "is a summand where the others are cut");
    return true;
}

static bool match_cut(rule *r, uint32_t first, axis_result *out)
{
    uint32_t dim = (uint32_t)places_of(r, first)->on[r->axis].dim;
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
        sw_placement_kind kind = places_of(r, i)->on[r->axis].kind;
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
        char text[SW_PLACES_TEXT];
        size_t at = strlen(layouts);
        if (r->call->in[i] == NULL)
            continue;
        sw_places_text(places_of(r, i), text);
        (void)snprintf(layouts + at, sizeof layouts - at, "%s%.*s %s", at == 0 ? "" : ", ",
                       value->name_length, value->name, text);
    }
    return SW_FAIL(err, SW_E_PLAN, "redistribute an input before it, or change the plan",
                   "%s: not without communication over %s: %s", layouts,
                   sw_axis_name(places_of(r, 0)->axis[r->axis]), r->why);
}

/* Do all inputs with this dim hold the same part of it? Cuts may differ where kinds do not. */
static bool inputs_agree(rule *r, dim_key key)
{
    sw_places_dim first = {0};

    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        int dim = r->call->in[i] == NULL ? -1 : dim_in(r, i, key);
        if (dim < 0)
            continue;
        sw_places_dim here = {places_of(r, i), (uint32_t)dim, 1};
        if (first.places == NULL) {
            first = here;
            continue;
        }
        uint64_t extent = here.places->dims[dim];
        here.rows = extent == 0 ? 1 : first.places->dims[first.dim] / extent;
        /* One row of a divisor serves several rows; its rank may hold some of these only. */
        bool agrees = here.rows > 1 ? sw_places_serves(&first, &here) : sw_places_agree(&first, &here);
        if (!agrees)
            return explain(r, i, "is cut at other rows than the inputs before it");
    }
    return true;
}

static void place_output(const rule *r, uint32_t o, const axis_result *results, sw_places *out)
{
    uint32_t v = r->signature->n_inputs + o;

    for (uint32_t k = 0; k < out->n_axes; k++) {
        int dim = results[k].kind == SW_PLACE_SHARD ? dim_in(r, v, results[k].key) : -1;
        bool first_has_it =
            results[k].kind == SW_PLACE_SHARD && dim_in(r, r->signature->n_inputs, results[k].key) >= 0;
        out->on[k] = (sw_placement){.kind = results[k].kind, .dim = 0};
        if (results[k].kind == SW_PLACE_SHARD && dim < 0)
            out->on[k].kind = first_has_it ? SW_PLACE_REPLICATE : SW_PLACE_PARTIAL;
        for (uint32_t i = 0; dim >= 0 && i < r->signature->n_inputs; i++) {
            if (r->call->in[i] != NULL && dim_in(r, i, results[k].key) >= 0) {
                out->on[k] = (sw_placement){SW_PLACE_SHARD, dim, places_of(r, i)->on[k].cut};
                break;
            }
        }
    }
}

static sw_status set_outputs(const rule *r, const axis_result *results, const sw_places **out, sw_error *err)
{
    for (uint32_t o = 0; o < r->signature->n_outputs; o++) {
        sw_places *places = sw_stack_take(sw_step_stack(r->call->step), sizeof *places);
        if (places == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the layouts of a step");
        *places = *places_of(r, 0);
        memset(places->dims, 0, sizeof places->dims);
        SW_TRY(sw_extents_output(&r->extents, r->signature, o, r->call->args.extent, &places->n_dims,
                                 places->dims, err));
        place_output(r, o, results, places);
        out[o] = places;
    }
    return SW_OK;
}

/* Every input has places, over the same axes, of its number of dims. Whole extents on the way. */
static sw_status read_inputs(rule *r, sw_error *err)
{
    for (uint32_t i = 0; i < r->signature->n_inputs; i++) {
        const sw_value *value = &r->signature->values[i];
        const sw_places *places = places_of(r, i);
        if (r->call->in[i] == NULL)
            continue;
        if (places == NULL) {
            return SW_FAIL(err, SW_E_PLAN, "give it the layout in which it is held",
                           "%.*s has no layout, others have", value->name_length, value->name);
        }
        if (places_of(r, 0) == NULL || !sw_places_same_axes(places, places_of(r, 0)) ||
            places->n_dims != r->call->in[i]->n_dims) {
            return SW_FAIL(err, SW_E_PLAN, "all inputs are on one mesh",
                           "the layout of %.*s is over other axes or dims", value->name_length, value->name);
        }
        SW_TRY(sw_extents_add(&r->extents, r->signature, i, places->n_dims, places->dims, err));
    }
    return SW_OK;
}

static bool has_places(const sw_call *call)
{
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        if (call->in[i] != NULL && call->in[i]->places != NULL)
            return true;
    }
    return false;
}

sw_status sw_rule_apply(const sw_call *call, const sw_places **out, sw_error *err)
{
    rule r = {.call = call, .signature = call->signature};
    axis_result results[SW_PLACES_MAX_AXES] = {{0}};

    if (!has_places(call))
        return SW_OK;
    SW_TRY(read_inputs(&r, err));
    for (r.axis = 0; r.axis < places_of(&r, 0)->n_axes; r.axis++) {
        if (!match_axis(&r, &results[r.axis]))
            return refuse(&r, err);
    }
    for (r.axis = 0; r.axis < places_of(&r, 0)->n_axes; r.axis++) {
        if (results[r.axis].kind == SW_PLACE_SHARD && !inputs_agree(&r, results[r.axis].key))
            return refuse(&r, err);
    }
    return set_outputs(&r, results, out, err);
}
