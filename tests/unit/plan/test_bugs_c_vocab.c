/*
 * Section C of the bug cases: vocabularies that tp does not divide, tied embeddings and heads. A plan speaks
 * of global rows only: nothing is padded in it, so nothing padded can leak out of it.
 */
#include "tiny_model.h"

#include <string.h>

#define LLAMA_OF(layers, vocab, tied)                                                                        \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': " layers ", "        \
    "'hidden_size': 8, "                                                                                     \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': " vocab      \
    ", 'tie_word_embeddings': " tied

#define LLAMA(vocab, tied) LLAMA_OF("1", vocab, tied)
#define EMBED              "model.embed_tokens.weight"
#define HEAD               "lm_head.weight"
#define BOTH_13                                                                                              \
    EMBED " F32 13x8\n" HEAD " F32 13x8\n"                                                                   \
          "model.norm.weight F32 8\n"

/* ---- 27 ---- */

static void check_13_rows_over_4(const tiny *t, const char *name)
{
    tiny_rows(t, name, 0, "0:4");
    tiny_rows(t, name, 1, "4:8");
    tiny_rows(t, name, 2, "8:12");
    tiny_rows(t, name, 3, "12:13");
    tiny_tiles(t, name, 1); /* a merge gives 13 rows, each once */
    assert_int_equal(tiny_facts(t, name)->shape->dims[0], 13);
}

static void a_vocabulary_that_tp_does_not_divide_gets_ceil_chunks_and_no_padding(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("13", "false"), .params = BOTH_13, .mesh = "tp=4");
    (void)state;
    check_13_rows_over_4(&t, EMBED);
    check_13_rows_over_4(&t, HEAD);
    tiny_finding(&t, SW_SEVERITY_WARNING, "uneven_vocab", "13 vocabulary rows over tp=4", "16 rows");
    assert_int_equal(t.plan->elements, 13 * 8 * 2 + 8);
    tiny_drop(&t);
}

static void a_tied_vocabulary_is_cut_the_same(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("13", "true"), .params = EMBED " F32 13x8\nmodel.norm.weight F32 8\n",
                       .mesh = "tp=4");
    (void)state;
    check_13_rows_over_4(&t, EMBED);
    assert_int_equal(t.plan->n_tied, 1);
    tiny_drop(&t);
}

static void ranks_beyond_the_vocabulary_hold_nothing(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("5", "false"), .params = EMBED " F32 5x8\n" HEAD " F32 5x8\n",
                       .mesh = "tp=4");
    (void)state;
    tiny_rows(&t, HEAD, 0, "0:2");
    tiny_rows(&t, HEAD, 2, "4:5");
    tiny_rows(&t, HEAD, 3, "");
    tiny_drop(&t);
}

#define UNEVEN(rows, tp, what, padded)                                                                       \
    {                                                                                                        \
        LLAMA(rows, "true"), EMBED " F32 " rows "x8\n", "tp=" tp,                                            \
            EMBED ": " rows " vocabulary rows over tp=" tp ": " what,                                        \
            "pad the vocabulary to " padded " rows for equal chunks"                                         \
    }

