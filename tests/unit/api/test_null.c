/*
 * The rule for arguments of shardwright/shardwright.h, held against every function that the headers declare:
 * each is called with each of its pointers NULL in turn. A function or a pointer without a case fails.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api_case.h"
#include "base/status.h"
#include "declarations.h"

#define HEADERS SW_SOURCE_DIR "/include/shardwright"

/* One call of one function. */
typedef struct trial {
    const char *null; /* name of the argument that is NULL; "": none; NULL: all are */
    bool is_met;      /* the case has an argument of that name */
    sw_error err;
} trial;

/* What came of it: is_nothing says that every output, or the answer, is NULL, zero or what stands for it. */
typedef struct outcome {
    sw_status status;
    bool is_nothing;
} outcome;

static bool is_null(trial *t, const char *name)
{
    bool is_it = t->null == NULL || strcmp(t->null, name) == 0;

    t->is_met = t->is_met || is_it;
    return is_it;
}

/* An argument, or NULL when it is its turn; and an output that was cleared, where there was one. */
#define ARG(name, value)       (is_null(t, #name) ? NULL : (value))
#define CLEAR(name, condition) (is_null(t, #name) || (condition))

static char an_output[64]; /* of the last call that made a folder or file */

/* What an output points to before the call: must be gone after it. */
static uint64_t before[16];
static void *const poison = before;

static const char *fresh_path(void)
{
    static unsigned n;

    (void)snprintf(an_output, sizeof an_output, "out-%u", n++);
    return scratch(an_output);
}

/*
 * Most cases have one of three forms: a function that hands out something new, one that frees, and one that
 * answers. The others are written out.
 */
#define MAKES_CASE(name, type, free_it, call)                                                                \
    static outcome name(trial *t)                                                                            \
    {                                                                                                        \
        type *out = poison;                                                                                  \
        sw_status status = call;                                                                             \
        outcome o = {status, CLEAR(out, out == NULL)};                                                       \
        if (status == SW_OK)                                                                                 \
            free_it(out);                                                                                    \
        return o;                                                                                            \
    }

