/* .npy headers: what NumPy writes, and each fault by its words. */
#include "io/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

enum { FILE_BYTES = 512 };

typedef struct file {
    uint8_t bytes[FILE_BYTES];
    size_t n_bytes;
} file;

/* A file of `version` with this text and `n_data` zeros behind it. */
static file file_of(uint8_t version, const char *text, size_t n_data)
{
    size_t n_length = version == 1 ? 2 : 4;
    size_t length = strlen(text);
    file f = {.n_bytes = 8 + n_length + length + n_data};

    assert_true(f.n_bytes <= FILE_BYTES);
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = version;
    f.bytes[8] = (uint8_t)length;
    memcpy(f.bytes + 8 + n_length, text, length);
    return f;
}

static sw_status read_file(sw_npy *out, const file *f, sw_error *err)
{
    return sw_npy_read(out, sw_file_map_of(f->bytes, f->n_bytes), "t.npy", err);
}

static void one_and_two_dims_of_each_type_are_read(void **state)
{
    sw_npy npy = {0};
    file f = file_of(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }          \n", 6);

    (void)state;
    assert_int_equal(read_file(&npy, &f, NULL), SW_OK);
    assert_int_equal(npy.dtype, SW_DTYPE_U16);
    assert_int_equal(npy.n_dims, 1);
    assert_int_equal(npy.elems, 3);
    assert_int_equal(npy.data_begin, f.n_bytes - 6);
    f = file_of(2, "{\"shape\":(2,3),\"descr\":\"<i8\",\"fortran_order\":False}", 48);
    assert_int_equal(read_file(&npy, &f, NULL), SW_OK);
    assert_int_equal(npy.dtype, SW_DTYPE_I64);
    assert_int_equal(npy.n_dims, 2);
    assert_int_equal(npy.dims[0], 2);
    assert_int_equal(npy.dims[1], 3);
    f = file_of(3, "{'descr': '<u4', 'fortran_order': True, 'shape': (1,)}", 4); /* one dim has one order */
    assert_int_equal(read_file(&npy, &f, NULL), SW_OK);
    assert_int_equal(npy.dtype, SW_DTYPE_U32);
    f = file_of(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 7)}", 0);
    assert_int_equal(read_file(&npy, &f, NULL), SW_OK);
    assert_int_equal(npy.elems, 0);
}

typedef struct refusal {
    const char *text;
    const char *what;
} refusal;

// clang-format off
static const refusal refusals[] = {
    { "",                                                                  "t.npy: byte 0 of the header: '{' was expected" },
    { "{'descr': '<u2', 'fortran_order': False}",                          "t.npy: byte 40 of the header: descr, fortran_order or shape is missing" },
    { "{'descr': '<u2', 'descr': '<u2'}",                                  "t.npy: byte 24 of the header: a key that stands twice" },
    { "{'dtype': '<u2'}",                                                  "t.npy: byte 8 of the header: a key other than descr, fortran_order and shape" },
    { "{'descr' '<u2'}",                                                   "t.npy: byte 9 of the header: a colon was expected" },
    { "{'descr': '<u2",                                                    "t.npy: byte 11 of the header: a text without its closing quote" },
    { "{'descr': <u2}",                                                    "t.npy: byte 10 of the header: a text in quotes was expected" },
    { "{'descr': '<u2' 'shape': (1,)}",                                    "t.npy: byte 16 of the header: a comma or '}' was expected" },
    { "{'descr': '<u2', 'fortran_order': 0}",                              "t.npy: byte 34 of the header: True or False was expected" },
    { "{'descr': '<u2', 'shape': 1}",                                      "t.npy: byte 26 of the header: a shape such as (12,) was expected" },
    { "{'descr': '<u2', 'shape': ()}",                                     "t.npy: byte 28 of the header: a shape without dims" },
    { "{'descr': '<u2', 'shape': (,)}",                                    "t.npy: byte 27 of the header: a number was expected" },
    { "{'descr': '<u2', 'shape': (1 2)}",                                  "t.npy: byte 29 of the header: a comma or the end of the shape was expected" },
    { "{'descr': '<u2', 'shape': (1, 2, 3)}",                              "t.npy: byte 33 of the header: a shape of more than two dims" },
    { "{'descr': '<u2', 'shape': (99999999999999999999,)}",                "t.npy: byte 47 of the header: a number beyond 64 bits" },
    { "{'descr': '<u2', 'shape': (8589934592, 8589934592)}",               "t.npy: byte 49 of the header: a shape of more than 2^64 elements" },
    { "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)} x",         "t.npy: byte 56 of the header: something stands behind it" },
    { "{'descr': '>u2', 'fortran_order': False, 'shape': (1,)}",           "t.npy: elements of type '>u2', not u16, u32, i32 or i64 of little end first" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",           "t.npy: elements of type '<f4', not u16, u32, i32 or i64 of little end first" },
    { "{'descr': '<u2', 'fortran_order': True, 'shape': (1, 2)}",          "t.npy: stored column by column (fortran_order)" },
    { "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}",           "t.npy: 4 bytes of data, its shape has 3 elements of 2" },
    { "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}",           "t.npy: 4 bytes of data, its shape has 1 elements of 2" },
    { "{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775807,)}", "t.npy: 4 bytes of data, its shape has 9223372036854775807 elements of 8" },
};
// clang-format on

static void each_fault_of_a_header_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        sw_npy npy = {0};
        sw_error err = {0};
        file f = file_of(1, refusals[i].text, 4);
        assert_int_equal(read_file(&npy, &f, &err), SW_E_FORMAT);
        assert_string_equal(err.what, refusals[i].what);
        assert_int_equal(npy.elems, 0);
    }
}

static void what_numpy_wrote_with_other_dims_is_to_be_made_one_row(void **state)
{
    static const char *const shapes[] = {"()", "(1, 2, 3)"};
    char header[80];

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sw_npy npy = {0};
        sw_error err = {0};
        (void)snprintf(header, sizeof header, "{'descr': '<u2', 'shape': %s}", shapes[i]);
        file f = file_of(1, header, 4);
        assert_int_equal(read_file(&npy, &f, &err), SW_E_FORMAT);
        assert_string_equal(err.help, "write array.reshape(-1) of it");
    }
}

static void a_file_that_is_cut_is_refused_wherever_it_ends(void **state)
{
    file f = file_of(2, "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n", 6);
    sw_npy npy = {0};

    (void)state;
    for (size_t n = 0; n < f.n_bytes; n++)
        assert_int_equal(sw_npy_read(&npy, sw_file_map_of(f.bytes, n), "t.npy", NULL), SW_E_FORMAT);
    assert_int_equal(read_file(&npy, &f, NULL), SW_OK);
}

static void other_versions_and_long_headers_are_refused(void **state)
{
    file f = file_of(4, "{}", 0);
    sw_npy npy = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(read_file(&npy, &f, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "t.npy: .npy of version 4, not 1, 2 or 3");
    f = file_of(2, "{}", 0);
    f.bytes[11] = 1;
    assert_int_equal(read_file(&npy, &f, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "t.npy: a header of 16777218 bytes, at most 65536 are read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_two_dims_of_each_type_are_read),
        cmocka_unit_test(each_fault_of_a_header_is_named),
        cmocka_unit_test(what_numpy_wrote_with_other_dims_is_to_be_made_one_row),
        cmocka_unit_test(a_file_that_is_cut_is_refused_wherever_it_ends),
        cmocka_unit_test(other_versions_and_long_headers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
