/*
 * Headers of NumPy's .npy files of whole numbers in one or two dims, row-major, little-endian: what tools
 * write tokens to. The header is a literal of Python; exactly its three keys are taken, each once.
 */
#ifndef SW_IO_NPY_H
#define SW_IO_NPY_H

#include "base/file.h"
#include "shardwright/model.h"

enum { SW_NPY_MAX_DIMS = 2, SW_NPY_MAX_HEADER = 1 << 16 };

typedef struct sw_npy {
    sw_dtype dtype; /* U16, U32, I32 or I64 */
    uint32_t n_dims;
    uint64_t dims[SW_NPY_MAX_DIMS];
    uint64_t elems;
    uint64_t data_begin; /* from the start of the file; at no particular alignment */
} sw_npy;

/* Does the file begin as one? */
bool sw_npy_is(sw_file_map map);

/* Read the header and check that the data are there, all of them and no more. SW_E_FORMAT with the path. */
sw_status sw_npy_read(sw_npy *out, sw_file_map map, const char *path, sw_error *err);

#endif
