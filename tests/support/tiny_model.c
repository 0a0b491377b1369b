/* Tiny models: see the header. The folder is removed as soon as the model was read, so no test leaves one
 * behind. */
#include "tiny_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/intern.h"
#include "plan/lowering.h"
#include "plan/report.h"

static void write_file(const char *path, const char *text, char from, char to)
{
    FILE *file = fopen(path, "w");
    bool ok = file != NULL;

    for (; ok && *text != '\0'; text++)
        ok = fputc(*text == from ? to : *text, file) != EOF;
    if (file == NULL || fclose(file) != 0 || !ok)
        fail_msg("cannot write %s", path);
}

sw_model *tiny_open(const char *config, const char *params)
{
    char folder[64] = "/tmp/sw-tiny-XXXXXX";
    char path[128];
    sw_buffer json = {0};
    sw_model *model = NULL;
    sw_error err = {0};

    if (mkdtemp(folder) == NULL)
        fail_msg("cannot make a temporary folder");
    sw_buffer_printf(&json, "{%s}", config);
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, sw_buffer_text(&json), '\'', '"');
    sw_buffer_clear(&json);
    if (params != NULL) {
        (void)snprintf(path, sizeof path, "%s/params.tsv", folder);
        write_file(path, params, ' ', '\t');
    }
    sw_status status = sw_model_open(&model, folder, &err);
    (void)snprintf(path, sizeof path, "%s/params.tsv", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    (void)unlink(path);
    (void)rmdir(folder);
    if (status != SW_OK)
        fail_msg("the model cannot be read: %s (%s)", err.what, err.help);
    return model;
}

static void print_findings(const tiny *t)
{
    for (size_t i = 0; i < sw_report_count(t->report); i++) {
        const sw_finding *f = sw_report_finding(t->report, i);
        print_message("  %s [%s] %s (%s)\n", sw_severity_name(f->severity), f->code, f->what, f->help);
    }
}

tiny tiny_try(const tiny_case *what)
{
    tiny t = {0};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    t.model = tiny_open(what->config, what->params);
    if (sw_mesh_create(&t.mesh, what->mesh, what->ep, &t.err) != SW_OK ||
        sw_report_create(&t.report, NULL) != SW_OK)
        fail_msg("mesh %s: %s", what->mesh, t.err.what);
    if (what->overrides != NULL) {
        assert_int_equal(sw_overrides_create(&t.overrides, NULL), SW_OK);
        if (sw_overrides_add_text(t.overrides, what->overrides, strlen(what->overrides), "o.yaml", &t.err) !=
            SW_OK)
            fail_msg("overrides: %s (%s)", t.err.what, t.err.help);
    }
    options.no_sequence_parallel = what->no_sp;
    options.loss_parallel = what->loss_parallel;
    options.allow_uncovered = what->allow_uncovered;
    options.strict = what->strict;
    options.overrides = t.overrides;
    options.report = t.report;
    t.status = sw_plan_create(&t.plan, t.model, t.mesh, &options, &t.err);
    return t;
}

tiny tiny_plan(const tiny_case *what)
{
    tiny t = tiny_try(what);

    if (t.status != SW_OK) {
        print_findings(&t);
        fail_msg("there is no plan: %s (%s)", t.err.what, t.err.help);
    }
    return t;
}

tiny tiny_refuse(const tiny_case *what)
{
    tiny t = tiny_try(what);

    if (t.status != SW_E_PLAN) {
        print_findings(&t);
        fail_msg("status %s, a refusal was expected: %s", sw_status_name(t.status), t.err.what);
    }
    assert_null(t.plan);
    return t;
}

void tiny_drop(tiny *t)
{
    sw_plan_destroy(t->plan);
    sw_report_destroy(t->report);
    sw_overrides_destroy(t->overrides);
    sw_mesh_destroy(t->mesh);
    sw_model_close(t->model);
    *t = (tiny){0};
}

/* ---- finding ---- */

const sw_spec *tiny_spec(const tiny *t, const char *fqn)
{
    const sw_spec *spec = t->plan == NULL ? NULL : sw_plan_find_spec(t->plan, fqn, strlen(fqn));

    if (spec != NULL)
        return spec;
    for (uint32_t i = 0; t->plan != NULL && i < t->plan->n_specs; i++)
        print_message("  boundary '%s' %s\n", t->plan->specs[i].fqn,
                      sw_boundary_type_name(t->plan->specs[i].type));
    fail_msg("no boundary '%s'", fqn);
    return NULL;
}

