/* Agreement: one small all-reduce when all is well, and a broadcast of the account when not. */
#include "comm/agree.h"

#include <limits.h>

#include "base/status.h"
#include "comm/call.h"

sw_status(sw_agree_over)(MPI_Comm comm, sw_status mine, sw_error *err)
{
    sw_error unasked = {0};
    int rank = 0;
    int ranks = 0;
    int first = INT_MAX; /* the lowest rank that failed */

    if (mine == SW_OK && sw_call_must_fail(SW_CALL_AGREE))
        mine = SW_FAIL(err, SW_E_PEER, "", "a fault for a test");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int bid = mine == SW_OK ? INT_MAX : rank;
    MPI_Allreduce(&bid, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == INT_MAX)
        return SW_OK;
    if (err == NULL)
        err = &unasked;
    /* What was agreed on before keeps its rank. The failing call may also have been given no sw_error. */
    if (rank == first && (err->ranks == 0 || err->status != mine)) {
        err->status = mine;
        err->ranks = ranks;
        err->rank = rank;
    }
    MPI_Bcast(err, (int)sizeof *err, MPI_BYTE, first, comm);
    return err->status;
}

bool sw_is_agreed(sw_status status, const sw_error *err)
{
    return err->ranks > 0 && err->status == status;
}
