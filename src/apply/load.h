/* Loading a net that was applied: each rank reads its own elements of a checkpoint, and no others. */
#ifndef SW_APPLY_LOAD_H
#define SW_APPLY_LOAD_H

#include "apply/local.h"
#include "nn/net.h"

/*
 * The elements of the tensor `name`, which is as parameter `i` of the net is, that this rank has of that one:
 * all of them where no plan was applied, none of an expert that is elsewhere. Failures of sw_local_read().
 * Local.
 */
sw_status sw_apply_read(const sw_net *net, uint32_t i, const sw_local_reader *reader, const char *name,
                        sw_dtype dtype, void *to, sw_error *err);

/*
 * Every parameter's elements that are here, after memory was taken. Likewise.
 */
sw_status sw_apply_fill(const sw_net *net, const sw_local_reader *reader, sw_error *err);

/*
 * From a Hugging Face folder or a sharded one of whatever mesh, after memory was taken. *n_bytes, which may
 * be NULL, gets the bytes that this rank has copied out of it. Failures of sw_local_read(), and what opening
 * refuses. Collective over the communicator that the plan was applied with: all
 * ranks succeed, or fail with the account of the lowest that failed.
 */
sw_status sw_apply_load(sw_net *net, const char *path, const sw_kernel *kernel, uint64_t *n_bytes,
                        sw_error *err);

#endif
