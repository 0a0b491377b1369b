/* Training steps: the loss falls, batches may be cut as one likes, bad numbers stop it, memory is what was
 * said. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train_case.h"

enum { STEPS = 12 };

static void the_loss_falls(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    double losses[60];

    (void)state;
    options.schedule = (sw_schedule){SW_SCHEDULE_CONSTANT, 1e-2, 0, 60};
    train_open(&b, "model", SW_DTYPE_F32, &options);
    train_run(&b, 60, losses);
    assert_true(losses[0] > 3.0 && losses[59] < 0.5 * losses[0]);
    train_close(&b);
}

/* Losses and parameters of STEPS steps with 12 sequences each, in F64. */
static void run_cut(train_bench *b, uint32_t batch, uint32_t accumulate, double losses[STEPS])
{
    sw_train_options options = train_usual_options();

    options.batch = batch;
    options.accumulate = accumulate;
    train_open(b, "model", SW_DTYPE_F64, &options);
    train_run(b, STEPS, losses);
}

static void a_step_is_the_same_in_micro_batches_of_any_size(void **state)
{
    static const uint32_t cuts[][2] = {
        {6, 2 },
        {4, 3 },
        {1, 12}
    };
    train_bench whole;
    double of_whole[STEPS];

    (void)state;
    run_cut(&whole, 12, 1, of_whole);
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        train_bench b;
        double losses[STEPS];
        run_cut(&b, cuts[c][0], cuts[c][1], losses);
        for (int i = 0; i < STEPS; i++)
            assert_true(fabs(losses[i] - of_whole[i]) < 1e-9 * of_whole[i]);
        train_close(&b);
    }
    train_close(&whole);
}

static void recomputation_changes_memory_and_not_one_bit(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench plain;
    train_bench again;
    double losses[2][STEPS];
    sw_train_memory memory[2];

    (void)state;
    train_open(&plain, "model", SW_DTYPE_F32, &options);
    options.recomputes = true;
    train_open(&again, "model", SW_DTYPE_F32, &options);
    train_run(&plain, STEPS, losses[0]);
    train_run(&again, STEPS, losses[1]);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    train_expect_same_values(&plain, &again);
    sw_trainer_memory(&plain.trainer, &memory[0]);
    sw_trainer_memory(&again.trainer, &memory[1]);
    assert_true(memory[1].activations < memory[0].activations);
    assert_int_equal(memory[1].parameters, memory[0].parameters);
    train_close(&plain);
    train_close(&again);
}

static void a_steady_step_allocates_nothing(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    double losses[STEPS];

    (void)state;
    options.accumulate = 2;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    train_run(&b, 2, losses);
    sw_alloc_fail_at(1);
    train_run(&b, 8, losses); /* over the end of the first epoch: it has 20 sequences */
    sw_alloc_fail_at(0);
    train_close(&b);
}

static void expect_predicted(const char *model, uint32_t batch, uint32_t seq_len, bool recomputes,
                             sw_optimizer_kind kind)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    double loss = 0;
    sw_train_memory predicted;
    sw_train_memory found;
    sw_error err = {0};

    options.batch = batch;
    options.seq_len = seq_len;
    options.recomputes = recomputes;
    options.optimizer.kind = kind;
    train_open(&b, model, SW_DTYPE_F32, &options);
    train_must(sw_trainer_predict(&b.trainer, &predicted, &err), &err);
    train_run(&b, 1, &loss);
    sw_trainer_memory(&b.trainer, &found);
    double ratio = (double)sw_train_memory_sum(&predicted) / (double)sw_train_memory_sum(&found);
    if (fabs(ratio - 1.0) > 0.05)
        fail_msg("%s, %u x %u%s: %g", model, batch, seq_len, recomputes ? ", recomputed" : "", ratio);
    assert_int_equal(predicted.moments, found.moments);
    assert_int_equal(found.moments, sw_optimizer_moments(kind) * found.parameters);
    train_close(&b);
}

