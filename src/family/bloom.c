/*
 * BLOOM. Fused projection head by head, biases everywhere, a norm after the embedding, ALiBi (no positions in
 * the file). Some files have the prefix "transformer.", some none.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

static const sw_family_row rows[] = {
    SW_TOKENS("word_embeddings.weight", "vocab, hidden"),
    SW_NORM("word_embeddings_layernorm.weight", "hidden"),
    SW_NORM("word_embeddings_layernorm.bias", "hidden"),
    SW_NORM("h.#.input_layernorm.weight", "hidden"),
    SW_NORM("h.#.input_layernorm.bias", "hidden"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, "h.#.self_attention.query_key_value.weight", "3*hidden, hidden"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, "h.#.self_attention.query_key_value.bias", "3*hidden"),
    SW_ROWWISE_HEADS("h.#.self_attention.dense.weight", "hidden, hidden"),
    SW_BIAS("h.#.self_attention.dense.bias", "hidden"),
    SW_NORM("h.#.post_attention_layernorm.weight", "hidden"),
    SW_NORM("h.#.post_attention_layernorm.bias", "hidden"),
    SW_COLUMN("h.#.mlp.dense_h_to_4h.weight", "4*hidden, hidden"),
    SW_COLUMN("h.#.mlp.dense_h_to_4h.bias", "4*hidden"),
    SW_ROWWISE("h.#.mlp.dense_4h_to_h.weight", "hidden, 4*hidden"),
    SW_BIAS("h.#.mlp.dense_4h_to_h.bias", "hidden"),
    SW_NORM("ln_f.weight", "hidden"),
    SW_NORM("ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"BloomForCausalLM", "BloomModel", NULL};
static const char *const model_types[] = {"bloom", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_INTERMEDIATE, "4*hidden"},
    {SW_ATTR_TIED,         "1"       },
    {SW_ATTR_NONE,         NULL      },
};

static const sw_slot_name slots[] = {
    {"word_embeddings",                SW_SLOT_TOKENS    },
    {"word_embeddings_layernorm",      SW_SLOT_EMBED_NORM},
    {"ln_f",                           SW_SLOT_FINAL_NORM},
    {"self_attention.query_key_value", SW_SLOT_QKV       },
    {"self_attention.dense",           SW_SLOT_O         },
    {"mlp.dense_h_to_4h",              SW_SLOT_UP        },
    {"mlp.dense_4h_to_h",              SW_SLOT_DOWN      },
    {NULL,                             SW_SLOT_NONE      },
};
static const sw_setting_spelling setting_spellings[] = {
    {"apply_residual_connection_post_layernorm", SW_SET_RESIDUAL_OF_NORM},
    {NULL,                                       SW_SET_NONE            },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu_pytorch_tanh"},
    {SW_SET_NORM_EPS,   1e-5, NULL               },
    {SW_SET_ALIBI,      1,    NULL               },
    {SW_SET_NONE,       0,    NULL               },
};
static const sw_decoder decoder = {
    .slots = slots,
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .is_activation_kept = true,
};

const sw_family sw_family_bloom = {
    .name = "bloom",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
