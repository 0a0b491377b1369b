/* One finding for an attention whose heads tp does not fit, naming every constraint and every degree that
 * fits. */
#ifndef SW_PLAN_HEAD_CHECK_H
#define SW_PLAN_HEAD_CHECK_H

#include "plan/plan_data.h"

/* Report that the heads of `spec` cannot be spread over tp; called once a boundary that has such a tensor. */
void sw_report_heads(sw_plan *plan, const sw_spec *spec);

#endif
