/* Cuts worked out by hand: the cases from which wrong splits have come in practice, and every refusal. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"

static int open_arena(void **state)
{
    *state = sw_arena_create(1 << 20);
    return *state == NULL;
}

static int close_arena(void **state)
{
    sw_arena_destroy(*state);
    return 0;
}

static sw_placement parsed(sw_arena *arena, const char *text)
{
    sw_error err = {0};
    sw_placement placement = {0};
    if (sw_placement_parse(&placement, text, strlen(text), arena, &err) != SW_OK)
        fail_msg("%s: %s", text, err.what);
    return placement;
}

/* The rows of one rank, written "0:16 32:36". */
static void expect_rows(sw_arena *arena, const char *placement_text, uint64_t extent, uint32_t parts,
                        uint32_t index, const char *rows)
{
    sw_error err = {0};
    sw_placement placement = parsed(arena, placement_text);
    sw_range pieces[8];
    uint32_t n_pieces = 99;
    uint64_t n_rows = 0;
    char text[256] = "";
    size_t used = 0;

    assert_true(sw_shard_pieces_bound(&placement) <= SW_COUNT(pieces));
    if (sw_shard_pieces(&placement, extent, parts, index, pieces, sw_shard_pieces_bound(&placement),
                        &n_pieces, &err) != SW_OK)
        fail_msg("%s: %s", placement_text, err.what);
    for (uint32_t i = 0; i < n_pieces; i++) {
        n_rows += pieces[i].end - pieces[i].begin;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64 ":%" PRIu64, i == 0 ? "" : " ",
                                 pieces[i].begin, pieces[i].end);
    }
    assert_string_equal(text, rows);
    assert_int_equal(sw_shard_local_extent(&placement, extent, parts, index), n_rows);
}

static void a_plain_shard_is_cut_in_chunks_rounded_up(void **state)
{
    expect_rows(*state, "S(0)", 13, 4, 0, "0:4");
    expect_rows(*state, "S(0)", 13, 4, 1, "4:8");
    expect_rows(*state, "S(0)", 13, 4, 2, "8:12");
    expect_rows(*state, "S(0)", 13, 4, 3, "12:13");
    expect_rows(*state, "S(1)", 9, 2, 0, "0:5");
    expect_rows(*state, "S(1)", 9, 2, 1, "5:9");
    expect_rows(*state, "S(0)", 50257, 4, 0, "0:12565");
    expect_rows(*state, "S(0)", 50257, 4, 3, "37695:50257");
}

static void trailing_chunks_may_be_empty(void **state)
{
    expect_rows(*state, "S(0)", 5, 4, 2, "4:5");
    expect_rows(*state, "S(0)", 5, 4, 3, "");
    expect_rows(*state, "S(0)", 0, 4, 0, "");
    expect_rows(*state, "S(0)", 1, 4, 1, "");
}

static void replicate_and_partial_hold_the_whole(void **state)
{
    expect_rows(*state, "R", 13, 4, 3, "0:13");
    expect_rows(*state, "P", 13, 4, 3, "0:13");
}

static void a_concatenated_qkv_is_cut_part_by_part(void **state)
{
    /* 8 query heads and 2 key/value heads of 4 rows */
    expect_rows(*state, "S(0;seg=32+8+8)", 48, 2, 0, "0:16 32:36 40:44");
    expect_rows(*state, "S(0;seg=32+8+8)", 48, 2, 1, "16:32 36:40 44:48");
    expect_rows(*state, "S(0;seg=16+16)", 32, 2, 0, "0:8 16:24"); /* gate and up */
    expect_rows(*state, "S(0;seg=16+16+16)", 48, 2, 0, "0:8 16:24 32:40");
    expect_rows(*state, "S(0;seg=8+8)", 16, 2, 0, "0:4 8:12"); /* a fused key and value */
    expect_rows(*state, "S(0;seg=8+8)", 16, 2, 1, "4:8 12:16");
}

static void a_head_by_head_layout_is_one_contiguous_piece(void **state)
{
    expect_rows(*state, "S(0;unit=12)", 48, 2, 0, "0:24");
    expect_rows(*state, "S(0;unit=12)", 48, 2, 1, "24:48");
}

static void key_value_heads_are_replicated_when_tp_is_larger(void **state)
{
    /* 2 heads of 4 rows over 4 ranks: rank r has rows 4 * (r / 2) */
    expect_rows(*state, "S(0;rep=2)", 8, 4, 0, "0:4");
    expect_rows(*state, "S(0;rep=2)", 8, 4, 1, "0:4");
    expect_rows(*state, "S(0;rep=2)", 8, 4, 2, "4:8");
    expect_rows(*state, "S(0;rep=2)", 8, 4, 3, "4:8");
}

static void a_multi_query_layout_repeats_its_one_key_and_value(void **state)
{
    /* 4 query heads, one key and one value head of 4 rows */
    expect_rows(*state, "S(0;seg=16+4r2+4r2)", 24, 2, 0, "0:8 16:24");
    expect_rows(*state, "S(0;seg=16+4r2+4r2)", 24, 2, 1, "8:24");
}

