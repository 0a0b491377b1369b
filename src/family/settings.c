/* Kinds, spellings and common defaults of settings (settings.h). */
#include "family/settings.h"

#include <stddef.h>

#include "base/status.h"

sw_setting_kind sw_setting_kind_of(sw_setting setting)
{
    switch (setting) {
    case SW_SET_ACTIVATION:
    case SW_SET_ROPE_TYPE:
    case SW_SET_ROUTER_SCORES:
    case SW_SET_ROUTER_METHOD:
        return SW_KIND_WORD;
    case SW_SET_ROPE_SHORT:
    case SW_SET_ROPE_LONG:
    case SW_SET_ROPE_LAYERS:
        return SW_KIND_LIST;
    default:
        return SW_KIND_NUMBER;
    }
}

/* Of the keys of one setting the first that the config has with a value is taken. */
const sw_setting_spelling sw_common_setting_spellings[] = {
    {"hidden_act",                                       SW_SET_ACTIVATION        },
    {"hidden_activation",                                SW_SET_ACTIVATION        },
    {"activation_function",                              SW_SET_ACTIVATION        },
    {"rms_norm_eps",                                     SW_SET_NORM_EPS          },
    {"layer_norm_eps",                                   SW_SET_NORM_EPS          },
    {"layer_norm_epsilon",                               SW_SET_NORM_EPS          },
    {"layernorm_epsilon",                                SW_SET_NORM_EPS          },
    {"norm_epsilon",                                     SW_SET_NORM_EPS          },
    {"norm_eps",                                         SW_SET_NORM_EPS          },
    {"use_parallel_residual",                            SW_SET_PARALLEL          },
    {"do_layer_norm_before",                             SW_SET_NORM_FIRST        },
    {"rope_scaling.rope_type",                           SW_SET_ROPE_TYPE         },
    {"rope_scaling.type",                                SW_SET_ROPE_TYPE         },
    {"rope_parameters.rope_type",                        SW_SET_ROPE_TYPE         },
    {"rope_theta",                                       SW_SET_ROPE_THETA        },
    {"rope_parameters.rope_theta",                       SW_SET_ROPE_THETA        },
    {"rotary_emb_base",                                  SW_SET_ROPE_THETA        },
    {"rope_scaling.factor",                              SW_SET_ROPE_FACTOR       },
    {"rope_parameters.factor",                           SW_SET_ROPE_FACTOR       },
    {"rope_scaling.original_max_position_embeddings",    SW_SET_ROPE_ORIGINAL     },
    {"rope_parameters.original_max_position_embeddings", SW_SET_ROPE_ORIGINAL     },
    {"original_max_position_embeddings",                 SW_SET_ROPE_ORIGINAL     },
    {"rope_scaling.low_freq_factor",                     SW_SET_ROPE_LOW          },
    {"rope_parameters.low_freq_factor",                  SW_SET_ROPE_LOW          },
    {"rope_scaling.high_freq_factor",                    SW_SET_ROPE_HIGH         },
    {"rope_parameters.high_freq_factor",                 SW_SET_ROPE_HIGH         },
    {"rope_scaling.beta_fast",                           SW_SET_ROPE_BETA_FAST    },
    {"rope_parameters.beta_fast",                        SW_SET_ROPE_BETA_FAST    },
    {"rope_scaling.beta_slow",                           SW_SET_ROPE_BETA_SLOW    },
    {"rope_parameters.beta_slow",                        SW_SET_ROPE_BETA_SLOW    },
    {"rope_scaling.mscale",                              SW_SET_ROPE_MSCALE       },
    {"rope_parameters.mscale",                           SW_SET_ROPE_MSCALE       },
    {"rope_scaling.mscale_all_dim",                      SW_SET_ROPE_MSCALE_ALL   },
    {"rope_parameters.mscale_all_dim",                   SW_SET_ROPE_MSCALE_ALL   },
    {"rope_scaling.truncate",                            SW_SET_ROPE_TRUNCATE     },
    {"rope_parameters.truncate",                         SW_SET_ROPE_TRUNCATE     },
    {"rope_scaling.attention_factor",                    SW_SET_ROPE_ATTENTION    },
    {"rope_parameters.attention_factor",                 SW_SET_ROPE_ATTENTION    },
    {"rope_scaling.short_factor",                        SW_SET_ROPE_SHORT        },
    {"rope_parameters.short_factor",                     SW_SET_ROPE_SHORT        },
    {"rope_scaling.long_factor",                         SW_SET_ROPE_LONG         },
    {"rope_parameters.long_factor",                      SW_SET_ROPE_LONG         },
    {"rope_interleave",                                  SW_SET_ROPE_PAIRS        },
    {"partial_rotary_factor",                            SW_SET_ROTARY_PART       },
    {"rope_parameters.partial_rotary_factor",            SW_SET_ROTARY_PART       },
    {"rotary_pct",                                       SW_SET_ROTARY_PART       },
    {"rotary_dim",                                       SW_SET_ROTARY_DIM        },
    {"use_sliding_window",                               SW_SET_USE_WINDOW        },
    {"max_window_layers",                                SW_SET_FULL_LAYERS       },
    {"query_pre_attn_scalar",                            SW_SET_QUERY_SCALAR      },
    {"scale_attn_weights",                               SW_SET_SCALES_SCORES     },
    {"scale_attn_by_inverse_layer_idx",                  SW_SET_SCALES_BY_LAYER   },
    {"rope_scaling.llama_4_scaling_beta",                SW_SET_QUERY_GROWTH      },
    {"rope_parameters.llama_4_scaling_beta",             SW_SET_QUERY_GROWTH      },
    {"attn_logit_softcapping",                           SW_SET_ATTENTION_SOFT_CAP},
    {"clip_qkv",                                         SW_SET_CLIP_QKV          },
    {"final_logit_softcapping",                          SW_SET_LOGIT_SOFT_CAP    },
    {"scoring_func",                                     SW_SET_ROUTER_SCORES     },
    {"topk_method",                                      SW_SET_ROUTER_METHOD     },
    {"norm_topk_prob",                                   SW_SET_ROUTER_NORMALISES },
    {"n_group",                                          SW_SET_ROUTER_GROUPS     },
    {"topk_group",                                       SW_SET_ROUTER_GROUPS_KEPT},
    {"routed_scaling_factor",                            SW_SET_ROUTED_SCALE      },
    {"router_aux_loss_coef",                             SW_SET_ROUTER_LOSS       },
    {"output_router_logits",                             SW_SET_ROUTER_TRAINED    },
    {NULL,                                               SW_SET_NONE              },
};

const sw_setting_default sw_common_setting_defaults[] = {
    {SW_SET_ACTIVATION,    0,     "silu"   },
    {SW_SET_ROPE_TYPE,     0,     "default"},
    {SW_SET_ROPE_THETA,    10000, NULL     },
    {SW_SET_NORM_EPS,      1e-6,  NULL     },
    {SW_SET_NORM_FIRST,    1,     NULL     },
    {SW_SET_USE_WINDOW,    1,     NULL     },
    {SW_SET_SCALES_SCORES, 1,     NULL     },
    {SW_SET_ROUTER_SCORES, 0,     "softmax"},
    {SW_SET_ROUTER_METHOD, 0,     "greedy" },
    {SW_SET_NONE,          0,     NULL     },
};
