/*
 * OLMoE: q/k norm over all heads, experts in every layer, one by one in files.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"OlmoeForCausalLM", NULL};
static const char *const model_types[] = {"olmoe", NULL};

static const sw_family_row moe[] = {
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden"),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "intermediate", 0,
                    NULL),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "intermediate"),
    SW_ROWS_END,
};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_qk_norm_full, moe,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head,      NULL,
};

static const sw_decoder decoder = {.has_rotary = true};

const sw_family sw_family_olmoe = {
    .name = "olmoe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .decoder = &decoder,
};
