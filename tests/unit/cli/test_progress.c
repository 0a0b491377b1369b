/* Progress under a clock of the test: when something is said, what it says, and when nothing is. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"

static uint64_t now_ms;

static uint64_t fake_clock(void *user)
{
    (void)user;
    return now_ms;
}

typedef struct stage {
    sw_meter meter;
    FILE *out;
} stage;

static stage begin(sw_meter_style style)
{
    stage s = {.out = tmpfile()};

    assert_non_null(s.out);
    s.meter = (sw_meter){.out = s.out, .style = style, .columns = 80, .now = fake_clock};
    now_ms = 5000;
    return s;
}

static void report_at(stage *s, uint64_t ms, const char *name, uint64_t done, uint64_t total)
{
    const sw_progress progress = {name, done, total, "bytes"};

    now_ms = 5000 + ms;
    sw_meter_show(&s->meter, &progress);
}

/* What was written since the last call. */
static const char *written(stage *s)
{
    static char text[4096];
    size_t n = 0;

    (void)fflush(s->out);
    rewind(s->out);
    n = fread(text, 1, sizeof text - 1, s->out);
    text[n] = '\0';
    rewind(s->out);
    assert_int_equal(ftruncate(fileno(s->out), 0), 0);
    return text;
}

static void end(stage *s)
{
    sw_meter_end(&s->meter);
    (void)fclose(s->out);
}

#define MIB ((uint64_t)1 << 20)

static void a_plain_line_comes_every_ten_seconds(void **state)
{
    stage s = begin(SW_METER_LINES);

    (void)state;
    report_at(&s, 0, "copy", 0, 4000 * MIB);
    report_at(&s, 9999, "copy", 900 * MIB, 4000 * MIB);
    assert_string_equal(written(&s), "");
    report_at(&s, 10000, "copy", 1000 * MIB, 4000 * MIB);
    assert_string_equal(written(&s),
                        "shardwright: copy: 1000.0 MiB of 3.9 GiB (25 %), 100.0 MiB/s, 30 s left\n");
    report_at(&s, 19999, "copy", 1900 * MIB, 4000 * MIB);
    assert_string_equal(written(&s), "");
    report_at(&s, 20000, "copy", 2000 * MIB, 4000 * MIB);
    assert_string_equal(written(&s),
                        "shardwright: copy: 2.0 GiB of 3.9 GiB (50 %), 100.0 MiB/s, 20 s left\n");
    end(&s);
}

static void a_bar_comes_after_two_seconds(void **state)
{
    stage s = begin(SW_METER_BAR);

    (void)state;
    report_at(&s, 0, "copy", 0, 400 * MIB);
    report_at(&s, 1999, "copy", 100 * MIB, 400 * MIB);
    assert_string_equal(written(&s), "");
    report_at(&s, 2000, "copy", 100 * MIB, 400 * MIB);
    assert_string_equal(
        written(&s),
        "\rcopy   25 % [=====>              ] 100.0 MiB of 400.0 MiB, 50.0 MiB/s, 6 s left\033[K");
    report_at(&s, 8000, "copy", 400 * MIB, 400 * MIB);
    assert_string_equal(
        written(&s),
        "\rcopy  100 % [==============================] 400.0 MiB of 400.0 MiB, 50.0 MiB/s\033[K");
    sw_meter_end(&s.meter);
    assert_string_equal(written(&s), "\r\033[K");
    end(&s);
}

static void a_note_stands_behind_the_numbers(void **state)
{
    stage s = begin(SW_METER_LINES);

    (void)state;
    s.meter.note = "loss 2.5";
    report_at(&s, 0, "copy", 0, 400 * MIB);
    report_at(&s, 10000, "copy", 100 * MIB, 400 * MIB);
    assert_string_equal(written(&s),
                        "shardwright: copy: 100.0 MiB of 400.0 MiB (25 %), 10.0 MiB/s, 30 s left, "
                        "loss 2.5\n");
    s.meter.style = SW_METER_BAR;
    report_at(&s, 20000, "copy", 200 * MIB, 400 * MIB);
    assert_non_null(strstr(written(&s), " 20 s left, loss 2.5\033[K"));
    end(&s);
}

static void a_bar_leaves_the_last_column_free(void **state)
{
    stage s = begin(SW_METER_BAR);

    (void)state;
    report_at(&s, 0, "copy", 0, 400 * MIB);
    for (uint32_t columns = 40; columns <= 100; columns++) {
        s.meter.columns = columns;
        report_at(&s, 3000, "copy", 123 * MIB, 400 * MIB);
        size_t n = strlen(written(&s));
        assert_in_range(n - strlen("\r\033[K"), columns / 2, columns - 1);
    }
    end(&s);
}

