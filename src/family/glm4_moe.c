/*
 * GLM-4.5 and Air: biases on q, k and v, routed and shared experts as DeepSeek-V3 has them, q/k norm per head
 * in the large one, and a layer of multi-token prediction after the last.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"Glm4MoeForCausalLM", NULL};
static const char *const model_types[] = {"glm4_moe", NULL};

#define DENSE  "layer < first_dense"
#define SPARSE "layer >= first_dense"
#define SHARED SPARSE " && shared_experts > 0"

static const sw_family_row attention[] = {
    SW_ROWS_ATTENTION_QKV_BIAS("model.layers.#.self_attn.", "attention_bias != 0"),
    SW_ROWS_QK_NORM("model.layers.#.self_attn.", "qk_norm != 0"),
    SW_ROWS_END,
};

static const sw_family_row mlp[] = {
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", DENSE),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate",
                    0, SPARSE),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "moe_intermediate"),
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROW_ROUTER_CORRECTION("model.layers.#.mlp.gate.e_score_correction_bias", SPARSE),
    SW_ROWS_SHARED_EXPERT("model.layers.#.mlp.shared_experts.", "shared_experts * moe_intermediate", SHARED),
    SW_ROWS_END,
};

static const sw_layer_count layer_counts[] = {
    {"model.layers.", "layers + nextn_layers"},
    {NULL,            NULL                   }
};

static const sw_family_block blocks[] = {
    sw_block_embed,      attention,        mlp,  sw_block_pre_norms, sw_block_mtp,
    sw_block_final_norm, sw_block_lm_head, NULL,
};

const sw_family sw_family_glm4_moe = {
    .name = "glm4_moe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .layer_counts = layer_counts,
};
