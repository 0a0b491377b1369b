/* Parts, their boxes, their coverage, and regions as JSON. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/regions.h"

/* Rows 0:4 and 8:10 of 12, columns 2:5 of 6. */
static const sw_range rows[] = {
    {0, 4 },
    {8, 10}
};
static const sw_range columns[] = {
    {2, 5}
};
static const sw_pieces corner_along[] = {
    {2, rows   },
    {1, columns}
};
static const sw_part corner = {2, corner_along};

static sw_part whole_of(sw_arena *arena, const uint64_t *dims, uint32_t n_dims)
{
    sw_part part;
    assert_int_equal(sw_part_whole(&part, dims, n_dims, arena, NULL), SW_OK);
    return part;
}

static int make_arena(void **state)
{
    *state = sw_arena_create(0);
    return *state == NULL;
}

static int drop_arena(void **state)
{
    sw_arena_destroy(*state);
    return 0;
}

static void a_part_knows_its_extents_and_elements(void **state)
{
    sw_part scalar = whole_of(*state, NULL, 0);
    uint64_t dims[] = {3, 0, 5};
    sw_part none = whole_of(*state, dims, 3);

    assert_int_equal(sw_part_extent(&corner, 0), 6);
    assert_int_equal(sw_part_extent(&corner, 1), 3);
    assert_int_equal(sw_part_elems(&corner), 18);
    assert_int_equal(sw_part_elems(&scalar), 1);
    assert_int_equal(sw_part_elems(&none), 0);
}

static void parts_share_what_their_dims_share(void **state)
{
    uint64_t dims[] = {12, 6};
    sw_part whole = whole_of(*state, dims, 2);
    static const sw_range other_rows[] = {
        {3,  9 },
        {11, 12}
    };
    static const sw_range other_columns[] = {
        {0, 3},
        {4, 6}
    };
    const sw_pieces along[] = {
        {2, other_rows   },
        {2, other_columns}
    };
    const sw_part other = {2, along};

    assert_int_equal(sw_part_overlap(&corner, &whole), 18);
    assert_int_equal(sw_part_overlap(&corner, &other), 2 * 2); /* rows 3 and 8, columns 2 and 4 */
    assert_int_equal(sw_part_overlap(&other, &corner), 4);
    assert_true(sw_part_equal(&corner, &corner));
    assert_false(sw_part_equal(&corner, &other));
    assert_false(sw_part_equal(&corner, &whole));
}

/* Rows 2 and 3 of [4, 0] are stored as [2, 0], and so are rows 0 and 1. */
static void parts_that_hold_nothing_are_equal_by_their_extents(void **state)
{
    static const sw_range low = {0, 2};
    static const sw_range high = {2, 4};
    static const sw_range one = {0, 1};
    static const sw_pieces of_low[] = {
        {1, &low},
        {0, NULL}
    };
    static const sw_pieces of_high[] = {
        {1, &high},
        {0, NULL }
    };
    static const sw_pieces of_one[] = {
        {1, &one},
        {0, NULL}
    };
    static const sw_pieces full[] = {
        {1, &low},
        {1, &one}
    };

    (void)state;
    assert_true(sw_part_equal(&(sw_part){2, of_low}, &(sw_part){2, of_high}));
    assert_false(sw_part_equal(&(sw_part){2, of_low}, &(sw_part){2, of_one}));
    assert_false(sw_part_equal(&(sw_part){2, of_low}, &(sw_part){2, full}));
    assert_false(sw_part_equal(&(sw_part){2, full}, &(sw_part){2, of_low}));
}

static void boxes_are_the_product_of_the_ranges(void **state)
{
    uint64_t begin[2];
    uint64_t extent[2];

    (void)state;
    assert_int_equal(sw_part_box_count(&corner), 2);
    sw_part_box(&corner, 1, begin, extent);
    assert_int_equal(begin[0], 8);
    assert_int_equal(begin[1], 2);
    assert_int_equal(extent[0], 2);
    assert_int_equal(extent[1], 3);
}

static void an_empty_part_has_one_box_with_an_extent_of_0(void **state)
{
    uint64_t dims[] = {3, 0};
    sw_part none = whole_of(*state, dims, 2);
    uint64_t begin[2] = {9, 9};
    uint64_t extent[2] = {9, 9};

    assert_int_equal(sw_part_box_count(&none), 1);
    sw_part_box(&none, 0, begin, extent);
    assert_int_equal(begin[0] + begin[1], 0);
    assert_int_equal(extent[0], 3);
    assert_int_equal(extent[1], 0);
}

