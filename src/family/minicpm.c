/*
 * MiniCPM. Llama's names; the head is tied unless the config says otherwise, and the scaling of embedding,
 * residuals and logits has no parameters.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"MiniCPMForCausalLM", "MiniCPMModel", NULL};
static const char *const model_types[] = {"minicpm", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed,     sw_block_attention,  sw_block_rotary,  sw_block_gated_mlp,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_TIED,      "1"   },
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_setting_spelling setting_spellings[] = {
    {"scale_emb",      SW_SET_EMBED_SCALE},
    {"scale_depth",    SW_SET_DEPTH_SCALE},
    {"dim_model_base", SW_SET_LOGIT_BASE },
    {NULL,             SW_SET_NONE       },
};
static const sw_decoder decoder = {.spellings = setting_spellings, .has_rotary = true};

const sw_family sw_family_minicpm = {
    .name = "minicpm",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
