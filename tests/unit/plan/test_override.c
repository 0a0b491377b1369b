/*
 * Applying overrides: merging into derived boundaries, inserting new ones, patterns, order, conditions,
 * refusals, and that a plan never points into the overrides it was made from.
 */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/override.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 32, "       \
    "'vocab_size': 32, 'tie_word_embeddings': false"
#define QWEN_MOE                                                                                             \
    "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 4, "                 \
    "'intermediate_size': 32, 'moe_intermediate_size': 8, 'num_experts': 4, 'num_experts_per_tok': 2, "      \
    "'vocab_size': 32, 'tie_word_embeddings': false"
#define L0 "model.layers.0."
#define L1 "model.layers.1."

/* ---- merging ---- */

static void only_the_given_field_is_replaced(void **state)
{
    (void)state;
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.mlp\n  in_src: {hidden_states: {tp: replicate}}\n");
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_contract(&t, L1 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_tp(&t, L0 "mlp.gate_proj.weight", "S(0)");
    tiny_tp(&t, L0 "mlp.down_proj.weight", "S(1)");
    tiny_type(&t, L0 "mlp", "mlp");
    tiny_drop(&t);
}

static void a_whole_contract_replaces_all_sides_and_keeps_what_is_no_field(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2,tp=2",
                       .overrides = "- match: model.layers.0.self_attn\n"
                                    "  params:\n"
                                    "    q_proj.weight: {tp: shard(0)}\n    k_proj.weight: {tp: shard(0)}\n"
                                    "    v_proj.weight: {tp: shard(0)}\n    o_proj.weight: {tp: shard(1)}\n"
                                    "  in_src: {x: {cp: shard(1), tp: shard(1)}}\n"
                                    "  in_dst: {x: {cp: shard(1), tp: replicate}}\n"
                                    "  out_src: {cp: shard(1), tp: partial}\n"
                                    "  out_dst: {cp: shard(1), tp: shard(1)}\n");
    tiny_contract(&t, L0 "self_attn", SW_AXIS_TP, "x: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L0 "self_attn", SW_AXIS_CP, "x: S(1) -> S(1); output: S(1) -> S(1)");
    assert_true(tiny_spec(&t, L0 "self_attn")->needs_cp_attn);
    tiny_silent(&t, "override_drops");
    tiny_contract(&t, L1 "self_attn", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_drop(&t);
}

static void auto_in_every_field_is_what_is_derived(void **state)
{
    (void)state;
    tiny derived = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n  params: auto\n  in_src: auto\n  in_dst: auto\n"
                                    "  out_src: auto\n  out_dst: auto\n  out_names: auto\n");
    const sw_spec *a = tiny_spec(&t, L0 "mlp");
    const sw_spec *b = tiny_spec(&derived, L0 "mlp");
    assert_int_equal(a->n_params, b->n_params);
    assert_int_equal(a->n_lower_in, b->n_lower_in);
    assert_int_equal(a->n_lower_out, b->n_lower_out);
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_tp(&t, L1 "mlp.up_proj.weight", "S(0)");
    tiny_drop(&t);
    tiny_drop(&derived);
}

static void a_patch_changes_single_parameters(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.layers.*.mlp\n"
                                    "  params: {+: {up_proj.weight: {tp: \"S(0;seg=32)\"}}}\n");
    tiny_tp(&t, L0 "mlp.up_proj.weight", "S(0;seg=32)");
    tiny_tp(&t, L1 "mlp.up_proj.weight", "S(0;seg=32)");
    tiny_tp(&t, L0 "mlp.gate_proj.weight", "S(0)");
    tiny_silent(&t, "override_drops");
    tiny_drop(&t);
}

