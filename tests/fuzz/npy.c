/* .npy on any bytes. Whatever is accepted has its data inside the file, to the last byte. */
#include <stdint.h>
#include <stdlib.h>

#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_npy npy = {0};
    sw_error err = {0};
    sw_status status = sw_npy_read(&npy, sw_file_map_of(data, n_bytes), "fuzz", &err);

    if (status != SW_OK) {
        demand(err.status == status && err.what[0] != '\0');
        return 0;
    }
    uint64_t elems = npy.n_dims == 1 ? npy.dims[0] : npy.dims[0] * npy.dims[1];
    demand(npy.n_dims == 1 || npy.n_dims == SW_NPY_MAX_DIMS);
    demand(npy.elems == elems && sw_npy_is(sw_file_map_of(data, n_bytes)));
    demand(npy.data_begin + elems * (sw_dtype_bits(npy.dtype) / 8) == n_bytes);
    return 0;
}
