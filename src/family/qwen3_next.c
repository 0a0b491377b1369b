/*
 * Qwen3-Next. Three of four layers have a gated delta net (`linear_attn`), planned whole over tp; the fourth
 * has attention whose q_proj holds query and output gate head by head, so its unit is 2 * head_dim rows.
 * Routed experts and one gated shared expert everywhere; one layer for multi-token prediction under "mtp.".
 */
#include "family/blocks.h"
#include "family/families.h"

#define AT     "model.layers.#."
#define MTP    "mtp.layers.#."
#define FULL   "layer_kind != 2"
#define DELTA  "layer_kind == 2"
#define SPARSE "!layer_dense && (layer + 1) % moe_period == 0"
#define DENSE  "layer_dense || (layer + 1) % moe_period != 0"

#define KEY_DIM   "linear_key_heads*linear_key_dim"
#define VALUE_DIM "linear_value_heads*linear_value_dim"

#define GATED_ATTENTION(at, when_)                                                                           \
    SW_COLUMN_HEADS(at "q_proj.weight", "2*heads*head_dim, hidden", .when = (when_)),                        \
        SW_COLUMN_KV(at "k_proj.weight", "kv_heads*head_dim, hidden", .when = (when_)),                      \
        SW_COLUMN_KV(at "v_proj.weight", "kv_heads*head_dim, hidden", .when = (when_)),                      \
        SW_ROWWISE_HEADS(at "o_proj.weight", "hidden, heads*head_dim", .when = (when_)),                     \
        SW_ROWS_QK_NORM(at, when_)

#define SPARSE_MLP(at, when_)                                                                                \
    SW_ROUTER(at "gate.weight", "experts, hidden", .when = (when_)),                                         \
        SW_ROWS_EXPERTS(at "experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate", 0, when_), \
        SW_ROWS_SHARED_EXPERT(at "shared_expert.", "shared_intermediate", when_),                            \
        SW_WHOLE(at "shared_expert_gate.weight", "1, hidden", .when = (when_))

static const sw_family_row layers[] = {
    SW_MIXER_SPECIAL(AT "linear_attn.dt_bias", "linear_value_heads", .when = DELTA),
    SW_MIXER_SPECIAL(AT "linear_attn.A_log", "linear_value_heads", .when = DELTA),
    SW_MIXER(AT "linear_attn.conv1d.weight", "2*" KEY_DIM " + " VALUE_DIM ", 1, conv_kernel", .when = DELTA),
    SW_MIXER(AT "linear_attn.in_proj_qkvz.weight", "2*" KEY_DIM " + 2*" VALUE_DIM ", hidden", .when = DELTA),
    SW_MIXER(AT "linear_attn.in_proj_ba.weight", "2*linear_value_heads, hidden", .when = DELTA),
    SW_MIXER_NORM(AT "linear_attn.norm.weight", "linear_value_dim", .when = DELTA),
    SW_MIXER(AT "linear_attn.out_proj.weight", "hidden, " VALUE_DIM, .when = DELTA),
    GATED_ATTENTION(AT "self_attn.", FULL),
    SPARSE_MLP(AT "mlp.", SPARSE),
    SW_ROWS_GATED_MLP(AT "mlp.", "intermediate", DENSE),
    SW_ROWS_END,
};

static const sw_family_row mtp[] = {
    SW_WHOLE("mtp.fc.weight", "hidden, 2*hidden"),
    GATED_ATTENTION(MTP "self_attn.", NULL),
    SPARSE_MLP(MTP "mlp.", NULL),
    SW_NORM(MTP "input_layernorm.weight", "hidden"),
    SW_NORM(MTP "post_attention_layernorm.weight", "hidden"),
    SW_NORM("mtp.norm.weight", "hidden"),
    SW_NORM("mtp.pre_fc_norm_embedding.weight", "hidden"),
    SW_NORM("mtp.pre_fc_norm_hidden.weight", "hidden"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"Qwen3NextForCausalLM", "Qwen3NextModel", NULL};
static const char *const model_types[] = {"qwen3_next", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, layers, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, mtp, NULL,
};
static const sw_layer_count layer_counts[] = {
    {"mtp.", "1" },
    {NULL,   NULL},
};
static const sw_default defaults[] = {
    {SW_ATTR_MOE_PERIOD, "1" },
    {SW_ATTR_NONE,       NULL},
};

const sw_family sw_family_qwen3_next = {
    .name = "qwen3_next",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .layer_counts = layer_counts,
};
