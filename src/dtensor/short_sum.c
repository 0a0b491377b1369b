/* Sums of short floats on the way (dtensor/short_sum.h). */
#include "dtensor/short_sum.h"

#include "base/short_float.h"

bool sw_is_short_float(sw_dtype dtype)
{
    return dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16;
}

void sw_short_add(sw_dtype dtype, float *sums, const uint16_t *values, size_t n)
{
    if (dtype == SW_DTYPE_BF16) {
        for (size_t i = 0; i < n; i++)
            sums[i] += sw_float_of_bf16(values[i]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sums[i] += sw_float_of_f16(values[i]);
}

void sw_short_round(sw_dtype dtype, uint16_t *out, const float *sums, size_t n)
{
    if (dtype == SW_DTYPE_BF16) {
        for (size_t i = 0; i < n; i++)
            out[i] = sw_bf16_of_float(sums[i]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = sw_f16_of_float(sums[i]);
}
