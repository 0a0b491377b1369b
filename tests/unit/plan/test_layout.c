/*
 * The arithmetic of cuts: each layout at few and many ranks, packed rows, explicit segments, and refusals
 * with the degrees that fit. What is checked are segments; the rows that a rank gets from them are the mesh's
 * tests.
 */
#include "plan/layout.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"

/* The cut as in a plan file, without its "S(0;" and ")": "plain", "seg=32+8+8", "g2=16+4r2+4r2"; or "!code".
 */
static void check(sw_cut_request q, const char *expected)
{
    sw_cut_result r;
    sw_buffer text = {0};

    sw_cut_solve(&q, &r);
    if (r.fault != NULL) {
        sw_buffer_printf(&text, "!%s", r.fault);
        assert_true(r.what[0] != '\0');
        assert_true(r.help[0] != '\0');
    } else if (r.n_segments == 0) {
        sw_buffer_puts(&text, "plain");
    } else {
        char one[256];
        const sw_cut cut = {r.n_groups, r.n_segments, r.segments};
        const sw_placement p = {SW_PLACE_SHARD, 0, &cut};
        (void)sw_placement_text(&p, one, sizeof one);
        sw_buffer_append(&text, one + 4, strlen(one) - 5); /* S(0; ... ) */
    }
    if (strcmp(sw_buffer_text(&text), expected) != 0)
        fail_msg("tp=%u: %s, expected %s (%s)", q.ranks, sw_buffer_text(&text), expected,
                 r.fault == NULL ? "" : r.what);
    sw_buffer_clear(&text);
}

static sw_cut_request plain(uint64_t extent, uint32_t ranks)
{
    return (sw_cut_request){.layout = SW_LAYOUT_PLAIN, .extent = extent, .unit = 1, .ranks = ranks};
}

static sw_cut_request heads(sw_layout layout, uint64_t extent, uint64_t n, uint64_t kv, uint32_t ranks)
{
    return (sw_cut_request){
        .layout = layout, .extent = extent, .unit = 1, .heads = n, .kv_heads = kv, .ranks = ranks};
}

static void plain_rows_divide_or_are_refused(void **state)
{
    (void)state;
    check(plain(16, 2), "plain");
    check(plain(16, 16), "plain");
    check(plain(16, 3), "!indivisible");
    check(plain(16, 32), "!indivisible");
    check(plain(0, 2), "plain");
}

static void vocabulary_rows_need_not_divide(void **state)
{
    sw_cut_request q = {
        .layout = SW_LAYOUT_VOCAB, .extent = 13, .unit = 1, .ranks = 4, .may_be_uneven = true};
    sw_cut_result r;
    (void)state;
    check(q, "plain");
    sw_cut_solve(&q, &r);
    assert_true(r.is_uneven);
    q.extent = 16;
    sw_cut_solve(&q, &r);
    assert_false(r.is_uneven);
}

static void query_heads_are_never_torn(void **state)
{
    (void)state;
    check(heads(SW_LAYOUT_HEADS, 32, 8, 2, 4), "plain");
    check(heads(SW_LAYOUT_HEADS, 32, 8, 2, 16), "!heads"); /* 32 rows divide, 8 heads do not */
    check(heads(SW_LAYOUT_HEADS, 14 * 64, 14, 2, 4), "!heads");
    check(heads(SW_LAYOUT_HEADS, 48, 8, 1, 4), "plain"); /* six rows a head: latent attention */
    check(heads(SW_LAYOUT_HEADS, 33, 8, 2, 4), "!layout_mismatch");
    check(heads(SW_LAYOUT_HEADS, 32, 0, 0, 4), "!heads_unknown");
}

