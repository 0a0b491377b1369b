/* Steps as loops over elements (tests/support/simulate.h). */
#include "simulate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rank's view of a step that all take. */
typedef struct part {
    const sw_grid *grid;
    const sw_list_step *const *steps;
    double *const *in;
    double *out;
    uint32_t rank;
    const sw_list_step *step; /* of the rank */
} part;

static uint64_t elems_of(const uint64_t *dims, uint32_t n_dims)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < n_dims; d++)
        n *= dims[d];
    return n;
}

static void index_of(uint64_t flat, const uint64_t *dims, uint32_t n_dims, uint64_t *index)
{
    for (uint32_t d = n_dims; d-- > 0;) {
        index[d] = flat % dims[d];
        flat /= dims[d];
    }
}

static uint64_t flat_of(const uint64_t *index, const uint64_t *dims, uint32_t n_dims)
{
    uint64_t flat = 0;
    for (uint32_t d = 0; d < n_dims; d++)
        flat = flat * dims[d] + index[d];
    return flat;
}

/* ---- ranks ---- */

static uint32_t coord_of(const sw_grid *grid, uint32_t rank, uint32_t axis)
{
    for (uint32_t a = grid->n_axes; a-- > axis + 1;)
        rank /= grid->size[a];
    return rank % grid->size[axis];
}

static bool differs_only_in(const sw_grid *grid, uint32_t axes, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < grid->n_axes; i++) {
        if ((axes >> i & 1) == 0 && coord_of(grid, a, i) != coord_of(grid, b, i))
            return false;
    }
    return true;
}

/* Ranks that take part with the rank, ascending. */
static uint32_t group_of(const part *p, uint32_t *members)
{
    uint32_t all = 1;
    uint32_t n = 0;
    for (uint32_t a = 0; a < p->grid->n_axes; a++)
        all *= p->grid->size[a];
    for (uint32_t rank = 0; rank < all; rank++) {
        if (differs_only_in(p->grid, p->step->axes, p->rank, rank))
            members[n++] = rank;
    }
    return n;
}

static uint32_t place_in(const uint32_t *members, uint32_t n, uint32_t rank)
{
    uint32_t i = 0;
    while (i < n && members[i] != rank)
        i++;
    return i;
}

/* ---- rows ---- */

static uint64_t row_of(const sw_rows *rows, uint64_t place)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        uint64_t n = rows->ranges[i].end - rows->ranges[i].begin;
        if (place < n)
            return rows->ranges[i].begin + place;
        place -= n;
    }
    return UINT64_MAX;
}

/* ---- steps ---- */

static void local_step(const part *p)
{
    const sw_list_step *step = p->step;
    uint64_t index[SW_LAYOUT_MAX_DIMS] = {0};
    uint64_t box[SW_LAYOUT_MAX_DIMS];

    memset(p->out, 0, elems_of(step->out, step->n_dims) * sizeof *p->out);
    if (step->kind == SW_STEP_KEEP) {
        if (step->is_kept)
            memcpy(p->out, p->in[p->rank], elems_of(step->in, step->n_dims) * sizeof *p->out);
        return;
    }
    memcpy(box, step->in, sizeof box);
    box[step->dim] = step->from.count;
    for (uint64_t i = 0; i < elems_of(box, step->n_dims); i++) {
        index_of(i, box, step->n_dims, index);
        uint64_t place = index[step->dim];
        index[step->dim] = row_of(&step->from, place);
        double value = p->in[p->rank][flat_of(index, step->in, step->n_dims)];
        index[step->dim] = row_of(&step->to, place);
        p->out[flat_of(index, step->out, step->n_dims)] = value;
    }
}

static double input_of(const part *p, uint32_t rank, const uint64_t *index)
{
    return p->in[rank][flat_of(index, p->steps[rank]->in, p->step->n_dims)];
}

static uint64_t chunk_of(uint64_t extent, uint32_t parts)
{
    return extent / parts + (extent % parts != 0);
}

/* The element at `index` of the result, which it may change. */
static double collected(const part *p, uint64_t *index, const uint32_t *members, uint32_t n)
{
    const sw_list_step *step = p->step;
    uint32_t me = place_in(members, n, p->rank);
    uint64_t chunk = chunk_of(step->extent, n);
    double sum = 0;

    if (step->kind == SW_STEP_ALL_GATHER) {
        uint64_t from = index[step->dim] / chunk;
        index[step->dim] %= chunk;
        return input_of(p, members[from], index);
    }
    if (step->kind == SW_STEP_ALL_TO_ALL) {
        uint64_t other = chunk_of(step->other_extent, n);
        uint64_t from = index[step->other_dim] / other;
        index[step->other_dim] %= other;
        index[step->dim] += me * chunk;
        return input_of(p, members[from], index);
    }
    if (step->kind == SW_STEP_REDUCE_SCATTER)
        index[step->dim] += me * chunk;
    for (uint32_t i = 0; i < n; i++)
        sum += input_of(p, members[i], index);
    return sum;
}

