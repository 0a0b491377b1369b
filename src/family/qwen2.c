/*
 * Qwen1.5, Qwen2, Qwen2.5 dense: Llama's layout with biases on q, k and v.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"Qwen2ForCausalLM", NULL};
static const char *const model_types[] = {"qwen2", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention_qkv_bias, sw_block_rotary,  sw_block_gated_mlp,
    sw_block_pre_norms, sw_block_final_norm,         sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "32768"},
    {SW_ATTR_NONE,      NULL   },
};

/* A width counts where use_sliding_window says so, from the layer max_window_layers on. */
static const sw_setting_default setting_defaults[] = {
    {SW_SET_USE_WINDOW,  0,  NULL},
    {SW_SET_FULL_LAYERS, 28, NULL},
    {SW_SET_NONE,        0,  NULL},
};
static const sw_decoder decoder = {
    .has_rotary = true, .window = SW_WINDOW_LATE, .defaults = setting_defaults};

const sw_family sw_family_qwen2 = {
    .name = "qwen2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
