/*
 * Section B of the bug cases: head counts, grouped key/value heads, parameters that are sized by heads. A
 * piece is never less than a head; what cannot be is refused before anything is loaded, with the degrees that
 * can.
 */
#include "plan_text.h"
#include "tiny_model.h"

#include <string.h>

#include "base/status.h"
#include "plan/layout.h"

#define L  "model.layers.0."
#define SA L "self_attn."

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, 'vocab_size': "   \
    "16, "

/* H=8 K=2 d=4 */
#define LLAMA_8_2                                                                                            \
    LLAMA "'hidden_size': 32, 'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16"
#define ATTENTION_8_2                                                                                        \
    SA "q_proj.weight F32 32x32\n" SA "k_proj.weight F32 8x32\n" SA "v_proj.weight F32 8x32\n" SA            \
       "o_proj.weight F32 32x32\n"

/* ---- 14 ---- */

static void key_value_heads_are_replicated_when_tp_is_larger(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_8_2, .params = ATTENTION_8_2, .mesh = "tp=4");
    (void)state;
    tiny_tp(&t, SA "k_proj.weight", "S(0;rep=2)");
    tiny_rows(&t, SA "k_proj.weight", 0, "0:4");
    tiny_rows(&t, SA "k_proj.weight", 1, "0:4");
    tiny_rows(&t, SA "k_proj.weight", 2, "4:8");
    tiny_rows(&t, SA "k_proj.weight", 3, "4:8");
    tiny_rows(&t, SA "v_proj.weight", 3, "4:8");
    tiny_rows(&t, SA "q_proj.weight", 3, "24:32");
    tiny_rows(&t, SA "o_proj.weight", 3, "24:32");
    tiny_tiles(&t, SA "k_proj.weight", 2);
    tiny_drop(&t);
}

static void gradients_of_replicated_key_value_heads_are_summed_in_their_group(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_8_2, .params = ATTENTION_8_2, .mesh = "dp=2,tp=4");
    (void)state;
    tiny_grads(&t, SA "k_proj.weight", "tp/2 kv_replica, dp data");
    tiny_grads(&t, SA "v_proj.weight", "tp/2 kv_replica, dp data");
    tiny_grads(&t, SA "q_proj.weight", "dp data");
    tiny_grads(&t, SA "o_proj.weight", "dp data");
    tiny_attributes(&t, L "self_attn", "num_heads 8/2, num_key_value_heads 2/1");
    tiny_drop(&t);
}

/* ---- 15 ---- */

/* Planned at that tp, attention with these heads (d=4, hidden 16) is refused, and the help names the degrees.
 */
static void check_degrees(const char *config, const char *params, const char *mesh, const char *what,
                          const char *degrees)
{
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = mesh);
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", what, degrees);
    tiny_drop(&t);
}

static void degrees_that_28_heads_in_4_groups_allow_are_listed(void **state)
{
    (void)state;
    check_degrees(
        LLAMA "'hidden_size': 16, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'head_dim': 4",
        SA "q_proj.weight F32 112x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA
           "o_proj.weight F32 16x112\n",
        "tp=8", "28 query heads", "tp sizes that fit: 1, 2, 4; with key/value heads replicated: 28");
}

static void degrees_that_40_heads_in_10_groups_allow_are_listed(void **state)
{
    (void)state;
    check_degrees(LLAMA
                  "'hidden_size': 16, 'num_attention_heads': 40, 'num_key_value_heads': 10, 'head_dim': 4",
                  SA "q_proj.weight F32 160x16\n" SA "k_proj.weight F32 40x16\n" SA
                     "v_proj.weight F32 40x16\n" SA "o_proj.weight F32 16x160\n",
                  "tp=4", "10 key/value heads",
                  "tp sizes that fit: 1, 2, 5, 10; with key/value heads replicated: 20, 40");
}