#define FREES_CASE(name, argument)                                                                           \
    static outcome name(trial *t)                                                                            \
    {                                                                                                        \
        (void)is_null(t, #argument);                                                                         \
        sw_##name(NULL);                                                                                     \
        return (outcome){SW_OK, false};                                                                      \
    }

#define ANSWERS_CASE(name, is_nothing)                                                                       \
    static outcome name(trial *t)                                                                            \
    {                                                                                                        \
        return (outcome){SW_OK, (is_nothing)};                                                               \
    }

/* ---- mesh.h ---- */

MAKES_CASE(mesh_create, sw_mesh, sw_mesh_destroy,
           sw_mesh_create(ARG(out, &out), ARG(axes, "tp=2"), 0, ARG(err, &t->err)))
FREES_CASE(mesh_destroy, mesh)
ANSWERS_CASE(mesh_axis_size, sw_mesh_axis_size(ARG(mesh, api.mesh), SW_AXIS_TP) == 0)

static outcome mesh_dp_parts(trial *t)
{
    uint32_t replicate = 9;
    uint32_t shard = 9;

    sw_mesh_dp_parts(ARG(mesh, api.mesh), ARG(replicate, &replicate), ARG(shard, &shard));
    return (outcome){SW_OK, CLEAR(replicate, replicate == 0) && CLEAR(shard, shard == 0)};
}

ANSWERS_CASE(mesh_ranks, sw_mesh_ranks(ARG(mesh, api.mesh)) == 0)

static outcome mesh_ep_mode(trial *t)
{
    sw_mesh *mesh = NULL;

    assert_int_equal(sw_mesh_create(&mesh, "ep=2", 0, NULL), SW_OK);
    outcome o = {SW_OK, sw_mesh_ep_mode(ARG(mesh, mesh)) == SW_EP_NONE};
    sw_mesh_destroy(mesh);
    return o;
}

static outcome mesh_coord_of(trial *t)
{
    sw_mesh_coord out = {{[SW_AXIS_TP] = 9}};
    sw_status status = sw_mesh_coord_of(ARG(mesh, api.mesh), 1, ARG(out, &out), ARG(err, &t->err));

    return (outcome){status, CLEAR(out, out.at[SW_AXIS_TP] == 0)};
}

/* The members are left alone on failure: as long as the axis is, which may not be known. */
static outcome mesh_group_members(trial *t)
{
    uint32_t members[2] = {0, 0};
    sw_status status =
        sw_mesh_group_members(ARG(mesh, api.mesh), 0, SW_AXIS_TP, ARG(members, members), ARG(err, &t->err));

    return (outcome){status, members[1] == 0};
}

static outcome placement_text(trial *t)
{
    static const sw_placement whole;
    char text[8] = "x";
    size_t length = sw_placement_text(ARG(placement, &whole), ARG(text, text), sizeof text);

    return (outcome){SW_OK, length == 0 && CLEAR(text, text[0] == '\0')};
}

static outcome placement_equal(trial *t)
{
    static const sw_placement whole;

    return (outcome){SW_OK, !sw_placement_equal(ARG(a, &whole), ARG(b, &whole))};
}

/* ---- model.h ---- */

MAKES_CASE(model_open, sw_model, sw_model_close,
           sw_model_open(ARG(out, &out), ARG(path, scratch("model")), ARG(err, &t->err)))
FREES_CASE(model_close, model)
ANSWERS_CASE(model_param_count, sw_model_param_count(ARG(model, api.model)) == 0)

static outcome model_param(trial *t)
{
    sw_param_info out = {.name = "before"};
    bool is_there = sw_model_param(ARG(model, api.model), 0, ARG(out, &out));

    return (outcome){SW_OK, !is_there && CLEAR(out, out.name == NULL)};
}

ANSWERS_CASE(model_architecture, *sw_model_architecture(ARG(model, api.model)) == '\0')
ANSWERS_CASE(model_type, *sw_model_type(ARG(model, api.model)) == '\0')
ANSWERS_CASE(model_elements, sw_model_elements(ARG(model, api.model)) == 0)
ANSWERS_CASE(model_fingerprint, sw_model_fingerprint(ARG(model, api.model)) == 0)

static outcome model_attribute(trial *t)
{
    int64_t value = 9;
    bool is_there = sw_model_attribute(ARG(model, api.model), SW_ATTR_HIDDEN, ARG(value, &value));

    return (outcome){SW_OK, !is_there && CLEAR(value, value == 0)};
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

static outcome plan_boundary(trial *t)
{
    sw_boundary_info out = {.fqn = "before"};
    bool is_there = sw_plan_boundary(ARG(plan, api.plan), 0, ARG(out, &out));

    return (outcome){SW_OK, !is_there && CLEAR(out, out.fqn == NULL)};
}

ANSWERS_CASE(plan_find, sw_plan_find(ARG(plan, api.plan), ARG(fqn, "model.norm")) == SIZE_MAX)

static outcome plan_param(trial *t)
{
    sw_param_plan out = {.path = "before"};
    bool is_there = sw_plan_param(ARG(plan, api.plan), 0, 0, ARG(out, &out));

    return (outcome){SW_OK, !is_there && CLEAR(out, out.path == NULL)};
}

ANSWERS_CASE(plan_mesh, sw_plan_mesh(ARG(plan, api.plan)) == NULL)
ANSWERS_CASE(plan_fingerprint, sw_plan_fingerprint(ARG(plan, api.plan)) == 0)
ANSWERS_CASE(plan_findings, sw_plan_findings(ARG(plan, api.plan)) == NULL)

static outcome plan_json(trial *t)
{
    char *text = poison;
    size_t length = 9;
    sw_status status =
        sw_plan_json(ARG(plan, api.plan), ARG(text, &text), ARG(length, &length), ARG(err, &t->err));
    outcome o = {status, CLEAR(text, text == NULL) && (CLEAR(length, length == 0) || is_null(t, "text"))};

    if (status == SW_OK)
        sw_text_free(text);
    return o;
}

static outcome plan_save(trial *t)
{
    const char *path = fresh_path();
    sw_status status = sw_plan_save(ARG(plan, api.plan), ARG(path, path), ARG(err, &t->err));

    return (outcome){status, !scratch_has(an_output)};
}

MAKES_CASE(plan_load, sw_plan, sw_plan_destroy,
           sw_plan_load(ARG(out, &out), ARG(path, scratch("plan.json")), ARG(err, &t->err)))

static outcome plan_check(trial *t)
{
    sw_report *report = NULL;

    assert_int_equal(sw_report_create(&report, NULL), SW_OK);
    sw_status status =
        sw_plan_check(ARG(plan, api.plan), ARG(model, api.model), ARG(report, report), ARG(err, &t->err));
    outcome o = {status, status != SW_OK && sw_report_count(report) == 0};
    sw_report_destroy(report);
    return o;
}

static outcome plan_explain(trial *t)
{
    sw_explain_options options = SW_EXPLAIN_OPTIONS_INIT;
    char *text = poison;
    size_t length = 9;
    sw_status status = sw_plan_explain(ARG(plan, api.plan), ARG(options, &options), ARG(text, &text),
                                       ARG(length, &length), ARG(err, &t->err));
    outcome o = {status, CLEAR(text, text == NULL) && (CLEAR(length, length == 0) || is_null(t, "text"))};

    if (status == SW_OK)
        sw_text_free(text);
    return o;
}

FREES_CASE(text_free, text)
MAKES_CASE(overrides_create, sw_overrides, sw_overrides_destroy,
           sw_overrides_create(ARG(out, &out), ARG(err, &t->err)))
FREES_CASE(overrides_destroy, overrides)

static outcome overrides_add_file(trial *t)
{
    sw_status status =
        sw_overrides_add_file(ARG(overrides, api.overrides), ARG(path, scratch("o.yaml")), ARG(err, &t->err));

    return (outcome){status, status != SW_OK};
}

static outcome overrides_add_text(trial *t)
{
    static const char entry[] = "- match: lm_head\n  params: {weight: {tp: R}}\n";
    sw_status status = sw_overrides_add_text(ARG(overrides, api.overrides), ARG(text, entry),
                                             sizeof entry - 1, ARG(name, "o.yaml"), ARG(err, &t->err));

    return (outcome){status, status != SW_OK};
}

static outcome overrides_add(trial *t)
{
    sw_override entry = {.struct_size = sizeof entry, .match = "model.norm"};
    sw_status status = sw_overrides_add(ARG(overrides, api.overrides), ARG(entry, &entry), ARG(err, &t->err));

    return (outcome){status, status != SW_OK};
}

static outcome overrides_register(trial *t)
{
    static const sw_plugin none = {.struct_size = sizeof none};
    sw_status status =
        sw_overrides_register(ARG(overrides, api.overrides), ARG(plugin, &none), ARG(err, &t->err));

    return (outcome){status, status != SW_OK};
}

static outcome overrides_set_derive(trial *t)
{
    sw_overrides_set_derive(ARG(overrides, api.overrides), true);
    return (outcome){SW_OK, false};
}

/* ---- checkpoint.h ---- */

static bool is_zero(const sw_checkpoint_result *result)
{
    static const sw_checkpoint_result zero;

    return memcmp(result, &zero, offsetof(sw_checkpoint_result, different)) == 0 && result->different == 0;
}

/* A call with options and a result. */
#define CHECKPOINT_CASE(name, call)                                                                          \
    static outcome name(trial *t)                                                                            \
    {                                                                                                        \
        sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;                                          \
        sw_checkpoint_result result = {9, 9, 9, 9, 9, 9, 9, 9};                                              \
        options.no_sync = true;                                                                              \
        sw_status status = call;                                                                             \
        return (outcome){status, CLEAR(result, is_zero(&result)) && status != SW_OK};                        \
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

/* ---- the table ---- */

typedef enum kind {
    FAILS,   /* returns a status */
    ANSWERS, /* has an answer for nothing */
    ACTS     /* takes NULL and does nothing then */
} kind;

typedef struct row {
    const char *function;
    kind kind;
    outcome (*call)(trial *t);
    const char *optional; /* names of the pointers that may be NULL; err always may */
} row;

// clang-format off
static const row rows[] = {
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

static const row *row_of(const char *function)
{
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        if (strcmp(rows[i].function, function) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    }
    return false;
}

static bool is_optional(const row *r, const char *pointer)
{
    return strcmp(pointer, "err") == 0 || has_word(r->optional, pointer);
}

/* Call each function with each pointer in turn that may, or may not, be NULL. */
static void for_each(bool optional, void (*check)(const row *r, const char *pointer))
{
    declarations all;

    declarations_read(&all, HEADERS);
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        const declaration *d = declaration_find(&all, rows[i].function);
        for (size_t k = 0; d != NULL && k < d->n_pointers; k++) {
            if (is_optional(&rows[i], d->pointers[k]) == optional)
                check(&rows[i], d->pointers[k]);
        }
    }
}

/* ---- the tests ---- */

static void every_function_that_takes_a_pointer_has_a_case_for_it(void **state)
{
    declarations all;
    size_t n = 0;

    (void)state;
    declarations_read(&all, HEADERS);
    for (size_t i = 0; i < all.n; i++) {
        const row *r = row_of(all.of[i].name);
        if (all.of[i].n_pointers == 0)
            continue;
        if (r == NULL) {
            fail_msg("%s() takes pointers and has no case here", all.of[i].name);
            return;
        }
        for (size_t k = 0; k < all.of[i].n_pointers; k++) {
            trial t = {.null = all.of[i].pointers[k]};
            (void)r->call(&t);
            if (!t.is_met)
                fail_msg("%s(): the case has no argument %s", r->function, t.null);
        }
        n++;
    }
    assert_int_equal(n, SW_COUNT(rows));
}

static void every_exported_function_was_found_in_the_headers(void **state)
{
    declarations all;
    size_t n = 0;
    char name[128];
    FILE *file = fopen(SW_SOURCE_DIR "/tests/headers/symbols-shardwright.txt", "r");

    (void)state;
    assert_non_null(file);
    declarations_read(&all, HEADERS);
    for (; fscanf(file, "%127s", name) == 1; n++) {
        if (declaration_find(&all, name) == NULL)
            fail_msg("%s() is exported, and not declared", name);
    }
    (void)fclose(file);
    assert_int_equal(n, all.n);
}

static void every_call_works_when_nothing_is_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        trial t = {.null = ""};
        outcome o = rows[i].call(&t);
        if (o.status != SW_OK || o.is_nothing)
            fail_msg("%s() fails: %s", rows[i].function, t.err.what);
    }
}

static void check_refused(const row *r, const char *pointer)
{
    char what[128];
    trial t = {.null = pointer};
    outcome o = r->call(&t);

    if (r->kind != ACTS && !o.is_nothing)
        fail_msg("%s(): %s is NULL, and an output or the answer stands for something", r->function, pointer);
    if (r->kind != FAILS)
        return;
    assert_int_equal(o.status, SW_E_ARGUMENT);
    assert_int_equal(t.err.status, SW_E_ARGUMENT);
    (void)snprintf(what, sizeof what, "%s(): %s is NULL", r->function, pointer);
    assert_string_equal(t.err.what, what);
    assert_string_equal(t.err.help, "give it: the header says which arguments may be NULL");
}

static void a_null_that_is_needed_is_refused_by_its_name_or_answered_by_nothing(void **state)
{
    (void)state;
    for_each(false, check_refused);
}

static void check_taken(const row *r, const char *pointer)
{
    trial t = {.null = pointer};
    outcome o = r->call(&t);

    if (o.status != SW_OK || o.is_nothing)
        fail_msg("%s(): %s may be NULL: %s", r->function, pointer, t.err.what);
}

static void a_null_that_may_be_is_taken(void **state)
{
    (void)state;
    for_each(true, check_taken);
}

static void all_pointers_may_be_null_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        trial t = {.null = NULL};
        outcome o = rows[i].call(&t);
        assert_int_equal(o.status, rows[i].kind == FAILS ? SW_E_ARGUMENT : SW_OK);
        assert_true(o.is_nothing || rows[i].kind == ACTS);
    }
}

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
        TEST(every_function_that_takes_a_pointer_has_a_case_for_it),
        TEST(every_exported_function_was_found_in_the_headers),
        TEST(every_call_works_when_nothing_is_null),
        TEST(a_null_that_is_needed_is_refused_by_its_name_or_answered_by_nothing),
        TEST(a_null_that_may_be_is_taken),
        TEST(all_pointers_may_be_null_at_once),
        TEST(what_is_beyond_the_last_is_answered_by_nothing),
        TEST(names_beyond_the_last_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
