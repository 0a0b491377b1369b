/*
 * GPT-NeoX and Pythia. The fused projection goes head by head (q, k, v of head 0, then of head 1), so a plain
 * cut in units of three heads' rows is right. The head is called embed_out.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

static const sw_family_row rows[] = {
    SW_TOKENS("gpt_neox.embed_in.weight", "vocab, hidden"),
    SW_NORM("gpt_neox.layers.#.input_layernorm.weight", "hidden"),
    SW_NORM("gpt_neox.layers.#.input_layernorm.bias", "hidden"),
    SW_NORM("gpt_neox.layers.#.post_attention_layernorm.weight", "hidden"),
    SW_NORM("gpt_neox.layers.#.post_attention_layernorm.bias", "hidden"),
    SW_BUFFER("gpt_neox.layers.#.attention.bias", "1, 1, positions, positions"),
    SW_BUFFER("gpt_neox.layers.#.attention.masked_bias", ""),
    SW_BUFFER("gpt_neox.layers.#.attention.rotary_emb.inv_freq", "head_dim / 8"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, "gpt_neox.layers.#.attention.query_key_value.weight", "3*hidden, hidden"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, "gpt_neox.layers.#.attention.query_key_value.bias", "3*hidden",
           .when = "attention_bias"),
    SW_ROWWISE_HEADS("gpt_neox.layers.#.attention.dense.weight", "hidden, hidden"),
    SW_BIAS("gpt_neox.layers.#.attention.dense.bias", "hidden", .when = "attention_bias"),
    SW_COLUMN("gpt_neox.layers.#.mlp.dense_h_to_4h.weight", "intermediate, hidden"),
    SW_COLUMN("gpt_neox.layers.#.mlp.dense_h_to_4h.bias", "intermediate"),
    SW_ROWWISE("gpt_neox.layers.#.mlp.dense_4h_to_h.weight", "hidden, intermediate"),
    SW_BIAS("gpt_neox.layers.#.mlp.dense_4h_to_h.bias", "hidden"),
    SW_NORM("gpt_neox.final_layer_norm.weight", "hidden"),
    SW_NORM("gpt_neox.final_layer_norm.bias", "hidden"),
    SW_LM_HEAD("embed_out.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GPTNeoXForCausalLM", "GPTNeoXModel", NULL};
static const char *const model_types[] = {"gpt_neox", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_ATTENTION_BIAS, "1"   },
    {SW_ATTR_POSITIONS,      "2048"},
    {SW_ATTR_NONE,           NULL  },
};

static const sw_slot_name slots[] = {
    {"gpt_neox.embed_in",         SW_SLOT_TOKENS    },
    {"gpt_neox.final_layer_norm", SW_SLOT_FINAL_NORM},
    {"embed_out",                 SW_SLOT_HEAD      },
    {"attention.query_key_value", SW_SLOT_QKV       },
    {"attention.dense",           SW_SLOT_O         },
    {"mlp.dense_h_to_4h",         SW_SLOT_UP        },
    {"mlp.dense_4h_to_h",         SW_SLOT_DOWN      },
    {NULL,                        SW_SLOT_NONE      },
};
/* The class has its own words for these; the usual ones, which it writes too, count only without them. */
static const sw_setting_spelling setting_spellings[] = {
    {"rotary_emb_base", SW_SET_ROPE_THETA },
    {"rotary_pct",      SW_SET_ROTARY_PART},
    {NULL,              SW_SET_NONE       },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION,  0,    "gelu"},
    {SW_SET_NORM_EPS,    1e-5, NULL  },
    {SW_SET_PARALLEL,    1,    NULL  },
    {SW_SET_ROTARY_PART, 0.25, NULL  },
    {SW_SET_NONE,        0,    NULL  },
};
static const sw_decoder decoder = {
    .slots = slots,
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .has_rotary = true,
};

const sw_family sw_family_gpt_neox = {
    .name = "gpt_neox",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
