/*
 * Which rows of which tensor a rank of tp holds, for one model per stored layout, from what is known of each
 * family's forward and not from the family tables: which rows belong to which head is computed here again,
 * for every rank of every tp size that the head counts allow, and for a part of them also written down by
 * hand.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "corpus.h"
#include "mesh/shard.h"
#include "plan/plan_data.h"
#include "tiny_model.h"

/* How the rows of a cut dim belong together. `rows` is the number of rows of one head (or unit). */
typedef enum stored {
    WHOLE = 0, /* every rank holds all */
    EQUAL,     /* any equal runs */
    HEADS,     /* query heads one after the other */
    KV,        /* key/value heads one after the other; shared by neighbouring ranks when there are fewer */
    STACKED,   /* all q, all k, all v */
    PER_HEAD,  /* q, k, v of head 0, then of head 1 ... */
    GROUPED,   /* the q heads of key/value head 0, its k, its v, then of key/value head 1 ... */
    HALVES,    /* gate, then up: each cut on its own */
    UNITS      /* runs of whole units, one size but for the last */
} stored;

typedef struct layout_fact {
    const char *model;
    const char *fqn;
    int dim; /* stored dim that is cut (of the view [experts, a, b] where experts' rows are stored in two
                dims) */
    stored how;
    uint32_t queries, kv, rows;
} layout_fact;

