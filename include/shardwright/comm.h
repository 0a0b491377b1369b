/*
 * The ranks of a job as a mesh: one communicator for each group of ranks that works together.
 *
 * A communicator of all ranks is given once and copied: the library never communicates over the caller's own
 * and never changes its error handler. What goes wrong inside MPI, in a communicator of ours, says one line
 * on standard error and ends the job.
 *
 * Groups: one for each axis of the mesh (pp, dp, cp, ep, tp), the parts of dp (dp_replicate, dp_shard), the
 * experts' (ep, edp, edp_replicate, edp_shard), dp and cp flattened, the pipeline stage, the job. Groups with
 * the same members share a communicator; groups of one rank have none.
 */
#ifndef SHARDWRIGHT_COMM_H
#define SHARDWRIGHT_COMM_H

#include "error.h"
#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks of a job as a mesh; opaque. One thread at a time. */
typedef struct sw_comm sw_comm;

/**
 * Make the communicators of `mesh`.
 *
 * @param[out] out       yours, to be given to sw_comm_destroy()
 * @param      mesh      copied; the same on every rank
 * @param      mpi_comm  an MPI_Comm, by its address; NULL: MPI_COMM_WORLD. Its ranks are those of the mesh,
 * in its order
 * @param[out] err       may be NULL
 * @return SW_OK; SW_E_PLAN when the mesh has not as many ranks as the communicator, or ranks were given
 *         different meshes; SW_E_ARGUMENT when MPI is not initialised; SW_E_NO_MEMORY
 *
 * Collective over `mpi_comm`.
 */
SW_API SW_MUST_CHECK sw_status sw_comm_create(sw_comm **out, const sw_mesh *mesh, const void *mpi_comm,
                                              sw_error *err);

/** Free the communicators. NULL is fine. Collective over `comm`, before MPI is finalised. */
SW_API void sw_comm_destroy(sw_comm *comm);

/** Its mesh; borrowed from `comm`. */
SW_API const sw_mesh *sw_comm_mesh(const sw_comm *comm);

/** This rank on the mesh. */
SW_API uint32_t sw_comm_rank(const sw_comm *comm);

/**
 * One outcome for all ranks of a call that may have failed on some: each brings its own, all get the failure
 * of the lowest rank that failed, with its account in `err`, or SW_OK. Not for a call in which ranks meet:
 * one that failed there alone would wait for those that wait for it.
 *
 * @param     mine  outcome of this rank
 * @param[in,out] err  its account, when it failed; may be NULL
 *
 * Collective over `comm`.
 */
SW_API SW_MUST_CHECK sw_status sw_comm_agree(sw_comm *comm, sw_status mine, sw_error *err);

#ifdef __cplusplus
}
#endif
#endif
