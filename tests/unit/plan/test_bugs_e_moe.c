/*
 * Section E of the bug cases (and 115): routers, routed and shared experts, in both expert-parallel modes.
 * Experts are handed out whole; a router that several ranks hold has one gradient.
 */
#include "tiny_model.h"

#include <string.h>

#define L   "model.layers.0."
#define MLP L "mlp."

/* Lines of one projection for experts 0..3. */
#define FOUR(at, leaf)                                                                                       \
    at "experts.0." leaf "\n" at "experts.1." leaf "\n" at "experts.2." leaf "\n" at "experts.3." leaf "\n"
#define FOUR_EXPERTS                                                                                         \
    FOUR(MLP, "gate_proj.weight F32 8x16")                                                                   \
    FOUR(MLP, "up_proj.weight F32 8x16") FOUR(MLP, "down_proj.weight F32 16x8")

/* ---- 39 ---- */

#define QWEN2_MOE                                                                                            \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'shared_expert_intermediate_size': 8, 'decoder_sparse_step': 1"
#define QWEN2_PARAMS                                                                                         \
    MLP "gate.weight F32 4x16\n" FOUR_EXPERTS MLP "shared_expert.gate_proj.weight F32 8x16\n" MLP            \
        "shared_expert.up_proj.weight F32 8x16\n" MLP "shared_expert.down_proj.weight F32 16x8\n" MLP        \
        "shared_expert_gate.weight F32 1x16\n"

static void the_gate_of_a_shared_expert_is_not_the_shared_expert(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "tp=2");
    (void)state;
    tiny_role(&t, MLP "shared_expert_gate.weight", "replicated");
    tiny_rows(&t, MLP "shared_expert_gate.weight", 0, "all");
    tiny_role(&t, MLP "shared_expert.gate_proj.weight", "shared_expert");
    tiny_rows(&t, MLP "shared_expert.gate_proj.weight", 1, "4:8");
    tiny_tp(&t, MLP "shared_expert.down_proj.weight", "S(1)");
    tiny_rows(&t, MLP "shared_expert.down_proj.weight", 1, "4:8");
    tiny_role(&t, MLP "gate.weight", "moe_gate");
    tiny_rows(&t, MLP "gate.weight", 1, "all");
    tiny_drop(&t);
}

static void what_a_tensor_parallel_block_holds_whole_has_a_partial_gradient(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "tp=2");
    (void)state;
    tiny_grads(&t, MLP "gate.weight", "tp partial");
    tiny_grads(&t, MLP "shared_expert_gate.weight", "tp partial");
    tiny_grads(&t, MLP "shared_expert.gate_proj.weight", "");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "tp=2", .no_sp = true);
    tiny_grads(&t, MLP "gate.weight", "tp partial"); /* with or without SP */
    tiny_grads(&t, MLP "shared_expert_gate.weight", "tp partial");
    tiny_drop(&t);
}

static void a_shared_expert_is_whole_over_experts_and_reduces_with_its_block(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "tp=2");
    (void)state;
    tiny_type(&t, MLP "shared_expert", "mlp");
    tiny_contract(&t, MLP "shared_expert", SW_AXIS_TP, "hidden_states: R -> R; output: P -> P");
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: S(1) -> R; output: P -> S(1)");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "ep=2,tp=2");
    tiny_ep(&t, MLP "shared_expert.gate_proj.weight", "R");
    tiny_tp(&t, MLP "shared_expert.gate_proj.weight", "S(0)");
    tiny_drop(&t);
    /* Under TP-extend-EP the block passes slices on, and the shared expert gathers for itself. */
    t = TINY_PLAN(.config = QWEN2_MOE, .params = QWEN2_PARAMS, .mesh = "tp=2", .ep = 2);
    tiny_contract(&t, MLP "shared_expert", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_grads(&t, MLP "shared_expert_gate.weight", "tp sequence");
    tiny_drop(&t);
}

/* ---- 43, 44 ---- */

#define QWEN3_MOE                                                                                            \
    "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'decoder_sparse_step': 1"
#define QWEN3_PARAMS MLP "gate.weight F32 4x16\n" FOUR_EXPERTS

static void a_router_has_one_gradient_in_every_mode(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2");
    (void)state;
    tiny_grads(&t, MLP "gate.weight", "tp partial");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "ep=2,tp=2");
    tiny_grads(&t, MLP "gate.weight", "tp partial, ep partial");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "ep=2");
    tiny_grads(&t, MLP "gate.weight", "ep partial");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2", .ep = 2);
    tiny_grads(&t, MLP "gate.weight", "tp sequence");
    tiny_drop(&t);
    /* Without SP the block slices the tokens at its entry: the router sees a slice all the same. */
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2", .ep = 2, .no_sp = true);
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "x_BLD: R -> S(1); output: S(1) -> R");
    tiny_grads(&t, MLP "gate.weight", "tp sequence");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "dp=2,cp=2", .ep = 2);
    tiny_grads(&t, MLP "gate.weight", "cp context, dp data");
    tiny_drop(&t);
}

