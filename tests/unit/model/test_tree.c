/*
 * The tree: modules, owners, patterns and totals, against a plain reading of every name; and the limits that
 * bound what a hostile list of names can make of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "gen.h"
#include "model_folder.h"

static void module_text(const sw_model *model, uint32_t module, char *out, size_t capacity)
{
    const sw_module_node *m = &model->modules[module];
    (void)snprintf(out, capacity, "%.*s", (int)m->fqn_length, m->fqn);
}

/* The owner of every parameter is what stands before its last dot, and so on upwards; no module stands twice.
 */
static void check_tree(const sw_model *model)
{
    char text[1024];
    uint32_t *own = calloc(model->n_modules, sizeof *own);
    uint32_t *children = calloc(model->n_modules, sizeof *children);
    sw_map seen = {0};
    bool is_new = false;
    assert_non_null(own);
    assert_non_null(children);
    assert_int_equal(model->modules[0].fqn_length, 0);
    assert_int_equal(model->modules[0].parent, SW_NO_MODULE);
    for (size_t i = 0; i < model->n_params; i++) {
        const char *name = sw_model_tensor(model, (uint32_t)i)->name;
        const char *dot = strrchr(name, '.');
        module_text(model, model->params[i].module, text, sizeof text);
        if (strlen(text) != (dot == NULL ? 0 : (size_t)(dot - name)) ||
            strncmp(name, text, strlen(text)) != 0)
            fail_msg("%s is owned by '%s'", name, text);
        own[model->params[i].module]++;
    }
    for (uint32_t i = 0; i < model->n_modules; i++) {
        const sw_module_node *m = &model->modules[i];
        assert_non_null(sw_map_put(&seen, m->fqn, m->fqn_length, i, &is_new));
        assert_true(is_new);
        if (i == 0)
            continue;
        assert_true(m->parent < i);
        const sw_module_node *above = &model->modules[m->parent];
        size_t segment = above->fqn_length == 0 ? 0 : above->fqn_length + 1;
        assert_int_equal(m->segment, segment);
        assert_true(m->fqn_length > above->fqn_length && memcmp(m->fqn, above->fqn, above->fqn_length) == 0);
        if (memchr(m->fqn + segment + 1, '.', m->fqn_length - segment - 1) != NULL)
            fail_msg("'%.*s' is not one segment below its parent", (int)m->fqn_length, m->fqn);
        children[m->parent]++;
        const char *first = sw_model_tensor(model, m->first_param)->name;
        assert_true(strncmp(first, m->fqn, m->fqn_length) == 0 && first[m->fqn_length] == '.');
    }
    for (uint32_t i = 0; i < model->n_modules; i++) {
        assert_int_equal(model->modules[i].n_own, own[i]);
        assert_int_equal(model->modules[i].n_children, children[i]);
    }
    sw_map_clear(&seen);
    free(own);
    free(children);
}

static void check_patterns(const sw_model *model)
{
    size_t n_params = 0;
    for (uint32_t i = 0; i < model->n_patterns; i++) {
        n_params += model->patterns[i].n_params;
        assert_int_equal(model->params[model->patterns[i].first_param].pattern, i);
        assert_int_equal(strlen(model->patterns[i].text), model->patterns[i].length);
    }
    assert_int_equal(n_params, model->n_params);
}

static void modules_are_what_stands_before_the_dots(void **state)
{
    (void)state;
    folder_tsv(
        "lm_head.weight F32 4x4\nmodel.embed.weight F32 4x4\nmodel.layers.0.attn.q.weight F32 4x4\n"
        "model.layers.0.attn.q.bias F32 4\nmodel.layers.1.attn.q.weight F32 4x4\nmodel.norm.weight F32 4\n"
        "scale F32 1\n");
    sw_model *model = folder_open("");
    check_tree(model);
    check_patterns(model);
    assert_int_equal(model->n_modules, 12);
    assert_int_equal(model->n_patterns, 6);
    assert_int_equal(model->n_layers, 2);
    assert_int_equal(sw_model_elements(model), 4 * 16 + 4 + 4 + 1);
    assert_int_equal(sw_model_find_module(model, "model.layers", strlen("model.layers")), 3);
    assert_int_equal(sw_model_find_module(model, "", 0), 0);
    assert_int_equal(sw_model_find_module(model, "model.layer", strlen("model.layer")), SW_NO_MODULE);
    sw_model_close(model);
}

static void odd_names_still_make_a_tree(void **state)
{
    (void)state;
    folder_tsv(
        "a.0.b.0.c.0.x F32 1\na.0.b.0.c.1.x F32 1\na.0.b.0.c.0.y F32 1\na.0.b.0.c.1.y F32 1\n"
        "a.#.b.1.c F32 1\na.1.b.#.c F32 1\na.#.b.1.d F32 1\na.00.x F32 1\na.0.x F32 1\na.00.y F32 1\n"
        "a F32 1\na.0 F32 1\n7 F32 1\n7.8.9.10.11.x F32 1\n7.8.9.10.12.x F32 1\n7.8.9.10.11.y F32 1\n");
    sw_model *model = folder_open("");
    check_tree(model);
    check_patterns(model);
    sw_model_close(model);
}