static void degrees_that_12_heads_in_4_groups_allow_are_listed(void **state)
{
    (void)state;
    check_degrees(
        LLAMA "'hidden_size': 16, 'num_attention_heads': 12, 'num_key_value_heads': 4, 'head_dim': 4",
        SA "q_proj.weight F32 48x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA
           "o_proj.weight F32 16x48\n",
        "tp=3", "4 key/value heads", "tp sizes that fit: 1, 2, 4; with key/value heads replicated: 12");
}

static void every_violated_constraint_is_named_in_one_run(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA
                    "'hidden_size': 16, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'head_dim': 4, "
                    "'intermediate_size': 20",
                    .params = SA "q_proj.weight F32 112x16\n" SA "k_proj.weight F32 16x16\n" SA
                                 "v_proj.weight F32 16x16\n" SA "o_proj.weight F32 16x112\n" L
                                 "mlp.gate_proj.weight F32 20x16\n" L "mlp.up_proj.weight F32 20x16\n" L
                                 "mlp.down_proj.weight F32 16x20\n",
                    .mesh = "tp=8");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", "28 query heads", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "indivisible", "20 rows are not divisible by tp=8",
                 "1, 2, 4, 5, 10, 20");
    tiny_drop(&t);
}

/* ---- 16 ---- */

static void uneven_heads_are_refused_with_the_legal_list(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA "'hidden_size': 32, 'num_attention_heads': 8, 'num_key_value_heads': 4, "
                                    "'intermediate_size': 20",
                    .params = SA "q_proj.weight F32 32x32\n" SA "k_proj.weight F32 16x32\n" SA
                                 "v_proj.weight F32 16x32\n" SA "o_proj.weight F32 32x32\n",
                    .mesh = "tp=3");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", "tp=3",
                 "tp sizes that fit: 1, 2, 4; with key/value heads replicated: 8");
    tiny_drop(&t);
}

/* ---- 18 ---- */

#define OLMO2                                                                                                \
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', 'num_hidden_layers': 1, 'vocab_size': "   \
    "16, "                                                                                                   \
    "'hidden_size': 32, 'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16"
#define FULL_NORMS SA "q_norm.weight F32 32\n" SA "k_norm.weight F32 8\n"

static void a_norm_over_all_heads_is_cut_with_the_heads_that_a_rank_holds(void **state)
{
    tiny t = TINY_PLAN(.config = OLMO2, .params = ATTENTION_8_2 FULL_NORMS, .mesh = "tp=4");
    (void)state;
    assert_string_equal(tiny_owner(&t, SA "q_norm.weight"), L "self_attn");
    tiny_rows(&t, SA "q_norm.weight", 0, "0:8");
    tiny_rows(&t, SA "q_norm.weight", 3, "24:32");
    tiny_rows(&t, SA "k_norm.weight", 0, "0:4");
    tiny_rows(&t, SA "k_norm.weight", 1, "0:4");
    tiny_rows(&t, SA "k_norm.weight", 2, "4:8");
    tiny_rows(&t, SA "k_norm.weight", 3, "4:8");
    tiny_tiles(&t, SA "k_norm.weight", 2); /* a merge keeps one copy of each head: 8 rows */
    tiny_grads(&t, SA "q_norm.weight", "");
    tiny_grads(&t, SA "k_norm.weight", "tp/2 kv_replica");
    tiny_drop(&t);
}

static void its_mean_square_counts_every_key_value_head_once(void **state)
{
    tiny t = TINY_PLAN(.config = OLMO2, .params = ATTENTION_8_2 FULL_NORMS, .mesh = "tp=4");
    const sw_spec *spec = tiny_spec(&t, L "self_attn");
    (void)state;
    assert_int_equal(spec->n_inner, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(spec->inner[i].op, "mean_square");
        assert_int_equal(spec->inner[i].axis, SW_AXIS_TP);
        assert_int_equal(spec->inner[i].n_params, 1);
    }
    assert_string_equal(spec->inner[0].params[0], "q_norm.weight");
    assert_int_equal(spec->inner[0].replicas, 1);
    assert_string_equal(spec->inner[1].params[0], "k_norm.weight");
    assert_int_equal(spec->inner[1].replicas, 2);
    tiny_drop(&t);
}

