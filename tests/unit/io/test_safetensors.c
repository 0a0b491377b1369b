/* Headers of safetensors files: what is right is read, and each way of being wrong is refused by name. */
#include "io/safetensors.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"
#include "shared.h"

static void put_prefix(sw_buffer *out, uint64_t length)
{
    for (int i = 0; i < 8; i++) {
        sw_buffer_putc(out, (char)(length >> (8 * i) & 0xff));
    }
}

/* Read a header text as that of a file with `data_bytes` of data. */
static sw_status read_header_n(sw_tensor_list *list, const char *header, size_t length, uint64_t data_bytes,
                               sw_error *err)
{
    sw_buffer file = {0};
    uint32_t index = 0;

    put_prefix(&file, length);
    sw_buffer_append(&file, header, length);
    sw_status status = sw_tensor_list_init(list, (size_t)1 << 30, err);
    if (status == SW_OK) {
        status = sw_tensor_list_add_file(list, "m.safetensors", &index, err);
    }
    if (status == SW_OK) {
        status = sw_safetensors_read(list, sw_file_map_of(file.bytes, file.length), 8 + length + data_bytes,
                                     index, "m.safetensors", err);
    }
    sw_buffer_clear(&file);
    return status;
}

static sw_status read_header(sw_tensor_list *list, const char *header, uint64_t data_bytes, sw_error *err)
{
    return read_header_n(list, header, strlen(header), data_bytes, err);
}

static void tensors_are_read_in_the_order_of_the_header(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(read_header(&list,
                                 "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"},"
                                 "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                                 "\"a\":{\"data_offsets\":[0,8],\"shape\":[],\"dtype\":\"F64\"}}",
                                 20, NULL),
                     SW_OK);
    assert_int_equal(list.n_tensors, 2);
    assert_string_equal(list.tensors[0].name, "b");
    assert_int_equal(list.tensors[0].dtype, SW_DTYPE_BF16);
    assert_int_equal(list.tensors[0].shape->dims[1], 3);
    assert_int_equal(list.tensors[0].begin, 8);
    assert_int_equal(list.tensors[0].file, 0);
    assert_string_equal(list.tensors[1].name, "a");
    assert_int_equal(list.tensors[1].shape->n_dims, 0);
    sw_tensor_list_clear(&list);
}

typedef struct acceptance {
    const char *header;
    uint64_t data_bytes;
    size_t n_tensors;
} acceptance;

// clang-format off
static const acceptance acceptances[] = {
    { "{}", 0, 0 },
    { "{}      ", 0, 0 },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[0,0]}}   ", 0, 1 },
    { "{\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"y\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, 4 },
    { "{\"w\":{\"dtype\":\"F4\",\"shape\":[2,8],\"data_offsets\":[0,8]}}", 8, 1 },
    { "{\"w\":{\"dtype\":\"F8_E8M0\",\"shape\":[2,4],\"data_offsets\":[0,8]}}", 8, 1 },
    { "{\"w\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[0,16]}}", 16, 1 },
    { "{\"w\":{\"dtype\":\"Q9_X\",\"shape\":[7],\"data_offsets\":[0,3]}}", 3, 1 },
    { "{\"caf\\u00e9\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, 1 },
};
// clang-format on

static void unusual_but_right_headers_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(acceptances); i++) {
        sw_tensor_list list;
        sw_error err = {0};
        if (read_header(&list, acceptances[i].header, acceptances[i].data_bytes, &err) != SW_OK) {
            fail_msg("%s: %s", acceptances[i].header, err.what);
        }
        assert_int_equal(list.n_tensors, acceptances[i].n_tensors);
        sw_tensor_list_clear(&list);
    }
}

typedef struct refusal {
    const char *header;
    uint64_t data_bytes;
    sw_status status;
    const char *what; /* behind "m.safetensors: " */
} refusal;

#define ENTRY(dtype, shape, offsets)                                                                         \
    "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

