/*
 * Rows that many families share. Macros give the rows of one part of a model under any prefix (a table says
 * SW_ROWS_ATTENTION("language_model.model.layers.#.self_attn.")); the blocks below them are the same parts
 * under the usual prefix "model.", ready to be listed in sw_family.blocks. Roles and layouts are decided here
 * once, so that equal parts of two families cannot differ by accident.
 *
 * `at` is the path of the module with its last dot; `condition` a text for `when` (NULL: always); `width` an
 * expression in quotes.
 */
#ifndef SW_FAMILY_BLOCKS_H
#define SW_FAMILY_BLOCKS_H

#include "family/rows.h"

// clang-format off

/* A LayerNorm with its bias. */
#define SW_ROWS_LAYER_NORM(module) \
    SW_NORM(module ".weight", "hidden"), \
    SW_NORM(module ".bias", "hidden")

/* q, k, v, o; all four biases when the config says attention_bias (Llama's meaning of it). */
#define SW_ROWS_ATTENTION(at) \
    SW_COLUMN_HEADS(at "q_proj.weight", "heads * head_dim, hidden"), \
    SW_COLUMN_HEADS(at "q_proj.bias", "heads * head_dim", .when = "attention_bias"), \
    SW_COLUMN_KV(at "k_proj.weight", "kv_heads * head_dim, hidden"), \
    SW_COLUMN_KV(at "k_proj.bias", "kv_heads * head_dim", .when = "attention_bias"), \
    SW_COLUMN_KV(at "v_proj.weight", "kv_heads * head_dim, hidden"), \
    SW_COLUMN_KV(at "v_proj.bias", "kv_heads * head_dim", .when = "attention_bias"), \
    SW_ROWWISE_HEADS(at "o_proj.weight", "hidden, heads * head_dim"), \
    SW_BIAS(at "o_proj.bias", "hidden", .when = "attention_bias")

/* q, k, v with biases under a condition, o without one (Qwen2, GLM-4). */
#define SW_ROWS_ATTENTION_QKV_BIAS(at, condition) \
    SW_COLUMN_HEADS(at "q_proj.weight", "heads * head_dim, hidden"), \
    SW_COLUMN_HEADS(at "q_proj.bias", "heads * head_dim", .when = (condition)), \
    SW_COLUMN_KV(at "k_proj.weight", "kv_heads * head_dim, hidden"), \
    SW_COLUMN_KV(at "k_proj.bias", "kv_heads * head_dim", .when = (condition)), \
    SW_COLUMN_KV(at "v_proj.weight", "kv_heads * head_dim, hidden"), \
    SW_COLUMN_KV(at "v_proj.bias", "kv_heads * head_dim", .when = (condition)), \
    SW_ROWWISE_HEADS(at "o_proj.weight", "hidden, heads * head_dim")

/* A q/k norm per head: one vector of head_dim for all heads. */
#define SW_ROWS_QK_NORM(at, condition) \
    SW_NORM(at "q_norm.weight", "head_dim", .when = (condition)), \
    SW_NORM(at "k_norm.weight", "head_dim", .when = (condition))

/* A q/k norm over all heads: as long as q and k. */
#define SW_ROWS_QK_NORM_FULL(at) \
    SW_NORM(at "q_norm.weight", "heads * head_dim", .layout = SW_LAYOUT_HEADS, \
            .flags = SW_ROW_FULL_NORM), \
    SW_NORM(at "k_norm.weight", "kv_heads * head_dim", .layout = SW_LAYOUT_KV_HEADS, \
            .flags = SW_ROW_FULL_NORM)

/* gate, up, down of a dense MLP, and their biases where the config says mlp_bias. */
#define SW_ROWS_GATED_MLP(at, width, condition) \
    SW_COLUMN(at "gate_proj.weight", width ", hidden", .when = (condition)), \
    SW_COLUMN(at "up_proj.weight", width ", hidden", .when = (condition)), \
    SW_ROWWISE(at "down_proj.weight", "hidden, " width, .when = (condition))
#define SW_ROWS_GATED_MLP_BIAS(at, width) \
    SW_COLUMN(at "gate_proj.bias", width, .when = "mlp_bias"), \
    SW_COLUMN(at "up_proj.bias", width, .when = "mlp_bias"), \
    SW_BIAS(at "down_proj.bias", "hidden", .when = "mlp_bias")

/* The frozen F32 correction of a router's scores. */
#define SW_ROW_ROUTER_CORRECTION(name_, condition) \
    SW_ROUTER(name_, "experts", .flags = SW_ROW_FROZEN | SW_ROW_F32, .when = (condition))

/* Routed experts one by one; `at` ends in "experts.#.", gate, up and down are their names in quotes. */
#define SW_ROWS_EXPERTS(at, gate, up, down, width, flags_, condition) \
    SW_EXPERT_OUT(at gate ".weight", width ", hidden", .flags = (flags_), .when = (condition)), \
    SW_EXPERT_OUT(at up ".weight", width ", hidden", .flags = (flags_), .when = (condition)), \
    SW_EXPERT_IN(at down ".weight", "hidden, " width, .flags = (flags_), .when = (condition))

