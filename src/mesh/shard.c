/*
 * Cuts to row ranges. A cut is read as: the dim is `n_groups` equal groups; the ranks of the axis are as many
 * neighbouring blocks, one a group; in its block every segment of the group is cut on its own in
 * (block / replicas) chunks of whole units, and rank j of the block holds chunk j / replicas.
 *
 * Extents come from files: nothing here may overflow, whatever they are, once sw_cut_check() has passed.
 */
#include "mesh/shard.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/status.h"

/* A cut on a dim and an axis, with the defaults filled in. */
typedef struct layout {
    const sw_segment *segments; /* NULL: one plain segment */
    bool is_whole;              /* an extent of 0 in the only segment is the whole dim */
    uint32_t n_segments;
    uint32_t block; /* ranks a group */
    uint64_t group; /* rows a group */
} layout;

static uint32_t or_one(uint32_t n)
{
    return n == 0 ? 1 : n;
}

static layout layout_of(const sw_cut *cut, uint64_t extent, uint32_t parts)
{
    if (cut == NULL)
        return (layout){NULL, true, 1, parts, extent};
    uint32_t n_groups = or_one(cut->n_groups);
    bool is_whole = n_groups == 1 && cut->n_segments == 1 && cut->segments[0].extent == 0;
    return (layout){cut->segments, is_whole, cut->n_segments, parts / n_groups, extent / n_groups};
}

/* Segment `i` with its defaults filled in. */
static sw_segment segment_of(const layout *lay, uint32_t i)
{
    sw_segment segment = {lay->group, 1, 1};
    if (lay->segments != NULL) {
        const sw_segment *given = &lay->segments[i];
        segment.unit = given->unit == 0 ? 1 : given->unit;
        segment.replicas = or_one(given->replicas);
        if (!lay->is_whole)
            segment.extent = given->extent;
    }
    return segment;
}

/* The chunk of a segment that rank `j` of a block holds, counted from the segment's begin. */
static sw_range chunk_of(const layout *lay, const sw_segment *segment, uint32_t j)
{
    sw_range units = sw_shard_range(segment->extent / segment->unit, lay->block / segment->replicas,
                                    j / segment->replicas);
    return (sw_range){units.begin * segment->unit, units.end * segment->unit};
}

sw_range sw_shard_range(uint64_t extent, uint32_t parts, uint32_t index)
{
    if (extent == 0 || parts == 0)
        return (sw_range){extent, extent};
    uint64_t chunk = extent / parts + (extent % parts != 0);
    uint64_t begin = index <= extent / chunk ? chunk * index : extent;
    uint64_t end = extent - begin < chunk ? extent : begin + chunk;
    return (sw_range){begin, end};
}

static sw_status check_segment(const layout *lay, uint32_t i, sw_error *err)
{
    sw_segment segment = segment_of(lay, i);
    if (segment.extent == 0 && !lay->is_whole)
        return SW_FAIL(err, SW_E_PLAN, "leave it out", "segment %" PRIu32 " of the cut is empty", i);
    if (lay->block % segment.replicas != 0) {
        return SW_FAIL(err, SW_E_PLAN, "replicas must divide the ranks among which the segment is cut",
                       "segment %" PRIu32 " of the cut: %" PRIu32 " replicas do not divide %" PRIu32 " ranks",
                       i, segment.replicas, lay->block);
    }
    if (segment.extent % segment.unit != 0) {
        return SW_FAIL(err, SW_E_PLAN, "the unit must divide the rows of its segment",
                       "segment %" PRIu32 " of the cut: %" PRIu64 " rows are not whole units of %" PRIu64, i,
                       segment.extent, segment.unit);
    }
    return SW_OK;
}

