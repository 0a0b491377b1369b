/* The arena: alignment, tight strings, the limit, and no leak when memory runs out. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void pieces_are_aligned_and_strings_are_packed(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    for (int i = 0; i < 100; i++) {
        char *first = sw_arena_copy(arena, "abc", 3);
        char *second = sw_arena_copy(arena, "de", 2);
        char *piece = sw_arena_alloc(arena, (size_t)i);
        assert_int_equal((uintptr_t)piece % 16, 0);
        memset(piece, 0xff, (size_t)i);
        assert_string_equal(first, "abc");
        assert_string_equal(second, "de");
        assert_int_equal(first - second, 3);
    }
    sw_arena_destroy(arena);
}

static void nothing_overlaps_over_many_blocks(void **state)
{
    (void)state;
    enum { N = 3000 };
    static unsigned char *pieces[N];
    sw_arena *arena = sw_arena_create(0);
    for (size_t i = 0; i < N; i++) {
        size_t n_bytes = (i * 7919) % 5000 + (i % 500 == 0 ? 300000 : 1);
        char fill[16];
        pieces[i] =
            i % 2 == 0 ? sw_arena_alloc(arena, n_bytes) : (unsigned char *)sw_arena_copy(arena, fill, 0);
        assert_non_null(pieces[i]);
        pieces[i][0] = (unsigned char)(i % 2 == 0 ? i % 251 : 0);
        if (i % 2 == 0) {
            memset(pieces[i], (int)(i % 251), n_bytes);
        }
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(pieces[i][0], i % 2 == 0 ? i % 251 : 0);
    }
    sw_arena_destroy(arena);
}

static void a_piece_larger_than_a_block_leaves_the_current_one_in_use(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    char *before = sw_arena_alloc(arena, 16);
    char *large = sw_arena_alloc(arena, 10 << 20);
    char *after = sw_arena_alloc(arena, 16);
    memset(large, 1, 10 << 20);
    assert_int_equal(after - before, 16);
    assert_true(sw_arena_bytes(arena) < (10 << 20) + (200 << 10));
    sw_arena_destroy(arena);
}

static void zeroed_arrays_are_zero_and_an_overflow_is_refused(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    memset(sw_arena_alloc(arena, 64), 0xff, 64);
    const unsigned char *zeros = sw_arena_zero(arena, 100, 3);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(zeros[i], 0);
    }
    assert_null(sw_arena_zero(arena, SIZE_MAX / 2, 4));
    assert_null(sw_arena_alloc(arena, SIZE_MAX - 8));
    assert_null(sw_arena_copy(arena, "", SIZE_MAX));
    sw_arena_destroy(arena);
}

static void text_is_formatted_into_it(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    assert_string_equal(sw_arena_format(arena, "layers.%d.%s", 7, "mlp"), "layers.7.mlp");
    sw_arena_destroy(arena);
}

static void the_limit_bounds_what_is_taken_and_is_named(void **state)
{
    (void)state;
    const size_t limit = 200000;
    sw_arena *arena = sw_arena_create(limit);
    sw_error err = {0};
    size_t handed_out = 0;
    while (sw_arena_alloc(arena, 1000) != NULL) {
        handed_out += 1000;
    }
    assert_true(handed_out > limit / 2 && handed_out <= limit);
    assert_true(sw_arena_bytes(arena) <= limit);
    assert_null(sw_arena_alloc(arena, limit));
    assert_int_equal(sw_arena_fail(arena, "names", &err), SW_E_LIMIT);
    assert_string_equal(err.what, "names: more than the 200000 bytes of memory allowed for it");
    sw_arena_destroy(arena);
}

static void a_limit_below_the_first_block_still_serves_small_pieces(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(1000);
    assert_non_null(sw_arena_alloc(arena, 500));
    assert_null(sw_arena_alloc(arena, 500));
    assert_non_null(sw_arena_copy(arena, "x", 1));
    sw_arena_destroy(arena);
}

static void missing_memory_is_told_from_the_limit(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_error err = {0};
    sw_alloc_fail_at(1);
    assert_null(sw_arena_create(0));
    sw_arena *arena = sw_arena_create(0);
    sw_alloc_fail_at(1);
    assert_null(sw_arena_alloc(arena, 10));
    assert_int_equal(sw_arena_fail(arena, "names", &err), SW_E_NO_MEMORY);
    assert_string_equal(err.what, "no memory for names");
    assert_non_null(sw_arena_alloc(arena, 10));
    sw_arena_destroy(arena);
    sw_arena_destroy(NULL);
    assert_int_equal(sw_alloc_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_strings_are_packed),
        cmocka_unit_test(nothing_overlaps_over_many_blocks),
        cmocka_unit_test(a_piece_larger_than_a_block_leaves_the_current_one_in_use),
        cmocka_unit_test(zeroed_arrays_are_zero_and_an_overflow_is_refused),
        cmocka_unit_test(text_is_formatted_into_it),
        cmocka_unit_test(the_limit_bounds_what_is_taken_and_is_named),
        cmocka_unit_test(a_limit_below_the_first_block_still_serves_small_pieces),
        cmocka_unit_test(missing_memory_is_told_from_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
