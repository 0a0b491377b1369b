/*
 * Gemma 3, text only: as Gemma 2 with q/k norm per head.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"Gemma3ForCausalLM", NULL};
static const char *const model_types[] = {"gemma3_text", NULL};

static const sw_default defaults[] = {
    {SW_ATTR_HEAD_DIM, "256"},
    {SW_ATTR_TIED,     "1"  },
    {SW_ATTR_NONE,     NULL }
};

static const sw_family_block blocks[] = {
    sw_block_embed,          sw_block_attention,  sw_block_qk_norm, sw_block_gated_mlp,
    sw_block_sandwich_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

const sw_family sw_family_gemma3 = {
    .name = "gemma3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
