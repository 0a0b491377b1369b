/*
 * MPT. Fused [q | k | v] called Wqkv, an MLP without gate, ALiBi, no biases. The checkpoints of the older
 * class have biases where no_bias is false, and a position table where ALiBi is off.
 */
#include "family/families.h"
#include "family/rows.h"

#define AT "transformer.blocks.#."

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_POSITION("transformer.wpe.weight", "positions, hidden", .when = "!alibi"),
    SW_NORM(AT "norm_1.weight", "hidden"),
    SW_NORM(AT "norm_1.bias", "hidden", .when = "!no_bias"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.Wqkv.weight", "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.Wqkv.bias", "(heads + 2*kv_heads) * head_dim", .when = "!no_bias"),
    SW_ROWWISE_HEADS(AT "attn.out_proj.weight", "hidden, hidden"),
    SW_BIAS(AT "attn.out_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM(AT "norm_2.weight", "hidden"),
    SW_NORM(AT "norm_2.bias", "hidden", .when = "!no_bias"),
    SW_COLUMN(AT "ffn.up_proj.weight", "intermediate, hidden"),
    SW_COLUMN(AT "ffn.up_proj.bias", "intermediate", .when = "!no_bias"),
    SW_ROWWISE(AT "ffn.down_proj.weight", "hidden, intermediate"),
    SW_BIAS(AT "ffn.down_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM("transformer.norm_f.weight", "hidden"),
    SW_NORM("transformer.norm_f.bias", "hidden", .when = "!no_bias"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"MptForCausalLM", "MptModel", NULL};
static const char *const model_types[] = {"mpt", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_spelling spellings[] = {
    {"expansion_ratio", SW_ATTR_MIXER_EXPAND},
    {NULL,              SW_ATTR_NONE        },
};
static const sw_default defaults[] = {
    {SW_ATTR_ALIBI,        "1"            },
    {SW_ATTR_NO_BIAS,      "1"            },
    {SW_ATTR_MIXER_EXPAND, "4"            },
    {SW_ATTR_INTERMEDIATE, "expand*hidden"},
    {SW_ATTR_TIED,         "1"            },
    {SW_ATTR_NONE,         NULL           },
};

const sw_family sw_family_mpt = {
    .name = "mpt",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
};