/* clang-format off */
static const layout_fact layouts[] = {
    /* Phi-3: qkv_proj and gate_up_proj are slices one after the other */
    {"phi-3.5-mini", "model.layers.0.self_attn.qkv_proj.weight", 0, STACKED, 32, 32, 96},
    {"phi-3.5-mini", "model.layers.0.self_attn.o_proj.weight", 1, HEADS, 32, 32, 96},
    {"phi-3.5-mini", "model.layers.0.mlp.gate_up_proj.weight", 0, HALVES, 0, 0, 0},
    {"phi-3.5-mini", "model.layers.31.mlp.down_proj.weight", 1, EQUAL, 0, 0, 0},
    {"phi-3.5-mini", "lm_head.weight", 0, UNITS, 0, 0, 1},
    {"phi-4-mini", "model.layers.31.self_attn.qkv_proj.weight", 0, STACKED, 24, 8, 128},
    {"phi-4-mini", "model.layers.31.mlp.gate_up_proj.weight", 0, HALVES, 0, 0, 0},
    /* GPT-2: Conv1D, [in, out]; c_attn is q, k, v along the output */
    {"gpt2", "h.0.attn.c_attn.weight", 1, STACKED, 12, 12, 64},
    {"gpt2", "h.0.attn.c_attn.bias", 0, STACKED, 12, 12, 64},
    {"gpt2", "h.0.attn.c_proj.weight", 0, HEADS, 12, 12, 64},
    {"gpt2", "h.0.attn.c_proj.bias", 0, WHOLE, 0, 0, 0},
    {"gpt2", "h.0.attn.bias", 0, WHOLE, 0, 0, 0},
    {"gpt2", "h.11.mlp.c_fc.weight", 1, EQUAL, 0, 0, 0},
    {"gpt2", "h.11.mlp.c_fc.bias", 0, EQUAL, 0, 0, 0},
    {"gpt2", "h.11.mlp.c_proj.weight", 0, EQUAL, 0, 0, 0},
    {"gpt2", "h.11.mlp.c_proj.bias", 0, WHOLE, 0, 0, 0},
    {"gpt2", "wte.weight", 0, UNITS, 0, 0, 1},
    {"gpt2", "wpe.weight", 0, WHOLE, 0, 0, 0},
    {"gpt2", "h.0.ln_1.bias", 0, WHOLE, 0, 0, 0},
    /* GPTBigCode with one key/value head: q, then k, then v; linears */
    {"santacoder-1.1b", "transformer.h.0.attn.c_attn.weight", 0, STACKED, 16, 1, 128},
    {"santacoder-1.1b", "transformer.h.0.attn.c_attn.bias", 0, STACKED, 16, 1, 128},
    {"santacoder-1.1b", "transformer.h.0.attn.c_proj.weight", 1, HEADS, 16, 1, 128},
    {"santacoder-1.1b", "transformer.h.23.mlp.c_fc.weight", 0, EQUAL, 0, 0, 0},
    {"santacoder-1.1b", "transformer.h.23.mlp.c_proj.weight", 1, EQUAL, 0, 0, 0},
    /* Bloom and GPT-NeoX: view(heads, 3 * head_dim) */
    {"bloom-560m", "h.0.self_attention.query_key_value.weight", 0, PER_HEAD, 16, 16, 64},
    {"bloom-560m", "h.0.self_attention.query_key_value.bias", 0, PER_HEAD, 16, 16, 64},
    {"bloom-560m", "h.0.self_attention.dense.weight", 1, HEADS, 16, 16, 64},
    {"bloom-560m", "h.23.mlp.dense_h_to_4h.bias", 0, EQUAL, 0, 0, 0},
    {"bloom-560m", "h.23.mlp.dense_4h_to_h.weight", 1, EQUAL, 0, 0, 0},
    {"bloom-560m", "word_embeddings.weight", 0, UNITS, 0, 0, 1},
    {"bloom-560m", "word_embeddings_layernorm.bias", 0, WHOLE, 0, 0, 0},
    {"gpt-neox-20b", "gpt_neox.layers.0.attention.query_key_value.weight", 0, PER_HEAD, 64, 64, 96},
    {"gpt-neox-20b", "gpt_neox.layers.0.attention.query_key_value.bias", 0, PER_HEAD, 64, 64, 96},
    {"gpt-neox-20b", "gpt_neox.layers.0.attention.dense.weight", 1, HEADS, 64, 64, 96},
    {"gpt-neox-20b", "gpt_neox.layers.43.mlp.dense_h_to_4h.weight", 0, EQUAL, 0, 0, 0},
    {"gpt-neox-20b", "embed_out.weight", 0, UNITS, 0, 0, 1},
    /* Falcon, old decoder: 71 q heads, then k, then v; new decoder: by key/value group */
    {"falcon-7b", "transformer.h.0.self_attention.query_key_value.weight", 0, STACKED, 71, 1, 64},
    {"falcon-7b", "transformer.h.0.self_attention.dense.weight", 1, HEADS, 71, 1, 64},
    {"falcon-7b", "transformer.h.0.mlp.dense_h_to_4h.weight", 0, EQUAL, 0, 0, 0},
    {"falcon-40b", "transformer.h.0.self_attention.query_key_value.weight", 0, GROUPED, 128, 8, 64},
    {"falcon-40b", "transformer.h.0.self_attention.dense.weight", 1, HEADS, 128, 8, 64},
    {"falcon-40b", "transformer.h.59.mlp.dense_4h_to_h.weight", 1, EQUAL, 0, 0, 0},
    /* MPT, Baichuan, Qwen-1: three blocks */
    {"mpt-7b", "transformer.blocks.0.attn.Wqkv.weight", 0, STACKED, 32, 32, 128},
    {"mpt-7b", "transformer.blocks.0.attn.out_proj.weight", 1, HEADS, 32, 32, 128},
    {"mpt-7b", "transformer.blocks.31.ffn.up_proj.weight", 0, EQUAL, 0, 0, 0},
    {"baichuan2-7b", "model.layers.0.self_attn.W_pack.weight", 0, STACKED, 32, 32, 128},
    {"baichuan2-7b", "model.layers.0.self_attn.o_proj.weight", 1, HEADS, 32, 32, 128},
    {"qwen-1.8b", "transformer.h.0.attn.c_attn.weight", 0, STACKED, 16, 16, 128},
    {"qwen-1.8b", "transformer.h.0.attn.c_attn.bias", 0, STACKED, 16, 16, 128},
    {"qwen-1.8b", "transformer.h.0.attn.c_proj.weight", 1, HEADS, 16, 16, 128},
    {"qwen-1.8b", "transformer.h.0.mlp.w1.weight", 0, EQUAL, 0, 0, 0},
    {"qwen-1.8b", "transformer.h.0.mlp.w2.weight", 0, EQUAL, 0, 0, 0},
    {"qwen-1.8b", "transformer.h.0.mlp.c_proj.weight", 1, EQUAL, 0, 0, 0},
    /* ChatGLM3: q, then 2 k heads, then 2 v heads; gate and up in dense_h_to_4h */
    {"chatglm3-6b", "transformer.encoder.layers.0.self_attention.query_key_value.weight", 0, STACKED, 32, 2, 128},
    {"chatglm3-6b", "transformer.encoder.layers.0.self_attention.query_key_value.bias", 0, STACKED, 32, 2, 128},
    {"chatglm3-6b", "transformer.encoder.layers.0.self_attention.dense.weight", 1, HEADS, 32, 2, 128},
    {"chatglm3-6b", "transformer.encoder.layers.27.mlp.dense_h_to_4h.weight", 0, HALVES, 0, 0, 0},
    {"chatglm3-6b", "transformer.encoder.layers.27.mlp.dense_4h_to_h.weight", 1, EQUAL, 0, 0, 0},
    {"chatglm3-6b", "transformer.rotary_pos_emb.inv_freq", 0, WHOLE, 0, 0, 0},
    {"chatglm3-6b", "transformer.output_layer.weight", 0, UNITS, 0, 0, 1},
    /* InternLM2: by key/value group */
    {"internlm2.5-7b", "model.layers.0.attention.wqkv.weight", 0, GROUPED, 32, 8, 128},
    {"internlm2.5-7b", "model.layers.0.attention.wo.weight", 1, HEADS, 32, 8, 128},
    {"internlm2.5-7b", "model.layers.31.feed_forward.w1.weight", 0, EQUAL, 0, 0, 0},
    {"internlm2.5-7b", "model.layers.31.feed_forward.w2.weight", 1, EQUAL, 0, 0, 0},
    {"internlm2.5-7b", "model.layers.31.feed_forward.w3.weight", 0, EQUAL, 0, 0, 0},
    {"internlm2.5-7b", "output.weight", 0, UNITS, 0, 0, 1},
    /* DBRX: q, k, v; experts' rows [16 * 10752, 6144] seen as [16, 10752, 6144], w2 transposed in the product */
    {"dbrx", "transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight", 0, STACKED, 48, 8, 128},
    {"dbrx", "transformer.blocks.0.norm_attn_norm.attn.out_proj.weight", 1, HEADS, 48, 8, 128},
    {"dbrx", "transformer.blocks.0.ffn.experts.mlp.w1", 1, EQUAL, 0, 0, 0},
    {"dbrx", "transformer.blocks.0.ffn.experts.mlp.v1", 1, EQUAL, 0, 0, 0},
    {"dbrx", "transformer.blocks.0.ffn.experts.mlp.w2", 1, EQUAL, 0, 0, 0},
    {"dbrx", "transformer.blocks.0.ffn.router.layer.weight", 0, WHOLE, 0, 0, 0},
    {"dbrx", "transformer.blocks.39.norm_attn_norm.norm_2.weight", 0, WHOLE, 0, 0, 0},
    /* Llama 4: experts [16, in, 2 * inner] with gate before up, [16, inner, out] */
    {"llama-4-scout-17b-16e", "language_model.model.layers.0.self_attn.q_proj.weight", 0, HEADS, 40, 8, 128},
    {"llama-4-scout-17b-16e", "language_model.model.layers.0.self_attn.k_proj.weight", 0, KV, 40, 8, 128},
    {"llama-4-scout-17b-16e", "language_model.model.layers.0.feed_forward.experts.gate_up_proj", 2, HALVES, 0, 0, 0},
    {"llama-4-scout-17b-16e", "language_model.model.layers.0.feed_forward.experts.down_proj", 1, EQUAL, 0, 0, 0},
    {"llama-4-scout-17b-16e", "language_model.model.layers.0.feed_forward.shared_expert.up_proj.weight", 0, EQUAL, 0, 0, 0},
    {"llama-4-scout-17b-16e", "vision_model.model.layers.0.self_attn.k_proj.weight", 0, HEADS, 16, 16, 88},
    {"llama-4-scout-17b-16e", "vision_model.model.layers.0.self_attn.o_proj.weight", 1, HEADS, 16, 16, 88},
    {"llama-4-scout-17b-16e", "vision_model.model.layers.0.mlp.fc1.bias", 0, EQUAL, 0, 0, 0},
    {"llama-4-scout-17b-16e", "multi_modal_projector.linear_1.weight", 0, WHOLE, 0, 0, 0},
    /* gpt-oss: gate and up alternate row by row; blocks of 32 columns in down_proj are 64 rows in gate_up_proj */
    {"gpt-oss-20b", "model.layers.0.self_attn.q_proj.bias", 0, HEADS, 64, 8, 64},
    {"gpt-oss-20b", "model.layers.0.self_attn.v_proj.bias", 0, KV, 64, 8, 64},
    {"gpt-oss-20b", "model.layers.0.self_attn.sinks", 0, HEADS, 64, 8, 1},
    {"gpt-oss-20b", "model.layers.0.self_attn.o_proj.weight", 1, HEADS, 64, 8, 64},
    {"gpt-oss-20b", "model.layers.0.self_attn.o_proj.bias", 0, WHOLE, 0, 0, 0},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.gate_up_proj_blocks", 1, UNITS, 0, 0, 64},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.gate_up_proj_scales", 1, UNITS, 0, 0, 64},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.gate_up_proj_bias", 1, UNITS, 0, 0, 64},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.down_proj_blocks", 2, UNITS, 0, 0, 1},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.down_proj_scales", 2, UNITS, 0, 0, 1},
    {"gpt-oss-20b", "model.layers.0.mlp.experts.down_proj_bias", 1, WHOLE, 0, 0, 0},
    {"gpt-oss-20b", "model.layers.0.mlp.router.bias", 0, WHOLE, 0, 0, 0},
    /* Granite MoE: experts [32, 2 * inner, in] with gate before up, [32, out, inner] */
    {"granite-3.1-1b-a400m", "model.layers.0.block_sparse_moe.input_linear.weight", 1, HALVES, 0, 0, 0},
    {"granite-3.1-1b-a400m", "model.layers.0.block_sparse_moe.output_linear.weight", 2, EQUAL, 0, 0, 0},
    {"granite-3.1-1b-a400m", "model.embed_tokens.weight", 0, UNITS, 0, 0, 1},
    /* StarCoder 2: biases everywhere */
    {"starcoder2-7b", "model.layers.0.self_attn.q_proj.bias", 0, HEADS, 36, 4, 128},
    {"starcoder2-7b", "model.layers.0.self_attn.k_proj.weight", 0, KV, 36, 4, 128},
    {"starcoder2-7b", "model.layers.0.self_attn.v_proj.bias", 0, KV, 36, 4, 128},
    {"starcoder2-7b", "model.layers.0.self_attn.o_proj.bias", 0, WHOLE, 0, 0, 0},
    {"starcoder2-7b", "model.layers.0.mlp.c_fc.bias", 0, EQUAL, 0, 0, 0},
    {"starcoder2-7b", "model.layers.0.mlp.c_proj.weight", 1, EQUAL, 0, 0, 0},
    /* latent attention: q 128 + 64 rows a head, k and v 128 + 128; FP8 scales a row a block of 128 */
    {"deepseek-v2-lite", "model.layers.0.self_attn.q_proj.weight", 0, HEADS, 16, 0, 192},
    {"deepseek-v2-lite", "model.layers.0.self_attn.kv_a_proj_with_mqa.weight", 0, WHOLE, 0, 0, 0},
    {"deepseek-v2-lite", "model.layers.0.self_attn.kv_a_layernorm.weight", 0, WHOLE, 0, 0, 0},
    {"deepseek-v2-lite", "model.layers.0.self_attn.kv_b_proj.weight", 0, HEADS, 16, 0, 256},
    {"deepseek-v2-lite", "model.layers.0.self_attn.o_proj.weight", 1, HEADS, 16, 0, 128},
    {"deepseek-v2-lite", "model.layers.1.mlp.experts.63.up_proj.weight", 0, EQUAL, 0, 0, 0},
    {"deepseek-v2-lite", "model.layers.1.mlp.experts.63.down_proj.weight", 1, EQUAL, 0, 0, 0},
    {"deepseek-v2-lite", "model.layers.1.mlp.shared_experts.down_proj.weight", 1, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.self_attn.q_a_proj.weight", 0, WHOLE, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.self_attn.q_b_proj.weight", 0, HEADS, 128, 0, 192},
    {"deepseek-v3", "model.layers.0.self_attn.q_b_proj.weight_scale_inv", 0, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv", 0, WHOLE, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.self_attn.kv_b_proj.weight_scale_inv", 0, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.self_attn.o_proj.weight_scale_inv", 1, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.0.mlp.down_proj.weight_scale_inv", 1, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.60.mlp.experts.255.gate_proj.weight_scale_inv", 0, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.60.mlp.experts.255.down_proj.weight_scale_inv", 1, EQUAL, 0, 0, 0},
    {"deepseek-v3", "model.layers.3.mlp.gate.e_score_correction_bias", 0, WHOLE, 0, 0, 0},
    {"deepseek-v3", "model.layers.61.eh_proj.weight", 0, WHOLE, 0, 0, 0},
    {"deepseek-v3", "model.layers.61.shared_head.head.weight", 0, UNITS, 0, 0, 1},
    {"deepseek-v3", "model.layers.61.embed_tokens.weight", 0, UNITS, 0, 0, 1},
    {"kimi-k2", "model.layers.0.self_attn.q_b_proj.weight", 0, HEADS, 64, 0, 192},
    {"kimi-k2", "model.layers.0.self_attn.kv_b_proj.weight", 0, HEADS, 64, 0, 256},
    {"kimi-k2", "model.layers.60.mlp.experts.383.up_proj.weight", 0, EQUAL, 0, 0, 0},
    {"kimi-linear-48b-a3b", "model.layers.3.self_attn.q_proj.weight", 0, HEADS, 32, 0, 192},
    {"kimi-linear-48b-a3b", "model.layers.3.self_attn.kv_b_proj.weight", 0, HEADS, 32, 0, 256},
    {"kimi-linear-48b-a3b", "model.layers.0.self_attn.q_proj.weight", 0, WHOLE, 0, 0, 0},
    {"kimi-linear-48b-a3b", "model.layers.0.self_attn.A_log", 0, WHOLE, 0, 0, 0},
    /* Cohere: norms [heads, head_dim]; OLMo 2: norms over all heads */
    {"command-r-plus-104b", "model.layers.0.self_attn.q_norm.weight", 0, HEADS, 96, 8, 1},
    {"command-r-plus-104b", "model.layers.0.self_attn.k_norm.weight", 0, KV, 96, 8, 1},
    {"command-r-plus-104b", "model.layers.0.self_attn.k_proj.weight", 0, KV, 96, 8, 128},
    {"olmo2-7b", "model.layers.0.self_attn.q_norm.weight", 0, HEADS, 32, 32, 128},
    {"olmo2-7b", "model.layers.0.self_attn.k_norm.weight", 0, KV, 32, 32, 128},
    {"olmo2-32b", "model.layers.0.self_attn.q_norm.weight", 0, HEADS, 40, 8, 128},
    {"olmo2-32b", "model.layers.0.self_attn.k_norm.weight", 0, KV, 40, 8, 128},
    {"qwen3-8b", "model.layers.0.self_attn.q_norm.weight", 0, WHOLE, 0, 0, 0},
    /* Qwen3-Next: q and its gate head by head, 2 * 256 rows; linear attention whole */
    {"qwen3-next-80b-a3b", "model.layers.3.self_attn.q_proj.weight", 0, HEADS, 16, 2, 512},
    {"qwen3-next-80b-a3b", "model.layers.3.self_attn.k_proj.weight", 0, KV, 16, 2, 256},
    {"qwen3-next-80b-a3b", "model.layers.3.self_attn.o_proj.weight", 1, HEADS, 16, 2, 256},
    {"qwen3-next-80b-a3b", "model.layers.3.self_attn.q_norm.weight", 0, WHOLE, 0, 0, 0},
    {"qwen3-next-80b-a3b", "model.layers.0.linear_attn.in_proj_qkvz.weight", 0, WHOLE, 0, 0, 0},
    {"qwen3-next-80b-a3b", "model.layers.0.linear_attn.dt_bias", 0, WHOLE, 0, 0, 0},
    {"qwen3-next-80b-a3b", "model.layers.0.mlp.shared_expert_gate.weight", 0, WHOLE, 0, 0, 0},
    /* few key/value heads, biases, fused halves */
    {"glm-4-9b-hf", "model.layers.0.self_attn.k_proj.bias", 0, KV, 32, 2, 128},
    {"glm-4-9b-hf", "model.layers.0.mlp.gate_up_proj.weight", 0, HALVES, 0, 0, 0},
    {"gemma-2b", "model.layers.0.self_attn.v_proj.weight", 0, KV, 8, 1, 256},
    {"gemma-3-1b", "model.layers.0.self_attn.v_proj.weight", 0, KV, 4, 1, 256},
    {"smollm-135m", "model.layers.0.self_attn.k_proj.weight", 0, KV, 9, 3, 64},
    {"qwen2.5-3b", "model.layers.0.self_attn.k_proj.bias", 0, KV, 16, 2, 128},
    {"gpt-j-6b", "transformer.h.0.mlp.fc_in.bias", 0, EQUAL, 0, 0, 0},
    {"gpt-j-6b", "transformer.h.0.attn.out_proj.weight", 1, HEADS, 16, 16, 256},
    {"gpt-j-6b", "lm_head.bias", 0, UNITS, 0, 0, 1},
    {"phi-1", "lm_head.bias", 0, UNITS, 0, 0, 1},
    {"phi-1", "model.layers.0.self_attn.dense.weight", 1, HEADS, 32, 32, 64},
    {"opt-6.7b", "model.decoder.layers.0.fc1.bias", 0, EQUAL, 0, 0, 0},
    {"opt-6.7b", "model.decoder.layers.0.fc2.weight", 1, EQUAL, 0, 0, 0},
    {"opt-6.7b", "model.decoder.embed_positions.weight", 0, WHOLE, 0, 0, 0},
    {"llava-1.5-7b", "vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.bias", 0, HEADS, 16, 16, 64},
    {"llava-1.5-7b", "vision_tower.vision_model.encoder.layers.0.self_attn.out_proj.weight", 1, HEADS, 16, 16, 64},
    {"llava-1.5-7b", "vision_tower.vision_model.encoder.layers.0.mlp.fc2.weight", 1, EQUAL, 0, 0, 0},
    {"mamba-130m", "backbone.layers.0.mixer.in_proj.weight", 0, WHOLE, 0, 0, 0},
    {"mamba-130m", "backbone.embeddings.weight", 0, UNITS, 0, 0, 1},
    {"jamba-v0.1", "model.layers.0.mamba.x_proj.weight", 0, WHOLE, 0, 0, 0},
    {"jamba-v0.1", "model.layers.4.self_attn.k_proj.weight", 0, KV, 32, 8, 128},
    {"jamba-v0.1", "model.layers.1.feed_forward.experts.15.down_proj.weight", 1, EQUAL, 0, 0, 0},
    {"minimax-text-01", "model.layers.7.self_attn.q_proj.weight", 0, HEADS, 64, 8, 128},
    {"minimax-text-01", "model.layers.0.self_attn.qkv_proj.weight", 0, WHOLE, 0, 0, 0},
    {"minimax-text-01", "model.layers.0.block_sparse_moe.experts.31.w2.weight", 1, EQUAL, 0, 0, 0},
    {"mixtral-8x7b-v0.1", "model.layers.0.block_sparse_moe.experts.7.w1.weight", 0, EQUAL, 0, 0, 0},
    {"mixtral-8x7b-v0.1", "model.layers.0.block_sparse_moe.experts.7.w2.weight", 1, EQUAL, 0, 0, 0},
    {"mixtral-8x7b-v0.1", "model.layers.0.block_sparse_moe.gate.weight", 0, WHOLE, 0, 0, 0},
};

