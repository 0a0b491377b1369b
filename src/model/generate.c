/*
 * Names, shapes and dtypes from a family's table (see generate.h). Rows that share the text before their
 * first '#' are written layer by layer, those that share the text before the second expert by expert. What a
 * row gives in one layer is worked out once, not once an expert.
 */
#include "model/generate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/glob.h"
#include "base/map.h"
#include "base/status.h"

enum { MAX_NAME = 512 };

/* A row of the table, and what it gives in the layer at hand. */
typedef struct item {
    const sw_family_row *row;
    const char *expert_mark; /* its second '#', or NULL */
    size_t layer_prefix;     /* bytes before the first '#', or 0 */
    bool is_same;            /* the same in every layer, and worked out already */
    bool holds;
    sw_dtype dtype;
    const sw_shape *shape;
    const sw_shape *scales; /* of its blocks under FP8; NULL: not quantised */
} item;

typedef struct generation {
    sw_tensor_list *list;
    const sw_family *family;
    const sw_config *config;
    sw_error *err;
    sw_map unconverted; /* modules that FP8 leaves alone, by name */
    bool has_globs;
    item *items;
    size_t n_items;
} generation;

static sw_status fail_no_memory(const generation *g)
{
    return SW_FAIL(g->err, SW_E_NO_MEMORY, "", "out of memory while generating the parameters of %s",
                   g->family->name);
}

/* ---- preparing ---- */

static size_t count_rows(const sw_family *family, uint32_t flags)
{
    size_t n = 0;
    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++)
            n += (row->flags & flags) == flags;
    }
    return n;
}

/* Quantisations whose names and shapes follow from the config. */
static sw_status check_quantization(const generation *g)
{
    const sw_quantization *q = &g->config->quantization;
    bool is_known = q->method == SW_QUANTIZATION_NONE ||
                    (q->method == SW_QUANTIZATION_FP8 && q->block_rows > 0) ||
                    (q->method == SW_QUANTIZATION_MXFP4 && count_rows(g->family, SW_ROW_QUANTISED) > 0);
    if (is_known)
        return SW_OK;
    return SW_FAIL(g->err, SW_E_FORMAT, "give the model's safetensors, its index or a params.tsv beside it",
                   "the names of a %s checkpoint quantised by \"%s\" do not follow from config.json",
                   g->family->name, q->method == SW_QUANTIZATION_MLX ? "mlx" : q->name);
}

static sw_status prepare_items(generation *g)
{
    g->items = sw_alloc_zero(count_rows(g->family, 0) + 1, sizeof *g->items);
    if (g->items == NULL)
        return fail_no_memory(g);
    for (const sw_family_block *block = g->family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            if ((row->flags & (SW_ROW_OPTIONAL | SW_ROW_BUFFER)) != 0)
                continue;
            const char *mark = strchr(row->name, '#');
            item *it = &g->items[g->n_items++];
            it->row = row;
            it->layer_prefix = mark == NULL ? 0 : (size_t)(mark - row->name);
            it->expert_mark = mark == NULL ? NULL : strchr(mark + 1, '#');
        }
    }
    return SW_OK;
}

static sw_status prepare_unconverted(generation *g)
{
    const sw_quantization *q = &g->config->quantization;
    if (q->method != SW_QUANTIZATION_FP8)
        return SW_OK;
    if (!sw_map_reserve(&g->unconverted, q->n_unconverted))
        return fail_no_memory(g);
    for (uint32_t i = 0; i < q->n_unconverted; i++) {
        bool is_new = false;
        if (sw_glob_is_pattern(q->unconverted[i]))
            g->has_globs = true;
        else if (sw_map_put(&g->unconverted, q->unconverted[i], strlen(q->unconverted[i]), i, &is_new) ==
                 NULL)
            return fail_no_memory(g);
    }
    return SW_OK;
}

/* ---- one row in one layer ---- */

static bool is_block_quantised(const generation *g, const item *it)
{
    const sw_family_row *row = it->row;
    size_t length = strlen(row->name);
    static const char ending[] = ".weight";
    if (g->config->quantization.method != SW_QUANTIZATION_FP8 || it->shape->n_dims != 2 ||
        (row->flags & (SW_ROW_UNQUANTISED | SW_ROW_POSITION)) != 0)
        return false;
    if (length < sizeof ending || strcmp(row->name + length - (sizeof ending - 1), ending) != 0)
        return false;
    switch (row->role) {
    case SW_ROLE_COLWISE:
    case SW_ROLE_ROWWISE:
    case SW_ROLE_MOE_EXPERT:
    case SW_ROLE_SHARED_EXPERT:
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
    case SW_ROLE_REPLICATED:
        return true;
    default:
        return false;
    }
}

