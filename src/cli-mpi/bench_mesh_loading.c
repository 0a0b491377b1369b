/*
 * Loading a checkpoint over tp beside loading it on one rank, each rank with a thread of its own: the time,
 * and the bytes that a rank copies out of it. The file was just written, so the system has it in memory. What
 * a load takes is mostly the system's time to clear new pages, and all cores clear the same memory: how far
 * it can fall is measured by copies of as many bytes of the file into new pages.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply/load.h"
#include "base/alloc.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/status.h"
#include "cli-mpi/bench_mesh.h"
#include "cli-mpi/bench_team.h"
#include "comm/agree.h"
#include "shardwright/checkpoint.h"
#include "train/load.h"

enum {
    PATH_BYTES = 400,
    TRIES = 5 /* in a round; the fastest counts, for what else runs only adds to a time */
};

/* A scratch folder with a checkpoint. */
typedef struct scratch {
    const sw_mesh_bed *bed;
    char folder[PATH_BYTES]; /* "": none */
    char model[PATH_BYTES + 16];
    char file[PATH_BYTES + 48]; /* of all its tensors */
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

    options.max_shard_bytes = UINT64_MAX;
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
    (void)snprintf(s->file, sizeof s->file, "%s/model.safetensors", s->model);
    return sw_agree_over(job, status, err);
}

/* ---- loading ---- */

typedef struct loaded {
    double seconds; /* of the slowest rank */
    double copying; /* likewise, nothing but copies */
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

/* All begin at once, with memory that is new to them: what they have freed is the system's again. */
static double start(const sw_mesh_bed *bed)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
    MPI_Barrier(bed->job);
    return MPI_Wtime();
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
    double begin = start(bed);
    double seconds = 0;
    if (sw_team_is_here(&team)) {
        status = sw_comm_agree(team.comm, sw_net_allocate(team.net, true, err), err);
        if (status == SW_OK)
            status = sw_apply_load(team.net, s->model, bed->one, &n_bytes, err);
        seconds = MPI_Wtime() - begin;
        held = bytes_held(team.net);
    }
    sw_team_rest(bed->job);
    *out = (loaded){.seconds = sw_mesh_most(bed, seconds),
                    .read = sw_mesh_most(bed, (double)n_bytes),
                    .held = sw_mesh_most(bed, held)};
    return sw_agree_over(bed->job, status, err);
}

static void drop_stack(sw_stack **stack)
{
    sw_stack_destroy(*stack);
}

/* A rank's share of the file, in one stretch and behind a header, as tensors lie: some processors copy whole
 * pages to whole pages by another way, and blocks of many tensors by a third. */
static sw_status copy_share(const scratch *s, uint32_t rank, uint32_t n_ranks, sw_stack *memory,
                            sw_error *err)
{
    enum { HEADER = 64, PIECE = 1 << 20 };
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_TRY(sw_file_map_open(&map, s->file, UINT64_MAX, err));
    size_t n = map.n_bytes / n_ranks;
    const uint8_t *from = map.bytes + n * rank;
    char *to = memory == NULL ? NULL : sw_stack_take(memory, HEADER + n);
    if (to == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a copy of %zu bytes", n);
    for (size_t at = 0; at < n; at += PIECE)
        memcpy(to + HEADER + at, from + at, n - at < PIECE ? n - at : PIECE);
    return SW_OK;
}

static sw_status copy(const scratch *s, uint32_t n_ranks, double *out, sw_error *err)
{
    const sw_mesh_bed *bed = s->bed;
    sw_stack *memory SW_AUTO(drop_stack) = sw_stack_create();
    sw_status status = SW_OK;
    double seconds = 0;
    int rank = 0;

    MPI_Comm_rank(bed->job, &rank);
    double begin = start(bed);
    if ((uint32_t)rank < n_ranks) {
        status = copy_share(s, (uint32_t)rank, n_ranks, memory, err);
        seconds = MPI_Wtime() - begin;
    }
    sw_team_rest(bed->job);
    *out = sw_mesh_most(bed, seconds);
    return sw_agree_over(bed->job, status, err);
}

/* Both, some times in turn. */
static sw_status load_and_copy(const scratch *s, uint32_t n_ranks, loaded *out, sw_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        loaded now = {0};
        SW_TRY(load(s, n_ranks, &now, err));
        SW_TRY(copy(s, n_ranks, &now.copying, err));
        if (i > 0 && out->seconds < now.seconds)
            now.seconds = out->seconds;
        if (i > 0 && out->copying < now.copying)
            now.copying = out->copying;
        *out = now;
    }
    return SW_OK;
}

