/*
 * GPT-BigCode (SantaCoder, StarCoder). GPT-2's names on ordinary linears. c_attn is all queries, one key and
 * one value under multi_query, else head by head: unlike GPT-2, which stacks.
 */
#include "family/decoder.h"
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
    {SW_ATTR_POSITIONS,    "1024"                          },
    {SW_ATTR_NONE,         NULL                            },
};

static const sw_slot_name slots[] = {
    {"transformer.wte",  SW_SLOT_TOKENS        },
    {"transformer.wpe",  SW_SLOT_POSITIONS     },
    {"transformer.ln_f", SW_SLOT_FINAL_NORM    },
    {"ln_1",             SW_SLOT_ATTENTION_NORM},
    {"ln_2",             SW_SLOT_MLP_NORM      },
    {"attn.c_attn",      SW_SLOT_QKV           },
    {"attn.c_proj",      SW_SLOT_O             },
    {"mlp.c_fc",         SW_SLOT_UP            },
    {"mlp.c_proj",       SW_SLOT_DOWN          },
    {NULL,               SW_SLOT_NONE          },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu_pytorch_tanh"},
    {SW_SET_NORM_EPS,   1e-5, NULL               },
    {SW_SET_NONE,       0,    NULL               },
};
static const sw_decoder decoder = {.slots = slots, .defaults = setting_defaults, .norm = SW_NORM_LAYER};

const sw_family sw_family_gpt_bigcode = {
    .name = "gpt_bigcode",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
