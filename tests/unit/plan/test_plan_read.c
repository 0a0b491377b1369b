/*
 * Reading plan files: what is written comes back whole, and everything else is refused by name. A refusal is
 * made by editing one place of a sound file, so that nothing but that place can be its cause.
 */
#include "plan_text.h"
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"
#include "plan/plan_read.h"
#include "plan/report.h"

#define L "model.layers.0."

#define BIASED                                                                                               \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 15, "        \
    "'attention_bias': true, 'mlp_bias': true"
#define MOE                                                                                                  \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 2, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'shared_expert_intermediate_size': 8, 'decoder_sparse_step': 1"

/* The texts that are edited, made once. */
static char *biased; /* pp=2, dp=2, cp=2, tp=4: shared kv heads, deferred biases, an uneven vocabulary */
static char *moe;    /* TP-extend-EP over 4 ranks */

static char *text_of(const tiny_case *what)
{
    tiny t = tiny_plan(what);
    char *text = plan_text(t.plan);

    tiny_drop(&t);
    return text;
}

#define TEXT_OF(...) text_of(&(const tiny_case){__VA_ARGS__})

static int make_texts(void **state)
{
    (void)state;
    biased = TEXT_OF(.config = BIASED, .mesh = "pp=2,dp=2,cp=2,tp=4");
    moe = TEXT_OF(.config = MOE, .mesh = "dp=2,tp=2", .ep = 4);
    return 0;
}

static int drop_texts(void **state)
{
    (void)state;
    sw_text_free(biased);
    sw_text_free(moe);
    return 0;
}

static void refuse_edit(const char *text, const char *from, const char *to, const char *what,
                        const char *help)
{
    char *edited = plan_edited(text, from, to);

    plan_refused(edited, SW_E_FORMAT, what, help);
    sw_free(edited);
}

/* ---- what is written comes back ---- */

static void a_plan_comes_back_byte_for_byte(void **state)
{
    // clang-format off
    static const tiny_case cases[] = {
        {.config = BIASED, .mesh = "" },
        {.config = BIASED, .mesh = "tp=2", .no_sp = true},
        {.config = BIASED, .mesh = "cp=2,tp=2", .loss_parallel = true},
        {.config = MOE, .mesh = "dp_replicate=2,dp_shard=2,ep=2,tp=2"},
        {.config = MOE, .mesh = "dp=2,tp=2", .ep = 4, .no_sp = true},
    };
    // clang-format on

    (void)state;
    plan_same_again(biased);
    plan_same_again(moe);
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        char *text = text_of(&cases[i]);
        plan_same_again(text);
        sw_text_free(text);
    }
}

static void what_an_override_did_comes_back(void **state)
{
    char *text = TEXT_OF(.config = BIASED, .mesh = "tp=2",
                         .overrides = "- match: model.layers.0.self_attn\n"
                                      "  out_names: [output, weights]\n"
                                      "  tp_divide_attrs: [intermediate_size]\n"
                                      "- match: 'model.layers.*.mlp'\n"
                                      "  params: {+: {up_proj.weight: {tp: shard(0)}}}\n");
    (void)state;
    assert_non_null(strstr(text, "\"overridden\":true"));
    assert_non_null(strstr(text, "\"tp_divide_attrs\": [\"intermediate_size\"]"));
    assert_non_null(strstr(text, "\"out_names\": [\"output\", \"weights\"]"));
    plan_same_again(text);
    sw_text_free(text);
}

static void a_long_cut_comes_back(void **state)
{
    sw_buffer yaml SW_AUTO(sw_buffer_clear) = {0};

    (void)state;
    sw_buffer_puts(&yaml, "- match: model.layers.0.mlp\n  params: {+: {");
    for (int k = 0; k < 2; k++) {
        sw_buffer_printf(&yaml, "%s: {tp: \"S(0;seg=2", k == 0 ? "gate_proj.weight" : ", up_proj.weight");
        for (int i = 1; i < 2000; i++)
            sw_buffer_puts(&yaml, "+2");
        sw_buffer_puts(&yaml, ")\"}");
    }
    sw_buffer_puts(&yaml, "}}\n");
    char *text =
        TEXT_OF(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 4, "
                          "'num_hidden_layers': 1, 'num_attention_heads': 2, 'num_key_value_heads': 2, "
                          "'intermediate_size': 4000, 'vocab_size': 4",
                .mesh = "tp=2", .overrides = sw_buffer_text(&yaml));
    plan_same_again(text);
    sw_text_free(text);
}