/* The same experts stacked as modules hold them, [experts, out, in]; `at` ends in "experts.". */
#define SW_ROWS_STACKED_EXPERTS(at, width) \
    SW_EXPERT_GATE_UP(SW_LAYOUT_STACKED, at "gate_up_proj", "experts, 2 * " width ", hidden", \
                      .form = SW_FORM_EXPERTS, .flags = SW_ROW_OPTIONAL), \
    SW_EXPERT_OUT(at "gate_proj", "experts, " width ", hidden", \
                  .form = SW_FORM_EXPERTS, .flags = SW_ROW_OPTIONAL), \
    SW_EXPERT_OUT(at "up_proj", "experts, " width ", hidden", \
                  .form = SW_FORM_EXPERTS, .flags = SW_ROW_OPTIONAL), \
    SW_EXPERT_IN(at "down_proj", "experts, hidden, " width, \
                 .form = SW_FORM_EXPERTS, .flags = SW_ROW_OPTIONAL)

/* Shared experts as one MLP; `at` ends in "shared_experts.". */
#define SW_ROWS_SHARED_EXPERT(at, width, condition) \
    SW_SHARED_OUT(at "gate_proj.weight", width ", hidden", .when = (condition)), \
    SW_SHARED_OUT(at "up_proj.weight", width ", hidden", .when = (condition)), \
    SW_SHARED_IN(at "down_proj.weight", "hidden, " width, .when = (condition))

/*
 * Latent attention (MLA): q direct or by a low rank, k and v by one. The condition is in quotes, without ||,
 * and "1" for all layers.
 */
#define SW_ROWS_MLA(at, condition) \
    SW_COLUMN_HEADS(at "q_proj.weight", "heads * (qk_nope_dim + qk_rope_dim), hidden", \
                    .when = "q_lora_rank == 0 && " condition), \
    SW_WHOLE(at "q_a_proj.weight", "q_lora_rank, hidden", .when = "q_lora_rank > 0 && " condition), \
    SW_WHOLE(at "q_a_proj.bias", "q_lora_rank", .when = "q_lora_rank > 0 && attention_bias && " condition), \
    SW_NORM(at "q_a_layernorm.weight", "q_lora_rank", .when = "q_lora_rank > 0 && " condition), \
    SW_COLUMN_HEADS(at "q_b_proj.weight", "heads * (qk_nope_dim + qk_rope_dim), q_lora_rank", \
                    .when = "q_lora_rank > 0 && " condition), \
    SW_WHOLE(at "kv_a_proj_with_mqa.weight", "kv_lora_rank + qk_rope_dim, hidden", .when = (condition)), \
    SW_WHOLE(at "kv_a_proj_with_mqa.bias", "kv_lora_rank + qk_rope_dim", \
             .when = "attention_bias && " condition), \
    SW_NORM(at "kv_a_layernorm.weight", "kv_lora_rank", .when = (condition)), \
    SW_COLUMN_HEADS(at "kv_b_proj.weight", "heads * (qk_nope_dim + v_head_dim), kv_lora_rank", \
                    .when = (condition)), \
    SW_ROWWISE_HEADS(at "o_proj.weight", "hidden, heads * v_head_dim", .when = (condition)), \
    SW_BIAS(at "o_proj.bias", "hidden", .when = "attention_bias && " condition)

/* What a multi-token-prediction layer has beside a decoder layer; it stands after the last layer. */
#define SW_ROWS_MTP(at) \
    SW_TOKENS(at "embed_tokens.weight", "vocab, hidden", .flags = SW_ROW_COPY, .when = "layer >= layers"), \
    SW_NORM(at "enorm.weight", "hidden", .when = "layer >= layers"), \
    SW_NORM(at "hnorm.weight", "hidden", .when = "layer >= layers"), \
    SW_WHOLE(at "eh_proj.weight", "hidden, 2 * hidden", .flags = SW_ROW_UNQUANTISED, \
             .when = "layer >= layers"), \
    SW_NORM(at "shared_head.norm.weight", "hidden", .when = "layer >= layers"), \
    SW_LM_HEAD(at "shared_head.head.weight", "vocab, hidden", .flags = SW_ROW_COPY, \
               .when = "layer >= layers")

// clang-format on

/* The parts above under "model." and "model.layers.#.", as blocks. */
extern const sw_family_row sw_block_embed[];              /* model.embed_tokens */
extern const sw_family_row sw_block_attention[];          /* q, k, v, o; biases by attention_bias */
extern const sw_family_row sw_block_attention_qkv_bias[]; /* q, k, v with biases, o without */
extern const sw_family_row sw_block_qk_norm[];            /* per head */
extern const sw_family_row sw_block_qk_norm_full[];       /* over all heads */
extern const sw_family_row sw_block_gated_mlp[];          /* gate, up, down; biases by mlp_bias */
extern const sw_family_row sw_block_pre_norms[];          /* input_layernorm, post_attention_layernorm */
extern const sw_family_row sw_block_sandwich_norms[];     /* those two, pre_ and post_feedforward_layernorm */
extern const sw_family_row sw_block_post_norms[]; /* post_attention_layernorm, post_feedforward_layernorm */
extern const sw_family_row sw_block_final_norm[]; /* model.norm */
extern const sw_family_row sw_block_lm_head[];    /* lm_head, unless tied */
extern const sw_family_row sw_block_rotary[];     /* inv_freq buffers, of old checkpoints */
extern const sw_family_row sw_block_mtp[];        /* of layers after the last */

/* Class defaults that several families share: the head is tied when the config does not say. */
extern const sw_default sw_defaults_tied[];

#endif