static void key_value_heads_are_cut_or_shared(void **state)
{
    sw_cut_result r;
    sw_cut_request q = heads(SW_LAYOUT_KV_HEADS, 8, 8, 2, 4);
    (void)state;
    check(heads(SW_LAYOUT_KV_HEADS, 8, 8, 2, 2), "plain");
    check(q, "seg=8r2"); /* a plan writes it as rep=2 */
    check(heads(SW_LAYOUT_KV_HEADS, 8, 8, 1, 8), "seg=8r8");
    check(heads(SW_LAYOUT_KV_HEADS, 24, 12, 6, 4), "!heads");
    sw_cut_solve(&q, &r);
    assert_int_equal(r.replicas, 2);
}

static void stacked_query_key_value_is_three_segments(void **state)
{
    (void)state;
    check(heads(SW_LAYOUT_QKV_STACKED, 48, 8, 2, 2), "seg=32+8+8");
    check(heads(SW_LAYOUT_QKV_STACKED, 48, 8, 2, 4), "seg=32+8r2+8r2");
    check(heads(SW_LAYOUT_QKV_STACKED, 24, 4, 1, 2), "seg=16+4r2+4r2");
    check(heads(SW_LAYOUT_QKV_STACKED, 48, 8, 2, 16), "!heads");
    check(heads(SW_LAYOUT_QKV_STACKED, 50, 8, 2, 2), "!layout_mismatch");
    check(heads(SW_LAYOUT_KV_STACKED, 16, 4, 2, 2), "seg=8+8");
    check(heads(SW_LAYOUT_KV_STACKED, 16, 4, 2, 4), "seg=8r2+8r2");
}

static void head_by_head_is_contiguous(void **state)
{
    (void)state;
    check(heads(SW_LAYOUT_QKV_PER_HEAD, 48, 4, 4, 2), "plain");
    check(heads(SW_LAYOUT_QKV_PER_HEAD, 48, 4, 4, 3), "!heads");
}

static void groups_are_contiguous_until_there_are_more_ranks(void **state)
{
    (void)state;
    check(heads(SW_LAYOUT_QKV_GROUPED, 48, 8, 2, 2), "plain");
    check(heads(SW_LAYOUT_QKV_GROUPED, 48, 8, 2, 4), "g2=16+4r2+4r2");
    check(heads(SW_LAYOUT_QKV_GROUPED, 48, 8, 2, 8), "g2=16+4r4+4r4");
    check(heads(SW_LAYOUT_QKV_GROUPED, 24, 4, 1, 2), "seg=16+4r2+4r2"); /* one group is no group */
    check(heads(SW_LAYOUT_QKV_GROUPED, 48, 8, 2, 16), "!heads");
    check(heads(SW_LAYOUT_QKV_GROUPED, 80, 12, 4, 6), "!heads"); /* 4 groups over 6 ranks */
}

static void blocks_are_contiguous_until_there_are_more_ranks(void **state)
{
    sw_cut_request q = heads(SW_LAYOUT_QKV_BLOCKS, 96, 8, 8, 2);
    (void)state;
    q.parts = 4;
    check(q, "plain");
    q.ranks = 8;
    check(q, "g4=8+8+8");
    q.ranks = 16;
    check(q, "!heads");
    q.ranks = 2;
    q.parts = 3;
    check(q, "!heads"); /* 8 heads are not 3 equal blocks */
}

/* CodeGen's key heads in a block are as many as its query heads; a model with fewer has fewer a block. */
static void blocks_of_grouped_heads_hold_their_share_of_key_heads(void **state)
{
    sw_cut_request q = heads(SW_LAYOUT_QKV_BLOCKS, 48, 8, 2, 4);
    (void)state;
    q.parts = 2;
    check(q, "g2=16+4r2+4r2");
}

static void equal_parts_are_cut_one_by_one(void **state)
{
    sw_cut_request q = {.layout = SW_LAYOUT_STACKED, .parts = 2, .extent = 32, .unit = 1, .ranks = 2};
    (void)state;
    check(q, "seg=16+16");
    q.ranks = 3;
    check(q, "!indivisible");
    q.parts = 3;
    check(q, "!layout_mismatch");
    q.parts = 0;
    check(q, "!layout_mismatch");
    q.parts = SW_CUT_MAX_SEGMENTS + 1;
    check(q, "!layout_mismatch");
}

