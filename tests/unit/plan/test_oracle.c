/*
 * The plan against the reference planner's answers for many models and meshes ($SW_SHARED/oracle): roles,
 * boundary types, owners, placements, contracts, lowering, stacks, deferred biases, local attributes. What
 * differs must be on docs/reference/differences.md, whose rules stand in tests/support/oracle_rules.c, and
 * must have the form that is right: a rule computes that form from the model's config, it does not merely see
 * a difference. A row that no model needs is an error too.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "oracle_rules.h"
#include "shared.h"

/* ---- the comparison ---- */

enum { MAX_MESSAGES = 60, MAX_RULES = 64 };

typedef struct tally {
    size_t n_seen[MAX_RULES];
    size_t n_unlisted;
    size_t n_looked;
    size_t n_plans;
    size_t n_messages;
    char messages[MAX_MESSAGES][600];
} tally;

/* A name with its numbers replaced by '#', so that layers that are alike are told once. */
static void fold(const char *name, char *out, size_t capacity)
{
    size_t n = 0;

    for (const char *at = name; *at != '\0' && n + 2 < capacity;) {
        size_t digits = strspn(at, "0123456789");
        bool is_number =
            digits > 0 && (at == name || at[-1] == '.') && (at[digits] == '.' || at[digits] == '\0');
        out[n++] = is_number ? '#' : *at;
        at += is_number ? digits : 1;
    }
    out[n] = '\0';
}

static void complain(tally *t, const oracle_difference *d, const char *why)
{
    char text[sizeof t->messages[0]];
    char told[3][160];

    t->n_unlisted++;
    fold(d->fqn, told[0], sizeof told[0]);
    fold(d->expected, told[1], sizeof told[1]);
    fold(d->found, told[2], sizeof told[2]);
    (void)snprintf(text, sizeof text, "%s %s %s: expected \"%s\", found \"%s\"%s%s", d->model,
                   oracle_field_name(d->field), told[0], told[1], told[2],
                   why == NULL ? "" : ", not the right form of ", why == NULL ? "" : why);
    for (size_t i = 0; i < t->n_messages; i++) {
        if (strncmp(t->messages[i], text, strlen(text)) == 0)
            return;
    }
    if (t->n_messages == MAX_MESSAGES)
        return;
    size_t length = strlen(text);
    (void)snprintf(text + length, sizeof text - length, " (%s)", d->mesh->name);
    memcpy(t->messages[t->n_messages++], text, sizeof text);
}

static void judge(void *context, const oracle_difference *d)
{
    tally *t = context;

    for (size_t i = 0; i < oracle_n_rules; i++) {
        oracle_verdict v = oracle_rules[i].rule(d);
        if (v == ORACLE_NOT_MINE)
            continue;
        t->n_seen[i]++;
        if (v == ORACLE_WRONG)
            complain(t, d, oracle_rules[i].code);
        return;
    }
    complain(t, d, NULL);
}

/* Plan what an answer is about and compare; fails the test when that cannot be done. */
static void compare(const sw_model *model, const oracle_answer *answer, const char *path, oracle_judge *with,
                    tally *t)
{
    const oracle_mesh *given = oracle_mesh_of(answer);
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_error err = {0};
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_report *report = NULL;

    if (sw_mesh_create(&mesh, given->axes, given->ep, &err) != SW_OK ||
        sw_report_create(&report, &err) != SW_OK)
        fail_msg("%s: %s", path, err.what);
    options.no_sequence_parallel = !given->sequence_parallel;
    options.loss_parallel = given->loss_parallel;
    options.report = report;
    sw_status status = sw_plan_create(&plan, model, mesh, &options, &err);
    if (status != SW_OK && status != SW_E_PLAN)
        fail_msg("%s: %s", path, err.what);
    size_t looked = oracle_compare(answer, model, status == SW_OK ? plan : NULL, report, with, t);
    if (looked == 0)
        fail_msg("%s: this answer cannot be compared", path);
    t->n_looked += looked;
    t->n_plans++;
    sw_plan_destroy(plan);
    sw_report_destroy(report);
    sw_mesh_destroy(mesh);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_name[0] != '_';
}

/* Every answer for one model. */
static void compare_model(const char *name, tally *t)
{
    char at[512];
    char path[1024];
    char folder[512];
    char why[256];
    sw_error err = {0};
    sw_model *model = NULL;
    struct dirent **files = NULL;

    (void)snprintf(at, sizeof at, "corpus/%s", name);
    if (!has_shared(at))
        (void)snprintf(at, sizeof at, "oracle/_mini/%s", name);
    shared_path(path, sizeof path, at);
    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s: %s", name, err.what);
    (void)snprintf(at, sizeof at, "oracle/%s", name);
    shared_path(folder, sizeof folder, at);
    int n = scandir(folder, &files, is_visible, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        oracle_answer *answer = oracle_open(path, why, sizeof why);
        if (answer == NULL)
            fail_msg("%s", why);
        compare(model, answer, path, judge, t);
        oracle_close(answer);
        free(files[i]);
    }
    free(files);
    sw_model_close(model);
}

