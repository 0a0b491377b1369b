/*
 * Checking a given plan: files with one place edited, each with the finding that must name it. A sound plan
 * gives no finding at all, so each finding is the edit's.
 */
#include "check_bench.h"
#include "plan_text.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"
#include "plan/report.h"

#define L "model.layers.0."

/* Not even a note, but that overrides were passed over. */
static void must_be_silent(const bench *b)
{
    for (size_t i = 0; i < sw_report_count(b->found); i++) {
        const sw_finding *f = sw_report_finding(b->found, i);
        if (strcmp(f->code, "not_compared") != 0)
            fail_msg("[%s] %s", f->code, f->what);
    }
}

/* One place edited in a plan, and the error that it must give. */
static void expect_error(const tiny_case *what, const char *after, const char *from, const char *to,
                         const char *code, const char *text)
{
    bench b = bench_of(what);

    bench_edit_after(&b, after, from, to);
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, code, text);
    bench_drop(&b);
}

static const tiny_case biased = {.config = BIASED, .mesh = "dp=2,tp=2"};
static const tiny_case moe = {.config = MOE, .mesh = "dp=2,tp=2"};
static const tiny_case fused = {.config = FUSED, .mesh = "tp=2"};
static const tiny_case tied = {.config = TIED, .mesh = "tp=2"};
static const tiny_case full_norm = {.config = FULL_NORM, .mesh = "tp=2"};

/* ---- sound plans ---- */

static void a_sound_plan_gives_no_finding(void **state)
{
    // clang-format off
    static const tiny_case cases[] = {
        {.config = BIASED, .mesh = "pp=2,dp=2,cp=2,tp=4"},
        {.config = BIASED, .mesh = "tp=2", .no_sp = true},
        {.config = BIASED, .mesh = "tp=2", .loss_parallel = true},
        {.config = MOE, .mesh = "dp=2,tp=2",.ep = 4},
        {.config = MOE, .mesh = "dp=2,ep=2,tp=2" },
        {.config = FUSED, .mesh = "tp=4" },
        {.config = TIED, .mesh = "pp=1,tp=2" },
        {.config = FULL_NORM, .mesh = "tp=2" },
    };
    // clang-format on

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        bench b = bench_of(&cases[i]);
        bench_check(&b);
        must_be_silent(&b);
        bench_drop(&b);
    }
}

static void a_plan_that_was_just_made_is_checked_too(void **state)
{
    tiny t = tiny_plan(&moe);

    (void)state;
    assert_int_equal(sw_plan_check(t.plan, t.model, NULL, NULL), SW_OK);
    tiny_drop(&t);
}

static void the_given_plan_stays_as_it_is(void **state)
{
    bench b = bench_of(&biased);

    (void)state;
    bench_edit(&b, "'deferred_bias': ['o_proj.bias']", "'deferred_bias': []");
    sw_plan *plan = plan_parsed(b.text);
    size_t n_findings = sw_report_count(sw_plan_findings(plan));
    assert_int_equal(sw_plan_check(plan, b.t.model, NULL, NULL), SW_E_PLAN);
    char *after = plan_text(plan);
    assert_string_equal(after, b.text);
    assert_int_equal(sw_report_count(sw_plan_findings(plan)), n_findings);
    assert_null(plan->model);
    sw_text_free(after);
    sw_plan_destroy(plan);
    bench_drop(&b);
}

static void what_an_override_changed_is_no_difference(void **state)
{
    bench b =
        BENCH(.config = BIASED, .mesh = "tp=2",
              .overrides = "- match: 'model.layers.*.self_attn'\n  tp_divide_attrs: [intermediate_size]\n"
                           "- match: model.layers.1.mlp\n"
                           "  params: {gate_proj.weight: {tp: replicate}, gate_proj.bias: {tp: replicate},\n"
                           "    up_proj.weight: {tp: replicate}, up_proj.bias: {tp: replicate},\n"
                           "    down_proj.weight: {tp: replicate}, down_proj.bias: {tp: replicate}}\n"
                           "  out_src: {output: {tp: replicate}}\n");
    (void)state;
    bench_check(&b);
    must_be_silent(&b);
    bench_drop(&b);
}

static void a_plan_of_overrides_alone_is_not_compared(void **state)
{
    bench b =
        BENCH(.config = BIASED, .mesh = "tp=2",
              .overrides =
                  "derive: false\noverrides:\n- match: model.norm\n  params: {weight: {tp: replicate}}\n"
                  "  in_src: {input: {tp: replicate}}\n  in_dst: {input: {tp: replicate}}\n");
    (void)state;
    bench_check(&b);
    must_be_silent(&b);
    bench_drop(&b);
}

