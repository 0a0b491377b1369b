/*
 * The rule for arguments of shardwright/shardwright.h (null_case.h) over the planner's functions, and what is
 * answered to an index or enumerator beyond the last.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api_case.h"
#include "base/status.h"
#include "null_case.h"

static char an_output[64]; /* of the last call that made a folder or file */

static const char *fresh_path(void)
{
    static unsigned n;

    (void)snprintf(an_output, sizeof an_output, "out-%u", n++);
    return scratch(an_output);
}

/* ---- mesh.h ---- */

MAKES_CASE(mesh_create, sw_mesh, sw_mesh_destroy,
           sw_mesh_create(ARG(out, &out), ARG(axes, "tp=2"), 0, ARG(err, &t->err)))
FREES_CASE(mesh_destroy, mesh)
ANSWERS_CASE(mesh_axis_size, sw_mesh_axis_size(ARG(mesh, api.mesh), SW_AXIS_TP) == 0)

static null_outcome mesh_dp_parts(null_trial *t)
{
    uint32_t replicate = 9;
    uint32_t shard = 9;

    sw_mesh_dp_parts(ARG(mesh, api.mesh), ARG(replicate, &replicate), ARG(shard, &shard));
    return (null_outcome){SW_OK, CLEAR(replicate, replicate == 0) && CLEAR(shard, shard == 0)};
}

ANSWERS_CASE(mesh_ranks, sw_mesh_ranks(ARG(mesh, api.mesh)) == 0)

static null_outcome mesh_ep_mode(null_trial *t)
{
    sw_mesh *mesh = NULL;

    assert_int_equal(sw_mesh_create(&mesh, "ep=2", 0, NULL), SW_OK);
    null_outcome o = {SW_OK, sw_mesh_ep_mode(ARG(mesh, mesh)) == SW_EP_NONE};
    sw_mesh_destroy(mesh);
    return o;
}

static null_outcome mesh_coord_of(null_trial *t)
{
    sw_mesh_coord out = {{[SW_AXIS_TP] = 9}};
    sw_status status = sw_mesh_coord_of(ARG(mesh, api.mesh), 1, ARG(out, &out), ARG(err, &t->err));

    return (null_outcome){status, CLEAR(out, out.at[SW_AXIS_TP] == 0)};
}

/* The members are left alone on failure: as long as the axis is, which may not be known. */
static null_outcome mesh_group_members(null_trial *t)
{
    uint32_t members[2] = {0, 0};
    sw_status status =
        sw_mesh_group_members(ARG(mesh, api.mesh), 0, SW_AXIS_TP, ARG(members, members), ARG(err, &t->err));

    return (null_outcome){status, members[1] == 0};
}

static null_outcome placement_text(null_trial *t)
{
    static const sw_placement whole;
    char text[8] = "x";
    size_t length = sw_placement_text(ARG(placement, &whole), ARG(text, text), sizeof text);

    return (null_outcome){SW_OK, length == 0 && CLEAR(text, text[0] == '\0')};
}

static null_outcome placement_equal(null_trial *t)
{
    static const sw_placement whole;

    return (null_outcome){SW_OK, !sw_placement_equal(ARG(a, &whole), ARG(b, &whole))};
}

/* ---- model.h ---- */

MAKES_CASE(model_open, sw_model, sw_model_close,
           sw_model_open(ARG(out, &out), ARG(path, scratch("model")), ARG(err, &t->err)))
FREES_CASE(model_close, model)
ANSWERS_CASE(model_param_count, sw_model_param_count(ARG(model, api.model)) == 0)

static null_outcome model_param(null_trial *t)
{
    sw_param_info out = {.name = "before"};
    bool is_there = sw_model_param(ARG(model, api.model), 0, ARG(out, &out));

    return (null_outcome){SW_OK, !is_there && CLEAR(out, out.name == NULL)};
}

