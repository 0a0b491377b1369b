/*
 * Plans of copying (checkpoint/copy_plan.h): choose the sources, merge dims, turn everything into bytes. What
 * the sources say of their sizes is checked here, so that nobody behind has to.
 */
#include "checkpoint/copy_plan.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/status.h"
#include "checkpoint/copy_stretch.h"

/* A merged dim: tensor dim `first` and the uncut ones behind it. Rows are those of the merged dim. */
typedef struct merged_dim {
    uint32_t first;
    uint64_t inner;   /* rows that a row of `first` is */
    uint64_t divisor; /* 1; 8 where bits are counted; 0: the dim is one row of `inner` bytes */
} merged_dim;

typedef struct planner {
    sw_copy_plan *plan;
    const sw_store *store;
    const sw_store_tensor *tensor;
    const sw_part *part;
    merged_dim merged[SW_MAX_DIMS];
    sw_arena *arena;
    sw_error *err;
} planner;

static const sw_range one_row = {0, 1};
static const sw_pieces scalar_pieces = {1, &one_row};

static sw_status no_memory(const planner *plan)
{
    return sw_arena_fail(plan->arena, "a plan of copying", plan->err);
}

static sw_status fail_tensor(const planner *plan, const char *what)
{
    return SW_FAIL(plan->err, SW_E_FORMAT, "run 'shardwright verify' on it", "tensor '%.150s': %s",
                   plan->tensor->name, what);
}

/* ---- parts ---- */

/* Dims as copied: a scalar is one row. */
static uint32_t n_dims_of(const planner *plan)
{
    uint32_t n_dims = sw_store_dims(plan->tensor)->n_dims;
    return n_dims == 0 ? 1 : n_dims;
}

static uint64_t extent_of(const planner *plan, uint32_t dim)
{
    const sw_shape *shape = sw_store_dims(plan->tensor);
    return shape->n_dims == 0 ? 1 : shape->dims[dim];
}

static const sw_pieces *pieces_of(const sw_part *part, uint32_t dim)
{
    return part->n_dims == 0 ? &scalar_pieces : &part->along[dim];
}

static uint64_t rows_of(const sw_pieces *pieces)
{
    uint64_t n_rows = 0;

    for (uint32_t i = 0; i < pieces->n; i++)
        n_rows += pieces->ranges[i].end - pieces->ranges[i].begin;
    return n_rows;
}

static bool is_whole(const sw_pieces *pieces, uint64_t extent)
{
    return pieces->n == 1 && pieces->ranges[0].begin == 0 && pieces->ranges[0].end == extent;
}

static bool pieces_meet(const sw_pieces *a, const sw_pieces *b)
{
    uint32_t i = 0;
    uint32_t k = 0;

    while (i < a->n && k < b->n) {
        if (a->ranges[i].begin < b->ranges[k].end && b->ranges[k].begin < a->ranges[i].end)
            return true;
        if (a->ranges[i].end <= b->ranges[k].end)
            i++;
        else
            k++;
    }
    return false;
}

static bool parts_meet(const planner *plan, const sw_part *other)
{
    for (uint32_t d = 0; d < n_dims_of(plan); d++) {
        if (!pieces_meet(pieces_of(plan->part, d), pieces_of(other, d)))
            return false;
    }
    return true;
}

/* ---- sources ---- */

bool sw_copy_is_picked(const sw_store *store, const sw_copy_pick *pick, const sw_store_part *stored)
{
    int32_t rank = sw_copy_rank(&store->files[stored->file]);

    return pick->by_rank && rank >= 0 && (uint32_t)rank == pick->rank;
}

