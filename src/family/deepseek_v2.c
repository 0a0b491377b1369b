/*
 * DeepSeek-V2 and V2-Lite: latent attention (q by a low rank or, in Lite, direct), routed experts one by one,
 * shared experts as one MLP, the first layers dense.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"DeepseekV2ForCausalLM", NULL};
static const char *const model_types[] = {"deepseek_v2", NULL};

#define DENSE  "layer < first_dense || layer % moe_period != 0"
#define SPARSE "layer >= first_dense && layer % moe_period == 0"
#define SHARED SPARSE " && shared_experts > 0"

static const sw_family_row attention[] = {SW_ROWS_MLA("model.layers.#.self_attn.", "1"), SW_ROWS_END};

static const sw_family_row mlp[] = {
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", DENSE),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate",
                    0, SPARSE),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "moe_intermediate"),
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROWS_SHARED_EXPERT("model.layers.#.mlp.shared_experts.", "shared_experts * moe_intermediate", SHARED),
    SW_ROWS_END,
};

static const sw_family_block blocks[] = {
    sw_block_embed,     attention,           sw_block_rotary,  mlp,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_SHARED_EXPERTS, "2"   },
    {SW_ATTR_POSITIONS,      "2048"},
    {SW_ATTR_NONE,           NULL  },
};

static const sw_decoder decoder = {.has_rotary = true, .is_interleaved = true};

const sw_family sw_family_deepseek_v2 = {
    .name = "deepseek_v2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