sw_status sw_cut_check(const sw_cut *cut, uint64_t extent, uint32_t parts, sw_error *err)
{
    uint64_t sum = 0;

    if (parts == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a dim is cut over 0 ranks");
    if (cut == NULL)
        return SW_OK;
    if (cut->n_segments == 0 || cut->segments == NULL)
        return SW_FAIL(err, SW_E_PLAN, "give at least one segment", "the cut has no segments");
    uint32_t n_groups = or_one(cut->n_groups);
    if (parts % n_groups != 0) {
        return SW_FAIL(err, SW_E_PLAN, "the groups of a cut must divide the size of the axis",
                       "the cut has %" PRIu32 " groups for %" PRIu32 " ranks", n_groups, parts);
    }
    if (extent % n_groups != 0) {
        return SW_FAIL(err, SW_E_PLAN, "the groups of a cut must divide the rows of the dim",
                       "the cut has %" PRIu32 " groups for %" PRIu64 " rows", n_groups, extent);
    }

    layout lay = layout_of(cut, extent, parts);
    for (uint32_t i = 0; i < lay.n_segments; i++) {
        SW_TRY(check_segment(&lay, i, err));
        if (!sw_add_u64(sum, segment_of(&lay, i).extent, &sum)) {
            return SW_FAIL(err, SW_E_PLAN, "write the extents of the tensor",
                           "the segments of the cut do not fit 64 bits together");
        }
    }
    if (sum != lay.group) {
        return SW_FAIL(err, SW_E_PLAN, "the segments must sum to the rows of the dim, or of a group",
                       "the segments of the cut sum to %" PRIu64 " rows of %" PRIu64, sum, lay.group);
    }
    return SW_OK;
}

uint32_t sw_shard_pieces_bound(const sw_placement *placement)
{
    bool is_cut = placement->kind == SW_PLACE_SHARD && placement->cut != NULL;
    return is_cut ? placement->cut->n_segments : 1;
}

/* A list of ranges that grows at its end. */
typedef struct range_list {
    sw_range *ranges;
    uint32_t capacity;
    uint32_t n;
} range_list;

static bool append(range_list *list, sw_range range)
{
    if (range.begin == range.end)
        return true;
    if (list->n > 0 && list->ranges[list->n - 1].end == range.begin) {
        list->ranges[list->n - 1].end = range.end;
        return true;
    }
    if (list->n == list->capacity)
        return false;
    list->ranges[list->n++] = range;
    return true;
}

/*
 * Pieces of a rank: all that it holds, or those that `reader` takes from it. Of the replicas of a piece that
 * is the one whose number among them is the reader's own, if the reader counts itself in the same way.
 */
static sw_status collect(const sw_placement *placement, uint64_t extent, uint32_t parts, uint32_t index,
                         const uint32_t *reader, range_list *list, sw_error *err)
{
    bool fits = true;

    if (index >= parts) {
        return SW_FAIL(err, SW_E_ARGUMENT, "", "index %" PRIu32 " of an axis of %" PRIu32 " ranks", index,
                       parts);
    }
    if (placement->kind != SW_PLACE_SHARD) {
        bool is_copy = placement->kind == SW_PLACE_REPLICATE && reader != NULL && *reader != index;
        fits = is_copy || append(list, (sw_range){0, extent});
    } else {
        SW_TRY(sw_cut_check(placement->cut, extent, parts, err));
        layout lay = layout_of(placement->cut, extent, parts);
        uint64_t begin = lay.group * (index / lay.block);
        for (uint32_t i = 0; i < lay.n_segments && fits; i++) {
            sw_segment segment = segment_of(&lay, i);
            sw_range chunk = chunk_of(&lay, &segment, index % lay.block);
            /* Replicas divide the block, so that counting from rank 0 is counting from the block. */
            if (reader == NULL || index % segment.replicas == *reader % segment.replicas)
                fits = append(list, (sw_range){begin + chunk.begin, begin + chunk.end});
            begin += segment.extent;
        }
    }
    if (!fits) {
        return SW_FAIL(err, SW_E_ARGUMENT, "", "room for %" PRIu32 " row ranges, the rank holds more",
                       list->capacity);
    }
    return SW_OK;
}

sw_status sw_shard_pieces(const sw_placement *placement, uint64_t extent, uint32_t parts, uint32_t index,
                          sw_range *pieces, uint32_t capacity, uint32_t *n_pieces, sw_error *err)
{
    range_list list = {pieces, capacity, 0};

    SW_TRY(collect(placement, extent, parts, index, NULL, &list, err));
    *n_pieces = list.n;
    return SW_OK;
}

sw_status sw_shard_owned_pieces(const sw_placement *placement, uint64_t extent, uint32_t parts,
                                uint32_t index, sw_range *pieces, uint32_t capacity, uint32_t *n_pieces,
                                sw_error *err)
{
    sw_rank_pair ranks = {.holder = index, .reader = 0};

    return sw_shard_pieces_for(placement, extent, parts, ranks, pieces, capacity, n_pieces, err);
}

sw_status sw_shard_pieces_for(const sw_placement *placement, uint64_t extent, uint32_t parts,
                              sw_rank_pair ranks, sw_range *pieces, uint32_t capacity, uint32_t *n_pieces,
                              sw_error *err)
{
    range_list list = {pieces, capacity, 0};

    SW_TRY(collect(placement, extent, parts, ranks.holder, &ranks.reader, &list, err));
    *n_pieces = list.n;
    return SW_OK;
}

uint64_t sw_shard_local_extent(const sw_placement *placement, uint64_t extent, uint32_t parts, uint32_t index)
{
    if (placement->kind != SW_PLACE_SHARD)
        return extent;
    if (index >= parts || sw_cut_check(placement->cut, extent, parts, NULL) != SW_OK)
        return 0;
    layout lay = layout_of(placement->cut, extent, parts);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < lay.n_segments; i++) {
        sw_segment segment = segment_of(&lay, i);
        sw_range chunk = chunk_of(&lay, &segment, index % lay.block);
        rows += chunk.end - chunk.begin;
    }
    return rows;
}

uint32_t sw_shard_replicas(const sw_placement *placement, uint32_t parts)
{
    if (placement->kind == SW_PLACE_REPLICATE)
        return parts;
    if (placement->kind != SW_PLACE_SHARD || placement->cut == NULL || placement->cut->n_segments == 0)
        return 1;
    const sw_cut *cut = placement->cut;
    uint32_t replicas = or_one(cut->segments[0].replicas);
    for (uint32_t i = 1; i < cut->n_segments; i++) {
        if (or_one(cut->segments[i].replicas) != replicas)
            return 0;
    }
    return replicas;
}

sw_rank_span sw_shard_replica_group(const sw_placement *placement, uint32_t parts, uint32_t index,
                                    uint32_t segment)
{
    if (placement->kind == SW_PLACE_REPLICATE)
        return (sw_rank_span){0, parts};
    if (placement->kind != SW_PLACE_SHARD || placement->cut == NULL || segment >= placement->cut->n_segments)
        return (sw_rank_span){index, 1};
    /* Replicas divide the block, so that counting from rank 0 finds the same neighbours as from the block. */
    uint32_t replicas = or_one(placement->cut->segments[segment].replicas);
    return (sw_rank_span){index - index % replicas, replicas};
}
