/*
 * Command R7B and Command A. As Command R without q/k norms; three of four layers look through a window.
 */
#include "family/blocks.h"
#include "family/families.h"

static const sw_family_row norms[] = {
    SW_NORM("model.layers.#.input_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"Cohere2ForCausalLM", "Cohere2Model", NULL};
static const char *const model_types[] = {"cohere2", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, sw_block_attention, sw_block_gated_mlp, norms, sw_block_final_norm, sw_block_lm_head,
    NULL,
};

const sw_family sw_family_cohere2 = {
    .name = "cohere2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = sw_defaults_tied,
};