static void boxes_make_the_part_again(void **state)
{
    uint64_t begins[4];
    uint64_t extents[4];
    sw_part again;

    for (uint32_t i = 0; i < 2; i++)
        sw_part_box(&corner, i, begins + 2 * (size_t)i, extents + 2 * (size_t)i);
    assert_int_equal(sw_part_from_boxes(&again, begins, extents, 2, 2, *state, NULL), SW_OK);
    assert_true(sw_part_equal(&again, &corner));
}

static void touching_boxes_become_one_range(void **state)
{
    const uint64_t begins[] = {0, 2, 4, 2};
    const uint64_t extents[] = {4, 3, 2, 3};
    sw_part part;

    assert_int_equal(sw_part_from_boxes(&part, begins, extents, 2, 2, *state, NULL), SW_OK);
    assert_int_equal(part.along[0].n, 1);
    assert_int_equal(part.along[0].ranges[0].end, 6);
}

typedef struct bad_boxes {
    const char *why;
    uint64_t begins[8];
    uint64_t extents[8];
    uint32_t n;
} bad_boxes;

static void boxes_that_are_no_grid_are_refused(void **state)
{
    static const bad_boxes cases[] = {
        {"none",         {0},                      {0},                      0},
        {"descending",   {4, 0, 0, 0},             {2, 3, 2, 3},             2},
        {"overlapping",  {0, 0, 1, 0},             {2, 3, 2, 3},             2},
        {"the same",     {0, 0, 0, 0},             {2, 3, 2, 3},             2},
        {"a hole",       {0, 0, 0, 4, 4, 0},       {2, 2, 2, 2, 2, 2},       3},
        {"other order",  {0, 0, 4, 0, 0, 4, 4, 4}, {2, 2, 2, 2, 2, 2, 2, 2}, 4},
        {"other widths", {0, 0, 4, 0},             {2, 3, 2, 4},             2},
        {"an empty one", {0, 0, 4, 0},             {2, 3, 0, 3},             2},
        {"wraps",        {0, 0, UINT64_MAX, 0},    {2, 3, 2, 3},             2},
    };

    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_part part;
        sw_error err = {0};
        if (sw_part_from_boxes(&part, cases[i].begins, cases[i].extents, cases[i].n, 2, *state, &err) !=
            SW_E_FORMAT)
            fail_msg("%s: taken", cases[i].why);
        assert_non_null(strstr(err.what, "not a product of ascending ranges"));
    }
    const uint64_t far[] = {UINT64_MAX};
    const uint64_t one[] = {1};
    sw_part part;
    assert_int_equal(sw_part_from_boxes(&part, far, one, 1, 1, *state, NULL), SW_E_FORMAT);
    assert_int_equal(sw_part_from_boxes(&part, far, one, 1, SW_MAX_DIMS + 1, *state, NULL), SW_E_LIMIT);
}

/* ---- coverage ---- */

static void cover(const sw_part *parts, uint32_t n, const uint64_t *dims, uint64_t covered, uint64_t twice,
                  const char *what)
{
    uint64_t found_covered = 0;
    uint64_t found_twice = 0;
    sw_error err = {0};
    sw_status status = sw_parts_cover(parts, n, dims, 2, &found_covered, &found_twice, &err);

    assert_int_equal(found_covered, covered);
    assert_int_equal(found_twice, twice);
    assert_int_equal(status, what == NULL ? SW_OK : SW_E_FORMAT);
    if (what != NULL && strstr(err.what, what) == NULL)
        fail_msg("%s", err.what);
}

static void coverage_counts_holes_and_doubles(void **state)
{
    const uint64_t dims[] = {12, 6};
    static const sw_range left[] = {
        {0, 2}
    };
    static const sw_range all_rows[] = {
        {0, 12}
    };
    static const sw_range right[] = {
        {5, 6}
    };
    static const sw_range others[] = {
        {4,  8 },
        {10, 12}
    };
    static const sw_pieces left_along[] = {
        {1, all_rows},
        {1, left    }
    };
    static const sw_pieces right_along[] = {
        {1, all_rows},
        {1, right   }
    };
    static const sw_pieces middle_along[] = {
        {2, others },
        {1, columns}
    };
    const sw_part parts[] = {
        corner, {2, left_along  },
         {2, right_along },
         {2, middle_along},
         corner
    };

    (void)state;
    cover(parts, 4, dims, 72, 0, NULL);
    cover(parts, 3, dims, 54, 0, "54 of 72 elements have an owner, 0 of them more than one");
    cover(parts, 5, dims, 72, 18, "72 of 72 elements have an owner, 18 of them more than one");
    cover(parts, 0, dims, 0, 0, "0 of 72 elements have an owner");
}

