/*
 * Shapes for names that come from an index alone: what the family's table says of each name on this config. A name
 * that no row knows keeps no shape.
 */
#ifndef SW_MODEL_COMPLETE_H
#define SW_MODEL_COMPLETE_H

#include "io/tensor_list.h"
#include "model/config.h"

/* Fill shape and dtype of every entry that lacks them, where they can be known. `family` may be NULL. */
sw_status sw_complete_shapes(sw_tensor_list *list, const sw_family *family, const sw_config *config,
                             sw_error *err);

#endif
