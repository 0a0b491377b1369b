/* Commands on checkpoints as command lines: every one under lack of memory, what goes together, and signals.
 */
#include "checkpoint_case.h"
#include "command_line.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk.h"
#include "cli/interrupt.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 1," \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 40, 'torch_dtype': 'bfloat16'"
// clang-format on

/* A line with '$' for the scratch folder. */
static const char *line_of(const char *text)
{
    static char line[1024];
    size_t n = 0;

    for (; *text != '\0'; text++) {
        int k = *text == '$' ? snprintf(line + n, sizeof line - n, "%s", scratch(""))
                             : snprintf(line + n, sizeof line - n, "%c", *text);
        n += (size_t)k;
        assert_true(n < sizeof line);
    }
    return line;
}

static void make_shards(void)
{
    make_model("m", LLAMA, NULL, 1);
    assert_int_equal(run_line(line_of("shard $/m --mesh tp=2 -o $/s -q")).exit, 0);
}

static void every_command_survives_lack_of_memory(void **state)
{
    static const char *const lines[] = {
        "shard $/m --mesh tp=2 -o $/out1 --threads 1",
        "merge $/s -o $/out2 --threads 1",
        "reshard $/s --mesh tp=1 -o $/out3 --threads 1",
        "verify $/s --against $/m --threads 1",
        "diff $/m $/s --threads 1",
        "ls $/s",
        "ls $/m --json",
    };

    (void)state;
    make_shards();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        line_survives_lack_of_memory(line_of(lines[i]));
    assert_string_equal(scratch_list(""), "m out1 out2 out3 s ");
}

static void what_does_not_go_with_a_plan_file_is_refused(void **state)
{
    static const char *const options[] = {
        "--ep 2", "--no-sp", "--loss-parallel", "--overrides x.yaml", "--strict", "--allow-uncovered"};
    static const char *const names[] = {"ep",        "no-sp",  "loss-parallel",
                                        "overrides", "strict", "allow-uncovered"};

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char line[128];
        char wanted[256];
        (void)snprintf(line, sizeof line, "reshard in --plan plan.json %s -o out", options[i]);
        (void)snprintf(wanted, sizeof wanted,
                       "shardwright: options --plan and --%s exclude each other\nhelp: give one of them\n",
                       names[i]);
        line_fails(line, 2, wanted);
    }
}

static void the_result_of_diff_is_printed_although_it_fails(void **state)
{
    (void)state;
    make_shards();
    make_model("n", "", "model.norm.weight BF16 16\n", 1);
    outcome o = run_line(line_of("diff $/m $/n"));
    assert_int_equal(o.exit, 1);
    assert_non_null(strstr(o.out, "lm_head.weight: only in "));
    assert_non_null(strstr(o.messages, " differ: 11 of 12 tensors\n"));
    assert_null(strstr(o.messages, "only in"));
    o = run_line(line_of("diff $/m $/n --quiet"));
    assert_int_equal(o.exit, 1);
    assert_string_equal(o.out, "");
}

static void quiet_says_nothing_of_what_is_right(void **state)
{
    (void)state;
    make_shards();
    assert_string_equal(line_prints(line_of("verify $/s --quiet")).out, "");
    assert_string_equal(line_prints(line_of("diff $/s $/m -q")).out, "");
    assert_string_equal(line_prints(line_of("merge $/s -o $/back -q")).out, "");
}

static void a_checkpoint_does_not_go_to_standard_output(void **state)
{
    static const char *const lines[] = {"init $/m -o -", "shard $/m --mesh tp=2 -o -", "merge $/s --output -",
                                        "reshard $/s --mesh tp=4 --output=-"};
    (void)state;
    make_shards();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        line_fails(line_of(lines[i]), 2,
                   "shardwright: option --output: a checkpoint is a folder, '-' is none\n"
                   "help: give a folder that is not there yet\n");
}

static void a_thread_more_or_less_changes_nothing(void **state)
{
    static outcome first;

    (void)state;
    make_shards();
    first = line_prints(line_of("verify $/s --threads 1"));
    assert_string_equal(line_prints(line_of("verify $/s --threads 16")).out, first.out);
    line_fails("verify in --threads 17", 2,
               "shardwright: option --threads: 17 is out of range\nhelp: give a number from 1 to 16\n");
}

/* In a process of its own, which ends by the signal. */
static void a_signal_stops_the_work_and_ends_the_process(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    (void)state;
    make_model("m", LLAMA, NULL, 1);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sw_interrupt_watch();
            (void)raise(signals[i]);
            outcome o = run_line(line_of("shard $/m --mesh tp=2 -o $/out"));
            if (o.exit != 3 || strstr(o.messages, "stopped after ") == NULL || scratch_has("out"))
                _exit(1);
            sw_interrupt_follow();
            _exit(2);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
    }
    assert_string_equal(scratch_list(""), "m ");
}

/* SIGTERM before call number `n` of those that change the disk: where there was one, what the process says of
 * itself is what became of the output. */
static bool shard_is_asked_to_stop(unsigned n, bool is_replaced)
{
    int status = 0;

    if (is_replaced && !scratch_has("out/manifest.json"))
        (void)line_prints(line_of("shard $/m --mesh tp=1 -o $/out"));
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char fault[64];
        (void)snprintf(fault, sizeof fault, "any:after=%u:term", n);
        if (sw_disk_fault_set(fault, NULL) != SW_OK)
            _exit(100);
        outcome o = run_line(line_of("shard $/m --mesh tp=2 -o $/out --replace --threads 1"));
        bool was_asked = sw_interrupt_is_asked();
        sw_interrupt_follow();
        _exit(o.exit != 0 ? 101 : was_asked ? 0 : 102);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    bool is_new = scratch_has("out/dense-pp0-tp1.safetensors");
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGTERM);
        assert_false(is_new);
        assert_int_equal(scratch_has("out"), is_replaced);
    } else {
        assert_true(is_new);
        assert_int_equal(WEXITSTATUS(status) == 0 ? 0 : 102, WEXITSTATUS(status));
    }
    assert_string_equal(scratch_list(""), scratch_has("out") ? "m out " : "m ");
    if (is_new)
        scratch_remove("out");
    return WIFSIGNALED(status) || WEXITSTATUS(status) == 0;
}

static void a_signal_that_comes_when_the_output_is_there_is_passed_over(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 1);
    for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
        unsigned n = 0;
        while (shard_is_asked_to_stop(n, is_replaced))
            n++;
        assert_true(n > 10);
    }
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(every_command_survives_lack_of_memory),
        ONE(what_does_not_go_with_a_plan_file_is_refused),
        ONE(the_result_of_diff_is_printed_although_it_fails),
        ONE(quiet_says_nothing_of_what_is_right),
        ONE(a_checkpoint_does_not_go_to_standard_output),
        ONE(a_thread_more_or_less_changes_nothing),
        ONE(a_signal_stops_the_work_and_ends_the_process),
        ONE(a_signal_that_comes_when_the_output_is_there_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
