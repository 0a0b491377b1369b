/*
 * A model: its parameters (names, dtypes, shapes) and what its config says, read from a Hugging Face folder
 * without touching tensor data. A model may be read by many threads; nothing else may happen to it meanwhile.
 */
#ifndef SHARDWRIGHT_MODEL_H
#define SHARDWRIGHT_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of the safetensors format. */
typedef enum sw_dtype {
    SW_DTYPE_UNKNOWN = 0, /**< a name we do not know: whole tensors may be carried, never cut inside a row */
    SW_DTYPE_F64,
    SW_DTYPE_F32,
    SW_DTYPE_F16,
    SW_DTYPE_BF16,
    SW_DTYPE_F8_E4M3,
    SW_DTYPE_F8_E5M2,
    SW_DTYPE_F8_E8M0,
    SW_DTYPE_F4,
    SW_DTYPE_I64,
    SW_DTYPE_I32,
    SW_DTYPE_I16,
    SW_DTYPE_I8,
    SW_DTYPE_U64,
    SW_DTYPE_U32,
    SW_DTYPE_U16,
    SW_DTYPE_U8,
    SW_DTYPE_BOOL,
    SW_DTYPE_C64,
    SW_DTYPE_COUNT_
} sw_dtype;

/** "F32", "BF16", ... as in a safetensors header; "?" for unknown; NULL when out of range. */
SW_API const char *sw_dtype_name(sw_dtype dtype);

/** Bits of one element; 0 for unknown. F4 has 4. */
SW_API uint32_t sw_dtype_bits(sw_dtype dtype);

/** Semantic role of a parameter: the 14 of the seed, in its order, SKIP first as the answer for "no rule". */
typedef enum sw_role {
    SW_ROLE_SKIP = 0,      /**< no rule, a buffer, or frozen: see the reason beside it */
    SW_ROLE_COLWISE,       /**< column-parallel linear: cut along the output */
    SW_ROLE_ROWWISE,       /**< row-parallel linear: cut along the input */
    SW_ROLE_NORM,          /**< norm weight or bias */
    SW_ROLE_EMBED,         /**< token embedding: cut along the vocabulary */
    SW_ROLE_LM_HEAD,       /**< output head: cut along the vocabulary */
    SW_ROLE_MOE_GATE,      /**< router */
    SW_ROLE_MOE_EXPERT,    /**< routed expert: over ep, then column or row over tp */
    SW_ROLE_SHARED_EXPERT, /**< shared expert: whole over ep, column or row over tp */
    SW_ROLE_FUSED_QKV,     /**< query, key and value in one matrix */
    SW_ROLE_FUSED_GATE_UP, /**< gate and up in one matrix */
    SW_ROLE_BIAS,          /**< a bias that follows no column weight: whole everywhere */
    SW_ROLE_REPLICATED,    /**< whole on purpose (MLA down-projections, position tables, mixers) */
    SW_ROLE_SPECIAL,       /**< handled by a named special handler */
    SW_ROLE_COUNT_
} sw_role;

/** "skip", "colwise", ...; NULL when out of range. */
SW_API const char *sw_role_name(sw_role role);