/* The text of a placement and the rows of one rank, written down by hand. */
typedef struct by_hand {
    const char *model;
    uint32_t tp;
    const char *fqn;
    const char *placement;
    uint32_t rank;
    const char *rows;
} by_hand;

static const by_hand rows_by_hand[] = {
    /* 32 heads * 96 = 3072 rows each of q, k, v; 8 heads = 768 rows a rank; rank 1 begins at 768, 3072 + 768, 6144 + 768 */
    {"phi-3.5-mini", 4, "model.layers.0.self_attn.qkv_proj.weight", "S(0;seg=3072+3072+3072)", 1, "768:1536 3840:4608 6912:7680"},
    /* 8192 / 4 = 2048; up begins at 8192 */
    {"phi-3.5-mini", 4, "model.layers.0.mlp.gate_up_proj.weight", "S(0;seg=8192+8192)", 3, "6144:8192 14336:16384"},
    {"phi-3.5-mini", 4, "model.layers.0.mlp.down_proj.weight", "S(1)", 3, "6144:8192"},
    /* 24 * 128 = 3072 of q, 8 * 128 = 1024 of k and v; tp 8: 384 and 128 rows */
    {"phi-4-mini", 8, "model.layers.0.self_attn.qkv_proj.weight", "S(0;seg=3072+1024+1024)", 7, "2688:3072 3968:4096 4992:5120"},
    /* 12 heads * 64 = 768; tp 4: 3 heads = 192 */
    {"gpt2", 4, "h.0.attn.c_attn.weight", "S(1;seg=768+768+768)", 1, "192:384 960:1152 1728:1920"},
    {"gpt2", 4, "h.0.attn.c_attn.bias", "S(0;seg=768+768+768)", 3, "576:768 1344:1536 2112:2304"},
    {"gpt2", 4, "h.0.attn.c_proj.weight", "S(0)", 1, "192:384"},
    {"gpt2", 4, "h.0.mlp.c_fc.weight", "S(1)", 1, "768:1536"},
    {"gpt2", 4, "h.0.mlp.c_proj.weight", "S(0)", 1, "768:1536"},
    /* ceil(50257 / 4) = 12565; the last rank has 50257 - 3 * 12565 = 12562 */
    {"gpt2", 4, "wte.weight", "S(0)", 3, "37695:50257"},
    /* 16 * 128 = 2048 of q, one head of 128 for k and for v, on all four ranks; neighbours k and v join */
    {"santacoder-1.1b", 4, "transformer.h.0.attn.c_attn.weight", "S(0;seg=2048+128r4+128r4)", 2, "1024:1536 2048:2304"},
    /* 3 * 64 rows a head, 16 heads; tp 8: 2 heads = 384 */
    {"bloom-560m", 8, "h.0.self_attention.query_key_value.weight", "S(0)", 7, "2688:3072"},
    {"gpt-neox-20b", 8, "gpt_neox.layers.0.attention.query_key_value.bias", "S(0)", 1, "2304:4608"},
    /* 71 heads, 71 ranks; k at 4544, v at 4608, the same on every rank */
    {"falcon-7b", 71, "transformer.h.0.self_attention.query_key_value.weight", "S(0;seg=4544+64r71+64r71)", 70, "4480:4672"},
    {"falcon-7b", 71, "transformer.h.0.self_attention.query_key_value.weight", "S(0;seg=4544+64r71+64r71)", 0, "0:64 4544:4672"},
    /* a group is (16 + 2) * 64 = 1152 rows; tp 4: two groups */
    {"falcon-40b", 4, "transformer.h.0.self_attention.query_key_value.weight", "S(0)", 1, "2304:4608"},
    /* 8 groups on 16 ranks: 8 of 16 q heads = 512 rows, then the group's k and v: rank 3 is the second of group 1 */
    {"falcon-40b", 16, "transformer.h.0.self_attention.query_key_value.weight", "S(0;g8=1024+64r2+64r2)", 3, "1664:2304"},
    {"falcon-40b", 16, "transformer.h.0.self_attention.query_key_value.weight", "S(0;g8=1024+64r2+64r2)", 2, "1152:1664 2176:2304"},
    {"mpt-7b", 8, "transformer.blocks.0.attn.Wqkv.weight", "S(0;seg=4096+4096+4096)", 1, "512:1024 4608:5120 8704:9216"},
    {"baichuan2-7b", 2, "model.layers.0.self_attn.W_pack.weight", "S(0;seg=4096+4096+4096)", 1, "2048:4096 6144:8192 10240:12288"},
    {"qwen-1.8b", 8, "transformer.h.0.attn.c_attn.bias", "S(0;seg=2048+2048+2048)", 0, "0:256 2048:2304 4096:4352"},
    {"qwen-1.8b", 2, "transformer.h.0.mlp.w2.weight", "S(0)", 1, "2752:5504"},
    /* 2 key/value heads of 128; tp 2: one each; tp 8: four ranks share one. Rank 5 is in the second four */
    {"chatglm3-6b", 2, "transformer.encoder.layers.0.self_attention.query_key_value.weight", "S(0;seg=4096+256+256)", 1, "2048:4096 4224:4352 4480:4608"},
    {"chatglm3-6b", 8, "transformer.encoder.layers.0.self_attention.query_key_value.weight", "S(0;seg=4096+256r4+256r4)", 5, "2560:3072 4224:4352 4480:4608"},
    {"chatglm3-6b", 8, "transformer.encoder.layers.0.mlp.dense_h_to_4h.weight", "S(0;seg=13696+13696)", 1, "1712:3424 15408:17120"},
    /* a group is (4 + 2) * 128 = 768 rows; tp 16: two q heads and the group's k and v */
    {"internlm2.5-7b", 8, "model.layers.0.attention.wqkv.weight", "S(0)", 7, "5376:6144"},
    {"internlm2.5-7b", 16, "model.layers.0.attention.wqkv.weight", "S(0;g8=512+128r2+128r2)", 15, "5632:6144"},
    {"internlm2.5-7b", 16, "model.layers.0.attention.wqkv.weight", "S(0;g8=512+128r2+128r2)", 0, "0:256 512:768"},
    /* 48 * 128 = 6144, 8 * 128 = 1024; tp 8: 768 and 128 */
    {"dbrx", 8, "transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight", "S(0;seg=6144+1024+1024)", 1, "768:1536 6272:6400 7296:7424"},
    {"dbrx", 8, "transformer.blocks.0.ffn.experts.mlp.w1", "S(1)", 7, "9408:10752"},
    {"dbrx", 8, "transformer.blocks.0.ffn.experts.mlp.w2", "S(1)", 7, "9408:10752"},
    {"llama-4-scout-17b-16e", 4, "language_model.model.layers.0.feed_forward.experts.gate_up_proj", "S(2;seg=8192+8192)", 1, "2048:4096 10240:12288"},
    {"llama-4-scout-17b-16e", 4, "language_model.model.layers.0.feed_forward.experts.down_proj", "S(1)", 1, "2048:4096"},
    /* 90 groups of 32 columns: ceil(90 / 4) = 23, 23, 23, 21; 64 rows of gate and up for each */
    {"gpt-oss-20b", 2, "model.layers.0.mlp.experts.gate_up_proj_blocks", "S(1)", 1, "2880:5760"},
    {"gpt-oss-20b", 4, "model.layers.0.mlp.experts.gate_up_proj_blocks", "S(1;unit=64)", 1, "1472:2944"},
    {"gpt-oss-20b", 4, "model.layers.0.mlp.experts.gate_up_proj_bias", "S(1;unit=64)", 3, "4416:5760"},
    {"gpt-oss-20b", 4, "model.layers.0.mlp.experts.down_proj_blocks", "S(2)", 1, "23:46"},
    {"gpt-oss-20b", 4, "model.layers.0.mlp.experts.down_proj_scales", "S(2)", 3, "69:90"},
    {"gpt-oss-20b", 8, "model.layers.0.self_attn.sinks", "S(0)", 1, "8:16"},
    {"granite-3.1-1b-a400m", 8, "model.layers.0.block_sparse_moe.input_linear.weight", "S(1;seg=512+512)", 7, "448:512 960:1024"},
    {"granite-3.1-1b-a400m", 8, "model.layers.0.block_sparse_moe.output_linear.weight", "S(2)", 7, "448:512"},
    {"starcoder2-7b", 4, "model.layers.0.self_attn.k_proj.bias", "S(0)", 3, "384:512"},
    /* 36 q heads and 4 key/value heads on 12 ranks: 3 heads each, three ranks share a key/value head */
    {"starcoder2-7b", 12, "model.layers.0.self_attn.k_proj.bias", "S(0;rep=3)", 5, "128:256"},
    {"deepseek-v3", 8, "model.layers.0.self_attn.q_b_proj.weight", "S(0)", 1, "3072:6144"},
    {"deepseek-v3", 8, "model.layers.0.self_attn.q_b_proj.weight_scale_inv", "S(0)", 1, "24:48"},
    {"deepseek-v3", 8, "model.layers.0.self_attn.kv_b_proj.weight", "S(0)", 7, "28672:32768"},
    {"deepseek-v3", 8, "model.layers.0.mlp.down_proj.weight_scale_inv", "S(1)", 7, "126:144"},
    {"kimi-k2", 8, "model.layers.0.self_attn.q_b_proj.weight", "S(0)", 1, "1536:3072"},
    {"command-r-plus-104b", 8, "model.layers.0.self_attn.q_norm.weight", "S(0)", 1, "12:24"},
    {"command-r-plus-104b", 16, "model.layers.0.self_attn.k_norm.weight", "S(0;rep=2)", 5, "2:3"},
    {"olmo2-7b", 8, "model.layers.0.self_attn.q_norm.weight", "S(0)", 1, "512:1024"},
    {"qwen3-next-80b-a3b", 8, "model.layers.3.self_attn.q_proj.weight", "S(0)", 1, "1024:2048"},
    {"qwen3-next-80b-a3b", 8, "model.layers.3.self_attn.k_proj.weight", "S(0;rep=4)", 4, "256:512"},
    {"gemma-2b", 8, "model.layers.0.self_attn.k_proj.weight", "S(0;rep=8)", 7, "0:256"},
    {"smollm-135m", 3, "model.layers.0.self_attn.k_proj.weight", "S(0)", 1, "64:128"},
    /* ceil(50295 / 4) = 12574 */
    {"phi-1", 4, "lm_head.bias", "S(0)", 3, "37722:50295"},
};

