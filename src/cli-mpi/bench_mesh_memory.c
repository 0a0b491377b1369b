/* Memory of a training step over context parallelism by a ring, a rank's share of that of one rank. */
#include "base/status.h"
#include "cli-mpi/bench_mesh.h"
#include "cli-mpi/bench_team.h"
#include "comm/agree.h"
#include "tensor/stack.h"

static const char section[] = "memory of a rank to its share";
static const double bar = 1.15;

static void close_team(sw_team *team)
{
    sw_team_close(team);
}

/* MiB of activations of a step over cp ranks, on the rank with the most. */
static sw_status measure(const sw_mesh_bed *bed, uint32_t cp, double *out, sw_error *err)
{
    const sw_team_way way = {.axis = "cp", .n_ranks = cp, .cp_form = SW_CP_RING};
    sw_team team SW_AUTO(close_team) = {.ranks = MPI_COMM_NULL};
    sw_status status = SW_OK;
    double mine = 0;

    SW_TRY(sw_team_open(&team, bed->job, &way, bed->model, bed->one, err));
    SW_TRY(sw_team_prepare(&team, err));
    if (sw_team_is_here(&team)) {
        status = sw_team_step(&team, err);
        mine = (double)sw_stack_peak(sw_step_stack(team.step)) / (1 << 20);
    }
    sw_team_rest(bed->job);
    *out = sw_mesh_most(bed, mine);
    return sw_agree_over(bed->job, status, err);
}

sw_status sw_mesh_memory(const sw_mesh_bed *bed, sw_error *err)
{
    static const char *const names[] = {"ring, cp=2", "ring, cp=4", "ring, cp=8"};
    double one = 0;

    for (size_t i = 0; i < SW_COUNT(names); i++) {
        uint32_t cp = 2U << i;
        double part = 0;
        if (cp > bed->n_ranks || !sw_bench_is_wanted(bed->limits->only, section, names[i]))
            continue;
        if (one == 0)
            SW_TRY(measure(bed, 1, &one, err));
        SW_TRY(measure(bed, cp, &part, err));
        const sw_bench_result result = {
            .section = section,
            .name = names[i],
            .unit = "MiB",
            .figures = {part, one / cp, part * cp / one},
            .bar_kind = SW_BENCH_RATIO,
            .bar = bar
        };
        SW_TRY(sw_bench_add(bed->results, &result, NULL, err));
    }
    return SW_OK;
}
