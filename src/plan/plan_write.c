/*
 * The plan file, version 1 (docs/formats/plan.md). Written in one pass into a buffer: what parameters share
 * is turned into text once and copied, so that 100,000 of them cost memory bandwidth. Key order is fixed and
 * model order is the plan's: two runs give the same bytes.
 */
#include "plan/plan_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "io/json_write.h"
#include "plan/layout.h"
#include "plan/lowering.h"

static const sw_axis axis_of[SW_ON_COUNT_] = {
    [SW_ON_CP] = SW_AXIS_CP, [SW_ON_EP] = SW_AXIS_EP, [SW_ON_TP] = SW_AXIS_TP};

/* Axes in the order in which people name them. */
static const int written_axes[] = {SW_ON_TP, SW_ON_CP, SW_ON_EP};

static void put_string(sw_json_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_put_string(w, text);
}

static void put_u64(sw_json_writer *w, const char *key, uint64_t value)
{
    sw_json_key(w, key);
    sw_json_put_u64(w, value);
}

static void put_bool(sw_json_writer *w, const char *key, bool value)
{
    sw_json_key(w, key);
    sw_json_put_bool(w, value);
}

/* The text of a cut may be long where an override wrote its segments one by one. */
void sw_placement_put(sw_json_writer *w, const sw_placement *placement)
{
    char text[256];
    size_t length = sw_placement_text(placement, text, sizeof text);

    if (length < sizeof text) {
        sw_json_put_string_n(w, text, length);
        return;
    }
    char *whole = sw_alloc(length + 1);
    if (whole == NULL) {
        w->out->failed = true;
        return;
    }
    (void)sw_placement_text(placement, whole, length + 1);
    sw_json_put_string_n(w, whole, length);
    sw_free(whole);
}

static void put_places(sw_json_writer *w, const sw_places *places)
{
    sw_json_begin_object(w);
    for (size_t i = 0; i < SW_COUNT(written_axes); i++) {
        int axis = written_axes[i];
        if ((places->present & (1U << axis)) == 0)
            continue;
        sw_json_key(w, sw_axis_name(axis_of[axis]));
        sw_placement_put(w, &places->on[axis]);
    }
    sw_json_end_object(w);
}

static void put_shape(sw_json_writer *w, const sw_shape *shape)
{
    sw_json_begin_array(w);
    for (uint32_t i = 0; shape != NULL && i < shape->n_dims; i++)
        sw_json_put_u64(w, shape->dims[i]);
    sw_json_end_array(w);
}

static void put_grad(sw_json_writer *w, const sw_grad_list *list)
{
    sw_json_key(w, "grad_sum");
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < list->n; i++) {
        sw_json_begin_object(w);
        put_string(w, "axis", sw_axis_name(list->sums[i].axis));
        if (list->sums[i].group != 0)
            put_u64(w, "group", list->sums[i].group);
        put_string(w, "reason", list->sums[i].reason);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

/*
 * Storage of a fused, head-structured or vocabulary tensor; a plain one has none. Shared experts always say
 * theirs: several of them flattened into one matrix could also be meant one by one.
 */
static void put_layout(sw_json_writer *w, const sw_facts *f)
{
    if (f->layout == SW_LAYOUT_PLAIN && f->role != SW_ROLE_SHARED_EXPERT)
        return;
    sw_json_key(w, "layout");
    sw_json_begin_object(w);
    put_string(w, "kind", sw_layout_name(f->layout));
    if (f->parts > 1)
        put_u64(w, "parts", f->parts);
    sw_json_end_object(w);
}

void sw_plan_usual_dims(uint32_t n_dims, int *out_dim, int *in_dim)
{
    *out_dim = n_dims >= 1 ? 0 : -1;
    *in_dim = n_dims >= 2 ? 1 : -1;
}

/* Stored dims of the mathematics, where they are not [out, in]. */
static void put_dims(sw_json_writer *w, const sw_facts *f)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    int out_dim = -1;
    int in_dim = -1;

    sw_plan_usual_dims(shape == NULL ? 0 : shape->n_dims, &out_dim, &in_dim);
    if (f->out_dim == out_dim && f->in_dim == in_dim)
        return;
    sw_json_key(w, "dims");
    sw_json_begin_object(w);
    sw_json_key(w, "out");
    sw_json_put_i64(w, f->out_dim);
    sw_json_key(w, "in");
    sw_json_put_i64(w, f->in_dim);
    sw_json_end_object(w);
}

