/*
 * Biases on a finished plan: which are deferred, which follow their weight, and what is refused, whoever
 * placed them. (The bug cases about biases are in test_bugs_d_bias.c.)
 */
#include "plan/finish.h"

#include "tiny_model.h"

#include <string.h>

#define L "model.layers.0."
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'hidden_size': 8, "                 \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 2"
#define LINEAR(name) name ".weight F32 8x8\n" name ".bias F32 8\n"
#define ATTENTION                                                                                            \
    LINEAR(L "self_attn.q_proj")                                                                             \
    LINEAR(L "self_attn.k_proj") LINEAR(L "self_attn.v_proj") LINEAR(L "self_attn.o_proj")

/* A region that only an override knows: w is cut along its input, and its output is a partial sum. */
#define INSERTED(params)                                                                                     \
    "derive: false\noverrides:\n- match: box\n  params: {" params "}\n"                                      \
    "  in_src: {x: {tp: shard(2)}}\n  in_dst: {x: {tp: shard(2)}}\n"                                         \
    "  out_src: {tp: partial}\n  out_dst: {tp: replicate}\n"

static void of_four_biases_the_row_bias_is_deferred(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = ATTENTION, .mesh = "tp=2");
    (void)state;
    tiny_deferred(&t, L "self_attn", "o_proj.bias");
    tiny_tp(&t, L "self_attn.q_proj.bias", "S(0)");
    tiny_tp(&t, L "self_attn.k_proj.bias", "S(0)");
    tiny_tp(&t, L "self_attn.v_proj.bias", "S(0)");
    tiny_tp(&t, L "self_attn.o_proj.bias", "R");
    tiny_drop(&t);
}

static void nothing_is_deferred_where_the_exit_is_no_sum(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = ATTENTION, .mesh = "tp=1");
    (void)state;
    tiny_deferred(&t, L "self_attn", "");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = ATTENTION, .mesh = "tp=2",
                  .overrides =
                      "- match: '*.self_attn'\n  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    tiny_deferred(&t, L "self_attn", "");
    tiny_drop(&t);
}

static void a_row_bias_of_an_inserted_region_is_deferred(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = LINEAR("box.wo"), .mesh = "tp=2",
                       .overrides = INSERTED("wo.weight: {tp: shard(1)}, wo.bias: {tp: replicate}"));
    (void)state;
    tiny_type(&t, "box", "custom");
    tiny_deferred(&t, "box", "wo.bias");
    tiny_drop(&t);
}

static void an_undeclared_row_bias_of_an_inserted_region_is_deferred_too(void **state)
{
    /* the seed's planner looks at the module, not at what the entry declares */
    tiny t = TINY_PLAN(.config = STRANGER, .params = LINEAR("box.wo"), .mesh = "tp=2",
                       .overrides = INSERTED("wo.weight: {tp: shard(1)}"));
    (void)state;
    tiny_deferred(&t, "box", "wo.bias");
    tiny_drop(&t);
}

static void a_row_bias_must_be_whole(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER, .params = LINEAR("box.wo"), .mesh = "tp=2",
                         .overrides = INSERTED("wo.weight: {tp: shard(1)}, wo.bias: {tp: shard(0)}"));
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "box.wo.bias", "replicate");
    tiny_drop(&t);
}

static void a_row_bias_with_two_partial_outputs_is_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER, .params = ATTENTION, .mesh = "tp=2",
                         .overrides = "- match: '*.self_attn'\n"
                                      "  out_src: {output: {tp: partial}, weights: {tp: partial}}\n"
                                      "  out_dst: {output: {tp: replicate}, weights: {tp: replicate}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "single-output", "single partial output");
    tiny_drop(&t);
}

