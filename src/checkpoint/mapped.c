/* Loading from maps (checkpoint/mapped.h): the spans of a plan of copying, out of memory. */
#include "checkpoint/mapped.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/copy_cursor.h"

enum { SAMPLE = 64 }; /* bytes */

sw_status sw_mapped_create(sw_mapped **out, const sw_store *store, sw_error *err)
{
    sw_mapped *mapped = sw_alloc_zero(1, sizeof *mapped);

    *out = NULL;
    if (mapped != NULL) {
        mapped->store = store;
        mapped->maps = sw_alloc_zero((size_t)store->n_files + 1, sizeof *mapped->maps);
    }
    if (mapped == NULL || mapped->maps == NULL) {
        sw_free(mapped);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
    }
    *out = mapped;
    return SW_OK;
}

void sw_mapped_destroy(sw_mapped *mapped)
{
    if (mapped == NULL)
        return;
    for (uint32_t f = 0; f < mapped->store->n_files; f++)
        sw_file_map_close(&mapped->maps[f]);
    sw_free(mapped->maps);
    sw_free(mapped);
}

/* A file's bytes, as many as there were when the store was opened. */
static sw_status need_file(sw_mapped *mapped, uint32_t file, const uint8_t **bytes, sw_error *err)
{
    const sw_store_file *about = &mapped->store->files[file];
    sw_file_map *map = &mapped->maps[file];

    if (map->bytes == NULL)
        SW_TRY(sw_file_map_open(map, about->path, UINT64_MAX, err));
    *bytes = map->bytes;
    if (map->n_bytes == about->n_bytes)
        return SW_OK;
    return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile",
                   "%s: has %" PRIu64 " bytes now, it had %" PRIu64 " when it was opened", about->path,
                   (uint64_t)map->n_bytes, about->n_bytes);
}

/* Bytes of a stored part that were all wanted. */
static sw_status check_whole(const sw_mapped *mapped, const sw_store_tensor *tensor,
                             const sw_store_part *stored, const uint8_t *bytes, sw_error *err)
{
    if (!stored->has_hash || sw_hash(bytes, stored->n_bytes, 0) == stored->hash)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "run 'shardwright verify' to see all that is damaged",
                   "%s: tensor '%.150s' has not the checksum that the manifest says",
                   mapped->store->files[stored->file].path, tensor->name);
}

sw_status sw_mapped_lend(sw_mapped *mapped, const sw_store_tensor *tensor, const uint8_t **bytes,
                         sw_error *err)
{
    const sw_store *store = mapped->store;
    const uint8_t *file = NULL;

    *bytes = NULL;
    for (uint32_t i = 0; i < tensor->n_parts; i++) {
        const sw_store_part *stored = &store->parts[tensor->first_part + i];
        if (sw_part_elems(&stored->held->part) != tensor->shape->elems)
            continue;
        SW_TRY(need_file(mapped, stored->file, &file, err));
        file += store->files[stored->file].data_begin + stored->begin;
        SW_TRY(check_whole(mapped, tensor, stored, file, err));
        mapped->bytes_read += stored->n_bytes;
        *bytes = file;
        return SW_OK;
    }
    return SW_OK;
}

/* Copying one part. */
typedef struct taking {
    sw_mapped *mapped;
    const sw_store_tensor *tensor;
    sw_arena *arena; /* of the plan */
    sw_copy_plan plan;
    uint64_t *n_taken; /* bytes, by source of the plan */
    uint8_t *to;
    sw_error *err;
} taking;

static void drop_taking(taking *t)
{
    sw_arena_destroy(t->arena);
}

static sw_status take_spans(taking *t)
{
    sw_copy_cursor cursor;
    sw_copy_span span;
    const uint8_t *file = NULL;

    SW_TRY(sw_copy_cursor_init(&cursor, &t->plan, t->arena, t->err));
    SW_TRY(sw_copy_cursor_next(&cursor, &span, t->err));
    while (span.n_bytes > 0) {
        SW_TRY(need_file(t->mapped, t->plan.sources[span.source].file, &file, t->err));
        memcpy(t->to, file + span.at, span.n_bytes);
        t->to += span.n_bytes;
        t->n_taken[span.source] += span.n_bytes;
        t->mapped->bytes_read += span.n_bytes;
        SW_TRY(sw_copy_cursor_next(&cursor, &span, t->err));
    }
    return SW_OK;
}

/* No part of a tensor has a byte twice: what is as long as the stored part is all of it. */
static sw_status check_wholes(const taking *t)
{
    const uint8_t *file = NULL;

    for (uint32_t s = 0; s < t->plan.n_sources; s++) {
        const sw_copy_source *source = &t->plan.sources[s];
        const sw_store_part *stored = &t->mapped->store->parts[t->tensor->first_part + source->part];
        if (t->n_taken[s] != stored->n_bytes)
            continue;
        SW_TRY(need_file(t->mapped, source->file, &file, t->err));
        SW_TRY(check_whole(t->mapped, t->tensor, stored, file + source->begin, t->err));
    }
    return SW_OK;
}

sw_status sw_mapped_take(sw_mapped *mapped, const sw_store_tensor *tensor, const sw_part *part, void *to,
                         sw_error *err)
{
    const sw_copy_pick owner = {0};
    taking t SW_AUTO(drop_taking) = {
        .mapped = mapped, .tensor = tensor, .arena = sw_arena_create(0), .to = to, .err = err};

    if (t.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a plan of copying");
    SW_TRY(sw_copy_plan_make(&t.plan, mapped->store, tensor, part, &owner, t.arena, err));
    t.n_taken = sw_arena_zero(t.arena, (size_t)t.plan.n_sources + 1, sizeof *t.n_taken);
    if (t.n_taken == NULL)
        return sw_arena_fail(t.arena, "a plan of copying", err);
    SW_TRY(take_spans(&t));
    return check_wholes(&t);
}

/* ---- a sample ---- */

static sw_status sample_part(sw_mapped *mapped, const sw_store_part *part, uint64_t *hash, sw_error *err)
{
    uint64_t n = part->n_bytes < SAMPLE ? part->n_bytes : SAMPLE;
    const uint8_t *file = NULL;

    if (part->has_hash) {
        *hash = sw_hash(&part->hash, sizeof part->hash, *hash);
        return SW_OK;
    }
    SW_TRY(need_file(mapped, part->file, &file, err));
    *hash = sw_hash(file + mapped->store->files[part->file].data_begin + part->begin, (size_t)n, *hash);
    return SW_OK;
}

sw_status sw_mapped_sample(sw_mapped *mapped, uint64_t *out, sw_error *err)
{
    *out = 0;
    for (uint32_t i = 0; i < mapped->store->n_parts; i++)
        SW_TRY(sample_part(mapped, &mapped->store->parts[i], out, err));
    return SW_OK;
}
