/*
 * Section D of the bug cases: a bias enters a sum over tp exactly once, forward and backward. A row bias is
 * whole and added after the exit (deferred); where the region weights it before its exit (experts) one rank
 * adds it.
 */
#include "tiny_model.h"

#include <string.h>

#define L "model.layers.0."

#define LLAMA_BIASED                                                                                         \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'attention_bias': true, 'mlp_bias': true"
#define LINEAR(name) name ".weight F32 16x16\n" name ".bias F32 16\n"
#define BIASED                                                                                               \
    LINEAR(L "self_attn.q_proj")                                                                             \
    LINEAR(L "self_attn.k_proj")                                                                             \
    LINEAR(L "self_attn.v_proj")                                                                             \
    LINEAR(L "self_attn.o_proj") LINEAR(L "mlp.gate_proj") LINEAR(L "mlp.up_proj") LINEAR(L "mlp.down_proj")

/* ---- 33 ---- */

static void a_row_bias_is_whole_and_added_once_after_the_sum(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4");
    (void)state;
    tiny_rows(&t, L "self_attn.o_proj.bias", 3, "all");
    tiny_rows(&t, L "mlp.down_proj.bias", 3, "all");
    tiny_deferred(&t, L "self_attn", "o_proj.bias");
    tiny_deferred(&t, L "mlp", "down_proj.bias");
    assert_true(tiny_facts(&t, L "self_attn.o_proj.bias")->is_deferred);
    assert_false(tiny_facts(&t, L "self_attn.o_proj.bias")->is_rank0_only);
    tiny_drop(&t);
}

static void a_column_bias_is_cut_with_its_weight(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4");
    (void)state;
    tiny_role(&t, L "self_attn.q_proj.bias", "colwise");
    tiny_rows(&t, L "self_attn.q_proj.bias", 0, "0:4");
    tiny_rows(&t, L "self_attn.q_proj.bias", 3, "12:16");
    tiny_rows(&t, L "mlp.gate_proj.bias", 2, "8:12");
    assert_false(tiny_facts(&t, L "self_attn.q_proj.bias")->is_deferred);
    tiny_drop(&t);
}

static void nothing_is_deferred_without_tp(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_BIASED, .params = BIASED, .mesh = "dp=4");
    (void)state;
    tiny_deferred(&t, L "self_attn", "");
    tiny_deferred(&t, L "mlp", "");
    tiny_drop(&t);
}

static void an_override_that_cuts_a_row_bias_is_refused(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4",
                    .overrides = "- match: '*.self_attn'\n  params: {+: {o_proj.bias: {tp: shard(0)}}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "o_proj.bias", "replicate");
    tiny_drop(&t);
}

static void an_override_that_keeps_a_column_bias_whole_is_refused(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4",
                    .overrides = "- match: '*.self_attn'\n  params: {+: {q_proj.bias: {tp: replicate}}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "q_proj.bias", NULL);
    tiny_drop(&t);
}

/* ---- 35 ---- */

static void each_half_of_a_parallel_residual_defers_its_own_bias(void **state)
{
    const char *at = "gpt_neox.layers.0.attention";
    tiny t =
        TINY_PLAN(.config = "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', "
                            "'num_hidden_layers': 1, 'hidden_size': 16, 'num_attention_heads': 4, "
                            "'intermediate_size': 16, 'vocab_size': 16, 'use_parallel_residual': true",
                  .params = "gpt_neox.layers.0.attention.query_key_value.weight F32 48x16\n"
                            "gpt_neox.layers.0.attention.query_key_value.bias F32 48\n" //
                  LINEAR("gpt_neox.layers.0.attention.dense") LINEAR("gpt_neox.layers.0.mlp.dense_h_to_4h")
                      LINEAR("gpt_neox.layers.0.mlp.dense_4h_to_h"),
                  .mesh = "tp=2");
    (void)state;
    tiny_deferred(&t, at, "dense.bias");
    tiny_deferred(&t, "gpt_neox.layers.0.mlp", "dense_4h_to_h.bias");
    /* One reduction a boundary: two a block. */
    tiny_lowering(&t, at, "in tp all_gather 1 reduce_scatter; out tp reduce_scatter 1 all_gather");
    tiny_rows(&t, "gpt_neox.layers.0.attention.query_key_value.bias", 0, "0:24");
    tiny_drop(&t);
}