static void a_loaded_plan_has_no_model_and_answers_as_the_first_one(void **state)
{
    tiny t = TINY_PLAN(.config = BIASED, .mesh = "dp=2,tp=4");
    char *text = plan_text(t.plan);
    sw_plan *loaded = plan_parsed(text);
    sw_param_plan a;
    sw_param_plan b;

    (void)state;
    assert_null(loaded->model);
    assert_int_equal(sw_plan_boundary_count(loaded), sw_plan_boundary_count(t.plan));
    assert_int_equal(sw_plan_fingerprint(loaded), sw_model_fingerprint(t.model));
    assert_int_equal(sw_mesh_ranks(sw_plan_mesh(loaded)), 8);
    size_t at = sw_plan_find(loaded, L "self_attn");
    assert_int_equal(at, sw_plan_find(t.plan, L "self_attn"));
    for (size_t k = 0; sw_plan_param(t.plan, at, k, &a); k++) {
        assert_true(sw_plan_param(loaded, at, k, &b));
        assert_int_equal(a.path_length, b.path_length);
        assert_memory_equal(a.path, b.path, a.path_length);
        assert_int_equal(a.role, b.role);
        assert_int_equal(a.n_dims, b.n_dims);
        assert_memory_equal(a.dims, b.dims, a.n_dims * sizeof *a.dims);
        assert_true(sw_placement_equal(&a.tp, &b.tp));
        assert_int_equal(a.n_grad_sums, b.n_grad_sums);
    }
    sw_plan_destroy(loaded);
    sw_text_free(text);
    tiny_drop(&t);
}

static void facts_that_the_checks_need_come_back(void **state)
{
    tiny t = {.plan = plan_parsed(biased)};
    (void)state;
    assert_int_equal(tiny_facts(&t, "model.embed_tokens.weight")->layout, SW_LAYOUT_VOCAB);
    assert_int_equal(tiny_facts(&t, L "self_attn.k_proj.weight")->layout, SW_LAYOUT_KV_HEADS);
    assert_int_equal(tiny_facts(&t, L "self_attn.o_proj.weight")->out_dim, 0);
    assert_int_equal(tiny_facts(&t, L "self_attn.o_proj.weight")->in_dim, 1);
    assert_int_equal(tiny_facts(&t, L "self_attn.o_proj.bias")->in_dim, -1);
    assert_true(tiny_facts(&t, L "self_attn.o_proj.bias")->is_deferred);
    assert_false(tiny_facts(&t, L "self_attn.q_proj.bias")->is_deferred);
    tiny_grads(&t, L "self_attn.k_proj.weight", "tp/2 kv_replica, cp context, dp data");
    tiny_attributes(&t, L "self_attn", "num_heads 4/1, num_key_value_heads 2/1");
    assert_int_equal(t.plan->n_stages, 2);
    sw_plan_destroy(t.plan);
}

static void stacks_come_back_as_prefix_and_suffix(void **state)
{
    tiny t = {.plan = plan_parsed(moe)};
    (void)state;
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    assert_int_equal(spec->n_stacks, 3);
    assert_string_equal(spec->stacks[0].path, "experts.gate_proj");
    assert_string_equal(spec->stacks[0].prefix, "experts.");
    assert_string_equal(spec->stacks[0].suffix, ".gate_proj.weight");
    assert_int_equal(spec->stacks[0].n, 4);
    assert_memory_equal(spec->params[spec->stacks[0].param].path, "experts.gate_proj", 17);
    sw_plan_destroy(t.plan);
}

