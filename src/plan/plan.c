/*
 * Making a plan: the phases in order, and what a finished plan answers. Every phase collects faults; the plan
 * fails at the end with all of them, so that a user sees the whole list at once.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status.h"
#include "mesh/mesh.h"
#include "plan/classify.h"
#include "plan/derive.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/lint.h"
#include "plan/override_match.h"
#include "plan/plan_make.h"
#include "plan/preflight.h"

#define PLAN_MEMORY_LIMIT ((size_t)4 << 30)

void sw_plan_set_mesh(sw_plan *plan, const sw_mesh *mesh)
{
    *plan->mesh = *mesh;
    plan->tp = sw_mesh_axis_size(mesh, SW_AXIS_TP);
    plan->cp = sw_mesh_axis_size(mesh, SW_AXIS_CP);
    plan->ep = sw_mesh_axis_size(mesh, SW_AXIS_EP);
    plan->ep_mode = sw_mesh_ep_mode(mesh);
    plan->is_active[SW_ON_TP] = plan->tp > 1;
    plan->is_active[SW_ON_CP] = plan->cp > 1;
    plan->is_active[SW_ON_EP] = plan->ep > 1;
}

sw_status sw_plan_make_empty(sw_plan **out, const sw_mesh *mesh, sw_error *err)
{
    sw_plan *plan = sw_alloc_zero(1, sizeof *plan);

    *out = NULL;
    if (plan != NULL) {
        plan->arena = sw_arena_create(PLAN_MEMORY_LIMIT);
        plan->mesh = sw_alloc_zero(1, sizeof *plan->mesh);
    }
    if (plan == NULL || plan->arena == NULL || plan->mesh == NULL ||
        sw_report_create(&plan->report, NULL) != SW_OK) {
        sw_plan_destroy(plan);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a plan");
    }
    sw_plan_set_mesh(plan, mesh);
    *out = plan;
    return SW_OK;
}

void sw_plan_destroy(sw_plan *plan)
{
    if (plan == NULL)
        return;
    sw_map_clear(&plan->by_fqn);
    sw_map_clear(&plan->by_facts);
    sw_map_clear(&plan->by_cut);
    sw_map_clear(&plan->by_shape);
    sw_map_clear(&plan->by_memo);
    sw_map_clear(&plan->by_fault);
    sw_buffer_clear(&plan->fault_key);
    sw_report_destroy(plan->report);
    sw_free(plan->mesh);
    sw_arena_destroy(plan->arena);
    sw_model_close(plan->owned_model);
    sw_free(plan);
}

static sw_status describe_model(sw_plan *plan, const sw_model *model, sw_error *err)
{
    plan->model = model;
    plan->architecture = sw_arena_format(plan->arena, "%s", model->architecture);
    plan->model_type = sw_arena_format(plan->arena, "%s", sw_model_type(model));
    plan->family = sw_arena_format(plan->arena, "%s", model->family == NULL ? "" : model->family->name);
    if (plan->architecture == NULL || plan->model_type == NULL || plan->family == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a plan");
    plan->n_params = model->n_params;
    plan->elements = model->elements;
    plan->fingerprint = model->fingerprint;
    plan->n_layers = model->n_layers;
    return SW_OK;
}

static sw_status run_phases(sw_plan *plan, const sw_overrides *overrides, sw_error *err)
{
    SW_TRY(sw_classify(plan, overrides, err));
    if (!sw_preflight(plan))
        return SW_OK; /* the finding says why there is nothing to derive */
    if (overrides != NULL)
        SW_TRY(sw_override_layouts_note(plan, overrides, err));
    if (plan->derive) {
        SW_TRY(sw_derive(plan, err));
        SW_TRY(sw_finish_tied(plan, err));
    }
    if (overrides != NULL)
        SW_TRY(sw_overrides_apply(plan, overrides, err));
    SW_TRY(sw_finish(plan, err));
    return sw_lint(plan, plan->model, err);
}