static void a_part_that_leaves_the_tensor_is_refused(void **state)
{
    const uint64_t dims[] = {9, 6};
    uint64_t covered = 0;
    uint64_t twice = 0;
    sw_error err = {0};

    (void)state;
    assert_false(sw_part_fits(&corner, dims, 2));
    assert_false(sw_part_fits(&corner, dims, 1));
    assert_int_equal(sw_parts_cover(&corner, 1, dims, 2, &covered, &twice, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "leaves the tensor"));
}

/* Two parts that cross in every dim many times: given up, not computed for hours. */
static void regions_that_cross_without_end_are_given_up(void **state)
{
    enum { N = 600, DIMS = 4 };
    sw_range *first = calloc(N, sizeof *first);
    sw_range *second = calloc(N, sizeof *second);
    uint64_t dims[DIMS];
    sw_pieces along[2][DIMS];
    uint64_t covered = 0;
    uint64_t twice = 0;
    sw_error err = {0};

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        first[i] = (sw_range){4 * i, 4 * i + 2};
        second[i] = (sw_range){4 * i + 1, 4 * i + 3};
    }
    for (uint32_t d = 0; d < DIMS; d++) {
        dims[d] = 4 * N;
        along[0][d] = (sw_pieces){N, first};
        along[1][d] = (sw_pieces){N, second};
    }
    const sw_part parts[] = {
        {DIMS, along[0]},
        {DIMS, along[1]}
    };
    assert_int_equal(sw_parts_cover(parts, 2, dims, DIMS, &covered, &twice, &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "cross each other"));
    free(first);
    free(second);
}

/* ---- regions as JSON ---- */

static sw_buffer regions_text(const sw_held *held)
{
    sw_buffer text = {0};
    sw_json_writer w;

    sw_json_write_init(&w, &text, true);
    sw_regions_write(&w, held);
    assert_non_null(sw_buffer_text(&text));
    return text;
}

static bool read_text(const char *text, sw_arena *arena, const sw_held **out, sw_error *err)
{
    sw_regions_reader reader = {.arena = arena};
    sw_json json;

    sw_json_init(&json, text, strlen(text), "x.json", arena, err);
    bool is_read = sw_regions_read(&reader, &json, out) && sw_json_finish(&json);
    sw_regions_reader_clear(&reader);
    return is_read;
}

static void regions_are_split_where_the_owner_changes(void **state)
{
    static const sw_range held_rows[] = {
        {4, 12}
    };
    static const sw_range owned_rows[] = {
        {4, 8}
    };
    static const sw_pieces held_along[] = {
        {1, held_rows}
    };
    static const sw_pieces owned_along[] = {
        {1, owned_rows}
    };
    const sw_held held = {
        {1, held_along },
        {1, owned_along},
        false
    };
    const sw_held *again = NULL;
    sw_buffer text = regions_text(&held);

    assert_string_equal(text.bytes, "[{\"begin\":[4],\"extent\":[4]},"
                                    "{\"begin\":[8],\"extent\":[4],\"replica\":true}]");
    assert_int_equal(sw_regions_replicas(&held), 1);
    assert_true(read_text(text.bytes, *state, &again, NULL));
    assert_true(sw_part_equal(&again->part, &held.part));
    assert_true(sw_part_equal(&again->owned, &held.owned));
    assert_false(again->is_replica);
    sw_buffer_clear(&text);
}

static void a_copy_of_a_scalar_is_written_and_read(void **state)
{
    sw_held held = {.part = whole_of(*state, NULL, 0), .is_replica = true};
    const sw_held *again = NULL;
    sw_buffer text;

    held.owned = held.part;
    text = regions_text(&held);
    assert_string_equal(text.bytes, "[{\"begin\":[],\"extent\":[],\"replica\":true}]");
    assert_int_equal(sw_regions_replicas(&held), 1);
    assert_true(read_text(text.bytes, *state, &again, NULL));
    assert_true(again->is_replica);
    sw_buffer_clear(&text);
}

static void an_empty_part_is_written_with_its_extents(void **state)
{
    uint64_t dims[] = {0, 8};
    sw_held held = {.part = whole_of(*state, dims, 2)};
    const sw_held *again = NULL;
    sw_buffer text;

    held.owned = held.part;
    text = regions_text(&held);
    assert_string_equal(text.bytes, "[{\"begin\":[0,0],\"extent\":[0,8]}]");
    assert_int_equal(sw_regions_replicas(&held), 0);
    assert_true(read_text(text.bytes, *state, &again, NULL));
    assert_int_equal(sw_part_extent(&again->part, 0), 0);
    assert_int_equal(sw_part_extent(&again->part, 1), 8);
    sw_buffer_clear(&text);
}