static const sw_spec_param *find_param(const tiny *t, const char *fqn, const sw_spec **owner)
{
    for (uint32_t i = 0; i < t->plan->n_specs; i++) {
        const sw_spec *s = &t->plan->specs[i];
        size_t skip = s->fqn_length == 0 ? 0 : s->fqn_length + 1U;
        if (strncmp(fqn, s->fqn, s->fqn_length) != 0 || strlen(fqn) <= skip ||
            (skip > 0 && fqn[skip - 1] != '.'))
            continue;
        for (uint32_t k = 0; k < s->n_params; k++) {
            const sw_spec_param *p = &s->params[k];
            if (strlen(fqn + skip) == p->path_length && memcmp(fqn + skip, p->path, p->path_length) == 0) {
                *owner = s;
                return p;
            }
        }
    }
    for (uint32_t i = 0; i < t->plan->n_specs; i++) {
        const sw_spec *s = &t->plan->specs[i];
        for (uint32_t k = 0; k < s->n_params; k++)
            print_message("  '%s' '%.*s'\n", s->fqn, (int)s->params[k].path_length, s->params[k].path);
    }
    fail_msg("no boundary holds '%s'", fqn);
    return NULL;
}

const sw_facts *tiny_facts(const tiny *t, const char *fqn)
{
    const sw_spec *owner = NULL;
    return &t->plan->facts[find_param(t, fqn, &owner)->facts];
}

const char *tiny_owner(const tiny *t, const char *fqn)
{
    const sw_spec *owner = NULL;
    (void)find_param(t, fqn, &owner);
    return owner->fqn;
}

/* ---- expectations ---- */

static void expect(const char *what, const char *found, const char *wanted)
{
    if (strcmp(found, wanted) != 0)
        fail_msg("%s is \"%s\", expected \"%s\"", what, found, wanted);
}

void tiny_role(const tiny *t, const char *fqn, const char *role)
{
    expect(fqn, sw_role_name(tiny_facts(t, fqn)->role), role);
}

static void expect_on(const tiny *t, const char *fqn, int axis, const char *wanted)
{
    const sw_facts *f = tiny_facts(t, fqn);
    char text[256] = "-";

    if ((f->places.present & (1U << axis)) != 0)
        (void)sw_placement_text(&f->places.on[axis], text, sizeof text);
    expect(fqn, text, wanted);
}

void tiny_tp(const tiny *t, const char *fqn, const char *placement)
{
    expect_on(t, fqn, SW_ON_TP, placement);
}

void tiny_ep(const tiny *t, const char *fqn, const char *placement)
{
    expect_on(t, fqn, SW_ON_EP, placement);
}

void tiny_cp(const tiny *t, const char *fqn, const char *placement)
{
    expect_on(t, fqn, SW_ON_CP, placement);
}

static uint64_t cut_extent(const sw_facts *f, const sw_placement *p)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    uint32_t dim = 0;

    if (!sw_placement_dim(p, shape->n_dims, &dim))
        fail_msg("the placement's dim is not there");
    return shape->dims[dim];
}

static void expect_rows(const tiny *t, const char *fqn, int axis, uint32_t size, uint32_t rank,
                        const char *wanted)
{
    const sw_facts *f = tiny_facts(t, fqn);
    const sw_placement *p = &f->places.on[axis];
    sw_range pieces[64];
    uint32_t n = 0;
    sw_error err = {0};
    sw_buffer text = {0};

    if (p->kind != SW_PLACE_SHARD) {
        expect(fqn, p->kind == SW_PLACE_REPLICATE ? "all" : "partial", wanted);
        return;
    }
    if (sw_shard_pieces(p, cut_extent(f, p), size, rank, pieces, SW_COUNT(pieces), &n, &err) != SW_OK)
        fail_msg("%s: %s", fqn, err.what);
    for (uint32_t i = 0; i < n; i++)
        sw_buffer_printf(&text, "%s%" PRIu64 ":%" PRIu64, i == 0 ? "" : " ", pieces[i].begin, pieces[i].end);
    expect(fqn, sw_buffer_text(&text), wanted);
    sw_buffer_clear(&text);
}

void tiny_rows(const tiny *t, const char *fqn, uint32_t rank, const char *rows)
{
    expect_rows(t, fqn, SW_ON_TP, t->plan->tp, rank, rows);
}

void tiny_ep_rows(const tiny *t, const char *fqn, uint32_t rank, const char *rows)
{
    expect_rows(t, fqn, SW_ON_EP, t->plan->ep, rank, rows);
}

void tiny_tiles(const tiny *t, const char *fqn, uint32_t times)
{
    enum { MOST = 4096 };
    const sw_facts *f = tiny_facts(t, fqn);
    const sw_placement *p = &f->places.on[SW_ON_TP];
    uint64_t extent = cut_extent(f, p);
    uint32_t held[MOST] = {0};

    assert_true(extent <= MOST);
    for (uint32_t rank = 0; rank < t->plan->tp; rank++) {
        sw_range pieces[64];
        uint32_t n = 0;
        uint64_t last = 0;
        assert_int_equal(sw_shard_pieces(p, extent, t->plan->tp, rank, pieces, SW_COUNT(pieces), &n, NULL),
                         SW_OK);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(pieces[i].begin >= last); /* section order inside a rank */
            last = pieces[i].end;
            for (uint64_t row = pieces[i].begin; row < pieces[i].end; row++)
                held[row]++;
        }
    }
    for (uint64_t row = 0; row < extent; row++) {
        if (held[row] != times)
            fail_msg("%s: row %" PRIu64 " is held %u times, expected %u", fqn, row, held[row], times);
    }
}

