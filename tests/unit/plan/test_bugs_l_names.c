/*
 * Section L of the bug cases, with those about names and what goes unnoticed (94, 120, 122): every name of a
 * family has a role, a column layer has its row partner, buffers are carried and never cut, and what no rule
 * knows is said.
 */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "family/family.h"

#define L  "model.layers.0."
#define SA L "self_attn."

/* ---- 103 ---- */

#define SIZES                                                                                                \
    "'hidden_size': 16, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 4, "        \
    "'intermediate_size': 32, 'vocab_size': 32, 'max_position_embeddings': 8"

// clang-format off
static const struct named {
    const char *config;
    const char *column[4]; /* columns of a layer, then ... */
    const char *row[4];    /* ... their row partners */
} families[] = {
    { "'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', " SIZES,
      { "h.0.self_attention.query_key_value.weight", "h.0.mlp.dense_h_to_4h.weight" },
      { "h.0.self_attention.dense.weight", "h.0.mlp.dense_4h_to_h.weight" } },
    { "'architectures': ['FalconForCausalLM'], 'model_type': 'falcon', 'multi_query': false, " SIZES,
      { "transformer.h.0.self_attention.query_key_value.weight", "transformer.h.0.mlp.dense_h_to_4h.weight" },
      { "transformer.h.0.self_attention.dense.weight", "transformer.h.0.mlp.dense_4h_to_h.weight" } },
    { "'architectures': ['OPTForCausalLM'], 'model_type': 'opt', 'ffn_dim': 32, 'word_embed_proj_dim': 16, " SIZES,
      { "model.decoder.layers.0.self_attn.q_proj.weight", "model.decoder.layers.0.fc1.weight" },
      { "model.decoder.layers.0.self_attn.out_proj.weight", "model.decoder.layers.0.fc2.weight" } },
    { "'architectures': ['MptForCausalLM'], 'model_type': 'mpt', 'd_model': 16, 'n_layers': 2, 'n_heads': 4, "
      "'expansion_ratio': 2, 'max_seq_len': 8, 'vocab_size': 32",
      { "transformer.blocks.0.attn.Wqkv.weight", "transformer.blocks.0.ffn.up_proj.weight" },
      { "transformer.blocks.0.attn.out_proj.weight", "transformer.blocks.0.ffn.down_proj.weight" } },
    { "'architectures': ['PhiForCausalLM'], 'model_type': 'phi', " SIZES,
      { SA "q_proj.weight", L "mlp.fc1.weight" },
      { SA "dense.weight", L "mlp.fc2.weight" } },
    { "'architectures': ['GPTJForCausalLM'], 'model_type': 'gptj', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "
      "'n_positions': 8, 'vocab_size': 32",
      { "transformer.h.0.attn.q_proj.weight", "transformer.h.0.mlp.fc_in.weight" },
      { "transformer.h.0.attn.out_proj.weight", "transformer.h.0.mlp.fc_out.weight" } },
    { "'architectures': ['InternLM2ForCausalLM'], 'model_type': 'internlm2', " SIZES,
      { L "attention.wqkv.weight", L "feed_forward.w1.weight", L "feed_forward.w3.weight" },
      { L "attention.wo.weight", L "feed_forward.w2.weight" } },
    { "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'num_local_experts': 2, " SIZES,
      { SA "q_proj.weight", L "block_sparse_moe.experts.0.w1.weight", L "block_sparse_moe.experts.0.w3.weight" },
      { SA "o_proj.weight", L "block_sparse_moe.experts.0.w2.weight" } },
    { "'architectures': ['Gemma2ForCausalLM'], 'model_type': 'gemma2', 'head_dim': 4, " SIZES,
      { SA "v_proj.weight", L "mlp.up_proj.weight" },
      { SA "o_proj.weight", L "mlp.down_proj.weight" } },
    { "'architectures': ['CohereForCausalLM'], 'model_type': 'cohere', 'use_qk_norm': true, " SIZES,
      { SA "k_proj.weight", L "mlp.gate_proj.weight" },
      { SA "o_proj.weight", L "mlp.down_proj.weight" } },
    { "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', " SIZES,
      { SA "q_proj.weight", L "mlp.up_proj.weight" },
      { SA "o_proj.weight", L "mlp.down_proj.weight" } },
    { "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "
      "'n_positions': 8, 'vocab_size': 32",
      { "h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight" },
      { "h.0.attn.c_proj.weight", "h.0.mlp.c_proj.weight" } },
    { "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', " SIZES,
      { "gpt_neox.layers.0.attention.query_key_value.weight", "gpt_neox.layers.0.mlp.dense_h_to_4h.weight" },
      { "gpt_neox.layers.0.attention.dense.weight", "gpt_neox.layers.0.mlp.dense_4h_to_h.weight" } },
};
// clang-format on

