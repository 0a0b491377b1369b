/*
 * Learning rates by step, as Hugging Face transformers has them. With s the number of steps done before, w
 * those of the warmup and n all of them:
 *
 *     s < w     lr * s / w
 *     constant  lr
 *     linear    lr * (n - s) / (n - w)
 *     cosine    lr * (1 + cos(pi * (s - w) / (n - w))) / 2
 *
 * and 0 beyond the end of the last two. With a warmup the first step has a rate of 0.
 */
#ifndef SW_TRAIN_SCHEDULE_H
#define SW_TRAIN_SCHEDULE_H

#include <stdint.h>

typedef enum sw_schedule_kind {
    SW_SCHEDULE_CONSTANT = 0,
    SW_SCHEDULE_LINEAR,
    SW_SCHEDULE_COSINE,
    SW_SCHEDULE_COUNT_
} sw_schedule_kind;

const char *sw_schedule_name(sw_schedule_kind kind);    /* "cosine"; NULL when out of range */
sw_schedule_kind sw_schedule_of_name(const char *name); /* SW_SCHEDULE_COUNT_: none of that name */

typedef struct sw_schedule {
    sw_schedule_kind kind;
    double lr;
    uint64_t warmup;
    uint64_t n_steps;
} sw_schedule;

/* The rate of the step that follows `n_done` others. */
double sw_schedule_rate(const sw_schedule *schedule, uint64_t n_done);

#endif
