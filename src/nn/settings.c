/* From a config to the numbers that a net computes with (nn/settings.h). */
#include "nn/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "io/tensor_list.h"
#include "kernel/scalar.h"
#include "nn/rotary.h"

enum { MAX_OF_HEADS = 65536 }; /* and of the elements of one */

static const struct activation_word {
    const char *word;
    sw_activation activation;
} activations[] = {
    {"silu",              SW_ACT_SILU     },
    {"swish",             SW_ACT_SILU     },
    {"gelu",              SW_ACT_GELU     },
    {"gelu_python",       SW_ACT_GELU     },
    {"gelu_new",          SW_ACT_GELU_TANH},
    {"gelu_fast",         SW_ACT_GELU_TANH},
    {"gelu_pytorch_tanh", SW_ACT_GELU_TANH},
    {"relu",              SW_ACT_RELU     },
};

sw_status sw_setting_refuse(const sw_config *config, sw_setting setting, const char *help, sw_error *err)
{
    const sw_setting_value *value = &config->settings.value[setting];

    return SW_FAIL(err, SW_E_FORMAT, help, "config.json: key \"%s\" is \"%s\", which cannot be run",
                   value->key == NULL ? "?" : value->key, value->text == NULL ? "?" : value->text);
}

/* The key that usually gives an attribute. */
static const char *key_of(sw_attr attr)
{
    for (const sw_spelling *spelling = sw_common_spellings; spelling->key != NULL; spelling++) {
        if (spelling->attr == attr)
            return spelling->key;
    }
    return sw_attr_name(attr);
}

/* The largest that a size may be. */
static int64_t most_of(sw_attr attr)
{
    switch (attr) {
    case SW_ATTR_LAYERS:
        return SW_MAX_TENSORS;
    case SW_ATTR_HEADS:
    case SW_ATTR_KV_HEADS:
    case SW_ATTR_HEAD_DIM:
    case SW_ATTR_QK_NOPE_DIM:
    case SW_ATTR_QK_ROPE_DIM:
    case SW_ATTR_V_HEAD_DIM:
        return MAX_OF_HEADS;
    default:
        return INT32_MAX;
    }
}

sw_status sw_settings_size(const sw_config *config, sw_attr attr, uint64_t *out, sw_error *err)
{
    const sw_attributes *a = &config->attributes;

    if (!a->is_set[attr])
        return SW_FAIL(err, SW_E_FORMAT, "add it to the config", "config.json: key \"%s\" is missing",
                       key_of(attr));
    if (a->value[attr] < 1 || a->value[attr] > most_of(attr))
        return SW_FAIL(err, SW_E_FORMAT, "correct the config",
                       "config.json: key \"%s\" is %" PRId64 ", which cannot be run", key_of(attr),
                       a->value[attr]);
    *out = (uint64_t)a->value[attr];
    return SW_OK;
}

static sw_status read_sizes(sw_net_settings *out, const sw_config *config, sw_error *err)
{
    const sw_attributes *a = &config->attributes;
    uint64_t n_layers = 0;

    SW_TRY(sw_settings_size(config, SW_ATTR_LAYERS, &n_layers, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_HIDDEN, &out->hidden, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_HEADS, &out->heads, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_KV_HEADS, &out->kv_heads, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_HEAD_DIM, &out->head_dim, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_VOCAB, &out->vocab, err));
    if (out->heads % out->kv_heads != 0)
        return SW_FAIL(err, SW_E_FORMAT, "correct the config",
                       "config.json: %" PRIu64 " heads are no multiple of %" PRIu64 " key/value heads",
                       out->heads, out->kv_heads);
    out->n_layers = (uint32_t)n_layers;
    out->n_positions = a->is_set[SW_ATTR_POSITIONS] && a->value[SW_ATTR_POSITIONS] > 0
                           ? (uint64_t)a->value[SW_ATTR_POSITIONS]
                           : 0;
    out->is_tied = a->is_set[SW_ATTR_TIED] && a->value[SW_ATTR_TIED] != 0;
    return SW_OK;
}

static sw_status read_latent(sw_net_settings *out, const sw_config *config, sw_error *err)
{
    const sw_attributes *a = &config->attributes;

    if (!a->is_set[SW_ATTR_KV_LORA_RANK] || a->value[SW_ATTR_KV_LORA_RANK] < 1)
        return SW_OK;
    SW_TRY(sw_settings_size(config, SW_ATTR_QK_NOPE_DIM, &out->plain_dim, err));
    SW_TRY(sw_settings_size(config, SW_ATTR_QK_ROPE_DIM, &out->turned_dim, err));
    return sw_settings_size(config, SW_ATTR_V_HEAD_DIM, &out->value_dim, err);
}

