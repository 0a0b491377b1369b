/*
 * Plans as a caller sees them: options, what a plan answers, the same bytes from run to run, several threads
 * at once, and no memory. Overrides that merge, insert and inherit, as the reference's own tests check them.
 */
#include "shardwright/plan.h"

#include "tiny_model.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

#define L  "model.layers.0."
#define SA L "self_attn."
#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 32, "       \
    "'vocab_size': 32, 'tie_word_embeddings': false"

/* ---- options ---- */

static void options_may_be_left_out(void **state)
{
    sw_model *model = tiny_open(LLAMA, NULL);
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    (void)state;
    assert_int_equal(sw_mesh_create(&mesh, "tp=2", 0, NULL), SW_OK);
    assert_int_equal(sw_plan_create(&plan, model, mesh, NULL, NULL), SW_OK);
    assert_true(plan->sequence_parallel);
    assert_false(plan->loss_parallel);
    sw_plan_destroy(plan);
    sw_plan_destroy(NULL);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

/* ---- what a plan answers ---- */

static void a_plan_answers_by_index_and_by_name(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "pp=2,dp=2,tp=2");
    sw_boundary_info b;
    sw_param_plan p;
    size_t i = sw_plan_find(t.plan, "model.layers.1.self_attn");
    (void)state;
    assert_int_equal(sw_plan_boundary_count(t.plan), 11);
    assert_true(sw_plan_boundary(t.plan, i, &b));
    assert_string_equal(b.fqn, "model.layers.1.self_attn");
    assert_int_equal(b.type, SW_BOUNDARY_ATTENTION);
    assert_int_equal(b.n_params, 4);
    assert_int_equal(b.layer, 1);
    assert_int_equal(b.pp_stage, 1);
    assert_true(b.needs_cp_attn);
    assert_false(b.is_terminal);
    assert_true(sw_plan_param(t.plan, i, 0, &p));
    assert_int_equal(p.path_length, strlen("q_proj.weight"));
    assert_memory_equal(p.path, "q_proj.weight", p.path_length);
    assert_int_equal(p.role, SW_ROLE_COLWISE);
    assert_int_equal(p.n_dims, 2);
    assert_int_equal(p.dims[0], 16);
    assert_int_equal(p.tp.kind, SW_PLACE_SHARD);
    assert_int_equal(p.cp.kind, SW_PLACE_REPLICATE);
    assert_int_equal(p.n_grad_sums, 1);
    assert_string_equal(p.grad_sums[0].reason, "data");
    assert_true(p.is_trained);
    assert_int_equal(sw_mesh_ranks(sw_plan_mesh(t.plan)), 8);
    tiny_drop(&t);
}

static void what_is_not_there_is_said(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    sw_boundary_info b;
    sw_param_plan p;
    (void)state;
    assert_int_equal(sw_plan_find(t.plan, "model.layers.9"), (size_t)-1);
    assert_false(sw_plan_boundary(t.plan, 11, &b));
    assert_false(sw_plan_param(t.plan, 0, 99, &p));
    assert_false(sw_plan_param(t.plan, 99, 0, &p));
    tiny_drop(&t);
}

static void the_head_is_terminal_and_nothing_else(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    (void)state;
    for (uint32_t i = 0; i < t.plan->n_specs; i++)
        assert_int_equal(t.plan->specs[i].is_terminal, strcmp(t.plan->specs[i].fqn, "lm_head") == 0);
    tiny_drop(&t);
}

static void findings_are_the_plans_and_the_callers(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=3",
                       .overrides = "- match: '*.self_atn'\n  region_dispatch: false\n",
                       .allow_uncovered = true, .params = "model.norm.weight F32 16\n");
    const sw_report *own = sw_plan_findings(t.plan);
    (void)state;
    assert_int_equal(sw_report_count(own), sw_report_count(t.report));
    assert_string_equal(sw_report_finding(own, 0)->code, "override_unused");
    tiny_drop(&t);
}