static void matrices_that_meet_must_be_cut_in_the_same_rows(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.*.mlp\n"
                                      "  params: {+: {up_proj.weight: {tp: \"S(0;seg=16+16)\"}}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "members_disagree", "'gate_proj.weight' and 'up_proj.weight' meet",
                 "the same rows");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.*.mlp\n"
                               "  params: {+: {up_proj.weight: {tp: \"S(0;seg=16+16)\"},\n"
                               "    gate_proj.weight: {tp: \"S(0;seg=16+16)\"},\n"
                               "    down_proj.weight: {tp: \"S(1;seg=16+16)\"}}}\n");
    tiny_silent(&t, "members_disagree");
    tiny_drop(&t);
}

static void parameters_that_a_new_value_drops_are_named(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .allow_uncovered = true,
                       .overrides = "- match: '*.self_attn'\n  params: {q_proj.weight: {tp: replicate},\n"
                                    "    k_proj.weight: {tp: replicate}, v_proj.weight: {tp: replicate}}\n"
                                    "  out_src: {tp: replicate}\n");
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_drops", "o_proj.weight", "params: {+: {...}}");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "- match: '*.self_attn'\n  params: {q_proj.weight: {tp: shard(0)}}\n");
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_drops", "k_proj.weight, v_proj.weight, o_proj.weight",
                 NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", NULL, NULL);
    tiny_drop(&t);
}

static void inactive_axes_are_dropped(void **state)
{
    (void)state;
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.mlp\n"
                               "  in_dst: {hidden_states: {ep: shard(0), cp: shard(1), tp: replicate}}\n");
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L0 "mlp", SW_AXIS_CP, "hidden_states: R -> R; output: R -> R");
    tiny_contract(&t, L0 "mlp", SW_AXIS_EP, "hidden_states: R -> R; output: R -> R");
    tiny_drop(&t);
}

static void a_parameter_that_the_module_lacks_is_refused_with_the_nearest(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0.mlp\n"
                                      "  params: {+: {gate_pro.weight: {tp: shard(0)}}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_param", "gate_pro.weight",
                 "did you mean 'gate_proj.weight'?");
    tiny_drop(&t);
}

/* ---- order and patterns ---- */

static void the_later_entry_wins_whether_exact_or_pattern(void **state)
{
    (void)state;
    const char *general = "- match: '*.mlp'\n  in_src: {hidden_states: {tp: replicate}}\n";
    const char *single = "- match: model.layers.0.mlp\n  in_src: {hidden_states: {tp: shard(1)}}\n";
    char text[512];
    (void)snprintf(text, sizeof text, "%s%s", general, single);
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = text);
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L1 "mlp", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, L0 "mlp")->n_overrides, 2);
    assert_string_equal(tiny_spec(&t, L0 "mlp")->overrides[1], "o.yaml:3 model.layers.0.mlp");
    tiny_drop(&t);
    (void)snprintf(text, sizeof text, "%s%s", single, general);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = text);
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_drop(&t);
}

static void a_pattern_that_matches_nothing_is_a_warning_and_strict_an_error(void **state)
{
    (void)state;
    const char *text = "- match: '*.self_atn'\n  region_dispatch: false\n";
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = text);
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_unused", "o.yaml:1: the pattern matches no module", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2", .overrides = text, .strict = true);
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unused", NULL, NULL);
    tiny_drop(&t);
}

static void a_misspelt_fqn_is_an_error_with_the_nearest(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0.self_atn\n  in_dst: {x: {tp: replicate}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unmatched", "no module of the model has this name",
                 "did you mean 'model.layers.0.self_attn'?");
    tiny_drop(&t);
}

static void a_pattern_without_a_contract_may_not_match_other_modules(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: 'model.layers.0*'\n  region_dispatch: false\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "modules that are no boundary: model.layers.0",
                 NULL);
    tiny_drop(&t);
}

/* ---- conditions ---- */