/* Parts that hold something of ours, in the order of preference: picked ones, then owners by their order. */
static sw_status choose_sources(planner *plan, const sw_copy_pick *pick)
{
    const sw_store_tensor *tensor = plan->tensor;
    const sw_store_part *parts = &plan->store->parts[tensor->first_part];
    sw_copy_plan *out = plan->plan;

    out->sources = sw_arena_zero(plan->arena, tensor->n_parts, sizeof *out->sources);
    if (out->sources == NULL)
        return no_memory(plan);
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < tensor->n_parts; i++) {
            bool is_first_turn = sw_copy_is_picked(plan->store, pick, &parts[i]);
            if (parts[i].is_missing || is_first_turn != (turn == 0) ||
                (parts[i].held->is_replica && !is_first_turn) || !parts_meet(plan, &parts[i].held->part))
                continue;
            const sw_store_file *file = &plan->store->files[parts[i].file];
            uint64_t begin = 0;
            uint64_t end = 0;
            if (!sw_add_u64(file->data_begin, parts[i].begin, &begin) ||
                !sw_add_u64(begin, parts[i].n_bytes, &end) || end > file->n_bytes)
                return fail_tensor(plan, "lies behind the end of its file");
            out->sources[out->n_sources++] = (sw_copy_source){i, parts[i].file, begin};
        }
    }
    return SW_OK;
}

static const sw_store_part *stored_of(const planner *plan, uint32_t source)
{
    return &plan->store->parts[plan->tensor->first_part + plan->plan->sources[source].part];
}

/* ---- merging ---- */

static bool is_cut(const planner *plan, uint32_t dim)
{
    uint64_t extent = extent_of(plan, dim);
    bool is_uncut = is_whole(pieces_of(plan->part, dim), extent);

    for (uint32_t s = 0; is_uncut && s < plan->plan->n_sources; s++)
        is_uncut = is_whole(pieces_of(&stored_of(plan, s)->held->part, dim), extent);
    return !is_uncut;
}

static sw_status fail_opaque(const planner *plan, const char *why)
{
    return SW_FAIL(plan->err, SW_E_FORMAT, "replicate it, or cut it along dim 0 only",
                   "tensor '%.150s': dtype %.32s is not known, %s", plan->tensor->name,
                   plan->tensor->dtype_word, why);
}

/*
 * Of a dtype that is not known a tensor moves whole, or by whole rows of dim 0: the sources say how many
 * bytes a row has.
 */
static sw_status measure_opaque(const planner *plan, merged_dim *last)
{
    bool moves_whole = plan->plan->n_dims == 1 && !is_cut(plan, 0);
    uint64_t ignored = 0;

    if (plan->plan->n_dims > 1)
        return fail_opaque(plan, "so its rows cannot be cut");
    for (uint32_t s = 0; s < plan->plan->n_sources; s++) {
        const sw_store_part *stored = stored_of(plan, s);
        uint64_t n_rows = moves_whole ? 1 : rows_of(pieces_of(&stored->held->part, 0));
        if (n_rows == 0 || stored->n_bytes % n_rows != 0 ||
            (s > 0 && stored->n_bytes / n_rows != last->inner))
            return fail_opaque(plan, "and its bytes are not equal rows");
        last->inner = stored->n_bytes / n_rows;
    }
    if (!sw_mul_u64(last->inner, extent_of(plan, 0), &ignored))
        return fail_tensor(plan, "is too large");
    last->divisor = moves_whole ? 0 : 1;
    return SW_OK;
}

static sw_status merge_dims(planner *plan)
{
    uint32_t bits = sw_dtype_bits(plan->tensor->dtype);
    uint32_t n_merged = 0;

    for (uint32_t d = 0; d < n_dims_of(plan); d++) {
        if (d == 0 || is_cut(plan, d))
            plan->merged[n_merged++] = (merged_dim){.first = d, .inner = 1, .divisor = 1};
        else
            plan->merged[n_merged - 1].inner *= extent_of(plan, d);
    }
    plan->plan->n_dims = n_merged;
    merged_dim *last = &plan->merged[n_merged - 1];
    if (bits == 0)
        return measure_opaque(plan, last);
    uint64_t all_bits = 0;
    if (!sw_mul_u64(sw_store_dims(plan->tensor)->elems, bits, &all_bits))
        return fail_tensor(plan, "is too large");
    last->inner *= bits;
    last->divisor = 8;
    return SW_OK;
}

