/*
 * Granite, dense. Llama's names and meanings; its multipliers have no parameters.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"GraniteForCausalLM", "GraniteModel", NULL};
static const char *const model_types[] = {"granite", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed,
    sw_block_attention,
    sw_block_gated_mlp,
    sw_block_pre_norms,
    sw_block_final_norm,
    sw_block_lm_head,
    NULL,
};

const sw_family sw_family_granite = {
    .name = "granite",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
