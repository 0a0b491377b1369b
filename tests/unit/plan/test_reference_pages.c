/*
 * docs/reference: the tables of roles.md, templates.md, lowering.md and exit-codes.md are those of the code,
 * row by row. What a page says in words beside them is for people to keep.
 */
#include <stdio.h>
#include <string.h>

#include "mesh/placement.h"
#include "page.h"
#include "plan/layout.h"
#include "plan/lowering.h"
#include "plan/role.h"
#include "plan/template.h"
#include "shardwright/error.h"

enum { CELL = 256 };

/* A page's first column against names that a function gives for 0, 1, ... up to `n`. */
static void check_names(const page_table *page, const char *(*name_of)(int i), int n)
{
    assert_int_equal(page->n_rows, n);
    for (int i = 0; i < n; i++) {
        const char *const cells[] = {name_of(i), NULL};
        page_check_row(page, (size_t)i, cells);
        assert_true(page->cells[i][1][0] != '\0');
    }
}

/* ---- roles.md ---- */

static const char *role_name(int i)
{
    return sw_role_name((sw_role)i);
}

static const char *layout_name(int i)
{
    return sw_layout_name((sw_layout)i);
}

static void roles_are_described_in_their_order(void **state)
{
    (void)state;
    page_table page;
    page_open(&page, "roles.md", "The roles");
    check_names(&page, role_name, SW_ROLE_COUNT_);
    page_close(&page);
}

static void layouts_are_described_in_their_order(void **state)
{
    (void)state;
    page_table page;
    page_open(&page, "roles.md", "How a tensor is stored");
    check_names(&page, layout_name, SW_LAYOUT_COUNT_);
    page_close(&page);
}

static void default_rules_are_those_of_the_page(void **state)
{
    (void)state;
    page_table page;
    page_open(&page, "roles.md", "Default rules");
    assert_int_equal(page.n_rows, sw_default_role_rules.n_rules);
    for (size_t i = 0; i < sw_default_role_rules.n_rules; i++) {
        const sw_role_rule *rule = &sw_default_role_rules.rules[i];
        char number[32];
        char patterns[512] = "";
        size_t used = 0;
        (void)snprintf(number, sizeof number, "%zu", i + 1);
        for (const char *const *p = rule->patterns; *p != NULL; p++)
            used +=
                (size_t)snprintf(patterns + used, sizeof patterns - used, "%s%s", used == 0 ? "" : ", ", *p);
        const char *const cells[] = {number, sw_role_name(rule->role), sw_match_mode_name(rule->mode),
                                     patterns, NULL};
        page_check_row(&page, i, cells);
    }
    page_close(&page);
}

static void put_place(char *out, const sw_places *places, int axis)
{
    (void)snprintf(out, CELL, "-");
    if ((places->present & (1U << axis)) != 0)
        (void)sw_placement_text(&places->on[axis], out, CELL);
}

static void places_of_roles_are_those_of_the_page(void **state)
{
    (void)state;
    static const sw_boundary_type types[] = {SW_BOUNDARY_ATTENTION, SW_BOUNDARY_MLP, SW_BOUNDARY_MOE_MLP,
                                             SW_BOUNDARY_EMBED, SW_BOUNDARY_LM_HEAD};
    page_table page;
    page_open(&page, "roles.md", "Placement of a role");
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        size_t row = 0;
        for (int i = SW_ROLE_COLWISE; i < SW_ROLE_COUNT_; i++) {
            sw_places places = {0};
            char tp[CELL];
            char cp[CELL];
            char ep[CELL];
            if (!sw_template_place_role("x", (sw_role)i, sw_template_of(types[t]), true, true, 2, &places))
                continue;
            put_place(tp, &places, SW_ON_TP);
            put_place(cp, &places, SW_ON_CP);
            put_place(ep, &places, SW_ON_EP);
            const char *const cells[] = {sw_role_name((sw_role)i), tp, cp, ep, NULL};
            page_check_row(&page, row++, cells);
        }
        assert_int_equal(row, page.n_rows);
    }
    page_close(&page);
}

