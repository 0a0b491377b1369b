/*
 * Granite MoE. Experts stacked in three dimensions: input_linear [experts, 2*intermediate, hidden] with gate
 * above up, output_linear [experts, hidden, intermediate]. The router's matrix is router.layer. The variant
 * with a shared MLP adds two fused matrices to each layer.
 */
#include "family/blocks.h"
#include "family/families.h"

#define AT     "model.layers.#.block_sparse_moe."
#define SHARED "model.layers.#.shared_mlp."

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION("model.layers.#.self_attn."),
    SW_EXPERT_GATE_UP(SW_LAYOUT_STACKED, AT "input_linear.weight", "experts, 2*intermediate, hidden",
                      .form = SW_FORM_EXPERTS),
    SW_EXPERT_IN(AT "output_linear.weight", "experts, hidden, intermediate", .form = SW_FORM_EXPERTS),
    SW_ROUTER(AT "router.layer.weight", "experts, hidden"),
    SW_SHARED_GATE_UP(SHARED "input_linear.weight", "2*shared_intermediate, hidden",
                      .when = "shared_intermediate > 0"),
    SW_SHARED_IN(SHARED "output_linear.weight", "hidden, shared_intermediate",
                 .when = "shared_intermediate > 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {
    "GraniteMoeForCausalLM",
    "GraniteMoeModel",
    "GraniteMoeSharedForCausalLM",
    NULL,
};
static const char *const model_types[] = {"granitemoe", "granitemoeshared", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};
static const sw_default defaults[] = {
    {SW_ATTR_SHARED_INTERMEDIATE, "0" },
    {SW_ATTR_NONE,                NULL},
};

const sw_family sw_family_granitemoe = {
    .name = "granitemoe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
