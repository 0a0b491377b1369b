/* Loading, evaluating and generating with a tiny model: what is refused, what does not matter, what is the
 * same. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "shardwright/checkpoint.h"
#include "train/eval.h"
#include "train/generate.h"
#include "train_case.h"

typedef struct bench {
    sw_kernel *kernel;
    sw_step *step;
    sw_weights weights;
    sw_net *net;
    sw_tokens tokens;
} bench;

static bench bench_of(sw_dtype dtype)
{
    const sw_load_options options = {.dtype = dtype};
    bench b = {.kernel = NULL};
    sw_error err = {0};

    train_must(sw_kernel_create(&b.kernel, 2, SW_KERNEL_BEST, &err), &err);
    train_must(sw_step_create(&b.step, b.kernel, &err), &err);
    train_must(sw_weights_open(&b.weights, scratch("model"), &err), &err);
    train_must(sw_load(&b.net, &b.weights, &options, b.kernel, &err), &err);
    train_must(sw_tokens_open(&b.tokens, scratch("tokens.bin"), SW_TOKENS_U16, TRAIN_VOCAB, &err), &err);
    return b;
}

static void drop(bench *b)
{
    sw_tokens_close(&b->tokens);
    sw_net_destroy(b->net);
    sw_weights_close(&b->weights);
    sw_step_destroy(b->step);
    sw_kernel_destroy(b->kernel);
}

/* ---- loading ---- */

static void expect_no_load(sw_status status, const char *what)
{
    const sw_load_options options = {.dtype = SW_DTYPE_F32};
    sw_kernel *kernel = NULL;
    sw_weights weights = {0};
    sw_net *net = NULL;
    sw_error err = {0};

    train_must(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err), &err);
    sw_status found = sw_weights_open(&weights, scratch("model"), &err);
    if (found == SW_OK)
        found = sw_load(&net, &weights, &options, kernel, &err);
    assert_int_equal(found, status);
    if (strstr(err.what, what) == NULL)
        fail_msg("%s", err.what);
    assert_null(net);
    sw_weights_close(&weights);
    sw_kernel_destroy(kernel);
}

static void a_folder_without_weights_is_refused(void **state)
{
    (void)state;
    scratch_remove("model/model.safetensors");
    expect_no_load(SW_E_FORMAT, "names and shapes only, without data");
}

/* "model" becomes a folder of the shards of two ranks. */
static void shard_model(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_error err = {0};

    options.no_sync = true;
    train_must(sw_model_open(&model, scratch("model"), &err), &err);
    train_must(sw_mesh_create(&mesh, "tp=2", 0, &err), &err);
    train_must(sw_plan_create(&plan, model, mesh, NULL, &err), &err);
    train_must(sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, &err), &err);
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
    scratch_remove("model");
    assert_int_equal(rename(scratch("sharded"), scratch("model")), 0);
}

/* The sum over all parameters, each element weighed by its place. */
static double sum_of(const bench *b)
{
    double sum = 0;

    for (uint32_t i = 0; i < b->net->n_parameters; i++) {
        const float *values = sw_tensor_data(b->net->parameters[i].tensor);
        for (uint64_t e = 0; e < sw_parameter_elems(&b->net->parameters[i]); e++)
            sum += (double)values[e] * (double)(1 + (e + i) % 1009);
    }
    return sum;
}

static void a_sharded_folder_is_the_net_of_the_folder_that_it_was_made_of(void **state)
{
    bench b = bench_of(SW_DTYPE_F32);
    double wanted = sum_of(&b);

    (void)state;
    drop(&b);
    shard_model();
    b = bench_of(SW_DTYPE_F32);
    assert_true(sum_of(&b) == wanted);
    drop(&b);
}

