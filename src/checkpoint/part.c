/*
 * The arithmetic of parts (checkpoint/part.h). Everything walks the ranges of one dim at a time: a product
 * shares with another what its dims share, each for itself.
 */
#include "checkpoint/part.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

static sw_status no_memory(const sw_arena *arena, sw_error *err)
{
    return sw_arena_fail(arena, "the parts of a tensor", err);
}

sw_status sw_part_whole(sw_part *out, const uint64_t *dims, uint32_t n_dims, sw_arena *arena, sw_error *err)
{
    sw_pieces *along = sw_arena_zero(arena, n_dims, sizeof *along);
    sw_range *ranges = sw_arena_zero(arena, n_dims, sizeof *ranges);

    if (along == NULL || ranges == NULL)
        return no_memory(arena, err);
    for (uint32_t d = 0; d < n_dims; d++) {
        ranges[d].end = dims[d];
        along[d] = (sw_pieces){dims[d] == 0 ? 0 : 1, &ranges[d]};
    }
    *out = (sw_part){n_dims, along};
    return SW_OK;
}

sw_status sw_held_whole(const sw_held **out, const uint64_t *dims, uint32_t n_dims, sw_arena *arena,
                        sw_error *err)
{
    sw_held *held = sw_arena_zero(arena, 1, sizeof *held);

    if (held == NULL)
        return no_memory(arena, err);
    SW_TRY(sw_part_whole(&held->part, dims, n_dims, arena, err));
    held->owned = held->part;
    *out = held;
    return SW_OK;
}

uint64_t sw_part_extent(const sw_part *part, uint32_t dim)
{
    const sw_pieces *p = &part->along[dim];
    uint64_t rows = 0;

    for (uint32_t i = 0; i < p->n; i++)
        rows += p->ranges[i].end - p->ranges[i].begin;
    return rows;
}

uint64_t sw_part_elems(const sw_part *part)
{
    uint64_t elems = 1;

    for (uint32_t d = 0; d < part->n_dims; d++)
        elems *= sw_part_extent(part, d);
    return elems;
}

static uint64_t shared_rows(const sw_pieces *a, const sw_pieces *b)
{
    uint64_t rows = 0;

    for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
        const sw_range *r = &a->ranges[i];
        const sw_range *s = &b->ranges[k];
        uint64_t begin = r->begin > s->begin ? r->begin : s->begin;
        uint64_t end = r->end < s->end ? r->end : s->end;
        rows += end > begin ? end - begin : 0;
        if (r->end < s->end)
            i++;
        else
            k++;
    }
    return rows;
}

uint64_t sw_part_overlap(const sw_part *a, const sw_part *b)
{
    uint64_t elems = 1;

    for (uint32_t d = 0; d < a->n_dims && elems > 0; d++)
        elems *= a->along[d].ranges == b->along[d].ranges && a->along[d].n == b->along[d].n
                     ? sw_part_extent(a, d)
                     : shared_rows(&a->along[d], &b->along[d]);
    return elems;
}

static bool is_empty(const sw_part *part)
{
    for (uint32_t d = 0; d < part->n_dims; d++) {
        if (part->along[d].n == 0)
            return true;
    }
    return false;
}

static bool are_ranges_equal(const sw_pieces *p, const sw_pieces *q)
{
    if (p->n != q->n)
        return false;
    for (uint32_t i = 0; i < p->n && p->ranges != q->ranges; i++) {
        if (p->ranges[i].begin != q->ranges[i].begin || p->ranges[i].end != q->ranges[i].end)
            return false;
    }
    return true;
}

bool sw_part_equal(const sw_part *a, const sw_part *b)
{
    if (a->n_dims != b->n_dims)
        return false;
    if (a->along == b->along)
        return true;
    bool is_none = is_empty(a) && is_empty(b);
    for (uint32_t d = 0; d < a->n_dims; d++) {
        if (is_none ? sw_part_extent(a, d) != sw_part_extent(b, d)
                    : !are_ranges_equal(&a->along[d], &b->along[d]))
            return false;
    }
    return true;
}

bool sw_held_equal(const sw_held *a, const sw_held *b)
{
    return sw_part_equal(&a->part, &b->part) && a->is_replica == b->is_replica &&
           (a->is_replica || sw_part_equal(&a->owned, &b->owned));
}

uint64_t sw_part_box_count(const sw_part *part)
{
    uint64_t n = 1;

    if (is_empty(part))
        return 1;
    for (uint32_t d = 0; d < part->n_dims; d++)
        n *= part->along[d].n;
    return n;
}

void sw_part_box(const sw_part *part, uint64_t i, uint64_t *begin, uint64_t *extent)
{
    bool has_none = is_empty(part);

    for (uint32_t d = part->n_dims; d-- > 0;) {
        const sw_pieces *p = &part->along[d];
        if (has_none) {
            begin[d] = 0;
            extent[d] = sw_part_extent(part, d);
            continue;
        }
        const sw_range *r = &p->ranges[i % p->n];
        i /= p->n;
        begin[d] = r->begin;
        extent[d] = r->end - r->begin;
    }
}