static void findings_come_back(void **state)
{
    sw_plan *plan = plan_parsed(biased);
    const sw_report *report = sw_plan_findings(plan);
    (void)state;
    assert_true(sw_report_count_of(report, SW_SEVERITY_WARNING) > 0);
    assert_string_equal(sw_report_finding(report, 0)->code, "uneven_vocab");
    sw_plan_destroy(plan);
}

static void keys_may_stand_in_any_order(void **state)
{
    char *moved = plan_edited(biased, " 'loss_parallel': false,\n", "");
    char *text = plan_edited(moved, " 'uncovered': [],\n", " 'loss_parallel': false,\n 'uncovered': [],\n");
    sw_plan *plan = plan_parsed(text);
    char *again = plan_text(plan);

    (void)state;
    assert_string_equal(again, biased); /* the order of the writer */
    sw_text_free(again);
    sw_plan_destroy(plan);
    sw_free(text);
    sw_free(moved);
}

static void a_file_is_loaded_by_its_path(void **state)
{
    char path[] = "/tmp/sw-plan-XXXXXX";
    sw_plan *plan = plan_parsed(biased);
    sw_plan *loaded = NULL;
    sw_error err = {0};
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    (void)close(file);
    assert_int_equal(sw_plan_save(plan, path, &err), SW_OK);
    assert_int_equal(sw_plan_load(&loaded, path, &err), SW_OK);
    char *text = plan_text(loaded);
    assert_string_equal(text, biased);
    sw_text_free(text);
    sw_plan_destroy(loaded);
    sw_plan_destroy(plan);
    (void)unlink(path);
    assert_int_equal(sw_plan_load(&loaded, path, &err), SW_E_FORMAT);
    assert_null(loaded);
    assert_non_null(strstr(err.what, path));
}

/* ---- other files ---- */

static void other_files_are_told_apart(void **state)
{
    (void)state;
    plan_refused("", SW_E_FORMAT, "the text ends", "cut off");
    plan_refused("{\"architectures\": [\"LlamaForCausalLM\"]}", SW_E_FORMAT,
                 "not a plan file: 'architectures'", "shardwright plan MODEL");
    plan_refused("{}", SW_E_FORMAT, "a plan lacks 'format'", "");
    plan_refused("{\"format\": \"other\"}", SW_E_FORMAT, "format is 'other'", "`shardwright plan` wrote");
    refuse_edit(biased, "'version': 1", "'version': 2", "plan file version 2, this program reads 1",
                "make the plan again");
}

static void a_file_that_is_cut_off_is_refused_wherever_it_ends(void **state)
{
    size_t length = strlen(moe);

    (void)state;
    for (size_t n = 0; n + 1 < length; n += 97) {
        sw_plan *plan = NULL;
        sw_error err = {0};
        assert_int_equal(sw_plan_read(&plan, moe, n, "plan.json", &err), SW_E_FORMAT);
        assert_null(plan);
        assert_true(err.what[0] != '\0');
    }
}

static void text_behind_the_plan_is_refused(void **state)
{
    sw_buffer more SW_AUTO(sw_buffer_clear) = {0};

    (void)state;
    sw_buffer_puts(&more, biased);
    sw_buffer_puts(&more, "{}");
    plan_refused(sw_buffer_text(&more), SW_E_FORMAT, "the end of the text", "");
}

/* ---- keys and words ---- */

