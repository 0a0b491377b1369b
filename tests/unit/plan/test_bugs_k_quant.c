/*
 * Section K of the bug cases: what belongs to a quantised weight follows its cut. A cut that would end inside
 * a block, a group or a packed word is refused with the degrees that do not; nothing is dequantised wrongly
 * in silence.
 */
#include "tiny_model.h"

#include <string.h>

#include "base/status.h"

#define L   "model.layers.0."
#define MLP L "mlp."
#define SA  L "self_attn."

#define LLAMA(hidden, intermediate, quantization)                                                            \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': " hidden                                                                                 \
    ", 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': " intermediate               \
    ", 'vocab_size': 16, " quantization

/* ---- 95 ---- */

#define FP8_4 "'quantization_config': {'quant_method': 'fp8', 'weight_block_size': [4, 4]}"
#define FP8_MLP                                                                                              \
    MLP "gate_proj.weight F8_E4M3 12x8\n" MLP "gate_proj.weight_scale_inv F32 3x2\n" MLP                     \
        "up_proj.weight F8_E4M3 12x8\n" MLP "up_proj.weight_scale_inv F32 3x2\n" MLP                         \
        "down_proj.weight F8_E4M3 8x12\n" MLP "down_proj.weight_scale_inv F32 2x3\n"

static void a_cut_inside_a_block_is_refused_with_the_degrees_that_keep_blocks_whole(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA("8", "12", FP8_4), .params = FP8_MLP, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "block_misaligned", "block of 4", "1, 3");
    tiny_drop(&t);
}

static void block_scales_are_cut_with_their_weight(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("8", "12", FP8_4), .params = FP8_MLP, .mesh = "tp=3");
    (void)state;
    tiny_tp(&t, MLP "down_proj.weight", "S(1)");
    tiny_tp(&t, MLP "down_proj.weight_scale_inv", "S(1)");
    tiny_rows(&t, MLP "down_proj.weight", 1, "4:8");
    tiny_rows(&t, MLP "down_proj.weight_scale_inv", 1, "1:2");
    tiny_tp(&t, MLP "gate_proj.weight_scale_inv", "S(0)");
    tiny_rows(&t, MLP "gate_proj.weight", 2, "8:12");
    tiny_rows(&t, MLP "gate_proj.weight_scale_inv", 2, "2:3");
    assert_false(tiny_facts(&t, MLP "down_proj.weight_scale_inv")->is_trained);
    tiny_drop(&t);
}

#define MLA                                                                                                  \
    "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'num_hidden_layers': 1, "      \
    "'hidden_size': 8, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'q_lora_rank': 4, "               \
    "'kv_lora_rank': 5, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 4, 'v_head_dim': 4, 'vocab_size': 16, "   \
    "'n_routed_experts': 4, 'moe_intermediate_size': 8, 'intermediate_size': 8, 'first_k_dense_replace': "   \
    "1, "                                                                                                    \
    "" FP8_4

static void scales_of_a_last_block_that_is_not_full_are_accepted(void **state)
{
    tiny t =
        TINY_PLAN(.config = MLA,
                  .params = SA "q_a_proj.weight F8_E4M3 4x8\n" SA "q_a_proj.weight_scale_inv F32 1x2\n" SA
                               "q_b_proj.weight F8_E4M3 32x4\n" SA "q_b_proj.weight_scale_inv F32 8x1\n" SA
                               "kv_a_proj_with_mqa.weight F8_E4M3 9x8\n" SA
                               "kv_a_proj_with_mqa.weight_scale_inv F32 3x2\n" SA
                               "kv_b_proj.weight F8_E4M3 32x5\n" SA "kv_b_proj.weight_scale_inv F32 8x2\n" SA
                               "o_proj.weight F8_E4M3 8x16\n" SA "o_proj.weight_scale_inv F32 2x4\n",
                  .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, SA "kv_a_proj_with_mqa.weight", 1, "all");
    tiny_rows(&t, SA "kv_a_proj_with_mqa.weight_scale_inv", 1, "all");
    tiny_rows(&t, SA "kv_b_proj.weight", 1, "16:32");
    tiny_rows(&t, SA "kv_b_proj.weight_scale_inv", 1, "4:8");
    tiny_rows(&t, SA "o_proj.weight_scale_inv", 1, "2:4");
    tiny_drop(&t);
}

/* ---- 96 ---- */

#define GPTQ(group, order)                                                                                   \
    "'quantization_config': {'quant_method': 'gptq', 'bits': 4, 'group_size': " group ", 'desc_act': " order \
    "}"
