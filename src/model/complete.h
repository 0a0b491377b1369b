/*
 * Shapes for names that come from an index alone: what the family's table says of each name on this config. A
 * name that no row knows keeps no shape.
 */
#ifndef SW_MODEL_COMPLETE_H
#define SW_MODEL_COMPLETE_H

#include "io/tensor_list.h"
#include "model/config.h"

/*
 * Fill shape and dtype of every entry that lacks them, where they can be known.
 *
 * family  may be NULL: nothing is known then
 * why     gets the reason when nothing follows from this config at all (no family, a number that is missing,
 * a quantisation whose shapes are not known); its status stays SW_OK otherwise Returns SW_OK, SW_E_NO_MEMORY,
 * or SW_E_LIMIT for a shape whose elements do not fit 64 bits.
 */
sw_status sw_complete_shapes(sw_tensor_list *list, const sw_family *family, const sw_config *config,
                             sw_error *why, sw_error *err);

/*
 * The shape that a row gives on this config, of the row that its name has in `layer` (-1: none): `dims` has
 * room for SW_MAX_DIMS. False when a number of the config is missing or an extent is not positive.
 */
bool sw_row_shape(const sw_family *family, const sw_family_row *row, const sw_attributes *attributes,
                  int64_t layer, uint64_t *dims, uint32_t *n_dims);

#endif
