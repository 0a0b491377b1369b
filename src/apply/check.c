/* The order of a check (apply/check.h), its comparisons, and its verdict. */
#include "apply/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply/checking.h"
#include "base/status.h"
#include "checkpoint/random.h"
#include "comm/collective.h"
#include "kernel/scalar.h"
#include "plan/plan_data.h"

const char *sw_checked_kind_name(sw_checked_kind kind)
{
    static const char *const names[SW_CHECKED_KIND_COUNT_] = {"output", "loss", "gradient", "gradient norm"};
    return kind < 0 || kind >= SW_CHECKED_KIND_COUNT_ ? NULL : names[kind];
}

const char *sw_check_mode_name(sw_check_mode mode)
{
    static const char *const names[SW_CHECK_MODE_COUNT_] = {"validate", "production"};
    return mode < 0 || mode >= SW_CHECK_MODE_COUNT_ ? NULL : names[mode];
}

const char *sw_check_verdict_name(sw_check_verdict verdict)
{
    static const char *const names[SW_CHECK_VERDICT_COUNT_] = {"equal", "rounding", "bug"};
    return verdict < 0 || verdict >= SW_CHECK_VERDICT_COUNT_ ? NULL : names[verdict];
}

/* ---- the batch ---- */

/* Sizes are those of the net; it has no memory yet. */
static sw_status read_sizes(sw_checking *c, uint64_t *vocab, sw_error *err)
{
    sw_net *net = NULL;
    uint64_t wanted = c->options->n_tokens;

    SW_TRY(sw_net_create(&net, c->model, &(sw_net_options){.dtype = SW_DTYPE_F32}, err));
    uint64_t most = net->settings.n_positions == 0 ? INT32_MAX : net->settings.n_positions;
    *vocab = net->settings.vocab;
    sw_net_destroy(net);
    uint64_t usual =
        most < SW_CHECK_USUAL_TOKENS ? most - (most > 2 && most % 2 == 0) : SW_CHECK_USUAL_TOKENS;
    c->n_tokens = wanted > 0 ? wanted : usual;
    if (c->n_tokens < 2 || c->n_tokens > most)
        return SW_FAIL(err, SW_E_LIMIT, "give from 2 to as many as the model has positions",
                       "sequences of %" PRIu64 " tokens, the model has %" PRIu64 " positions", c->n_tokens,
                       most);
    return SW_OK;
}

/* Some labels count nothing, so that ranks count differently. */
static void draw(sw_checking *c, uint64_t vocab)
{
    const sw_random random = sw_random_of(c->options->seed, "tokens", 6);
    uint64_t n_counted = 0;

    for (uint64_t i = 0; i < c->n_rows * c->n_tokens; i++) {
        uint64_t at = i % c->n_tokens;
        uint64_t bits = 0;
        sw_random_bits(&random, i, 1, &bits);
        c->ids[i] = (int32_t)((bits >> 8) % vocab);
        c->labels[i] = at > 1 && (bits & 7) == 0 ? -1 : c->ids[i];
        n_counted += at > 0 && c->labels[i] >= 0;
    }
    c->factor = 1.0 / (double)n_counted;
}

static sw_status make_batch(sw_checking *c, sw_error *err)
{
    uint64_t vocab = 0;

    SW_TRY(read_sizes(c, &vocab, err));
    c->n_rows = c->options->n_rows * sw_mesh_axis_size(c->plan->mesh, SW_AXIS_DP);
    if (c->n_rows == 0 || c->n_rows > UINT32_MAX)
        return SW_FAIL(err, SW_E_ARGUMENT, "give at least one", "%" PRIu64 " sequences", c->n_rows);
    c->ids = sw_arena_zero(c->arena, c->n_rows * c->n_tokens, sizeof *c->ids);
    c->labels = sw_arena_zero(c->arena, c->n_rows * c->n_tokens, sizeof *c->labels);
    if (c->ids == NULL || c->labels == NULL)
        return sw_arena_fail(c->arena, "random tokens", err);
    draw(c, vocab);
    return sw_sequence_make(&c->sequence, c->n_tokens, sw_mesh_axis_size(c->plan->mesh, SW_AXIS_CP),
                            c->options->order, err);
}

/* ---- comparing ---- */