static void the_warning_counts_full_short_and_empty_ranks(void **state)
{
    static const struct {
        const char *config, *params, *mesh, *what, *help;
    } cases[] = {
        UNEVEN("13", "4", "3 ranks hold 4, the next 1", "16"),
        UNEVEN("13", "2", "1 rank holds 7, the next 6", "14"),
        UNEVEN("5", "4", "2 ranks hold 2, the next 1, 1 none", "8"),
        UNEVEN("6", "4", "3 ranks hold 2, 1 none", "8"),
        UNEVEN("3", "8", "3 ranks hold 1, 5 none", "8"),
        UNEVEN("1", "2", "1 rank holds 1, 1 none", "2"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t = TINY_PLAN(.config = cases[i].config, .params = cases[i].params, .mesh = cases[i].mesh);
        const sw_finding *found = NULL;
        for (size_t k = 0; k < sw_report_count(t.report); k++) {
            const sw_finding *f = sw_report_finding(t.report, k);
            found = strcmp(f->code, "uneven_vocab") == 0 ? f : found;
        }
        assert_non_null(found);
        assert_string_equal(found->what, cases[i].what);
        assert_string_equal(found->help, cases[i].help);
        tiny_drop(&t);
    }
}

/* ---- 28 ---- */

static void shapes_in_a_plan_are_global_and_local_rows_follow_from_them(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "false"), .params = EMBED " F32 16x8\n" HEAD " F32 16x8\n",
                       .mesh = "tp=2");
    sw_param_plan p;
    (void)state;
    assert_true(sw_plan_param(t.plan, sw_plan_find(t.plan, "model.embed_tokens"), 0, &p));
    assert_int_equal(p.dims[0], 16);
    tiny_rows(&t, EMBED, 1, "8:16");
    tiny_silent(&t, "uneven_vocab");
    tiny_drop(&t);
}

/* ---- 30 ---- */

#define TIED_16 EMBED " F32 16x8\nmodel.norm.weight F32 8\n"

static void one_stored_tensor_serves_embedding_and_head(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "true"), .params = TIED_16, .mesh = "dp=2,tp=2",
                       .loss_parallel = true);
    (void)state;
    assert_int_equal(t.plan->n_tied, 1);
    assert_string_equal(t.plan->tied[0].first, EMBED);
    assert_string_equal(t.plan->tied[0].second, HEAD);
    tiny_rows(&t, EMBED, 0, "0:8");
    tiny_rows(&t, EMBED, 1, "8:16");
    tiny_contract(&t, "model.embed_tokens", SW_AXIS_TP, "input: R -> R; output: P -> S(1)");
    tiny_contract(&t, "lm_head", SW_AXIS_TP, "hidden_states: S(1) -> R; output: S(-1) -> S(-1)");
    assert_int_equal(tiny_spec(&t, "lm_head")->n_params, 0); /* counted once */
    assert_int_equal(t.plan->elements, 16 * 8 + 8);
    tiny_grads(&t, EMBED, "dp data");
    tiny_drop(&t);
}

static void a_tied_head_is_terminal_and_the_final_norm_is_not(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "true"), .params = TIED_16, .mesh = "tp=2");
    (void)state;
    assert_true(tiny_spec(&t, "lm_head")->is_terminal);
    assert_false(tiny_spec(&t, "model.norm")->is_terminal);
    tiny_drop(&t);
}

static void the_gradient_of_a_tied_pair_in_two_stages_is_summed_over_both(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA_OF("2", "16", "true"),
                       .params = EMBED " F32 16x8\n" HEAD " F32 16x8\n" //
                                       "model.layers.0.mlp.gate_proj.weight F32 16x8\n"
                                       "model.layers.0.mlp.down_proj.weight F32 8x16\n"
                                       "model.layers.1.mlp.gate_proj.weight F32 16x8\n"
                                       "model.layers.1.mlp.down_proj.weight F32 8x16\n",
                       .mesh = "pp=2,tp=2");
    (void)state;
    assert_int_equal(tiny_spec(&t, "model.embed_tokens")->pp_stage, 0);
    assert_int_equal(tiny_spec(&t, "lm_head")->pp_stage, 1);
    tiny_grads(&t, EMBED, "pp tied");
    tiny_grads(&t, HEAD, "pp tied");
    tiny_drop(&t);
}

static void an_override_that_replicates_a_tied_head_is_refused_with_both_names(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA("16", "true"), .params = TIED_16, .mesh = "tp=2",
                         .overrides = "- match: lm_head\n  params: {weight: {tp: replicate}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "tied_conflict", "'weight' of lm_head is tied to " EMBED,
                 "both names");
    tiny_drop(&t);
}