static void an_entry_holds_only_when_its_axis_has_ranks(void **state)
{
    (void)state;
    const char *text = "- {match: model.layers.0.mlp, when: cp, in_src: {hidden_states: {tp: replicate}}}\n"
                       "- {match: model.layers.1.mlp, when: tp, in_src: {hidden_states: {tp: replicate}}}\n"
                       "- {match: nowhere, when: ep, in_src: {hidden_states: {tp: replicate}}}\n";
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = text);
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, L1 "mlp", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_drop(&t);
}

/* ---- injections ---- */

static void an_injection_keeps_the_derived_contract(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides =
                           "- match: '*.mlp'\n  region_dispatch: false\n  local_compute: grouped_experts\n");
    const sw_spec *s = tiny_spec(&t, L1 "mlp");
    assert_int_equal(s->region_dispatch, 0);
    assert_string_equal(s->local_compute, "grouped_experts");
    tiny_contract(&t, L1 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_tp(&t, L1 "mlp.gate_proj.weight", "S(0)");
    tiny_drop(&t);
}

static void an_injection_on_experts_keeps_their_stacks(void **state)
{
    (void)state;
    tiny derived = TINY_PLAN(.config = QWEN_MOE, .mesh = "tp=2", .ep = 2);
    tiny t = TINY_PLAN(.config = QWEN_MOE, .mesh = "tp=2", .ep = 2,
                       .overrides = "- match: '*.mlp'\n  when: ep\n  region_dispatch: false\n"
                                    "  local_compute: ep_experts\n");
    const sw_spec *s = tiny_spec(&t, L0 "mlp");
    assert_int_equal(s->ep_size, 2);
    assert_int_equal(s->n_stacks, tiny_spec(&derived, L0 "mlp")->n_stacks);
    assert_true(s->n_stacks > 0);
    assert_string_equal(s->local_compute, "ep_experts");
    tiny_drop(&t);
    tiny_drop(&derived);
}

static void an_injection_where_nothing_is_derived_is_refused(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0\n  region_dispatch: false\n"
                                      "  local_compute: grouped_experts\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "declares no contract",
                 "match: model.layers.0, params: {}");
    tiny_drop(&t);
}

/* ---- inserting ---- */

static void a_contract_inserts_a_boundary(void **state)
{
    (void)state;
    const char *text =
        "- match: model.layers.0\n  params: {}\n"
        "  in_src: {hidden_states: {tp: shard(1)}}\n  in_dst: {hidden_states: {tp: shard(1)}}\n"
        "  out_src: {tp: shard(1)}\n  out_dst: {tp: shard(1)}\n";
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = text);
    const sw_spec *s = tiny_spec(&t, "model.layers.0");
    assert_true(s->is_inserted);
    assert_false(s->is_terminal);
    assert_int_equal(s->n_params, 0);
    assert_int_equal(s->layer, 0);
    tiny_type(&t, "model.layers.0", "custom");
    tiny_contract(&t, "model.layers.0", SW_AXIS_TP, "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_type(&t, L0 "mlp", "mlp");
    tiny_drop(&t);
}

static void the_root_can_be_a_boundary(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = "- match: ''\n  params: {}\n");
    assert_true(tiny_spec(&t, "")->is_inserted);
    assert_false(tiny_spec(&t, "")->is_terminal);
    tiny_type(&t, L0 "self_attn", "attention");
    tiny_drop(&t);
}

static void a_parameter_in_two_boundaries_is_refused(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0\n"
                                      "  params: {self_attn.q_proj.weight: {tp: shard(0)}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "two_owners", "self_attn.q_proj.weight", NULL);
    tiny_drop(&t);
}

static void none_where_nothing_is_derived_is_refused(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0\n  params: {}\n  in_src: none\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "nothing can be inherited or cleared", NULL);
    tiny_drop(&t);
}

/* ---- derive: false ---- */

#define ROOT_ONLY "derive: false\noverrides:\n- {match: '', params: {}}\n"

static void without_derivation_the_plan_holds_the_entries_alone(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = ROOT_ONLY);
    assert_int_equal(sw_plan_boundary_count(t.plan), 1);
    assert_non_null(tiny_spec(&t, ""));
    tiny_silent(&t, "uncovered");
    tiny_drop(&t);
}

