/*
 * OLMo 1: Llama's layout with norms that have no parameters at all.
 */
#include "family/blocks.h"
#include "family/families.h"

static const char *const architectures[] = {"OlmoForCausalLM", NULL};
static const char *const model_types[] = {"olmo", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed, sw_block_attention, sw_block_rotary, sw_block_gated_mlp, sw_block_lm_head, NULL,
};

const sw_family sw_family_olmo = {
    .name = "olmo",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
