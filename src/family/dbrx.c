/*
 * DBRX. Norms and attention share one module (norm_attn_norm). The experts lie one below the other in
 * matrices without ".weight": w1 (gate) and v1 (up) as [experts * out, in], w2 (down) as [experts * in, out],
 * used transposed. A cut must first see them by expert.
 */
#include "family/families.h"
#include "family/rows.h"

#define AT "transformer.blocks.#."

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_NORM(AT "norm_attn_norm.norm_1.weight", "hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "norm_attn_norm.attn.Wqkv.weight",
           "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_ROWWISE_HEADS(AT "norm_attn_norm.attn.out_proj.weight", "hidden, heads*head_dim"),
    SW_NORM(AT "norm_attn_norm.norm_2.weight", "hidden"),
    SW_ROUTER(AT "ffn.router.layer.weight", "experts, hidden"),
    SW_EXPERT_OUT(AT "ffn.experts.mlp.w1", "experts*moe_intermediate, hidden", .form = SW_FORM_EXPERT_ROWS),
    SW_EXPERT_OUT(AT "ffn.experts.mlp.v1", "experts*moe_intermediate, hidden", .form = SW_FORM_EXPERT_ROWS),
    SW_EXPERT_IN(AT "ffn.experts.mlp.w2", "experts*moe_intermediate, hidden", .form = SW_FORM_EXPERT_ROWS_T),
    SW_NORM("transformer.norm_f.weight", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"DbrxForCausalLM", "DbrxModel", NULL};
static const char *const model_types[] = {"dbrx", NULL};
static const sw_family_block blocks[] = {rows, NULL};

const sw_family sw_family_dbrx = {
    .name = "dbrx",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
};
