/*
 * Jamba. One layer of a period has attention, the others a Mamba mixer (planned whole over tp); one of
 * another period has routed experts, the others a dense MLP of the same width.
 */
#include "family/blocks.h"
#include "family/families.h"

#define AT     "model.layers.#."
#define MAMBA  "layer % attention_period != attention_offset"
#define FULL   "layer % attention_period == attention_offset"
#define SPARSE "experts > 1 && layer % moe_period == moe_offset"
#define DENSE  "experts <= 1 || layer % moe_period != moe_offset"

static const sw_family_row rows[] = {
    SW_MIXER_SPECIAL(AT "mamba.A_log", "expand*hidden, state_size", .when = MAMBA),
    SW_MIXER(AT "mamba.D", "expand*hidden", .when = MAMBA),
    SW_MIXER(AT "mamba.conv1d.weight", "expand*hidden, 1, conv_kernel", .when = MAMBA),
    SW_MIXER(AT "mamba.conv1d.bias", "expand*hidden", .when = "conv_bias && " MAMBA),
    SW_MIXER(AT "mamba.in_proj.weight", "2*expand*hidden, hidden", .when = MAMBA),
    SW_MIXER(AT "mamba.x_proj.weight", "time_step_rank + 2*state_size, expand*hidden", .when = MAMBA),
    SW_MIXER(AT "mamba.dt_proj.weight", "expand*hidden, time_step_rank", .when = MAMBA),
    SW_MIXER(AT "mamba.dt_proj.bias", "expand*hidden", .when = MAMBA),
    SW_MIXER(AT "mamba.out_proj.weight", "hidden, expand*hidden", .when = MAMBA),
    SW_MIXER_NORM(AT "mamba.dt_layernorm.weight", "time_step_rank", .when = MAMBA),
    SW_MIXER_NORM(AT "mamba.b_layernorm.weight", "state_size", .when = MAMBA),
    SW_MIXER_NORM(AT "mamba.c_layernorm.weight", "state_size", .when = MAMBA),
    SW_ROWS_GATED_MLP(AT "feed_forward.", "intermediate", DENSE),
    SW_NORM(AT "input_layernorm.weight", "hidden"),
    SW_NORM(AT "pre_ff_layernorm.weight", "hidden"),
    SW_ROUTER(AT "feed_forward.router.weight", "experts, hidden", .when = SPARSE),
    SW_ROWS_EXPERTS(AT "feed_forward.experts.#.", "gate_proj", "up_proj", "down_proj", "intermediate", 0,
                    SPARSE),
    SW_COLUMN_HEADS(AT "self_attn.q_proj.weight", "heads*head_dim, hidden", .when = FULL),
    SW_COLUMN_KV(AT "self_attn.k_proj.weight", "kv_heads*head_dim, hidden", .when = FULL),
    SW_COLUMN_KV(AT "self_attn.v_proj.weight", "kv_heads*head_dim, hidden", .when = FULL),
    SW_ROWWISE_HEADS(AT "self_attn.o_proj.weight", "hidden, heads*head_dim", .when = FULL),
    SW_NORM("model.final_layernorm.weight", "hidden"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"JambaForCausalLM", "JambaModel", NULL};
static const char *const model_types[] = {"jamba", NULL};
static const sw_family_block blocks[] = {sw_block_embed, rows, sw_block_lm_head, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_ATTENTION_PERIOD, "8"                   },
    {SW_ATTR_ATTENTION_OFFSET, "4"                   },
    {SW_ATTR_MOE_PERIOD,       "2"                   },
    {SW_ATTR_MOE_OFFSET,       "1"                   },
    {SW_ATTR_MIXER_EXPAND,     "2"                   },
    {SW_ATTR_STATE_SIZE,       "16"                  },
    {SW_ATTR_CONV_KERNEL,      "4"                   },
    {SW_ATTR_CONV_BIAS,        "1"                   },
    {SW_ATTR_TIME_STEP_RANK,   "ceil_div(hidden, 16)"},
    {SW_ATTR_NONE,             NULL                  },
};

const sw_family sw_family_jamba = {
    .name = "jamba",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
