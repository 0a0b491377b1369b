/* Elements as text: the bits as they lie in a file, and the number that they are. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/status.h"
#include "io/element.h"

static void every_dtype_has_its_bits_and_known_ones_their_number(void **state)
{
    static const struct {
        sw_dtype dtype;
        uint8_t bytes[8];
        size_t n_bytes;
        const char *text;
    } cases[] = {
        {SW_DTYPE_F64,     {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 8, "0x3ff8000000000000 (1.5)"                 },
        {SW_DTYPE_F32,     {0, 0, 0xc0, 0xbf},             4, "0xbfc00000 (-1.5)"                        },
        {SW_DTYPE_F32,     {0, 0, 0xc0, 0x7f},             4, "0x7fc00000 (nan)"                         },
        {SW_DTYPE_BF16,    {0xc0, 0x3f},                   2, "0x3fc0 (1.5)"                             },
        {SW_DTYPE_F16,     {0x00, 0x3e},                   2, "0x3e00 (1.5)"                             },
        {SW_DTYPE_F16,     {0x01, 0x80},                   2, "0x8001 (-5.9605e-08)"                     },
        {SW_DTYPE_F16,     {0x00, 0xfc},                   2, "0xfc00 (-inf)"                            },
        {SW_DTYPE_F16,     {0xff, 0x7b},                   2, "0x7bff (65504)"                           },
        {SW_DTYPE_I8,      {0xff},                         1, "0xff (-1)"                                },
        {SW_DTYPE_U8,      {0xff},                         1, "0xff (255)"                               },
        {SW_DTYPE_I16,     {0x00, 0x80},                   2, "0x8000 (-32768)"                          },
        {SW_DTYPE_I32,     {0x01, 0, 0, 0x80},             4, "0x80000001 (-2147483647)"                 },
        {SW_DTYPE_I64,     {0, 0, 0, 0, 0, 0, 0, 0x80},    8, "0x8000000000000000 (-9223372036854775808)"},
        {SW_DTYPE_U64,
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         8,                                                   "0xffffffffffffffff (18446744073709551615)"},
        {SW_DTYPE_F8_E4M3, {0x7f},                         1, "0x7f"                                     },
        {SW_DTYPE_UNKNOWN, {1, 2, 3},                      3, "0x030201"                                 },
    };
    char text[SW_ELEMENT_TEXT];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++)
        assert_string_equal(sw_element_text(text, cases[i].dtype, cases[i].bytes, cases[i].n_bytes),
                            cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_has_its_bits_and_known_ones_their_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