ANSWERS_CASE(model_architecture, *sw_model_architecture(ARG(model, api.model)) == '\0')
ANSWERS_CASE(model_type, *sw_model_type(ARG(model, api.model)) == '\0')
ANSWERS_CASE(model_elements, sw_model_elements(ARG(model, api.model)) == 0)
ANSWERS_CASE(model_fingerprint, sw_model_fingerprint(ARG(model, api.model)) == 0)

static null_outcome model_attribute(null_trial *t)
{
    int64_t value = 9;
    bool is_there = sw_model_attribute(ARG(model, api.model), SW_ATTR_HIDDEN, ARG(value, &value));

    return (null_outcome){SW_OK, !is_there && CLEAR(value, value == 0)};
}

/* ---- report.h ---- */

MAKES_CASE(report_create, sw_report, sw_report_destroy, sw_report_create(ARG(out, &out), ARG(err, &t->err)))
FREES_CASE(report_destroy, report)
ANSWERS_CASE(report_count, sw_report_count(ARG(report, api.report)) == 0)
ANSWERS_CASE(report_count_of, sw_report_count_of(ARG(report, api.report), SW_SEVERITY_ERROR) == 0)
ANSWERS_CASE(report_finding, sw_report_finding(ARG(report, api.report), 0) == NULL)

/* ---- plan.h ---- */

MAKES_CASE(plan_create, sw_plan, sw_plan_destroy,
           sw_plan_create(ARG(out, &out), ARG(model, api.model), ARG(mesh, api.mesh),
                          ARG(options, &(sw_plan_options)SW_PLAN_OPTIONS_INIT), ARG(err, &t->err)))
FREES_CASE(plan_destroy, plan)
MAKES_CASE(plan_model_folder, sw_plan, sw_plan_destroy,
           sw_plan_model_folder(ARG(out, &out), ARG(model_path, scratch("model")), ARG(axes, "tp=2"),
                                ARG(err, &t->err)))
ANSWERS_CASE(plan_boundary_count, sw_plan_boundary_count(ARG(plan, api.plan)) == 0)

static null_outcome plan_boundary(null_trial *t)
{
    sw_boundary_info out = {.fqn = "before"};
    bool is_there = sw_plan_boundary(ARG(plan, api.plan), 0, ARG(out, &out));

    return (null_outcome){SW_OK, !is_there && CLEAR(out, out.fqn == NULL)};
}

ANSWERS_CASE(plan_find, sw_plan_find(ARG(plan, api.plan), ARG(fqn, "model.norm")) == SIZE_MAX)

static null_outcome plan_param(null_trial *t)
{
    sw_param_plan out = {.path = "before"};
    bool is_there = sw_plan_param(ARG(plan, api.plan), 0, 0, ARG(out, &out));

    return (null_outcome){SW_OK, !is_there && CLEAR(out, out.path == NULL)};
}

ANSWERS_CASE(plan_mesh, sw_plan_mesh(ARG(plan, api.plan)) == NULL)
ANSWERS_CASE(plan_fingerprint, sw_plan_fingerprint(ARG(plan, api.plan)) == 0)
ANSWERS_CASE(plan_findings, sw_plan_findings(ARG(plan, api.plan)) == NULL)

static null_outcome plan_json(null_trial *t)
{
    char *text = null_poison;
    size_t length = 9;
    sw_status status =
        sw_plan_json(ARG(plan, api.plan), ARG(text, &text), ARG(length, &length), ARG(err, &t->err));
    null_outcome o = {status,
                      CLEAR(text, text == NULL) && (CLEAR(length, length == 0) || null_turn(t, "text"))};

    if (status == SW_OK)
        sw_text_free(text);
    return o;
}

static null_outcome plan_save(null_trial *t)
{
    const char *path = fresh_path();
    sw_status status = sw_plan_save(ARG(plan, api.plan), ARG(path, path), ARG(err, &t->err));

    return (null_outcome){status, !scratch_has(an_output)};
}

MAKES_CASE(plan_load, sw_plan, sw_plan_destroy,
           sw_plan_load(ARG(out, &out), ARG(path, scratch("plan.json")), ARG(err, &t->err)))

