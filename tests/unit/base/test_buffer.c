/* The buffer: what is appended stands there, and a failed allocation sticks. */
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void pieces_stand_one_behind_the_other(void **state)
{
    (void)state;
    sw_buffer buffer = {0};
    sw_buffer_puts(&buffer, "rank ");
    sw_buffer_u64(&buffer, 12);
    sw_buffer_putc(&buffer, ':');
    sw_buffer_append(&buffer, "a\0b", 3);
    sw_buffer_append(&buffer, NULL, 0);
    sw_buffer_printf(&buffer, " %s=%d", "tp", 4);
    assert_int_equal(buffer.length, 16);
    assert_memory_equal(sw_buffer_text(&buffer), "rank 12:a\0b tp=4", 17);
    assert_int_equal(buffer.length, 16); /* the NUL is not counted */
    sw_buffer_clear(&buffer);
    assert_null(buffer.bytes);
}

static void numbers_are_written_in_full(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {
        0, 9, 10, 99, 100, UINT64_C(9999999999999999999), UINT64_C(10000000000000000000), UINT64_MAX};
    sw_buffer buffer = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sw_buffer_u64(&buffer, numbers[i]);
        sw_buffer_putc(&buffer, ' ');
    }
    assert_string_equal(sw_buffer_text(&buffer), "0 9 10 99 100 9999999999999999999 10000000000000000000 "
                                                 "18446744073709551615 ");
    sw_buffer_clear(&buffer);
}

static void an_empty_one_is_an_empty_text(void **state)
{
    (void)state;
    sw_buffer buffer = {0};
    assert_string_equal(sw_buffer_text(&buffer), "");
    sw_buffer_clear(&buffer);
}

static void it_grows_without_losing_anything(void **state)
{
    (void)state;
    sw_buffer buffer = {0};
    for (int i = 0; i < 100000; i++) {
        sw_buffer_printf(&buffer, "%06d", i);
    }
    assert_int_equal(buffer.length, 600000);
    assert_memory_equal(buffer.bytes, "000000000001", 12);
    assert_memory_equal(buffer.bytes + 6 * 54321, "054321", 6);
    assert_memory_equal(buffer.bytes + 6 * 99999, "099999", 6);
    sw_buffer_clear(&buffer);
}

static void a_failure_sticks_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_buffer buffer = {0};
    sw_buffer_puts(&buffer, "kept");
    sw_alloc_fail_at(1);
    sw_buffer_printf(&buffer, "%300s", "");
    assert_true(buffer.failed);
    sw_buffer_puts(&buffer, "lost");
    sw_buffer_u64(&buffer, 1);
    assert_int_equal(buffer.length, 4);
    assert_null(sw_buffer_text(&buffer));
    assert_null(sw_buffer_room(&buffer, 1));
    sw_buffer_clear(&buffer);
    assert_false(buffer.failed);
    sw_buffer_append(&buffer, "x", SIZE_MAX);
    assert_true(buffer.failed);
    sw_buffer_clear(&buffer);
    assert_int_equal(sw_alloc_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_stand_one_behind_the_other),
        cmocka_unit_test(numbers_are_written_in_full),
        cmocka_unit_test(an_empty_one_is_an_empty_text),
        cmocka_unit_test(it_grows_without_losing_anything),
        cmocka_unit_test(a_failure_sticks_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