/* Experts under both expert-parallel modes: dims as planned, placements on ep and tp. */
typedef struct expert_fact {
    const char *model;
    const char *mesh;
    uint32_t ep; /* derived */
    const char *fqn;
    uint64_t dims[3];
    const char *on_ep, *on_tp;
} expert_fact;

static const expert_fact experts[] = {
    {"qwen3-30b-a3b", "tp=2,ep=4", 0, "model.layers.0.mlp.experts.gate_proj", {128, 768, 2048}, "S(0)", "S(1)"},
    {"qwen3-30b-a3b", "tp=2,ep=4", 0, "model.layers.0.mlp.experts.down_proj", {128, 2048, 768}, "S(0)", "S(2)"},
    {"qwen3-30b-a3b", "dp=4,tp=2", 8, "model.layers.0.mlp.experts.down_proj", {128, 2048, 768}, "S(0)", "R"},
    {"mixtral-8x7b-v0.1", "tp=2,ep=4", 0, "model.layers.31.block_sparse_moe.experts.w1", {8, 14336, 4096}, "S(0)", "S(1)"},
    {"mixtral-8x7b-v0.1", "tp=2,ep=4", 0, "model.layers.31.block_sparse_moe.experts.w2", {8, 4096, 14336}, "S(0)", "S(2)"},
    {"mixtral-8x7b-v0.1", "dp=4,tp=2", 4, "model.layers.31.block_sparse_moe.experts.w3", {8, 14336, 4096}, "S(0)", "R"},
    {"dbrx", "tp=2,ep=4", 0, "transformer.blocks.0.ffn.experts.mlp.v1", {16, 10752, 6144}, "S(0)", "S(1)"},
    {"dbrx", "tp=2,ep=4", 0, "transformer.blocks.0.ffn.experts.mlp.w2", {16, 10752, 6144}, "S(0)", "S(1)"},
    {"dbrx", "dp=4,tp=4", 16, "transformer.blocks.0.ffn.experts.mlp.w2", {16, 10752, 6144}, "S(0)", "R"},
    {"gpt-oss-20b", "tp=2,ep=4", 0, "model.layers.0.mlp.experts.gate_up_proj_scales", {32, 5760, 90}, "S(0)", "S(1)"},
    {"gpt-oss-20b", "tp=2,ep=4", 0, "model.layers.0.mlp.experts.gate_up_proj_bias", {32, 5760, 0}, "S(0)", "S(1)"},
    {"gpt-oss-20b", "tp=2,ep=4", 0, "model.layers.0.mlp.experts.down_proj_bias", {32, 2880, 0}, "S(0)", "R"},
    {"gpt-oss-20b", "dp=2,tp=4", 8, "model.layers.0.mlp.experts.down_proj_scales", {32, 2880, 90}, "S(0)", "R"},
    {"granite-3.1-1b-a400m", "tp=2,ep=4", 0, "model.layers.0.block_sparse_moe.input_linear.weight", {32, 1024, 1024}, "S(0)", "S(1;seg=512+512)"},
    {"granite-3.1-1b-a400m", "dp=8", 8, "model.layers.0.block_sparse_moe.input_linear.weight", {32, 1024, 1024}, "S(0)", "R"},
    {"llama-4-scout-17b-16e", "tp=4,ep=2", 0, "language_model.model.layers.0.feed_forward.experts.gate_up_proj", {16, 5120, 16384}, "S(0)", "S(2;seg=8192+8192)"},
    {"deepseek-v3", "tp=2,ep=4", 0, "model.layers.3.mlp.experts.gate_proj.weight_scale_inv", {256, 16, 56}, "S(0)", "S(1)"},
    {"deepseek-v3", "tp=2,ep=4", 0, "model.layers.3.mlp.experts.down_proj.weight_scale_inv", {256, 56, 16}, "S(0)", "S(2)"},
    {"deepseek-v3", "dp=2,cp=2,tp=8", 32, "model.layers.60.mlp.experts.down_proj", {256, 7168, 2048}, "S(0)", "R"},
    {"deepseek-v3", "dp=2,cp=2,tp=8", 32, "model.layers.60.mlp.experts.down_proj.weight_scale_inv", {256, 56, 16}, "S(0)", "R"},
    {"jamba-v0.1", "tp=2,ep=4", 0, "model.layers.1.feed_forward.experts.up_proj", {16, 14336, 4096}, "S(0)", "S(1)"},
    {"minimax-text-01", "dp=8,tp=2", 16, "model.layers.0.block_sparse_moe.experts.w2", {32, 6144, 9216}, "S(0)", "R"},
    {"kimi-linear-48b-a3b", "tp=2,ep=4", 0, "model.layers.1.block_sparse_moe.experts.w2", {256, 2304, 1024}, "S(0)", "S(2)"},
    {"glm-4.5-air", "tp=2,ep=4", 0, "model.layers.1.mlp.experts.up_proj", {128, 1408, 4096}, "S(0)", "S(1)"},
};
/* clang-format on */

