/*
 * GPT-2. Its linears are Conv1D: stored [in, out], so a column cut is along dim 1. c_attn is [q | k | v]
 * along the output. `attn.bias` is the causal mask and not a bias. Files come with and without
 * "transformer.".
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

static const sw_family_row rows[] = {
    SW_TOKENS("wte.weight", "vocab, hidden"),
    SW_POSITION("wpe.weight", "positions, hidden"),
    SW_NORM("h.#.ln_1.weight", "hidden"),
    SW_NORM("h.#.ln_1.bias", "hidden"),
    SW_BUFFER("h.#.attn.bias", "1, 1, positions, positions"),
    SW_BUFFER("h.#.attn.masked_bias", ""),
    SW_QKV(SW_LAYOUT_QKV_STACKED, "h.#.attn.c_attn.weight", "hidden, 3*hidden", .form = SW_FORM_CONV1D),
    SW_QKV(SW_LAYOUT_QKV_STACKED, "h.#.attn.c_attn.bias", "3*hidden", .form = SW_FORM_CONV1D),
    SW_ROWWISE_HEADS("h.#.attn.c_proj.weight", "hidden, hidden", .form = SW_FORM_CONV1D),
    SW_BIAS("h.#.attn.c_proj.bias", "hidden", .form = SW_FORM_CONV1D),
    SW_NORM("h.#.ln_2.weight", "hidden"),
    SW_NORM("h.#.ln_2.bias", "hidden"),
    SW_COLUMN("h.#.mlp.c_fc.weight", "hidden, intermediate", .form = SW_FORM_CONV1D),
    SW_COLUMN("h.#.mlp.c_fc.bias", "intermediate", .form = SW_FORM_CONV1D),
    SW_ROWWISE("h.#.mlp.c_proj.weight", "intermediate, hidden", .form = SW_FORM_CONV1D),
    SW_BIAS("h.#.mlp.c_proj.bias", "hidden", .form = SW_FORM_CONV1D),
    SW_NORM("ln_f.weight", "hidden"),
    SW_NORM("ln_f.bias", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"GPT2LMHeadModel", "GPT2Model", NULL};
static const char *const model_types[] = {"gpt2", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_INTERMEDIATE, "4*hidden"},
    {SW_ATTR_TIED,         "1"       },
    {SW_ATTR_POSITIONS,    "1024"    },
    {SW_ATTR_NONE,         NULL      },
};

static const sw_slot_name slots[] = {
    {"wte",         SW_SLOT_TOKENS        },
    {"wpe",         SW_SLOT_POSITIONS     },
    {"ln_f",        SW_SLOT_FINAL_NORM    },
    {"ln_1",        SW_SLOT_ATTENTION_NORM},
    {"ln_2",        SW_SLOT_MLP_NORM      },
    {"attn.c_attn", SW_SLOT_QKV           },
    {"attn.c_proj", SW_SLOT_O             },
    {"mlp.c_fc",    SW_SLOT_UP            },
    {"mlp.c_proj",  SW_SLOT_DOWN          },
    {NULL,          SW_SLOT_NONE          },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu_new"},
    {SW_SET_NORM_EPS,   1e-5, NULL      },
    {SW_SET_NONE,       0,    NULL      },
};
static const sw_decoder decoder = {.slots = slots, .defaults = setting_defaults, .norm = SW_NORM_LAYER};

const sw_family sw_family_gpt2 = {
    .name = "gpt2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
