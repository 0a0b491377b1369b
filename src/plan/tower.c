/*
 * A tower's module is cut where all of it can be: tp divides it, its heads are known, and its matrices are
 * known on both sides, so that what the columns cut is summed by the rows.
 */
#include "plan/tower.h"

#include "base/status.h"
#include "plan/derive.h"
#include "plan/fault.h"
#include "plan/place.h"
#include "plan/sides.h"

static const char give_roles[] = "give roles and layouts in an override to cut it";

static const struct {
    const char *what;
    const char *help;
} reasons[] = {
    [SW_TOWER_CUT] = {"",                                                  ""          },
    [SW_TOWER_INDIVISIBLE] = {"tp does not divide it",
                      "choose a tp that divides the tower's heads and widths to cut it"},
    [SW_TOWER_NO_HEADS] = {"the config does not say how many heads it has",
                      "give vision_config.num_attention_heads in config.json to cut it"},
    [SW_TOWER_NO_OUTPUT] = {"no table says which of its matrices is the output", give_roles  },
    [SW_TOWER_NO_INPUT] = {"no table says which of its matrices is the input",  give_roles  },
};

void sw_tower_note_fault(sw_spec *spec, uint32_t fault)
{
    if (spec->is_tower && fault != UINT32_MAX && spec->tower == SW_TOWER_CUT)
        spec->tower = fault == SW_FAULT_TOWER_HEADS ? SW_TOWER_NO_HEADS : SW_TOWER_INDIVISIBLE;
}

/* Columns that no row sums, or rows that nothing has cut the input of. */
static void note_sides(const sw_plan *plan, sw_spec *spec)
{
    uint32_t sides = spec->is_tower && spec->tower == SW_TOWER_CUT ? sw_spec_sides(plan, spec) : 0;

    if (sides == SW_CUTS_COLUMNS)
        spec->tower = SW_TOWER_NO_OUTPUT;
    else if (sides == SW_CUTS_ROWS)
        spec->tower = SW_TOWER_NO_INPUT;
}

static sw_status replicate(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        uint32_t fault = UINT32_MAX;
        SW_TRY(sw_derive_facts(plan, spec, spec->params[i].param, NULL, &spec->params[i].facts, &fault, err));
    }
    (void)sw_plan_fault(plan, SW_SEVERITY_WARNING, "tower_replicated", spec->fqn, spec->fqn_length,
                        reasons[spec->tower].help, "%s: every rank holds it whole (tp=%u)",
                        reasons[spec->tower].what, plan->tp);
    return SW_OK;
}

sw_status sw_tower_finish(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        note_sides(plan, spec);
        if (spec->tower != SW_TOWER_CUT)
            SW_TRY(replicate(plan, spec, err));
    }
    return SW_OK;
}
