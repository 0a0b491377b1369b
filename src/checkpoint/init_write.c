/*
 * Chunks of tensors as the items of a crew (checkpoint/init_write.h). A chunk is a run of elements of one
 * tensor; which one an item is follows from the running count of chunks before each tensor.
 */
#include "checkpoint/init_write.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "checkpoint/target_file.h"

enum { CHUNK = 1 << 18 }; /* elements; even, so that no pair of random numbers is computed twice */

typedef struct init_thread {
    uint8_t *bytes; /* room for a chunk of F32 */
    uint32_t file;  /* the one that is open */
    int fd;         /* -1: none */
} init_thread;

typedef struct init_run {
    const sw_target *target;
    const sw_store *store;
    const sw_init_scale *scale;
    uint64_t seed;
    const sw_checkpoint_options *options;
    sw_arena *arena;
    const char **paths;    /* of the files */
    uint64_t *first_chunk; /* by part; one more at the end */
    uint32_t *file_of;     /* by part */
    init_thread *threads;
    uint32_t n_threads;
    sw_crew crew;
} init_run;

static sw_status no_memory(const init_run *run, sw_error *err)
{
    return sw_arena_fail(run->arena, "the list of what is to be written", err);
}

static void close_file(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static void clear_run(init_run *run)
{
    for (uint32_t i = 0; i < run->n_threads; i++) {
        close_file(&run->threads[i].fd);
        sw_free(run->threads[i].bytes);
    }
    sw_arena_destroy(run->arena);
}

/* ---- beginning ---- */

static sw_status list_work(init_run *run, const char *folder, sw_error *err)
{
    const sw_target *target = run->target;

    run->paths = sw_arena_zero(run->arena, target->n_files, sizeof *run->paths);
    run->first_chunk = sw_arena_zero(run->arena, (size_t)target->n_parts + 1, sizeof *run->first_chunk);
    run->file_of = sw_arena_zero(run->arena, target->n_parts, sizeof *run->file_of);
    if (run->paths == NULL || run->first_chunk == NULL || run->file_of == NULL)
        return no_memory(run, err);
    for (uint32_t f = 0; f < target->n_files; f++) {
        const sw_target_file *file = &target->files[f];
        run->paths[f] = sw_arena_format(run->arena, "%s/%s", folder, file->name);
        if (run->paths[f] == NULL)
            return no_memory(run, err);
        run->crew.total += file->data_bytes;
        for (uint32_t p = file->first_part; p < file->first_part + file->n_parts; p++) {
            uint64_t elems = run->store->tensors[target->parts[p].tensor].shape->elems;
            run->file_of[p] = f;
            run->first_chunk[p + 1] = run->first_chunk[p] + elems / CHUNK + (elems % CHUNK != 0);
        }
    }
    return SW_OK;
}

static sw_status hire(init_run *run, sw_error *err)
{
    uint32_t n = sw_crew_size(run->options->threads);

    run->threads = sw_arena_zero(run->arena, n, sizeof *run->threads);
    if (run->threads == NULL)
        return no_memory(run, err);
    for (; run->n_threads < n; run->n_threads++) {
        init_thread *thread = &run->threads[run->n_threads];
        thread->fd = -1;
        thread->bytes = sw_alloc((size_t)CHUNK * sizeof(float));
        if (thread->bytes == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the buffer of a thread");
    }
    sw_crew_hire(&run->crew, n, run, run->options->on_progress, run->options->user);
    return SW_OK;
}

/* ---- work ---- */

static sw_status close_open(init_run *run, init_thread *thread, sw_error *err)
{
    return thread->fd < 0 ? SW_OK : sw_disk_close(&thread->fd, run->paths[thread->file], err);
}

static sw_status open_file(init_run *run, init_thread *thread, uint32_t file, sw_error *err)
{
    if (thread->fd >= 0 && thread->file == file)
        return SW_OK;
    SW_TRY(close_open(run, thread, err));
    thread->file = file;
    return sw_disk_open(&thread->fd, run->paths[file], err);
}

/* The part that a chunk belongs to: the last whose first chunk is not behind it. */
static uint32_t part_of(const init_run *run, uint64_t chunk)
{
    uint32_t low = 0;
    uint32_t high = run->target->n_parts;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (run->first_chunk[middle] <= chunk)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static sw_status write_chunk(void *user, uint32_t thread_number, uint64_t item, sw_error *err)
{
    init_run *run = user;
    init_thread *thread = &run->threads[thread_number];
    uint32_t p = part_of(run, item);
    const sw_target_part *part = &run->target->parts[p];
    const sw_store_tensor *tensor = &run->store->tensors[part->tensor];
    const sw_target_file *file = &run->target->files[run->file_of[p]];
    uint64_t first = (item - run->first_chunk[p]) * CHUNK;
    uint64_t left = tensor->shape->elems - first;
    size_t n = left < CHUNK ? (size_t)left : CHUNK;
    size_t width = sw_dtype_bits(tensor->dtype) / 8;

    sw_init_rule rule = sw_init_rule_of(run->scale, tensor->name, tensor->name_length, tensor->shape);
    sw_random random = sw_random_of(run->seed, tensor->name, tensor->name_length);
    sw_init_fill(&rule, &random, tensor->dtype, first, n, thread->bytes);
    SW_TRY(open_file(run, thread, run->file_of[p], err));
    SW_TRY(sw_disk_pwrite(thread->fd, run->paths[thread->file], thread->bytes, n * width,
                          file->header_bytes + part->begin + first * width, err));
    sw_crew_add(&run->crew, n * width);
    return SW_OK;
}

static sw_status sync_file(void *user, uint32_t thread_number, uint64_t item, sw_error *err)
{
    init_run *run = user;
    init_thread *thread = &run->threads[thread_number];
    uint32_t file = (uint32_t)item;

    SW_TRY(open_file(run, thread, file, err));
    SW_TRY(sw_disk_sync(thread->fd, run->paths[file], err));
    sw_crew_add(&run->crew, run->target->files[file].data_bytes);
    return SW_OK;
}

sw_status sw_init_write(const sw_target *target, const sw_store *store, const sw_init_scale *scale,
                        uint64_t seed, const char *folder, const sw_checkpoint_options *options,
                        sw_error *err)
{
    init_run run SW_AUTO(clear_run) = {
        .target = target,
        .store = store,
        .scale = scale,
        .seed = seed,
        .options = options,
        .arena = sw_arena_create(0),
    };

    if (run.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the list of what is to be written");
    SW_TRY(list_work(&run, folder, err));
    SW_TRY(hire(&run, err));
    for (uint32_t i = 0; i < target->n_files; i++)
        SW_TRY(sw_target_file_create(target, i, run.paths[i], err));
    SW_TRY(sw_crew_stage(&run.crew, "write", write_chunk, run.first_chunk[target->n_parts], err));
    for (uint32_t i = 0; i < target->n_files; i++)
        SW_TRY(sw_target_file_seal(target, i, run.paths[i], err));
    if (!options->no_sync)
        SW_TRY(sw_crew_stage(&run.crew, "sync", sync_file, target->n_files, err));
    for (uint32_t i = 0; i < run.n_threads; i++)
        SW_TRY(close_open(&run, &run.threads[i], err));
    return SW_OK;
}
