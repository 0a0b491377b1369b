/* The names that slots have in most families, and whose slot a row is (decoder.h). */
#include "family/decoder.h"

#include <string.h>

#include "base/status.h"

const sw_slot_name sw_common_slot_names[] = {
    {"model.embed_tokens",               SW_SLOT_TOKENS           },
    {"model.norm",                       SW_SLOT_FINAL_NORM       },
    {"lm_head",                          SW_SLOT_HEAD             },
    {"input_layernorm",                  SW_SLOT_ATTENTION_NORM   },
    {"post_attention_layernorm",         SW_SLOT_MLP_NORM         },
    {"self_attn.q_proj",                 SW_SLOT_Q                },
    {"self_attn.k_proj",                 SW_SLOT_K                },
    {"self_attn.v_proj",                 SW_SLOT_V                },
    {"self_attn.o_proj",                 SW_SLOT_O                },
    {"self_attn.q_norm",                 SW_SLOT_Q_NORM           },
    {"self_attn.k_norm",                 SW_SLOT_K_NORM           },
    {"self_attn.sinks",                  SW_SLOT_SINKS            },
    {"self_attn.q_a_proj",               SW_SLOT_Q_DOWN           },
    {"self_attn.q_a_layernorm",          SW_SLOT_Q_DOWN_NORM      },
    {"self_attn.q_b_proj",               SW_SLOT_Q_UP             },
    {"self_attn.kv_a_proj_with_mqa",     SW_SLOT_KV_DOWN          },
    {"self_attn.kv_a_layernorm",         SW_SLOT_KV_DOWN_NORM     },
    {"self_attn.kv_b_proj",              SW_SLOT_KV_UP            },
    {"mlp.gate_proj",                    SW_SLOT_GATE             },
    {"mlp.up_proj",                      SW_SLOT_UP               },
    {"mlp.gate_up_proj",                 SW_SLOT_GATE_UP          },
    {"mlp.down_proj",                    SW_SLOT_DOWN             },
    {"mlp.gate",                         SW_SLOT_ROUTER           },
    {"mlp.gate.e_score_correction_bias", SW_SLOT_ROUTER_CORRECTION},
    {"mlp.experts.#.gate_proj",          SW_SLOT_EXPERT_GATE      },
    {"mlp.experts.#.up_proj",            SW_SLOT_EXPERT_UP        },
    {"mlp.experts.#.down_proj",          SW_SLOT_EXPERT_DOWN      },
    {"mlp.experts.gate_proj",            SW_SLOT_EXPERT_GATE      },
    {"mlp.experts.up_proj",              SW_SLOT_EXPERT_UP        },
    {"mlp.experts.gate_up_proj",         SW_SLOT_EXPERT_GATE_UP   },
    {"mlp.experts.down_proj",            SW_SLOT_EXPERT_DOWN      },
    {"mlp.shared_expert.gate_proj",      SW_SLOT_SHARED_GATE      },
    {"mlp.shared_expert.up_proj",        SW_SLOT_SHARED_UP        },
    {"mlp.shared_expert.down_proj",      SW_SLOT_SHARED_DOWN      },
    {"mlp.shared_expert_gate",           SW_SLOT_SHARED_ROUTER    },
    {"mlp.shared_experts.gate_proj",     SW_SLOT_SHARED_GATE      },
    {"mlp.shared_experts.up_proj",       SW_SLOT_SHARED_UP        },
    {"mlp.shared_experts.down_proj",     SW_SLOT_SHARED_DOWN      },
    {NULL,                               SW_SLOT_NONE             },
};

static const char *const leaves[] = {".weight", ".bias", "_bias"};

/* The name of a slot is `name`, but for the end that says whether it is the weight or the bias. */
static bool is_name(const char *slot_name, const char *name, bool *is_bias)
{
    size_t length = strlen(slot_name);

    if (strncmp(slot_name, name, length) != 0)
        return false;
    *is_bias = false;
    if (name[length] == '\0')
        return true;
    for (size_t i = 0; i < SW_COUNT(leaves); i++) {
        if (strcmp(name + length, leaves[i]) != 0)
            continue;
        *is_bias = i > 0;
        return true;
    }
    return false;
}

static sw_slot find(const sw_slot_name *names, const char *name, bool *is_bias)
{
    for (; names != NULL && names->name != NULL; names++) {
        if (is_name(names->name, name, is_bias))
            return names->slot;
    }
    return SW_SLOT_NONE;
}

sw_slot sw_decoder_slot(const sw_decoder *decoder, const char *row_name, bool *is_bias)
{
    const char *layer = strstr(row_name, "#.");
    const char *name = layer == NULL ? row_name : layer + 2;
    sw_slot slot = find(decoder->slots, name, is_bias);

    return slot != SW_SLOT_NONE ? slot : find(sw_common_slot_names, name, is_bias);
}
