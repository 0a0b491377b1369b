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

static const sw_default defaults[] = {
    {SW_ATTR_EXPERTS_PER_TOKEN, "8"   },
    {SW_ATTR_POSITIONS,         "4096"},
    {SW_ATTR_NONE,              NULL  },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS, 1e-5, NULL},
    {SW_SET_NONE,     0,    NULL},
};
static const sw_decoder decoder = {.defaults = setting_defaults, .has_rotary = true};

const sw_family sw_family_olmoe = {
    .name = "olmoe",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