static void a_sharded_folder_that_is_damaged_or_lacks_a_file_is_refused_by_it(void **state)
{
    (void)state;
    shard_model();
    sw_buffer file = scratch_read("model/dense-pp0-tp1.safetensors");
    uint64_t header = 0;
    memcpy(&header, file.bytes, sizeof header);
    file.bytes[sizeof header + header] ^= 1; /* of the first tensor, which is cut */
    scratch_bytes("model/dense-pp0-tp1.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    expect_no_load(SW_E_FORMAT, "dense-pp0-tp1.safetensors: tensor '");
    scratch_remove("model/dense-pp0-tp1.safetensors");
    expect_no_load(SW_E_FORMAT, "dense-pp0-tp1.safetensors");
}

static void every_tensor_that_does_not_fit_is_reported(void **state)
{
    sw_load_options options = {.dtype = SW_DTYPE_F32};
    sw_kernel *kernel = NULL;
    sw_weights weights = {0};
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    scratch_edit("model/config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    scratch_edit("model/model.safetensors", "\"F32\"", "\"I32\"");
    train_must(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err), &err);
    train_must(sw_weights_open(&weights, scratch("model"), &err), &err);
    train_must(sw_report_create(&options.report, &err), &err);
    assert_int_equal(sw_load(&net, &weights, &options, kernel, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "0 missing, 9 extra, 1 misshapen"));
    assert_int_equal(sw_report_count(options.report), 10);
    for (size_t i = 0; i < 10; i++)
        assert_string_equal(sw_report_finding(options.report, i)->code, "tensor_unfit");
    assert_null(net);
    sw_report_destroy(options.report);
    sw_weights_close(&weights);
    sw_kernel_destroy(kernel);
}

static void a_file_that_is_cut_while_it_is_read_is_an_error(void **state)
{
    const sw_load_options options = {.dtype = SW_DTYPE_F32};
    sw_weights weights = {0};
    sw_net *net = NULL;
    sw_kernel *kernel = NULL;
    sw_error err = {0};

    (void)state;
    train_must(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err), &err);
    train_must(sw_weights_open(&weights, scratch("model"), &err), &err);
    assert_int_equal(truncate(scratch("model/model.safetensors"), 100), 0);
    assert_int_equal(sw_load(&net, &weights, &options, kernel, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "model.safetensors: has 100 bytes now, it had "));
    sw_weights_close(&weights);
    sw_kernel_destroy(kernel);
}

/* Is it the file that a parameter lies in? */
static bool is_in_file(const bench *b, const char *fqn)
{
    sw_weight weight = {0};
    bool is_there = false;
    sw_error err = {0};

    train_must(sw_weights_find(&b->weights, fqn, &weight, &is_there, &err), &err);
    assert_true(is_there);
    return weight.bytes == sw_tensor_data(sw_net_parameter(b->net, fqn)->tensor);
}

static void weights_are_used_where_they_are_unless_they_must_be_converted(void **state)
{
    bench b = bench_of(SW_DTYPE_F32);

    (void)state;
    assert_true(is_in_file(&b, "model.layers.0.mlp.up_proj.weight"));
    drop(&b);
    b = bench_of(SW_DTYPE_F64);
    assert_false(is_in_file(&b, "model.layers.0.mlp.up_proj.weight"));
    drop(&b);
}

/* Every type that is read, as F32 and as F64; at an address that is aligned for none of them. */
static void floats_of_all_kinds_are_read(void **state)
{
    static const double values[] = {1.5, -0.25, 0.0, 96.0};
    static const uint16_t bf16[] = {0x3fc0, 0xbe80, 0, 0x42c0};
    static const uint16_t f16[] = {0x3e00, 0xb400, 0, 0x5600};
    static const float f32[] = {1.5F, -0.25F, 0.0F, 96.0F};
    const struct {
        sw_dtype dtype;
        const void *bytes;
        size_t n_bytes;
    } cases[] = {
        {SW_DTYPE_BF16, bf16,   sizeof bf16  },
        {SW_DTYPE_F16,  f16,    sizeof f16   },
        {SW_DTYPE_F32,  f32,    sizeof f32   },
        {SW_DTYPE_F64,  values, sizeof values}
    };
    sw_kernel *kernel = NULL;
    uint8_t room[64];

    (void)state;
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL), SW_OK);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const sw_weight weight = {"w", cases[c].dtype, "", 4, room + 1};
        float as_f32[4];
        double as_f64[4];
        memcpy(room + 1, cases[c].bytes, cases[c].n_bytes);
        assert_true(sw_weight_is_readable(weight.dtype, SW_DTYPE_F32));
        sw_weight_read(&weight, kernel, SW_DTYPE_F32, as_f32);
        sw_weight_read(&weight, kernel, SW_DTYPE_F64, as_f64);
        for (int i = 0; i < 4; i++)
            assert_true((double)as_f32[i] == values[i] && as_f64[i] == values[i]);
    }
    assert_false(sw_weight_is_readable(SW_DTYPE_I8, SW_DTYPE_F32));
    assert_false(sw_weight_is_readable(SW_DTYPE_F16, SW_DTYPE_BF16));
    assert_true(sw_weight_is_readable(SW_DTYPE_F16, SW_DTYPE_F16));
    sw_kernel_destroy(kernel);
}

