/* Loss over a file (train/eval.h). */
#include "train/eval.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "checkpoint/fixed_math.h"
#include "comm/comm.h"
#include "train/cut.h"

enum { USUAL_TOKENS = 512, USUAL_LOGITS = 1 << 24 };

/* One evaluation. All passes have the same shape: what is missing in the last one counts nothing. */
typedef struct evaluating {
    const sw_net *net;
    sw_step *step;
    sw_ranks ranks;
    const sw_tokens *tokens;
    uint64_t length; /* of a sequence */
    uint64_t n_rows; /* of a pass */
    uint64_t n_sequences;
    uint64_t chunk; /* places of a row whose logits are there at one time: those of a vocabulary are many */
    int32_t *ids;
    int32_t *targets;
    sw_cutter cutter;
} evaluating;

static void clear_evaluating(evaluating *e)
{
    sw_free(e->ids);
    sw_free(e->targets);
    sw_cutter_clear(&e->cutter);
}

static sw_status begin(evaluating *e, const sw_eval_options *options, sw_error *err)
{
    uint64_t n_predicted = e->tokens->n_tokens - 1;
    uint64_t pass_tokens = options->pass_tokens == 0 ? USUAL_TOKENS : options->pass_tokens;
    uint64_t most_logits = options->most_logits == 0 ? USUAL_LOGITS : options->most_logits;

    if (n_predicted == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give a file with more tokens", "one token alone predicts nothing");
    e->length = options->seq_len < n_predicted ? options->seq_len : n_predicted;
    e->n_sequences = (n_predicted + e->length - 1) / e->length;
    e->n_rows = e->length < pass_tokens ? pass_tokens / e->length : 1;
    e->n_rows = e->n_rows < e->n_sequences ? e->n_rows : e->n_sequences;
    e->chunk = most_logits / (e->n_rows * e->net->settings.vocab);
    e->chunk = e->chunk == 0 ? 1 : e->chunk;
    e->ids = sw_alloc_zero(e->n_rows * e->length, sizeof *e->ids);
    e->targets = sw_alloc_zero(e->n_rows * e->length, sizeof *e->targets);
    if (e->ids == NULL || e->targets == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " tokens", e->n_rows * e->length);
    return sw_cutter_create(&e->cutter, &e->ranks, options->cp_order, e->n_rows, e->length, err);
}

/* Sequence `number` into row `row`; behind its end, or when there is none, tokens without targets. */
static void fill_row(const evaluating *e, uint64_t number, uint64_t row)
{
    uint64_t n_predicted = e->tokens->n_tokens - 1;
    uint64_t first = number * e->length;
    uint64_t left = first < n_predicted ? n_predicted - first : 0;
    uint64_t n = left < e->length ? left : e->length;
    int32_t *ids = e->ids + row * e->length;
    int32_t *targets = e->targets + row * e->length;

    sw_tokens_read(e->tokens, first, n, ids);
    sw_tokens_read(e->tokens, first + 1, n, targets);
    for (uint64_t i = n; i < e->length; i++) {
        ids[i] = 0;
        targets[i] = -1;
    }
}

/* One pass and its hidden states. Ranks may share those out: slices of equal length of each row. */
typedef struct passing {
    sw_feed feed;
    sw_pass pass;
    const sw_tensor *hidden;
    uint64_t n_slices;
    uint64_t length; /* of a slice */
} passing;

/* Places first .. first + n - 1 of each slice of the targets, in memory of the step. */
static const sw_tensor *cut_targets(const evaluating *e, const passing *p, uint64_t first, uint64_t n)
{
    const uint64_t dims[] = {p->feed.n_rows, p->n_slices * n};
    sw_tensor *cut = sw_step_tensor(e->step, SW_DTYPE_I32, 2, dims);
    int32_t *out = cut == NULL ? NULL : sw_tensor_data(cut);

    for (uint64_t i = 0; cut != NULL && i < p->feed.n_rows * p->n_slices; i++)
        memcpy(out + i * n, p->feed.targets + i * p->length + first, n * sizeof *out);
    return cut;
}

/* Add the loss of n places of each slice to *sum; the logits are given back. */
static sw_status add_loss(const evaluating *e, const passing *p, uint64_t first, uint64_t n, double *sum,
                          sw_error *err)
{
    const sw_loss_stage *loss = &e->net->stages->loss;
    sw_stack_mark mark = sw_stack_top(sw_step_stack(e->step));
    const sw_tensor *targets = cut_targets(e, p, first, n);
    const sw_tensor *cut =
        n == p->length ? p->hidden : sw_op_copy(e->step, sw_view_slice(e->step, p->hidden, 1, first, n));
    sw_pass pass = p->pass;

    SW_TRY(sw_step_status(e->step, err));
    pass.tokens = targets; /* the head is asked for as many */
    const sw_tensor *logits = sw_net_logits(e->net, e->step, &pass, cut);
    const sw_tensor *y = loss->run(loss->context, e->step, logits, targets, 1.0);
    SW_TRY(sw_step_status(e->step, err));
    *sum += sw_scalar_of(y);
    sw_stack_release(sw_step_stack(e->step), mark);
    return SW_OK;
}

/* Slices that are not equal are taken whole, as one: no rank knows where the others cut. */
static uint64_t slice(const evaluating *e, passing *p)
{
    uint64_t n_ranks = e->ranks.hidden == NULL ? 1 : e->ranks.hidden->size;
    uint64_t n_tokens = p->feed.n_tokens;
    bool are_equal = n_tokens % n_ranks == 0;

    p->n_slices = are_equal ? n_ranks : 1;
    p->length = n_tokens / p->n_slices;
    if (!are_equal || e->chunk >= n_tokens)
        return p->length;
    return e->chunk < n_ranks ? 1 : e->chunk / n_ranks;
}

/* The summed loss of the sequences from `first` on. */
static sw_status run_pass(evaluating *e, uint64_t first, double *sum, sw_error *err)
{
    const sw_feed whole = {.n_rows = e->n_rows, .n_tokens = e->length, .ids = e->ids, .targets = e->targets};
    passing p;

    for (uint64_t row = 0; row < e->n_rows; row++)
        fill_row(e, first + row, row);
    sw_step_begin(e->step, false);
    p.feed = sw_cutter_cut(&e->cutter, &whole);
    sw_feed_pass(&p.pass, e->net, e->step, &p.feed);
    p.hidden = sw_net_hidden(e->net, e->step, &p.pass);
    SW_TRY(sw_step_status(e->step, err));
    uint64_t chunk = slice(e, &p);
    for (uint64_t at = 0; at < p.length; at += chunk) {
        uint64_t left = p.length - at;
        SW_TRY(add_loss(e, &p, at, left < chunk ? left : chunk, sum, err));
    }
    return SW_OK;
}

static bool report(const evaluating *e, const sw_eval_options *options, uint64_t n_done)
{
    uint64_t n_tokens = e->tokens->n_tokens - 1;
    uint64_t done = n_done * e->length;
    const sw_progress now = {
        .stage = "eval", .done = done < n_tokens ? done : n_tokens, .total = n_tokens, .unit = "tokens"};

    return options->on_progress == NULL || options->on_progress(&now, options->user);
}

static sw_status stopped(const evaluating *e, uint64_t n_done, sw_error *err)
{
    sw_status status = SW_FAIL(err, SW_E_IO, SW_CREW_STOPPED_HELP,
                               "stopped after %" PRIu64 " of %" PRIu64 " sequences", n_done, e->n_sequences);
    return sw_ranks_agree(&e->ranks, status, err);
}

/* Logs of probabilities below e^-700 or above 1 are no perplexity. */
static double perplexity_of(double loss)
{
    return loss >= 0.0 && loss < 700.0 ? sw_fixed_exp(loss) : loss < 0.0 ? 1.0 : loss + __builtin_inf();
}

sw_status sw_evaluate(sw_evaluation *out, const sw_net *net, sw_step *step, const sw_tokens *tokens,
                      const sw_eval_options *options, sw_error *err)
{
    evaluating e SW_AUTO(clear_evaluating) = {
        .net = net, .step = step, .ranks = sw_ranks_of(net), .tokens = tokens};
    double sum = 0.0;

    SW_TRY(sw_ranks_agree(&e.ranks, begin(&e, options, err), err));
    const uint64_t n_each = e.n_rows * sw_ranks_parts(&e.ranks); /* sequences that go through at one time */
    for (uint64_t first = 0; first < e.n_sequences; first += n_each) {
        if (!sw_ranks_all(&e.ranks, report(&e, options, first)))
            return stopped(&e, first, err);
        SW_TRY(run_pass(&e, first + sw_ranks_part(&e.ranks) * e.n_rows, &sum, err));
    }
    *out = (sw_evaluation){.n_predicted = tokens->n_tokens - 1, .n_sequences = e.n_sequences};
    out->loss = sw_ranks_sum(&e.ranks, sum) / (double)out->n_predicted;
    if (!__builtin_isfinite(out->loss))
        return SW_FAIL(err, SW_E_FORMAT, "the weights are damaged, or the model overflows: try --dtype f64",
                       "the loss is %s", out->loss != out->loss ? "nan" : "infinite");
    out->perplexity = perplexity_of(out->loss);
    return SW_OK;
}