static null_outcome plan_check(null_trial *t)
{
    sw_report *report = NULL;

    assert_int_equal(sw_report_create(&report, NULL), SW_OK);
    sw_status status =
        sw_plan_check(ARG(plan, api.plan), ARG(model, api.model), ARG(report, report), ARG(err, &t->err));
    null_outcome o = {status, status != SW_OK && sw_report_count(report) == 0};
    sw_report_destroy(report);
    return o;
}

static null_outcome plan_explain(null_trial *t)
{
    sw_explain_options options = SW_EXPLAIN_OPTIONS_INIT;
    char *text = null_poison;
    size_t length = 9;
    sw_status status = sw_plan_explain(ARG(plan, api.plan), ARG(options, &options), ARG(text, &text),
                                       ARG(length, &length), ARG(err, &t->err));
    null_outcome o = {status,
                      CLEAR(text, text == NULL) && (CLEAR(length, length == 0) || null_turn(t, "text"))};

    if (status == SW_OK)
        sw_text_free(text);
    return o;
}

FREES_CASE(text_free, text)
MAKES_CASE(overrides_create, sw_overrides, sw_overrides_destroy,
           sw_overrides_create(ARG(out, &out), ARG(err, &t->err)))
FREES_CASE(overrides_destroy, overrides)

static null_outcome overrides_add_file(null_trial *t)
{
    sw_status status =
        sw_overrides_add_file(ARG(overrides, api.overrides), ARG(path, scratch("o.yaml")), ARG(err, &t->err));

    return (null_outcome){status, status != SW_OK};
}

static null_outcome overrides_add_text(null_trial *t)
{
    static const char entry[] = "- match: lm_head\n  params: {weight: {tp: R}}\n";
    sw_status status = sw_overrides_add_text(ARG(overrides, api.overrides), ARG(text, entry),
                                             sizeof entry - 1, ARG(name, "o.yaml"), ARG(err, &t->err));

    return (null_outcome){status, status != SW_OK};
}

static null_outcome overrides_add(null_trial *t)
{
    sw_override entry = {.struct_size = sizeof entry, .match = "model.norm"};
    sw_status status = sw_overrides_add(ARG(overrides, api.overrides), ARG(entry, &entry), ARG(err, &t->err));

    return (null_outcome){status, status != SW_OK};
}

static null_outcome overrides_register(null_trial *t)
{
    static const sw_plugin none = {.struct_size = sizeof none};
    sw_status status =
        sw_overrides_register(ARG(overrides, api.overrides), ARG(plugin, &none), ARG(err, &t->err));

    return (null_outcome){status, status != SW_OK};
}

static null_outcome overrides_set_derive(null_trial *t)
{
    sw_overrides_set_derive(ARG(overrides, api.overrides), true);
    return (null_outcome){SW_OK, false};
}

/* ---- checkpoint.h ---- */

static bool is_zero(const sw_checkpoint_result *result)
{
    static const sw_checkpoint_result zero;

    return memcmp(result, &zero, offsetof(sw_checkpoint_result, different)) == 0 && result->different == 0;
}

/* A call with options and a result. */
#define CHECKPOINT_CASE(name, call)                                                                          \
    static null_outcome name(null_trial *t)                                                                  \
    {                                                                                                        \
        sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;                                          \
        sw_checkpoint_result result = {9, 9, 9, 9, 9, 9, 9, 9};                                              \
        options.no_sync = true;                                                                              \
        sw_status status = call;                                                                             \
        return (null_outcome){status, CLEAR(result, is_zero(&result)) && status != SW_OK};                   \
    }