sw_status sw_plan_create(sw_plan **out, const sw_model *model, const sw_mesh *mesh,
                         const sw_plan_options *options, sw_error *err)
{
    static const sw_options_type type = {"sw_plan_options", "start from SW_PLAN_OPTIONS_INIT",
                                         SW_END_OF(sw_plan_options, report), sizeof(sw_plan_options)};
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;
    sw_plan *plan = NULL;

    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(model, err);
    SW_NEED(mesh, err);
    SW_TRY(sw_options_read(&choices, options, &type, err));
    SW_TRY(sw_plan_make_empty(&plan, mesh, err));
    plan->sequence_parallel = !choices.no_sequence_parallel;
    plan->loss_parallel = choices.loss_parallel;
    plan->allow_uncovered = choices.allow_uncovered;
    plan->strict = choices.strict;
    plan->derive = choices.overrides == NULL || choices.overrides->derive;
    sw_status status = describe_model(plan, model, err);
    if (status == SW_OK)
        status = run_phases(plan, choices.overrides, err);
    if (status == SW_OK && plan->is_out_of_memory)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a plan of %zu parameters", model->n_params);
    if (status == SW_OK) {
        sw_plan_faults_flush(plan);
        status = sw_report_status(plan->report, err);
        if (choices.report != NULL)
            sw_report_append(choices.report, plan->report);
    }
    if (status != SW_OK) {
        sw_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return SW_OK;
}

sw_status sw_plan_model_folder(sw_plan **out, const char *model_path, const char *axes, sw_error *err)
{
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;

    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(model_path, err);
    SW_NEED(axes, err);
    SW_TRY(sw_model_open(&model, model_path, err));
    sw_status status = sw_mesh_create(&mesh, axes, 0, err);
    if (status == SW_OK)
        status = sw_plan_create(out, model, mesh, NULL, err);
    sw_mesh_destroy(mesh);
    if (status != SW_OK) {
        sw_model_close(model);
        return status;
    }
    (*out)->owned_model = model;
    return SW_OK;
}

/* ---- reading a plan ---- */

size_t sw_plan_boundary_count(const sw_plan *plan)
{
    return plan == NULL ? 0 : plan->n_specs;
}

bool sw_plan_boundary(const sw_plan *plan, size_t i, sw_boundary_info *out)
{
    if (out == NULL)
        return false;
    *out = (sw_boundary_info){0};
    if (i >= sw_plan_boundary_count(plan))
        return false;
    const sw_spec *s = &plan->specs[i];
    *out = (sw_boundary_info){s->fqn,      s->type,    s->n_params, s->needs_cp_attn, s->is_terminal,
                              s->is_tower, s->ep_size, s->layer,    s->pp_stage};
    return true;
}

size_t sw_plan_find(const sw_plan *plan, const char *fqn)
{
    const sw_spec *s = plan == NULL || fqn == NULL ? NULL : sw_plan_find_spec(plan, fqn, strlen(fqn));
    return s == NULL ? (size_t)-1 : (size_t)(s - plan->specs);
}

bool sw_plan_param(const sw_plan *plan, size_t i, size_t j, sw_param_plan *out)
{
    if (out == NULL)
        return false;
    *out = (sw_param_plan){0};
    if (i >= sw_plan_boundary_count(plan) || j >= plan->specs[i].n_params)
        return false;
    const sw_spec_param *p = &plan->specs[i].params[j];
    const sw_facts *f = &plan->facts[p->facts];
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    *out = (sw_param_plan){.path = p->path,
                           .path_length = p->path_length,
                           .role = f->role,
                           .dtype = f->dtype,
                           .n_dims = shape == NULL ? 0 : shape->n_dims,
                           .dims = shape == NULL ? NULL : shape->dims,
                           .is_trained = f->is_trained,
                           .tp = f->places.on[SW_ON_TP],
                           .cp = f->places.on[SW_ON_CP],
                           .ep = f->places.on[SW_ON_EP],
                           .n_grad_sums = f->grad.n,
                           .grad_sums = f->grad.sums};
    return true;
}

const sw_mesh *sw_plan_mesh(const sw_plan *plan)
{
    return plan == NULL ? NULL : plan->mesh;
}

uint64_t sw_plan_fingerprint(const sw_plan *plan)
{
    return plan == NULL ? 0 : plan->fingerprint;
}

const sw_report *sw_plan_findings(const sw_plan *plan)
{
    return plan == NULL ? NULL : plan->report;
}

void sw_text_free(char *text)
{
    sw_free(text);
}