bool sw_part_fits(const sw_part *part, const uint64_t *dims, uint32_t n_dims)
{
    if (part->n_dims != n_dims)
        return false;
    for (uint32_t d = 0; d < n_dims; d++) {
        const sw_pieces *p = &part->along[d];
        if (p->n > 0 && p->ranges[p->n - 1].end > dims[d])
            return false;
    }
    return true;
}

/* ---- from boxes ---- */

/* Boxes as given: box i has the begins and extents from i * n_dims on. */
typedef struct boxes {
    const uint64_t *begins;
    const uint64_t *extents;
    uint32_t n;
    uint32_t n_dims;
} boxes;

static sw_status not_a_product(const boxes *b, sw_error *err)
{
    return SW_FAIL(err, SW_E_FORMAT, "regions of one stored tensor are a grid, last dim fastest",
                   "its %" PRIu32 " regions are not a product of ascending ranges", b->n);
}

static bool is_same_box_in(const boxes *b, uint32_t i, uint32_t k, uint32_t d)
{
    return b->begins[(size_t)i * b->n_dims + d] == b->begins[(size_t)k * b->n_dims + d] &&
           b->extents[(size_t)i * b->n_dims + d] == b->extents[(size_t)k * b->n_dims + d];
}

/* How many ranges stand along dim `d`, when the dims behind it have `step` boxes together. */
static uint32_t count_along(const boxes *b, uint32_t d, uint32_t step)
{
    uint32_t n = 1;

    while ((uint64_t)n * step < b->n) {
        for (uint32_t e = 0; e < d; e++) {
            if (!is_same_box_in(b, 0, n * step, e))
                return n;
        }
        n++;
    }
    return n;
}

/* Every box must be the one that its number names. */
static bool is_grid(const boxes *b, const uint32_t *n_along)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t step = 1;
        for (uint32_t d = b->n_dims; d-- > 0; step *= n_along[d]) {
            if (!is_same_box_in(b, i, i / step % n_along[d] * step, d))
                return false;
        }
    }
    return true;
}

/* The ranges along a dim, touching ones as one; 0 when they do not ascend. */
static uint32_t collect(const boxes *b, uint32_t d, uint32_t n, uint32_t step, sw_range *out)
{
    uint32_t kept = 0;

    for (uint32_t k = 0; k < n; k++) {
        size_t at = (size_t)k * step * b->n_dims + d;
        sw_range r = {b->begins[at], 0};
        if (b->extents[at] == 0 || !sw_add_u64(r.begin, b->extents[at], &r.end) ||
            (kept > 0 && r.begin < out[kept - 1].end))
            return 0;
        if (kept > 0 && r.begin == out[kept - 1].end)
            out[kept - 1].end = r.end;
        else
            out[kept++] = r;
    }
    return kept;
}

static sw_status from_one(sw_part *out, const boxes *b, sw_arena *arena, sw_error *err)
{
    sw_pieces *along = sw_arena_zero(arena, b->n_dims, sizeof *along);
    sw_range *ranges = sw_arena_zero(arena, b->n_dims, sizeof *ranges);

    if (along == NULL || ranges == NULL)
        return no_memory(arena, err);
    for (uint32_t d = 0; d < b->n_dims; d++) {
        ranges[d].begin = b->begins[d];
        if (!sw_add_u64(b->begins[d], b->extents[d], &ranges[d].end))
            return SW_FAIL(err, SW_E_FORMAT, "copy the folder again", "a region ends beyond 64 bits");
        along[d] = (sw_pieces){b->extents[d] == 0 ? 0 : 1, &ranges[d]};
    }
    *out = (sw_part){b->n_dims, along};
    return SW_OK;
}

sw_status sw_part_from_boxes(sw_part *out, const uint64_t *begins, const uint64_t *extents, uint32_t n_boxes,
                             uint32_t n_dims, sw_arena *arena, sw_error *err)
{
    boxes b = {begins, extents, n_boxes, n_dims};
    uint32_t n_along[SW_MAX_DIMS];
    uint32_t step = 1;

    if (n_dims > SW_MAX_DIMS)
        return SW_FAIL(err, SW_E_LIMIT, "check that the file is right",
                       "%" PRIu32 " dims, at most %d are supported", n_dims, SW_MAX_DIMS);
    if (n_boxes == 1)
        return from_one(out, &b, arena, err);
    for (uint32_t d = n_dims; d-- > 0; step *= n_along[d])
        n_along[d] = count_along(&b, d, step);
    if (n_boxes == 0 || step != n_boxes || !is_grid(&b, n_along))
        return not_a_product(&b, err);
    sw_pieces *along = sw_arena_zero(arena, n_dims, sizeof *along);
    if (along == NULL)
        return no_memory(arena, err);
    step = 1;
    for (uint32_t d = n_dims; d-- > 0; step *= n_along[d]) {
        sw_range *ranges = sw_arena_zero(arena, n_along[d], sizeof *ranges);
        if (ranges == NULL)
            return no_memory(arena, err);
        along[d] = (sw_pieces){collect(&b, d, n_along[d], step, ranges), ranges};
        if (along[d].n == 0)
            return not_a_product(&b, err);
    }
    *out = (sw_part){n_dims, along};
    return SW_OK;
}