/* The ranges of a part along a merged dim. */
static sw_status scale(const planner *plan, uint32_t k, const sw_part *part, sw_pieces *out)
{
    const merged_dim *merged = &plan->merged[k];
    const sw_pieces *pieces = pieces_of(part, merged->first);
    sw_range *ranges = sw_arena_alloc(plan->arena, pieces->n * sizeof *ranges);

    if (ranges == NULL)
        return no_memory(plan);
    for (uint32_t i = 0; i < pieces->n; i++) {
        if (merged->divisor == 0) {
            ranges[i] = (sw_range){0, merged->inner};
            break;
        }
        ranges[i].begin = pieces->ranges[i].begin * merged->inner;
        ranges[i].end = pieces->ranges[i].end * merged->inner;
        if (ranges[i].begin % merged->divisor != 0 || ranges[i].end % merged->divisor != 0) {
            return SW_FAIL(plan->err, SW_E_FORMAT, "cut it at an even row",
                           "tensor '%.150s': rows %" PRIu64 " to %" PRIu64 " of dim %" PRIu32
                           " in %s begin or end inside a byte",
                           plan->tensor->name, pieces->ranges[i].begin, pieces->ranges[i].end, merged->first,
                           plan->tensor->dtype_word);
        }
        ranges[i].begin /= merged->divisor;
        ranges[i].end /= merged->divisor;
    }
    *out = (sw_pieces){pieces->n, ranges};
    return SW_OK;
}

/* From the last dim outwards: bytes of a row in each source, then the stretches. */
static sw_status fill_dims(planner *plan)
{
    sw_copy_plan *out = plan->plan;
    uint64_t *source_bytes = sw_arena_alloc(plan->arena, out->n_sources * sizeof *source_bytes);
    sw_pieces *sources = sw_arena_alloc(plan->arena, out->n_sources * sizeof *sources);

    if (source_bytes == NULL || sources == NULL)
        return no_memory(plan);
    out->n_bytes = 1;
    for (uint32_t s = 0; s < out->n_sources; s++)
        source_bytes[s] = 1;
    for (uint32_t k = out->n_dims; k-- > 0;) {
        sw_copy_dim *dim = &out->dims[k];
        sw_pieces target = {0};
        dim->row_bytes = sw_arena_alloc(plan->arena, out->n_sources * sizeof *dim->row_bytes);
        if (dim->row_bytes == NULL)
            return no_memory(plan);
        for (uint32_t s = 0; s < out->n_sources; s++) {
            SW_TRY(scale(plan, k, &stored_of(plan, s)->held->part, &sources[s]));
            dim->row_bytes[s] = source_bytes[s];
            source_bytes[s] *= rows_of(&sources[s]);
        }
        SW_TRY(scale(plan, k, plan->part, &target));
        out->n_bytes *= rows_of(&target);
        SW_TRY(sw_copy_stretches(dim, sources, out->n_sources, &target, plan->arena, plan->err));
    }
    for (uint32_t s = 0; s < out->n_sources; s++) {
        if (source_bytes[s] != stored_of(plan, s)->n_bytes)
            return fail_tensor(plan, "a stored part has not the bytes of its elements");
    }
    return SW_OK;
}

sw_status sw_copy_plan_make(sw_copy_plan *out, const sw_store *store, const sw_store_tensor *tensor,
                            const sw_part *part, const sw_copy_pick *pick, sw_arena *arena, sw_error *err)
{
    static const sw_copy_pick owners = {0};
    planner plan = {.plan = out, .store = store, .tensor = tensor, .part = part, .arena = arena, .err = err};
    const sw_shape *dims = sw_store_dims(tensor);

    *out = (sw_copy_plan){.tensor = tensor};
    if (!sw_part_fits(part, dims->dims, dims->n_dims))
        return fail_tensor(&plan, "a part that is wanted lies outside it");
    for (uint32_t i = 0; i < tensor->n_parts; i++) {
        if (!sw_part_fits(&store->parts[tensor->first_part + i].held->part, dims->dims, dims->n_dims))
            return fail_tensor(&plan, "a stored part lies outside it");
    }
    if (sw_part_elems(part) == 0)
        return SW_OK;
    SW_TRY(choose_sources(&plan, pick == NULL ? &owners : pick));
    if (out->n_sources == 0)
        return fail_tensor(&plan, "no file holds what is wanted of it");
    SW_TRY(merge_dims(&plan));
    SW_TRY(fill_dims(&plan));
    if (out->n_bytes == 0) /* elements without bytes: of a dtype that is not known */
        out->n_dims = 0;
    return SW_OK;
}
