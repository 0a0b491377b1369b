/*
 * Gemma 2: norms before and after both halves of a layer, head_dim of its own, tied head.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"Gemma2ForCausalLM", NULL};
static const char *const model_types[] = {"gemma2", NULL};

static const sw_default defaults[] = {
    {SW_ATTR_HEAD_DIM, "256"},
    {SW_ATTR_TIED,     "1"  },
    {SW_ATTR_NONE,     NULL }
};

static const sw_family_block blocks[] = {
    sw_block_embed,
    sw_block_attention,
    sw_block_gated_mlp,
    sw_block_sandwich_norms,
    sw_block_final_norm,
    sw_block_lm_head,
    NULL,
};

const sw_family sw_family_gemma2 = {
    .name = "gemma2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