static void box_index(const sw_box *box, uint64_t i, uint32_t n_dims, uint64_t *index)
{
    uint64_t counts[SW_LAYOUT_MAX_DIMS] = {0};
    for (uint32_t d = 0; d < n_dims; d++)
        counts[d] = box->along[d].count;
    index_of(i, counts, n_dims, index);
    for (uint32_t d = 0; d < n_dims; d++)
        index[d] = row_of(&box->along[d], index[d]);
}

static bool exchanged(const part *p, const uint32_t *members, uint32_t n)
{
    const sw_exchange *mine = p->step->exchange;
    uint32_t n_dims = p->step->n_dims;
    uint64_t n_out = elems_of(p->step->out, n_dims);
    uint8_t *times = calloc(n_out + 1, 1);
    uint64_t index[SW_LAYOUT_MAX_DIMS] = {0};
    bool fits = times != NULL && mine->n_members == n && place_in(members, n, p->rank) == mine->me;

    memset(p->out, 0, n_out * sizeof *p->out);
    for (uint32_t s = 0; s < n && fits; s++) {
        const sw_box *sent = &p->steps[members[s]]->exchange->sent[mine->me];
        const sw_box *received = &mine->received[s];
        fits = sent->elems == received->elems;
        for (uint64_t i = 0; i < sent->elems && fits; i++) {
            box_index(sent, i, n_dims, index);
            double value = input_of(p, members[s], index);
            box_index(received, i, n_dims, index);
            uint64_t at = flat_of(index, p->step->out, n_dims);
            p->out[at] += value;
            times[at]++;
        }
    }
    for (uint64_t i = 0; i < n_out && fits; i++)
        fits = (times[i] >= 1 || mine->has_gaps) && (times[i] <= 1 || mine->is_added);
    free(times);
    return fits;
}

static bool belongs(const part *p, const uint32_t *members, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const sw_list_step *other = p->steps[members[i]];
        if (other->kind != p->step->kind || other->axes != p->step->axes || other->dim != p->step->dim ||
            other->other_dim != p->step->other_dim)
            return false;
    }
    return true;
}

static bool run(const part *p)
{
    uint32_t members[SIMULATE_MAX_RANKS];
    uint64_t index[SW_LAYOUT_MAX_DIMS] = {0};
    uint32_t n = group_of(p, members);

    if (!belongs(p, members, n))
        return false;
    switch (p->step->kind) {
    case SW_STEP_SLICE:
    case SW_STEP_PAD:
    case SW_STEP_KEEP:
        local_step(p);
        return true;
    case SW_STEP_EXCHANGE:
        return exchanged(p, members, n);
    default:
        break;
    }
    for (uint64_t i = 0; i < elems_of(p->step->out, p->step->n_dims); i++) {
        index_of(i, p->step->out, p->step->n_dims, index);
        p->out[i] = collected(p, index, members, n);
    }
    return true;
}

bool simulate_step(const sw_grid *grid, const sw_list_step *const *steps, double *const *in,
                   double *const *out)
{
    uint32_t n_ranks = sw_grid_ranks(grid, UINT32_MAX);

    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        const part p = {grid, steps, in, out[rank], rank, steps[rank]};
        if (!run(&p)) {
            (void)fprintf(stderr, "rank %" PRIu32 ": step %s does not fit the others'\n", rank,
                          sw_step_kind_name(steps[rank]->kind));
            return false;
        }
    }
    return true;
}

bool simulate_list(const sw_grid *grid, const sw_step_list *const *lists, double **tensors)
{
    uint32_t n_ranks = sw_grid_ranks(grid, UINT32_MAX);

    for (uint32_t i = 0; i < lists[0]->n; i++) {
        const sw_list_step *steps[SIMULATE_MAX_RANKS] = {0};
        double *out[SIMULATE_MAX_RANKS] = {0};
        for (uint32_t rank = 0; rank < n_ranks; rank++) {
            if (lists[rank]->n != lists[0]->n)
                return false;
            steps[rank] = &lists[rank]->steps[i];
            if (i > 0 && memcmp(steps[rank]->in, steps[rank][-1].out, sizeof steps[rank]->in) != 0)
                return false;
            out[rank] = calloc(elems_of(steps[rank]->out, steps[rank]->n_dims) + 1, sizeof **out);
            if (out[rank] == NULL)
                return false;
        }
        if (!simulate_step(grid, steps, tensors, out))
            return false;
        for (uint32_t rank = 0; rank < n_ranks; rank++) {
            free(tensors[rank]);
            tensors[rank] = out[rank];
        }
    }
    return true;
}
