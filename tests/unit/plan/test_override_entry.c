/* Merging of override entries that name the same match. */
#include "override_case.h"

static void entries_of_one_match_merge_field_by_field_at_the_first_place(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  in_src: {x: {tp: shard(1)}}\n  in_dst: {x: {tp: shard(1)}}\n"
                "  tp_divide_attrs: [h]\n  region_dispatch: true\n  inner_target: core\n"
                "- match: b\n"
                "- match: a\n  in_src: auto\n  in_dst: {y: {tp: replicate}}\n  tp_divide_attrs: []\n"
                "  out_dst: none\n");
    assert_int_equal(o->n_entries, 2);
    const sw_override_entry *e = &o->entries[0];
    assert_string_equal(e->match, "a");
    assert_string_equal(e->source, "o.yaml:1, o.yaml:8");
    assert_io(&e->in_src, 0, "x", "tp=S(1)");
    assert_int_equal(e->in_dst.n, 1);
    assert_io(&e->in_dst, 0, "y", "tp=R");
    assert_true(e->has_tp_divide);
    assert_int_equal(e->n_tp_divide, 0);
    assert_int_equal(e->region_dispatch, 1);
    assert_string_equal(e->inner_target, "core");
    assert_int_equal(e->out_dst.mode, SW_FIELD_NONE);
    assert_string_equal(o->entries[1].match, "b");
    sw_overrides_destroy(o);
}

static void entries_of_another_when_stay_apart(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n- {match: a, when: tp}\n- {match: a, when: cp}\n- {match: a, when: tp}\n");
    assert_int_equal(o->n_entries, 3);
    assert_int_equal(o->entries[1].when, SW_WHEN_TP);
    assert_int_equal(o->entries[2].when, SW_WHEN_CP);
    sw_overrides_destroy(o);
}

static void a_patch_adds_to_what_is_there(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- match: a\n  params: {+: {u: {tp: shard(0)}, v: {tp: shard(0)}}}\n"
                              "- match: a\n  params: {+: {v: {tp: shard(1)}, w: {tp: shard(0)}}}\n"
                              "- match: b\n  params: {u: {tp: shard(0)}}\n"
                              "- match: b\n  params: {+: {v: {tp: shard(1)}}}\n"
                              "- match: c\n  params: none\n"
                              "- match: c\n  params: {+: {v: {tp: shard(1)}}}\n"
                              "- match: d\n  params: {+: {v: {tp: shard(1)}}}\n"
                              "- match: d\n  params: {u: {tp: shard(0)}}\n");
    const sw_override_entry *e = o->entries;
    assert_int_equal(o->n_entries, 4);
    assert_int_equal(e[0].params.mode, SW_FIELD_PATCH);
    assert_int_equal(e[0].params.n, 3);
    assert_io(&e[0].params, 0, "u", "tp=S(0)");
    assert_io(&e[0].params, 1, "v", "tp=S(1)");
    assert_io(&e[0].params, 2, "w", "tp=S(0)");
    assert_int_equal(e[1].params.mode, SW_FIELD_VALUE);
    assert_int_equal(e[1].params.n, 2);
    assert_int_equal(e[2].params.mode, SW_FIELD_VALUE);
    assert_int_equal(e[2].params.n, 1);
    assert_int_equal(e[3].params.mode, SW_FIELD_VALUE);
    assert_int_equal(e[3].params.n, 1);
    assert_io(&e[3].params, 0, "u", "tp=S(0)");
    sw_overrides_destroy(o);
}

static void layouts_of_one_match_pile_up(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  layout: {q: grouped, k: stacked}\n- match: a\n  layout: {q: per_head}\n");
    assert_int_equal(o->n_entries, 1);
    assert_int_equal(o->entries[0].n_layouts, 3);
    assert_int_equal(o->entries[0].layouts[0].layout, SW_LAYOUT_QKV_GROUPED);
    assert_string_equal(o->entries[0].layouts[2].path, "q");
    assert_int_equal(o->entries[0].layouts[2].layout, SW_LAYOUT_QKV_PER_HEAD);
    sw_overrides_destroy(o);
}

static void a_later_file_merges_into_an_earlier_one(void **state)
{
    (void)state;
    sw_overrides *o = list_of("- {match: a, region_dispatch: true, out_names: [x], inner_wrapper: cp_ring}");
    read_more(o,
              "\n- {match: a, region_dispatch: false, out_names: [y], inner_wrapper: cp_ulysses,\n"
              "   local_compute: ep_experts, inner_out_src: first_input}",
              "b.yaml");
    assert_int_equal(o->n_entries, 1);
    assert_int_equal(o->entries[0].region_dispatch, 0);
    assert_string_equal(o->entries[0].out_names[0], "y");
    assert_string_equal(o->entries[0].inner_wrapper, "cp_ulysses");
    assert_string_equal(o->entries[0].local_compute, "ep_experts");
    assert_true(o->entries[0].inner_first_input);
    assert_string_equal(o->entries[0].source, "o.yaml:1, b.yaml:2");
    sw_overrides_destroy(o);
}

static void sources_of_many_merged_entries_stay_short(void **state)
{
    (void)state;
    sw_overrides *o = list_of("[]");
    for (int i = 0; i < 100; i++)
        read_more(o, i % 2 == 0 ? "- {match: a}" : "\n- {match: a}", "a-file-of-some-length.yaml");
    assert_int_equal(o->n_entries, 1);
    assert_in_range(strlen(o->entries[0].source), 100, 300);
    sw_overrides_destroy(o);
}

static void very_many_patches_of_one_match_merge_at_once(void **state)
{
    (void)state;
    enum { N = 20000 };
    sw_buffer text = {0};
    for (int i = 0; i < N; i++)
        sw_buffer_printf(&text, "- {match: a, params: {+: {w%d: {tp: shard(0)}, w: {tp: shard(%d)}}}}\n", i,
                         i % 8);
    sw_overrides *o = list_of(sw_buffer_text(&text));
    assert_int_equal(o->n_entries, 1);
    assert_int_equal(o->entries[0].params.n, N + 1);
    assert_io(&o->entries[0].params, 0, "w0", "tp=S(0)");
    assert_io(&o->entries[0].params, 1, "w", "tp=S(7)");
    assert_io(&o->entries[0].params, N, "w19999", "tp=S(0)");
    sw_buffer_clear(&text);
    sw_overrides_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_one_match_merge_field_by_field_at_the_first_place),
        cmocka_unit_test(entries_of_another_when_stay_apart),
        cmocka_unit_test(a_patch_adds_to_what_is_there),
        cmocka_unit_test(layouts_of_one_match_pile_up),
        cmocka_unit_test(a_later_file_merges_into_an_earlier_one),
        cmocka_unit_test(sources_of_many_merged_entries_stay_short),
        cmocka_unit_test(very_many_patches_of_one_match_merge_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