/* ---- small models, generated from their families' tables ---- */

/* 8 heads of 4, 2 key/value heads, 48 inner: every fused layout at a size that is read at a glance. */
typedef struct small {
    const char *config;
    const char *mesh;
    const char *fqn;
    const char *placement;
    uint32_t rank;
    const char *rows;
} small;

#define SIZES     "'hidden_size': 32, 'num_hidden_layers': 1, 'vocab_size': 64, 'intermediate_size': 48, "
#define HEADS_8_2 "'num_attention_heads': 8, 'num_key_value_heads': 2"
#define PHI3      "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', " SIZES HEADS_8_2
#define INTERN    "'architectures': ['InternLM2ForCausalLM'], 'model_type': 'internlm2', " SIZES HEADS_8_2
#define NEOX                                                                                                 \
    "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', " SIZES "'num_attention_heads': 8"
#define GPT2                                                                                                 \
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 32, 'n_layer': 1, "               \
    "'n_head': 8, 'vocab_size': 65, 'n_positions': 16"

/* clang-format off */
static const small smalls[] = {
    /* q 32 rows, k 8, v 8: rank 1 of 2 has heads 4 to 7 and key/value head 1 */
    {PHI3, "tp=2", "model.layers.0.self_attn.qkv_proj.weight", "S(0;seg=32+8+8)", 1, "16:32 36:40 44:48"},
    /* four ranks, two key/value heads: rank 2 is the first of the second pair */
    {PHI3, "tp=4", "model.layers.0.self_attn.qkv_proj.weight", "S(0;seg=32+8r2+8r2)", 2, "16:24 36:40 44:48"},
    {PHI3, "tp=4", "model.layers.0.mlp.gate_up_proj.weight", "S(0;seg=48+48)", 1, "12:24 60:72"},
    /* a group is 4 q heads, k, v: 24 rows */
    {INTERN, "tp=2", "model.layers.0.attention.wqkv.weight", "S(0)", 1, "24:48"},
    {INTERN, "tp=4", "model.layers.0.attention.wqkv.weight", "S(0;g2=16+4r2+4r2)", 1, "8:24"},
    /* 3 * 4 rows a head */
    {NEOX, "tp=4", "gpt_neox.layers.0.attention.query_key_value.weight", "S(0)", 1, "24:48"},
    /* [in, out] */
    {GPT2, "tp=4", "h.0.attn.c_attn.weight", "S(1;seg=32+32+32)", 3, "24:32 56:64 88:96"},
    {GPT2, "tp=4", "h.0.mlp.c_proj.weight", "S(0)", 1, "32:64"},
    /* ceil(65 / 4) = 17 */
    {GPT2, "tp=4", "wte.weight", "S(0)", 3, "51:65"},
};
/* clang-format on */