static void lack_of_memory_is_said_wherever_it_comes(void **state)
{
    const sw_load_options options = {.dtype = SW_DTYPE_F32, .trains = true};
    sw_kernel *kernel = NULL;
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL), SW_OK);
    int64_t live = sw_alloc_live();
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_weights weights = {0};
        sw_net *net = NULL;
        sw_alloc_fail_at(n);
        status = sw_weights_open(&weights, scratch("model"), NULL);
        if (status == SW_OK)
            status = sw_load(&net, &weights, &options, kernel, NULL);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        sw_net_destroy(net);
        sw_weights_close(&weights);
        assert_int_equal(sw_alloc_live(), live);
    }
    sw_kernel_destroy(kernel);
}

/* ---- evaluating ---- */

/* The loss of the first n tokens, each sequence in a pass of its own. */
static double loss_one_by_one(const bench *b, uint64_t n, uint64_t seq_len)
{
    double sum = 0;

    for (uint64_t first = 0; first + 1 < n; first += seq_len) {
        sw_tokens part = b->tokens;
        sw_evaluation found = {0};
        sw_error err = {0};
        const sw_eval_options options = {.seq_len = seq_len};
        part.first += first * sizeof(uint16_t);
        part.n_tokens = n - first < seq_len + 1 ? n - first : seq_len + 1;
        train_must(sw_evaluate(&found, b->net, b->step, &part, &options, &err), &err);
        assert_int_equal(found.n_sequences, 1);
        sum += found.loss * (double)found.n_predicted;
    }
    return sum / (double)(n - 1);
}

static void sequences_together_have_the_loss_that_they_have_alone(void **state)
{
    static const uint64_t lengths[] = {1, 7, 16, 64};
    bench b = bench_of(SW_DTYPE_F64);

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const sw_eval_options options = {.seq_len = lengths[i]};
        sw_evaluation found = {0};
        sw_error err = {0};
        train_must(sw_evaluate(&found, b.net, b.step, &b.tokens, &options, &err), &err);
        assert_int_equal(found.n_predicted, TRAIN_TOKENS - 1);
        assert_int_equal(found.n_sequences, (TRAIN_TOKENS - 2) / lengths[i] + 1);
        double alone = loss_one_by_one(&b, TRAIN_TOKENS, lengths[i]);
        assert_true(fabs(found.loss - alone) < 1e-12 * alone);
        assert_true(fabs(found.perplexity - exp(found.loss)) < 1e-12 * found.perplexity);
    }
    drop(&b);
}

static void a_loss_does_not_depend_on_how_it_is_cut(void **state)
{
    static const uint64_t cuts[][2] = {
        {1,    0          },
        {64,   1          },
        {128,  37 * 2 * 5 },
        {1000, 37 * 6 * 64}
    };
    const sw_eval_options whole = {.seq_len = 64};
    bench b = bench_of(SW_DTYPE_F64);
    sw_evaluation expected = {0};
    sw_error err = {0};

    (void)state;
    train_must(sw_evaluate(&expected, b.net, b.step, &b.tokens, &whole, &err), &err);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const sw_eval_options options = {.seq_len = 64, .pass_tokens = cuts[i][0], .most_logits = cuts[i][1]};
        sw_evaluation found = {0};
        train_must(sw_evaluate(&found, b.net, b.step, &b.tokens, &options, &err), &err);
        assert_true(fabs(found.loss - expected.loss) < 1e-12 * expected.loss);
    }
    drop(&b);
}