static void a_column_bias_is_cut_like_its_weight_whatever_the_exit(void **state)
{
    tiny t =
        TINY_REFUSE(.config = STRANGER, .params = ATTENTION, .mesh = "tp=2",
                    .overrides = "- match: '*.self_attn'\n  params: {+: {v_proj.bias: {tp: replicate}}}\n"
                                 "  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "v_proj.bias", NULL);
    tiny_drop(&t);
}

static void the_bias_of_a_fused_weight_has_its_segments(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen', 'hidden_size': 8, "
                            "'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 2",
                  .params = L "self_attn.qkv_proj.weight F32 24x8\n" L "self_attn.qkv_proj.bias F32 24\n" //
                  LINEAR(L "self_attn.o_proj"),
                  .mesh = "tp=2", .overrides = "- match: '*.qkv_proj'\n  layout: stacked\n");
    (void)state;
    tiny_tp(&t, L "self_attn.qkv_proj.bias", "S(0;seg=8+8+8)");
    tiny_rows(&t, L "self_attn.qkv_proj.bias", 1, "4:8 12:16 20:24");
    tiny_drop(&t);
    /* a plain cut of such a bias would pair its rows with others' */
    t = TINY_REFUSE(.config = STRANGER,
                    .params = L "self_attn.qkv_proj.weight F32 24x8\n" L "self_attn.qkv_proj.bias F32 24\n" //
                    LINEAR(L "self_attn.o_proj"),
                    .mesh = "tp=2",
                    .overrides = "- match: '*.qkv_proj'\n  layout: stacked\n"
                                 "- match: '*.self_attn'\n  params: {+: {qkv_proj.bias: {tp: shard(0)}}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "qkv_proj.bias", NULL);
    tiny_drop(&t);
}

static void partial_outputs_are_counted(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = ATTENTION "model.norm.weight F32 8\n", .mesh = "tp=2");
    (void)state;
    assert_int_equal(sw_spec_partial_outputs(tiny_spec(&t, L "self_attn")), 1);
    assert_int_equal(sw_spec_partial_outputs(tiny_spec(&t, "model.norm")), 0);
    tiny_drop(&t);
}

static void a_row_bias_of_a_shared_expert_enters_its_blocks_sum_once(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = L "mlp.gate.weight F32 2x8\n" L "mlp.experts.w1 F32 2x6x8\n" L
                                   "mlp.experts.w2 F32 2x8x6\n" LINEAR(L "mlp.shared_expert.gate_proj")
                                       LINEAR(L "mlp.shared_expert.down_proj"),
                       .mesh = "tp=2");
    const sw_facts *f = tiny_facts(&t, L "mlp.shared_expert.down_proj.bias");
    (void)state;
    tiny_tp(&t, L "mlp.shared_expert.down_proj.bias", "R");
    tiny_tp(&t, L "mlp.shared_expert.gate_proj.bias", "S(0)");
    assert_true(f->is_rank0_only); /* the exit of the shared expert stays a sum */
    assert_false(f->is_deferred);
    tiny_grads(&t, L "mlp.shared_expert.down_proj.bias", "tp partial");
    tiny_drop(&t);
}

static void a_bias_of_experts_goes_over_ep_with_its_weight(void **state)
{
    const tiny_case what = {
        .config = STRANGER ", 'num_experts': 4",
        .params = L "mlp.router.weight F32 4x8\n" L "mlp.experts.up_proj F32 4x8x6\n" L
                    "mlp.experts.up_proj_bias F32 4x6\n" L "mlp.experts.down_proj F32 4x6x8\n",
        .mesh = "ep=2",
        .overrides = "- match: '*.mlp'\n  params: {+: {experts.up_proj_bias: {ep: replicate}}}\n"};
    tiny t = tiny_refuse(&what);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "bias_placement", "is not cut over ep as its weight is",
                 "its weight's");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_four_biases_the_row_bias_is_deferred),
        cmocka_unit_test(nothing_is_deferred_where_the_exit_is_no_sum),
        cmocka_unit_test(a_row_bias_of_an_inserted_region_is_deferred),
        cmocka_unit_test(an_undeclared_row_bias_of_an_inserted_region_is_deferred_too),
        cmocka_unit_test(a_row_bias_must_be_whole),
        cmocka_unit_test(a_row_bias_with_two_partial_outputs_is_refused),
        cmocka_unit_test(a_column_bias_is_cut_like_its_weight_whatever_the_exit),
        cmocka_unit_test(the_bias_of_a_fused_weight_has_its_segments),
        cmocka_unit_test(partial_outputs_are_counted),
        cmocka_unit_test(a_row_bias_of_a_shared_expert_enters_its_blocks_sum_once),
        cmocka_unit_test(a_bias_of_experts_goes_over_ep_with_its_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
