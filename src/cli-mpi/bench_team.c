/* Teams of `bench mesh` (cli-mpi/bench_team.h). */
#include "cli-mpi/bench_team.h"

#include <stdio.h>
#include <time.h>

#include "apply/apply.h"
#include "apply/bind.h"
#include "apply/gradients.h"
#include "base/status.h"
#include "comm/agree.h"
#include "comm/fatal.h"
#include "train/initial.h"

enum { BUCKET_BYTES = 4 << 20 };

bool sw_team_is_here(const sw_team *team)
{
    return team->ranks != MPI_COMM_NULL;
}

void sw_team_rest(MPI_Comm job)
{
    static const struct timespec a_while = {.tv_nsec = 1000000};
    MPI_Request request = MPI_REQUEST_NULL;
    int is_done = 0;

    MPI_Ibarrier(job, &request);
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    while (!is_done) {
        (void)nanosleep(&a_while, NULL);
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    }
}

/* ---- beginning ---- */

static sw_status make_plan(sw_team *team, const sw_team_way *way, sw_error *err)
{
    const sw_net_options net = {.dtype = SW_DTYPE_F32, .n_positions = SW_TEAM_TOKENS};
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;

    choices.no_sequence_parallel = way->no_sp;
    choices.loss_parallel = way->loss_parallel;
    SW_TRY(sw_plan_create(&team->plan, team->model, team->mesh, &choices, err));
    return sw_net_create(&team->net, team->model, &net, err);
}

static sw_status apply(sw_team *team, const sw_team_way *way, sw_error *err)
{
    const sw_apply_options how = {.validates = false};
    sw_source_shards *shards = NULL;
    char axes[32];

    (void)snprintf(axes, sizeof axes, "%s=%u", way->axis, (unsigned)way->n_ranks);
    SW_TRY(sw_mesh_create(&team->mesh, axes, 0, err));
    SW_TRY(sw_comm_create(&team->comm, team->mesh, &team->ranks, err));
    SW_TRY(sw_comm_agree(team->comm, make_plan(team, way, err), err));
    SW_TRY(sw_apply(&team->net, 1, team->plan, team->comm, &how, &shards, err));
    sw_source_shards_destroy(shards);
    return sw_bind_parallel_modules(team->net, &(sw_bind_options){.cp_form = way->cp_form}, err);
}

/* The outcome of the team for those beside it too. */
static sw_status agree(const sw_team *team, sw_status mine, sw_error *err)
{
    sw_team_rest(team->job);
    return sw_agree_over(team->job, mine, err);
}

sw_status sw_team_open(sw_team *out, MPI_Comm job, const sw_team_way *way, const sw_model *model,
                       sw_kernel *kernel, sw_error *err)
{
    int rank = 0;

    *out = (sw_team){.job = job, .ranks = MPI_COMM_NULL, .model = model, .kernel = kernel};
    MPI_Comm_rank(job, &rank);
    MPI_Comm_split(job, (uint32_t)rank < way->n_ranks ? 0 : MPI_UNDEFINED, rank, &out->ranks);
    return agree(out, sw_team_is_here(out) ? apply(out, way, err) : SW_OK, err);
}

/* Tokens that differ, and what follows each. */
static void make_tokens(sw_team *team)
{
    uint64_t vocab = team->net->settings.vocab;

    for (uint32_t i = 0; i < SW_TEAM_TOKENS; i++) {
        team->ids[i] = (int32_t)((i * 7919U + 1) % vocab);
        team->targets[i] = (int32_t)(((i + 1) * 7919U + 1) % vocab);
    }
}

static sw_status fill(sw_team *team, sw_error *err)
{
    const sw_ranks ranks = sw_ranks_of(team->net);

    SW_TRY(sw_net_allocate(team->net, true, err));
    SW_TRY(sw_initial_weights(team->net, team->model, 1, err));
    SW_TRY(sw_step_create(&team->step, team->kernel, err));
    make_tokens(team);
    return sw_cutter_create(&team->cutter, &ranks, SW_SEQUENCE_BALANCED, 1, SW_TEAM_TOKENS, err);
}

static sw_status prepare(sw_team *team, sw_error *err)
{
    SW_TRY(sw_comm_agree(team->comm, fill(team, err), err));
    return sw_apply_gradients(&team->gradients, team->net, BUCKET_BYTES, err);
}

sw_status sw_team_prepare(sw_team *team, sw_error *err)
{
    return agree(team, sw_team_is_here(team) ? prepare(team, err) : SW_OK, err);
}

void sw_team_close(sw_team *team)
{
    sw_cutter_clear(&team->cutter);
    sw_gradients_destroy(team->gradients);
    sw_step_destroy(team->step);
    sw_net_destroy(team->net);
    sw_plan_destroy(team->plan);
    sw_comm_destroy(team->comm);
    sw_mesh_destroy(team->mesh);
    if (sw_team_is_here(team))
        MPI_Comm_free(&team->ranks);
    *team = (sw_team){.ranks = MPI_COMM_NULL};
}

/* ---- a step ---- */

static sw_status run_step(sw_team *team, sw_error *err)
{
    const sw_feed whole = {
        .n_rows = 1, .n_tokens = SW_TEAM_TOKENS, .ids = team->ids, .targets = team->targets};
    const sw_feed feed = sw_cutter_cut(&team->cutter, &whole);
    sw_pass pass;

    sw_net_forget_gradients(team->net);
    sw_step_begin(team->step, true);
    sw_step_watch(team->step, team->watch);
    sw_feed_pass(&pass, team->net, team->step, &feed);
    const sw_tensor *labels = sw_feed_matrix(team->step, feed.targets, feed.n_rows, feed.n_tokens);
    const sw_tensor *y = sw_net_loss(team->net, team->step, &pass, labels, 1.0 / SW_TEAM_TOKENS, NULL);
    SW_TRY(sw_step_status(team->step, err));
    SW_TRY(sw_step_backward(team->step, y, NULL, err));
    sw_watch_begin(team->watch);
    sw_gradients_sum(team->gradients);
    sw_watch_end(team->watch);
    return SW_OK;
}

sw_status sw_team_step(sw_team *team, sw_error *err)
{
    double begin = MPI_Wtime();
    sw_status status = run_step(team, err);

    team->seconds += MPI_Wtime() - begin;
    if (status != SW_OK && team->comm != NULL && sw_mesh_ranks(team->mesh) > 1 && !sw_is_agreed(status, err))
        sw_fatal("%s", err->what); /* the others wait for it in a collective */
    return status;
}