static void experts_are_summed_over_the_ranks_that_hold_the_same(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "dp=2,tp=2", .ep = 2);
    (void)state;
    tiny_grads(&t, MLP "experts.gate_proj", "edp data");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "dp=2,tp=2", .ep = 4);
    tiny_grads(&t, MLP "experts.gate_proj", ""); /* every expert on one rank */
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "dp=2,cp=2,ep=2,tp=2");
    tiny_grads(&t, MLP "experts.gate_proj", "cp context, dp data");
    tiny_drop(&t);
}

/* ---- 46 ---- */

#define MIXTRAL(experts)                                                                                     \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'num_hidden_layers': 1, "             \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 8, "        \
    "'vocab_size': 16, 'num_local_experts': " experts
#define MOE L "block_sparse_moe."
#define FOUR_W                                                                                               \
    FOUR(MOE, "w1.weight F32 8x16")                                                                          \
    FOUR(MOE, "w2.weight F32 16x8") FOUR(MOE, "w3.weight F32 8x16") MOE "gate.weight F32 4x16\n"
#define FIVE_W                                                                                               \
    FOUR(MOE, "w1.weight F32 8x16")                                                                          \
    FOUR(MOE, "w2.weight F32 16x8")                                                                          \
    FOUR(MOE, "w3.weight F32 8x16")                                                                          \
    MOE "experts.4.w1.weight F32 8x16\n" MOE "experts.4.w2.weight F32 16x8\n" MOE                            \
        "experts.4.w3.weight F32 8x16\n" MOE "gate.weight F32 5x16\n"

static void experts_that_ep_does_not_divide_are_refused_with_the_sizes_that_do(void **state)
{
    tiny t = TINY_REFUSE(.config = MIXTRAL("5"), .params = FIVE_W, .mesh = "ep=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "5 experts are not divisible by ep=2", "1, 5");
    tiny_silent(&t, "indivisible"); /* one cause, one finding */
    tiny_drop(&t);
    t = TINY_REFUSE(.config = MIXTRAL("5"), .params = FIVE_W, .mesh = "dp=2", .ep = 2);
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "5 experts are not divisible by ep=2", "1, 5");
    tiny_silent(&t, "indivisible"); /* one cause, one finding */
    tiny_drop(&t);
}

#define BARE_W                                                                                               \
    FOUR("", "w1.weight F32 8x16")                                                                           \
    FOUR("", "w2.weight F32 16x8")                                                                           \
    FOUR("", "w3.weight F32 8x16")                                                                           \
    "experts.4.w1.weight F32 8x16\nexperts.4.w2.weight F32 16x8\nexperts.4.w3.weight F32 8x16\n"

static void the_number_in_a_name_that_begins_with_experts_counts_experts(void **state)
{
    tiny t = TINY_REFUSE(.config = MIXTRAL("5"), .params = BARE_W, .mesh = "ep=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "5 experts are not divisible by ep=2", "1, 5");
    tiny_silent(&t, "layer_count");
    tiny_drop(&t);
    t = TINY_PLAN(.config = MIXTRAL("5"), .params = BARE_W, .mesh = "ep=5");
    tiny_ep_rows(&t, "experts.w1", 4, "4:5");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = MIXTRAL("4"), .params = BARE_W, .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "is expert 4, config.json says 4 experts", NULL);
    tiny_drop(&t);
}

static void more_ranks_than_experts_are_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = MIXTRAL("4"), .params = FOUR_W, .mesh = "dp=4,tp=2", .ep = 8);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "4 experts are not divisible by ep=8", "1, 2, 4");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = MIXTRAL("4"), .params = FOUR_W, .mesh = "ep=8");
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "4 experts", "1, 2, 4");
    tiny_drop(&t);
}

static void classic_mixtral_names_are_a_block_with_a_router(void **state)
{
    tiny t = TINY_PLAN(.config = MIXTRAL("4"), .params = FOUR_W, .mesh = "ep=2,tp=2");
    (void)state;
    tiny_type(&t, L "block_sparse_moe", "moe_mlp");
    tiny_role(&t, MOE "gate.weight", "moe_gate");
    tiny_tp(&t, MOE "experts.w1", "S(1)");
    tiny_tp(&t, MOE "experts.w3", "S(1)");
    tiny_tp(&t, MOE "experts.w2", "S(2)");
    tiny_drop(&t);
}

