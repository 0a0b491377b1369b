/*
 * Checking a given plan, usually one from a file. All work is done on a copy, made by writing the plan and
 * reading it back: so what is checked is what the file says, and the given plan stays as it is. Every fault
 * is found in one run.
 */
#include "plan/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "plan/fault.h"
#include "plan/lint.h"
#include "plan/plan_read.h"
#include "plan/plan_write.h"
#include "plan/report.h"

size_t sw_check_fqn(const sw_spec *spec, const sw_spec_param *param, char *text, size_t capacity)
{
    int n = snprintf(text, capacity, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                     (int)param->path_length, param->path);
    size_t length = n > 0 ? (size_t)n : 0;

    return length < capacity ? length : capacity - 1;
}

static sw_status copy_of(sw_plan **out, const sw_plan *plan, sw_error *err)
{
    sw_buffer text SW_AUTO(sw_buffer_clear) = {0};
    sw_report *report = NULL;

    SW_TRY(sw_plan_write(plan, &text, err));
    SW_TRY(sw_plan_read(out, text.bytes, text.length, "the plan", err));
    sw_status status = sw_report_create(&report, err); /* the file's findings are not this run's */
    if (status != SW_OK) {
        sw_plan_destroy(*out);
        *out = NULL;
        return status;
    }
    sw_report_destroy((*out)->report);
    (*out)->report = report;
    (*out)->strict = plan->strict;
    return SW_OK;
}

/* ---- the model ---- */

static bool is_same_model(const sw_plan *plan, const sw_model *model)
{
    return plan->fingerprint == model->fingerprint && plan->n_params == model->n_params &&
           plan->elements == model->elements;
}

static void other_model(sw_plan *work, const sw_model *model)
{
    (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "other_model", "", 0,
                        "give the plan's own model, or plan this one",
                        "the plan is for another model: fingerprint %016" PRIx64 ", %" PRIu64
                        " parameters, %" PRIu64 " elements; this one has %016" PRIx64 ", %zu, %" PRIu64,
                        work->fingerprint, work->n_params, work->elements, model->fingerprint,
                        model->n_params, model->elements);
}

/* The same tensors under another config: what was planned with its words and counts may not hold. */
static void check_config(sw_plan *work, const sw_model *model)
{
    const char *family = model->family == NULL ? "" : model->family->name;
    const struct said {
        const char *key;
        const char *planned;
        const char *now;
    } words[] = {
        {"architecture", work->architecture, model->architecture },
        {"model_type",   work->model_type,   sw_model_type(model)}
    };

    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (strcmp(words[i].planned, words[i].now) != 0) {
            (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "other_model", "", 0,
                                "give the plan's own model, or plan this one",
                                "the plan is for %s '%.100s'; the model's is '%.100s'", words[i].key,
                                words[i].planned, words[i].now);
        }
    }
    if (work->n_layers != model->n_layers)
        (void)sw_plan_fault(
            work, SW_SEVERITY_ERROR, "other_model", "", 0, "give the plan's own model, or plan this one",
            "the plan is for %" PRIu32 " layers; the model has %" PRIu32, work->n_layers, model->n_layers);
    if (strcmp(work->family, family) != 0)
        (void)sw_plan_fault(work, SW_SEVERITY_WARNING, "differs_from_derived", "", 0,
                            "nothing, if it is meant; else make the plan again",
                            "family '%.100s'; '%.100s' is derived", work->family, family);
}

static const sw_ep_stack *stack_of(const sw_spec *spec, uint32_t param)
{
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        if (spec->stacks[i].param == param)
            return &spec->stacks[i];
    }
    return NULL;
}

/* The tensor that a parameter is, or the first source of a stack; NULL when the model has none of that name.
 */
static const sw_tensor_entry *tensor_of(const sw_model *model, const sw_spec *spec, uint32_t param,
                                        const sw_ep_stack *stack)
{
    char name[4096];
    size_t length = sw_check_fqn(spec, &spec->params[param], name, sizeof name);

    if (stack != NULL) {
        int n = snprintf(name, sizeof name, "%s%s%s0%s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                         stack->prefix, stack->suffix);
        length = n > 0 && (size_t)n < sizeof name ? (size_t)n : 0;
    }
    return sw_tensor_list_find(&model->list, name, length);
}

/* A stack has the number of its sources in front. */
static bool is_same_shape(const sw_shape *planned, const sw_shape *stored, const sw_ep_stack *stack)
{
    uint32_t front = stack == NULL ? 0 : 1;

    if (planned == NULL || stored == NULL)
        return true;
    return planned->n_dims == stored->n_dims + front && (stack == NULL || planned->dims[0] == stack->n) &&
           memcmp(planned->dims + front, stored->dims, stored->n_dims * sizeof *stored->dims) == 0;
}

static void check_tensors(sw_plan *work, const sw_model *model)
{
    for (uint32_t i = 0; i < work->n_specs; i++) {
        const sw_spec *spec = &work->specs[i];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            const sw_facts *f = &work->facts[spec->params[k].facts];
            const sw_ep_stack *stack = stack_of(spec, k);
            const sw_tensor_entry *t = tensor_of(model, spec, k, stack);
            char fqn[4096];
            if (t == NULL || (t->dtype == f->dtype && is_same_shape(f->shape, t->shape, stack)))
                continue; /* a name that the model lacks is a lint's */
            size_t length = sw_check_fqn(spec, &spec->params[k], fqn, sizeof fqn);
            (void)sw_plan_fault(
                work, SW_SEVERITY_ERROR, "other_tensor", fqn, length, "make the plan again for this model",
                "the plan has another %s than the model", t->dtype == f->dtype ? "shape" : "dtype");
        }
    }
}

/* ---- the whole ---- */

static sw_status compare(const sw_plan *plan, sw_plan *work, const sw_model *model, sw_error *err)
{
    check_config(work, model);
    check_tensors(work, model);
    SW_TRY(sw_check_finish(plan, work, model, err));
    sw_check_marks(work);
    SW_TRY(sw_lint(work, model, err));
    return plan->derive ? sw_check_derived(plan, work, model, err) : SW_OK;
}

static sw_status run(const sw_plan *plan, sw_plan *work, const sw_model *model, sw_error *err)
{
    bool is_same = is_same_model(plan, model);

    if (is_same)
        SW_TRY(compare(plan, work, model, err));
    else
        other_model(work, model); /* of another model everything would differ */
    if (work->is_out_of_memory)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to check a plan of %" PRIu64 " parameters",
                       plan->n_params);
    sw_plan_faults_flush(work);
    return sw_report_status(work->report, err);
}

sw_status sw_plan_check(const sw_plan *plan, const sw_model *model, sw_report *report, sw_error *err)
{
    sw_plan *work = NULL;

    SW_NEED(plan, err);
    SW_NEED(model, err);
    SW_TRY(copy_of(&work, plan, err));
    sw_status status = run(plan, work, model, err);
    if (report != NULL)
        sw_report_append(report, work->report);
    sw_plan_destroy(work);
    return status;
}
