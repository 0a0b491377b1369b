/*
 * The rules of initialisation (checkpoint/init_scale.h, docs/reference/init.md). Norms begin at the identity
 * of their convention, biases at 0, matrices normal with the config's deviation; a mixer's decays and time
 * steps begin in the range that its papers give.
 */
#include "checkpoint/init_scale.h"

#include <string.h>

#include "base/status.h"
#include "checkpoint/fixed_math.h"
#include "model/pattern.h"

#define USUAL_DEVIATION 0.02

enum { MAX_NAME = 512 };

/* What a family does otherwise than most. */
struct sw_init_family {
    const char *name;
    double deviation;    /* when the config says none; 0: the usual one */
    uint32_t n_residual; /* sums into the residual stream a layer, by whose root the last matrix of each is
                            divided; 0: not at all */
    bool has_zero_norms; /* norms multiply by 1 + weight */
    bool is_by_fan_in;   /* a mixer's matrices are uniform, 1 / sqrt(inputs) wide */
};

static const sw_init_family families[] = {
    {.name = "gemma",         .has_zero_norms = true},
    {.name = "gemma2",        .has_zero_norms = true},
    {.name = "gemma3",        .has_zero_norms = true},
    {.name = "gpt2",          .n_residual = 2       },
    {.name = "gpt_bigcode",   .n_residual = 2       },
    {.name = "mamba",         .deviation = 0.1,       .n_residual = 1, .is_by_fan_in = true},
    {.name = "qwen3_next",   .has_zero_norms = true                        },
    {.name = "starcoder2",.deviation = 0.018042},
};
static const sw_init_family usual = {.name = ""};

/* Parameters of mixers that are no plain matrices, by the end of their name. */
typedef struct ending {
    const char *text;
    sw_init_rule rule;
    bool is_by_fan_in; /* uniform, 1 / sqrt(inputs) wide */
} ending;

static const ending endings[] = {
    {"A_log",          {SW_INIT_LOG_UNIFORM, 1.0, 16.0, 0}, false},
    {".D",             {SW_INIT_CONSTANT, 1.0, 0.0, 0},     false},
    {"dt_bias",        {SW_INIT_TIME_STEP, 0.001, 0.1, 0},  false},
    {"dt_proj.bias",   {SW_INIT_TIME_STEP, 0.001, 0.1, 0},  false},
    {"dt_proj.weight", {SW_INIT_UNIFORM, 0.0, 0.0, 0},      true },
    {"conv1d.weight",  {SW_INIT_UNIFORM, 0.0, 0.0, 0},      true },
};

static bool ends_with(const char *text, size_t length, const char *tail)
{
    size_t n = strlen(tail);
    return length >= n && memcmp(text + length - n, tail, n) == 0;
}

sw_init_scale sw_init_scale_of(const sw_config *config, double deviation, double factor)
{
    sw_init_scale scale = {.config = config, .family = &usual, .residual = 1.0, .factor = factor};
    int64_t n_layers = config->attributes.value[SW_ATTR_LAYERS];

    for (size_t i = 0; i < SW_COUNT(families); i++) {
        if (strcmp(families[i].name, config->family->name) == 0)
            scale.family = &families[i];
    }
    if (deviation < 0.0)
        deviation = scale.family->deviation > 0.0 ? scale.family->deviation : USUAL_DEVIATION;
    scale.deviation = deviation * factor;
    if (scale.family->n_residual > 0 && n_layers > 0)
        scale.residual = 1.0 / sw_fixed_sqrt((double)n_layers * scale.family->n_residual);
    return scale;
}

/* The row that the table has for a name, as it holds in its layer; NULL when there is none. */
static const sw_family_row *row_of(const sw_config *config, const char *name, size_t length)
{
    char text[MAX_NAME];
    char pattern[MAX_NAME];
    int32_t counts[2];

    if (length >= sizeof text)
        return NULL;
    memcpy(text, name, length);
    text[length] = '\0';
    uint32_t pattern_length = sw_make_pattern(text, pattern, counts);
    const sw_family_row *row = sw_family_match(config->family, pattern, pattern_length, NULL);
    if (row == NULL)
        return NULL;
    return sw_family_row_for(config->family, row, &config->attributes, counts[0] < 0 ? 0 : counts[0]);
}

/* Uniform with the width that the number of inputs gives: all dims but the first. */
static sw_init_rule by_fan_in(const sw_shape *shape, double factor)
{
    uint64_t n_inputs = shape->n_dims < 2 || shape->dims[0] == 0 ? 1 : shape->elems / shape->dims[0];

    return (sw_init_rule){.kind = SW_INIT_UNIFORM,
                          .a = n_inputs == 0 ? 0.0 : factor / sw_fixed_sqrt((double)n_inputs)};
}

static sw_init_rule rule_of_ending(const sw_init_scale *scale, const ending *e, const sw_shape *shape)
{
    if (e->is_by_fan_in)
        return by_fan_in(shape, scale->factor);
    if (e->rule.kind == SW_INIT_LOG_UNIFORM && shape->n_dims == 2) /* a decay for each state (Mamba) */
        return (sw_init_rule){.kind = SW_INIT_LOG_COUNT, .period = shape->dims[1]};
    return e->rule;
}

/* Does a matrix write into the residual stream? */
static bool is_last_of_block(const sw_family_row *row)
{
    if (row == NULL)
        return false;
    return row->role == SW_ROLE_ROWWISE ||
           ((row->flags & SW_ROW_MIXER) != 0 && ends_with(row->name, strlen(row->name), "out_proj.weight"));
}

sw_init_rule sw_init_rule_of(const sw_init_scale *scale, const char *name, size_t length,
                             const sw_shape *shape)
{
    const sw_family_row *row = row_of(scale->config, name, length);
    bool is_mixer = row != NULL && (row->flags & SW_ROW_MIXER) != 0;

    for (size_t i = 0; is_mixer && i < SW_COUNT(endings); i++) {
        if (ends_with(name, length, endings[i].text))
            return rule_of_ending(scale, &endings[i], shape);
    }
    if (ends_with(name, length, "bias"))
        return (sw_init_rule){.kind = SW_INIT_CONSTANT, .a = 0.0};
    if (row != NULL && row->role == SW_ROLE_NORM) /* the norm inside a mixer multiplies by its weight */
        return (sw_init_rule){.kind = SW_INIT_CONSTANT,
                              .a = scale->family->has_zero_norms && !is_mixer ? 0.0 : 1.0};

    sw_init_rule rule = {.kind = SW_INIT_NORMAL, .a = scale->deviation};
    if (is_mixer && scale->family->is_by_fan_in)
        rule = by_fan_in(shape, scale->factor);
    if (is_last_of_block(row))
        rule.a *= scale->residual;
    return rule;
}