// clang-format off
static const refusal refusals[] = {
    { "", 0, SW_E_FORMAT, "header of 0 bytes" },
    { " {}", 0, SW_E_FORMAT, "header begins with byte 0x20, not with '{'" },
    { "[]", 0, SW_E_FORMAT, "header begins with byte 0x5b, not with '{'" },
    { "{", 0, SW_E_FORMAT, "byte 9: the text ends where a name in quotes should stand" },
    { "{}x", 0, SW_E_FORMAT, "byte 10: 'x' where the end of the text should stand" },
    { "{\"w\":1}", 0, SW_E_FORMAT, "byte 13: '1' where an object should stand" },
    /* offsets */
    { ENTRY("F32", "[1000,1000]", "[0,4]"), 4, SW_E_FORMAT,
      "tensor 'w': 1000000 elements of F32 do not make the 4 bytes of its data_offsets" },
    { ENTRY("F32", "[1]", "[8,4]"), 8, SW_E_FORMAT, "tensor 'w': begins at byte 8 and ends before it, at 4" },
    { ENTRY("F32", "[2]", "[0,8]"), 7, SW_E_FORMAT, "tensor 'w': ends at byte 8 of data of 7 bytes" },
    { ENTRY("F32", "[1]", "[-4,0]"), 4, SW_E_FORMAT,
      "byte 56: a negative number where a whole number should stand" },
    { ENTRY("F32", "[1]", "[0,4.0]"), 4, SW_E_FORMAT,
      "byte 59: a fraction or exponent in what must be a whole number" },
    { ENTRY("F32", "[1]", "[0,4e0]"), 4, SW_E_FORMAT,
      "byte 59: a fraction or exponent in what must be a whole number" },
    { ENTRY("Q9_X", "[1]", "[9223372036854775808,9223372036854775812]"), 4, SW_E_FORMAT,
      "tensor 'w': ends at byte 9223372036854775812 of data of 4 bytes" },
    { ENTRY("F32", "[1]", "[18446744073709551616,1]"), 4, SW_E_FORMAT, "byte 76: a number does not fit 64 bits" },
    { ENTRY("F32", "[1]", "[0]"), 4, SW_E_FORMAT, "byte 58: tensor 'w': 1 data_offsets, not 2" },
    { ENTRY("F32", "[1]", "[0,4,4]"), 4, SW_E_FORMAT, "byte 62: tensor 'w': 3 data_offsets, not 2" },
    { ENTRY("F32", "[1]", "\"0,4\""), 4, SW_E_FORMAT, "byte 55: '\"' where an array should stand" },
    /* holes and overlaps */
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6, SW_E_FORMAT,
      "tensor 'b' begins at byte 2, inside tensor 'a' that ends at 4" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 9, SW_E_FORMAT,
      "bytes 4 to 5, before tensor 'a', belong to no tensor" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4, SW_E_FORMAT,
      "tensor 'b' begins at byte 2, inside tensor 'a' that ends at 4" },
    { ENTRY("U8", "[4]", "[0,4]"), 5, SW_E_FORMAT, "data of 5 bytes, the last 1 belong to no tensor" },
    { "{}", 5, SW_E_FORMAT, "data of 5 bytes, the last 5 belong to no tensor" },
    /* shapes */
    { ENTRY("F32", "[4294967296,4294967296]", "[0,4]"), 4, SW_E_LIMIT,
      "tensor 'w': the product of the extents does not fit 64 bits (dim 1 is 4294967296)" },
    { ENTRY("F32", "[4611686018427387905]", "[0,4]"), 4, SW_E_FORMAT,
      "tensor 'w': 4611686018427387905 elements of F32 do not make the 4 bytes of its data_offsets" },
    { ENTRY("F4", "[3]", "[0,1]"), 1, SW_E_FORMAT, "tensor 'w': 3 elements of 4 bits fill no whole byte" },
    { ENTRY("F32", "[1,1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, SW_E_LIMIT,
      "tensor 'w': 10 dims, at most 8 are supported" },
    { ENTRY("F32", "[01]", "[0,4]"), 4, SW_E_FORMAT, "byte 39: a number has leading zeros" },
    /* members */
    { "{\"w\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, SW_E_FORMAT,
      "byte 39: tensor 'w': key 'data_offsets' is missing" },
    { "{\"w\":{}}", 0, SW_E_FORMAT, "byte 15: tensor 'w': key 'dtype' is missing" },
    { "{\"w\":{\"dtype\":\"U8\",\"offset\":1}}", 1, SW_E_FORMAT, "byte 36: tensor 'w': unknown key 'offset'" },
    { "{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1, SW_E_FORMAT,
      "byte 35: tensor 'w': key 'dtype' stands twice" },
    { "{\"w\":{\"dtype\":8}}", 1, SW_E_FORMAT, "byte 22: '8' where a string should stand" },
    { "{\"__metadata__\":{\"a\":1}}", 0, SW_E_FORMAT, "byte 29: '1' where a string should stand" },
    { "{\"__metadata__\":[]}", 0, SW_E_FORMAT, "byte 24: '[' where an object should stand" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, SW_E_FORMAT, "byte 42: __metadata__ stands twice" },
    /* names */
    { "{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
      "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, SW_E_FORMAT,
      "tensor 'w' stands twice in m.safetensors" },
    { "{\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, SW_E_FORMAT,
      "a tensor has an empty name" },
    { "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, SW_E_FORMAT,
      "the name 'a" },
};
// clang-format on

