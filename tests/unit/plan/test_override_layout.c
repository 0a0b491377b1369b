/* `layout:` of an override entry: each word and form, and each refusal with its text. */
#include "override_case.h"

#include "plan/layout.h"

static void a_layout_is_a_word_or_a_mapping(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sw_override_layout layout;
    } forms[] = {
        {"plain",                              {.layout = SW_LAYOUT_PLAIN}                           },
        {"heads",                              {.layout = SW_LAYOUT_HEADS}                           },
        {"kv_heads",                           {.layout = SW_LAYOUT_KV_HEADS}                        },
        {"stacked",                            {.layout = SW_LAYOUT_QKV_STACKED}                     },
        {"per_head",                           {.layout = SW_LAYOUT_QKV_PER_HEAD}                    },
        {"grouped",                            {.layout = SW_LAYOUT_QKV_GROUPED}                     },
        {"kv_stacked",                         {.layout = SW_LAYOUT_KV_STACKED}                      },
        {"stacked_parts",                      {.layout = SW_LAYOUT_STACKED, .parts = 2}             },
        {"{kind: stacked_parts, parts: 3}",    {.layout = SW_LAYOUT_STACKED, .parts = 3}             },
        {"interleaved",                        {.layout = SW_LAYOUT_INTERLEAVED, .parts = 2}         },
        {"{kind: interleaved, parts: 3}",      {.layout = SW_LAYOUT_INTERLEAVED, .parts = 3}         },
        {"{kind: blocks, parts: 4}",           {.layout = SW_LAYOUT_QKV_BLOCKS, .parts = 4}          },
        {"{kind: stacked, parts: 3, dim: -1}",
         {.layout = SW_LAYOUT_QKV_STACKED, .parts = 3, .has_dim = true, .dim = -1}                   },
        {"{kind: plain, dim: 1}",              {.layout = SW_LAYOUT_PLAIN, .has_dim = true, .dim = 1}},
    };
    for (size_t i = 0; i < SW_COUNT(forms); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "- match: a.weight\n  layout: %s\n", forms[i].text);
        sw_overrides *o = list_of(text);
        assert_int_equal(o->entries[0].n_layouts, 1);
        const sw_override_layout *layout = &o->entries[0].layouts[0];
        assert_null(layout->path);
        assert_int_equal(layout->layout, forms[i].layout.layout);
        assert_int_equal(layout->parts, forms[i].layout.parts);
        assert_int_equal(layout->has_dim, forms[i].layout.has_dim);
        assert_int_equal(layout->dim, forms[i].layout.dim);
        assert_int_equal(layout->n_segments, 0);
        sw_overrides_destroy(o);
    }
}

static void segments_say_rows_replicas_and_units(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  layout: {segments: [4096, 1024r2, \"2048u64\", 8r2u4], dim: 0}\n");
    const sw_override_layout *layout = &o->entries[0].layouts[0];
    assert_int_equal(layout->layout, SW_LAYOUT_EXPLICIT);
    assert_true(layout->has_dim);
    assert_int_equal(layout->n_segments, 4);
    assert_int_equal(layout->segments[0].extent, 4096);
    assert_int_equal(layout->segments[0].replicas, 1);
    assert_int_equal(layout->segments[0].unit, 1);
    assert_int_equal(layout->segments[1].extent, 1024);
    assert_int_equal(layout->segments[1].replicas, 2);
    assert_int_equal(layout->segments[2].extent, 2048);
    assert_int_equal(layout->segments[2].unit, 64);
    assert_int_equal(layout->segments[3].replicas, 2);
    assert_int_equal(layout->segments[3].unit, 4);
    sw_overrides_destroy(o);
}

/* `layout` of a plan file may be copied into an override. */
static void every_kind_that_a_plan_file_has_is_a_word_here(void **state)
{
    (void)state;
    for (int i = 0; i < SW_LAYOUT_COUNT_; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "- match: a\n  layout: {kind: %s%s}\n",
                       sw_layout_name((sw_layout)i),
                       i == SW_LAYOUT_QKV_BLOCKS ? ", parts: 4"
                       : i == SW_LAYOUT_EXPLICIT ? ", segments: [4]"
                                                 : "");
        sw_overrides *o = list_of(text);
        assert_int_equal(o->entries[0].layouts[0].layout, i);
        sw_overrides_destroy(o);
    }
}

