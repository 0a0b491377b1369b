/* MLPs: gated, with gate and up apart or in one matrix, and plain. */
#include "nn/classes.h"

static sw_tensor *gated(const sw_module *module, sw_step *step, const sw_tensor *x)
{
    const sw_held *held = module->held;
    const sw_held *fused = &held[SW_SLOT_GATE_UP];
    const sw_tensor *gate = NULL;
    const sw_tensor *up = NULL;

    sw_step_gather_products(step);
    if (fused->weight != NULL) {
        uint64_t width = fused->weight->dims[0] / 2;
        gate = sw_project_rows(step, fused, x, 0, width);
        up = sw_project_rows(step, fused, x, width, width);
    } else {
        gate = sw_project(step, &held[SW_SLOT_GATE], x);
        up = sw_project(step, &held[SW_SLOT_UP], x);
    }
    sw_step_run_gathered(step);
    return sw_op_glu(step, gate, up, module->net->settings.activation);
}

static sw_tensor *forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                          const sw_tensor *const *in)
{
    const sw_held *held = module->held;
    sw_tensor *h = NULL;

    (void)pass;
    if (held[SW_SLOT_GATE].weight != NULL || held[SW_SLOT_GATE_UP].weight != NULL)
        h = gated(module, step, in[0]);
    else
        h = sw_op_activate(step, sw_project(step, &held[SW_SLOT_UP], in[0]),
                           module->net->settings.activation);
    return sw_project(step, &held[SW_SLOT_DOWN], h);
}

const sw_module_class sw_class_mlp = {
    .name = "mlp",
    .arguments = {"hidden_states"},
    .forward = forward,
};