/* ---- 47 ---- */

static void separate_experts_are_handed_out_whole_and_then_cut_inside(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "ep=2,tp=2");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    assert_int_equal(tiny_facts(&t, MLP "experts.gate_proj")->shape->n_dims, 3);
    tiny_ep(&t, MLP "experts.gate_proj", "S(0)");
    tiny_ep_rows(&t, MLP "experts.gate_proj", 0, "0:2");
    tiny_ep_rows(&t, MLP "experts.gate_proj", 1, "2:4");
    tiny_tp(&t, MLP "experts.gate_proj", "S(1)");
    tiny_tp(&t, MLP "experts.down_proj", "S(2)");
    tiny_rows(&t, MLP "experts.down_proj", 1, "4:8");
    assert_int_equal(spec->n_stacks, 3);
    assert_string_equal(spec->stacks[0].path, "experts.gate_proj");
    assert_string_equal(spec->stacks[0].prefix, "experts.");
    assert_string_equal(spec->stacks[0].suffix, ".gate_proj.weight");
    assert_int_equal(spec->stacks[0].n, 4);
    tiny_drop(&t);
}

static void separate_experts_under_tp_extend_ep_are_whole_over_tp(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2", .ep = 2);
    (void)state;
    tiny_tp(&t, MLP "experts.gate_proj", "R");
    tiny_ep_rows(&t, MLP "experts.gate_proj", 1, "2:4");
    assert_int_equal(tiny_spec(&t, L "mlp")->ep_size, 2);
    tiny_drop(&t);
}

static void separate_experts_without_ep_keep_their_names_and_are_cut_by_tp(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, MLP "experts.3.gate_proj.weight", "S(0)");
    tiny_tp(&t, MLP "experts.3.down_proj.weight", "S(1)");
    tiny_rows(&t, MLP "experts.3.gate_proj.weight", 1, "4:8");
    assert_int_equal(tiny_spec(&t, L "mlp")->n_stacks, 0);
    tiny_drop(&t);
}

#define STACKED_PARAMS                                                                                       \
    MLP "gate.weight F32 4x16\n" MLP "experts.gate_up_proj F32 4x16x16\n" MLP "experts.down_proj F32 "       \
        "4x16x8\n"

static void stacked_experts_are_cut_on_their_own_dims(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN3_MOE, .params = STACKED_PARAMS, .mesh = "ep=2,tp=2");
    (void)state;
    tiny_ep_rows(&t, MLP "experts.gate_up_proj", 1, "2:4");
    tiny_tp(&t, MLP "experts.gate_up_proj", "S(1;seg=8+8)");
    tiny_rows(&t, MLP "experts.gate_up_proj", 0, "0:4 8:12"); /* half of gate, half of up */
    tiny_rows(&t, MLP "experts.gate_up_proj", 1, "4:8 12:16");
    tiny_tp(&t, MLP "experts.down_proj", "S(2)");
    tiny_rows(&t, MLP "experts.down_proj", 1, "4:8");
    assert_int_equal(tiny_spec(&t, L "mlp")->n_stacks, 0);
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = STACKED_PARAMS, .mesh = "tp=2", .ep = 2);
    tiny_tp(&t, MLP "experts.gate_up_proj", "R");
    tiny_ep_rows(&t, MLP "experts.gate_up_proj", 0, "0:2");
    tiny_drop(&t);
}

/* ---- 50 ---- */

static void a_routers_correction_keeps_its_dtype_and_is_not_trained(void **state)
{
    tiny t = TINY_PLAN(
            .config =
                "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', "
                "'num_hidden_layers': 1, "
                "'hidden_size': 16, 'num_attention_heads': 4, 'kv_lora_rank': 4, 'qk_nope_head_dim': 2, "
                "'qk_rope_head_dim': 2, 'v_head_dim': 2, 'n_routed_experts': 8, 'moe_intermediate_size': 8, "
                "'intermediate_size': 16, 'first_k_dense_replace': 0, 'vocab_size': 16, 'torch_dtype': "
                "'bfloat16'",
            .params = MLP "gate.weight BF16 8x16\n" MLP "gate.e_score_correction_bias F32 8\n" MLP
                          "experts.gate_up_proj BF16 8x16x16\n" MLP "experts.down_proj BF16 8x16x8\n",
            .mesh = "dp=2,ep=2,tp=2");
    const sw_facts *f = tiny_facts(&t, MLP "gate.e_score_correction_bias");
    (void)state;
    tiny_role(&t, MLP "gate.e_score_correction_bias", "moe_gate");
    assert_int_equal(f->dtype, SW_DTYPE_F32);
    assert_int_equal(tiny_facts(&t, MLP "gate.weight")->dtype, SW_DTYPE_BF16);
    assert_false(f->is_trained);
    tiny_rows(&t, MLP "gate.e_score_correction_bias", 1, "all");
    tiny_grads(&t, MLP "gate.e_score_correction_bias", "");
    tiny_drop(&t);
}

