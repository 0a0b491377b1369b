/*
 * Mixtral: experts w1 (gate), w3 (up), w2 (down) under block_sparse_moe as the files name them. Newer modules
 * say mlp, one by one or stacked; those rows are recognised, not generated.
 */
#include "family/blocks.h"
#include "family/decoder.h"
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

static const sw_default defaults[] = {
    {SW_ATTR_EXPERTS_PER_TOKEN, "2"     },
    {SW_ATTR_POSITIONS,         "131072"},
    {SW_ATTR_NONE,              NULL    },
};

/* The weights of a token's experts always sum to 1. */
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ROUTER_NORMALISES, 1,       NULL},
    {SW_SET_ROPE_THETA,        1000000, NULL},
    {SW_SET_NORM_EPS,          1e-5,    NULL},
    {SW_SET_NONE,              0,       NULL},
};

static const sw_slot_name slots[] = {
    {"block_sparse_moe.gate",                 SW_SLOT_ROUTER        },
    {"block_sparse_moe.experts.#.w1",         SW_SLOT_EXPERT_GATE   },
    {"block_sparse_moe.experts.#.w3",         SW_SLOT_EXPERT_UP     },
    {"block_sparse_moe.experts.#.w2",         SW_SLOT_EXPERT_DOWN   },
    {"block_sparse_moe.experts.gate_up_proj", SW_SLOT_EXPERT_GATE_UP},
    {"block_sparse_moe.experts.gate_proj",    SW_SLOT_EXPERT_GATE   },
    {"block_sparse_moe.experts.up_proj",      SW_SLOT_EXPERT_UP     },
    {"block_sparse_moe.experts.down_proj",    SW_SLOT_EXPERT_DOWN   },
    {"mlp.experts.#.w1",                      SW_SLOT_EXPERT_GATE   },
    {"mlp.experts.#.w3",                      SW_SLOT_EXPERT_UP     },
    {"mlp.experts.#.w2",                      SW_SLOT_EXPERT_DOWN   },
    {NULL,                                    SW_SLOT_NONE          },
};

static const sw_decoder decoder = {
    .slots = slots,
    .defaults = setting_defaults,
    .has_rotary = true,
    .window = SW_WINDOW_ALL,
};

const sw_family sw_family_mixtral = {
    .name = "mixtral",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
