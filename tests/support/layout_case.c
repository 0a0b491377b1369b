/* Random layouts and their meaning (tests/support/layout_case.h). */
#include "layout_case.h"

#include <stdlib.h>
#include <string.h>

#include "row_owner.h"

/* ---- grids and shapes ---- */

void layout_case_grid(gen *g, sw_grid *grid, uint32_t most)
{
    static const sw_axis names[] = {SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP};

    *grid = (sw_grid){.n_axes = gen_between(g, 1, SW_GRID_MAX_AXES)};
    for (uint32_t i = 0; i < grid->n_axes; i++) {
        grid->axis[i] = names[i];
        grid->size[i] = 1;
    }
    for (uint32_t tries = 0; tries < 2 * grid->n_axes; tries++) {
        uint32_t a = gen_below(g, grid->n_axes);
        if (grid->size[a] != 1)
            continue;
        grid->size[a] = gen_between(g, 1, most);
        most /= grid->size[a];
    }
}

uint32_t layout_case_shape(gen *g, uint64_t *dims, uint64_t most)
{
    static const uint8_t extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 23, 24};
    uint32_t n_dims = gen_below(g, SW_LAYOUT_MAX_DIMS + 1);
    uint64_t elems = 1;

    for (uint32_t d = 0; d < n_dims; d++) {
        dims[d] = extents[gen_below(g, sizeof extents)];
        if (gen_below(g, 30) == 0)
            dims[d] = 0;
        while (elems * dims[d] > most)
            dims[d]--;
        elems *= dims[d] == 0 ? 1 : dims[d];
    }
    return n_dims;
}

/* ---- who holds what ---- */

uint32_t layout_case_coord(const layout_case *c, uint32_t rank, uint32_t axis)
{
    for (uint32_t a = c->grid.n_axes; a-- > axis + 1;)
        rank /= c->grid.size[a];
    return rank % c->grid.size[axis];
}

static bool cuts_dim(const layout_case *c, uint32_t axis, uint32_t dim)
{
    int32_t written = c->places[axis].dim;

    return c->places[axis].kind == SW_PLACE_SHARD &&
           (uint32_t)(written < 0 ? written + (int32_t)c->n_dims : written) == dim;
}

/* Rows of a dim that a rank is left with by the axes below `end`: `left` gets them, ascending. */
static uint64_t rows_left(layout_case *c, uint32_t rank, uint32_t dim, uint32_t end, uint64_t *left)
{
    uint64_t n = c->dims[dim];

    for (uint64_t row = 0; row < n; row++)
        left[row] = row;
    for (uint32_t a = 0; a < end; a++) {
        uint32_t index = layout_case_coord(c, rank, a);
        uint64_t kept = 0;
        if (!cuts_dim(c, a, dim))
            continue;
        for (uint64_t row = 0; row < n; row++) {
            uint32_t first = 0;
            uint32_t n_holders = 0;
            row_owners(&c->places[a], n, c->grid.size[a], row, &first, &n_holders);
            if (index < first || index >= first + n_holders)
                continue;
            c->copy[rank][a][left[row]] = index - first;
            left[kept++] = left[row];
        }
        n = kept;
    }
    return n;
}

static void find_places(layout_case *c)
{
    uint64_t left[CASE_MAX_EXTENT];

    for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
        for (uint32_t d = 0; d < c->n_dims; d++) {
            for (uint32_t row = 0; row < CASE_MAX_EXTENT; row++)
                c->place[rank][d][row] = CASE_NOT_HELD;
            c->local[rank][d] = rows_left(c, rank, d, c->grid.n_axes, left);
            for (uint64_t i = 0; i < c->local[rank][d]; i++)
                c->place[rank][d][left[i]] = (int32_t)i;
        }
    }
}

uint64_t layout_case_elems(const layout_case *c)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < c->n_dims; d++)
        n *= c->dims[d];
    return n;
}

uint64_t layout_case_local_elems(const layout_case *c, uint32_t rank)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < c->n_dims; d++)
        n *= c->local[rank][d];
    return n;
}

