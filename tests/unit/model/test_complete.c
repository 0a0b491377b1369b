/*
 * Shapes of names that come without: for every model of the corpus an index has the shapes of its checkpoint
 * as far as its config tells them, whatever the prefix of its names.
 */
#include "model/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "corpus.h"

/* The names of `real`, each with a prefix, or without its first segment where `cut` says so; no shapes. */
static void take_names(sw_tensor_list *out, const sw_tensor_list *real, const char *prefix, const char *cut)
{
    char name[1024];
    assert_int_equal(sw_tensor_list_init(out, (size_t)1 << 30, NULL), SW_OK);
    for (size_t i = 0; i < real->n_tensors; i++) {
        const char *old = real->tensors[i].name;
        if (strncmp(old, cut, strlen(cut)) == 0)
            old += strlen(cut);
        int n = snprintf(name, sizeof name, "%s%s", prefix, old);
        sw_error err = {0};
        if (sw_tensor_list_add(out, name, (size_t)n, SW_DTYPE_UNKNOWN, NULL, 0, 0, &err) != SW_OK)
            fail_msg("%s", err.what);
    }
}

static bool is_same(const sw_shape *a, const sw_shape *b)
{
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0;
}

/* No config says in which dtype a buffer is saved. */
static bool is_buffer(const sw_family *family, const char *name)
{
    char pattern[512];
    size_t length = corpus_pattern(name, pattern, sizeof pattern);
    const sw_family_row *row = sw_family_match(family, pattern, length, NULL);
    return row != NULL && (row->flags & SW_ROW_BUFFER) != 0;
}

/* Entries without a shape; a shape that is there must be the real one. */
static size_t count_unknown(const char *model, const sw_family *family, const sw_tensor_list *list,
                            const sw_tensor_list *real)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n_tensors; i++) {
        const sw_tensor_entry *made = &list->tensors[i];
        const sw_tensor_entry *want = &real->tensors[i];
        n += made->shape == NULL;
        if (made->shape == NULL)
            continue;
        bool is_right = made->dtype == want->dtype || is_buffer(family, made->name);
        if (!is_same(made->shape, want->shape) || !is_right)
            fail_msg("%s: %s is completed as %s of %u dims", model, made->name, sw_dtype_name(made->dtype),
                     made->shape->n_dims);
    }
    return n;
}

static void an_index_of_a_real_model_gets_its_shapes(void **state)
{
    const char *model = *(const char **)*state;
    sw_config config = {0};
    sw_tensor_list real = {0};
    sw_tensor_list list = {0};
    sw_error why = {0};
    corpus_config(&config, model);
    corpus_params(&real, model);
    take_names(&list, &real, "", "");
    assert_int_equal(sw_complete_shapes(&list, config.family, &config, &why, NULL), SW_OK);
    if (why.status != SW_OK)
        fail_msg("%s: %s", model, why.what);
    assert_int_equal(count_unknown(model, config.family, &list, &real), 0);
    sw_tensor_list_clear(&list);
    sw_tensor_list_clear(&real);
    sw_config_clear(&config);
}

static void check_prefix(const char *prefix, const char *cut)
{
    static const char model[] = "deepseek-v3"; /* block scales in it, which no table has */
    sw_config config = {0};
    sw_tensor_list real = {0};
    sw_tensor_list list = {0};
    sw_error why = {0};
    corpus_config(&config, model);
    corpus_params(&real, model);
    take_names(&list, &real, prefix, cut);
    assert_int_equal(sw_complete_shapes(&list, config.family, &config, &why, NULL), SW_OK);
    assert_int_equal(count_unknown(model, config.family, &list, &real), 0);
    sw_tensor_list_clear(&list);
    sw_tensor_list_clear(&real);
    sw_config_clear(&config);
}

static void names_under_another_prefix_get_the_same_shapes(void **state)
{
    (void)state;
    check_prefix("language_model.", "");
    check_prefix("", "model.");
    check_prefix("model.language_model.", "model.");
}

/* ---- small ones ---- */

static const char gpt2[] =
    "{\"architectures\": [\"GPT2LMHeadModel\"], \"n_embd\": 8, \"n_layer\": 2, \"n_head\": 2,"
    " \"vocab_size\": 5, \"n_positions\": 6}";

static void open_config(sw_config *out, const char *json)
{
    sw_error err = {0};
    if (sw_config_read(out, sw_file_map_of(json, strlen(json)), "config.json", &err) != SW_OK)
        fail_msg("%s", err.what);
}

