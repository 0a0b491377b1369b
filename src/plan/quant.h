/*
 * Geometry of a companion (plan/companion.h): which of its dims stand for the weight's rows and columns, how
 * many logical ones a stored one stands for, and whether it fits the weight at all.
 */
#ifndef SW_PLAN_QUANT_H
#define SW_PLAN_QUANT_H

#include "plan/companion.h"

typedef struct sw_quant_geometry {
    sw_axes_of axes;    /* factor 0: neither the config nor the shapes tell it */
    uint64_t out;       /* logical rows of the weight; 0: not known */
    uint64_t in;        /* logical columns */
    int64_t bits;       /* of a value; 0: not known */
    char mismatch[192]; /* how it does not fit its weight; "" when it does */
} sw_quant_geometry;

/* The module's own settings of a companion's (MLX); NULL: it has the model's. */
const sw_quantization_module *sw_quant_module_of(const sw_plan *plan, const sw_companion *companion,
                                                 const char *fqn, size_t fqn_length);

/*
 * fqn      full name of the companion, `fqn_length` bytes
 * shape    as stored, with the expert dim in front when `is_stacked`
 */
void sw_quant_geometry_of(const sw_plan *plan, const sw_companion *companion, const char *fqn,
                          size_t fqn_length, const sw_shape *shape, bool is_stacked, sw_quant_geometry *out);

#endif