/* ---- the model ---- */

static void a_plan_of_another_model_is_refused_with_the_numbers(void **state)
{
    bench b = bench_of(&biased);
    char what[64];

    (void)state;
    (void)snprintf(what, sizeof what, "\"fingerprint\": \"%016llx\"",
                   (unsigned long long)sw_model_fingerprint(b.t.model));
    bench_edit(&b, what, "'fingerprint': '00000000000000ff'");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, "other_model", "another model: fingerprint 00000000000000ff");
    assert_int_equal(sw_report_count(b.found), 1); /* of another model everything would differ */
    bench_drop(&b);

    b = bench_of(&biased);
    bench other = bench_of(&moe);
    sw_plan *plan = plan_parsed(b.text);
    sw_error err = {0};
    assert_int_equal(sw_plan_check(plan, other.t.model, NULL, &err), SW_E_PLAN);
    assert_non_null(strstr(err.what, "the plan is for another model"));
    assert_non_null(strstr(err.help, "the plan's own model"));
    sw_plan_destroy(plan);
    bench_drop(&other);
    bench_drop(&b);
}

static void tensors_must_be_those_of_the_model(void **state)
{
    (void)state;
    expect_error(&biased, L "self_attn", "'shape':[16,16]", "'shape':[16,32]", "other_tensor",
                 L "self_attn.q_proj.weight: the plan has another shape than the model");
    expect_error(&biased, L "mlp", "'dtype':'F32'", "'dtype':'BF16'", "other_tensor",
                 L "mlp.gate_proj.weight: the plan has another dtype");
}

/* ---- ownership ---- */

static void a_parameter_that_is_missing_is_uncovered(void **state)
{
    (void)state;
    expect_error(&biased, L "self_attn", "'k_proj.weight': {", "'k_proj.other': {", "uncovered",
                 L "self_attn.k_proj.weight");
    expect_error(&biased, L "self_attn", "'k_proj.weight': {", "'k_proj.other': {", "not_in_model",
                 "the plan holds 'k_proj.other', which the model does not");
}

static void a_parameter_in_two_boundaries_is_refused(void **state)
{
    bench b = bench_of(&moe);

    (void)state;
    bench_edit_after(&b, L "mlp': {", "'gate.weight': {",
                     "'shared_expert.up_proj.weight': {'role':'shared_expert','dtype':'F32','shape':[8,16],"
                     "'placement':{'tp':'S(0)'},'layout':{'kind':'plain'},"
                     "'grad_sum':[{'axis':'dp','reason':'data'}]},\n'gate.weight': {");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, "two_owners", L "mlp.shared_expert.up_proj.weight");
    bench_must_find(&b, SW_SEVERITY_ERROR, "two_owners",
                    "held by boundary '" L "mlp' and by boundary '" L "mlp.shared_expert'");
    bench_drop(&b);
}

/* ---- placements ---- */

static void placements_must_fit_the_tensor(void **state)
{
    (void)state;
    expect_error(&moe, L "mlp.shared_expert", "'tp':'S(0)'", "'tp':'S(5)'", "no_such_dim", "has 2 dims");
    expect_error(&moe, L "mlp.shared_expert", "'tp':'S(0)'", "'tp':'P'", "partial_parameter", "partial sum");
    expect_error(&fused, "qkv_proj.weight", "seg=16+8+8", "seg=16+8+4", "bad_cut", "qkv_proj.weight");
    expect_error(&fused, "qkv_proj.weight", "S(0;seg=16+8+8)", "S(0)", "fused_contiguous", "qkv_proj.weight");
}

static void a_changed_placement_changes_its_gradient_and_heads(void **state)
{
    bench b = BENCH(.config = TIED, .mesh = "dp=2,tp=2");

    (void)state;
    bench_edit_after(&b, L "mlp", "'tp':'S(0)'", "'tp':'R'");
    bench_edit_after(&b, L "self_attn", "'q_proj.weight': {'role':'colwise'",
                     "'q_proj.weight': {'role':'rowwise'");
    bench_check(&b);
    bench_must_find(
        &b, SW_SEVERITY_ERROR, "stale_grad_sum",
        L
        "mlp.gate_proj.weight: its gradient is summed over dp (data); its placement and contract call for tp "
        "(partial), dp (data)");
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived",
                    L "mlp.gate_proj.weight: placement tp=R; tp=S(0) is derived");
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived",
                    L "self_attn.q_proj.weight: role rowwise; colwise is derived");
    bench_drop(&b);
    expect_error(&tied, L "self_attn", "'num_heads': [4, 2]", "'num_heads': [4, 4]", "stale_tp_local",
                 "num_heads 4 of 4; the placements call for num_heads 2 of 4");
    expect_error(&tied, "", "'tp_local': {'num_heads': [4, 2], ", "'tp_local': {", "stale_tp_local",
                 L "self_attn");
}

