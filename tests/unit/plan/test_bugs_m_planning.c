/*
 * Section M of the bug cases, with 117: cost and limits of a plan, meshes that do not fit, and placements
 * that cannot be. All faults of one kind of mistake are said in one run, each with where it stands and what
 * would be legal.
 */
#include "tiny_model.h"

#include <string.h>

#include "base/status.h"
#include "mesh/shard.h"
#include "plan/cost.h"

#define L   "model.layers.0."
#define SA  L "self_attn."
#define MLP L "mlp."

/* ---- 104 ---- */

#define E8                                                                                                   \
    "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'decoder_sparse_step': 1"
#define E8_PARAMS                                                                                            \
    MLP "experts.gate_proj F32 8x8x16\n" MLP "experts.up_proj F32 8x8x16\n" MLP                              \
        "experts.down_proj F32 8x16x8\n"

static void check_load(const char *mesh, uint32_t ep, uint64_t elems)
{
    tiny t = TINY_PLAN(.config = E8, .params = E8_PARAMS, .mesh = mesh, .ep = ep);
    sw_cost_totals totals;
    assert_int_equal(sw_cost_total(t.plan, &totals, NULL), SW_OK);
    assert_int_equal(totals.most.elems, elems);
    assert_int_equal(totals.most.param_bytes, elems * 4);
    assert_int_equal(totals.most.grad_bytes, elems * 4);
    tiny_drop(&t);
}

static void routed_experts_are_charged_to_the_ranks_that_hold_them(void **state)
{
    (void)state;
    /* 3 x 8 experts of 8 x 16 = 3072 elements in all */
    check_load("tp=1", 0, 3072);
    check_load("tp=2", 0, 1536);
    check_load("ep=4,tp=2", 0, 384); /* two experts, half of each */
    check_load("dp=2,tp=2", 4, 768); /* two whole experts */
    check_load("dp=2,ep=4,tp=2", 0, 384);
}

static void bytes_of_a_rank_are_the_sum_of_its_local_shapes(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                                 "'num_hidden_layers': 1, 'hidden_size': 32, 'num_attention_heads': 8, "
                                 "'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 13",
                       .params = "model.embed_tokens.weight BF16 13x32\n" SA "q_proj.weight BF16 32x32\n" SA
                                 "k_proj.weight BF16 8x32\n" SA "v_proj.weight BF16 8x32\n" SA
                                 "o_proj.weight BF16 32x32\n"
                                 "model.norm.weight BF16 32\n",
                       .mesh = "tp=4");
    sw_cost_totals totals;
    (void)state;
    assert_int_equal(sw_cost_total(t.plan, &totals, NULL), SW_OK);
    /* embed 4 rows (the last rank 1), q 8, k and v 4 each (replicated by two), o 8 columns, norm whole */
    assert_int_equal(totals.most.elems, 4 * 32 + 8 * 32 + 4 * 32 + 4 * 32 + 32 * 8 + 32);
    assert_int_equal(totals.least.elems, 1 * 32 + 8 * 32 + 4 * 32 + 4 * 32 + 32 * 8 + 32);
    assert_int_equal(totals.most.param_bytes, totals.most.elems * 2);
    assert_int_equal(totals.most_rank, 0);
    assert_int_equal(totals.least_rank, 3);
    tiny_drop(&t);
}

/* ---- 106 ---- */

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16"
#define ATTENTION                                                                                            \
    SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA          \
       "o_proj.weight F32 16x16\n"

static void axes_of_size_one_change_nothing(void **state)
{
    tiny one = TINY_PLAN(.config = LLAMA, .params = ATTENTION, .mesh = "pp=1,dp=2,cp=1,tp=2");
    tiny two = TINY_PLAN(.config = LLAMA, .params = ATTENTION, .mesh = "dp=2,tp=2");
    char *a = NULL;
    char *b = NULL;
    size_t a_length = 0;
    size_t b_length = 0;
    (void)state;
    assert_int_equal(sw_plan_json(one.plan, &a, &a_length, NULL), SW_OK);
    assert_int_equal(sw_plan_json(two.plan, &b, &b_length, NULL), SW_OK);
    assert_string_equal(a, b);
    sw_text_free(a);
    sw_text_free(b);
    tiny_drop(&one);
    tiny_drop(&two);
}

static void an_axis_of_size_zero_is_refused(void **state)
{
    sw_mesh *mesh = NULL;
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_mesh_create(&mesh, "dp=2,tp=0", 0, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "tp"));
}

static void a_plan_carries_the_fingerprint_of_its_model(void **state)
{
    tiny one = TINY_PLAN(.config = LLAMA, .params = ATTENTION, .mesh = "tp=2");
    tiny two = TINY_PLAN(.config = LLAMA, .params = ATTENTION "model.norm.weight F32 16\n", .mesh = "tp=2");
    (void)state;
    assert_true(sw_plan_fingerprint(one.plan) != sw_plan_fingerprint(two.plan));
    assert_int_equal(sw_plan_fingerprint(one.plan), sw_model_fingerprint(one.model));
    tiny_drop(&one);
    tiny_drop(&two);
}

/* ---- 107 ---- */

