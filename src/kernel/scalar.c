/* Functions of single numbers, and the tables of the rotary embedding (kernel/scalar.h). */
#include "kernel/scalar.h"

#include <math.h>

double sw_square_root(double x)
{
    return sqrt(x);
}

double sw_power(double base, double exponent)
{
    return pow(base, exponent);
}

double sw_logarithm(double x)
{
    return log(x);
}

void sw_rotary_tables_fill(sw_dtype dtype, const sw_rotary_tables *tables)
{
    size_t n = tables->n_frequencies;

    for (size_t p = 0; p < tables->n_positions; p++) {
        for (size_t j = 0; j < n; j++) {
            float angle = (float)p * tables->frequencies[j];
            double cosine = tables->scale * cos((double)angle);
            double sine = tables->scale * sin((double)angle);
            if (dtype == SW_DTYPE_F64) {
                ((double *)tables->cos)[p * n + j] = cosine;
                ((double *)tables->sin)[p * n + j] = sine;
            } else {
                ((float *)tables->cos)[p * n + j] = (float)cosine;
                ((float *)tables->sin)[p * n + j] = (float)sine;
            }
        }
    }
}
