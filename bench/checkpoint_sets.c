/* Files for the checkpoint benchmark (checkpoint_sets.h). What fails ends the program: there is no caller. */
#include "checkpoint_sets.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "io/safetensors_write.h"

enum { N_FILES = 4, HIDDEN = 4096, INNER = 11008, VOCAB = 32000, CHUNK = 1 << 20, PATH_BYTES = 4200 };

typedef struct shape_of {
    const char *name;
    uint64_t dims[2];
    uint32_t n_dims;
} shape_of;

// clang-format off
static const shape_of layer_shapes[] = {
    { "self_attn.q_proj.weight",         { HIDDEN, HIDDEN }, 2 },
    { "self_attn.k_proj.weight",         { HIDDEN, HIDDEN }, 2 },
    { "self_attn.v_proj.weight",         { HIDDEN, HIDDEN }, 2 },
    { "self_attn.o_proj.weight",         { HIDDEN, HIDDEN }, 2 },
    { "mlp.gate_proj.weight",            { INNER,  HIDDEN }, 2 },
    { "mlp.up_proj.weight",              { INNER,  HIDDEN }, 2 },
    { "mlp.down_proj.weight",            { HIDDEN, INNER  }, 2 },
    { "input_layernorm.weight",          { HIDDEN         }, 1 },
    { "post_attention_layernorm.weight", { HIDDEN         }, 1 },
};
static const shape_of other_shapes[] = {
    { "model.embed_tokens.weight",       { VOCAB,  HIDDEN }, 2 },
    { "model.norm.weight",               { HIDDEN         }, 1 },
    { "lm_head.weight",                  { VOCAB,  HIDDEN }, 2 },
};
// clang-format on

enum {
    IN_LAYER = sizeof layer_shapes / sizeof layer_shapes[0],
    OTHERS = sizeof other_shapes / sizeof other_shapes[0]
};

void bench_die(const char *doing, const sw_error *err)
{
    (void)fprintf(stderr, "checkpoint_bench: %s: %s\n", doing, err == NULL ? "failed" : err->what);
    exit(2); // NOLINT(concurrency-mt-unsafe): no thread is at work then
}

static void check(sw_status status, const char *doing, const sw_error *err)
{
    if (status != SW_OK)
        bench_die(doing, err);
}

static void *room(sw_arena *arena, size_t count, size_t bytes)
{
    void *memory = sw_arena_zero(arena, count, bytes);
    if (memory == NULL)
        bench_die("memory", NULL);
    return memory;
}

/* ---- the model ---- */

static void write_data(int fd, const char *path, uint64_t at, uint64_t n_bytes)
{
    static uint64_t words[CHUNK / 8];
    static uint64_t x = 88172645463325252ULL;
    sw_error err = {0};

    while (n_bytes > 0) {
        size_t n = n_bytes < CHUNK ? (size_t)n_bytes : CHUNK;
        for (size_t i = 0; i < CHUNK / 8; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            words[i] = x;
        }
        check(sw_disk_pwrite(fd, path, words, n, at, &err), "write the model", &err);
        at += n;
        n_bytes -= n;
    }
}

static void listed_entry(void *user, size_t i, sw_write_entry *out)
{
    const sw_write_entry *const *entries = user;
    *out = (*entries)[i];
}

static void write_shard(const char *folder, const char *name, const sw_write_entry *entries, size_t n_entries)
{
    const sw_write_header header = {.entry = listed_entry, .n_entries = n_entries, .user = &entries};
    sw_buffer text = {0};
    const sw_sink sink = sw_buffer_sink(&text);
    char prefix[SW_SAFETENSORS_PREFIX];
    char path[PATH_BYTES];
    uint64_t n_bytes = 0;
    uint64_t data_bytes = 0;
    sw_error err = {0};
    int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    check(sw_safetensors_measure(&header, &n_bytes, &data_bytes, &err), path, &err);
    sw_safetensors_prefix(n_bytes, prefix);
    sw_buffer_append(&text, prefix, sizeof prefix);
    check(sw_safetensors_write(&header, &sink, &err), path, &err);
    check(sw_disk_create(&fd, path, &err), path, &err);
    check(sw_disk_pwrite(fd, path, text.bytes, text.length, 0, &err), path, &err);
    write_data(fd, path, text.length, data_bytes);
    check(sw_disk_sync(fd, path, &err), path, &err);
    check(sw_disk_close(&fd, path, &err), path, &err);
    sw_buffer_clear(&text);
}

