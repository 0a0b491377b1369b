/* params.tsv: a line a tensor, NAME TAB DTYPE TAB SHAPE, the shape as AxB ("1" for a scalar). '#' starts a
 * comment line. */
#ifndef SW_IO_PARAMS_TSV_H
#define SW_IO_PARAMS_TSV_H

#include "base/file.h"
#include "io/tensor_list.h"

enum { SW_PARAMS_TSV_MAX_BYTES = 64 << 20 };

sw_status sw_params_tsv_read(sw_tensor_list *list, sw_file_map map, const char *path, sw_error *err);

#endif