static void each_way_of_being_wrong_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_tensor_list list;
        sw_error err = {0};
        char expected[512];
        (void)snprintf(expected, sizeof expected, "m.safetensors: %s", refusals[i].what);
        sw_status status = read_header(&list, refusals[i].header, refusals[i].data_bytes, &err);
        if (status != refusals[i].status || strncmp(err.what, expected, strlen(expected)) != 0) {
            fail_msg("%s: %s (%d)\n  instead of: %s", refusals[i].header, err.what, status, expected);
        }
        sw_tensor_list_clear(&list);
    }
}

static void a_header_length_beyond_file_or_limit_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        sw_status status;
        const char *what;
    } cases[] = {
        {UINT64_MAX,     SW_E_LIMIT,  "f: header of 18446744073709551615 bytes, the format allows 100000000"},
        {UINT64_MAX - 7, SW_E_LIMIT,  "f: header of 18446744073709551608 bytes, the format allows 100000000"},
        {100000001,      SW_E_LIMIT,  "f: header of 100000001 bytes, the format allows 100000000"           },
        {100000000,      SW_E_FORMAT, "f: header of 100000000 bytes in a file of 10"                        },
        {3,              SW_E_FORMAT, "f: header of 3 bytes in a file of 10"                                },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_buffer file = {0};
        sw_tensor_list list;
        sw_error err = {0};
        put_prefix(&file, cases[i].length);
        sw_buffer_puts(&file, "{}");
        assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
        assert_int_equal(
            sw_safetensors_read(&list, sw_file_map_of(file.bytes, file.length), 10, 0, "f", &err),
            cases[i].status);
        assert_string_equal(err.what, cases[i].what);
        sw_tensor_list_clear(&list);
        sw_buffer_clear(&file);
    }
}

static void a_file_too_short_for_the_prefix_is_refused(void **state)
{
    (void)state;
    sw_tensor_list list;
    sw_error err = {0};
    assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
    assert_int_equal(sw_safetensors_read(&list, sw_file_map_of("\2\0\0\0", 4), 4, 0, "f", &err), SW_E_FORMAT);
    assert_string_equal(err.what, "f: 4 bytes are too few for a safetensors file");
    assert_int_equal(sw_safetensors_read(&list, sw_file_map_of("\2\0\0\0\0\0\0\0{", 9), 10, 0, "f", &err),
                     SW_E_FORMAT);
    assert_string_equal(err.what, "f: header of 2 bytes, only 1 can be read");
    sw_tensor_list_clear(&list);
}

