/* Command lines from end to end, in this process: exit status, standard output, messages, memory. */
#include "command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/program.h"

static void the_version_and_help_are_results(void **state)
{
    (void)state;
    outcome result = run_line("--version");
    assert_int_equal(result.exit, 0);
    assert_memory_equal(result.out, "shardwright ", 12);
    assert_string_equal(result.messages, "");
    result = run_line("--help");
    assert_int_equal(result.exit, 0);
    assert_non_null(strstr(result.out, "\n  mesh"));
    assert_non_null(strstr(result.out, "Exit status: 0 done, 1 "));
    result = run_line("mesh --help");
    assert_int_equal(result.exit, 0);
    assert_non_null(strstr(result.out, "Usage: shardwright mesh --mesh AXES"));
    assert_non_null(strstr(result.out, "\n  -m, --mesh AXES  "));
    assert_string_equal(run_line("mesh -h").out, result.out);
}

static void help_fits_a_line_of_100(void **state)
{
    (void)state;
    const char *const lines[] = {"--help", "plan --help", "explain --help", "roles --help", "mesh --help"};
    for (size_t i = 0; i < SW_COUNT(lines); i++) {
        outcome result = run_line(lines[i]);
        for (const char *at = result.out; *at != '\0'; at += strcspn(at, "\n") + 1)
            assert_in_range(strcspn(at, "\n"), 0, 100);
    }
}

static void an_unknown_command_names_the_nearest(void **state)
{
    (void)state;
    line_fails("", 2, "shardwright: no command is given\nhelp: shardwright --help lists the commands\n");
    line_fails("mehs", 2,
               "shardwright: unknown command 'mehs'\n"
               "help: did you mean 'mesh'? shardwright --help lists the commands\n");
    line_fails("--hepl", 2,
               "shardwright: unknown option '--hepl'\n"
               "help: did you mean '--help'? shardwright --help lists the commands\n");
    line_fails("quantize", 2,
               "shardwright: unknown command 'quantize'\nhelp: shardwright --help lists the commands\n");
}

static void a_mesh_that_is_wrong_text_is_a_usage_error(void **state)
{
    (void)state;
    line_fails("mesh --mesh tq=4", 2,
               "shardwright: --mesh: unknown axis 'tq'\n"
               "help: did you mean 'tp'? axes are pp, dp, cp, ep, tp\n");
    line_fails("mesh --mesh ep=2,tp=4 --ep 2", 2,
               "shardwright: --mesh: ep=2 is derived from the dense ranks and 'ep' is an axis too\n"
               "help: --ep and an ep axis exclude each other: leave one of them out\n");
    line_fails("mesh", 2,
               "shardwright: option --mesh AXES is missing\n"
               "help: axis sizes: pp, dp, cp, ep, tp, such as dp=4,cp=2,tp=8\n");
}

static void a_mesh_that_does_not_fit_itself_is_an_input_error(void **state)
{
    (void)state;
    line_fails("mesh --mesh tp=4 --ep 3", 1,
               "shardwright: --mesh: ep=3 does not divide the 4 dense ranks of a stage (dp=1 * cp=1 * tp=4)\n"
               "help: ep sizes that fit: 1, 2, 4\n");
    line_fails(
        "mesh --mesh tp=4 --ep 3 --json", 1,
        "{\"error\":{\"status\":\"plan\",\"what\":\"--mesh: ep=3 does not divide the 4 dense ranks of a "
        "stage (dp=1 * cp=1 * tp=4)\",\"help\":\"ep sizes that fit: 1, 2, 4\"},\"findings\":[]}\n");
}

static void errors_are_json_also_when_the_options_are_wrong(void **state)
{
    (void)state;
    line_fails(
        "mesh --mehs tp=4 --json", 2,
        "{\"error\":{\"status\":\"argument\",\"what\":\"unknown option '--mehs'\",\"help\":\"did you mean "
        "'--mesh'? --help lists the options\"},\"findings\":[]}\n");
}

static void the_shown_ranks_are_checked(void **state)
{
    (void)state;
    line_fails("mesh --mesh tp=4 --rank 4", 2,
               "shardwright: option --rank: 4 is out of range\nhelp: give a number from 0 to 3\n");
    line_fails("mesh --mesh tp=65 --all", 2,
               "shardwright: --all shows up to 64 ranks, the mesh has 65\nhelp: choose one with --rank R\n");
    line_fails("mesh --mesh tp=4 --all --rank 1", 2,
               "shardwright: options --rank and --all exclude each other\nhelp: give one of them\n");
    line_fails("mesh --mesh tp=4 tp=4", 2,
               "shardwright: unexpected operand 'tp=4'\n"
               "help: usage: shardwright mesh --mesh AXES [--ep N] [--rank R | --all] [--json]\n");
}

static void a_mesh_is_shown_with_a_rank(void **state)
{
    (void)state;
    outcome result = run_line("mesh --mesh dp=2,cp=2,tp=2 --ep 4 --rank 6");
    assert_int_equal(result.exit, 0);
    assert_string_equal(result.messages, "");
    assert_string_equal(result.out, "ranks 8\n"
                                    "\n"
                                    "axis        size      stride\n"
                                    "pp             1           8\n"
                                    "dp             2           4\n"
                                    "cp             2           2\n"
                                    "tp             2           1\n"
                                    "edp            2           4  cut out of dp * cp * tp\n"
                                    "ep             4           1  cut out of dp * cp * tp\n"
                                    "\n"
                                    "rank 6\n"
                                    "\n"
                                    "axis       index  group\n"
                                    "pp             0  6\n"
                                    "dp             1  2, 6\n"
                                    "cp             1  4, 6\n"
                                    "tp             0  6, 7\n"
                                    "edp            1  2, 6\n"
                                    "ep             2  4, 5, 6, 7\n");
}

