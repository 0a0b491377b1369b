/* Everything of the planner library. */
#ifndef SHARDWRIGHT_SHARDWRIGHT_H
#define SHARDWRIGHT_SHARDWRIGHT_H

#include "checkpoint.h"
#include "error.h"
#include "mesh.h"
#include "model.h"
#include "plan.h"
#include "report.h"
#include "version.h"

#endif
