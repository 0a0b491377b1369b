/*
 * Training steps over a mesh beside one process that has as many threads as the mesh has ranks, and what of a
 * step is neither in kernels nor in collectives (cli-mpi/bench_mesh.h).
 */
#include <time.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cli-mpi/bench_mesh.h"
#include "cli-mpi/bench_team.h"
#include "comm/agree.h"

typedef struct step_row {
    const char *name;
    bool no_sp;
    bool loss_parallel;
    double bar;
} step_row;

static const char steps[] = "training step to one process";
static const char insides[] = "outside of kernels, to a step";

static const double outside_bar = 0.01;

// clang-format off
static const step_row rows[] = {
    { "tp",                false, false, 0.90 },
    { "tp, loss parallel", false, true,  0.90 },
    { "tp, without sp",    true,  false, 0    },
};
// clang-format on

enum { N_ROWS = SW_COUNT(rows) };

/* What came of a row: of steps, and of what in them is outside. */
typedef struct outcome {
    sw_bench_figures step;
    sw_bench_figures outside;
} outcome;

/* A row's two teams. */
typedef struct race {
    const sw_mesh_bed *bed;
    sw_team over;     /* all ranks, a thread each */
    sw_team alone;    /* rank 0 with all threads */
    sw_watch watch;   /* of `over` */
    double seconds;   /* of its steps, by the clock of the watch */
    sw_status status; /* the first failure of a step */
    sw_error *err;
} race;

/* Of this thread: what else the machine does is not in it, waits of collectives are. */
static double own_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void clear_race(race *r)
{
    sw_team_close(&r->over);
    sw_team_close(&r->alone);
}

static sw_status open_race(race *r, const step_row *row, sw_error *err)
{
    const sw_mesh_bed *bed = r->bed;
    const sw_team_way over = {
        .axis = "tp", .n_ranks = bed->n_ranks, .no_sp = row->no_sp, .loss_parallel = row->loss_parallel};
    const sw_team_way alone = {.axis = "tp", .n_ranks = 1};

    SW_TRY(sw_team_open(&r->over, bed->job, &over, bed->model, bed->one, err));
    SW_TRY(sw_team_prepare(&r->over, err));
    SW_TRY(sw_team_open(&r->alone, bed->job, &alone, bed->model, bed->all, err));
    return sw_team_prepare(&r->alone, err);
}

/* Seconds of a step of a team, on its slowest rank. Threads that were at work before have gone to sleep. */
static double time_step(race *r, sw_team *team)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};
    double before = team->seconds;

    (void)nanosleep(&a_while, NULL);
    MPI_Barrier(r->bed->job);
    if (sw_team_is_here(team)) {
        double begin = own_seconds();
        sw_status status = sw_team_step(team, r->err);
        r->seconds += team == &r->over ? own_seconds() - begin : 0;
        r->status = r->status == SW_OK ? status : r->status;
    }
    sw_team_rest(r->bed->job);
    return sw_mesh_most(r->bed, team->seconds - before);
}

static void run_rounds(race *r, uint32_t n_rounds, double *over, double *alone)
{
    for (uint32_t i = 0; i < n_rounds; i++) {
        for (uint32_t j = 0; j < 2; j++) { /* each begins every second round */
            if ((i + j) % 2 == 0)
                over[i] = time_step(r, &r->over);
            else
                alone[i] = time_step(r, &r->alone);
        }
    }
}

/* Of all rounds together: of its own time, the rank with the most that is outside. */
static void note_outside(const race *r, sw_bench_figures *out)
{
    double n = r->bed->limits->n_rounds;
    double outside = r->seconds - r->watch.seconds;

    out->ours = sw_mesh_most(r->bed, outside) / n * 1e3;
    out->bare = sw_mesh_most(r->bed, r->seconds) / n * 1e3;
    out->ratio = sw_mesh_most(r->bed, outside / r->seconds);
}

static void note_step(const race *r, double *over, double *alone, sw_bench_figures *out)
{
    sw_bench_middle(out, alone, over, r->bed->limits->n_rounds); /* of rates it is the other way round */
    double seconds = out->ours;
    out->ours = SW_TEAM_TOKENS / out->bare;
    out->bare = SW_TEAM_TOKENS / seconds;
}

/* What steps take is there after two, the second of which has found out how much all of it is. */
static sw_status measure_steady(race *r, outcome *out, sw_error *err)
{
    double times[2][SW_BENCH_MOST_ROUNDS];

    run_rounds(r, 2, times[0], times[1]);
    SW_TRY(sw_agree_over(r->bed->job, r->status, err));
    r->over.watch = &r->watch;
    r->seconds = 0;
    uint64_t before = sw_alloc_count();
    run_rounds(r, r->bed->limits->n_rounds, times[0], times[1]);
    double n_allocated = sw_mesh_most(r->bed, (double)(sw_alloc_count() - before));
    SW_TRY(sw_agree_over(r->bed->job, r->status, err));
    if (n_allocated > 0)
        return SW_FAIL(err, SW_E_LIMIT, "report it", "%s: steady steps have allocated %.0f times", steps,
                       n_allocated);
    note_outside(r, &out->outside);
    note_step(r, times[0], times[1], &out->step);
    return SW_OK;
}

static sw_status measure(const sw_mesh_bed *bed, const step_row *row, outcome *out, sw_error *err)
{
    race r SW_AUTO(clear_race) = {.bed = bed,
                                  .over = {.ranks = MPI_COMM_NULL},
                                  .alone = {.ranks = MPI_COMM_NULL},
                                  .watch = {.now = own_seconds},
                                  .err = err};

    SW_TRY(open_race(&r, row, err));
    return measure_steady(&r, out, err);
}

/* ---- the sections ---- */

static sw_status add_steps(const sw_mesh_bed *bed, const outcome *outcomes, sw_error *err)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        bool is_judged = rows[i].bar > 0 && bed->is_pinned;
        const sw_bench_result result = {.section = steps,
                                        .name = rows[i].name,
                                        .unit = "tok/s",
                                        .figures = outcomes[i].step,
                                        .bar_kind = is_judged ? SW_BENCH_LEAST : SW_BENCH_SHOWN,
                                        .bar = rows[i].bar};
        if (sw_bench_is_wanted(bed->limits->only, steps, rows[i].name))
            SW_TRY(sw_bench_add(bed->results, &result, NULL, err));
    }
    return SW_OK;
}

static sw_status add_insides(const sw_mesh_bed *bed, const outcome *outcomes, sw_error *err)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const sw_bench_result result = {.section = insides,
                                        .name = rows[i].name,
                                        .unit = "ms",
                                        .figures = outcomes[i].outside,
                                        .bar_kind = bed->is_pinned ? SW_BENCH_RATIO : SW_BENCH_SHOWN,
                                        .bar = outside_bar};
        if (sw_bench_is_wanted(bed->limits->only, insides, rows[i].name))
            SW_TRY(sw_bench_add(bed->results, &result, NULL, err));
    }
    return SW_OK;
}

sw_status sw_mesh_steps(const sw_mesh_bed *bed, sw_error *err)
{
    outcome outcomes[N_ROWS];

    for (size_t i = 0; i < N_ROWS; i++) {
        if (sw_bench_is_wanted(bed->limits->only, steps, rows[i].name) ||
            sw_bench_is_wanted(bed->limits->only, insides, rows[i].name))
            SW_TRY(measure(bed, &rows[i], &outcomes[i], err));
    }
    SW_TRY(add_steps(bed, outcomes, err));
    return add_insides(bed, outcomes, err);
}
