/* The plan of a command line (cli/planning.h). */
#include "cli/planning.h"

#include "base/status.h"

void sw_planning_clear(sw_planning *p)
{
    sw_plan_destroy(p->plan);
    sw_overrides_destroy(p->overrides);
    sw_mesh_destroy(p->mesh);
    sw_model_close(p->model);
}

sw_status sw_planning_make(sw_planning *p, sw_run *run, const sw_planning_rows *rows, sw_model_open_fn *open,
                           sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;

    SW_TRY(sw_input_mesh(&p->mesh, arguments, rows->mesh, rows->ep, err));
    SW_TRY(sw_input_overrides(&p->overrides, arguments, rows->overrides, rows->plugin, err));
    SW_TRY(open(&p->model, arguments->operands[0], err));
    choices.no_sequence_parallel = sw_arguments_has(arguments, rows->no_sp);
    choices.loss_parallel = sw_arguments_has(arguments, rows->loss_parallel);
    choices.strict = sw_arguments_has(arguments, rows->strict);
    choices.allow_uncovered = sw_arguments_has(arguments, rows->allow_uncovered);
    choices.overrides = p->overrides;
    choices.report = run->report;
    return sw_plan_create(&p->plan, p->model, p->mesh, &choices, err);
}