static void add(sw_tensor_list *list, const char *name)
{
    assert_int_equal(sw_tensor_list_add(list, name, strlen(name), SW_DTYPE_UNKNOWN, NULL, 0, 0, NULL), SW_OK);
}

static void a_buffer_that_is_not_generated_has_a_row_that_tells(void **state)
{
    (void)state;
    sw_config config = {0};
    sw_tensor_list list = {0};
    sw_error why = {0};
    open_config(&config, gpt2);
    assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
    add(&list, "h.1.attn.bias");
    add(&list, "lm_head.weight"); /* tied, and saved all the same */
    add(&list, "h.0.odd.weight");
    add(&list, "transformer.wte.weight");
    assert_int_equal(sw_complete_shapes(&list, config.family, &config, &why, NULL), SW_OK);
    assert_int_equal(list.tensors[0].shape->n_dims, 4);
    assert_int_equal(list.tensors[0].shape->dims[2], 6);
    assert_int_equal(list.tensors[1].shape->dims[0], 5);
    assert_null(list.tensors[2].shape);
    assert_int_equal(list.tensors[2].dtype, SW_DTYPE_UNKNOWN);
    assert_int_equal(list.tensors[3].shape->dims[1], 8);
    sw_tensor_list_clear(&list);
    sw_config_clear(&config);
}

static void shapes_that_are_there_are_kept(void **state)
{
    (void)state;
    const uint64_t dims[] = {3, 3};
    const sw_shape *shape = NULL;
    sw_config config = {0};
    sw_tensor_list list = {0};
    sw_error why = {0};
    open_config(&config, gpt2);
    assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_shape(&list, dims, 2, &shape, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add(&list, "wte.weight", 10, SW_DTYPE_F64, shape, 0, 0, NULL), SW_OK);
    assert_int_equal(sw_complete_shapes(&list, config.family, &config, &why, NULL), SW_OK);
    assert_ptr_equal(list.tensors[0].shape, shape);
    assert_int_equal(list.tensors[0].dtype, SW_DTYPE_F64);
    sw_tensor_list_clear(&list);
    sw_config_clear(&config);
}

static void nothing_is_known_when_the_config_does_not_tell(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "{\"architectures\": [\"LlamaForCausalLM\"]}",
        "{\"architectures\": [\"NewForCausalLM\"], \"hidden_size\": 16}",
    };
    static const char *const reasons[] = {"model.embed_tokens.weight", "no family is known"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        sw_config config = {0};
        sw_tensor_list list = {0};
        sw_error why = {0};
        open_config(&config, configs[i]);
        assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
        add(&list, "model.norm.weight");
        assert_int_equal(sw_complete_shapes(&list, config.family, &config, &why, NULL), SW_OK);
        assert_null(list.tensors[0].shape);
        assert_int_equal(why.status, SW_E_FORMAT);
        if (strstr(why.what, reasons[i]) == NULL)
            fail_msg("%s", why.what);
        sw_tensor_list_clear(&list);
        sw_config_clear(&config);
    }
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    sw_config config = {0};
    bool done = false;
    uint64_t n_failed = 0;
    open_config(&config, gpt2);
    for (uint64_t n = 1; !done; n++) {
        sw_tensor_list list = {0};
        sw_error err = {0};
        sw_error why = {0};
        assert_int_equal(sw_tensor_list_init(&list, 1 << 20, NULL), SW_OK);
        add(&list, "transformer.wte.weight");
        add(&list, "h.1.attn.bias");
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_complete_shapes(&list, config.family, &config, &why, &err);
        sw_alloc_fail_at(0);
        done = status == SW_OK;
        n_failed += !done;
        if (!done)
            assert_int_equal(status, SW_E_NO_MEMORY);
        assert_true(sw_alloc_live() >= live && sw_alloc_live() <= live + 3); /* the list's own shapes */
        sw_tensor_list_clear(&list);
    }
    assert_true(n_failed > 5);
    sw_config_clear(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_under_another_prefix_get_the_same_shapes),
        cmocka_unit_test(a_buffer_that_is_not_generated_has_a_row_that_tells),
        cmocka_unit_test(shapes_that_are_there_are_kept),
        cmocka_unit_test(nothing_is_known_when_the_config_does_not_tell),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing),
    };
    struct CMUnitTest real[CORPUS_N_MODELS];
    for (size_t i = 0; i < CORPUS_N_MODELS; i++)
        real[i] = (struct CMUnitTest){.name = corpus_models[i],
                                      .test_func = an_index_of_a_real_model_gets_its_shapes,
                                      .initial_state = &corpus_models[i]};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(real, NULL, NULL);
}
