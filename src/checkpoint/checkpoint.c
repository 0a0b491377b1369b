/*
 * shard, merge and reshard: open the source, make the target, prove that it holds everything once, copy,
 * write the small files, publish. Nothing is written before all that can be known is known.
 */
#include "shardwright/checkpoint.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/copy.h"
#include "checkpoint/format.h"
#include "checkpoint/group_order.h"
#include "checkpoint/manifest.h"
#include "checkpoint/options.h"
#include "checkpoint/prove.h"
#include "checkpoint/publish.h"
#include "model/shards.h"
#include "plan/plan_data.h"
#include "plan/plan_write.h"
#include "plan/report.h"

enum { SHOWN_RANKS = 16 };
enum { SMALL_FILES_BYTES = 1 << 20 }; /* room for what is small and not yet made */

/* One call. */
typedef struct job {
    sw_checkpoint_options options;
    sw_store *source;
    sw_target *target;
    sw_publication publication;
    sw_proof proof;
    sw_checkpoint_result result;
    uint64_t plan_bytes; /* of plan.json */
    sw_error *err;
} job;

static void clear_job(job *j)
{
    sw_publish_drop(&j->publication);
    sw_target_destroy(j->target);
    sw_store_close(j->source);
}

static void clear_buffer(sw_buffer *buffer)
{
    sw_buffer_clear(buffer);
}

/* ---- beginning ---- */

static sw_status begin_job(job *j, const sw_checkpoint_options *given, sw_checkpoint_result *result,
                           sw_error *err)
{
    j->err = err;
    return sw_checkpoint_begin(&j->options, given, result, err);
}

static sw_status open_source(job *j, const char *path, sw_store_kind kind)
{
    sw_store_options options = {.report = j->options.report};

    SW_TRY(sw_store_open(&j->source, path, &options, j->err));
    if (j->source->kind == kind)
        return SW_OK;
    if (kind == SW_STORE_HF)
        return SW_FAIL(j->err, SW_E_FORMAT, "reshard takes it from one mesh to another",
                       "%s: is a sharded folder already", path);
    return SW_FAIL(j->err, SW_E_FORMAT, "shard splits a Hugging Face model",
                   "%s: is no sharded folder: it has no manifest.json, and its files do not say so", path);
}

static sw_status check_model(const job *j, const sw_plan *plan)
{
    if (plan->fingerprint == j->source->fingerprint)
        return SW_OK;
    return SW_FAIL(j->err, SW_E_PLAN, "make the plan from this model",
                   "%.200s: the plan is of another model: its fingerprint is %016" PRIx64 " (%" PRIu64
                   " parameters), this one's is %016" PRIx64 " (%" PRIu32 " tensors)",
                   j->source->path, plan->fingerprint, plan->n_params, j->source->fingerprint,
                   j->source->n_tensors);
}

/* In a sharded folder names alone tell optimizer state from parameters, so that both must agree about the
 * source: else what is written has another fingerprint than its files say. */
static sw_status check_states(const job *j)
{
    const sw_store *source = j->source;

    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const sw_store_tensor *t = &source->tensors[i];
        const char *file = source->files[source->parts[t->first_part].file].name;
        bool is_state = t->state_of != UINT32_MAX;
        if (is_state && i < source->n_model)
            return SW_FAIL(
                j->err, SW_E_FORMAT, "move it to optimizer-00001-of-00001.safetensors, which no index names",
                "%.200s: is optimizer state by its name, and stands in %.150s with the model", t->name, file);
        if (!is_state && i >= source->n_model)
            return SW_FAIL(j->err, SW_E_FORMAT, "take it out of that file",
                           "%.200s: stands in %.150s, and is optimizer state of no parameter of the model",
                           t->name, file);
    }
    return SW_OK;
}

static bool has_rank(const sw_store *store, uint32_t rank)
{
    bool has_it = false;

    for (uint32_t f = 0; f < store->n_files && !has_it; f++)
        has_it = sw_copy_rank(&store->files[f]) == (int64_t)rank;
    return has_it;
}

/* A rank that no file has picks nothing. */
static sw_status check_pick(const job *j)
{
    sw_buffer ranks SW_AUTO(clear_buffer) = {0};
    uint32_t most = 0;
    uint32_t n = 0;

    if (!j->options.has_pick)
        return SW_OK;
    if (has_rank(j->source, j->options.pick)) {
        if (j->options.report != NULL)
            sw_report_add(j->options.report, SW_SEVERITY_NOTE, "replica_picked", "", "",
                          "where rank %" PRIu32 " has a copy it is taken, and not compared with others",
                          j->options.pick);
        return SW_OK;
    }
    for (uint32_t f = 0; f < j->source->n_files; f++) {
        int32_t rank = sw_copy_rank(&j->source->files[f]);
        most = rank > (int32_t)most ? (uint32_t)rank : most;
    }
    for (uint32_t r = 0; r <= most && n < SHOWN_RANKS; r++) {
        if (has_rank(j->source, r))
            sw_buffer_printf(&ranks, "%s%" PRIu32, n++ == 0 ? "" : ", ", r);
    }
    if (n == SHOWN_RANKS)
        sw_buffer_printf(&ranks, " ... %" PRIu32, most);
    const char *shown = sw_buffer_text(&ranks);
    return SW_FAIL(j->err, SW_E_ARGUMENT, "pick one of those",
                   "%.200s: has no files of rank %" PRIu32 ", but of %s", j->source->path, j->options.pick,
                   shown == NULL ? "others" : shown);
}

