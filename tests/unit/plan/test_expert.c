/*
 * Experts: the three stores (one by one, batched, rows of all experts in one matrix) in both expert-parallel
 * modes, contracts of the blocks, and stacks that cannot be made.
 */
#include "plan/expert.h"

#include "tiny_model.h"

#include <string.h>

#define L   "model.layers.0."
#define MLP L "mlp."

/* 4 experts; hidden 16, width 8. */
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'hidden_size': 16, "                \
    "'num_attention_heads': 4, 'num_experts': 4"
#define CUSTOM                                                                                               \
    MLP "gate.weight F32 4x16\n" MLP "experts.w1 F32 4x8x16\n" MLP "experts.w2 F32 4x16x8\n" MLP             \
        "experts.w3 F32 4x8x16\n"
#define FOUR(leaf)                                                                                           \
    MLP "experts.0." leaf "\n" MLP "experts.1." leaf "\n" MLP "experts.2." leaf "\n" MLP "experts.3." leaf   \
        "\n"
#define ONE_BY_ONE                                                                                           \
    MLP "gate.weight F32 4x16\n" FOUR("gate_proj.weight F32 8x16") FOUR("up_proj.weight F32 8x16")           \
        FOUR("down_proj.weight F32 16x8")
#define QWEN3_MOE                                                                                            \
    "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'intermediate_size': 16, 'vocab_size': 16, "               \
    "'num_experts': 4, 'moe_intermediate_size': 8, 'decoder_sparse_step': 1"
#define BATCHED                                                                                              \
    MLP "gate.weight F32 4x16\n" MLP "experts.gate_up_proj F32 4x16x16\n" MLP "experts.down_proj F32 "       \
        "4x16x8\n"

/* ---- explicit axis ---- */

static void on_an_expert_axis_custom_stacks_are_cut_on_both(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = CUSTOM, .mesh = "ep=2,tp=2");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    tiny_tp(&t, MLP "gate.weight", "R");
    tiny_ep(&t, MLP "gate.weight", "R");
    tiny_tp(&t, MLP "experts.w1", "S(1)");
    tiny_tp(&t, MLP "experts.w3", "S(1)");
    tiny_tp(&t, MLP "experts.w2", "S(2)");
    tiny_ep(&t, MLP "experts.w2", "S(0)");
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L "mlp", SW_AXIS_EP, "x_BLD: R -> R; output: R -> R");
    assert_int_equal(spec->region_dispatch, 0);
    assert_int_equal(spec->ep_size, 0);
    assert_int_equal(spec->n_stacks, 0);
    tiny_drop(&t);
}

static void on_an_expert_axis_single_experts_are_stacked(void **state)
{
    static const char *const paths[] = {"experts.gate_proj", "experts.up_proj", "experts.down_proj"};
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = ONE_BY_ONE, .mesh = "ep=2,tp=2");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    assert_int_equal(spec->n_stacks, 3);
    assert_int_equal(spec->n_params, 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(spec->stacks[i].path, paths[i]);
        assert_int_equal(spec->stacks[i].n, 4);
    }
    tiny_tp(&t, MLP "experts.up_proj", "S(1)");
    tiny_tp(&t, MLP "experts.down_proj", "S(2)");
    tiny_ep(&t, MLP "experts.down_proj", "S(0)");
    assert_int_equal(spec->ep_size, 0);
    assert_int_equal(spec->region_dispatch, 0);
    assert_int_equal(tiny_facts(&t, MLP "experts.down_proj")->shape->dims[0], 4);
    tiny_drop(&t);
}

/* ---- TP-extend-EP ---- */

static void extending_tp_custom_stacks_are_whole_over_it(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = CUSTOM, .mesh = "dp=4,tp=2", .ep = 2);
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    tiny_tp(&t, MLP "experts.w1", "R");
    tiny_ep(&t, MLP "experts.w1", "S(0)");
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_lowering(&t, L "mlp", "");
    assert_int_equal(spec->ep_size, 2);
    assert_int_equal(spec->region_dispatch, 0); /* aware of experts by construction */
    tiny_drop(&t);
}

static void extending_tp_single_experts_are_stacked_in_order(void **state)
{
    (void)state;
    for (uint32_t ep = 2; ep <= 4; ep += 2) {
        tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = ONE_BY_ONE, .mesh = "dp=4,tp=2", .ep = ep);
        const sw_spec *spec = tiny_spec(&t, L "mlp");
        assert_int_equal(spec->n_stacks, 3);
        assert_string_equal(spec->stacks[1].prefix, "experts.");
        assert_string_equal(spec->stacks[1].suffix, ".up_proj.weight");
        assert_int_equal(spec->stacks[1].n, 4);
        tiny_tp(&t, MLP "experts.up_proj", "R");
        tiny_ep_rows(&t, MLP "experts.up_proj", ep - 1, ep == 2 ? "2:4" : "3:4");
        assert_int_equal(spec->ep_size, ep);
        assert_int_equal(spec->region_dispatch, -1);
        tiny_drop(&t);
    }
}

