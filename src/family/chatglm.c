/*
 * ChatGLM 2 and 3, and GLM-4 in the same class. query_key_value is [q | k | v] with few key/value groups;
 * dense_h_to_4h is [gate | up]. The layers stand under "encoder", though the model only decodes.
 */
#include "family/families.h"
#include "family/rows.h"

#define AT  "transformer.encoder.layers.#."
#define QKV AT "self_attention.query_key_value"

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.embedding.word_embeddings.weight", "vocab, hidden"),
    SW_BUFFER("transformer.rotary_pos_emb.inv_freq", "head_dim / 4"),
    SW_NORM(AT "input_layernorm.weight", "hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, QKV ".weight", "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, QKV ".bias", "(heads + 2*kv_heads) * head_dim",
           .when = "attention_bias || mlp_bias"),
    SW_ROWWISE_HEADS(AT "self_attention.dense.weight", "hidden, heads*head_dim"),
    SW_BIAS(AT "self_attention.dense.bias", "hidden", .when = "mlp_bias"),
    SW_NORM(AT "post_attention_layernorm.weight", "hidden"),
    SW_GATE_UP(AT "mlp.dense_h_to_4h.weight", "2*intermediate, hidden"),
    SW_GATE_UP(AT "mlp.dense_h_to_4h.bias", "2*intermediate", .when = "mlp_bias"),
    SW_ROWWISE(AT "mlp.dense_4h_to_h.weight", "hidden, intermediate"),
    SW_BIAS(AT "mlp.dense_4h_to_h.bias", "hidden", .when = "mlp_bias"),
    SW_NORM("transformer.encoder.final_layernorm.weight", "hidden"),
    SW_LM_HEAD("transformer.output_layer.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {
    "ChatGLMModel",
    "ChatGLMForConditionalGeneration",
    "ChatGLMForSequenceClassification",
    NULL,
};
static const char *const model_types[] = {"chatglm", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_spelling spellings[] = {
    {"add_bias_linear", SW_ATTR_MLP_BIAS},
    {NULL,              SW_ATTR_NONE    },
};

/* A config that gives groups and leaves the switch out means them. */
static const sw_default defaults[] = {
    {SW_ATTR_MULTI_QUERY, "kv_heads > 0"},
    {SW_ATTR_NONE,        NULL          },
};

/* multi_query_group_num counts only where multi_query_attention is on. */
static const sw_default forced[] = {
    {SW_ATTR_KV_HEADS, "multi_query*kv_heads + !multi_query*heads"},
    {SW_ATTR_NONE,     NULL                                       },
};

const sw_family sw_family_chatglm = {
    .name = "chatglm",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
    .forced = forced,
};