/* Columns of 16 outputs each, in=16: 2 packed words, 4 groups. */
#define GPTQ_LINEAR(name)                                                                                    \
    name ".qweight I32 2x16\n" name ".qzeros I32 4x2\n" name ".scales F16 4x16\n" name ".g_idx I32 16\n"
#define GPTQ_ATTENTION                                                                                       \
    GPTQ_LINEAR(SA "q_proj") GPTQ_LINEAR(SA "k_proj") GPTQ_LINEAR(SA "v_proj") GPTQ_LINEAR(SA "o_proj")

static void aligned_groups_are_cut_together(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA("16", "16", GPTQ("4", "false")), .params = GPTQ_ATTENTION, .mesh = "tp=2");
    (void)state;
    /* row: 8 inputs a rank, one word of 8, two groups of 4 */
    tiny_tp(&t, SA "o_proj.qweight", "S(0)");
    tiny_rows(&t, SA "o_proj.qweight", 1, "1:2");
    tiny_rows(&t, SA "o_proj.qzeros", 1, "2:4");
    tiny_rows(&t, SA "o_proj.scales", 0, "0:2");
    tiny_tp(&t, SA "o_proj.scales", "S(0)");
    tiny_rows(&t, SA "o_proj.g_idx", 1, "8:16");
    /* column: outputs stand in dim 1; zero points are packed along it */
    tiny_tp(&t, SA "q_proj.qweight", "S(1)");
    tiny_rows(&t, SA "q_proj.qweight", 1, "8:16");
    tiny_rows(&t, SA "q_proj.scales", 1, "8:16");
    tiny_tp(&t, SA "q_proj.qzeros", "S(1)");
    tiny_rows(&t, SA "q_proj.qzeros", 1, "1:2");
    tiny_rows(&t, SA "q_proj.g_idx", 1, "all");
    tiny_drop(&t);
}

static void a_row_cut_inside_a_group_is_refused(void **state)
{
    /* 24 of 48 rows a rank: 3 words, but 1.5 groups of 16 */
    tiny t = TINY_REFUSE(.config = LLAMA("16", "48", GPTQ("16", "false")),
                         .params = MLP "gate_proj.qweight I32 2x48\n" MLP "gate_proj.qzeros I32 1x6\n" MLP
                                       "gate_proj.scales F16 1x48\n" MLP "gate_proj.g_idx I32 16\n" MLP
                                       "down_proj.qweight I32 6x16\n" MLP "down_proj.qzeros I32 3x2\n" MLP
                                       "down_proj.scales F16 3x16\n" MLP "down_proj.g_idx I32 48\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "block_misaligned", "down_proj.scales", "1, 3");
    tiny_drop(&t);
}

static void a_row_cut_inside_a_packed_word_is_refused(void **state)
{
    /* 12 of 24 rows a rank: 3 groups of 4, but 1.5 words of 8 */
    tiny t = TINY_REFUSE(.config = LLAMA("16", "24", GPTQ("4", "false")),
                         .params = MLP "gate_proj.qweight I32 2x24\n" MLP "gate_proj.qzeros I32 4x3\n" MLP
                                       "gate_proj.scales F16 4x24\n" MLP "gate_proj.g_idx I32 16\n" MLP
                                       "down_proj.qweight I32 3x16\n" MLP "down_proj.qzeros I32 6x2\n" MLP
                                       "down_proj.scales F16 6x16\n" MLP "down_proj.g_idx I32 24\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "block_misaligned", "down_proj.qweight", "1, 3");
    tiny_drop(&t);
}

static void act_order_keeps_the_scales_whole_and_cuts_the_group_index(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA("16", "16", GPTQ("4", "true")), .params = GPTQ_ATTENTION, .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, SA "o_proj.qweight", 1, "1:2");
    tiny_rows(&t, SA "o_proj.scales", 1, "all");
    tiny_rows(&t, SA "o_proj.qzeros", 1, "all");
    tiny_rows(&t, SA "o_proj.g_idx", 1, "8:16");
    tiny_rows(&t, SA "q_proj.scales", 1, "8:16"); /* outputs have no order */
    tiny_drop(&t);
}

/* AWQ packs outputs: qweight [in, out / 8]. */
static void awq_packs_outputs(void **state)
{
    const char *quantization = LLAMA("16", "16",
                                     "'quantization_config': {'quant_method': 'awq', 'bits': 4, "
                                     "'group_size': 4}");
#define AWQ_LINEAR(name) name ".qweight I32 16x2\n" name ".qzeros I32 4x2\n" name ".scales F16 4x16\n"
    tiny t = TINY_PLAN(.config = quantization,
                       .params = AWQ_LINEAR(SA "q_proj") AWQ_LINEAR(SA "k_proj") AWQ_LINEAR(SA "v_proj")
                           AWQ_LINEAR(SA "o_proj"),
                       .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, SA "q_proj.qweight", 1, "1:2");
    tiny_tp(&t, SA "q_proj.qweight", "S(1)");
    tiny_tp(&t, SA "o_proj.qweight", "S(0)");
    tiny_rows(&t, SA "o_proj.qweight", 1, "8:16");
    tiny_rows(&t, SA "o_proj.scales", 1, "2:4");
    tiny_drop(&t);
}

static void a_packed_name_without_a_method_is_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA("16", "16", "'torch_dtype': 'float16'"),
                         .params = "model.norm.weight F32 16\n" GPTQ_ATTENTION, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "quant_unknown",
                 "self_attn.q_proj.g_idx: a packed tensor, and the config does not say how it is quantised "
                 "(16 alike)",
                 "quantization_config");
    assert_int_equal(sw_report_count_of(t.report, SW_SEVERITY_ERROR), 1);
    tiny_drop(&t);
    /* the method alone does not say how many values are in a word: one cause too */
    t = TINY_REFUSE(.config = LLAMA("16", "16", "'quantization_config': {'quant_method': 'gptq'}"),
                    .params = "model.norm.weight F32 16\n" GPTQ_ATTENTION, .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_ERROR, "quant_unknown", "share one stored row (", "bits and group_size");
    assert_int_equal(sw_report_count_of(t.report, SW_SEVERITY_ERROR), 1);
    tiny_drop(&t);
}

