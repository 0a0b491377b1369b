/*
 * The explanation: folding, narrowing, the section table of fused parameters, what a rank holds, and that a
 * plan read from its file explains itself as the plan that was made does. Whole texts are golden cases; here
 * are the rules.
 */
#include "plan_text.h"
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/explain_text.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 4, 'hidden_size': "  \
    "32, "                                                                                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 64, 'vocab_size': 96, "        \
    "'torch_dtype': 'bfloat16', 'tie_word_embeddings': true"
/* The sizes of bug case 1: q rows 0:32, k 32:40, v 40:48; gate 0:16, up 16:32. */
#define PHI3                                                                                                 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'num_hidden_layers': 2, 'hidden_size': "    \
    "32, "                                                                                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 96"
#define MOE                                                                                                  \
    "'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', 'num_hidden_layers': 3, "      \
    "'hidden_size': 32, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'kv_lora_rank': 16, "            \
    "'qk_nope_head_dim': 8, 'qk_rope_head_dim': 4, 'v_head_dim': 8, 'intermediate_size': 64, "               \
    "'moe_intermediate_size': 16, 'n_routed_experts': 8, 'n_shared_experts': 2, 'num_experts_per_tok': 2, "  \
    "'first_k_dense_replace': 1, 'vocab_size': 64"
#define FALCON                                                                                               \
    "'architectures': ['FalconForCausalLM'], 'model_type': 'falcon', 'hidden_size': 64, "                    \
    "'num_hidden_layers': 1, "                                                                               \
    "'num_attention_heads': 16, 'num_kv_heads': 2, 'new_decoder_architecture': true, 'vocab_size': 64"

/* The explanation; the caller's, to be given to sw_text_free(). */
static char *explain(const sw_plan *plan, sw_explain_options options)
{
    char *text = NULL;
    size_t length = 0;
    sw_error err = {0};

    options.struct_size = sizeof options;
    if (sw_plan_explain(plan, &options, &text, &length, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    assert_int_equal(strlen(text), length);
    return text;
}

#define EXPLAIN(plan, ...) explain((plan), (sw_explain_options){__VA_ARGS__})

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("the explanation lacks '%s':\n%s", part, text);
}

static void lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("the explanation has '%s':\n%s", part, text);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

static void refused(const sw_plan *plan, const char *pattern, const char *what, const char *help)
{
    sw_explain_options options = SW_EXPLAIN_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;
    sw_error err = {0};

    options.pattern = pattern;
    assert_int_equal(sw_plan_explain(plan, &options, &text, &length, &err), SW_E_ARGUMENT);
    assert_null(text);
    assert_string_equal(err.what, what);
    assert_string_equal(err.help, help);
}

/* ---- folding ---- */

static void equal_layers_are_one_and_their_numbers_are_runs(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    char *text = EXPLAIN(t.plan, 0);
    has(text, "\nmodel.layers.{0..3}.self_attn  (attention, 4 alike)\n");
    assert_int_equal(count(text, ".self_attn  ("), 1);
    sw_text_free(text);
    text = EXPLAIN(t.plan, .all = true);
    assert_int_equal(count(text, ".self_attn  (attention)\n"), 4);
    lacks(text, "{");
    sw_text_free(text);
    tiny_drop(&t);
}

static void a_layer_that_differs_leaves_a_gap(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.layers.1.mlp\n  region_dispatch: false\n");
    char *text = EXPLAIN(t.plan, 0);
    has(text, "\nmodel.layers.{0,2..3}.mlp  (mlp, 3 alike)\n");
    has(text, "\nmodel.layers.1.mlp  (mlp)\n");
    has(text, "\n  region_dispatch false: the module's own forward runs on local tensors\n");
    has(text, "\n  overrides: o.yaml:1 model.layers.1.mlp\n");
    has(text, "\nmodel.layers.{0..3}.self_attn  (attention, 4 alike)\n");
    sw_text_free(text);
    tiny_drop(&t);
}

static void stages_part_layers_only_when_there_are_several(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "pp=2,tp=2");
    char *text = EXPLAIN(t.plan, 0);
    has(text, "\nstages             0: layers 0..1, embedding\n                   1: layers 2..3, head\n");
    has(text, "\nmodel.layers.{0..1}.mlp  (mlp, stage 0, 2 alike)\n");
    has(text, "\nmodel.layers.{2..3}.mlp  (mlp, stage 1, 2 alike)\n");
    sw_text_free(text);
    tiny_drop(&t);
}

