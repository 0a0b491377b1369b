/*
 * Head counts against stored rows. 8 query heads and 2 key heads of 8 rows, unless a case says: what a config
 * with other counts makes of them, with and without a table of the family.
 */
#include "plan/lint_heads.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define SA "model.layers.0.self_attn."
#define CONFIG(arch, heads, kv, more)                                                                        \
    "'architectures': ['" arch "'], 'num_hidden_layers': 1, 'hidden_size': 64, 'intermediate_size': 64, "    \
    "'vocab_size': 64, 'num_attention_heads': " heads ", 'num_key_value_heads': " kv more
#define LLAMA(heads, kv, more)    CONFIG("LlamaForCausalLM", heads, kv, more)
#define STRANGER(heads, kv, more) CONFIG("StrangerForCausalLM", heads, kv, more)
#define DIM                       ", 'head_dim': 8"
#define QKVO(q, k, v, o)                                                                                     \
    SA "q_proj.weight F32 " q "x64\n" SA "k_proj.weight F32 " k "x64\n" SA "v_proj.weight F32 " v "x64\n" SA \
       "o_proj.weight F32 64x" o "\n"
#define STORED QKVO("64", "16", "16", "64")

static void expect_refusal(const char *config, const char *params, const char *words)
{
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=2");

    tiny_finding(&t, SW_SEVERITY_ERROR, "shape_mismatch", words, "num_key_value_heads");
    tiny_drop(&t);
}

static void expect_rows(const char *config, const char *params, const char *name, const char *rows)
{
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");

    tiny_rows(&t, name, 1, rows);
    tiny_drop(&t);
}

static void right_counts_are_silent(void **state)
{
    (void)state;
    expect_rows(LLAMA("8", "2", DIM), STORED, SA "k_proj.weight", "8:16");
    expect_rows(LLAMA("8", "2", ""), STORED, SA "k_proj.weight", "8:16");
    expect_rows(STRANGER("8", "2", DIM), STORED, SA "k_proj.weight", "8:16");
    expect_rows(STRANGER("8", "2", ""), STORED, SA "k_proj.weight", "8:16");
}

static void queries_that_are_no_multiple_of_keys_are_refused_on_every_mesh(void **state)
{
    static const struct {
        const char *config, *params, *mesh, *words;
    } rows[] = {
        {LLAMA("7",    "2", DIM), QKVO("56", "16", "16", "56"), "tp=1",
         "7 query heads are no multiple of 2 key"},
        {LLAMA("6",    "4", DIM), QKVO("48", "32", "32", "48"), "tp=2",
         "6 query heads are no multiple of 4 key"},
        {LLAMA("4",    "8", DIM), QKVO("32", "64", "64", "32"), "tp=2",
         "4 query heads are no multiple of 8 key"},
        {STRANGER("6", "4", DIM), QKVO("48", "32", "32", "48"), "tp=2",
         "6 query heads are no multiple of 4 key"},
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        tiny t = TINY_REFUSE(.config = rows[i].config, .params = rows[i].params, .mesh = rows[i].mesh);
        tiny_finding(&t, SW_SEVERITY_ERROR, "heads", rows[i].words, "num_key_value_heads");
        tiny_drop(&t);
    }
}

static void latent_attention_has_no_keys_to_count(void **state)
{
    tiny t = TINY_PLAN(.config = CONFIG("DeepseekV3ForCausalLM", "4", "3",
                                        ", 'kv_lora_rank': 8, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 4, "
                                        "'v_head_dim': 4, 'first_k_dense_replace': 1, 'q_lora_rank': 8"),
                       .mesh = "tp=2");
    (void)state;
    tiny_silent(&t, "heads");
    tiny_drop(&t);
}

static void a_count_twice_as_high_is_refused_where_the_size_of_a_head_is_stated(void **state)
{
    (void)state;
    /* queries and keys keep their proportion: only head_dim tells */
    expect_refusal(LLAMA("16", "4", DIM), STORED,
                   "'q_proj.weight' holds 64 rows of heads, and config.json's head counts and head_dim make "
                   "it 128");
    expect_refusal(STRANGER("16", "4", DIM), STORED,
                   "'k_proj.weight' holds 16 rows of heads, and config.json's head counts and head_dim make "
                   "it 32");
}