/* ---- 36 ---- */

static void the_gradient_of_a_deferred_bias_is_that_of_its_own_tokens(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4", .no_sp = true);
    (void)state;
    tiny_grads(&t, L "self_attn.o_proj.bias", ""); /* added to whole tokens on every rank: whole already */
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA_BIASED, .params = BIASED, .mesh = "tp=4");
    tiny_grads(&t, L "self_attn.o_proj.bias", "tp sequence"); /* added to this rank's tokens */
    tiny_grads(&t, L "mlp.down_proj.bias", "tp sequence");
    tiny_grads(&t, L "self_attn.q_proj.bias", "");
    tiny_drop(&t);
}

/* ---- 37 ---- */

#define GPT_OSS                                                                                              \
    "'architectures': ['GptOssForCausalLM'], 'model_type': 'gpt_oss', 'num_hidden_layers': 1, "              \
    "'hidden_size': 8, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 4, 'vocab_size': "    \
    "16, "                                                                                                   \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, 'intermediate_size': 4"
#define GPT_OSS_EXPERTS                                                                                      \
    L "mlp.router.weight BF16 4x8\n" L "mlp.router.bias BF16 4\n" L                                          \
      "mlp.experts.gate_up_proj BF16 4x8x8\n" L "mlp.experts.gate_up_proj_bias BF16 4x8\n" L                 \
      "mlp.experts.down_proj BF16 4x4x8\n" L "mlp.experts.down_proj_bias BF16 4x8\n"
#define DOWN_BIAS L "mlp.experts.down_proj_bias"

static void an_experts_output_bias_is_added_on_one_rank_of_tp(void **state)
{
    tiny t = TINY_PLAN(.config = GPT_OSS, .params = GPT_OSS_EXPERTS, .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, DOWN_BIAS, 1, "all");
    assert_true(tiny_facts(&t, DOWN_BIAS)->is_rank0_only);
    assert_false(tiny_facts(&t, DOWN_BIAS)->is_deferred); /* weighted by the router before the exit */
    tiny_deferred(&t, L "mlp", "");
    tiny_grads(&t, DOWN_BIAS, "tp partial");
    /* Its column bias follows the interleaved rows of its weight. */
    tiny_tp(&t, L "mlp.experts.gate_up_proj_bias", "S(1)");
    tiny_rows(&t, L "mlp.experts.gate_up_proj_bias", 0, "0:4");
    tiny_drop(&t);
}

static void under_expert_parallel_each_expert_has_its_bias_once(void **state)
{
    tiny t = TINY_PLAN(.config = GPT_OSS, .params = GPT_OSS_EXPERTS, .mesh = "tp=2", .ep = 2);
    (void)state;
    tiny_tp(&t, DOWN_BIAS, "R");
    tiny_ep_rows(&t, DOWN_BIAS, 0, "0:2");
    tiny_ep_rows(&t, DOWN_BIAS, 1, "2:4");
    assert_false(tiny_facts(&t, DOWN_BIAS)->is_rank0_only); /* its experts run on one rank each */
    tiny_grads(&t, DOWN_BIAS, "");
    tiny_drop(&t);
}

static void with_an_expert_axis_the_bias_is_cut_over_it_and_added_once_over_tp(void **state)
{
    tiny t = TINY_PLAN(.config = GPT_OSS, .params = GPT_OSS_EXPERTS, .mesh = "ep=2,tp=2");
    (void)state;
    tiny_tp(&t, DOWN_BIAS, "R");
    tiny_ep_rows(&t, DOWN_BIAS, 1, "2:4");
    assert_true(tiny_facts(&t, DOWN_BIAS)->is_rank0_only);
    tiny_grads(&t, DOWN_BIAS, "tp partial");
    tiny_drop(&t);
}

/* ---- 110 (planning part) ---- */

