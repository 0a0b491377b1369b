/* Sums and norm of gradients over ranks (parallel/gradients.h). */
#include "parallel/gradients.h"

#include <string.h>

#include "base/arena.h"
#include "base/status.h"
#include "comm/collective.h"
#include "kernel/elementwise.h"

/* Gradients order[first] .. order[first + n - 1] in one message. */
typedef struct bucket {
    uint32_t first;
    uint32_t n;
    uint64_t n_elems;
    bool is_together; /* they lie one behind the other */
} bucket;

struct sw_gradients {
    sw_arena *arena;
    const sw_group *all;
    uint32_t n;
    sw_gradient *list;
    uint8_t *flows; /* of each: does any rank have it? */
    uint32_t *order;
    uint32_t n_summed; /* of order: those that are summed at all */
    uint32_t n_buckets;
    bucket *buckets;
    char *stage;
    double *squares; /* one a rank */
};

static sw_dtype dtype_of(const sw_gradient *g)
{
    return sw_gradient_dtype(g->storage->dtype);
}

static size_t bytes_of(const sw_gradient *g)
{
    return (size_t)g->n_elems * sw_elem_bytes(dtype_of(g));
}

/* ---- making ---- */

static bool go_together(const sw_gradient *a, const sw_gradient *b)
{
    bool is_alike = dtype_of(a) == dtype_of(b) && a->n_sums == b->n_sums;

    for (uint32_t i = 0; is_alike && i < a->n_sums; i++)
        is_alike = a->sums[i] == b->sums[i];
    return is_alike;
}

/* Put what goes together side by side: kinds in the order of their first, which are few. */
static sw_status sort(sw_gradients *g, sw_error *err)
{
    bool *is_taken = sw_arena_zero(g->arena, g->n, sizeof *is_taken);

    g->order = sw_arena_zero(g->arena, g->n, sizeof *g->order);
    if (is_taken == NULL || g->order == NULL)
        return sw_arena_fail(g->arena, "sums of gradients", err);
    for (uint32_t i = 0; i < g->n; i++) {
        if (is_taken[i] || g->list[i].n_sums == 0)
            continue;
        for (uint32_t j = i; j < g->n; j++) {
            if (is_taken[j] || !go_together(&g->list[i], &g->list[j]))
                continue;
            g->order[g->n_summed++] = j;
            is_taken[j] = true;
        }
    }
    return SW_OK;
}

static const sw_gradient *nth(const sw_gradients *g, uint32_t i)
{
    return &g->list[g->order[i]];
}

/* The bucket that begins at place `first` of the order. */
static bucket bucket_at(const sw_gradients *g, uint32_t first, size_t most)
{
    const sw_gradient *begin = nth(g, first);
    bucket b = {first, 1, begin->n_elems, true};
    size_t bytes = bytes_of(begin);

    for (uint32_t i = first + 1; i < g->n_summed; i++) {
        const sw_gradient *next = nth(g, i);
        if (!go_together(begin, next) || bytes > most || bytes_of(next) > most - bytes)
            break;
        b.is_together = b.is_together && (const char *)begin->values + bytes == (const char *)next->values;
        bytes += bytes_of(next);
        b.n_elems += next->n_elems;
        b.n++;
    }
    return b;
}

static sw_status fill_buckets(sw_gradients *g, size_t most, sw_error *err)
{
    size_t stage_bytes = 0;

    g->buckets = sw_arena_zero(g->arena, g->n_summed, sizeof *g->buckets);
    if (g->buckets == NULL)
        return sw_arena_fail(g->arena, "sums of gradients", err);
    for (uint32_t i = 0; i < g->n_summed; i += g->buckets[g->n_buckets++].n) {
        bucket b = bucket_at(g, i, most);
        size_t bytes = (size_t)b.n_elems * sw_elem_bytes(dtype_of(nth(g, i)));
        g->buckets[g->n_buckets] = b;
        if (!b.is_together && bytes > stage_bytes)
            stage_bytes = bytes;
    }
    g->stage = sw_arena_alloc(g->arena, stage_bytes);
    return g->stage == NULL ? sw_arena_fail(g->arena, "sums of gradients", err) : SW_OK;
}

