/* The map: every key keeps its value through growth, equal bytes are one key, borrowed keys can be replaced.
 */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void every_key_keeps_its_value(void **state)
{
    (void)state;
    enum { N = 20000 };
    static char keys[N][16];
    sw_map map = {0};
    bool is_new = false;
    for (uint32_t i = 0; i < N; i++) {
        int length = snprintf(keys[i], sizeof keys[i], "layers.%u", i);
        assert_null(sw_map_find(&map, keys[i], (size_t)length));
        assert_int_equal(*sw_map_put(&map, keys[i], (size_t)length, i, &is_new), i);
        assert_true(is_new);
    }
    assert_int_equal(map.n_used, N);
    for (uint32_t i = 0; i < N; i++) {
        char copy[16];
        memcpy(copy, keys[i], sizeof copy);
        assert_int_equal(*sw_map_find(&map, copy, strlen(copy)), i);
        assert_int_equal(*sw_map_put(&map, copy, strlen(copy), 7, &is_new), i);
        assert_false(is_new);
    }
    assert_null(sw_map_find(&map, "layers", 6));
    sw_map_clear(&map);
}

static void the_empty_key_and_bytes_with_nul_are_keys(void **state)
{
    (void)state;
    sw_map map = {0};
    bool is_new = false;
    assert_null(sw_map_find(&map, "", 0));
    assert_non_null(sw_map_put(&map, NULL, 0, 1, &is_new));
    assert_non_null(sw_map_put(&map, "a\0b", 3, 2, &is_new));
    assert_non_null(sw_map_put(&map, "a\0c", 3, 3, &is_new));
    assert_int_equal(*sw_map_find(&map, "", 0), 1);
    assert_int_equal(*sw_map_find(&map, "a\0b", 3), 2);
    assert_int_equal(*sw_map_find(&map, "a\0c", 3), 3);
    assert_null(sw_map_find(&map, "a", 1));
    sw_map_clear(&map);
}

static void a_borrowed_key_is_replaced_by_a_copy(void **state)
{
    (void)state;
    sw_map map = {0};
    bool is_new = false;
    char passing[] = "name";
    uint32_t *value = sw_map_put(&map, passing, 4, 9, &is_new);
    sw_map_rekey(value, "name");
    memset(passing, 'x', 4);
    assert_int_equal(*sw_map_find(&map, "name", 4), 9);
    assert_null(sw_map_find(&map, "xxxx", 4));
    sw_map_clear(&map);
}

static void reserved_room_is_not_allocated_again(void **state)
{
    (void)state;
    sw_map map = {0};
    bool is_new = false;
    static char keys[1000][8];
    assert_true(sw_map_reserve(&map, 1000));
    sw_alloc_fail_at(1);
    for (uint32_t i = 0; i < 1000; i++) {
        int length = snprintf(keys[i], sizeof keys[i], "%u", i);
        assert_non_null(sw_map_put(&map, keys[i], (size_t)length, i, &is_new));
    }
    sw_alloc_fail_at(0);
    sw_map_prefetch(&map, "1", 1);
    sw_map_clear(&map);
    sw_map_prefetch(&map, "1", 1);
}

static void no_memory_leaves_the_map_as_it_was(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    for (uint64_t n = 1; n <= 2; n++) {
        sw_map map = {0};
        bool is_new = false;
        sw_alloc_fail_at(n);
        assert_null(sw_map_put(&map, "a", 1, 1, &is_new));
        assert_false(is_new);
        for (uint32_t i = 0; i < 12; i++) {
            assert_non_null(sw_map_put(&map, letters + i, 1, i, &is_new));
        }
        sw_alloc_fail_at(n); /* the thirteenth needs more slots */
        assert_null(sw_map_put(&map, letters + 12, 1, 12, &is_new));
        for (uint32_t i = 0; i < 12; i++) {
            assert_int_equal(*sw_map_find(&map, letters + i, 1), i);
        }
        assert_null(sw_map_find(&map, letters + 12, 1));
        sw_map_clear(&map);
    }
    sw_map map = {0};
    assert_false(sw_map_reserve(&map, SIZE_MAX));
    assert_int_equal(sw_alloc_live(), before);
}

static void the_hash_depends_on_bytes_and_seed(void **state)
{
    (void)state;
    assert_true(sw_hash("abc", 3, 0) == sw_hash("abcd", 3, 0));
    assert_true(sw_hash("abc", 3, 0) != sw_hash("abd", 3, 0));
    assert_true(sw_hash("abc", 3, 0) != sw_hash("abc", 3, 1));
    assert_true(sw_hash("", 0, 0) == UINT64_C(0x2d06800538d394c2)); /* as published for XXH3 of nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_keeps_its_value),
        cmocka_unit_test(the_empty_key_and_bytes_with_nul_are_keys),
        cmocka_unit_test(a_borrowed_key_is_replaced_by_a_copy),
        cmocka_unit_test(reserved_room_is_not_allocated_again),
        cmocka_unit_test(no_memory_leaves_the_map_as_it_was),
        cmocka_unit_test(the_hash_depends_on_bytes_and_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