/* ---- 98 ---- */

#define MLX_4_8          "'quantization': {'group_size': 8, 'bits': 4}"
#define MLX_COLUMN(name) name ".weight U32 32x1\n" name ".scales F16 32x1\n" name ".biases F16 32x1\n"

static void group_scales_are_cut_with_their_packed_weight(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("8", "32", MLX_4_8),
                       .params = MLX_COLUMN(MLP "gate_proj") MLX_COLUMN(MLP "up_proj") MLP
                       "down_proj.weight U32 8x4\n" MLP "down_proj.scales F16 8x4\n" MLP
                       "down_proj.biases F16 8x4\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, MLP "down_proj.weight", "S(1)");
    tiny_rows(&t, MLP "down_proj.weight", 1, "2:4");
    tiny_rows(&t, MLP "down_proj.scales", 1, "2:4");
    tiny_rows(&t, MLP "down_proj.biases", 1, "2:4");
    tiny_rows(&t, MLP "gate_proj.weight", 1, "16:32");
    tiny_rows(&t, MLP "gate_proj.scales", 1, "16:32");
    tiny_drop(&t);
}

static void modules_of_other_bits_are_cut_by_their_own(void **state)
{
    /* the scales of both layers have one shape; those of layer 1 belong to words of twice the bits */
    tiny t =
        TINY_PLAN(.config =
                      "'architectures': ['LlamaForCausalLM'], 'num_hidden_layers': 2, 'hidden_size': 8, "
                      "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 32, "
                      "'vocab_size': 16, 'quantization': {'group_size': 8, 'bits': 4, "
                      "'model.layers.1.mlp.down_proj': {'group_size': 8, 'bits': 8}}",
                  .params = MLX_COLUMN(MLP "gate_proj") MLX_COLUMN(MLP "up_proj") MLP
                  "down_proj.weight U32 8x4\n" MLP "down_proj.scales F16 8x4\n" MLP
                  "down_proj.biases F16 8x4\n"
                  "model.layers.1.mlp.down_proj.weight U32 8x8\n"
                  "model.layers.1.mlp.down_proj.scales F16 8x4\n"
                  "model.layers.1.mlp.down_proj.biases F16 8x4\n" MLX_COLUMN("model.layers.1.mlp.gate_proj")
                      MLX_COLUMN("model.layers.1.mlp.up_proj"),
                  .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, MLP "down_proj.weight", 1, "2:4");
    tiny_rows(&t, "model.layers.1.mlp.down_proj.weight", 1, "4:8");
    tiny_rows(&t, "model.layers.1.mlp.down_proj.scales", 1, "2:4");
    tiny_drop(&t);
}

