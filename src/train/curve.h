/*
 * The course of a training run, step by step, and how it is written: as CSV, and as a plot of the loss in
 * SVG.
 */
#ifndef SW_TRAIN_CURVE_H
#define SW_TRAIN_CURVE_H

#include <stdint.h>

#include "base/buffer.h"
#include "shardwright/error.h"

typedef struct sw_curve_point {
    uint64_t step; /* from 1 on */
    double loss;
    double lr;
    double norm;     /* of the gradients, before clipping */
    uint64_t tokens; /* with a target, of this step */
} sw_curve_point;

typedef struct sw_curve {
    sw_curve_point *points;
    uint64_t n_points;
    uint64_t capacity;
} sw_curve; /* all zero is none */

/* Room for so many points. SW_E_NO_MEMORY. */
sw_status sw_curve_create(sw_curve *out, uint64_t capacity, sw_error *err);
void sw_curve_clear(sw_curve *curve);
void sw_curve_add(sw_curve *curve, const sw_curve_point *point); /* there is room */

/* "step,loss,lr,grad_norm,tokens" and a line a point; numbers as they are read back without loss. */
void sw_curve_csv(const sw_curve *curve, sw_buffer *out);

/* A picture of the loss over steps: axes with ticks, the line, `title` above (any text). */
void sw_curve_svg(const sw_curve *curve, const char *title, sw_buffer *out);

#endif
