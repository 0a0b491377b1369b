/*
 * Text from a net, token by token: the prompt in one pass, then one token a pass, with the keys and values of
 * what went before kept in a cache.
 *
 * Over ranks each has the cache of its heads; over cp, of its part of the prompt and every so many-th token
 * that follows. The net's plan has no sequence parallelism and no loss parallel, so that hidden states of one
 * token and its logits are whole; all ranks take the same tokens.
 */
#ifndef SW_TRAIN_GENERATE_H
#define SW_TRAIN_GENERATE_H

#include "nn/net.h"
#include "shardwright/checkpoint.h"
#include "train/sample.h"

typedef struct sw_generate_options {
    sw_sampling sampling;
    uint64_t n_new;              /* tokens at most */
    int64_t stop;                /* a token that ends the text, itself included; -1: none */
    sw_progress_fn *on_progress; /* may be NULL */
    void *user;
} sw_generate_options;

/*
 * Tokens that follow the first n_prompt of `ids`, put behind them, where there is room for n_new; *n_out gets
 * their number. SW_E_FORMAT: a prompt that is empty, a token of it or one to stop at that the vocabulary has
 * not, or logits that are no numbers; SW_E_LIMIT: more positions than the net has; SW_E_IO when on_progress
 * stopped it; failures of the step. Collective over the ranks of the net, which give the same tokens and
 * options.
 */
sw_status sw_generate(const sw_net *net, sw_step *step, int32_t *ids, uint64_t n_prompt,
                      const sw_generate_options *options, uint64_t *n_out, sw_error *err);

#endif
