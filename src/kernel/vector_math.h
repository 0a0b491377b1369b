/*
 * exp, tanh and the activations on vectors of F32. Errors against libm, measured by the tests: exp 2 units in
 * the last place; tanh, sigmoid and the activations a few 1e-7 of the largest of value and argument.
 * Infinities give limits, NaN stays NaN.
 */
#ifndef SW_KERNEL_VECTOR_MATH_H
#define SW_KERNEL_VECTOR_MATH_H

#include "kernel/elementwise.h"
#include "kernel/vector.h"

/* 2^n * e^r with n whole and |r| <= ln(2) / 2; e^r by the polynomial whose worst error is smallest, 2e-9. */
INLINE vf v_exp(vf x)
{
    const float ln2_high = 0x1.63p-1F;
    const float ln2_low = -2.12194440e-4F;

    x = v_max(v_set(-110), v_min(v_set(110), x)); /* beyond the range of F32 on both sides */
    vf n = v_round(x * v_set(1.44269504F));
    vf r = v_fma(n, v_set(-ln2_high), x);
    r = v_fma(n, v_set(-ln2_low), r);
    vf p = v_fma(r, v_set(1.3843607e-3F), v_set(8.374196e-3F));
    p = v_fma(r, p, v_set(4.1668005e-2F));
    p = v_fma(r, p, v_set(0.1666643F));
    p = v_fma(r, p, v_set(0.49999994F));
    p = v_fma(r, p, v_set(1));
    p = v_fma(r, p, v_set(1));
    return v_scale_by_power(p, n);
}

/* (1 - e) / (1 + e) with e = exp(-2 |x|); near 0, where that cancels, the series. */
INLINE vf v_tanh(vf x)
{
    vf size = v_abs(x);
    vf e = v_exp(size * v_set(-2));
    vf far = (v_set(1) - e) / (v_set(1) + e);
    vf s = x * x;
    vf p = v_fma(s, v_set(-1382.0F / 155925), v_set(62.0F / 2835));
    p = v_fma(s, p, v_set(-17.0F / 315));
    p = v_fma(s, p, v_set(2.0F / 15));
    p = v_fma(s, p, v_set(-1.0F / 3));
    vf near = v_fma(x * s, p, x);
    far = v_select(v_less(x, v_set(0)), -far, far);
    return v_select(v_less(size, v_set(0.25F)), near, far);
}

/* 2^n * 2^r with n whole and |r| <= 1/2; 2^r by the polynomial whose worst error is smallest, 9e-8. */
INLINE vf v_power_of_two(vf x)
{
    vf n = v_round(x);
    vf r = x - n;
    vf p = v_fma(r, v_set(1.3264727e-3F), v_set(9.671513e-3F));
    p = v_fma(r, p, v_set(5.5507336e-2F));
    p = v_fma(r, p, v_set(0.24022242F));
    p = v_fma(r, p, v_set(0.693147F));
    p = v_fma(r, p, v_set(1));
    return v_scale_by_power(p, n);
}

/* 1 + e^-x: what is divided by it is rounded once. The product errs by parts of the argument, not of e^-x. */
INLINE vf v_one_and_exp_minus(vf x)
{
    vf t = v_max(v_set(-150), v_min(v_set(150), x * v_set(-1.44269504F)));
    return v_set(1) + v_power_of_two(t);
}

INLINE vf v_sigmoid(vf x)
{
    return v_set(1) / v_one_and_exp_minus(x);
}

/*
 * gelu and its slope are made of Phi(-a) and Phi(-a) - a phi(a), a = |x|, as powers of two whose exponents
 * are polynomials in a: those whose worst error of the power is smallest up to a = 6. They fall on, and
 * `most` is where the power has become 0, though its exponent is not below -250 yet.
 */
INLINE vf v_gelu_argument(vf x, float most)
{
    return v_min(v_set(most), v_abs(x));
}