static sw_write_entry entry_of(sw_arena *arena, const shape_of *shape, const char *prefix)
{
    sw_write_entry entry = {.dtype = "BF16", .n_dims = shape->n_dims, .dims = shape->dims};

    entry.name = sw_arena_format(arena, "%s%s", prefix, shape->name);
    if (entry.name == NULL)
        bench_die("memory", NULL);
    entry.name_length = strlen(entry.name);
    entry.n_bytes = 2 * shape->dims[0] * (shape->n_dims == 2 ? shape->dims[1] : 1);
    return entry;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES];
    sw_error err = {0};

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    check(sw_disk_write_file(path, text, strlen(text), true, &err), path, &err);
}

static void write_config(const char *folder, uint32_t n_layers)
{
    sw_buffer text = {0};

    sw_buffer_printf(
        &text,
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": %d, "
        "\"intermediate_size\": %d, \"num_hidden_layers\": %" PRIu32 ", \"num_attention_heads\": 32, "
        "\"num_key_value_heads\": 32, \"vocab_size\": %d, \"tie_word_embeddings\": false}\n",
        HIDDEN, INNER, n_layers, VOCAB);
    write_text(folder, "config.json", sw_buffer_text(&text));
    sw_buffer_clear(&text);
}

void bench_write_model(const char *folder, uint32_t n_layers)
{
    sw_arena *arena = sw_arena_create(0);
    size_t n = OTHERS + (size_t)n_layers * IN_LAYER;
    sw_write_entry *entries = room(arena, n, sizeof *entries);
    sw_buffer index = {0};
    sw_error err = {0};

    check(sw_disk_mkdir(folder, &err), folder, &err);
    for (size_t i = 0; i < OTHERS; i++)
        entries[i] = entry_of(arena, &other_shapes[i], "");
    for (uint32_t layer = 0; layer < n_layers; layer++) {
        char prefix[64];
        (void)snprintf(prefix, sizeof prefix, "model.layers.%" PRIu32 ".", layer);
        for (size_t i = 0; i < IN_LAYER; i++)
            entries[OTHERS + layer * (size_t)IN_LAYER + i] = entry_of(arena, &layer_shapes[i], prefix);
    }
    sw_buffer_puts(&index, "{\"metadata\": {}, \"weight_map\": {");
    for (size_t f = 0; f < N_FILES; f++) {
        char name[64];
        size_t first = n * f / N_FILES;
        size_t end = n * (f + 1) / N_FILES;
        (void)snprintf(name, sizeof name, "model-%05zu-of-%05d.safetensors", f + 1, N_FILES);
        write_shard(folder, name, entries + first, end - first);
        for (size_t i = first; i < end; i++)
            sw_buffer_printf(&index, "%s\n\"%s\": \"%s\"", i == 0 ? "" : ",", entries[i].name, name);
    }
    sw_buffer_puts(&index, "}}\n");
    write_text(folder, "model.safetensors.index.json", sw_buffer_text(&index));
    write_config(folder, n_layers);
    sw_buffer_clear(&index);
    sw_arena_destroy(arena);
}

/* ---- cuts without a plan ---- */

