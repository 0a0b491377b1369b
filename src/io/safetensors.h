/*
 * Headers of the safetensors format: 8-byte little-endian header length, JSON header, data. Single strict
 * pass. Checked: header length against the file and SW_SAFETENSORS_MAX_HEADER; offsets for order of begin and
 * end, bounds, overlap and holes; shape x dtype against the bytes (by bits: F4); duplicates; names (length,
 * NUL, control characters refused). Unknown dtypes pass with the same range checks as SW_DTYPE_UNKNOWN.
 */
#ifndef SW_IO_SAFETENSORS_H
#define SW_IO_SAFETENSORS_H

#include "base/file.h"
#include "io/tensor_list.h"

enum { SW_SAFETENSORS_MAX_HEADER = 100000000 };

/*
 * Read the header from the first bytes of a file and append its tensors to `list`.
 *
 * head        the beginning of the file, at least its header when the file is whole
 * file_bytes  true size of the file
 * file        index from sw_tensor_list_add_file()
 */
sw_status sw_safetensors_read(sw_tensor_list *list, sw_file_map head, uint64_t file_bytes, uint32_t file,
                              const char *path, sw_error *err);

/* Open a file, map just its header, read it, and close it again. */
sw_status sw_safetensors_read_file(sw_tensor_list *list, const char *path, sw_error *err);

#endif
