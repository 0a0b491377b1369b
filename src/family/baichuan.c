/*
 * Baichuan and Baichuan 2. Llama with q, k, v one below the other in W_pack. The 13B models have ALiBi, the
 * 7B ones rotary positions whose buffers old files hold.
 */
#include "family/blocks.h"
#include "family/families.h"

static const sw_family_row attention[] = {
    SW_QKV(SW_LAYOUT_QKV_STACKED, "model.layers.#.self_attn.W_pack.weight", "3*hidden, hidden"),
    SW_ROWWISE_HEADS("model.layers.#.self_attn.o_proj.weight", "hidden, hidden"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"BaichuanForCausalLM", "BaiChuanModel", NULL};
static const char *const model_types[] = {"baichuan", NULL};
static const sw_family_block blocks[] = {
    sw_block_embed,     attention,           sw_block_rotary,  sw_block_gated_mlp,
    sw_block_pre_norms, sw_block_final_norm, sw_block_lm_head, NULL,
};

const sw_family sw_family_baichuan = {
    .name = "baichuan",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
