/*
 * The gradient-reduction plan: over which axes each gradient is a partial sum, and why. The rules are one
 * logical loss (nothing averages); the cases are those that hand-written parallel training gets wrong in
 * silence.
 */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define L  "model.layers.0."
#define SA L "self_attn."

#define SIZES                                                                                                \
    "'num_hidden_layers': 1, 'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, "        \
    "'intermediate_size': 16, 'vocab_size': 16, 'tie_word_embeddings': false"
#define LLAMA "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', " SIZES
#define QWEN3 "'architectures': ['Qwen3ForCausalLM'], 'model_type': 'qwen3', 'head_dim': 4, " SIZES
#define GEMMA2                                                                                               \
    "'architectures': ['Gemma2ForCausalLM'], 'model_type': 'gemma2', 'head_dim': 4, 'num_hidden_layers': "   \
    "1, "                                                                                                    \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16"

/* ---- data and context ---- */

static void every_gradient_is_summed_over_data(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "dp=2");
    (void)state;
    for (uint32_t i = 0; i < t.plan->n_specs; i++) {
        for (uint32_t k = 0; k < t.plan->specs[i].n_params; k++) {
            const sw_facts *f = &t.plan->facts[t.plan->specs[i].params[k].facts];
            assert_int_equal(f->grad.n, 1);
            assert_int_equal(f->grad.sums[0].axis, SW_AXIS_DP);
            assert_int_equal(f->grad.sums[0].group, 0);
            assert_string_equal(f->grad.sums[0].reason, "data");
        }
    }
    tiny_drop(&t);
}

static void one_rank_sums_nothing(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=1");
    (void)state;
    tiny_grads(&t, SA "q_proj.weight", "");
    tiny_grads(&t, "model.norm.weight", "");
    tiny_drop(&t);
}

static void tokens_that_cp_cuts_sum_over_it(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "dp=2,cp=2");
    (void)state;
    tiny_grads(&t, "model.embed_tokens.weight", "cp context, dp data");
    tiny_grads(&t, SA "k_proj.weight", "cp context, dp data");
    tiny_grads(&t, "lm_head.weight", "cp context, dp data");
    tiny_drop(&t);
}

/* ---- sequence: norms under sequence parallel (57) ---- */

static void norms_see_their_ranks_tokens_only(void **state)
{
    static const char *const norms[] = {L "input_layernorm.weight", L "post_attention_layernorm.weight",
                                        "model.norm.weight"};
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    (void)state;
    for (size_t i = 0; i < SW_COUNT(norms); i++)
        tiny_grads(&t, norms[i], "tp sequence");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .no_sp = true);
    for (size_t i = 0; i < SW_COUNT(norms); i++)
        tiny_grads(&t, norms[i], "");
    tiny_drop(&t);
}

static void the_four_norms_of_a_sandwich_do_too(void **state)
{
    static const char *const norms[] = {"input_layernorm", "post_attention_layernorm",
                                        "pre_feedforward_layernorm", "post_feedforward_layernorm"};
    tiny t = TINY_PLAN(.config = GEMMA2, .mesh = "tp=2");
    (void)state;
    for (size_t i = 0; i < SW_COUNT(norms); i++) {
        char name[128];
        (void)snprintf(name, sizeof name, L "%s.weight", norms[i]);
        tiny_grads(&t, name, "tp sequence");
    }
    tiny_drop(&t);
}

static void norms_of_single_heads_are_partial_with_and_without_sp(void **state)
{
    (void)state;
    for (int sp = 0; sp < 2; sp++) {
        tiny t = TINY_PLAN(.config = QWEN3, .mesh = "dp=2,tp=2", .no_sp = sp == 0);
        tiny_grads(&t, SA "q_norm.weight", "tp partial, dp data");
        tiny_grads(&t, SA "k_norm.weight", "tp partial, dp data");
        tiny_drop(&t);
    }
}

static void position_tables_and_embedding_norms_see_a_slice(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_layer': 1, "
                                 "'n_embd': 16, 'n_head': 4, 'vocab_size': 16, 'n_positions': 8",
                       .mesh = "tp=2");
    (void)state;
    tiny_grads(&t, "wpe.weight", "tp sequence");
    tiny_grads(&t, "ln_f.bias", "tp sequence");
    tiny_drop(&t);
    t = TINY_PLAN(.config = "'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', 'n_layer': 1, "
                            "'hidden_size': 16, 'n_head': 4, 'vocab_size': 16",
                  .mesh = "tp=2");
    tiny_grads(&t, "word_embeddings_layernorm.weight", "tp sequence");
    tiny_grads(&t, "h.0.self_attention.dense.bias", "tp sequence");
    tiny_drop(&t);
}

