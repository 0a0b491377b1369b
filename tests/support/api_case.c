/* Things that the public calls work on: see the header. */
#include "api_case.h"

#include "checkpoint_case.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': "  \
    "1, 'num_attention_heads': 2, 'num_key_value_heads': 2, 'intermediate_size': 8, 'vocab_size': 8, "       \
    "'torch_dtype': 'float32'"

api_things api;

/* A finding: a plan file is no checkpoint. */
static void make_finding(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;

    options.report = api.report;
    assert_int_equal(sw_checkpoint_verify(scratch("plan.json"), NULL, &options, NULL, NULL), SW_E_FORMAT);
}

int api_setup(void **state)
{
    sw_error err = {0};

    if (scratch_setup(state) != 0)
        return 1;
    make_model("model", LLAMA, NULL, 1);
    scratch_text("o.yaml", "- match: model.norm\n  params: {weight: {tp: R}}\n", false);
    if (sw_model_open(&api.model, scratch("model"), &err) != SW_OK ||
        sw_mesh_create(&api.mesh, "tp=2", 0, &err) != SW_OK ||
        sw_plan_create(&api.plan, api.model, api.mesh, NULL, &err) != SW_OK ||
        sw_plan_save(api.plan, scratch("plan.json"), &err) != SW_OK ||
        sw_overrides_create(&api.overrides, &err) != SW_OK || sw_report_create(&api.report, &err) != SW_OK ||
        sw_checkpoint_shard(scratch("model"), api.plan, scratch("sharded"), NULL, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    make_finding();
    return 0;
}

int api_teardown(void **state)
{
    sw_overrides_destroy(api.overrides);
    sw_report_destroy(api.report);
    sw_plan_destroy(api.plan);
    sw_mesh_destroy(api.mesh);
    sw_model_close(api.model);
    return scratch_teardown(state);
}
