/*
 * What the commands that run a model share: rows of their tables, and what a command line makes of them: a
 * model in memory with its kernels, the tokens it reads, progress.
 */
#ifndef SW_CLI_MPI_RUNNING_H
#define SW_CLI_MPI_RUNNING_H

#include "cli/command.h"
#include "cli/planning.h"
#include "cli/progress.h"
#include "io/json_write.h"
#include "train/cut.h"
#include "train/load.h"
#include "train/tokens.h"

/* Rows that several tables have, beside those of cli/planning.h. */
#define SW_OPTION_TOKENS                                                                                     \
    {                                                                                                        \
        "tokens", 0, "FILE", "tokens: .npy, or bare u16 or u32 of little end first"                          \
    }
#define SW_OPTION_TEXT                                                                                       \
    {                                                                                                        \
        "text", 0, "FILE", "a text whose bytes are the tokens"                                               \
    }
#define SW_OPTION_TOKEN_TYPE                                                                                 \
    {                                                                                                        \
        "token-type", 0, "TYPE", "u16, u32 or npy, where the file does not say it"                           \
    }
#define SW_OPTION_RUN_PLAN                                                                                   \
    {                                                                                                        \
        "plan", 0, "FILE", "a plan that is made already, in place of --mesh"                                 \
    }
#define SW_OPTION_RUN_THREADS                                                                                \
    {                                                                                                        \
        "threads", 0, "N", "threads that compute on a rank; all cores when not given"                        \
    }
#define SW_OPTION_CP_FORM                                                                                    \
    {                                                                                                        \
        "cp-form", 0, "FORM", "attention over cp: gather, ring or ulysses; gather when not given"            \
    }
#define SW_OPTION_CP_ORDER                                                                                   \
    {                                                                                                        \
        "cp-order", 0, "ORDER", "tokens over cp: balanced or contiguous; balanced when not given"            \
    }
#define SW_OPTION_QUIET_RUN                                                                                  \
    {                                                                                                        \
        "quiet", 'q', NULL, "no progress"                                                                    \
    }
#define SW_OPTION_RUN_JSON                                                                                   \
    {                                                                                                        \
        "json", 0, NULL, "write JSON, also of errors"                                                        \
    }

/*
 * Rows of the commands that run on several ranks, which their tables have at the end: for the enum of their
 * numbers, for the table, and for the record of where they are.
 */
#define SW_RANKS_NUMBERS                                                                                     \
    OPT_MESH, OPT_EP, OPT_PLAN, OPT_NO_SP, OPT_LOSS_PARALLEL, OPT_CP_FORM, OPT_CP_ORDER, OPT_THREADS,        \
        OPT_QUIET, OPT_JSON
// clang-format off
#define SW_RANKS_OPTIONS                                                                                     \
    [OPT_MESH]          = SW_OPTION_MESH,                                                                    \
    [OPT_EP]            = SW_OPTION_EP,                                                                      \
    [OPT_PLAN]          = SW_OPTION_RUN_PLAN,                                                                \
    [OPT_NO_SP]         = SW_OPTION_NO_SP,                                                                   \
    [OPT_LOSS_PARALLEL] = SW_OPTION_LOSS_PARALLEL,                                                           \
    [OPT_CP_FORM]       = SW_OPTION_CP_FORM,                                                                 \
    [OPT_CP_ORDER]      = SW_OPTION_CP_ORDER,                                                                \
    [OPT_THREADS]       = SW_OPTION_RUN_THREADS,                                                             \
    [OPT_QUIET]         = SW_OPTION_QUIET_RUN,                                                               \
    [OPT_JSON]          = SW_OPTION_RUN_JSON
// clang-format on
#define SW_RANKS_ROWS                                                                                        \
    .mesh = OPT_MESH, .ep = OPT_EP, .plan = OPT_PLAN, .no_sp = OPT_NO_SP,                                    \
    .loss_parallel = OPT_LOSS_PARALLEL, .cp_form = OPT_CP_FORM, .cp_order = OPT_CP_ORDER,                    \
    .threads = OPT_THREADS, .quiet = OPT_QUIET

/* Where a table has them. */
typedef struct sw_running_rows {
    uint32_t mesh;
    uint32_t threads;
    uint32_t quiet;
    uint32_t tokens;
    uint32_t text;
    uint32_t token_type;
    uint32_t ep;
    uint32_t plan;
    uint32_t cp_form;
    bool is_one_text; /* it lacks what follows: no dp, and what a token gives is whole on ranks of tp */
    uint32_t no_sp;
    uint32_t loss_parallel;
    uint32_t cp_order;
} sw_running_rows;

/* Freed together; begin with a zeroed record. */
typedef struct sw_running {
    const sw_run *run;
    const sw_running_rows *rows;
    sw_plan *plan; /* NULL: one rank */
    sw_mesh *mesh; /* of --mesh */
    sw_comm *comm; /* NULL: one rank */
    sw_cp_form cp_form;
    sw_sequence_order cp_order;
    sw_kernel *kernel;
    sw_step *step;
    sw_weights weights;
    sw_net *net;
    sw_tokens tokens;
    const char *tokens_path;
    sw_meter meter;
} sw_running;

/*
 * The ranks, kernels, progress. SW_E_PLAN: a mesh that is not that of the job, or that models are not run
 * over. All of these are collective, and fail on all ranks alike.
 */
sw_status sw_running_begin(sw_running *r, sw_run *run, const sw_running_rows *rows, sw_error *err);

/* The model at `path`, on several ranks by its plan. */
sw_status sw_running_load(sw_running *r, const char *path, const sw_load_options *options, sw_error *err);

/*
 * The plan of the model at `path`, which may be a config alone, and its weights as sw_load_parameters() takes
 * them: no net is made. There is a `comm` also of one rank. A mesh or a plan was given. With `forces` what
 * is wrong with a plan of this model goes into the report, and is no failure.
 */
sw_status sw_running_describe(sw_running *r, const char *path, bool forces, sw_error *err);

/* The tokens of --tokens or --text, one of which must be given. */
sw_status sw_running_tokens(sw_running *r, sw_error *err);

/* Is this the rank that writes files? */
bool sw_running_is_first(const sw_running *r);

/* One outcome of what each rank did for itself, or of what all know to be the same everywhere. */
sw_status sw_running_agree(const sw_running *r, sw_status mine, sw_error *err);

/*
 * The end of the command, while what ranks have in common is still there. The progress line goes; a failure
 * is passed on that all ranks have. Any other is of this rank alone, while the others wait for it: it is
 * said, and the job ends.
 */
sw_status sw_running_end(sw_running *r, sw_status status, sw_error *err);
void sw_running_clear(sw_running *r);

/* The dtype of a row: f32 when it is not given; bf16 only if `may_be_short`. */
sw_status sw_running_dtype(const sw_arguments *arguments, uint32_t row, bool may_be_short, sw_dtype *out,
                           sw_error *err);

/* A key and nine digits of a number; null when it is none. */
void sw_json_put_number(sw_json_writer *writer, const char *key, double number);

/* Seconds of a clock that only goes forward. */
double sw_seconds(void);

#endif
