/*
 * Filling windows side by side (checkpoint/copy_fill.h). Each part advances until it needs a block that is
 * not there; when none can advance, the block that the rearmost of them needs is read. As all parts go
 * through the tensor in the same order, a block is read once, unless sources are many or oddly cut: then it
 * is read again, never wrongly.
 */
#include "checkpoint/copy_fill.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/copy_cursor.h"

/* Sized for a core's L2 cache: what is read is gathered, hashed and written from there. */
enum {
    PAGE = 4 << 10,
    DIRECT = 64 << 10, /* a span from here on is read straight into the window */
    LARGEST = 256 << 10,
    SMALLEST = 16 << 10,
    WINDOWS = 1 << 20, /* bytes of all windows */
    BLOCKS = 1 << 20,  /* bytes of all blocks */
    MOST_STREAMS = WINDOWS / SMALLEST,
    MOST_BLOCKS = BLOCKS / SMALLEST,
    MOST_HASHERS = 4096,
    PLAN_LIMIT = 64 << 20 /* bytes of the plans of one tensor */
};

/* A stored part that is in use. */
typedef struct supply {
    const sw_store_part *stored;
    uint32_t block; /* that it may use */
    uint64_t begin; /* what it has there, in bytes of the file */
    uint64_t end;
    sw_hasher *hasher;     /* NULL: not checked */
    uint64_t hashed_until; /* byte of the file */
    uint64_t part_end;
} supply;

/* A part that is being produced. */
typedef struct stream {
    const sw_copy_request *request;
    sw_copy_plan plan;
    sw_copy_cursor cursor;
    sw_copy_span span;  /* what is left of the current span; 0 bytes: done */
    bool is_long;       /* the span is read straight into the window, to its end */
    uint32_t *supplies; /* by source of the plan */
    uint8_t *window;
    size_t filled;
    size_t limit; /* bytes that the window takes this time */
    uint64_t n_given;
} stream;

typedef struct filling {
    sw_copy_filler *filler;
    const sw_store_tensor *tensor;
    sw_arena *arena;
    stream *streams;
    uint32_t n_streams;
    supply *supplies;
    uint32_t n_supplies;
    uint32_t owners[MOST_BLOCKS]; /* supply whose bytes a block has */
    size_t block_bytes;
    size_t window_bytes;
    sw_error *err;
} filling;

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

static sw_status no_memory(const filling *fill)
{
    return sw_arena_fail(fill->arena, "a plan of copying", fill->err);
}

/* Bytes each of `n` has of `all`: whole pages between the bounds. */
static size_t share_of(size_t all, uint32_t n)
{
    size_t share = all / n & ~(size_t)(PAGE - 1);

    if (share > LARGEST)
        return LARGEST;
    return share < SMALLEST ? SMALLEST : share;
}

/* ---- setting up ---- */

static sw_status next_span(const filling *fill, stream *of)
{
    SW_TRY(sw_copy_cursor_next(&of->cursor, &of->span, fill->err));
    of->is_long = of->span.n_bytes >= DIRECT;
    return SW_OK;
}

static sw_status open_stream(filling *fill, stream *to, const sw_copy_request *request)
{
    to->request = request;
    SW_TRY(sw_copy_plan_make(&to->plan, fill->filler->source.store, fill->tensor, request->part,
                             &fill->filler->pick, fill->arena, fill->err));
    if (request->n_bytes != SW_COPY_ANY_BYTES && to->plan.n_bytes != request->n_bytes) {
        return SW_FAIL(fill->err, SW_E_FORMAT, "run 'shardwright verify' on the source",
                       "tensor '%.150s': a part of it has %" PRIu64 " bytes, %" PRIu64 " are said",
                       fill->tensor->name, to->plan.n_bytes, request->n_bytes);
    }
    SW_TRY(sw_copy_cursor_init(&to->cursor, &to->plan, fill->arena, fill->err));
    to->limit = fill->window_bytes - request->offset % PAGE;
    return next_span(fill, to);
}

static void add_supply(filling *fill, const sw_copy_source *source)
{
    const sw_store *store = fill->filler->source.store;
    const sw_store_part *stored = &store->parts[fill->tensor->first_part + source->part];

    fill->supplies[fill->n_supplies++] = (supply){
        .stored = stored,
        .hashed_until = source->begin,
        .part_end = source->begin + stored->n_bytes,
    };
}

