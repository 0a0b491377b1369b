/*
 * Frequencies of the rotary embedding, one function a kind of scaling, and their tables. Frequencies are
 * rounded to F32, as those that the models were trained with.
 */
#include "nn/rotary.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/scalar.h"
#include "nn/settings.h"

static const double pi = 3.14159265358979323846;

/* Frequencies that are being made. */
typedef struct turning {
    const sw_config *config;
    const sw_settings *settings;
    sw_rotary_sizes sizes;
    float *frequencies; /* half of the width */
    double scale;       /* of cosines and sines */
    bool is_long;       /* the tables are for sequences beyond the limit of longrope */
    sw_error *err;
} turning;

static double number(const turning *t, sw_setting setting, double otherwise)
{
    return sw_setting_number(t->settings, setting, otherwise);
}

/* A number above 0 that a kind of scaling cannot do without. */
static sw_status need(const turning *t, sw_setting setting, const char *name, double *out)
{
    *out = number(t, setting, 0);
    if (*out > 0)
        return SW_OK;
    return SW_FAIL(t->err, SW_E_FORMAT, "add it to rope_scaling",
                   "config.json: rope type \"%s\" needs %s above 0",
                   t->settings->value[SW_SET_ROPE_TYPE].text, name);
}

static void fill_plain(const turning *t)
{
    double theta = number(t, SW_SET_ROPE_THETA, 10000);

    for (uint64_t j = 0; j < t->sizes.width / 2; j++) {
        float root = (float)sw_power(theta, (double)((float)(2 * j) / (float)t->sizes.width));
        t->frequencies[j] = 1.0F / root;
    }
}

static sw_status make_default(turning *t)
{
    fill_plain(t);
    return SW_OK;
}

static sw_status make_linear(turning *t)
{
    double factor = 0;

    SW_TRY(need(t, SW_SET_ROPE_FACTOR, "factor", &factor));
    fill_plain(t);
    for (uint64_t j = 0; j < t->sizes.width / 2; j++)
        t->frequencies[j] = (float)(t->frequencies[j] / factor);
    return SW_OK;
}

/* Within the positions that it was trained for it is the plain one; beyond, it depends on each length. */
static sw_status make_dynamic(turning *t)
{
    if (t->sizes.trained == 0 || t->sizes.n_positions > t->sizes.trained)
        return SW_FAIL(t->err, SW_E_FORMAT, "use fewer positions",
                       "config.json: rope type \"dynamic\" runs up to %" PRIu64 " positions, not %" PRIu64,
                       t->sizes.trained, t->sizes.n_positions);
    fill_plain(t);
    return SW_OK;
}

static sw_status make_llama3(turning *t)
{
    double factor = 0, low = 0, high = 0, original = 0;

    SW_TRY(need(t, SW_SET_ROPE_FACTOR, "factor", &factor));
    SW_TRY(need(t, SW_SET_ROPE_LOW, "low_freq_factor", &low));
    SW_TRY(need(t, SW_SET_ROPE_HIGH, "high_freq_factor", &high));
    SW_TRY(need(t, SW_SET_ROPE_ORIGINAL, "original_max_position_embeddings", &original));
    fill_plain(t);
    for (uint64_t j = 0; j < t->sizes.width / 2; j++) {
        double plain = t->frequencies[j];
        double turns = original * plain / (2 * pi); /* within the original positions */
        double smooth = (turns - low) / (high - low);
        if (turns < low)
            t->frequencies[j] = (float)(plain / factor);
        else if (turns <= high)
            t->frequencies[j] = (float)((1 - smooth) * plain / factor + smooth * plain);
    }
    return SW_OK;
}

double sw_yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * sw_logarithm(factor) + 1;
}

/* The pair that makes so many turns within the original positions. */
static double yarn_pair(const turning *t, double turns, double original)
{
    double theta = number(t, SW_SET_ROPE_THETA, 10000);

    return (double)t->sizes.width * sw_logarithm(original / (turns * 2 * pi)) / (2 * sw_logarithm(theta));
}