void tiny_grads(const tiny *t, const char *fqn, const char *sums)
{
    const sw_facts *f = tiny_facts(t, fqn);
    sw_buffer text = {0};

    for (uint32_t i = 0; i < f->grad.n; i++) {
        const sw_grad_sum *g = &f->grad.sums[i];
        sw_buffer_printf(&text, "%s%s", i == 0 ? "" : ", ", sw_axis_name(g->axis));
        if (g->group != 0)
            sw_buffer_printf(&text, "/%u", g->group);
        sw_buffer_printf(&text, " %s", g->reason);
    }
    expect(fqn, sw_buffer_text(&text), sums);
    sw_buffer_clear(&text);
}

void tiny_type(const tiny *t, const char *boundary, const char *type)
{
    expect(boundary, sw_boundary_type_name(tiny_spec(t, boundary)->type), type);
}

static void put_side(sw_buffer *text, const sw_io *src, const sw_io *dst, int axis)
{
    for (uint32_t i = 0; i < src->n; i++) {
        char from[64];
        char to[64] = "none";
        (void)sw_placement_text(&src->entries[i].places.on[axis], from, sizeof from);
        for (uint32_t k = 0; k < dst->n; k++) {
            if (strcmp(dst->entries[k].name, src->entries[i].name) == 0)
                (void)sw_placement_text(&dst->entries[k].places.on[axis], to, sizeof to);
        }
        sw_buffer_printf(text, "%s%s: %s -> %s", text->length == 0 ? "" : "; ", src->entries[i].name, from,
                         to);
    }
}

void tiny_contract(const tiny *t, const char *boundary, sw_axis axis, const char *text)
{
    const sw_spec *s = tiny_spec(t, boundary);
    sw_buffer found = {0};

    put_side(&found, &s->in_src, &s->in_dst, SW_ON_OF(axis));
    put_side(&found, &s->out_src, &s->out_dst, SW_ON_OF(axis));
    expect(boundary, sw_buffer_text(&found), text);
    sw_buffer_clear(&found);
}

static void put_lowered(sw_buffer *text, const char *side, const sw_lowered *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sw_buffer_printf(text, "%s%s %s %s %d %s", text->length == 0 ? "" : "; ", side,
                         sw_axis_name(rows[i].axis), sw_collective_name(rows[i].collective), rows[i].dim,
                         sw_collective_name(rows[i].backward));
}

void tiny_lowering(const tiny *t, const char *boundary, const char *text)
{
    const sw_spec *s = tiny_spec(t, boundary);
    sw_buffer found = {0};

    put_lowered(&found, "in", s->lower_in, s->n_lower_in);
    put_lowered(&found, "out", s->lower_out, s->n_lower_out);
    expect(boundary, sw_buffer_text(&found), text);
    sw_buffer_clear(&found);
}

void tiny_attributes(const tiny *t, const char *boundary, const char *text)
{
    const sw_spec *s = tiny_spec(t, boundary);
    sw_buffer found = {0};

    for (uint32_t i = 0; i < s->n_tp_local; i++)
        sw_buffer_printf(&found, "%s%s %" PRId64 "/%" PRId64, i == 0 ? "" : ", ", s->tp_local[i].name,
                         s->tp_local[i].global, s->tp_local[i].local);
    expect(boundary, sw_buffer_text(&found), text);
    sw_buffer_clear(&found);
}

void tiny_deferred(const tiny *t, const char *boundary, const char *text)
{
    const sw_spec *s = tiny_spec(t, boundary);
    sw_buffer found = {0};

    for (uint32_t i = 0; i < s->n_deferred; i++)
        sw_buffer_printf(&found, "%s%s", i == 0 ? "" : ", ", s->deferred[i]);
    expect(boundary, sw_buffer_text(&found), text);
    sw_buffer_clear(&found);
}

static bool holds(const char *text, const char *words)
{
    return words == NULL || strstr(text, words) != NULL;
}

void tiny_finding(const tiny *t, sw_severity severity, const char *code, const char *what, const char *help)
{
    for (size_t i = 0; i < sw_report_count(t->report); i++) {
        const sw_finding *f = sw_report_finding(t->report, i);
        if (f->severity == severity && strcmp(f->code, code) == 0 && holds(f->what, what) &&
            holds(f->help, help))
            return;
    }
    print_findings(t);
    fail_msg("no %s [%s] with \"%s\" and help \"%s\"", sw_severity_name(severity), code,
             what == NULL ? "" : what, help == NULL ? "" : help);
}

bool tiny_has(const tiny *t, const char *code)
{
    for (size_t i = 0; i < sw_report_count(t->report); i++) {
        if (strcmp(sw_report_finding(t->report, i)->code, code) == 0)
            return true;
    }
    return false;
}

void tiny_silent(const tiny *t, const char *code)
{
    if (tiny_has(t, code)) {
        print_findings(t);
        fail_msg("a finding [%s], none was expected", code);
    }
}
