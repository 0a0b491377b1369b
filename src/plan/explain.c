/*
 * The plan as text for people (design 3, "Explain"): what was asked for, every boundary that shows, the
 * totals, the findings. Linear in the size of the plan. Lines keep to 110 columns where names allow it;
 * nothing is coloured.
 */
#include "plan/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "plan/intern.h"

static void put_model(const sw_explain *e)
{
    const sw_plan *plan = e->plan;
    char params[SW_TEXT_NUMBER];
    char elements[SW_TEXT_NUMBER];

    sw_text_line(e->out, "model              %s (model_type %s, family %s), fingerprint %016" PRIx64,
                 plan->architecture[0] == '\0' ? "?" : plan->architecture,
                 plan->model_type[0] == '\0' ? "?" : plan->model_type,
                 plan->family[0] == '\0' ? "none" : plan->family, plan->fingerprint);
    sw_text_line(e->out, "                   %s parameters, %s elements, %" PRIu32 " layer%s",
                 sw_text_count(params, plan->n_params), sw_text_count(elements, plan->elements),
                 plan->n_layers, plan->n_layers == 1 ? "" : "s");
}

static void put_mesh(const sw_explain *e)
{
    const sw_plan *plan = e->plan;
    const sw_mesh *mesh = plan->mesh;
    char ep[32] = "";

    if (plan->ep_mode == SW_EP_AXIS)
        (void)snprintf(ep, sizeof ep, " ep=%" PRIu32, plan->ep);
    sw_text_line(e->out,
                 "mesh               pp=%" PRIu32 " dp=%" PRIu32 " cp=%" PRIu32 "%s tp=%" PRIu32 ": %" PRIu32
                 " rank%s",
                 sw_mesh_axis_size(mesh, SW_AXIS_PP), sw_mesh_axis_size(mesh, SW_AXIS_DP), plan->cp, ep,
                 plan->tp, sw_mesh_ranks(mesh), sw_mesh_ranks(mesh) == 1 ? "" : "s");
    switch (plan->ep_mode) {
    case SW_EP_AXIS:
        sw_text_line(e->out, "expert parallel    axis: every ep rank runs its own experts on all tokens");
        break;
    case SW_EP_TP_EXTEND:
        sw_text_line(e->out,
                     "expert parallel    tp_extend: the dp*cp*tp ranks of a stage are cut into edp=%" PRIu32
                     " * ep=%" PRIu32,
                     sw_mesh_axis_size(mesh, SW_AXIS_EDP), plan->ep);
        break;
    default:
        sw_text_line(e->out, "expert parallel    none");
        break;
    }
}

static void put_stages(const sw_explain *e)
{
    for (uint32_t i = 0; e->plan->n_stages > 1 && i < e->plan->n_stages; i++) {
        const sw_stage *s = &e->plan->stages[i];
        char layers[64] = "no layers";
        if (s->end_layer == s->first_layer + 1)
            (void)snprintf(layers, sizeof layers, "layer %" PRIu32, s->first_layer);
        else if (s->end_layer > s->first_layer)
            (void)snprintf(layers, sizeof layers, "layers %" PRIu32 "..%" PRIu32, s->first_layer,
                           s->end_layer - 1);
        sw_text_line(e->out, "%-18s %" PRIu32 ": %s%s%s", i == 0 ? "stages" : "", i, layers,
                     s->has_embed ? ", embedding" : "", s->has_head ? ", head" : "");
    }
}

static void put_tied(const sw_explain *e)
{
    const sw_plan *plan = e->plan;

    for (uint32_t i = 0; i < plan->n_tied; i++) {
        const char *other = plan->tied[i].second;
        const sw_spec *spec = sw_plan_find_user(plan, other);
        bool is_stored = spec != NULL && !spec->is_tied_alias;
        sw_text_line(e->out, "%-18s %s is stored, %s is the same tensor%s", i == 0 ? "tied" : "",
                     plan->tied[i].first, other, is_stored ? ", stored too" : "");
    }
}

static void put_switches(const sw_explain *e)
{
    const sw_plan *plan = e->plan;

    sw_text_line(e->out, "sequence parallel  %s", plan->sequence_parallel ? "on" : "off");
    sw_text_line(e->out, "loss parallel      %s", plan->loss_parallel ? "on" : "off");
    if (!plan->derive)
        sw_text_line(e->out, "derived            nothing: the overrides are the whole plan");
    if (plan->allow_uncovered)
        sw_text_line(e->out, "allow uncovered    on: what no rule places is kept whole");
    put_tied(e);
    sw_text_line(e->out, "boundaries         %" PRIu32, plan->n_specs);
    put_stages(e);
}

