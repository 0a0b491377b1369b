/*
 * Phi-1, Phi-1.5, Phi-2. One norm a layer (attention and MLP in parallel), biases everywhere, the head's too.
 * The optional q/k layer norms are one vector of a head's width for all heads.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

#define AT "model.layers.#."

static const sw_family_row rows[] = {
    SW_COLUMN_HEADS(AT "self_attn.q_proj.weight", "heads*head_dim, hidden"),
    SW_COLUMN_HEADS(AT "self_attn.q_proj.bias", "heads*head_dim"),
    SW_COLUMN_KV(AT "self_attn.k_proj.weight", "kv_heads*head_dim, hidden"),
    SW_COLUMN_KV(AT "self_attn.k_proj.bias", "kv_heads*head_dim"),
    SW_COLUMN_KV(AT "self_attn.v_proj.weight", "kv_heads*head_dim, hidden"),
    SW_COLUMN_KV(AT "self_attn.v_proj.bias", "kv_heads*head_dim"),
    SW_ROWWISE_HEADS(AT "self_attn.dense.weight", "hidden, heads*head_dim"),
    SW_BIAS(AT "self_attn.dense.bias", "hidden"),
    SW_NORM(AT "self_attn.q_layernorm.weight", "head_dim", .when = "qk_norm"),
    SW_NORM(AT "self_attn.q_layernorm.bias", "head_dim", .when = "qk_norm"),
    SW_NORM(AT "self_attn.k_layernorm.weight", "head_dim", .when = "qk_norm"),
    SW_NORM(AT "self_attn.k_layernorm.bias", "head_dim", .when = "qk_norm"),
    SW_COLUMN(AT "mlp.fc1.weight", "intermediate, hidden"),
    SW_COLUMN(AT "mlp.fc1.bias", "intermediate"),
    SW_ROWWISE(AT "mlp.fc2.weight", "hidden, intermediate"),
    SW_BIAS(AT "mlp.fc2.bias", "hidden"),
    SW_NORM(AT "input_layernorm.weight", "hidden"),
    SW_NORM(AT "input_layernorm.bias", "hidden"),
    SW_NORM("model.final_layernorm.weight", "hidden"),
    SW_NORM("model.final_layernorm.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_LM_HEAD("lm_head.bias", "vocab"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"PhiForCausalLM", "PhiModel", NULL};
static const char *const model_types[] = {"phi", NULL};
static const sw_family_block blocks[] = {sw_block_embed, rows, NULL};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"model.final_layernorm", SW_SLOT_FINAL_NORM},
    {"self_attn.dense",       SW_SLOT_O         },
    {"self_attn.q_layernorm", SW_SLOT_Q_NORM    },
    {"self_attn.k_layernorm", SW_SLOT_K_NORM    },
    {"mlp.fc1",               SW_SLOT_UP        },
    {"mlp.fc2",               SW_SLOT_DOWN      },
    {NULL,                    SW_SLOT_NONE      },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION,  0,    "gelu_new"},
    {SW_SET_NORM_EPS,    1e-5, NULL      },
    {SW_SET_PARALLEL,    1,    NULL      },
    {SW_SET_ROTARY_PART, 0.5,  NULL      },
    {SW_SET_NONE,        0,    NULL      },
};
static const sw_decoder decoder = {
    .slots = slots, .defaults = setting_defaults, .norm = SW_NORM_LAYER, .has_rotary = true};

const sw_family sw_family_phi = {
    .name = "phi",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
