/*
 * Loading a checkpoint over tp beside loading it on one rank, each rank with a thread of its own: the time,
 * and the bytes that a rank copies out of it. The file was just written, so the system has it in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply/load.h"
#include "base/alloc.h"
#include "base/disk.h"
#include "base/status.h"
#include "cli-mpi/bench_mesh.h"
#include "cli-mpi/bench_team.h"
#include "comm/agree.h"
#include "shardwright/checkpoint.h"
#include "train/load.h"

static const char times[] = "time to load to that of one rank";
static const char bytes[] = "bytes read to bytes held";

enum { PATH_BYTES = 400 };

/* A scratch folder with a checkpoint. */
typedef struct scratch {
    const sw_mesh_bed *bed;
    char folder[PATH_BYTES]; /* "": none */
    char model[PATH_BYTES + 16];
} scratch;

/* ---- the checkpoint ---- */

static void remove_scratch(scratch *s)
{
    sw_error unasked = {0};

    if (s->bed->is_first && s->folder[0] != '\0')
        SW_IGNORE(sw_disk_remove_tree(s->folder, &unasked)); /* what is left is named by nobody's result */
}

static void drop_buffer(sw_buffer *buffer)
{
    sw_buffer_clear(buffer);
}

static sw_status make_folder(scratch *s, sw_error *err)
{
    const char *temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
    char path[PATH_BYTES];

    temporary = temporary == NULL ? "/tmp" : temporary;
    int length = snprintf(path, sizeof path, "%s/shardwright-bench-XXXXXX", temporary);
    if (length < 0 || (size_t)length >= sizeof path)
        return SW_FAIL(err, SW_E_LIMIT, "set TMPDIR to a shorter path", "TMPDIR: a path of %d bytes", length);
    if (mkdtemp(path) == NULL)
        return SW_FAIL(err, SW_E_IO, "set TMPDIR to a folder that can be written",
                       "%s: no folder for a checkpoint", temporary);
    memcpy(s->folder, path, sizeof path);
    return SW_OK;
}

static sw_status write_checkpoint(scratch *s, sw_error *err)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_buffer config SW_AUTO(drop_buffer) = {0};
    sw_checkpoint_result result;
    char path[PATH_BYTES + 16];

    options.no_sync = true; /* nobody needs it after a crash */
    SW_TRY(make_folder(s, err));
    SW_TRY(sw_mesh_config(s->bed, &config, err));
    (void)snprintf(path, sizeof path, "%s/config.json", s->folder);
    SW_TRY(sw_disk_write_file(path, config.bytes, config.length, true, err));
    (void)snprintf(path, sizeof path, "%s/model", s->folder);
    return sw_checkpoint_init(s->folder, path, NULL, &options, &result, err);
}

/* Written by rank 0, whose folder all know then. */
static sw_status make_checkpoint(scratch *s, sw_error *err)
{
    MPI_Comm job = s->bed->job;
    sw_status status = s->bed->is_first ? write_checkpoint(s, err) : SW_OK;

    sw_team_rest(job);
    MPI_Bcast(s->folder, (int)sizeof s->folder, MPI_CHAR, 0, job);
    (void)snprintf(s->model, sizeof s->model, "%s/model", s->folder);
    return sw_agree_over(job, status, err);
}

/* ---- loading ---- */

typedef struct loaded {
    double seconds; /* of the slowest rank */
    double read;    /* bytes of the rank with the most */
    double held;
} loaded;

/* Bytes of the parameters that are here, as the checkpoint has them. */
static double bytes_held(const sw_net *net)
{
    double n = 0;

    for (uint32_t i = 0; i < net->n_parameters; i++)
        n += (double)(sw_parameter_elems(&net->parameters[i]) * sizeof(float));
    return n;
}

static void close_team(sw_team *team)
{
    sw_team_close(team);
}

