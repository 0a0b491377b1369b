/*
 * What a config says beside sizes: fractions, words and short lists, which only running a model needs. As
 * with attributes (attributes.h), one table resolves the spellings and a family may add its own before it.
 * A value keeps the key that gave it, so that a model that cannot run is refused by key and value.
 */
#ifndef SW_FAMILY_SETTINGS_H
#define SW_FAMILY_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sw_setting {
    SW_SET_NONE = 0,
    SW_SET_ACTIVATION, /* a word */
    SW_SET_NORM_EPS,
    SW_SET_PARALLEL,   /* attention and MLP read the same hidden states */
    SW_SET_NORM_FIRST, /* 0: norms stand behind the sums (OPT) */
    SW_SET_ROPE_TYPE,  /* a word */
    SW_SET_ROPE_THETA,
    SW_SET_ROPE_FACTOR,
    SW_SET_ROPE_ORIGINAL, /* positions before the scaling */
    SW_SET_ROPE_LOW,
    SW_SET_ROPE_HIGH,
    SW_SET_ROPE_BETA_FAST,
    SW_SET_ROPE_BETA_SLOW,
    SW_SET_ROPE_MSCALE,
    SW_SET_ROPE_MSCALE_ALL,
    SW_SET_ROPE_TRUNCATE,
    SW_SET_ROPE_ATTENTION, /* the attention factor */
    SW_SET_ROPE_SHORT,     /* a list */
    SW_SET_ROPE_LONG,      /* a list */
    SW_SET_ROPE_PAIRS,     /* 1: neighbours turn together */
    SW_SET_ROTARY_PART,    /* of a head, 0.25 */
    SW_SET_ROTARY_DIM,     /* the same in elements */
    SW_SET_ROPE_LAYERS,    /* a list: 0 for a layer without rotary embedding */
    SW_SET_NO_ROPE_PERIOD, /* every so many layers one has no rotary embedding (SmolLM3) */
    SW_SET_ALIBI,
    SW_SET_USE_WINDOW,   /* 0: a width is given and not used */
    SW_SET_FULL_LAYERS,  /* layers before this one have no window */
    SW_SET_QUERY_SCALAR, /* attention's scale is one over its root */
    SW_SET_ATTENTION_SCALE,
    SW_SET_SCALES_SCORES,   /* 0: attention's scale is 1 (GPT-2) */
    SW_SET_SCALES_BY_LAYER, /* it is divided by the number of the layer too, from 1 on (GPT-2) */
    SW_SET_QUERY_GROWTH,    /* queries grow with their position (Ministral 3) */
    SW_SET_ATTENTION_SOFT_CAP,
    SW_SET_CLIP_QKV,
    SW_SET_EMBED_SCALE,
    SW_SET_RESIDUAL_SCALE,
    SW_SET_RESIDUAL_OF_NORM, /* 1: what a norm gives is what attention and MLP are added to (Bloom) */
    SW_SET_DEPTH_SCALE,      /* the residual's scale times the root of the layers (MiniCPM) */
    SW_SET_LOGIT_SCALE,
    SW_SET_LOGIT_DIVISOR,
    SW_SET_LOGIT_BASE, /* hidden over this divides the logits (MiniCPM) */
    SW_SET_LOGIT_SOFT_CAP,
    SW_SET_ROUTER_SCORES, /* a word: softmax, sigmoid; softmax_of_chosen, which no config says */
    SW_SET_ROUTER_METHOD, /* a word: greedy, group_limited_greedy, noaux_tc */
    SW_SET_ROUTER_NORMALISES,
    SW_SET_ROUTER_GROUPS,
    SW_SET_ROUTER_GROUPS_KEPT,
    SW_SET_ROUTED_SCALE,
    SW_SET_ROUTER_LOSS,    /* the factor of the auxiliary loss */
    SW_SET_ROUTER_TRAINED, /* 1: it is part of the loss */
    SW_SET_GLU_LIMIT,      /* of a clamped glu (gpt-oss) */
    SW_SET_COUNT_,
} sw_setting;

typedef enum sw_setting_kind { SW_KIND_NUMBER = 0, SW_KIND_WORD, SW_KIND_LIST } sw_setting_kind;

sw_setting_kind sw_setting_kind_of(sw_setting setting);

typedef struct sw_setting_value {
    const char *key;  /* of the config; NULL: a class default */
    const char *text; /* the word, or the value as written, for messages */
    double number;    /* booleans are 0 and 1 */
    const double *list;
    uint32_t n_list;
    bool is_set;
    bool is_odd;  /* given, but of another kind */
    bool is_null; /* a number that a key says to be null: not what the class assumes */
} sw_setting_value;

typedef struct sw_settings {
    sw_setting_value value[SW_SET_COUNT_];
} sw_settings;

static inline double sw_setting_number(const sw_settings *settings, sw_setting setting, double otherwise)
{
    const sw_setting_value *value = &settings->value[setting];
    return value->is_set && !value->is_odd ? value->number : otherwise;
}

/* A config key and what it sets; dotted keys look into nested objects. */
typedef struct sw_setting_spelling {
    const char *key;
    sw_setting setting;
} sw_setting_spelling;

/* What a class assumes when no key says it: a number, or a word where one is given. */
typedef struct sw_setting_default {
    sw_setting setting;
    double number;
    const char *word;
} sw_setting_default;

extern const sw_setting_spelling sw_common_setting_spellings[]; /* ended by a NULL key */
extern const sw_setting_default sw_common_setting_defaults[];   /* ended by SW_SET_NONE */

#endif