static void interleaved_rows_stay_in_pairs(void **state)
{
    sw_cut_request q = {.layout = SW_LAYOUT_INTERLEAVED, .parts = 2, .extent = 16, .unit = 1, .ranks = 4};
    (void)state;
    check(q, "plain");
    q.ranks = 16; /* one row a rank would part gate from up */
    check(q, "!indivisible");
}

static void groups_of_quantised_rows_may_be_uneven(void **state)
{
    sw_cut_request q = {
        .layout = SW_LAYOUT_PLAIN, .extent = 96, .unit = 32, .ranks = 2, .may_be_uneven = true};
    (void)state;
    check(q, "seg=96u32");
    q.ranks = 3;
    check(q, "plain");
    q.may_be_uneven = false;
    q.ranks = 2;
    check(q, "!indivisible");
}

static void an_unknown_layout_is_refused_with_what_to_write(void **state)
{
    sw_cut_request q = {
        .layout = SW_LAYOUT_UNKNOWN, .extent = 48, .unit = 1, .ranks = 2, .heads = 8, .kv_heads = 2};
    sw_cut_result r;
    (void)state;
    check(q, "!layout_unknown");
    q.role = SW_ROLE_FUSED_QKV;
    sw_cut_solve(&q, &r);
    assert_string_equal(r.help,
                        "state it in an override: `layout: stacked`, `per_head`, `grouped` or segments");
    q.role = SW_ROLE_FUSED_GATE_UP; /* gate and up have no heads */
    sw_cut_solve(&q, &r);
    assert_string_equal(r.help, "state it in an override: `layout: stacked`, `interleaved` or segments");
    q.role = SW_ROLE_COLWISE;
    sw_cut_solve(&q, &r);
    assert_string_equal(r.help, "state it in an override: `layout: kv_stacked`, `stacked` or segments");
}

static void explicit_segments_are_taken_when_they_fit(void **state)
{
    const sw_segment segments[] = {
        {32, 0, 0},
        {8,  0, 2},
        {8,  0, 2}
    };
    sw_cut_request q = {.layout = SW_LAYOUT_EXPLICIT, .extent = 48, .unit = 1, .ranks = 2};
    (void)state;
    q.n_explicit = 3;
    q.explicit_segments = segments;
    check(q, "seg=32+8r2+8r2");
    q.extent = 50;
    check(q, "!layout_mismatch");
    q.extent = 48;
    q.ranks = 3; /* replicas 2 of 3 ranks */
    check(q, "!indivisible");
    q.ranks = 64;
    check(q, "!indivisible");
}

static void hostile_extents_do_not_overflow(void **state)
{
    const sw_segment huge[] = {
        {UINT64_MAX, 0, 0},
        {2,          0, 0}
    };
    sw_cut_request q = {.layout = SW_LAYOUT_EXPLICIT, .extent = 1, .unit = 1, .ranks = 1};
    (void)state;
    q.n_explicit = 2;
    q.explicit_segments = huge;
    check(q, "!layout_mismatch");
    check(heads(SW_LAYOUT_QKV_STACKED, UINT64_MAX, UINT64_MAX, UINT64_MAX, 2), "!layout_mismatch");
    q = (sw_cut_request){
        .layout = SW_LAYOUT_PLAIN, .extent = UINT64_MAX, .unit = UINT64_MAX, .ranks = UINT32_MAX};
    check(q, "!indivisible");
}

