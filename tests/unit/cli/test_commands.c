/* plan, explain and roles from end to end: what they print, what they write, and what they refuse. */
#include "command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"

#define MODELS SW_SOURCE_DIR "/tests/data/models/"
#define LLAMA  MODELS "tiny-llama"
#define PHI3   MODELS "tiny-phi3"
#define MOE    MODELS "tiny-deepseek"
#define HOUSE  MODELS "tiny-unknown"

static char folder[] = "/tmp/sw-cli-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[64];
    const char *const names[] = {"plan.json", "o.yaml"};
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

/* A line with the folder in place of each '@'. */
static const char *at(const char *line)
{
    static char text[1024];
    size_t n = 0;
    for (; *line != '\0'; line++) {
        if (*line == '@')
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", folder);
        else
            text[n++] = *line;
    }
    text[n] = '\0';
    return text;
}

static const char *contents(const char *name)
{
    static char text[65536];
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

static void write_file(const char *name, const char *text)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_plan_is_explained_and_written(void **state)
{
    (void)state;
    outcome plain = line_prints("plan " PHI3 " --mesh dp=2,tp=4");
    assert_non_null(strstr(plain.out, "\nmodel.layers.{0..1}.self_attn  (attention, 2 alike)\n"));
    outcome written = line_prints(at("plan " PHI3 " --mesh dp=2,tp=4 -o @/plan.json"));
    assert_string_equal(written.out, plain.out);
    assert_non_null(contents("plan.json"));
    outcome json = line_prints("plan " PHI3 " --mesh dp=2,tp=4 --json");
    assert_string_equal(json.out, contents("plan.json"));
    outcome explained = line_prints(at("explain @/plan.json"));
    assert_string_equal(explained.out, plain.out);
    outcome all = line_prints("plan " PHI3 " --mesh dp=2,tp=4 --all");
    assert_non_null(strstr(all.out, "\nmodel.layers.1.self_attn  (attention)\n"));
    assert_string_equal(line_prints(at("explain @/plan.json -a")).out, all.out);
}

static void the_file_of_a_hyphen_is_standard_output(void **state)
{
    (void)state;
    outcome json = line_prints("plan " PHI3 " --mesh tp=2 --json");
    assert_string_equal(line_prints("plan " PHI3 " --mesh tp=2 -o -").out, json.out);
    assert_string_equal(line_prints("plan " PHI3 " --mesh tp=2 --output - --json --all").out, json.out);
    assert_string_equal(line_prints("plan " PHI3 " --mesh tp=2 -q -o -").out, json.out);
    assert_int_equal(access("-", F_OK), -1);
}

static void quiet_writes_and_prints_nothing(void **state)
{
    (void)state;
    assert_string_equal(line_prints(at("plan " PHI3 " --mesh tp=2 -q -o @/plan.json")).out, "");
    assert_non_null(strstr(contents("plan.json"), "\"tp\": 2,"));
    outcome json = line_prints(at("plan " PHI3 " --mesh tp=1 --json -o @/plan.json"));
    assert_string_equal(json.out, contents("plan.json"));
    assert_string_equal(line_prints("plan " PHI3 " --mesh tp=2 --quiet --json").out, "");
}

static void switches_reach_the_plan(void **state)
{
    (void)state;
    outcome result = line_prints("plan " PHI3 " --mesh tp=2 --no-sp --loss-parallel");
    assert_non_null(strstr(result.out, "\nsequence parallel  off\nloss parallel      on\n"));
    result = line_prints("plan " MOE " --mesh dp=2,tp=2 --ep 4");
    assert_non_null(strstr(result.out, "into edp=1 * ep=4\n"));
    result = run_line("plan " HOUSE " --mesh tp=2 --allow-uncovered");
    assert_int_equal(result.exit, 0);
    assert_memory_equal(result.messages, "shardwright: warning: model.layers.0.temperature.scale: ", 56);
}

static void overrides_are_read_and_checked(void **state)
{
    (void)state;
    write_file("o.yaml", "- match: '*.nothing'\n  region_dispatch: false\n");
    outcome result = run_line(at("plan " PHI3 " --mesh tp=2 --overrides @/o.yaml"));
    assert_int_equal(result.exit, 0);
    assert_non_null(strstr(result.messages, "shardwright: warning: "));
    assert_non_null(strstr(result.messages, "*.nothing"));
    result = run_line(at("plan " PHI3 " --mesh tp=2 --strict --overrides @/o.yaml"));
    assert_int_equal(result.exit, 1);
    assert_string_equal(result.out, "");
    write_file("o.yaml", "- match: model.norm\n  paramz: auto\n");
    result = run_line(at("plan " PHI3 " --mesh tp=2 --overrides @/o.yaml"));
    assert_int_equal(result.exit, 1);
    assert_non_null(strstr(result.messages, "did you mean 'params'?"));
}

static void every_fault_of_a_plan_is_said_with_its_help(void **state)
{
    (void)state;
    outcome result = run_line("plan " LLAMA " --mesh tp=3");
    assert_int_equal(result.exit, 1);
    assert_string_equal(result.out, "");
    assert_non_null(strstr(result.messages,
                           "shardwright: model.layers.#.self_attn: 8 query heads are not divisible by "
                           "tp=3"));
    assert_non_null(strstr(result.messages, "[heads]\nhelp: tp sizes that fit: 1, 2"));
    assert_non_null(strstr(result.messages,
                           "shardwright: model.layers.#.mlp.down_proj.weight: 64 columns are not "
                           "divisible by tp=3 (3 alike) [indivisible]\nhelp: tp sizes that fit: "));
    assert_null(strstr(result.messages, "more)")); /* the first fault is not said again as the failure */
    result = run_line("plan " LLAMA " --mesh tp=3 --json");
    assert_int_equal(result.exit, 1);
    assert_string_equal(result.out, "");
    assert_memory_equal(result.messages, "{\"error\":{\"status\":\"plan\",\"what\":\"", 34);
    assert_non_null(strstr(
        result.messages, "{\"severity\":\"error\",\"code\":\"heads\",\"fqn\":\"model.layers.#.self_attn\""));
}

static void a_failed_plan_leaves_the_old_file(void **state)
{
    (void)state;
    write_file("plan.json", "old");
    assert_int_equal(run_line(at("plan " LLAMA " --mesh tp=3 -o @/plan.json")).exit, 1);
    assert_string_equal(contents("plan.json"), "old");
    outcome result = run_line("plan " PHI3 " --mesh tp=2 -o /nowhere/plan.json");
    assert_int_equal(result.exit, 3);
    assert_string_equal(result.out, "");
    assert_memory_equal(result.messages, "shardwright: /nowhere/plan.json: ", 33);
}

static void command_lines_that_are_wrong(void **state)
{
    (void)state;
    line_fails(
        "plan", 2,
        "shardwright: plan needs 1 operand, 0 given\n"
        "help: usage: shardwright plan MODEL --mesh AXES [--ep N] [--overrides FILE] [-o FILE] [options]\n");
    line_fails("plan " LLAMA, 2,
               "shardwright: option --mesh AXES is missing\n"
               "help: axis sizes: pp, dp, cp, ep, tp, such as dp=4,cp=2,tp=8\n");
    line_fails(
        "plan --mesh tp=2 a b", 2,
        "shardwright: unexpected operand 'b'\n"
        "help: usage: shardwright plan MODEL --mesh AXES [--ep N] [--overrides FILE] [-o FILE] [options]\n");
    line_fails("plan " LLAMA " --mesh tp=2 --ep 0", 2,
               "shardwright: option --ep: 0 is out of range\nhelp: give a number from 1 to 4294967295\n");
    line_fails("plan " LLAMA " --mesh tp=2 --no-sequence-parallel", 2,
               "shardwright: unknown option '--no-sequence-parallel'\nhelp: --help lists the options\n");
    line_fails("plan " LLAMA " --mesh tp=2 --loss-paralel", 2,
               "shardwright: unknown option '--loss-paralel'\n"
               "help: did you mean '--loss-parallel'? --help lists the options\n");
    line_fails("explain", 2,
               "shardwright: explain needs a plan file, 0 operands given\n"
               "help: usage: shardwright explain PLAN [NAME|GLOB] [--rank R] [--all] [--json]\n");
    line_fails("explain --check plan.json", 2,
               "shardwright: explain --check needs a plan file and a model, 1 operand given\n"
               "help: usage: shardwright explain --check PLAN MODEL\n");
    line_fails("explain --rules plan.json", 2,
               "shardwright: unexpected operand 'plan.json'\nhelp: write --rules alone\n");
    line_fails("explain --rules --check", 2,
               "shardwright: options --rules and --check exclude each other\nhelp: give one of them\n");
    line_fails("explain --check --all a b", 2,
               "shardwright: options --check and --all exclude each other\nhelp: give one of them\n");
    line_fails("roles", 2,
               "shardwright: roles needs 1 operand, 0 given\n"
               "help: usage: shardwright roles MODEL [--overrides FILE] [--plugin FILE] [--all] [--json]\n");
    line_fails("roles ''", 1,
               "shardwright: : no such file or folder\nhelp: check the path and its permissions\n");
}

static void parts_of_a_plan_file_are_explained(void **state)
{
    (void)state;
    (void)line_prints(at("plan " PHI3 " --mesh dp=2,tp=2 -q -o @/plan.json"));
    outcome result = line_prints(at("explain @/plan.json model.layers.1.self_attn.qkv_proj --rank 3"));
    assert_non_null(strstr(result.out, "rank 3 (tp 1) holds 16:32 + 36:40 + 44:48 of dim 0\n"));
    line_fails(
        at("explain @/plan.json model.layers.1.self_atn"), 2,
        "shardwright: name 'model.layers.1.self_atn' matches no boundary and no parameter of the plan\n"
        "help: did you mean 'model.layers.1.self_attn'?\n");
    line_fails(at("explain @/plan.json --rank 4"), 2,
               "shardwright: option --rank: 4 is out of range\nhelp: give a number from 0 to 3\n");
    result = line_prints("explain --rules");
    assert_non_null(strstr(result.out, "\nlm_head\n  parameters over tp: column S(0), row S(1), norm R"));
}

static void a_plan_is_checked_against_its_model(void **state)
{
    (void)state;
    (void)line_prints(at("plan " PHI3 " --mesh dp=2,tp=2 -q -o @/plan.json"));
    outcome result = line_prints(at("explain --check @/plan.json " PHI3));
    assert_non_null(strstr(result.out, "/plan.json: fits " PHI3 ", no errors, 0 warnings\n"));
    result = run_line(at("explain --check @/plan.json " LLAMA));
    assert_int_equal(result.exit, 1);
    assert_string_equal(result.out, "");
    assert_non_null(strstr(result.messages, "help: "));
    result = run_line("explain " LLAMA "/config.json");
    assert_int_equal(result.exit, 1);
    assert_non_null(strstr(result.messages, "not a plan file"));
}

static void roles_are_lines_or_json(void **state)
{
    (void)state;
    outcome result = line_prints("roles " HOUSE);
    assert_non_null(
        strstr(result.out, "\nmodel.layers.0.temperature.scale                    1  skip     no rule\n"));
    result = line_prints("roles " PHI3 " --json");
    assert_non_null(
        strstr(result.out,
               "  {\"name\": \"model.layers.#.self_attn.qkv_proj.weight\", \"names\": 2, \"role\": "
               "\"fused_qkv\", \"rule\": \"family phi3: model.layers.#.self_attn.qkv_proj.weight\"},\n"));
    result = line_prints("roles " PHI3 " --all");
    assert_non_null(strstr(result.out, "\nmodel.layers.1.self_attn.qkv_proj.weight "));
    assert_non_null(strstr(result.out, "family phi3: model.layers.#.self_attn.qkv_proj.weight\n"));
    result = run_line("roles " MODELS "nothing --json");
    assert_int_equal(result.exit, 1);
    assert_memory_equal(result.messages, "{\"error\":{\"status\":\"format\",", 28);
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    (void)line_prints(at("plan " PHI3 " --mesh tp=2 -q -o @/plan.json"));
    line_survives_lack_of_memory("roles " HOUSE);
    line_survives_lack_of_memory("plan " PHI3 " --mesh tp=2");
    line_survives_lack_of_memory(at("explain @/plan.json *.mlp --rank 1"));
    line_survives_lack_of_memory("explain --rules");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_explained_and_written),
        cmocka_unit_test(the_file_of_a_hyphen_is_standard_output),
        cmocka_unit_test(quiet_writes_and_prints_nothing),
        cmocka_unit_test(switches_reach_the_plan),
        cmocka_unit_test(overrides_are_read_and_checked),
        cmocka_unit_test(every_fault_of_a_plan_is_said_with_its_help),
        cmocka_unit_test(a_failed_plan_leaves_the_old_file),
        cmocka_unit_test(command_lines_that_are_wrong),
        cmocka_unit_test(parts_of_a_plan_file_are_explained),
        cmocka_unit_test(a_plan_is_checked_against_its_model),
        cmocka_unit_test(roles_are_lines_or_json),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
