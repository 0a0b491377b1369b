/* Index files on any bytes. Whatever is accepted must name files that cannot leave the folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/index.h"

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

    demand(sw_tensor_list_init(&list, (size_t)64 << 20, &err) == SW_OK);
    sw_status status = sw_index_read(&list, sw_file_map_of(data, n_bytes), "fuzz", &err);
    demand(status == SW_OK || (err.status == status && err.what[0] != '\0'));
    for (uint32_t i = 0; i < list.n_files; i++) {
        demand(list.files[i][0] != '\0' && strpbrk(list.files[i], "/\\") == NULL);
        demand(strstr(list.files[i], "..") == NULL);
    }
    for (size_t i = 0; i < list.n_tensors; i++) {
        const sw_tensor_entry *entry = &list.tensors[i];
        demand(entry->file < list.n_files && entry->shape == NULL);
        demand(sw_tensor_list_find(&list, entry->name, entry->name_length) == entry);
    }
    sw_tensor_list_clear(&list);
    return 0;
}