static void without_derivation_a_later_entry_merges_into_an_earlier_one(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = ROOT_ONLY "- {match: '*', in_src: {x: {tp: replicate}}, "
                                              "in_dst: {x: {tp: replicate}}, when: tp}\n");
    tiny_contract(&t, "", SW_AXIS_TP, "x: R -> R");
    assert_true(sw_plan_boundary_count(t.plan) > 1);
    tiny_drop(&t);
}

static void without_derivation_an_injection_alone_is_refused(void **state)
{
    (void)state;
    tiny t =
        TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "derive: false\noverrides:\n- {match: model.layers.0.mlp, in_src: none}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "with derive: false nothing can be inherited",
                 NULL);
    tiny_drop(&t);
}

/* ---- attributes, layouts, roles ---- */

static void declared_attributes_are_divided(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.mlp\n  tp_divide_attrs: [intermediate_size]\n");
    const sw_spec *s = tiny_spec(&t, L0 "mlp");
    assert_int_equal(s->n_tp_divide, 1);
    assert_string_equal(s->tp_divide[0], "intermediate_size");
    tiny_drop(&t);
}

#define FUSED                                                                                                \
    "model.layers.0.self_attn.my_qkv_proj.weight F32 48x16\nmodel.layers.0.self_attn.o_proj.weight F32 "     \
    "16x16\n"                                                                                                \
    "model.layers.0.mlp.gate_up_proj.weight F32 64x16\nmodel.layers.0.mlp.down_proj.weight F32 16x32\n"
#define FUSED_CONFIG                                                                                         \
    "'num_hidden_layers': 1, 'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4"

static void a_layout_says_how_a_fused_weight_is_stored(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = FUSED_CONFIG, .params = FUSED, .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", "48 rows", "layout: stacked");
    tiny_drop(&t);
    t = TINY_PLAN(.config = FUSED_CONFIG, .params = FUSED, .mesh = "tp=2",
                  .overrides = "- match: '*.my_qkv_proj.weight'\n  layout: stacked\n"
                               "- match: '*.mlp'\n  layout: {gate_up_proj: stacked}\n");
    tiny_rows(&t, L0 "self_attn.my_qkv_proj.weight", 0, "0:8 16:24 32:40");
    tiny_rows(&t, L0 "self_attn.my_qkv_proj.weight", 1, "8:16 24:32 40:48");
    tiny_rows(&t, L0 "mlp.gate_up_proj.weight", 0, "0:16 32:48");
    tiny_drop(&t);
    t = TINY_PLAN(.config = FUSED_CONFIG, .params = FUSED, .mesh = "tp=2",
                  .overrides =
                      "- match: model.layers.0.self_attn.my_qkv_proj\n  layout: per_head\n"
                      "- match: '*'\n  layout: {mlp.gate_up_proj.weight: {kind: interleaved}}\n"
                      "- match: model.layers.0.mlp\n  layout: {gate_up_proj: {segments: [32, 16, 16]}}\n");
    tiny_rows(&t, L0 "self_attn.my_qkv_proj.weight", 0, "0:24");
    tiny_rows(&t, L0 "mlp.gate_up_proj.weight", 1, "16:32 40:48 56:64");
    tiny_drop(&t);
}

static void a_layout_that_meets_no_parameter_is_reported(void **state)
{
    (void)state;
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0.mlp.gate_up_proj\n  layout: stacked\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unmatched", "layout meets no parameter", NULL);
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = "- match: '*.qkv'\n  layout: stacked\n");
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_unused", "layout meets no parameter", NULL);
    tiny_drop(&t);
}

#define WIDE "model.layers.0.mlp.wide_a.weight F32 32x16\nmodel.layers.0.mlp.wide_b.weight F32 16x32\n"

