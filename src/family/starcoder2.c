/*
 * StarCoder 2. GPT-2's MLP names on ordinary linears, LayerNorms, biases everywhere; the head is tied unless
 * the config says otherwise.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

#define AT "model.layers.#."

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION_QKV_BIAS(AT "self_attn.", "mlp_bias != 0"),
    SW_BIAS(AT "self_attn.o_proj.bias", "hidden", .when = "mlp_bias"),
    SW_COLUMN(AT "mlp.c_fc.weight", "intermediate, hidden"),
    SW_COLUMN(AT "mlp.c_fc.bias", "intermediate", .when = "mlp_bias"),
    SW_ROWWISE(AT "mlp.c_proj.weight", "hidden, intermediate"),
    SW_BIAS(AT "mlp.c_proj.bias", "hidden", .when = "mlp_bias"),
    SW_ROWS_LAYER_NORM(AT "input_layernorm"),
    SW_ROWS_LAYER_NORM(AT "post_attention_layernorm"),
    SW_ROWS_LAYER_NORM("model.norm"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"Starcoder2ForCausalLM", "Starcoder2Model", NULL};
static const char *const model_types[] = {"starcoder2", NULL};
static const sw_family_block blocks[] = {sw_block_embed, rows, sw_block_lm_head, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_MLP_BIAS,  "1"   },
    {SW_ATTR_TIED,      "1"   },
    {SW_ATTR_POSITIONS, "4096"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"mlp.c_fc",   SW_SLOT_UP  },
    {"mlp.c_proj", SW_SLOT_DOWN},
    {NULL,         SW_SLOT_NONE},
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu_pytorch_tanh"},
    {SW_SET_NORM_EPS,   1e-5, NULL               },
    {SW_SET_NONE,       0,    NULL               },
};
static const sw_decoder decoder = {
    .slots = slots,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .has_rotary = true,
    .window = SW_WINDOW_ALL,
};

const sw_family sw_family_starcoder2 = {
    .name = "starcoder2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
