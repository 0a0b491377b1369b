/*
 * OLMo 1: Llama's layout with norms that have no parameters at all.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"OlmoForCausalLM", NULL};
static const char *const model_types[] = {"olmo", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed, sw_block_attention, sw_block_rotary, sw_block_gated_mlp, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS, 1e-5, NULL},
    {SW_SET_NONE,     0,    NULL},
};
static const sw_decoder decoder = {
    .defaults = setting_defaults, .norm = SW_NORM_LAYER_BARE, .has_rotary = true};

const sw_family sw_family_olmo = {
    .name = "olmo",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