static void rules_give_names_their_roles(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = FUSED_CONFIG, .params = WIDE, .mesh = "tp=2",
                       .overrides = "roles: {extend: true, rules: [[wide_a, colwise], [wide_b, rowwise]]}\n");
    tiny_role(&t, L0 "mlp.wide_a.weight", "colwise");
    tiny_tp(&t, L0 "mlp.wide_a.weight", "S(0)");
    tiny_tp(&t, L0 "mlp.wide_b.weight", "S(1)");
    tiny_drop(&t);
}

static void rules_of_the_architecture_come_first(void **state)
{
    (void)state;
    const char *text = "roles: [[wide_, colwise]]\n"
                       "arch_roles: {MyModelForCausalLM: [[WIDE_B, rowwise]], other: [[wide_a, norm]]}\n";
    tiny t = TINY_PLAN(.config = "'architectures': ['MyModelForCausalLM'], " FUSED_CONFIG, .params = WIDE,
                       .mesh = "tp=2", .overrides = text);
    tiny_role(&t, L0 "mlp.wide_a.weight", "colwise");
    tiny_role(&t, L0 "mlp.wide_b.weight", "rowwise");
    tiny_drop(&t);
}

/* ---- limits ---- */

/* Patterns that an absurdly long name makes expensive. */
static void check_steps(const char *entry)
{
    char name[20100] = "model.layers.0.";
    sw_buffer params = {0};
    sw_buffer text = {0};
    size_t used = strlen(name);
    memset(name + used, 'a', 20000);
    sw_buffer_printf(&params, "model.norm.weight F32 16\n%s.weight F32 16\n", name);
    sw_buffer_puts(&text, "overrides:\n");
    for (int i = 0; i < 4000; i++)
        sw_buffer_printf(&text, entry, i);
    tiny t = TINY_TRY(.config = LLAMA, .params = sw_buffer_text(&params), .mesh = "tp=2",
                      .overrides = sw_buffer_text(&text), .allow_uncovered = true);
    assert_int_equal(t.status, SW_E_LIMIT);
    assert_string_equal(t.err.what, "matching the overrides with 2 parameters and 6 modules takes more than "
                                    "100000000 steps");
    assert_string_equal(t.err.help, "write fewer patterns, or exact names");
    tiny_drop(&t);
    sw_buffer_clear(&params);
    sw_buffer_clear(&text);
}

static void patterns_times_names_are_bounded(void **state)
{
    (void)state;
    check_steps("- {match: '*a*a*b%d*', tp_divide_attrs: []}\n");
    check_steps("- {match: '*a*a*b%d*', layout: stacked}\n");
    check_steps("- {match: '*a*a*', when: tp, layout: {'b%d*': stacked}}\n");
}

static void rules_times_names_are_bounded(void **state)
{
    (void)state;
    sw_buffer params = {0};
    sw_buffer text = {0};
    for (int i = 0; i < 1000; i++)
        sw_buffer_printf(&params, "model.layers.%d.norm.weight F32 16\n", i % 2 + 2 * i);
    sw_buffer_puts(&text, "roles:\n");
    for (int i = 0; i < 300; i++) {
        sw_buffer_printf(&text, "- [[layers.%d.x", i);
        for (int k = 0; k < 250; k++)
            sw_buffer_printf(&text, ", p%d", k);
        sw_buffer_puts(&text, "], norm]\n");
    }
    tiny t = TINY_TRY(.config = "'num_hidden_layers': 2100", .params = sw_buffer_text(&params),
                      .mesh = "tp=2", .overrides = sw_buffer_text(&text));
    assert_int_equal(t.status, SW_E_LIMIT);
    assert_non_null(strstr(t.err.what, "takes more than 100000000 steps"));
    tiny_drop(&t);
    sw_buffer_clear(&params);
    sw_buffer_clear(&text);
}

/* ---- lifetimes ---- */

