/*
 * Logarithm, exponential and square root in a fixed sequence of IEEE double operations: the same bits on any
 * machine, which a math library does not promise. Exact to a few units in the last place. What rests on it
 * (checkpoint/random.h, `shardwright init`) must be compiled without contraction to fused operations and
 * without fast-math.
 */
#ifndef SW_CHECKPOINT_FIXED_MATH_H
#define SW_CHECKPOINT_FIXED_MATH_H

double sw_fixed_log(double x);  /* positive, finite, not subnormal */
double sw_fixed_exp(double x);  /* from -700 to 700 */
double sw_fixed_sqrt(double x); /* positive, finite, not subnormal */

#endif