static void a_name_that_begins_with_a_dot_belongs_to_the_root(void **state)
{
    (void)state;
    folder_tsv(".weight F32 1\n.a.weight F32 1\nb..weight F32 1\n");
    sw_model *model = folder_open("");
    assert_int_equal(model->n_params, 3);
    for (uint32_t i = 0; i < model->n_params; i++)
        assert_true(model->params[i].module < model->n_modules);
    sw_model_close(model);
}

/* Names of few short segments, so that they meet often. */
static bool random_names_make_a_tree(gen *g)
{
    static const char *const words[] = {"a", "b", "0", "1", "10", "#", "00", "1000000", "a1"};
    char lines[4096] = "";
    size_t used = 0;
    uint32_t n = gen_between(g, 1, 60);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_segments = gen_between(g, 1, 7);
        for (uint32_t s = 0; s < n_segments; s++)
            used += (size_t)snprintf(lines + used, sizeof lines - used, "%s%s", s == 0 ? "" : ".",
                                     words[gen_below(g, sizeof words / sizeof *words)]);
        used +=
            (size_t)snprintf(lines + used, sizeof lines - used, ".%c%u F32 1\n", i % 2 == 0 ? 'w' : 'v', i);
    }
    folder_tsv(lines);
    sw_model *model = folder_open("");
    check_tree(model);
    check_patterns(model);
    sw_model_close(model);
    return true;
}

static void every_list_of_names_makes_a_tree(void **state)
{
    (void)state;
    assert_true(gen_holds(random_names_make_a_tree, 400));
}

static void a_real_model_makes_a_tree(void **state)
{
    const char *id = *(const char **)*state;
    char path[512];
    sw_error err = {0};
    sw_model *model = NULL;
    corpus_path(path, sizeof path, id, "params.tsv");
    sw_file_map map = corpus_open(path);
    sw_file_map_close(&map);
    *strrchr(path, '/') = '\0';
    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    check_tree(model);
    check_patterns(model);
    sw_model_close(model);
}

/* ---- limits ---- */

static FILE *begin_list(void)
{
    FILE *file = fopen(folder_path("params.tsv"), "w");
    if (file == NULL)
        fail_msg("cannot write a list");
    return file;
}

static void very_many_different_names_are_refused(void **state)
{
    (void)state;
    FILE *file = begin_list();
    for (int i = 0; i <= 10000; i++)
        (void)fprintf(file, "name%d.weight\tF32\t1\n", i);
    assert_int_equal(fclose(file), 0);
    folder_refused(
        "", SW_E_LIMIT,
        "more than 10000 names that differ in more than their numbers, the last is 'name10000.weight'",
        "check that this is a model");
}

static void very_long_different_names_are_refused(void **state)
{
    (void)state;
    FILE *file = begin_list();
    for (int i = 0; i < 300; i++) {
        (void)fprintf(file, "name%d", i);
        for (int k = 0; k < 60000; k++)
            (void)fputc('a', file);
        (void)fputs(".weight\tF32\t1\n", file);
    }
    assert_int_equal(fclose(file), 0);
    folder_refused("", SW_E_LIMIT, "names that differ in more than their numbers take more than 16 MiB",
                   "check that this is a model");
}

static void a_name_of_very_many_segments_is_refused(void **state)
{
    (void)state;
    FILE *file = begin_list();
    for (int i = 0; i < 64; i++)
        (void)fputs("a.", file);
    (void)fputs("w\tF32\t1\n", file);
    assert_int_equal(fclose(file), 0);
    folder_refused("", SW_E_LIMIT, "has 65 segments, at most 64 are read", "check that this is a model");
}

static void very_many_modules_are_refused(void **state)
{
    (void)state;
    FILE *file = begin_list();
    for (int i = 0; i < 20000; i++) {
        (void)fprintf(file, "%d.%d", i / 200, i % 200);
        for (int k = 0; k < 55; k++)
            (void)fputs(".a", file);
        (void)fputs(".w\tF32\t1\n", file);
    }
    assert_int_equal(fclose(file), 0);
    folder_refused("", SW_E_LIMIT, "more than 1000000 modules", "check that this is a model");
}

static void elements_that_do_not_fit_64_bits_are_refused(void **state)
{
    (void)state;
    folder_tsv("a.weight F32 4294967296x4294967295\nb.weight F32 4294967296x4294967295\n");
    folder_refused("", SW_E_LIMIT, "does not fit 64 bits, from 'b.weight' on", "damaged");
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(modules_are_what_stands_before_the_dots),
        IN_FOLDER(odd_names_still_make_a_tree),
        IN_FOLDER(a_name_that_begins_with_a_dot_belongs_to_the_root),
        IN_FOLDER(every_list_of_names_makes_a_tree),
        IN_FOLDER(very_many_different_names_are_refused),
        IN_FOLDER(very_long_different_names_are_refused),
        IN_FOLDER(a_name_of_very_many_segments_is_refused),
        IN_FOLDER(very_many_modules_are_refused),
        IN_FOLDER(elements_that_do_not_fit_64_bits_are_refused),
    };
    struct CMUnitTest real[CORPUS_N_MODELS];
    for (size_t i = 0; i < CORPUS_N_MODELS; i++)
        real[i] = (struct CMUnitTest){.name = corpus_models[i],
                                      .test_func = a_real_model_makes_a_tree,
                                      .initial_state = &corpus_models[i]};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(real, NULL, NULL);
}