static void a_folder_and_axes_are_enough(void **state)
{
    sw_plan *plan = NULL;
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_plan_model_folder(&plan, "/nowhere/at/all", "tp=2", &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/nowhere/at/all"));
    assert_null(plan);
    assert_int_equal(
        sw_plan_model_folder(&plan, SW_SOURCE_DIR "/examples/models/llama-3.2-1b", "dp=2,tp=4", &err), SW_OK);
    assert_int_equal(sw_plan_find(plan, "model.norm") != (size_t)-1, 1);
    sw_plan_destroy(plan); /* with its model */
    plan = NULL;
    /* axes are looked at as well */
    assert_int_equal(sw_plan_model_folder(&plan, SW_SOURCE_DIR "/examples/models/llama-3.2-1b", "tq=2", &err),
                     SW_E_ARGUMENT);
    assert_null(plan);
}

/* ---- the same again ---- */

static void two_runs_give_the_same_bytes(void **state)
{
    tiny a = TINY_PLAN(.config = LLAMA, .mesh = "dp=2,cp=2,tp=2");
    tiny b = TINY_PLAN(.config = LLAMA, .mesh = "tp=2,cp=2,dp=2");
    char *one = NULL;
    char *two = NULL;
    size_t n_one = 0;
    size_t n_two = 0;
    (void)state;
    assert_int_equal(sw_plan_json(a.plan, &one, &n_one, NULL), SW_OK);
    assert_int_equal(sw_plan_json(b.plan, &two, &n_two, NULL), SW_OK);
    assert_int_equal(n_one, n_two);
    assert_memory_equal(one, two, n_one);
    sw_text_free(one);
    sw_text_free(two);
    sw_text_free(NULL);
    tiny_drop(&a);
    tiny_drop(&b);
}

static void overrides_are_not_changed_by_planning(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n  in_src: {hidden_states: {tp: replicate}}\n");
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_plan *again = NULL;
    char *one = NULL;
    char *two = NULL;
    size_t n = 0;
    (void)state;
    options.overrides = t.overrides;
    assert_int_equal(sw_plan_create(&again, t.model, t.mesh, &options, NULL), SW_OK);
    assert_int_equal(sw_plan_json(t.plan, &one, &n, NULL), SW_OK);
    assert_int_equal(sw_plan_json(again, &two, &n, NULL), SW_OK);
    assert_string_equal(one, two);
    sw_text_free(one);
    sw_text_free(two);
    sw_plan_destroy(again);
    tiny_drop(&t);
}

typedef struct job {
    const sw_model *model;
    const sw_mesh *mesh;
    char *text;
} job;

static void *plan_in_a_thread(void *arg)
{
    job *j = arg;
    for (int i = 0; i < 20; i++) {
        sw_plan *plan = NULL;
        size_t n = 0;
        if (sw_plan_create(&plan, j->model, j->mesh, NULL, NULL) != SW_OK)
            return NULL;
        sw_text_free(j->text);
        j->text = NULL;
        if (sw_plan_json(plan, &j->text, &n, NULL) != SW_OK)
            j->text = NULL;
        sw_plan_destroy(plan);
    }
    return NULL;
}

static void several_threads_plan_one_model_at_once(void **state)
{
    enum { THREADS = 4 };
    sw_model *model = tiny_open(LLAMA, NULL);
    sw_mesh *mesh = NULL;
    pthread_t threads[THREADS];
    job jobs[THREADS] = {0};
    (void)state;
    assert_int_equal(sw_mesh_create(&mesh, "dp=2,tp=2", 0, NULL), SW_OK);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){model, mesh, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, plan_in_a_thread, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_non_null(jobs[i].text);
        assert_string_equal(jobs[i].text, jobs[0].text);
    }
    for (int i = 0; i < THREADS; i++)
        sw_text_free(jobs[i].text);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

/* ---- merging ---- */

static void what_is_set_wins_and_what_is_unset_is_inherited(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.mlp\n  in_src: {hidden_states: {tp: replicate}}\n");
    (void)state;
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_contract(&t, "model.layers.1.mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, L "mlp")->n_params, 3);
    tiny_drop(&t);
}

static void auto_inherits_and_none_clears(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.mlp\n  params: auto\n  in_src: auto\n  in_dst: auto\n"
                               "  out_src: auto\n  out_dst: auto\n"
                               "- match: model.norm\n  params: none\n",
                  .allow_uncovered = true);
    (void)state;
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, "model.norm")->n_params, 0);
    tiny_contract(&t, "model.norm", SW_AXIS_TP, "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_drop(&t);
}

