/*
 * Model order: what stands before the layers, the layers by number (inside one: the order of the family's
 * table, experts by number), what stands after, the output head last. It follows from the names alone, never
 * from the order in which they were read.
 */
#ifndef SW_MODEL_ORDER_H
#define SW_MODEL_ORDER_H

#include "model/model.h"

/* Sort model->params; their patterns and counts are known. SW_E_NO_MEMORY. */
sw_status sw_model_order(sw_model *model, sw_error *err);

#endif
