/* Headers that we write: read back by the strict reader, and byte by byte where the format says so. */
#include "io/safetensors_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/safetensors.h"

static sw_write_entry entry(const char *name, const char *dtype, uint32_t n_dims, const uint64_t *dims,
                            uint64_t n_bytes)
{
    return (sw_write_entry){.name = name,
                            .name_length = strlen(name),
                            .dtype = dtype,
                            .n_dims = n_dims,
                            .dims = dims,
                            .n_bytes = n_bytes};
}

typedef struct listed {
    const sw_write_entry *entries;
} listed;

static void entry_of(void *user, size_t i, sw_write_entry *out)
{
    const listed *of = user;
    *out = of->entries[i];
}

/* Prefix and text, measured and then written. */
static sw_status header_of(sw_buffer *out, const sw_write_entry *entries, size_t n_entries,
                           const sw_write_meta *meta, size_t n_meta, uint64_t *data_bytes, sw_error *err)
{
    listed user = {entries};
    const sw_write_header header = {entry_of, n_entries, meta, n_meta, &user};
    const sw_sink sink = sw_buffer_sink(out);
    char prefix[SW_SAFETENSORS_PREFIX];
    uint64_t n_bytes = 0;

    sw_status status = sw_safetensors_measure(&header, &n_bytes, data_bytes, err);
    if (status != SW_OK)
        return status;
    sw_safetensors_prefix(n_bytes, prefix);
    sw_buffer_append(out, prefix, sizeof prefix);
    status = sw_safetensors_write(&header, &sink, err);
    if (status == SW_OK)
        assert_int_equal(out->length, n_bytes);
    return status;
}

static void read_back(sw_tensor_list *list, const sw_buffer *header, uint64_t data_bytes)
{
    sw_error err = {0};
    uint32_t file = 0;
    sw_file_map head = sw_file_map_of(header->bytes, header->length);
    assert_int_equal(sw_tensor_list_init(list, 0, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add_file(list, "written", &file, NULL), SW_OK);
    sw_status status = sw_safetensors_read(list, head, header->length + data_bytes, file, "written", &err);
    assert_string_equal(err.what, "");
    assert_int_equal(status, SW_OK);
}

static void a_header_is_what_the_format_says_byte_for_byte(void **state)
{
    (void)state;
    static const char expected[] = "\x90\0\0\0\0\0\0\0"
                                   "{\"__metadata__\":{\"format\":\"pt\"},"
                                   "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                                   "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}";
    const uint64_t dims[] = {2, 3};
    sw_write_entry entries[] = {entry("w", "BF16", 2, dims, 12), entry("b", "F32", 1, dims, 8)};
    const sw_write_meta meta[] = {
        {.key = "format", .value = "pt", .value_length = 2}
    };
    sw_buffer out = {0};
    uint64_t data_bytes = 0;
    assert_int_equal(header_of(&out, entries, 2, meta, 1, &data_bytes, NULL), SW_OK);
    assert_int_equal(data_bytes, 20);
    assert_int_equal(out.length, sizeof expected - 1);
    assert_memory_equal(out.bytes, expected, sizeof expected - 1);
    sw_buffer_clear(&out);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const uint64_t dims[] = {2, 3, 4, 5};
    const uint64_t none[] = {7, 0, 3};
    sw_write_entry entries[] = {
        entry("model.embed", "F32", 2, dims, 24), entry("scalar", "F64", 0, NULL, 8),
        entry("empty", "BF16", 3, none, 0),       entry("all", "F8_E4M3", 4, dims, 120),
        entry("half", "F4", 2, dims + 1, 6),      entry("odd dtype", "Q9_X", 1, dims, 5),
        entry("last", "BOOL", 1, dims, 2),
    };
    const size_t n = sizeof entries / sizeof entries[0];
    sw_buffer out = {0};
    sw_tensor_list list;
    uint64_t data_bytes = 0;
    assert_int_equal(header_of(&out, entries, n, NULL, 0, &data_bytes, NULL), SW_OK);
    assert_int_equal(data_bytes, 165);
    read_back(&list, &out, data_bytes);
    assert_int_equal(list.n_tensors, n);
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const sw_tensor_entry *found = &list.tensors[i];
        assert_string_equal(found->name, entries[i].name);
        assert_int_equal(found->dtype, sw_dtype_of(entries[i].dtype, strlen(entries[i].dtype)));
        assert_int_equal(found->begin, at);
        at += entries[i].n_bytes;
        assert_int_equal(found->shape->n_dims, entries[i].n_dims);
        if (entries[i].n_dims > 0)
            assert_memory_equal(found->shape->dims, entries[i].dims, entries[i].n_dims * sizeof(uint64_t));
    }
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&out);
}

static void data_begins_on_a_multiple_of_8_behind_blanks(void **state)
{
    (void)state;
    const uint64_t dims[] = {1};
    char name[32] = "";
    for (int length = 1; length <= 16; length++) {
        memset(name, 'n', (size_t)length);
        sw_write_entry entries[] = {entry(name, "U8", 1, dims, 1)};
        sw_buffer out = {0};
        sw_tensor_list list;
        uint64_t data_bytes = 0;
        assert_int_equal(header_of(&out, entries, 1, NULL, 0, &data_bytes, NULL), SW_OK);
        assert_int_equal(out.length % 8, 0);
        size_t end = out.length;
        while (out.bytes[end - 1] == ' ')
            end--;
        assert_int_equal(out.bytes[end - 1], '}');
        assert_true(out.length - end < 8);
        read_back(&list, &out, data_bytes);
        sw_tensor_list_clear(&list);
        sw_buffer_clear(&out);
    }
}

