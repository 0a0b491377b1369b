/*
 * Files that are open at once (checkpoint/source.h): their number follows the process's limit, and a limit
 * that is smaller than the number of files stops no command.
 */
#include "checkpoint_case.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"
#include "checkpoint/source.h"
#include "command_line.h"

enum { MANY = 48 };

static struct rlimit before;

static void allow(rlim_t n)
{
    struct rlimit limit = before;

    limit.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int setup(void **state)
{
    return scratch_setup_inside(state) != 0 || getrlimit(RLIMIT_NOFILE, &before) != 0;
}

static int teardown(void **state)
{
    return setrlimit(RLIMIT_NOFILE, &before) != 0 || scratch_teardown(state) != 0;
}

static void sets_of_open_files_share_the_limit(void **state)
{
    (void)state;
    allow(128);
    assert_int_equal(sw_file_slots(4), 20);
    assert_int_equal(sw_file_slots(48), 1);
    assert_int_equal(sw_file_slots(1000), 1);
    allow(1024);
    assert_int_equal(sw_file_slots(4), SW_MOST_SLOTS);
    assert_int_equal(sw_file_slots(32), 30);
    allow(32);
    assert_int_equal(sw_file_slots(1), 1);
}

static void a_set_that_was_never_opened_closes_nothing(void **state)
{
    sw_source source = {0};

    (void)state;
    int before_it = fcntl(STDIN_FILENO, F_GETFD);
    sw_source_clear(&source);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), before_it);
}

static void expect_success(const char *line)
{
    outcome o = run_line(line);

    if (o.exit != 0)
        fail_msg("%s: %s", line, o.messages);
}

/* Every thread reads from all files and writes to all. */
static void more_files_than_may_be_open_are_read_and_written(void **state)
{
    sw_buffer tensors = {0};
    sw_buffer overrides = {0};

    (void)state;
    sw_buffer_puts(&overrides, "overrides:\n- match: m\n  params: {");
    for (int i = 0; i < MANY; i++) {
        sw_buffer_printf(&tensors, "m.t%02d BF16 %dx3\n", i, MANY);
        sw_buffer_printf(&overrides, "%st%02d: {tp: shard(0)}", i == 0 ? "" : ", ", i);
    }
    sw_buffer_puts(&overrides, "}\n");
    make_model("model", "'architectures': ['Any'], 'model_type': 'any', 'hidden_size': 8",
               sw_buffer_text(&tensors), MANY);
    scratch_bytes("o.yaml", overrides.bytes, overrides.length);
    sw_buffer_clear(&tensors);
    sw_buffer_clear(&overrides);
    allow(128);
    expect_success("shard model --mesh tp=48 --overrides o.yaml -o cut -q");
    expect_success("verify cut --threads 16 --against model -q");
    expect_success("merge cut --max-shard-size 300B -o back -q --threads 16");
    expect_success("diff back model --threads 16 -q");
    expect_same_tensors("model", "back");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(sets_of_open_files_share_the_limit),
        CASE(a_set_that_was_never_opened_closes_nothing),
        CASE(more_files_than_may_be_open_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