static void layouts_by_path_each_have_their_form(void **state)
{
    (void)state;
    sw_overrides *o =
        list_of("- match: a\n  layout:\n    qkv: grouped\n    kv.weight: {kind: kv_stacked, dim: 1}\n"
                "    w: {segments: [4, 4]}\n");
    const sw_override_entry *e = &o->entries[0];
    assert_int_equal(e->n_layouts, 3);
    assert_string_equal(e->layouts[0].path, "qkv");
    assert_int_equal(e->layouts[0].layout, SW_LAYOUT_QKV_GROUPED);
    assert_string_equal(e->layouts[1].path, "kv.weight");
    assert_int_equal(e->layouts[1].layout, SW_LAYOUT_KV_STACKED);
    assert_int_equal(e->layouts[1].dim, 1);
    assert_string_equal(e->layouts[2].path, "w");
    assert_int_equal(e->layouts[2].n_segments, 2);
    sw_overrides_destroy(o);
}

static void layouts_with_faults_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const refusal rows[] = {
        { "- match: a\n  layout: staked", "o.yaml:2: layout: unknown layout 'staked'", "did you mean 'stacked'?" },
        { "- match: a\n  layout: [stacked]", "o.yaml:2: layout: a list is not a layout", "write a word, or {segments: [...]}" },
        { "- match: a\n  layout: {}", "o.yaml:2: layout: neither kind nor segments is given",
          "write kind: stacked, or segments: [...]" },
        { "- match: a\n  layout: {dim: 1}", "o.yaml:2: layout: neither kind nor segments is given",
          "write kind: stacked, or segments: [...]" },
        { "- match: a\n  layout: {kind: [a]}", "o.yaml:2: layout: the kind of a layout is a word",
          "write one word, such as stacked" },
        { "- match: a\n  layout: {kind: stacked, prts: 2}", "o.yaml:2: layout: unknown key 'prts'", "did you mean 'parts'?" },
        { "- match: a\n  layout: {w: {kind: stacked, dim: 8}}",
          "o.yaml:2: layout: dim is '8', not a whole number from -8 to 7", "write a number of that range, without quotes or a point" },
        { "- match: a\n  layout: {kind: heads, parts: 2}", "o.yaml:2: layout: a heads layout has no parts", "leave parts out" },
        { "- match: a\n  layout: blocks", "o.yaml:2: layout: a blocks layout needs parts", "write {kind: blocks, parts: 4}" },
        { "- match: a\n  layout: {kind: blocks, parts: 1}",
          "o.yaml:2: layout: parts is '1', not a whole number from 2 to 65536", "write a number of that range, without quotes or a point" },
        { "- match: a\n  layout: {kind: stacked, parts: 99999999999999999999}",
          "o.yaml:2: layout: parts is '99999999999999999999', not a whole number from 2 to 65536", "write a number of that range, without quotes or a point" },
        { "- match: a\n  layout: {kind: stacked, parts: 17}", "o.yaml:2: layout: 17 stacked parts, at most 16 are supported",
          "check the number of parts" },
        { "- match: a\n  layout: {kind: stacked, segments: [4]}",
          "o.yaml:2: layout: segments already say how the rows are stored", "leave kind and parts out" },
        { "- match: a\n  layout: segments", "o.yaml:2: layout: the segments are not given",
          "write segments: [4096, 1024, 1024]" },
        { "- match: a\n  layout: {segments: []}", "o.yaml:2: layout: segments is a list of 1 to 16 stretches of rows",
          "write [4096, 1024, 1024]" },
        { "- match: a\n  layout: {segments: [4, 4x]}", "o.yaml:2: layout: '4x' is not a segment",
          "write its rows, then rN for replicas and uM for units: 4096, 1024r2, 2048u64" },
        { "- match: a\n  layout: {segments: [4+4]}", "o.yaml:2: layout: '4+4' is not a segment",
          "write its rows, then rN for replicas and uM for units: 4096, 1024r2, 2048u64" },
        { "- match: a\n  layout: {segments: [0]}", "o.yaml:2: layout: '0' is not a segment",
          "write its rows, then rN for replicas and uM for units: 4096, 1024r2, 2048u64" },
    };
    // clang-format on
    check_refusals(rows, SW_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_a_word_or_a_mapping),
        cmocka_unit_test(every_kind_that_a_plan_file_has_is_a_word_here),
        cmocka_unit_test(segments_say_rows_replicas_and_units),
        cmocka_unit_test(layouts_by_path_each_have_their_form),
        cmocka_unit_test(layouts_with_faults_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
