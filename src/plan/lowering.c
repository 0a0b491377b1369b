/*
 * The lowering table. Rows read: from, to, what the forward does, what the backward does when the consumer is
 * whole and when it is split over the axis. With one logical loss (design: gradients are summed, never
 * averaged) the gradient of a whole tensor that a split region consumes is a partial sum, that of a whole
 * consumer is whole.
 */
#include "plan/lowering.h"

#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/intern.h"

#define R SW_PLACE_REPLICATE
#define S SW_PLACE_SHARD
#define P SW_PLACE_PARTIAL

// clang-format off
static const struct lowering {
    sw_placement_kind from, to;
    bool same_dim; /* for S to S */
    sw_collective forward, whole_backward, split_backward;
} lowerings[] = {
    /* from to same   forward                 backward, whole          backward, split        */
    {  R,   R, true,  SW_COLL_NONE,           SW_COLL_NONE,            SW_COLL_ALL_REDUCE     },
    {  R,   S, true,  SW_COLL_SLICE,          SW_COLL_ALL_GATHER,      SW_COLL_ALL_GATHER     },
    {  S,   R, true,  SW_COLL_ALL_GATHER,     SW_COLL_SLICE,           SW_COLL_REDUCE_SCATTER },
    {  S,   S, true,  SW_COLL_NONE,           SW_COLL_NONE,            SW_COLL_NONE           },
    {  S,   S, false, SW_COLL_ALL_TO_ALL,     SW_COLL_ALL_TO_ALL,      SW_COLL_ALL_TO_ALL     },
    {  P,   R, true,  SW_COLL_ALL_REDUCE,     SW_COLL_NONE,            SW_COLL_ALL_REDUCE     },
    {  P,   S, true,  SW_COLL_REDUCE_SCATTER, SW_COLL_ALL_GATHER,      SW_COLL_ALL_GATHER     },
    {  P,   P, true,  SW_COLL_NONE,           SW_COLL_NONE,            SW_COLL_NONE           },
};

static const char *const collective_names[] = {
    [SW_COLL_NONE] = "none",
    [SW_COLL_ALL_GATHER] = "all_gather",
    [SW_COLL_REDUCE_SCATTER] = "reduce_scatter",
    [SW_COLL_ALL_REDUCE] = "all_reduce",
    [SW_COLL_ALL_TO_ALL] = "all_to_all",
    [SW_COLL_SLICE] = "slice",
};
// clang-format on

_Static_assert(SW_COUNT(collective_names) == SW_COLL_COUNT_, "a name for every collective");

const char *sw_collective_name(sw_collective collective)
{
    return (unsigned)collective < SW_COLL_COUNT_ ? collective_names[collective] : NULL;
}

sw_transition sw_lower(sw_placement from, sw_placement to, bool is_split)
{
    bool same = from.kind != S || to.kind != S || from.dim == to.dim;

    for (size_t i = 0; i < SW_COUNT(lowerings); i++) {
        const struct lowering *l = &lowerings[i];
        if (l->from != from.kind || l->to != to.kind || l->same_dim != same)
            continue;
        return (sw_transition){.forward = l->forward,
                               .backward = is_split ? l->split_backward : l->whole_backward,
                               .dim = to.kind == S ? to.dim : from.dim,
                               .other_dim = from.dim,
                               .is_known = true};
    }
    return (sw_transition){0};
}

/* The spec whose stored tensor a tied alias uses, or the spec itself. */
static const sw_spec *stored_by(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; spec->is_tied_alias && i < plan->n_tied; i++) {
        const sw_spec *other = sw_plan_find_user(plan, plan->tied[i].first);
        if (other != NULL && !other->is_tied_alias)
            return other;
    }
    return spec;
}

bool sw_spec_is_split(const sw_plan *plan, const sw_spec *spec, int axis)
{
    spec = stored_by(plan, spec);
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        if ((f->places.present & (1U << axis)) != 0 && f->places.on[axis].kind == SW_PLACE_SHARD)
            return true;
    }
    return false;
}

static const sw_axis axis_of[SW_ON_COUNT_] = {
    [SW_ON_CP] = SW_AXIS_CP, [SW_ON_EP] = SW_AXIS_EP, [SW_ON_TP] = SW_AXIS_TP};

static void impossible(sw_plan *plan, const sw_spec *spec, const char *arg, int axis,
                       const sw_placement *from, const sw_placement *to)
{
    char a[64];
    char b[64];

    (void)sw_placement_text(from, a, sizeof a);
    (void)sw_placement_text(to, b, sizeof b);
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "impossible_transition", spec->fqn, spec->fqn_length,
                        "a whole or cut tensor cannot become a partial sum: change in_dst or out_dst",
                        "%s over %s: no collective turns %s into %s", arg, sw_axis_name(axis_of[axis]), a, b);
}

