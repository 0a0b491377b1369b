/* --plugin from end to end: what it brings may be named in overrides, and a file that is no plugin is said.
 */
#include "command_line.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGINS SW_BINARY_DIR "/tests/plugins/"
#define PHI3    SW_SOURCE_DIR "/tests/data/models/tiny-phi3"
#define PLAN    "plan " PHI3 " --mesh tp=2 "
#define INIT    "init " PHI3 " --seed 1 -o model -q" /* weights to shard */

/* A folder to work in, with the plugins as good.so and so on, and an override that names one's function. */
static int setup(void **state)
{
    if (scratch_setup_inside(state) != 0)
        return 1;
    scratch_text("o.yaml",
                 "- {match: model.layers.1.mlp, region_dispatch: true, local_compute: acme_experts}\n",
                 false);
    scratch_text("text.so", "acme_experts\n", false);
    scratch_text("empty.so", "", false);
    return symlink(PLUGINS "good.so", "good.so") + symlink(PLUGINS "no_symbol.so", "no_symbol.so") +
           symlink(PLUGINS "no_size.so", "no_size.so") + symlink(PLUGINS "taken_name.so", "taken_name.so") +
           symlink(PLUGINS "unresolved.so", "unresolved.so");
}

static void an_override_names_a_function_of_a_plugin(void **state)
{
    static const char *const paths[] = {"good.so", "./good.so", PLUGINS "good.so"};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char line[1024];
        (void)snprintf(line, sizeof line, PLAN "--overrides o.yaml --plugin %s", paths[i]);
        outcome result = line_prints(line);
        assert_non_null(strstr(result.out, "\n  computed by acme_experts (local_compute)\n"));
    }
}

static void without_the_plugin_the_name_is_unknown(void **state)
{
    (void)state;
    line_fails(PLAN "--overrides o.yaml", 1,
               "shardwright: o.yaml:1: local_compute: unknown function 'acme_experts'\n"
               "help: known: ep_experts, grouped_experts\n");
}

static void a_plan_that_names_a_function_is_read_without_the_plugin(void **state)
{
    (void)state;
    (void)line_prints(PLAN "--overrides o.yaml --plugin good.so -o plan.json -q");
    outcome explained = line_prints("explain plan.json model.layers.1.mlp");
    assert_non_null(strstr(explained.out, "\n  computed by acme_experts (local_compute)\n"));
    outcome checked = line_prints("explain --check plan.json " PHI3);
    assert_non_null(strstr(checked.out, "no errors, 0 warnings\n"));
    (void)line_prints(INIT);
    (void)line_prints("shard model --plan plan.json -o sharded -q");
}

static void every_command_that_reads_overrides_takes_a_plugin(void **state)
{
    (void)state;
    assert_string_equal(line_prints("roles " PHI3 " --overrides o.yaml --plugin good.so").out,
                        line_prints("roles " PHI3).out);
    (void)line_prints(INIT);
    (void)line_prints("shard model --mesh tp=2 --overrides o.yaml --plugin good.so -o a -q");
    (void)line_prints("reshard a --mesh tp=1 --overrides o.yaml --plugin good.so -o b -q");
    assert_true(scratch_has("b"));
}

static void a_plugin_alone_changes_nothing_and_is_looked_at(void **state)
{
    (void)state;
    assert_string_equal(line_prints(PLAN "-a --plugin good.so").out, line_prints(PLAN "-a").out);
    assert_int_equal(run_line(PLAN "--plugin no_size.so").exit, 1);
}

static void a_plugin_does_not_go_with_a_plan_file_nor_with_another(void **state)
{
    (void)state;
    line_fails("shard " PHI3 " --plan plan.json --plugin good.so -o out", 2,
               "shardwright: options --plan and --plugin exclude each other\nhelp: give one of them\n");
    line_fails(PLAN "--plugin good.so --plugin good.so", 2,
               "shardwright: option --plugin is given twice\nhelp: give it once\n");
}

static void what_is_no_plugin_is_refused_in_two_lines(void **state)
{
    (void)state;
    line_fails(PLAN "--plugin none.so", 1,
               "shardwright: none.so: cannot open: No such file or directory\nhelp: check the path\n");
    line_fails(PLAN "--plugin libc.so.6", 1, /* the loader would find it elsewhere */
               "shardwright: libc.so.6: cannot open: No such file or directory\nhelp: check the path\n");
    line_fails(PLAN "--plugin .", 1,
               "shardwright: .: is a folder, not a regular file\nhelp: give the path of a regular file\n");
    line_fails(PLAN "--plugin no_symbol.so", 1,
               "shardwright: no_symbol.so: does not export 'sw_plugin_entry'\n"
               "help: define it as shardwright/plugin.h shows\n");
    line_fails(PLAN "--plugin no_size.so", 1,
               "shardwright: no_size.so: sw_plugin: struct_size is 0\n"
               "help: set struct_size = sizeof(sw_plugin)\n");
    line_fails(PLAN "--plugin taken_name.so", 1,
               "shardwright: taken_name.so: sw_plugin: local_computes: 'ep_experts' is compiled in\n"
               "help: give each function a name of its own, such as acme_experts\n");
}

/* What the loader says is the system's. */
static void what_cannot_be_loaded_is_refused_with_the_reason(void **state)
{
    static const char *const names[] = {"text.so", "empty.so", "unresolved.so"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[1024];
        char begin[64];
        (void)snprintf(line, sizeof line, PLAN "--plugin %s", names[i]);
        int length = snprintf(begin, sizeof begin, "shardwright: %s: cannot load: ", names[i]);
        outcome result = run_line(line);
        assert_int_equal(result.exit, 1);
        assert_memory_equal(result.messages, begin, (size_t)length);
        assert_true(strcspn(result.messages + length, "\n") > 0);
        assert_non_null(strstr(result.messages, "\nhelp: build it as a shared library: "));
    }
    assert_non_null(strstr(run_line(PLAN "--plugin unresolved.so").messages, "sw_test_nowhere"));
}

static void lack_of_memory_is_survived(void **state)
{
    (void)state;
    line_survives_lack_of_memory("roles " PHI3 " --overrides o.yaml --plugin good.so");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_override_names_a_function_of_a_plugin),
        TEST(without_the_plugin_the_name_is_unknown),
        TEST(a_plan_that_names_a_function_is_read_without_the_plugin),
        TEST(every_command_that_reads_overrides_takes_a_plugin),
        TEST(a_plugin_alone_changes_nothing_and_is_looked_at),
        TEST(a_plugin_does_not_go_with_a_plan_file_nor_with_another),
        TEST(what_is_no_plugin_is_refused_in_two_lines),
        TEST(what_cannot_be_loaded_is_refused_with_the_reason),
        TEST(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