/** Numbers of a config under one name each, whatever the family spells them. Unset ones have no value. */
typedef enum sw_attr {
    SW_ATTR_NONE = 0,
    SW_ATTR_HIDDEN,               /**< hidden_size, n_embd, d_model */
    SW_ATTR_LAYERS,               /**< num_hidden_layers, n_layer, n_layers, num_layers */
    SW_ATTR_HEADS,                /**< num_attention_heads, n_head, n_heads */
    SW_ATTR_KV_HEADS,             /**< num_key_value_heads, num_kv_heads, multi_query_group_num */
    SW_ATTR_HEAD_DIM,             /**< head_dim, kv_channels; else hidden / heads */
    SW_ATTR_INTERMEDIATE,         /**< intermediate_size, ffn_dim, n_inner, ffn_hidden_size */
    SW_ATTR_VOCAB,                /**< vocab_size, padded_vocab_size */
    SW_ATTR_POSITIONS,            /**< max_position_embeddings, n_positions */
    SW_ATTR_TIED,                 /**< tie_word_embeddings; else the class default of the family */
    SW_ATTR_EXPERTS,              /**< num_experts, n_routed_experts, num_local_experts, moe_num_experts */
    SW_ATTR_EXPERTS_PER_TOKEN,    /**< num_experts_per_tok, moe_top_k, num_experts_per_token */
    SW_ATTR_MOE_INTERMEDIATE,     /**< moe_intermediate_size; else intermediate */
    SW_ATTR_SHARED_EXPERTS,       /**< n_shared_experts, num_shared_experts */
    SW_ATTR_SHARED_INTERMEDIATE,  /**< shared_expert_intermediate_size */
    SW_ATTR_FIRST_DENSE,          /**< first_k_dense_replace: layers before it are dense */
    SW_ATTR_MOE_PERIOD,           /**< moe_layer_freq, decoder_sparse_step, expert_layer_period */
    SW_ATTR_MOE_OFFSET,           /**< expert_layer_offset */
    SW_ATTR_ATTENTION_PERIOD,     /**< attn_layer_period, full_attention_interval */
    SW_ATTR_ATTENTION_OFFSET,     /**< attn_layer_offset */
    SW_ATTR_NEXTN_LAYERS,         /**< num_nextn_predict_layers: MTP layers after the last */
    SW_ATTR_Q_LORA_RANK,          /**< q_lora_rank; 0 when null */
    SW_ATTR_KV_LORA_RANK,         /**< kv_lora_rank */
    SW_ATTR_QK_NOPE_DIM,          /**< qk_nope_head_dim */
    SW_ATTR_QK_ROPE_DIM,          /**< qk_rope_head_dim */
    SW_ATTR_V_HEAD_DIM,           /**< v_head_dim */
    SW_ATTR_ATTENTION_BIAS,       /**< attention_bias, use_qkv_bias, add_qkv_bias, qkv_bias */
    SW_ATTR_MLP_BIAS,             /**< mlp_bias, use_bias, bias */
    SW_ATTR_QK_NORM,              /**< use_qk_norm, qk_layernorm */
    SW_ATTR_MULTI_QUERY,          /**< multi_query, multi_query_attention */
    SW_ATTR_NEW_DECODER,          /**< new_decoder_architecture (Falcon) */
    SW_ATTR_PARALLEL_ATTN,        /**< parallel_attn (Falcon) */
    SW_ATTR_STATE_SIZE,           /**< state_size, mamba_d_state */
    SW_ATTR_CONV_KERNEL,          /**< conv_kernel, mamba_d_conv, linear_conv_kernel_dim */
    SW_ATTR_TIME_STEP_RANK,       /**< time_step_rank, mamba_dt_rank */
    SW_ATTR_MIXER_EXPAND,         /**< expand, mamba_expand */
    SW_ATTR_LINEAR_KEY_HEADS,     /**< linear_num_key_heads */
    SW_ATTR_LINEAR_VALUE_HEADS,   /**< linear_num_value_heads */
    SW_ATTR_LINEAR_KEY_DIM,       /**< linear_key_head_dim */
    SW_ATTR_LINEAR_VALUE_DIM,     /**< linear_value_head_dim */
    SW_ATTR_WINDOW,               /**< sliding_window */
    SW_ATTR_VISION_HIDDEN,        /**< vision_config.hidden_size */
    SW_ATTR_VISION_LAYERS,        /**< vision_config.num_hidden_layers */
    SW_ATTR_VISION_HEADS,         /**< vision_config.num_attention_heads */
    SW_ATTR_VISION_INTERMEDIATE,  /**< vision_config.intermediate_size */
    SW_ATTR_VISION_PATCH,         /**< vision_config.patch_size */
    SW_ATTR_VISION_IMAGE,         /**< vision_config.image_size */
    SW_ATTR_VISION_CHANNELS,      /**< vision_config.num_channels; 3 */
    SW_ATTR_VISION_PROJECTOR_IN,  /**< vision_config.projector_input_dim */
    SW_ATTR_VISION_PROJECTOR_OUT, /**< vision_config.projector_output_dim */
    SW_ATTR_VISION_OUT,           /**< vision_config.vision_output_dim */
    SW_ATTR_DENSE_INTERMEDIATE,   /**< intermediate_size_mlp: dense layers, where intermediate is the experts'
                                   */
    SW_ATTR_EMBED_DIM,            /**< word_embed_proj_dim; else hidden */
    SW_ATTR_CONV_BIAS,            /**< use_conv_bias, mamba_conv_bias */
    SW_ATTR_NO_BIAS,              /**< no_bias */
    SW_ATTR_ALIBI,                /**< alibi */
    SW_ATTR_MXFP4,                /**< 1 when quantization_config.quant_method is mxfp4, else 0 */
    SW_ATTR_PARALLEL_NORMS,       /**< num_ln_in_parallel_attn (Falcon) */
    SW_ATTR_NORM_BEFORE,          /**< do_layer_norm_before (OPT) */
    SW_ATTR_COUNT_
} sw_attr;

/** Short name as the family tables use it ("hidden", "kv_heads"); NULL when out of range. */
SW_API const char *sw_attr_name(sw_attr attr);

/** A model; opaque. */
typedef struct sw_model sw_model;

/** Description of one parameter, borrowed from the model. */
typedef struct sw_param_info {
    const char *name; /**< FQN */
    sw_dtype dtype;
    uint32_t n_dims;
    const uint64_t *dims; /**< n_dims extents */
} sw_param_info;

/**
 * Read a model.
 *
 * @param[out] out   the model; yours, to be given to sw_model_close()
 * @param      path  a Hugging Face folder (config.json and *.safetensors, or model.safetensors.index.json
 * with or without its shards), a folder with config.json and params.tsv, a config.json alone (names and
 * shapes come from the family's table), or one .safetensors file
 * @param[out] err   may be NULL
 * @return SW_OK, SW_E_IO, SW_E_FORMAT (damaged, contradictory or foreign input), SW_E_LIMIT, SW_E_NO_MEMORY
 */
SW_API SW_MUST_CHECK sw_status sw_model_open(sw_model **out, const char *path, sw_error *err);

/** Free a model and everything borrowed from it. NULL is fine. */
SW_API void sw_model_close(sw_model *model);

/** Number of parameters, buffers included. */
SW_API size_t sw_model_param_count(const sw_model *model);

/** Parameter `i` in model order. Returns false when there is none. */
SW_API bool sw_model_param(const sw_model *model, size_t i, sw_param_info *out);

/** Name without task suffix, lower case ("qwen2moe"); "" when the config names none. Borrowed, never NULL. */
SW_API const char *sw_model_architecture(const sw_model *model);

/** config.model_type; "" when absent. Borrowed, never NULL. */
SW_API const char *sw_model_type(const sw_model *model);

/** Number of elements of all parameters. */
SW_API uint64_t sw_model_elements(const sw_model *model);

/** Hash over names, dtypes and shapes, independent of their order. */
SW_API uint64_t sw_model_fingerprint(const sw_model *model);

/** Value of an attribute; false when the config does not give it and nothing implies it. */
SW_API bool sw_model_attribute(const sw_model *model, sw_attr attr, int64_t *value);

#ifdef __cplusplus
}
#endif
#endif
