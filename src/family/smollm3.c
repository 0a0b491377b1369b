/*
 * SmolLM3: Llama's layout; some layers are without rotary positions; tied unless the config says otherwise.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"SmolLM3ForCausalLM", NULL};
static const char *const model_types[] = {"smollm3", NULL};

static const sw_family_block blocks[] = {
    sw_block_embed,
    sw_block_attention,
    sw_block_gated_mlp,
    sw_block_pre_norms,
    sw_block_final_norm,
    sw_block_lm_head,
    NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_TIED,      "1"    },
    {SW_ATTR_POSITIONS, "32768"},
    {SW_ATTR_NONE,      NULL   },
};

/* Every fourth layer turns nothing, unless a list says which. */
static const sw_setting_spelling setting_spellings[] = {
    {"no_rope_layers",         SW_SET_ROPE_LAYERS   },
    {"no_rope_layer_interval", SW_SET_NO_ROPE_PERIOD},
    {NULL,                     SW_SET_NONE          },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ROPE_THETA,     2000000, NULL},
    {SW_SET_NO_ROPE_PERIOD, 4,       NULL},
    {SW_SET_USE_WINDOW,     0,       NULL},
    {SW_SET_NONE,           0,       NULL},
};
static const sw_decoder decoder = {
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .has_rotary = true,
    .window = SW_WINDOW_UNTURNED,
};

const sw_family sw_family_smollm3 = {
    .name = "smollm3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