static void tied_names_must_be_cut_alike(void **state)
{
    bench b = bench_of(&tied);

    (void)state;
    bench_edit_after(&b, "'lm_head': {", "'params': {",
                     "'params': {'weight': {'role':'lm_head','dtype':'F32','shape':[16,16],"
                     "'placement':{'tp':'R'},'grad_sum':[]}");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, "tied_conflict",
                    "tied to model.embed_tokens.weight, but cut differently");
    bench_drop(&b);
}

/* ---- biases ---- */

static void a_row_bias_beside_a_partial_exit_must_be_deferred(void **state)
{
    bench b = bench_of(&biased);

    (void)state;
    bench_edit(&b, "'deferred_bias': ['o_proj.bias']", "'deferred_bias': []");
    bench_check(&b);
    bench_must_find(
        &b, SW_SEVERITY_ERROR, "bias_placement",
        L "self_attn.o_proj.bias: the bias of a row-parallel weight is whole beside a partial exit and not "
          "deferred: it would be added tp times");
    bench_drop(&b);
    expect_error(&biased, L "mlp",
                 "'down_proj.bias': {'role':'bias','dtype':'F32','shape':[16],"
                 "'placement':{'tp':'R'}",
                 "'down_proj.bias': "
                 "{'role':'bias','dtype':'F32','shape':[16],'placement':{'tp':'S(0)'}",
                 "bias_placement", L "mlp.down_proj.bias: the bias of a row-parallel weight must be whole");
    expect_error(
        &biased, L "self_attn", "['o_proj.bias']", "['o_proj.bias', 'q_proj.bias']", "bias_placement",
        L "self_attn.q_proj.bias: the bias is deferred, but nothing after the exit is a partial sum");
}

static void a_column_bias_must_follow_its_weight(void **state)
{
    (void)state;
    expect_error(&biased, "'q_proj.bias'", "'tp':'S(0)'", "'tp':'R'", "bias_placement",
                 L "self_attn.q_proj.bias: the bias of a column-parallel weight is not cut with it");
}

/* ---- what follows from the plan ---- */

static void what_the_runtime_executes_must_follow_from_the_contracts(void **state)
{
    (void)state;
    expect_error(
        &biased, L "self_attn", "'backward': 'reduce_scatter'", "'backward': 'slice'", "stale_lowering",
        L
        "self_attn: lowering in has hidden_states: all_gather of dim 1 over tp, backward slice; the contract "
        "calls for hidden_states: all_gather of dim 1 over tp, backward reduce_scatter");
    expect_error(&biased, L "self_attn",
                 "'in': [{'arg': 'hidden_states', 'collective': 'all_gather', 'axis': 'tp', 'dim': 1, "
                 "'backward': 'reduce_scatter'}]",
                 "'in': []", "stale_lowering", "lowering in has nothing");
    expect_error(&biased, L "self_attn", "'out_dst': {'output': {'tp': 'S(1)'}}",
                 "'out_dst': {'output': {'tp': 'R'}}", "stale_lowering",
                 "the contract calls for output: all_reduce");
    expect_error(
        &biased, L "input_layernorm", "{'axis':'tp','reason':'sequence'},", "", "stale_grad_sum",
        L
        "input_layernorm.weight: its gradient is summed over dp (data); its placement and contract call for "
        "tp (sequence), dp (data)");
    expect_error(&biased, "", "{'axis':'dp','reason':'data'}", "", "stale_grad_sum", "summed over nothing");
    expect_error(&full_norm, "", "'mean_square'", "'sum_routed_output'", "stale_inner", L "self_attn");
    expect_error(&biased, "'model.norm'", "'terminal': false", "'terminal': true", "stale_stage",
                 "model.norm");
    expect_error(&(const tiny_case){.config = BIASED, .mesh = "pp=2,tp=2"}, L "mlp", "'stage': 0",
                 "'stage': 1", "stale_stage", L "mlp: on stage 1; its layer belongs to stage 0");
    expect_error(&(const tiny_case){.config = BIASED, .mesh = "pp=2,tp=2"}, "", "'layers': [0, 1]",
                 "'layers': [0, 2]", "stale_stage", "stages does not spread 2 layers over pp=2");
    expect_error(&(const tiny_case){.config = BIASED, .mesh = "cp=2"}, "",
                 "'kind': 'cp', 'axis': 'cp', 'size': 2", "'kind': 'cp', 'axis': 'cp', 'size': 4",
                 "stale_parallel", "parallel_modules lists 2 modules");
}