/* Nothing is made from the source's own plan: whoever reads it later should know. */
static sw_status look_at_plan(const job *j)
{
    bool is_right = true;

    SW_TRY(sw_store_check_plan(j->source, &is_right, j->err));
    if (!is_right && j->options.report != NULL)
        sw_report_add(j->options.report, SW_SEVERITY_WARNING, "plan_edited", SW_PLAN_NAME,
                      "nothing is made from it; put the plan there that the checkpoint was written by",
                      "%.300s: its plan.json was edited or damaged after it was written", j->source->path);
    return SW_OK;
}

/* What comes out of the source must be right: each element once, copies equal. */
static sw_status check_source(job *j)
{
    const sw_copy_pick pick = {.by_rank = j->options.has_pick, .rank = j->options.pick};

    SW_TRY(check_pick(j));
    SW_TRY(sw_carry_check(j->source, j->err));
    SW_TRY(look_at_plan(j));
    SW_TRY(sw_prove_store(j->source, &j->proof, j->err));
    return sw_compare_replicas(j->source, &pick, j->options.on_progress, j->options.user, j->options.report,
                               &j->result.bytes_read, j->err);
}

/* ---- writing ---- */

static sw_status begin_writing(job *j, const char *out)
{
    uint64_t need = sw_target_bytes(j->target) + sw_carry_bytes(j->source) + j->source->state_length +
                    j->plan_bytes + SMALL_FILES_BYTES;

    for (uint32_t f = 0; f < j->target->n_files; f++)
        need += j->target->files[f].header_bytes; /* the manifest or index: about as much as the headers */
    const sw_publish_choices choices = {.source = j->source->path,
                                        .replace = j->options.replace,
                                        .no_sync = j->options.no_sync,
                                        .need_bytes = need};
    return sw_publish_begin(&j->publication, out, &choices, j->err);
}

static sw_status copy(job *j)
{
    sw_copy_options options = {.threads = j->options.threads,
                               .no_sync = j->options.no_sync,
                               .has_pick = j->options.has_pick,
                               .pick = j->options.pick,
                               .on_progress = j->options.on_progress,
                               .user = j->options.user};
    sw_copy_result copied = {0};

    SW_TRY(sw_copy_run(j->source, j->target, j->publication.partial, &options, &copied, j->err));
    j->result.bytes_read += copied.bytes_read;
    j->result.bytes_written += copied.bytes_written;
    return sw_carry(j->target, j->publication.partial, &j->result.bytes_written, j->err);
}

static sw_status write_small(job *j, const char *name, const void *bytes, size_t n_bytes)
{
    SW_TRY(sw_carry_write(j->publication.partial, name, bytes, n_bytes, j->err));
    j->result.bytes_written += n_bytes;
    return SW_OK;
}

static sw_status end(job *j, sw_checkpoint_result *result)
{
    SW_TRY(sw_publish_end(&j->publication, j->err));
    j->result.elements = j->proof.elements;
    j->result.covered = j->proof.covered;
    j->result.replicas = j->proof.replicas;
    j->result.files = j->target->n_files;
    if (result != NULL)
        *result = j->result;
    return SW_OK;
}

/* ---- sharded folders ---- */

/* A small file while it is written piece by piece. */
typedef struct growing {
    char *path;
    int fd; /* -1: none */
    uint64_t n_bytes;
} growing;

static void drop_growing(growing *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    sw_free(file->path);
}

static sw_status append_piece(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    growing *file = user;

    SW_TRY(sw_disk_pwrite(file->fd, file->path, bytes, n_bytes, file->n_bytes, err));
    file->n_bytes += n_bytes;
    return SW_OK;
}

static sw_status put_plan(job *j, const sw_sink *sink)
{
    return sw_plan_write_to(j->target->plan, sink, j->err);
}

static sw_status put_manifest(job *j, const sw_sink *sink)
{
    return sw_manifest_write(j->target, sink, j->err);
}

