/*
 * Command R and R+. One norm a layer (attention and MLP in parallel). The q/k norm has a row of weights for
 * each head, [heads, head_dim]: cut by heads with its input, and each head's mean stays on one rank.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

#define AT "model.layers.#."

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION(AT "self_attn."),
    SW_NORM(AT "self_attn.q_norm.weight", "heads, head_dim", .layout = SW_LAYOUT_HEADS, .when = "qk_norm"),
    SW_NORM(AT "self_attn.k_norm.weight", "kv_heads, head_dim", .layout = SW_LAYOUT_KV_HEADS,
            .when = "qk_norm"),
    SW_ROWS_GATED_MLP(AT "mlp.", "intermediate", NULL),
    SW_NORM(AT "input_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"CohereForCausalLM", "CohereModel", NULL};
static const char *const model_types[] = {"cohere", NULL};
static const sw_family_block blocks[] = {sw_block_embed, rows, sw_block_final_norm, sw_block_lm_head, NULL};

static const sw_default defaults[] = {
    {SW_ATTR_TIED,      "1"   },
    {SW_ATTR_POSITIONS, "8192"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_setting_spelling setting_spellings[] = {
    {"logit_scale", SW_SET_LOGIT_SCALE},
    {NULL,          SW_SET_NONE       },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS,    1e-5,   NULL},
    {SW_SET_PARALLEL,    1,      NULL},
    {SW_SET_LOGIT_SCALE, 0.0625, NULL},
    {SW_SET_NONE,        0,      NULL},
};
static const sw_decoder decoder = {
    .spellings = setting_spellings,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .has_rotary = true,
    .is_interleaved = true,
};

const sw_family sw_family_cohere = {
    .name = "cohere",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
