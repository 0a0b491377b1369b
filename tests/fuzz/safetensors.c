/*
 * Headers of safetensors files on any bytes. Whatever is accepted must lie inside the file, fit its shape and
 * be found again by its name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

static void check_tensor(const sw_tensor_list *list, size_t i, uint64_t file_bytes)
{
    const sw_tensor_entry *entry = &list->tensors[i];
    uint64_t bits = sw_dtype_bits(entry->dtype);

    demand(strlen(entry->name) == entry->name_length && entry->name_length > 0);
    demand(sw_tensor_list_find(list, entry->name, entry->name_length) == entry);
    demand(entry->begin <= file_bytes - 8);
    demand(entry->shape->elems * bits / 8 <= file_bytes - 8 - entry->begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_tensor_list list;
    sw_error err = {0};
    uint32_t file = 0;

    demand(sw_tensor_list_init(&list, (size_t)64 << 20, &err) == SW_OK);
    demand(sw_tensor_list_add_file(&list, "fuzz", &file, &err) == SW_OK);
    sw_status status = sw_safetensors_read(&list, sw_file_map_of(data, n_bytes), n_bytes, file, "fuzz", &err);
    demand(status == SW_OK || (err.status == status && err.what[0] != '\0'));
    for (size_t i = 0; status == SW_OK && i < list.n_tensors; i++)
        check_tensor(&list, i, n_bytes);
    sw_tensor_list_clear(&list);
    return 0;
}