static sw_status make_shape(generation *g, const item *it, int64_t layer, const sw_shape **out)
{
    int64_t extents[SW_MAX_DIMS];
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n = 0;
    SW_TRY(
        sw_expression_list(it->row->shape, &g->config->attributes, layer, extents, SW_MAX_DIMS, &n, g->err));
    for (uint32_t i = 0; i < n; i++) {
        if (extents[i] < 1)
            return SW_FAIL(g->err, SW_E_FORMAT, "check the numbers of the config",
                           "extent %u of \"%s\" is %" PRId64, i, it->row->shape, extents[i]);
        dims[i] = (uint64_t)extents[i];
    }
    return sw_tensor_list_shape(g->list, dims, n, out, g->err);
}

static sw_status work_out(generation *g, item *it, int64_t layer)
{
    const sw_family_row *row = it->row;
    const sw_quantization *q = &g->config->quantization;
    int64_t holds = 1;
    if (row->when != NULL)
        SW_TRY(sw_expression(row->when, &g->config->attributes, layer, &holds, g->err));
    it->holds = holds != 0;
    it->is_same = strstr(row->shape, "layer") == NULL && (row->when == NULL || !strstr(row->when, "layer"));
    if (!it->holds)
        return SW_OK;
    SW_TRY(make_shape(g, it, layer, &it->shape));
    it->dtype = (row->flags & SW_ROW_F32) != 0         ? SW_DTYPE_F32
                : (row->flags & SW_ROW_QUANTISED) != 0 ? SW_DTYPE_U8
                                                       : g->config->dtype;
    it->scales = NULL;
    if (!is_block_quantised(g, it))
        return SW_OK;
    uint64_t rows = (uint64_t)q->block_rows, cols = (uint64_t)q->block_cols;
    uint64_t dims[2] = {(it->shape->dims[0] + rows - 1) / rows, (it->shape->dims[1] + cols - 1) / cols};
    return sw_tensor_list_shape(g->list, dims, 2, &it->scales, g->err);
}

static sw_status work_out_all(generation *g, item *first, item *end, int64_t layer)
{
    for (item *it = first; it < end; it++) {
        if (it->is_same)
            continue;
        sw_status status = work_out(g, it, layer);
        if (status != SW_OK) {
            sw_error_context(g->err, "cannot generate %s", it->row->name);
            return status;
        }
    }
    return SW_OK;
}

/* ---- writing ---- */

/* Whether FP8 leaves a module alone: listed by its name, by one that holds it, or by its last segments. */
static bool is_unconverted(const generation *g, const char *module, size_t length)
{
    const sw_quantization *q = &g->config->quantization;
    for (size_t i = 0; i <= length && q->n_unconverted > 0; i++) {
        if (i < length && module[i] != '.')
            continue;
        if (sw_map_find(&g->unconverted, module, i) != NULL)
            return true;
        if (i < length && sw_map_find(&g->unconverted, module + i + 1, length - i - 1) != NULL)
            return true;
    }
    char text[MAX_NAME];
    memcpy(text, module, length);
    text[length] = '\0';
    for (uint32_t i = 0; g->has_globs && i < q->n_unconverted; i++) {
        if (sw_glob_is_pattern(q->unconverted[i]) && sw_glob_match(q->unconverted[i], text))
            return true;
    }
    return false;
}

static sw_status add(generation *g, const char *name, size_t length, sw_dtype dtype, const sw_shape *shape)
{
    if (g->list->n_tensors >= SW_MAX_TENSORS)
        return SW_FAIL(g->err, SW_E_LIMIT, "check the numbers of the config",
                       "the config describes more than %d parameters", SW_MAX_TENSORS);
    return sw_tensor_list_add(g->list, name, length, dtype, shape, UINT32_MAX, 0, g->err);
}

