/*
 * Lists of regions, both ways. Written: every range is split where its owner changes, and the boxes are the
 * product of the pieces. Read: the boxes must be such a product again, and so must be the owned ones.
 */
#include "checkpoint/regions.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

/* ---- writing ---- */

/* The ranges along one dim, split where their owner changes. */
typedef struct split {
    sw_range *ranges;
    bool *is_copy;
    uint32_t n;
} split;

typedef struct splits {
    split along[SW_MAX_DIMS];
} splits;

static void drop_splits(splits *s)
{
    for (uint32_t d = 0; d < SW_MAX_DIMS; d++) {
        sw_free(s->along[d].ranges);
        sw_free(s->along[d].is_copy);
    }
}

static void append(split *s, uint64_t begin, uint64_t end, bool is_copy)
{
    if (begin == end)
        return;
    s->ranges[s->n] = (sw_range){begin, end};
    s->is_copy[s->n++] = is_copy;
}

static bool split_dim(split *out, const sw_pieces *part, const sw_pieces *owned)
{
    size_t most = (size_t)part->n + 2 * (size_t)owned->n + 1;
    uint32_t k = 0;

    out->ranges = sw_alloc_zero(most, sizeof *out->ranges);
    out->is_copy = sw_alloc_zero(most, sizeof *out->is_copy);
    if (out->ranges == NULL || out->is_copy == NULL)
        return false;
    for (uint32_t i = 0; i < part->n; i++) {
        uint64_t at = part->ranges[i].begin;
        for (; k < owned->n && owned->ranges[k].end <= part->ranges[i].end; k++) {
            append(out, at, owned->ranges[k].begin, true);
            append(out, owned->ranges[k].begin, owned->ranges[k].end, false);
            at = owned->ranges[k].end;
        }
        append(out, at, part->ranges[i].end, true);
    }
    return true;
}

static bool split_all(splits *out, const sw_held *held)
{
    for (uint32_t d = 0; d < held->part.n_dims; d++) {
        const sw_pieces *part = &held->part.along[d];
        if (!split_dim(&out->along[d], part, held->is_replica ? part : &held->owned.along[d]))
            return false;
    }
    return true;
}

static void put_numbers(sw_json_writer *w, const char *key, const uint64_t *numbers, uint32_t n)
{
    sw_json_key(w, key);
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < n; i++)
        sw_json_put_u64(w, numbers[i]);
    sw_json_end_array(w);
}

static void put_region(sw_json_writer *w, const uint64_t *begin, const uint64_t *extent, uint32_t n_dims,
                       bool is_copy)
{
    sw_json_begin_object(w);
    put_numbers(w, "begin", begin, n_dims);
    put_numbers(w, "extent", extent, n_dims);
    if (is_copy) {
        sw_json_key(w, "replica");
        sw_json_put_bool(w, true);
    }
    sw_json_end_object(w);
}

/* Box `i` of the product of the pieces; whether it is a copy. */
static bool box_of(const splits *s, uint32_t n_dims, uint64_t i, uint64_t *begin, uint64_t *extent)
{
    bool is_copy = false;

    for (uint32_t d = n_dims; d-- > 0;) {
        const split *p = &s->along[d];
        uint64_t at = i % p->n;
        i /= p->n;
        begin[d] = p->ranges[at].begin;
        extent[d] = p->ranges[at].end - p->ranges[at].begin;
        is_copy = is_copy || p->is_copy[at];
    }
    return is_copy;
}

void sw_regions_write(sw_json_writer *writer, const sw_held *held)
{
    splits s SW_AUTO(drop_splits) = {0};
    uint32_t n_dims = held->part.n_dims;
    uint64_t begin[SW_MAX_DIMS];
    uint64_t extent[SW_MAX_DIMS];
    uint64_t n = 1;

    sw_json_begin_array(writer);
    if (sw_part_elems(&held->part) == 0) {
        sw_part_box(&held->part, 0, begin, extent);
        put_region(writer, begin, extent, n_dims, false);
    } else if (split_all(&s, held)) {
        for (uint32_t d = 0; d < n_dims; d++)
            n *= s.along[d].n;
        for (uint64_t i = 0; i < n; i++) {
            bool is_copy = box_of(&s, n_dims, i, begin, extent);
            put_region(writer, begin, extent, n_dims, is_copy || held->is_replica);
        }
    } else {
        writer->out->failed = true;
    }
    sw_json_end_array(writer);
}

