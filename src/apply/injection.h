/* What overrides put inside of a boundary: functions that the runtime has by name. */
#ifndef SW_APPLY_INJECTION_H
#define SW_APPLY_INJECTION_H

#include "apply/bind.h"
#include "apply/phases.h"

/*
 * Before anything is changed: are wrappers and computes complete and known, and has every boundary whose work
 * crosses ranks somebody that does it? Nothing is chosen for a plan that leaves it open. SW_E_PLAN, with what
 * to write into an override.
 */
sw_status sw_apply_check_injection(const sw_applied *a, const sw_spec *spec, sw_error *err);

/* The form of attention over cp that a boundary's wrapper names; else `usual`. */
sw_cp_form sw_injected_form(const sw_spec *spec, sw_cp_form usual);

#endif