/* The rank that was asked for, and where it stands. */
static void put_rank(const sw_explain *e)
{
    sw_mesh_coord at;

    if (!e->options.has_rank || sw_mesh_coord_of(e->plan->mesh, e->rank, &at, NULL) != SW_OK)
        return;
    sw_text_line(e->out,
                 "rank %-13" PRIu32 " pp %" PRIu32 ", dp %" PRIu32 ", cp %" PRIu32 ", tp %" PRIu32
                 ", ep %" PRIu32 ": its extents and the boundaries of its stage are shown",
                 e->rank, at.at[SW_AXIS_PP], at.at[SW_AXIS_DP], at.at[SW_AXIS_CP], at.at[SW_AXIS_TP],
                 at.at[SW_AXIS_EP]);
}

/* Handlers, once for a run of parameters that have the same; the parameters say so themselves too. */
static void put_special(const sw_explain *e)
{
    const sw_plan *plan = e->plan;
    uint32_t end = 0;

    for (uint32_t i = 0; i < plan->n_special; i = end) {
        const sw_special *s = &plan->special[i];
        for (end = i + 1; end < plan->n_special && strcmp(plan->special[end].handler, s->handler) == 0 &&
                          strcmp(plan->special[end].reason, s->reason) == 0;)
            end++;
        sw_text_line(e->out, "%-18s %" PRIu32 " parameter%s by %s: %s", i == 0 ? "special handling" : "",
                     end - i, end - i == 1 ? "" : "s", s->handler, s->reason);
    }
}

/* Warnings first, as a plan file has them. */
static void put_findings(const sw_explain *e)
{
    const sw_report *report = e->plan->report;

    if (sw_report_count(report) > 0)
        sw_text_line(e->out, "%s", "");
    for (int severity = SW_SEVERITY_COUNT_ - 1; severity >= 0; severity--) {
        for (size_t i = 0; i < sw_report_count(report); i++) {
            const sw_finding *f = sw_report_finding(report, i);
            if ((int)f->severity != severity)
                continue;
            sw_text_line(e->out, "%s: %s [%s]", sw_severity_name(f->severity), f->what, f->code);
            if (f->help[0] != '\0')
                sw_text_line(e->out, "  help: %s", f->help);
        }
    }
}

static sw_status explain(sw_explain *e, sw_error *err)
{
    SW_TRY(sw_explain_select(e, err));
    SW_TRY(sw_explain_fold(e, err));
    if (e->options.pattern == NULL) {
        put_model(e);
        put_mesh(e);
        put_switches(e);
        put_special(e);
    }
    put_rank(e);
    if (e->n_groups == 0)
        sw_text_line(e->out, "nothing of it is in stage %" PRIu32 ", which rank %" PRIu32 " holds", e->stage,
                     e->rank);
    for (uint32_t i = 0; i < e->n_groups; i++)
        SW_TRY(sw_explain_boundary(e, &e->groups[i], err));
    if (e->options.pattern != NULL) {
        sw_explain_gradients(e);
        return SW_OK;
    }
    SW_TRY(sw_explain_totals(e, err));
    put_findings(e);
    return SW_OK;
}

static sw_status read_options(sw_explain *e, const sw_explain_options *options, sw_error *err)
{
    static const sw_options_type type = {"sw_explain_options", "start from SW_EXPLAIN_OPTIONS_INIT",
                                         SW_END_OF(sw_explain_options, rank), sizeof(sw_explain_options)};
    uint32_t ranks = sw_mesh_ranks(e->plan->mesh);

    e->options = (sw_explain_options)SW_EXPLAIN_OPTIONS_INIT;
    SW_TRY(sw_options_read(&e->options, options, &type, err));
    if (!e->options.has_rank)
        return SW_OK;
    if (e->options.rank >= ranks)
        return SW_FAIL(err, SW_E_ARGUMENT, "ranks are counted from 0",
                       "rank %" PRIu32 " of a mesh of %" PRIu32 " ranks", e->options.rank, ranks);
    e->rank = e->options.rank;
    e->at = sw_cost_coord_of(e->plan, e->rank);
    e->stage = e->rank / (ranks / sw_mesh_axis_size(e->plan->mesh, SW_AXIS_PP));
    return SW_OK;
}

sw_status sw_plan_explain(const sw_plan *plan, const sw_explain_options *options, char **text, size_t *length,
                          sw_error *err)
{
    sw_buffer out = {0};
    sw_explain e = {.plan = plan, .out = &out};

    SW_NEED(text, err);
    *text = NULL;
    if (length != NULL)
        *length = 0;
    SW_NEED(plan, err);
    SW_TRY(read_options(&e, options, err));
    e.arena = sw_arena_create(0);
    if (e.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    e.hidden = sw_cost_hidden(plan);
    sw_status status = explain(&e, err);
    sw_arena_destroy(e.arena);
    if (status == SW_OK && sw_buffer_text(&out) == NULL)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    if (status != SW_OK) {
        sw_buffer_clear(&out);
        return status;
    }
    *text = out.bytes;
    if (length != NULL)
        *length = out.length;
    return SW_OK;
}