static sw_status read_activation(sw_net_settings *out, const sw_config *config, sw_error *err)
{
    const char *word = config->settings.value[SW_SET_ACTIVATION].text;
    const sw_setting_default *entry = out->decoder->defaults;

    for (; out->decoder->is_activation_kept && entry->setting != SW_SET_NONE; entry++) {
        if (entry->setting == SW_SET_ACTIVATION)
            word = entry->word;
    }
    for (size_t i = 0; i < SW_COUNT(activations); i++) {
        if (strcmp(activations[i].word, word) == 0) {
            out->activation = activations[i].activation;
            return SW_OK;
        }
    }
    return sw_setting_refuse(config, SW_SET_ACTIVATION,
                             "runnable: silu, gelu, gelu_new, gelu_pytorch_tanh, relu", err);
}

/* DeepSeek scales scores by the square of what yarn scales cosines and sines by. */
static double scale_of_latent(const sw_net_settings *out, const sw_settings *s)
{
    double mscale = sw_yarn_scale(sw_setting_number(s, SW_SET_ROPE_FACTOR, 1),
                                  sw_setting_number(s, SW_SET_ROPE_MSCALE_ALL, 0));

    return mscale * mscale / sw_square_root((double)(out->plain_dim + out->turned_dim));
}

static double scale_of_attention(const sw_net_settings *out, const sw_settings *s)
{
    double scalar = sw_setting_number(s, SW_SET_QUERY_SCALAR, (double)out->head_dim);

    if (out->turned_dim > 0)
        return scale_of_latent(out, s);
    if (sw_setting_number(s, SW_SET_SCALES_SCORES, 1) == 0)
        return 1;
    return sw_setting_number(s, SW_SET_ATTENTION_SCALE, 1 / sw_square_root(scalar));
}

/* Factors of hidden states and logits. */
static void read_factors(sw_net_settings *out, const sw_settings *s)
{
    double hidden = (double)out->hidden;
    double embed = out->decoder->scales_embedding ? sw_square_root(hidden) : 1;

    out->attention_scale = scale_of_attention(out, s);
    out->scales_by_layer = sw_setting_number(s, SW_SET_SCALES_BY_LAYER, 0) != 0;
    out->attention_soft_cap = sw_setting_number(s, SW_SET_ATTENTION_SOFT_CAP, 0);
    out->clip_qkv = sw_setting_number(s, SW_SET_CLIP_QKV, 0);
    out->embed_scale = sw_setting_number(s, SW_SET_EMBED_SCALE, embed);
    out->residual_scale = sw_setting_number(s, SW_SET_RESIDUAL_SCALE, 1);
    if (s->value[SW_SET_DEPTH_SCALE].is_set)
        out->residual_scale = s->value[SW_SET_DEPTH_SCALE].number / sw_square_root(out->n_layers);
    out->logit_scale = sw_setting_number(s, SW_SET_LOGIT_SCALE, 1) /
                       sw_setting_number(s, SW_SET_LOGIT_DIVISOR, 1) *
                       (sw_setting_number(s, SW_SET_LOGIT_BASE, hidden) / hidden);
    out->logit_soft_cap = sw_setting_number(s, SW_SET_LOGIT_SOFT_CAP, 0);
}

static sw_status check_kinds(const sw_config *config, sw_error *err)
{
    for (int i = 0; i < SW_SET_COUNT_; i++) {
        if (config->settings.value[i].is_odd)
            return sw_setting_refuse(config, (sw_setting)i,
                                     "correct the config: a value of another kind is wanted", err);
    }
    if (config->settings.value[SW_SET_NORM_EPS].is_set &&
        !(config->settings.value[SW_SET_NORM_EPS].number >= 0))
        return sw_setting_refuse(config, SW_SET_NORM_EPS, "correct the config: it is not below 0", err);
    if (config->settings.value[SW_SET_QUERY_SCALAR].is_set &&
        !(config->settings.value[SW_SET_QUERY_SCALAR].number > 0))
        return sw_setting_refuse(config, SW_SET_QUERY_SCALAR, "correct the config: it is above 0", err);
    if (config->settings.value[SW_SET_CLIP_QKV].is_set &&
        !(config->settings.value[SW_SET_CLIP_QKV].number > 0))
        return sw_setting_refuse(config, SW_SET_CLIP_QKV, "correct the config: it is above 0", err);
    return SW_OK;
}

/* What a class of transformers can do and the decoder here cannot: 0 is without it. */
static const sw_setting not_runnable[] = {SW_SET_QUERY_GROWTH};