static void a_layout_by_groups_is_cut_inside_each_group(void **state)
{
    /* 2 groups of 4 query heads, one key and one value head of 4 rows, over 4 ranks */
    expect_rows(*state, "S(0;g2=16+4r2+4r2)", 48, 4, 0, "0:8 16:24");
    expect_rows(*state, "S(0;g2=16+4r2+4r2)", 48, 4, 1, "8:24");
    expect_rows(*state, "S(0;g2=16+4r2+4r2)", 48, 4, 2, "24:32 40:48");
    expect_rows(*state, "S(0;g2=16+4r2+4r2)", 48, 4, 3, "32:48");
    expect_rows(*state, "S(0;g2=16+4+4)", 48, 2, 1, "24:48"); /* a rank a group */
}

static void latent_projections_are_cut_by_whole_heads(void **state)
{
    expect_rows(*state, "S(0;unit=6)", 48, 4, 1, "12:24"); /* q_b: 8 heads of 4 + 2 */
    expect_rows(*state, "S(0;unit=8)", 64, 4, 3, "48:64"); /* kv_b: 8 heads of 4 + 4 */
}

static void pieces_are_whole_units(void **state)
{
    /* 90 units of 64 rows over 4 ranks: 23, 23, 23, 21 */
    expect_rows(*state, "S(0;seg=5760u64)", 5760, 4, 0, "0:1472");
    expect_rows(*state, "S(0;seg=5760u64)", 5760, 4, 3, "4416:5760");
    expect_rows(*state, "S(0;seg=8r2u4)", 8, 4, 2, "4:8");
}

static void the_largest_extents_do_not_overflow(void **state)
{
    sw_range last = sw_shard_range(UINT64_MAX, UINT32_MAX, UINT32_MAX - 1);
    assert_int_equal(last.end, UINT64_MAX);
    assert_int_equal(last.end - last.begin, UINT64_MAX / UINT32_MAX);
    last = sw_shard_range(UINT64_MAX - 1, 4000000000U, 3999999999U);
    assert_true(last.begin <= last.end);
    assert_int_equal(last.end, UINT64_MAX - 1);
    expect_rows(*state, "S(0;unit=18446744073709551615)", UINT64_MAX, 2, 0, "0:18446744073709551615");
    expect_rows(*state, "S(0;unit=18446744073709551615)", UINT64_MAX, 2, 1, "");
}

static void an_index_past_the_last_part_is_empty(void **state)
{
    (void)state;
    sw_range range = sw_shard_range(13, 4, 4);
    assert_int_equal(range.begin, range.end);
    range = sw_shard_range(13, 0, 0);
    assert_int_equal(range.begin, range.end);
}

static void a_cut_that_does_not_fit_says_the_numbers(void **state)
{
    static const struct {
        const char *text;
        uint64_t extent;
        uint32_t parts;
        const char *what;
        const char *help;
    } cases[] = {
        {"S(0;seg=32+8)",                   48, 2, "the segments of the cut sum to 40 rows of 48",
         "the segments must sum to the rows of the dim, or of a group"  },
        {"S(0;g2=16+4+4)",                  24, 2, "the segments of the cut sum to 24 rows of 12",
         "the segments must sum to the rows of the dim, or of a group"  },
        {"S(0;g3=4)",                       12, 4, "the cut has 3 groups for 4 ranks",
         "the groups of a cut must divide the size of the axis"         },
        {"S(0;g8=4)",                       32, 4, "the cut has 8 groups for 4 ranks",
         "the groups of a cut must divide the size of the axis"         },
        {"S(0;g4=4)",                       18, 4, "the cut has 4 groups for 18 rows",
         "the groups of a cut must divide the rows of the dim"          },
        {"S(0;seg=8+4r3)",                  12, 4, "segment 1 of the cut: 3 replicas do not divide 4 ranks",
         "replicas must divide the ranks among which the segment is cut"},
        {"S(0;rep=8)",                      12, 4, "segment 0 of the cut: 8 replicas do not divide 4 ranks",
         "replicas must divide the ranks among which the segment is cut"},
        {"S(0;g2=4r4)",                     8,  4, "segment 0 of the cut: 4 replicas do not divide 2 ranks",
         "replicas must divide the ranks among which the segment is cut"},
        {"S(0;seg=10u4)",                   10, 2, "segment 0 of the cut: 10 rows are not whole units of 4",
         "the unit must divide the rows of its segment"                 },
        {"S(0;unit=5)",                     12, 2, "segment 0 of the cut: 12 rows are not whole units of 5",
         "the unit must divide the rows of its segment"                 },
        {"S(0;seg=18446744073709551615+2)", 1,  2, "the segments of the cut do not fit 64 bits together",
         "write the extents of the tensor"                              },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_error err = {0};
        sw_placement placement = parsed(*state, cases[i].text);
        sw_range pieces[4];
        uint32_t n_pieces = 99;
        assert_int_equal(sw_cut_check(placement.cut, cases[i].extent, cases[i].parts, &err), SW_E_PLAN);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.help, cases[i].help);
        assert_int_equal(
            sw_shard_pieces(&placement, cases[i].extent, cases[i].parts, 0, pieces, 4, &n_pieces, NULL),
            SW_E_PLAN);
        assert_int_equal(n_pieces, 99);
        assert_int_equal(sw_shard_local_extent(&placement, cases[i].extent, cases[i].parts, 0), 0);
    }
}

