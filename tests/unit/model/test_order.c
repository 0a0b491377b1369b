/*
 * Model order: the same for every order of the input, with or without a usual prefix; the family's table
 * where there is one, and what the names say where there is none.
 */
#include "model/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "corpus.h"
#include "gen.h"
#include "model_folder.h"

/* The names of a model in order, one a line. */
static const char *names_of(const sw_model *model)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < model->n_params && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", sw_model_tensor(model, i)->name);
    assert_true(used < sizeof text);
    return text;
}

/* Write the lines of `names` as a list in a random order. */
static void write_shuffled(const char *names, const char *prefix, gen *g)
{
    const char *lines[128];
    char text[16384] = "";
    uint32_t n = 0;
    size_t used = 0;
    for (const char *at = names; *at != '\0'; at += strcspn(at, "\n") + 1)
        lines[n++] = at;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = gen_below(g, i);
        const char *kept = lines[k];
        lines[k] = lines[i - 1];
        lines[i - 1] = kept;
    }
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s F32 8x8\n", prefix,
                                 (int)strcspn(lines[i], "\n"), lines[i]);
    folder_tsv(text);
}

/* Whatever the order of the input, `names` is the order of the model. */
static void check_order(const char *names)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        gen g = {seed, seed * 0x2545f4914f6cdd1dU + 1};
        write_shuffled(names, "", &g);
        sw_model *model = folder_open("");
        if (strcmp(names_of(model), names) != 0)
            fail_msg("seed %d: the order is\n%s", (int)seed, names_of(model));
        sw_model_close(model);
    }
}

static const char llama_names[] = "model.embed_tokens.weight\n"
                                  "model.layers.0.self_attn.q_proj.weight\n"
                                  "model.layers.0.self_attn.q_proj.weight_scale_inv\n"
                                  "model.layers.0.self_attn.k_proj.weight\n"
                                  "model.layers.0.self_attn.v_proj.weight\n"
                                  "model.layers.0.self_attn.o_proj.weight\n"
                                  "model.layers.0.mlp.gate_proj.weight\n"
                                  "model.layers.0.mlp.up_proj.weight\n"
                                  "model.layers.0.mlp.down_proj.g_idx\n"
                                  "model.layers.0.mlp.down_proj.qweight\n"
                                  "model.layers.0.mlp.down_proj.scales\n"
                                  "model.layers.0.input_layernorm.weight\n"
                                  "model.layers.0.post_attention_layernorm.weight\n"
                                  "model.layers.0.odd.weight\n"
                                  "model.layers.2.self_attn.q_proj.weight\n"
                                  "model.layers.2.input_layernorm.weight\n"
                                  "model.layers.10.self_attn.q_proj.weight\n"
                                  "model.norm.weight\n"
                                  "extra.layers.0.weight\n"
                                  "extra.layers.1.weight\n"
                                  "another.weight\n"
                                  "lm_head.weight\n";

static void a_family_gives_the_order_of_its_table(void **state)
{
    (void)state;
    folder_json("config.json", "{'architectures': ['LlamaForCausalLM']}");
    check_order(llama_names);
}

static void the_order_is_the_same_under_another_prefix(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "language_model."};
    folder_json("config.json", "{'architectures': ['LlamaForCausalLM']}");
    gen g = {1, 1};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        char expected[4096] = "";
        size_t used = 0;
        for (const char *at = llama_names; *at != '\0'; at += strcspn(at, "\n") + 1)
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%.*s\n", prefixes[i],
                                     (int)strcspn(at, "\n"), at);
        write_shuffled(llama_names, prefixes[i], &g);
        sw_model *model = folder_open("");
        assert_string_equal(names_of(model), expected);
        sw_model_close(model);
    }
}

static void the_order_is_the_same_without_the_prefix(void **state)
{
    (void)state;
    folder_json("config.json", "{'architectures': ['LlamaForCausalLM']}");
    check_order(
        "embed_tokens.weight\nlayers.0.self_attn.q_proj.weight\nlayers.0.mlp.up_proj.weight\n"
        "layers.0.input_layernorm.weight\nlayers.1.self_attn.q_proj.weight\nnorm.weight\nlm_head.weight\n");
}

