/*
 * gpt-oss. Experts are stacked, gate and up interleaved row by row, with biases. The published files hold
 * their matrices in MXFP4: `_blocks` [experts, out, in / 32, 16] (16 bytes are 32 values) and `_scales`
 * [experts, out, in / 32]; files in BF16 hold them [experts, in, out] instead. Attention has one learned
 * sink a head. The row side's bias [experts, hidden] is whole over tp and added once.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

#define AT      "model.layers.#."
#define EXPERTS AT "mlp.experts."

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION(AT "self_attn."),
    SW_COLUMN_HEADS(AT "self_attn.sinks", "heads"),
    SW_ROUTER(AT "mlp.router.weight", "experts, hidden"),
    SW_ROUTER(AT "mlp.router.bias", "experts"),
    SW_EXPERT_GATE_UP(SW_LAYOUT_INTERLEAVED, EXPERTS "gate_up_proj_blocks",
                      "experts, 2*moe_intermediate, hidden / 32, 16", .form = SW_FORM_EXPERTS,
                      .flags = SW_ROW_QUANTISED, .when = "mxfp4"),
    SW_EXPERT_GATE_UP(SW_LAYOUT_INTERLEAVED, EXPERTS "gate_up_proj_scales",
                      "experts, 2*moe_intermediate, hidden / 32", .form = SW_FORM_EXPERTS,
                      .flags = SW_ROW_QUANTISED | SW_ROW_FROZEN, .when = "mxfp4"),
    /* Cut where its weight is: in the groups of 32 that MXFP4 keeps together, or anywhere. */
    SW_EXPERT_GATE_UP(SW_LAYOUT_INTERLEAVED, EXPERTS "gate_up_proj_bias", "experts, 2*moe_intermediate",
                      .form = SW_FORM_EXPERTS, .flags = SW_ROW_IN_GROUPS, .when = "mxfp4"),
    SW_EXPERT_GATE_UP(SW_LAYOUT_INTERLEAVED, EXPERTS "gate_up_proj_bias", "experts, 2*moe_intermediate",
                      .form = SW_FORM_EXPERTS, .when = "!mxfp4"),
    SW_EXPERT_GATE_UP(SW_LAYOUT_INTERLEAVED, EXPERTS "gate_up_proj", "experts, hidden, 2*moe_intermediate",
                      .form = SW_FORM_EXPERTS_T, .when = "!mxfp4"),
    SW_EXPERT_IN(EXPERTS "down_proj_blocks", "experts, hidden, moe_intermediate / 32, 16",
                 .form = SW_FORM_EXPERTS, .flags = SW_ROW_QUANTISED, .when = "mxfp4"),
    SW_EXPERT_IN(EXPERTS "down_proj_scales", "experts, hidden, moe_intermediate / 32",
                 .form = SW_FORM_EXPERTS, .flags = SW_ROW_QUANTISED | SW_ROW_FROZEN, .when = "mxfp4"),
    SW_EXPERT_IN(EXPERTS "down_proj_bias", "experts, hidden", .form = SW_FORM_EXPERTS),
    SW_EXPERT_IN(EXPERTS "down_proj", "experts, moe_intermediate, hidden", .form = SW_FORM_EXPERTS_T,
                 .when = "!mxfp4"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GptOssForCausalLM", "GptOssModel", NULL};
static const char *const model_types[] = {"gpt_oss", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};
static const sw_default defaults[] = {
    {SW_ATTR_ATTENTION_BIAS,    "1"     },
    {SW_ATTR_EXPERTS_PER_TOKEN, "4"     },
    {SW_ATTR_HEAD_DIM,          "64"    },
    {SW_ATTR_WINDOW,            "128"   },
    {SW_ATTR_POSITIONS,         "131072"},
    {SW_ATTR_NONE,              NULL    },
};

static const sw_slot_name slots[] = {
    {"mlp.router", SW_SLOT_ROUTER},
    {NULL,         SW_SLOT_NONE  },
};

static const sw_setting_spelling spellings[] = {
    {"swiglu_limit", SW_SET_GLU_LIMIT},
    {NULL,           SW_SET_NONE     },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_ROUTER_SCORES, 0,      "softmax_of_chosen"},
    {SW_SET_GLU_LIMIT,     7,      NULL               },
    {SW_SET_ROPE_THETA,    150000, NULL               },
    {SW_SET_NORM_EPS,      1e-5,   NULL               },
    {SW_SET_NONE,          0,      NULL               },
};

static const sw_decoder decoder = {
    .slots = slots,
    .spellings = spellings,
    .defaults = setting_defaults,
    .has_rotary = true,
    .window = SW_WINDOW_EVEN,
};

const sw_family sw_family_gpt_oss = {
    .name = "gpt_oss",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .default_dtype = SW_DTYPE_BF16,
    .decoder = &decoder,
};
