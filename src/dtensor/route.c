/*
 * Search of a route (dtensor/route.h). Three axes can change in 13 ways (orders of groups), so all are tried.
 *
 * A collective over one axis is right only if the axis is the innermost of those that cut the dim in
 * question: what is put together, or cut, is then a run of the outer axis' piece. That is all the table of
 * collectives needs; whatever is not in it is an exchange.
 */
#include "dtensor/route.h"

#include "base/status.h"

/* Kinds of placement on one axis. Cut: with segments, replicas or units, of which no collective knows. */
typedef enum form { WHOLE, PARTIAL, SHARD, CUT, FORM_COUNT } form;

#define NONE SW_STEP_EXCHANGE

// clang-format off
static const sw_step_kind step_of[FORM_COUNT][FORM_COUNT] = {
    /* to:          WHOLE                PARTIAL        SHARD                   CUT          */
    [WHOLE]   = {   NONE,                SW_STEP_KEEP,  SW_STEP_SLICE,          SW_STEP_SLICE },
    [PARTIAL] = {   SW_STEP_ALL_REDUCE,  NONE,          SW_STEP_REDUCE_SCATTER, NONE },
    [SHARD]   = {   SW_STEP_ALL_GATHER,  SW_STEP_PAD,   SW_STEP_ALL_TO_ALL,     NONE },
    [CUT]     = {   NONE,                SW_STEP_PAD,   NONE,                   NONE },
};

static const char *const kind_names[] = {
    [SW_STEP_SLICE] = "slice",
    [SW_STEP_PAD] = "pad",
    [SW_STEP_KEEP] = "keep",
    [SW_STEP_ALL_GATHER] = "all_gather",
    [SW_STEP_REDUCE_SCATTER] = "reduce_scatter",
    [SW_STEP_ALL_REDUCE] = "all_reduce",
    [SW_STEP_ALL_TO_ALL] = "all_to_all",
    [SW_STEP_EXCHANGE] = "exchange",
};
// clang-format on

_Static_assert(SW_COUNT(kind_names) == SW_STEP_KIND_COUNT_, "a name for every kind of step");

typedef struct price {
    uint64_t peak; /* elements of the largest tensor between */
    uint32_t n_exchanges;
    double traffic; /* elements that a rank gets, roughly */
} price;

typedef struct search {
    const sw_tensor_layout *to;
    sw_route *best;
    price best_price;
    bool has_best;
} search;

const char *sw_step_kind_name(sw_step_kind kind)
{
    return (unsigned)kind < SW_STEP_KIND_COUNT_ ? kind_names[kind] : NULL;
}

static form form_of(const sw_tensor_layout *layout, uint32_t a)
{
    if (layout->on[a].kind != SW_PLACE_SHARD)
        return layout->is_summed[a] ? PARTIAL : WHOLE;
    return layout->on[a].cut == NULL ? SHARD : CUT;
}

/* Does no axis inside of `a` cut the dim that `a` cuts? */
static bool is_innermost(const sw_tensor_layout *layout, uint32_t a)
{
    for (uint32_t inner = a + 1; inner < layout->grid.n_axes; inner++) {
        if (layout->on[a].kind == SW_PLACE_SHARD && layout->on[inner].kind == SW_PLACE_SHARD &&
            layout->on[inner].dim == layout->on[a].dim)
            return false;
    }
    return true;
}

static sw_step_kind kind_of(const sw_tensor_layout *from, const sw_tensor_layout *to, uint32_t changed)
{
    uint32_t a = 0;

    while (changed != 1U << a) {
        if (++a == from->grid.n_axes) /* several axes at once */
            return SW_STEP_EXCHANGE;
    }
    if (!is_innermost(from, a) || !is_innermost(to, a))
        return SW_STEP_EXCHANGE;
    return step_of[form_of(from, a)][form_of(to, a)];
}

