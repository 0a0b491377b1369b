/*
 * Sharded folders written by the ranks that have the parts (train/folder.h): each file by the first of those
 * that hold the same. Checksums go to all ranks, for the files of one run have a number in common that
 * follows from them.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"
#include "checkpoint/manifest.h"
#include "checkpoint/prove.h"
#include "checkpoint/target_file.h"
#include "comm/collective.h"
#include "mesh/mesh.h"
#include "model/shards.h"
#include "plan/plan_write.h"
#include "train/folder_saving.h"

enum { PATH_BYTES = 4096 };

typedef struct parts {
    sw_folder_saving s;
    sw_comm *comm;
    const sw_group *all;
    sw_mesh_coord at;
    sw_plan plan; /* that of the ranks, with the dtype of what is written; shallow */
    sw_facts *facts;
    char folder[PATH_BYTES]; /* that is written to */
} parts;

static void clear_parts(parts *p)
{
    sw_free(p->facts);
    sw_folder_saving_clear(&p->s);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status no_memory(const parts *p)
{
    return SW_FAIL(p->s.err, SW_E_NO_MEMORY, "", "no memory to write a checkpoint");
}

/* A plan of the same model with other elements. */
static sw_status retype_plan(parts *p, const sw_plan *plan)
{
    p->facts = sw_alloc(((size_t)plan->n_facts + 1) * sizeof *p->facts);
    if (p->facts == NULL)
        return no_memory(p);
    p->plan = *plan;
    p->plan.facts = p->facts;
    for (uint32_t i = 0; i < plan->n_facts; i++) {
        p->facts[i] = plan->facts[i];
        p->facts[i].dtype = p->s.folder->dtype;
    }
    p->plan.fingerprint = 0;
    for (uint32_t i = 0; i < p->s.store.n_tensors; i++) {
        if (p->s.store.tensors[i].state_of == UINT32_MAX)
            p->plan.fingerprint += sw_tensor_fingerprint(&p->s.store.list.tensors[i]);
    }
    p->s.store.fingerprint = p->plan.fingerprint;
    return SW_OK;
}

static sw_status prepare(parts *p, const sw_plan *plan)
{
    const sw_buffer *state = p->s.folder->state;

    SW_TRY(sw_folder_saving_begin(&p->s));
    p->s.store.state_json = state->bytes;
    p->s.store.state_length = state->length - 1; /* without the end of the line */
    SW_TRY(retype_plan(p, plan));
    return sw_target_of_plan(&p->s.target, &p->s.store, &p->plan, p->s.err);
}

/* Rank 0 makes the folder that all write to. */
static sw_status make_folder(parts *p, const char *out, bool replace)
{
    const sw_publish_choices choices = {.replace = replace,
                                        .need_bytes = sw_target_bytes(p->s.target) +
                                                      sw_carry_bytes(&p->s.store) + p->s.config.length +
                                                      SW_FOLDER_SMALL_BYTES};
    sw_status status = SW_OK;

    if (p->all->index == 0)
        status = sw_publish_begin(&p->s.publication, out, &choices, p->s.err);
    if (p->all->index == 0 && status == SW_OK &&
        snprintf(p->folder, PATH_BYTES, "%s", p->s.publication.partial) >= PATH_BYTES)
        status = SW_FAIL(p->s.err, SW_E_LIMIT, "give a shorter path", "%.300s...: is too long", out);
    SW_TRY(sw_comm_agree(p->comm, status, p->s.err));
    sw_broadcast(p->all, 0, PATH_BYTES, SW_DTYPE_U8, p->folder);
    return SW_OK;
}

/* ---- files of ranks ---- */

/* Is this rank at the coordinate of the file, or is the file not told apart by this axis? */
static bool is_at(const parts *p, sw_axis axis, int32_t wanted)
{
    return wanted < 0 || p->at.at[axis] == (uint32_t)wanted;
}

/* Of the ranks that hold the same the first: files of experts alone are on a mesh of their own. */
static bool is_mine(const parts *p, const sw_target_file *file)
{
    bool is_first =
        file->tp < 0 ? p->at.at[SW_AXIS_EDP] == 0 : p->at.at[SW_AXIS_DP] == 0 && p->at.at[SW_AXIS_CP] == 0;

    return is_first && is_at(p, SW_AXIS_TP, file->tp) && is_at(p, SW_AXIS_EP, file->ep);
}

static sw_status write_file_parts(parts *p, const sw_target_file *file, int fd, const char *path)
{
    for (uint32_t i = file->first_part; i < file->first_part + file->n_parts; i++) {
        sw_target_part *part = &p->s.target->parts[i];
        const void *data = p->s.folder->tensors[part->tensor].data;
        part->hash = sw_hash(data, part->n_bytes, 0);
        SW_TRY(sw_disk_pwrite(fd, path, data, part->n_bytes, file->header_bytes + part->begin, p->s.err));
    }
    return SW_OK;
}

static sw_status write_data(parts *p, uint32_t number)
{
    const sw_target_file *file = &p->s.target->files[number];
    char *path SW_AUTO(drop_text) = sw_path_in(p->folder, file->name);
    int fd = -1;

    if (path == NULL)
        return no_memory(p);
    SW_TRY(sw_target_file_create(p->s.target, number, path, p->s.err));
    SW_TRY(sw_disk_open(&fd, path, p->s.err));
    sw_status status = write_file_parts(p, file, fd, path);
    if (status != SW_OK) {
        (void)close(fd);
        return status;
    }
    return sw_disk_close(&fd, path, p->s.err);
}

static sw_status seal(parts *p, uint32_t number)
{
    char *path SW_AUTO(drop_text) = sw_path_in(p->folder, p->s.target->files[number].name);

    return path == NULL ? no_memory(p) : sw_target_file_seal(p->s.target, number, path, p->s.err);
}

static sw_status for_mine(parts *p, sw_status (*write)(parts *, uint32_t))
{
    sw_status status = SW_OK;

    for (uint32_t f = 0; f < p->s.target->n_files && status == SW_OK; f++) {
        if (is_mine(p, &p->s.target->files[f]))
            status = write(p, f);
    }
    return sw_comm_agree(p->comm, status, p->s.err);
}

/* The checksums of each file from the rank that wrote it. */
static sw_status share_hashes(parts *p)
{
    sw_target *target = p->s.target;
    uint64_t *hashes = sw_alloc_zero((size_t)target->n_parts + 1, sizeof *hashes);

    sw_status status = hashes == NULL ? no_memory(p) : SW_OK;
    status = sw_comm_agree(p->comm, status, p->s.err);
    for (uint32_t f = 0; hashes != NULL && status == SW_OK && f < target->n_files; f++) {
        sw_target_part *first = &target->parts[target->files[f].first_part];
        uint32_t n = target->files[f].n_parts;
        double writer = is_mine(p, &target->files[f]) ? p->all->index : 0;
        sw_all_reduce_max(p->all, 1, SW_DTYPE_F64, &writer, &writer);
        for (uint32_t i = 0; i < n; i++)
            hashes[i] = first[i].hash;
        sw_broadcast(p->all, (uint32_t)writer, n * sizeof *hashes, SW_DTYPE_U8, hashes);
        for (uint32_t i = 0; i < n; i++)
            first[i].hash = hashes[i];
    }
    sw_free(hashes);
    return status;
}

/* ---- small files ---- */

static sw_status append(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    sw_buffer *buffer = user;

    sw_buffer_append(buffer, bytes, n_bytes);
    return buffer->failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a manifest") : SW_OK;
}

/* What is carried along, and the config as it is now. */
static sw_status write_carried(parts *p)
{
    sw_target *target = p->s.target;
    const sw_buffer *config = &p->s.config;
    uint64_t carried = 0;

    SW_TRY(sw_carry(target, p->folder, &carried, p->s.err));
    SW_TRY(sw_carry_write(p->folder, SW_FOLDER_CONFIG, config->bytes, config->length, p->s.err));
    sw_small_file *list = sw_arena_zero(target->arena, (size_t)target->n_carried + 1, sizeof *list);
    if (list == NULL)
        return no_memory(p);
    for (uint32_t i = 0; i < target->n_carried; i++)
        list[i] = target->carried[i];
    list[target->n_carried++] =
        (sw_small_file){SW_FOLDER_CONFIG, config->length, sw_hash(config->bytes, config->length, 0)};
    target->carried = list;
    return SW_OK;
}

static sw_status write_small(parts *p)
{
    sw_buffer plan SW_AUTO(sw_buffer_clear) = {0};
    sw_buffer manifest SW_AUTO(sw_buffer_clear) = {0};
    const sw_sink sink = {append, &manifest};
    sw_target *target = p->s.target;

    SW_TRY(sw_prove_copies(&p->s.store, target, p->s.err));
    SW_TRY(write_carried(p));
    SW_TRY(sw_plan_write(&p->plan, &plan, p->s.err));
    target->has_plan_hash = true;
    target->plan_hash = sw_hash(plan.bytes, plan.length, 0);
    SW_TRY(sw_carry_write(p->folder, SW_PLAN_NAME, plan.bytes, plan.length, p->s.err));
    SW_TRY(sw_manifest_write(target, &sink, p->s.err));
    SW_TRY(sw_carry_write(p->folder, SW_MANIFEST_NAME, manifest.bytes, manifest.length, p->s.err));
    return sw_publish_end(&p->s.publication, p->s.err);
}

sw_status sw_folder_write_parts(const sw_folder *folder, const sw_plan *plan, sw_comm *comm, const char *out,
                                bool replace, sw_error *err)
{
    parts p SW_AUTO(clear_parts) = {
        .s = {.folder = folder, .err = err},
          .comm = comm, .all = sw_comm_group(comm, SW_GROUP_WORLD)
    };

    sw_status status = sw_mesh_coord_of(sw_comm_mesh(comm), sw_comm_rank(comm), &p.at, err);
    if (status == SW_OK)
        status = prepare(&p, plan);
    SW_TRY(sw_comm_agree(comm, status, err));
    SW_TRY(make_folder(&p, out, replace));
    SW_TRY(for_mine(&p, write_data));
    SW_TRY(share_hashes(&p));
    sw_target_number_run(p.s.target);
    SW_TRY(for_mine(&p, seal));
    return sw_comm_agree(comm, p.all->index == 0 ? write_small(&p) : SW_OK, err);
}
