/* Activations and their slopes in double, by libm: what the vector forms are compared with. */
#ifndef SW_KERNEL_REFERENCE_MATH_H
#define SW_KERNEL_REFERENCE_MATH_H

#include <math.h>

#include "kernel/elementwise.h"

static const double SQRT_HALF = 0.70710678118654752440;
static const double INV_SQRT_TAU = 0.39894228040143267794; /* 1 / sqrt(2 pi) */
static const double GELU_SLOPE = 0.79788456080286535588;   /* sqrt(2 / pi) */
static const double GELU_CUBIC = 0.044715;

static inline double reference_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static inline double reference_gelu_angle(double x)
{
    return GELU_SLOPE * (x + GELU_CUBIC * x * x * x);
}

static inline double reference_act(sw_activation activation, double x)
{
    switch (activation) {
    case SW_ACT_GELU:
        return x * 0.5 * erfc(-x * SQRT_HALF);
    case SW_ACT_GELU_TANH: /* (1 + tanh(u)) / 2 = sigmoid(2u) */
        return x * reference_sigmoid(2 * reference_gelu_angle(x));
    case SW_ACT_RELU:
        return x > 0 ? x : x * 0; /* NaN stays */
    case SW_ACT_SIGMOID:
        return reference_sigmoid(x);
    case SW_ACT_SILU:
    default:
        return x * reference_sigmoid(x);
    }
}

static inline double reference_act_slope(sw_activation activation, double x)
{
    double s;

    switch (activation) {
    case SW_ACT_GELU:
        return 0.5 * erfc(-x * SQRT_HALF) + x * INV_SQRT_TAU * exp(-0.5 * x * x);
    case SW_ACT_GELU_TANH:
        s = reference_sigmoid(2 * reference_gelu_angle(x));
        return s + x * s * (1 - s) * 2 * GELU_SLOPE * (1 + 3 * GELU_CUBIC * x * x);
    case SW_ACT_RELU:
        return x > 0;
    case SW_ACT_SIGMOID:
        s = reference_sigmoid(x);
        return s * (1 - s);
    case SW_ACT_SILU:
    default:
        s = reference_sigmoid(x);
        return s * (1 + x * (1 - s));
    }
}

/* The clamped unit of gpt-oss: value, and slopes by gate and up (0 where the clamp holds). */
typedef struct reference_glu {
    double value;
    double by_gate;
    double by_up;
} reference_glu;

static inline reference_glu reference_clamped_glu(double gate, double up, double limit, double alpha)
{
    double g = gate > limit ? limit : gate;
    double u = up > limit ? limit : up < -limit ? -limit : up;
    double s = reference_sigmoid(alpha * g);

    return (reference_glu){
        .value = (u + 1) * g * s,
        .by_gate = gate > limit ? 0 : (u + 1) * s * (1 + alpha * g * (1 - s)),
        .by_up = up > limit || up < -limit ? 0 : g * s,
    };
}

static inline reference_glu reference_gated(sw_activation activation, double gate, double up)
{
    double a = reference_act(activation, gate);
    return (reference_glu){a * up, reference_act_slope(activation, gate) * up, a};
}

#endif