static double whole_below(double x)
{
    double whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

static double bounded(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static double yarn_attention(const turning *t, double factor)
{
    double mscale = number(t, SW_SET_ROPE_MSCALE, 0);
    double all = number(t, SW_SET_ROPE_MSCALE_ALL, 0);
    double scale = mscale > 0 && all > 0 ? sw_yarn_scale(factor, mscale) / sw_yarn_scale(factor, all)
                                         : sw_yarn_scale(factor, 1);

    return number(t, SW_SET_ROPE_ATTENTION, scale);
}

static sw_status make_yarn(turning *t)
{
    double factor = 0;
    double original = number(t, SW_SET_ROPE_ORIGINAL, (double)t->sizes.trained);

    SW_TRY(need(t, SW_SET_ROPE_FACTOR, "factor", &factor));
    if (original <= 0)
        SW_TRY(need(t, SW_SET_ROPE_ORIGINAL, "original_max_position_embeddings", &original));
    double low = yarn_pair(t, number(t, SW_SET_ROPE_BETA_FAST, 32), original);
    double high = yarn_pair(t, number(t, SW_SET_ROPE_BETA_SLOW, 1), original);
    if (number(t, SW_SET_ROPE_TRUNCATE, 1) != 0) {
        low = whole_below(low);
        high = -whole_below(-high);
    }
    low = bounded(low, 0, (double)t->sizes.width - 1);
    high = bounded(high, 0, (double)t->sizes.width - 1);
    if (high <= low)
        high = low + 0.001;
    fill_plain(t);
    for (uint64_t j = 0; j < t->sizes.width / 2; j++) {
        double plain = t->frequencies[j];
        double ramp = bounded(((double)j - low) / (high - low), 0, 1);
        t->frequencies[j] = (float)(plain / factor * ramp + plain * (1 - ramp));
    }
    t->scale = yarn_attention(t, factor);
    return SW_OK;
}

/* A divisor a pair: one list for the positions that it was trained for, one for more. */
static sw_status make_longrope(turning *t)
{
    double original = number(t, SW_SET_ROPE_ORIGINAL, (double)t->sizes.trained);
    sw_setting setting = t->is_long ? SW_SET_ROPE_LONG : SW_SET_ROPE_SHORT;
    const sw_setting_value *list = &t->settings->value[setting];
    double factor = original > 0 ? (double)t->sizes.trained / original : 0;

    if (list->n_list != t->sizes.width / 2) {
        return SW_FAIL(t->err, SW_E_FORMAT, "correct the config",
                       "config.json: rope type \"%s\" needs %" PRIu64 " values in %s, not %u",
                       t->settings->value[SW_SET_ROPE_TYPE].text, t->sizes.width / 2,
                       t->is_long ? "long_factor" : "short_factor", list->n_list);
    }
    factor = number(t, SW_SET_ROPE_FACTOR, factor);
    fill_plain(t);
    for (uint64_t j = 0; j < t->sizes.width / 2; j++)
        t->frequencies[j] = (float)(t->frequencies[j] / list->list[j]);
    t->scale =
        factor <= 1 || original <= 1 ? 1 : sw_square_root(1 + sw_logarithm(factor) / sw_logarithm(original));
    t->scale = number(t, SW_SET_ROPE_ATTENTION, t->scale);
    return SW_OK;
}

static const struct rope_kind {
    const char *word;
    sw_status (*make)(turning *t);
} kinds[] = {
    {"default",  make_default },
    {"linear",   make_linear  },
    {"dynamic",  make_dynamic },
    {"llama3",   make_llama3  },
    {"yarn",     make_yarn    },
    {"longrope", make_longrope},
    {"su",       make_longrope},
};

/* NULL: there is none of that name. */
static const struct rope_kind *find_kind(const char *word)
{
    for (size_t i = 0; i < SW_COUNT(kinds); i++) {
        if (strcmp(kinds[i].word, word) == 0)
            return &kinds[i];
    }
    return NULL;
}

uint64_t sw_rotary_width(const sw_config *config, uint64_t head_dim)
{
    const sw_settings *s = &config->settings;
    double part = sw_setting_number(s, SW_SET_ROTARY_PART, 1);
    double width = sw_setting_number(s, SW_SET_ROTARY_DIM, part * (double)head_dim);

    return width < 0 || width > (double)head_dim ? 0 : (uint64_t)width;
}

static sw_status make_tables(turning *t, const struct rope_kind *kind, sw_dtype dtype, sw_stack *stack,
                             sw_rotary *out)
{
    uint64_t dims[] = {t->sizes.n_positions, t->sizes.width / 2};

    SW_TRY(sw_tensor_create(&out->cos, stack, dtype, 2, dims, NULL, t->err));
    SW_TRY(sw_tensor_create(&out->sin, stack, dtype, 2, dims, NULL, t->err));
    t->scale = 1;
    SW_TRY(kind->make(t));
    sw_rotary_tables tables = {.n_positions = dims[0],
                               .n_frequencies = dims[1],
                               .frequencies = t->frequencies,
                               .scale = t->scale,
                               .cos = sw_tensor_data(out->cos),
                               .sin = sw_tensor_data(out->sin)};
    sw_rotary_tables_fill(dtype, &tables);
    return SW_OK;
}

/* The positions beyond which longrope takes other factors; 0: none that the net has. */
static uint64_t limit_of(const turning *t, const struct rope_kind *kind)
{
    double original = number(t, SW_SET_ROPE_ORIGINAL, (double)t->sizes.trained);

    if (kind->make != make_longrope || original < 1 || (double)t->sizes.n_positions <= original)
        return 0;
    return (uint64_t)original;
}

/* Ready to make frequencies of the config's kind. */
static sw_status begin(turning *t, const sw_config *config, const sw_rotary_sizes *sizes, sw_stack *stack,
                       const struct rope_kind **kind)
{
    *kind = find_kind(config->settings.value[SW_SET_ROPE_TYPE].text);
    if (*kind == NULL)
        return sw_setting_refuse(config, SW_SET_ROPE_TYPE,
                                 "runnable: default, linear, dynamic, llama3, yarn, longrope", t->err);
    *t = (turning){.config = config, .settings = &config->settings, .sizes = *sizes, .err = t->err};
    if (!(number(t, SW_SET_ROPE_THETA, 0) > 0))
        return sw_setting_refuse(config, SW_SET_ROPE_THETA, "correct the config: it is above 0", t->err);
    if (sizes->width == 0 || sizes->width % 2 != 0)
        return SW_FAIL(t->err, SW_E_FORMAT, "correct the config",
                       "config.json: %" PRIu64 " elements of a head cannot turn in pairs", sizes->width);
    t->frequencies = sw_stack_take(stack, (size_t)(sizes->width / 2) * sizeof *t->frequencies);
    if (t->frequencies == NULL)
        return SW_FAIL(t->err, SW_E_NO_MEMORY, "", "out of memory for the rotary embedding");
    return SW_OK;
}

sw_status sw_rotary_check(const sw_config *config, const sw_rotary_sizes *sizes, sw_stack *stack,
                          sw_error *err)
{
    turning t = {.err = err};
    const struct rope_kind *kind = NULL;

    SW_TRY(begin(&t, config, sizes, stack, &kind));
    SW_TRY(kind->make(&t));
    t.is_long = true;
    return limit_of(&t, kind) == 0 ? SW_OK : kind->make(&t);
}

sw_status sw_rotary_create(sw_rotary_pair *out, const sw_config *config, const sw_rotary_sizes *sizes,
                           sw_dtype dtype, sw_stack *stack, sw_error *err)
{
    turning t = {.err = err};
    const struct rope_kind *kind = NULL;

    SW_TRY(begin(&t, config, sizes, stack, &kind));
    SW_TRY(make_tables(&t, kind, dtype, stack, &out->usual));
    out->limit = limit_of(&t, kind);
    t.is_long = true;
    return out->limit == 0 ? SW_OK : make_tables(&t, kind, dtype, stack, &out->longer);
}

const sw_rotary *sw_rotary_for(const sw_rotary_pair *pair, uint64_t n_positions)
{
    return pair->limit > 0 && n_positions > pair->limit ? &pair->longer : &pair->usual;
}