static void keys_out_of_proportion_are_refused(void **state)
{
    (void)state;
    expect_refusal(LLAMA("8", "4", ""), STORED,
                   "'k_proj.weight' holds 16 rows of heads beside 64 of 'q_proj.weight'; config.json's head "
                   "counts make it 32 beside 64");
    expect_refusal(STRANGER("8", "8", ""), STORED,
                   "'o_proj.weight' holds 64 rows of heads beside 16 of 'k_proj.weight'");
}

static void a_size_of_heads_that_only_follows_may_differ(void **state)
{
    (void)state;
    /* 8 heads of 4 beside a hidden size of 64, and no head_dim: the stored rows are right */
    expect_rows(LLAMA("8", "2", ""), QKVO("32", "8", "8", "32"), SA "k_proj.weight", "4:8");
    expect_rows(STRANGER("8", "2", ""), QKVO("32", "8", "8", "32"), SA "k_proj.weight", "4:8");
}

static void an_output_that_takes_another_width_is_refused(void **state)
{
    (void)state;
    expect_refusal(LLAMA("8", "2", ""), QKVO("32", "8", "8", "64"),
                   "'o_proj.weight' holds 64 rows of heads beside 32 of 'q_proj.weight'");
    expect_refusal(LLAMA("8", "2", DIM), QKVO("64", "16", "8", "64"), "'v_proj.weight' holds 8 rows");
}

static void a_fused_weight_is_held_against_the_output(void **state)
{
    (void)state;
    /* 8 + 2*2 heads of 8 are 96 rows; with 8 key heads the config asks for 192 */
    const char *params = SA "qkv_proj.weight F32 96x64\n" SA "o_proj.weight F32 64x64\n";
    expect_rows(CONFIG("Phi3ForCausalLM", "8", "2", ""), params, SA "qkv_proj.weight", "32:64 72:80 88:96");
    expect_refusal(CONFIG("Phi3ForCausalLM", "8", "8", ""), params,
                   "'o_proj.weight' holds 64 rows of heads beside 96 of 'qkv_proj.weight'");
}

static void values_and_gates_may_have_sizes_of_their_own(void **state)
{
    (void)state;
    /* values of 4 rows a head; queries with a gate beside each head */
    expect_rows(STRANGER("8", "2", DIM ", 'v_head_dim': 4"), QKVO("64", "16", "8", "32"), SA "v_proj.weight",
                "4:8");
    expect_rows(STRANGER("8", "2", DIM), QKVO("128", "16", "16", "64"), SA "q_proj.weight", "64:128");
}

static void a_layout_of_an_override_is_believed(void **state)
{
    tiny t =
        TINY_PLAN(.config = STRANGER("8", "2", DIM), .params = QKVO("64", "16", "16", "64"), .mesh = "tp=2",
                  .overrides = "- match: '*.q_proj.weight'\n  layout: {segments: [32, 32]}\n");
    (void)state;
    tiny_rows(&t, SA "q_proj.weight", 1, "16:32 48:64");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_counts_are_silent),
        cmocka_unit_test(queries_that_are_no_multiple_of_keys_are_refused_on_every_mesh),
        cmocka_unit_test(latent_attention_has_no_keys_to_count),
        cmocka_unit_test(a_count_twice_as_high_is_refused_where_the_size_of_a_head_is_stated),
        cmocka_unit_test(keys_out_of_proportion_are_refused),
        cmocka_unit_test(a_size_of_heads_that_only_follows_may_differ),
        cmocka_unit_test(an_output_that_takes_another_width_is_refused),
        cmocka_unit_test(a_fused_weight_is_held_against_the_output),
        cmocka_unit_test(values_and_gates_may_have_sizes_of_their_own),
        cmocka_unit_test(a_layout_of_an_override_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