static void put_facts(sw_json_writer *w, const sw_facts *f)
{
    sw_json_begin_object(w);
    put_string(w, "role", sw_role_name(f->role));
    put_string(w, "dtype", sw_dtype_name(f->dtype));
    sw_json_key(w, "shape");
    put_shape(w, f->shape);
    if (f->view != NULL) {
        sw_json_key(w, "view");
        put_shape(w, f->view);
    }
    sw_json_key(w, "placement");
    put_places(w, &f->places);
    put_layout(w, f);
    put_dims(w, f);
    put_grad(w, &f->grad);
    if (!f->is_trained)
        put_bool(w, "trained", false);
    if (f->reason != NULL)
        put_string(w, "reason", f->reason);
    if ((f->flags & SW_ROW_FULL_NORM) != 0)
        put_bool(w, "full_norm", true);
    if ((f->flags & SW_ROW_CENTRED) != 0)
        put_bool(w, "centred", true);
    if ((f->flags & (SW_ROW_QUANTISED | SW_ROW_IN_GROUPS)) != 0)
        put_bool(w, "in_groups", true);
    if (f->is_placed)
        put_bool(w, "overridden", true);
    if (f->is_rank0_only)
        put_string(w, "added_on", "tp rank 0");
    sw_json_end_object(w);
}

/* Every record of facts as text, once: offsets into one buffer. */
typedef struct facts_text {
    sw_buffer text;
    size_t *begin; /* n_facts + 1 */
} facts_text;

static bool render_facts(const sw_plan *plan, facts_text *out)
{
    sw_json_writer w;

    out->begin = sw_alloc_zero((size_t)plan->n_facts + 1, sizeof *out->begin);
    if (out->begin == NULL)
        return false;
    for (uint32_t i = 0; i < plan->n_facts; i++) {
        sw_json_write_init(&w, &out->text, true);
        put_facts(&w, &plan->facts[i]);
        out->begin[i + 1] = out->text.length;
    }
    return !out->text.failed;
}

static void put_io(sw_json_writer *w, const char *key, const sw_io *io)
{
    sw_json_key(w, key);
    if (!io->is_declared) {
        sw_json_put_null(w);
        return;
    }
    sw_json_inline(w);
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < io->n; i++) {
        sw_json_key(w, io->entries[i].name);
        put_places(w, &io->entries[i].places);
    }
    sw_json_end_object(w);
}

bool sw_plan_row_has_dim(sw_collective collective)
{
    return collective != SW_COLL_ALL_REDUCE && collective != SW_COLL_NONE;
}

static void put_lowered(sw_json_writer *w, const char *key, const sw_lowered *rows, uint32_t n)
{
    sw_json_key(w, key);
    sw_json_inline(w);
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < n; i++) {
        const sw_lowered *r = &rows[i];
        sw_json_begin_object(w);
        put_string(w, "arg", r->arg);
        put_string(w, "collective", sw_collective_name(r->collective));
        put_string(w, "axis", sw_axis_name(r->axis));
        if (sw_plan_row_has_dim(r->collective)) {
            sw_json_key(w, "dim");
            sw_json_put_i64(w, r->dim);
        }
        if (r->collective == SW_COLL_ALL_TO_ALL) {
            sw_json_key(w, "from_dim");
            sw_json_put_i64(w, r->other_dim);
        }
        put_string(w, "backward", sw_collective_name(r->backward));
        if (r->position > 0)
            put_u64(w, "position", r->position);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

static void put_words(sw_json_writer *w, const char *key, const char *const *words, uint32_t n)
{
    sw_json_key(w, key);
    sw_json_inline(w);
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < n; i++)
        sw_json_put_string(w, words[i]);
    sw_json_end_array(w);
}

