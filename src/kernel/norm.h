/*
 * RMS and layer norms over rows, forward and backward. Dims: R rows, C width.
 *
 *     rms:   y = x * s * (offset + w),  s = 1 / sqrt(mean(x^2) + eps)      offset 1: Gemma's (1 + w)
 *     layer: y = (x - mean) * s * w + b,  s = 1 / sqrt(var(x) + eps)
 *
 * The rms norm also comes in pieces, for rows that are cut over ranks: sums of squares, sum them over ranks,
 * then `scale` from them, then apply; and for the backward row dots, sum them, then dx.
 */
#ifndef SW_KERNEL_NORM_H
#define SW_KERNEL_NORM_H

#include "kernel/kernel.h"

typedef struct sw_norm_args {
    size_t n_rows;
    size_t width;      /* of a row here */
    size_t full_width; /* rms in pieces: of the whole row, over ranks; 0: `width` */
    double eps;
    double offset;      /* rms: added to the weight */
    const void *x;      /* [R, C] */
    const void *weight; /* [C] or NULL: 1 (0 with an offset of 1) */
    const void *bias;   /* layer, forward: [C] or NULL */
    void *y;            /* forward: [R, C]; may be x */
    void *mean;         /* layer: [R], the forward writes it and the backward reads it */
    void *scale;        /* s: [R], the forward writes it and the backward reads it */
    const void *d_y;    /* backward: [R, C] */
    void *d_x;          /* backward: [R, C]; may be d_y, not x */
    void *dot;      /* rms backward: [R], sum over c of d_y * (offset + w) * x; room, given by the caller */
    void *d_weight; /* weight gradient: [C] or NULL, added to what is there */
    void *d_bias;   /* layer: [C] or NULL, added to what is there */
    void *parts;    /* weight gradients: room of sw_kernel_norm_parts_bytes(), given by the caller */
} sw_norm_args;

/* Room for the sums of parts of the rows, from which the weight gradients of `args` are added; may be 0. */
size_t sw_kernel_norm_parts_bytes(sw_dtype dtype, const sw_norm_args *args);

void sw_kernel_rms_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
/* Of each row d_weight first, then d_x: so d_x may be d_y. */
void sw_kernel_rms_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);

/* The pieces: scale[r] = sum of squares; scale[r] = 1 / sqrt(scale[r] / full_width + eps); y; dot; d_x. */
void sw_kernel_rms_square_sums(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_rms_scales(sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_rms_apply(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_rms_weight_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_rms_dots(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_rms_apply_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);

void sw_kernel_layer_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);
void sw_kernel_layer_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);

#endif
