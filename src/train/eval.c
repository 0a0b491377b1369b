/* Loss over a file (train/eval.h). */
#include "train/eval.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "checkpoint/fixed_math.h"
#include "train/feed.h"

enum { USUAL_TOKENS = 512 /* of a pass */ };

/* One evaluation. All passes have the same shape: what is missing in the last one counts nothing. */
typedef struct evaluating {
    const sw_net *net;
    sw_step *step;
    const sw_tokens *tokens;
    uint64_t length; /* of a sequence */
    uint64_t n_rows; /* of a pass */
    uint64_t n_sequences;
    int32_t *ids;
    int32_t *targets;
} evaluating;

static void clear_evaluating(evaluating *e)
{
    sw_free(e->ids);
    sw_free(e->targets);
}

static sw_status begin(evaluating *e, uint64_t seq_len, sw_error *err)
{
    uint64_t n_predicted = e->tokens->n_tokens - 1;

    if (n_predicted == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give a file with more tokens", "one token alone predicts nothing");
    e->length = seq_len < n_predicted ? seq_len : n_predicted;
    e->n_sequences = (n_predicted + e->length - 1) / e->length;
    e->n_rows = e->length < USUAL_TOKENS ? USUAL_TOKENS / e->length : 1;
    e->n_rows = e->n_rows < e->n_sequences ? e->n_rows : e->n_sequences;
    e->ids = sw_alloc_zero(e->n_rows * e->length, sizeof *e->ids);
    e->targets = sw_alloc_zero(e->n_rows * e->length, sizeof *e->targets);
    if (e->ids == NULL || e->targets == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " tokens", e->n_rows * e->length);
    return SW_OK;
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

/* The summed loss of the sequences from `first` on. */
static sw_status run_pass(evaluating *e, uint64_t first, double *sum, sw_error *err)
{
    const sw_feed feed = {.n_rows = e->n_rows, .n_tokens = e->length, .ids = e->ids};
    sw_pass pass;

    for (uint64_t row = 0; row < e->n_rows; row++)
        fill_row(e, first + row, row);
    sw_step_begin(e->step, false);
    sw_feed_pass(&pass, e->net, e->step, &feed);
    const sw_tensor *labels = sw_feed_matrix(e->step, e->targets, e->n_rows, e->length);
    const sw_tensor *loss = sw_net_loss(e->net, e->step, &pass, labels, 1.0, NULL);
    SW_TRY(sw_step_status(e->step, err));
    *sum += sw_scalar_of(loss);
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

/* Logs of probabilities below e^-700 or above 1 are no perplexity. */
static double perplexity_of(double loss)
{
    return loss >= 0.0 && loss < 700.0 ? sw_fixed_exp(loss) : loss < 0.0 ? 1.0 : loss + __builtin_inf();
}

sw_status sw_evaluate(sw_evaluation *out, const sw_net *net, sw_step *step, const sw_tokens *tokens,
                      const sw_eval_options *options, sw_error *err)
{
    evaluating e SW_AUTO(clear_evaluating) = {.net = net, .step = step, .tokens = tokens};
    double sum = 0.0;

    SW_TRY(begin(&e, options->seq_len, err));
    for (uint64_t first = 0; first < e.n_sequences; first += e.n_rows) {
        if (!report(&e, options, first))
            return SW_FAIL(err, SW_E_IO, SW_CREW_STOPPED_HELP,
                           "stopped after %" PRIu64 " of %" PRIu64 " sequences", first, e.n_sequences);
        SW_TRY(run_pass(&e, first, &sum, err));
    }
    *out = (sw_evaluation){.n_predicted = tokens->n_tokens - 1, .n_sequences = e.n_sequences};
    out->loss = sum / (double)out->n_predicted;
    out->perplexity = perplexity_of(out->loss);
    return SW_OK;
}
