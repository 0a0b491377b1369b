/* The order of the last phase: stages before gradients (a tied pair apart is summed), biases before both. */
#include "plan/finish.h"

#include "base/status.h"
#include "plan/lowering.h"

sw_status sw_finish(sw_plan *plan, sw_error *err)
{
    SW_TRY(sw_finish_heads(plan, err));
    SW_TRY(sw_finish_biases(plan, err));
    SW_TRY(sw_finish_stages(plan, err));
    SW_TRY(sw_finish_gradients(plan, err));
    return sw_lower_plan(plan, err);
}