static void all_faults_are_found_in_one_run(void **state)
{
    bench b = bench_of(&biased);

    (void)state;
    bench_edit_after(&b, L "self_attn", "['o_proj.bias']", "[]");
    bench_edit_after(&b, L "self_attn", "'backward': 'reduce_scatter'", "'backward': 'slice'");
    bench_edit_after(&b, "model.layers.1.self_attn", "'k_proj.weight': {", "'k_proj.other': {");
    bench_edit_after(&b, "model.layers.1.mlp", "'tp':'S(0)'", "'tp':'S(7)'");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, "bias_placement", "o_proj.bias");
    bench_must_find(&b, SW_SEVERITY_ERROR, "stale_lowering", L "self_attn");
    bench_must_find(&b, SW_SEVERITY_ERROR, "uncovered", "model.layers.1.self_attn.k_proj.weight");
    bench_must_find(&b, SW_SEVERITY_ERROR, "no_such_dim", "model.layers.1.mlp.gate_proj.weight");
    bench_drop(&b);
}

/* ---- differences from the derived plan ---- */

static void differences_from_the_derived_plan_are_warnings(void **state)
{
    bench b = bench_of(&moe);

    (void)state;
    bench_edit_after(&b, L "input_layernorm", "'type': 'norm'", "'type': 'pointwise'");
    bench_edit_after(&b, L "self_attn", "'needs_cp_attn': true", "'needs_cp_attn': false");
    bench_edit_after(&b, L "mlp': {", "'layout':{'kind':'plain'}",
                     "'layout':{'kind':'stacked_parts','parts':2}");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived",
                    L "input_layernorm: type pointwise; norm is derived");
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived",
                    L "self_attn: another needs_cp_attn is derived");
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived", "another layout is derived");
    bench_drop(&b);
}

static void fifty_differences_are_listed_and_the_rest_counted(void **state)
{
    sw_buffer lines SW_AUTO(sw_buffer_clear) = {0};

    (void)state;
    for (int i = 0; i < 60; i++)
        sw_buffer_printf(&lines, "part_%d.norm.weight F32 16\n", i);
    bench b = BENCH(.config = "'architectures': ['Stranger'], 'hidden_size': 16, 'num_attention_heads': 4",
                    .params = sw_buffer_text(&lines), .mesh = "dp=2");
    for (int i = 0; i < 60; i++) {
        char at[64];
        (void)snprintf(at, sizeof at, "part_%d.norm\"", i);
        bench_edit_after(&b, at, "'type': 'norm'", "'type': 'pointwise'");
    }
    bench_check(&b);
    assert_int_equal(sw_report_count_of(b.found, SW_SEVERITY_WARNING), 51);
    bench_must_find(&b, SW_SEVERITY_WARNING, "differs_from_derived", "and 10 more differences");
    bench_drop(&b);
}

static void a_plan_that_cannot_be_derived_again_is_said_to_be_so(void **state)
{
    bench b = BENCH(.config = "'architectures': ['Stranger'], 'hidden_size': 16, 'num_attention_heads': 4",
                    .params = "model.norm.weight F32 16\nmodel.strange.thing F32 16x16\n", .mesh = "dp=2",
                    .overrides = "- match: model.strange\n  params: {thing: {tp: replicate}}\n"
                                 "  in_src: {input: {tp: replicate}}\n  in_dst: {input: {tp: replicate}}\n");
    (void)state;
    bench_check(&b);
    assert_int_equal(b.status, SW_OK);
    bench_must_find(&b, SW_SEVERITY_NOTE, "not_derivable", "model.strange.thing");
    bench_drop(&b);
}

/* ---- what was said when the plan was made ---- */

static const char uneven[] = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                             "'num_hidden_layers': 1, 'hidden_size': 16, 'num_attention_heads': 4, "
                             "'intermediate_size': 16, 'vocab_size': 15";

