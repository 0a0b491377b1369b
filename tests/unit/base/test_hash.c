/* The checksum that is told piece by piece. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/map.h"

static void pieces_have_the_hash_of_the_whole(void **state)
{
    (void)state;
    static uint8_t bytes[5000];
    static const size_t pieces[] = {1, 7, 64, 240, 241, 1000, 4999};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        sw_hasher hasher;
        sw_hasher_begin(&hasher);
        for (size_t at = 0; at < sizeof bytes; at += pieces[p]) {
            size_t left = sizeof bytes - at;
            sw_hasher_add(&hasher, bytes + at, left < pieces[p] ? left : pieces[p]);
            assert_true(sw_hasher_end(&hasher) ==
                        sw_hash(bytes, left < pieces[p] ? sizeof bytes : at + pieces[p], 0));
        }
    }
}

/* The value that the XXH3 specification's own code gives for no bytes at all. */
static void nothing_has_the_hash_of_the_specification(void **state)
{
    (void)state;
    sw_hasher hasher;
    sw_hasher_begin(&hasher);
    assert_true(sw_hasher_end(&hasher) == 0x2d06800538d394c2U);
}

static void hashers_in_any_memory_are_aligned_and_apart(void **state)
{
    (void)state;
    enum { N = 3 };
    unsigned char *room = sw_alloc((N + 1) * sizeof(sw_hasher) + 16);
    assert_non_null(room);
    for (size_t shift = 0; shift < 2; shift++) {
        sw_hasher *last = NULL;
        for (size_t i = 0; i < N; i++) {
            sw_hasher *hasher = sw_hasher_at(room + 16 * shift, i);
            assert_int_equal((uintptr_t)hasher % SW_HASHER_ALIGNMENT, 0);
            assert_true((unsigned char *)hasher >= room + 16 * shift);
            assert_true((unsigned char *)(hasher + 1) <= room + 16 * shift + (N + 1) * sizeof(sw_hasher));
            assert_true(last == NULL || hasher == last + 1);
            last = hasher;
        }
    }
    sw_free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_hash_of_the_whole),
        cmocka_unit_test(nothing_has_the_hash_of_the_specification),
        cmocka_unit_test(hashers_in_any_memory_are_aligned_and_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
