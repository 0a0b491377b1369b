/* Loading a net that was applied: each rank reads its own elements of a checkpoint, and no others. */
#ifndef SW_APPLY_LOAD_H
#define SW_APPLY_LOAD_H

#include "kernel/kernel.h"
#include "nn/net.h"

/*
 * From a Hugging Face folder, after memory was taken. *n_bytes, which may be NULL, gets the bytes that this
 * rank has copied out of it. SW_E_FORMAT: tensors that are missing, of another shape, or of a type that no
 * product reads; what opening refuses. Collective over the communicator that the plan was applied with: all
 * ranks succeed, or fail with the account of the lowest that failed.
 */
sw_status sw_apply_load(sw_net *net, const char *path, const sw_kernel *kernel, uint64_t *n_bytes,
                        sw_error *err);

#endif
