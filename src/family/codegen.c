/*
 * CodeGen. GPT-J with a fused projection made of four blocks, one for each quarter of the heads, whatever the
 * mesh. Inside a block stand equal runs of query, value and key (in this order); the cut of a run is the same
 * for all three, so the order does not show in a plan.
 */
#include "family/decoder.h"
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
    {SW_ATTR_POSITIONS,    "2048"    },
    {SW_ATTR_NONE,         NULL      },
};

static const sw_slot_name slots[] = {
    {"transformer.wte",  SW_SLOT_TOKENS        },
    {"transformer.ln_f", SW_SLOT_FINAL_NORM    },
    {"ln_1",             SW_SLOT_ATTENTION_NORM},
    {"attn.qkv_proj",    SW_SLOT_QKV           },
    {"attn.out_proj",    SW_SLOT_O             },
    {"mlp.fc_in",        SW_SLOT_UP            },
    {"mlp.fc_out",       SW_SLOT_DOWN          },
    {NULL,               SW_SLOT_NONE          },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "gelu_new"},
    {SW_SET_NORM_EPS,   1e-5, NULL      },
    {SW_SET_PARALLEL,   1,    NULL      },
    {SW_SET_ROTARY_DIM, 64,   NULL      },
    {SW_SET_NONE,       0,    NULL      },
};
static const sw_decoder decoder = {
    .slots = slots,
    .defaults = setting_defaults,
    .norm = SW_NORM_LAYER,
    .has_rotary = true,
    .is_interleaved = true,
};

const sw_family sw_family_codegen = {
    .name = "codegen",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
