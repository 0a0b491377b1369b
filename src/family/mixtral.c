/*
 * Mixtral: experts w1 (gate), w3 (up), w2 (down) under block_sparse_moe as the files name them. Newer modules
 * say mlp, one by one or stacked; those rows are recognised, not generated.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"MixtralForCausalLM", NULL};
static const char *const model_types[] = {"mixtral", NULL};

static const sw_family_row moe[] = {
    SW_ROUTER("model.layers.#.block_sparse_moe.gate.weight", "experts, hidden"),
    SW_ROWS_EXPERTS("model.layers.#.block_sparse_moe.experts.#.", "w1", "w3", "w2", "intermediate", 0, NULL),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.block_sparse_moe.experts.", "intermediate"),
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .flags = SW_ROW_OPTIONAL),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "w1", "w3", "w2", "intermediate", SW_ROW_OPTIONAL, NULL),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "intermediate",
                    SW_ROW_OPTIONAL, NULL),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "intermediate"),
    SW_ROWS_END,
};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_rotary,  moe,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

const sw_family sw_family_mixtral = {
    .name = "mixtral",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
