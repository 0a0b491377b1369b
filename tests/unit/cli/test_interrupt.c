/* Signals while something is written: the file is the old one or the new one, and nothing lies beside it. */
#include "cli/interrupt.h"

#include "command_line.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

/* Reads a page of a file that is cut short after it was mapped, in a process whose messages go to a file. */
_Noreturn static void read_lost_page(const char *path)
{
    long page = sysconf(_SC_PAGESIZE);
    int fd = open(path, O_RDWR);
    int messages = open(scratch("messages"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const volatile char *bytes = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED || dup2(messages, STDERR_FILENO) < 0 || ftruncate(fd, 0) != 0)
        _exit(100);
    sw_interrupt_say_lost_memory("rank 3: ");
    _exit(bytes[0] == 'x' ? 101 : 102);
}

static void a_file_cut_short_while_it_is_read_ends_with_a_message(void **state)
{
    int status = 0;

    (void)state;
    scratch_text("tokens", "x", false);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        read_lost_page(scratch("tokens"));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    sw_buffer said = scratch_read("messages");
    assert_string_equal(
        sw_buffer_text(&said),
        "shardwright: rank 3: memory of a mapped file cannot be had: a file that is read was cut short, or "
        "its "
        "disk fails\n"
        "help: nothing may write to inputs meanwhile; look at the disk, of several ranks at the room of "
        "/dev/shm too\n");
    sw_buffer_clear(&said);
    scratch_remove("tokens");
    scratch_remove("messages");
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
        ONE(a_file_cut_short_while_it_is_read_ends_with_a_message),
        ONE(signals_end_the_process_again_when_the_file_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
