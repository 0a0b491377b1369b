/*
 * Running step lists over the communicators of a mesh. What a run needs besides its input and output is one
 * workspace, whose size is known when the list is compiled; nothing is allocated on the way.
 */
#ifndef SW_DTENSOR_RUN_H
#define SW_DTENSOR_RUN_H

#include "dtensor/redistribution.h"
#include "shardwright/comm.h"
#include "shardwright/model.h"

/*
 * Find the communicator of each step, forward and backward; those over several axes are made here. Collective
 * over `comm`, whose mesh has the axes of the grid. SW_E_ARGUMENT, SW_E_NO_MEMORY.
 */
sw_status sw_redistribution_bind(sw_redistribution *made, sw_comm *comm, sw_error *err);

/*
 * Bytes of workspace that a run needs with elements of this dtype; 0: none, it may be NULL. SW_E_ARGUMENT:
 * elements that are no whole bytes, or that cannot be added where the list adds; SW_E_LIMIT: more bytes than
 * an address has. Local; a list may be run with the dtypes that were asked for here.
 */
sw_status sw_step_list_workspace(const sw_step_list *list, sw_dtype dtype, size_t *out, sw_error *err);

/*
 * Run a bound list from `in` to `out`, dense tensors of this rank that do not overlap. `workspace` is aligned
 * to 64 bytes. A list without steps does nothing: the tensor is passed on as it is.
 * Sums of bf16 and f16 are f32 until they are rounded once. Hot: collective over the grid.
 */
void sw_step_list_run(const sw_step_list *list, sw_dtype dtype, const void *in, void *out, void *workspace);

#endif
