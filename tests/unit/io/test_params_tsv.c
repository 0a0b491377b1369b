/* params.tsv: strict lines, each fault with its line number. */
#include "io/params_tsv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "shared.h"

static sw_status read_text(sw_tensor_list *list, const char *text, sw_error *err)
{
    SW_TRY(sw_tensor_list_init(list, 64 << 20, err));
    return sw_params_tsv_read(list, sw_file_map_of(text, strlen(text)), "p.tsv", err);
}

static void names_dtypes_and_shapes_are_read(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(
        read_text(&list, "# a comment\nwte.weight\tF16\t50257x768\r\nscale\tI8\t1\ne\tF32\t0x3", NULL),
        SW_OK);
    assert_int_equal(list.n_tensors, 3);
    assert_string_equal(list.tensors[0].name, "wte.weight");
    assert_int_equal(list.tensors[0].dtype, SW_DTYPE_F16);
    assert_int_equal(list.tensors[0].shape->n_dims, 2);
    assert_int_equal(list.tensors[0].shape->dims[0], 50257);
    assert_int_equal(list.tensors[0].shape->dims[1], 768);
    assert_int_equal(list.tensors[0].file, UINT32_MAX);
    assert_int_equal(list.tensors[1].dtype, SW_DTYPE_I8);
    assert_int_equal(list.tensors[1].shape->n_dims, 1);
    assert_int_equal(list.tensors[1].shape->elems, 1);
    assert_int_equal(list.tensors[2].shape->elems, 0);
    sw_tensor_list_clear(&list);
}

static void a_byte_order_mark_is_no_part_of_a_name(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(read_text(&list,
                               "\xef\xbb\xbf"
                               "a\tF32\t1\n",
                               NULL),
                     SW_OK);
    assert_string_equal(list.tensors[0].name, "a");
    sw_tensor_list_clear(&list);
    assert_int_equal(read_text(&list, "\xef\xbb\xbf", NULL), SW_OK);
    assert_int_equal(list.n_tensors, 0);
    sw_tensor_list_clear(&list);
}

static void an_empty_file_is_an_empty_list(void **state)
{
    (void)state;
    sw_tensor_list list;
    assert_int_equal(read_text(&list, "", NULL), SW_OK);
    assert_int_equal(list.n_tensors, 0);
    sw_tensor_list_clear(&list);
}

typedef struct refusal {
    const char *text;
    sw_status status;
    const char *what;
} refusal;

// clang-format off
static const refusal refusals[] = {
    { "a\tF32\n",                             SW_E_FORMAT, "p.tsv: line 1: 2 fields, not 3" },
    { "a\tF32\t1\t\n",                        SW_E_FORMAT, "p.tsv: line 1: 4 fields, not 3" },
    { "a\tF32\t1\n\nb\tF32\t1\n",             SW_E_FORMAT, "p.tsv: line 2: 1 fields, not 3" },
    { "#\na F32 1\n",                         SW_E_FORMAT, "p.tsv: line 2: 1 fields, not 3" },
    { "a\t\t1\n",                             SW_E_FORMAT, "p.tsv: line 1: '' is not a dtype" },
    { "a\tF32\t1\nb\tBF17\t1\n",             SW_E_FORMAT, "p.tsv: line 2: 'BF17' is not a dtype" },
    { "a\tF-32\t1\n",                         SW_E_FORMAT, "p.tsv: line 1: 'F-32' is not a dtype" },
    { "a\tF32\t\n",                           SW_E_FORMAT, "p.tsv: line 1: '' is not a shape" },
    { "a\tF32\t4x\n",                         SW_E_FORMAT, "p.tsv: line 1: '4x' is not a shape" },
    { "a\tF32\tx4\n",                         SW_E_FORMAT, "p.tsv: line 1: 'x4' is not a shape" },
    { "a\tF32\t4X4\n",                        SW_E_FORMAT, "p.tsv: line 1: '4X4' is not a shape" },
    { "a\tF32\t-4\n",                         SW_E_FORMAT, "p.tsv: line 1: '-4' is not a shape" },
    { "a\tF32\t04\n",                         SW_E_FORMAT, "p.tsv: line 1: '04' is not a shape" },
    { "a\tF32\t4 \n",                         SW_E_FORMAT, "p.tsv: line 1: '4 ' is not a shape" },
    { "a\tF32\t18446744073709551616\n",       SW_E_FORMAT, "p.tsv: line 1: '18446744073709551616' is not a shape" },
    { "a\tF32\t4294967296x4294967296\n",      SW_E_LIMIT,
      "p.tsv: line 1: the product of the extents does not fit 64 bits (dim 1 is 4294967296)" },
    { "a\tF32\t1x1x1x1x1x1x1x1x1\n",          SW_E_LIMIT,  "p.tsv: line 1: more than 8 dims" },
    { "a\tF32\t1\nb\tF32\t1\na\tF32\t1\n",    SW_E_FORMAT, "p.tsv: line 3: tensor 'a' is listed twice" },
    { "\tF32\t1\n",                           SW_E_FORMAT, "p.tsv: line 1: a tensor has an empty name" },
    { "a\rb\tF32\t1\n",                       SW_E_FORMAT, "p.tsv: line 1: the name 'a?b' has control characters" },
};
// clang-format on

static void each_fault_is_named_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_tensor_list list;
        sw_error err = {0};
        assert_int_equal(read_text(&list, refusals[i].text, &err), refusals[i].status);
        assert_string_equal(err.what, refusals[i].what);
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
        status = read_text(&list, "a\tF32\t4x4\nb\tF32\t4\n", NULL);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        sw_tensor_list_clear(&list);
        assert_int_equal(sw_alloc_live(), before);
    }
}

static void the_largest_real_lists_are_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        size_t n_tensors;
    } models[] = {
        {"deepseek-v3", 91991 },
        {"kimi-k2",     139644},
        {"gpt2",        160   }
    };

    for (size_t i = 0; i < SW_COUNT(models); i++) {
        char name[128];
        char path[600];
        sw_file_map map = {0};
        sw_tensor_list list;
        (void)snprintf(name, sizeof name, "corpus/%s/params.tsv", models[i].model);
        need_shared(name);
        shared_path(path, sizeof path, name);
        assert_int_equal(sw_file_map_open(&map, path, SW_PARAMS_TSV_MAX_BYTES, NULL), SW_OK);
        assert_int_equal(sw_tensor_list_init(&list, 1 << 30, NULL), SW_OK);
        assert_int_equal(sw_params_tsv_read(&list, map, path, NULL), SW_OK);
        assert_int_equal(list.n_tensors, models[i].n_tensors);
        sw_tensor_list_clear(&list);
        sw_file_map_close(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_dtypes_and_shapes_are_read),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_name),
        cmocka_unit_test(an_empty_file_is_an_empty_list),
        cmocka_unit_test(each_fault_is_named_with_its_line),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(the_largest_real_lists_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