static void a_plan_never_points_into_the_overrides(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = FUSED_CONFIG, .params = FUSED WIDE, .mesh = "tp=2",
                       .overrides = "roles: {extend: true, rules: [[wide_a, colwise], [wide_b, rowwise]]}\n"
                                    "overrides:\n"
                                    "- match: '*.my_qkv_proj.weight'\n  layout: {segments: [16, 16, 16]}\n"
                                    "- match: '*.mlp'\n  layout: {gate_up_proj: stacked}\n"
                                    "  params: {+: {wide_a.weight: {tp: \"S(0;seg=16+16)\"}}}\n"
                                    "  in_dst: {hidden_states: {tp: replicate}}\n  out_names: [output]\n"
                                    "  region_dispatch: false\n  local_compute: ep_experts\n");
    sw_overrides_destroy(t.overrides);
    t.overrides = NULL;
    tiny_rows(&t, L0 "self_attn.my_qkv_proj.weight", 0, "0:8 16:24 32:40");
    tiny_tp(&t, L0 "mlp.wide_a.weight", "S(0;seg=16+16)");
    const sw_spec *s = tiny_spec(&t, L0 "mlp");
    tiny_contract(&t, L0 "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_string_equal(s->out_names[0], "output");
    assert_string_equal(s->local_compute, "ep_experts");
    assert_string_equal(s->overrides[0], "o.yaml:5 *.mlp");

    char *text = NULL;
    size_t length = 0;
    assert_int_equal(sw_plan_json(t.plan, &text, &length, NULL), SW_OK);
    sw_text_free(text);
    sw_explain_options all = SW_EXPLAIN_OPTIONS_INIT;
    all.all = true;
    assert_int_equal(sw_plan_explain(t.plan, &all, &text, &length, NULL), SW_OK);
    assert_non_null(strstr(text, "wide_a"));
    sw_text_free(text);
    tiny_drop(&t);
}

static void the_same_overrides_serve_twice(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n  in_src: {hidden_states: {tp: replicate}}\n"
                                    "- match: model.layers.0\n  params: {}\n");
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_plan *again = NULL;
    char *a = NULL;
    char *b = NULL;
    size_t n_a = 0;
    size_t n_b = 0;
    options.overrides = t.overrides;
    assert_int_equal(sw_plan_create(&again, t.model, t.mesh, &options, NULL), SW_OK);
    assert_int_equal(sw_plan_json(t.plan, &a, &n_a, NULL), SW_OK);
    assert_int_equal(sw_plan_json(again, &b, &n_b, NULL), SW_OK);
    assert_string_equal(a, b);
    assert_int_equal(t.overrides->n_entries, 2);
    sw_text_free(a);
    sw_text_free(b);
    sw_plan_destroy(again);
    tiny_drop(&t);
}

#define STACKED_CONFIG                                                                                       \
    "'architectures': ['StrangerForCausalLM'], 'num_hidden_layers': 1, 'hidden_size': 16, "                  \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 6"
#define Q_AND_KV                                                                                             \
    "model.layers.0.self_attn.q_proj.weight F32 48x16\nmodel.layers.0.self_attn.kv_proj.weight F32 24x16\n"  \
    "model.layers.0.self_attn.o_proj.weight F32 16x48\n"

static void stacked_is_of_heads_only_where_the_weight_is(void **state)
{
    static const char wide[] = L0 "mlp.up_proj.weight F32 48x16\n" L0 "mlp.down_proj.weight F32 16x48\n";
    tiny t = TINY_PLAN(.config = STACKED_CONFIG, .params = Q_AND_KV, .mesh = "tp=4",
                       .overrides = "- match: '*.kv_proj'\n  layout: stacked\n");
    (void)state;
    tiny_tp(&t, L0 "self_attn.kv_proj.weight", "S(0;seg=12r2+12r2)");
    tiny_drop(&t);
    /* 48 rows are a multiple of 8 + 2 * 2 heads, but no q, k and v. */
    t = TINY_PLAN(.config = STACKED_CONFIG, .params = wide, .mesh = "tp=2",
                  .overrides = "- match: '*.up_proj'\n  layout: stacked\n");
    tiny_tp(&t, L0 "mlp.up_proj.weight", "S(0;seg=24+24)");
    tiny_drop(&t);
}