/* Is this the first beyond rounding? Then `what` is said. */
static bool note(const sw_checking *c, uint32_t at, double difference)
{
    sw_check_result *result = c->result;
    sw_checked *checked = &result->checked[at];
    bool is_bug = !(difference <= checked->bar);
    sw_check_verdict verdict = is_bug ? SW_CHECK_BUG : difference > 0 ? SW_CHECK_ROUNDING : SW_CHECK_EQUAL;

    checked->difference[c->mode] = difference;
    if (verdict <= result->verdict)
        return false;
    result->verdict = verdict;
    result->first = checked;
    result->mode = c->mode;
    if (is_bug) {
        (void)snprintf(result->what, sizeof result->what,
                       "%.400s%s%s: off by %.3g of its largest in %s, rounding reaches %.2g", checked->fqn,
                       *checked->fqn == '\0' ? "" : ", ", sw_checked_kind_name(checked->kind), difference,
                       sw_check_mode_name(c->mode), checked->bar);
    }
    return is_bug;
}

/* The largest difference of all ranks; infinite where there is none that is a number. Collective. */
static double difference_of(const sw_checking *c, const sw_check_part *part, double scale)
{
    double most = part->has_other_extents ? __builtin_inf() : 0;

    for (uint64_t i = 0; i < part->n && !part->has_other_extents; i++) {
        double off = sw_size_of(part->got[i] - part->wanted[i]);
        bool is_padding = !sw_is_finite(part->wanted[i]);
        if (!is_padding && !(off <= most)) /* NaN too */
            most = sw_is_finite(off) ? off : __builtin_inf();
    }
    most /= scale;
    sw_all_reduce_max(c->all, 1, SW_DTYPE_F64, &most, &most);
    return most;
}

/* An output or a gradient, by its number among them. */
typedef sw_status take_part(sw_check_part *out, const sw_checking *c, uint32_t i, sw_arena *arena,
                            sw_error *err);

static sw_status compare_part(const sw_checking *c, take_part *take, uint32_t i, uint32_t at, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);
    sw_check_part part;
    sw_status status =
        arena == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for what is compared") : SW_OK;

    status = sw_comm_agree(c->comm, status, err);
    if (status == SW_OK)
        status = take(&part, c, i, arena, err);
    if (status == SW_OK && note(c, at, difference_of(c, &part, c->scale[at])))
        status =
            sw_check_hint(c, &part, c->bar[at] * c->scale[at], c->result->hint, sizeof c->result->hint, err);
    sw_arena_destroy(arena);
    return status;
}

/* Of the ranks the one that is farthest; what it looks like is told of the first. */
static void compare_number(const sw_checking *c, double got, double wanted, uint32_t at)
{
    double difference = sw_size_of(got - wanted) / c->scale[at];

    if (!sw_is_finite(difference))
        difference = __builtin_inf();
    sw_all_reduce_max(c->all, 1, SW_DTYPE_F64, &difference, &difference);
    sw_broadcast(c->all, 0, 1, SW_DTYPE_F64, &got);
    if (note(c, at, difference))
        sw_check_hint_number(c, got, wanted, c->result->hint, sizeof c->result->hint);
}

static sw_status compare(const sw_checking *c, sw_error *err)
{
    const uint32_t n = c->n_outputs;

    for (uint32_t i = 0; i < n; i++)
        SW_TRY(compare_part(c, sw_check_output, i, i, err));
    compare_number(c, c->trace->loss, c->numbers[0], n);
    for (uint32_t k = 0; k < c->n_gradients; k++)
        SW_TRY(compare_part(c, sw_check_gradient, c->order[k], n + 1 + k, err));
    compare_number(c, sw_square_root(c->trace->square), c->numbers[1], n + 1 + c->n_gradients);
    return SW_OK;
}

/* ---- the result ---- */

static sw_status begin_result(sw_checking *c, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);

    c->result = arena == NULL ? NULL : sw_arena_zero(arena, 1, sizeof *c->result);
    if (c->result == NULL) {
        sw_arena_destroy(arena);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for what is found");
    }
    c->result->arena = arena;
    return SW_OK;
}

static sw_status list_one(const sw_checking *c, uint32_t at, sw_checked_kind kind, const char *fqn,
                          sw_error *err)
{
    sw_check_result *result = c->result;

    result->checked[at] =
        (sw_checked){.kind = kind, .fqn = sw_arena_copy(result->arena, fqn, strlen(fqn)), .bar = c->bar[at]};
    for (int mode = 0; mode < SW_CHECK_MODE_COUNT_; mode++)
        result->checked[at].difference[mode] = -1;
    return result->checked[at].fqn == NULL ? sw_arena_fail(result->arena, "what is found", err) : SW_OK;
}

