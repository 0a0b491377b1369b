/*
 * Granite, dense. Llama's names and meanings; its multipliers have no parameters.
 */
#include "family/blocks.h"
#include "family/decoder.h"
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

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_setting_spelling setting_spellings[] = {
    {"embedding_multiplier", SW_SET_EMBED_SCALE    },
    {"residual_multiplier",  SW_SET_RESIDUAL_SCALE },
    {"attention_multiplier", SW_SET_ATTENTION_SCALE},
    {"logits_scaling",       SW_SET_LOGIT_DIVISOR  },
    {NULL,                   SW_SET_NONE           },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ATTENTION_SCALE, 1, NULL},
    {SW_SET_NONE,            0, NULL},
};
static const sw_decoder decoder = {
    .spellings = setting_spellings, .defaults = setting_defaults, .has_rotary = true};

const sw_family sw_family_granite = {
    .name = "granite",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