static void extending_tp_batched_experts_are_cut_where_they_stand(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = BATCHED, .mesh = "dp=4,tp=2", .ep = 4);
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    tiny_tp(&t, MLP "experts.gate_up_proj", "R");
    tiny_ep(&t, MLP "experts.gate_up_proj", "S(0)");
    tiny_ep(&t, MLP "experts.down_proj", "S(0)");
    assert_int_equal(spec->n_stacks, 0);
    assert_int_equal(spec->region_dispatch, -1);
    assert_int_equal(spec->ep_size, 4);
    tiny_drop(&t);
}

static void extending_tp_without_sp_slices_at_the_entry(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = CUSTOM, .mesh = "tp=2", .ep = 2, .no_sp = true);
    (void)state;
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: R -> S(1); output: S(1) -> R");
    tiny_lowering(&t, L "mlp", "in tp slice 1 all_gather; out tp all_gather 1 slice");
    tiny_drop(&t);
}

static void an_extending_ep_cuts_nothing_but_experts(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .mesh = "dp=2,tp=2", .ep = 2);
    (void)state;
    tiny_ep(&t, L "self_attn.q_proj.weight", "-");
    tiny_tp(&t, L "self_attn.q_proj.weight", "S(0)");
    tiny_contract(&t, L "self_attn", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, L "self_attn")->ep_size, 0);
    tiny_drop(&t);
}

static void the_block_is_a_parallel_module(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .mesh = "dp=2,tp=2", .ep = 2);
    (void)state;
    assert_int_equal(t.plan->n_parallel, 1);
    assert_string_equal(t.plan->parallel[0].fqn, L "mlp.experts");
    assert_string_equal(t.plan->parallel[0].kind, "ep");
    assert_int_equal(t.plan->parallel[0].size, 2);
    tiny_drop(&t);
}

/* ---- without ep ---- */

static void without_ep_single_experts_keep_their_names(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = ONE_BY_ONE, .mesh = "tp=2");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    tiny_tp(&t, MLP "experts.0.gate_proj.weight", "S(0)");
    tiny_ep(&t, MLP "experts.0.gate_proj.weight", "-");
    assert_int_equal(spec->n_stacks, 0);
    assert_int_equal(spec->ep_size, 0);
    assert_int_equal(spec->region_dispatch, 0);
    tiny_drop(&t);
}

static void a_batched_gate_and_up_is_cut_by_parts_where_the_family_knows_it(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = BATCHED, .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, MLP "experts.gate_up_proj", "S(1;seg=8+8)");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = STRANGER, .params = BATCHED, .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", MLP "experts.gate_up_proj", "layout:");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = BATCHED, .mesh = "tp=2",
                  .overrides = "- match: '*.gate_up_proj'\n  layout: {kind: interleaved, dim: 1}\n");
    tiny_tp(&t, MLP "experts.gate_up_proj", "S(1)");
    tiny_drop(&t);
}

static void a_batch_kept_whole_by_an_override_is_planned(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = BATCHED, .mesh = "tp=2",
                       .overrides =
                           "- match: '*.gate_up_proj'\n  layout: {kind: stacked, dim: 1}\n"
                           "- match: '*.mlp'\n"
                           "  params: {gate.weight: {tp: replicate}, experts.gate_up_proj: {tp: replicate}, "
                           "experts.down_proj: {tp: replicate}}\n"
                           "  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_rows(&t, MLP "experts.gate_up_proj", 1, "all");
    assert_int_equal(tiny_spec(&t, L "mlp")->ep_size, 0);
    tiny_drop(&t);
}

/* ---- rows of all experts in one matrix ---- */

#define DBRX                                                                                                 \
    "'architectures': ['DbrxForCausalLM'], 'model_type': 'dbrx', 'd_model': 16, 'n_layers': 1, 'n_heads': "  \
    "4, "                                                                                                    \
    "'vocab_size': 16, 'max_seq_len': 8, 'attn_config': {'kv_n_heads': 2}, "                                 \
    "'ffn_config': {'ffn_hidden_size': 8, 'moe_num_experts': 4, 'moe_top_k': 2}"
#define FFN "transformer.blocks.0.ffn."

