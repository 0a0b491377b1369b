/*
 * Norms that no table knows: whole, cut with the heads they are applied to, or refused where name and extent
 * leave it open.
 */
#include "plan/norm.h"

#include "tiny_model.h"

#include <stdio.h>

#include "base/status.h"

#define L  "model.layers.0."
#define SA L "self_attn."
/* 8 query heads and 2 key heads of 4: 32 and 8 rows. */
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'hidden_size': 16, "                \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24"
#define ATTENTION                                                                                            \
    SA "q_proj.weight F32 32x16\n" SA "k_proj.weight F32 8x16\n" SA "v_proj.weight F32 8x16\n" SA            \
       "o_proj.weight F32 16x32\n"
#define MLP                                                                                                  \
    L "mlp.gate_proj.weight F32 24x16\n" L "mlp.up_proj.weight F32 24x16\n" L                                \
      "mlp.down_proj.weight F32 16x24\n"

static void check_reduced(const tiny *t, const char *boundary, uint32_t n)
{
    const sw_spec *spec = tiny_spec(t, boundary);

    assert_int_equal(spec->n_inner, n);
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(spec->inner[i].op, "mean_square");
}

static void a_norm_over_all_heads_is_cut_and_its_mean_square_reduced(void **state)
{
    static const char *const queries[] = {"q_norm", "q_layernorm", "query_layernorm"};
    static const char *const keys[] = {"k_norm", "k_layernorm", "key_layernorm"};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(queries); i++) {
        char params[1024];
        char q[128];
        char k[128];
        (void)snprintf(params, sizeof params,
                       ATTENTION SA "%s.weight F32 32\n" SA "%s.bias F32 32\n" SA "%s.weight F32 8\n",
                       queries[i], queries[i], keys[i]);
        (void)snprintf(q, sizeof q, SA "%s.weight", queries[i]);
        (void)snprintf(k, sizeof k, SA "%s.weight", keys[i]);
        tiny t = TINY_PLAN(.config = STRANGER, .params = params, .mesh = "tp=4");
        tiny_rows(&t, q, 1, "8:16");
        tiny_tp(&t, k, "S(0;rep=2)");
        tiny_grads(&t, q, "");
        tiny_grads(&t, k, "tp/2 kv_replica");
        check_reduced(&t, L "self_attn", 2); /* the bias has no statistic */
        tiny_drop(&t);
    }
}

static void a_row_of_weights_for_each_head_is_cut_by_heads(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .mesh = "tp=4",
                       .params = ATTENTION SA "q_norm.weight F32 8x4\n" SA "q_norm.bias F32 8x4\n" SA
                                              "k_norm.weight F32 2x4\n");
    (void)state;
    tiny_tp(&t, SA "q_norm.weight", "S(0)");
    tiny_tp(&t, SA "q_norm.bias", "S(0)");
    tiny_tp(&t, SA "k_norm.weight", "S(0;rep=2)");
    check_reduced(&t, L "self_attn", 0);
    tiny_drop(&t);
}

static void a_norm_of_one_head_or_of_a_latent_is_whole(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .mesh = "tp=4",
                       .params = ATTENTION SA "q_norm.weight F32 4\n" SA "key_layernorm.weight F32 4\n" SA
                                              "q_a_layernorm.weight F32 32\n");
    (void)state;
    tiny_tp(&t, SA "q_norm.weight", "R");
    tiny_tp(&t, SA "key_layernorm.weight", "R");
    tiny_tp(&t, SA "q_a_layernorm.weight", "R");
    tiny_grads(&t, SA "q_norm.weight", "tp partial");
    tiny_drop(&t);
}

#define SUB_NORMS ATTENTION MLP SA "attn_sub_norm.weight F32 32\n" L "mlp.ffn_sub_norm.weight F32 24\n"

static void a_norm_as_wide_as_what_is_cut_is_refused_until_an_override_tells(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER, .params = SUB_NORMS, .mesh = "tp=4");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "feature_cut",
                 "norm of 32 values, as wide as the activations that tp=4", "`layout: heads`");
    tiny_finding(&t, SW_SEVERITY_ERROR, "feature_cut", "norm of 24 values", "`roles:`");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = SUB_NORMS, .mesh = "dp=4");
    tiny_silent(&t, "feature_cut");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = SUB_NORMS, .mesh = "tp=4",
                  .overrides = "- match: '*.attn_sub_norm'\n  layout: heads\n"
                               "- match: '*.ffn_sub_norm'\n  layout: {segments: [24]}\n");
    tiny_rows(&t, SA "attn_sub_norm.weight", 3, "24:32");
    tiny_rows(&t, L "mlp.ffn_sub_norm.weight", 3, "18:24");
    check_reduced(&t, L "self_attn", 1);
    check_reduced(&t, L "mlp", 1);
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = SUB_NORMS, .mesh = "tp=4",
                  .overrides =
                      "roles:\n  extend: true\n  rules:\n  - {pattern: sub_norm, role: replicated}\n");
    tiny_tp(&t, SA "attn_sub_norm.weight", "R");
    tiny_drop(&t);
}

static void a_norm_as_wide_as_keys_and_values_is_refused_too(void **state)
{
    static const char *const norms[] = {"v_norm.weight F32 8",      "kv_norm.weight F32 8",
                                        "ln_k.weight F32 8",        "attn_norm.weight F32 8",
                                        "v_norm.weight F32 2x4",    "q_norm.weight F32 1x8x1x4",
                                        "k_norm.weight F32 1x2x1x4"};
    static const char *const others[] = {"v_norm.weight F32 4", "kv_a_layernorm.weight F32 8",
                                         "norm.weight F32 16"};
    char params[1024];
    (void)state;
    for (size_t i = 0; i < SW_COUNT(norms); i++) {
        (void)snprintf(params, sizeof params, ATTENTION SA "%s\n", norms[i]);
        tiny t = TINY_REFUSE(.config = STRANGER, .params = params, .mesh = "tp=2");
        tiny_finding(&t, SW_SEVERITY_ERROR, "feature_cut",
                     i == 5 ? "norm of 32 values, as wide as" : "norm of 8 values, as wide as", "`roles:`");
        tiny_drop(&t);
        t = TINY_PLAN(.config = STRANGER, .params = params, .mesh = "dp=2");
        tiny_silent(&t, "feature_cut");
        tiny_drop(&t);
    }
    for (size_t i = 0; i < SW_COUNT(others); i++) {
        (void)snprintf(params, sizeof params, ATTENTION SA "%s\n", others[i]);
        tiny t = TINY_PLAN(.config = STRANGER, .params = params, .mesh = "tp=2");
        tiny_silent(&t, "feature_cut");
        tiny_drop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_over_all_heads_is_cut_and_its_mean_square_reduced),
        cmocka_unit_test(a_row_of_weights_for_each_head_is_cut_by_heads),
        cmocka_unit_test(a_norm_of_one_head_or_of_a_latent_is_whole),
        cmocka_unit_test(a_norm_as_wide_as_what_is_cut_is_refused_until_an_override_tells),
        cmocka_unit_test(a_norm_as_wide_as_keys_and_values_is_refused_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