int64_t layout_case_at(const layout_case *c, uint32_t rank, uint64_t flat)
{
    int64_t at = 0;
    int64_t stride = 1;

    for (uint32_t d = c->n_dims; d-- > 0;) {
        int32_t place = c->place[rank][d][flat % c->dims[d]];
        if (place == CASE_NOT_HELD)
            return CASE_NOT_HELD;
        at += place * stride;
        stride *= (int64_t)c->local[rank][d];
        flat /= c->dims[d];
    }
    return at;
}

/* ---- placements ---- */

static uint32_t divisor_of(gen *g, uint64_t n)
{
    uint32_t d = gen_between(g, 1, (uint32_t)n);
    while (n % d != 0)
        d--;
    return d;
}

/* Do the outer axes leave as many rows of the dim to every rank? Then how many. */
static bool leaves_equal(layout_case *c, uint32_t axis, uint32_t dim, uint64_t *extent)
{
    uint64_t left[CASE_MAX_EXTENT];

    *extent = rows_left(c, 0, dim, axis, left);
    for (uint32_t rank = 1; rank < c->n_ranks; rank++) {
        if (rows_left(c, rank, dim, axis, left) != *extent)
            return false;
    }
    return true;
}

/* Segments that sum to `rows`, cut over `block` ranks. */
static uint32_t make_segments(gen *g, sw_segment *segments, uint64_t rows, uint32_t block)
{
    uint32_t n = 0;

    while (rows > 0 && n < CASE_MAX_SEGMENTS) {
        uint64_t extent = n + 1 == CASE_MAX_SEGMENTS ? rows : 1 + gen_below(g, (uint32_t)rows);
        segments[n++] = (sw_segment){extent, divisor_of(g, extent), divisor_of(g, block)};
        rows -= extent;
    }
    return n;
}

static void make_cut(gen *g, layout_case *c, uint32_t axis, uint32_t dim)
{
    sw_cut *cut = &c->cuts[axis];
    uint32_t parts = c->grid.size[axis];
    uint64_t extent = 0;
    bool is_equal = leaves_equal(c, axis, dim, &extent);
    uint32_t n_groups = divisor_of(g, parts);

    *cut = (sw_cut){1, 1, c->segments[axis]};
    c->places[axis].cut = cut;
    c->segments[axis][0] = (sw_segment){0, 1, divisor_of(g, parts)};
    if (!is_equal || extent == 0 || gen_below(g, 3) == 0)
        return;
    c->segments[axis][0].unit = divisor_of(g, extent);
    if (gen_below(g, 3) == 0)
        return;
    cut->n_groups = extent % n_groups == 0 ? n_groups : 1;
    cut->n_segments = make_segments(g, c->segments[axis], extent / cut->n_groups, parts / cut->n_groups);
}

void layout_case_places(gen *g, layout_case *c, const sw_grid *grid, uint32_t n_dims, const uint64_t *dims)
{
    memset(c, 0, sizeof *c);
    c->grid = *grid;
    c->n_ranks = 1;
    c->n_dims = n_dims;
    for (uint32_t d = 0; d < n_dims; d++)
        c->dims[d] = dims[d];
    for (uint32_t a = 0; a < grid->n_axes; a++)
        c->n_ranks *= grid->size[a];
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        uint32_t form = gen_below(g, 8);
        if (form == 0)
            c->places[a].kind = SW_PLACE_PARTIAL;
        c->is_summed[a] = form == 0;
        if (form <= 2 || n_dims == 0)
            continue;
        uint32_t dim = gen_below(g, gen_below(g, 2) == 0 ? 1 : n_dims); /* the same dim often */
        c->places[a] = (sw_placement){SW_PLACE_SHARD, (int32_t)dim, NULL};
        if (gen_below(g, 4) == 0)
            c->places[a].dim -= (int32_t)n_dims;
        if (form >= 6)
            make_cut(g, c, a, dim);
    }
    find_places(c);
}

void layout_case_gradient(layout_case *out, const layout_case *from, uint32_t split)
{
    *out = *from;
    for (uint32_t a = 0; a < from->grid.n_axes; a++) {
        bool is_partial = from->places[a].kind == SW_PLACE_PARTIAL;
        out->is_summed[a] = !is_partial && (split >> a & 1) != 0;
    }
}

