/*
 * MPT. Fused [q | k | v] called Wqkv, an MLP without gate, ALiBi, no biases. The checkpoints of the older
 * class have biases where no_bias is false, a position table where ALiBi is off, and with qk_ln layer norms
 * over all heads of q and of k. In multiquery_attention there is one key head, whatever kv_n_heads says.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

#define AT         "transformer.blocks.#."
#define LAYER_NORM (SW_ROW_FULL_NORM | SW_ROW_CENTRED)

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_POSITION("transformer.wpe.weight", "positions, hidden", .when = "!alibi"),
    SW_NORM(AT "norm_1.weight", "hidden"),
    SW_NORM(AT "norm_1.bias", "hidden", .when = "!no_bias"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.Wqkv.weight", "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.Wqkv.bias", "(heads + 2*kv_heads) * head_dim", .when = "!no_bias"),
    SW_NORM(AT "attn.q_ln.weight", "heads * head_dim", .layout = SW_LAYOUT_HEADS, .flags = LAYER_NORM,
            .when = "qk_norm"),
    SW_NORM(AT "attn.q_ln.bias", "heads * head_dim", .layout = SW_LAYOUT_HEADS,
            .when = "qk_norm && !no_bias"),
    SW_NORM(AT "attn.k_ln.weight", "kv_heads * head_dim", .layout = SW_LAYOUT_KV_HEADS, .flags = LAYER_NORM,
            .when = "qk_norm"),
    SW_NORM(AT "attn.k_ln.bias", "kv_heads * head_dim", .layout = SW_LAYOUT_KV_HEADS,
            .when = "qk_norm && !no_bias"),
    SW_ROWWISE_HEADS(AT "attn.out_proj.weight", "hidden, hidden"),
    SW_BIAS(AT "attn.out_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM(AT "norm_2.weight", "hidden"),
    SW_NORM(AT "norm_2.bias", "hidden", .when = "!no_bias"),
    SW_COLUMN(AT "ffn.up_proj.weight", "intermediate, hidden"),
    SW_COLUMN(AT "ffn.up_proj.bias", "intermediate", .when = "!no_bias"),
    SW_ROWWISE(AT "ffn.down_proj.weight", "hidden, intermediate"),
    SW_BIAS(AT "ffn.down_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM("transformer.norm_f.weight", "hidden"),
    SW_NORM("transformer.norm_f.bias", "hidden", .when = "!no_bias"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"MptForCausalLM", "MptModel", NULL};
static const char *const model_types[] = {"mpt", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_spelling spellings[] = {
    {"expansion_ratio",                            SW_ATTR_MIXER_EXPAND},
    {"attn_config.qk_ln",                          SW_ATTR_QK_NORM     },
    {"attn_config.attn_type=multiquery_attention", SW_ATTR_MULTI_QUERY },
    {NULL,                                         SW_ATTR_NONE        },
};
static const sw_default defaults[] = {
    {SW_ATTR_ALIBI,        "1"            },
    {SW_ATTR_NO_BIAS,      "1"            },
    {SW_ATTR_MIXER_EXPAND, "4"            },
    {SW_ATTR_INTERMEDIATE, "expand*hidden"},
    {SW_ATTR_TIED,         "1"            },
    {SW_ATTR_POSITIONS,    "2048"         },
    {SW_ATTR_NONE,         NULL           },
};
static const sw_default forced[] = {
    {SW_ATTR_KV_HEADS, "multi_query + !multi_query*kv_heads"},
    {SW_ATTR_NONE,     NULL                                 },
};

static const sw_slot_name slots[] = {
    {"transformer.wte",    SW_SLOT_TOKENS        },
    {"transformer.wpe",    SW_SLOT_POSITIONS     },
    {"transformer.norm_f", SW_SLOT_FINAL_NORM    },
    {"norm_1",             SW_SLOT_ATTENTION_NORM},
    {"norm_2",             SW_SLOT_MLP_NORM      },
    {"attn.Wqkv",          SW_SLOT_QKV           },
    {"attn.out_proj",      SW_SLOT_O             },
    {"ffn.up_proj",        SW_SLOT_UP            },
    {"ffn.down_proj",      SW_SLOT_DOWN          },
    {NULL,                 SW_SLOT_NONE          },
};
static const sw_setting_spelling setting_spellings[] = {
    {"attn_config.alibi",         SW_SET_ALIBI          },
    {"attn_config.softmax_scale", SW_SET_ATTENTION_SCALE},
    {"attn_config.clip_qkv",      SW_SET_CLIP_QKV       },
    {NULL,                        SW_SET_NONE           },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu"},
    {SW_SET_NORM_EPS,   1e-5, NULL  },
    {SW_SET_ALIBI,      1,    NULL  },
    {SW_SET_NONE,       0,    NULL  },
};
static const sw_decoder decoder = {
    .slots = slots,
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .is_activation_kept = true,
};

const sw_family sw_family_mpt = {
    .name = "mpt",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
    .forced = forced,
    .decoder = &decoder,
};
