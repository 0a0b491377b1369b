/* Overrides from C: what is given is checked and copied, a refused call changes nothing, files and texts go
 * in too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/override_entry.h"

/* The shortest right ways to write the structs. */
#define PLACES(...)                                                                                          \
    {                                                                                                        \
        SW_FIELD_VALUE, SW_COUNT(((const sw_named_place[]){__VA_ARGS__})), (const sw_named_place[])          \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define ON(name_, axis_, kind_, dim_)                                                                        \
    {                                                                                                        \
        name_, SW_AXIS_##axis_,                                                                              \
        {                                                                                                    \
            SW_PLACE_##kind_, dim_, NULL                                                                     \
        }                                                                                                    \
    }

static sw_overrides *empty_list(void)
{
    sw_overrides *o = NULL;
    assert_int_equal(sw_overrides_create(&o, NULL), SW_OK);
    return o;
}

static void a_new_list_is_empty_and_derives(void **state)
{
    (void)state;
    sw_overrides *o = empty_list();
    assert_int_equal(o->n_entries, 0);
    assert_true(o->derive);
    sw_overrides_set_derive(o, false);
    assert_false(o->derive);
    sw_overrides_set_derive(NULL, true);
    sw_overrides_destroy(o);
    sw_overrides_destroy(NULL);
}

static void places_of_one_name_are_one_placement_in_order(void **state)
{
    (void)state;
    sw_overrides *o = empty_list();
    sw_override entry = {
        .struct_size = sizeof entry,
        .match = "*.mlp",
        .when = "tp",
        .params = PLACES(ON("z", TP, SHARD, 1), ON("a", TP, REPLICATE, 0), ON("z", EP, SHARD, -1)),
        .in_src = PLACES(ON("x", CP, SHARD, 1)),
        .out_src = PLACES(ON(NULL, TP, PARTIAL, 7), ON(NULL, CP, SHARD, 1)),
        .in_dst = {.mode = SW_FIELD_NONE},
    };
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_OK);
    assert_int_equal(o->n_entries, 1);
    const sw_override_entry *e = &o->entries[0];
    assert_string_equal(e->match, "*.mlp");
    assert_true(e->is_glob);
    assert_int_equal(e->when, SW_WHEN_TP);
    assert_int_equal(e->params.mode, SW_FIELD_VALUE);
    assert_int_equal(e->params.n, 2);
    assert_string_equal(e->params.entries[0].name, "z");
    assert_int_equal(e->params.entries[0].places.present, 1U << SW_ON_TP | 1U << SW_ON_EP);
    assert_int_equal(e->params.entries[0].places.on[SW_ON_TP].dim, 1);
    assert_int_equal(e->params.entries[0].places.on[SW_ON_EP].dim, -1);
    assert_string_equal(e->params.entries[1].name, "a");
    assert_int_equal(e->params.entries[1].places.on[SW_ON_TP].kind, SW_PLACE_REPLICATE);
    assert_int_equal(e->in_src.n, 1);
    assert_int_equal(e->in_dst.mode, SW_FIELD_NONE);
    assert_int_equal(e->out_dst.mode, SW_FIELD_UNSET);
    assert_true(e->out_src.is_bare);
    assert_int_equal(e->out_src.n, 1);
    assert_string_equal(e->out_src.entries[0].name, "output");
    assert_int_equal(e->out_src.entries[0].places.on[SW_ON_TP].kind, SW_PLACE_PARTIAL);
    assert_int_equal(e->out_src.entries[0].places.on[SW_ON_TP].dim, 0);
    assert_int_equal(e->region_dispatch, -1);
    assert_false(e->has_tp_divide);
    assert_non_null(e->source);
    sw_overrides_destroy(o);
}

static void everything_given_is_copied(void **state)
{
    (void)state;
    char match[] = "model.norm";
    char path[] = "w";
    char attribute[] = "num_heads";
    char target[] = "core";
    sw_segment segments[2] = {
        {8, 1, 1},
        {4, 1, 2}
    };
    sw_cut cut = {1, 2, segments};
    sw_named_place place = {
        path, SW_AXIS_TP, {SW_PLACE_SHARD, 0, &cut}
    };
    const char *attributes[] = {attribute, NULL};
    sw_override entry = {
        .struct_size = sizeof entry,
        .match = match,
        .params = {SW_FIELD_PATCH, 1, &place},
        .tp_divide_attrs = attributes,
        .has_region_dispatch = true,
        .region_dispatch = true,
        .inner_target = target,
        .inner_wrapper = "cp_ring",
        .local_compute = "ep_experts"
    };
    sw_overrides *o = empty_list();
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_OK);
    match[0] = path[0] = attribute[0] = target[0] = '!';
    segments[0].extent = 0;
    cut.n_segments = 0;
    place.axis = SW_AXIS_DP;

    const sw_override_entry *e = &o->entries[0];
    assert_string_equal(e->match, "model.norm");
    assert_int_equal(e->params.mode, SW_FIELD_PATCH);
    assert_string_equal(e->params.entries[0].name, "w");
    const sw_placement *p = &e->params.entries[0].places.on[SW_ON_TP];
    assert_int_equal(p->cut->n_segments, 2);
    assert_int_equal(p->cut->segments[0].extent, 8);
    assert_int_equal(p->cut->segments[1].replicas, 2);
    assert_int_equal(e->n_tp_divide, 1);
    assert_string_equal(e->tp_divide[0], "num_heads");
    assert_int_equal(e->region_dispatch, 1);
    assert_string_equal(e->inner_target, "core");
    assert_string_equal(e->inner_wrapper, "cp_ring");
    assert_string_equal(e->local_compute, "ep_experts");
    sw_overrides_destroy(o);
}