static void a_bare_out_placement_is_the_single_output(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.mlp\n  out_dst: {tp: replicate}\n"
                                    "- match: model.layers.1.mlp\n  out_dst: {output: {tp: replicate}}\n");
    (void)state;
    /* the shorthand and the long form are the same, and a second normalisation changes nothing */
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> R");
    tiny_contract(&t, "model.layers.1.mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> R");
    assert_string_equal(tiny_spec(&t, L "mlp")->out_dst.entries[0].name, "output");
    assert_int_equal(tiny_spec(&t, L "mlp")->out_dst.n, 1);
    tiny_drop(&t);
}

static void other_names_may_be_given_to_inputs_and_flags_stay(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2,tp=2",
                       .overrides = "- match: model.layers.0.self_attn\n"
                                    "  in_src: {x: {tp: shard(1), cp: shard(1)}}\n"
                                    "  in_dst: {x: {tp: replicate, cp: shard(1)}}\n"
                                    "  out_src: {tp: partial, cp: shard(1)}\n"
                                    "  out_dst: {tp: shard(1), cp: shard(1)}\n");
    (void)state;
    tiny_contract(&t, L "self_attn", SW_AXIS_TP, "x: S(1) -> R; output: P -> S(1)");
    assert_true(tiny_spec(&t, L "self_attn")->needs_cp_attn);
    tiny_contract(&t, "model.layers.1.self_attn", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_drop(&t);
}

static void an_axis_that_is_not_active_is_dropped(void **state)
{
    tiny t =
        TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                  .overrides = "- match: model.layers.0.mlp\n"
                               "  in_dst: {hidden_states: {tp: replicate, cp: shard(1), ep: shard(0)}}\n");
    (void)state;
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_int_equal(tiny_spec(&t, L "mlp")->in_dst.entries[0].places.present, 1U << SW_ON_TP);
    tiny_drop(&t);
}

static void single_parameters_are_changed_under_a_plus(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.norm\n  params: {+: {weight: {tp: replicate}}}\n");
    (void)state;
    assert_int_equal(tiny_spec(&t, "model.norm")->n_params, 1);
    assert_true(tiny_facts(&t, "model.norm.weight")->is_placed);
    tiny_drop(&t);
}

/* ---- inserting ---- */

static void an_identity_may_be_declared_on_a_module_without_a_region(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = "- match: ''\n  params: {}\n");
    (void)state;
    tiny_type(&t, "", "custom");
    assert_false(tiny_spec(&t, "")->is_terminal);
    assert_true(tiny_spec(&t, "lm_head")->is_terminal);
    tiny_type(&t, L "mlp", "mlp"); /* the inner ones are kept */
    tiny_drop(&t);
}

static void a_region_that_is_not_there_gives_nothing_to_inherit(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0\n  region_dispatch: false\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "model.layers.0", "in_src");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "- match: model.layers.0\n  params: {}\n  in_src: none\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "no boundary is derived there", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "derive: false\noverrides:\n- match: model.layers.0.mlp\n  params: none\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_insert", "derive: false", NULL);
    tiny_drop(&t);
}

static void globs_reach_every_layer_and_the_later_entry_wins(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n  out_dst: {tp: replicate}\n"
                                    "- match: model.layers.0.mlp\n  out_dst: {tp: shard(1)}\n");
    (void)state;
    tiny_contract(&t, L "mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    tiny_contract(&t, "model.layers.1.mlp", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> R");
    tiny_contract(&t, "lm_head", SW_AXIS_TP, "hidden_states: S(1) -> R; output: S(-1) -> R");
    tiny_drop(&t);
}