static void put_params(sw_json_writer *w, const sw_spec *spec, const facts_text *facts, const uint8_t *shown)
{
    sw_json_key(w, "params");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        if (shown != NULL && shown[i] == 0)
            continue;
        sw_json_key_n(w, p->path, p->path_length);
        sw_json_put_raw(w, facts->text.bytes + facts->begin[p->facts],
                        facts->begin[p->facts + 1] - facts->begin[p->facts]);
    }
    sw_json_end_object(w);
}

static void put_stacks(sw_json_writer *w, const sw_spec *spec)
{
    if (spec->n_stacks == 0)
        return;
    sw_json_key(w, "ep_stack");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        const sw_ep_stack *s = &spec->stacks[i];
        sw_buffer sources = {0};
        sw_json_key(w, s->path);
        sw_json_inline(w);
        sw_json_begin_object(w);
        sw_buffer_puts(&sources, s->prefix);
        sw_buffer_putc(&sources, '#');
        sw_buffer_puts(&sources, s->suffix);
        w->out->failed = w->out->failed || sources.failed;
        sw_json_key(w, "sources");
        sw_json_put_string_n(w, sources.bytes, sources.length);
        sw_buffer_clear(&sources);
        put_u64(w, "n", s->n);
        sw_json_end_object(w);
    }
    sw_json_end_object(w);
}

/* The attributes that an override declared, by name. */
static void put_declared(sw_json_writer *w, const sw_spec *spec)
{
    bool is_open = false;

    for (uint32_t i = 0; i < spec->n_tp_local; i++) {
        if (!spec->tp_local[i].is_declared)
            continue;
        if (!is_open) {
            sw_json_key(w, "tp_divide_attrs");
            sw_json_inline(w);
            sw_json_begin_array(w);
        }
        is_open = true;
        sw_json_put_string(w, spec->tp_local[i].name);
    }
    if (is_open)
        sw_json_end_array(w);
}

static void put_tp_local(sw_json_writer *w, const sw_spec *spec)
{
    if (spec->n_tp_local == 0)
        return;
    sw_json_key(w, "tp_local");
    sw_json_inline(w);
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < spec->n_tp_local; i++) {
        sw_json_key(w, spec->tp_local[i].name);
        sw_json_begin_array(w);
        sw_json_put_i64(w, spec->tp_local[i].global);
        sw_json_put_i64(w, spec->tp_local[i].local);
        sw_json_end_array(w);
    }
    sw_json_end_object(w);
    put_declared(w, spec);
}