static void no_tensors_make_a_header_too(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_tensor_list list;
    uint64_t data_bytes = 1;
    assert_int_equal(header_of(&out, NULL, 0, NULL, 0, &data_bytes, NULL), SW_OK);
    assert_int_equal(data_bytes, 0);
    assert_int_equal(out.length, 16);
    assert_memory_equal(out.bytes, "\x08\0\0\0\0\0\0\0{}      ", 16);
    read_back(&list, &out, 0);
    assert_int_equal(list.n_tensors, 0);
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&out);
}

static void metadata_and_names_are_escaped(void **state)
{
    (void)state;
    static const char slices[] = "{\"w\": [[0, 1]]}\n";
    const uint64_t dims[] = {1};
    sw_write_entry entries[] = {entry("quote\"back\\slash\xc3\xa9", "U8", 1, dims, 1)};
    const sw_write_meta meta[] = {
        {.key = "sw.coord",  .value = "pp=0,tp=1", .value_length = 9                },
        {.key = "sw.slices", .value = slices,      .value_length = sizeof slices - 1}
    };
    sw_buffer out = {0};
    sw_tensor_list list;
    uint64_t data_bytes = 0;
    assert_int_equal(header_of(&out, entries, 1, meta, 2, &data_bytes, NULL), SW_OK);
    const char *text = sw_buffer_text(&out);
    assert_non_null(text);
    assert_non_null(
        strstr(text + 8, "{\"sw.coord\":\"pp=0,tp=1\",\"sw.slices\":\"{\\\"w\\\": [[0, 1]]}\\n\"}"));
    read_back(&list, &out, data_bytes);
    assert_string_equal(list.tensors[0].name, entries[0].name);
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&out);
}

static void a_hundred_thousand_tensors_are_written(void **state)
{
    (void)state;
    enum { N = 100000, NAME = 48 };
    const uint64_t dims[] = {64, 128};
    sw_write_entry *entries = sw_alloc_zero(N, sizeof *entries);
    char(*names)[NAME] = sw_alloc_zero(N, sizeof *names);
    sw_buffer out = {0};
    sw_tensor_list list;
    uint64_t data_bytes = 0;
    assert_non_null(entries);
    assert_non_null(names);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], NAME, "model.layers.%zu.experts.%zu.weight", i / 256, i % 256);
        entries[i] = entry(names[i], "BF16", 2, dims, 16384);
    }
    assert_int_equal(header_of(&out, entries, N, NULL, 0, &data_bytes, NULL), SW_OK);
    assert_int_equal(data_bytes, UINT64_C(16384) * N);
    read_back(&list, &out, data_bytes);
    assert_int_equal(list.n_tensors, N);
    assert_int_equal(list.tensors[N - 1].begin, UINT64_C(16384) * (N - 1));
    sw_tensor_list_clear(&list);
    sw_buffer_clear(&out);
    sw_free(entries);
    sw_free(names);
}

static void offsets_that_overflow_are_refused(void **state)
{
    (void)state;
    const uint64_t dims[] = {UINT64_MAX};
    sw_write_entry entries[] = {entry("a", "U8", 1, dims, UINT64_MAX), entry("b", "U8", 1, dims, 1)};
    sw_buffer out = {0};
    uint64_t data_bytes = 0;
    sw_error err = {0};
    assert_int_equal(header_of(&out, entries, 2, NULL, 0, &data_bytes, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "tensor 'b': 1 bytes of data after 18446744073709551615 are too many");
    assert_int_equal(out.length, 0);
    sw_buffer_clear(&out);
}

static void a_header_above_the_limit_is_refused(void **state)
{
    (void)state;
    enum { LONG = 50000001 };
    char *value = sw_alloc(LONG);
    sw_buffer out = {0};
    uint64_t data_bytes = 0;
    sw_error err = {0};
    assert_non_null(value);
    memset(value, 'v', LONG);
    const sw_write_meta meta[] = {
        {.key = "a", .value = value, .value_length = LONG},
        {.key = "b", .value = value, .value_length = LONG}
    };
    assert_int_equal(header_of(&out, NULL, 0, meta, 2, &data_bytes, &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "the format allows 100000000"));
    sw_buffer_clear(&out);
    sw_free(value);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    const uint64_t dims[] = {1};
    int64_t live = sw_alloc_live();
    for (uint64_t n = 1;; n++) {
        sw_write_entry entries[] = {entry("a_name_that_is_rather_long", "U8", 1, dims, 1),
                                    entry("another_name_of_some_length", "U8", 1, dims, 1)};
        const sw_write_meta meta[] = {
            {.key = "k",
             .value = "0123456789012345678901234567890123456789012345678901234567890123",
             .value_length = 64}
        };
        sw_buffer out = {0};
        uint64_t data_bytes = 0;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        sw_status status = header_of(&out, entries, 2, meta, 1, &data_bytes, &err);
        sw_alloc_fail_at(0);
        sw_buffer_clear(&out);
        if (status == SW_OK) {
            assert_true(n > 1);
            break;
        }
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_true(strncmp(err.what, "no memory for ", 14) == 0);
    }
    assert_int_equal(sw_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_what_the_format_says_byte_for_byte),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(data_begins_on_a_multiple_of_8_behind_blanks),
        cmocka_unit_test(no_tensors_make_a_header_too),
        cmocka_unit_test(metadata_and_names_are_escaped),
        cmocka_unit_test(a_hundred_thousand_tensors_are_written),
        cmocka_unit_test(offsets_that_overflow_are_refused),
        cmocka_unit_test(a_header_above_the_limit_is_refused),
        cmocka_unit_test(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
