/* A real checkpoint ($SW_SHARED/weights): generated, evaluated and trained as its golden file says. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "scratch.h"
#include "shared.h"
#include "train/eval.h"
#include "train/generate.h"
#include "train/load.h"
#include "train/loop.h"

enum { MOST_IDS = 600 };

/* What golden.json says. */
typedef struct golden {
    int32_t ids[MOST_IDS];
    size_t n_ids;
    double nll;
} golden;

static golden read_golden(const char *folder)
{
    golden g = {.n_ids = 0};
    char name[256];
    char path[1024];

    (void)snprintf(name, sizeof name, "weights/%s/golden.json", folder);
    need_shared(name);
    shared_path(path, sizeof path, name);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    const json_t *ids = json_object_get(root, "ids");
    g.n_ids = json_array_size(ids);
    assert_in_range(g.n_ids, 2, MOST_IDS);
    for (size_t i = 0; i < g.n_ids; i++)
        g.ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    g.nll = json_real_value(json_object_get(root, "mean_nll_of_ids"));
    json_decref(root);
    return g;
}

/* A net of a folder, with what it needs. */
typedef struct bench {
    sw_kernel *kernel;
    sw_step *step;
    sw_weights weights;
    sw_net *net;
} bench;

static void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

static bench bench_of(const char *folder, sw_dtype dtype)
{
    bench b = {.kernel = NULL};
    sw_error err = {0};
    char name[256];
    char path[1024];
    const sw_load_options options = {.dtype = dtype};

    (void)snprintf(name, sizeof name, "weights/%s", folder);
    need_shared(name);
    shared_path(path, sizeof path, name);
    must(sw_kernel_create(&b.kernel, 2, SW_KERNEL_BEST, &err), &err);
    must(sw_step_create(&b.step, b.kernel, &err), &err);
    must(sw_weights_open(&b.weights, path, &err), &err);
    must(sw_load(&b.net, &b.weights, &options, b.kernel, &err), &err);
    return b;
}

static void drop(bench *b)
{
    sw_net_destroy(b->net);
    sw_weights_close(&b->weights);
    sw_step_destroy(b->step);
    sw_kernel_destroy(b->kernel);
}

static void generates(const char *folder, sw_dtype dtype)
{
    const golden g = read_golden(folder);
    const sw_generate_options options = {SW_SAMPLING_GREEDY, g.n_ids, -1, NULL, NULL};
    bench b = bench_of(folder, dtype);
    int32_t out[MOST_IDS + 1] = {1}; /* BOS */
    uint64_t n_out = 0;
    sw_error err = {0};

    must(sw_generate(b.net, b.step, out, 1, &options, &n_out, &err), &err);
    assert_int_equal(n_out, g.n_ids);
    for (size_t i = 0; i < g.n_ids; i++)
        assert_int_equal(out[i + 1], g.ids[i]);
    drop(&b);
}

static void its_text_is_generated_token_for_token(void **state)
{
    (void)state;
    generates("stories260K-hf", SW_DTYPE_F32);
    generates("stories260K-hf", SW_DTYPE_F64);
    generates("stories260K-untied", SW_DTYPE_F32);
    generates("stories260K-qwen2", SW_DTYPE_F32);
    generates("stories260K-hf-bf16-3shards", SW_DTYPE_F32);
    generates("stories260K-hf-bf16-3shards", SW_DTYPE_BF16);
}

/* The golden text as a file of tokens, BOS first. */
static void write_text(const golden *g)
{
    uint16_t ids[MOST_IDS + 1] = {1};

    for (size_t i = 0; i < g->n_ids; i++)
        ids[i + 1] = (uint16_t)g->ids[i];
    scratch_bytes("text.bin", ids, (g->n_ids + 1) * sizeof ids[0]);
}

static double nll_of(const char *folder, sw_dtype dtype, uint64_t seq_len)
{
    const sw_eval_options options = {.seq_len = seq_len};
    bench b = bench_of(folder, dtype);
    sw_tokens tokens = {0};
    sw_evaluation found = {0};
    sw_error err = {0};

    must(sw_tokens_open(&tokens, scratch("text.bin"), SW_TOKENS_GUESSED, 512, &err), &err);
    must(sw_evaluate(&found, b.net, b.step, &tokens, &options, &err), &err);
    assert_int_equal(found.n_predicted, tokens.n_tokens - 1);
    assert_true(fabs(found.perplexity - exp(found.loss)) < 1e-12 * found.perplexity);
    sw_tokens_close(&tokens);
    drop(&b);
    return found.loss;
}

static void its_perplexity_is_the_recorded_one(void **state)
{
    static const char *const folders[] = {"stories260K-hf", "stories260K-untied", "stories260K-qwen2",
                                          "stories260K-hf-bf16-3shards"};

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const golden g = read_golden(folders[i]);
        write_text(&g);
        assert_true(fabs(nll_of(folders[i], SW_DTYPE_F32, 512) - g.nll) < 1e-5);
    }
}

/* Predicted memory of a step over what it took. */
static double memory_ratio(const golden *g, const sw_train_options *options)
{
    const sw_load_options load = {.dtype = SW_DTYPE_F32, .trains = true};
    bench b = bench_of("stories260K-hf", SW_DTYPE_F32);
    sw_trainer trainer = {0};
    sw_train_memory predicted;
    sw_train_memory found;
    sw_curve_point point = {0};
    uint16_t ids[1024];
    sw_tokens tokens = {0};
    sw_error err = {0};

    for (size_t i = 0; i < 1024; i++)
        ids[i] = (uint16_t)g->ids[i % g->n_ids];
    scratch_bytes("long.bin", ids, sizeof ids);
    must(sw_tokens_open(&tokens, scratch("long.bin"), SW_TOKENS_U16, 512, &err), &err);
    sw_net_destroy(b.net);
    must(sw_load(&b.net, &b.weights, &load, b.kernel, &err), &err);
    must(sw_trainer_create(&trainer, b.net, b.kernel, &tokens, "long.bin", options, &err), &err);
    must(sw_trainer_predict(&trainer, &predicted, &err), &err);
    must(sw_trainer_step(&trainer, &point, &err), &err);
    sw_trainer_memory(&trainer, &found);
    sw_trainer_clear(&trainer);
    sw_tokens_close(&tokens);
    drop(&b);
    return (double)sw_train_memory_sum(&predicted) / (double)sw_train_memory_sum(&found);
}

/* With sequences that are longer than what the prediction looks at. */
static void the_memory_of_a_long_step_is_what_was_predicted(void **state)
{
    static const uint32_t shapes[][2] = {
        {1, 500},
        {3, 300},
        {2, 129}
    };
    const golden g = read_golden("stories260K-hf");

    (void)state;
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        const sw_train_options options = {.batch = shapes[i / 2][0],
                                          .accumulate = 1,
                                          .seq_len = shapes[i / 2][1],
                                          .recomputes = i % 2 == 1,
                                          .optimizer = SW_OPTIMIZER_INIT};
        double ratio = memory_ratio(&g, &options);
        if (ratio < 0.95 || ratio > 1.05)
            fail_msg("%u x %u: predicted %g of it", options.batch, options.seq_len, ratio);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(its_text_is_generated_token_for_token),
        TEST(its_perplexity_is_the_recorded_one),
        TEST(the_memory_of_a_long_step_is_what_was_predicted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