/* ---- 52 ---- */

static void a_rule_over_what_expert_parallelism_owns_is_refused_with_both(void **state)
{
    const char *overrides = "- match: '*.down_proj'\n"
                            "  params: {weight: {tp: shard(1)}}\n"
                            "  in_src: {x: {tp: replicate}}\n  in_dst: {x: {tp: replicate}}\n"
                            "  out_src: {tp: partial}\n  out_dst: {tp: replicate}\n";
    tiny t = TINY_REFUSE(.config = QWEN3_MOE, .params = QWEN3_PARAMS, .mesh = "tp=2", .ep = 2,
                         .overrides = overrides);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "two_owners", "'" L "mlp'", "exactly one boundary");
    tiny_finding(&t, SW_SEVERITY_ERROR, "two_owners", "down_proj'", NULL);
    tiny_drop(&t);
}

/* ---- 115 ---- */

#define SIX(leaf) FOUR(MLP, leaf) MLP "experts.4." leaf "\n" MLP "experts.5." leaf "\n"
#define QWEN2_6                                                                                              \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 6, 'num_experts_per_tok': 2, 'moe_intermediate_size': 10, "            \
    "'shared_expert_intermediate_size': 12, 'decoder_sparse_step': 1"
#define QWEN2_6_PARAMS                                                                                       \
    MLP "gate.weight F32 6x16\n" SIX("gate_proj.weight F32 10x16") SIX("up_proj.weight F32 10x16")           \
        SIX("down_proj.weight F32 16x10") MLP                                                                \
        "shared_expert.gate_proj.weight F32 12x16\n" MLP "shared_expert.up_proj.weight F32 12x16\n" MLP      \
        "shared_expert.down_proj.weight F32 16x12\n" MLP "shared_expert_gate.weight F32 1x16\n"

static void six_experts_over_four_ranks_are_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = QWEN2_6, .params = QWEN2_6_PARAMS, .mesh = "tp=4", .ep = 4);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "expert_count", "6 experts are not divisible by ep=4", "1, 2, 3, 6");
    tiny_drop(&t);
}

static void experts_may_be_handed_out_and_cut_inside_by_an_axis_each(void **state)
{
    tiny t = TINY_PLAN(.config = QWEN2_6, .params = QWEN2_6_PARAMS, .mesh = "ep=2,tp=2");
    (void)state;
    tiny_ep_rows(&t, MLP "experts.gate_proj", 0, "0:3");
    tiny_ep_rows(&t, MLP "experts.gate_proj", 1, "3:6");
    tiny_rows(&t, MLP "experts.gate_proj", 0, "0:5");
    tiny_rows(&t, MLP "experts.gate_proj", 1, "5:10");
    tiny_rows(&t, MLP "experts.down_proj", 1, "5:10");
    tiny_rows(&t, MLP "shared_expert.gate_proj.weight", 1, "6:12");
    tiny_drop(&t);
}

static void experts_whose_width_tp_does_not_divide_are_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = QWEN2_6, .params = QWEN2_6_PARAMS, .mesh = "tp=4");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "indivisible", "10 rows are not divisible by tp=4", "1, 2, 5, 10");
    tiny_drop(&t);
}

/* ---- stacked under a name that no rule knows as experts ---- */

#define SWITCH MLP "switch_mlp."
#define SWITCHED                                                                                             \
    MLP "gate.weight F32 4x16\n" SWITCH "gate_proj.weight F32 4x8x16\n" SWITCH                               \
        "up_proj.weight F32 4x8x16\n" SWITCH "down_proj.weight F32 4x16x8\n"

static void a_linear_layer_of_three_dims_is_not_cut_as_a_matrix(void **state)
{
    static const char what[] = "a linear layer of 3 dims, and nothing says which of them are rows";
    tiny t = TINY_REFUSE(.config = QWEN3_MOE, .params = SWITCHED, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", what, "the role moe_expert in `roles:`");
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", "down_proj", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = QWEN3_MOE, .params = SWITCHED, .mesh = "tp=2,dp=2", .ep = 2);
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", what, NULL);
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = SWITCHED, .mesh = "dp=2");
    tiny_silent(&t, "layout_unknown");
    tiny_drop(&t);
    t = TINY_PLAN(.config = QWEN3_MOE, .params = SWITCHED, .mesh = "tp=2",
                  .overrides =
                      "roles:\n  extend: true\n  rules:\n  - {pattern: switch_mlp, role: moe_expert}\n");
    tiny_tp(&t, SWITCH "gate_proj.weight", "S(1)");
    tiny_tp(&t, SWITCH "down_proj.weight", "S(2)");
    tiny_drop(&t);
}