/* Does the boundary hand on a partial sum for an enclosing one to finish? */
static bool leaves_partial(const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->out_dst.n; i++) {
        if (spec->out_dst.entries[i].places.on[SW_ON_TP].kind == SW_PLACE_PARTIAL)
            return true;
    }
    return false;
}

/*
 * What a whole input is used for: in parts, when the region is cut over the axis. Token ids carry no
 * gradient. Over ep only the routed path is in parts: its sums, forward and backward, are inside the region
 * (spec->inner). A shared expert that gets what its block has gathered leaves the sum of that input's
 * gradient to the block, as it leaves its output: summing it here too would count it tp times.
 */
static bool consumes_in_parts(const sw_plan *plan, const sw_spec *spec, int axis)
{
    return axis != SW_ON_EP && spec->type != SW_BOUNDARY_EMBED && !leaves_partial(spec) &&
           sw_spec_is_split(plan, spec, axis);
}

/*
 * The axes of one tensor in the order of their rows: those over which it is put together, inner axis first,
 * then the others, outer axis first. What is cut over cp and then tp is put together in the opposite order.
 */
static void order_axes(const sw_io_entry *src, const sw_io_entry *dst, int *axes)
{
    int n = 0;

    for (int axis = SW_ON_COUNT_ - 1; axis >= 0; axis--) {
        if (sw_lower(src->places.on[axis], dst->places.on[axis], false).forward == SW_COLL_ALL_GATHER)
            axes[n++] = axis;
    }
    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        if (sw_lower(src->places.on[axis], dst->places.on[axis], false).forward != SW_COLL_ALL_GATHER)
            axes[n++] = axis;
    }
}

static sw_status lower_entry(sw_plan *plan, sw_spec *spec, const sw_io_entry *src, const sw_io_entry *dst,
                             bool is_input, uint32_t position, sw_error *err)
{
    sw_lowered **rows = is_input ? &spec->lower_in : &spec->lower_out;
    uint32_t *n = is_input ? &spec->n_lower_in : &spec->n_lower_out;
    uint32_t capacity = *n;
    int axes[SW_ON_COUNT_] = {0};

    order_axes(src, dst, axes);
    for (int i = 0; i < SW_ON_COUNT_; i++) {
        int axis = axes[i];
        bool said = ((src->places.present | dst->places.present) & (1U << axis)) != 0;
        sw_placement from = src->places.on[axis];
        sw_placement to = dst->places.on[axis];
        if (!said)
            continue;
        sw_transition t = sw_lower(from, to, is_input && consumes_in_parts(plan, spec, axis));
        if (!t.is_known) {
            impossible(plan, spec, src->name, axis, &from, &to);
            continue;
        }
        if (t.forward == SW_COLL_NONE && t.backward == SW_COLL_NONE)
            continue;
        if (!sw_plan_grow(plan->arena, (void **)rows, &capacity, *n, sizeof **rows))
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lowering of %s", spec->fqn);
        (*rows)[(*n)++] = (sw_lowered){.arg = src->name,
                                       .collective = t.forward,
                                       .backward = t.backward,
                                       .axis = axis_of[axis],
                                       .dim = t.dim,
                                       .other_dim = t.other_dim,
                                       .position = position};
    }
    return SW_OK;
}

static const sw_io_entry *named(const sw_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return &io->entries[i];
    }
    return NULL;
}

static uint32_t position_of(const sw_spec *spec, const char *name, uint32_t fallback)
{
    for (uint32_t i = 0; i < spec->n_out_names; i++) {
        if (strcmp(spec->out_names[i], name) == 0)
            return i;
    }
    return fallback;
}

static sw_status lower_side(sw_plan *plan, sw_spec *spec, bool is_input, sw_error *err)
{
    const sw_io *src = is_input ? &spec->in_src : &spec->out_src;
    const sw_io *dst = is_input ? &spec->in_dst : &spec->out_dst;

    for (uint32_t i = 0; i < src->n; i++) {
        const sw_io_entry *from = &src->entries[i];
        const sw_io_entry *to = named(dst, from->name);
        if (to != NULL)
            SW_TRY(lower_entry(plan, spec, from, to, is_input, position_of(spec, from->name, i), err));
    }
    return SW_OK;
}

sw_status sw_lower_plan(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        spec->lower_in = NULL;
        spec->lower_out = NULL;
        spec->n_lower_in = 0;
        spec->n_lower_out = 0;
        SW_TRY(lower_side(plan, spec, true, err));
        SW_TRY(lower_side(plan, spec, false, err));
    }
    return SW_OK;
}
