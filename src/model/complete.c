/*
 * Completing an index: the checkpoint that the config describes is generated once, and names are looked up in
 * it. A name with an unusual prefix is looked up under the family's own; an optional row is asked directly.
 */
#include "model/complete.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/generate.h"
#include "model/pattern.h"

/* Names of a generated list, in bytes: far above what any real model needs. */
enum { NAMES_LIMIT = 48 << 20 };

typedef struct completion {
    sw_tensor_list *list;
    const sw_family *family;
    const sw_config *config;
    sw_tensor_list made; /* what the config describes */
    char *pattern;       /* room for the longest name */
    char *own_name;      /* the same, and for the longest row */
    sw_error *err;
} completion;

static void drop_completion(completion *c)
{
    sw_tensor_list_clear(&c->made);
    sw_free(c->pattern);
    sw_free(c->own_name);
}

static size_t longest_row(const sw_family *family)
{
    size_t longest = 0;

    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++)
            longest = strlen(row->name) > longest ? strlen(row->name) : longest;
    }
    return longest;
}

/* Length of a name without the ending of a scale of blocks, which no table has: it stands and falls with its
 * weight. */
static size_t weight_length(const sw_tensor_entry *t)
{
    static const char scale[] = "_scale_inv";
    size_t n = sizeof scale - 1;
    bool is_scale = t->name_length > n && strcmp(t->name + t->name_length - n, scale) == 0;

    return is_scale ? t->name_length - n : t->name_length;
}

/* The row of a name, and in own_name the name under the prefix that the family gives it. */
static const sw_family_row *find_row(completion *c, const sw_tensor_entry *t, int32_t counts[2])
{
    int cut = 0;
    size_t weight = weight_length(t);

    memcpy(c->own_name, t->name, weight);
    c->own_name[weight] = '\0';
    uint32_t length = sw_make_pattern(c->own_name, c->pattern, counts);
    const sw_family_row *row = sw_family_match(c->family, c->pattern, length, &cut);
    if (row == NULL)
        return NULL;
    /* Pattern and row end alike; what stands before has the row's text instead of the name's. */
    size_t theirs = cut > 0 ? (size_t)cut : 0;
    size_t ours = strlen(row->name) - (length - theirs);
    if (memchr(c->pattern, '#', theirs) != NULL || memchr(row->name, '#', ours) != NULL)
        ours = theirs; /* counts in it: the name stays as it is */
    else
        memcpy(c->own_name, row->name, ours);
    memcpy(c->own_name + ours, t->name + theirs, t->name_length - theirs + 1);
    return row;
}

bool sw_row_shape(const sw_family *family, const sw_family_row *row, const sw_attributes *attributes,
                  int64_t layer, uint64_t *dims, uint32_t *n_dims)
{
    int64_t values[SW_MAX_DIMS];
    int64_t at = layer < 0 ? 0 : layer;

    row = sw_family_row_for(family, row, attributes, at);
    if (sw_expression_list(row->shape, attributes, at, values, SW_MAX_DIMS, n_dims, NULL) != SW_OK)
        return false;
    for (uint32_t i = 0; i < *n_dims; i++) {
        if (values[i] < 1)
            return false;
        dims[i] = (uint64_t)values[i];
    }
    return true;
}

/* An optional row (a buffer, a head that is saved although it is tied) is not generated: ask its expressions.
 */
static sw_status ask_row(completion *c, sw_tensor_entry *t, const sw_family_row *row, int32_t layer)
{
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n = 0;

    if (weight_length(t) != t->name_length ||
        !sw_row_shape(c->family, row, &c->config->attributes, layer, dims, &n))
        return SW_OK; /* a number is missing: the shape stays unknown */
    row = sw_family_row_for(c->family, row, &c->config->attributes, layer < 0 ? 0 : layer);
    unsigned dtype = (row->flags & SW_ROW_F32) != 0 ? SW_DTYPE_F32 : c->config->dtype;
    t->dtype = dtype & 0xffU;
    return sw_tensor_list_shape(c->list, dims, n, &t->shape, c->err);
}

static sw_status complete_one(completion *c, sw_tensor_entry *t)
{
    const sw_tensor_entry *same = sw_tensor_list_find(&c->made, t->name, t->name_length);

    if (same == NULL) {
        int32_t counts[2];
        const sw_family_row *row = find_row(c, t, counts);
        if (row == NULL)
            return SW_OK;
        same = sw_tensor_list_find(&c->made, c->own_name, strlen(c->own_name));
        if (same == NULL)
            return ask_row(c, t, row, counts[0]);
    }
    t->dtype = same->dtype;
    return sw_tensor_list_shape(c->list, same->shape->dims, same->shape->n_dims, &t->shape, c->err);
}

sw_status sw_complete_shapes(sw_tensor_list *list, const sw_family *family, const sw_config *config,
                             sw_error *why, sw_error *err)
{
    completion c SW_AUTO(drop_completion) = {.list = list, .family = family, .config = config, .err = err};
    size_t longest = 0;

    SW_TRY(sw_tensor_list_init(&c.made, NAMES_LIMIT, err));
    sw_status status = sw_generate_tensors(&c.made, family, config, why);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(err, status, "", "no memory for the shapes of %zu tensors", list->n_tensors);
    if (status != SW_OK)
        return SW_OK;
    for (size_t i = 0; i < list->n_tensors; i++)
        longest = list->tensors[i].name_length > longest ? list->tensors[i].name_length : longest;
    c.pattern = sw_alloc(longest + 1);
    c.own_name = sw_alloc(longest + longest_row(family) + 1);
    if (c.pattern == NULL || c.own_name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the shapes of %zu tensors", list->n_tensors);
    for (size_t i = 0; i < list->n_tensors; i++) {
        if (list->tensors[i].shape == NULL)
            SW_TRY(complete_one(&c, &list->tensors[i]));
    }
    return SW_OK;
}