static void equal_texts_give_one_part(void **state)
{
    static const char text[] = "[[{\"begin\":[1],\"extent\":[2]}],[{\"begin\":[1],\"extent\":[2]}]]";
    sw_regions_reader reader = {.arena = *state};
    const sw_held *first = NULL;
    const sw_held *second = NULL;
    sw_json json;

    sw_json_init(&json, text, strlen(text), "x.json", *state, NULL);
    assert_true(sw_json_enter_array(&json) && sw_json_next_element(&json));
    assert_true(sw_regions_read(&reader, &json, &first) && sw_json_next_element(&json));
    assert_true(sw_regions_read(&reader, &json, &second) && !sw_json_next_element(&json));
    assert_ptr_equal(first, second);
    sw_regions_reader_clear(&reader);
}

static void malformed_regions_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"[]",                                                                  "no region"              },
        {"[{\"begin\":[0]}]",                                                   "begins and extents"     },
        {"[{\"extent\":[1],\"begin\":[0]}]",                                    "unexpected key 'extent'"},
        {"[{\"begin\":[0],\"extent\":[1],\"owner\":true}]",                     "unexpected key 'owner'" },
        {"[{\"begin\":[0],\"extent\":[1,2]}]",                                  "begins and extents"     },
        {"[{\"begin\":[0],\"extent\":[1]},{\"begin\":[1,1],\"extent\":[1,1]}]", "begins and extents"     },
        {"[{\"begin\":[-1],\"extent\":[1]}]",                                   "negative"               },
        {"[{\"begin\":[0.5],\"extent\":[1]}]",                                  "fraction"               },
        {"[{\"begin\":[18446744073709551616],\"extent\":[1]}]",                 "64 bits"                },
        {"[{\"begin\":[18446744073709551615],\"extent\":[1]}]",                 "no such product"        },
        {"[{\"begin\":[0],\"extent\":[4]},{\"begin\":[2],\"extent\":[4]}]",     "no such product"        },
        {"[{\"begin\":[0,0,0,0,0,0,0,0,0],\"extent\":[1]}]",                    "more than 8 dims"       },
        {"[{\"begin\":[0],\"extent\":[1],\"replica\":1}]",                      "true or false"          },
        {"{}",                                                                  "an array"               },
        {"[{\"begin\":[0],\"extent\":[1]}",                                     "']'"                    },
    };

    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        const sw_held *held = NULL;
        sw_error err = {0};
        if (read_text(cases[i][0], *state, &held, &err))
            fail_msg("%s: taken", cases[i][0]);
        if (strstr(err.what, cases[i][1]) == NULL || strncmp(err.what, "x.json: byte ", 13) != 0)
            fail_msg("%s: %s", cases[i][0], err.what);
    }
}

static void memory_that_is_gone_is_said(void **state)
{
    const char text[] = "[{\"begin\":[0],\"extent\":[1]},{\"begin\":[4],\"extent\":[1],\"replica\":true}]";
    bool is_read = false;

    (void)state;
    for (uint64_t n = 1; !is_read; n++) {
        int64_t live = sw_alloc_live();
        sw_arena *arena = sw_arena_create(0);
        const sw_held *held = NULL;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        is_read = read_text(text, arena, &held, &err);
        sw_alloc_fail_at(0);
        sw_arena_destroy(arena);
        assert_int_equal(sw_alloc_live(), live);
        if (!is_read)
            assert_int_equal(err.status, SW_E_NO_MEMORY);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_arena, drop_arena)
    const struct CMUnitTest tests[] = {
        CASE(a_part_knows_its_extents_and_elements),
        CASE(parts_share_what_their_dims_share),
        CASE(parts_that_hold_nothing_are_equal_by_their_extents),
        CASE(boxes_are_the_product_of_the_ranges),
        CASE(an_empty_part_has_one_box_with_an_extent_of_0),
        CASE(boxes_make_the_part_again),
        CASE(touching_boxes_become_one_range),
        CASE(boxes_that_are_no_grid_are_refused),
        CASE(coverage_counts_holes_and_doubles),
        CASE(a_part_that_leaves_the_tensor_is_refused),
        CASE(regions_that_cross_without_end_are_given_up),
        CASE(regions_are_split_where_the_owner_changes),
        CASE(a_copy_of_a_scalar_is_written_and_read),
        CASE(an_empty_part_is_written_with_its_extents),
        CASE(equal_texts_give_one_part),
        CASE(malformed_regions_are_refused),
        CASE(memory_that_is_gone_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
