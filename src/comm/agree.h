/*
 * One outcome for all ranks. A call that may fail on some ranks only is made in three parts: the local part,
 * the agreement on it, the collective part, so that nobody waits for a rank that has left. A call in which
 * ranks meet is not agreed on as a whole: whoever fails in it alone would wait for those that wait there.
 */
#ifndef SW_COMM_AGREE_H
#define SW_COMM_AGREE_H

#include <mpi.h>
#include <stdbool.h>

#include "shardwright/error.h"

/*
 * Every rank of `comm` brings the outcome of its local part; all leave with the failure of the lowest rank
 * that failed, its sw_error included, or with SW_OK. `err` may be NULL on any rank. Collective over `comm`.
 */
sw_status sw_agree_over(MPI_Comm comm, sw_status mine, sw_error *err);

/* Do all ranks have this failure, by an agreement? Any other is of this rank, and nobody else knows of it. */
bool sw_is_agreed(sw_status status, const sw_error *err);

#ifdef __clang_analyzer__ /* which cannot see that whoever brings a failure leaves with one */
#define sw_agree_over(comm, mine, err)                                                                       \
    __extension__({                                                                                          \
        sw_status mine_ = (mine);                                                                            \
        sw_status all_ = sw_agree_over((comm), mine_, (err));                                                \
        mine_ != SW_OK ? mine_ : all_;                                                                       \
    })
#endif

#endif