/* Pieces along a dim: all of them, and those that are owned. */
static void count_pieces(const sw_pieces *part, const sw_pieces *owned, uint64_t *all, uint64_t *kept)
{
    *all = 0;
    *kept = owned->n;
    for (uint32_t i = 0, k = 0; i < part->n; i++) {
        uint64_t at = part->ranges[i].begin;
        for (; k < owned->n && owned->ranges[k].end <= part->ranges[i].end; k++) {
            *all += at < owned->ranges[k].begin ? 2 : 1;
            at = owned->ranges[k].end;
        }
        *all += at < part->ranges[i].end;
    }
}

uint64_t sw_regions_replicas(const sw_held *held)
{
    uint64_t n = 1;
    uint64_t n_owned = 1;

    if (sw_part_elems(&held->part) == 0)
        return 0;
    if (held->is_replica)
        return sw_part_box_count(&held->part);
    for (uint32_t d = 0; d < held->part.n_dims; d++) {
        uint64_t all = 0;
        uint64_t kept = 0;
        count_pieces(&held->part.along[d], &held->owned.along[d], &all, &kept);
        n *= all;
        n_owned *= kept;
    }
    return n - n_owned;
}

/* ---- reading ---- */

/* The boxes of one list while it is read; numbers stand box after box. */
typedef struct boxes {
    uint64_t *begins;
    uint64_t *extents;
    bool *is_copy;
    uint32_t n;
    uint32_t capacity;
    uint32_t n_dims; /* of the first box */
    uint32_t n_copies;
} boxes;

static void drop_boxes(boxes *b)
{
    sw_free(b->begins);
    sw_free(b->extents);
    sw_free(b->is_copy);
}

static bool no_memory(sw_json *json)
{
    json->status = SW_FAIL(json->err, SW_E_NO_MEMORY, "", "%.200s: no memory for its regions", json->source);
    return false;
}

static bool make_room(boxes *b, sw_json *json)
{
    if (b->n < b->capacity)
        return true;
    if (b->n == SW_MAX_REGIONS)
        return sw_json_fail(json, "copy the folder again", "more than %d regions of one tensor",
                            SW_MAX_REGIONS);
    uint32_t capacity = b->capacity == 0 ? 4 : b->capacity * 2;
    uint64_t *begins = sw_realloc(b->begins, (size_t)capacity * SW_MAX_DIMS * sizeof *begins);
    b->begins = begins == NULL ? b->begins : begins;
    uint64_t *extents = sw_realloc(b->extents, (size_t)capacity * SW_MAX_DIMS * sizeof *extents);
    b->extents = extents == NULL ? b->extents : extents;
    bool *is_copy = sw_realloc(b->is_copy, capacity * sizeof *is_copy);
    b->is_copy = is_copy == NULL ? b->is_copy : is_copy;
    if (begins == NULL || extents == NULL || is_copy == NULL)
        return no_memory(json);
    b->capacity = capacity;
    return true;
}

static bool read_numbers(sw_json *json, uint64_t *out, uint32_t *n)
{
    *n = 0;
    if (!sw_json_enter_array(json))
        return false;
    while (sw_json_next_element(json)) {
        if (*n == SW_MAX_DIMS)
            return sw_json_fail(json, "copy the folder again", "a region with more than %d dims",
                                SW_MAX_DIMS);
        if (!sw_json_u64(json, &out[(*n)++]))
            return false;
    }
    return json->status == SW_OK;
}

