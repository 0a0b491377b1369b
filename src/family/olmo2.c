/*
 * OLMo 2 and 3: norms after both halves of a layer instead of before, q/k norm over all heads.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Olmo2ForCausalLM", "Olmo3ForCausalLM", NULL};
static const char *const model_types[] = {"olmo2", "olmo3", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed,      sw_block_attention,  sw_block_qk_norm_full, sw_block_gated_mlp,
    sw_block_post_norms, sw_block_final_norm, sw_block_lm_head,      NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"post_attention_layernorm",   SW_SLOT_ATTENTION_OUT_NORM},
    {"post_feedforward_layernorm", SW_SLOT_MLP_OUT_NORM      },
    {NULL,                         SW_SLOT_NONE              },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS, 1e-5, NULL},
    {SW_SET_NONE,     0,    NULL},
};
static const sw_decoder decoder = {.slots = slots, .defaults = setting_defaults, .has_rotary = true};

const sw_family sw_family_olmo2 = {
    .name = "olmo2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
