/*
 * Role rules of the seed document param_role and their matching. The table below is its list of default rules
 * in its order: the order is the meaning (specific before general; column names before ".bias", ".bias"
 * before row names, so that a column bias follows its weight and a row bias stays whole).
 */
#include "plan/role.h"

#include <string.h>

#include "base/status.h"

#define PATTERNS(...)                                                                                        \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

// clang-format off
static const sw_role_rule default_rules[] = {
    { PATTERNS("embed_tokens.weight", "wte.weight", "tok_embeddings.weight",
               "embed_in.weight", "word_embeddings.weight"),                 SW_ROLE_EMBED,         SW_MATCH_PART  },
    { PATTERNS("lm_head.weight", "embed_out.weight", "output_layer.weight"), SW_ROLE_LM_HEAD,       SW_MATCH_PART  },
    { PATTERNS("shared_expert", "shared_experts"),                           SW_ROLE_SHARED_EXPERT, SW_MATCH_EXACT },
    { PATTERNS("experts"),                                                   SW_ROLE_MOE_EXPERT,    SW_MATCH_PART  },
    { PATTERNS(".mlp.gate.", ".router.", "moe_gate", "mlp.router"),          SW_ROLE_MOE_GATE,      SW_MATCH_PART  },
    { PATTERNS("fused_qkv", "linear_qkv", "qkv_proj", "query_key_value"),    SW_ROLE_FUSED_QKV,     SW_MATCH_PART  },
    { PATTERNS("gate_up_proj", "fused_gate_up", ".w13."),                    SW_ROLE_FUSED_GATE_UP, SW_MATCH_PART  },
    { PATTERNS("a_log", "dt_bias", "gated_delta"),                           SW_ROLE_SPECIAL,       SW_MATCH_PART  },
    { PATTERNS("norm", "layernorm", "rmsnorm", "ln_"),                       SW_ROLE_NORM,          SW_MATCH_PART  },
    { PATTERNS("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj",
               ".w1.", ".w3."),                                              SW_ROLE_COLWISE,       SW_MATCH_PART  },
    { PATTERNS(".bias"),                                                     SW_ROLE_BIAS,          SW_MATCH_PART  },
    { PATTERNS("o_proj", "down_proj", ".w2."),                               SW_ROLE_ROWWISE,       SW_MATCH_PART  },
};

static const char *const role_names[] = {
    [SW_ROLE_SKIP] = "skip",
    [SW_ROLE_COLWISE] = "colwise",
    [SW_ROLE_ROWWISE] = "rowwise",
    [SW_ROLE_NORM] = "norm",
    [SW_ROLE_EMBED] = "embed",
    [SW_ROLE_LM_HEAD] = "lm_head",
    [SW_ROLE_MOE_GATE] = "moe_gate",
    [SW_ROLE_MOE_EXPERT] = "moe_expert",
    [SW_ROLE_SHARED_EXPERT] = "shared_expert",
    [SW_ROLE_FUSED_QKV] = "fused_qkv",
    [SW_ROLE_FUSED_GATE_UP] = "fused_gate_up",
    [SW_ROLE_BIAS] = "bias",
    [SW_ROLE_REPLICATED] = "replicated",
    [SW_ROLE_SPECIAL] = "special",
};

static const char *const mode_names[] = {
    [SW_MATCH_WHOLE] = "whole",
    [SW_MATCH_EXACT] = "segment_exact",
    [SW_MATCH_PART] = "segment_substring",
};
// clang-format on

_Static_assert(SW_COUNT(role_names) == SW_ROLE_COUNT_, "a name for every role");
_Static_assert(SW_COUNT(mode_names) == SW_MATCH_COUNT_, "a name for every mode");

const sw_role_rules sw_default_role_rules = {default_rules, SW_COUNT(default_rules)};

const char *sw_role_name(sw_role role)
{
    return (unsigned)role < SW_ROLE_COUNT_ ? role_names[role] : NULL;
}

const char *sw_role_handler_reason(sw_role role)
{
    return role == SW_ROLE_SPECIAL ? "mixers are kept whole over tp" : NULL;
}

const char *sw_match_mode_name(sw_match_mode mode)
{
    return (unsigned)mode < SW_MATCH_COUNT_ ? mode_names[mode] : NULL;
}

bool sw_role_parse(const char *word, sw_role *out)
{
    for (int i = 0; i < SW_ROLE_COUNT_; i++) {
        if (strcmp(word, role_names[i]) == 0) {
            *out = (sw_role)i;
            return true;
        }
    }
    return false;
}

/* Is some dot-separated segment of `name` equal to `pattern`, or does it contain it? */
static bool segment_matches(const char *name, const char *pattern, sw_match_mode mode)
{
    size_t length = strlen(pattern);

    for (const char *hit = strstr(name, pattern); hit != NULL; hit = strstr(hit + 1, pattern)) {
        /* A pattern without a dot that was found lies inside one segment. */
        if (mode == SW_MATCH_PART)
            return true;
        bool starts = hit == name || hit[-1] == '.';
        bool ends = hit[length] == '\0' || hit[length] == '.';
        if (starts && ends)
            return true;
    }
    return false;
}

bool sw_role_pattern_matches(const char *name_lower, const char *pattern, sw_match_mode mode)
{
    if (mode == SW_MATCH_WHOLE || strchr(pattern, '.') != NULL)
        return strstr(name_lower, pattern) != NULL;
    return segment_matches(name_lower, pattern, mode);
}

int sw_role_first_match(const sw_role_rules *rules, const char *name_lower, const char **pattern)
{
    for (size_t i = 0; i < rules->n_rules; i++) {
        const sw_role_rule *rule = &rules->rules[i];
        for (const char *const *p = rule->patterns; *p != NULL; p++) {
            if (sw_role_pattern_matches(name_lower, *p, rule->mode)) {
                *pattern = *p;
                return (int)i;
            }
        }
    }
    return -1;
}

bool sw_role_explicit_matches(const char *name, const char *pattern)
{
    return strcasestr(name, pattern) != NULL;
}

int sw_role_first_explicit(const sw_role_rules *rules, const char *name, const char **pattern)
{
    for (size_t i = 0; rules != NULL && i < rules->n_rules; i++) {
        for (const char *const *p = rules->rules[i].patterns; *p != NULL; p++) {
            if (!sw_role_explicit_matches(name, *p))
                continue;
            *pattern = *p;
            return (int)i;
        }
    }
    return -1;
}

/* The reference's table: the first pattern that the lower-cased name holds. */
static const char gated_delta[] = "gated_delta_tp_shard";
static const struct {
    const char *pattern;
    const char *handler;
} special_handlers[] = {
    {"gated_delta", gated_delta},
    {"a_log",       gated_delta},
    {"dt_bias",     gated_delta},
};

const char sw_role_default_handler[] = "default";

const char *sw_role_handler(sw_role role, const char *fqn)
{
    for (size_t i = 0; role == SW_ROLE_SPECIAL && i < SW_COUNT(special_handlers); i++) {
        if (sw_role_explicit_matches(fqn, special_handlers[i].pattern))
            return special_handlers[i].handler;
    }
    return role == SW_ROLE_SPECIAL ? sw_role_default_handler : NULL;
}

bool sw_role_is_row_like(const char *path)
{
    return sw_role_explicit_matches(path, "w2") || sw_role_explicit_matches(path, "down_proj") ||
           sw_role_explicit_matches(path, "down.");
}
