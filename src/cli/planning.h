/* The plan that a command line asks for: its rows of the option tables, and making it. */
#ifndef SW_CLI_PLANNING_H
#define SW_CLI_PLANNING_H

#include "cli/command.h"
#include "cli/input.h"
#include "shardwright/plan.h"

/* Rows that the tables have beside those of cli/input.h. */
#define SW_OPTION_NO_SP                                                                                      \
    {                                                                                                        \
        "no-sp", 0, NULL, "activations between boundaries stay whole over tp"                                \
    }
#define SW_OPTION_LOSS_PARALLEL                                                                              \
    {                                                                                                        \
        "loss-parallel", 0, NULL, "logits stay cut along the vocabulary"                                     \
    }
#define SW_OPTION_STRICT                                                                                     \
    {                                                                                                        \
        "strict", 0, NULL, "unused overrides and fallbacks are errors"                                       \
    }
#define SW_OPTION_ALLOW_UNCOVERED                                                                            \
    {                                                                                                        \
        "allow-uncovered", 0, NULL, "keep parameters whole that no rule places"                              \
    }

/* Where a table has them. */
typedef struct sw_planning_rows {
    uint32_t mesh;
    uint32_t ep;
    uint32_t overrides;
    uint32_t plugin;
    uint32_t no_sp;
    uint32_t loss_parallel;
    uint32_t strict;
    uint32_t allow_uncovered;
} sw_planning_rows;

/* What a command line makes, freed together: the plan borrows the model. Begin with a zeroed record. */
typedef struct sw_planning {
    sw_model *model;
    sw_mesh *mesh;
    sw_overrides *overrides;
    sw_plan *plan;
} sw_planning;

typedef sw_status sw_model_open_fn(sw_model **out, const char *path, sw_error *err);

/* Plan the first operand, opened by `open`. Clear the record, also after a failure. */
sw_status sw_planning_make(sw_planning *p, sw_run *run, const sw_planning_rows *rows, sw_model_open_fn *open,
                           sw_error *err);

void sw_planning_clear(sw_planning *p);

#endif
