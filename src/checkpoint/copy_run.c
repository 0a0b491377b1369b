/*
 * Writing all files of a target (checkpoint/copy.h): make and reserve them, fill them tensor by tensor on a
 * few threads, give them their headers, sync them. So a full disk is met before the work begins, and each
 * byte of the source is read once. Invariant: no byte of a file is written by two threads, and no file has a
 * header before all data are written.
 */
#include "checkpoint/copy.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "checkpoint/crew.h"
#include "checkpoint/target_file.h"

enum {
    SETS_OF_THREAD = 2,   /* of open files: those it reads, those it writes */
    SEND_BYTES = 8 << 20, /* of a part are handed to the device at once */
};

/* One stored tensor to be written. */
typedef struct part_place {
    uint32_t part;
    uint32_t file;
} part_place;

typedef struct copy_run copy_run;

typedef struct copy_thread {
    copy_run *run;
    sw_copy_filler filler;
    struct {
        uint32_t file;
        int fd;            /* -1: the slot is free */
    } open[SW_MOST_SLOTS]; /* file i stands in slot i % n_slots */
} copy_thread;

struct copy_run {
    const sw_store *source;
    sw_target *target;
    const sw_copy_options *options;
    sw_arena *arena;
    const char **paths; /* of the files */
    part_place *places; /* sorted by tensor, then by file */
    uint32_t *first_of; /* by tensor: its first place; one more at the end */
    uint32_t *tensors;  /* those that are wanted, in the order of the source */
    uint32_t n_tensors;
    copy_thread *threads;
    uint32_t n_threads;
    uint32_t n_slots; /* of a set of open files */
    sw_crew crew;
};

/* What one part's sink knows. */
typedef struct part_writer {
    copy_thread *thread;
    uint32_t file;
    uint64_t offset; /* in the file */
    uint64_t sent;   /* up to here the device was told to begin */
    sw_hasher *hasher;
} part_writer;

static sw_status no_memory(const copy_run *run, sw_error *err)
{
    return sw_arena_fail(run->arena, "the list of what is to be copied", err);
}

/* ---- output files ---- */

static sw_status close_slot(copy_thread *thread, size_t slot, sw_error *err)
{
    return sw_disk_close(&thread->open[slot].fd, thread->run->paths[thread->open[slot].file], err);
}

static sw_status open_file(copy_thread *thread, uint32_t file, int *fd, sw_error *err)
{
    size_t slot = file % thread->run->n_slots;

    if (thread->open[slot].fd < 0 || thread->open[slot].file != file) {
        SW_TRY(close_slot(thread, slot, err));
        thread->open[slot].file = file;
        SW_TRY(sw_disk_open(&thread->open[slot].fd, thread->run->paths[file], err));
    }
    *fd = thread->open[slot].fd;
    return SW_OK;
}

static sw_status close_all(copy_thread *thread, sw_error *err)
{
    sw_status first = SW_OK;

    for (uint32_t i = 0; i < thread->run->n_slots; i++) {
        sw_status status = close_slot(thread, i, first == SW_OK ? err : NULL);
        first = first == SW_OK ? status : first;
    }
    return first;
}

/* ---- the list of work ---- */

static sw_status name_files(copy_run *run, const char *folder, sw_error *err)
{
    run->paths = sw_arena_zero(run->arena, run->target->n_files, sizeof *run->paths);
    if (run->paths == NULL)
        return no_memory(run, err);
    for (uint32_t i = 0; i < run->target->n_files; i++) {
        run->paths[i] = sw_arena_format(run->arena, "%s/%s", folder, run->target->files[i].name);
        if (run->paths[i] == NULL)
            return no_memory(run, err);
    }
    return SW_OK;
}

static sw_status check_place(const copy_run *run, const sw_target_file *file, uint32_t part, sw_error *err)
{
    const sw_target_part *at = &run->target->parts[part];
    uint64_t end = 0;

    if (at->tensor < run->source->n_tensors && sw_add_u64(at->begin, at->n_bytes, &end) &&
        end <= file->data_bytes)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "", "%s: tensor '%.150s' has no place in it", file->name,
                   at->tensor < run->source->n_tensors ? run->source->tensors[at->tensor].name : "?");
}

