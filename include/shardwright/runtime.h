/*
 * Everything of the runtime library, which computes on several ranks. It stands on the planner library: the
 * rule for arguments in shardwright.h holds here too.
 *
 * Every function says how ranks take part in it:
 *
 * - Local: no other rank is involved.
 * - Collective over X: every rank of X calls it, in the same order. They agree on the outcome: either all
 *   succeed, or all return the failure of the lowest rank that failed.
 * - Hot: collective, for the inside of a step. Nothing is agreed on; a fault that only one rank sees says one
 *   line on standard error and ends the job.
 */
#ifndef SHARDWRIGHT_RUNTIME_H
#define SHARDWRIGHT_RUNTIME_H

#include "comm.h"
#include "shardwright.h"

#endif
