/* `shardwright-mpi check`: a plan on the ranks of a mesh against one rank. */
#include <inttypes.h>
#include <stdio.h>

#include "apply/check.h"
#include "base/status.h"
#include "cli-mpi/commands.h"
#include "cli-mpi/running.h"
#include "plan/explain_text.h"
#include "train/initial.h"

enum { USUAL_ROWS = 2, MOST_ROWS = 65536 };

enum { OPT_SEQ_LEN, OPT_BATCH, OPT_SEED, OPT_DTYPE, OPT_FORCE, OPT_ALL, SW_RANKS_NUMBERS };

// clang-format off
static const sw_option options[] = {
    [OPT_SEQ_LEN] = { "seq-len", 0,   "N",    "tokens of a sequence; 33 when not given" },
    [OPT_BATCH]   = { "batch",   0,   "N",    "sequences of each rank of dp; 2 when not given" },
    [OPT_SEED]    = { "seed",    0,   "N",    "of the random tokens, and of weights that no file has; 1" },
    [OPT_DTYPE]   = { "dtype",   0,   "TYPE", "f32, or f64 for a sharp verdict" },
    [OPT_FORCE]   = { "force",   0,   NULL,   "run a plan that is refused all the same, in production alone" },
    [OPT_ALL]     = { "all",     'a', NULL,   "every boundary and parameter, not those that differ most" },
    SW_RANKS_OPTIONS,
    { 0 },
};
// clang-format on

static const sw_running_rows rows = {SW_RANKS_ROWS};

/* ---- the net's numbers ---- */

typedef struct filling {
    const sw_running *running;
    uint64_t seed;
} filling;

static sw_status fill(void *context, const sw_net *net, sw_error *err)
{
    const filling *f = context;
    const sw_weights *weights = &f->running->weights;

    if (weights->store == NULL)
        return sw_initial_weights(net, weights->model, f->seed, err);
    return sw_load_parameters(net, weights, f->running->kernel, err);
}

/* ---- what is said ---- */

static const char *dtype_word(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 ? "f64" : "f32";
}

static double farther_of(const sw_checked *checked)
{
    const double *d = checked->difference;
    return d[SW_CHECK_VALIDATE] > d[SW_CHECK_PRODUCTION] ? d[SW_CHECK_VALIDATE] : d[SW_CHECK_PRODUCTION];
}

/* Of a kind the one that is nearest to its bar, or farthest beyond it; NULL: there is none. */
static const sw_checked *worst_of(const sw_check_result *result, sw_checked_kind kind)
{
    const sw_checked *worst = NULL;

    for (uint32_t i = 0; i < result->n_checked; i++) {
        const sw_checked *checked = &result->checked[i];
        bool is_worse = worst == NULL || farther_of(checked) / checked->bar > farther_of(worst) / worst->bar;
        if (checked->kind == kind && is_worse)
            worst = checked;
    }
    return worst;
}

static void put_checked(const sw_checked *checked, sw_buffer *out)
{
    char number[SW_CHECK_MODE_COUNT_][24];

    for (int mode = 0; mode < SW_CHECK_MODE_COUNT_; mode++) {
        double difference = checked->difference[mode];
        (void)snprintf(number[mode], sizeof number[mode], difference < 0 ? "-" : "%.2g", difference);
    }
    sw_text_line(out, "%-13s  %8s    %8s  %8.2g%s%s", sw_checked_kind_name(checked->kind),
                 number[SW_CHECK_VALIDATE], number[SW_CHECK_PRODUCTION], checked->bar,
                 *checked->fqn == '\0' ? "" : "  ", checked->fqn);
}

static void put_table(const sw_check_result *result, bool is_all, sw_buffer *out)
{
    sw_text_line(out, "%-13s  validate  production  rounding  %s", "",
                 is_all ? "of" : "farthest of its kind");
    for (uint32_t i = 0; i < result->n_checked && is_all; i++)
        put_checked(&result->checked[i], out);
    for (int kind = 0; kind < SW_CHECKED_KIND_COUNT_ && !is_all; kind++) {
        const sw_checked *worst = worst_of(result, (sw_checked_kind)kind);
        if (worst != NULL)
            put_checked(worst, out);
    }
}

static void put_verdict(const sw_check_result *result, sw_buffer *out)
{
    const sw_checked *first = result->first;

    if (result->verdict == SW_CHECK_ROUNDING) {
        sw_text_line(out, "the first that differs: %s%s%s, by %.2g", first->fqn,
                     *first->fqn == '\0' ? "" : ", ", sw_checked_kind_name(first->kind),
                     first->difference[result->mode]);
    }
    if (result->verdict == SW_CHECK_BUG)
        sw_text_line(out, "bug: %s", result->what);
    else
        sw_buffer_puts(out, result->verdict == SW_CHECK_EQUAL ? "equal: the same bits as one rank\n"
                                                              : "equal up to rounding\n");
}

static void put_text(const sw_running *r, const sw_check_result *result, sw_dtype dtype, sw_buffer *out)
{
    uint32_t n_ranks = sw_mesh_ranks(sw_plan_mesh(r->plan));

    if (r->weights.store == NULL)
        sw_buffer_puts(out, "the weights are random: there are none in the folder\n");
    sw_text_line(out,
                 "%" PRIu32 " rank%s in %s, %" PRIu64 " sequence%s of %" PRIu64
                 " random tokens, the loss of one rank %.6g",
                 n_ranks, n_ranks == 1 ? "" : "s", dtype_word(dtype), result->n_rows,
                 result->n_rows == 1 ? "" : "s", result->n_tokens, result->loss);
    if (result->n_checked > 0)
        put_table(result, sw_arguments_has(&r->run->arguments, OPT_ALL), out);
    put_verdict(result, out);
}