static void long_groups_are_abbreviated(void **state)
{
    (void)state;
    outcome result = run_line("mesh --mesh pp=2,dp_replicate=2,dp_shard=8,ep=2,tp=16");
    assert_non_null(strstr(result.out, "dp            16          32  dp_replicate 2 * dp_shard 8\n"));
    assert_non_null(strstr(result.out, "dp             0  0, 32, ..., 480\n"));
    assert_non_null(
        strstr(result.out, "edp           16          32  dp * cp: the ranks with the same experts\n"));
    result = run_line("mesh --mesh tp=8");
    assert_non_null(strstr(result.out, "tp             0  0, 1, 2, 3, 4, 5, 6, 7\n"));
}

static void all_ranks_are_shown_in_order(void **state)
{
    (void)state;
    outcome result = run_line("mesh --mesh dp=2,tp=2 --all");
    const char *at = result.out;
    for (int rank = 0; rank < 4; rank++) {
        char title[32];
        (void)snprintf(title, sizeof title, "\nrank %d\n", rank);
        at = strstr(at, title);
        assert_non_null(at);
    }
    assert_null(strstr(result.out, "edp")); /* a mesh without experts says nothing of them */
}

static void json_has_the_groups_as_first_stride_and_size(void **state)
{
    (void)state;
    outcome result = run_line("mesh --mesh tp=2 --json -r 1");
    assert_int_equal(result.exit, 0);
    assert_string_equal(result.out, "{\n"
                                    " \"ranks\": 2,\n"
                                    " \"dp_replicate\": 1,\n"
                                    " \"dp_shard\": 1,\n"
                                    " \"ep_mode\": \"none\",\n"
                                    " \"axes\": {\n"
                                    "  \"pp\": {\"size\": 1, \"stride\": 2},\n"
                                    "  \"dp\": {\"size\": 1, \"stride\": 2},\n"
                                    "  \"cp\": {\"size\": 1, \"stride\": 2},\n"
                                    "  \"tp\": {\"size\": 2, \"stride\": 1}\n"
                                    " },\n"
                                    " \"at\": [\n"
                                    "  {\n"
                                    "   \"rank\": 1,\n"
                                    "   \"axes\": {\n"
                                    "    \"pp\": {\"index\": 0, \"first\": 1, \"stride\": 2, \"size\": 1},\n"
                                    "    \"dp\": {\"index\": 0, \"first\": 1, \"stride\": 2, \"size\": 1},\n"
                                    "    \"cp\": {\"index\": 0, \"first\": 1, \"stride\": 2, \"size\": 1},\n"
                                    "    \"tp\": {\"index\": 1, \"first\": 0, \"stride\": 1, \"size\": 2}\n"
                                    "   }\n"
                                    "  }\n"
                                    " ]\n"
                                    "}\n");
}

static void two_runs_give_the_same_bytes(void **state)
{
    (void)state;
    const char *const lines[] = {"mesh --mesh pp=2,dp=4,cp=2,tp=4 --ep 8 --all",
                                 "mesh --mesh pp=2,dp=4,cp=2,tp=4 --ep 8 --rank 63 --json"};
    for (size_t i = 0; i < SW_COUNT(lines); i++) {
        outcome first = run_line(lines[i]);
        outcome second = run_line(lines[i]);
        assert_int_equal(first.exit, 0);
        assert_string_equal(first.out, second.out);
    }
}

static void a_full_disk_is_a_system_failure(void **state)
{
    (void)state;
    char name[] = "shardwright";
    char version[] = "--version";
    char *argv[] = {name, version, NULL};
    char messages[256] = "";
    FILE *full = fopen("/dev/full", "w");
    FILE *said = tmpfile();
    if (full == NULL) {
        print_message("skipped: /dev/full is not here\n");
        skip();
    }
    assert_int_equal(sw_program_main(2, argv, full, said), 3);
    (void)fclose(full);
    rewind(said);
    messages[fread(messages, 1, sizeof messages - 1, said)] = '\0';
    (void)fclose(said);
    assert_string_equal(messages, "shardwright: writing to standard output: No space left on device\n"
                                  "help: make room, or write elsewhere\n");
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    line_survives_lack_of_memory("mesh --mesh=tp=4 --json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_and_help_are_results),
        cmocka_unit_test(help_fits_a_line_of_100),
        cmocka_unit_test(an_unknown_command_names_the_nearest),
        cmocka_unit_test(a_mesh_that_is_wrong_text_is_a_usage_error),
        cmocka_unit_test(a_mesh_that_does_not_fit_itself_is_an_input_error),
        cmocka_unit_test(errors_are_json_also_when_the_options_are_wrong),
        cmocka_unit_test(the_shown_ranks_are_checked),
        cmocka_unit_test(a_mesh_is_shown_with_a_rank),
        cmocka_unit_test(long_groups_are_abbreviated),
        cmocka_unit_test(all_ranks_are_shown_in_order),
        cmocka_unit_test(json_has_the_groups_as_first_stride_and_size),
        cmocka_unit_test(two_runs_give_the_same_bytes),
        cmocka_unit_test(a_full_disk_is_a_system_failure),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
