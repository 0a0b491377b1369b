/* params.tsv on any bytes. Whatever is accepted has at most one tensor a line, each with a name and a shape.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/params_tsv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_tensor_list list;
    sw_error err = {0};
    size_t n_lines = 1;

    for (size_t i = 0; i < n_bytes; i++)
        n_lines += data[i] == '\n';
    demand(sw_tensor_list_init(&list, (size_t)64 << 20, &err) == SW_OK);
    sw_status status = sw_params_tsv_read(&list, sw_file_map_of(data, n_bytes), "fuzz", &err);
    demand(status == SW_OK || (err.status == status && err.what[0] != '\0'));
    demand(list.n_tensors <= n_lines);
    for (size_t i = 0; i < list.n_tensors; i++) {
        const sw_tensor_entry *entry = &list.tensors[i];
        demand(entry->name_length > 0 && entry->shape->n_dims > 0 && entry->shape->n_dims <= SW_MAX_DIMS);
        demand(sw_tensor_list_find(&list, entry->name, entry->name_length) == entry);
    }
    sw_tensor_list_clear(&list);
    return 0;
}
