/*
 * CodeGen. GPT-J with a fused projection made of four blocks, one for each quarter of the heads, whatever the
 * mesh. Inside a block stand equal runs of query, value and key (in this order); the cut of a run is the same
 * for all three, so the order does not show in a plan.
 */
#include "family/families.h"
#include "family/rows.h"

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_NORM("transformer.h.#.ln_1.weight", "hidden"),
    SW_NORM("transformer.h.#.ln_1.bias", "hidden"),
    SW_BUFFER("transformer.h.#.attn.causal_mask", "1, 1, positions, positions"),
    SW_QKV(SW_LAYOUT_QKV_BLOCKS, "transformer.h.#.attn.qkv_proj.weight", "3*hidden, hidden", .parts = 4),
    SW_ROWWISE_HEADS("transformer.h.#.attn.out_proj.weight", "hidden, hidden"),
    SW_COLUMN("transformer.h.#.mlp.fc_in.weight", "intermediate, hidden"),
    SW_COLUMN("transformer.h.#.mlp.fc_in.bias", "intermediate"),
    SW_ROWWISE("transformer.h.#.mlp.fc_out.weight", "hidden, intermediate"),
    SW_BIAS("transformer.h.#.mlp.fc_out.bias", "hidden"),
    SW_NORM("transformer.ln_f.weight", "hidden"),
    SW_NORM("transformer.ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_LM_HEAD("lm_head.bias", "vocab"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"CodeGenForCausalLM", "CodeGenModel", NULL};
static const char *const model_types[] = {"codegen", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_INTERMEDIATE, "4*hidden"},
    {SW_ATTR_NONE,         NULL      },
};

const sw_family sw_family_codegen = {
    .name = "codegen",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
