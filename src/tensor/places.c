/* Comparing what ranks hold (tensor/places.h), by the arithmetic of mesh/shard.h. */
#include "tensor/places.h"

#include <stdio.h>
#include <string.h>

#include "mesh/shard.h"

bool sw_places_same_axes(const sw_places *a, const sw_places *b)
{
    if (a->n_axes != b->n_axes)
        return false;
    for (uint32_t i = 0; i < a->n_axes; i++) {
        if (a->axis[i] != b->axis[i] || a->size[i] != b->size[i])
            return false;
    }
    return true;
}

void sw_places_text(const sw_places *places, char text[SW_PLACES_TEXT])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < places->n_axes; i++) {
        char on[64];
        size_t at = strlen(text);
        (void)sw_placement_text(&places->on[i], on, sizeof on);
        (void)snprintf(text + at, SW_PLACES_TEXT - at, "%s%s=%s", i == 0 ? "" : " ",
                       sw_axis_name(places->axis[i]), on);
    }
}

enum { MOST_PIECES = 64 }; /* of one rank's part of a dim; with more the answer is no */

typedef struct part {
    const sw_places_dim *of;
    uint64_t extent; /* that the outer axes have left */
    sw_range pieces[MOST_PIECES];
    uint32_t n_pieces;
} part;

static sw_placement on_axis(const sw_places_dim *d, uint32_t axis)
{
    sw_placement on = d->places->on[axis];
    bool is_cut_here = on.kind == SW_PLACE_SHARD && on.dim == (int32_t)d->dim;
    return is_cut_here ? on : (sw_placement){.kind = SW_PLACE_REPLICATE};
}

static bool find_pieces(part *p, uint32_t axis, uint32_t index)
{
    sw_placement on = on_axis(p->of, axis);
    return sw_shard_pieces(&on, p->extent, p->of->places->size[axis], index, p->pieces, MOST_PIECES,
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
    if (axis == a->of->places->n_axes)
        return true;
    part mine = *a;
    part other = *b;
    for (uint32_t i = 0; i < a->of->places->size[axis]; i++) {
        if (!find_pieces(&mine, axis, i) || !find_pieces(&other, axis, i) || !compare(&mine, &other))
            return false;
        part inner = {.of = a->of, .extent = rows_of(&mine)};
        part other_inner = {.of = b->of, .extent = rows_of(&other)};
        if (!hold_from(&inner, &other_inner, axis + 1, compare)) /* NOLINT(misc-no-recursion): three axes */
            return false;
    }
    return true;
}

static bool hold(const sw_places_dim *a, const sw_places_dim *b, compare_fn *compare)
{
    part mine = {.of = a, .extent = a->places->dims[a->dim]};
    part other = {.of = b, .extent = b->places->dims[b->dim]};
    return hold_from(&mine, &other, 0, compare);
}

bool sw_places_agree(const sw_places_dim *a, const sw_places_dim *b)
{
    return hold(a, b, same_pieces);
}

bool sw_places_serves(const sw_places_dim *a, const sw_places_dim *b)
{
    return hold(a, b, serves);
}
