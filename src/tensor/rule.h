/*
 * Placement rules: from where the inputs of an operation lie on a mesh, where its output lies, or why it
 * cannot be computed without communication. On each axis by itself one of these holds, and follows from the
 * row of the operation:
 *
 *   - nothing is cut or a summand: the output is whole;
 *   - all inputs that have one dim (a letter) are cut over it alike, and no other: the output is cut there,
 *     or, when it does not have the dim, is a summand (inputs that are only added must be summands then); an
 *     input whose dim has one row may be whole, since that row serves all;
 *   - the summands are a set in which the operation is linear, the rest is whole: the output is a summand.
 */
#ifndef SW_TENSOR_RULE_H
#define SW_TENSOR_RULE_H

#include "tensor/operation.h"

/* Layouts of the outputs, NULL when no input has any; SW_E_PLAN with operation, layouts and why. */
sw_status sw_rule_apply(const sw_call *call, const sw_tensor_layout **out, sw_error *err);

/* The same for views of `x`, which has a layout (tensor/views.c). Dims are those that x has. */
sw_status sw_rule_split(sw_step *step, const sw_tensor *x, uint32_t dim, uint64_t inner,
                        const sw_tensor_layout **out, sw_error *err);
sw_status sw_rule_merge(sw_step *step, const sw_tensor *x, uint32_t dim, const sw_tensor_layout **out,
                        sw_error *err);
sw_status sw_rule_swap(sw_step *step, const sw_tensor *x, uint32_t a, uint32_t b,
                       const sw_tensor_layout **out, sw_error *err);
sw_status sw_rule_slice(sw_step *step, const sw_tensor *x, uint32_t dim, const sw_range *rows,
                        const sw_tensor_layout **out, sw_error *err);

#endif