/* Warnings of the plan, each found once. */
static void expect_warnings(const tiny_case *what, size_t n, const char *code)
{
    bench b = bench_of(what);

    bench_check(&b);
    assert_int_equal(b.status, SW_OK);
    assert_int_equal(sw_report_count_of(b.found, SW_SEVERITY_WARNING), n);
    bench_must_find(&b, SW_SEVERITY_WARNING, code, "");
    bench_drop(&b);
}

static void warnings_of_the_files_and_the_mesh_are_said_again(void **state)
{
    static const char *const params = "model.embed_tokens.weight F32 16x16\nmodel.norm.weight F32 16\n"
                                      "lm_head.weight F32 16x16\n"
                                      "model.layers.0.self_attn.q_proj.weight F32 16x16\n"
                                      "model.layers.0.self_attn.o_proj.weight F32 16x16\n";
    static const char config[] = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                                 "'hidden_size': 16, 'num_attention_heads': 4, 'intermediate_size': 16, "
                                 "'vocab_size': 16, 'num_hidden_layers': 2";
    (void)state;
    expect_warnings(&(tiny_case){.config = uneven, .mesh = "tp=2"}, 2, "uneven_vocab");
    bench b = BENCH(.config = config, .params = params, .mesh = "tp=2");
    size_t n = sw_report_count_of(sw_plan_findings(b.t.plan), SW_SEVERITY_WARNING);
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_WARNING, "missing_tensors", "");
    bench_must_find(&b, SW_SEVERITY_WARNING, "missing_layers", "");
    assert_int_equal(sw_report_count_of(b.found, SW_SEVERITY_WARNING), n);
    bench_drop(&b);
}

static void of_a_plan_with_overrides_only_its_own_warnings_are_said_again(void **state)
{
    static const char whole[] =
        "- {match: model.embed_tokens, params: {weight: {tp: R}}, out_src: {output: {tp: R}}}\n"
        "- {match: lm_head, params: {weight: {tp: R}}, out_src: {output: {tp: R}}}\n";
    bench b = BENCH(.config = uneven, .mesh = "tp=2", .overrides = whole);

    (void)state;
    bench_edit(&b, "'code': 'uneven_vocab'", "'code': 'other'"); /* the derivation said it before */
    bench_edit(&b, "'code': 'uneven_vocab'", "'code': 'other'");
    bench_check(&b);
    must_be_silent(&b);
    bench_drop(&b);
    expect_warnings(&(tiny_case){.config = uneven,
                                 .mesh = "tp=2",
                                 .overrides = "- {match: model.norm, region_dispatch: false, "
                                              "local_compute: grouped_experts}\n"},
                    2, "uneven_vocab");
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    bench b = bench_of(&moe);
    sw_plan *plan = plan_parsed(b.text);

    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_plan_check(plan, b.t.model, NULL, &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_true(n < 5000);
    }
    sw_plan_destroy(plan);
    bench_drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_plan_gives_no_finding),
        cmocka_unit_test(a_plan_that_was_just_made_is_checked_too),
        cmocka_unit_test(the_given_plan_stays_as_it_is),
        cmocka_unit_test(what_an_override_changed_is_no_difference),
        cmocka_unit_test(a_plan_of_overrides_alone_is_not_compared),
        cmocka_unit_test(a_plan_of_another_model_is_refused_with_the_numbers),
        cmocka_unit_test(tensors_must_be_those_of_the_model),
        cmocka_unit_test(a_parameter_that_is_missing_is_uncovered),
        cmocka_unit_test(a_parameter_in_two_boundaries_is_refused),
        cmocka_unit_test(placements_must_fit_the_tensor),
        cmocka_unit_test(a_changed_placement_changes_its_gradient_and_heads),
        cmocka_unit_test(tied_names_must_be_cut_alike),
        cmocka_unit_test(a_row_bias_beside_a_partial_exit_must_be_deferred),
        cmocka_unit_test(a_column_bias_must_follow_its_weight),
        cmocka_unit_test(what_the_runtime_executes_must_follow_from_the_contracts),
        cmocka_unit_test(all_faults_are_found_in_one_run),
        cmocka_unit_test(differences_from_the_derived_plan_are_warnings),
        cmocka_unit_test(fifty_differences_are_listed_and_the_rest_counted),
        cmocka_unit_test(a_plan_that_cannot_be_derived_again_is_said_to_be_so),
        cmocka_unit_test(warnings_of_the_files_and_the_mesh_are_said_again),
        cmocka_unit_test(of_a_plan_with_overrides_only_its_own_warnings_are_said_again),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