/* One region: "begin", "extent", and "replica" where it is one, in this order. */
static bool read_region(boxes *b, sw_json *json)
{
    static const char *const keys[] = {"begin", "extent", "replica"};
    uint64_t numbers[2][SW_MAX_DIMS];
    uint32_t n_dims[2] = {0, 0};
    bool is_copy = false;
    sw_json_text key;
    size_t n = 0;

    if (!make_room(b, json) || !sw_json_enter_object(json))
        return false;
    for (; sw_json_next_key(json, &key); n++) {
        if (n == SW_COUNT(keys) || !sw_json_text_is(key, keys[n]))
            return sw_json_fail(json, "the keys of a region are begin, extent and replica, in this order",
                                "an unexpected key '%.*s' in a region",
                                (int)(key.length < 100 ? key.length : 100), key.bytes);
        if (n < 2 ? !read_numbers(json, numbers[n], &n_dims[n]) : !sw_json_bool(json, &is_copy))
            return false;
    }
    if (json->status != SW_OK)
        return false;
    if (b->n == 0)
        b->n_dims = n_dims[0];
    if (n < 2 || n_dims[0] != b->n_dims || n_dims[1] != b->n_dims)
        return sw_json_fail(json, "copy the folder again",
                            "a region without as many begins and extents as the others");
    size_t at = (size_t)b->n * b->n_dims;
    memcpy(b->begins + at, numbers[0], b->n_dims * sizeof *b->begins);
    memcpy(b->extents + at, numbers[1], b->n_dims * sizeof *b->extents);
    b->is_copy[b->n++] = is_copy;
    b->n_copies += is_copy;
    return true;
}

/* Move the owned boxes to the front. */
static void keep_owned(boxes *b)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        if (b->is_copy[i])
            continue;
        size_t to = (size_t)kept++ * b->n_dims;
        size_t from = (size_t)i * b->n_dims;
        memmove(b->begins + to, b->begins + from, b->n_dims * sizeof *b->begins);
        memmove(b->extents + to, b->extents + from, b->n_dims * sizeof *b->extents);
    }
    b->n = kept;
}

static bool settle(boxes *b, sw_arena *arena, sw_json *json, sw_held *out)
{
    if (b->n == 0)
        return sw_json_fail(json, "an empty one is one region with an extent of 0", "no region");
    sw_status status = sw_part_from_boxes(&out->part, b->begins, b->extents, b->n, b->n_dims, arena, NULL);
    out->is_replica = b->n_copies == b->n;
    out->owned = out->part;
    if (status == SW_OK && b->n_copies > 0 && !out->is_replica) {
        keep_owned(b);
        status = sw_part_from_boxes(&out->owned, b->begins, b->extents, b->n, b->n_dims, arena, NULL);
    }
    if (status == SW_E_NO_MEMORY)
        return no_memory(json);
    if (status != SW_OK)
        return sw_json_fail(json, "regions are the product of ascending ranges, the last dim fastest",
                            "the regions are no such product");
    return true;
}

static bool parse(sw_regions_reader *reader, sw_json *json, sw_held *out)
{
    boxes b SW_AUTO(drop_boxes) = {0};

    if (!sw_json_enter_array(json))
        return false;
    while (sw_json_next_element(json)) {
        if (!read_region(&b, json))
            return false;
    }
    return json->status == SW_OK && settle(&b, reader->arena, json, out);
}

static bool remember(sw_regions_reader *reader, sw_json *json, const char *text, size_t length,
                     const sw_held *held)
{
    bool is_new = false;

    if (reader->n_held == reader->capacity) {
        uint32_t capacity = reader->capacity == 0 ? 64 : reader->capacity * 2;
        const sw_held **grown = sw_realloc(reader->held, capacity * sizeof(sw_held *));
        if (grown == NULL)
            return no_memory(json);
        reader->held = grown;
        reader->capacity = capacity;
    }
    if (sw_map_put(&reader->seen, text, length, reader->n_held, &is_new) == NULL)
        return no_memory(json);
    reader->held[reader->n_held++] = held;
    return true;
}

bool sw_regions_read(sw_regions_reader *reader, sw_json *json, const sw_held **out)
{
    (void)sw_json_peek(json); /* past the white space */
    const char *text = json->at;

    if (!sw_json_skip(json))
        return false;
    size_t length = (size_t)(json->at - text);
    const uint32_t *seen = sw_map_find(&reader->seen, text, length);
    if (seen != NULL) {
        *out = reader->held[*seen];
        return true;
    }
    sw_held *made = sw_arena_zero(reader->arena, 1, sizeof *made);
    if (made == NULL)
        return no_memory(json);
    json->at = text;
    *out = made;
    return parse(reader, json, made) && remember(reader, json, text, length, made);
}

void sw_regions_reader_clear(sw_regions_reader *reader)
{
    sw_map_clear(&reader->seen);
    sw_free(reader->held);
}
