/*
 * Command R and R+. One norm a layer (attention and MLP in parallel). The q/k norm has a row of weights for
 * each head, [heads, head_dim]: cut by heads with its input, and each head's mean stays on one rank.
 */
#include "family/blocks.h"
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

const sw_family sw_family_cohere = {
    .name = "cohere",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = sw_defaults_tied,
};