static void too_many_explicit_segments_are_refused(void **state)
{
    sw_segment many[SW_CUT_MAX_SEGMENTS + 1];
    sw_cut_request q = {.layout = SW_LAYOUT_EXPLICIT, .unit = 1, .ranks = 1};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(many); i++)
        many[i] = (sw_segment){.extent = 2};
    q.explicit_segments = many;
    q.n_explicit = SW_COUNT(many);
    q.extent = 2 * SW_COUNT(many);
    check(q, "!layout_mismatch");
}

/* ---- degrees ---- */

static void check_degrees(sw_cut_request q, const char *expected)
{
    sw_sizes sizes = {0};
    sw_cut_legal_ranks(&q, &sizes);
    assert_string_equal(sw_sizes_text(&sizes), expected);
}

static void legal_degrees_are_listed_and_replicating_ones_marked(void **state)
{
    (void)state;
    check_degrees(plain(12, 5), "1, 2, 3, 4, 6, 12");
    check_degrees(heads(SW_LAYOUT_HEADS, 28, 28, 4, 8), "1, 2, 4, 7, 14, 28");
    check_degrees(heads(SW_LAYOUT_QKV_STACKED, 36, 28, 4, 8), "1, 2, 4, 28 (key/value heads replicated)");
    check_degrees(heads(SW_LAYOUT_UNKNOWN, 36, 28, 4, 8), "none");
}

static void a_list_of_degrees_ends_somewhere(void **state)
{
    sw_sizes sizes = {0};
    sw_cut_request q = plain(720720, 17);
    (void)state;
    sw_cut_legal_ranks(&q, &sizes);
    assert_int_equal(sizes.n, SW_SIZES_MOST);
    assert_memory_equal(sw_sizes_text(&sizes), "1, 2, 3", 7);
    assert_false(sw_sizes_add(&sizes, 1, ""));
}

static void a_list_of_sizes_keeps_whole_numbers_when_its_text_is_full(void **state)
{
    sw_sizes sizes = {0};
    char remark[120];
    (void)state;
    memset(remark, 'x', sizeof remark - 1);
    remark[sizeof remark - 1] = '\0';
    assert_true(sw_sizes_add(&sizes, 11, remark));
    assert_true(sw_sizes_add(&sizes, 22, remark));
    assert_false(sw_sizes_add(&sizes, 33, remark));
    assert_null(strstr(sw_sizes_text(&sizes), "33"));
    assert_false(sw_sizes_add(&sizes, 4, ""));
}

/* ---- stored rows ---- */

static void check_scaled(sw_cut_request q, uint64_t factor, const char *expected)
{
    sw_cut_result logical;
    sw_cut_result stored;
    char text[256] = "plain";

    sw_cut_solve(&q, &logical);
    assert_null(logical.fault);
    if (!sw_cut_scale(&logical, q.extent, q.ranks, factor, &stored)) {
        assert_string_equal("no", expected);
        return;
    }
    if (stored.n_segments > 0) {
        const sw_cut cut = {stored.n_groups, stored.n_segments, stored.segments};
        const sw_placement p = {SW_PLACE_SHARD, 0, &cut};
        (void)sw_placement_text(&p, text, sizeof text);
    }
    assert_string_equal(text, expected);
}

static void stored_rows_of_several_logical_ones_follow_when_pieces_end_on_them(void **state)
{
    (void)state;
    check_scaled(plain(48, 2), 1, "plain");
    check_scaled(plain(48, 2), 8, "plain");
    check_scaled(plain(24, 2), 8, "no"); /* 12 rows a rank are 1.5 words */
    check_scaled(heads(SW_LAYOUT_QKV_STACKED, 96, 8, 2, 2), 8, "S(0;seg=8+2+2)");
    check_scaled(heads(SW_LAYOUT_QKV_STACKED, 48, 8, 2, 2), 8, "no");
    check_scaled(heads(SW_LAYOUT_QKV_STACKED, 96, 8, 2, 4), 8, "S(0;seg=8+2r2+2r2)");
    check_scaled(heads(SW_LAYOUT_QKV_GROUPED, 96, 8, 2, 4), 8, "S(0;g2=4+1r2+1r2)");
    check_scaled(heads(SW_LAYOUT_KV_HEADS, 16, 8, 2, 4), 8, "S(0;seg=2r2)");
    check_scaled(heads(SW_LAYOUT_KV_HEADS, 16, 8, 2, 4), 16, "no");
}

