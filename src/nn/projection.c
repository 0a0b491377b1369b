/* Linear layers as they are stored: [out, in], or [in, out] of a Conv1D; and those of experts. */
#include "nn/classes.h"

static const sw_tensor *bias_of(const sw_held *held)
{
    return held->bias == NULL || held->bias->is_deferred ? NULL : held->bias->tensor;
}

sw_tensor *sw_project(sw_step *step, const sw_held *held, const sw_tensor *x)
{
    const sw_tensor *weight = held->weight->tensor;

    if (held->weight->row->form == SW_FORM_CONV1D)
        return sw_op_linear_in_out(step, x, weight, bias_of(held));
    return sw_op_linear(step, x, weight, bias_of(held));
}

sw_tensor *sw_project_rows(sw_step *step, const sw_held *held, const sw_tensor *x, uint64_t begin,
                           uint64_t n_rows)
{
    const sw_tensor *weight = sw_view_slice(step, held->weight->tensor, 0, begin, n_rows);
    const sw_tensor *bias = bias_of(held);

    if (bias != NULL)
        bias = sw_view_slice(step, bias, 0, begin, n_rows);
    return sw_op_linear(step, x, weight, bias);
}

sw_tensor *sw_project_experts(sw_step *step, const sw_held *held, const sw_tensor *rows,
                              const sw_tensor *ends)
{
    const sw_tensor *weight = held->weight->tensor;

    if (held->weight->row->form == SW_FORM_EXPERTS_T)
        return sw_op_expert_linear_in_out(step, rows, weight, bias_of(held), ends);
    return sw_op_expert_linear(step, rows, weight, bias_of(held), ends);
}