static void small_models_are_cut_as_their_layouts_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(smalls); i++) {
        const small *s = &smalls[i];
        tiny t = TINY_PLAN(.config = s->config, .mesh = s->mesh);
        tiny_tp(&t, s->fqn, s->placement);
        tiny_rows(&t, s->fqn, s->rank, s->rows);
        tiny_drop(&t);
    }
}

/* ---- plans ---- */

typedef struct planned {
    const char *name;
    sw_model *model;
    sw_plan *plan;
    char mesh[32];
    uint32_t ep;
} planned;

/* Have `p` hold this model and mesh; what is there already is kept. */
static void have(planned *p, const char *name, const char *axes, uint32_t ep)
{
    char path[512];
    sw_error err = {0};
    sw_mesh *mesh = NULL;

    if (p->name == NULL || strcmp(p->name, name) != 0) {
        sw_plan_destroy(p->plan);
        sw_model_close(p->model);
        *p = (planned){.name = name};
        corpus_path(path, sizeof path, name, "");
        if (sw_model_open(&p->model, path, &err) != SW_OK)
            fail_msg("%s: %s", name, err.what);
    }
    if (p->plan != NULL && strcmp(p->mesh, axes) == 0 && p->ep == ep)
        return;
    sw_plan_destroy(p->plan);
    p->plan = NULL;
    if (sw_mesh_create(&mesh, axes, ep, &err) != SW_OK ||
        sw_plan_create(&p->plan, p->model, mesh, NULL, &err) != SW_OK)
        fail_msg("%s on %s, ep %u: %s", name, axes, ep, err.what);
    sw_mesh_destroy(mesh);
    (void)snprintf(p->mesh, sizeof p->mesh, "%s", axes);
    p->ep = ep;
}

