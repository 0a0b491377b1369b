/*
 * config.json on any bytes, and the checkpoint that it describes. Whatever is accepted has numbers in their
 * ranges and describes tensors with positive extents, each name once; nothing takes more memory than the list
 * is given.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/generate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { NAMES_LIMIT = 1 << 20 }; /* some ten thousand names */

static void demand(bool condition)
{
    if (!condition)
        abort();
}

static void check_list(const sw_tensor_list *list)
{
    for (size_t i = 0; i < list->n_tensors; i++) {
        const sw_tensor_entry *t = &list->tensors[i];
        demand(t->name_length > 0 && t->shape != NULL && t->shape->n_dims <= SW_MAX_DIMS);
        for (uint32_t d = 0; d < t->shape->n_dims; d++)
            demand(t->shape->dims[d] > 0);
        demand(sw_tensor_list_find(list, t->name, t->name_length) == t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_config config = {0};
    sw_tensor_list list;
    sw_error err = {0};

    sw_status status = sw_config_read(&config, sw_file_map_of(data, n_bytes), "fuzz", &err);
    if (status != SW_OK) {
        demand(err.status == status && err.what[0] != '\0');
        return 0;
    }
    for (int i = 0; i < SW_ATTR_COUNT_; i++)
        demand(!config.attributes.is_set[i] || config.attributes.value[i] >= 0 || config.family != NULL);
    demand(sw_tensor_list_init(&list, NAMES_LIMIT, &err) == SW_OK);
    status = sw_generate_tensors(&list, config.family, &config, &err);
    demand(status == SW_OK || (err.status == status && err.what[0] != '\0'));
    check_list(&list);
    sw_tensor_list_clear(&list);
    sw_config_clear(&config);
    return 0;
}