static void what_mlx_leaves_unquantised_is_trained(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("8", "32", MLX_4_8),
                       .params = "model.norm.weight BF16 8\n" MLX_COLUMN(MLP "gate_proj") MLP
                       "up_proj.weight BF16 32x8\n" MLP "down_proj.weight BF16 8x32\n",
                       .mesh = "tp=2");
    (void)state;
    assert_true(tiny_facts(&t, "model.norm.weight")->is_trained);
    tiny_grads(&t, "model.norm.weight", "tp sequence");
    tiny_rows(&t, MLP "down_proj.weight", 1, "16:32"); /* no words: columns are columns */
    assert_true(tiny_facts(&t, MLP "down_proj.weight")->is_trained);
    assert_false(tiny_facts(&t, MLP "gate_proj.weight")->is_trained);
    tiny_drop(&t);
}

static void scales_that_do_not_fit_their_weight_are_refused(void **state)
{
    /* 32 inputs in groups of 8 are 4 scales a row, not 16: those of a weight that was not cut */
    tiny t = TINY_REFUSE(.config = LLAMA("8", "32", MLX_4_8),
                         .params = MLX_COLUMN(MLP "gate_proj") MLX_COLUMN(MLP "up_proj") MLP
                         "down_proj.weight U32 8x4\n" MLP "down_proj.scales F16 8x16\n" MLP
                         "down_proj.biases F16 8x16\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "quant_mismatch", "down_proj.scales", NULL);
    tiny_drop(&t);
}

static void a_scale_for_a_whole_tensor_is_whole(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA("8", "16", "'quantization_config': {'quant_method': 'fp8'}"),
                  .params = MLP "gate_proj.weight F8_E4M3 16x8\n" MLP "gate_proj.weight_scale F32 1\n" MLP
                                "gate_proj.input_scale F32 1\n" MLP "down_proj.weight F8_E4M3 8x16\n" MLP
                                "down_proj.weight_scale F32 1\n" MLP "down_proj.input_scale F32 1\n",
                  .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, MLP "gate_proj.weight", 1, "8:16");
    tiny_rows(&t, MLP "gate_proj.weight_scale", 1, "all");
    tiny_rows(&t, MLP "down_proj.weight_scale", 1, "all");
    tiny_rows(&t, MLP "down_proj.input_scale", 1, "all");
    tiny_drop(&t);
}

#define NVFP4 "'quantization_config': {'quant_method': 'modelopt', 'quant_algo': 'NVFP4'}"
#define NVFP4_SCALES(name, shape)                                                                            \
    name ".weight_scale F8_E4M3 " shape "\n" name ".weight_scale_2 F32 1\n" name ".input_scale F32 1\n"

static void two_values_in_a_byte_are_the_shape_of_the_config(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("32", "64", NVFP4),
                       .params = MLP "gate_proj.weight U8 64x16\n" NVFP4_SCALES(MLP "gate_proj", "64x2") MLP
                       "down_proj.weight U8 32x32\n" NVFP4_SCALES(MLP "down_proj", "32x4"),
                       .mesh = "tp=2");
    (void)state;
    tiny_silent(&t, "shape_mismatch");
    tiny_rows(&t, MLP "gate_proj.weight", 1, "32:64");
    tiny_rows(&t, MLP "gate_proj.weight_scale", 1, "32:64");
    tiny_rows(&t, MLP "down_proj.weight", 1, "16:32");
    tiny_rows(&t, MLP "down_proj.weight_scale", 1, "2:4");
    tiny_rows(&t, MLP "down_proj.weight_scale_2", 1, "all");
    tiny_drop(&t);
    /* other bytes than those two to one are no packing */
    t = TINY_PLAN(.config = LLAMA("32", "64", NVFP4), .params = MLP "gate_proj.weight U8 32x32\n",
                  .mesh = "dp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "shape_mismatch", "is [32, 32], config.json gives [64, 32]", NULL);
    tiny_drop(&t);
}

static void three_bits_a_value_are_refused_as_what_they_are(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA(
                             "32", "32",
                             "'quantization_config': {'quant_method': 'gptq', 'bits': 3, 'group_size': 32}"),
                         .params = SA "q_proj.qweight I32 3x32\n" SA "q_proj.qzeros I32 1x3\n" SA
                                      "q_proj.scales F16 1x32\n" SA "o_proj.qweight I32 3x32\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "quant_unsupported", "values of 3 bits straddle the 32-bit words",
                 "2, 4 or 8 bits");
    tiny_silent(&t, "quant_unknown");
    tiny_drop(&t);
}

/* NVFP4 of compressed-tensors: two values a byte, here a scale for 4 of them, a number for the weight. */
#define CT(more)                                                                                             \
    "'quantization_config': {'quant_method': 'compressed-tensors', 'config_groups': {'group_0': "            \
    "{'weights': {'num_bits': 4, 'group_size': 4" more "}}}}"
