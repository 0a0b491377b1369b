/*
 * SmolLM3: Llama's layout; some layers are without rotary positions; tied unless the config says otherwise.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"SmolLM3ForCausalLM", NULL};
static const char *const model_types[] = {"smollm3", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed,
    sw_block_attention,
    sw_block_gated_mlp,
    sw_block_pre_norms,
    sw_block_final_norm,
    sw_block_lm_head,
    NULL,
};

const sw_family sw_family_smollm3 = {
    .name = "smollm3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = sw_defaults_tied,
};
