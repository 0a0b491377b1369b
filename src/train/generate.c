/* Generation (train/generate.h). */
#include "train/generate.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "comm/collective.h"
#include "train/cut.h"

/* One text. */
typedef struct generating {
    const sw_net *net;
    sw_step *step;
    sw_ranks ranks;
    sw_cutter cutter; /* of the text, and of the cache */
    sw_cache *cache;
    sw_sampler sampler;
    float *logits; /* of a net that computes in F64, rounded; NULL: the step's are taken */
} generating;

static void clear_generating(generating *g)
{
    sw_cache_destroy(g->cache);
    sw_cutter_clear(&g->cutter);
    sw_sampler_clear(&g->sampler);
    sw_free(g->logits);
}

static sw_status check_prompt(const sw_net *net, const int32_t *prompt, uint64_t n_prompt, uint64_t n_new,
                              sw_error *err)
{
    uint64_t most = sw_most_positions(net);

    if (n_prompt == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give at least one token, such as the one that begins a text",
                       "the prompt is empty");
    for (uint64_t i = 0; i < n_prompt; i++) {
        if (prompt[i] < 0 || (uint64_t)prompt[i] >= net->settings.vocab)
            return SW_FAIL(err, SW_E_FORMAT, "take tokens of this model",
                           "token %" PRIu64 " of the prompt is %" PRId32 ", the vocabulary has %" PRIu64, i,
                           prompt[i], net->settings.vocab);
    }
    if (n_new <= most && n_prompt <= most - n_new)
        return SW_OK;
    return SW_FAIL(err, SW_E_LIMIT, "give a shorter prompt, or fewer new tokens",
                   "%" PRIu64 " tokens of the prompt and %" PRIu64 " new ones, the model has %" PRIu64
                   " positions",
                   n_prompt, n_new, most);
}

/* One that no text has would never end it. */
static sw_status check_stop(const sw_net *net, int64_t stop, sw_error *err)
{
    if (stop < 0 || (uint64_t)stop < net->settings.vocab)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "take a token of this model",
                   "the token that ends the text is %" PRId64 ", the vocabulary has %" PRIu64, stop,
                   net->settings.vocab);
}

static sw_status begin(generating *g, uint64_t capacity, const sw_sampling *sampling, sw_error *err)
{
    uint64_t vocab = g->net->settings.vocab;

    SW_TRY(sw_cutter_create(&g->cutter, &g->ranks, SW_SEQUENCE_CONTIGUOUS, 1, capacity, err));
    uint32_t n_parts = g->cutter.n_parts;
    SW_TRY(sw_cache_create(&g->cache, g->net, 1, sw_cache_part_tokens(capacity, n_parts), err));
    sw_cache_take_part(g->cache, g->cutter.part, n_parts);
    SW_TRY(sw_sampler_create(&g->sampler, sampling, vocab, err));
    if (g->net->settings.dtype != SW_DTYPE_F64)
        return SW_OK;
    g->logits = sw_alloc_zero(vocab, sizeof *g->logits);
    return g->logits == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " logits", vocab)
                             : SW_OK;
}

static sw_status make(generating *g, const int32_t *prompt, uint64_t n_prompt,
                      const sw_generate_options *options, sw_error *err)
{
    SW_TRY(check_prompt(g->net, prompt, n_prompt, options->n_new, err));
    SW_TRY(check_stop(g->net, options->stop, err));
    return begin(g, n_prompt + options->n_new, &options->sampling, err);
}

/* ---- a pass ---- */

/* The hidden states of the last of n tokens, [1, 1, C], on all ranks: where the tokens were cut, one has
 * them.
 */
static sw_status take_last(const generating *g, const sw_tensor *hidden, uint64_t n, bool is_cut,
                           sw_tensor **out, sw_error *err)
{
    sw_sequence_place last = {.at = n - 1};
    sw_sequence text;

    if (is_cut) {
        SW_TRY(sw_sequence_make(&text, n, g->cutter.n_parts, g->cutter.order, err));
        last = sw_sequence_place_of(&text, n - 1);
    }
    *out = sw_op_copy(g->step, sw_view_slice(g->step, hidden, 1, last.at, 1));
    SW_TRY(sw_step_status(g->step, err));
    if (is_cut)
        sw_broadcast(g->ranks.context, last.rank, sw_tensor_elems(*out), sw_tensor_dtype(*out),
                     sw_tensor_data(*out));
    return SW_OK;
}

