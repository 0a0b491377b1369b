/*
 * Falcon. One name, query_key_value, and three layouts chosen by the config: by key/value group (new
 * decoder), all queries then one key and one value (multi-query), or head by head. In the new decoder a
 * multi_query flag that is also set means nothing; in the older one a stale num_kv_heads means nothing.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

#define AT  "transformer.h.#."
#define QKV AT "self_attention.query_key_value"

/* Attention and MLP each under a norm of its own. */
#define TWO_NORMS "parallel_attn && parallel_norms == 2"

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.word_embeddings.weight", "vocab, hidden"),
    SW_QKV(SW_LAYOUT_QKV_GROUPED, QKV ".weight", "(heads + 2*kv_heads) * head_dim, hidden",
           .when = "new_decoder"),
    SW_QKV(SW_LAYOUT_QKV_GROUPED, QKV ".bias", "(heads + 2*kv_heads) * head_dim",
           .when = "new_decoder && mlp_bias"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, QKV ".weight", "(heads + 2*kv_heads) * head_dim, hidden",
           .when = "!new_decoder && multi_query"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, QKV ".bias", "(heads + 2*kv_heads) * head_dim",
           .when = "!new_decoder && multi_query && mlp_bias"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, QKV ".weight", "(heads + 2*kv_heads) * head_dim, hidden",
           .when = "!new_decoder && !multi_query"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, QKV ".bias", "(heads + 2*kv_heads) * head_dim",
           .when = "!new_decoder && !multi_query && mlp_bias"),
    SW_ROWWISE_HEADS(AT "self_attention.dense.weight", "hidden, hidden"),
    SW_BIAS(AT "self_attention.dense.bias", "hidden", .when = "mlp_bias"),
    SW_COLUMN(AT "mlp.dense_h_to_4h.weight", "intermediate, hidden"),
    SW_COLUMN(AT "mlp.dense_h_to_4h.bias", "intermediate", .when = "mlp_bias"),
    SW_ROWWISE(AT "mlp.dense_4h_to_h.weight", "hidden, intermediate"),
    SW_BIAS(AT "mlp.dense_4h_to_h.bias", "hidden", .when = "mlp_bias"),
    SW_NORM(AT "ln_attn.weight", "hidden", .when = TWO_NORMS),
    SW_NORM(AT "ln_attn.bias", "hidden", .when = TWO_NORMS),
    SW_NORM(AT "ln_mlp.weight", "hidden", .when = TWO_NORMS),
    SW_NORM(AT "ln_mlp.bias", "hidden", .when = TWO_NORMS),
    SW_NORM(AT "input_layernorm.weight", "hidden", .when = "!(" TWO_NORMS ")"),
    SW_NORM(AT "input_layernorm.bias", "hidden", .when = "!(" TWO_NORMS ")"),
    SW_NORM(AT "post_attention_layernorm.weight", "hidden", .when = "!parallel_attn"),
    SW_NORM(AT "post_attention_layernorm.bias", "hidden", .when = "!parallel_attn"),
    SW_NORM("transformer.ln_f.weight", "hidden"),
    SW_NORM("transformer.ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"FalconForCausalLM", "FalconModel", NULL};
static const char *const model_types[] = {"falcon", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_MULTI_QUERY,    "1"            },
    {SW_ATTR_PARALLEL_ATTN,  "1"            },
    {SW_ATTR_INTERMEDIATE,   "4*hidden"     },
    {SW_ATTR_TIED,           "1"            },
    {SW_ATTR_NEW_DECODER,    "0"            },
    {SW_ATTR_PARALLEL_NORMS, "2*new_decoder"},
    {SW_ATTR_POSITIONS,      "2048"         },
    {SW_ATTR_NONE,           NULL           },
};

/* The class asks for num_kv_heads in the new decoder only. */
static const sw_default forced[] = {
    {SW_ATTR_KV_HEADS, "new_decoder*kv_heads + !new_decoder * (multi_query + !multi_query*heads)"},
    {SW_ATTR_NONE,     NULL                                                                      },
};

static const sw_slot_name slots[] = {
    {"transformer.word_embeddings",    SW_SLOT_TOKENS        },
    {"transformer.ln_f",               SW_SLOT_FINAL_NORM    },
    {"ln_attn",                        SW_SLOT_ATTENTION_NORM},
    {"ln_mlp",                         SW_SLOT_MLP_NORM      },
    {"self_attention.query_key_value", SW_SLOT_QKV           },
    {"self_attention.dense",           SW_SLOT_O             },
    {"mlp.dense_h_to_4h",              SW_SLOT_UP            },
    {"mlp.dense_4h_to_h",              SW_SLOT_DOWN          },
    {NULL,                             SW_SLOT_NONE          },
};
static const sw_setting_spelling setting_spellings[] = {
    {"activation",    SW_SET_ACTIVATION},
    {"parallel_attn", SW_SET_PARALLEL  },
    {"alibi",         SW_SET_ALIBI     },
    {NULL,            SW_SET_NONE      },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu"},
    {SW_SET_NORM_EPS,   1e-5, NULL  },
    {SW_SET_PARALLEL,   1,    NULL  },
    {SW_SET_NONE,       0,    NULL  },
};
static const sw_decoder decoder = {
    .slots = slots,
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .has_rotary = true,
    .rounds_alibi = true,
};

const sw_family sw_family_falcon = {
    .name = "falcon",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .forced = forced,
    .decoder = &decoder,
};