static void have_tp(planned *p, const char *name, uint32_t tp)
{
    char axes[32];

    (void)snprintf(axes, sizeof axes, "tp=%u", tp);
    have(p, name, axes, 0);
}

static void drop(planned *p)
{
    sw_plan_destroy(p->plan);
    sw_model_close(p->model);
}

/* What the plan says of a parameter; fails the test when no boundary or more than one holds it. */
static const sw_facts *find(const planned *p, const char *fqn)
{
    const sw_facts *found = NULL;

    for (uint32_t i = 0; i < p->plan->n_specs; i++) {
        const sw_spec *spec = &p->plan->specs[i];
        const char *path = fqn + spec->fqn_length + (spec->fqn_length > 0);
        if (strlen(fqn) <= spec->fqn_length || memcmp(spec->fqn, fqn, spec->fqn_length) != 0 ||
            (spec->fqn_length > 0 && fqn[spec->fqn_length] != '.'))
            continue;
        for (uint32_t j = 0; j < spec->n_params; j++) {
            const sw_spec_param *param = &spec->params[j];
            if (param->path_length != strlen(path) || memcmp(param->path, path, param->path_length) != 0)
                continue;
            if (found != NULL)
                fail_msg("%s %s: two boundaries hold %s", p->name, p->mesh, fqn);
            found = &p->plan->facts[param->facts];
        }
    }
    if (found == NULL)
        fail_msg("%s %s: no boundary holds %s", p->name, p->mesh, fqn);
    return found;
}

static const sw_shape *shape_of(const sw_facts *facts)
{
    return facts->view != NULL ? facts->view : facts->shape;
}

/* ---- rows ---- */

static void take(uint8_t *rows, uint64_t first, uint64_t n)
{
    memset(rows + first, 1, n);
}

/* First key/value head of a rank, and how many it holds. */
static uint32_t kv_of(const layout_fact *f, uint32_t tp, uint32_t rank, uint32_t *n)
{
    *n = f->kv >= tp ? f->kv / tp : 1;
    return f->kv >= tp ? rank * *n : rank / (tp / f->kv);
}

static void take_units(uint8_t *rows, uint64_t extent, uint64_t unit, uint32_t tp, uint32_t rank)
{
    uint64_t units = extent / unit;
    uint64_t chunk = (units + tp - 1) / tp;
    uint64_t begin = rank * chunk < units ? rank * chunk : units;
    uint64_t end = begin + chunk < units ? begin + chunk : units;

    take(rows, begin * unit, (end - begin) * unit);
}

/* By key/value group: its q heads, its k, its v. */
static void take_grouped(uint8_t *rows, const layout_fact *f, uint32_t tp, uint32_t rank)
{
    uint32_t per_group = f->queries / f->kv;
    uint32_t n_kv;
    uint32_t first = kv_of(f, tp, rank, &n_kv);

    for (uint32_t h = rank * (f->queries / tp); h < (rank + 1) * (f->queries / tp); h++)
        take(rows, ((uint64_t)(h / per_group) * (per_group + 2) + h % per_group) * f->rows, f->rows);
    for (uint32_t g = first; g < first + n_kv; g++)
        take(rows, ((uint64_t)g * (per_group + 2) + per_group) * f->rows, 2 * (uint64_t)f->rows);
}

/* Mark the rows that a rank must hold. */
static void own(uint8_t *rows, uint64_t extent, const layout_fact *f, uint32_t tp, uint32_t rank)
{
    uint64_t heads = f->queries / tp;
    uint64_t n = f->rows;
    uint64_t q_end = f->queries * n;
    uint64_t k_end = q_end + f->kv * n;
    uint32_t n_kv = 0;
    uint32_t kv = f->kv == 0 ? 0 : kv_of(f, tp, rank, &n_kv);

    switch (f->how) {
    case WHOLE:
        take(rows, 0, extent);
        break;
    case EQUAL:
        take(rows, rank * (extent / tp), extent / tp);
        break;
    case HEADS:
        take(rows, rank * heads * n, heads * n);
        break;
    case KV:
        take(rows, kv * n, n_kv * n);
        break;
    case STACKED:
        take(rows, rank * heads * n, heads * n);
        take(rows, q_end + kv * n, n_kv * n);
        take(rows, k_end + kv * n, n_kv * n);
        break;
    case PER_HEAD:
        take(rows, rank * heads * 3 * n, heads * 3 * n);
        break;
    case GROUPED:
        take_grouped(rows, f, tp, rank);
        break;
    case HALVES:
        take(rows, rank * (extent / 2 / tp), extent / 2 / tp);
        take(rows, extent / 2 + rank * (extent / 2 / tp), extent / 2 / tp);
        break;
    case UNITS:
        take_units(rows, extent, n, tp, rank);
        break;
    }
}