static const sw_held *held_of(sw_arena *arena, sw_target_part *stored, const sw_shape *shape, uint32_t dim,
                              sw_range share)
{
    sw_pieces *along = room(arena, shape->n_dims, sizeof *along);
    sw_held *held = room(arena, 1, sizeof *held);

    stored->n_bytes = 2;
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        sw_range *range = room(arena, 1, sizeof *range);
        *range = d == dim ? share : (sw_range){0, shape->dims[d]};
        along[d] = (sw_pieces){1, range};
        stored->n_bytes *= range->end - range->begin;
    }
    held->part = held->owned = (sw_part){shape->n_dims, along};
    return held;
}

static void lay_out(sw_target *target, uint32_t number)
{
    sw_target_file *file = &target->files[number];
    sw_error err = {0};

    for (uint32_t i = file->first_part; i < file->first_part + file->n_parts; i++) {
        target->parts[i].begin = file->data_bytes;
        file->data_bytes += target->parts[i].n_bytes;
    }
    check(sw_target_header_measure(target, number, &file->header_bytes, &err), file->name, &err);
}

sw_target *bench_cut(const sw_store *source, uint32_t n_files, uint32_t dim)
{
    sw_target *target = sw_alloc_zero(1, sizeof *target);

    if (target == NULL || (target->arena = sw_arena_create(0)) == NULL)
        bench_die("memory", NULL);
    target->source = source;
    target->files = sw_alloc_zero(n_files, sizeof *target->files);
    target->parts = sw_alloc_zero((size_t)n_files * source->n_tensors, sizeof *target->parts);
    if (target->files == NULL || target->parts == NULL)
        bench_die("memory", NULL);
    for (uint32_t f = 0; f < n_files; f++) {
        sw_target_file *file = &target->files[target->n_files++];
        file->name = sw_arena_format(target->arena, "part-%" PRIu32 ".safetensors", f);
        file->first_part = target->n_parts;
        for (uint32_t t = 0; t < source->n_tensors; t++) {
            const sw_shape *shape = source->tensors[t].shape;
            sw_target_part *part = &target->parts[target->n_parts++];
            uint32_t along = dim < shape->n_dims ? dim : shape->n_dims - 1;
            uint64_t share = shape->dims[along] / n_files;
            *part = (sw_target_part){.tensor = t};
            part->held = held_of(target->arena, part, shape, along, (sw_range){f * share, (f + 1) * share});
        }
        file->n_parts = source->n_tensors;
        lay_out(target, f);
    }
    return target;
}

sw_store *bench_store_of(const sw_store *source, const sw_target *target, const char *folder)
{
    sw_arena *arena = target->arena;
    sw_store *store = room(arena, 1, sizeof *store);

    *store = (sw_store){.kind = SW_STORE_SHARDED, .n_files = target->n_files, .n_tensors = source->n_tensors};
    store->files = room(arena, target->n_files, sizeof *store->files);
    store->tensors = room(arena, source->n_tensors, sizeof *store->tensors);
    store->parts = room(arena, target->n_parts, sizeof *store->parts);
    for (uint32_t f = 0; f < target->n_files; f++) {
        const sw_target_file *file = &target->files[f];
        store->files[f] = (sw_store_file){.name = file->name,
                                          .path = sw_arena_format(arena, "%s/%s", folder, file->name),
                                          .n_bytes = file->header_bytes + file->data_bytes,
                                          .data_begin = file->header_bytes,
                                          .tp = (int32_t)f,
                                          .ep = -1};
    }
    for (uint32_t t = 0; t < source->n_tensors; t++) {
        store->tensors[t] = source->tensors[t];
        store->tensors[t].first_part = store->n_parts;
        store->tensors[t].n_parts = target->n_files;
        for (uint32_t f = 0; f < target->n_files; f++) {
            const sw_target_part *part = &target->parts[target->files[f].first_part + t];
            store->parts[store->n_parts++] = (sw_store_part){.file = f,
                                                             .begin = part->begin,
                                                             .n_bytes = part->n_bytes,
                                                             .held = part->held,
                                                             .has_hash = true,
                                                             .hash = part->hash};
        }
    }
    return store;
}
