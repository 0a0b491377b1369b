/*
 * What the commands on checkpoints share: rows of their tables, the plan that a command line asks for, a call
 * with its progress, and the line of proof that ends it.
 */
#ifndef SW_CLI_CHECKPOINT_H
#define SW_CLI_CHECKPOINT_H

#include "cli/command.h"
#include "cli/planning.h"
#include "cli/progress.h"
#include "shardwright/checkpoint.h"
#include "shardwright/plan.h"

/* Rows that several tables have. */
#define SW_OPTION_OUTPUT_FOLDER                                                                              \
    {                                                                                                        \
        "output", 'o', "FOLDER", "where it goes: a folder that is not there yet"                             \
    }
#define SW_OPTION_REPLACE                                                                                    \
    {                                                                                                        \
        "replace", 0, NULL, "exchange an old output, when the new one is complete"                           \
    }
#define SW_OPTION_THREADS                                                                                    \
    {                                                                                                        \
        "threads", 0, "N", "threads that read and write; 2 when not given"                                   \
    }
#define SW_OPTION_QUIET_WORK                                                                                 \
    {                                                                                                        \
        "quiet", 'q', NULL, "no progress and no result, only what is wrong"                                  \
    }
#define SW_OPTION_JSON                                                                                       \
    {                                                                                                        \
        "json", 0, NULL, "write JSON, also of errors"                                                        \
    }

/* ---- a call ---- */

/* Rows of a table that concern the call; SW_NO_ROW: the table has none. */
#define SW_NO_ROW UINT32_MAX
typedef struct sw_work_rows {
    uint32_t output;
    uint32_t replace;
    uint32_t threads;
    uint32_t quiet;
    uint32_t json;
} sw_work_rows;

typedef struct sw_work {
    sw_run *run;
    const sw_work_rows *rows;
    const char *out; /* of --output; NULL: the table has none */
    sw_checkpoint_options options;
    sw_checkpoint_result result;
    sw_meter meter;
} sw_work;

/* Read the rows and make ready for a call; the options point into `work`. */
sw_status sw_work_begin(sw_work *work, sw_run *run, const sw_work_rows *rows, sw_error *err);

/* After the call: the progress line goes. A signal that comes when the output is there does not undo it. */
void sw_work_end(sw_work *work, sw_status status);

/* The result of a call that succeeded: "`where`: 4 files, 1.2 GiB `done`" and the proof, or JSON. */
void sw_work_put(const sw_work *work, const char *where, const char *done, uint64_t bytes);

/* ---- shard and reshard ---- */

/* The table of both. */
extern const sw_option sw_planned_options[];

/* What makes them differ: where names and shapes come from, and what is done with the plan. */
typedef struct sw_planned {
    sw_model_open_fn *open;
    sw_status (*run)(const char *path, const sw_plan *plan, const char *out,
                     const sw_checkpoint_options *options, sw_checkpoint_result *result, sw_error *err);
} sw_planned;

sw_status sw_run_planned(sw_run *run, const sw_planned *planned, sw_error *err);

#endif
