/* Every struct of the public headers that begins with its size is refused when no version had that size. */
#include <stdio.h>
#include <stdlib.h>

#include "api_case.h"
#include "base/status.h"

/* ---- the calls, each with a struct of which only the size may be read ---- */

static sw_status plan_create(const void *given, sw_error *err)
{
    sw_plan *plan = NULL;

    return sw_plan_create(&plan, api.model, api.mesh, given, err);
}

static sw_status plan_explain(const void *given, sw_error *err)
{
    char *text = NULL;

    return sw_plan_explain(api.plan, given, &text, NULL, err);
}

static sw_status overrides_add(const void *given, sw_error *err)
{
    return sw_overrides_add(api.overrides, given, err);
}

static sw_status overrides_register(const void *given, sw_error *err)
{
    return sw_overrides_register(api.overrides, given, err);
}

static sw_status shard(const void *given, sw_error *err)
{
    return sw_checkpoint_shard(scratch("model"), api.plan, scratch("out"), given, NULL, err);
}

static sw_status merge(const void *given, sw_error *err)
{
    return sw_checkpoint_merge(scratch("model"), scratch("out"), given, NULL, err);
}

static sw_status reshard(const void *given, sw_error *err)
{
    return sw_checkpoint_reshard(scratch("model"), api.plan, scratch("out"), given, NULL, err);
}

static sw_status verify(const void *given, sw_error *err)
{
    return sw_checkpoint_verify(scratch("model"), NULL, given, NULL, err);
}

static sw_status diff(const void *given, sw_error *err)
{
    return sw_checkpoint_diff(scratch("model"), scratch("model"), given, NULL, err);
}

static sw_status init(const void *given, sw_error *err)
{
    return sw_checkpoint_init(scratch("model"), scratch("out"), given, NULL, NULL, err);
}

static sw_status init_choices(const void *given, sw_error *err)
{
    return sw_checkpoint_init(scratch("model"), scratch("out"), NULL, given, NULL, err);
}

#define CHECKPOINT "sw_checkpoint_options", "start from SW_CHECKPOINT_OPTIONS_INIT"

typedef struct row {
    sw_status (*call)(const void *given, sw_error *err);
    const char *type;
    const char *help;
} row;

// clang-format off
static const row rows[] = {
    {plan_create,        "sw_plan_options",    "start from SW_PLAN_OPTIONS_INIT"},
    {plan_explain,       "sw_explain_options", "start from SW_EXPLAIN_OPTIONS_INIT"},
    {overrides_add,      "sw_override",        "set struct_size = sizeof(sw_override)"},
    {overrides_register, "sw_plugin",          "set struct_size = sizeof(sw_plugin)"},
    {init,               "sw_init_options",    "start from SW_INIT_OPTIONS_INIT"},
    {init_choices,       CHECKPOINT},
    {shard,              CHECKPOINT},
    {merge,              CHECKPOINT},
    {reshard,            CHECKPOINT},
    {verify,             CHECKPOINT},
    {diff,               CHECKPOINT},
};
// clang-format on

static void a_size_that_no_version_had_is_refused(void **state)
{
    static const size_t sizes[] = {0, 1, sizeof(size_t), 1 << 20, SIZE_MAX};
    size_t *given = malloc(sizeof *given);

    (void)state;
    assert_non_null(given);
    for (size_t i = 0; i < SW_COUNT(rows) * SW_COUNT(sizes); i++) {
        const row *r = &rows[i / SW_COUNT(sizes)];
        char what[128];
        sw_error err = {0};
        *given = sizes[i % SW_COUNT(sizes)];
        assert_int_equal(r->call(given, &err), SW_E_ARGUMENT);
        (void)snprintf(what, sizeof what, "%s: struct_size is %zu", r->type, *given);
        assert_string_equal(err.what, what);
        assert_string_equal(err.help, r->help);
    }
    free(given);
    assert_false(scratch_has("out"));
}

/* The size that the first version of each struct had: it is taken for good. */
static void the_first_version_of_each_struct_is_taken(void **state)
{
    sw_plan_options planning = {.struct_size = offsetof(sw_plan_options, report) + sizeof(sw_report *)};
    sw_explain_options explaining = {.struct_size = offsetof(sw_explain_options, rank) + sizeof(uint32_t)};
    sw_override entry = {.struct_size = offsetof(sw_override, local_compute) + sizeof(char *),
                         .match = "model.norm"};
    sw_plugin plugin = {.struct_size = offsetof(sw_plugin, local_computes) + sizeof(char **)};
    sw_init_options making = {.struct_size = offsetof(sw_init_options, scale) + sizeof(double)};
    sw_checkpoint_options copying = {.struct_size =
                                         offsetof(sw_checkpoint_options, report) + sizeof(sw_report *)};
    sw_plan *plan = NULL;
    char *text = NULL;

    (void)state;
    assert_int_equal(sw_plan_create(&plan, api.model, api.mesh, &planning, NULL), SW_OK);
    assert_int_equal(sw_plan_explain(plan, &explaining, &text, NULL, NULL), SW_OK);
    assert_int_equal(overrides_add(&entry, NULL), SW_OK);
    assert_int_equal(overrides_register(&plugin, NULL), SW_OK);
    assert_int_equal(sw_checkpoint_init(scratch("model"), scratch("out"), &making, &copying, NULL, NULL),
                     SW_OK);
    sw_text_free(text);
    sw_plan_destroy(plan);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, api_setup, api_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_size_that_no_version_had_is_refused),
        TEST(the_first_version_of_each_struct_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
