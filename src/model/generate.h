/*
 * Names, shapes and dtypes of a checkpoint from its config.json alone, by the table of its family: what a
 * model with these numbers would hold. Used when a folder has no headers, no index and no params.tsv.
 */
#ifndef SW_MODEL_GENERATE_H
#define SW_MODEL_GENERATE_H

#include "io/tensor_list.h"
#include "model/config.h"

/*
 * Append every parameter of the model to `list`, in model order: all layers, all experts, block scales of FP8
 * included; buffers and other optional rows left out.
 *
 * family  NULL is refused by the architecture's name
 * Returns SW_E_FORMAT when the config lacks a number that a shape needs (named) or is quantised in a way
 * whose names do not follow from it; SW_E_LIMIT above SW_MAX_TENSORS; SW_E_NO_MEMORY. The list is then
 * incomplete.
 */
sw_status sw_generate_tensors(sw_tensor_list *list, const sw_family *family, const sw_config *config,
                              sw_error *err);

#endif