static void experts_are_one_row(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = MOE, .mesh = "tp=2");
    char *text = EXPLAIN(t.plan, 0);
    has(text, "\n  experts.{0..7}.gate_proj.weight  moe_expert  ");
    has(text, "\nmodel.layers.{1..2}.mlp  (moe_mlp, 2 alike)\n");
    has(text, "\nmodel.layers.0.mlp  (mlp)\n");
    sw_text_free(text);
    text = EXPLAIN(t.plan, .all = true, .pattern = "model.layers.1.mlp");
    has(text, "\n  experts.7.down_proj.weight  ");
    sw_text_free(text);
    tiny_drop(&t);
}

static void stacked_experts_name_their_sources(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = MOE, .mesh = "dp=2,tp=2", .ep = 4);
    char *text = EXPLAIN(t.plan, .pattern = "model.layers.1.mlp");
    has(text, "\n  experts.gate_proj  moe_expert  F32    [8,16,32] -> [2,16,32]       1  ep S(0)    -\n");
    has(text, "\n  experts.gate_proj stacks experts.{0..7}.gate_proj.weight\n");
    has(text, "\n  each token goes to the ep ranks (of 4) that hold its experts, and back\n");
    has(text, "\n  region_dispatch not set: the module's own forward knows nothing of ep");
    sw_text_free(text);
    tiny_drop(&t);
}

/* ---- narrowing ---- */

static void a_name_shows_itself_and_what_is_below(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    char *text = EXPLAIN(t.plan, .pattern = "model.layers.2.mlp");
    assert_int_equal(count(text, "  ("), 1);
    has(text, "\nmodel.layers.2.mlp  (mlp)\n");
    has(text, "gate_proj.weight");
    lacks(text, "held by a rank"); /* totals are of the whole */
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "model.layers.2");
    assert_int_equal(count(text, "\nmodel.layers.2."), 4);
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "model.layers.2.mlp.up_proj");
    has(text, "\nmodel.layers.2.mlp  (mlp)\n");
    has(text, "up_proj.weight");
    lacks(text, "gate_proj.weight");
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "lm_head.weight"); /* stored under another name */
    has(text, "\nlm_head  (lm_head)\n");
    has(text, "\n  its weight is model.embed_tokens.weight (tied)\n");
    sw_text_free(text);
    tiny_drop(&t);
}

static void a_glob_is_held_against_boundaries_and_parameters(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    char *text = EXPLAIN(t.plan, .pattern = "*.mlp");
    has(text, "\nmodel.layers.{0..3}.mlp  (mlp, 4 alike)\n");
    lacks(text, "self_attn");
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "*[kv]_proj.weight");
    has(text, "\nmodel.layers.{0..3}.self_attn  (attention, 4 alike)\n");
    has(text, "k_proj.weight");
    lacks(text, "q_proj.weight");
    lacks(text, "(mlp");
    sw_text_free(text);
    tiny_drop(&t);
}

static void sources_of_a_stack_are_found(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "model.layers.1.mlp.experts.7.gate_proj.weight", "model.layers.1.mlp.experts.7.gate_proj",
        "model.layers.1.mlp.experts.0", "model.layers.1.*experts.*.gate_proj.weight"};
    tiny t = TINY_PLAN(.config = MOE, .mesh = "dp=2,tp=2", .ep = 4);
    for (size_t i = 0; i < SW_COUNT(patterns); i++) {
        char *text = EXPLAIN(t.plan, .pattern = patterns[i]);
        has(text, "\n  experts.gate_proj ");
        lacks(text, "gate.weight");
        sw_text_free(text);
    }
    refused(t.plan, "model.layers.1.mlp.experts.8.gate_proj.weight",
            "name 'model.layers.1.mlp.experts.8.gate_proj.weight' matches no boundary and no parameter of "
            "the plan",
            "shardwright explain without a name lists the boundaries");
    tiny_drop(&t);
}

static void what_matches_nothing_is_refused_with_the_nearest(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    refused(t.plan, "model.layers.2.mpl",
            "name 'model.layers.2.mpl' matches no boundary and no parameter of the plan",
            "did you mean 'model.layers.2.mlp'?");
    refused(t.plan, "model.layers.2.mlp.up_prj.weight",
            "name 'model.layers.2.mlp.up_prj.weight' matches no boundary and no parameter of the plan",
            "did you mean 'model.layers.2.mlp.up_proj.weight'?");
    refused(t.plan, "*.experts.*", "glob '*.experts.*' matches no boundary and no parameter of the plan",
            "shardwright explain without a name lists the boundaries");
    refused(t.plan, "model.layers.2.mlp.up_proj.weight.x",
            "name 'model.layers.2.mlp.up_proj.weight.x' matches no boundary and no parameter of the plan",
            "did you mean 'model.layers.2.mlp.up_proj.weight'?");
    refused(t.plan, "", "name '' matches no boundary and no parameter of the plan",
            "shardwright explain without a name lists the boundaries");
    tiny_drop(&t);
}