static void an_explicit_empty_value_and_an_empty_list_count(void **state)
{
    (void)state;
    const char *none[] = {NULL};
    sw_override entry = {.struct_size = sizeof entry,
                         .match = "",
                         .params = {.mode = SW_FIELD_VALUE},
                         .tp_divide_attrs = none};
    sw_overrides *o = empty_list();
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_OK);
    assert_int_equal(o->entries[0].params.mode, SW_FIELD_VALUE);
    assert_int_equal(o->entries[0].params.n, 0);
    assert_true(o->entries[0].has_tp_divide);
    assert_int_equal(o->entries[0].n_tp_divide, 0);
    assert_int_equal(o->entries[0].region_dispatch, -1);
    sw_overrides_destroy(o);
}

static void an_entry_from_c_merges_into_one_from_a_file(void **state)
{
    (void)state;
    const char *text = "- match: a\n  params: {+: {u: {tp: shard(0)}}}\n  region_dispatch: true\n";
    sw_overrides *o = empty_list();
    sw_override entry = {.struct_size = sizeof entry,
                         .match = "a",
                         .params = PLACES(ON("v", TP, SHARD, 1)),
                         .has_region_dispatch = true};
    entry.params.mode = SW_FIELD_PATCH;
    assert_int_equal(sw_overrides_add_text(o, text, strlen(text), "x.yaml", NULL), SW_OK);
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_OK);
    assert_int_equal(o->n_entries, 1);
    assert_int_equal(o->entries[0].params.n, 2);
    assert_int_equal(o->entries[0].region_dispatch, 0);
    assert_string_equal(o->entries[0].source, "x.yaml:1, sw_overrides_add()");
    sw_overrides_destroy(o);
}

static void entries_of_one_match_and_when_are_one(void **state)
{
    (void)state;
    static const char *const whens[] = {NULL, NULL, "cp", NULL, "cp"};
    sw_overrides *o = empty_list();
    for (size_t i = 0; i < SW_COUNT(whens); i++) {
        sw_override e = {.struct_size = sizeof e, .match = "a", .when = whens[i]};
        assert_int_equal(sw_overrides_add(o, &e, NULL), SW_OK);
    }
    sw_override glob = {.struct_size = sizeof glob, .match = "b.*"};
    assert_int_equal(sw_overrides_add(o, &glob, NULL), SW_OK);
    assert_int_equal(o->n_entries, 3);
    assert_string_equal(o->entries[0].match, "a");
    assert_int_equal(o->entries[0].region_dispatch, -1);
    assert_int_equal(o->entries[1].when, SW_WHEN_CP);
    assert_true(o->entries[2].is_glob);
    sw_overrides_destroy(o);
}

/* ---- refusals ---- */

#define LOOK "shardwright/plan.h says what each field of sw_override takes"

