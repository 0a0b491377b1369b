/*
 * What a net gives in one run, kept beyond it: the output of every module that a plan has a boundary for, in
 * the order of the work, and the gradient of every parameter. Numbers are kept as F64, whatever computed
 * them. Knows nothing of ranks: a part's trace has what this rank has.
 */
#ifndef SW_APPLY_TRACE_H
#define SW_APPLY_TRACE_H

#include "nn/net.h"
#include "plan/plan_data.h"

/* An output or a gradient. */
typedef struct sw_traced {
    const char *fqn;     /* of the module or parameter */
    const sw_spec *spec; /* of an output */
    uint32_t n_dims;
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    uint64_t n_elems;
    double *values;
} sw_traced;

typedef struct sw_trace {
    sw_arena *arena;
    sw_traced *outputs;
    uint32_t n_outputs;
    uint32_t capacity;
    sw_traced *gradients; /* as the net's parameters */
    uint32_t n_gradients;
    double loss;   /* summand of this rank */
    double square; /* of the gradients' norm */
} sw_trace;

/* SW_E_NO_MEMORY. */
sw_status sw_trace_create(sw_trace **out, sw_error *err);
void sw_trace_destroy(sw_trace *trace); /* NULL is fine */

/*
 * From here on what the modules of the plan's boundaries give goes into the trace, which the net borrows;
 * behind whatever wraps them already. SW_E_NO_MEMORY; while running, in the step.
 */
sw_status sw_trace_outputs(sw_trace *trace, sw_net *net, const sw_plan *plan, sw_error *err);

/* The gradients of a net that has run; none that has flowed is zeros. SW_E_NO_MEMORY. */
sw_status sw_trace_gradients(sw_trace *trace, const sw_net *net, const sw_kernel *kernel, sw_error *err);

#endif