static sw_status write_tensor(generation *g, const item *it, int64_t layer, int64_t expert)
{
    static const char scale[] = "_scale_inv";
    const sw_family_row *row = it->row;
    char name[MAX_NAME];
    int length = 0;
    if (!it->holds)
        return SW_OK;
    if (it->layer_prefix == 0)
        length = snprintf(name, sizeof name, "%s", row->name);
    else if (it->expert_mark == NULL)
        length = snprintf(name, sizeof name, "%.*s%" PRId64 "%s", (int)it->layer_prefix, row->name, layer,
                          row->name + it->layer_prefix + 1);
    else
        length = snprintf(name, sizeof name, "%.*s%" PRId64 "%.*s%" PRId64 "%s", (int)it->layer_prefix,
                          row->name, layer, (int)(it->expert_mark - row->name - (int)it->layer_prefix - 1),
                          row->name + it->layer_prefix + 1, expert, it->expert_mark + 1);
    if (length < 0 || (size_t)length + sizeof scale > sizeof name)
        return SW_FAIL(g->err, SW_E_LIMIT, "shorten it in the family's table",
                       "a name of the table is too long: %s", row->name);
    size_t n = (size_t)length;
    if (it->scales == NULL || is_unconverted(g, name, n - strlen(".weight")))
        return add(g, name, n, it->dtype, it->shape);
    SW_TRY(add(g, name, n, SW_DTYPE_F8_E4M3, it->shape));
    memcpy(name + n, scale, sizeof scale);
    return add(g, name, n + sizeof scale - 1, SW_DTYPE_F32, it->scales);
}

/* How many of something there are: never above what could be written. */
static sw_status count_of(const generation *g, const char *expression, const char *name, int64_t *out)
{
    sw_status status = sw_expression(expression, &g->config->attributes, 0, out, g->err);
    if (status != SW_OK) {
        sw_error_context(g->err, "cannot generate %s", name);
        return status;
    }
    if (*out > SW_MAX_TENSORS)
        return SW_FAIL(g->err, SW_E_LIMIT, "check the numbers of the config",
                       "%s would stand %" PRId64 " times: more than %d", name, *out, SW_MAX_TENSORS);
    return SW_OK;
}

static sw_status write_experts(generation *g, item *first, item *end, int64_t layer)
{
    bool holds = false;
    int64_t n_experts = 0;
    for (item *it = first; it < end; it++)
        holds = holds || it->holds;
    if (!holds)
        return SW_OK;
    const char *name = first->row->name;
    SW_TRY(count_of(g, sw_family_inner_count(g->family, name), name, &n_experts));
    for (int64_t expert = 0; expert < n_experts; expert++) {
        for (item *it = first; it < end; it++)
            SW_TRY(write_tensor(g, it, layer, expert));
    }
    return SW_OK;
}

static bool is_same_start(const char *a, const char *b, size_t length)
{
    return strncmp(a, b, length) == 0;
}

static sw_status write_layer(generation *g, item *first, item *end, int64_t layer)
{
    SW_TRY(work_out_all(g, first, end, layer));
    for (item *it = first; it < end;) {
        item *after = it + 1;
        if (it->expert_mark == NULL) {
            SW_TRY(write_tensor(g, it, layer, 0));
        } else {
            size_t length = (size_t)(it->expert_mark - it->row->name) + 1;
            while (after < end && is_same_start(after->row->name, it->row->name, length))
                after++;
            SW_TRY(write_experts(g, it, after, layer));
        }
        it = after;
    }
    return SW_OK;
}

static sw_status write_items(generation *g)
{
    item *end = g->items + g->n_items;
    for (item *it = g->items; it < end;) {
        item *after = it + 1;
        int64_t n_layers = 1;
        size_t length = it->layer_prefix;
        if (length > 0) {
            while (after < end && after->layer_prefix == length &&
                   is_same_start(after->row->name, it->row->name, length))
                after++;
            const char *name = it->row->name;
            SW_TRY(count_of(g, sw_family_layer_count(g->family, name), name, &n_layers));
        }
        for (int64_t layer = 0; layer < n_layers; layer++)
            SW_TRY(write_layer(g, it, after, layer));
        it = after;
    }
    return SW_OK;
}

static sw_status generate(generation *g)
{
    SW_TRY(check_quantization(g));
    SW_TRY(prepare_items(g));
    SW_TRY(prepare_unconverted(g));
    return write_items(g);
}

sw_status sw_generate_tensors(sw_tensor_list *list, const sw_family *family, const sw_config *config,
                              sw_error *err)
{
    generation g = {.list = list, .family = family, .config = config, .err = err};
    if (family == NULL || config->is_family_nested) {
        return SW_FAIL(err, SW_E_FORMAT, "give the model's safetensors, its index or a params.tsv beside it",
                       "no family is known for architecture \"%s\" and model_type \"%s\": its names do not "
                       "follow from config.json",
                       config->architecture, config->model_type);
    }
    sw_status status = generate(&g);
    sw_map_clear(&g.unconverted);
    sw_free(g.items);
    return status;
}
