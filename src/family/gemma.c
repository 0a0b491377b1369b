/*
 * Gemma 1: head_dim of 256 whatever the width, one key/value head in the small one, tied head.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"GemmaForCausalLM", NULL};
static const char *const model_types[] = {"gemma", NULL};

static const sw_default defaults[] = {
    {SW_ATTR_HEAD_DIM,  "256" },
    {SW_ATTR_TIED,      "1"   },
    {SW_ATTR_POSITIONS, "8192"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_family_block blocks[] = {
    sw_block_embed,
    sw_block_attention,
    sw_block_gated_mlp,
    sw_block_pre_norms,
    sw_block_final_norm,
    sw_block_lm_head,
    NULL,
};

/* hidden_activation, which later configs have too, is not asked. */
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0, "gelu_pytorch_tanh"},
    {SW_SET_NONE,       0, NULL               },
};
static const sw_decoder decoder = {
    .has_rotary = true,
    .norm_offset = 1,
    .scales_embedding = true,
    .defaults = setting_defaults,
};

const sw_family sw_family_gemma = {
    .name = "gemma",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