static void one_token_predicts_nothing(void **state)
{
    const sw_eval_options options = {.seq_len = 4};
    bench b = bench_of(SW_DTYPE_F32);
    sw_evaluation found = {0};
    sw_error err = {0};

    (void)state;
    b.tokens.n_tokens = 1;
    assert_int_equal(sw_evaluate(&found, b.net, b.step, &b.tokens, &options, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "one token alone predicts nothing");
    drop(&b);
}

static void a_loss_that_is_no_number_is_a_failure(void **state)
{
    const sw_eval_options options = {.seq_len = 4};
    bench b = bench_of(SW_DTYPE_F64); /* converted, so not the mapped file itself */
    double *norm = sw_tensor_data(sw_net_parameter(b.net, "model.norm.weight")->tensor);
    sw_evaluation found = {0};
    sw_error err = {0};

    (void)state;
    norm[3] = __builtin_nan("");
    assert_int_equal(sw_evaluate(&found, b.net, b.step, &b.tokens, &options, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "the loss is nan");
    drop(&b);
}

static bool stop_at_second(const sw_progress *progress, void *user)
{
    (void)user;
    return progress->done == 0;
}

static void who_watches_can_stop_it(void **state)
{
    const sw_eval_options options = {.seq_len = 64, .pass_tokens = 128, .on_progress = stop_at_second};
    const sw_generate_options generate = {SW_SAMPLING_GREEDY, 5, -1, stop_at_second, NULL};
    bench b = bench_of(SW_DTYPE_F32);
    int32_t ids[6] = {1};
    uint64_t n = 0;
    sw_evaluation found = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_evaluate(&found, b.net, b.step, &b.tokens, &options, &err), SW_E_IO);
    assert_string_equal(err.what, "stopped after 2 of 6 sequences");
    assert_int_equal(sw_generate(b.net, b.step, ids, 1, &generate, &n, &err), SW_E_IO);
    assert_string_equal(err.what, "stopped after 1 of 5 tokens");
    drop(&b);
}

/* ---- generating ---- */

/* The likeliest token behind ids [n], everything computed anew. */
static int32_t likeliest(const bench *b, int32_t *ids, uint64_t n)
{
    const sw_generate_options options = {SW_SAMPLING_GREEDY, 1, -1, NULL, NULL};
    uint64_t n_out = 0;
    sw_error err = {0};

    train_must(sw_generate(b->net, b->step, ids, n, &options, &n_out, &err), &err);
    assert_int_equal(n_out, 1);
    return ids[n];
}

static void a_text_is_the_same_as_when_each_token_is_computed_anew(void **state)
{
    static const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_F64};

    (void)state;
    for (int d = 0; d < 2; d++) {
        const sw_generate_options options = {SW_SAMPLING_GREEDY, 40, -1, NULL, NULL};
        bench b = bench_of(dtypes[d]);
        int32_t ids[50] = {5, 2, 30, 7};
        int32_t anew[50] = {5, 2, 30, 7};
        uint64_t n_out = 0;
        sw_error err = {0};
        train_must(sw_generate(b.net, b.step, ids, 4, &options, &n_out, &err), &err);
        assert_int_equal(n_out, 40);
        for (uint64_t n = 4; n < 44; n++)
            assert_int_equal(likeliest(&b, anew, n), ids[n]);
        drop(&b);
    }
}

static void a_seed_repeats_a_text_and_a_stop_token_ends_it(void **state)
{
    const sw_generate_options options = {
        {1.0, 0, 1.0, 4},
        30, -1, NULL, NULL
    };
    bench b = bench_of(SW_DTYPE_F32);
    int32_t first[31] = {3};
    int32_t second[31] = {3};
    int32_t stopped[31] = {3};
    uint64_t n = 0;
    uint64_t at = 1;
    sw_error err = {0};

    (void)state;
    train_must(sw_generate(b.net, b.step, first, 1, &options, &n, &err), &err);
    train_must(sw_generate(b.net, b.step, second, 1, &options, &n, &err), &err);
    assert_memory_equal(first, second, sizeof first);
    sw_generate_options until = options;
    until.stop = first[9];
    while (first[at] != first[9])
        at++;
    train_must(sw_generate(b.net, b.step, stopped, 1, &until, &n, &err), &err);
    assert_int_equal(n, at);
    assert_memory_equal(stopped, first, (at + 1) * sizeof first[0]);
    drop(&b);
}

static void expect_no_text(const bench *b, int32_t *ids, uint64_t n_prompt, uint64_t n_new, sw_status status,
                           const char *what)
{
    const sw_generate_options options = {SW_SAMPLING_GREEDY, n_new, -1, NULL, NULL};
    uint64_t n = 0;
    sw_error err = {0};

    assert_int_equal(sw_generate(b->net, b->step, ids, n_prompt, &options, &n, &err), status);
    assert_string_equal(err.what, what);
}

