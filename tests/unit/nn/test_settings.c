/* Numbers of a config: factors, activations that a class keeps, windows and turns of layers. */
#include <math.h>

#include "nn/settings.h"
#include "tiny_model.h"

#define SIZES                                                                                                \
    ", 'hidden_size': 16, 'num_hidden_layers': 4, 'num_attention_heads': 4, 'intermediate_size': 6, "        \
    "'vocab_size': 16, 'max_position_embeddings': 32"

static sw_net_settings settings_of(const char *config)
{
    sw_model *model = tiny_open(config, NULL);
    sw_net_settings out = {0};
    sw_error err = {0};

    if (sw_net_settings_read(&out, model, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_model_close(model);
    return out;
}

/* Windows of the four layers, '-' for none: "4-4-". */
static void check_windows(const char *config, const char *wanted)
{
    sw_model *model = tiny_open(config, NULL);
    char found[5] = "";

    for (uint32_t i = 0; i < 4; i++) {
        uint32_t window = sw_layer_window(&model->config, i);
        found[i] = window == 0 ? '-' : (char)('0' + window);
    }
    assert_string_equal(found, wanted);
    sw_model_close(model);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void scores_are_scaled_by_the_root_of_a_head_unless_the_config_says_otherwise(void **state)
{
    (void)state;
    assert_true(is_near(settings_of("'model_type': 'llama'" SIZES).attention_scale, 0.5));
    assert_true(
        is_near(settings_of("'model_type': 'gemma2', 'query_pre_attn_scalar': 64, 'head_dim': 4" SIZES)
                    .attention_scale,
                0.125));
    assert_true(is_near(
        settings_of("'model_type': 'granite', 'attention_multiplier': 0.3" SIZES).attention_scale, 0.3));
}

static void embeddings_sums_and_logits_have_factors(void **state)
{
    sw_net_settings minicpm = settings_of(
        "'model_type': 'minicpm', 'scale_emb': 12, 'scale_depth': 1.4, 'dim_model_base': 4" SIZES);
    sw_net_settings granite = settings_of("'model_type': 'granite', 'embedding_multiplier': 3, "
                                          "'residual_multiplier': 0.2, 'logits_scaling': 8" SIZES);

    (void)state;
    assert_true(is_near(minicpm.embed_scale, 12));
    assert_true(is_near(minicpm.residual_scale, 0.7));
    assert_true(is_near(minicpm.logit_scale, 0.25));
    assert_true(is_near(granite.embed_scale, 3));
    assert_true(is_near(granite.residual_scale, 0.2));
    assert_true(is_near(granite.logit_scale, 0.125));
    assert_true(is_near(settings_of("'model_type': 'gemma', 'head_dim': 4" SIZES).embed_scale, 4));
    assert_true(is_near(settings_of("'model_type': 'llama'" SIZES).embed_scale, 1));
}

static void a_class_may_compute_its_activation_whatever_the_config_says(void **state)
{
    (void)state;
    assert_int_equal(
        settings_of("'model_type': 'bloom', 'hidden_act': 'relu', 'n_layer': 4" SIZES).activation,
        SW_ACT_GELU_TANH);
    assert_int_equal(settings_of("'model_type': 'llama', 'hidden_act': 'gelu'" SIZES).activation,
                     SW_ACT_GELU);
}

static void gemma_takes_the_older_of_its_two_keys(void **state)
{
    (void)state;
    assert_int_equal(settings_of("'model_type': 'gemma', 'hidden_act': 'gelu', 'hidden_activation': "
                                 "'gelu_pytorch_tanh', 'head_dim': 4" SIZES)
                         .activation,
                     SW_ACT_GELU);
    assert_int_equal(settings_of("'model_type': 'gemma', 'head_dim': 4" SIZES).activation, SW_ACT_GELU_TANH);
}

static void gpt2_may_leave_scores_alone_or_scale_them_by_layer(void **state)
{
    sw_net_settings plain = settings_of("'model_type': 'gpt2', 'scale_attn_weights': false" SIZES);
    sw_net_settings layers =
        settings_of("'model_type': 'gpt2', 'scale_attn_by_inverse_layer_idx': true" SIZES);

    (void)state;
    assert_true(is_near(plain.attention_scale, 1));
    assert_false(plain.scales_by_layer);
    assert_true(is_near(layers.attention_scale, 0.5));
    assert_true(layers.scales_by_layer);
}

static void a_number_that_is_null_is_not_what_the_class_assumes(void **state)
{
    sw_net_settings said = settings_of("'model_type': 'gemma2', 'head_dim': 4" SIZES);
    sw_net_settings null = settings_of("'model_type': 'gemma2', 'attn_logit_softcapping': null, "
                                       "'final_logit_softcapping': null, 'head_dim': 4" SIZES);

    (void)state;
    assert_true(is_near(said.attention_soft_cap, 50));
    assert_true(is_near(said.logit_soft_cap, 30));
    assert_true(is_near(null.attention_soft_cap, 0));
    assert_true(is_near(null.logit_soft_cap, 0));
}

static void queries_that_grow_with_their_position_are_refused_by_key(void **state)
{
    sw_model *model = tiny_open("'model_type': 'ministral3', 'rope_parameters': {'rope_type': 'yarn', "
                                "'llama_4_scaling_beta': 0.5}" SIZES,
                                NULL);
    sw_net_settings settings = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_settings_read(&settings, model, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "config.json: key \"rope_parameters.llama_4_scaling_beta\" is \"0.5\", "
                                  "which cannot be run");
    sw_model_close(model);
}

/* OLMo 3, which also scales the rotary embedding of its other layers alone. */
static void windows_that_a_family_does_not_run_with_are_refused(void **state)
{
    sw_model *model = tiny_open("'model_type': 'olmo3', 'sliding_window': 8, 'layer_types': "
                                "['full_attention', 'sliding_attention', 'full_attention', "
                                "'full_attention']" SIZES,
                                NULL);
    sw_net_settings settings = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_settings_read(&settings, model, &err), SW_E_FORMAT);
    assert_string_equal(err.what,
                        "config.json: layer 1 looks through a window, and family olmo2 runs without");
    sw_model_close(model);
}

static void layers_look_through_windows_as_their_family_has_it(void **state)
{
    (void)state;
    check_windows("'model_type': 'llama', 'sliding_window': 4" SIZES, "----");
    check_windows("'model_type': 'mistral', 'sliding_window': 4" SIZES, "4444");
    check_windows("'model_type': 'mistral', 'sliding_window': null" SIZES, "----");
    check_windows("'model_type': 'gemma2', 'sliding_window': 4, 'head_dim': 4" SIZES, "4-4-");
    check_windows("'model_type': 'smollm3', 'sliding_window': 4" SIZES, "----");
    check_windows("'model_type': 'smollm3', 'sliding_window': 4, 'use_sliding_window': true" SIZES, "---4");
    check_windows("'model_type': 'qwen2', 'sliding_window': 4" SIZES, "----");
    check_windows("'model_type': 'qwen2', 'sliding_window': 4, 'use_sliding_window': true, "
                  "'max_window_layers': 3" SIZES,
                  "---4");
    check_windows("'model_type': 'qwen2', 'sliding_window': 4, 'use_sliding_window': true, 'layer_types': "
                  "['sliding_attention', 'full_attention', 'full_attention', 'sliding_attention']" SIZES,
                  "4--4");
}

static void layers_turn_unless_a_list_or_a_period_says_otherwise(void **state)
{
    static const struct {
        const char *config;
        const char *wanted;
    } cases[] = {
        {"'model_type': 'smollm3'" SIZES,                                                     "yyy-"},
        {"'model_type': 'smollm3', 'no_rope_layers': [1, 0, 1, 1]" SIZES,                     "y-yy"},
        {"'model_type': 'llama'" SIZES,                                                       "yyyy"},
        {"'model_type': 'mpt', 'd_model': 16, 'n_layers': 4, 'n_heads': 4, 'vocab_size': 16", "----"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        sw_model *model = tiny_open(cases[c].config, NULL);
        for (uint32_t i = 0; i < 4; i++) {
            if (sw_layer_is_turned(&model->config, i) != (cases[c].wanted[i] == 'y'))
                fail_msg("{%s}: layer %u", cases[c].config, i);
        }
        sw_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_scaled_by_the_root_of_a_head_unless_the_config_says_otherwise),
        cmocka_unit_test(embeddings_sums_and_logits_have_factors),
        cmocka_unit_test(a_class_may_compute_its_activation_whatever_the_config_says),
        cmocka_unit_test(gemma_takes_the_older_of_its_two_keys),
        cmocka_unit_test(gpt2_may_leave_scores_alone_or_scale_them_by_layer),
        cmocka_unit_test(a_number_that_is_null_is_not_what_the_class_assumes),
        cmocka_unit_test(queries_that_grow_with_their_position_are_refused_by_key),
        cmocka_unit_test(windows_that_a_family_does_not_run_with_are_refused),
        cmocka_unit_test(layers_look_through_windows_as_their_family_has_it),
        cmocka_unit_test(layers_turn_unless_a_list_or_a_period_says_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