static void a_layer_norm_over_all_heads_sums_its_mean_before_its_mean_square(void **state)
{
    static const char *const expected[][2] = {
        {"mean",        "q_ln.weight"},
        {"mean_square", "q_ln.weight"},
        {"mean",        "k_ln.weight"},
        {"mean_square", "k_ln.weight"},
    };
    tiny t = TINY_PLAN(.config = "'architectures': ['MPTForCausalLM'], 'model_type': 'mpt', 'd_model': 32, "
                                 "'n_layers': 1, 'n_heads': 8, 'vocab_size': 64, 'max_seq_len': 16, "
                                 "'no_bias': false, 'attn_config': {'qk_ln': true, 'attn_type': "
                                 "'grouped_query_attention', 'kv_n_heads': 2}",
                       .mesh = "tp=4");
    const sw_spec *spec = tiny_spec(&t, "transformer.blocks.0.attn");
    (void)state;
    assert_int_equal(spec->n_inner, SW_COUNT(expected));
    for (uint32_t i = 0; i < SW_COUNT(expected); i++) {
        assert_string_equal(spec->inner[i].op, expected[i][0]);
        assert_string_equal(spec->inner[i].params[0], expected[i][1]);
        assert_int_equal(spec->inner[i].replicas, i < 2 ? 1 : 2);
    }
    tiny_rows(&t, "transformer.blocks.0.attn.q_ln.bias", 3, "24:32");
    tiny_rows(&t, "transformer.blocks.0.attn.k_ln.bias", 3, "4:8");
    tiny_grads(&t, "transformer.blocks.0.attn.k_ln.bias", "tp/2 kv_replica");
    char *text = plan_text(t.plan);
    plan_same_again(text);
    sw_text_free(text);
    tiny_drop(&t);
}

static void an_unknown_family_with_a_norm_over_all_heads_is_cut_the_same(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['MiniMaxM2ForCausalLM'], 'model_type': 'minimax_m2', "
                                 "'num_hidden_layers': 1, 'hidden_size': 32, 'num_attention_heads': 8, "
                                 "'num_key_value_heads': 2, 'head_dim': 4",
                       .params = ATTENTION_8_2 FULL_NORMS, .mesh = "tp=4");
    (void)state;
    tiny_rows(&t, SA "q_norm.weight", 1, "8:16");
    tiny_rows(&t, SA "k_norm.weight", 3, "4:8");
    assert_int_equal(tiny_spec(&t, L "self_attn")->n_inner, 2);
    tiny_drop(&t);
}

/* ---- 21 ---- */

#define PHI3_8_2                                                                                             \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': "   \
    "1, "                                                                                                    \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 16"

static void attributes_stay_whole_where_the_projections_do(void **state)
{
    tiny t =
        TINY_PLAN(.config = PHI3_8_2,
                  .params = SA "qkv_proj.weight F32 48x32\n" SA "o_proj.weight F32 32x32\n", .mesh = "tp=2",
                  .overrides =
                      "- match: model.layers.0.self_attn\n"
                      "  params: {qkv_proj.weight: {tp: replicate}, o_proj.weight: {tp: replicate}}\n"
                      "  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_rows(&t, SA "qkv_proj.weight", 1, "all");
    tiny_attributes(&t, L "self_attn", "num_heads 8/8, num_key_value_heads 2/2");
    tiny_drop(&t);
}

static void attributes_are_divided_where_the_projections_are(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_8_2, .params = ATTENTION_8_2, .mesh = "tp=2");
    (void)state;
    tiny_attributes(&t, L "self_attn", "num_heads 8/4, num_key_value_heads 2/1");
    /* Rows on the rank are local heads times d. */
    tiny_rows(&t, SA "q_proj.weight", 1, "16:32");
    tiny_rows(&t, SA "k_proj.weight", 1, "4:8");
    tiny_drop(&t);
}

