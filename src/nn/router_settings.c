/* What a config says of its routers (nn/router.h). */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "nn/router.h"
#include "nn/settings.h"

static const struct scores_word {
    const char *word;
    sw_router_scores scores;
} scores_words[] = {
    {"softmax",           SW_SCORES_SOFTMAX  },
    {"sigmoid",           SW_SCORES_SIGMOID  },
    {"softmax_of_chosen", SW_SCORES_OF_CHOSEN},
};

/* How experts are chosen: by how many of its best a group is judged; 0: without groups. */
static const struct method_word {
    const char *word;
    uint64_t group_best;
} method_words[] = {
    {"greedy",               0},
    {"group_limited_greedy", 1},
    {"noaux_tc",             2},
};

static sw_status read_scores(sw_router_settings *out, const sw_config *config, sw_error *err)
{
    const char *word = config->settings.value[SW_SET_ROUTER_SCORES].text;

    for (size_t i = 0; i < SW_COUNT(scores_words); i++) {
        if (strcmp(scores_words[i].word, word) == 0) {
            out->scores = scores_words[i].scores;
            return SW_OK;
        }
    }
    return sw_setting_refuse(config, SW_SET_ROUTER_SCORES, "runnable: softmax, sigmoid", err);
}

static sw_status read_method(sw_router_settings *out, const sw_config *config, sw_error *err)
{
    const char *word = config->settings.value[SW_SET_ROUTER_METHOD].text;

    for (size_t i = 0; i < SW_COUNT(method_words); i++) {
        if (strcmp(method_words[i].word, word) == 0) {
            out->group_best = method_words[i].group_best;
            return SW_OK;
        }
    }
    return sw_setting_refuse(config, SW_SET_ROUTER_METHOD, "runnable: greedy, group_limited_greedy, noaux_tc",
                             err);
}

/* A number of groups; 1 when the config does not say. */
static sw_status read_count(const sw_config *config, sw_setting setting, uint64_t most, uint64_t *out,
                            sw_error *err)
{
    double n = sw_setting_number(&config->settings, setting, 1);

    if (!(n >= 1 && n <= (double)most))
        return sw_setting_refuse(config, setting, "correct the config", err);
    *out = (uint64_t)n;
    return SW_OK;
}

/* Groups divide the experts, and those that are kept have enough of them. */
static sw_status read_groups(sw_router_settings *out, const sw_config *config, sw_error *err)
{
    SW_TRY(read_count(config, SW_SET_ROUTER_GROUPS, out->n_experts, &out->n_groups, err));
    SW_TRY(read_count(config, SW_SET_ROUTER_GROUPS_KEPT, out->n_groups, &out->n_kept, err));
    if (out->n_groups == 1)
        return SW_OK;
    uint64_t in_group = out->n_experts / out->n_groups;
    if (out->n_experts % out->n_groups == 0 && in_group >= out->group_best &&
        out->n_kept * in_group >= out->per_token)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "correct the config",
                   "config.json: %" PRIu64 " of %" PRIu64 " experts cannot be chosen from %" PRIu64
                   " of %" PRIu64 " groups",
                   out->per_token, out->n_experts, out->n_kept, out->n_groups);
}

/* The factor of the classes of transformers, for a config that has the loss without one. */
static const double usual_loss = 0.001;

sw_status sw_router_settings_read(sw_router_settings *out, const sw_config *config, sw_error *err)
{
    const sw_attributes *a = &config->attributes;
    const sw_settings *s = &config->settings;

    bool has_loss = sw_setting_number(s, SW_SET_ROUTER_TRAINED, 0) != 0;
    *out = (sw_router_settings){.scale = sw_setting_number(s, SW_SET_ROUTED_SCALE, 1),
                                .loss = has_loss ? sw_setting_number(s, SW_SET_ROUTER_LOSS, usual_loss) : 0,
                                .normalises = sw_setting_number(s, SW_SET_ROUTER_NORMALISES, 0) != 0};
    if (!a->is_set[SW_ATTR_EXPERTS] || a->value[SW_ATTR_EXPERTS] < 1)
        return SW_OK;
    SW_TRY(sw_settings_size(config, SW_ATTR_EXPERTS, &out->n_experts, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_EXPERTS_PER_TOKEN, &out->per_token, err));
    if (out->per_token > out->n_experts)
        return SW_FAIL(err, SW_E_FORMAT, "correct the config",
                       "config.json: %" PRIu64 " experts a token of %" PRIu64, out->per_token,
                       out->n_experts);
    SW_TRY(read_scores(out, config, err));
    SW_TRY(read_method(out, config, err));
    /* DeepSeek-V2 has both: its own code then leaves out the scale, its class in transformers the sum. */
    if (out->scores == SW_SCORES_SOFTMAX && out->normalises && out->scale != 1)
        return sw_setting_refuse(config, SW_SET_ROUTER_NORMALISES,
                                 "runnable: false beside a routed_scaling_factor, or that factor 1", err);
    return out->group_best == 0 ? SW_OK : read_groups(out, config, err);
}