static void a_sequence_in_front_of_the_batch_is_a_sequence_too(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.norm\n"
                                    "  in_src: {hidden_states: {tp: shard(0)}}\n"
                                    "  in_dst: {hidden_states: {tp: shard(0)}}\n"
                                    "  out_src: {tp: shard(0)}\n  out_dst: {tp: shard(0)}\n");
    (void)state;
    tiny_grads(&t, "model.norm.weight", "tp sequence");
    tiny_drop(&t);
}

/* ---- partial: whole parameters in a split region ---- */

static void latent_projections_and_their_norms_are_partial(void **state)
{
    tiny t = TINY_PLAN(.config =
                           "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', "
                           "'num_hidden_layers': 1, "
                           "'hidden_size': 8, 'num_attention_heads': 2, 'q_lora_rank': 4, 'kv_lora_rank': 4, "
                           "'qk_nope_head_dim': 2, 'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 8, "
                           "'n_routed_experts': 2, 'moe_intermediate_size': 4, 'intermediate_size': 8, "
                           "'first_k_dense_replace': 1",
                       .mesh = "tp=2", .no_sp = true);
    (void)state;
    tiny_grads(&t, SA "q_a_proj.weight", "tp partial");
    tiny_grads(&t, SA "kv_a_proj_with_mqa.weight", "tp partial");
    tiny_grads(&t, SA "kv_a_layernorm.weight", "tp partial");
    tiny_grads(&t, SA "q_b_proj.weight", "");
    tiny_drop(&t);
}

static void a_region_that_an_override_keeps_whole_has_no_partial_gradients(void **state)
{
    tiny t =
        TINY_PLAN(.config = QWEN3, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.self_attn\n"
                               "  params: {q_proj.weight: {tp: replicate}, k_proj.weight: {tp: replicate}, "
                               "v_proj.weight: {tp: replicate}, o_proj.weight: {tp: replicate}, "
                               "q_norm.weight: {tp: replicate}, k_norm.weight: {tp: replicate}}\n"
                               "  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_grads(&t, SA "q_norm.weight", "");
    tiny_grads(&t, SA "q_proj.weight", "");
    tiny_lowering(&t, L "self_attn", "in tp all_gather 1 slice; out tp slice 1 all_gather");
    tiny_drop(&t);
}

/* ---- mixers (58) ---- */

#define QWEN3_NEXT                                                                                           \
    "'architectures': ['Qwen3NextForCausalLM'], 'model_type': 'qwen3_next', 'num_hidden_layers': 1, "        \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 4, "                 \
    "'intermediate_size': 16, 'vocab_size': 16, 'num_experts': 2, 'moe_intermediate_size': 8, "              \
    "'shared_expert_intermediate_size': 8, 'linear_num_key_heads': 2, 'linear_num_value_heads': 2, "         \
    "'linear_key_head_dim': 2, 'linear_value_head_dim': 2, 'linear_conv_kernel_dim': 2, "                    \
    "'layer_types': ['linear_attention'], 'full_attention_interval': 4"

static void a_replicated_mixer_has_whole_gradients(void **state)
{
    (void)state;
    for (int sp = 0; sp < 2; sp++) {
        tiny t = TINY_PLAN(.config = QWEN3_NEXT, .mesh = "dp=2,tp=2", .no_sp = sp == 0);
        /* every rank runs the whole mixer on the gathered sequence: nothing is partial over tp */
        tiny_type(&t, L "linear_attn", "mixer");
        tiny_grads(&t, L "linear_attn.norm.weight", "dp data");
        tiny_grads(&t, L "linear_attn.A_log", "dp data");
        tiny_grads(&t, L "linear_attn.in_proj_qkvz.weight", "dp data");
        tiny_drop(&t);
    }
}

/* ---- towers ---- */

#define LLAVA                                                                                                \
    "'architectures': ['LlavaForConditionalGeneration'], 'model_type': 'llava', 'text_config': {"            \
    "'model_type': 'llama', " SIZES "}, 'vision_config': {'model_type': 'clip_vision_model', "               \
    "'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 4, 'intermediate_size': 16, "         \
    "'patch_size': 2, 'image_size': 4}"

static void a_tower_runs_whole_over_cp_and_sums_nothing_over_it(void **state)
{
    const char *at = "vision_tower.vision_model.encoder.layers.0.";
    char name[160];
    tiny t = TINY_PLAN(.config = LLAVA, .mesh = "dp=2,cp=2,tp=2");
    (void)state;
    (void)snprintf(name, sizeof name, "%sself_attn", at);
    tiny_contract(&t, name, SW_AXIS_CP, "hidden_states: R -> R; output: R -> R");
    tiny_contract(&t, name, SW_AXIS_TP, "hidden_states: R -> R; output: P -> R");
    (void)snprintf(name, sizeof name, "%sself_attn.q_proj.weight", at);
    tiny_grads(&t, name, "dp data");
    (void)snprintf(name, sizeof name, "%slayer_norm1.weight", at);
    tiny_grads(&t, name, "dp data");
    tiny_grads(&t, "multi_modal_projector.linear_1.weight", "dp data");
    tiny_drop(&t);
}

/* ---- what has none ---- */

static void buffers_and_frozen_tensors_have_no_gradient(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA,
                       .params = SA "q_proj.weight F32 16x16\n" SA "o_proj.weight F32 16x16\n" SA
                                    "rotary_emb.inv_freq F32 2\n",
                       .mesh = "dp=2,tp=2");
    (void)state;
    tiny_grads(&t, SA "rotary_emb.inv_freq", "");
    tiny_drop(&t);
}

