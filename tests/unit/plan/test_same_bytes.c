/*
 * The same model and mesh give the same plan, byte for byte: from run to run, from any order of the names in
 * the file, from several threads at once. With models of the corpus ($SW_SHARED/corpus) where it is there,
 * and always with a small one of our own.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "shardwright/shardwright.h"
#include "shared.h"

static const char sampled_mesh[] = "dp=2,tp=2";

static char *json_of(const sw_model *model)
{
    sw_error err = {0};
    sw_plan *plan = NULL;
    char *text = NULL;
    size_t length = 0;
    sw_mesh *mesh = NULL;

    if (sw_mesh_create(&mesh, sampled_mesh, 0, &err) != SW_OK ||
        sw_plan_create(&plan, model, mesh, NULL, &err) != SW_OK ||
        sw_plan_json(plan, &text, &length, &err) != SW_OK || strlen(text) != length)
        fail_msg("%s", err.what);
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    return text;
}

/* Where two texts part, so that a difference can be found. */
static void check_same(const char *what, const char *a, const char *b)
{
    size_t at = 0;

    while (a[at] != '\0' && a[at] == b[at])
        at++;
    if (a[at] != b[at])
        fail_msg("%s: plans differ from byte %zu: \"%.60s\" and \"%.60s\"", what, at, a + at, b + at);
}

/* Models with experts, fused weights, tied heads, towers; the last stands in this project. */
static const char *const sampled[] = {"gpt2",        "phi-3.5-mini", "dbrx",       "gpt-oss-20b",
                                      "olmoe-1b-7b", "llava-1.5-7b", "jamba-v0.1", NULL};

/* Path of a sample; false when it is not there. */
static bool sample_path(char *out, size_t capacity, const char *name)
{
    char at[256];

    if (name == NULL) {
        (void)snprintf(out, capacity, "%s/tests/data/oracle/tiny", SW_SOURCE_DIR);
    } else {
        (void)snprintf(at, sizeof at, "corpus/%s", name);
        shared_path(out, capacity, at);
    }
    return sw_file_kind_of(out) == SW_FILE_FOLDER;
}

static sw_model *open_path(const char *path)
{
    sw_model *model = NULL;
    sw_error err = {0};

    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s: %s", path, err.what);
    return model;
}

static void two_runs_give_the_same_bytes(void **state)
{
    char path[512];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(sampled); i++) {
        if (!sample_path(path, sizeof path, sampled[i]))
            continue;
        char *texts[2];
        for (int run = 0; run < 2; run++) {
            sw_model *model = open_path(path);
            texts[run] = json_of(model);
            sw_model_close(model);
        }
        check_same(path, texts[0], texts[1]);
        sw_text_free(texts[0]);
        sw_text_free(texts[1]);
    }
}

enum { N_THREADS = 4 };

typedef struct planning {
    const sw_model *model;
    char *text;
} planning;

static void *plan_in_thread(void *argument)
{
    planning *p = argument;
    sw_error err = {0};
    sw_plan *plan = NULL;
    sw_mesh *mesh = NULL;
    size_t length;

    /* no assertions here: cmocka's jump out of a test only from its own thread */
    if (sw_mesh_create(&mesh, sampled_mesh, 0, &err) == SW_OK &&
        sw_plan_create(&plan, p->model, mesh, NULL, &err) == SW_OK &&
        sw_plan_json(plan, &p->text, &length, &err) != SW_OK)
        p->text = NULL;
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    return NULL;
}

static void several_threads_give_the_same_bytes_from_one_model(void **state)
{
    char path[512];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(sampled); i++) {
        pthread_t threads[N_THREADS];
        planning plans[N_THREADS];
        if (!sample_path(path, sizeof path, sampled[i]))
            continue;
        sw_model *model = open_path(path);
        char *alone = json_of(model);
        for (int t = 0; t < N_THREADS; t++) {
            plans[t] = (planning){.model = model};
            assert_int_equal(pthread_create(&threads[t], NULL, plan_in_thread, &plans[t]), 0);
        }
        for (int t = 0; t < N_THREADS; t++)
            assert_int_equal(pthread_join(threads[t], NULL), 0);
        for (int t = 0; t < N_THREADS; t++) {
            assert_non_null(plans[t].text);
            check_same(path, alone, plans[t].text);
            sw_text_free(plans[t].text);
        }
        sw_text_free(alone);
        sw_model_close(model);
    }
}

/* ---- the order of names ---- */

/* The lines of a text in another order; the seed is fixed. */
static void shuffle(sw_file_map map, sw_buffer *out)
{
    const char **lines = calloc(map.n_bytes + 1, sizeof *lines);
    const char *text = (const char *)map.bytes;
    size_t n = 0;
    uint32_t random = 12345;

    assert_non_null(lines);
    for (size_t at = 0; at < map.n_bytes; at++) {
        if (at == 0 || text[at - 1] == '\n')
            lines[n++] = text + at;
    }
    for (size_t i = n; i > 1; i--) {
        random = random * 1664525U + 1013904223U;
        size_t j = (random >> 8) % i;
        const char *kept = lines[i - 1];
        lines[i - 1] = lines[j];
        lines[j] = kept;
    }
    for (size_t i = 0; i < n; i++) {
        const char *end = memchr(lines[i], '\n', map.n_bytes - (size_t)(lines[i] - text));
        sw_buffer_append(out, lines[i],
                         end == NULL ? map.n_bytes - (size_t)(lines[i] - text) : (size_t)(end - lines[i]));
        sw_buffer_putc(out, '\n');
    }
    free(lines);
}

static void copy_model(const char *from, const char *to, bool shuffled)
{
    static const char *const files[] = {"config.json", "params.tsv"};
    sw_error err = {0};

    for (size_t i = 0; i < SW_COUNT(files); i++) {
        char path[600];
        sw_file_map map = {0};
        sw_buffer text = {0};
        (void)snprintf(path, sizeof path, "%s/%s", from, files[i]);
        assert_int_equal(sw_file_map_open(&map, path, 1U << 30, &err), SW_OK);
        if (i == 1 && shuffled)
            shuffle(map, &text);
        else
            sw_buffer_append(&text, map.bytes, map.n_bytes);
        (void)snprintf(path, sizeof path, "%s/%s", to, files[i]);
        assert_int_equal(sw_file_write_atomic(path, text.bytes, text.length, &err), SW_OK);
        sw_buffer_clear(&text);
        sw_file_map_close(&map);
    }
}

static void remove_model(const char *folder)
{
    char path[600];

    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/params.tsv", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void the_order_of_names_does_not_matter(void **state)
{
    char path[512];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(sampled); i++) {
        char folder[] = "/tmp/sw-corpus-XXXXXX";
        if (!sample_path(path, sizeof path, sampled[i]))
            continue;
        assert_non_null(mkdtemp(folder));
        copy_model(path, folder, true);
        sw_model *model = open_path(path);
        sw_model *other = open_path(folder);
        char *text = json_of(model);
        char *other_text = json_of(other);
        remove_model(folder);
        check_same(path, text, other_text);
        sw_text_free(text);
        sw_text_free(other_text);
        sw_model_close(model);
        sw_model_close(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_runs_give_the_same_bytes),
        cmocka_unit_test(several_threads_give_the_same_bytes_from_one_model),
        cmocka_unit_test(the_order_of_names_does_not_matter),
    };

    return cmocka_run_group_tests_name("plan/same_bytes", tests, NULL, NULL);
}
