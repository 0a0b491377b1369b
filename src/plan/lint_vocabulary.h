/* Lints of the vocabulary: embedding and head against each other and against the config's numbers. */
#ifndef SW_PLAN_LINT_VOCABULARY_H
#define SW_PLAN_LINT_VOCABULARY_H

#include "plan/plan_data.h"

/* Of the plan's own model; findings are faults of the plan. */
void sw_lint_vocabulary(sw_plan *plan);

#endif
