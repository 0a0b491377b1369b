/*
 * The loss of a net over a file of tokens, cut into sequences one after the other, the last one shorter:
 * every token but the first is predicted once, from those of its sequence before it. Ranks that share a net
 * share out the sequences and their tokens, and all get the same numbers; then it is collective.
 */
#ifndef SW_TRAIN_EVAL_H
#define SW_TRAIN_EVAL_H

#include "nn/net.h"
#include "parallel/sequence.h"
#include "shardwright/checkpoint.h"
#include "train/tokens.h"

typedef struct sw_eval_options {
    uint64_t seq_len;
    uint64_t pass_tokens;        /* of sequences that go through together; 0: 512 */
    uint64_t most_logits;        /* that are there at one time; 0: 2^24 */
    sw_sequence_order cp_order;  /* of tokens over cp */
    sw_progress_fn *on_progress; /* may be NULL */
    void *user;
} sw_eval_options;

typedef struct sw_evaluation {
    double loss; /* mean over the predicted tokens */
    double perplexity;
    uint64_t n_predicted;
    uint64_t n_sequences;
} sw_evaluation;

/* SW_E_FORMAT: fewer than two tokens, or a loss that is no number; SW_E_IO when on_progress stopped it;
 * failures of the step. */
sw_status sw_evaluate(sw_evaluation *out, const sw_net *net, sw_step *step, const sw_tokens *tokens,
                      const sw_eval_options *options, sw_error *err);

#endif
