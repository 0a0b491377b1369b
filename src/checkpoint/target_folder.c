/*
 * The files of a Hugging Face folder: whole tensors in the order of the source, a new file where the limit
 * would be passed. Which tensor stands where depends on names, sizes and the limit alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/target_make.h"
#include "io/json_write.h"
#include "model/shards.h"

#define DEFAULT_MOST_BYTES UINT64_C(5000000000)

typedef struct maker {
    sw_target_maker base;
    const sw_store *source;
    uint64_t most_bytes;
    const sw_held **wholes; /* a tensor */
    uint64_t *n_bytes;      /* a tensor */
    sw_error *err;
} maker;

static void clear_maker(maker *m)
{
    sw_free(m->wholes);
    sw_free(m->n_bytes);
}

static bool is_state(const maker *m, uint32_t tensor)
{
    return m->source->tensors[tensor].state_of != UINT32_MAX;
}

/* Whole parts, shared by equal shapes, and their bytes. */
static sw_status measure(maker *m, sw_arena *arena)
{
    sw_map by_shape SW_AUTO(sw_map_clear) = {0};
    uint32_t n = m->source->n_tensors;

    m->wholes = sw_alloc_zero((size_t)n + 1, sizeof(sw_held *));
    m->n_bytes = sw_alloc_zero((size_t)n + 1, sizeof *m->n_bytes);
    if (m->wholes == NULL || m->n_bytes == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for the sizes of tensors");
    for (uint32_t i = 0; i < n; i++) {
        const sw_store_tensor *t = &m->source->tensors[i];
        bool is_new = false;
        const uint32_t *at = sw_map_put(&by_shape, &t->shape, sizeof(void *), i, &is_new);
        if (at == NULL)
            return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for the sizes of tensors");
        if (is_new)
            SW_TRY(sw_held_whole(&m->wholes[i], t->shape->dims, t->shape->n_dims, arena, m->err));
        m->wholes[i] = m->wholes[*at];
        SW_TRY(sw_target_part_bytes(m->source, t, &m->wholes[i]->part, &m->n_bytes[i], m->err));
    }
    return SW_OK;
}

/* Does tensor `i` begin a new file, after `filled` bytes in the one before? */
static bool begins_file(const maker *m, uint32_t i, bool is_first, uint64_t filled)
{
    return is_first || m->n_bytes[i] > m->most_bytes - (filled < m->most_bytes ? filled : m->most_bytes);
}

static uint64_t count_files(const maker *m, bool of_state)
{
    uint64_t n = 0;
    uint64_t filled = 0;

    for (uint32_t i = 0; i < m->source->n_tensors; i++) {
        if (is_state(m, i) != of_state)
            continue;
        bool is_new = begins_file(m, i, n == 0, filled);
        n += is_new;
        filled = (is_new ? 0 : filled) + m->n_bytes[i];
    }
    return n;
}

static sw_status open_file(maker *m, bool of_state, uint32_t number, uint32_t n)
{
    sw_target *target = m->base.target;
    sw_target_file *file = &target->files[target->n_files];
    const char *name = NULL;

    if (of_state)
        name =
            sw_arena_format(target->arena, "optimizer-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", number, n);
    else if (n == 1)
        name = sw_arena_format(target->arena, "model.safetensors");
    else
        name = sw_arena_format(target->arena, "model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", number, n);
    if (name == NULL)
        return sw_arena_fail(target->arena, "the names of the files", m->err);
    *file = (sw_target_file){.name = name, .pp = -1, .tp = -1, .ep = -1, .first_part = target->n_parts};
    target->n_files++;
    return SW_OK;
}

static sw_status add_files(maker *m, bool of_state, uint32_t n)
{
    sw_target *target = m->base.target;
    uint32_t number = 0;
    uint64_t filled = 0;

    for (uint32_t i = 0; i < m->source->n_tensors; i++) {
        if (is_state(m, i) != of_state)
            continue;
        bool is_new = begins_file(m, i, number == 0, filled);
        if (is_new)
            SW_TRY(open_file(m, of_state, ++number, n));
        filled = (is_new ? 0 : filled) + m->n_bytes[i];
        SW_TRY(sw_target_add(&m->base, i, m->wholes[i]));
    }
    for (uint32_t f = target->n_files - n; f < target->n_files; f++)
        SW_TRY(sw_target_lay_out(&m->base, f));
    return SW_OK;
}

static sw_status make(maker *m, sw_target **out)
{
    SW_TRY(sw_target_begin(&m->base, out, m->source, 0, m->err)); /* its arena holds the parts */
    SW_TRY(measure(m, m->base.target->arena));
    uint64_t n_model = count_files(m, false);
    uint64_t n_state = count_files(m, true);
    if (n_model + n_state > SW_MAX_SHARDS)
        return SW_FAIL(m->err, SW_E_LIMIT, "give a larger --max-shard-size",
                       "%" PRIu64 " files of at most %" PRIu64 " bytes, at most %d are written",
                       n_model + n_state, m->most_bytes, SW_MAX_SHARDS);
    sw_target *target = m->base.target;
    sw_target_file *files = sw_realloc(target->files, (size_t)(n_model + n_state + 1) * sizeof *files);
    if (files == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " files", n_model + n_state);
    target->files = files;
    SW_TRY(add_files(m, false, (uint32_t)n_model));
    target->n_state_files = (uint32_t)n_state;
    return add_files(m, true, (uint32_t)n_state);
}

sw_status sw_target_of_folder(sw_target **out, const sw_store *source, uint64_t max_bytes, sw_error *err)
{
    maker m SW_AUTO(clear_maker) = {
        .source = source, .most_bytes = max_bytes == 0 ? DEFAULT_MOST_BYTES : max_bytes, .err = err};

    *out = NULL;
    sw_status status = make(&m, out);
    if (status != SW_OK) {
        sw_target_destroy(*out);
        *out = NULL;
    }
    return status;
}

sw_status sw_target_index(sw_buffer *out, const sw_target *target, sw_error *err)
{
    uint32_t n_files = target->n_files - target->n_state_files;
    uint64_t bytes = 0;
    sw_json_writer w;

    for (uint32_t f = 0; f < n_files; f++)
        bytes += target->files[f].data_bytes;
    sw_json_write_init(&w, out, false);
    sw_json_begin_object(&w);
    sw_json_key(&w, "metadata");
    sw_json_begin_object(&w);
    sw_json_key(&w, "total_size");
    sw_json_put_u64(&w, bytes);
    sw_json_end_object(&w);
    sw_json_key(&w, "weight_map");
    sw_json_begin_object(&w);
    for (uint32_t f = 0; f < n_files; f++) {
        const sw_target_file *file = &target->files[f];
        for (uint32_t i = 0; i < file->n_parts; i++) {
            const sw_store_tensor *t = &target->source->tensors[target->parts[file->first_part + i].tensor];
            sw_json_key_n(&w, t->name, t->name_length);
            sw_json_put_string(&w, file->name);
        }
    }
    sw_json_end_object(&w);
    sw_json_end_object(&w);
    sw_buffer_putc(out, '\n');
    return out->failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the index") : SW_OK;
}
