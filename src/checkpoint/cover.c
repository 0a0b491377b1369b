/*
 * Does a set of parts hold each element once? One dim after the other is swept: between two neighbouring
 * bounds the same parts are there, and only these matter in the dims behind. A part that is alone needs no
 * further look, so that the usual case (a dim cut over ranks) costs one sorted pass.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/part.h"

/* Intervals that are looked at before the regions of a hostile manifest are given up. */
enum { MOST_INTERVALS = 1 << 22 };

typedef struct sweep {
    const sw_part *owners;
    uint32_t n_dims;
    uint64_t covered;
    uint64_t twice;
    uint32_t n_intervals;
} sweep;

/* A bound of a range: from here on `slot` of the set is there, or no longer. */
typedef struct bound {
    uint64_t at;
    uint32_t slot;
    bool is_end;
} bound;

/* Members of a set that are there at the moment, in any order, and where each of them stands among them. */
typedef struct present {
    uint32_t *members; /* owners */
    uint32_t *slots;   /* their numbers in the set */
    uint32_t *place;   /* of a slot */
    uint32_t n;
} present;

static int compare_bounds(const void *a, const void *b)
{
    const bound *left = a;
    const bound *right = b;

    if (left->at != right->at)
        return left->at < right->at ? -1 : 1;
    return right->is_end - left->is_end; /* what ends here is not there any more */
}

static void change(present *now, const uint32_t *set, const bound *b)
{
    if (!b->is_end) {
        now->members[now->n] = set[b->slot];
        now->slots[now->n] = b->slot;
        now->place[b->slot] = now->n++;
        return;
    }
    uint32_t hole = now->place[b->slot];
    now->n--;
    now->members[hole] = now->members[now->n];
    now->slots[hole] = now->slots[now->n];
    now->place[now->slots[hole]] = hole;
}

static uint64_t bounds_of(const sweep *s, const uint32_t *set, uint32_t n_set, uint32_t dim, bound *out)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < n_set; i++) {
        const sw_pieces *p = &s->owners[set[i]].along[dim];
        for (uint32_t k = 0; k < p->n; k++, n += 2) {
            if (out == NULL)
                continue;
            out[n] = (bound){p->ranges[k].begin, i, false};
            out[n + 1] = (bound){p->ranges[k].end, i, true};
        }
    }
    return n;
}

static sw_status look(sweep *s, uint32_t dim, const uint32_t *set, uint32_t n_set, uint64_t weight,
                      sw_error *err);

static sw_status walk(sweep *s, uint32_t dim, const uint32_t *set, bound *bounds, uint64_t n_bounds,
                      present *now, uint64_t weight, sw_error *err)
{
    qsort(bounds, n_bounds, sizeof *bounds, compare_bounds);
    for (uint64_t i = 0; i < n_bounds; i++) {
        change(now, set, &bounds[i]);
        if (i + 1 == n_bounds || bounds[i + 1].at == bounds[i].at || now->n == 0)
            continue;
        if (++s->n_intervals > MOST_INTERVALS)
            return SW_FAIL(err, SW_E_LIMIT, "no real layout has as many",
                           "its regions cross each other more than %d times", MOST_INTERVALS);
        SW_TRY(look(s, dim + 1, now->members, now->n, weight * (bounds[i + 1].at - bounds[i].at), err));
    }
    return SW_OK;
}

static sw_status look(sweep *s, uint32_t dim, const uint32_t *set, uint32_t n_set, uint64_t weight,
                      sw_error *err)
{
    if (n_set == 1 || dim == s->n_dims) {
        for (; dim < s->n_dims; dim++)
            weight *= sw_part_extent(&s->owners[set[0]], dim);
        s->covered += weight;
        s->twice += n_set > 1 ? weight : 0;
        return SW_OK;
    }
    uint64_t n_bounds = bounds_of(s, set, n_set, dim, NULL);
    bound *bounds = sw_alloc_zero(n_bounds + 1, sizeof *bounds);
    uint32_t *room = sw_alloc_zero((size_t)n_set * 3, sizeof *room);
    sw_status status = SW_OK;

    if (bounds == NULL || room == NULL) {
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the regions of a tensor");
    } else {
        present now = {room, room + n_set, room + 2 * (size_t)n_set, 0};
        (void)bounds_of(s, set, n_set, dim, bounds);
        status = walk(s, dim, set, bounds, n_bounds, &now, weight, err);
    }
    sw_free(bounds);
    sw_free(room);
    return status;
}

static sw_status look_at_all(sweep *s, uint32_t n_owners, sw_error *err)
{
    uint32_t *set = sw_alloc_zero((size_t)n_owners + 1, sizeof *set);

    if (set == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the regions of a tensor");
    for (uint32_t i = 0; i < n_owners; i++)
        set[i] = i;
    sw_status status = look(s, 0, set, n_owners, 1, err);
    sw_free(set);
    return status;
}

sw_status sw_parts_cover(const sw_part *owners, uint32_t n_owners, const uint64_t *dims, uint32_t n_dims,
                         uint64_t *covered, uint64_t *twice, sw_error *err)
{
    sweep s = {.owners = owners, .n_dims = n_dims};
    uint64_t elems = 1;

    for (uint32_t d = 0; d < n_dims; d++)
        elems *= dims[d];
    for (uint32_t i = 0; i < n_owners; i++) {
        if (!sw_part_fits(&owners[i], dims, n_dims))
            return SW_FAIL(err, SW_E_FORMAT, "copy the folder again", "a region leaves the tensor");
    }
    if (n_owners > 0)
        SW_TRY(look_at_all(&s, n_owners, err));
    *covered = s.covered;
    *twice = s.twice;
    if (s.covered == elems && s.twice == 0)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "a file is missing, or was written for another layout",
                   "%" PRIu64 " of %" PRIu64 " elements have an owner, %" PRIu64 " of them more than one",
                   s.covered, elems, s.twice);
}
