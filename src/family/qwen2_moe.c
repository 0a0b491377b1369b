/*
 * Qwen1.5-MoE and Qwen2-MoE: routed experts one by one, one shared expert behind a gate of one row. Layers
 * may be dense by decoder_sparse_step and mlp_only_layers.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Qwen2MoeForCausalLM", NULL};
static const char *const model_types[] = {"qwen2_moe", NULL};

#define SPARSE "layer_dense == 0 && experts > 0 && (layer + 1) % moe_period == 0"
#define DENSE  "layer_dense != 0 || experts == 0 || (layer + 1) % moe_period != 0"

static const sw_family_row attention[] = {
    SW_ROWS_ATTENTION_QKV_BIAS("model.layers.#.self_attn.", "attention_bias != 0"),
    SW_ROWS_END,
};

static const sw_family_row moe[] = {
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate",
                    0, SPARSE),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "moe_intermediate"),
    SW_ROWS_SHARED_EXPERT("model.layers.#.mlp.shared_expert.", "shared_intermediate", SPARSE),
    SW_WHOLE("model.layers.#.mlp.shared_expert_gate.weight", "1, hidden", .when = SPARSE),
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", DENSE),
    SW_ROWS_END,
};

static const sw_family_block blocks[] = {
    sw_block_embed, attention, moe, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_EXPERTS_PER_TOKEN, "4"    },
    {SW_ATTR_ATTENTION_BIAS,    "1"    },
    {SW_ATTR_POSITIONS,         "32768"},
    {SW_ATTR_NONE,              NULL   },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_USE_WINDOW,  0,  NULL},
    {SW_SET_FULL_LAYERS, 28, NULL},
    {SW_SET_NONE,        0,  NULL},
};

static const sw_decoder decoder = {
    .defaults = setting_defaults,
    .has_rotary = true,
    .window = SW_WINDOW_LATE,
};

const sw_family sw_family_qwen2_moe = {
    .name = "qwen2_moe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
