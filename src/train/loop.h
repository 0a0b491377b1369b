/*
 * Training: steps of forward, backward, clipping and an optimizer over micro-batches, with one loss: the mean
 * over all tokens with a target of the whole step. What a step does follows from the options, the seed, the
 * data and the number of the step, so a run can be taken up at any of them. A net that a plan was applied to
 * is trained by all of its ranks, on the same sequences as by one: those of data parallelism share out the
 * rows of each micro-batch, those of context parallelism the tokens of each row. Then everything here is
 * collective, and fails on all ranks alike.
 */
#ifndef SW_TRAIN_LOOP_H
#define SW_TRAIN_LOOP_H

#include "nn/net.h"
#include "train/batches.h"
#include "train/curve.h"
#include "train/cut.h"
#include "train/optimizer.h"
#include "train/ranks.h"
#include "train/schedule.h"

typedef struct sw_train_options {
    uint32_t batch;      /* sequences of a micro-batch, of all ranks together */
    uint32_t accumulate; /* micro-batches of a step */
    uint32_t seq_len;
    uint64_t seed;              /* of the order of the data */
    bool recomputes;            /* activations of a layer once more in the backward: memory for time */
    sw_sequence_order cp_order; /* of tokens over cp */
    double router_loss;         /* factor of the auxiliary loss of a model that has routers; 0: none */
    sw_schedule schedule;
    sw_optimizer optimizer; /* its rate is the schedule's */
} sw_train_options;

/* Bytes of a step: what each of them takes, at its most. */
typedef struct sw_train_memory {
    uint64_t parameters;
    uint64_t gradients;
    uint64_t moments;
    uint64_t activations; /* and what else lives in the step */
} sw_train_memory;

typedef struct sw_trainer {
    sw_train_options options;
    sw_net *net;       /* borrowed, with memory for gradients */
    sw_kernel *kernel; /* borrowed */
    sw_step *step;
    sw_stack *moments;
    sw_trained_list list;
    sw_ranks ranks;                 /* that train the net together */
    struct sw_gradients *gradients; /* summed over them; NULL: one rank alone */
    uint32_t n_rows;                /* of a micro-batch on this rank */
    sw_batches batches;
    int32_t *ids; /* of all sequences of a step */
    int32_t *targets;
    sw_cutter cutter;
    uint64_t n_done;   /* steps */
    uint64_t position; /* sequences taken */
} sw_trainer;          /* all zero is none */

/* Moments are zero. SW_E_FORMAT: too few tokens; SW_E_LIMIT: sequences beyond the net's positions;
 * SW_E_PLAN: rows that ranks do not divide. */
sw_status sw_trainer_create(sw_trainer *out, sw_net *net, sw_kernel *kernel, const sw_tokens *tokens,
                            const char *tokens_path, const sw_train_options *options, sw_error *err);
void sw_trainer_clear(sw_trainer *trainer);

/*
 * One step; what it did. SW_E_FORMAT: a loss or gradient that is no number: then the parameters are as they
 * were, and the message has the step and the first bad tensor.
 */
sw_status sw_trainer_step(sw_trainer *trainer, sw_curve_point *out, sw_error *err);

/* The most that steps have taken so far. */
void sw_trainer_memory(const sw_trainer *trainer, sw_train_memory *out);

/*
 * The most that a step will take, before any was made: it grows with sequences and with their tokens, as up
 * to three short passes say, which leave nothing behind.
 */
sw_status sw_trainer_predict(sw_trainer *trainer, sw_train_memory *out, sw_error *err);

uint64_t sw_train_memory_sum(const sw_train_memory *memory);

#endif