static void a_norm_that_an_override_cuts_is_flagged_with_its_cost(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .params = ATTENTION "model.norm.weight F32 16\n", .mesh = "tp=2",
                       .overrides = "- match: model.norm\n  params: {weight: {tp: shard(0)}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "norm_sharded", "model.norm", NULL);
    tiny_drop(&t);
}

static void two_axes_never_cut_one_dim(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA, .params = ATTENTION, .mesh = "cp=2,tp=2",
                         .overrides = "- match: '*.self_attn'\n"
                                      "  params: {+: {q_proj.weight: {tp: shard(0), cp: shard(0)}}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "dim_cut_twice", "q_proj.weight", NULL);
    tiny_drop(&t);
}

static void one_axis_stands_once_in_a_placement(void **state)
{
    sw_overrides *overrides = NULL;
    sw_error err = {0};
    const char *text = "- match: embed\n  params: {weight: {tp: shard(0), tp: shard(1)}}\n";
    (void)state;
    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    assert_int_equal(sw_overrides_add_text(overrides, text, strlen(text), "o.yaml", &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "line 2"));
    assert_non_null(strstr(err.what, "tp"));
    sw_overrides_destroy(overrides);
}

static void of_two_rules_on_a_boundary_the_later_wins_field_by_field(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .params = ATTENTION, .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.self_attn\n  out_dst: {tp: replicate}\n"
                                    "- match: '*.self_attn'\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_contract(&t, L "self_attn", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, L "self_attn")->n_overrides, 2); /* both are named in the plan */
    tiny_drop(&t);
}

/* ---- 117 ---- */

/* Refused while the file is read: "o.yaml:LINE: ...". */
static void check_unreadable(const char *text, const char *what, const char *help)
{
    sw_overrides *overrides = NULL;
    sw_error err = {0};
    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    sw_status status = sw_overrides_add_text(overrides, text, strlen(text), "o.yaml", &err);
    if (status != SW_E_FORMAT || strstr(err.what, what) == NULL || strstr(err.what, "o.yaml:") != err.what ||
        strstr(err.help, help) == NULL)
        fail_msg("status %s: %s (%s)", sw_status_name(status), err.what, err.help);
    sw_overrides_destroy(overrides);
}

static void what_no_placement_can_be_is_refused_with_its_line(void **state)
{
    (void)state;
    check_unreadable("- match: a\n  params:\n    w: {tq: shard(0)}\n", "o.yaml:3: params: unknown axis 'tq'",
                     "tp");
    check_unreadable("- match: a\n  params: {w: {dp: shard(0)}}\n", "dp", "tp, cp and ep");
    check_unreadable("- match: a\n  params: {w: {pp: shard(0)}}\n", "pp", "tp, cp and ep");
    check_unreadable("- match: a\n  params: {w: {tp: partial}}\n", "cannot be partial", "");
    check_unreadable("- match: a\n  params: {w: {tp: shard}}\n", "shard", "");
    check_unreadable("- match: a\n  parms: {w: {tp: shard(0)}}\n", "parms", "params");
}

static void placements_that_the_tensor_does_not_have_are_all_named_in_one_run(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA, .params = ATTENTION "model.norm.weight F32 16\n", .mesh = "tp=2",
                    .overrides =
                        "- match: model.layers.0.self_attn\n"
                        "  params: {+: {q_proj.weight: {tp: shard(2)}, nothing.weight: {tp: shard(0)}}}\n"
                        "- match: model.norm\n  params: {weight: {tp: shard(1)}}\n"
                        "- match: model.norn\n  params: {weight: {tp: shard(0)}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "q_proj.weight", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "[16, 16]", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "model.norm.weight", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_param", "o.yaml:1", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unmatched", "o.yaml:5", "model.norm");
    assert_true(sw_report_count_of(t.report, SW_SEVERITY_ERROR) >= 4);
    tiny_drop(&t);
}

static void equal_faults_of_many_layers_are_one_with_a_count(void **state)
{
    tiny t = TINY_REFUSE(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                                   "'num_hidden_layers': 3, 'hidden_size': 16, 'num_attention_heads': 4, "
                                   "'num_key_value_heads': 4, 'intermediate_size': 20, 'vocab_size': 16",
                         .mesh = "tp=8");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "indivisible", "(3 alike)", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", "(3 alike)", NULL);
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routed_experts_are_charged_to_the_ranks_that_hold_them),
        cmocka_unit_test(bytes_of_a_rank_are_the_sum_of_its_local_shapes),
        cmocka_unit_test(axes_of_size_one_change_nothing),
        cmocka_unit_test(an_axis_of_size_zero_is_refused),
        cmocka_unit_test(a_plan_carries_the_fingerprint_of_its_model),
        cmocka_unit_test(a_norm_that_an_override_cuts_is_flagged_with_its_cost),
        cmocka_unit_test(two_axes_never_cut_one_dim),
        cmocka_unit_test(one_axis_stands_once_in_a_placement),
        cmocka_unit_test(of_two_rules_on_a_boundary_the_later_wins_field_by_field),
        cmocka_unit_test(what_no_placement_can_be_is_refused_with_its_line),
        cmocka_unit_test(placements_that_the_tensor_does_not_have_are_all_named_in_one_run),
        cmocka_unit_test(equal_faults_of_many_layers_are_one_with_a_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
