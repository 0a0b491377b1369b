/* Traces (apply/trace.h): wraps around wraps. */
#include "apply/trace.h"

#include <string.h>

#include "base/status.h"
#include "kernel/read_floats.h"
#include "parallel/node.h"

sw_status sw_trace_create(sw_trace **out, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);
    sw_trace *trace = arena == NULL ? NULL : sw_arena_zero(arena, 1, sizeof *trace);

    if (trace == NULL) {
        sw_arena_destroy(arena);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for what a net gives");
    }
    trace->arena = arena;
    *out = trace;
    return SW_OK;
}

void sw_trace_destroy(sw_trace *trace)
{
    if (trace != NULL)
        sw_arena_destroy(trace->arena); /* it is in there itself */
}

/* Room for the values of one; its name is copied, for nets do not live as long. */
static sw_status begin(sw_traced *out, sw_trace *trace, const char *fqn, uint32_t n_dims,
                       const uint64_t *dims, sw_error *err)
{
    *out = (sw_traced){.n_dims = n_dims, .n_elems = 1};
    for (uint32_t d = 0; d < n_dims; d++) {
        out->dims[d] = dims[d];
        out->n_elems *= dims[d];
    }
    out->fqn = sw_arena_copy(trace->arena, fqn, strlen(fqn));
    out->values = sw_arena_zero(trace->arena, (size_t)out->n_elems + 1, sizeof *out->values);
    return out->fqn == NULL || out->values == NULL ? sw_arena_fail(trace->arena, fqn, err) : SW_OK;
}

/* ---- outputs ---- */

/* A module that is watched, and what wrapped it before. */
typedef struct watched {
    sw_trace *trace;
    const sw_spec *spec;
    sw_module_wrap inner;
} watched;

static sw_status keep(const watched *w, const sw_module *module, sw_step *step, const sw_tensor *y,
                      sw_error *err)
{
    sw_trace *trace = w->trace;
    const void *dense = NULL;

    if (trace->n_outputs == trace->capacity)
        return SW_FAIL(err, SW_E_ARGUMENT, "trace one run", "%s: ran again", module->fqn);
    sw_traced *out = &trace->outputs[trace->n_outputs];
    SW_TRY(begin(out, trace, module->fqn, y->n_dims, y->dims, err));
    SW_TRY(sw_node_dense(step, y, &dense, err));
    sw_kernel_read_floats(sw_step_kernel(step), sw_tensor_dtype(y), dense, SW_DTYPE_F64, out->values,
                          out->n_elems);
    out->spec = w->spec;
    trace->n_outputs++;
    return SW_OK;
}

static sw_tensor *run_watched(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                              const sw_tensor *const *in)
{
    const watched *w = context;
    sw_tensor *y = w->inner.run == NULL ? module->class->forward(module, step, pass, in)
                                        : w->inner.run(w->inner.context, module, step, pass, in);
    sw_error err = {0};

    if (y == NULL)
        return NULL;
    sw_status status = keep(w, module, step, y, &err);
    if (status != SW_OK)
        SW_IGNORE(sw_step_fail(step, status, &err));
    return status == SW_OK ? y : NULL;
}

sw_status sw_trace_outputs(sw_trace *trace, sw_net *net, const sw_plan *plan, sw_error *err)
{
    watched *all = sw_arena_zero(trace->arena, plan->n_specs, sizeof *all);

    trace->outputs = sw_arena_zero(trace->arena, plan->n_specs, sizeof *trace->outputs);
    if (all == NULL || trace->outputs == NULL)
        return sw_arena_fail(trace->arena, "what a net gives", err);
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_module *module = sw_net_module(net, plan->specs[i].fqn);
        if (module == NULL || plan->specs[i].out_src.n == 0)
            continue;
        all[trace->capacity] = (watched){trace, &plan->specs[i], module->wrap};
        module->wrap = (sw_module_wrap){run_watched, &all[trace->capacity++]};
    }
    return SW_OK;
}

/* ---- gradients ---- */

static sw_status keep_gradient(sw_traced *out, sw_trace *trace, const sw_parameter *p,
                               const sw_kernel *kernel, sw_error *err)
{
    const sw_storage *storage = p->tensor->storage;
    sw_dtype dtype = sw_gradient_dtype(p->dtype);

    SW_TRY(begin(out, trace, p->fqn, p->n_dims, p->tensor->dims, err));
    if (storage->has_gradient && storage->gradient != NULL)
        sw_kernel_read_floats(kernel, dtype,
                              (const char *)storage->gradient + p->tensor->offset * sw_elem_bytes(dtype),
                              SW_DTYPE_F64, out->values, out->n_elems);
    return SW_OK;
}

sw_status sw_trace_gradients(sw_trace *trace, const sw_net *net, const sw_kernel *kernel, sw_error *err)
{
    trace->gradients = sw_arena_zero(trace->arena, net->n_parameters, sizeof *trace->gradients);
    if (trace->gradients == NULL)
        return sw_arena_fail(trace->arena, "gradients of a net", err);
    for (uint32_t i = 0; i < net->n_parameters; i++)
        SW_TRY(keep_gradient(&trace->gradients[i], trace, &net->parameters[i], kernel, err));
    trace->n_gradients = net->n_parameters;
    return SW_OK;
}
