/*
 * Kimi Linear. The layers of linear_attn_config.kda_layers have a delta mixer, planned whole over tp; the
 * others latent attention (MLA). Both call their parameters self_attn.q_proj and o_proj, with different rows:
 * two rows of one name here, told apart by the layer. `head_dim` in its configs describes neither.
 */
#include "family/blocks.h"
#include "family/families.h"

#define AT     "model.layers.#."
#define DELTA  "layer_kind == 2"
#define FULL   "layer_kind != 2"
#define SPARSE "layer >= first_dense"
#define DENSE  "layer < first_dense"

#define KEY_DIM "linear_key_heads*linear_key_dim"

static const sw_family_row rows[] = {
    SW_MIXER(AT "self_attn.q_proj.weight", KEY_DIM ", hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.k_proj.weight", KEY_DIM ", hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.v_proj.weight", KEY_DIM ", hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.q_conv1d.weight", KEY_DIM ", 1, conv_kernel", .when = DELTA),
    SW_MIXER(AT "self_attn.k_conv1d.weight", KEY_DIM ", 1, conv_kernel", .when = DELTA),
    SW_MIXER(AT "self_attn.v_conv1d.weight", KEY_DIM ", 1, conv_kernel", .when = DELTA),
    SW_MIXER_SPECIAL_F32(AT "self_attn.A_log", "1, 1, linear_key_heads, 1", .when = DELTA),
    SW_MIXER_SPECIAL_F32(AT "self_attn.dt_bias", KEY_DIM, .when = DELTA),
    SW_MIXER(AT "self_attn.f_a_proj.weight", "linear_key_dim, hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.f_b_proj.weight", KEY_DIM ", linear_key_dim", .when = DELTA),
    SW_MIXER(AT "self_attn.b_proj.weight", "linear_key_heads, hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.g_a_proj.weight", "linear_key_dim, hidden", .when = DELTA),
    SW_MIXER(AT "self_attn.g_b_proj.weight", KEY_DIM ", linear_key_dim", .when = DELTA),
    SW_MIXER_NORM(AT "self_attn.o_norm.weight", "linear_key_dim", .when = DELTA),
    SW_MIXER(AT "self_attn.o_proj.weight", "hidden, " KEY_DIM, .when = DELTA),
    SW_ROWS_MLA(AT "self_attn.", FULL),
    SW_ROWS_GATED_MLP(AT "mlp.", "intermediate", DENSE),
    SW_ROUTER(AT "block_sparse_moe.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROUTER(AT "block_sparse_moe.gate.e_score_correction_bias", "experts", .flags = SW_ROW_FROZEN,
              .when = SPARSE),
    SW_ROWS_EXPERTS(AT "block_sparse_moe.experts.#.", "w1", "w3", "w2", "moe_intermediate", 0, SPARSE),
    SW_ROWS_SHARED_EXPERT(AT "block_sparse_moe.shared_experts.", "shared_experts*moe_intermediate", SPARSE),
    SW_ROWS_END,
};

static const char *const architectures[] = {"KimiLinearForCausalLM", "KimiLinearModel", NULL};
static const char *const model_types[] = {"kimi_linear", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed, rows, sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};
static const sw_spelling spellings[] = {
    {"linear_attn_config.num_heads",              SW_ATTR_LINEAR_KEY_HEADS  },
    {"linear_attn_config.num_heads",              SW_ATTR_LINEAR_VALUE_HEADS},
    {"linear_attn_config.head_dim",               SW_ATTR_LINEAR_KEY_DIM    },
    {"linear_attn_config.head_dim",               SW_ATTR_LINEAR_VALUE_DIM  },
    {"linear_attn_config.short_conv_kernel_size", SW_ATTR_CONV_KERNEL       },
    {NULL,                                        SW_ATTR_NONE              },
};

const sw_family sw_family_kimi_linear = {
    .name = "kimi_linear",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
};