static void the_same_override_is_refused_when_both_names_are_stored(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA("16", "true"), .params = EMBED " F32 16x8\n" HEAD " F32 16x8\n",
                         .mesh = "tp=2",
                         .overrides = "- match: lm_head\n  params: {weight: {tp: replicate}}\n"
                                      "  out_src: {tp: replicate}\n  out_dst: {tp: replicate}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "tied_conflict", EMBED, "same placement");
    tiny_drop(&t);
}

/* ---- 31 ---- */

static void a_file_that_stores_only_the_head_is_the_embedding_too(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "true"), .params = HEAD " F32 16x8\nmodel.norm.weight F32 8\n",
                       .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_tied, 1);
    tiny_type(&t, "model.embed_tokens", "embed");
    tiny_contract(&t, "model.embed_tokens", SW_AXIS_TP, "input: R -> R; output: P -> S(1)");
    tiny_rows(&t, HEAD, 1, "8:16");
    tiny_drop(&t);
}

static void a_file_that_stores_both_names_shows_the_tie(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "true"), .params = EMBED " F32 16x8\n" HEAD " F32 16x8\n",
                       .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_tied, 1);
    assert_string_equal(t.plan->tied[0].first, EMBED);
    assert_string_equal(t.plan->tied[0].second, HEAD);
    tiny_rows(&t, EMBED, 1, "8:16");
    tiny_rows(&t, HEAD, 1, "8:16");
    tiny_drop(&t);
}

static void names_that_are_not_tied_by_the_config_are_no_pair(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("16", "false"), .params = EMBED " F32 16x8\n" HEAD " F32 16x8\n",
                       .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_tied, 0);
    tiny_drop(&t);
}

static void a_head_that_is_neither_stored_nor_spoken_of_is_tied(void **state)
{
    static const char params[] = "model.embed_tokens.weight F32 16x8\nmodel.norm.weight F32 8\n";
    tiny t = TINY_PLAN(.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 8",
                       .params = params, .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_tied, 1);
    assert_string_equal(t.plan->tied[0].second, "lm_head.weight");
    tiny_type(&t, "lm_head", "lm_head");
    tiny_finding(&t, SW_SEVERITY_NOTE, "tied_assumed", "it is tied by default", "tie_word_embeddings");
    tiny_drop(&t);
    t = TINY_PLAN(
            .config =
                "'architectures': ['StrangerForCausalLM'], 'hidden_size': 8, 'tie_word_embeddings': false",
            .params = params, .mesh = "tp=2");
    assert_int_equal(t.plan->n_tied, 0);
    tiny_drop(&t);
    t = TINY_PLAN(.config = "'architectures': ['StrangerModel'], 'hidden_size': 8", .params = params,
                  .mesh = "tp=2");
    assert_int_equal(t.plan->n_tied, 0);
    tiny_silent(&t, "tied_assumed");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocabulary_that_tp_does_not_divide_gets_ceil_chunks_and_no_padding),
        cmocka_unit_test(a_tied_vocabulary_is_cut_the_same),
        cmocka_unit_test(ranks_beyond_the_vocabulary_hold_nothing),
        cmocka_unit_test(the_warning_counts_full_short_and_empty_ranks),
        cmocka_unit_test(shapes_in_a_plan_are_global_and_local_rows_follow_from_them),
        cmocka_unit_test(one_stored_tensor_serves_embedding_and_head),
        cmocka_unit_test(a_tied_head_is_terminal_and_the_final_norm_is_not),
        cmocka_unit_test(the_gradient_of_a_tied_pair_in_two_stages_is_summed_over_both),
        cmocka_unit_test(an_override_that_replicates_a_tied_head_is_refused_with_both_names),
        cmocka_unit_test(the_same_override_is_refused_when_both_names_are_stored),
        cmocka_unit_test(a_file_that_stores_only_the_head_is_the_embedding_too),
        cmocka_unit_test(a_file_that_stores_both_names_shows_the_tie),
        cmocka_unit_test(names_that_are_not_tied_by_the_config_are_no_pair),
        cmocka_unit_test(a_head_that_is_neither_stored_nor_spoken_of_is_tied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