/* ---- fused parameters and ranks ---- */

static void the_section_table_of_bug_case_1(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = PHI3, .mesh = "tp=2");
    char *text = EXPLAIN(t.plan, .pattern = "model.layers.0", .has_rank = true, .rank = 1);
    has(text, "      dim 0 is [q; k; v], each cut on its own\n"
              "        rows   0:32  q  32 rows  in 2 pieces of 16\n"
              "        rows  32:40  k   8 rows  in 2 pieces of 4\n"
              "        rows  40:48  v   8 rows  in 2 pieces of 4\n"
              "      rank 1 (tp 1) holds 16:32 + 36:40 + 44:48 of dim 0\n");
    has(text, "      dim 0 is [gate; up], each cut on its own\n"
              "        rows   0:16  gate  16 rows  in 2 pieces of 8\n"
              "        rows  16:32  up    16 rows  in 2 pieces of 8\n"
              "      rank 1 (tp 1) holds 8:16 + 24:32 of dim 0\n");
    has(text, "rank 1 (tp 1) holds 16:32 of dim 1\n"); /* o_proj */
    sw_text_free(text);
    tiny_drop(&t);
}

static void pieces_on_several_ranks_say_so(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = PHI3, .mesh = "tp=4");
    char *text = EXPLAIN(t.plan, .pattern = "*qkv_proj*");
    has(text, "        rows  32:40  k   8 rows  in 2 pieces of 4, each on 2 neighbouring ranks\n");
    has(text, "  1-2  tp S(0;seg=32+8r2+8r2)  tp by 2 (kv_replica)\n"); /* copies differ within it */
    has(text, "kv_replica: the ranks hold the same key/value heads for other queries\n");
    sw_text_free(text);
    tiny_drop(&t);

    t = TINY_PLAN(.config = FALCON, .mesh = "tp=4");
    text = EXPLAIN(t.plan, .pattern = "*query_key_value*", .has_rank = true, .rank = 3);
    has(text, "        2 groups of 40 rows, each over 2 ranks; in a group:\n"
              "        rows   0:32  q  32 rows  in 2 pieces of 16\n"
              "        rows  32:36  k   4 rows  in 1 piece of 4, each on 2 neighbouring ranks\n");
    has(text, "rank 3 (tp 3) holds 56:80 of dim 0\n");
    sw_text_free(text);
    tiny_drop(&t);
}

static void a_rank_shows_the_boundaries_of_its_stage(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "pp=2,tp=2");
    char *text = EXPLAIN(t.plan, .has_rank = true, .rank = 3);
    has(text, "\nrank 3             pp 1, dp 0, cp 0, tp 1, ep 0: ");
    has(text, "\nmodel.layers.{2..3}.mlp  (");
    lacks(text, "model.layers.{0..1}.mlp  (");
    has(text, "      rank 3 (tp 1) holds 32:64 of dim 0\n");
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "model.layers.0.mlp", .has_rank = true, .rank = 3);
    has(text, "nothing of it is in stage 1, which rank 3 holds\n");
    sw_text_free(text);

    sw_explain_options options = SW_EXPLAIN_OPTIONS_INIT;
    sw_error err = {0};
    size_t length = 0;
    options.has_rank = true;
    options.rank = 4;
    assert_int_equal(sw_plan_explain(t.plan, &options, &text, &length, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "rank 4 of a mesh of 4 ranks");
    options.struct_size = 0;
    assert_int_equal(sw_plan_explain(t.plan, &options, &text, &length, &err), SW_E_ARGUMENT);
    assert_string_equal(err.help, "start from SW_EXPLAIN_OPTIONS_INIT");
    tiny_drop(&t);
}

static void an_uneven_rank_holds_less_or_nothing(void **state)
{
    (void)state;
    tiny t =
        TINY_PLAN(.config = "'model_type': 'x', 'hidden_size': 8, 'num_attention_heads': 4, 'vocab_size': 9",
                  .params =
                      "model.embed_tokens.weight F32 9x8\nmodel.norm.weight F32 8\nlm_head.weight F32 9x8\n",
                  .mesh = "tp=4");
    char *text = EXPLAIN(t.plan, 0);
    has(text, "[9,8] -> [3,8]");
    has(text, "  most: rank 0  least: rank 3\n");
    sw_text_free(text);
    text = EXPLAIN(t.plan, .pattern = "lm_head", .has_rank = true, .rank = 3);
    has(text, "[9,8] -> [0,8]");
    has(text, "rank 3 (tp 3) holds nothing of dim 0\n");
    sw_text_free(text);
    tiny_drop(&t);
}

/* ---- the text as a whole ---- */