static void assert_refused(const sw_override *entry, const char *what, const char *help)
{
    sw_overrides *o = empty_list();
    sw_error err = {0};
    assert_int_equal(sw_overrides_add(o, entry, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, what);
    assert_string_equal(err.help, help);
    assert_int_equal(o->n_entries, 0);
    assert_int_equal(sw_overrides_add(o, entry, NULL), SW_E_ARGUMENT);
    sw_overrides_destroy(o);
}

static void structs_that_are_not_filled_in_are_refused(void **state)
{
    (void)state;
    sw_override zero = {0};
    assert_refused(&zero, "sw_override: struct_size is 0", "set struct_size = sizeof(sw_override)");
    sw_override no_match = {.struct_size = sizeof no_match};
    assert_refused(&no_match, "override of '': match: is not given", LOOK);
}

static void no_text_of_no_bytes_is_an_empty_list(void **state)
{
    (void)state;
    sw_overrides *o = empty_list();
    assert_int_equal(sw_overrides_add_text(o, NULL, 0, NULL, NULL), SW_OK);
    assert_int_equal(o->n_entries, 0);
    sw_overrides_destroy(o);
}

static void a_longer_struct_of_a_later_version_is_taken(void **state)
{
    (void)state;
    struct later {
        sw_override entry;
        const char *new_field;
    } later = {
        .entry = {.struct_size = sizeof later, .match = "a"},
          .new_field = "x"
    };
    sw_overrides *o = empty_list();
    assert_int_equal(sw_overrides_add(o, &later.entry, NULL), SW_OK);
    sw_overrides_destroy(o);
}

static void names_and_words_with_faults_are_refused(void **state)
{
    (void)state;
    sw_override e = {.struct_size = sizeof e, .match = "a", .when = "low_precision"};
    assert_refused(&e, "override of 'a': when: 'low_precision': is not tp, cp or ep", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a\nb"};
    assert_refused(&e, "override of 'a?b': match: has control characters", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .inner_target = ""};
    assert_refused(&e, "override of 'a': inner_target: '': is empty", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .inner_target = "\xff"};
    assert_refused(&e, "override of 'a': inner_target: '?': is not UTF-8", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .inner_wrapper = "cp_rong"};
    assert_refused(&e, "override of 'a': inner_wrapper: unknown function 'cp_rong'",
                   "did you mean 'cp_ring'?");
    e = (sw_override){.struct_size = sizeof e, .match = "a", .local_compute = "mine"};
    assert_refused(&e, "override of 'a': local_compute: unknown function 'mine'",
                   "see docs/formats/overrides.md for the names");
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .tp_divide_attrs = (const char *[]){"x", "y", "x", NULL}
    };
    assert_refused(&e, "override of 'a': tp_divide_attrs: 'x': stands twice", LOOK);
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .tp_divide_attrs = (const char *[]){"a-b", NULL}
    };
    assert_refused(&e, "override of 'a': tp_divide_attrs: 'a-b': is not the name of an attribute", LOOK);
}

static void an_endless_list_of_attributes_is_refused(void **state)
{
    (void)state;
    const char *attributes[SW_OVERRIDE_MAX_LIST + 1];
    for (size_t i = 0; i < SW_COUNT(attributes); i++)
        attributes[i] = "x";
    sw_override e = {.struct_size = sizeof e, .match = "a", .tp_divide_attrs = attributes};
    assert_refused(
        &e, "override of 'a': tp_divide_attrs: more names than an override may list, or no NULL at the end",
        LOOK);
}

static void placements_with_faults_are_refused(void **state)
{
    (void)state;
    sw_override e = {.struct_size = sizeof e, .match = "a", .params = PLACES(ON("w", DP, SHARD, 0))};
    assert_refused(&e, "override of 'a': params: 'w': a data-parallel placement does not belong in a plan",
                   LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .out_dst = PLACES(ON("w", EDP, SHARD, 0))};
    assert_refused(&e, "override of 'a': out_dst: 'w': a data-parallel placement does not belong in a plan",
                   LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .in_src = PLACES(ON("w", PP, SHARD, 0))};
    assert_refused(&e, "override of 'a': in_src: 'w': a pipeline placement does not belong in a plan", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .in_src = PLACES(ON("w", COUNT_, SHARD, 0))};
    assert_refused(&e, "override of 'a': in_src: 'w': no such axis", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .params = PLACES(ON("w", TP, PARTIAL, 0))};
    assert_refused(&e, "override of 'a': params: 'w': a stored parameter cannot be partial", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .params = PLACES(ON("w", TP, KIND_COUNT_, 0))};
    assert_refused(&e, "override of 'a': params: 'w': no such kind of placement", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .params = PLACES(ON(NULL, TP, SHARD, 0))};
    assert_refused(&e, "override of 'a': params: a place without a name", LOOK);
    e = (sw_override){.struct_size = sizeof e, .match = "a", .in_dst = PLACES(ON("", TP, SHARD, 0))};
    assert_refused(&e, "override of 'a': in_dst: '': is empty", LOOK);
    e = (sw_override){.struct_size = sizeof e,
                      .match = "a",
                      .in_dst = PLACES(ON("x", TP, SHARD, 0), ON("y", TP, SHARD, 0), ON("x", TP, SHARD, 1))};
    assert_refused(&e, "override of 'a': in_dst: 'x': an axis is placed twice", LOOK);
}

