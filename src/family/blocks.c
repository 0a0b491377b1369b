/*
 * The shared parts under the usual prefix "model." (see blocks.h).
 */
#include "family/blocks.h"

const sw_family_row sw_block_embed[] = {
    SW_TOKENS("model.embed_tokens.weight", "vocab, hidden"),
    SW_ROWS_END,
};

const sw_family_row sw_block_attention[] = {
    SW_ROWS_ATTENTION("model.layers.#.self_attn."),
    SW_ROWS_END,
};

const sw_family_row sw_block_attention_qkv_bias[] = {
    SW_ROWS_ATTENTION_QKV_BIAS("model.layers.#.self_attn.", NULL),
    SW_ROWS_END,
};

const sw_family_row sw_block_qk_norm[] = {
    SW_ROWS_QK_NORM("model.layers.#.self_attn.", NULL),
    SW_ROWS_END,
};

const sw_family_row sw_block_qk_norm_full[] = {
    SW_ROWS_QK_NORM_FULL("model.layers.#.self_attn."),
    SW_ROWS_END,
};

const sw_family_row sw_block_gated_mlp[] = {
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", NULL),
    SW_ROWS_GATED_MLP_BIAS("model.layers.#.mlp.", "intermediate"),
    SW_ROWS_END,
};

const sw_family_row sw_block_pre_norms[] = {
    SW_NORM("model.layers.#.input_layernorm.weight", "hidden"),
    SW_NORM("model.layers.#.post_attention_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

const sw_family_row sw_block_sandwich_norms[] = {
    SW_NORM("model.layers.#.input_layernorm.weight", "hidden"),
    SW_NORM("model.layers.#.post_attention_layernorm.weight", "hidden"),
    SW_NORM("model.layers.#.pre_feedforward_layernorm.weight", "hidden"),
    SW_NORM("model.layers.#.post_feedforward_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

const sw_family_row sw_block_post_norms[] = {
    SW_NORM("model.layers.#.post_attention_layernorm.weight", "hidden"),
    SW_NORM("model.layers.#.post_feedforward_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

const sw_family_row sw_block_final_norm[] = {
    SW_NORM("model.norm.weight", "hidden"),
    SW_ROWS_END,
};

const sw_family_row sw_block_lm_head[] = {
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

const sw_family_row sw_block_rotary[] = {
    SW_BUFFER("model.layers.#.self_attn.rotary_emb.inv_freq", "head_dim / 2"),
    SW_BUFFER("model.rotary_emb.inv_freq", "head_dim / 2"),
    SW_ROWS_END,
};

const sw_family_row sw_block_mtp[] = {
    SW_ROWS_MTP("model.layers.#."),
    SW_ROWS_END,
};

const sw_default sw_defaults_tied[] = {
    {SW_ATTR_TIED, "1" },
    {SW_ATTR_NONE, NULL}
};