/* What a whole model may have and no decoder here can do. */
static sw_status check_features(const sw_config *config, sw_error *err)
{
    const sw_attributes *a = &config->attributes;

    for (size_t i = 0; i < SW_COUNT(not_runnable); i++) {
        if (sw_setting_number(&config->settings, not_runnable[i], 0) != 0)
            return sw_setting_refuse(config, not_runnable[i], "only models without it can be run", err);
    }
    if (config->quantization.method != SW_QUANTIZATION_NONE)
        return SW_FAIL(err, SW_E_FORMAT, "dequantise the checkpoint first",
                       "config.json: weights quantised by \"%s\" cannot be run", config->quantization.name);
    for (uint32_t i = 0; i < a->n_layer_kinds; i++) {
        if (a->layer_kinds[i] == SW_LAYER_LINEAR)
            return SW_FAIL(err, SW_E_FORMAT, "only layers with attention can be run",
                           "config.json: layer %u is a state-space or linear-attention mixer", i);
        if (a->layer_kinds[i] == SW_LAYER_WINDOW && config->family->decoder->window == SW_WINDOW_NEVER)
            return SW_FAIL(err, SW_E_FORMAT, "this form of the family can be planned but not run",
                           "config.json: layer %u looks through a window, and family %s runs without", i,
                           config->family->name);
    }
    return SW_OK;
}

sw_status sw_net_settings_read(sw_net_settings *out, const sw_model *model, sw_error *err)
{
    const sw_config *config = &model->config;
    const sw_settings *s = &config->settings;

    if (model->family == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "see the list of families that run in docs/reference/families.md",
                       "%s: architecture \"%s\" is of no known family and cannot be run", model->path,
                       config->architecture);
    if (model->family->decoder == NULL || config->is_family_nested)
        return SW_FAIL(err, SW_E_FORMAT, "see the list of families that run in docs/reference/families.md",
                       "%s: family %s can be planned but not run", model->path, model->family->name);
    *out = (sw_net_settings){.decoder = model->family->decoder};
    SW_TRY(read_sizes(out, config, err));
    SW_TRY(read_latent(out, config, err));
    SW_TRY(check_kinds(config, err));
    SW_TRY(check_features(config, err));
    SW_TRY(read_activation(out, config, err));
    SW_TRY(sw_router_settings_read(&out->router, config, err));
    read_factors(out, s);
    out->eps = sw_setting_number(s, SW_SET_NORM_EPS, 0);
    out->is_parallel = sw_setting_number(s, SW_SET_PARALLEL, 0) != 0;
    out->is_norm_behind = sw_setting_number(s, SW_SET_NORM_FIRST, 1) == 0;
    out->is_sum_of_norm = sw_setting_number(s, SW_SET_RESIDUAL_OF_NORM, 0) != 0;
    out->is_interleaved = sw_setting_number(s, SW_SET_ROPE_PAIRS, out->decoder->is_interleaved ? 1 : 0) != 0;
    out->glu_limit = sw_setting_number(s, SW_SET_GLU_LIMIT, 0);
    out->has_alibi = sw_setting_number(s, SW_SET_ALIBI, 0) != 0;
    if (out->n_layers > model->n_params)
        return SW_FAIL(err, SW_E_FORMAT, "compare the checkpoint with its config.json",
                       "%s: %u layers, and only %zu tensors", model->path, out->n_layers, model->n_params);
    return SW_OK;
}

static bool is_windowed(const sw_config *config, uint32_t layer)
{
    const sw_attributes *a = &config->attributes;
    sw_window_rule rule = config->family->decoder->window;

    if (rule != SW_WINDOW_NEVER && a->layer_kinds != NULL && layer < a->n_layer_kinds)
        return a->layer_kinds[layer] == SW_LAYER_WINDOW;
    switch (rule) {
    case SW_WINDOW_ALL:
        return true;
    case SW_WINDOW_EVEN:
        return layer % 2 == 0;
    case SW_WINDOW_UNTURNED:
        return !sw_layer_is_turned(config, layer);
    case SW_WINDOW_LATE:
        return layer >= sw_setting_number(&config->settings, SW_SET_FULL_LAYERS, 0);
    case SW_WINDOW_NEVER:
        break;
    }
    return false;
}

uint32_t sw_layer_window(const sw_config *config, uint32_t layer)
{
    const sw_attributes *a = &config->attributes;
    bool is_used = a->is_set[SW_ATTR_WINDOW] && a->value[SW_ATTR_WINDOW] > 0 &&
                   a->value[SW_ATTR_WINDOW] <= INT32_MAX &&
                   sw_setting_number(&config->settings, SW_SET_USE_WINDOW, 1) != 0;

    return is_used && is_windowed(config, layer) ? (uint32_t)a->value[SW_ATTR_WINDOW] : 0;
}

bool sw_layer_is_turned(const sw_config *config, uint32_t layer)
{
    double period = sw_setting_number(&config->settings, SW_SET_NO_ROPE_PERIOD, 0);
    const sw_setting_value *list = &config->settings.value[SW_SET_ROPE_LAYERS];

    if (!config->family->decoder->has_rotary || sw_setting_number(&config->settings, SW_SET_ALIBI, 0) != 0)
        return false;
    if (layer < list->n_list)
        return list->list[layer] != 0;
    return period < 1 || period > UINT32_MAX || (layer + 1) % (uint32_t)period != 0;
}