/* Parts by tensor: a counting sort that keeps the order of the files. */
static sw_status list_work(copy_run *run, sw_error *err)
{
    const sw_target *target = run->target;
    uint32_t n_tensors = run->source->n_tensors;

    run->first_of = sw_arena_zero(run->arena, (size_t)n_tensors + 1, sizeof *run->first_of);
    run->places = sw_arena_zero(run->arena, target->n_parts, sizeof *run->places);
    run->tensors = sw_arena_zero(run->arena, n_tensors, sizeof *run->tensors);
    uint32_t *next = sw_arena_zero(run->arena, n_tensors, sizeof *next);
    if (run->first_of == NULL || run->places == NULL || run->tensors == NULL || next == NULL)
        return no_memory(run, err);
    for (uint32_t f = 0; f < target->n_files; f++) {
        for (uint32_t i = 0; i < target->files[f].n_parts; i++) {
            SW_TRY(check_place(run, &target->files[f], target->files[f].first_part + i, err));
            run->first_of[target->parts[target->files[f].first_part + i].tensor + 1]++;
        }
    }
    for (uint32_t t = 0; t < n_tensors; t++) {
        if (run->first_of[t + 1] != 0)
            run->tensors[run->n_tensors++] = t;
        run->first_of[t + 1] += run->first_of[t];
        next[t] = run->first_of[t];
    }
    for (uint32_t f = 0; f < target->n_files; f++) {
        for (uint32_t i = 0; i < target->files[f].n_parts; i++) {
            uint32_t part = target->files[f].first_part + i;
            run->places[next[target->parts[part].tensor]++] = (part_place){part, f};
        }
    }
    return SW_OK;
}

/* ---- copying ---- */

/* The device works while we copy on; the sync at the end then has little left to wait for. */
static void hand_on(part_writer *writer, int fd)
{
    uint64_t n_bytes = writer->offset - writer->sent;

    if (n_bytes < SEND_BYTES || writer->thread->run->options->no_sync)
        return;
    sw_disk_write_soon(fd, writer->sent, n_bytes);
    writer->sent = writer->offset;
}