/* The logits of the last token of a pass over `ids`. A text is cut over cp, the tokens that follow are not.
 */
static sw_status run_pass(generating *g, const int32_t *ids, uint64_t n, const float **logits, sw_error *err)
{
    const sw_feed whole = {.n_rows = 1, .n_tokens = n, .first = g->cache->n_tokens, .ids = ids};
    bool is_cut = g->cutter.n_parts > 1 && whole.first == 0;
    const sw_feed feed = is_cut ? sw_cutter_cut(&g->cutter, &whole) : whole;
    sw_tensor *last = NULL;
    sw_pass pass;

    sw_step_begin(g->step, false);
    sw_feed_pass(&pass, g->net, g->step, &feed);
    pass.cache = g->cache;
    SW_TRY(take_last(g, sw_net_hidden(g->net, g->step, &pass), n, is_cut, &last, err));
    pass.tokens = sw_feed_matrix(g->step, ids + n - 1, 1, 1);
    const sw_tensor *row = sw_net_logits(g->net, g->step, &pass, last);
    SW_TRY(sw_step_status(g->step, err));
    *logits = sw_tensor_data(row);
    if (g->logits != NULL) {
        for (uint64_t i = 0; i < g->net->settings.vocab; i++)
            g->logits[i] = (float)((const double *)sw_tensor_data(row))[i];
        *logits = g->logits;
    }
    return SW_OK;
}

/* The choice of the first rank, whose logits may differ in their last bits from those of another machine. */
static int32_t choose(generating *g, const float *logits, uint64_t number)
{
    int32_t token = sw_sampler_next(&g->sampler, logits, number);

    sw_ranks_tell(&g->ranks, 0, (char *)&token, sizeof token);
    return token;
}

static bool report(const sw_generate_options *options, uint64_t n_done)
{
    const sw_progress now = {.stage = "generate", .done = n_done, .total = options->n_new, .unit = "tokens"};

    return options->on_progress == NULL || options->on_progress(&now, options->user);
}

/*
 * One more token behind ids [n]. The tokens go through the net that it has not kept: the last one, or all of
 * them at first, and where what was kept does not hold for a longer text.
 */
static sw_status next_token(generating *g, int32_t *ids, uint64_t n, uint64_t number, sw_error *err)
{
    const float *logits = NULL;

    if (!sw_cache_holds(g->cache, g->net, n - g->cache->n_tokens))
        sw_cache_empty(g->cache);
    uint64_t n_kept = g->cache->n_tokens;
    SW_TRY(run_pass(g, ids + n_kept, n - n_kept, &logits, err));
    ids[n] = choose(g, logits, number);
    if (ids[n] >= 0)
        return SW_OK;
    sw_status status = SW_FAIL(err, SW_E_FORMAT, "the weights are damaged, or the model overflows",
                               "token %" PRIu64 ": the logits are no numbers", number);
    return sw_ranks_agree(&g->ranks, status, err);
}

static sw_status stopped(const generating *g, uint64_t n_done, uint64_t n_new, sw_error *err)
{
    sw_status status = SW_FAIL(err, SW_E_IO, SW_CREW_STOPPED_HELP,
                               "stopped after %" PRIu64 " of %" PRIu64 " tokens", n_done, n_new);
    return sw_ranks_agree(&g->ranks, status, err);
}

sw_status sw_generate(const sw_net *net, sw_step *step, int32_t *ids, uint64_t n_prompt,
                      const sw_generate_options *options, uint64_t *n_out, sw_error *err)
{
    generating g SW_AUTO(clear_generating) = {.net = net, .step = step};

    *n_out = 0;
    g.ranks = sw_ranks_of(net);
    SW_TRY(sw_ranks_agree(&g.ranks, make(&g, ids, n_prompt, options, err), err));
    for (uint64_t n = 0; n < options->n_new; n++) {
        if (!sw_ranks_all(&g.ranks, report(options, n)))
            return stopped(&g, n, options->n_new, err);
        SW_TRY(next_token(&g, ids, n_prompt + n, n, err));
        *n_out = n + 1;
        if (ids[n_prompt + n] == options->stop)
            break;
    }
    return SW_OK;
}