/* All that is checked, by the first part that has run. */
static sw_status list(sw_checking *c, sw_error *err)
{
    const uint32_t n = c->n_outputs;
    sw_check_result *result = c->result;

    if (c->trace->n_outputs != n || c->trace->n_gradients != c->n_gradients)
        return SW_FAIL(err, SW_E_PLAN, "make the plan of this model",
                       "%" PRIu32 " boundaries were passed, on one rank %" PRIu32, c->trace->n_outputs, n);
    if (result->checked != NULL)
        return SW_OK;
    if (c->order == NULL)
        SW_TRY(sw_check_order(c, c->trace, err));
    result->checked = sw_arena_zero(result->arena, n + c->n_gradients + 2, sizeof *result->checked);
    if (result->checked == NULL)
        return sw_arena_fail(result->arena, "what is found", err);
    for (uint32_t i = 0; i < n; i++)
        SW_TRY(list_one(c, i, SW_CHECKED_OUTPUT, c->trace->outputs[i].fqn, err));
    SW_TRY(list_one(c, n, SW_CHECKED_LOSS, "", err));
    for (uint32_t k = 0; k < c->n_gradients; k++)
        SW_TRY(list_one(c, n + 1 + k, SW_CHECKED_GRADIENT, c->trace->gradients[c->order[k]].fqn, err));
    result->n_checked = n + c->n_gradients + 2;
    return list_one(c, result->n_checked - 1, SW_CHECKED_NORM, "", err);
}

/* A plan that does not run is what was found; others fail. */
static sw_status note_wrong(const sw_checking *c, sw_status status, bool is_wrong, const sw_error *err)
{
    sw_check_result *result = c->result;

    if (!is_wrong)
        return status;
    result->verdict = SW_CHECK_BUG;
    result->first = NULL;
    result->mode = c->mode;
    (void)snprintf(result->what, sizeof result->what, "%s", err->what);
    (void)snprintf(result->hint, sizeof result->hint, "%s", err->help);
    return SW_OK;
}

static sw_status run_mode(sw_checking *c, bool *is_wrong, sw_error *err)
{
    sw_trace *trace = NULL;
    sw_status status = sw_check_run_part(c, &trace, is_wrong, err);

    if (status != SW_OK)
        return note_wrong(c, status, *is_wrong, err);
    c->trace = trace;
    status = sw_comm_agree(c->comm, list(c, err), err);
    if (status == SW_OK)
        status = compare(c, err);
    c->trace = NULL;
    sw_trace_destroy(trace);
    sw_net_destroy(c->net);
    c->net = NULL;
    return status;
}

/* ---- all of it ---- */

static sw_status begin(sw_checking *c, sw_error *err)
{
    if (c->options->dtype != SW_DTYPE_F32 && c->options->dtype != SW_DTYPE_F64)
        return SW_FAIL(err, SW_E_ARGUMENT, "choose F32 or F64", "nothing is checked in %s",
                       sw_dtype_name(c->options->dtype));
    SW_TRY(sw_active_make(&c->active, c->plan, c->comm, err));
    SW_TRY(begin_result(c, err));
    return make_batch(c, err);
}

static sw_status run_all(sw_checking *c, sw_error *err)
{
    bool is_wrong = false;

    SW_TRY(sw_comm_agree(c->comm, begin(c, err), err));
    SW_TRY(sw_check_reference(c, err));
    c->result->loss = c->numbers[0];
    c->result->n_rows = c->n_rows;
    c->result->n_tokens = c->n_tokens;
    int first = c->options->skips_validate ? SW_CHECK_PRODUCTION : SW_CHECK_VALIDATE;
    for (int mode = first; mode < SW_CHECK_MODE_COUNT_ && !is_wrong; mode++) {
        c->mode = (sw_check_mode)mode;
        SW_TRY(run_mode(c, &is_wrong, err));
    }
    return SW_OK;
}

sw_status sw_check(sw_check_result **out, const sw_model *model, const sw_plan *plan, sw_comm *comm,
                   sw_kernel *kernel, const sw_check_options *options, sw_error *err)
{
    sw_checking c = {.model = model, .plan = plan, .comm = comm, .kernel = kernel, .options = options};

    c.all = sw_comm_group(comm, SW_GROUP_WORLD);
    c.is_first = sw_comm_rank(comm) == 0;
    c.arena = sw_arena_create(0);
    sw_status status = c.arena == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a check") : SW_OK;
    status = sw_comm_agree(comm, status, err);
    if (status == SW_OK)
        status = run_all(&c, err);
    *out = status == SW_OK ? c.result : NULL;
    if (status != SW_OK)
        sw_check_result_destroy(c.result);
    sw_trace_destroy(c.reference);
    sw_arena_destroy(c.arena);
    return status;
}

void sw_check_result_destroy(sw_check_result *result)
{
    if (result != NULL)
        sw_arena_destroy(result->arena); /* it is in there itself */
}
