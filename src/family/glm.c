/*
 * GLM-4-9B in the Hugging Face classes: Llama's names, biases on q, k, v, and gate_up_proj as [gate | up].
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION_QKV_BIAS("model.layers.#.self_attn.", "attention_bias != 0"),
    SW_GATE_UP("model.layers.#.mlp.gate_up_proj.weight", "2*intermediate, hidden"),
    SW_ROWWISE("model.layers.#.mlp.down_proj.weight", "hidden, intermediate"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GlmForCausalLM", "GlmModel", NULL};
static const char *const model_types[] = {"glm", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_ATTENTION_BIAS, "1"     },
    {SW_ATTR_HEAD_DIM,       "128"   },
    {SW_ATTR_POSITIONS,      "131072"},
    {SW_ATTR_NONE,           NULL    },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS,    1.5625e-7, NULL},
    {SW_SET_ROTARY_PART, 0.5,       NULL},
    {SW_SET_NONE,        0,         NULL},
};
static const sw_decoder decoder = {.defaults = setting_defaults, .has_rotary = true, .is_interleaved = true};

const sw_family sw_family_glm = {
    .name = "glm",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