static void unknown_and_missing_keys_are_refused_by_name(void **state)
{
    (void)state;
    refuse_edit(biased, "'loss_parallel'", "'loss_paralel'", "a plan has no key 'loss_paralel'",
                "did you mean 'loss_parallel'?");
    refuse_edit(biased, "'fingerprint'", "'finger_print'", "model has no key 'finger_print'",
                "'fingerprint'");
    refuse_edit(biased, "'ranks'", "'rank'", "mesh has no key 'rank'", "'ranks'");
    refuse_edit(biased, "'needs_cp_attn'", "'need_cp_attn'",
                "boundary 'model.embed_tokens': a boundary has no key 'need_cp_attn'", "'needs_cp_attn'");
    refuse_edit(biased, "'dtype'", "'dtipe'",
                "boundary 'model.embed_tokens': 'weight': a parameter has no key 'dtipe'", "'dtype'");
    refuse_edit(biased, "'collective'", "'kollektiv'", "lowering has no key 'kollektiv'",
                "did you mean 'collective'?");
    refuse_edit(biased, "'collective'", "'what'", "lowering has no key 'what'", "docs/formats/plan.md");
    refuse_edit(biased, ",'grad_sum':[{'axis':'cp'", ",'grad_sum':[{'axes':'cp'",
                "grad_sum has no key 'axes'", "'axis'");
    refuse_edit(biased, " 'loss_parallel': false,\n", "", "a plan lacks 'loss_parallel'", "");
    refuse_edit(biased, "   'terminal': false,\n", "",
                "boundary 'model.embed_tokens': a boundary lacks 'terminal'", "");
    refuse_edit(biased, "'role':'embed',", "",
                "boundary 'model.embed_tokens': 'weight': a parameter lacks 'role'", "");
}

static void what_stands_twice_is_refused(void **state)
{
    (void)state;
    refuse_edit(biased, "'loss_parallel': false", "'loss_parallel': false, 'loss_parallel': false",
                "a plan: 'loss_parallel' stands twice", "");
    refuse_edit(biased, "'model.norm':", "'model.embed_tokens':",
                "boundary 'model.embed_tokens': the boundary stands twice", "");
    refuse_edit(biased, "'k_proj.weight':", "'q_proj.weight':",
                "boundary 'model.layers.0.self_attn': 'q_proj.weight': the parameter stands twice", "");
    refuse_edit(biased, "'role':'norm'", "'role':'norm','role':'norm'", "a parameter: 'role' stands twice",
                "");
    refuse_edit(biased, "'tp':'R','cp':'R'", "'tp':'R','tp':'R'", "two placements over tp", "");
    refuse_edit(biased, "{'input': {'tp': 'R', 'cp': 'S(1)'}}", "{'input': {}, 'input': {}}",
                "a contract: 'input' stands twice", "");
    refuse_edit(biased, "'deferred_bias': ['o_proj.bias']", "'deferred_bias': ['o_proj.bias', 'o_proj.bias']",
                "deferred_bias: 'o_proj.bias' stands twice", "");
    refuse_edit(biased, "'num_key_value_heads': [2, 1]", "'num_heads': [2, 1]",
                "tp_local: 'num_heads' stands twice", "");
}

static void unknown_words_name_the_nearest(void **state)
{
    (void)state;
    refuse_edit(biased, "'role':'colwise'", "'role':'columnwise'",
                "'q_proj.weight': no role is called 'columnwise'", "did you mean 'colwise'?");
    refuse_edit(biased, "'dtype':'F32'", "'dtype':'F128'", "no dtype is called 'F128'", "");
    refuse_edit(biased, "'type': 'attention'", "'type': 'atention'",
                "boundary 'model.layers.0.self_attn': no boundary type is called 'atention'", "'attention'");
    refuse_edit(biased, "'kind':'kv_heads'", "'kind':'kv_head'", "no layout is called 'kv_head'",
                "'kv_heads'");
    refuse_edit(biased, "'collective': 'all_gather'", "'collective': 'allgather'",
                "no collective is called 'allgather'", "'all_gather'");
    refuse_edit(biased, "'reason':'kv_replica'", "'reason':'kv_replicas'",
                "no reason of a gradient sum is called 'kv_replicas'", "'kv_replica'");
    refuse_edit(biased, "'axis':'cp'", "'axis':'sp'", "no axis is called 'sp'", "did you mean");
    refuse_edit(biased, "'placement':{'tp'", "'placement':{'dp'", "no placement over an axis 'dp'", "");
    refuse_edit(biased, "'ep_mode': 'none'", "'ep_mode': 'nine'", "no ep_mode is called 'nine'", "'none'");
    refuse_edit(biased, "'kind': 'cp'", "'kind': 'c'", "no kind of parallel module is called 'c'", "");
}

