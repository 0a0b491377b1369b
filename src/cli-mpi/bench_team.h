/*
 * Teams: the first few ranks of a job with a model over them, while the ranks beside sleep and leave their
 * cores to whoever works. The parts of `bench mesh` in which models of one job are measured beside each
 * other.
 */
#ifndef SW_CLI_MPI_BENCH_TEAM_H
#define SW_CLI_MPI_BENCH_TEAM_H

#include <mpi.h>

#include "apply/cp_form.h"
#include "kernel/kernel.h"
#include "nn/net.h"
#include "shardwright/comm.h"
#include "shardwright/plan.h"
#include "train/cut.h"

enum { SW_TEAM_TOKENS = 512 };

/* How a model is spread over a team. */
typedef struct sw_team_way {
    const char *axis; /* "tp", "cp" */
    uint32_t n_ranks; /* of the team; of one: the axis is there and cuts nothing */
    bool no_sp;
    bool loss_parallel;
    sw_cp_form cp_form;
} sw_team_way;

typedef struct sw_team {
    MPI_Comm job;
    MPI_Comm ranks; /* MPI_COMM_NULL: this rank is beside */
    const sw_model *model;
    sw_mesh *mesh;
    sw_comm *comm;
    sw_plan *plan;
    sw_net *net;
    sw_kernel *kernel; /* borrowed */
    sw_step *step;
    struct sw_gradients *gradients;
    sw_cutter cutter;
    double seconds;  /* of its steps here, so far */
    sw_watch *watch; /* on operations, and on sums of gradients; NULL: none */
    int32_t ids[SW_TEAM_TOKENS];
    int32_t targets[SW_TEAM_TOKENS];
} sw_team;

/* ---- collective over the job; all ranks succeed or fail together ---- */

/* A team with a net that a plan was applied to, without memory. The model is borrowed. */
sw_status sw_team_open(sw_team *out, MPI_Comm job, const sw_team_way *way, const sw_model *model,
                       sw_kernel *kernel, sw_error *err);

/* Memory and random weights, and what a step needs. */
sw_status sw_team_prepare(sw_team *team, sw_error *err);
void sw_team_close(sw_team *team);

/* Everybody has come; who waits longer than a moment sleeps, as no wait of MPI's does. */
void sw_team_rest(MPI_Comm job);

/* ---- collective over the team ---- */

bool sw_team_is_here(const sw_team *team);

/* Forward, backward and the sums of gradients of 512 tokens. A rank that fails alone ends the job. */
sw_status sw_team_step(sw_team *team, sw_error *err);

#endif