/* The stored dim that tp cuts is the output's for columns, the input's for rows. */
static void check_side(const tiny *t, const char *const names[4], bool is_column)
{
    for (size_t i = 0; i < 4 && names[i] != NULL; i++) {
        const sw_facts *f = tiny_facts(t, names[i]);
        const sw_placement *p = &f->places.on[SW_ON_TP];
        if (p->kind != SW_PLACE_SHARD || p->dim != (is_column ? f->out_dim : f->in_dim))
            fail_msg("%s is not cut along its %s", names[i], is_column ? "output" : "input");
    }
}

static void every_familys_columns_have_their_row_partners(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        tiny t = TINY_PLAN(.config = families[i].config, .mesh = "tp=2");
        check_side(&t, families[i].column, true);
        check_side(&t, families[i].row, false);
        tiny_silent(&t, "uncovered");
        tiny_silent(&t, "unpaired");
        tiny_drop(&t);
    }
}

static void no_trained_parameter_of_these_families_is_undecided(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        tiny t = TINY_PLAN(.config = families[i].config, .mesh = "tp=2", .strict = true);
        for (uint32_t s = 0; s < t.plan->n_specs; s++) {
            for (uint32_t k = 0; k < t.plan->specs[s].n_params; k++) {
                const sw_facts *f = &t.plan->facts[t.plan->specs[s].params[k].facts];
                if (f->role == SW_ROLE_SKIP && f->reason == NULL)
                    fail_msg("%s: %.*s has no role", t.plan->specs[s].fqn,
                             (int)t.plan->specs[s].params[k].path_length, t.plan->specs[s].params[k].path);
            }
        }
        tiny_drop(&t);
    }
}

static void there_is_a_table_for_thirty_families(void **state)
{
    size_t n = 0;
    (void)state;
    while (sw_families[n] != NULL)
        n++;
    assert_true(n >= 30);
}

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16"

static void a_column_without_its_row_partner_is_an_error(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA,
                         .params = L "mlp.gate_proj.weight F32 16x16\n" L "mlp.up_proj.weight F32 16x16\n" L
                                     "mlp.shrink.weight F32 16x16\n",
                         .mesh = "tp=2", .allow_uncovered = true);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "unpaired", L "mlp", "roles:");
    tiny_finding(&t, SW_SEVERITY_WARNING, "uncovered", L "mlp.shrink.weight", NULL);
    tiny_drop(&t);
}

/* ---- 94 ---- */

#define ATTENTION                                                                                            \
    SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA          \
       "o_proj.weight F32 16x16\n"

static void an_unplanned_weight_is_listed_with_its_size(void **state)
{
    const char *params = ATTENTION L "linear_attn.in_proj_qkv.weight F32 64x16\n";
    tiny t = TINY_REFUSE(.config = LLAMA, .params = params, .mesh = "tp=4");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", "1024 elements", "roles:");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .params = params, .mesh = "tp=4", .allow_uncovered = true);
    tiny_finding(&t, SW_SEVERITY_WARNING, "uncovered", "every rank holds it whole", NULL);
    tiny_rows(&t, L "linear_attn.in_proj_qkv.weight", 3, "all");
    tiny_drop(&t);
}

static void a_rule_that_meets_nothing_is_said(void **state)
{
    const char *overrides = "- match: '*.wq'\n  params: {weight: {tp: shard(0)}}\n";
    tiny t = TINY_PLAN(.config = LLAMA, .params = ATTENTION, .mesh = "tp=4", .overrides = overrides);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_unused", "*.wq", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .params = ATTENTION, .mesh = "tp=4", .overrides = overrides,
                    .strict = true);
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unused", "*.wq", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .params = ATTENTION, .mesh = "tp=4",
                    .overrides =
                        "- match: model.layers.0.self_atn\n  params: {+: {q_proj.weight: {tp: shard(0)}}}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "override_unmatched", "self_atn", "model.layers.0.self_attn");
    tiny_drop(&t);
}

static void a_matrix_rule_on_a_vector_is_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA, .params = ATTENTION "ln_f.weight F32 16\n", .mesh = "tp=4",
                         .overrides = "- match: ln_f\n  params: {weight: {tp: shard(1)}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "ln_f.weight", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "no_such_dim", "[16]", NULL);
    tiny_drop(&t);
}

/* ---- 120 ---- */

#define H "transformer.h.0."
#define FALCON(hidden, heads, more)                                                                          \
    "'architectures': ['FalconForCausalLM'], 'model_type': 'falcon', 'num_hidden_layers': 1, 'vocab_size': " \
    "16, "                                                                                                   \
    "'hidden_size': " hidden ", 'num_attention_heads': " heads ", " more
#define FALCON_QKV H "self_attention.query_key_value.weight"

