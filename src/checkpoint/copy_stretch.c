/*
 * Stretches of a dim (checkpoint/copy_stretch.h). Invariant: a stretch lies wholly inside or wholly outside
 * every range of every source, so whoever holds its first row holds all of it, one row after the other.
 */
#include "checkpoint/copy_stretch.h"

#include <stdlib.h>

#include "base/status.h"

typedef struct cutter {
    sw_copy_dim *dim;
    const sw_pieces *sources;
    uint32_t n_sources;
    uint64_t *ends; /* of all ranges of the sources, ascending, each once */
    size_t n_ends;
    sw_range *cut; /* the rows of each stretch */
    sw_arena *arena;
    sw_error *err;
} cutter;

static sw_status no_memory(const cutter *of)
{
    return sw_arena_fail(of->arena, "a plan of copying", of->err);
}

static int compare_ends(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;

    return *left < *right ? -1 : *left > *right;
}

static sw_status list_ends(cutter *of)
{
    size_t n = 0;

    for (uint32_t s = 0; s < of->n_sources; s++)
        n += of->sources[s].n;
    of->ends = sw_arena_alloc(of->arena, 2 * n * sizeof *of->ends);
    if (of->ends == NULL)
        return no_memory(of);
    n = 0;
    for (uint32_t s = 0; s < of->n_sources; s++) {
        for (uint32_t i = 0; i < of->sources[s].n; i++) {
            of->ends[n++] = of->sources[s].ranges[i].begin;
            of->ends[n++] = of->sources[s].ranges[i].end;
        }
    }
    qsort(of->ends, n, sizeof *of->ends, compare_ends);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || of->ends[i] != of->ends[i - 1])
            of->ends[of->n_ends++] = of->ends[i];
    }
    return SW_OK;
}

/* Index of the first end above `row`. */
static size_t first_end_above(const cutter *of, uint64_t row)
{
    size_t low = 0;
    size_t high = of->n_ends;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of->ends[middle] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add_stretch(cutter *of, uint64_t begin, uint64_t end)
{
    of->dim->stretches[of->dim->n_stretches] = (sw_copy_stretch){.n_rows = end - begin};
    of->cut[of->dim->n_stretches++] = (sw_range){begin, end};
}

static sw_status cut_ranges(cutter *of, const sw_pieces *target)
{
    size_t most = target->n + of->n_ends;

    if (most > UINT32_MAX)
        return SW_FAIL(of->err, SW_E_LIMIT, "", "%zu ranges along one dim", most);
    of->cut = sw_arena_alloc(of->arena, most * sizeof *of->cut);
    of->dim->stretches = sw_arena_zero(of->arena, most, sizeof *of->dim->stretches);
    of->dim->n_stretches = 0;
    if (of->cut == NULL || of->dim->stretches == NULL)
        return no_memory(of);
    for (uint32_t i = 0; i < target->n; i++) {
        uint64_t begin = target->ranges[i].begin;
        uint64_t end = target->ranges[i].end;
        for (size_t e = first_end_above(of, begin); e < of->n_ends && of->ends[e] < end; e++) {
            add_stretch(of, begin, of->ends[e]);
            begin = of->ends[e];
        }
        add_stretch(of, begin, end);
    }
    return SW_OK;
}

/* Index of the first stretch that begins at `row` or behind it. */
static uint32_t first_stretch_from(const cutter *of, uint64_t row)
{
    uint32_t low = 0;
    uint32_t high = of->dim->n_stretches;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (of->cut[middle].begin >= row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* One range of source `s`, `before` rows of which stand in front of it: note it at the stretches inside. */
static void visit_range(const cutter *of, uint32_t s, sw_range range, uint64_t before)
{
    sw_copy_dim *dim = of->dim;

    for (uint32_t i = first_stretch_from(of, range.begin);
         i < dim->n_stretches && of->cut[i].begin < range.end; i++) {
        sw_copy_stretch *stretch = &dim->stretches[i];
        if (dim->holders != NULL) {
            uint64_t row = before + of->cut[i].begin - range.begin;
            dim->holders[stretch->first_holder + stretch->n_holders] =
                (sw_copy_holder){s, row * dim->row_bytes[s]};
        }
        stretch->n_holders++;
    }
}

/* Sources come in the order of preference, so the holders of each stretch do too. */
static void visit_sources(const cutter *of)
{
    for (uint32_t s = 0; s < of->n_sources; s++) {
        uint64_t before = 0;
        for (uint32_t i = 0; i < of->sources[s].n; i++) {
            sw_range range = of->sources[s].ranges[i];
            visit_range(of, s, range, before);
            before += range.end - range.begin;
        }
    }
}

/* Twice through the sources: to count the holders, then to write them. */
static sw_status list_holders(const cutter *of)
{
    sw_copy_dim *dim = of->dim;
    uint64_t n_holders = 0;

    dim->holders = NULL;
    visit_sources(of);
    for (uint32_t i = 0; i < dim->n_stretches; i++) {
        dim->stretches[i].first_holder = (uint32_t)n_holders;
        n_holders += dim->stretches[i].n_holders;
        dim->stretches[i].n_holders = 0;
        if (n_holders > UINT32_MAX)
            return SW_FAIL(of->err, SW_E_LIMIT, "", "more than %u pieces along one dim", UINT32_MAX);
    }
    dim->holders = sw_arena_zero(of->arena, (size_t)n_holders, sizeof *dim->holders);
    if (dim->holders == NULL)
        return no_memory(of);
    visit_sources(of);
    return SW_OK;
}

sw_status sw_copy_stretches(sw_copy_dim *dim, const sw_pieces *sources, uint32_t n_sources,
                            const sw_pieces *target, sw_arena *arena, sw_error *err)
{
    cutter of = {.dim = dim, .sources = sources, .n_sources = n_sources, .arena = arena, .err = err};

    SW_TRY(list_ends(&of));
    SW_TRY(cut_ranges(&of, target));
    return list_holders(&of);
}
