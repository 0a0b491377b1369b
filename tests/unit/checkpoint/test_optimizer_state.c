/* Optimizer state of a model without an index, and state that a sharded folder could not tell from
 * parameters.
 */
#include "checkpoint_case.h"

#include <string.h>

#include "base/status.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 3," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
// clang-format on

static sw_checkpoint_options unsynced(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;

    options.no_sync = true;
    return options;
}

static void expect_ok(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

/* Put tensors into the model's file of optimizer state. */
static void add_state(const char *names)
{
    make_model("state", "", names, 1);
    assert_int_equal(
        rename(scratch("state/model.safetensors"), scratch("model/optimizer-00001-of-00001.safetensors")), 0);
}

static void expect_refusal(const sw_plan *plan, const char *what, const char *help)
{
    sw_error err = {0};

    assert_int_equal(sw_checkpoint_shard(scratch("model"), plan, scratch("out"), NULL, NULL, &err),
                     SW_E_FORMAT);
    if (strstr(err.what, what) == NULL || strstr(err.help, help) == NULL)
        fail_msg("%s (%s)", err.what, err.help);
    assert_false(scratch_has("out"));
}

/* A model of one file needs no index, and merge's can be taken away. */
static void optimizer_state_without_an_index_goes_along(void **state)
{
    sw_checkpoint_options options = unsynced();
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    add_state("optim.m.model.norm.weight F32 16\n");
    sw_plan *two = plan_of("model", "tp=2", 0, NULL);
    sw_plan *four = plan_of("model", "pp=2,tp=2", 0, NULL);
    expect_ok(sw_checkpoint_shard(scratch("model"), two, scratch("two"), &options, NULL, &err), &err);
    expect_ok(sw_checkpoint_verify(scratch("two"), scratch("model"), NULL, &result, &err), &err);
    expect_ok(sw_checkpoint_reshard(scratch("two"), four, scratch("four"), &options, NULL, &err), &err);
    expect_ok(sw_checkpoint_merge(scratch("four"), scratch("merged"), &options, NULL, &err), &err);
    expect_same_tensors("model", "merged");
    sw_plan_destroy(two);
    sw_plan_destroy(four);
}

static void state_of_no_parameter_is_refused(void **state)
{
    (void)state;
    make_model("model", LLAMA, NULL, 1);
    add_state("optim.m.model.norm.scale F32 16\n");
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    expect_refusal(plan,
                   "optim.m.model.norm.scale: stands in optimizer-00001-of-00001.safetensors, and is "
                   "optimizer state of no parameter of the model",
                   "take it out");
    sw_plan_destroy(plan);
}

static void state_among_the_parameters_is_refused(void **state)
{
    (void)state;
    make_model("model", LLAMA, "model.norm.weight BF16 16\noptim.m.model.norm.weight F32 16\n", 1);
    sw_plan *plan = plan_of("model", "tp=1", 0, NULL);
    expect_refusal(plan,
                   "optim.m.model.norm.weight: is optimizer state by its name, and stands in "
                   "model.safetensors with",
                   "move it to optimizer-");
    sw_plan_destroy(plan);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(optimizer_state_without_an_index_goes_along),
        ONE(state_of_no_parameter_is_refused),
        ONE(state_among_the_parameters_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
