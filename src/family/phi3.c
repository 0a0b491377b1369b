/*
 * Phi-3, Phi-3.5, Phi-4. qkv_proj is [q | k | v] and gate_up_proj is [gate | up]: legal for a plain cut,
 * wrong under it.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const sw_family_row rows[] = {
    SW_QKV(SW_LAYOUT_QKV_STACKED, "model.layers.#.self_attn.qkv_proj.weight",
           "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_ROWWISE_HEADS("model.layers.#.self_attn.o_proj.weight", "hidden, heads*head_dim"),
    SW_GATE_UP("model.layers.#.mlp.gate_up_proj.weight", "2*intermediate, hidden"),
    SW_ROWWISE("model.layers.#.mlp.down_proj.weight", "hidden, intermediate"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"Phi3ForCausalLM", "Phi3Model", NULL};
static const char *const model_types[] = {"phi3", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "4096"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"self_attn.qkv_proj", SW_SLOT_QKV },
    {NULL,                 SW_SLOT_NONE},
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_NORM_EPS, 1e-5, NULL},
    {SW_SET_NONE,     0,    NULL},
};
static const sw_decoder decoder = {
    .slots = slots, .defaults = setting_defaults, .has_rotary = true, .window = SW_WINDOW_ALL};

const sw_family sw_family_phi3 = {
    .name = "phi3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
