/*
 * Qwen3-MoE: routed experts one by one in files (stacked in modules), q/k norm per head, no shared expert.
 * Layers may be dense by decoder_sparse_step and mlp_only_layers.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Qwen3MoeForCausalLM", NULL};
static const char *const model_types[] = {"qwen3_moe", NULL};

#define SPARSE "layer_dense == 0 && experts > 0 && (layer + 1) % moe_period == 0"
#define DENSE  "layer_dense != 0 || experts == 0 || (layer + 1) % moe_period != 0"

static const sw_family_row moe[] = {
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate",
                    0, SPARSE),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "moe_intermediate"),
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", DENSE),
    SW_ROWS_END,
};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_qk_norm, moe,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_EXPERTS_PER_TOKEN, "8"    },
    {SW_ATTR_POSITIONS,         "32768"},
    {SW_ATTR_NONE,              NULL   },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_USE_WINDOW, 0, NULL},
    {SW_SET_NONE,       0, NULL},
};

static const sw_decoder decoder = {
    .defaults = setting_defaults,
    .has_rotary = true,
    .window = SW_WINDOW_ALL,
};

const sw_family sw_family_qwen3_moe = {
    .name = "qwen3_moe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