static void rows_of_all_experts_are_seen_as_experts_before_any_cut(void **state)
{
    tiny t = TINY_PLAN(.config = DBRX, .mesh = "ep=2,tp=2");
    const sw_facts *f = tiny_facts(&t, FFN "experts.mlp.w1");
    (void)state;
    assert_non_null(f->view);
    assert_int_equal(f->shape->n_dims, 2); /* stored [4 * 8, 16] */
    assert_int_equal(f->view->n_dims, 3);
    tiny_ep_rows(&t, FFN "experts.mlp.w1", 1, "2:4");
    tiny_tp(&t, FFN "experts.mlp.w1", "S(1)");
    tiny_tp(&t, FFN "experts.mlp.w2",
            "S(1)"); /* stored [experts * width, hidden]: its input stands in dim 1 */
    tiny_type(&t, "transformer.blocks.0.ffn", "moe_mlp");
    tiny_drop(&t);
}

/* ---- faults ---- */

static void a_missing_expert_is_a_gap(void **state)
{
    tiny t =
        TINY_REFUSE(.config = STRANGER,
                    .params = MLP "gate.weight F32 4x16\n" MLP "experts.0.w1.weight F32 8x16\n" MLP
                                  "experts.1.w1.weight F32 8x16\n" MLP "experts.3.w1.weight F32 8x16\n" MLP
                                  "experts.0.w2.weight F32 16x8\n" MLP "experts.1.w2.weight F32 16x8\n" MLP
                                  "experts.3.w2.weight F32 16x8\n",
                    .mesh = "ep=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_gap", "number 2 is missing", "shard of the checkpoint");
    tiny_drop(&t);
}

static void experts_of_different_shapes_cannot_be_stacked(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER,
                         .params = MLP "gate.weight F32 2x16\n" MLP "experts.0.w1.weight F32 8x16\n" MLP
                                       "experts.1.w1.weight F32 4x16\n" MLP
                                       "experts.0.w2.weight F32 16x8\n" MLP "experts.1.w2.weight F32 16x8\n",
                         .mesh = "ep=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_shape", "experts.0.w1.weight", "one shape and dtype");
    tiny_drop(&t);
}

static void biases_of_experts_are_stacked_and_cut_as_their_weights(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = MLP "gate.weight F32 4x16\n" FOUR("w1.weight F32 8x16") FOUR("w1.bias F32 8")
                           FOUR("w2.weight F32 16x8") FOUR("w2.bias F32 16"),
                       .mesh = "ep=2,tp=2");
    (void)state;
    tiny_ep(&t, MLP "experts.w1.bias", "S(0)");
    tiny_tp(&t, MLP "experts.w1.bias", "S(1)"); /* along the output, not over experts */
    tiny_tp(&t, MLP "experts.w2.bias", "R");
    assert_true(tiny_facts(&t, MLP "experts.w2.bias")->is_rank0_only);
    tiny_drop(&t);
}

static void ep_on_a_dense_model_is_said_to_do_nothing(void **state)
{
    const char *config =
        "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "
        "'hidden_size': 16, 'num_attention_heads': 4, 'intermediate_size': 16, 'vocab_size': 16";
    tiny t = TINY_PLAN(.config = config, .mesh = "dp=2", .ep = 2);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "ep_without_experts",
                 "ep=2, and the model has no experts: ep changes nothing", "leave ep out");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = config, .mesh = "dp=2", .ep = 2, .strict = true);
    tiny_finding(&t, SW_SEVERITY_ERROR, "ep_without_experts", "ep=2", "leave ep out");
    tiny_drop(&t);
    t = TINY_PLAN(.config = config, .mesh = "ep=2,tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "ep_without_experts",
                 "ep=2, and the model has no experts: ranks of the axis hold the same and do the same work",
                 "give its ranks to dp, cp or tp");
    tiny_drop(&t);
}

static void the_derived_expert_group_must_fit_the_dense_region(void **state)
{
    sw_mesh *mesh = NULL;
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_mesh_create(&mesh, "dp=1,tp=2", 4, &err), SW_E_PLAN);
    assert_int_equal(sw_mesh_create(&mesh, "dp=4,tp=2", 3, &err), SW_E_PLAN);
    tiny t = TINY_REFUSE(.config = STRANGER, .params = ONE_BY_ONE, .mesh = "dp=4,tp=2", .ep = 8);
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "4 experts are not divisible by ep=8", "1, 2, 4");
    tiny_drop(&t);
}

/* Batched [experts, in, out], as gpt-oss stores them, under names that no table has. */
#define BATCHED_WITH_BIASES                                                                                  \
    MLP "router.weight F32 4x16\n" MLP "experts.up_proj F32 4x16x8\n" MLP                                    \
        "experts.up_proj_bias F32 4x8\n" MLP "experts.down_proj F32 4x8x16\n" MLP                            \
        "experts.down_proj_bias F32 4x16\n"

