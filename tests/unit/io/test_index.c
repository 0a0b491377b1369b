/* Index files: names and plain file names in order; everything else is refused with the byte where it stands.
 */
#include "io/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

static sw_status read_text(sw_tensor_list *list, const char *text, sw_error *err)
{
    SW_TRY(sw_tensor_list_init(list, 16 << 20, err));
    return sw_index_read(list, sw_file_map_of(text, strlen(text)), "x.index.json", err);
}

static void names_and_files_are_kept_in_order(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(
        read_text(&list,
                  "{\"metadata\": {\"total_size\": 1.5e9, \"more\": [null, {}]}, \"extra\": true,\n"
                  " \"weight_map\": {\"c\": \"2.safetensors\", \"a\": \"1.safetensors\",\n"
                  "  \"b\": \"2.safeten\\u0073ors\", \"d\": \"2.safetensors\"}}\n",
                  NULL),
        SW_OK);
    static const uint32_t files[] = {0, 1, 0, 0};
    assert_int_equal(list.n_tensors, 4);
    assert_int_equal(list.n_files, 2);
    assert_string_equal(list.files[0], "2.safetensors");
    assert_string_equal(list.files[1], "1.safetensors");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(list.tensors[i].file, files[i]);
        assert_null(list.tensors[i].shape);
        assert_int_equal(list.tensors[i].dtype, SW_DTYPE_UNKNOWN);
    }
    assert_string_equal(list.tensors[2].name, "b");
    sw_tensor_list_clear(&list);
}

static void an_empty_weight_map_and_no_metadata_are_fine(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(read_text(&list, "{\"weight_map\":{}}", NULL), SW_OK);
    assert_int_equal(list.n_tensors, 0);
    sw_tensor_list_clear(&list);
}

typedef struct refusal {
    const char *text;
    const char *what; /* behind "x.index.json: " */
} refusal;

// clang-format off
static const refusal refusals[] = {
    { "",                                                 "byte 0: the text ends where an object should stand" },
    { "{}",                                               "no 'weight_map'" },
    { "{\"metadata\":{}}",                                "no 'weight_map'" },
    { "{\"weight_map\":[]}",                              "byte 14: '[' where an object should stand" },
    { "{\"metadata\":1,\"weight_map\":{}}",               "byte 12: metadata is not an object" },
    { "{\"weight_map\":{},\"weight_map\":{}}",            "byte 30: 'weight_map' stands twice" },
    { "{\"weight_map\":{\"a\":1}}",                       "byte 19: '1' where a string should stand" },
    { "{\"weight_map\":{\"a\":null}}",                    "byte 19: 'n' where a string should stand" },
    { "{\"weight_map\":{\"a\":\"f\",}}",                  "byte 23: '}' where a name in quotes should stand" },
    { "{\"weight_map\":{\"a\":\"f\"}} x",                 "byte 25: 'x' where the end of the text should stand" },
    { "{\"weight_map\":{\"a\":\"f\"",                     "byte 22: the text ends where ',' or '}' should stand" },
    { "<<<<<<< HEAD\n{\"weight_map\":{}}",                "byte 0: '<' where an object should stand" },
    { "{\n<<<<<<< HEAD\n\"weight_map\":{}}",              "byte 2: '<' where a name in quotes should stand" },
    { "{\"weight_map\":{\"a\":\"../f\"}}",                "byte 25: '../f' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"/f\"}}",                  "byte 23: '/f' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"d/f\"}}",                 "byte 24: 'd/f' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"d\\\\f\"}}",              "byte 25: 'd\\f' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"..\"}}",                  "byte 23: '..' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\".\"}}",                   "byte 22: '.' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"\"}}",                    "byte 21: '' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"f\\u0000\"}}",            "byte 28: 'f" },
    { "{\"weight_map\":{\"a\":\"f\\n\"}}",                "byte 24: 'f?' is not a plain file name" },
    { "{\"weight_map\":{\"a\":\"f\",\"a\":\"g\"}}",       "tensor 'a' stands in f and in g" },
    { "{\"weight_map\":{\"a\":\"f\",\"a\":\"f\"}}",       "tensor 'a' stands twice in f" },
    { "{\"weight_map\":{\"\":\"f\"}}",                    "a tensor has an empty name" },
    { "version https://git-lfs.github.com/spec/v1\n",     "is a Git LFS pointer, not the file itself" },
};
// clang-format on

static void each_fault_is_refused_where_it_stands(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_tensor_list list;
        sw_error err = {0};
        static const char path[] = "x.index.json: ";
        sw_status status = read_text(&list, refusals[i].text, &err);
        if (status != SW_E_FORMAT || strncmp(err.what, path, sizeof path - 1) != 0 ||
            strncmp(err.what + sizeof path - 1, refusals[i].what, strlen(refusals[i].what)) != 0) {
            fail_msg("%s: %s (%d)\n  instead of: %s", refusals[i].text, err.what, status, refusals[i].what);
        }
        sw_tensor_list_clear(&list);
    }
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;

    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_tensor_list list = {0};
        sw_alloc_fail_at(n);
        status = read_text(&list, "{\"weight_map\":{\"\\u0061\":\"f\",\"b\":\"g\"}}", NULL);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        sw_tensor_list_clear(&list);
        assert_int_equal(sw_alloc_live(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_files_are_kept_in_order),
        cmocka_unit_test(an_empty_weight_map_and_no_metadata_are_fine),
        cmocka_unit_test(each_fault_is_refused_where_it_stands),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
