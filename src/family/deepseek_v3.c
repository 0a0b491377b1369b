/*
 * DeepSeek-V3, R1 and Kimi K2: as DeepSeek-V2 with an F32 correction of the router's scores and, after the
 * last layer, a layer of multi-token prediction with its own embedding and head. FP8 in 128 x 128 blocks.
 */
#include "family/blocks.h"
#include "family/decoder.h"
#include "family/families.h"

static const char *const architectures[] = {"DeepseekV3ForCausalLM", NULL};
static const char *const model_types[] = {"deepseek_v3", "kimi_k2", NULL};

#define DENSE  "layer < first_dense || layer % moe_period != 0"
#define SPARSE "layer >= first_dense && layer % moe_period == 0"
#define SHARED SPARSE " && shared_experts > 0"

static const sw_family_row attention[] = {SW_ROWS_MLA("model.layers.#.self_attn.", "1"), SW_ROWS_END};

static const sw_family_row mlp[] = {
    SW_ROWS_GATED_MLP("model.layers.#.mlp.", "intermediate", DENSE),
    SW_ROWS_EXPERTS("model.layers.#.mlp.experts.#.", "gate_proj", "up_proj", "down_proj", "moe_intermediate",
                    0, SPARSE),
    SW_ROWS_STACKED_EXPERTS("model.layers.#.mlp.experts.", "moe_intermediate"),
    SW_ROUTER("model.layers.#.mlp.gate.weight", "experts, hidden", .when = SPARSE),
    SW_ROW_ROUTER_CORRECTION("model.layers.#.mlp.gate.e_score_correction_bias", SPARSE),
    SW_ROWS_SHARED_EXPERT("model.layers.#.mlp.shared_experts.", "shared_experts * moe_intermediate", SHARED),
    SW_ROWS_END,
};

static const sw_layer_count layer_counts[] = {
    {"model.layers.", "layers + nextn_layers"},
    {NULL,            NULL                   }
};

static const sw_family_block blocks[] = {
    sw_block_embed, attention,           sw_block_rotary,  mlp,  sw_block_pre_norms,
    sw_block_mtp,   sw_block_final_norm, sw_block_lm_head, NULL,
};

static const sw_default defaults[] = {
    {SW_ATTR_EXPERTS_PER_TOKEN, "8"   },
    {SW_ATTR_FIRST_DENSE,       "3"   },
    {SW_ATTR_SHARED_EXPERTS,    "1"   },
    {SW_ATTR_POSITIONS,         "4096"},
    {SW_ATTR_NONE,              NULL  },
};

static const sw_setting_default setting_defaults[] = {
    {SW_SET_ROUTER_SCORES,      0,   "sigmoid" },
    {SW_SET_ROUTER_METHOD,      0,   "noaux_tc"},
    {SW_SET_ROUTER_NORMALISES,  1,   NULL      },
    {SW_SET_ROUTER_GROUPS,      8,   NULL      },
    {SW_SET_ROUTER_GROUPS_KEPT, 4,   NULL      },
    {SW_SET_ROUTED_SCALE,       2.5, NULL      },
    {SW_SET_NONE,               0,   NULL      },
};

static const sw_decoder decoder = {
    .defaults = setting_defaults,
    .has_rotary = true,
    .is_interleaved = true,
};

const sw_family sw_family_deepseek_v3 = {
    .name = "deepseek_v3",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .layer_counts = layer_counts,
    .decoder = &decoder,
};
