/* What a config says beside sizes: spellings, nested configs, kinds, class defaults. */
#include "model/config.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

#define LLAMA "{\"architectures\": [\"LlamaForCausalLM\"]"

static sw_config read_text(const char *json)
{
    sw_config config = {0};
    sw_error err = {0};

    if (sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", &err) != SW_OK)
        fail_msg("%s", err.what);
    return config;
}

static void check_number(const char *json, sw_setting setting, double number, const char *key)
{
    sw_config config = read_text(json);
    const sw_setting_value *value = &config.settings.value[setting];

    if (!value->is_set || value->is_odd || value->number != number)
        fail_msg("%s gives %g", json, value->number);
    if (key == NULL)
        assert_null(value->key);
    else
        assert_string_equal(value->key, key);
    sw_config_clear(&config);
}

static void the_first_spelling_that_has_a_value_counts(void **state)
{
    (void)state;
    check_number(LLAMA ", \"rms_norm_eps\": null, \"layer_norm_eps\": 0.5}", SW_SET_NORM_EPS, 0.5,
                 "layer_norm_eps");
    check_number(LLAMA ", \"rope_parameters\": {\"rope_theta\": 7}}", SW_SET_ROPE_THETA, 7,
                 "rope_parameters.rope_theta");
    check_number(LLAMA ", \"rope_scaling\": {\"factor\": 8}, \"rope_parameters\": {\"factor\": 4}}",
                 SW_SET_ROPE_FACTOR, 8, "rope_scaling.factor");
    check_number("{\"model_type\": \"mystery\", \"text_config\": {\"rope_theta\": 3}, \"rope_theta\": 4}",
                 SW_SET_ROPE_THETA, 3, "rope_theta");
}

static void booleans_are_numbers(void **state)
{
    (void)state;
    check_number(LLAMA ", \"use_parallel_residual\": true}", SW_SET_PARALLEL, 1, "use_parallel_residual");
    check_number(LLAMA ", \"do_layer_norm_before\": false}", SW_SET_NORM_FIRST, 0, "do_layer_norm_before");
}

static void a_family_adds_spellings_and_defaults(void **state)
{
    (void)state;
    check_number(LLAMA "}", SW_SET_NORM_EPS, 1e-6, NULL);
    check_number("{\"architectures\": [\"GPTNeoXForCausalLM\"]}", SW_SET_ROTARY_PART, 0.25, NULL);
    check_number("{\"architectures\": [\"GraniteForCausalLM\"], \"logits_scaling\": 6}", SW_SET_LOGIT_DIVISOR,
                 6, "logits_scaling");
    sw_config llama = read_text(LLAMA ", \"logits_scaling\": 6}");
    assert_false(llama.settings.value[SW_SET_LOGIT_DIVISOR].is_set);
    assert_string_equal(llama.settings.value[SW_SET_ACTIVATION].text, "silu");
    sw_config_clear(&llama);
}

static void a_value_of_another_kind_is_noted_with_its_text(void **state)
{
    sw_config config = read_text(LLAMA ", \"rope_theta\": \"big\", \"hidden_act\": 3, \"rope_scaling\": "
                                       "{\"long_factor\": [1, \"x\"], \"short_factor\": 2}}");
    const sw_setting_value *v = config.settings.value;

    (void)state;
    assert_true(v[SW_SET_ROPE_THETA].is_odd);
    assert_string_equal(v[SW_SET_ROPE_THETA].text, "big");
    assert_true(sw_setting_number(&config.settings, SW_SET_ROPE_THETA, 5) == 5);
    assert_true(v[SW_SET_ACTIVATION].is_odd);
    assert_true(v[SW_SET_ROPE_LONG].is_odd);
    assert_true(v[SW_SET_ROPE_SHORT].is_odd);
    sw_config_clear(&config);
}

static void a_list_is_kept_in_order(void **state)
{
    sw_config config = read_text(LLAMA ", \"rope_scaling\": {\"short_factor\": [1.5, 2, 0.25]}}");
    const sw_setting_value *v = &config.settings.value[SW_SET_ROPE_SHORT];

    (void)state;
    assert_int_equal(v->n_list, 3);
    assert_true(v->list[0] == 1.5 && v->list[1] == 2 && v->list[2] == 0.25);
    sw_config_clear(&config);
}

static void memory_may_run_out(void **state)
{
    static const char json[] = LLAMA ", \"rope_theta\": 3, \"rope_scaling\": {\"short_factor\": [1, 2]}}";
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_config config = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", NULL);
        sw_alloc_fail_at(0);
        sw_config_clear(&config);
        assert_int_equal(sw_alloc_live(), live);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_spelling_that_has_a_value_counts),
        cmocka_unit_test(booleans_are_numbers),
        cmocka_unit_test(a_family_adds_spellings_and_defaults),
        cmocka_unit_test(a_value_of_another_kind_is_noted_with_its_text),
        cmocka_unit_test(a_list_is_kept_in_order),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