MAKES_CASE(checkpoint_model, sw_model, sw_model_close,
           sw_checkpoint_model(ARG(out, &out), ARG(path, scratch("sharded")), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_shard, sw_checkpoint_shard(ARG(model_path, scratch("model")), ARG(plan, api.plan),
                                                      ARG(out, fresh_path()), ARG(options, &options),
                                                      ARG(result, &result), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_merge,
                sw_checkpoint_merge(ARG(in, scratch("sharded")), ARG(out, fresh_path()),
                                    ARG(options, &options), ARG(result, &result), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_reshard, sw_checkpoint_reshard(ARG(in, scratch("sharded")), ARG(plan, api.plan),
                                                          ARG(out, fresh_path()), ARG(options, &options),
                                                          ARG(result, &result), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_verify,
                sw_checkpoint_verify(ARG(in, scratch("sharded")), ARG(against, scratch("model")),
                                     ARG(options, &options), ARG(result, &result), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_diff,
                sw_checkpoint_diff(ARG(a, scratch("sharded")), ARG(b, scratch("model")),
                                   ARG(options, &options), ARG(result, &result), ARG(err, &t->err)))
CHECKPOINT_CASE(checkpoint_init,
                sw_checkpoint_init(ARG(config_path, scratch("model")), ARG(out, fresh_path()),
                                   ARG(init, &(sw_init_options)SW_INIT_OPTIONS_INIT), ARG(options, &options),
                                   ARG(result, &result), ARG(err, &t->err)))

// clang-format off
static const null_row rows[] = {
    {"sw_checkpoint_diff",     FAILS,   checkpoint_diff,      "options result"},
    {"sw_checkpoint_init",     FAILS,   checkpoint_init,      "init options result"},
    {"sw_checkpoint_merge",    FAILS,   checkpoint_merge,     "options result"},
    {"sw_checkpoint_model",    FAILS,   checkpoint_model,     ""},
    {"sw_checkpoint_reshard",  FAILS,   checkpoint_reshard,   "options result"},
    {"sw_checkpoint_shard",    FAILS,   checkpoint_shard,     "options result"},
    {"sw_checkpoint_verify",   FAILS,   checkpoint_verify,    "against options result"},
    {"sw_mesh_axis_size",      ANSWERS, mesh_axis_size,       ""},
    {"sw_mesh_coord_of",       FAILS,   mesh_coord_of,        ""},
    {"sw_mesh_create",         FAILS,   mesh_create,          ""},
    {"sw_mesh_destroy",        ACTS,    mesh_destroy,         ""},
    {"sw_mesh_dp_parts",       ANSWERS, mesh_dp_parts,        "replicate shard"},
    {"sw_mesh_ep_mode",        ANSWERS, mesh_ep_mode,         ""},
    {"sw_mesh_group_members",  FAILS,   mesh_group_members,   ""},
    {"sw_mesh_ranks",          ANSWERS, mesh_ranks,           ""},
    {"sw_model_architecture",  ANSWERS, model_architecture,   ""},
    {"sw_model_attribute",     ANSWERS, model_attribute,      ""},
    {"sw_model_close",         ACTS,    model_close,          ""},
    {"sw_model_elements",      ANSWERS, model_elements,       ""},
    {"sw_model_fingerprint",   ANSWERS, model_fingerprint,    ""},
    {"sw_model_open",          FAILS,   model_open,           ""},
    {"sw_model_param",         ANSWERS, model_param,          ""},
    {"sw_model_param_count",   ANSWERS, model_param_count,    ""},
    {"sw_model_type",          ANSWERS, model_type,           ""},
    {"sw_overrides_add",       FAILS,   overrides_add,        ""},
    {"sw_overrides_add_file",  FAILS,   overrides_add_file,   ""},
    {"sw_overrides_add_text",  FAILS,   overrides_add_text,   "name"},
    {"sw_overrides_create",    FAILS,   overrides_create,     ""},
    {"sw_overrides_destroy",   ACTS,    overrides_destroy,    ""},
    {"sw_overrides_register",  FAILS,   overrides_register,   ""},
    {"sw_overrides_set_derive",ACTS,    overrides_set_derive, ""},
    {"sw_placement_equal",     ANSWERS, placement_equal,      ""},
    {"sw_placement_text",      ANSWERS, placement_text,       "text"},
    {"sw_plan_boundary",       ANSWERS, plan_boundary,        ""},
    {"sw_plan_boundary_count", ANSWERS, plan_boundary_count,  ""},
    {"sw_plan_check",          FAILS,   plan_check,           "report"},
    {"sw_plan_create",         FAILS,   plan_create,          "options"},
    {"sw_plan_destroy",        ACTS,    plan_destroy,         ""},
    {"sw_plan_explain",        FAILS,   plan_explain,         "options length"},
    {"sw_plan_find",           ANSWERS, plan_find,            ""},
    {"sw_plan_findings",       ANSWERS, plan_findings,        ""},
    {"sw_plan_fingerprint",    ANSWERS, plan_fingerprint,     ""},
    {"sw_plan_json",           FAILS,   plan_json,            "length"},
    {"sw_plan_load",           FAILS,   plan_load,            ""},
    {"sw_plan_mesh",           ANSWERS, plan_mesh,            ""},
    {"sw_plan_model_folder",   FAILS,   plan_model_folder,    ""},
    {"sw_plan_param",          ANSWERS, plan_param,           ""},
    {"sw_plan_save",           FAILS,   plan_save,            ""},
    {"sw_report_count",        ANSWERS, report_count,         ""},
    {"sw_report_count_of",     ANSWERS, report_count_of,      ""},
    {"sw_report_create",       FAILS,   report_create,        ""},
    {"sw_report_destroy",      ACTS,    report_destroy,       ""},
    {"sw_report_finding",      ANSWERS, report_finding,       ""},
    {"sw_text_free",           ACTS,    text_free,            ""},
};
// clang-format on

static const null_table table = {"shardwright", rows, SW_COUNT(rows)};

static void what_is_beyond_the_last_is_answered_by_nothing(void **state)
{
    static const size_t far[] = {0, 1, SIZE_MAX / 2};
    sw_param_info param = {.name = "before"};
    sw_boundary_info boundary = {.fqn = "before"};
    sw_param_plan planned = {.path = "before"};
    int64_t value = 9;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(far); i++) {
        assert_false(sw_model_param(api.model, sw_model_param_count(api.model) + far[i], &param));
        assert_null(param.name);
        assert_false(sw_plan_boundary(api.plan, sw_plan_boundary_count(api.plan) + far[i], &boundary));
        assert_null(boundary.fqn);
        assert_false(sw_plan_param(api.plan, sw_plan_boundary_count(api.plan) + far[i], 0, &planned));
        assert_null(planned.path);
        assert_true(sw_plan_boundary(api.plan, 0, &boundary));
        assert_false(sw_plan_param(api.plan, 0, boundary.n_params + far[i], &planned));
        assert_null(sw_report_finding(api.report, sw_report_count(api.report) + far[i]));
    }
    assert_int_equal(sw_mesh_axis_size(api.mesh, SW_AXIS_COUNT_), 0);
    assert_int_equal(sw_report_count_of(api.report, SW_SEVERITY_COUNT_), 0);
    assert_false(sw_model_attribute(api.model, SW_ATTR_COUNT_, &value));
    assert_int_equal(value, 0);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_COUNT_), 0);
}

static void names_beyond_the_last_are_null(void **state)
{
    const char *const names[] = {
        sw_attr_name(SW_ATTR_COUNT_),   sw_axis_name(SW_AXIS_COUNT_),
        sw_dtype_name(SW_DTYPE_COUNT_), sw_boundary_type_name(SW_BOUNDARY_COUNT_),
        sw_role_name(SW_ROLE_COUNT_),   sw_ep_mode_name(SW_EP_MODE_COUNT_),
        sw_attr_name((sw_attr)-1),      sw_severity_name(SW_SEVERITY_COUNT_),
        sw_axis_name((sw_axis)-1),      sw_boundary_type_name((sw_boundary_type)-1),
        sw_dtype_name((sw_dtype)-1),    sw_ep_mode_name((sw_ep_mode)-1),
        sw_role_name((sw_role)-1),      sw_severity_name((sw_severity)-1),
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++)
        assert_null(names[i]);
    assert_string_equal(sw_status_name((sw_status)99), "unknown");
    assert_int_equal(sw_status_exit((sw_status)99), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NULL_TESTS(&table, api_setup, api_teardown),
        TEST(what_is_beyond_the_last_is_answered_by_nothing),
        TEST(names_beyond_the_last_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