static void colour_is_around_the_filled_part_only(void **state)
{
    stage s = begin(SW_METER_BAR);

    (void)state;
    s.meter.has_color = true;
    report_at(&s, 0, "copy", 0, 400 * MIB);
    report_at(&s, 2000, "copy", 100 * MIB, 400 * MIB);
    assert_non_null(strstr(written(&s), "[\033[32m=====>\033[0m   "));
    end(&s);
}

static void the_rate_is_that_of_the_stage(void **state)
{
    stage s = begin(SW_METER_LINES);

    (void)state;
    report_at(&s, 0, "copy", 0, 100 * MIB);
    report_at(&s, 9000, "sync", 0, 100 * MIB);
    report_at(&s, 10000, "sync", 50 * MIB, 100 * MIB);
    assert_string_equal(written(&s),
                        "shardwright: sync: 50.0 MiB of 100.0 MiB (50 %), 50.0 MiB/s, 1 s left\n");
    end(&s);
}

static void what_is_not_known_is_left_out(void **state)
{
    stage s = begin(SW_METER_LINES);
    const sw_progress tensors = {"read", 1200, 0, "tensors"};

    (void)state;
    report_at(&s, 0, "read", 0, 0);
    report_at(&s, 10000, "read", 0, 0);
    assert_string_equal(written(&s), "shardwright: read: 0 B\n");
    now_ms = 5000 + 20000;
    sw_meter_show(&s.meter, &tensors);
    assert_string_equal(written(&s), "shardwright: read: 1,200 tensors, 60/s\n");
    end(&s);
}

static void long_times_are_minutes_and_hours(void **state)
{
    stage s = begin(SW_METER_LINES);

    (void)state;
    report_at(&s, 0, "copy", 0, 1000 * MIB);
    report_at(&s, 10000, "copy", 50 * MIB, 1000 * MIB);
    assert_non_null(strstr(written(&s), ", 3 min 10 s left\n"));
    report_at(&s, 20000, "copy", 1 * MIB, 1000 * MIB);
    assert_non_null(strstr(written(&s), ", 5 h 33 min left\n"));
    end(&s);
}

static void a_meter_that_is_off_says_nothing(void **state)
{
    stage s = begin(SW_METER_OFF);

    (void)state;
    report_at(&s, 0, "copy", 0, 100);
    report_at(&s, 60000, "copy", 50, 100);
    sw_meter_end(&s.meter);
    assert_string_equal(written(&s), "");
    end(&s);
}

static void a_file_gets_lines_and_quiet_gets_nothing(void **state)
{
    stage s = begin(SW_METER_OFF);

    (void)state;
    sw_meter_init(&s.meter, s.out, false);
    assert_int_equal(s.meter.style, SW_METER_LINES);
    assert_false(s.meter.has_color);
    sw_meter_init(&s.meter, s.out, true);
    assert_int_equal(s.meter.style, SW_METER_OFF);
    end(&s);
}

/* A terminal of our own: what is written to its one end is read at the other. */
static void a_terminal_gets_a_bar_whose_colour_no_color_takes_away(void **state)
{
    sw_meter meter;
    int main_end = posix_openpt(O_RDWR | O_NOCTTY);

    (void)state;
    if (main_end < 0 || grantpt(main_end) != 0 || unlockpt(main_end) != 0) {
        print_message("skipped: no terminal can be made here\n");
        skip();
    }
    char name[128];
    assert_int_equal(ptsname_r(main_end, name, sizeof name), 0);
    FILE *terminal = fopen(name, "w");
    assert_non_null(terminal);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_int_equal(setenv("COLUMNS", "60", 1), 0);
    sw_meter_init(&meter, terminal, false);
    assert_int_equal(meter.style, SW_METER_BAR);
    assert_true(meter.has_color);
    assert_int_equal(meter.columns, 60);
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    sw_meter_init(&meter, terminal, false);
    assert_int_equal(meter.style, SW_METER_BAR);
    assert_false(meter.has_color);
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    sw_meter_init(&meter, terminal, false);
    assert_int_equal(meter.style, SW_METER_LINES);
    (void)fclose(terminal);
    (void)close(main_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_line_comes_every_ten_seconds),
        cmocka_unit_test(a_bar_comes_after_two_seconds),
        cmocka_unit_test(a_bar_leaves_the_last_column_free),
        cmocka_unit_test(a_note_stands_behind_the_numbers),
        cmocka_unit_test(colour_is_around_the_filled_part_only),
        cmocka_unit_test(the_rate_is_that_of_the_stage),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(long_times_are_minutes_and_hours),
        cmocka_unit_test(a_meter_that_is_off_says_nothing),
        cmocka_unit_test(a_file_gets_lines_and_quiet_gets_nothing),
        cmocka_unit_test(a_terminal_gets_a_bar_whose_colour_no_color_takes_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