/* A file of a text that is too large to be held. */
static sw_status write_grown(job *j, const char *name, sw_status (*put)(job *, const sw_sink *))
{
    growing file SW_AUTO(drop_growing) = {.path = sw_path_in(j->publication.partial, name), .fd = -1};
    const sw_sink sink = {append_piece, &file};

    if (file.path == NULL)
        return SW_FAIL(j->err, SW_E_NO_MEMORY, "", "no memory for the path of %s", name);
    SW_TRY(sw_disk_create(&file.fd, file.path, j->err));
    SW_TRY(put(j, &sink));
    j->result.bytes_written += file.n_bytes;
    return sw_disk_close(&file.fd, file.path, j->err); /* publishing syncs it */
}

/* The length and checksum of plan.json before it is written: what it needs must be free, and the manifest
 * says what it is. */
typedef struct measure {
    sw_hasher hasher;
    uint64_t n_bytes;
} measure;

static sw_status take_measure(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    measure *m = user;

    (void)err;
    sw_hasher_add(&m->hasher, bytes, n_bytes);
    m->n_bytes += n_bytes;
    return SW_OK;
}

static sw_status measure_plan(job *j)
{
    measure m = {.n_bytes = 0};
    const sw_sink sink = {take_measure, &m};

    sw_hasher_begin(&m.hasher);
    SW_TRY(put_plan(j, &sink));
    j->target->has_plan_hash = true;
    j->target->plan_hash = sw_hasher_end(&m.hasher);
    j->plan_bytes = m.n_bytes;
    return SW_OK;
}

static sw_status write_sharded(job *j, const sw_plan *plan, const char *out, sw_checkpoint_result *result)
{
    SW_TRY(sw_target_of_plan(&j->target, j->source, plan, j->err));
    SW_TRY(sw_prove_target(j->source, j->target, &j->proof, j->err));
    SW_TRY(sw_group_order_check(j->source, j->target, &j->result.bytes_read, j->err));
    SW_TRY(measure_plan(j));
    SW_TRY(begin_writing(j, out));
    SW_TRY(copy(j));
    SW_TRY(sw_prove_copies(j->source, j->target, j->err));
    SW_TRY(write_grown(j, SW_PLAN_NAME, put_plan));
    SW_TRY(write_grown(j, SW_MANIFEST_NAME, put_manifest));
    return end(j, result);
}

sw_status sw_checkpoint_shard(const char *model_path, const sw_plan *plan, const char *out,
                              const sw_checkpoint_options *options, sw_checkpoint_result *result,
                              sw_error *err)
{
    job j SW_AUTO(clear_job) = {0};

    SW_TRY(begin_job(&j, options, result, err));
    SW_NEED(model_path, err);
    SW_NEED(plan, err);
    SW_NEED(out, err);
    j.options.has_pick = false;
    SW_TRY(open_source(&j, model_path, SW_STORE_HF));
    SW_TRY(check_model(&j, plan));
    SW_TRY(check_states(&j));
    return write_sharded(&j, plan, out, result);
}

sw_status sw_checkpoint_reshard(const char *in, const sw_plan *plan, const char *out,
                                const sw_checkpoint_options *options, sw_checkpoint_result *result,
                                sw_error *err)
{
    job j SW_AUTO(clear_job) = {0};

    SW_TRY(begin_job(&j, options, result, err));
    SW_NEED(in, err);
    SW_NEED(plan, err);
    SW_NEED(out, err);
    j.options.has_pick = false;
    SW_TRY(open_source(&j, in, SW_STORE_SHARDED));
    SW_TRY(check_model(&j, plan));
    SW_TRY(check_source(&j));
    return write_sharded(&j, plan, out, result);
}

/* ---- Hugging Face folders ---- */

static sw_status write_folder(job *j, const char *out, sw_checkpoint_result *result)
{
    sw_buffer index SW_AUTO(clear_buffer) = {0};

    SW_TRY(sw_target_of_folder(&j->target, j->source, j->options.max_shard_bytes, j->err));
    SW_TRY(begin_writing(j, out));
    SW_TRY(copy(j));
    if (j->source->state_json != NULL)
        SW_TRY(write_small(j, SW_STATE_NAME, j->source->state_json, j->source->state_length));
    SW_TRY(sw_target_index(&index, j->target, j->err));
    SW_TRY(write_small(j, SW_INDEX_NAME, index.bytes, index.length));
    return end(j, result);
}

sw_status sw_checkpoint_merge(const char *in, const char *out, const sw_checkpoint_options *options,
                              sw_checkpoint_result *result, sw_error *err)
{
    job j SW_AUTO(clear_job) = {0};

    SW_TRY(begin_job(&j, options, result, err));
    SW_NEED(in, err);
    SW_NEED(out, err);
    SW_TRY(open_source(&j, in, SW_STORE_SHARDED));
    SW_TRY(check_source(&j));
    return write_folder(&j, out, result);
}