static void a_loaded_plan_explains_itself_as_the_fresh_one(void **state)
{
    (void)state;
    // clang-format off
    static const tiny_case cases[] = {
        {.config = LLAMA, .mesh = "pp=2,dp=2,cp=2,tp=4"},
        {.config = PHI3, .mesh = "dp=2,tp=4", .loss_parallel = true},
        {.config = MOE, .mesh = "dp=2,cp=2,tp=2", .ep = 4},
        {.config = MOE, .mesh = "tp=2,ep=4", .no_sp = true},
    };
    // clang-format on
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        tiny t = tiny_plan(&cases[i]);
        char *file = plan_text(t.plan);
        char *fresh = EXPLAIN(t.plan, .all = i % 2 == 0);
        sw_plan *loaded = plan_parsed(file);
        char *again = EXPLAIN(loaded, .all = i % 2 == 0);
        assert_string_equal(again, fresh);
        sw_text_free(again);
        sw_text_free(fresh);
        sw_text_free(file);
        sw_plan_destroy(loaded);
        tiny_drop(&t);
    }
}

static void names_with_control_bytes_stay_on_their_line(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    char *file = plan_text(t.plan);
    char *hostile =
        plan_edited(file, "\"architecture\": \"llama\"", "\"architecture\": \"ll\\u001b[2Jma\\nx\"");
    sw_plan *loaded = plan_parsed(hostile);
    char *text = EXPLAIN(loaded, 0);
    has(text, "model              ll?[2Jma?x (model_type llama");
    for (const char *at = text; *at != '\0'; at++)
        assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
    sw_text_free(text);
    sw_text_free(hostile);
    sw_text_free(file);
    sw_plan_destroy(loaded);
    tiny_drop(&t);
}

static void lines_keep_to_their_width(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = MOE, .mesh = "pp=2,dp=2,cp=2,tp=2", .ep = 8);
    char *text = EXPLAIN(t.plan, 0);
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1) {
        assert_in_range(strcspn(at, "\n"), 0, SW_TEXT_LINE_WIDTH);
        assert_true(*at == '\n' || at[strcspn(at, "\n") - 1] != ' ');
    }
    sw_text_free(text);
    tiny_drop(&t);
}

/* A table without room for the sums has them below, by sum. */
static void sums_stand_below_a_wide_table(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = MOE, .mesh = "dp=2,cp=2,tp=2", .ep = 4);
    char *text = EXPLAIN(t.plan, .pattern = "model.layers.1.mlp");
    has(text, "  gradients summed over tp (sequence), cp (context), dp (data): gate.weight\n");
    has(text, "  gradients summed over edp (data): experts.gate_proj, experts.up_proj, experts.down_proj\n");
    sw_text_free(text);
    tiny_drop(&t);
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = MOE, .mesh = "dp=2,cp=2,tp=2", .ep = 4);
    sw_explain_options options[] = {SW_EXPLAIN_OPTIONS_INIT, SW_EXPLAIN_OPTIONS_INIT};
    options[1].pattern = "*experts*";
    options[1].has_rank = true;
    for (size_t i = 0; i < SW_COUNT(options); i++) {
        for (uint64_t n = 1;; n++) {
            char *text = NULL;
            size_t length = 0;
            int64_t live = sw_alloc_live();
            sw_alloc_fail_at(n);
            sw_status status = sw_plan_explain(t.plan, &options[i], &text, &length, NULL);
            sw_alloc_fail_at(0);
            sw_text_free(text);
            assert_int_equal(sw_alloc_live(), live);
            if (status == SW_OK)
                break;
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_in_range(n, 1, 2000);
        }
    }
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_layers_are_one_and_their_numbers_are_runs),
        cmocka_unit_test(a_layer_that_differs_leaves_a_gap),
        cmocka_unit_test(stages_part_layers_only_when_there_are_several),
        cmocka_unit_test(experts_are_one_row),
        cmocka_unit_test(stacked_experts_name_their_sources),
        cmocka_unit_test(a_name_shows_itself_and_what_is_below),
        cmocka_unit_test(a_glob_is_held_against_boundaries_and_parameters),
        cmocka_unit_test(sources_of_a_stack_are_found),
        cmocka_unit_test(what_matches_nothing_is_refused_with_the_nearest),
        cmocka_unit_test(the_section_table_of_bug_case_1),
        cmocka_unit_test(pieces_on_several_ranks_say_so),
        cmocka_unit_test(a_rank_shows_the_boundaries_of_its_stage),
        cmocka_unit_test(an_uneven_rank_holds_less_or_nothing),
        cmocka_unit_test(a_loaded_plan_explains_itself_as_the_fresh_one),
        cmocka_unit_test(names_with_control_bytes_stay_on_their_line),
        cmocka_unit_test(lines_keep_to_their_width),
        cmocka_unit_test(sums_stand_below_a_wide_table),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
