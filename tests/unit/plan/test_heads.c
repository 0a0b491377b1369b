/*
 * Local attributes: head counts follow the final placements of the projections, declared ones are divided as
 * asked, and a count that cannot be divided by itself or at all is refused.
 */
#include "plan/heads.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#define L  "model.layers.0."
#define SA L "self_attn."
#define LLAMA(heads, kv, dim)                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': 16, 'num_attention_heads': " heads ", 'num_key_value_heads': " kv ", 'head_dim': " dim   \
    ", 'intermediate_size': 16, 'vocab_size': 16"

/* H=4 K=4 d=4 and H=8 K=2 d=2 */
#define FOUR                                                                                                 \
    SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA          \
       "o_proj.weight F32 16x16\n"
#define EIGHT_TWO                                                                                            \
    SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 4x16\n" SA "v_proj.weight F32 4x16\n" SA            \
       "o_proj.weight F32 16x16\n"

static void counts_are_divided_with_their_projections(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("4", "4", "4"), .params = FOUR, .mesh = "tp=2");
    (void)state;
    tiny_attributes(&t, L "self_attn", "num_heads 4/2, num_key_value_heads 4/2");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA("8", "2", "2"), .params = EIGHT_TWO, .mesh = "tp=2");
    tiny_attributes(&t, L "self_attn", "num_heads 8/4, num_key_value_heads 2/1");
    tiny_drop(&t);
}

static void one_key_value_head_stays_one(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("8", "2", "2"), .params = EIGHT_TWO, .mesh = "tp=4");
    (void)state;
    tiny_attributes(&t, L "self_attn", "num_heads 8/2, num_key_value_heads 2/1");
    tiny_drop(&t);
}

static void nothing_is_divided_without_tp(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("4", "4", "4"), .params = FOUR, .mesh = "dp=2,cp=2");
    (void)state;
    tiny_attributes(&t, L "self_attn", "");
    tiny_drop(&t);
}

static void only_attention_has_counts(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("4", "4", "4"), .mesh = "tp=2");
    (void)state;
    tiny_attributes(&t, L "mlp", "");
    tiny_attributes(&t, "model.norm", "");
    tiny_attributes(&t, "lm_head", "");
    tiny_drop(&t);
}

static void head_width_is_never_divided(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("8", "2", "2"), .params = EIGHT_TWO, .mesh = "tp=2");
    const sw_spec *spec = tiny_spec(&t, L "self_attn");
    (void)state;
    for (uint32_t i = 0; i < spec->n_tp_local; i++)
        assert_null(strstr(spec->tp_local[i].name, "dim"));
    tiny_drop(&t);
}

static void latent_attention_divides_query_heads_only(void **state)
{
    tiny t = TINY_PLAN(
            .config =
                "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', "
                "'num_hidden_layers': 1, "
                "'hidden_size': 8, 'num_attention_heads': 2, 'num_key_value_heads': 2, 'q_lora_rank': 4, "
                "'kv_lora_rank': 4, 'qk_nope_head_dim': 2, 'qk_rope_head_dim': 2, 'v_head_dim': 4, "
                "'vocab_size': 8, 'n_routed_experts': 2, 'moe_intermediate_size': 4, 'intermediate_size': 8, "
                "'first_k_dense_replace': 1",
            .mesh = "tp=2");
    (void)state;
    tiny_attributes(&t, L "self_attn", "num_heads 2/1");
    assert_false(sw_spec_has_keys(t.plan, tiny_spec(&t, L "self_attn")));
    tiny_drop(&t);
}

static void a_fused_projection_has_both(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 16, "
                            "'num_hidden_layers': 1, 'num_attention_heads': 8, 'num_key_value_heads': 2, "
                            "'intermediate_size': 16, 'vocab_size': 16",
                  .mesh = "tp=2");
    (void)state;
    assert_true(sw_spec_has_keys(t.plan, tiny_spec(&t, L "self_attn")));
    tiny_attributes(&t, L "self_attn", "num_heads 8/4, num_key_value_heads 2/1");
    tiny_drop(&t);
}

/* ---- declared ---- */

#define DECLARE(what) "- match: model.layers.0.mlp\n  tp_divide_attrs: [" what "]\n"