/* ---- 22 ---- */

static void attention_sinks_are_cut_by_heads(void **state)
{
    tiny t =
        TINY_PLAN(.config =
                      "'architectures': ['GptOssForCausalLM'], 'model_type': 'gpt_oss', "
                      "'num_hidden_layers': 1, 'hidden_size': 32, 'num_attention_heads': 8, "
                      "'num_key_value_heads': 2, 'head_dim': 4, 'vocab_size': 16, 'num_local_experts': 4, "
                      "'intermediate_size': 32",
                  .params = ATTENTION_8_2 SA "sinks F32 8\n", .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, SA "sinks", 0, "0:4");
    tiny_rows(&t, SA "sinks", 1, "4:8");
    tiny_grads(&t, SA "sinks", "");
    tiny_drop(&t);
}

static void an_unnamed_parameter_of_one_row_a_head_is_reported(void **state)
{
    const char *params = ATTENTION_8_2 SA "to_gate_logits.weight F32 8x32\n" SA "to_gate_logits.bias F32 8\n";
    tiny t = TINY_REFUSE(.config = LLAMA_8_2, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", SA "to_gate_logits.weight", "roles:");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA_8_2, .params = params, .mesh = "tp=2",
                  .overrides = "roles: {extend: true, rules: [[to_gate_logits, colwise, segment_exact]]}\n"
                               "overrides:\n- match: '*.to_gate_logits'\n  layout: heads\n");
    tiny_rows(&t, SA "to_gate_logits.weight", 0, "0:4");
    tiny_rows(&t, SA "to_gate_logits.weight", 1, "4:8");
    tiny_rows(&t, SA "to_gate_logits.bias", 1, "4:8");
    tiny_drop(&t);
}

/* ---- 23 ---- */

#define MLA                                                                                                  \
    "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'num_hidden_layers': 1, "      \
    "'hidden_size': 32, 'num_attention_heads': 8, 'num_key_value_heads': 1, 'q_lora_rank': 6, "              \
    "'kv_lora_rank': 4, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 16, "   \
    "'n_routed_experts': 4, 'moe_intermediate_size': 8, 'intermediate_size': 16, 'first_k_dense_replace': 1"
#define MLA_PARAMS                                                                                           \
    SA "q_a_proj.weight F32 6x32\n" SA "q_a_layernorm.weight F32 6\n" SA "q_b_proj.weight F32 48x6\n" SA     \
       "kv_a_proj_with_mqa.weight F32 6x32\n" SA "kv_a_layernorm.weight F32 4\n" SA                          \
       "kv_b_proj.weight F32 64x4\n" SA "o_proj.weight F32 32x32\n"

static void latent_attention_is_held_to_its_query_heads_only(void **state)
{
    static const char *const whole[] = {"q_a_proj.weight", "q_a_layernorm.weight",
                                        "kv_a_proj_with_mqa.weight", "kv_a_layernorm.weight"};
    tiny t = TINY_PLAN(.config = MLA, .params = MLA_PARAMS, .mesh = "tp=4");
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char name[128] = SA;
        strcat(name, whole[i]);
        tiny_rows(&t, name, 0, "all");
        tiny_grads(&t, name, "tp partial");
        assert_string_equal(tiny_owner(&t, name), L "self_attn");
    }
    tiny_rows(&t, SA "q_b_proj.weight", 0, "0:12");
    tiny_rows(&t, SA "q_b_proj.weight", 3, "36:48");
    tiny_rows(&t, SA "kv_b_proj.weight", 0, "0:16");
    tiny_rows(&t, SA "kv_b_proj.weight", 3, "48:64");
    tiny_rows(&t, SA "o_proj.weight", 3, "24:32");
    tiny_type(&t, L "self_attn", "attention");
    tiny_drop(&t);
}

