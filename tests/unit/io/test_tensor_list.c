/* The list of tensors: names are unique and clean, shapes are shared, a failed call changes nothing. */
#include "io/tensor_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

static int make_list(void **state)
{
    static sw_tensor_list list;
    *state = &list;
    return sw_tensor_list_init(&list, 64 << 20, NULL) != SW_OK;
}

static int clear_list(void **state)
{
    sw_tensor_list_clear(*state);
    return 0;
}

static sw_status add(sw_tensor_list *list, const char *name, uint32_t file, sw_error *err)
{
    return sw_tensor_list_add(list, name, strlen(name), SW_DTYPE_F32, NULL, file, 0, err);
}

static void tensors_are_kept_in_order_and_found_by_name(void **state)
{
    sw_tensor_list *list = *state;
    const uint64_t dims[] = {4, 8};
    const sw_shape *shape = NULL;
    char passing[] = "b.weight";

    assert_int_equal(sw_tensor_list_shape(list, dims, 2, &shape, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add(list, passing, 8, SW_DTYPE_BF16, shape, 3, 77, NULL), SW_OK);
    assert_int_equal(add(list, "a.weight", UINT32_MAX, NULL), SW_OK);
    memset(passing, 'x', 8); /* the name was copied */
    assert_int_equal(list->n_tensors, 2);
    const sw_tensor_entry *entry = sw_tensor_list_find(list, "b.weight", 8);
    assert_ptr_equal(entry, &list->tensors[0]);
    assert_string_equal(entry->name, "b.weight");
    assert_int_equal(entry->name_length, 8);
    assert_int_equal(entry->dtype, SW_DTYPE_BF16);
    assert_int_equal(entry->file, 3);
    assert_int_equal(entry->begin, 77);
    assert_int_equal(entry->shape->elems, 32);
    assert_null(sw_tensor_list_find(list, "c.weight", 8));
}

static void equal_shapes_are_one(void **state)
{
    sw_tensor_list *list = *state;
    const uint64_t dims[] = {4, 8, 0};
    const sw_shape *first = NULL;
    const sw_shape *second = NULL;
    const sw_shape *scalar = NULL;
    const sw_shape *empty = NULL;

    assert_int_equal(sw_tensor_list_shape(list, dims, 2, &first, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_shape(list, dims, 2, &second, NULL), SW_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(sw_tensor_list_shape(list, dims, 0, &scalar, NULL), SW_OK);
    assert_int_equal(scalar->elems, 1);
    assert_int_equal(scalar->n_dims, 0);
    assert_int_equal(sw_tensor_list_shape(list, dims, 3, &empty, NULL), SW_OK);
    assert_int_equal(empty->elems, 0);
    assert_int_equal(list->n_shapes, 3);
}

static void too_many_dims_and_an_overflow_are_limits(void **state)
{
    sw_tensor_list *list = *state;
    sw_error err = {0};
    const uint64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t large[] = {UINT64_C(1) << 32, UINT64_C(1) << 31, 2};
    const sw_shape *shape = NULL;

    assert_int_equal(sw_tensor_list_shape(list, many, 9, &shape, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "9 dims, at most 8 are supported");
    assert_int_equal(sw_tensor_list_shape(list, many, 8, &shape, &err), SW_OK);
    assert_int_equal(sw_tensor_list_shape(list, large, 2, &shape, &err), SW_OK);
    assert_int_equal(sw_tensor_list_shape(list, large, 3, &shape, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "the product of the extents does not fit 64 bits (dim 2 is 2)");
    assert_int_equal(list->n_shapes, 2);
}

static void a_name_that_stands_twice_is_refused_with_both_files(void **state)
{
    sw_tensor_list *list = *state;
    sw_error err = {0};
    uint32_t one = 0;
    uint32_t two = 0;

    assert_int_equal(sw_tensor_list_add_file(list, "x/one.safetensors", &one, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add_file(list, "x/two.safetensors", &two, NULL), SW_OK);
    assert_int_equal(add(list, "w", one, &err), SW_OK);
    assert_int_equal(add(list, "w", two, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "tensor 'w' stands in x/one.safetensors and in x/two.safetensors");
    assert_int_equal(add(list, "w", one, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "tensor 'w' stands twice in x/one.safetensors");
    assert_int_equal(add(list, "w", UINT32_MAX, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "tensor 'w' is listed twice");
    assert_int_equal(list->n_tensors, 1);
}

static void unclean_names_are_refused(void **state)
{
    sw_tensor_list *list = *state;
    sw_error err = {0};
    static char text[SW_MAX_NAME_BYTES + 1];

    assert_int_equal(add(list, "", 0, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "a tensor has an empty name");
    assert_int_equal(add(list, "a.b.", 0, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "the name 'a.b.' ends in a dot: the parameter itself has none");
    assert_int_equal(add(list, "a\nb", 0, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "the name 'a?b' has control characters");
    assert_int_equal(add(list, "a long name with a delete \x7f", 0, &err), SW_E_FORMAT);
    assert_int_equal(add(list,
                         "a\xc2\x85"
                         "b",
                         0, &err),
                     SW_E_FORMAT);
    assert_string_equal(err.what, "the name 'a??b' has control characters");
    assert_int_equal(add(list,
                         "a\xe2\x80\xae"
                         "b",
                         0, &err),
                     SW_E_FORMAT);
    assert_int_equal(sw_tensor_list_add(list, "a\0b", 3, SW_DTYPE_F32, NULL, 0, 0, &err), SW_E_FORMAT);
    assert_int_equal(add(list, "caf\xe9", 0, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "is not UTF-8"));
    memset(text, 'n', sizeof text);
    assert_int_equal(sw_tensor_list_add(list, text, sizeof text, SW_DTYPE_F32, NULL, 0, 0, &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "has 65537 bytes, at most 65536 are supported"));
    assert_int_equal(list->n_tensors, 0);
    assert_int_equal(sw_tensor_list_add(list, text, sizeof text - 1, SW_DTYPE_F32, NULL, 0, 0, &err), SW_OK);
    assert_int_equal(add(list, "caf\xc3\xa9 \"quoted\" \\", 0, &err), SW_OK);
}

static void the_memory_of_names_is_bounded(void **state)
{
    (void)state;
    sw_tensor_list list;
    sw_error err = {0};
    char name[1000];
    sw_status status = SW_OK;

    assert_int_equal(sw_tensor_list_init(&list, 100000, NULL), SW_OK);
    for (int i = 0; i < 200 && status == SW_OK; i++) {
        (void)snprintf(name, sizeof name, "%0999d", i);
        status = add(&list, name, 0, &err);
    }
    assert_int_equal(status, SW_E_LIMIT);
    assert_string_equal(err.what,
                        "the names of the tensors: more than the 100000 bytes of memory allowed for it");
    assert_true(list.n_tensors > 50 && list.n_tensors < 100);
    sw_tensor_list_clear(&list);
}

static sw_status fill(sw_tensor_list *list, sw_error *err)
{
    uint32_t file = 0;
    SW_TRY(sw_tensor_list_init(list, 0, err));
    SW_TRY(sw_tensor_list_reserve(list, 3, err));
    SW_TRY(sw_tensor_list_add_file(list, "file", &file, err));
    for (uint64_t i = 0; i < 100; i++) {
        char name[16];
        const sw_shape *shape = NULL;
        (void)snprintf(name, sizeof name, "w%d", (int)i);
        SW_TRY(sw_tensor_list_shape(list, &i, 1, &shape, err));
        SW_TRY(sw_tensor_list_add(list, name, strlen(name), SW_DTYPE_U8, shape, file, i, err));
    }
    return SW_OK;
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;
    uint64_t n = 0;

    while (status != SW_OK) {
        sw_tensor_list list = {0};
        sw_error err = {0};
        sw_alloc_fail_at(++n);
        status = fill(&list, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_int_equal(err.status, SW_E_NO_MEMORY);
        }
        assert_int_equal(list.n_tensors, list.by_name.n_used);
        sw_tensor_list_clear(&list);
        assert_int_equal(sw_alloc_live(), before);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tensors_are_kept_in_order_and_found_by_name, make_list, clear_list),
        cmocka_unit_test_setup_teardown(equal_shapes_are_one, make_list, clear_list),
        cmocka_unit_test_setup_teardown(too_many_dims_and_an_overflow_are_limits, make_list, clear_list),
        cmocka_unit_test_setup_teardown(a_name_that_stands_twice_is_refused_with_both_files, make_list,
                                        clear_list),
        cmocka_unit_test_setup_teardown(unclean_names_are_refused, make_list, clear_list),
        cmocka_unit_test(the_memory_of_names_is_bounded),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