static void headers_of_every_size_at_a_usual_buffer_border_parse(void **state)
{
    (void)state;
    static const size_t sizes[] = {65528, 65536, 99994, 100000};
    for (size_t i = 0; i < SW_COUNT(sizes); i++) {
        sw_buffer header = {0};
        sw_tensor_list list;
        sw_buffer_puts(&header, "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
        while (header.length < sizes[i]) {
            sw_buffer_putc(&header, ' ');
        }
        assert_int_equal(read_header_n(&list, header.bytes, header.length, 1, NULL), SW_OK);
        assert_int_equal(list.n_tensors, 1);
        sw_tensor_list_clear(&list);
        sw_buffer_clear(&header);
    }
}

static void a_million_tensors_in_reverse_order_are_read(void **state)
{
    (void)state;
    enum { N = 1000000 };
    sw_buffer header = {0};
    sw_tensor_list list;
    for (uint32_t i = N; i-- > 0;) {
        sw_buffer_printf(&header, "%s\"w%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                         i == N - 1 ? "{" : ",", i, i, i + 1);
    }
    sw_buffer_putc(&header, '}');
    assert_int_equal(read_header_n(&list, header.bytes, header.length, N, NULL), SW_OK);
    assert_int_equal(list.n_tensors, N);
    assert_int_equal(list.n_shapes, 1);
    assert_int_equal(sw_tensor_list_find(&list, "w777777", 7)->begin, 777777);
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&header);
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;
    sw_buffer header = {0};
    sw_buffer_puts(&header, "{");
    for (unsigned i = 0; i < 100; i++) {
        sw_buffer_printf(&header, "%s\"\\u0077%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                         i == 0 ? "" : ",", i, i, i + 1);
    }
    sw_buffer_puts(&header, "}");

    uint64_t n = 0;
    while (status != SW_OK) {
        sw_tensor_list list = {0};
        sw_error err = {0};
        /* The first two are the test's own file. */
        sw_alloc_fail_at(n++ + 5);
        status = read_header(&list, sw_buffer_text(&header), 100, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_int_equal(err.status, SW_E_NO_MEMORY);
        }
        sw_tensor_list_clear(&list);
        assert_int_equal(sw_alloc_live(), before + 1);
    }
    assert_true(n > 5);
    sw_buffer_clear(&header);
}

static void memory_for_names_is_bounded_by_the_list(void **state)
{
    (void)state;
    sw_tensor_list list;
    sw_error err = {0};
    sw_buffer file = {0};
    sw_buffer_puts(&file, "12345678{\"");
    for (int i = 0; i < 3000; i++) {
        sw_buffer_puts(&file, "\\n");
    }
    sw_buffer_puts(&file, "\":{}}");
    for (int i = 0; i < 8; i++) {
        file.bytes[i] = (char)((file.length - 8) >> (8 * i) & 0xff);
    }
    assert_int_equal(sw_tensor_list_init(&list, 5000, NULL), SW_OK);
    assert_int_equal(
        sw_safetensors_read(&list, sw_file_map_of(file.bytes, file.length), file.length, 0, "f", &err),
        SW_E_LIMIT);
    assert_string_equal(err.what, "f: more than the 5000 bytes of memory allowed for it");
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&file);
}

static void files_are_read_by_path(void **state)
{
    (void)state;
    char folder[] = "/tmp/sw-test-safetensors-XXXXXX";
    char path[100];
    sw_tensor_list list;
    sw_error err = {0};
    sw_buffer file = {0};
    static const char header[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[0,100]}}";

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/model.safetensors", folder);
    put_prefix(&file, sizeof header - 1);
    sw_buffer_append(&file, header, sizeof header - 1);
    sw_buffer_printf(&file, "%100s", "");
    assert_int_equal(sw_file_write_atomic(path, file.bytes, file.length, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
    assert_int_equal(sw_safetensors_read_file(&list, path, &err), SW_OK);
    assert_int_equal(list.n_tensors, 1);
    assert_string_equal(list.files[list.tensors[0].file], path);

    /* A file cut off in its data, in its header, in its prefix. */
    static const size_t lengths[] = {120, 30, 5, 0};
    for (size_t i = 0; i < SW_COUNT(lengths); i++) {
        sw_tensor_list cut;
        assert_int_equal(sw_tensor_list_init(&cut, 1 << 20, NULL), SW_OK);
        assert_int_equal(sw_file_write_atomic(path, file.bytes, lengths[i], NULL), SW_OK);
        assert_int_equal(sw_safetensors_read_file(&cut, path, &err), SW_E_FORMAT);
        assert_memory_equal(err.what, path, strlen(path));
        sw_tensor_list_clear(&cut);
    }

    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    assert_int_equal(sw_file_write_atomic(path, pointer, sizeof pointer - 1, NULL), SW_OK);
    assert_int_equal(sw_safetensors_read_file(&list, path, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "is a Git LFS pointer, not the file itself"));
    assert_string_equal(err.help, "run 'git lfs pull' to get the data");

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sw_safetensors_read_file(&list, path, &err), SW_E_FORMAT);
    assert_int_equal(sw_safetensors_read_file(&list, folder, &err), SW_E_FORMAT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sw_safetensors_read_file(&list, path, &err), SW_E_FORMAT);
    assert_int_equal(rmdir(folder), 0);
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&file);
}

static void real_files_are_read(void **state)
{
    (void)state;
    char path[600];
    sw_tensor_list list;
    need_shared("weights/stories260K-hf");
    shared_path(path, sizeof path, "weights/stories260K-hf/model.safetensors");
    sw_error err = {0};
    assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
    if (sw_safetensors_read_file(&list, path, &err) != SW_OK) {
        fail_msg("%s", err.what);
    }
    assert_true(list.n_tensors > 10);
    sw_tensor_list_clear(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_read_in_the_order_of_the_header),
        cmocka_unit_test(unusual_but_right_headers_are_read),
        cmocka_unit_test(each_way_of_being_wrong_is_refused_by_name),
        cmocka_unit_test(a_header_length_beyond_file_or_limit_is_refused),
        cmocka_unit_test(a_file_too_short_for_the_prefix_is_refused),
        cmocka_unit_test(headers_of_every_size_at_a_usual_buffer_border_parse),
        cmocka_unit_test(a_million_tensors_in_reverse_order_are_read),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(memory_for_names_is_bounded_by_the_list),
        cmocka_unit_test(files_are_read_by_path),
        cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
