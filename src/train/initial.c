/* Random weights, by the rules of checkpoint/init_scale.h (train/initial.h). */
#include "train/initial.h"

#include "base/status.h"
#include "checkpoint/init_scale.h"
#include "train/load.h"

sw_status sw_initial_weights(const sw_net *net, const sw_model *model, uint64_t seed, sw_error *err)
{
    sw_init_scale scale = sw_init_scale_of(&model->config, -1.0, 1.0);

    if (net->settings.dtype == SW_DTYPE_F64)
        return SW_FAIL(err, SW_E_ARGUMENT, "choose F32", "random weights are made in F32, BF16 or F16");
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        const sw_tensor_entry *tensor = sw_model_tensor(model, p->source);
        sw_init_rule rule = sw_init_rule_of(&scale, tensor->name, tensor->name_length, tensor->shape);
        sw_random random = sw_random_of(seed, tensor->name, tensor->name_length);
        sw_init_fill(&rule, &random, p->dtype, 0, (size_t)sw_parameter_elems(p), sw_tensor_data(p->tensor));
    }
    return SW_OK;
}
