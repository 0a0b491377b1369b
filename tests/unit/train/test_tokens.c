/* Files of tokens: each format, what a file is taken for, and each refusal by its words. */
#include "train/tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "scratch.h"

/* The tokens as text, "1 2 3 "; valid until the next call. */
static const char *tokens_of(const char *name, sw_token_format format, uint64_t vocabulary)
{
    static char text[512];
    sw_tokens tokens = {0};
    sw_error err = {0};
    int32_t ids[64];
    int n = 0;

    if (sw_tokens_open(&tokens, scratch(name), format, vocabulary, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_true(tokens.n_tokens <= 64);
    sw_tokens_read(&tokens, 0, tokens.n_tokens, ids);
    text[0] = '\0';
    for (uint64_t i = 0; i < tokens.n_tokens; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%d ", ids[i]);
    sw_tokens_close(&tokens);
    return text;
}

static void refused(const char *name, sw_token_format format, uint64_t vocabulary, const char *what)
{
    sw_tokens tokens = {0};
    sw_error err = {0};

    assert_int_equal(sw_tokens_open(&tokens, scratch(name), format, vocabulary, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, name));
    assert_string_equal(strstr(err.what, name), what);
    assert_null(tokens.map.bytes);
}

static void bare_numbers_are_of_16_bits_up_to_a_vocabulary_that_fits(void **state)
{
    const uint16_t u16[] = {1, 65535, 7};
    const uint32_t u32[] = {100000, 2};

    (void)state;
    scratch_bytes("a.bin", u16, sizeof u16);
    scratch_bytes("b.bin", u32, sizeof u32);
    assert_string_equal(tokens_of("a.bin", SW_TOKENS_GUESSED, 65536), "1 65535 7 ");
    assert_string_equal(tokens_of("b.bin", SW_TOKENS_GUESSED, 100001), "100000 2 ");
    assert_string_equal(tokens_of("a.bin", SW_TOKENS_U16, 100001), "1 65535 7 ");
    assert_string_equal(tokens_of("b.bin", SW_TOKENS_U32, 100001), "100000 2 ");
}

static void a_file_of_numpy_is_known_by_its_begin(void **state)
{
    static const char file[] =
        "\x93NUMPY\x01\x00\x3a\x00"
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1)} \x05\0\0\0\x06\0\0\0";

    (void)state;
    scratch_bytes("a.npy", file, sizeof file - 1);
    scratch_bytes("a.bin", file, sizeof file - 1);
    assert_string_equal(tokens_of("a.npy", SW_TOKENS_GUESSED, 7), "5 6 ");
    assert_string_equal(tokens_of("a.bin", SW_TOKENS_GUESSED, 7), "5 6 ");
    assert_string_equal(tokens_of("a.bin", SW_TOKENS_NPY, 7), "5 6 ");
    refused("a.npy", SW_TOKENS_GUESSED, 6, "a.npy: token 1 is 6, the vocabulary has 6");
    scratch_edit("a.npy", "\x06", "\xff");
    refused("a.npy", SW_TOKENS_GUESSED, 7, "a.npy: token 1 is 255, the vocabulary has 7");
}

static void negative_tokens_are_refused(void **state)
{
    static const char file[] =
        "\x93NUMPY\x01\x00\x38\x00"
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1,)} \xff\xff\xff\xff\xff\xff\xff\xff";

    (void)state;
    scratch_bytes("a.npy", file, sizeof file - 1);
    refused("a.npy", SW_TOKENS_NPY, 7, "a.npy: token 0 is -1, the vocabulary has 7");
}

static void bytes_of_a_text_are_tokens(void **state)
{
    (void)state;
    scratch_text("t.txt", "Az\xff", false);
    assert_string_equal(tokens_of("t.txt", SW_TOKENS_TEXT, 256), "65 122 255 ");
    refused("t.txt", SW_TOKENS_TEXT, 255,
            "t.txt: bytes as tokens need a vocabulary of 256, this one has 255");
}

static void what_is_no_file_of_tokens_is_refused(void **state)
{
    const uint16_t u16[] = {1, 8, 7};
    uint32_t u32[16];

    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        u32[i] = 100 + i;
    scratch_bytes("a.bin", u16, sizeof u16);
    scratch_bytes("cut.bin", u16, 5);
    scratch_bytes("wide.bin", u32, sizeof u32);
    scratch_text("empty.bin", "", false);
    refused("a.bin", SW_TOKENS_GUESSED, 8, "a.bin: token 1 is 8, the vocabulary has 8");
    refused("a.bin", SW_TOKENS_NPY, 8, "a.bin: is no .npy file");
    refused("cut.bin", SW_TOKENS_GUESSED, 8, "cut.bin: 5 bytes are no whole number of U16 tokens");
    refused("empty.bin", SW_TOKENS_GUESSED, 8, "empty.bin: no tokens");
    refused("wide.bin", SW_TOKENS_GUESSED, 500,
            "wide.bin: every second token would be 0: these seem to be tokens of 32 bits");
    assert_non_null(strstr(tokens_of("wide.bin", SW_TOKENS_U16, 500), "100 0 101 0 "));
    assert_non_null(strstr(tokens_of("wide.bin", SW_TOKENS_U32, 500), "100 101 "));
}

static void formats_have_names(void **state)
{
    (void)state;
    for (int i = SW_TOKENS_GUESSED + 1; i < SW_TOKENS_FORMAT_COUNT_; i++)
        assert_int_equal(sw_token_format_of(sw_token_format_name((sw_token_format)i)), i);
    assert_int_equal(sw_token_format_of("i64"), SW_TOKENS_GUESSED);
    assert_null(sw_token_format_name(SW_TOKENS_GUESSED));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(bare_numbers_are_of_16_bits_up_to_a_vocabulary_that_fits),
        TEST(a_file_of_numpy_is_known_by_its_begin),
        TEST(negative_tokens_are_refused),
        TEST(bytes_of_a_text_are_tokens),
        TEST(what_is_no_file_of_tokens_is_refused),
        TEST(formats_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