/* ---- values ---- */

/* Which copy of element `flat` a rank that holds it has on an axis. */
static uint32_t copy_of(const layout_case *c, uint32_t rank, uint32_t axis, uint64_t flat)
{
    if (c->places[axis].kind != SW_PLACE_SHARD)
        return layout_case_coord(c, rank, axis);
    for (uint32_t d = c->n_dims; d-- > 0;) {
        if (cuts_dim(c, axis, d))
            return c->copy[rank][axis][flat % c->dims[d]];
        flat /= c->dims[d];
    }
    return 0;
}

/* Do two ranks that hold an element hold summands of it: not copies on any axis? */
static bool are_together(const layout_case *c, uint32_t a, uint32_t b, uint64_t flat)
{
    for (uint32_t i = 0; i < c->grid.n_axes; i++) {
        if (!c->is_summed[i] && copy_of(c, a, i, flat) != copy_of(c, b, i, flat))
            return false;
    }
    return true;
}

bool layout_case_are_copies(const layout_case *c, uint32_t a, uint32_t b, uint64_t flat)
{
    for (uint32_t i = 0; i < c->grid.n_axes; i++) {
        if (c->is_summed[i] && copy_of(c, a, i, flat) != copy_of(c, b, i, flat))
            return false;
    }
    return true;
}

/* A number for a summand of an element: the same for its copies. */
static double summand_of(const layout_case *c, uint64_t seed, uint32_t rank, uint64_t flat)
{
    gen g = {seed, seed + flat};

    for (uint32_t a = 0; a < c->grid.n_axes; a++)
        g.state = gen_u64(&g) + (c->is_summed[a] ? copy_of(c, rank, a, flat) : 0);
    return (double)gen_below(&g, 100) - 50;
}

void layout_case_spread(gen *g, const layout_case *c, const double *values, double **tensors)
{
    uint64_t seed = gen_u64(g);

    for (uint32_t rank = 0; rank < c->n_ranks; rank++)
        tensors[rank] = calloc(layout_case_local_elems(c, rank) + 1, sizeof **tensors);
    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            int64_t at = layout_case_at(c, rank, flat);
            double others = 0;
            bool is_first = true; /* of its summands: it takes what the others leave */
            if (at == CASE_NOT_HELD)
                continue;
            for (uint32_t other = 0; other < c->n_ranks; other++) {
                if (other == rank || layout_case_at(c, other, flat) == CASE_NOT_HELD ||
                    !are_together(c, rank, other, flat))
                    continue;
                is_first = is_first && rank < other;
                others += summand_of(c, seed, other, flat);
            }
            tensors[rank][at] = is_first ? values[flat] - others : summand_of(c, seed, rank, flat);
        }
    }
}

bool layout_case_stands_for(const layout_case *c, double *const *tensors, const double *values)
{
    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            double sum = 0;
            if (layout_case_at(c, rank, flat) == CASE_NOT_HELD)
                continue;
            for (uint32_t other = 0; other < c->n_ranks; other++) {
                int64_t at = layout_case_at(c, other, flat);
                if (at != CASE_NOT_HELD && are_together(c, rank, other, flat))
                    sum += tensors[other][at];
            }
            if (sum != values[flat])
                return false;
        }
    }
    return true;
}

bool layout_case_counts(const layout_case *c, const layout_case *gradient, uint32_t rank, uint64_t flat)
{
    for (uint32_t a = 0; a < c->grid.n_axes; a++) {
        if (!c->is_summed[a] && !gradient->is_summed[a] && copy_of(c, rank, a, flat) != 0)
            return false;
    }
    return true;
}

double layout_case_inner(const layout_case *c, double *const *tensors, const layout_case *gradient,
                         double *const *gradients)
{
    double sum = 0;

    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            int64_t at = layout_case_at(c, rank, flat);
            if (at != CASE_NOT_HELD && layout_case_counts(c, gradient, rank, flat))
                sum += tensors[rank][at] * gradients[rank][at];
        }
    }
    return sum;
}
