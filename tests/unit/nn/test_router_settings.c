/* What a config says of its routers, and what of it is refused. */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "nn/settings.h"

#define SIZES                                                                                                \
    "'hidden_size': 8, 'num_hidden_layers': 2, 'num_attention_heads': 2, 'num_key_value_heads': 2, "         \
    "'intermediate_size': 12, 'vocab_size': 16, 'max_position_embeddings': 32, "
#define MIXTRAL "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', " SIZES
#define QWEN    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', " SIZES
#define DEEPSEEK                                                                                             \
    "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', " SIZES                        \
    "'kv_lora_rank': 4, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 2, 'v_head_dim': 4, "                     \
    "'moe_intermediate_size': 4, "
#define DEEPSEEK_V2                                                                                          \
    "'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', " SIZES                        \
    "'kv_lora_rank': 4, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 2, 'v_head_dim': 4, "                     \
    "'moe_intermediate_size': 4, "

static sw_router_settings read_router(const char *config)
{
    sw_model *model = tiny_open(config, NULL);
    sw_net_settings settings = {0};
    sw_error err = {0};

    if (sw_net_settings_read(&settings, model, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_model_close(model);
    return settings.router;
}

static void a_family_says_what_its_config_does_not(void **state)
{
    sw_router_settings r = read_router(MIXTRAL "'num_local_experts': 4, 'num_experts_per_tok': 2");

    (void)state;
    assert_int_equal(r.n_experts, 4);
    assert_int_equal(r.per_token, 2);
    assert_int_equal(r.scores, SW_SCORES_SOFTMAX);
    assert_true(r.normalises && r.scale == 1 && r.n_groups == 0);

    r = read_router(QWEN "'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 4, "
                         "'shared_expert_intermediate_size': 4");
    assert_true(!r.normalises);

    r = read_router(DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 4, "
                             "'topk_group': 2, 'routed_scaling_factor': 2.5");
    assert_int_equal(r.scores, SW_SCORES_SIGMOID);
    assert_true(r.normalises && r.scale == 2.5);
    assert_true(r.n_groups == 4 && r.n_kept == 2 && r.group_best == 2);
}

static void groups_count_where_the_method_is_limited_by_them(void **state)
{
    sw_router_settings r = read_router(DEEPSEEK_V2 "'n_routed_experts': 8, 'num_experts_per_tok': 2, "
                                                   "'n_group': 4, 'topk_group': 2, 'topk_method': 'greedy'");

    (void)state;
    assert_int_equal(r.n_groups, 0);
    r = read_router(DEEPSEEK_V2 "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 4, "
                                "'topk_group': 2, 'topk_method': 'group_limited_greedy'");
    assert_true(r.n_groups == 4 && r.n_kept == 2 && r.group_best == 1);
}

static void a_config_without_experts_has_no_router(void **state)
{
    sw_router_settings r = read_router(QWEN "'num_experts': 0, 'num_experts_per_tok': 2");

    (void)state;
    assert_int_equal(r.n_experts, 0);
}

typedef struct refusal {
    const char *config;
    const char *what;
} refusal;

static const refusal refusals[] = {
    {DEEPSEEK_V2 "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'norm_topk_prob': true, "
                 "'routed_scaling_factor': 2",                                             "config.json: key \"norm_topk_prob\" is \"true\", which cannot be run"},
    {MIXTRAL "'num_local_experts': 4, 'num_experts_per_tok': null",
     "config.json: key \"num_experts_per_tok\" is missing"                                                                                                            },
    {MIXTRAL "'num_local_experts': 4, 'num_experts_per_tok': 5",                                "config.json: 5 experts a token of 4"                                 },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'scoring_func': 'tanh'",
     "config.json: key \"scoring_func\" is \"tanh\", which cannot be run"                                                                                             },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'topk_method': 'random'",
     "config.json: key \"topk_method\" is \"random\", which cannot be run"                                                                                            },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 0",
     "config.json: key \"n_group\" is \"0\", which cannot be run"                                                                                                     },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 4, 'topk_group': 5",
     "config.json: key \"topk_group\" is \"5\", which cannot be run"                                                                                                  },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 3, 'topk_group': 1",
     "config.json: 2 of 8 experts cannot be chosen from 1 of 3 groups"                                                                                                },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 3, 'n_group': 4, 'topk_group': 1",
     "config.json: 3 of 8 experts cannot be chosen from 1 of 4 groups"                                                                                                },
    {DEEPSEEK "'n_routed_experts': 8, 'num_experts_per_tok': 2, 'n_group': 8, 'topk_group': 2",
     "config.json: 2 of 8 experts cannot be chosen from 2 of 8 groups"                                                                                                },
};

static void what_a_router_cannot_do_is_refused_by_key_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_model *model = tiny_open(refusals[i].config, NULL);
        sw_net_settings settings = {0};
        sw_error err = {0};
        assert_int_equal(sw_net_settings_read(&settings, model, &err), SW_E_FORMAT);
        assert_string_equal(err.what, refusals[i].what);
        sw_model_close(model);
    }
}

/* As transformers adds it: where the routers' logits are put out. */
static void the_auxiliary_loss_is_trained_where_the_config_says_so(void **state)
{
#define EXPERTS "'num_local_experts': 4, 'num_experts_per_tok': 2"

    (void)state;
    assert_true(read_router(MIXTRAL EXPERTS ", 'router_aux_loss_coef': 0.02").loss == 0);
    assert_true(
        read_router(MIXTRAL EXPERTS ", 'router_aux_loss_coef': 0.02, 'output_router_logits': false").loss ==
        0);
    assert_true(
        read_router(MIXTRAL EXPERTS ", 'router_aux_loss_coef': 0.02, 'output_router_logits': true").loss ==
        0.02);
    assert_true(read_router(MIXTRAL EXPERTS ", 'output_router_logits': true").loss == 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_says_what_its_config_does_not),
        cmocka_unit_test(groups_count_where_the_method_is_limited_by_them),
        cmocka_unit_test(a_config_without_experts_has_no_router),
        cmocka_unit_test(what_a_router_cannot_do_is_refused_by_key_and_value),
        cmocka_unit_test(the_auxiliary_loss_is_trained_where_the_config_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
