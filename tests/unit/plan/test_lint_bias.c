/* A bias beside its weight: stored lengths, of families with a table and without, of experts and of towers.
 */
#include "plan/lint_bias.h"

#include "tiny_model.h"

#define L        "model.layers.0."
#define SA       L "self_attn."
#define MLP      L "mlp."
#define STRANGER "'architectures': ['StrangerForCausalLM'], " SIZES
#define QWEN2    "'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', " SIZES
#define SIZES                                                                                                \
    "'num_hidden_layers': 1, 'hidden_size': 32, 'intermediate_size': 48, 'vocab_size': 64, "                 \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'num_local_experts': 2"
#define FOUR                                                                                                 \
    SA "q_proj.weight F32 32x32\n" SA "k_proj.weight F32 32x32\n" SA "v_proj.weight F32 32x32\n" SA          \
       "o_proj.weight F32 32x32\n"
#define THREE                                                                                                \
    MLP "gate_proj.weight F32 48x32\n" MLP "up_proj.weight F32 48x32\n" MLP "down_proj.weight F32 32x48\n"

static void expect_refusal(const char *config, const char *params, const char *mesh, const char *words)
{
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = mesh);

    tiny_finding(&t, SW_SEVERITY_ERROR, "extents_disagree", words, "one checkpoint");
    tiny_drop(&t);
}

static void expect_plan(const char *config, const char *params, const char *mesh)
{
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = mesh);

    tiny_silent(&t, "extents_disagree");
    tiny_drop(&t);
}

static void a_bias_is_as_long_as_its_weight_gives(void **state)
{
    (void)state;
    expect_plan(STRANGER, FOUR SA "q_proj.bias F32 32\n" SA "o_proj.bias F32 32\n", "tp=2");
    expect_plan(STRANGER, THREE MLP "gate_proj.bias F32 48\n" MLP "down_proj.bias F32 32\n", "tp=2");
    expect_refusal(STRANGER, FOUR SA "q_proj.bias F32 16\n", "tp=2",
                   L "self_attn: 'q_proj.bias' has 16 elements, and its weight 'q_proj.weight' gives 32");
}

static void a_row_bias_and_a_norm_too(void **state)
{
    (void)state;
    expect_refusal(STRANGER, FOUR SA "o_proj.bias F32 16\n", "tp=2", "'o_proj.bias' has 16");
    expect_refusal(STRANGER, THREE MLP "down_proj.bias F32 48\n", "tp=1", "'down_proj.weight' gives 32");
    expect_refusal(STRANGER, THREE MLP "gate_proj.bias F32 16\n", "tp=2", "'gate_proj.weight' gives 48");
    expect_refusal(STRANGER, FOUR L "input_layernorm.weight F32 32\n" L "input_layernorm.bias F32 16\n",
                   "tp=2", "'bias' has 16");
}

static void a_table_does_not_make_it_less(void **state)
{
    (void)state;
    expect_refusal(QWEN2, FOUR SA "q_proj.bias F32 16\n", "tp=2", "'q_proj.bias' has 16");
}

#define ROUTER  MLP "gate.weight F32 2x32\n"
#define GPT_OSS "'architectures': ['GptOssForCausalLM'], 'model_type': 'gpt_oss', " SIZES
#define STACK(bias)                                                                                          \
    MLP "router.weight F32 2x32\n" MLP "router.bias F32 2\n" MLP "experts.gate_up_proj F32 2x32x96\n" MLP    \
        "experts.gate_up_proj_bias F32 2x96\n" MLP "experts.down_proj F32 2x48x32\n" MLP                     \
        "experts.down_proj_bias F32 " bias "\n"
#define EXPERT(n, bias)                                                                                      \
    MLP "experts." n ".gate_proj.weight F32 8x32\n" MLP "experts." n ".up_proj.weight F32 8x32\n" MLP        \
        "experts." n ".down_proj.weight F32 32x8\n" MLP "experts." n ".up_proj.bias F32 " bias "\n"

static void each_expert_has_its_own(void **state)
{
    (void)state;
    expect_refusal(STRANGER, ROUTER EXPERT("0", "8") EXPERT("1", "4"), "tp=2",
                   "'experts.1.up_proj.bias' has 4 elements");
    expect_refusal(STRANGER, ROUTER EXPERT("0", "4") EXPERT("1", "4"), "ep=2",
                   "'experts.up_proj.bias' has 8 elements, and its weight 'experts.up_proj' gives 16");
    expect_plan(STRANGER, ROUTER EXPERT("0", "8") EXPERT("1", "8"), "ep=2");
    expect_plan(GPT_OSS, STACK("2x32"), "tp=2");
    expect_refusal(GPT_OSS, STACK("2x48"), "tp=2", "'experts.down_proj_bias' has 96 elements");
}

static void packed_weights_are_not_taken_by_their_words(void **state)
{
    (void)state;
    expect_plan(QWEN2 ", 'quantization_config': {'quant_method': 'awq', 'bits': 4, 'group_size': 8}",
                SA "q_proj.qweight I32 32x4\n" SA "q_proj.qzeros I32 4x4\n" SA "q_proj.scales F16 4x32\n" SA
                   "q_proj.bias F16 32\n" SA "k_proj.weight F16 32x32\n" SA "v_proj.weight F16 32x32\n" SA
                   "o_proj.weight F16 32x32\n",
                "tp=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bias_is_as_long_as_its_weight_gives),
        cmocka_unit_test(a_row_bias_and_a_norm_too),
        cmocka_unit_test(a_table_does_not_make_it_less),
        cmocka_unit_test(each_expert_has_its_own),
        cmocka_unit_test(packed_weights_are_not_taken_by_their_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
