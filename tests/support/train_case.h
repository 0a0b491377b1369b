/*
 * A tiny model that is trained, in the scratch folder: made by init from a config, on tokens of a short text
 * with a pattern in it.
 */
#ifndef SW_TEST_TRAIN_CASE_H
#define SW_TEST_TRAIN_CASE_H

#include "scratch.h"
#include "train/save.h"

enum { TRAIN_VOCAB = 37, TRAIN_TOKENS = 333 };

/* A folder "model" with F32 weights (two layers, fewer key/value heads than heads, tied) and "tokens.bin". */
void train_make_model(void);

/* A folder `name` with F32 weights, of a config in which ' stands for ". */
void train_make_model_of(const char *name, const char *text);

typedef struct train_bench {
    sw_kernel *kernel;
    sw_weights weights;
    sw_net *net;
    sw_tokens tokens;
    sw_trainer trainer;
} train_bench;

/* 3 sequences of 16 tokens a step, a warmup of 2 steps and a cosine over 12, AdamW with decay and clipping.
 */
sw_train_options train_usual_options(void);

/* A trainer of the scratch folder's `model`. */
void train_open(train_bench *b, const char *model, sw_dtype dtype, const sw_train_options *options);
void train_close(train_bench *b);

/* Steps; their losses go to `losses`. */
void train_run(train_bench *b, uint32_t n_steps, double *losses);

/* All values of two nets, bit for bit. */
void train_expect_same_values(const train_bench *a, const train_bench *b);

void train_must(sw_status status, const sw_error *err);

#endif