static void row_words_of_experts_are_those_of_the_page(void **state)
{
    (void)state;
    static const char *const words[] = {"w2", "down_proj", "down."};
    const sw_template *t = sw_template_of(SW_BOUNDARY_MOE_MLP);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        sw_places places = {0};
        assert_true(sw_template_place_role(words[i], SW_ROLE_MOE_EXPERT, t, true, true, 2, &places));
        assert_int_equal(places.on[SW_ON_TP].dim, 1);
        assert_true(sw_template_place_role(words[i], SW_ROLE_MOE_EXPERT, t, true, true, 3, &places));
        assert_int_equal(places.on[SW_ON_TP].dim, 2);
        assert_true(sw_template_place_role("up_proj", SW_ROLE_MOE_EXPERT, t, true, true, 3, &places));
        assert_int_equal(places.on[SW_ON_TP].dim, 1);
    }
}

/* ---- templates.md ---- */

static size_t put_template_place(char *out, sw_template_place place)
{
    sw_placement p = {.kind = (sw_placement_kind)place.kind, .dim = place.dim};

    if (!place.is_declared)
        return (size_t)snprintf(out, CELL, "-");
    return sw_placement_text(&p, out, CELL);
}

static void put_side(char *out, const sw_template_side *side)
{
    size_t n = put_template_place(out, side->tp);

    n += (size_t)snprintf(out + n, CELL - n, ", ");
    n += put_template_place(out + n, side->cp);
    assert_true(side->ep.is_declared);
    if (side->ep.kind == SW_PLACE_REPLICATE)
        return;
    n += (size_t)snprintf(out + n, CELL - n, ", ");
    (void)put_template_place(out + n, side->ep);
}

static void types_are_those_of_the_page(void **state)
{
    (void)state;
    static const char *const yes_or_no[] = {"no", "yes"};
    page_table page;
    size_t row = 0;
    page_open(&page, "templates.md", "Types");
    for (int i = 0; i < SW_BOUNDARY_COUNT_; i++) {
        const sw_template *t = sw_template_of((sw_boundary_type)i);
        if (t == NULL)
            continue;
        const char *what = page.cells[row][2]; /* in words */
        const char *dispatch = t->region_dispatch < 0 ? "-" : t->region_dispatch > 0 ? "true" : "false";
        const char *const cells[] = {sw_boundary_type_name(t->type),
                                     t->input == NULL ? "none" : t->input,
                                     what,
                                     dispatch,
                                     yes_or_no[t->needs_cp_attn],
                                     yes_or_no[t->is_split],
                                     NULL};
        page_check_row(&page, row++, cells);
        assert_true(what[0] != '\0');
    }
    assert_int_equal(row, page.n_rows);
    page_close(&page);
}

static void contracts_are_those_of_the_page(void **state)
{
    (void)state;
    page_table page;
    size_t row = 0;
    page_open(&page, "templates.md", "Contracts");
    for (int i = 0; i < SW_BOUNDARY_COUNT_; i++) {
        const sw_template *t = sw_template_of((sw_boundary_type)i);
        for (int on = 1; t != NULL && t->input != NULL && on >= 0; on--) {
            const sw_template_contract *c = on != 0 ? &t->sp : &t->nosp;
            const sw_template_side *sides[] = {&c->in_src, &c->in_dst, &c->out_src, &c->out_dst};
            char texts[4][CELL];
            for (int s = 0; s < 4; s++)
                put_side(texts[s], sides[s]);
            const char *const cells[] = {sw_boundary_type_name(t->type),
                                         on != 0 ? "on" : "off",
                                         texts[0],
                                         texts[1],
                                         texts[2],
                                         texts[3],
                                         NULL};
            page_check_row(&page, row++, cells);
        }
    }
    assert_int_equal(row, page.n_rows);
    page_close(&page);
}