static void put_string(sw_json_writer *writer, const char *key, const char *text)
{
    sw_json_key(writer, key);
    sw_json_put_string(writer, text);
}

static void put_checked_json(const sw_checked *checked, sw_json_writer *writer)
{
    sw_json_inline(writer);
    sw_json_begin_object(writer);
    put_string(writer, "kind", sw_checked_kind_name(checked->kind));
    put_string(writer, "name", checked->fqn);
    for (int mode = 0; mode < SW_CHECK_MODE_COUNT_; mode++) {
        double difference = checked->difference[mode];
        sw_json_put_number(writer, sw_check_mode_name((sw_check_mode)mode),
                           difference < 0 ? __builtin_inf() : difference);
    }
    sw_json_put_number(writer, "rounding", checked->bar);
    sw_json_end_object(writer);
}

static void put_findings_json(const sw_check_result *result, sw_json_writer *writer)
{
    put_string(writer, "verdict", sw_check_verdict_name(result->verdict));
    put_string(writer, "what", result->what);
    put_string(writer, "hint", result->hint);
    sw_json_key(writer, "first");
    if (result->first == NULL)
        sw_json_put_null(writer);
    else
        put_checked_json(result->first, writer);
    sw_json_key(writer, "checked");
    sw_json_begin_array(writer);
    for (uint32_t i = 0; i < result->n_checked; i++)
        put_checked_json(&result->checked[i], writer);
    sw_json_end_array(writer);
}

static void put_json(const sw_running *r, const sw_check_result *result, sw_dtype dtype, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "ranks");
    sw_json_put_u64(&writer, sw_mesh_ranks(sw_plan_mesh(r->plan)));
    put_string(&writer, "dtype", dtype_word(dtype));
    sw_json_key(&writer, "sequences");
    sw_json_put_u64(&writer, result->n_rows);
    sw_json_key(&writer, "tokens");
    sw_json_put_u64(&writer, result->n_tokens);
    sw_json_key(&writer, "random_weights");
    sw_json_put_bool(&writer, r->weights.store == NULL);
    sw_json_put_number(&writer, "loss", result->loss);
    put_findings_json(result, &writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

/* ---- the command ---- */

static sw_status read_options(const sw_running *r, sw_check_options *out, sw_error *err)
{
    const sw_arguments *arguments = &r->run->arguments;
    uint32_t n_tokens = 0;
    uint32_t n_rows = USUAL_ROWS;

    out->seed = 1;
    SW_TRY(sw_arguments_u32(arguments, OPT_SEQ_LEN, 2, INT32_MAX, &n_tokens, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_BATCH, 1, MOST_ROWS, &n_rows, err));
    SW_TRY(sw_arguments_u64(arguments, OPT_SEED, &out->seed, err));
    SW_TRY(sw_running_dtype(arguments, OPT_DTYPE, false, &out->dtype, err));
    out->n_tokens = n_tokens;
    out->n_rows = n_rows;
    out->skips_validate = sw_arguments_has(arguments, OPT_FORCE);
    out->form = r->cp_form;
    out->order = r->cp_order;
    return SW_OK;
}

static void drop_result(sw_check_result **result)
{
    sw_check_result_destroy(*result);
}

static sw_status check(sw_running *r, sw_run *run, sw_error *err)
{
    sw_check_result *result SW_AUTO(drop_result) = NULL;
    sw_check_options choices = {.fill = fill};

    SW_TRY(sw_running_agree(r, read_options(r, &choices, err), err));
    filling f = {r, choices.seed};
    choices.context = &f;
    SW_TRY(sw_running_describe(r, run->arguments.operands[0], choices.skips_validate, err));
    SW_TRY(sw_check(&result, r->weights.model, r->plan, r->comm, r->kernel, &choices, err));
    if (sw_arguments_has(&run->arguments, OPT_JSON))
        put_json(r, result, choices.dtype, &run->out);
    else
        put_text(r, result, choices.dtype, &run->out);
    run->shows_out = true;
    sw_status status =
        result->verdict == SW_CHECK_BUG ? SW_FAIL(err, SW_E_PLAN, result->hint, "%s", result->what) : SW_OK;
    return sw_running_agree(r, status, err);
}

static sw_status run_check(sw_run *run, sw_error *err)
{
    sw_running r SW_AUTO(sw_running_clear) = {0};

    if (!sw_arguments_has(&run->arguments, OPT_PLAN) && !sw_arguments_has(&run->arguments, OPT_MESH))
        return SW_FAIL(err, SW_E_ARGUMENT, "give axes, such as --mesh dp=2,tp=2, or a plan",
                       "neither --mesh AXES nor --plan FILE is given");
    SW_TRY(sw_running_begin(&r, run, &rows, err));
    return sw_running_end(&r, check(&r, run, err), err);
}

const sw_command sw_command_check = {
    .name = "check",
    .summary = "prove that a plan on a mesh computes what one rank computes",
    .usage = "MODEL --mesh AXES|--plan FILE [--ep N] [options]",
    .description =
        "Run a model on one rank and, in validate mode and in production, on the ranks of a mesh, over the\n"
        "same random tokens. Outputs of all boundaries, the loss and the gradients of all parameters are\n"
        "compared; for what differs first it says whether that is rounding or a bug, and what it looks\n"
        "like. A folder without weights gets those that `shardwright init` makes.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_check,
};
