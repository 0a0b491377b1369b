/* Signals while something is written: the file is the old one or the new one, and nothing lies beside it. */
#include "cli/interrupt.h"

#include "command_line.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk.h"
#include "scratch.h"

#define PLAN "plan " SW_SOURCE_DIR "/tests/data/models/tiny-phi3 --mesh tp=2 -q -o "

static const char *plan_line(void)
{
    static char text[1024];
    (void)snprintf(text, sizeof text, PLAN "%s", scratch("p.json"));
    return text;
}

static bool is_plan(const char *name)
{
    sw_buffer text = scratch_read(name);
    bool is_whole = strstr(sw_buffer_text(&text), "\"format\": \"shardwright-plan\"") != NULL &&
                    text.length > 2 && strcmp(text.bytes + text.length - 2, "}\n") == 0;
    sw_buffer_clear(&text);
    return is_whole;
}

/* SIGTERM before call number n of those that change the disk, in a process of its own. Was there such a call?
 */
static bool ends_at_call(unsigned n)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char fault[64];
        (void)snprintf(fault, sizeof fault, "any:after=%u:term", n);
        if (sw_disk_fault_set(fault, NULL) != SW_OK)
            _exit(100);
        _exit(run_line(plan_line()).exit);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_int_equal(WTERMSIG(status), SIGTERM);
    return true;
}

static void a_signal_at_any_call_leaves_a_whole_plan_file_and_nothing_beside_it(void **state)
{
    (void)state;
    for (int is_old = 0; is_old < 2; is_old++) {
        unsigned n = 0;
        for (bool is_more = true; is_more; n++) {
            scratch_remove("p.json");
            if (is_old)
                scratch_text("p.json", "old", false);
            is_more = ends_at_call(n);
            assert_string_equal(scratch_list(""), "p.json ");
            assert_true(is_plan("p.json"));
        }
        assert_true(n > 4); /* create, write, sync, rename, and the run to the end */
    }
}

static void signals_end_the_process_again_when_the_file_is_written(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    (void)state;
    (void)signal(SIGHUP, SIG_IGN);
    (void)line_prints(plan_line());
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        assert_int_equal(sigaction(signals[i], NULL, &now), 0);
        assert_true(now.sa_handler == (signals[i] == SIGHUP ? SIG_IGN : SIG_DFL));
    }
    (void)signal(SIGHUP, SIG_DFL);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_signal_at_any_call_leaves_a_whole_plan_file_and_nothing_beside_it),
        ONE(signals_end_the_process_again_when_the_file_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
