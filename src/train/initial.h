/*
 * Random weights in memory: what `shardwright init` would write for the same model and seed (with the usual
 * deviation of the family), for nets that nobody reads from a file.
 */
#ifndef SW_TRAIN_INITIAL_H
#define SW_TRAIN_INITIAL_H

#include "nn/net.h"

/*
 * All parameters of a net of `model` that has its memory, or of this rank's part where a plan was applied to
 * it. In F64 they are the numbers of F32. SW_E_NO_MEMORY.
 */
sw_status sw_initial_weights(const sw_net *net, const sw_model *model, uint64_t seed, sw_error *err);

#endif