static void an_empty_segment_is_refused_unless_it_is_the_whole_dim(void **state)
{
    (void)state;
    sw_error err = {0};
    const sw_segment segments[] = {
        {8, 0, 0},
        {0, 0, 0}
    };
    const sw_segment whole = {0, 0, 0};
    assert_int_equal(sw_cut_check(&(sw_cut){1, 2, segments}, 8, 2, &err), SW_E_PLAN);
    assert_string_equal(err.what, "segment 1 of the cut is empty");
    assert_string_equal(err.help, "leave it out");
    assert_int_equal(sw_cut_check(&(sw_cut){2, 1, &whole}, 8, 2, &err), SW_E_PLAN);
    assert_int_equal(sw_cut_check(&(sw_cut){1, 1, &whole}, 8, 2, &err), SW_OK);
    assert_int_equal(sw_cut_check(&(sw_cut){1, 1, &whole}, 0, 2, &err), SW_OK);
}

static void a_wrong_call_is_an_argument_error(void **state)
{
    sw_error err = {0};
    sw_range piece;
    uint32_t n_pieces = 0;
    sw_placement fused = parsed(*state, "S(0;seg=8+8)");
    assert_int_equal(sw_shard_pieces(&fused, 16, 2, 2, &piece, 1, &n_pieces, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "index 2 of an axis of 2 ranks");
    assert_int_equal(sw_shard_pieces(&fused, 16, 2, 0, &piece, 1, &n_pieces, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "room for 1 row ranges, the rank holds more");
    assert_int_equal(sw_cut_check(fused.cut, 16, 0, &err), SW_E_ARGUMENT);
    sw_cut empty = {1, 0, NULL};
    assert_int_equal(sw_cut_check(&empty, 16, 2, &err), SW_E_PLAN);
    assert_string_equal(err.what, "the cut has no segments");
    assert_int_equal(sw_cut_check(NULL, 16, 2, &err), SW_OK);
}

static void replicas_are_counted_when_they_are_uniform(void **state)
{
    static const struct {
        const char *text;
        uint32_t replicas;
    } cases[] = {
        {"R",                8},
        {"P",                1},
        {"S(0)",             1},
        {"S(0;rep=4)",       4},
        {"S(0;unit=4)",      1},
        {"S(0;seg=8r2+8r2)", 2},
        {"S(0;seg=8+8r2)",   0},
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_placement placement = parsed(*state, cases[i].text);
        assert_int_equal(sw_shard_replicas(&placement, 8), cases[i].replicas);
    }
}

static void a_replica_group_is_of_neighbours(void **state)
{
    sw_placement fused = parsed(*state, "S(0;g2=16+4r2+4r2)");
    sw_rank_span span = sw_shard_replica_group(&fused, 8, 5, 0);
    assert_int_equal(span.first, 5);
    assert_int_equal(span.count, 1);
    span = sw_shard_replica_group(&fused, 8, 5, 1);
    assert_int_equal(span.first, 4);
    assert_int_equal(span.count, 2);
    span = sw_shard_replica_group(&fused, 8, 5, 3); /* no such segment */
    assert_int_equal(span.count, 1);

    sw_placement whole = parsed(*state, "R");
    span = sw_shard_replica_group(&whole, 8, 5, 0);
    assert_int_equal(span.first, 0);
    assert_int_equal(span.count, 8);
    sw_placement plain = parsed(*state, "S(0)");
    span = sw_shard_replica_group(&plain, 8, 5, 0);
    assert_int_equal(span.first, 5);
    assert_int_equal(span.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_shard_is_cut_in_chunks_rounded_up),
        cmocka_unit_test(trailing_chunks_may_be_empty),
        cmocka_unit_test(replicate_and_partial_hold_the_whole),
        cmocka_unit_test(a_concatenated_qkv_is_cut_part_by_part),
        cmocka_unit_test(a_head_by_head_layout_is_one_contiguous_piece),
        cmocka_unit_test(key_value_heads_are_replicated_when_tp_is_larger),
        cmocka_unit_test(a_multi_query_layout_repeats_its_one_key_and_value),
        cmocka_unit_test(a_layout_by_groups_is_cut_inside_each_group),
        cmocka_unit_test(latent_projections_are_cut_by_whole_heads),
        cmocka_unit_test(pieces_are_whole_units),
        cmocka_unit_test(the_largest_extents_do_not_overflow),
        cmocka_unit_test(an_index_past_the_last_part_is_empty),
        cmocka_unit_test(a_cut_that_does_not_fit_says_the_numbers),
        cmocka_unit_test(an_empty_segment_is_refused_unless_it_is_the_whole_dim),
        cmocka_unit_test(a_wrong_call_is_an_argument_error),
        cmocka_unit_test(replicas_are_counted_when_they_are_uniform),
        cmocka_unit_test(a_replica_group_is_of_neighbours),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