static void falcon_head_by_head(void **state)
{
    tiny t = TINY_PLAN(.config = FALCON("16", "4", "'multi_query': false, 'new_decoder_architecture': false"),
                       .params = FALCON_QKV " F32 48x16\n" H "self_attention.dense.weight F32 16x16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, FALCON_QKV, 0, "0:24");
    tiny_rows(&t, FALCON_QKV, 1, "24:48");
    tiny_drop(&t);
}

static void falcon_multi_query_shares_its_key_and_value(void **state)
{
    tiny t =
        TINY_PLAN(.config = FALCON("16", "4", "'multi_query': true, 'num_kv_heads': 4"), /* stale count */
                  .params = FALCON_QKV " F32 24x16\n" H "self_attention.dense.weight F32 16x16\n",
                  .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, FALCON_QKV, "S(0;seg=16+4r2+4r2)");
    tiny_rows(&t, FALCON_QKV, 0, "0:8 16:24");
    tiny_rows(&t, FALCON_QKV, 1, "8:24");
    tiny_grads(&t, FALCON_QKV, "tp/2 kv_replica");
    tiny_attributes(&t, H "self_attention", "num_heads 4/2, num_key_value_heads 1/1");
    tiny_drop(&t);
}

static void falcon_by_groups_ignores_a_stale_multi_query_flag(void **state)
{
    const char *config =
        FALCON("32", "8", "'new_decoder_architecture': true, 'multi_query': true, 'num_kv_heads': 2");
    tiny t = TINY_PLAN(.config = config,
                       .params = FALCON_QKV " F32 48x32\n" H "self_attention.dense.weight F32 32x32\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, FALCON_QKV, 0, "0:24");
    tiny_rows(&t, FALCON_QKV, 1, "24:48");
    tiny_drop(&t);
    /* Rows that the config's heads cannot give are refused, not split into nonsense. */
    t = TINY_REFUSE(.config = config,
                    .params = FALCON_QKV " F32 50x32\n" H "self_attention.dense.weight F32 32x32\n",
                    .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_mismatch", "50 rows", "layout:");
    tiny_drop(&t);
}

/* ---- 122 ---- */

static void frequency_buffers_are_carried_and_never_cut_or_trained(void **state)
{
    static const char *const buffers[] = {SA "rotary_emb.inv_freq", "rope.freqs"};
    tiny t =
        TINY_PLAN(.config = LLAMA, .params = ATTENTION SA "rotary_emb.inv_freq F32 2\nrope.freqs F32 2\n",
                  .mesh = "dp=2,tp=2");
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const sw_facts *f = tiny_facts(&t, buffers[i]);
        tiny_role(&t, buffers[i], "skip");
        assert_string_equal(f->reason, "buffer");
        assert_false(f->is_trained);
        tiny_rows(&t, buffers[i], 1, "all");
        tiny_grads(&t, buffers[i], "");
    }
    tiny_silent(&t, "uncovered");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .strict = true); /* absent is fine */
    tiny_drop(&t);
}

static void masks_are_buffers_by_their_familys_table(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', " SIZES,
                       .params = "gpt_neox.layers.0.attention.query_key_value.weight F32 48x16\n"
                                 "gpt_neox.layers.0.attention.dense.weight F32 16x16\n"
                                 "gpt_neox.layers.0.attention.bias BOOL 1x1x8x8\n"
                                 "gpt_neox.layers.0.attention.masked_bias F32 1\n",
                       .mesh = "tp=2");
    (void)state;
    assert_string_equal(tiny_facts(&t, "gpt_neox.layers.0.attention.bias")->reason, "buffer");
    assert_string_equal(tiny_facts(&t, "gpt_neox.layers.0.attention.masked_bias")->reason, "buffer");
    tiny_rows(&t, "gpt_neox.layers.0.attention.bias", 0, "all");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_familys_columns_have_their_row_partners),
        cmocka_unit_test(no_trained_parameter_of_these_families_is_undecided),
        cmocka_unit_test(there_is_a_table_for_thirty_families),
        cmocka_unit_test(a_column_without_its_row_partner_is_an_error),
        cmocka_unit_test(an_unplanned_weight_is_listed_with_its_size),
        cmocka_unit_test(a_rule_that_meets_nothing_is_said),
        cmocka_unit_test(a_matrix_rule_on_a_vector_is_refused),
        cmocka_unit_test(falcon_head_by_head),
        cmocka_unit_test(falcon_multi_query_shares_its_key_and_value),
        cmocka_unit_test(falcon_by_groups_ignores_a_stale_multi_query_flag),
        cmocka_unit_test(frequency_buffers_are_carried_and_never_cut_or_trained),
        cmocka_unit_test(masks_are_buffers_by_their_familys_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