static sw_status write_piece(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    part_writer *writer = user;
    copy_run *run = writer->thread->run;
    int fd = -1;

    if (sw_crew_is_stopping(&run->crew)) /* what is said then is never seen */
        return SW_FAIL(err, SW_E_IO, "", "%s: stopped", run->paths[writer->file]);
    sw_hasher_add(writer->hasher, bytes, n_bytes);
    SW_TRY(open_file(writer->thread, writer->file, &fd, err));
    SW_TRY(sw_disk_pwrite(fd, run->paths[writer->file], bytes, n_bytes, writer->offset, err));
    writer->offset += n_bytes;
    hand_on(writer, fd);
    sw_crew_add(&run->crew, n_bytes);
    return SW_OK;
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

/* All parts of one tensor, side by side. */
static sw_status copy_tensor(void *user, uint32_t thread, uint64_t item, sw_error *err)
{
    copy_run *run = user;
    uint32_t tensor = run->tensors[item];
    const part_place *places = &run->places[run->first_of[tensor]];
    uint32_t n = run->first_of[tensor + 1] - run->first_of[tensor];
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);
    part_writer *writers = arena == NULL ? NULL : sw_arena_zero(arena, n, sizeof *writers);
    sw_copy_request *requests = writers == NULL ? NULL : sw_arena_zero(arena, n, sizeof *requests);
    void *hashers = requests == NULL ? NULL : sw_arena_alloc(arena, (n + (size_t)1) * sizeof(sw_hasher));

    if (hashers == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to copy %" PRIu32 " parts", n);
    for (uint32_t i = 0; i < n; i++) {
        const sw_target_part *part = &run->target->parts[places[i].part];
        uint64_t offset = run->target->files[places[i].file].header_bytes + part->begin;
        writers[i] =
            (part_writer){&run->threads[thread], places[i].file, offset, offset, sw_hasher_at(hashers, i)};
        requests[i] = (sw_copy_request){&part->held->part, part->n_bytes, offset, write_piece, &writers[i]};
        sw_hasher_begin(writers[i].hasher);
    }
    SW_TRY(sw_copy_fill(&run->threads[thread].filler, &run->source->tensors[tensor], requests, n, err));
    for (uint32_t i = 0; i < n; i++)
        run->target->parts[places[i].part].hash = sw_hasher_end(writers[i].hasher);
    return SW_OK;
}

static sw_status sync_file(void *user, uint32_t thread, uint64_t item, sw_error *err)
{
    copy_run *run = user;
    uint32_t file = (uint32_t)item;
    int fd = -1;

    SW_TRY(open_file(&run->threads[thread], file, &fd, err));
    SW_TRY(sw_disk_sync(fd, run->paths[file], err));
    sw_crew_add(&run->crew, run->target->files[file].header_bytes + run->target->files[file].data_bytes);
    return SW_OK;
}

/* ---- the whole ---- */

static void clear_run(copy_run *run)
{
    for (uint32_t i = 0; i < run->n_threads; i++) {
        SW_IGNORE(close_all(&run->threads[i], NULL)); /* after a success they are closed already */
        sw_copy_filler_clear(&run->threads[i].filler);
    }
    sw_arena_destroy(run->arena);
}

static sw_status hire(copy_run *run, sw_error *err)
{
    uint32_t n = sw_crew_size(run->options->threads);

    run->n_slots = sw_file_slots(SETS_OF_THREAD * n);
    run->threads = sw_arena_zero(run->arena, n, sizeof *run->threads);
    if (run->threads == NULL)
        return no_memory(run, err);
    for (; run->n_threads < n; run->n_threads++) {
        copy_thread *thread = &run->threads[run->n_threads];
        SW_TRY(sw_copy_filler_init(&thread->filler, run->source, run->n_slots, err));
        thread->filler.pick = (sw_copy_pick){.by_rank = run->options->has_pick, .rank = run->options->pick};
        thread->filler.is_checking = true;
        thread->run = run;
        for (uint32_t i = 0; i < run->n_slots; i++)
            thread->open[i].fd = -1;
    }
    sw_crew_hire(&run->crew, n, run, run->options->on_progress, run->options->user);
    return SW_OK;
}

static sw_status copy_and_sync(copy_run *run, sw_error *err)
{
    sw_target *target = run->target;

    for (uint32_t i = 0; i < target->n_files; i++)
        SW_TRY(sw_target_file_create(target, i, run->paths[i], err));
    for (uint32_t i = 0; i < target->n_files; i++)
        run->crew.total += target->files[i].data_bytes;
    SW_TRY(sw_crew_stage(&run->crew, "copy", copy_tensor, run->n_tensors, err));
    sw_target_number_run(target);
    for (uint32_t i = 0; i < target->n_files; i++)
        SW_TRY(sw_target_file_seal(target, i, run->paths[i], err));
    if (!run->options->no_sync) {
        run->crew.total = sw_target_bytes(target);
        SW_TRY(sw_crew_stage(&run->crew, "sync", sync_file, target->n_files, err));
    }
    for (uint32_t i = 0; i < run->n_threads; i++)
        SW_TRY(close_all(&run->threads[i], err));
    return SW_OK;
}

sw_status sw_copy_run(const sw_store *source, sw_target *target, const char *folder,
                      const sw_copy_options *options, sw_copy_result *result, sw_error *err)
{
    copy_run run SW_AUTO(clear_run) = {
        .source = source, .target = target, .options = options, .arena = sw_arena_create(0)};

    if (run.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the list of what is to be copied");
    SW_TRY(name_files(&run, folder, err));
    SW_TRY(list_work(&run, err));
    SW_TRY(hire(&run, err));
    SW_TRY(copy_and_sync(&run, err));
    *result = (sw_copy_result){.bytes_written = sw_target_bytes(target)};
    for (uint32_t i = 0; i < run.n_threads; i++)
        result->bytes_read += run.threads[i].filler.source.bytes_read;
    return SW_OK;
}
