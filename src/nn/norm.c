/* Norms: RMS with or without an offset, LayerNorm with or without bias or weight. */
#include "nn/classes.h"

sw_tensor *sw_normalise(const sw_net *net, sw_step *step, const sw_held *held, const sw_tensor *x)
{
    const sw_net_settings *s = &net->settings;
    const sw_tensor *weight = sw_tensor_of(held->weight);

    if (s->decoder->norm == SW_NORM_RMS)
        return sw_op_rms_norm(step, x, weight, s->eps, s->decoder->norm_offset);
    return sw_op_layer_norm(step, x, weight, sw_tensor_of(held->bias), s->eps);
}

static sw_tensor *forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                          const sw_tensor *const *in)
{
    (void)pass;
    return sw_normalise(module->net, step, &module->held[module->slot], in[0]);
}

const sw_module_class sw_class_norm = {
    .name = "norm",
    .arguments = {"hidden_states"},
    .forward = forward,
};