/* ---- the sections ---- */

enum { TIME, COPYING, BYTES, N_SECTIONS };

static const struct {
    const char *name;
    const char *unit;
} sections[N_SECTIONS] = {
    [TIME] = {"time to load to that of one rank",   "ms" },
    [COPYING] = {"time to copy shares to that of all", "ms" },
    [BYTES] = {"bytes read to bytes held",           "MiB"},
};

// clang-format off
static const struct {
    const char *name;
    uint32_t tp;
} rows[] = {
    { "tp=2", 2 },
    { "tp=4", 4 },
    { "tp=8", 8 },
};
// clang-format on

enum { N_ROWS = SW_COUNT(rows) };

typedef struct row_figures {
    sw_bench_figures of[N_SECTIONS];
} row_figures;

static void middle(sw_bench_figures *out, double seconds[2][SW_BENCH_MOST_ROUNDS], uint32_t n_rounds)
{
    sw_bench_middle(out, seconds[0], seconds[1], n_rounds);
    out->ours *= 1e3;
    out->bare *= 1e3;
}

/* A mesh's rounds and one rank's, in turn. */
static sw_status measure(const scratch *s, uint32_t tp, row_figures *out, sw_error *err)
{
    uint32_t n_rounds = s->bed->limits->n_rounds;
    double loading[2][SW_BENCH_MOST_ROUNDS]; /* over tp, on one rank */
    double copying[2][SW_BENCH_MOST_ROUNDS];
    loaded now[2];

    for (uint32_t r = 0; r < n_rounds; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t side = (r + i) % 2;
            SW_TRY(load_and_copy(s, side == 0 ? tp : 1, &now[side], err));
            loading[side][r] = now[side].seconds;
            copying[side][r] = now[side].copying;
        }
    }
    middle(&out->of[TIME], loading, n_rounds);
    middle(&out->of[COPYING], copying, n_rounds);
    out->of[BYTES] =
        (sw_bench_figures){now[0].read / (1 << 20), now[0].held / (1 << 20), now[0].read / now[0].held};
    return SW_OK;
}

static bool is_wanted(const sw_mesh_bed *bed, size_t row, int section)
{
    return rows[row].tp <= bed->n_ranks &&
           sw_bench_is_wanted(bed->limits->only, sections[section].name, rows[row].name);
}

/* Loading falls as copies of the shares do, and never rises; a rank that has some columns of a matrix passes
 * by the rest of each row, which copies of one stretch do not. */
static const double beyond_copies = 1.3;
static const double bytes_bar = 1.02;

static sw_status add(const sw_mesh_bed *bed, size_t row, int section, const row_figures *figures,
                     sw_error *err)
{
    double copies = beyond_copies * figures->of[COPYING].ratio;
    double bar = section == BYTES ? bytes_bar : copies < 1.0 ? copies : 1.0;
    bool has_bar = section == BYTES || (section == TIME && bed->is_pinned);
    const sw_bench_result result = {.section = sections[section].name,
                                    .name = rows[row].name,
                                    .unit = sections[section].unit,
                                    .figures = figures->of[section],
                                    .bar_kind = has_bar ? SW_BENCH_RATIO : SW_BENCH_SHOWN,
                                    .bar = bar};

    return is_wanted(bed, row, section) ? sw_bench_add(bed->results, &result, NULL, err) : SW_OK;
}

sw_status sw_mesh_loading(const sw_mesh_bed *bed, sw_error *err)
{
    scratch s SW_AUTO(remove_scratch) = {.bed = bed};
    row_figures figures[N_ROWS] = {0};

    for (size_t i = 0; i < N_ROWS; i++) {
        if (!is_wanted(bed, i, TIME) && !is_wanted(bed, i, COPYING) && !is_wanted(bed, i, BYTES))
            continue;
        if (s.folder[0] == '\0')
            SW_TRY(make_checkpoint(&s, err));
        SW_TRY(measure(&s, rows[i].tp, &figures[i], err));
    }
    for (int section = 0; section < N_SECTIONS; section++) {
        for (size_t i = 0; i < N_ROWS; i++)
            SW_TRY(add(bed, i, section, &figures[i], err));
    }
    return SW_OK;
}
