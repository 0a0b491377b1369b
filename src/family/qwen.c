/*
 * The first Qwen. c_attn is [q | k | v] with a bias; w1 and w2 are up and gate, both columns, c_proj the row.
 * intermediate_size counts both halves.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

#define AT "transformer.h.#."

static const sw_family_row rows[] = {
    SW_TOKENS("transformer.wte.weight", "vocab, hidden"),
    SW_BUFFER("transformer.rotary_emb.inv_freq", "head_dim / 2"),
    SW_NORM(AT "ln_1.weight", "hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.c_attn.weight", "3*heads*head_dim, hidden"),
    SW_QKV(SW_LAYOUT_QKV_STACKED, AT "attn.c_attn.bias", "3*heads*head_dim"),
    SW_ROWWISE_HEADS(AT "attn.c_proj.weight", "hidden, heads*head_dim"),
    SW_BIAS(AT "attn.c_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM(AT "ln_2.weight", "hidden"),
    SW_COLUMN(AT "mlp.w1.weight", "intermediate / 2, hidden"),
    SW_COLUMN(AT "mlp.w1.bias", "intermediate / 2", .when = "!no_bias"),
    SW_COLUMN(AT "mlp.w2.weight", "intermediate / 2, hidden"),
    SW_COLUMN(AT "mlp.w2.bias", "intermediate / 2", .when = "!no_bias"),
    SW_ROWWISE(AT "mlp.c_proj.weight", "hidden, intermediate / 2"),
    SW_BIAS(AT "mlp.c_proj.bias", "hidden", .when = "!no_bias"),
    SW_NORM("transformer.ln_f.weight", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"QWenLMHeadModel", "QWenModel", NULL};
static const char *const model_types[] = {"qwen", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_NO_BIAS, "1" },
    {SW_ATTR_NONE,    NULL},
};

/* w2 is the gate. */
static const sw_slot_name slots[] = {
    {"transformer.wte",  SW_SLOT_TOKENS        },
    {"transformer.ln_f", SW_SLOT_FINAL_NORM    },
    {"ln_1",             SW_SLOT_ATTENTION_NORM},
    {"ln_2",             SW_SLOT_MLP_NORM      },
    {"attn.c_attn",      SW_SLOT_QKV           },
    {"attn.c_proj",      SW_SLOT_O             },
    {"mlp.w1",           SW_SLOT_UP            },
    {"mlp.w2",           SW_SLOT_GATE          },
    {"mlp.c_proj",       SW_SLOT_DOWN          },
    {NULL,               SW_SLOT_NONE          },
};
static const sw_decoder decoder = {.slots = slots, .has_rotary = true};

const sw_family sw_family_qwen = {
    .name = "qwen",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .default_dtype = SW_DTYPE_BF16,
    .decoder = &decoder,
};
