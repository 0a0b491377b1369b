/*
 * Qwen3 dense: q/k norm per head, no biases unless the config says so, head_dim given by the config.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Qwen3ForCausalLM", NULL};
static const char *const model_types[] = {"qwen3", NULL};

static const sw_default defaults[] = {
    {SW_ATTR_HEAD_DIM,  "128"  },
    {SW_ATTR_POSITIONS, "32768"},
    {SW_ATTR_NONE,      NULL   },
};

static const sw_family_block blocks[] = {
    sw_block_embed,      sw_block_attention, sw_block_qk_norm,
    sw_block_rotary,     sw_block_gated_mlp, sw_block_pre_norms,
    sw_block_final_norm, sw_block_lm_head,   NULL,
};

/* A width counts where use_sliding_window says so, from the layer max_window_layers on. */
static const sw_setting_default setting_defaults[] = {
    {SW_SET_USE_WINDOW,  0,  NULL},
    {SW_SET_FULL_LAYERS, 28, NULL},
    {SW_SET_NONE,        0,  NULL},
};
static const sw_decoder decoder = {
    .has_rotary = true, .window = SW_WINDOW_LATE, .defaults = setting_defaults};

const sw_family sw_family_qwen3 = {
    .name = "qwen3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