static void prompts_that_cannot_be_continued_are_refused(void **state)
{
    bench b = bench_of(SW_DTYPE_F32);
    int32_t ids[70] = {1, 2, TRAIN_VOCAB};

    (void)state;
    expect_no_text(&b, ids, 0, 1, SW_E_FORMAT, "the prompt is empty");
    expect_no_text(&b, ids, 3, 1, SW_E_FORMAT, "token 2 of the prompt is 37, the vocabulary has 37");
    ids[2] = -1;
    expect_no_text(&b, ids, 3, 1, SW_E_FORMAT, "token 2 of the prompt is -1, the vocabulary has 37");
    expect_no_text(&b, ids, 2, 63, SW_E_LIMIT,
                   "2 tokens of the prompt and 63 new ones, the model has 64 positions");
    expect_no_text(&b, ids, 2, UINT64_MAX, SW_E_LIMIT,
                   "2 tokens of the prompt and 18446744073709551615 new ones, the model has 64 positions");
    drop(&b);
}

static void a_text_cannot_end_with_a_token_that_is_none(void **state)
{
    bench b = bench_of(SW_DTYPE_F32);
    int32_t ids[70] = {1, 2};
    sw_generate_options options = {SW_SAMPLING_GREEDY, 3, TRAIN_VOCAB, NULL, NULL};
    uint64_t n = 0;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_generate(b.net, b.step, ids, 2, &options, &n, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "the token that ends the text is 37, the vocabulary has 37");
    options.stop--;
    assert_int_equal(sw_generate(b.net, b.step, ids, 2, &options, &n, &err), SW_OK);
    drop(&b);
}

static void new_tokens_allocate_nothing(void **state)
{
    const sw_generate_options options = {
        {0.7, 5, 0.9, 1},
        30, -1, NULL, NULL
    };
    bench b = bench_of(SW_DTYPE_F32);
    int32_t ids[40] = {1, 2, 3};
    uint64_t n = 0;
    sw_error err = {0};

    (void)state;
    train_must(sw_generate(b.net, b.step, ids, 3, &options, &n, &err), &err);
    sw_status status = SW_E_NO_MEMORY; /* cache and sampler are made anew; nothing behind them */
    uint64_t needed = 0;
    while (status == SW_E_NO_MEMORY) {
        sw_alloc_fail_at(++needed);
        status = sw_generate(b.net, b.step, ids, 3, &options, &n, &err);
        sw_alloc_fail_at(0);
    }
    assert_int_equal(status, SW_OK);
    sw_generate_options one = options;
    one.n_new = 2;
    for (uint64_t i = 1; i < needed; i++) { /* as many for two tokens as for thirty */
        sw_alloc_fail_at(i);
        assert_int_equal(sw_generate(b.net, b.step, ids, 3, &one, &n, &err), SW_E_NO_MEMORY);
        sw_alloc_fail_at(0);
    }
    drop(&b);
}

static int make_model(void **state)
{
    int failed = scratch_setup(state);

    train_make_model();
    return failed;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_model, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_without_weights_is_refused),
        TEST(a_sharded_folder_is_the_net_of_the_folder_that_it_was_made_of),
        TEST(a_sharded_folder_that_is_damaged_or_lacks_a_file_is_refused_by_it),
        TEST(every_tensor_that_does_not_fit_is_reported),
        TEST(a_file_that_is_cut_while_it_is_read_is_an_error),
        TEST(weights_are_used_where_they_are_unless_they_must_be_converted),
        TEST(floats_of_all_kinds_are_read),
        TEST(lack_of_memory_is_said_wherever_it_comes),
        TEST(sequences_together_have_the_loss_that_they_have_alone),
        TEST(a_loss_does_not_depend_on_how_it_is_cut),
        TEST(one_token_predicts_nothing),
        TEST(a_loss_that_is_no_number_is_a_failure),
        TEST(who_watches_can_stop_it),
        TEST(a_text_is_the_same_as_when_each_token_is_computed_anew),
        TEST(a_seed_repeats_a_text_and_a_stop_token_ends_it),
        TEST(prompts_that_cannot_be_continued_are_refused),
        TEST(a_text_cannot_end_with_a_token_that_is_none),
        TEST(new_tokens_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