/* max(x, 0) - a Phi(-a); p has degree 8, p(0) = -1 and errors of 5e-8, and 5e-4 of the tail. */
INLINE vf v_gelu(vf x)
{
    vf a = v_gelu_argument(x, 12);
    vf p = v_fma(a, v_set(-9.969254112e-7F), v_set(1.741456334e-5F));
    p = v_fma(a, p, v_set(-8.4749491e-5F));
    p = v_fma(a, p, v_set(-3.683223461e-4F));
    p = v_fma(a, p, v_set(7.339524826e-3F));
    p = v_fma(a, p, v_set(-5.266359255e-2F));
    p = v_fma(a, p, v_set(-0.459162576F));
    p = v_fma(a, p, v_set(-1.151109179F));
    p = v_fma(a, p, v_set(-1));
    return v_fma(-a, v_power_of_two(p), v_max(v_set(0), x));
}

/* (z - a) 2^p(a) at -a, z the zero of the slope; the rest of 1 at a. Degree 9, errors of 2e-8. */
INLINE vf v_gelu_slope(vf x)
{
    vf a = v_gelu_argument(x, 14.5F);
    vf p = v_fma(a, v_set(-7.914709134e-8F), v_set(3.129024968e-6F));
    p = v_fma(a, p, v_set(-5.229065953e-5F));
    p = v_fma(a, p, v_set(5.053372366e-4F));
    p = v_fma(a, p, v_set(-3.252216384e-3F));
    p = v_fma(a, p, v_set(1.52245125e-2F));
    p = v_fma(a, p, v_set(-5.514271068e-2F));
    p = v_fma(a, p, v_set(-0.5605764961F));
    p = v_fma(a, p, v_set(-0.38320057F));
    p = v_fma(a, p, v_set(-0.588404556F));
    vf below = (v_set(0.751791525F) - a) * v_power_of_two(p);
    return v_select(v_less(x, v_set(0)), below, v_set(1) - below);
}

INLINE vf v_gelu_argument_of_tanh(vf x) /* 2u, u = sqrt(2 / pi) * (x + 0.044715 x^3) */
{
    vf cubic = v_fma(x * x, v_set(0.044715F), v_set(1));
    return v_set(2 * 0.79788456F) * x * cubic;
}

INLINE vf v_act(sw_activation activation, vf x)
{
    switch (activation) {
    case SW_ACT_GELU:
        return v_gelu(x);
    case SW_ACT_GELU_TANH:
        return x / v_one_and_exp_minus(v_gelu_argument_of_tanh(x));
    case SW_ACT_RELU:
        return v_max(v_set(0), x);
    case SW_ACT_SIGMOID:
        return v_sigmoid(x);
    case SW_ACT_SILU:
    default:
        return x / v_one_and_exp_minus(x);
    }
}

/* The value of an activation and its slope at one point. */
typedef struct v_pair {
    vf value;
    vf slope;
} v_pair;

INLINE v_pair v_act_both(sw_activation activation, vf x)
{
    vf one = v_set(1);
    vf s;
    vf e;

    switch (activation) {
    case SW_ACT_GELU:
        return (v_pair){v_gelu(x), v_gelu_slope(x)};
    case SW_ACT_GELU_TANH:
        s = v_sigmoid(v_gelu_argument_of_tanh(x));
        e = v_fma(x * x, v_set(3 * 0.044715F), one) * v_set(2 * 0.79788456F); /* slope of 2u */
        return (v_pair){x * s, v_fma(x * s * (one - s), e, s)};
    case SW_ACT_RELU:
        return (v_pair){v_max(v_set(0), x), v_select(v_less(v_set(0), x), one, v_set(0))};
    case SW_ACT_SIGMOID:
        s = v_sigmoid(x);
        return (v_pair){s, s * (one - s)};
    case SW_ACT_SILU:
    default:
        s = v_sigmoid(x);
        return (v_pair){x * s, s * v_fma(x, one - s, one)};
    }
}

#endif
