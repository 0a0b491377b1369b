/* Small files that go along: merge and reshard take them as they were written, or not at all. */
#include "checkpoint_case.h"

#include <string.h>
#include <unistd.h>

#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': 1," \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 2, 'intermediate_size': 12," \
    "'vocab_size': 5, 'torch_dtype': 'bfloat16'"
// clang-format on

/* A model with a tokenizer, sharded in "out". The plan is yours. */
static sw_plan *make_sharded(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    options.no_sync = true;
    make_model("model", LLAMA, NULL, 1);
    scratch_text("model/tokenizer.json", "{'size': 1}", true);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    if (sw_checkpoint_shard(scratch("model"), plan, scratch("out"), &options, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    return plan;
}

static void expect_refusal(sw_status status, const sw_error *err, sw_status wanted, const char *what)
{
    if (status != wanted || strstr(err->what, what) == NULL ||
        strstr(err->help, "put the original back and edit the output; or take it out of 'carried'") == NULL)
        fail_msg("%s: %s (%s)", sw_status_name(status), err->what, err->help);
    assert_string_equal(scratch_list(""), "model out ");
}

static void all_refuse(const sw_plan *plan, sw_status wanted, const char *what)
{
    sw_model *model = NULL;
    sw_error err = {0};

    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("x"), NULL, NULL, &err), &err, wanted, what);
    expect_refusal(sw_checkpoint_reshard(scratch("out"), plan, scratch("x"), NULL, NULL, &err), &err, wanted,
                   what);
    expect_refusal(sw_checkpoint_model(&model, scratch("out"), &err), &err, wanted, what);
}

static void merge(void)
{
    sw_error err = {0};

    if (sw_checkpoint_merge(scratch("out"), scratch("merged"), NULL, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
}

static void a_small_file_that_is_not_what_was_written_is_refused(void **state)
{
    (void)state;
    sw_plan *plan = make_sharded();
    scratch_text("out/tokenizer.json", "{'size': 2}", true); /* as long as before */
    all_refuse(plan, SW_E_FORMAT, "out/tokenizer.json: was edited or damaged after it was written");
    scratch_text("out/tokenizer.json", "{'size': 10}", true);
    all_refuse(plan, SW_E_FORMAT, "out/tokenizer.json: was edited or damaged after it was written");
    scratch_remove("out/tokenizer.json");
    all_refuse(plan, SW_E_IO, "out/tokenizer.json: is missing");
    assert_int_equal(symlink("../model/tokenizer.json", scratch("out/tokenizer.json")), 0);
    all_refuse(plan, SW_E_FORMAT, "out/tokenizer.json: is a symbolic link, not a regular file");
    scratch_remove("out/tokenizer.json");
    scratch_text("out/tokenizer.json", "{'size': 1}", true); /* the original again */
    merge();
    sw_plan_destroy(plan);
}

static void a_small_file_that_the_manifest_does_not_list_is_left(void **state)
{
    (void)state;
    sw_plan_destroy(make_sharded());
    scratch_text("out/notes.txt", "by hand", false);
    merge();
    assert_string_equal(scratch_list("merged"),
                        "config.json model.safetensors model.safetensors.index.json tokenizer.json ");
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_small_file_that_is_not_what_was_written_is_refused),
        ONE(a_small_file_that_the_manifest_does_not_list_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