static sw_status fill(sw_gradients *g, const sw_gradient *list, size_t bucket_bytes, sw_error *err)
{
    g->list = sw_arena_zero(g->arena, g->n, sizeof *g->list);
    g->flows = sw_arena_zero(g->arena, g->n, sizeof *g->flows);
    g->squares = sw_arena_zero(g->arena, g->all->size, sizeof *g->squares);
    if (g->list == NULL || g->flows == NULL || g->squares == NULL)
        return sw_arena_fail(g->arena, "sums of gradients", err);
    if (g->n > 0)
        memcpy(g->list, list, g->n * sizeof *list);
    SW_TRY(sort(g, err));
    return fill_buckets(g, bucket_bytes, err);
}

void sw_gradients_destroy(sw_gradients *gradients)
{
    if (gradients != NULL)
        sw_arena_destroy(gradients->arena); /* it is in there itself */
}

sw_status sw_gradients_create(sw_gradients **out, const sw_gradient *list, uint32_t n, const sw_group *all,
                              size_t bucket_bytes, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);
    sw_gradients *made = arena == NULL ? NULL : sw_arena_zero(arena, 1, sizeof *made);

    if (made == NULL) {
        sw_arena_destroy(arena);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for sums of gradients");
    }
    *made = (sw_gradients){.arena = arena, .all = all, .n = n};
    sw_status status = fill(made, list, bucket_bytes, err);
    if (status == SW_OK)
        *out = made;
    else
        sw_gradients_destroy(made);
    return status;
}

uint32_t sw_gradients_buckets(const sw_gradients *gradients)
{
    return gradients->n_buckets;
}

/* ---- sums ---- */

/* Zeros where another rank has a gradient and this one has none. */
static void fill_in(sw_gradients *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        g->flows[i] = g->list[i].storage->has_gradient;
    sw_all_reduce_max(g->all, g->n, SW_DTYPE_U8, g->flows, g->flows);
    for (uint32_t i = 0; i < g->n; i++) {
        if (!g->list[i].storage->has_gradient)
            memset(g->list[i].values, 0, bytes_of(&g->list[i]));
    }
    for (uint32_t i = 0; i < g->n; i++) /* a storage may have several */
        g->list[i].storage->has_gradient = g->list[i].storage->has_gradient || g->flows[i] != 0;
}

static void sum_over(const sw_gradient *g, uint64_t n_elems, void *values)
{
    for (uint32_t i = 0; i < g->n_sums; i++)
        sw_all_reduce(g->sums[i], n_elems, dtype_of(g), values, values);
}

static void move_bucket(const sw_gradients *g, const bucket *b, bool is_back)
{
    char *at = g->stage;

    for (uint32_t i = b->first; i < b->first + b->n; i++) {
        const sw_gradient *one = nth(g, i);
        if (is_back)
            memcpy(one->values, at, bytes_of(one));
        else
            memcpy(at, one->values, bytes_of(one));
        at += bytes_of(one);
    }
}

void sw_gradients_sum(sw_gradients *gradients)
{
    fill_in(gradients);
    for (uint32_t i = 0; i < gradients->n_buckets; i++) {
        const bucket *b = &gradients->buckets[i];
        const sw_gradient *first = nth(gradients, b->first);
        if (b->is_together) {
            sum_over(first, b->n_elems, first->values);
            continue;
        }
        move_bucket(gradients, b, false);
        sum_over(first, b->n_elems, gradients->stage);
        move_bucket(gradients, b, true);
    }
}

double sw_gradients_square_sum(const sw_gradients *gradients, const sw_kernel *kernel)
{
    const sw_along along = {1, gradients->all->size, 1};
    double mine = 0;
    double sum = 0;

    for (uint32_t i = 0; i < gradients->n; i++) {
        const sw_gradient *g = &gradients->list[i];
        size_t width = sw_elem_bytes(dtype_of(g));
        for (uint32_t r = 0; r < g->n_owned && g->storage->has_gradient; r++) {
            sw_range range = g->owned[r];
            mine += sw_kernel_square_sum(kernel, dtype_of(g), (const char *)g->values + range.begin * width,
                                         (size_t)(range.end - range.begin));
        }
    }
    sw_all_gather(gradients->all, &along, SW_DTYPE_F64, &mine, gradients->squares);
    for (uint32_t m = 0; m < gradients->all->size; m++)
        sum += gradients->squares[m];
    return sum;
}