/* ---- forms ---- */

static void check_axes(sw_form form, uint32_t n_dims, int expert, int out, int in, bool is_view)
{
    sw_axes_of axes = sw_form_axes(form, n_dims);
    assert_int_equal(axes.expert_dim, expert);
    assert_int_equal(axes.out_dim, out);
    assert_int_equal(axes.in_dim, in);
    assert_int_equal(axes.is_view, is_view);
    assert_int_equal(axes.out_factor, 1);
    assert_int_equal(axes.in_factor, 1);
}

static void forms_say_which_stored_dim_is_which(void **state)
{
    (void)state;
    check_axes(SW_FORM_LINEAR, 2, -1, 0, 1, false);
    check_axes(SW_FORM_LINEAR, 1, -1, 0, -1, false);
    check_axes(SW_FORM_CONV1D, 2, -1, 1, 0, false);
    check_axes(SW_FORM_CONV1D, 1, -1, 0, -1, false);
    check_axes(SW_FORM_EXPERTS, 3, 0, 1, 2, false);
    check_axes(SW_FORM_EXPERTS, 2, 0, 1, -1, false);
    check_axes(SW_FORM_EXPERTS_T, 3, 0, 2, 1, false);
    check_axes(SW_FORM_EXPERTS_T, 2, 0, 1, -1, false);
    check_axes(SW_FORM_EXPERT_ROWS, 2, 0, 1, 2, true);
    check_axes(SW_FORM_EXPERT_ROWS_T, 2, 0, 2, 1, true);
}

static void layouts_have_words(void **state)
{
    (void)state;
    for (int i = 0; i < SW_LAYOUT_COUNT_; i++)
        assert_non_null(sw_layout_name((sw_layout)i));
    assert_string_equal(sw_layout_name(SW_LAYOUT_QKV_PER_HEAD), "per_head");
    assert_null(sw_layout_name(SW_LAYOUT_COUNT_));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_rows_divide_or_are_refused),
        cmocka_unit_test(vocabulary_rows_need_not_divide),
        cmocka_unit_test(query_heads_are_never_torn),
        cmocka_unit_test(key_value_heads_are_cut_or_shared),
        cmocka_unit_test(stacked_query_key_value_is_three_segments),
        cmocka_unit_test(head_by_head_is_contiguous),
        cmocka_unit_test(groups_are_contiguous_until_there_are_more_ranks),
        cmocka_unit_test(blocks_are_contiguous_until_there_are_more_ranks),
        cmocka_unit_test(blocks_of_grouped_heads_hold_their_share_of_key_heads),
        cmocka_unit_test(equal_parts_are_cut_one_by_one),
        cmocka_unit_test(interleaved_rows_stay_in_pairs),
        cmocka_unit_test(groups_of_quantised_rows_may_be_uneven),
        cmocka_unit_test(an_unknown_layout_is_refused_with_what_to_write),
        cmocka_unit_test(explicit_segments_are_taken_when_they_fit),
        cmocka_unit_test(hostile_extents_do_not_overflow),
        cmocka_unit_test(too_many_explicit_segments_are_refused),
        cmocka_unit_test(legal_degrees_are_listed_and_replicating_ones_marked),
        cmocka_unit_test(a_list_of_degrees_ends_somewhere),
        cmocka_unit_test(a_list_of_sizes_keeps_whole_numbers_when_its_text_is_full),
        cmocka_unit_test(stored_rows_of_several_logical_ones_follow_when_pieces_end_on_them),
        cmocka_unit_test(forms_say_which_stored_dim_is_which),
        cmocka_unit_test(layouts_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