/* Shapes of steps in which layers weigh most, and in which logits do. */
static void the_memory_of_a_step_is_what_was_predicted(void **state)
{
    static const char many_tokens[] =
        "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 36, "
        "'num_hidden_layers': 6, 'num_attention_heads': 9, 'num_key_value_heads': 3, "
        "'intermediate_size': 96, 'vocab_size': 6144, 'max_position_embeddings': 320, "
        "'rms_norm_eps': 1e-5, 'tie_word_embeddings': true, 'torch_dtype': 'float32'}";
    static const struct {
        const char *model;
        uint32_t batch;
        uint32_t seq_len;
    } steps[] = {
        {"model",       1, 16 },
        {"model",       3, 16 },
        {"model",       1, 60 },
        {"model",       8, 64 },
        {"model",       5, 33 },
        {"many_tokens", 1, 320},
        {"many_tokens", 4, 64 },
        {"many_tokens", 3, 129},
    };

    (void)state;
    train_make_model_of("many_tokens", many_tokens);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        expect_predicted(steps[i].model, steps[i].batch, steps[i].seq_len, false, SW_OPTIMIZER_ADAMW);
        expect_predicted(steps[i].model, steps[i].batch, steps[i].seq_len, true, SW_OPTIMIZER_ADAMW);
    }
    expect_predicted("model", 3, 16, false, SW_OPTIMIZER_SGD);
    expect_predicted("model", 3, 16, false, SW_OPTIMIZER_SGD_MOMENTUM);
}

static void a_prediction_leaves_no_trace_in_the_run(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench a;
    train_bench b;
    double losses[2][STEPS];
    sw_train_memory memory;
    sw_error err = {0};

    (void)state;
    train_open(&a, "model", SW_DTYPE_F32, &options);
    train_open(&b, "model", SW_DTYPE_F32, &options);
    train_must(sw_trainer_predict(&a.trainer, &memory, &err), &err);
    train_run(&a, STEPS, losses[0]);
    train_run(&b, STEPS, losses[1]);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    train_expect_same_values(&a, &b);
    train_close(&a);
    train_close(&b);
}

static void expect_refusal(train_bench *b, const char *what)
{
    sw_curve_point point = {0};
    sw_error err = {0};

    assert_int_equal(sw_trainer_step(&b->trainer, &point, &err), SW_E_FORMAT);
    assert_string_equal(err.what, what);
}

static float *value_of(const train_bench *b, const char *fqn)
{
    const sw_parameter *parameter = sw_net_parameter(b->net, fqn);

    assert_non_null(parameter);
    return sw_tensor_data(parameter->tensor);
}

static void bad_numbers_stop_the_run_with_step_and_tensor(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    double losses[3];

    (void)state;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    train_run(&b, 3, losses);
    float *value = value_of(&b, "model.layers.1.mlp.up_proj.weight");
    float before = value[7];
    value[7] = NAN;
    value_of(&b, "model.norm.weight")[3] = NAN;
    expect_refusal(
        &b, "step 4: the loss is nan; the first bad tensor: values of model.layers.1.mlp.up_proj.weight");
    value[7] = before;
    value_of(&b, "model.norm.weight")[3] = 1;
    value_of(&b, "model.layers.0.post_attention_layernorm.weight")[0] = 3e38F; /* more than F32 has */
    expect_refusal(&b, "step 4: the loss is nan; the first bad tensor: output of "
                       "model.layers.0.post_attention_layernorm");
    value_of(&b, "model.layers.0.post_attention_layernorm.weight")[0] = 1;
    train_run(&b, 1, losses);
    train_close(&b);
}

static void sequences_that_the_model_has_no_positions_for_are_refused(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    sw_trainer trainer = {0};
    sw_error err = {0};

    (void)state;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    options.seq_len = 65;
    assert_int_equal(sw_trainer_create(&trainer, b.net, b.kernel, &b.tokens, "t", &options, &err),
                     SW_E_LIMIT);
    assert_string_equal(err.what, "sequences of 65 tokens, the model has 64 positions");
    train_close(&b);
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
        TEST(the_loss_falls),
        TEST(a_step_is_the_same_in_micro_batches_of_any_size),
        TEST(recomputation_changes_memory_and_not_one_bit),
        TEST(a_steady_step_allocates_nothing),
        TEST(the_memory_of_a_step_is_what_was_predicted),
        TEST(a_prediction_leaves_no_trace_in_the_run),
        TEST(bad_numbers_stop_the_run_with_step_and_tensor),
        TEST(sequences_that_the_model_has_no_positions_for_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