/* ---- values ---- */

static void the_mesh_must_multiply_out(void **state)
{
    (void)state;
    refuse_edit(biased, "'ranks': 32", "'ranks': 16", "mesh: the axes multiply out to 32 ranks, not 16", "");
    refuse_edit(biased, "'dp': 2", "'dp': 4", "mesh: dp=4 is not dp_replicate=2 times dp_shard=1", "");
    refuse_edit(biased, "'tp': 4, 'ep'", "'tp': 0, 'ep'", "mesh: ", "");
    refuse_edit(biased, "'tp': 4, 'ep'", "'tp': 4294967296, 'ep'", "does not fit 32 bits", "");
    refuse_edit(biased, "'ep': 1", "'ep': 2", "mesh: ep=2 with ep_mode 'none'", "");
    refuse_edit(biased, "'ep_mode': 'none'", "'ep_mode': 'tp_extend'", "mesh: ep=1 with ep_mode 'tp_extend'",
                "");
    refuse_edit(biased, "'ep_mode': 'none'", "'ep_mode': 'none', 'edp': 4", "mesh: edp is 0, not 4", "");
    refuse_edit(biased, "'pp': 2, 'dp': 2", "'pp': 1, 'dp': 4", "mesh: dp=4", "");
    refuse_edit(moe, "'ep': 4", "'ep': 3", "mesh: ", "");
    refuse_edit(moe, "'edp': 1", "'edp': 2", "mesh: edp is 1, not 2", "");
}

static void placements_must_be_of_the_documented_form(void **state)
{
    (void)state;
    refuse_edit(biased, "'tp':'S(0)'", "'tp':'S(0'", "placement 'S(0': expected", "S(dim;rep=N)");
    refuse_edit(biased, "'tp':'S(0;rep=2)'", "'tp':'S(0;rep=1)'", "expected a number of at least 2",
                "S(dim;rep=N)");
    refuse_edit(biased, "{'input': {'tp': 'R'", "{'input': {'tp': 'S(0;rep=2)'",
                "boundary 'model.embed_tokens': a composed cut belongs in params", "");
    refuse_edit(biased, "'tp':'S(0;rep=2)'", "'tp':'shard(0)'", "placement 'shard(0)'", "write R, P, S(dim)");
}

static void contradictions_inside_a_boundary_are_refused(void **state)
{
    (void)state;
    char *dims = plan_edited(biased, "'layout':{'kind':'vocab'}", "'dims':{'out':0,'in':1}");
    refuse_edit(dims, "'shape':[15,16]", "'shape':[]", "dims: the tensor has 0 dims", "");
    sw_free(dims);
    refuse_edit(
        biased, "'deferred_bias': ['o_proj.bias']", "'deferred_bias': ['o_proj.bia']",
        "boundary 'model.layers.0.self_attn': deferred_bias names 'o_proj.bia', which is not among its "
        "params",
        "");
    refuse_edit(biased, "'num_heads': [4, 1]", "'num_heads': [4]",
                "tp_local: 'num_heads' has 1 values, not two", "");
    refuse_edit(biased, "'collective': 'all_gather', 'axis': 'tp', 'dim': 1",
                "'collective': 'all_gather', 'axis': 'tp'", "lowering: all_gather lacks 'dim'", "");
    refuse_edit(biased, "'collective': 'all_gather'", "'collective': 'all_reduce'",
                "lowering: all_reduce has no 'dim'", "");
    refuse_edit(biased, "'stage': 1", "'stage': 2", "is on stage 2 of 2", "");
    refuse_edit(biased, "{'layers': [0, 1]", "{'layers': [0]", "stages: layers has 1 values, not two", "");
    refuse_edit(biased, "'layer': 0", "'layer': -1", "a negative layer", "");
    refuse_edit(biased, "'group':2", "'group':0", "grad_sum: a group of 0 ranks", "the whole axis");
    refuse_edit(biased, "'uncovered': []", "'uncovered': ['x']", "uncovered: no finding names 'x'", "");
    refuse_edit(biased, "'tied': []", "'tied': [['a']]", "tied: a pair has 1 values, not two", "");
    refuse_edit(biased, "'special': {}", "'special': {'a.b': {'handler': 'h', 'reason': 'r'}}",
                "special names 1 parameters, of which the boundaries hold 0", "");
    refuse_edit(moe, "'n': 4", "'n': 5", "ep_stack: 'experts.gate_proj' has 5 sources", "");
    refuse_edit(moe, "experts.#.gate_proj", "experts.0.gate_proj", "ep_stack: sources hold one '#'",
                "experts.#.gate_proj.weight");
    refuse_edit(moe, "'experts.gate_proj': {'sources'", "'experts.gate': {'sources'",
                "ep_stack names 'experts.gate'", "");
}

