/* Generation (train/generate.h). */
#include "train/generate.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/crew.h"
#include "comm/collective.h"
#include "parallel/sequence.h"
#include "train/feed.h"
#include "train/ranks.h"

/* One text. */
typedef struct generating {
    const sw_net *net;
    sw_step *step;
    sw_ranks ranks;
    const sw_group *parts; /* of the text, which the cache lies in; NULL: it is whole */
    sw_cache *cache;
    sw_sampler sampler;
    float *logits; /* of a net that computes in F64, rounded; NULL: the step's are taken */
} generating;

static void clear_generating(generating *g)
{
    sw_cache_destroy(g->cache);
    sw_sampler_clear(&g->sampler);
    sw_free(g->logits);
}

static void find_ranks(generating *g)
{
    g->ranks = sw_ranks_of(g->net);
    if (g->ranks.comm != NULL)
        g->parts = sw_comm_group(g->ranks.comm, SW_GROUP_CP);
    if (g->parts != NULL && g->parts->size == 1)
        g->parts = NULL;
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

static sw_status begin(generating *g, uint64_t capacity, const sw_sampling *sampling, sw_error *err)
{
    uint64_t vocab = g->net->settings.vocab;
    uint32_t n_parts = g->parts == NULL ? 1 : g->parts->size;

    SW_TRY(sw_cache_create(&g->cache, g->net, 1, sw_cache_part_tokens(capacity, n_parts), err));
    sw_cache_take_part(g->cache, g->parts == NULL ? 0 : g->parts->index, n_parts);
    SW_TRY(sw_sampler_create(&g->sampler, sampling, vocab, err));
    if (g->net->settings.dtype != SW_DTYPE_F64)
        return SW_OK;
    g->logits = sw_alloc_zero(vocab, sizeof *g->logits);
    return g->logits == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " logits", vocab)
                             : SW_OK;
}

/* ---- a pass ---- */

/* This rank's part of a text from its beginning; what the ranks do not divide is padded. Its last token is at
 * *last. */
static sw_status cut_text(const generating *g, const int32_t *ids, uint64_t n, sw_pass *pass,
                          sw_sequence_place *last, sw_error *err)
{
    sw_sequence text;

    SW_TRY(sw_sequence_make(&text, n, g->parts->size, SW_SEQUENCE_CONTIGUOUS, err));
    const uint64_t dims[] = {1, sw_sequence_local(&text)};
    sw_tensor *tokens = sw_step_tensor(g->step, SW_DTYPE_I32, 2, dims);
    sw_tensor *positions = sw_step_tensor(g->step, SW_DTYPE_I32, 2, dims);
    sw_tensor *keys = sw_step_tensor(g->step, SW_DTYPE_I32, 2, dims);
    SW_TRY(sw_step_status(g->step, err));
    for (uint64_t i = 0; i < dims[1]; i++) {
        uint64_t token = sw_sequence_token(&text, g->parts->index, i);
        bool is_there = token < n; /* padding is turned by something, and not seen */
        ((int32_t *)sw_tensor_data(tokens))[i] = is_there ? ids[token] : 0;
        ((int32_t *)sw_tensor_data(positions))[i] = is_there ? (int32_t)token : 0;
        ((int32_t *)sw_tensor_data(keys))[i] = is_there ? (int32_t)token : -1;
    }
    *pass = (sw_pass){.tokens = tokens, .positions = positions, .key_positions = keys, .n_positions = n};
    *last = sw_sequence_place_of(&text, n - 1);
    return SW_OK;
}

/* The hidden states of the last token, [1, 1, C], on all ranks: those of a text that was cut are on one. */
static sw_status take_last(const generating *g, const sw_tensor *hidden, bool is_cut, sw_sequence_place last,
                           sw_tensor **out, sw_error *err)
{
    *out = sw_op_copy(g->step, sw_view_slice(g->step, hidden, 1, last.at, 1));
    SW_TRY(sw_step_status(g->step, err));
    if (is_cut)
        sw_broadcast(g->parts, last.rank, sw_tensor_elems(*out), sw_tensor_dtype(*out), sw_tensor_data(*out));
    return SW_OK;
}

/* The logits of the last token of a pass over `ids`. */
static sw_status run_pass(generating *g, const int32_t *ids, uint64_t n, const float **logits, sw_error *err)
{
    const sw_feed feed = {.n_rows = 1, .n_tokens = n, .first = g->cache->n_tokens, .ids = ids};
    bool is_cut = g->parts != NULL && g->cache->n_tokens == 0;
    sw_sequence_place at = {.at = n - 1};
    sw_tensor *last = NULL;
    sw_pass pass;

    sw_step_begin(g->step, false);
    if (is_cut)
        SW_TRY(cut_text(g, ids, n, &pass, &at, err));
    else
        sw_feed_pass(&pass, g->net, g->step, &feed);
    pass.cache = g->cache;
    SW_TRY(take_last(g, sw_net_hidden(g->net, g->step, &pass), is_cut, at, &last, err));
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
    return SW_FAIL(err, SW_E_FORMAT, "the weights are damaged, or the model overflows",
                   "token %" PRIu64 ": the logits are no numbers", number);
}

sw_status sw_generate(const sw_net *net, sw_step *step, int32_t *ids, uint64_t n_prompt,
                      const sw_generate_options *options, uint64_t *n_out, sw_error *err)
{
    generating g SW_AUTO(clear_generating) = {.net = net, .step = step};

    *n_out = 0;
    find_ranks(&g);
    SW_TRY(check_prompt(net, ids, n_prompt, options->n_new, err));
    SW_TRY(sw_ranks_agree(&g.ranks, begin(&g, n_prompt + options->n_new, &options->sampling, err), err));
    for (uint64_t n = 0; n < options->n_new; n++) {
        if (!sw_ranks_all(&g.ranks, report(options, n)))
            return SW_FAIL(err, SW_E_IO, SW_CREW_STOPPED_HELP,
                           "stopped after %" PRIu64 " of %" PRIu64 " tokens", n, options->n_new);
        SW_TRY(next_token(&g, ids, n_prompt + n, n, err));
        *n_out = n + 1;
        if (ids[n_prompt + n] == options->stop)
            break;
    }
    return SW_OK;
}