static void fields_with_faults_are_refused(void **state)
{
    (void)state;
    static const char counted[] = "places are counted, but the mode takes none or the pointer is NULL";
    char what[256];
    sw_named_place place = ON("x", TP, SHARD, 0);
    sw_override e = {
        .struct_size = sizeof e, .match = "a", .in_src = {SW_FIELD_PATCH, 1, &place}
    };
    assert_refused(&e, "override of 'a': in_src: no such mode for this field", LOOK);
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .params = {(sw_field_mode)9, 0, NULL}
    };
    assert_refused(&e, "override of 'a': params: no such mode for this field", LOOK);
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .params = {SW_FIELD_UNSET, 1, &place}
    };
    (void)snprintf(what, sizeof what, "override of 'a': params: %s", counted);
    assert_refused(&e, what, LOOK);
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .params = {SW_FIELD_VALUE, 1, NULL}
    };
    assert_refused(&e, what, LOOK);

    sw_segment segment = {8, 1, 2};
    sw_cut cut = {1, 0, &segment};
    place.placement.cut = &cut;
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .params = {SW_FIELD_VALUE, 1, &place}
    };
    assert_refused(&e, "override of 'a': params: 'x': a cut needs 1 to 65536 segments", LOOK);
    cut.n_segments = 1;
    e = (sw_override){
        .struct_size = sizeof e, .match = "a", .out_src = {SW_FIELD_VALUE, 1, &place}
    };
    assert_refused(
        &e,
        "override of 'a': out_src: 'x': a composed cut belongs in params; inputs and outputs are cut into "
        "equal pieces",
        LOOK);
}

static void too_many_places_are_refused(void **state)
{
    (void)state;
    sw_named_place place = ON("x", TP, SHARD, 0);
    sw_override e = {
        .struct_size = sizeof e, .match = "a", .params = {SW_FIELD_VALUE, SIZE_MAX, &place}
    };
    sw_overrides *o = empty_list();
    assert_int_equal(sw_overrides_add(o, &e, NULL), SW_E_LIMIT);
    sw_overrides_destroy(o);
}

/* ---- files ---- */

static void a_file_is_read_and_named_in_its_entries(void **state)
{
    (void)state;
    char path[] = "/tmp/sw-overrides-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    const char text[] = "\n- match: a\n";
    assert_int_equal(write(file, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(close(file), 0);
    sw_overrides *o = empty_list();
    sw_error err = {0};
    assert_int_equal(sw_overrides_add_file(o, path, &err), SW_OK);
    char source[64];
    (void)snprintf(source, sizeof source, "%s:2", path);
    assert_string_equal(o->entries[0].source, source);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(sw_overrides_add_file(o, path, &err), SW_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sw_overrides_add_file(o, path, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, path));
    assert_int_equal(o->n_entries, 1);
    sw_overrides_destroy(o);
}

static void every_failed_allocation_is_reported_and_changes_nothing(void **state)
{
    (void)state;
    sw_segment segment = {0, 1, 2};
    sw_cut cut = {1, 1, &segment};
    sw_named_place places[] = {
        {"u", SW_AXIS_TP, {SW_PLACE_SHARD, 0, &cut}},
        ON("v", TP, SHARD, 1)
    };
    sw_override entry = {
        .struct_size = sizeof entry,
        .match = "a",
        .params = {SW_FIELD_PATCH, 2, places},
        .tp_divide_attrs = (const char *[]){"x",              NULL            },
        .inner_target = "core",
        .inner_wrapper = "cp_ring"
    };
    int64_t live = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;

    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_error err = {0};
        sw_overrides *o = NULL;
        sw_alloc_fail_at(n);
        status = sw_overrides_create(&o, &err);
        uint32_t n_done = 0;
        for (int i = 0; status == SW_OK && i < 2; i++) {
            status = sw_overrides_add(o, &entry, &err);
            n_done += status == SW_OK;
        }
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_int_equal(err.status, SW_E_NO_MEMORY);
            assert_int_equal(o == NULL ? 0 : o->n_entries, n_done > 0);
        }
        sw_overrides_destroy(o);
        assert_int_equal(sw_alloc_live(), live);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty_and_derives),
        cmocka_unit_test(places_of_one_name_are_one_placement_in_order),
        cmocka_unit_test(everything_given_is_copied),
        cmocka_unit_test(an_explicit_empty_value_and_an_empty_list_count),
        cmocka_unit_test(an_entry_from_c_merges_into_one_from_a_file),
        cmocka_unit_test(entries_of_one_match_and_when_are_one),
        cmocka_unit_test(structs_that_are_not_filled_in_are_refused),
        cmocka_unit_test(no_text_of_no_bytes_is_an_empty_list),
        cmocka_unit_test(a_longer_struct_of_a_later_version_is_taken),
        cmocka_unit_test(names_and_words_with_faults_are_refused),
        cmocka_unit_test(an_endless_list_of_attributes_is_refused),
        cmocka_unit_test(placements_with_faults_are_refused),
        cmocka_unit_test(fields_with_faults_are_refused),
        cmocka_unit_test(too_many_places_are_refused),
        cmocka_unit_test(a_file_is_read_and_named_in_its_entries),
        cmocka_unit_test(every_failed_allocation_is_reported_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