#define MLX QWEN3_MOE ", 'quantization': {'bits': 8, 'group_size': 4}"
#define MLX_LINEAR(name, rows, words, groups)                                                                \
    SWITCH name ".weight U32 4x" rows "x" words "\n" SWITCH name ".scales BF16 4x" rows "x" groups "\n"

static void stacked_words_and_groups_follow_their_experts(void **state)
{
    static const char params[] =
        "model.norm.weight F32 16\n" MLP "gate.weight F32 4x16\n" L "input_layernorm.weight F32 16\n" L
        "post_attention_layernorm.weight F32 16\n" MLX_LINEAR("gate_proj", "8", "4", "4")
            MLX_LINEAR("up_proj", "8", "4", "4") MLX_LINEAR("down_proj", "16", "2", "2");
    static const char roles[] =
        "roles:\n  extend: true\n  rules:\n  - {pattern: switch_mlp, role: moe_expert}\n";
    tiny t = TINY_REFUSE(.config = MLX, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", "gate_proj.weight", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", "gate_proj.scales", NULL);
    tiny_drop(&t);
    t = TINY_PLAN(.config = MLX, .params = params, .mesh = "tp=2", .overrides = roles);
    tiny_tp(&t, SWITCH "gate_proj.weight", "S(1)");
    tiny_tp(&t, SWITCH "gate_proj.scales", "S(1)");
    tiny_tp(&t, SWITCH "down_proj.weight", "S(2)");
    tiny_tp(&t, SWITCH "down_proj.scales", "S(2)");
    tiny_drop(&t);
}

static void dims_of_one_behind_a_matrix_are_those_of_a_convolution(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', "
                                 "'hidden_size': 16, 'num_attention_heads': 4",
                       .mesh = "tp=2",
                       .params = MLP "gate_proj.weight F32 16x16x1\n" MLP "up_proj.weight F32 16x16x1x1\n" MLP
                                     "down_proj.weight F32 16x16x1\n");
    (void)state;
    tiny_tp(&t, MLP "gate_proj.weight", "S(0)");
    tiny_tp(&t, MLP "up_proj.weight", "S(0)");
    tiny_tp(&t, MLP "down_proj.weight", "S(1)");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gate_of_a_shared_expert_is_not_the_shared_expert),
        cmocka_unit_test(what_a_tensor_parallel_block_holds_whole_has_a_partial_gradient),
        cmocka_unit_test(a_shared_expert_is_whole_over_experts_and_reduces_with_its_block),
        cmocka_unit_test(a_router_has_one_gradient_in_every_mode),
        cmocka_unit_test(experts_are_summed_over_the_ranks_that_hold_the_same),
        cmocka_unit_test(experts_that_ep_does_not_divide_are_refused_with_the_sizes_that_do),
        cmocka_unit_test(the_number_in_a_name_that_begins_with_experts_counts_experts),
        cmocka_unit_test(more_ranks_than_experts_are_refused),
        cmocka_unit_test(classic_mixtral_names_are_a_block_with_a_router),
        cmocka_unit_test(separate_experts_are_handed_out_whole_and_then_cut_inside),
        cmocka_unit_test(separate_experts_under_tp_extend_ep_are_whole_over_tp),
        cmocka_unit_test(separate_experts_without_ep_keep_their_names_and_are_cut_by_tp),
        cmocka_unit_test(stacked_experts_are_cut_on_their_own_dims),
        cmocka_unit_test(a_routers_correction_keeps_its_dtype_and_is_not_trained),
        cmocka_unit_test(a_rule_over_what_expert_parallelism_owns_is_refused_with_both),
        cmocka_unit_test(six_experts_over_four_ranks_are_refused),
        cmocka_unit_test(experts_may_be_handed_out_and_cut_inside_by_an_axis_each),
        cmocka_unit_test(experts_whose_width_tp_does_not_divide_are_refused),
        cmocka_unit_test(a_linear_layer_of_three_dims_is_not_cut_as_a_matrix),
        cmocka_unit_test(stacked_words_and_groups_follow_their_experts),
        cmocka_unit_test(dims_of_one_behind_a_matrix_are_those_of_a_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