static const sw_placement *on_tp(const sw_facts *facts)
{
    return &facts->places.on[SW_ON_TP];
}

enum { MAX_PIECES = 256 };

/* Rows of `dim` that a rank holds, by the plan. */
static uint32_t pieces_of(const sw_facts *facts, uint32_t dim, uint32_t tp, uint32_t rank, sw_range *pieces)
{
    const sw_placement *place = on_tp(facts);
    uint32_t n = 0;
    sw_error err = {0};

    if (sw_shard_pieces(place, shape_of(facts)->dims[dim], tp, rank, pieces, MAX_PIECES, &n, &err) != SW_OK)
        fail_msg("%s", err.what);
    return n;
}

static void check_fact(const planned *p, const layout_fact *f, uint32_t tp)
{
    const sw_facts *found = find(p, f->fqn);
    const sw_placement *place = on_tp(found);
    bool is_cut = place->kind == SW_PLACE_SHARD;
    sw_range pieces[MAX_PIECES];

    if (is_cut != (f->how != WHOLE) || (is_cut && place->dim != f->dim))
        fail_msg("%s tp=%u %s: cut along dim %d is wrong", f->model, tp, f->fqn,
                 is_cut ? (int)place->dim : -1);
    uint64_t extent = shape_of(found)->dims[f->dim];
    uint8_t *must = calloc(2, extent);
    uint8_t *does = must + extent;
    assert_non_null(must);
    for (uint32_t rank = 0; rank < tp; rank++) {
        memset(must, 0, 2 * extent);
        own(must, extent, f, tp, rank);
        uint32_t n = pieces_of(found, (uint32_t)f->dim, tp, rank, pieces);
        for (uint32_t i = 0; i < n; i++)
            take(does, pieces[i].begin, pieces[i].end - pieces[i].begin);
        for (uint64_t row = 0; row < extent; row++) {
            if (must[row] != does[row])
                fail_msg("%s tp=%u %s: rank %u %s row %llu", f->model, tp, f->fqn, rank,
                         does[row] ? "must not hold" : "lacks", (unsigned long long)row);
        }
    }
    free(must);
}

/* Does tp leave every rank whole heads? By the counts in the table, not by the planner. */
static bool heads_fit(const char *model, uint32_t tp)
{
    for (size_t i = 0; i < SW_COUNT(layouts); i++) {
        const layout_fact *f = &layouts[i];
        if (strcmp(f->model, model) != 0)
            continue;
        if (f->queries % tp != 0 || (f->kv > 0 && f->kv % tp != 0 && tp % f->kv != 0))
            return false;
    }
    return true;
}

static void every_rank_holds_the_rows_of_its_own_heads(void **state)
{
    static const uint32_t sizes[] = {2, 3, 4, 8, 12, 16, 71};
    planned p = {0};
    size_t n_checked = 0;

    (void)state;
    need_shared("corpus");
    for (size_t i = 0, end = 0; i < SW_COUNT(layouts); i = end) {
        while (end < SW_COUNT(layouts) && strcmp(layouts[end].model, layouts[i].model) == 0)
            end++;
        for (size_t s = 0; s < SW_COUNT(sizes); s++) {
            bool is_usual = sizes[s] == 2 || sizes[s] == 4 || sizes[s] == 8;
            bool is_odd = layouts[i].queries == 36 || layouts[i].queries == 9 || layouts[i].queries == 71 ||
                          layouts[i].how == GROUPED;
            if (!heads_fit(layouts[i].model, sizes[s]) || (!is_usual && !is_odd))
                continue;
            have_tp(&p, layouts[i].model, sizes[s]);
            for (size_t j = i; j < end; j++, n_checked++)
                check_fact(&p, &layouts[j], sizes[s]);
        }
    }
    drop(&p);
    assert_true(n_checked > 400);
}

static void rows_are_those_written_down_by_hand(void **state)
{
    planned p = {0};

    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < SW_COUNT(rows_by_hand); i++) {
        const by_hand *h = &rows_by_hand[i];
        sw_range pieces[MAX_PIECES];
        char text[256];
        char rows[256] = "";
        have_tp(&p, h->model, h->tp);
        const sw_facts *found = find(&p, h->fqn);
        uint32_t dim = (uint32_t)strtoul(h->placement + 2, NULL, 10); /* "S(1..." */
        uint32_t n = pieces_of(found, dim, h->tp, h->rank, pieces);
        for (uint32_t j = 0; j < n; j++) {
            size_t at = strlen(rows);
            (void)snprintf(rows + at, sizeof rows - at, "%s%llu:%llu", j == 0 ? "" : " ",
                           (unsigned long long)pieces[j].begin, (unsigned long long)pieces[j].end);
        }
        (void)sw_placement_text(on_tp(found), text, sizeof text);
        if (strcmp(text, h->placement) != 0 || strcmp(rows, h->rows) != 0)
            fail_msg("%s tp=%u %s: %s, rank %u holds %s; expected %s and %s", h->model, h->tp, h->fqn, text,
                     h->rank, rows, h->placement, h->rows);
    }
    drop(&p);
}

static void experts_are_cut_by_expert_over_ep(void **state)
{
    planned p = {0};

    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < SW_COUNT(experts); i++) {
        const expert_fact *e = &experts[i];
        char on_ep[64];
        char tp_text[64];
        have(&p, e->model, e->mesh, e->ep);
        const sw_facts *found = find(&p, e->fqn);
        const sw_shape *shape = shape_of(found);
        for (uint32_t d = 0; d < 3 && e->dims[d] != 0; d++) {
            if (shape->n_dims <= d || shape->dims[d] != e->dims[d])
                fail_msg("%s %s: dim %u is not %llu", e->model, e->fqn, d, (unsigned long long)e->dims[d]);
        }
        (void)sw_placement_text(&found->places.on[SW_ON_EP], on_ep, sizeof on_ep);
        (void)sw_placement_text(on_tp(found), tp_text, sizeof tp_text);
        if (strcmp(on_ep, e->on_ep) != 0 || strcmp(tp_text, e->on_tp) != 0)
            fail_msg("%s %s ep %u %s: %s over ep, %s over tp; expected %s and %s", e->model, e->mesh, e->ep,
                     e->fqn, on_ep, tp_text, e->on_ep, e->on_tp);
    }
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_models_are_cut_as_their_layouts_are),
        cmocka_unit_test(every_rank_holds_the_rows_of_its_own_heads),
        cmocka_unit_test(rows_are_those_written_down_by_hand),
        cmocka_unit_test(experts_are_cut_by_expert_over_ep),
    };

    return cmocka_run_group_tests_name("plan/corpus_layouts", tests, NULL, NULL);
}