static void every_difference_from_the_reference_is_listed_and_none_in_vain(void **state)
{
    char folder[512];
    char path[1024];
    struct dirent **models = NULL;
    static tally t;

    (void)state;
    assert_true(oracle_n_rules <= MAX_RULES);
    need_shared("oracle");
    shared_path(folder, sizeof folder, "oracle");
    int n = scandir(folder, &models, is_visible, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, models[i]->d_name);
        if (sw_file_kind_of(path) == SW_FILE_FOLDER)
            compare_model(models[i]->d_name, &t);
        free(models[i]);
    }
    free(models);
    for (size_t i = 0; i < t.n_messages; i++)
        print_error("%s\n", t.messages[i]);
    if (t.n_unlisted > 0)
        fail_msg("%zu differences are not listed, of %zu fields of %zu plans", t.n_unlisted, t.n_looked,
                 t.n_plans);
    for (size_t i = 0; i < oracle_n_rules; i++) {
        if (t.n_seen[i] == 0)
            fail_msg("%s (%s) is listed, but no model needs it", oracle_rules[i].code, oracle_rules[i].what);
    }
    print_message("%zu fields of %zu plans compared\n", t.n_looked, t.n_plans);
}

/* ---- what needs no other folder ---- */

static const char tiny[] = SW_SOURCE_DIR "/tests/data/oracle/tiny";

static void compare_tiny(const char *file, oracle_judge *with, tally *t)
{
    char path[512];
    char why[256];
    sw_error err = {0};
    sw_model *model = NULL;

    if (sw_model_open(&model, tiny, &err) != SW_OK)
        fail_msg("%s", err.what);
    (void)snprintf(path, sizeof path, "%s/%s", tiny, file);
    oracle_answer *answer = oracle_open(path, why, sizeof why);
    if (answer == NULL)
        fail_msg("%s", why);
    compare(model, answer, path, with, t);
    oracle_close(answer);
    sw_model_close(model);
}

static void count_only(void *context, const oracle_difference *d)
{
    complain(context, d, NULL);
}

static void a_small_decoder_is_planned_as_the_facts_say(void **state)
{
    static tally t;

    (void)state;
    compare_tiny("tp2-sp.json", count_only, &t);
    if (t.n_unlisted > 0)
        fail_msg("%s", t.messages[0]);
    assert_true(t.n_looked > 200);
}

static void a_wrong_answer_is_told_field_by_field(void **state)
{
    static tally t;
    /* clang-format off */
    static const char *const told[] = {
        "tiny role model.layers.#.mlp.up_proj.weight: expected \"rowwise\", found \"colwise\" (tp2-sp)",
        "tiny placement model.layers.#.mlp.up_proj.weight: expected \"tp:S(1)\", found \"tp:S(0)\" (tp2-sp)",
        "tiny owner model.layers.#.mlp.up_proj.bias: expected \"model.layers.#.mlp\", found \"-\" (tp2-sp)",
        "tiny out_dst model.layers.#.mlp: expected \"output=R\", found \"output=tp:S(1)\" (tp2-sp)",
        "tiny lower_out model.layers.#.mlp: expected \"output=all_reduce(tp)\", found \"output=reduce_scatter(tp,dim=1)\" (tp2-sp)",
        "tiny boundary model.layers.#.mlp.act: expected \"norm\", found \"-\" (tp2-sp)",
        "tiny boundary model.layers.#.self_attn: expected \"-\", found \"attention\" (tp2-sp)",
        "tiny terminal : expected \"model.norm\", found \"lm_head\" (tp2-sp)",
        "tiny outcome : expected \"UNCOVERED\", found \"ok\" (tp2-sp)",
    };
    /* clang-format on */

    (void)state;
    compare_tiny("wrong.json", count_only, &t);
    for (size_t i = 0; i < SW_COUNT(told); i++) {
        size_t at = 0;
        while (at < t.n_messages && strcmp(t.messages[at], told[i]) != 0)
            at++;
        if (at == t.n_messages)
            fail_msg("not told: %s", told[i]);
    }
}

/* ---- the page ---- */

static void the_page_lists_exactly_these_differences(void **state)
{
    static const char page[] = SW_SOURCE_DIR "/docs/reference/differences.md";
    sw_error err = {0};
    sw_file_map map = {0};
    size_t n = 0;

    (void)state;
    if (sw_file_map_open(&map, page, 1U << 20, &err) != SW_OK)
        fail_msg("%s", err.what);
    for (const char *at = (const char *)map.bytes, *end = at + map.n_bytes; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t length = line_end == NULL ? (size_t)(end - at) : (size_t)(line_end - at);
        char code[64];
        if (length > 4 && sscanf(at, "| `%63[a-z0-9_]` |", code) == 1) {
            if (n >= oracle_n_rules || strcmp(code, oracle_rules[n].code) != 0)
                fail_msg("row %zu of the page is %s; the test has %s there", n + 1, code,
                         n < oracle_n_rules ? oracle_rules[n].code : "no more rows");
            n++;
        }
        at += length + 1;
    }
    if (n < oracle_n_rules)
        fail_msg("the page has no row %s", oracle_rules[n].code);
    sw_file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_lists_exactly_these_differences),
        cmocka_unit_test(a_small_decoder_is_planned_as_the_facts_say),
        cmocka_unit_test(a_wrong_answer_is_told_field_by_field),
        cmocka_unit_test(every_difference_from_the_reference_is_listed_and_none_in_vain),
    };

    return cmocka_run_group_tests_name("plan/oracle", tests, NULL, NULL);
}
