/*
 * InternLM 2 and 2.5. wqkv goes by key/value group: the queries of a group, its key, its value. w1 is gate,
 * w3 up, w2 down; the head is called output.
 * `bias` in the config is the attention's alone.
 */
#include "family/decoder.h"
#include "family/families.h"
#include "family/rows.h"

#define AT "model.layers.#."

static const sw_family_row rows[] = {
    SW_TOKENS("model.tok_embeddings.weight", "vocab, hidden"),
    SW_QKV(SW_LAYOUT_QKV_GROUPED, AT "attention.wqkv.weight", "(heads + 2*kv_heads) * head_dim, hidden"),
    SW_QKV(SW_LAYOUT_QKV_GROUPED, AT "attention.wqkv.bias", "(heads + 2*kv_heads) * head_dim",
           .when = "mlp_bias"),
    SW_ROWWISE_HEADS(AT "attention.wo.weight", "hidden, heads*head_dim"),
    SW_BIAS(AT "attention.wo.bias", "hidden", .when = "mlp_bias"),
    SW_BUFFER(AT "attention.rotary_emb.inv_freq", "head_dim / 2"),
    SW_COLUMN(AT "feed_forward.w1.weight", "intermediate, hidden"),
    SW_COLUMN(AT "feed_forward.w3.weight", "intermediate, hidden"),
    SW_ROWWISE(AT "feed_forward.w2.weight", "hidden, intermediate"),
    SW_NORM(AT "attention_norm.weight", "hidden"),
    SW_NORM(AT "ffn_norm.weight", "hidden"),
    SW_NORM("model.norm.weight", "hidden"),
    SW_LM_HEAD("output.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"InternLM2ForCausalLM", "InternLM2Model", NULL};
static const char *const model_types[] = {"internlm2", NULL};
static const sw_family_block blocks[] = {rows, NULL};

static const sw_default defaults[] = {
    {SW_ATTR_POSITIONS, "2048"},
    {SW_ATTR_NONE,      NULL  },
};

static const sw_slot_name slots[] = {
    {"model.tok_embeddings", SW_SLOT_TOKENS        },
    {"output",               SW_SLOT_HEAD          },
    {"attention_norm",       SW_SLOT_ATTENTION_NORM},
    {"ffn_norm",             SW_SLOT_MLP_NORM      },
    {"attention.wqkv",       SW_SLOT_QKV           },
    {"attention.wo",         SW_SLOT_O             },
    {"feed_forward.w1",      SW_SLOT_GATE          },
    {"feed_forward.w3",      SW_SLOT_UP            },
    {"feed_forward.w2",      SW_SLOT_DOWN          },
    {NULL,                   SW_SLOT_NONE          },
};
static const sw_decoder decoder = {.slots = slots, .has_rotary = true};

const sw_family sw_family_internlm2 = {
    .name = "internlm2",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
    .decoder = &decoder,
};