#define NVFP4_PACKED(name)                                                                                   \
    name ".weight_packed U8 16x8\n" name ".weight_scale F8_E4M3 16x4\n" name                                 \
         ".weight_global_scale F32 1\n" name ".input_global_scale F32 1\n"

static void values_packed_in_bytes_are_cut_and_a_global_scale_is_whole(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "16", CT("")), .mesh = "tp=4",
                       .params = NVFP4_PACKED(SA "q_proj") NVFP4_PACKED(SA "k_proj") NVFP4_PACKED(SA "v_proj")
                           NVFP4_PACKED(SA "o_proj"));
    (void)state;
    tiny_rows(&t, SA "q_proj.weight_packed", 1, "4:8");
    tiny_rows(&t, SA "q_proj.weight_scale", 1, "4:8");
    tiny_tp(&t, SA "q_proj.weight_global_scale", "R");
    tiny_tp(&t, SA "q_proj.input_global_scale", "R");
    tiny_tp(&t, SA "o_proj.weight_packed", "S(1)");
    tiny_rows(&t, SA "o_proj.weight_packed", 1, "2:4");
    tiny_tp(&t, SA "o_proj.weight_scale", "S(1)");
    tiny_rows(&t, SA "o_proj.weight_scale", 1, "1:2");
    tiny_tp(&t, SA "o_proj.weight_global_scale", "R");
    tiny_drop(&t);
}

#define CT_ORDERED(name)                                                                                     \
    name ".weight_packed I32 16x2\n" name ".weight_scale BF16 16x4\n" name                                   \
         ".weight_zero_point I32 2x4\n" name ".weight_g_idx I32 16\n"

static void act_order_of_compressed_tensors_keeps_the_scales_of_row_layers_whole(void **state)
{
    static const char *const ordered[] = {LLAMA("16", "16", CT(", 'actorder': 'group'")),
                                          LLAMA("16", "16", CT(", 'actorder': true"))};
    static const char params[] =
        CT_ORDERED(SA "q_proj") CT_ORDERED(SA "k_proj") CT_ORDERED(SA "v_proj") CT_ORDERED(SA "o_proj");
    tiny t = TINY_PLAN(.config = LLAMA("16", "16", CT(", 'actorder': 'weight'")), .params = params,
                       .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, SA "o_proj.weight_scale", "S(1)");
    tiny_drop(&t);
    for (size_t i = 0; i < SW_COUNT(ordered); i++) {
        t = TINY_PLAN(.config = ordered[i], .params = params, .mesh = "tp=2");
        tiny_tp(&t, SA "o_proj.weight_packed", "S(1)");
        tiny_tp(&t, SA "o_proj.weight_scale", "R");
        tiny_tp(&t, SA "o_proj.weight_zero_point", "R");
        tiny_rows(&t, SA "o_proj.weight_g_idx", 1, "8:16");
        tiny_tp(&t, SA "q_proj.weight_scale", "S(0)"); /* outputs have no order */
        tiny_drop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_inside_a_block_is_refused_with_the_degrees_that_keep_blocks_whole),
        cmocka_unit_test(block_scales_are_cut_with_their_weight),
        cmocka_unit_test(scales_of_a_last_block_that_is_not_full_are_accepted),
        cmocka_unit_test(aligned_groups_are_cut_together),
        cmocka_unit_test(a_row_cut_inside_a_group_is_refused),
        cmocka_unit_test(a_row_cut_inside_a_packed_word_is_refused),
        cmocka_unit_test(act_order_keeps_the_scales_whole_and_cuts_the_group_index),
        cmocka_unit_test(awq_packs_outputs),
        cmocka_unit_test(a_packed_name_without_a_method_is_refused),
        cmocka_unit_test(group_scales_are_cut_with_their_packed_weight),
        cmocka_unit_test(modules_of_other_bits_are_cut_by_their_own),
        cmocka_unit_test(what_mlx_leaves_unquantised_is_trained),
        cmocka_unit_test(scales_that_do_not_fit_their_weight_are_refused),
        cmocka_unit_test(a_scale_for_a_whole_tensor_is_whole),
        cmocka_unit_test(two_values_in_a_byte_are_the_shape_of_the_config),
        cmocka_unit_test(three_bits_a_value_are_refused_as_what_they_are),
        cmocka_unit_test(values_packed_in_bytes_are_cut_and_a_global_scale_is_whole),
        cmocka_unit_test(act_order_of_compressed_tensors_keeps_the_scales_of_row_layers_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