static void parts_that_are_given_are_equal_parts_of_any_weight(void **state)
{
    tiny t = TINY_PLAN(.config = STACKED_CONFIG, .mesh = "tp=2",
                       .params = L0 "mlp.up_proj.weight F32 48x16\n" L0 "mlp.down_proj.weight F32 16x48\n",
                       .overrides = "- match: '*.up_proj'\n  layout: {kind: stacked, parts: 3}\n");
    (void)state;
    tiny_rows(&t, L0 "mlp.up_proj.weight", 1, "8:16 24:32 40:48");
    tiny_drop(&t);
    t = TINY_PLAN(.config = STACKED_CONFIG, .params = Q_AND_KV, .mesh = "tp=2",
                  .overrides = "- match: '*.kv_proj'\n  layout: {kind: stacked, parts: 2}\n");
    tiny_rows(&t, L0 "self_attn.kv_proj.weight", 1, "6:12 18:24");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = STACKED_CONFIG, .params = Q_AND_KV, .mesh = "tp=4", /* half a head a rank */
                    .overrides = "- match: '*.kv_proj'\n  layout: {kind: stacked, parts: 2}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "indivisible", "24 rows in groups of 6 cannot be cut over tp=4",
                 "tp sizes that fit: 1, 2");
    tiny_drop(&t);
}

#define TURNED                                                                                               \
    L0 "self_attn.my_qkv_proj.weight F32 16x48\n" L0 "self_attn.my_qkv_proj.bias F32 48\n" L0                \
       "self_attn.o_proj.weight F32 16x16\n"

static void the_dim_of_a_layout_says_which_way_round_a_matrix_is_stored(void **state)
{
    tiny t = TINY_PLAN(.config = FUSED_CONFIG, .params = TURNED, .mesh = "tp=2",
                       .overrides = "- match: '*.my_qkv_proj'\n  layout: {kind: stacked, dim: 1}\n");
    (void)state;
    tiny_tp(&t, L0 "self_attn.my_qkv_proj.weight", "S(1;seg=16+16+16)");
    tiny_tp(&t, L0 "self_attn.my_qkv_proj.bias", "S(0;seg=16+16+16)");
    tiny_drop(&t);
    t = TINY_PLAN(.config = FUSED_CONFIG ", 'architectures': ['StrangerForCausalLM']", .mesh = "tp=2",
                  .params = L0 "mlp.up_proj.weight F32 16x32\n" L0 "mlp.down_proj.weight F32 32x16\n",
                  .overrides = "- match: '*.mlp'\n  layout:\n    up_proj: {kind: plain, dim: -1}\n"
                               "    down_proj: {kind: plain, dim: 0}\n");
    tiny_tp(&t, L0 "mlp.up_proj.weight", "S(1)");
    tiny_tp(&t, L0 "mlp.down_proj.weight", "S(0)");
    tiny_drop(&t);
    t = TINY_PLAN(.config = FUSED_CONFIG ", 'architectures': ['StrangerForCausalLM'], 'num_experts': 2",
                  .mesh = "tp=2",
                  .params = L0 "mlp.gate.weight F32 2x16\n" L0 "mlp.experts.up_proj F32 2x16x16\n" L0
                               "mlp.experts.down_proj F32 2x16x16\n",
                  .overrides = "- match: '*.mlp'\n  layout:\n    experts.up_proj: {kind: plain, dim: 2}\n"
                               "    experts.down_proj: {kind: plain, dim: 1}\n");
    tiny_tp(&t, L0 "mlp.experts.up_proj", "S(2)");
    tiny_tp(&t, L0 "mlp.experts.down_proj", "S(1)");
    tiny_drop(&t);
}

