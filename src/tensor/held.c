/* Comparing what ranks hold (tensor/held.h), by the arithmetic of mesh/shard.h. */
#include "tensor/held.h"

#include "mesh/shard.h"

enum { MOST_PIECES = 64 }; /* of one rank's part of a dim; with more the answer is no */

typedef struct part {
    const sw_held_dim *of;
    uint64_t extent; /* that the outer axes have left */
    sw_range pieces[MOST_PIECES];
    uint32_t n_pieces;
} part;

static sw_placement on_axis(const sw_held_dim *d, uint32_t axis)
{
    sw_placement on = d->layout->on[axis];
    bool is_cut_here = on.kind == SW_PLACE_SHARD && on.dim == (int32_t)d->dim;
    return is_cut_here ? on : (sw_placement){.kind = SW_PLACE_REPLICATE};
}

static bool find_pieces(part *p, uint32_t axis, uint32_t index)
{
    sw_placement on = on_axis(p->of, axis);
    return sw_shard_pieces(&on, p->extent, p->of->layout->grid.size[axis], index, p->pieces, MOST_PIECES,
                           &p->n_pieces, NULL) == SW_OK;
}

static uint64_t rows_of(const part *p)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < p->n_pieces; i++)
        n += p->pieces[i].end - p->pieces[i].begin;
    return n;
}

static bool same_pieces(const part *a, const part *b)
{
    if (a->n_pieces != b->n_pieces)
        return false;
    for (uint32_t i = 0; i < a->n_pieces; i++) {
        if (a->pieces[i].begin * a->of->rows != b->pieces[i].begin * b->of->rows ||
            a->pieces[i].end * a->of->rows != b->pieces[i].end * b->of->rows)
            return false;
    }
    return true;
}

static bool serves(const part *a, const part *b)
{
    if (rows_of(a) == 0 || same_pieces(a, b))
        return true;
    return a->n_pieces == 1 && rows_of(b) == 1 &&
           a->pieces[0].begin * a->of->rows >= b->pieces[0].begin * b->of->rows &&
           a->pieces[0].end * a->of->rows <= b->pieces[0].end * b->of->rows;
}

typedef bool compare_fn(const part *a, const part *b);

/* On all ranks of this axis and the inner ones, given what the outer ones left. */
static bool hold_from(const part *a, const part *b, uint32_t axis, compare_fn *compare)
{
    if (axis == a->of->layout->grid.n_axes)
        return true;
    part mine = *a;
    part other = *b;
    for (uint32_t i = 0; i < a->of->layout->grid.size[axis]; i++) {
        if (!find_pieces(&mine, axis, i) || !find_pieces(&other, axis, i) || !compare(&mine, &other))
            return false;
        part inner = {.of = a->of, .extent = rows_of(&mine)};
        part other_inner = {.of = b->of, .extent = rows_of(&other)};
        if (!hold_from(&inner, &other_inner, axis + 1, compare)) /* NOLINT(misc-no-recursion): three axes */
            return false;
    }
    return true;
}

static bool hold(const sw_held_dim *a, const sw_held_dim *b, compare_fn *compare)
{
    part mine = {.of = a, .extent = a->layout->dims[a->dim]};
    part other = {.of = b, .extent = b->layout->dims[b->dim]};
    return hold_from(&mine, &other, 0, compare);
}

bool sw_held_agree(const sw_held_dim *a, const sw_held_dim *b)
{
    return hold(a, b, same_pieces);
}

bool sw_held_serves(const sw_held_dim *a, const sw_held_dim *b)
{
    return hold(a, b, serves);
}
