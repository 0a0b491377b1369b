/*
 * Mistral 7B, Nemo, Ministral, and the decoder of Mistral 3: Llama's layout without biases.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"MistralForCausalLM", "MinistralForCausalLM",
                                            "Ministral3ForCausalLM", NULL};
static const char *const model_types[] = {"mistral", "ministral", "ministral3", NULL};

static const sw_default class_sizes[] = {
    {SW_ATTR_HIDDEN,       "4096" },
    {SW_ATTR_LAYERS,       "32"   },
    {SW_ATTR_HEADS,        "32"   },
    {SW_ATTR_KV_HEADS,     "8"    },
    {SW_ATTR_INTERMEDIATE, "14336"},
    {SW_ATTR_VOCAB,        "32000"},
    {SW_ATTR_NONE,         NULL   },
};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_rotary,  sw_block_gated_mlp,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_WINDOW,    "4096"  },
    {SW_ATTR_POSITIONS, "131072"},
    {SW_ATTR_NONE,      NULL    },
};

static const sw_decoder decoder = {.has_rotary = true, .window = SW_WINDOW_ALL};

const sw_family sw_family_mistral = {
    .name = "mistral",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .class_sizes = class_sizes,
    .decoder = &decoder,
};
