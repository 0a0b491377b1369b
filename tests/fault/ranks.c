/*
 * A job for tests of failing ranks: every collective once, in turn, then "done" on rank 0. SW_FAULT makes a
 * rank fail (comm/call.h). With the argument "differ" the last rank calls another collective than the others
 * at the end, with "absent" it does not come to the last one. With "quick" calls are not compared, so that
 * ranks meet inside the collectives first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/call.h"
#include "comm/collective.h"
#include "comm/work.h"

enum { N = 64 };

static sw_status call_everything(sw_comm *comm, bool is_quick, sw_error *err)
{
    const sw_group *group = sw_comm_group(comm, SW_GROUP_TP);
    static float in[N * N];
    static float out[N * N];
    const sw_along along = {2, N, 3};
    const sw_across across = {1, 8, 1, 8, 1};
    uint64_t counts[8] = {0};
    uint64_t theirs[8] = {0};

    for (uint32_t i = 0; i < group->size; i++)
        counts[i] = i;
    if (is_quick)
        group->work->compares_calls = false;
    sw_all_gather(group, &along, SW_DTYPE_F32, in, out);
    sw_reduce_scatter(group, &along, SW_DTYPE_F32, in, out);
    sw_all_reduce(group, N, SW_DTYPE_F32, in, out);
    sw_all_reduce(group, N, SW_DTYPE_BF16, in, out);
    sw_all_to_all(group, &across, SW_DTYPE_F32, in, out);
    sw_exchange_counts(group, 1, counts, theirs);
    sw_exchange_elems(group, SW_DTYPE_F32, in, counts, out, theirs);
    sw_broadcast(group, 0, N, SW_DTYPE_F32, out);
    return sw_comm_agree(comm, SW_OK, err);
}

static void disagree(const sw_group *group, const char *how)
{
    float value[2 * N] = {0};
    const sw_along along = {1, N, 1};
    bool is_last = group->index == group->size - 1;
    const struct timespec long_time = {60, 0};

    group->work->patience = 1;
    group->work->compares_calls = true;
    if (strcmp(how, "absent") == 0 && is_last) {
        nanosleep(&long_time, NULL);
    } else if (is_last) {
        sw_all_gather(group, &along, SW_DTYPE_F32, value, value + N);
    } else {
        sw_all_reduce(group, N, SW_DTYPE_F32, value, value + N);
    }
}

static sw_status run(int ranks, const char *how, sw_error *err)
{
    char axes[16];
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;

    (void)snprintf(axes, sizeof axes, "tp=%d", ranks);
    sw_status status = sw_mesh_create(&mesh, axes, 0, err);
    if (status == SW_OK)
        status = sw_comm_create(&comm, mesh, NULL, err);
    bool is_quick = how != NULL && strcmp(how, "quick") == 0;
    if (status == SW_OK)
        status = call_everything(comm, is_quick, err);
    if (status == SW_OK && how != NULL && !is_quick)
        disagree(sw_comm_group(comm, SW_GROUP_TP), how);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    return status;
}

int main(int argc, char **argv)
{
    int rank = 0;
    int ranks = 0;
    sw_error err = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    sw_status status = sw_call_fault_set(getenv("SW_FAULT"), &err);
    if (status == SW_OK)
        status = run(ranks, argc > 1 ? argv[1] : NULL, &err);
    if (rank == 0 && status == SW_OK)
        (void)puts("done");
    if (rank == 0 && status != SW_OK)
        (void)fprintf(stderr, "shardwright: rank %d: %s\n", (int)err.rank, err.what);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return sw_status_exit(status);
}