static void put_inner(sw_json_writer *w, const sw_spec *spec)
{
    if (spec->n_inner == 0)
        return;
    sw_json_key(w, "inner");
    sw_json_inline(w);
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < spec->n_inner; i++) {
        const sw_inner *inner = &spec->inner[i];
        sw_json_begin_object(w);
        put_string(w, "op", inner->op);
        put_string(w, "axis", sw_axis_name(inner->axis));
        if (inner->replicas > 1)
            put_u64(w, "replicas", inner->replicas);
        put_words(w, "params", inner->params, inner->n_params);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

static void put_injections(sw_json_writer *w, const sw_spec *spec)
{
    if (spec->inner_target != NULL)
        put_string(w, "inner_target", spec->inner_target);
    if (spec->inner_wrapper != NULL)
        put_string(w, "inner_wrapper", spec->inner_wrapper);
    if (spec->inner_first_input)
        put_string(w, "inner_out_src", "first_input");
    else if (spec->inner_out_src.is_declared)
        put_io(w, "inner_out_src", &spec->inner_out_src);
    if (spec->local_compute != NULL)
        put_string(w, "local_compute", spec->local_compute);
    if (spec->n_out_names > 0)
        put_words(w, "out_names", spec->out_names, spec->n_out_names);
    if (spec->n_overrides > 0)
        put_words(w, "overrides", spec->overrides, spec->n_overrides);
}

static void put_flags(sw_json_writer *w, const sw_spec *spec)
{
    put_bool(w, "needs_cp_attn", spec->needs_cp_attn);
    sw_json_key(w, "region_dispatch");
    if (spec->region_dispatch < 0)
        sw_json_put_null(w);
    else
        sw_json_put_bool(w, spec->region_dispatch != 0);
    put_bool(w, "terminal", spec->is_terminal);
    if (spec->is_tower)
        put_bool(w, "tower", true);
    if (spec->is_inserted)
        put_bool(w, "inserted", true);
    if (spec->is_tied_alias)
        put_bool(w, "tied_alias", true);
    if (spec->layer >= 0)
        put_u64(w, "layer", (uint64_t)spec->layer);
    put_u64(w, "stage", spec->pp_stage);
    if (spec->ep_size > 0)
        put_u64(w, "ep_size", spec->ep_size);
    if (spec->span_entry != NULL)
        put_string(w, "span_entry", spec->span_entry);
    if (spec->span_exit != NULL)
        put_string(w, "span_exit", spec->span_exit);
}

/* `shown`: a byte a parameter; NULL: all of them. */
static void put_spec(sw_json_writer *w, const sw_spec *spec, const facts_text *facts, const uint8_t *shown)
{
    sw_json_key_n(w, spec->fqn, spec->fqn_length);
    sw_json_begin_object(w);
    put_string(w, "type", sw_boundary_type_name(spec->type));
    put_params(w, spec, facts, shown);
    put_stacks(w, spec);
    put_io(w, "in_src", &spec->in_src);
    put_io(w, "in_dst", &spec->in_dst);
    put_io(w, "out_src", &spec->out_src);
    put_io(w, "out_dst", &spec->out_dst);
    sw_json_key(w, "lowering");
    sw_json_begin_object(w);
    put_lowered(w, "in", spec->lower_in, spec->n_lower_in);
    put_lowered(w, "out", spec->lower_out, spec->n_lower_out);
    sw_json_end_object(w);
    put_flags(w, spec);
    put_tp_local(w, spec);
    put_words(w, "deferred_bias", spec->deferred, spec->n_deferred);
    put_inner(w, spec);
    put_injections(w, spec);
    sw_json_end_object(w);
}

static void put_model(sw_json_writer *w, const sw_plan *plan)
{
    char fingerprint[24];

    (void)snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, plan->fingerprint);
    sw_json_key(w, "model");
    sw_json_begin_object(w);
    put_string(w, "architecture", plan->architecture);
    put_string(w, "model_type", plan->model_type);
    put_string(w, "family", plan->family);
    put_u64(w, "parameters", plan->n_params);
    put_u64(w, "elements", plan->elements);
    put_u64(w, "layers", plan->n_layers);
    put_string(w, "fingerprint", fingerprint);
    sw_json_end_object(w);
}

static void put_mesh(sw_json_writer *w, const sw_plan *plan)
{
    static const sw_axis axes[] = {SW_AXIS_PP, SW_AXIS_DP, SW_AXIS_CP, SW_AXIS_TP, SW_AXIS_EP};
    uint32_t replicate = 1;
    uint32_t shard = 1;

    sw_json_key(w, "mesh");
    sw_json_inline(w);
    sw_json_begin_object(w);
    for (size_t i = 0; i < SW_COUNT(axes); i++)
        put_u64(w, sw_axis_name(axes[i]), sw_mesh_axis_size(plan->mesh, axes[i]));
    sw_mesh_dp_parts(plan->mesh, &replicate, &shard);
    put_u64(w, "dp_replicate", replicate);
    put_u64(w, "dp_shard", shard);
    put_string(w, "ep_mode", sw_ep_mode_name(plan->ep_mode));
    if (plan->ep_mode == SW_EP_TP_EXTEND)
        put_u64(w, "edp", sw_mesh_axis_size(plan->mesh, SW_AXIS_EDP));
    put_u64(w, "ranks", sw_mesh_ranks(plan->mesh));
    sw_json_end_object(w);
}