/* Number the stored parts in use, over all streams. */
static sw_status list_supplies(filling *fill)
{
    uint32_t n_parts = fill->tensor->n_parts;
    uint32_t *number = sw_arena_zero(fill->arena, n_parts, sizeof *number); /* from 1; 0: not in use */

    fill->supplies = sw_arena_alloc(fill->arena, n_parts * sizeof *fill->supplies);
    if (number == NULL || fill->supplies == NULL)
        return no_memory(fill);
    for (uint32_t i = 0; i < fill->n_streams; i++) {
        stream *of = &fill->streams[i];
        of->supplies = sw_arena_alloc(fill->arena, of->plan.n_sources * sizeof *of->supplies);
        if (of->supplies == NULL)
            return no_memory(fill);
        for (uint32_t s = 0; s < of->plan.n_sources; s++) {
            const sw_copy_source *source = &of->plan.sources[s];
            if (number[source->part] == 0) {
                add_supply(fill, source);
                number[source->part] = fill->n_supplies;
            }
            of->supplies[s] = number[source->part] - 1;
        }
    }
    return SW_OK;
}

/* Blocks and hashers for the supplies. With very many of them some share a block and none is checked. */
static sw_status equip_supplies(filling *fill)
{
    uint32_t n = fill->n_supplies;

    fill->block_bytes = share_of(BLOCKS, n == 0 ? 1 : n);
    for (uint32_t i = 0; i < MOST_BLOCKS; i++)
        fill->owners[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        fill->supplies[i].block = i % (uint32_t)(BLOCKS / fill->block_bytes);
    if (!fill->filler->is_checking || n > MOST_HASHERS)
        return SW_OK;
    void *room = sw_arena_alloc(fill->arena, (n + (size_t)1) * sizeof(sw_hasher));
    if (room == NULL)
        return no_memory(fill);
    for (uint32_t i = 0; i < n; i++) {
        if (fill->supplies[i].stored->has_hash) {
            fill->supplies[i].hasher = sw_hasher_at(room, i);
            sw_hasher_begin(fill->supplies[i].hasher);
        }
    }
    return SW_OK;
}

static sw_status set_up(filling *fill, const sw_copy_request *requests)
{
    fill->window_bytes = share_of(WINDOWS, fill->n_streams);
    fill->streams = sw_arena_zero(fill->arena, fill->n_streams, sizeof *fill->streams);
    if (fill->streams == NULL)
        return no_memory(fill);
    for (uint32_t i = 0; i < fill->n_streams; i++) {
        SW_TRY(open_stream(fill, &fill->streams[i], &requests[i]));
        fill->streams[i].window = fill->filler->memory + i * fill->window_bytes;
    }
    SW_TRY(list_supplies(fill));
    return equip_supplies(fill);
}

/* ---- reading ---- */

/* A checksum needs the part's bytes in order, each once: what was read before is passed over, a gap ends it.
 */
static void hash_supply(supply *from, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    if (from->hasher == NULL || at + n_bytes <= from->hashed_until)
        return;
    if (at > from->hashed_until) {
        from->hasher = NULL;
        return;
    }
    size_t known = (size_t)(from->hashed_until - at);
    sw_hasher_add(from->hasher, bytes + known, n_bytes - known);
    from->hashed_until = at + n_bytes;
}

static sw_status read_supply(filling *fill, supply *from, uint64_t at, uint8_t *bytes, size_t n_bytes)
{
    SW_TRY(sw_source_read(&fill->filler->source, from->stored->file, at, bytes, n_bytes, fill->err));
    hash_supply(from, at, bytes, n_bytes);
    return SW_OK;
}

static uint8_t *block_of(const filling *fill, const supply *from)
{
    return fill->filler->memory + WINDOWS + from->block * fill->block_bytes;
}

/* Bytes of the supply's block from `at` on; 0: it has not that byte. */
static uint64_t n_in_block(const filling *fill, const supply *from, uint64_t at)
{
    bool has_it =
        fill->owners[from->block] == (uint32_t)(from - fill->supplies) && at >= from->begin && at < from->end;
    return has_it ? from->end - at : 0;
}

static sw_status load_block(filling *fill, supply *from, uint64_t at)
{
    uint64_t left = from->part_end - at;
    size_t n_bytes = left < fill->block_bytes ? (size_t)left : fill->block_bytes;

    SW_TRY(read_supply(fill, from, at, block_of(fill, from), n_bytes));
    from->begin = at;
    from->end = at + n_bytes;
    fill->owners[from->block] = (uint32_t)(from - fill->supplies);
    return SW_OK;
}

/* ---- going on ---- */

static sw_status give(filling *fill, stream *to)
{
    size_t n_bytes = to->filled;

    if (n_bytes == 0)
        return SW_OK;
    to->filled = 0;
    to->n_given += n_bytes;
    to->limit = fill->window_bytes - (to->request->offset + to->n_given) % PAGE;
    return to->request->sink(to->request->user, to->window, n_bytes, fill->err);
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* Put some of the stream's span into its window; *n_bytes is 0 when a block is needed first. */
static sw_status take_some(filling *fill, stream *to, size_t *n_bytes)
{
    supply *from = &fill->supplies[to->supplies[to->span.source]];
    uint64_t ready = n_in_block(fill, from, to->span.at);
    size_t room = to->limit - to->filled;

    *n_bytes = least(to->span.n_bytes, room);
    if (ready > 0) {
        *n_bytes = least(*n_bytes, ready);
        memcpy(to->window + to->filled, block_of(fill, from) + (to->span.at - from->begin), *n_bytes);
        return SW_OK;
    }
    if (to->is_long)
        return read_supply(fill, from, to->span.at, to->window + to->filled, *n_bytes);
    *n_bytes = 0;
    return SW_OK;
}

/* As far as it goes without another block. */
static sw_status go_on(filling *fill, stream *to)
{
    while (to->span.n_bytes > 0) {
        size_t n_bytes = 0;
        SW_TRY(take_some(fill, to, &n_bytes));
        if (n_bytes == 0)
            return SW_OK;
        to->filled += n_bytes;
        to->span.at += n_bytes;
        to->span.n_bytes -= n_bytes;
        if (to->filled == to->limit)
            SW_TRY(give(fill, to));
        if (to->span.n_bytes == 0)
            SW_TRY(next_span(fill, to));
    }
    return give(fill, to);
}

/* The stream that is furthest behind in the stored part that the first of them waits for; NULL: none waits.
 */
static stream *rearmost(const filling *fill)
{
    stream *found = NULL;
    uint32_t supply_of_found = 0;

    for (uint32_t i = 0; i < fill->n_streams; i++) {
        stream *at = &fill->streams[i];
        if (at->span.n_bytes == 0)
            continue;
        uint32_t number = at->supplies[at->span.source];
        if (found == NULL || (number == supply_of_found && at->span.at < found->span.at)) {
            found = at;
            supply_of_found = number;
        }
    }
    return found;
}

static sw_status check_supplies(const filling *fill)
{
    for (uint32_t i = 0; i < fill->n_supplies; i++) {
        const supply *of = &fill->supplies[i];
        if (of->hasher == NULL || of->hashed_until != of->part_end)
            continue;
        if (sw_hasher_end(of->hasher) != of->stored->hash) {
            return SW_FAIL(fill->err, SW_E_FORMAT, "run 'shardwright verify' to see all that is damaged",
                           "%s: tensor '%.150s' has not the checksum that the manifest says",
                           fill->filler->source.store->files[of->stored->file].path, fill->tensor->name);
        }
    }
    return SW_OK;
}

static sw_status fill_together(sw_copy_filler *filler, const sw_store_tensor *tensor,
                               const sw_copy_request *requests, uint32_t n_requests, sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(PLAN_LIMIT);
    filling fill = {.filler = filler, .tensor = tensor, .arena = arena, .n_streams = n_requests, .err = err};

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a plan of copying");
    SW_TRY(set_up(&fill, requests));
    for (;;) {
        for (uint32_t i = 0; i < fill.n_streams; i++)
            SW_TRY(go_on(&fill, &fill.streams[i]));
        stream *behind = rearmost(&fill);
        if (behind == NULL)
            return check_supplies(&fill);
        SW_TRY(load_block(&fill, &fill.supplies[behind->supplies[behind->span.source]], behind->span.at));
    }
}

sw_status sw_copy_fill(sw_copy_filler *filler, const sw_store_tensor *tensor, const sw_copy_request *requests,
                       uint32_t n_requests, sw_error *err)
{
    for (uint32_t first = 0; first < n_requests; first += MOST_STREAMS) {
        uint32_t left = n_requests - first;
        SW_TRY(
            fill_together(filler, tensor, requests + first, left < MOST_STREAMS ? left : MOST_STREAMS, err));
    }
    return SW_OK;
}

sw_status sw_copy_filler_init(sw_copy_filler *filler, const sw_store *store, uint32_t n_slots, sw_error *err)
{
    *filler = (sw_copy_filler){0};
    sw_source_init(&filler->source, store, n_slots);
    filler->memory = sw_alloc(WINDOWS + BLOCKS);
    if (filler->memory == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %d bytes of buffers", WINDOWS + BLOCKS);
    return SW_OK;
}

void sw_copy_filler_clear(sw_copy_filler *filler)
{
    sw_source_clear(&filler->source);
    sw_free(filler->memory);
    filler->memory = NULL;
}