static void a_transposed_row_linear_defers_its_bias_too(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_layer': 1, "
                                 "'n_embd': 16, 'n_head': 4, 'vocab_size': 48, 'n_positions': 8",
                       .params = "h.0.attn.c_attn.weight F32 16x48\nh.0.attn.c_attn.bias F32 48\n"
                                 "h.0.attn.c_proj.weight F32 16x16\nh.0.attn.c_proj.bias F32 16\n"
                                 "h.0.mlp.c_fc.weight F32 16x64\nh.0.mlp.c_fc.bias F32 64\n"
                                 "h.0.mlp.c_proj.weight F32 64x16\nh.0.mlp.c_proj.bias F32 16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_deferred(&t, "h.0.attn", "c_proj.bias");
    tiny_deferred(&t, "h.0.mlp", "c_proj.bias");
    /* Stored [in, out]: a column weight is cut along dim 1 and a row weight along dim 0. */
    tiny_tp(&t, "h.0.attn.c_attn.weight", "S(1;seg=16+16+16)");
    tiny_rows(&t, "h.0.attn.c_attn.weight", 0, "0:8 16:24 32:40");
    tiny_rows(&t, "h.0.attn.c_attn.bias", 0, "0:8 16:24 32:40");
    tiny_tp(&t, "h.0.attn.c_proj.weight", "S(0)");
    tiny_tp(&t, "h.0.mlp.c_fc.weight", "S(1)");
    tiny_tp(&t, "h.0.mlp.c_proj.weight", "S(0)");
    tiny_rows(&t, "h.0.mlp.c_proj.weight", 1, "32:64");
    tiny_drop(&t);
}

static void the_bias_of_an_output_head_is_cut_with_the_vocabulary(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['GPTJForCausalLM'], 'model_type': 'gptj', 'n_layer': 1, "
                                 "'n_embd': 16, 'n_head': 4, 'vocab_size': 48",
                       .params = "lm_head.weight F32 48x16\nlm_head.bias F32 48\n", .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, "lm_head.bias", 0, "0:24");
    tiny_rows(&t, "lm_head.bias", 1, "24:48");
    tiny_drop(&t);
    /* By the default rules too, which say BIAS: it follows the weight beside it. */
    t = TINY_PLAN(.config = "'architectures': ['StrangerForCausalLM']",
                  .params = "lm_head.weight F32 48x16\nlm_head.bias F32 48\n", .mesh = "tp=2");
    tiny_rows(&t, "lm_head.bias", 0, "0:24");
    tiny_drop(&t);
}

static void a_tied_head_has_a_bias_of_its_own(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['PhiForCausalLM'], 'model_type': 'phi', "
                            "'num_hidden_layers': 1, 'hidden_size': 16, 'num_attention_heads': 4, "
                            "'vocab_size': 48, 'tie_word_embeddings': true",
                  .params = "model.embed_tokens.weight F32 48x16\nlm_head.bias F32 48\n", .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_tied, 1);
    assert_string_equal(t.plan->tied[0].first, "model.embed_tokens.weight");
    assert_string_equal(t.plan->tied[0].second, "lm_head.weight");
    tiny_rows(&t, "lm_head.bias", 1, "24:48");
    tiny_contract(&t, "lm_head", SW_AXIS_TP, "hidden_states: S(1) -> R; output: S(-1) -> R");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_bias_is_whole_and_added_once_after_the_sum),
        cmocka_unit_test(a_column_bias_is_cut_with_its_weight),
        cmocka_unit_test(nothing_is_deferred_without_tp),
        cmocka_unit_test(an_override_that_cuts_a_row_bias_is_refused),
        cmocka_unit_test(an_override_that_keeps_a_column_bias_whole_is_refused),
        cmocka_unit_test(each_half_of_a_parallel_residual_defers_its_own_bias),
        cmocka_unit_test(the_gradient_of_a_deferred_bias_is_that_of_its_own_tokens),
        cmocka_unit_test(an_experts_output_bias_is_added_on_one_rank_of_tp),
        cmocka_unit_test(under_expert_parallel_each_expert_has_its_bias_once),
        cmocka_unit_test(with_an_expert_axis_the_bias_is_cut_over_it_and_added_once_over_tp),
        cmocka_unit_test(a_transposed_row_linear_defers_its_bias_too),
        cmocka_unit_test(the_bias_of_an_output_head_is_cut_with_the_vocabulary),
        cmocka_unit_test(a_tied_head_has_a_bias_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
