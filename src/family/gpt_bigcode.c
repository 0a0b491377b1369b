/*
 * GPT-BigCode (SantaCoder, StarCoder). GPT-2's names on ordinary linears. c_attn is all queries, one key and
 * one value under multi_query, else head by head: unlike GPT-2, which stacks.
 */
#include "family/families.h"
#include "family/rows.h"

#define AT "transformer.h.#."

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_POSITION("transformer.wpe.weight", "positions, hidden"),
    SW_NORM(AT "ln_1.weight", "hidden"),
    SW_NORM(AT "ln_1.bias", "hidden"),
    SW_BUFFER(AT "attn.bias", "positions, positions"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.c_attn.weight", "hidden + 2*head_dim, hidden",
           .when = "multi_query"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.c_attn.bias", "hidden + 2*head_dim", .when = "multi_query"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, AT "attn.c_attn.weight", "3*hidden, hidden", .when = "!multi_query"),
    SW_QKV(SW_LAYOUT_QKV_PER_HEAD, AT "attn.c_attn.bias", "3*hidden", .when = "!multi_query"),
    SW_ROWWISE_HEADS(AT "attn.c_proj.weight", "hidden, hidden"),
    SW_BIAS(AT "attn.c_proj.bias", "hidden"),
    SW_NORM(AT "ln_2.weight", "hidden"),
    SW_NORM(AT "ln_2.bias", "hidden"),
    SW_COLUMN(AT "mlp.c_fc.weight", "intermediate, hidden"),
    SW_COLUMN(AT "mlp.c_fc.bias", "intermediate"),
    SW_ROWWISE(AT "mlp.c_proj.weight", "hidden, intermediate"),
    SW_BIAS(AT "mlp.c_proj.bias", "hidden"),
    SW_NORM("transformer.ln_f.weight", "hidden"),
    SW_NORM("transformer.ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GPTBigCodeForCausalLM", "GPTBigCodeModel", NULL};
static const char *const model_types[] = {"gpt_bigcode", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_MULTI_QUERY,  "1"                             },
    {SW_ATTR_KV_HEADS,     "1 + (heads - 1) * !multi_query"},
    {SW_ATTR_INTERMEDIATE, "4*hidden"                      },
    {SW_ATTR_TIED,         "1"                             },
    {SW_ATTR_NONE,         NULL                            },
};

const sw_family sw_family_gpt_bigcode = {
    .name = "gpt_bigcode",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
