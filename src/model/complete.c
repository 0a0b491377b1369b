/*
 * Completing an index: the checkpoint is generated from the config once, and names are looked up in it; a name with
 * an unusual prefix, or an optional row, is asked of its row directly.
 */
#include "model/complete.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/generate.h"
#include "model/pattern.h"

static void drop_list(sw_tensor_list *list)
{
    sw_tensor_list_clear(list);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

/* Shape and dtype by the row that a name's pattern matches. */
static sw_status by_row(sw_tensor_list *list, sw_tensor_entry *t, const sw_family *family, const sw_config *config,
                        char *buffer, sw_error *err)
{
    int32_t counts[2];
    int cut = 0;
    int64_t values[SW_MAX_DIMS];
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n = 0;
    uint32_t length = sw_make_pattern(t->name, buffer, counts);
    const sw_family_row *row = sw_family_match(family, buffer, length, &cut);
    int64_t layer = counts[0] < 0 ? 0 : counts[0];

    if (row == NULL)
        return SW_OK;
    row = sw_family_row_for(family, row, &config->attributes, layer);
    if (sw_expression_list(row->shape, &config->attributes, layer, values, SW_MAX_DIMS, &n, NULL) != SW_OK)
        return SW_OK; /* a number is missing: the shape stays unknown */
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < 0)
            return SW_OK;
        dims[i] = (uint64_t)values[i];
    }
    t->dtype = (row->flags & SW_ROW_F32) != 0 ? SW_DTYPE_F32 : config->dtype;
    return sw_tensor_list_shape(list, dims, n, &t->shape, err);
}

sw_status sw_complete_shapes(sw_tensor_list *list, const sw_family *family, const sw_config *config, sw_error *err)
{
    sw_tensor_list made SW_AUTO(drop_list) = {0};
    size_t longest = 0;

    if (family == NULL)
        return SW_OK;
    for (size_t i = 0; i < list->n_tensors; i++)
        longest = list->tensors[i].name_length > longest ? list->tensors[i].name_length : longest;
    char *buffer SW_AUTO(drop_text) = sw_alloc(longest + 1);
    if (buffer == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the shapes of %zu tensors", list->n_tensors);
    SW_TRY(sw_tensor_list_init(&made, (size_t)1 << 30, err));
    sw_error why = {0};
    sw_status status = sw_generate_tensors(&made, family, config, &why);
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(err, status, "", "no memory for the shapes of %zu tensors", list->n_tensors);
    for (size_t i = 0; i < list->n_tensors; i++) {
        sw_tensor_entry *t = &list->tensors[i];
        if (t->shape != NULL)
            continue;
        const sw_tensor_entry *m = sw_tensor_list_find(&made, t->name, t->name_length);
        if (m == NULL || m->shape == NULL) {
            SW_TRY(by_row(list, t, family, config, buffer, err));
            continue;
        }
        t->dtype = m->dtype;
        SW_TRY(sw_tensor_list_shape(list, m->shape->dims, m->shape->n_dims, &t->shape, err));
    }
    return SW_OK;
}