static void four_sums_fit_a_parameter(void **state)
{
    tiny t = TINY_PLAN(
            .config =
                "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': "
                "1, "
                "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': "
                "16, "
                "'vocab_size': 16, 'num_experts': 4, 'moe_intermediate_size': 8, 'decoder_sparse_step': 1",
            .mesh = "dp=2,cp=2,ep=2,tp=2");
    (void)state;
    tiny_grads(&t, L "mlp.gate.weight", "tp partial, ep partial, cp context, dp data");
    tiny_drop(&t);
}

/* ---- reductions inside regions ---- */

static void an_explicit_expert_axis_sums_the_routed_path_inside(void **state)
{
    tiny t = TINY_PLAN(
            .config =
                "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': "
                "1, "
                "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': "
                "16, "
                "'vocab_size': 16, 'num_experts': 4, 'moe_intermediate_size': 8, 'decoder_sparse_step': 1",
            .mesh = "ep=2,tp=2");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    assert_true(spec->n_inner > 0);
    for (uint32_t i = 0; i < spec->n_inner; i++)
        assert_int_equal(spec->inner[i].axis, SW_AXIS_EP);
    assert_int_equal(tiny_spec(&t, L "self_attn")->n_inner, 0);
    tiny_drop(&t);
}

static void a_routers_correction_bias_has_no_gradient_in_any_family(void **state)
{
    static const char *const names[] = {"gate.e_score_correction_bias", "gate.expert_bias", "expert_bias"};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        char params[512];
        char fqn[128];
        (void)snprintf(params, sizeof params,
                       "model.layers.0.mlp.gate.weight F32 4x8\nmodel.layers.0.mlp.%s F32 4\n"
                       "model.layers.0.mlp.experts.w1 F32 4x6x8\nmodel.layers.0.mlp.experts.w2 F32 4x8x6\n",
                       names[i]);
        (void)snprintf(fqn, sizeof fqn, "model.layers.0.mlp.%s", names[i]);
        tiny t = TINY_PLAN(.config =
                               "'architectures': ['StrangerForCausalLM'], 'hidden_size': 8, 'num_experts': 4",
                           .params = params, .mesh = "dp=2,tp=2");
        tiny_grads(&t, fqn, "");
        tiny_grads(&t, "model.layers.0.mlp.gate.weight", "tp partial, dp data");
        assert_string_equal(tiny_facts(&t, fqn)->reason, "frozen");
        tiny_role(&t, fqn, "moe_gate");
        tiny_drop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_summed_over_data),
        cmocka_unit_test(one_rank_sums_nothing),
        cmocka_unit_test(tokens_that_cp_cuts_sum_over_it),
        cmocka_unit_test(norms_see_their_ranks_tokens_only),
        cmocka_unit_test(the_four_norms_of_a_sandwich_do_too),
        cmocka_unit_test(norms_of_single_heads_are_partial_with_and_without_sp),
        cmocka_unit_test(position_tables_and_embedding_norms_see_a_slice),
        cmocka_unit_test(a_sequence_in_front_of_the_batch_is_a_sequence_too),
        cmocka_unit_test(latent_projections_and_their_norms_are_partial),
        cmocka_unit_test(a_region_that_an_override_keeps_whole_has_no_partial_gradients),
        cmocka_unit_test(a_replicated_mixer_has_whole_gradients),
        cmocka_unit_test(a_tower_runs_whole_over_cp_and_sums_nothing_over_it),
        cmocka_unit_test(buffers_and_frozen_tensors_have_no_gradient),
        cmocka_unit_test(four_sums_fit_a_parameter),
        cmocka_unit_test(an_explicit_expert_axis_sums_the_routed_path_inside),
        cmocka_unit_test(a_routers_correction_bias_has_no_gradient_in_any_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
