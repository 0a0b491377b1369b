/* A rule of `roles:` cannot make a matrix of a region's products stand whole beside its cut partners. */
#include "plan/lint_region.h"

#include <stdio.h>

#include "check_bench.h"

#include "base/status.h"

#define LLAMA(kv)                                                                                            \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': " kv ", 'head_dim': 4, "            \
    "'intermediate_size': 16, 'vocab_size': 16, 'tie_word_embeddings': true"
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, 'num_attention_heads': 4, "                \
    "'num_key_value_heads': 4, 'head_dim': 4"
#define SA "model.layers.0.self_attn."

static tiny with_role(const char *config, const char *params, const char *pattern, const char *role,
                      const char *more)
{
    char overrides[400];

    (void)snprintf(overrides, sizeof overrides,
                   "roles: {extend: true, rules: [{pattern: %s, role: %s}]}\noverrides: [%s]\n", pattern,
                   role, more);
    return TINY_TRY(.config = config, .params = params, .mesh = "tp=2", .overrides = overrides,
                    .allow_uncovered = true);
}

static void a_weight_that_its_name_cuts_is_not_whole_beside_cut_ones(void **state)
{
    // clang-format off
    static const struct row { const char *pattern, *role, *code, *words; } rows[] = {
        {"q_proj",    "replicated", "members_disagree", "'q_proj.weight' and 'k_proj.weight' are column weights"},
        {"k_proj",    "replicated", "members_disagree", "'q_proj.weight' and 'k_proj.weight' are column weights"},
        {"v_proj",    "bias",       "members_disagree", "'q_proj.weight' and 'v_proj.weight' are column weights"},
        {"gate_proj", "replicated", "members_disagree", "'gate_proj.weight' and 'up_proj.weight' are column"},
        {"gate_proj", "norm",       "members_disagree", "'gate_proj.weight' and 'up_proj.weight' are column"},
        {"down_proj", "replicated", "members_disagree", "'down_proj.weight' is a row weight and whole"},
        {"o_proj",    "norm",       "members_disagree", "'o_proj.weight' is a row weight and whole"},
    };
    // clang-format on

    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        tiny t = with_role(LLAMA("4"), NULL, rows[i].pattern, rows[i].role, "");
        assert_int_equal(t.status, SW_E_PLAN);
        tiny_finding(&t, SW_SEVERITY_ERROR, rows[i].code, rows[i].words, NULL);
        tiny_drop(&t);
    }
}

static void a_row_weight_is_not_whole_behind_cut_columns(void **state)
{
    tiny t = with_role(LLAMA("4"), NULL, "o_proj", "replicated",
                       "{match: '*.self_attn', out_src: {output: {tp: R}}}");

    (void)state;
    assert_int_equal(t.status, SW_E_PLAN);
    tiny_finding(&t, SW_SEVERITY_ERROR, "members_disagree", "'o_proj.weight' is a row weight and whole",
                 NULL);
    tiny_drop(&t);
}

static void the_default_rules_know_a_name_too(void **state)
{
    const char *params = SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x16\n" SA
                            "v_proj.weight F32 16x16\n" SA "o_proj.weight F32 16x16\n";
    tiny t = with_role(STRANGER, params, "v_proj", "replicated", "");

    (void)state;
    assert_int_equal(t.status, SW_E_PLAN);
    tiny_finding(&t, SW_SEVERITY_ERROR, "members_disagree", "and 'v_proj.weight' are column weights", NULL);
    tiny_drop(&t);
}

static void what_may_be_whole_stays_legal(void **state)
{
    const char *latent =
        SA "q_proj.weight F32 16x16\n" SA "kv_down.weight F32 8x16\n" SA "k_proj.weight F32 16x16\n" SA
           "v_proj.weight F32 16x16\n" SA "o_proj.weight F32 16x16\n";
    tiny t = with_role(LLAMA("1"), NULL, "k_proj", "replicated", ""); /* the one key head is everybody's */

    (void)state;
    assert_int_equal(t.status, SW_OK);
    tiny_drop(&t);
    t = with_role(STRANGER, latent, "kv_down", "replicated", ""); /* no rule cuts that name */
    assert_int_equal(t.status, SW_OK);
    tiny_rows(&t, SA "kv_down.weight", 1, "all");
    tiny_drop(&t);
    t = with_role(LLAMA("4"), NULL, "gate_proj", "replicated",
                  "{match: '*.mlp', region_dispatch: false, local_compute: grouped_experts}");
    assert_int_equal(t.status, SW_OK); /* its author says what it computes */
    tiny_drop(&t);
}

static void a_plan_file_is_held_to_the_same(void **state)
{
    bench b = BENCH(.config = LLAMA("4"), .mesh = "tp=2");

    (void)state;
    bench_edit_after(&b, "model.layers.0.mlp'", "'gate_proj.weight': {'role':'colwise'",
                     "'gate_proj.weight': {'role':'replicated'");
    bench_edit_after(&b, "model.layers.0.mlp'", "'tp':'S(0)'", "'tp':'R'");
    bench_check(&b);
    bench_must_find(&b, SW_SEVERITY_ERROR, "members_disagree", "'gate_proj.weight' and 'up_proj.weight'");
    bench_drop(&b);
}

static void a_head_that_is_tied_is_named_with_what_it_is_tied_to(void **state)
{
    const char *embed = "- match: model.embed_tokens\n  params: {weight: {tp: R}}\n"
                        "  out_src: {output: {tp: R}}\n";
    char both[400];
    tiny t = TINY_REFUSE(.config = LLAMA("4"), .mesh = "tp=2", .overrides = embed);

    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "exit_mismatch",
                 "lm_head: the logits are declared cut over tp, but the weight (tied to "
                 "model.embed_tokens.weight) is whole",
                 "let out_src be replicate");
    tiny_drop(&t);
    (void)snprintf(both, sizeof both, "%s- match: lm_head\n  out_src: {output: {tp: R}}\n", embed);
    t = TINY_PLAN(.config = LLAMA("4"), .mesh = "tp=2", .overrides = both);
    assert_int_equal(t.plan->n_tied, 1);
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_that_its_name_cuts_is_not_whole_beside_cut_ones),
        cmocka_unit_test(a_row_weight_is_not_whole_behind_cut_columns),
        cmocka_unit_test(the_default_rules_know_a_name_too),
        cmocka_unit_test(what_may_be_whole_stays_legal),
        cmocka_unit_test(a_plan_file_is_held_to_the_same),
        cmocka_unit_test(a_head_that_is_tied_is_named_with_what_it_is_tied_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
