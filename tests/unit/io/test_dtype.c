/* The table of element types: words and numbers agree in both directions. */
#include "io/tensor_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_word_leads_back_to_its_dtype(void **state)
{
    (void)state;
    for (int i = SW_DTYPE_UNKNOWN + 1; i < SW_DTYPE_COUNT_; i++) {
        const char *name = sw_dtype_name((sw_dtype)i);
        assert_int_equal(sw_dtype_of(name, strlen(name)), i);
        assert_int_not_equal(sw_dtype_bits((sw_dtype)i), 0);
    }
}

static void other_words_are_unknown(void **state)
{
    (void)state;
    static const char *const words[] = {"", "F", "F322", "f32", "?", "Q9_X", "F8_E4M3FNUZ", "bfloat16"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(sw_dtype_of(words[i], strlen(words[i])), SW_DTYPE_UNKNOWN);
    }
    assert_int_equal(sw_dtype_of("F32\0", 4), SW_DTYPE_UNKNOWN);
    assert_int_equal(sw_dtype_of("F32x", 3), SW_DTYPE_F32);
}

static void names_and_bits_are_those_of_the_format(void **state)
{
    (void)state;
    assert_string_equal(sw_dtype_name(SW_DTYPE_UNKNOWN), "?");
    assert_string_equal(sw_dtype_name(SW_DTYPE_F8_E8M0), "F8_E8M0");
    assert_null(sw_dtype_name(SW_DTYPE_COUNT_));
    assert_int_equal(sw_dtype_bits(SW_DTYPE_UNKNOWN), 0);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_COUNT_), 0);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_F4), 4);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_BF16), 16);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_BOOL), 8);
    assert_int_equal(sw_dtype_bits(SW_DTYPE_C64), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_leads_back_to_its_dtype),
        cmocka_unit_test(other_words_are_unknown),
        cmocka_unit_test(names_and_bits_are_those_of_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