static void experts_follow_one_another_by_number(void **state)
{
    (void)state;
    folder_json("config.json", "{'architectures': ['MixtralForCausalLM']}");
    check_order("model.layers.0.self_attn.q_proj.weight\n"
                "model.layers.0.block_sparse_moe.gate.weight\n"
                "model.layers.0.block_sparse_moe.experts.0.w1.weight\n"
                "model.layers.0.block_sparse_moe.experts.0.w3.weight\n"
                "model.layers.0.block_sparse_moe.experts.0.w2.weight\n"
                "model.layers.0.block_sparse_moe.experts.2.w1.weight\n"
                "model.layers.0.block_sparse_moe.experts.2.w2.weight\n"
                "model.layers.0.block_sparse_moe.experts.10.w1.weight\n"
                "model.layers.1.self_attn.q_proj.weight\n"
                "model.layers.1.block_sparse_moe.experts.0.w1.weight\n");
}

static void without_a_family_the_names_tell(void **state)
{
    (void)state;
    check_order("wte.weight\n"
                "h.0.attn.weight\n"
                "h.0.mlp.experts.0.down.weight\n"
                "h.0.mlp.experts.0.up.weight\n"
                "h.0.mlp.experts.1.down.weight\n"
                "h.0.mlp.experts.1.up.weight\n"
                "h.0.mlp.gate.weight\n"
                "h.2.attn.weight\n"
                "h.10.attn.weight\n"
                "towers.0.attn.weight\n"
                "towers.1.attn.weight\n"
                "ln_f.weight\n"
                "odd\n"
                "lm_head.weight\n");
}

static void names_that_patterns_do_not_tell_apart_have_an_order_too(void **state)
{
    (void)state;
    check_order("a.0.b.0.c.0.x\n"
                "a.0.b.0.c.2.x\n"
                "a.0.b.0.c.10.x\n"
                "a.0.b.0.c.0.y\n"
                "a.0.b.0.c.10.y\n"
                "a.0.b.1.c.0.x\n"
                "a.1.b.0.c.0.x\n"
                "a.#.weight\n"
                "a.00.weight\n"
                "a.01.weight\n"
                "b.1234567.weight\n"
                "b.1234568.weight\n");
}

static void orders_of_real_models_do_not_depend_on_the_order_of_names(void **state)
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
    /* Build it again from the same list, backwards. */
    size_t n = model->list.n_tensors;
    uint32_t *expected = calloc(n, sizeof *expected);
    assert_non_null(expected);
    for (size_t i = 0; i < n; i++)
        expected[i] = model->params[i].tensor;
    sw_model again = *model;
    sw_tensor_entry *backwards = calloc(n, sizeof *backwards);
    assert_non_null(backwards);
    for (size_t i = 0; i < n; i++)
        backwards[i] = model->list.tensors[n - 1 - i];
    again.list.tensors = backwards;
    again.params = NULL;
    again.modules = NULL;
    again.patterns = NULL;
    again.n_modules = 0;
    again.n_patterns = 0;
    again.elements = 0;
    again.fingerprint = 0;
    assert_int_equal(sw_model_build(&again, &err), SW_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(again.params[i].tensor, n - 1 - expected[i]);
    assert_int_equal(again.fingerprint, model->fingerprint);
    assert_int_equal(again.elements, model->elements);
    assert_int_equal(again.n_modules, model->n_modules);
    sw_free(again.params);
    sw_free(again.modules);
    sw_free(again.patterns);
    free(backwards);
    free(expected);
    sw_model_close(model);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_family_gives_the_order_of_its_table),
        IN_FOLDER(the_order_is_the_same_under_another_prefix),
        IN_FOLDER(the_order_is_the_same_without_the_prefix),
        IN_FOLDER(experts_follow_one_another_by_number),
        IN_FOLDER(without_a_family_the_names_tell),
        IN_FOLDER(names_that_patterns_do_not_tell_apart_have_an_order_too),
    };
    struct CMUnitTest real[CORPUS_N_MODELS];
    for (size_t i = 0; i < CORPUS_N_MODELS; i++)
        real[i] = (struct CMUnitTest){.name = corpus_models[i],
                                      .test_func = orders_of_real_models_do_not_depend_on_the_order_of_names,
                                      .initial_state = &corpus_models[i]};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(real, NULL, NULL);
}