static void places_of_parameters_are_those_of_the_page(void **state)
{
    (void)state;
    page_table page;
    size_t row = 0;
    page_open(&page, "templates.md", "Parameters");
    for (int i = 0; i < SW_BOUNDARY_COUNT_; i++) {
        const sw_template *t = sw_template_of((sw_boundary_type)i);
        char texts[4][CELL];
        if (t == NULL)
            continue;
        (void)put_template_place(texts[0], t->colwise);
        (void)put_template_place(texts[1], t->rowwise);
        (void)put_template_place(texts[2], t->norm);
        (void)put_template_place(texts[3], t->expert);
        const char *const cells[] = {
            sw_boundary_type_name(t->type), texts[0], texts[1], texts[2], texts[3], NULL};
        page_check_row(&page, row++, cells);
    }
    assert_int_equal(row, page.n_rows);
    page_close(&page);
}

/* ---- lowering.md ---- */

static void lowerings_are_those_of_the_page(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        sw_placement place;
    } places[] = {
        {"R",    {.kind = SW_PLACE_REPLICATE}      },
        {"S(d)", {.kind = SW_PLACE_SHARD, .dim = 1}},
        {"S(e)", {.kind = SW_PLACE_SHARD, .dim = 2}},
        {"P",    {.kind = SW_PLACE_PARTIAL}        },
    };
    page_table page;
    size_t n_pairs = 0;
    page_open(&page, "lowering.md", "The table");
    for (size_t from = 0; from < 4; from++) {
        for (size_t to = 0; to < 4; to++) {
            size_t row = 0;
            if (strcmp(places[from].name, "S(e)") == 0 || (strcmp(places[to].name, "S(e)") == 0 && from != 1))
                continue; /* S(e) stands for the other dim, beside an S(d) only */
            while (row < page.n_rows && (strcmp(page.cells[row][0], places[from].name) != 0 ||
                                         strcmp(page.cells[row][1], places[to].name) != 0))
                row++;
            sw_transition whole = sw_lower(places[from].place, places[to].place, false);
            sw_transition split = sw_lower(places[from].place, places[to].place, true);
            const char *const cells[] = {
                places[from].name,
                places[to].name,
                whole.is_known ? sw_collective_name(whole.forward) : "impossible",
                whole.is_known ? sw_collective_name(whole.backward) : "impossible",
                split.is_known ? sw_collective_name(split.backward) : "impossible",
                NULL,
            };
            assert_int_equal(whole.is_known, split.is_known);
            assert_int_equal(whole.forward, split.forward);
            page_check_row(&page, row, cells);
            n_pairs++;
        }
    }
    assert_int_equal(n_pairs, page.n_rows);
    page_close(&page);
}

/* ---- exit-codes.md ---- */

static void statuses_and_exits_are_those_of_the_page(void **state)
{
    (void)state;
    page_table page;
    page_open(&page, "exit-codes.md", "Statuses");
    assert_int_equal(page.n_rows, SW_E_UNPROVED + 1);
    for (int i = 0; i <= SW_E_UNPROVED; i++) {
        char exit[8];
        (void)snprintf(exit, sizeof exit, "%d", sw_status_exit((sw_status)i));
        const char *const cells[] = {page.cells[i][0], sw_status_name((sw_status)i), exit, NULL};
        page_check_row(&page, (size_t)i, cells);
    }
    page_close(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_are_described_in_their_order),
        cmocka_unit_test(layouts_are_described_in_their_order),
        cmocka_unit_test(default_rules_are_those_of_the_page),
        cmocka_unit_test(places_of_roles_are_those_of_the_page),
        cmocka_unit_test(row_words_of_experts_are_those_of_the_page),
        cmocka_unit_test(types_are_those_of_the_page),
        cmocka_unit_test(contracts_are_those_of_the_page),
        cmocka_unit_test(places_of_parameters_are_those_of_the_page),
        cmocka_unit_test(lowerings_are_those_of_the_page),
        cmocka_unit_test(statuses_and_exits_are_those_of_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
