/* Checkpoints of runs: taken up bit for bit, right for every other reader, whole or not there. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "shardwright/checkpoint.h"
#include "train_case.h"

enum { STEPS = 12, CUT = 5 };

static void save(const train_bench *b, const char *out, bool replace)
{
    sw_error err = {0};

    train_must(sw_train_save(&b->trainer, &b->weights, scratch(out), replace, &err), &err);
}

static void resume(train_bench *b, const char *from, sw_dtype dtype, const sw_train_options *options)
{
    sw_error err = {0};

    train_open(b, from, dtype, options);
    train_must(sw_train_resume(&b->trainer, &b->weights, &err), &err);
}

static void expect_to_go_on(sw_dtype dtype, const sw_train_options *options)
{
    train_bench whole;
    train_bench first;
    train_bench second;
    double losses[2][STEPS];

    train_open(&whole, "model", dtype, options);
    train_run(&whole, STEPS, losses[0]);
    train_open(&first, "model", dtype, options);
    train_run(&first, CUT, losses[1]);
    save(&first, "saved", false);
    train_close(&first);
    resume(&second, "saved", dtype, options);
    assert_int_equal(second.trainer.n_done, CUT);
    train_run(&second, STEPS - CUT, losses[1] + CUT);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    train_expect_same_values(&whole, &second);
    train_close(&second);
    train_close(&whole);
    scratch_remove("saved");
}

static void a_run_goes_on_bit_for_bit(void **state)
{
    sw_train_options options = train_usual_options();

    (void)state;
    options.accumulate = 3; /* over the end of an epoch of 20 sequences */
    for (int kind = 0; kind < SW_OPTIMIZER_COUNT_; kind++) {
        options.optimizer.kind = (sw_optimizer_kind)kind;
        expect_to_go_on(SW_DTYPE_F32, &options);
        expect_to_go_on(SW_DTYPE_F64, &options);
    }
}

static void what_is_saved_is_a_checkpoint_for_every_tool(void **state)
{
    sw_train_options options = train_usual_options();
    sw_checkpoint_result result = {0};
    train_bench b;
    double losses[2];
    sw_error err = {0};

    (void)state;
    scratch_text("model/tokenizer.json", "{}", false);
    train_open(&b, "model", SW_DTYPE_F32, &options);
    train_run(&b, 2, losses);
    save(&b, "saved", false);
    train_close(&b);
    assert_string_equal(scratch_list("saved"), "config.json model.safetensors "
                                               "optimizer-00001-of-00001.safetensors tokenizer.json "
                                               "training_state.json ");
    train_must(sw_checkpoint_verify(scratch("saved"), NULL, NULL, &result, &err), &err);
    assert_int_equal(result.covered, result.elements);
    sw_buffer text = scratch_read("saved/training_state.json");
    assert_string_equal(sw_buffer_text(&text),
                        "{\n \"step\": 2,\n \"position\": 6,\n \"seed\": 9,\n \"seq_len\": "
                        "16,\n \"tokens\": 333,\n \"optimizer\": \"adamw\"\n}\n");
    sw_buffer_clear(&text);
}

/* A run with these options, saved before its first step. */
static void save_beginning(const sw_train_options *options)
{
    train_bench b;

    train_open(&b, "model", SW_DTYPE_F32, options);
    save(&b, "saved", false);
    train_close(&b);
}

static void the_config_says_what_stands_beside_it(void **state)
{
    sw_train_options options = train_usual_options();

    (void)state;
    scratch_edit("model/config.json", "float32", "bfloat16"); /* the headers are the truth */
    save_beginning(&options);
    sw_buffer text = scratch_read("saved/config.json");
    assert_non_null(strstr(sw_buffer_text(&text), "\"float32\""));
    sw_buffer_clear(&text);
}

static void an_output_is_exchanged_only_when_that_is_asked_for(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    double losses[1];
    sw_error err = {0};

    (void)state;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    save(&b, "saved", false);
    assert_int_equal(sw_train_save(&b.trainer, &b.weights, scratch("saved"), false, &err), SW_E_ARGUMENT);
    train_run(&b, 1, losses);
    save(&b, "saved", true);
    train_close(&b);
    resume(&b, "saved", SW_DTYPE_F32, &options);
    assert_int_equal(b.trainer.n_done, 1);
    train_close(&b);
}

