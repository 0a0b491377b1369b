/* The rule for arguments of shardwright/shardwright.h (null_case.h) over the runtime's functions. */
#include <mpi.h>
#include <stdio.h>

#include "base/status.h"
#include "mpi_main.h"
#include "null_case.h"
#include "shardwright/runtime.h"

/* What the calls work on. */
static sw_mesh *mesh; /* of one axis */
static sw_comm *comm; /* over it */

static int setup(void **state)
{
    char axes[16];

    (void)state;
    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    return sw_mesh_create(&mesh, axes, 0, NULL) != SW_OK || sw_comm_create(&comm, mesh, NULL, NULL) != SW_OK;
}

static int teardown(void **state)
{
    (void)state;
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    return 0;
}

/* ---- comm.h ---- */

static MPI_Comm world;

MAKES_CASE(comm_create, sw_comm, sw_comm_destroy,
           sw_comm_create(ARG(out, &out), ARG(mesh, mesh), ARG(mpi_comm, &world), ARG(err, &t->err)))
FREES_CASE(comm_destroy, comm)
ANSWERS_CASE(comm_mesh, sw_comm_mesh(ARG(comm, comm)) == NULL)

/* The answer to nothing is that of rank 0, too. */
static null_outcome comm_rank(null_trial *t)
{
    uint32_t rank = sw_comm_rank(ARG(comm, comm));

    return (null_outcome){SW_OK, t->is_met && rank == 0};
}

static null_outcome comm_agree(null_trial *t)
{
    sw_status status = sw_comm_agree(ARG(comm, comm), SW_OK, ARG(err, &t->err));

    return (null_outcome){status, status != SW_OK};
}

// clang-format off
static const null_row rows[] = {
    {"sw_comm_agree",   FAILS,   comm_agree,   ""},
    {"sw_comm_create",  FAILS,   comm_create,  "mpi_comm"},
    {"sw_comm_destroy", ACTS,    comm_destroy, ""},
    {"sw_comm_mesh",    ANSWERS, comm_mesh,    ""},
    {"sw_comm_rank",    ANSWERS, comm_rank,    ""},
};
// clang-format on

static const null_table table = {"runtime", rows, SW_COUNT(rows)};

int main(void)
{
    const struct CMUnitTest tests[] = {NULL_TESTS(&table, setup, teardown)};

    world = MPI_COMM_WORLD;
    return SW_MPI_MAIN("null", tests);
}