static void declared_attributes_are_divided(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA("4", "4", "4"), .mesh = "tp=2", .overrides = DECLARE("intermediate_size"));
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    tiny_attributes(&t, L "mlp", "intermediate_size 16/8");
    assert_true(spec->tp_local[0].is_declared);
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA("4", "4", "4"), .mesh = "tp=2",
                  .overrides = DECLARE("hidden_size, vocab_size"));
    tiny_attributes(&t, L "mlp", "hidden_size 16/8, vocab_size 16/8");
    tiny_drop(&t);
}

static void an_empty_list_clears_an_earlier_one(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("4", "4", "4"), .mesh = "tp=2",
                       .overrides = DECLARE("hidden_size") "- match: '*.mlp'\n  tp_divide_attrs: []\n");
    (void)state;
    tiny_attributes(&t, L "mlp", "");
    tiny_drop(&t);
}

static void check_refused(const char *match, const char *name, const char *why)
{
    char overrides[256];
    (void)snprintf(overrides, sizeof overrides, "- match: %s\n  tp_divide_attrs: [%s]\n", match, name);
    tiny t = TINY_REFUSE(.config = LLAMA("4", "4", "4"), .mesh = "tp=2", .overrides = overrides);
    tiny_finding(&t, SW_SEVERITY_ERROR, "tp_divide", why, NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "tp_divide", name, NULL);
    tiny_drop(&t);
}

static void what_cannot_be_divided_is_refused_by_name(void **state)
{
    (void)state;
    check_refused("model.layers.0.self_attn", "head_dim", "is never divided");
    check_refused("model.layers.0.self_attn", "num_key_value_groups", "is never divided");
    check_refused("model.layers.0.self_attn", "training", "is never divided");
    check_refused("model.layers.0.self_attn", "_hp_secret", "is never divided");
    check_refused("model.layers.0.self_attn", "num_heads", "divided by itself already");
    check_refused("model.layers.0.self_attn", "num_attention_heads", "divided by itself already");
    check_refused("model.layers.0.mlp", "no_such_number", "is not a positive integer");
    check_refused("model.layers.0.mlp", "q_lora_rank", "is not a positive integer");
    check_refused("model.layers.0.mlp", "num_hidden_layers", "is not divisible by tp");
}

/* ---- a module that is not there ---- */

static void attributes_of_a_module_that_does_not_exist_are_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA("4", "4", "4"), .mesh = "tp=2",
                         .overrides = "- match: model.layers.7.mlp\n  tp_divide_attrs: [hidden_size]\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unmatched", "model.layers.7.mlp", "model.layers.0.mlp");
    tiny_drop(&t);
}

static void head_counts_that_are_no_number_are_refused_where_a_cut_needs_them(void **state)
{
    static const char config[] = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, "
                                 "'num_attention_heads': 4, 'num_key_value_heads': [4, 2], "
                                 "'intermediate_size': [16, 32]";
    static const char params[] = "model.layers.0.self_attn.q_proj.weight F32 16x16\n"
                                 "model.layers.0.self_attn.k_proj.weight F32 16x16\n"
                                 "model.layers.0.self_attn.v_proj.weight F32 16x16\n"
                                 "model.layers.0.self_attn.o_proj.weight F32 16x16\n";
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads_unknown", "16 rows cannot be cut in whole heads",
                 "num_key_value_heads");
    tiny_finding(&t, SW_SEVERITY_WARNING, "config_value",
                 "key \"num_key_value_heads\" is a list ([4, 2]), not an integer: it counts as not given",
                 NULL);
    tiny_drop(&t);
    t = TINY_PLAN(.config = config, .params = params, .mesh = "dp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "config_value", "intermediate_size", "unless a cut needs it");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_divided_with_their_projections),
        cmocka_unit_test(one_key_value_head_stays_one),
        cmocka_unit_test(nothing_is_divided_without_tp),
        cmocka_unit_test(only_attention_has_counts),
        cmocka_unit_test(head_width_is_never_divided),
        cmocka_unit_test(latent_attention_divides_query_heads_only),
        cmocka_unit_test(a_fused_projection_has_both),
        cmocka_unit_test(declared_attributes_are_divided),
        cmocka_unit_test(an_empty_list_clears_an_earlier_one),
        cmocka_unit_test(what_cannot_be_divided_is_refused_by_name),
        cmocka_unit_test(attributes_of_a_module_that_does_not_exist_are_refused),
        cmocka_unit_test(head_counts_that_are_no_number_are_refused_where_a_cut_needs_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
