/*
 * StableLM. Llama's names with LayerNorms; the 12B model runs attention and MLP in parallel under one norm
 * and has a q/k norm of its own weights for each head (a list: q_layernorm.norms.0, .1, ...).
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

#define AT "model.layers.#."

static const sw_family_row rows[] = {
    SW_ROWS_ATTENTION_QKV_BIAS(AT "self_attn.", "attention_bias != 0"),
    SW_NORM(AT "self_attn.q_layernorm.norms.#.weight", "head_dim", .when = "qk_norm"),
    SW_NORM(AT "self_attn.k_layernorm.norms.#.weight", "head_dim", .when = "qk_norm"),
    SW_ROWS_GATED_MLP(AT "mlp.", "intermediate", NULL),
    SW_ROWS_LAYER_NORM(AT "input_layernorm"),
    SW_NORM(AT "post_attention_layernorm.weight", "hidden", .when = "!parallel_attn"),
    SW_NORM(AT "post_attention_layernorm.bias", "hidden", .when = "!parallel_attn"),
    SW_ROWS_LAYER_NORM("model.norm"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"StableLmForCausalLM", "StableLMEpochForCausalLM", NULL};
static const char *const model_types[] = {"stablelm", "stablelm_epoch", NULL};
static const sw_family_block blocks[] = {sw_block_embed, rows, sw_block_rotary, sw_block_lm_head, NULL};
static const sw_spelling spellings[] = {
    {"use_parallel_residual", SW_ATTR_PARALLEL_ATTN},
    {NULL,                    SW_ATTR_NONE         },
};
static const sw_layer_count inner_counts[] = {
    {AT "self_attn.q_layernorm.", "heads"   },
    {AT "self_attn.k_layernorm.", "kv_heads"},
    {NULL,                        NULL      },
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "4096"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"self_attn.q_layernorm.norms.#", SW_SLOT_Q_NORM},
    {"self_attn.k_layernorm.norms.#", SW_SLOT_K_NORM},
    {NULL,                            SW_SLOT_NONE  },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS,    1e-5, NULL},
    {SW_SET_ROTARY_PART, 0.25, NULL},
    {SW_SET_NONE,        0,    NULL},
};
static const sw_decoder decoder = {
    .slots = slots, .defaults = setting_defaults, .norm = SW_NORM_LAYER, .has_rotary = true};

const sw_family sw_family_stablelm = {
    .name = "stablelm",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
    .inner_counts = inner_counts,
    .decoder = &decoder,
};
