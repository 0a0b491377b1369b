/*
 * Mamba and Falcon-Mamba. No attention: every layer is a state-space mixer, planned whole over tp. x_proj
 * stacks three unequal parts (time step, B, C), so nobody should cut it in equal rows.
 */
#include "family/families.h"
#include "family/rows.h"

#define AT "backbone.layers.#."

static const sw_family_row rows[] = {
    SW_TOKENS("backbone.embeddings.weight", "vocab, hidden"),
    SW_NORM(AT "norm.weight", "hidden"),
    SW_MIXER_SPECIAL(AT "mixer.A_log", "intermediate, state_size"),
    SW_MIXER(AT "mixer.D", "intermediate"),
    SW_MIXER(AT "mixer.conv1d.weight", "intermediate, 1, conv_kernel"),
    SW_MIXER(AT "mixer.conv1d.bias", "intermediate", .when = "conv_bias"),
    SW_MIXER(AT "mixer.in_proj.weight", "2*intermediate, hidden"),
    SW_MIXER(AT "mixer.in_proj.bias", "2*intermediate", .when = "mlp_bias"),
    SW_MIXER(AT "mixer.x_proj.weight", "time_step_rank + 2*state_size, intermediate"),
    SW_MIXER(AT "mixer.dt_proj.weight", "intermediate, time_step_rank"),
    SW_MIXER(AT "mixer.dt_proj.bias", "intermediate"),
    SW_MIXER(AT "mixer.out_proj.weight", "hidden, intermediate"),
    SW_MIXER(AT "mixer.out_proj.bias", "hidden", .when = "mlp_bias"),
    SW_NORM("backbone.norm_f.weight", "hidden"),
    SW_LM_HEAD("lm_head.weight", "vocab, hidden", .when = "tied == 0"),
    SW_ROWS_END,
};

static const char *const architectures[] = {"MambaForCausalLM", "FalconMambaForCausalLM", NULL};
static const char *const model_types[] = {"mamba", "falcon_mamba", NULL};
static const sw_family_block blocks[] = {rows, NULL};
static const sw_default defaults[] = {
    {SW_ATTR_MIXER_EXPAND,   "2"                   },
    {SW_ATTR_INTERMEDIATE,   "expand*hidden"       },
    {SW_ATTR_STATE_SIZE,     "16"                  },
    {SW_ATTR_CONV_KERNEL,    "4"                   },
    {SW_ATTR_TIME_STEP_RANK, "ceil_div(hidden, 16)"},
    {SW_ATTR_CONV_BIAS,      "1"                   },
    {SW_ATTR_TIED,           "1"                   },
    {SW_ATTR_NONE,           NULL                  },
};

const sw_family sw_family_mamba = {
    .name = "mamba",
    .architectures = architectures,
    .model_types = model_types,
    .blocks = blocks,
    .defaults = defaults,
};
