/*
 * Llama 1 to 3.2 and the many models of its layout (TinyLlama, SmolLM, Yi, Vicuna ...). Old checkpoints carry
 * rotary inv_freq buffers. The class sizes are those a LLaVA config leaves out.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"LlamaForCausalLM", NULL};
static const char *const model_types[] = {"llama", NULL};

static const sw_default class_sizes[] = {
    {SW_ATTR_HIDDEN,       "4096" },
    {SW_ATTR_LAYERS,       "32"   },
    {SW_ATTR_HEADS,        "32"   },
    {SW_ATTR_INTERMEDIATE, "11008"},
    {SW_ATTR_VOCAB,        "32000"},
    {SW_ATTR_NONE,         NULL   },
};

static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_rotary,  sw_block_gated_mlp,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_decoder decoder = {.has_rotary = true};

const sw_family sw_family_llama = {
    .name = "llama",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .class_sizes = class_sizes,
    .decoder = &decoder,
};
