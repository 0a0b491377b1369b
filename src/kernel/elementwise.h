/*
 * Element by element: sums, products, activations and their backward, gated units, biases. `out` may be one
 * of the inputs; other overlaps are not allowed. Dims: R rows, C columns.
 */
#ifndef SW_KERNEL_ELEMENTWISE_H
#define SW_KERNEL_ELEMENTWISE_H

#include "kernel/kernel.h"

typedef enum sw_activation {
    SW_ACT_SILU = 0,
    SW_ACT_GELU,      /* x * Phi(x), by the error function */
    SW_ACT_GELU_TANH, /* its approximation by tanh: gelu_new, gelu_pytorch_tanh */
    SW_ACT_RELU,
    SW_ACT_SIGMOID,
    SW_ACT_COUNT_,
} sw_activation;

typedef struct sw_map_args {
    const void *a; /* [n] */
    const void *b; /* [n]; NULL where the kernel has one input */
    void *out;     /* [n] */
    double factor;
    sw_activation activation;
} sw_map_args;

/* out = a + b, out = a * b, out = factor * a, out += factor * a */
void sw_kernel_add(const sw_kernel *kernel, sw_dtype dtype, const void *a, const void *b, void *out,
                   size_t n);
void sw_kernel_multiply(const sw_kernel *kernel, sw_dtype dtype, const void *a, const void *b, void *out,
                        size_t n);
void sw_kernel_scale(const sw_kernel *kernel, sw_dtype dtype, double factor, const void *a, void *out,
                     size_t n);
void sw_kernel_accumulate(const sw_kernel *kernel, sw_dtype dtype, double factor, const void *a, void *out,
                          size_t n);

/* out = cap * tanh(x / cap); backward: out = d_out * (1 - tanh(x / cap)^2), x being the input of the forward.
 */
void sw_kernel_soft_cap(const sw_kernel *kernel, sw_dtype dtype, double cap, const void *x, void *out,
                        size_t n);
void sw_kernel_soft_cap_back(const sw_kernel *kernel, sw_dtype dtype, double cap, const void *x,
                             const void *d_out, void *d_x, size_t n);

/* out = a within [-limit, limit]; backward: out = d_out where x is within, else 0. */
void sw_kernel_clamp(const sw_kernel *kernel, sw_dtype dtype, double limit, const void *x, void *out,
                     size_t n);
void sw_kernel_clamp_back(const sw_kernel *kernel, sw_dtype dtype, double limit, const void *x,
                          const void *d_out, void *d_x, size_t n);

void sw_kernel_activate(const sw_kernel *kernel, sw_dtype dtype, sw_activation activation, const void *x,
                        void *out, size_t n);
void sw_kernel_activate_back(const sw_kernel *kernel, sw_dtype dtype, sw_activation activation, const void *x,
                             const void *d_out, void *d_x, size_t n);

/*
 * Gated unit: out = activation(gate) * up. With limit > 0 the clamped form of gpt-oss: g = min(gate, limit),
 * u = up clamped to [-limit, limit], out = (u + 1) * g * sigmoid(alpha * g); the activation is not looked at.
 * Strides are in elements from row to row, so that gate and up may be halves of one matrix.
 */
typedef struct sw_glu_args {
    size_t n_rows;
    size_t width;
    sw_activation activation;
    double limit;
    double alpha;
    const void *gate; /* [R, C], rows `stride` apart */
    const void *up;   /* [R, C], rows `stride` apart */
    size_t stride;
    void *out;         /* forward: [R, C] */
    const void *d_out; /* backward: [R, C] */
    void *d_gate;      /* backward: [R, C], rows `d_stride` apart; may be `gate` itself */
    void *d_up;        /* backward: [R, C], rows `d_stride` apart; may be `up` itself */
    size_t d_stride;
} sw_glu_args;

void sw_kernel_glu(const sw_kernel *kernel, sw_dtype dtype, const sw_glu_args *args);
void sw_kernel_glu_back(const sw_kernel *kernel, sw_dtype dtype, const sw_glu_args *args);

typedef struct sw_rows_args {
    size_t n_rows;
    size_t width;
    const void *a; /* [R, C] */
    const void *b; /* [C], [R] or [R, C], as the kernel says */
    void *out;     /* [R, C], [C] or [R] */
    bool accumulate;
} sw_rows_args;

/* out[r, c] = a[r, c] + b[c] */
void sw_kernel_add_bias(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args);
/* out[c] = sum over r of a[r, c], rows in ascending order; added to what is there if `accumulate` */
void sw_kernel_column_sum(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args);
/* out[r, c] = a[r, c] * b[r]; added to what is there if `accumulate` */
void sw_kernel_row_scale(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args);
/* out[r] = sum over c of a[r, c] * b[r, c] */
void sw_kernel_row_dot(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args);

/* Sum and sum of squares, in double, in an order that n alone decides. */
double sw_kernel_sum(const sw_kernel *kernel, sw_dtype dtype, const void *x, size_t n);
double sw_kernel_square_sum(const sw_kernel *kernel, sw_dtype dtype, const void *x, size_t n);

#endif
