/*
 * OPT. fc1 and fc2 stand directly in the layer; the position table has two extra rows; both the layers and
 * the decoder have a `final_layer_norm`. opt-350m embeds in fewer dimensions than it computes in: project_in
 * stands behind the embedding then, project_out before the head. Its norms stand behind the sums: then the
 * decoder has no final norm. The class registers what works behind the layers before them; the table is in
 * the order of the work.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

#define AT     "model.decoder.layers.#."
#define NARROW "embed_dim != hidden"

static const sw_family_row rows[] = {
    SW_TOKENS("model.decoder.embed_tokens.weight", "vocab, embed_dim"),
    SW_POSITION("model.decoder.embed_positions.weight", "positions + 2, hidden"),
    SW_WHOLE("model.decoder.project_in.weight", "hidden, embed_dim", .when = NARROW),
    SW_COLUMN_HEADS(AT "self_attn.k_proj.weight", "hidden, hidden"),
    SW_COLUMN_HEADS(AT "self_attn.k_proj.bias", "hidden", .when = "attention_bias"),
    SW_COLUMN_HEADS(AT "self_attn.v_proj.weight", "hidden, hidden"),
    SW_COLUMN_HEADS(AT "self_attn.v_proj.bias", "hidden", .when = "attention_bias"),
    SW_COLUMN_HEADS(AT "self_attn.q_proj.weight", "hidden, hidden"),
    SW_COLUMN_HEADS(AT "self_attn.q_proj.bias", "hidden", .when = "attention_bias"),
    SW_ROWWISE_HEADS(AT "self_attn.out_proj.weight", "hidden, hidden"),
    SW_BIAS(AT "self_attn.out_proj.bias", "hidden", .when = "attention_bias"),
    SW_NORM(AT "self_attn_layer_norm.weight", "hidden"),
    SW_NORM(AT "self_attn_layer_norm.bias", "hidden"),
    SW_COLUMN(AT "fc1.weight", "intermediate, hidden"),
    SW_COLUMN(AT "fc1.bias", "intermediate", .when = "attention_bias"),
    SW_ROWWISE(AT "fc2.weight", "hidden, intermediate"),
    SW_BIAS(AT "fc2.bias", "hidden", .when = "attention_bias"),
    SW_NORM(AT "final_layer_norm.weight", "hidden"),
    SW_NORM(AT "final_layer_norm.bias", "hidden"),
    SW_NORM("model.decoder.final_layer_norm.weight", "hidden", .when = "norm_before"),
    SW_NORM("model.decoder.final_layer_norm.bias", "hidden", .when = "norm_before"),
    SW_WHOLE("model.decoder.project_out.weight", "embed_dim, hidden", .when = NARROW),
    SW_LM_HEAD("lm_head.weight", "vocab, embed_dim", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"OPTForCausalLM", "OPTModel", NULL};
static const char *const model_types[] = {"opt", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_spelling spellings[] = {
    {"enable_bias", SW_ATTR_ATTENTION_BIAS},
    {NULL,          SW_ATTR_NONE          },
};
static const sw_default defaults[] = {
    {SW_ATTR_ATTENTION_BIAS, "1"   },
    {SW_ATTR_TIED,           "1"   },
    {SW_ATTR_POSITIONS,      "2048"},
    {SW_ATTR_NONE,           NULL  },
};

static const sw_slot_name slots[] = {
    {"model.decoder.embed_tokens",     SW_SLOT_TOKENS        },
    {"model.decoder.embed_positions",  SW_SLOT_POSITIONS     },
    {"model.decoder.project_in",       SW_SLOT_EMBED_IN      },
    {"model.decoder.final_layer_norm", SW_SLOT_FINAL_NORM    },
    {"model.decoder.project_out",      SW_SLOT_EMBED_OUT     },
    {"self_attn_layer_norm",           SW_SLOT_ATTENTION_NORM},
    {"self_attn.out_proj",             SW_SLOT_O             },
    {"final_layer_norm",               SW_SLOT_MLP_NORM      },
    {"fc1",                            SW_SLOT_UP            },
    {"fc2",                            SW_SLOT_DOWN          },
    {NULL,                             SW_SLOT_NONE          },
};
static const sw_setting_default setting_defaults[] = {
    {SW_SET_ACTIVATION, 0,    "relu"},
    {SW_SET_NORM_EPS,   1e-5, NULL  },
    {SW_SET_NONE,       0,    NULL  },
};
static const sw_decoder decoder = {
    .slots = slots, .defaults = setting_defaults, .norm = SW_NORM_LAYER, .first_position = 2};

const sw_family sw_family_opt = {
    .name = "opt",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .spellings = spellings,
    .defaults = defaults,
    .decoder = &decoder,
};