static sw_status load(const scratch *s, uint32_t n_ranks, loaded *out, sw_error *err)
{
    const sw_mesh_bed *bed = s->bed;
    const sw_team_way way = {.axis = "tp", .n_ranks = n_ranks};
    sw_team team SW_AUTO(close_team) = {.ranks = MPI_COMM_NULL};
    sw_status status = SW_OK;
    uint64_t n_bytes = 0;
    double held = 0;

    SW_TRY(sw_team_open(&team, bed->job, &way, bed->model, bed->one, err));
    MPI_Barrier(bed->job);
    double begin = MPI_Wtime();
    double seconds = 0;
    if (sw_team_is_here(&team)) {
        status = sw_comm_agree(team.comm, sw_net_allocate(team.net, true, err), err);
        if (status == SW_OK)
            status = sw_apply_load(team.net, s->model, bed->one, &n_bytes, err);
        seconds = MPI_Wtime() - begin;
        held = bytes_held(team.net);
    }
    sw_team_rest(bed->job);
    *out = (loaded){sw_mesh_most(bed, seconds), sw_mesh_most(bed, (double)n_bytes), sw_mesh_most(bed, held)};
    return sw_agree_over(bed->job, status, err);
}

/* A mesh's rounds and one rank's, in turn. */
static sw_status measure(const scratch *s, uint32_t tp, sw_bench_figures *time, sw_bench_figures *share,
                         sw_error *err)
{
    uint32_t n_rounds = s->bed->limits->n_rounds;
    double seconds[2][SW_BENCH_MOST_ROUNDS]; /* over tp, on one rank */
    loaded now[2];

    for (uint32_t r = 0; r < n_rounds; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t side = (r + i) % 2;
            SW_TRY(load(s, side == 0 ? tp : 1, &now[side], err));
            seconds[side][r] = now[side].seconds;
        }
    }
    sw_bench_middle(time, seconds[0], seconds[1], n_rounds);
    time->ours *= 1e3;
    time->bare *= 1e3;
    *share = (sw_bench_figures){now[0].read / (1 << 20), now[0].held / (1 << 20), now[0].read / now[0].held};
    return SW_OK;
}

/* ---- the sections ---- */

// clang-format off
static const struct {
    const char *name;
    uint32_t tp;
    double bar; /* of the time: each rank copies less, and all write to one memory */
} rows[] = {
    { "tp=2", 2, 0.80 },
    { "tp=4", 4, 0.60 },
    { "tp=8", 8, 0.50 },
};
// clang-format on

enum { N_ROWS = SW_COUNT(rows) };

static const double bytes_bar = 1.02;

static bool is_wanted(const sw_mesh_bed *bed, size_t i)
{
    return rows[i].tp <= bed->n_ranks && (sw_bench_is_wanted(bed->limits->only, times, rows[i].name) ||
                                          sw_bench_is_wanted(bed->limits->only, bytes, rows[i].name));
}

static sw_status add(const sw_mesh_bed *bed, size_t i, const char *section, const sw_bench_figures *figures,
                     sw_error *err)
{
    bool is_time = section == times;
    const sw_bench_result result = {.section = section,
                                    .name = rows[i].name,
                                    .unit = is_time ? "ms" : "MiB",
                                    .figures = *figures,
                                    .bar_kind = is_time && !bed->is_pinned ? SW_BENCH_SHOWN : SW_BENCH_RATIO,
                                    .bar = is_time ? rows[i].bar : bytes_bar};

    if (!is_wanted(bed, i) || !sw_bench_is_wanted(bed->limits->only, section, rows[i].name))
        return SW_OK;
    return sw_bench_add(bed->results, &result, NULL, err);
}

sw_status sw_mesh_loading(const sw_mesh_bed *bed, sw_error *err)
{
    scratch s SW_AUTO(remove_scratch) = {.bed = bed};
    sw_bench_figures time[N_ROWS] = {0};
    sw_bench_figures share[N_ROWS] = {0};

    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_wanted(bed, i))
            continue;
        if (s.folder[0] == '\0')
            SW_TRY(make_checkpoint(&s, err));
        SW_TRY(measure(&s, rows[i].tp, &time[i], &share[i], err));
    }
    for (size_t i = 0; i < N_ROWS; i++)
        SW_TRY(add(bed, i, times, &time[i], err));
    for (size_t i = 0; i < N_ROWS; i++)
        SW_TRY(add(bed, i, bytes, &share[i], err));
    return SW_OK;
}