static void biases_of_batched_experts_have_an_expert_dim_and_an_output_dim(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = BATCHED_WITH_BIASES, .mesh = "ep=2,tp=2");
    (void)state;
    tiny_ep(&t, MLP "experts.up_proj_bias", "S(0)");
    tiny_tp(&t, MLP "experts.up_proj", "S(2)");
    tiny_tp(&t, MLP "experts.up_proj_bias", "S(1)");
    tiny_ep(&t, MLP "experts.down_proj_bias", "S(0)");
    tiny_tp(&t, MLP "experts.down_proj_bias", "R");
    tiny_grads(&t, MLP "experts.down_proj_bias", "tp partial");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = BATCHED_WITH_BIASES, .mesh = "dp=2,tp=2", .ep = 4);
    tiny_ep(&t, MLP "experts.up_proj_bias", "S(0)");
    tiny_tp(&t, MLP "experts.up_proj_bias", "R");
    tiny_ep(&t, MLP "experts.down_proj_bias", "S(0)");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = BATCHED_WITH_BIASES, .mesh = "tp=4");
    tiny_rows(&t, MLP "experts.up_proj_bias", 3, "6:8");
    tiny_drop(&t);
}

static void a_number_of_experts_beyond_all_sense_is_refused_at_once(void **state)
{
    /* A prime near 10^11, whose divisors must not be looked for one by one. */
    tiny t =
        TINY_REFUSE(.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, "
                              "'num_attention_heads': 4, 'num_experts': 99999999977",
                    .params = MLP "gate.weight F32 4x16\n" MLP "experts.up_proj F32 99999999977x8x16\n" MLP
                                  "experts.down_proj F32 99999999977x16x8\n",
                    .mesh = "ep=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "99999999977 experts are not divisible by ep=2",
                 "ep sizes that fit: 1");
    tiny_drop(&t);
}

#define SQUARE                                                                                               \
    MLP "gate.weight F32 4x16\n" MLP "experts.up_proj F32 4x16x16\n" MLP "experts.down_proj F32 4x16x16\n"

static void square_batches_that_no_table_knows_are_not_guessed(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER, .params = SQUARE, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", "nothing says which dim is the output",
                 "`layout: {kind: plain, dim: N}`");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = SQUARE, .mesh = "dp=2", .ep = 2); /* whole experts */
    tiny_ep(&t, MLP "experts.up_proj", "S(0)");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = SQUARE, .mesh = "tp=2",
                  .overrides = "- match: '*.mlp'\n  layout:\n    experts.up_proj: {kind: plain, dim: 1}\n"
                               "    experts.down_proj: {kind: plain, dim: 2}\n");
    tiny_tp(&t, MLP "experts.up_proj", "S(1)");
    tiny_tp(&t, MLP "experts.down_proj", "S(2)");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_an_expert_axis_custom_stacks_are_cut_on_both),
        cmocka_unit_test(on_an_expert_axis_single_experts_are_stacked),
        cmocka_unit_test(extending_tp_custom_stacks_are_whole_over_it),
        cmocka_unit_test(extending_tp_single_experts_are_stacked_in_order),
        cmocka_unit_test(extending_tp_batched_experts_are_cut_where_they_stand),
        cmocka_unit_test(extending_tp_without_sp_slices_at_the_entry),
        cmocka_unit_test(an_extending_ep_cuts_nothing_but_experts),
        cmocka_unit_test(the_block_is_a_parallel_module),
        cmocka_unit_test(without_ep_single_experts_keep_their_names),
        cmocka_unit_test(a_batched_gate_and_up_is_cut_by_parts_where_the_family_knows_it),
        cmocka_unit_test(a_batch_kept_whole_by_an_override_is_planned),
        cmocka_unit_test(rows_of_all_experts_are_seen_as_experts_before_any_cut),
        cmocka_unit_test(a_missing_expert_is_a_gap),
        cmocka_unit_test(experts_of_different_shapes_cannot_be_stacked),
        cmocka_unit_test(biases_of_experts_are_stacked_and_cut_as_their_weights),
        cmocka_unit_test(ep_on_a_dense_model_is_said_to_do_nothing),
        cmocka_unit_test(the_derived_expert_group_must_fit_the_dense_region),
        cmocka_unit_test(biases_of_batched_experts_have_an_expert_dim_and_an_output_dim),
        cmocka_unit_test(a_number_of_experts_beyond_all_sense_is_refused_at_once),
        cmocka_unit_test(square_batches_that_no_table_knows_are_not_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
