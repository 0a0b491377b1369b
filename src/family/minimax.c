/*
 * MiniMax-Text-01 and M1. Most layers mix by lightning attention, a linear attention planned whole over tp
 * (its qkv_proj goes head by head); the others have ordinary attention. All layers have routed experts. The
 * decay tables that a re-saved copy holds are buffers.
 */
#include "family/blocks.h"
#include "family/families.h"

#define AT        "model.layers.#."
#define LIGHTNING "layer_kind == 2"
#define FULL      "layer_kind != 2"

static const sw_family_row rows[] = {
    SW_MIXER_NORM(AT "self_attn.norm.weight", "heads*head_dim", .when = LIGHTNING),
    SW_MIXER(AT "self_attn.qkv_proj.weight", "3*heads*head_dim, hidden", .when = LIGHTNING),
    SW_MIXER(AT "self_attn.out_proj.weight", "hidden, heads*head_dim", .when = LIGHTNING),
    SW_MIXER(AT "self_attn.output_gate.weight", "heads*head_dim, hidden", .when = LIGHTNING),
    SW_BUFFER(AT "self_attn.slope_rate", "heads, 1, 1"),
    SW_BUFFER(AT "self_attn.query_decay", "heads, 256, 1"),
    SW_BUFFER(AT "self_attn.key_decay", "heads, 256, 1"),
    SW_BUFFER(AT "self_attn.diagonal_decay", "1, heads, 256, 256"),
    SW_COLUMN_HEADS(AT "self_attn.q_proj.weight", "heads*head_dim, hidden", .when = FULL),
    SW_COLUMN_KV(AT "self_attn.k_proj.weight", "kv_heads*head_dim, hidden", .when = FULL),
    SW_COLUMN_KV(AT "self_attn.v_proj.weight", "kv_heads*head_dim, hidden", .when = FULL),
    SW_ROWWISE_HEADS(AT "self_attn.o_proj.weight", "hidden, heads*head_dim", .when = FULL),
    SW_ROUTER(AT "block_sparse_moe.gate.weight", "experts, hidden"),
    SW_ROWS_EXPERTS(AT "block_sparse_moe.experts.#.", "w1", "w3", "w2", "moe_intermediate", 0, NULL),
    SW_ROWS_END,
};

static const char *const architectures[] = {
    "MiniMaxForCausalLM",
    "MiniMaxText01ForCausalLM",
    "MiniMaxM1ForCausalLM",
    NULL,
};
static const char *const model_types[] = {"minimax", "minimax_text_01", "minimax_m1", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

const sw_family sw_family_minimax = {
    .name = "minimax",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