static void put_stages(sw_json_writer *w, const sw_plan *plan)
{
    sw_json_key(w, "stages");
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < plan->n_stages; i++) {
        const sw_stage *s = &plan->stages[i];
        sw_json_inline(w);
        sw_json_begin_object(w);
        sw_json_key(w, "layers");
        sw_json_begin_array(w);
        sw_json_put_u64(w, s->first_layer);
        sw_json_put_u64(w, s->end_layer);
        sw_json_end_array(w);
        put_bool(w, "embed", s->has_embed);
        put_bool(w, "head", s->has_head);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

static void put_lists(sw_json_writer *w, const sw_plan *plan)
{
    sw_json_key(w, "special");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < plan->n_special; i++) {
        sw_json_key(w, plan->special[i].fqn);
        sw_json_inline(w);
        sw_json_begin_object(w);
        put_string(w, "handler", plan->special[i].handler);
        put_string(w, "reason", plan->special[i].reason);
        sw_json_end_object(w);
    }
    sw_json_end_object(w);
    sw_json_key(w, "tied");
    sw_json_inline(w);
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < plan->n_tied; i++) {
        sw_json_begin_array(w);
        sw_json_put_string(w, plan->tied[i].first);
        sw_json_put_string(w, plan->tied[i].second);
        sw_json_end_array(w);
    }
    sw_json_end_array(w);
    sw_json_key(w, "parallel_modules");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < plan->n_parallel; i++) {
        const sw_parallel_module *m = &plan->parallel[i];
        sw_json_key(w, m->fqn);
        sw_json_inline(w);
        sw_json_begin_object(w);
        put_string(w, "kind", m->kind);
        put_string(w, "axis", sw_axis_name(m->axis));
        put_u64(w, "size", m->size);
        sw_json_end_object(w);
    }
    sw_json_end_object(w);
}

static void put_findings(sw_json_writer *w, const sw_plan *plan)
{
    static const char *const keys[] = {"warnings", "notes"};
    static const sw_severity severities[] = {SW_SEVERITY_WARNING, SW_SEVERITY_NOTE};

    sw_json_key(w, "uncovered");
    sw_json_begin_array(w);
    for (size_t i = 0; i < sw_report_count(plan->report); i++) {
        const sw_finding *f = sw_report_finding(plan->report, i);
        if (strcmp(f->code, "uncovered") == 0)
            sw_json_put_string(w, f->fqn);
    }
    sw_json_end_array(w);
    for (size_t k = 0; k < SW_COUNT(keys); k++) {
        sw_json_key(w, keys[k]);
        sw_json_begin_array(w);
        for (size_t i = 0; i < sw_report_count(plan->report); i++) {
            const sw_finding *f = sw_report_finding(plan->report, i);
            if (f->severity != severities[k])
                continue;
            sw_json_inline(w);
            sw_json_begin_object(w);
            put_string(w, "code", f->code);
            put_string(w, "fqn", f->fqn);
            put_string(w, "text", f->what);
            if (f->help[0] != '\0')
                put_string(w, "help", f->help);
            sw_json_end_object(w);
        }
        sw_json_end_array(w);
    }
}

