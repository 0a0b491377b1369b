/*
 * Gemma 2: norms before and after both halves of a layer, head_dim of its own, tied head.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Gemma2ForCausalLM", NULL};
static const char *const model_types[] = {"gemma2", NULL};

static const sw_default defaults[] = {
    {SW_ATTR_HEAD_DIM,  "256" },
    {SW_ATTR_TIED,      "1"   },
    {SW_ATTR_WINDOW,    "4096"},
    {SW_ATTR_POSITIONS, "8192"},
    {SW_ATTR_NONE,      NULL  },
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

static const sw_slot_name slots[] = {
    {"post_attention_layernorm",   SW_SLOT_ATTENTION_OUT_NORM},
    {"pre_feedforward_layernorm",  SW_SLOT_MLP_NORM          },
    {"post_feedforward_layernorm", SW_SLOT_MLP_OUT_NORM      },
    {NULL,                         SW_SLOT_NONE              },
};
static const sw_setting_spelling setting_spellings[] = {
    {"hidden_activation", SW_SET_ACTIVATION},
    {NULL,                SW_SET_NONE      },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION,         0,   "gelu_pytorch_tanh"},
    {SW_SET_QUERY_SCALAR,       256, NULL               },
    {SW_SET_ATTENTION_SOFT_CAP, 50,  NULL               },
    {SW_SET_LOGIT_SOFT_CAP,     30,  NULL               },
    {SW_SET_NONE,               0,   NULL               },
};
static const sw_decoder decoder = {
    .slots = slots,
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm_offset = 1,
    .has_rotary = true,
    .scales_embedding = true,
    .window = SW_WINDOW_EVEN,
};

const sw_family sw_family_gemma2 = {
    .name = "gemma2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