static sw_tensor_layout changed_on(const sw_tensor_layout *from, const sw_tensor_layout *to, uint32_t changed)
{
    sw_tensor_layout between = *from;

    for (uint32_t a = 0; a < from->grid.n_axes; a++) {
        if ((changed >> a & 1) == 0)
            continue;
        between.on[a] = to->on[a];
        between.is_summed[a] = to->is_summed[a];
    }
    return between;
}

/* Ranks whose summands a rank gets of each element. */
static double summands(const sw_tensor_layout *from, uint32_t changed)
{
    double n = 1;

    for (uint32_t a = 0; a < from->grid.n_axes; a++) {
        if ((changed >> a & 1) != 0 && from->is_summed[a])
            n *= from->grid.size[a];
    }
    return n;
}

static double traffic_of(sw_step_kind kind, const sw_tensor_layout *from, const sw_tensor_layout *to,
                         uint32_t changed)
{
    double before = (double)sw_tensor_layout_elems(from, (sw_grid_coord){{0}});
    double after = (double)sw_tensor_layout_elems(to, (sw_grid_coord){{0}});

    switch (kind) {
    case SW_STEP_ALL_GATHER:
        return after - before;
    case SW_STEP_REDUCE_SCATTER:
        return before - after;
    case SW_STEP_ALL_REDUCE:
        return 2 * before;
    case SW_STEP_ALL_TO_ALL:
        return after;
    case SW_STEP_EXCHANGE:
        return after * summands(from, changed);
    default:
        return 0;
    }
}

static bool is_cheaper(const price *a, const price *b)
{
    if (a->peak != b->peak)
        return a->peak < b->peak;
    if (a->n_exchanges != b->n_exchanges)
        return a->n_exchanges < b->n_exchanges;
    return a->traffic < b->traffic;
}

/*
 * Every way from `from`, the axes in `left` still to be changed. Larger groups come first, then inner axes:
 * of routes that cost the same the one found first stays.
 */
static void try_all(search *s, const sw_tensor_layout *from, uint32_t left, const sw_route *so_far,
                    const price *paid)
{
    if (left == 0) {
        if (!s->has_best || is_cheaper(paid, &s->best_price)) {
            *s->best = *so_far;
            s->best_price = *paid;
            s->has_best = true;
        }
        return;
    }
    for (uint32_t changed = left; changed != 0; changed = (changed - 1) & left) {
        sw_route longer = *so_far;
        price now = *paid;
        sw_leg *leg = &longer.legs[longer.n++];
        leg->changed = changed;
        leg->to = changed_on(from, s->to, changed);
        leg->kind = kind_of(from, &leg->to, changed);
        if (!sw_tensor_layout_fits(&leg->to)) /* a cut that counts on what another axis has left or leaves */
            continue;
        uint64_t elems = sw_tensor_layout_elems(&leg->to, (sw_grid_coord){{0}});
        now.peak = elems > now.peak ? elems : now.peak;
        now.n_exchanges += leg->kind == SW_STEP_EXCHANGE;
        now.traffic += traffic_of(leg->kind, from, &leg->to, changed);
        try_all(s, &leg->to, left & ~changed, &longer, &now);
    }
}

void sw_route_find(sw_route *out, const sw_tensor_layout *from, const sw_tensor_layout *to)
{
    search s = {.to = to, .best = out};
    sw_route none = {0};
    price nothing = {0};
    uint32_t left = 0;

    for (uint32_t a = 0; a < from->grid.n_axes; a++)
        left |= sw_tensor_layout_same_on(from, to, a) ? 0 : 1U << a;
    /* What must be there anyway, at the ends, is no loss. */
    uint64_t before = sw_tensor_layout_elems(from, (sw_grid_coord){{0}});
    uint64_t after = sw_tensor_layout_elems(to, (sw_grid_coord){{0}});
    nothing.peak = before > after ? before : after;
    try_all(&s, from, left, &none, &nothing);
}
