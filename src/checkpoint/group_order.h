/*
 * Group indices of quantised weights (g_idx) against the scales beside them. A planner sees names and shapes
 * alone; only the data say whether the rows of a weight take their groups in order, so that a cut of the
 * scales gives each rank those of its rows.
 */
#ifndef SW_CHECKPOINT_GROUP_ORDER_H
#define SW_CHECKPOINT_GROUP_ORDER_H

#include "checkpoint/target.h"

/*
 * Every group that a file's rows take must be among the scales of that file. SW_E_FORMAT names the first that
 * is not. A group index of one value alone says nothing. *bytes_read is added to.
 */
sw_status sw_group_order_check(const sw_store *source, const sw_target *target, uint64_t *bytes_read,
                               sw_error *err);

#endif
