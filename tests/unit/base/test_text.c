/* UTF-8 as RFC 3629 draws its borders, and the plain runs of JSON strings at every length and place. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct utf8_case {
    const char *bytes;
    size_t valid;
} utf8_case;

// clang-format off
static const utf8_case cases[] = {
    { "",                          0  },
    { "a plain text of ASCII",     21 },
    { "\xc2\x80\xdf\xbf",          4  },
    { "\xe0\xa0\x80\xef\xbf\xbf",  6  },
    { "\xf0\x90\x80\x80",          4  },
    { "\xf4\x8f\xbf\xbf",          4  },
    { "ab\x80",                    2  }, /* a tail without a lead */
    { "\xc1\xbf",                  0  }, /* overlong */
    { "\xe0\x9f\xbf",              0  }, /* overlong */
    { "\xf0\x8f\xbf\xbf",          0  }, /* overlong */
    { "\xed\xa0\x80",              0  }, /* a surrogate */
    { "\xed\x9f\xbf",              3  },
    { "\xf4\x90\x80\x80",          0  }, /* above U+10FFFF */
    { "\xf5\x80\x80\x80",          0  },
    { "12345678\xc3",              8  }, /* cut off */
    { "\xe2\x82",                  0  },
    { "\xe2\x82z",                 0  },
    { "\xff",                      0  },
};
// clang-format on

static void each_border_of_utf8_is_where_it_should_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(sw_utf8_valid_prefix(cases[i].bytes, strlen(cases[i].bytes)), cases[i].valid);
    }
    assert_int_equal(sw_utf8_valid_prefix("a\0b", 3), 3);
}

static void a_plain_run_ends_at_exactly_these_bytes(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool is_plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
        for (size_t at = 0; at < 24; at++) {
            char text[24];
            memset(text, '~', sizeof text);
            text[at] = (char)c;
            assert_int_equal(sw_text_plain_prefix(text, sizeof text), is_plain ? sizeof text : at);
            assert_int_equal(sw_text_plain_prefix(text, at), at);
        }
    }
}

/* ASCII and C1 controls, and what turns text around or breaks its line: nothing beside them. */
static void control_characters_end_at_exactly_these_borders(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *clean;
    } texts[] = {
        {"a\x1b[31m\n\x7f",                   "a?[31m??"                         },
        {"\xc2\x80|\xc2\x9f|\xc2\xa0",        "??|??|\xc2\xa0"                   },
        {"\xe2\x80\x8d|\xe2\x80\x8e",         "\xe2\x80\x8d|???"                 },
        {"\xe2\x80\x8f|\xe2\x80\x90",         "???|\xe2\x80\x90"                 },
        {"\xe2\x80\xa7|\xe2\x80\xa8",         "\xe2\x80\xa7|???"                 },
        {"\xe2\x80\xae|\xe2\x80\xaf",         "???|\xe2\x80\xaf"                 },
        {"\xe2\x81\xa5|\xe2\x81\xa6",         "\xe2\x81\xa5|???"                 },
        {"\xe2\x81\xa9|\xe2\x81\xaa",         "???|\xe2\x81\xaa"                 },
        {"caf\xc3\xa9 \xe6\x97\xa5 \xe2\x80", "caf\xc3\xa9 \xe6\x97\xa5 \xe2\x80"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[64];
        size_t length = strlen(texts[i].text);
        bool is_clean = strcmp(texts[i].text, texts[i].clean) == 0;
        memcpy(text, texts[i].text, length + 1);
        assert_int_equal(sw_text_printable_prefix(text, length) == length, is_clean);
        sw_text_clean(text, length);
        assert_string_equal(text, texts[i].clean);
    }
    assert_int_equal(sw_text_printable_prefix("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_border_of_utf8_is_where_it_should_be),
        cmocka_unit_test(a_plain_run_ends_at_exactly_these_bytes),
        cmocka_unit_test(control_characters_end_at_exactly_these_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
