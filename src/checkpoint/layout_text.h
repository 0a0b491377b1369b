/*
 * sw.layout of a file's metadata: how fused parameters are composed and cut, for people and programs that
 * know fused layouts. Nothing here is needed to put tensors together.
 */
#ifndef SW_CHECKPOINT_LAYOUT_TEXT_H
#define SW_CHECKPOINT_LAYOUT_TEXT_H

#include "checkpoint/store.h"
#include "io/json_read.h"
#include "io/json_write.h"

/* The entry of a tensor, inside an object; nothing for one that is a single run of rows. */
void sw_layout_text_put(sw_json_writer *w, const sw_store_tensor *tensor, const sw_facts *facts);

/* SW_E_FORMAT when the text is not what is written for a file with these tensors. */
sw_status sw_layout_text_check(sw_json_text layout, const sw_tensor_list *tensors, const char *path,
                               sw_error *err);

#endif
