/* Both ends of a decoder: tables of tokens and positions, linears between widths, the head. */
#include "nn/classes.h"

static sw_tensor *embedding_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                    const sw_tensor *const *in)
{
    const sw_lookup_stage *lookup = &module->stages->lookup;

    (void)pass;
    return lookup->run(lookup->context, step, in[0], module->held[SW_SLOT_TOKENS].weight->tensor);
}

const sw_module_class sw_class_embedding = {
    .name = "embedding",
    .arguments = {"input"},
    .stages = {{"lookup", {"input", "weight"}}},
    .forward = embedding_forward,
    .bind_parallel = sw_module_bind_stages,
};

/* The table may begin before position 0 (OPT). */
static sw_tensor *positions_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                    const sw_tensor *const *in)
{
    const sw_decoder *decoder = module->net->settings.decoder;
    const sw_tensor *table = module->held[SW_SLOT_POSITIONS].weight->tensor;

    (void)pass;
    return sw_op_embedding_part(step, in[0], table, -(int64_t)decoder->first_position);
}

const sw_module_class sw_class_positions = {
    .name = "positions",
    .arguments = {"hidden_states"},
    .forward = positions_forward,
};

static sw_tensor *linear_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                 const sw_tensor *const *in)
{
    (void)pass;
    return sw_project(step, &module->held[module->slot], in[0]);
}

const sw_module_class sw_class_linear = {
    .name = "linear",
    .arguments = {"hidden_states"},
    .forward = linear_forward,
};

/* A tied head is the table of tokens. */
static sw_tensor *head_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                               const sw_tensor *const *in)
{
    sw_held held = module->held[SW_SLOT_HEAD];

    (void)pass;
    if (held.weight == NULL)
        held.weight = module->held[SW_SLOT_TOKENS].weight;
    return sw_project(step, &held, in[0]);
}

const sw_module_class sw_class_head = {
    .name = "lm_head",
    .arguments = {"hidden_states"},
    .forward = head_forward,
};