/* Every call that changes the disk fails once: the old checkpoint stays, and nothing else. */
static void a_place_that_takes_no_checkpoint_is_known_before_the_run(void **state)
{
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_train_save_check(scratch("saved"), false, &err), SW_OK);
    assert_string_equal(scratch_list(""), "config.json model tokens.bin ");
    assert_int_equal(sw_train_save_check(scratch("none/saved"), false, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "none/: cannot read the folder: No such file or directory"));
    assert_int_equal(sw_train_save_check(scratch("model"), false, &err), SW_E_ARGUMENT);
    assert_string_equal(err.help, "--resume goes on from it, --replace begins anew in its place");
    assert_int_equal(sw_train_save_check(scratch("model"), true, &err), SW_OK);
    assert_string_equal(scratch_list(""), "config.json model tokens.bin ");
}

static void an_interrupted_save_leaves_the_old_checkpoint(void **state)
{
    static const char *const calls[] = {"create", "allocate", "write", "mkdir", "rename", "sync"};
    sw_train_options options = train_usual_options();
    train_bench b;
    double losses[1];

    (void)state;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    save(&b, "saved", false);
    train_run(&b, 1, losses);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        char fault[64];
        sw_error err = {0};
        (void)snprintf(fault, sizeof fault, "%s:after=0:error=ENOSPC", calls[c]);
        assert_int_equal(sw_disk_fault_set(fault, NULL), SW_OK);
        assert_int_equal(sw_train_save(&b.trainer, &b.weights, scratch("saved"), true, &err), SW_E_IO);
        assert_int_equal(sw_disk_fault_set(NULL, NULL), SW_OK);
        assert_string_equal(scratch_list(""), "config.json model saved tokens.bin ");
        sw_buffer text = scratch_read("saved/training_state.json");
        assert_non_null(strstr(sw_buffer_text(&text), "\"step\": 0,"));
        sw_buffer_clear(&text);
    }
    train_close(&b);
}

static void lack_of_memory_never_leaves_half_a_checkpoint(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    train_open(&b, "model", SW_DTYPE_F32, &options);
    int64_t live = sw_alloc_live();
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_train_save(&b.trainer, &b.weights, scratch("saved"), false, &err);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        assert_int_equal(scratch_has("saved"), status == SW_OK);
        assert_int_equal(sw_alloc_live(), live);
    }
    train_close(&b);
}

static void expect_no_resume(const sw_train_options *options, const char *what)
{
    train_bench b;
    sw_error err = {0};

    train_open(&b, "saved", SW_DTYPE_F32, options);
    assert_int_equal(sw_train_resume(&b.trainer, &b.weights, &err), SW_E_FORMAT);
    if (strstr(err.what, what) == NULL)
        fail_msg("%s", err.what);
    train_close(&b);
}

static void only_the_same_run_goes_on(void **state)
{
    sw_train_options options = train_usual_options();

    (void)state;
    save_beginning(&options);
    options.seed = 10;
    expect_no_resume(&options, "its run had 9 for --seed, now it is 10");
    options = train_usual_options();
    options.seq_len = 15;
    expect_no_resume(&options, "its run had 16 for --seq-len, now it is 15");
    options = train_usual_options();
    scratch_edit("saved/training_state.json", "\"tokens\": 333", "\"tokens\": 334");
    expect_no_resume(&options, "its run had 334 for the number of tokens, now it is 333");
    scratch_edit("saved/training_state.json", "\"tokens\"", "\"token\"");
    expect_no_resume(&options, "saved: training_state.json: has no \"tokens\"");
    scratch_edit("saved/training_state.json", "\"token\": 334", "\"tokens\": 1.5");
    expect_no_resume(&options, "saved: training_state.json: byte 70: ");
    scratch_remove("saved/training_state.json");
    expect_no_resume(&options, "has no training state");
}

