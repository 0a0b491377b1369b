/*
 * model.safetensors.index.json: {"metadata": {...}, "weight_map": {name: file}}. File names are plain names:
 * separators, "..", absolute paths and empty names are refused. Order of the file is kept.
 */
#ifndef SW_IO_INDEX_H
#define SW_IO_INDEX_H

#include "base/file.h"
#include "io/tensor_list.h"

enum { SW_INDEX_MAX_BYTES = 64 << 20 };

/* Append every name of the index, without dtype or shape; files are registered under the names in the index.
 */
sw_status sw_index_read(sw_tensor_list *list, sw_file_map map, const char *path, sw_error *err);

/* A plain name within a folder: UTF-8, no separator, no way up, nothing that a terminal would act on. */
bool sw_is_plain_file_name(const char *name, size_t length);

#endif