static void latent_attention_refuses_what_its_heads_do_not_allow(void **state)
{
    tiny t = TINY_REFUSE(.config = MLA, .params = MLA_PARAMS, .mesh = "tp=3");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", "8 query heads", "1, 2, 4, 8");
    tiny_drop(&t);
}

/* ---- 24 ---- */

static void one_key_value_head_is_never_cut_inside(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['Qwen3ForCausalLM'], 'model_type': 'qwen3', "
                                 "'num_hidden_layers': 1, 'hidden_size': 32, 'num_attention_heads': 8, "
                                 "'num_key_value_heads': 1, 'head_dim': 8, 'vocab_size': 16",
                       .params = SA "q_proj.weight F32 64x32\n" SA "k_proj.weight F32 8x32\n" SA
                                    "v_proj.weight F32 8x32\n" SA "o_proj.weight F32 32x64\n" SA
                                    "q_norm.weight F32 8\n" SA "k_norm.weight F32 8\n",
                       .mesh = "tp=2");
    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        tiny_rows(&t, SA "k_proj.weight", rank, "0:8");
        tiny_rows(&t, SA "v_proj.weight", rank, "0:8");
        tiny_rows(&t, SA "k_norm.weight", rank, "all");
    }
    tiny_rows(&t, SA "q_proj.weight", 1, "32:64");
    tiny_grads(&t, SA "k_proj.weight", "tp/2 kv_replica");
    tiny_grads(&t, SA "k_norm.weight", "tp partial");
    tiny_drop(&t);
}

/* ---- 25 ---- */

static void context_parallel_is_not_limited_by_key_value_heads(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_8_2, .params = ATTENTION_8_2, .mesh = "cp=4");
    const sw_spec *spec = tiny_spec(&t, L "self_attn");
    (void)state;
    assert_true(spec->needs_cp_attn);
    assert_int_equal(t.plan->n_parallel, 1);
    assert_string_equal(t.plan->parallel[0].fqn, L "self_attn.core");
    assert_string_equal(t.plan->parallel[0].kind, "cp");
    assert_int_equal(t.plan->parallel[0].size, 4);
    tiny_contract(&t, L "self_attn", SW_AXIS_CP, "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_value_heads_are_replicated_when_tp_is_larger),
        cmocka_unit_test(gradients_of_replicated_key_value_heads_are_summed_in_their_group),
        cmocka_unit_test(degrees_that_28_heads_in_4_groups_allow_are_listed),
        cmocka_unit_test(degrees_that_40_heads_in_10_groups_allow_are_listed),
        cmocka_unit_test(degrees_that_12_heads_in_4_groups_allow_are_listed),
        cmocka_unit_test(every_violated_constraint_is_named_in_one_run),
        cmocka_unit_test(uneven_heads_are_refused_with_the_legal_list),
        cmocka_unit_test(a_norm_over_all_heads_is_cut_with_the_heads_that_a_rank_holds),
        cmocka_unit_test(its_mean_square_counts_every_key_value_head_once),
        cmocka_unit_test(a_layer_norm_over_all_heads_sums_its_mean_before_its_mean_square),
        cmocka_unit_test(an_unknown_family_with_a_norm_over_all_heads_is_cut_the_same),
        cmocka_unit_test(attributes_stay_whole_where_the_projections_do),
        cmocka_unit_test(attributes_are_divided_where_the_projections_are),
        cmocka_unit_test(attention_sinks_are_cut_by_heads),
        cmocka_unit_test(an_unnamed_parameter_of_one_row_a_head_is_reported),
        cmocka_unit_test(latent_attention_is_held_to_its_query_heads_only),
        cmocka_unit_test(latent_attention_refuses_what_its_heads_do_not_allow),
        cmocka_unit_test(one_key_value_head_is_never_cut_inside),
        cmocka_unit_test(context_parallel_is_not_limited_by_key_value_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