static void a_dim_that_is_no_side_of_the_matrix_is_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = FUSED_CONFIG, .params = TURNED, .mesh = "tp=2",
                         .overrides = "- match: '*.my_qkv_proj'\n  layout: {kind: stacked, dim: 2}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "layout says dim 2", "the side that tp cuts");
    tiny_drop(&t);
}

static void a_special_role_on_an_attention_is_doubted(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "roles:\n  extend: true\n  rules:\n  - {pattern: k_proj, role: special}\n");
    (void)state;
    tiny_type(&t, L0 "self_attn", "mixer");
    tiny_finding(&t, SW_SEVERITY_WARNING, "mixer_unknown",
                 "special of 'k_proj.weight' makes the region a mixer", "mixer only");
    assert_int_equal(t.plan->n_special, 2);
    assert_string_equal(t.plan->special[0].handler, "default");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_given_field_is_replaced),
        cmocka_unit_test(a_whole_contract_replaces_all_sides_and_keeps_what_is_no_field),
        cmocka_unit_test(auto_in_every_field_is_what_is_derived),
        cmocka_unit_test(a_patch_changes_single_parameters),
        cmocka_unit_test(matrices_that_meet_must_be_cut_in_the_same_rows),
        cmocka_unit_test(parameters_that_a_new_value_drops_are_named),
        cmocka_unit_test(inactive_axes_are_dropped),
        cmocka_unit_test(a_parameter_that_the_module_lacks_is_refused_with_the_nearest),
        cmocka_unit_test(the_later_entry_wins_whether_exact_or_pattern),
        cmocka_unit_test(a_pattern_that_matches_nothing_is_a_warning_and_strict_an_error),
        cmocka_unit_test(a_misspelt_fqn_is_an_error_with_the_nearest),
        cmocka_unit_test(a_pattern_without_a_contract_may_not_match_other_modules),
        cmocka_unit_test(an_entry_holds_only_when_its_axis_has_ranks),
        cmocka_unit_test(an_injection_keeps_the_derived_contract),
        cmocka_unit_test(an_injection_on_experts_keeps_their_stacks),
        cmocka_unit_test(an_injection_where_nothing_is_derived_is_refused),
        cmocka_unit_test(a_contract_inserts_a_boundary),
        cmocka_unit_test(the_root_can_be_a_boundary),
        cmocka_unit_test(a_parameter_in_two_boundaries_is_refused),
        cmocka_unit_test(none_where_nothing_is_derived_is_refused),
        cmocka_unit_test(without_derivation_the_plan_holds_the_entries_alone),
        cmocka_unit_test(without_derivation_a_later_entry_merges_into_an_earlier_one),
        cmocka_unit_test(without_derivation_an_injection_alone_is_refused),
        cmocka_unit_test(declared_attributes_are_divided),
        cmocka_unit_test(a_layout_says_how_a_fused_weight_is_stored),
        cmocka_unit_test(a_layout_that_meets_no_parameter_is_reported),
        cmocka_unit_test(rules_give_names_their_roles),
        cmocka_unit_test(rules_of_the_architecture_come_first),
        cmocka_unit_test(patterns_times_names_are_bounded),
        cmocka_unit_test(rules_times_names_are_bounded),
        cmocka_unit_test(a_plan_never_points_into_the_overrides),
        cmocka_unit_test(the_same_overrides_serve_twice),
        cmocka_unit_test(stacked_is_of_heads_only_where_the_weight_is),
        cmocka_unit_test(parts_that_are_given_are_equal_parts_of_any_weight),
        cmocka_unit_test(the_dim_of_a_layout_says_which_way_round_a_matrix_is_stored),
        cmocka_unit_test(a_dim_that_is_no_side_of_the_matrix_is_refused),
        cmocka_unit_test(a_special_role_on_an_attention_is_doubted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
