/* Ranks on several hosts read what has the same path on each: is it the same? Collective over `comm`. */
#ifndef SW_TRAIN_SAME_H
#define SW_TRAIN_SAME_H

#include "shardwright/comm.h"
#include "shardwright/plan.h"
#include "train/tokens.h"
#include "train/weights.h"

/*
 * The config, the tensors with a sample of their values, and the plan: what has to agree before ranks do
 * anything together. SW_E_FORMAT, SW_E_IO, SW_E_NO_MEMORY.
 */
sw_status sw_same_model(const sw_weights *weights, const sw_plan *plan, sw_comm *comm, sw_error *err);

/* All tokens. SW_E_FORMAT. */
sw_status sw_same_tokens(const sw_tokens *tokens, const char *path, sw_comm *comm, sw_error *err);

#endif