/* Folders without the word are older than it. */
static void only_the_optimizer_of_a_run_goes_on_with_it(void **state)
{
    sw_train_options options = train_usual_options();

    (void)state;
    options.optimizer.kind = SW_OPTIMIZER_SGD_MOMENTUM;
    save_beginning(&options);
    options.optimizer.kind = SW_OPTIMIZER_ADAMW;
    expect_no_resume(&options, "saved: its run had sgd with momentum for --optimizer, now it is adamw");
    options.optimizer.kind = SW_OPTIMIZER_SGD;
    expect_no_resume(&options, "saved: its run had sgd with momentum for --optimizer, now it is sgd");
    scratch_edit("saved/training_state.json", "sgd with momentum", "lion");
    expect_no_resume(&options, "no optimizer is called \"lion\"");
    scratch_edit("saved/training_state.json", "\"lion\"", "7");
    expect_no_resume(&options, "saved: training_state.json: byte ");
    scratch_edit("saved/training_state.json", ",\n \"optimizer\": 7", "");
    expect_no_resume(&options, "its run had adamw for --optimizer, now it is sgd");
}

static void a_state_without_an_optimizer_is_of_adamw(void **state)
{
    sw_train_options options = train_usual_options();
    train_bench b;

    (void)state;
    save_beginning(&options);
    scratch_edit("saved/training_state.json", ",\n \"optimizer\": \"adamw\"", "");
    resume(&b, "saved", SW_DTYPE_F32, &options);
    train_close(&b);
}

static void sgd_saves_what_it_keeps(void **state)
{
    static const char *const files[] = {
        [SW_OPTIMIZER_SGD] = "config.json model.safetensors training_state.json ",
        [SW_OPTIMIZER_SGD_MOMENTUM] =
            "config.json model.safetensors optimizer-00001-of-00001.safetensors training_state.json "};
    sw_train_options options = train_usual_options();
    sw_checkpoint_result result = {0};
    train_bench b;
    double losses[1];
    sw_error err = {0};

    (void)state;
    for (int kind = SW_OPTIMIZER_SGD; kind <= SW_OPTIMIZER_SGD_MOMENTUM; kind++) {
        options.optimizer.kind = (sw_optimizer_kind)kind;
        train_open(&b, "model", SW_DTYPE_F32, &options);
        train_run(&b, 1, losses);
        save(&b, "saved", true);
        train_close(&b);
        assert_string_equal(scratch_list("saved"), files[kind]);
        train_must(sw_checkpoint_verify(scratch("saved"), NULL, NULL, &result, &err), &err);
        assert_int_equal(result.covered, result.elements);
    }
}

static void a_run_of_another_model_is_not_taken_up(void **state)
{
    sw_train_options options = train_usual_options();
    sw_error err = {0};

    (void)state;
    save_beginning(&options);
    train_must(sw_train_resume_check(scratch("saved"), scratch("model"), &err), &err);
    train_must(sw_train_resume_check(scratch("saved"), scratch("gone"), &err), &err);
    train_must(sw_train_resume_check(scratch("saved"), scratch("model/model.safetensors"), &err), &err);
    scratch_edit("model/config.json", "1e-5", "1e-6");
    assert_int_equal(sw_train_resume_check(scratch("saved"), scratch("model"), &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "saved/config.json: key \"rms_norm_eps\" is 1e-05, in "));
    scratch_remove("model/config.json");
    assert_int_equal(sw_train_resume_check(scratch("saved"), scratch("model"), &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "model/config.json: cannot open"));
}

static void missing_moments_are_named(void **state)
{
    sw_train_options options = train_usual_options();

    (void)state;
    save_beginning(&options);
    scratch_remove("saved/optimizer-00001-of-00001.safetensors");
    expect_no_resume(&options, "saved: optim.m.model.embed_tokens.weight is missing");
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
        TEST(a_run_goes_on_bit_for_bit),
        TEST(what_is_saved_is_a_checkpoint_for_every_tool),
        TEST(the_config_says_what_stands_beside_it),
        TEST(an_output_is_exchanged_only_when_that_is_asked_for),
        TEST(a_place_that_takes_no_checkpoint_is_known_before_the_run),
        TEST(an_interrupted_save_leaves_the_old_checkpoint),
        TEST(lack_of_memory_never_leaves_half_a_checkpoint),
        TEST(only_the_same_run_goes_on),
        TEST(only_the_optimizer_of_a_run_goes_on_with_it),
        TEST(a_state_without_an_optimizer_is_of_adamw),
        TEST(sgd_saves_what_it_keeps),
        TEST(a_run_of_another_model_is_not_taken_up),
        TEST(missing_moments_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