static void numbers_and_names_have_limits(void **state)
{
    sw_buffer many SW_AUTO(sw_buffer_clear) = {0};

    (void)state;
    refuse_edit(biased, "'shape':[15,16]", "'shape':[4294967296,4294967296]",
                "the elements of a tensor do not fit 64 bits", "");
    refuse_edit(biased, "'model.norm'", "'model\\u0000norm'",
                "a name is empty, longer than 65536 bytes, or has", "");
    refuse_edit(biased, "'q_proj.weight'", "''", "a name is empty", "");
    refuse_edit(biased, "'text': '", "'text': '\\u0000",
                "a text is longer than 65536 bytes or has a zero byte", "");
    char *nine = plan_edited(biased, "'shape':[15,16]", "'shape':[1,1,1,1,1,1,1,1,1]");
    plan_refused(nine, SW_E_LIMIT, "dims of a tensor: more than 8", "damaged");
    sw_free(nine);
    sw_buffer_puts(&many, "\"tp\":\"S(0;seg=1");
    for (int i = 0; i < 33000; i++)
        sw_buffer_puts(&many, "+1");
    sw_buffer_puts(&many, ")\"");
    char *cut = plan_edited(biased, "'tp':'S(0)'", sw_buffer_text(&many));
    plan_refused(cut, SW_E_LIMIT, "bytes of a placement: more than 65536", "");
    sw_free(cut);
    many.length = 0;
    for (int i = 0; i < 5000; i++)
        sw_buffer_puts(&many, "[");
    plan_refused(sw_buffer_text(&many), SW_E_FORMAT, "where an object should stand", "");
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    size_t length = strlen(moe);

    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_plan *plan = NULL;
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_plan_read(&plan, moe, length, "plan.json", &err);
        sw_alloc_fail_at(0);
        sw_plan_destroy(plan);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_comes_back_byte_for_byte),
        cmocka_unit_test(what_an_override_did_comes_back),
        cmocka_unit_test(a_long_cut_comes_back),
        cmocka_unit_test(a_loaded_plan_has_no_model_and_answers_as_the_first_one),
        cmocka_unit_test(facts_that_the_checks_need_come_back),
        cmocka_unit_test(stacks_come_back_as_prefix_and_suffix),
        cmocka_unit_test(findings_come_back),
        cmocka_unit_test(keys_may_stand_in_any_order),
        cmocka_unit_test(a_file_is_loaded_by_its_path),
        cmocka_unit_test(other_files_are_told_apart),
        cmocka_unit_test(a_file_that_is_cut_off_is_refused_wherever_it_ends),
        cmocka_unit_test(text_behind_the_plan_is_refused),
        cmocka_unit_test(unknown_and_missing_keys_are_refused_by_name),
        cmocka_unit_test(what_stands_twice_is_refused),
        cmocka_unit_test(unknown_words_name_the_nearest),
        cmocka_unit_test(the_mesh_must_multiply_out),
        cmocka_unit_test(placements_must_be_of_the_documented_form),
        cmocka_unit_test(contradictions_inside_a_boundary_are_refused),
        cmocka_unit_test(numbers_and_names_have_limits),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, make_texts, drop_texts);
}
