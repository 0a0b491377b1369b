/*
 * Phase C: a boundary's contract becomes moves around its module's forward: in_src to in_dst before it,
 * out_src to out_dst behind it. What the plan lists as lowering is for people; contracts are what is run
 * (docs/reference/lowering.md).
 */
#include "apply/phases.h"

#include <string.h>

#include "apply/wrap.h"
#include "base/status.h"

/* Segments of a name; the root has none. */
static uint32_t depth(const char *fqn)
{
    uint32_t n = *fqn != '\0';

    for (; *fqn != '\0'; fqn++)
        n += *fqn == '.';
    return n;
}

static const sw_io_entry *entry_of(const sw_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return &io->entries[i];
    }
    return NULL;
}

static void places_of(const sw_applied *a, const sw_io_entry *entry, sw_placement *out)
{
    static const sw_places whole = {0};
    sw_active_places(&a->active.grid, entry == NULL ? &whole : &entry->places, out);
}

/* ---- inputs ---- */

/* The name that an argument has in the contract: its own, or the only one there is. */
static const char *input_name(const sw_spec *spec, const sw_module *module, uint32_t i)
{
    const char *own = module->class->arguments[i];
    const sw_io *io = spec->in_src.n > 0 ? &spec->in_src : &spec->in_dst;

    if (entry_of(&spec->in_src, own) != NULL || entry_of(&spec->in_dst, own) != NULL)
        return own;
    return i == 0 && module->class->arguments[1] == NULL && io->n == 1 ? io->entries[0].name : NULL;
}

/* Axes whose ranks use a whole input for different things: the plan's backward is a sum. */
static uint32_t split_of(const sw_applied *a, const sw_spec *spec, const char *name)
{
    uint32_t split = 0;

    for (uint32_t i = 0; i < spec->n_lower_in; i++) {
        const sw_lowered *row = &spec->lower_in[i];
        bool sums = row->backward == SW_COLL_ALL_REDUCE || row->backward == SW_COLL_REDUCE_SCATTER;
        if (sums && strcmp(row->arg, name) == 0)
            split |= sw_active_axis(&a->active.grid, row->axis);
    }
    return split;
}

