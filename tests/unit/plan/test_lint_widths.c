/* Input and output widths of a region, from stored shapes: with a table and without. The stream is 32 wide.
 */
#include "plan/lint_widths.h"

#include "tiny_model.h"

#include "base/status.h"

#define L   "model.layers.0."
#define SA  L "self_attn."
#define MLP L "mlp."
#define SIZES                                                                                                \
    "'num_hidden_layers': 1, 'hidden_size': 32, 'intermediate_size': 48, 'vocab_size': 64, "                 \
    "'num_attention_heads': 4, 'num_key_value_heads': 2"
#define STRANGER "'architectures': ['StrangerForCausalLM'], " SIZES
#define LLAMA    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', " SIZES
#define ATTENTION(at, q, k, v, o)                                                                            \
    at "q_proj.weight F32 " q "\n" at "k_proj.weight F32 " k "\n" at "v_proj.weight F32 " v "\n" at          \
       "o_proj.weight F32 " o "\n"
#define FEED(gate, up, down)                                                                                 \
    MLP "gate_proj.weight F32 " gate "\n" MLP "up_proj.weight F32 " up "\n" MLP "down_proj.weight F32 " down \
        "\n"

static void expect_refusal(const char *params, const char *words)
{
    static const char *const configs[] = {STRANGER, LLAMA};
    static const char *const meshes[] = {"tp=1", "tp=2"};

    for (size_t i = 0; i < SW_COUNT(configs) * SW_COUNT(meshes); i++) {
        tiny t = TINY_REFUSE(.config = configs[i % 2], .params = params, .mesh = meshes[i / 2]);
        tiny_finding(&t, SW_SEVERITY_ERROR, "extents_disagree", words, "one checkpoint");
        tiny_drop(&t);
    }
}

static void expect_plan(const char *config, const char *params)
{
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");

    tiny_silent(&t, "extents_disagree");
    tiny_drop(&t);
}

static void weights_of_one_region_take_one_width(void **state)
{
    (void)state;
    expect_plan(STRANGER, ATTENTION(SA, "32x32", "16x32", "16x32", "32x32") FEED("48x32", "48x32", "32x48"));
    expect_refusal(FEED("48x32", "48x16", "32x48"), "'gate_proj.weight' and 'up_proj.weight' take the same "
                                                    "tokens, but one has a width of 32 and the other 16");
    expect_refusal(ATTENTION(SA, "32x32", "16x16", "16x32", "32x32"),
                   "take the same tokens, but one has a width of");
}

static void what_a_region_gives_is_as_wide_as_the_stream(void **state)
{
    (void)state;
    expect_refusal(FEED("48x32", "48x32", "16x48"),
                   "'gate_proj.weight' takes a width of 32, and 'down_proj.weight' gives 16");
    expect_refusal(ATTENTION(SA, "64x32", "32x32", "32x32", "16x64"), "'o_proj.weight' gives 16");
    /* a region that takes two streams side by side gives one */
    expect_plan(STRANGER, ATTENTION(SA, "16x64", "8x64", "8x64", "32x16"));
}

static void a_weight_of_nothing_is_refused(void **state)
{
    (void)state;
    expect_refusal(FEED("0x32", "48x32", "32x48"), "'gate_proj.weight' is [0, 32]: it has no elements");
}

#define MLA                                                                                                  \
    SA "q_a_proj.weight F32 12x32\n" SA "q_a_layernorm.weight F32 12\n" SA "q_b_proj.weight F32 32x12\n" SA  \
       "kv_a_proj_with_mqa.weight F32 12x32\n" SA "kv_a_layernorm.weight F32 8\n" SA                         \
       "kv_b_proj.weight F32 32x8\n" SA "o_proj.weight F32 32x16\n"

static void a_latent_has_a_width_of_its_own(void **state)
{
    (void)state;
    expect_plan("'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'q_lora_rank': 12, "
                "'kv_lora_rank': 8, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 4, 'v_head_dim': 4, "
                "'first_k_dense_replace': 1, " SIZES,
                MLA);
}

static void keys_of_a_cross_attention_take_what_the_other_side_gives(void **state)
{
    (void)state;
    expect_plan(STRANGER, ATTENTION(L "cross_attn.", "32x32", "16x20", "16x20", "32x32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_one_region_take_one_width),
        cmocka_unit_test(what_a_region_gives_is_as_wide_as_the_stream),
        cmocka_unit_test(a_weight_of_nothing_is_refused),
        cmocka_unit_test(a_latent_has_a_width_of_its_own),
        cmocka_unit_test(keys_of_a_cross_attention_take_what_the_other_side_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