static void a_condition_leaves_an_entry_out(void **state)
{
    const char *overrides = "- match: model.norm\n  when: cp\n  params: {weight: {tp: shard(0)}}\n";
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = overrides);
    (void)state;
    tiny_tp(&t, "model.norm.weight", "R");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2,tp=2", .overrides = overrides);
    tiny_tp(&t, "model.norm.weight", "S(0)");
    tiny_drop(&t);
}

/* ---- memory ---- */

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    const char *params =
        "model.embed_tokens.weight F32 8x8\nlm_head.weight F32 8x8\nmodel.norm.weight F32 8\n" //
        SA "q_proj.weight F32 8x8\n" SA "k_proj.weight F32 4x8\n" SA "v_proj.weight F32 4x8\n" SA
        "o_proj.weight F32 8x8\n" L "mlp.gate.weight F32 2x8\n" L "mlp.experts.0.w1.weight F32 8x8\n" L
        "mlp.experts.0.w2.weight F32 8x8\n" L "mlp.experts.1.w1.weight F32 8x8\n" L
        "mlp.experts.1.w2.weight F32 8x8\n";
    sw_model *model = tiny_open("'architectures': ['StrangerForCausalLM'], 'num_attention_heads': 4, "
                                "'num_key_value_heads': 2, 'head_dim': 2, 'hidden_size': 8",
                                params);
    const char *text = "- match: '*.self_attn'\n  out_dst: {tp: replicate}\n"
                       "- match: model.norm\n  params: {weight: {tp: shard(0)}}\n";
    sw_overrides *overrides = NULL;
    sw_mesh *mesh = NULL;
    int64_t live = 0;
    (void)state;
    assert_int_equal(sw_mesh_create(&mesh, "dp=2,ep=2,tp=4", 0, NULL), SW_OK);
    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    assert_int_equal(sw_overrides_add_text(overrides, text, strlen(text), "o.yaml", NULL), SW_OK);
    live = sw_alloc_live();
    for (uint64_t n = 1;; n++) {
        sw_plan_options options = SW_PLAN_OPTIONS_INIT;
        sw_error err = {0};
        sw_plan *plan = NULL;
        options.overrides = overrides;
        sw_alloc_fail_at(n);
        sw_status status = sw_plan_create(&plan, model, mesh, &options, &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK) {
            assert_true(n > 10);
            sw_plan_destroy(plan);
            break;
        }
        if (status != SW_E_NO_MEMORY)
            fail_msg("allocation %d: %s", (int)n, err.what);
        assert_null(plan);
        assert_int_equal(err.status, SW_E_NO_MEMORY);
        assert_int_equal(sw_alloc_live(), live);
    }
    sw_overrides_destroy(overrides);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_be_left_out),
        cmocka_unit_test(a_plan_answers_by_index_and_by_name),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(the_head_is_terminal_and_nothing_else),
        cmocka_unit_test(findings_are_the_plans_and_the_callers),
        cmocka_unit_test(a_folder_and_axes_are_enough),
        cmocka_unit_test(two_runs_give_the_same_bytes),
        cmocka_unit_test(overrides_are_not_changed_by_planning),
        cmocka_unit_test(several_threads_plan_one_model_at_once),
        cmocka_unit_test(what_is_set_wins_and_what_is_unset_is_inherited),
        cmocka_unit_test(auto_inherits_and_none_clears),
        cmocka_unit_test(a_bare_out_placement_is_the_single_output),
        cmocka_unit_test(other_names_may_be_given_to_inputs_and_flags_stay),
        cmocka_unit_test(an_axis_that_is_not_active_is_dropped),
        cmocka_unit_test(single_parameters_are_changed_under_a_plus),
        cmocka_unit_test(an_identity_may_be_declared_on_a_module_without_a_region),
        cmocka_unit_test(a_region_that_is_not_there_gives_nothing_to_inherit),
        cmocka_unit_test(globs_reach_every_layer_and_the_later_entry_wins),
        cmocka_unit_test(a_condition_leaves_an_entry_out),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