/* Tokens and positions come from outside, whole over all axes that do not cut the sequence for good. */
static void outside_places(const sw_applied *a, sw_placement *places)
{
    for (uint32_t k = 0; k < a->active.grid.n_axes; k++) {
        if (a->active.grid.axis[k] != SW_AXIS_CP)
            places[k] = (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    }
}

static sw_status make_input(sw_applied *a, sw_applied_boundary *b, uint32_t i, sw_error *err)
{
    const char *name = input_name(b->spec, b->module, i);
    bool is_outside = b->module == a->net->embedding || b->module == a->net->positions;
    sw_placement from[SW_GRID_MAX_AXES] = {{0}};
    sw_placement to[SW_GRID_MAX_AXES];

    if (name == NULL)
        return SW_OK;
    places_of(a, entry_of(&b->spec->in_src, name), from);
    places_of(a, entry_of(&b->spec->in_dst, name), to);
    if (is_outside)
        outside_places(a, from);
    memcpy(b->in_src[i], from, sizeof from);
    b->has_in[i] = true;
    uint32_t split = is_outside ? 0 : split_of(a, b->spec, name);
    SW_TRY(sw_moves_find(&a->moves, from, to, split, &b->in[i], err));
    sw_status status = b->in[i] == NULL ? SW_OK : sw_move_check(b->in[i], is_outside ? 2 : 3, err);
    if (status != SW_OK)
        sw_error_context(err, "%s, input %s", b->spec->fqn, name);
    return status;
}

/* ---- the output ---- */

static sw_status make_output(sw_applied *a, sw_applied_boundary *b, sw_error *err)
{
    const sw_spec *spec = b->spec;

    if (spec->out_src.n == 0)
        return SW_OK;
    b->has_out_src = true;
    places_of(a, &spec->out_src.entries[0], b->out_src);
    memcpy(b->out_dst, b->out_src, sizeof b->out_dst);
    if (spec->out_dst.n == 0)
        return SW_OK;
    places_of(a, &spec->out_dst.entries[0], b->out_dst);
    SW_TRY(sw_moves_find(&a->moves, b->out_src, b->out_dst, 0, &b->out, err));
    sw_status status = b->out == NULL ? SW_OK : sw_move_check(b->out, 3, err);
    if (status != SW_OK)
        sw_error_context(err, "%s, output %s", spec->fqn, spec->out_src.entries[0].name);
    return status;
}

/* Rows of what the head, tied or not, multiplies with. */
static uint64_t vocabulary(const sw_applied *a)
{
    const sw_held *held = a->net->head->held;
    const sw_parameter *own = held[SW_SLOT_HEAD].weight;
    const sw_parameter *p = own != NULL ? own : held[SW_SLOT_TOKENS].weight;

    return p == NULL ? a->net->settings.vocab : p->dims[0];
}

/* ---- biases behind the exit ---- */

static sw_status find_deferred(sw_applied *a, sw_applied_boundary *b, sw_error *err)
{
    const sw_spec *spec = b->spec;

    b->deferred = sw_arena_zero(a->arena, spec->n_deferred, sizeof(const sw_parameter *));
    if (b->deferred == NULL)
        return sw_arena_fail(a->arena, "deferred biases", err);
    for (uint32_t i = 0; i < spec->n_deferred; i++) {
        const char *fqn = *spec->fqn == '\0'
                              ? spec->deferred[i]
                              : sw_arena_format(a->arena, "%s.%s", spec->fqn, spec->deferred[i]);
        if (fqn == NULL)
            return sw_arena_fail(a->arena, "deferred biases", err);
        const sw_parameter *bias = sw_net_parameter(a->net, fqn);
        if (bias == NULL || bias->n_dims != 1)
            return SW_FAIL(err, SW_E_PLAN, "make the plan of this model",
                           "%s: the deferred bias %s is no bias of the net", spec->fqn, spec->deferred[i]);
        b->deferred[b->n_deferred++] = bias;
    }
    return SW_OK;
}

/* ---- all of them ---- */

static sw_status make(sw_applied *a, sw_applied_boundary *b, sw_error *err)
{
    b->width = b->module == a->net->head ? vocabulary(a) : a->net->settings.hidden;
    for (uint32_t i = 0; b->module->class->arguments[i] != NULL; i++)
        SW_TRY(make_input(a, b, i, err));
    SW_TRY(make_output(a, b, err));
    SW_TRY(find_deferred(a, b, err));
    b->wrap = sw_apply_wrap_of(b);
    return SW_OK;
}

sw_status sw_apply_boundaries(sw_applied *a, sw_error *err)
{
    const sw_plan *plan = a->plan;
    uint32_t deepest = 0;

    a->boundaries = sw_arena_zero(a->arena, plan->n_specs, sizeof *a->boundaries);
    if (a->boundaries == NULL)
        return sw_arena_fail(a->arena, "boundaries", err);
    for (uint32_t s = 0; s < plan->n_specs; s++)
        deepest = depth(plan->specs[s].fqn) > deepest ? depth(plan->specs[s].fqn) : deepest;
    for (uint32_t level = deepest + 1; level-- > 0;) {
        for (uint32_t s = 0; s < plan->n_specs; s++) {
            const sw_spec *spec = &plan->specs[s];
            sw_module *module = depth(spec->fqn) == level ? sw_apply_module(a, spec) : NULL;
            if (module == NULL)
                continue;
            sw_applied_boundary *b = &a->boundaries[a->n_boundaries++];
            *b = (sw_applied_boundary){.applied = a, .spec = spec, .module = module};
            SW_TRY(make(a, b, err));
        }
    }
    return SW_OK;
}