static void put_plan(sw_json_writer *w, const sw_plan *plan, const facts_text *facts)
{
    sw_json_begin_object(w);
    put_string(w, "format", "shardwright-plan");
    put_u64(w, "version", SW_PLAN_VERSION);
    put_model(w, plan);
    put_mesh(w, plan);
    put_bool(w, "sequence_parallel", plan->sequence_parallel);
    put_bool(w, "loss_parallel", plan->loss_parallel);
    put_bool(w, "derived", plan->derive);
    put_bool(w, "allow_uncovered", plan->allow_uncovered);
    put_stages(w, plan);
    sw_json_key(w, "boundaries");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < plan->n_specs; i++)
        put_spec(w, &plan->specs[i], facts, NULL);
    sw_json_end_object(w);
    put_lists(w, plan);
    put_findings(w, plan);
    sw_json_end_object(w);
}

static void put_part(sw_json_writer *w, const sw_plan *plan, const facts_text *facts, const bool *is_shown,
                     const uint8_t *const *shown)
{
    sw_json_begin_object(w);
    sw_json_key(w, "boundaries");
    sw_json_begin_object(w);
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        if (is_shown[i])
            put_spec(w, &plan->specs[i], facts, shown[i]);
    }
    sw_json_end_object(w);
    sw_json_end_object(w);
}

/* The whole plan, or with `is_shown` a part of it. */
static void clear_facts(facts_text *facts)
{
    sw_buffer_clear(&facts->text);
    sw_free(facts->begin);
}

/* All of the plan, or the boundaries that are shown. */
static sw_status write_plan(const sw_plan *plan, const bool *is_shown, const uint8_t *const *shown,
                            sw_json_writer *w, sw_error *err)
{
    facts_text facts SW_AUTO(clear_facts) = {0};
    bool ok = render_facts(plan, &facts);

    if (ok) {
        if (is_shown == NULL)
            put_plan(w, plan, &facts);
        else
            put_part(w, plan, &facts, is_shown, shown);
        sw_buffer_putc(w->out, '\n');
        ok = !w->out->failed;
    }
    return ok ? sw_json_write_end(w) : SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to write a plan");
}

sw_status sw_plan_write(const sw_plan *plan, sw_buffer *out, sw_error *err)
{
    sw_json_writer w;

    sw_json_write_init(&w, out, false);
    return write_plan(plan, NULL, NULL, &w, err);
}

sw_status sw_plan_write_to(const sw_plan *plan, const sw_sink *sink, sw_error *err)
{
    sw_buffer room SW_AUTO(sw_buffer_clear) = {0};
    sw_json_writer w;

    sw_json_write_to(&w, &room, false, sink, err);
    return write_plan(plan, NULL, NULL, &w, err);
}

sw_status sw_plan_write_part(const sw_plan *plan, const bool *is_shown, const uint8_t *const *shown,
                             sw_buffer *out, sw_error *err)
{
    sw_json_writer w;

    sw_json_write_init(&w, out, false);
    return write_plan(plan, is_shown, shown, &w, err);
}

sw_status sw_plan_json(const sw_plan *plan, char **text, size_t *length, sw_error *err)
{
    sw_buffer buffer = {0};

    SW_NEED(text, err);
    *text = NULL;
    if (length != NULL)
        *length = 0;
    SW_NEED(plan, err);
    sw_status status = sw_plan_write(plan, &buffer, err);
    if (status == SW_OK && sw_buffer_text(&buffer) == NULL)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to write a plan");
    if (status != SW_OK) {
        sw_buffer_clear(&buffer);
        return status;
    }
    *text = buffer.bytes;
    if (length != NULL)
        *length = buffer.length;
    return SW_OK;
}

sw_status sw_plan_save(const sw_plan *plan, const char *path, sw_error *err)
{
    sw_buffer buffer = {0};

    SW_NEED(plan, err);
    SW_NEED(path, err);
    sw_status status = sw_plan_write(plan, &buffer, err);
    if (status == SW_OK)
        status = sw_file_write_atomic(path, buffer.bytes, buffer.length, err);
    sw_buffer_clear(&buffer);
    return status;
}
