/*
 * Section A of the bug cases: fused and packed projections. What is checked are the rows that each rank
 * holds, position by position, against numbers worked out by hand from the stored layout.
 */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/layout.h"

#define L "model.layers.0."
#define H "transformer.h.0."

/* H=8 query heads, K=2 key/value heads, d=4. */
#define PHI3                                                                                                 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': "   \
    "1, "                                                                                                    \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 16"
#define QKV_AND_O L "self_attn.qkv_proj.weight F32 48x32\n" L "self_attn.o_proj.weight F32 32x32\n"

/* An architecture that no table knows, with the same sizes. */
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'hidden_size': 32, "                \
    "'num_hidden_layers': 1, 'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, "            \
    "'intermediate_size': 16, 'vocab_size': 16"

/* ---- 1 ---- */

static void stacked_query_key_value_is_cut_section_by_section(void **state)
{
    tiny t = TINY_PLAN(.config = PHI3, .params = QKV_AND_O, .mesh = "tp=2");
    (void)state;
    tiny_role(&t, L "self_attn.qkv_proj.weight", "fused_qkv");
    tiny_tp(&t, L "self_attn.qkv_proj.weight", "S(0;seg=32+8+8)");
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 0, "0:16 32:36 40:44");
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 1, "16:32 36:40 44:48");
    tiny_tiles(&t, L "self_attn.qkv_proj.weight", 1);
    tiny_drop(&t);
}

static void stacked_gate_and_up_are_cut_section_by_section(void **state)
{
    tiny t = TINY_PLAN(.config = PHI3,
                       .params = L "mlp.gate_up_proj.weight F32 32x32\n" L "mlp.down_proj.weight F32 32x16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_role(&t, L "mlp.gate_up_proj.weight", "fused_gate_up");
    tiny_tp(&t, L "mlp.gate_up_proj.weight", "S(0;seg=16+16)");
    tiny_rows(&t, L "mlp.gate_up_proj.weight", 0, "0:8 16:24");
    tiny_rows(&t, L "mlp.gate_up_proj.weight", 1, "8:16 24:32");
    tiny_tiles(&t, L "mlp.gate_up_proj.weight", 1);
    tiny_rows(&t, L "mlp.down_proj.weight", 1, "8:16");
    tiny_drop(&t);
}

/* ---- 2 ---- */

#define SIZES_4_HEADS "'hidden_size': 16, 'num_attention_heads': 4, 'vocab_size': 16, "

static void bloom_is_stored_head_by_head(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', 'n_layer': 1, "
                            "'hidden_size': 16, 'n_head': 4, 'vocab_size': 16",
                  .params = H "self_attention.query_key_value.weight F32 48x16\n" //
                  H "self_attention.dense.weight F32 16x16\n",
                  .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, H "self_attention.query_key_value.weight", "S(0)");
    tiny_rows(&t, H "self_attention.query_key_value.weight", 0, "0:24");
    tiny_rows(&t, H "self_attention.query_key_value.weight", 1, "24:48");
    tiny_finding(&t, SW_SEVERITY_NOTE, "name_prefix",
                 "2 parameter names begin with 'transformer.', which the family's table does not have", NULL);
    tiny_drop(&t);
}

static void gpt_neox_is_stored_head_by_head(void **state)
{
    tiny t = TINY_PLAN(.config =
                           "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', " SIZES_4_HEADS
                           "'num_hidden_layers': 1, 'intermediate_size': 64",
                       .params = "gpt_neox.layers.0.attention.query_key_value.weight F32 48x16\n"
                                 "gpt_neox.layers.0.attention.dense.weight F32 16x16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, "gpt_neox.layers.0.attention.query_key_value.weight", 0, "0:24");
    tiny_rows(&t, "gpt_neox.layers.0.attention.query_key_value.weight", 1, "24:48");
    tiny_drop(&t);
}

static void chatglm_is_stored_stacked(void **state)
{
    tiny t = TINY_PLAN(
            .config =
                "'architectures': ['ChatGLMModel'], 'model_type': 'chatglm', 'num_layers': 1, " SIZES_4_HEADS
                "'ffn_hidden_size': 16, 'multi_query_attention': false, 'kv_channels': 4",
            .params = "transformer.encoder.layers.0.self_attention.query_key_value.weight F32 48x16\n"
                      "transformer.encoder.layers.0.self_attention.dense.weight F32 16x16\n",
            .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, "transformer.encoder.layers.0.self_attention.query_key_value.weight", 0, "0:8 16:24 32:40");
    tiny_rows(&t, "transformer.encoder.layers.0.self_attention.query_key_value.weight", 1,
              "8:16 24:32 40:48");
    tiny_drop(&t);
}

static void codegen_is_stored_in_four_blocks(void **state)
{
    const char *config = "'architectures': ['CodeGenForCausalLM'], 'model_type': 'codegen', 'n_layer': 1, "
                         "'n_embd': 16, 'n_head': 4, 'vocab_size': 16";
    const char *params = H "attn.qkv_proj.weight F32 48x16\n" H "attn.out_proj.weight F32 16x16\n";
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, H "attn.qkv_proj.weight", 0, "0:24");
    tiny_rows(&t, H "attn.qkv_proj.weight", 1, "24:48");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=8");
    tiny_finding(&t, SW_SEVERITY_ERROR, "heads", "4 query heads", "1, 2, 4");
    tiny_drop(&t);
}

static void a_fused_name_of_an_unknown_architecture_is_never_guessed(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER, .params = QKV_AND_O, .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "layout_unknown", L "self_attn.qkv_proj.weight", "layout: stacked");
    tiny_drop(&t);
    /* A user may ask for it to be kept whole. */
    t = TINY_PLAN(.config = STRANGER, .params = QKV_AND_O, .mesh = "tp=2",
                  .overrides = "roles:\n"
                               "  extend: true\n"
                               "  rules: [[[qkv_proj, o_proj], replicated, segment_exact]]\n");
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 0, "all");
    tiny_drop(&t);
}

/* ---- 3 ---- */

static void the_user_says_which_of_two_serialisations_is_stored(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER, .params = QKV_AND_O, .mesh = "tp=2",
                       .overrides = "- match: '*.qkv_proj'\n  layout: stacked\n");
    (void)state;
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 0, "0:16 32:36 40:44");
    assert_int_equal(tiny_facts(&t, L "self_attn.qkv_proj.weight")->layout, SW_LAYOUT_QKV_STACKED);
    tiny_drop(&t);

    /* [q0:16 k0:4 v0:4 | q16:32 k4:8 v4:8] */
    t = TINY_PLAN(.config = STRANGER, .params = QKV_AND_O, .mesh = "tp=2",
                  .overrides = "- match: '*.qkv_proj'\n  layout: {kind: blocks, parts: 2}\n");
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 0, "0:24");
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 1, "24:48");
    assert_int_equal(tiny_facts(&t, L "self_attn.qkv_proj.weight")->layout, SW_LAYOUT_QKV_BLOCKS);
    tiny_drop(&t);
}

static void a_users_layout_wins_over_the_familys(void **state)
{
    tiny t = TINY_PLAN(.config = PHI3, .params = QKV_AND_O, .mesh = "tp=2",
                       .overrides = "- match: 'model.layers.0.self_attn'\n"
                                    "  layout: {qkv_proj.weight: grouped}\n");
    (void)state;
    tiny_rows(&t, L "self_attn.qkv_proj.weight", 0, "0:24");
    tiny_drop(&t);
}

static void the_plan_file_records_the_layout(void **state)
{
    tiny t = TINY_PLAN(.config = PHI3, .params = QKV_AND_O, .mesh = "tp=2");
    char *text = NULL;
    size_t length = 0;
    (void)state;
    assert_int_equal(sw_plan_json(t.plan, &text, &length, NULL), SW_OK);
    assert_non_null(strstr(text, "\"S(0;seg=32+8+8)\""));
    assert_non_null(strstr(text, "\"layout\""));
    sw_text_free(text);
    tiny_drop(&t);
}

/* ---- 8, 9 ---- */

/* Local rows of each rank, in order, put back by the plan: the merged tensor has rows 0, 1, 2 ... */
static void merge_by_plan(const tiny *t, const char *fqn, uint64_t extent)
{
    const sw_placement *p = &tiny_facts(t, fqn)->places.on[SW_ON_TP];
    uint64_t merged[128];
    uint64_t naive[128];
    uint64_t n_naive = 0;

    memset(merged, 0xff, sizeof merged);
    for (uint32_t rank = 0; rank < t->plan->tp; rank++) {
        sw_range pieces[16];
        uint32_t n = 0;
        assert_int_equal(sw_shard_pieces(p, extent, t->plan->tp, rank, pieces, 16, &n, NULL), SW_OK);
        for (uint32_t i = 0; i < n; i++) {
            for (uint64_t row = pieces[i].begin; row < pieces[i].end; row++) {
                naive[n_naive++] = row; /* plain concatenation in rank order */
                merged[row] = row;
            }
        }
    }
    for (uint64_t row = 0; row < extent; row++)
        assert_int_equal(merged[row], row);
    assert_int_equal(n_naive, extent);
    assert_int_equal(naive[16], 32); /* what the concatenation gets wrong: k0 after q0 */
}

static void merged_shards_stand_in_section_order_not_in_rank_order(void **state)
{
    tiny t = TINY_PLAN(.config = PHI3, .params = QKV_AND_O, .mesh = "tp=2");
    (void)state;
    merge_by_plan(&t, L "self_attn.qkv_proj.weight", 48);
    tiny_drop(&t);
}

static void the_stored_order_does_not_depend_on_tp(void **state)
{
    static const char *const meshes[] = {"tp=1", "tp=2", "tp=4"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tiny t = TINY_PLAN(.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, "
                                     "'num_hidden_layers': 1, 'num_attention_heads': 4, 'head_dim': 4",
                           .params = L "self_attn.qkv_proj.weight F32 48x16\n" L
                                       "self_attn.o_proj.weight F32 16x16\n",
                           .mesh = meshes[i], .overrides = "- match: '*.qkv_proj'\n  layout: stacked\n");
        /* One canonical order on disk: [q; k; v], whatever the mesh. */
        if (i > 0) {
            tiny_tp(&t, L "self_attn.qkv_proj.weight", "S(0;seg=16+16+16)");
            tiny_tiles(&t, L "self_attn.qkv_proj.weight", 1);
        }
        assert_int_equal(tiny_facts(&t, L "self_attn.qkv_proj.weight")->layout, SW_LAYOUT_QKV_STACKED);
        tiny_drop(&t);
    }
}

/* ---- 10 ---- */

static void a_fused_key_value_pair_is_cut_in_both_halves(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, "
                            "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 2, "
                            "'head_dim': 4",
                  .params = L "self_attn.q_proj.weight F32 16x16\n" L "self_attn.kv_proj.weight F32 16x16\n" L
                              "self_attn.o_proj.weight F32 16x16\n",
                  .mesh = "tp=2", .overrides = "- match: '*.kv_proj'\n  layout: kv_stacked\n");
    (void)state;
    tiny_rows(&t, L "self_attn.kv_proj.weight", 0, "0:4 8:12");
    tiny_rows(&t, L "self_attn.kv_proj.weight", 1, "4:8 12:16");
    tiny_attributes(&t, L "self_attn", "num_heads 4/2, num_key_value_heads 2/1");
    tiny_drop(&t);
}

/* ---- 12 ---- */

#define DEEPSEEK_SHARED                                                                                      \
    "'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', 'hidden_size': 8, "            \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'n_routed_experts': 4, 'moe_intermediate_size': 8, "  \
    "'n_shared_experts': 2, 'kv_lora_rank': 4, 'qk_nope_head_dim': 2, 'qk_rope_head_dim': 2, "               \
    "'v_head_dim': 2, 'vocab_size': 16, 'first_k_dense_replace': 0"
#define SHARED_PARAMS                                                                                        \
    L "mlp.shared_experts.gate_proj.weight F32 16x8\n" L "mlp.shared_experts.up_proj.weight F32 16x8\n" L    \
      "mlp.shared_experts.down_proj.weight F32 8x16\n"

static void several_shared_experts_are_one_flat_mlp(void **state)
{
    tiny t = TINY_PLAN(.config = DEEPSEEK_SHARED, .params = SHARED_PARAMS, .mesh = "tp=4");
    (void)state;
    tiny_role(&t, L "mlp.shared_experts.gate_proj.weight", "shared_expert");
    tiny_rows(&t, L "mlp.shared_experts.gate_proj.weight", 0, "0:4");
    tiny_rows(&t, L "mlp.shared_experts.down_proj.weight", 3, "12:16");
    /* The plan says which: plain rows, no sections. */
    assert_int_equal(tiny_facts(&t, L "mlp.shared_experts.gate_proj.weight")->layout, SW_LAYOUT_PLAIN);
    tiny_drop(&t);
}

static void shared_experts_that_are_viewed_one_by_one_are_cut_one_by_one(void **state)
{
    tiny t =
        TINY_PLAN(.config = DEEPSEEK_SHARED, .params = SHARED_PARAMS, .mesh = "tp=4",
                  .overrides = "- match: '*.shared_experts.*_proj'\n  layout: {kind: stacked, parts: 2}\n");
    (void)state;
    tiny_rows(&t, L "mlp.shared_experts.gate_proj.weight", 0, "0:2 8:10");
    tiny_rows(&t, L "mlp.shared_experts.up_proj.weight", 3, "6:8 14:16");
    tiny_rows(&t, L "mlp.shared_experts.down_proj.weight", 0, "0:2 8:10"); /* its columns follow */
    tiny_drop(&t);
}

/* ---- 13 ---- */

static void groups_are_cut_inside_when_there_are_fewer_than_ranks(void **state)
{
    const char *config =
        "'architectures': ['InternLM2ForCausalLM'], 'model_type': 'internlm2', 'hidden_size': 32, "
        "'num_hidden_layers': 1, 'num_attention_heads': 8, 'num_key_value_heads': 2, "
        "'intermediate_size': 16, 'vocab_size': 16";
    const char *params = L "attention.wqkv.weight F32 48x32\n" L "attention.wo.weight F32 32x32\n";
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, L "attention.wqkv.weight", 0, "0:24");
    tiny_rows(&t, L "attention.wqkv.weight", 1, "24:48");
    tiny_drop(&t);
    /* No local head counts of 2 / 8 = 0: every rank has one query head and its group's key and value. */
    t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=8");
    tiny_tp(&t, L "attention.wqkv.weight", "S(0;g2=16+4r4+4r4)");
    tiny_rows(&t, L "attention.wqkv.weight", 0, "0:4 16:24");
    tiny_rows(&t, L "attention.wqkv.weight", 3, "12:24");
    tiny_rows(&t, L "attention.wqkv.weight", 4, "24:28 40:48");
    tiny_attributes(&t, L "attention", "num_heads 8/1, num_key_value_heads 2/1");
    tiny_grads(&t, L "attention.wqkv.weight", "tp/4 kv_replica");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacked_query_key_value_is_cut_section_by_section),
        cmocka_unit_test(stacked_gate_and_up_are_cut_section_by_section),
        cmocka_unit_test(bloom_is_stored_head_by_head),
        cmocka_unit_test(gpt_neox_is_stored_head_by_head),
        cmocka_unit_test(chatglm_is_stored_stacked),
        cmocka_unit_test(codegen_is_stored_in_four_blocks),
        cmocka_unit_test(a_fused_name_of_an_unknown_architecture_is_never_guessed),
        cmocka_unit_test(the_user_says_which_of_two_serialisations_is_stored),
        cmocka_unit_test(a_users_layout_wins_over_the_familys),
        cmocka_unit_test(the_plan_file_records_the_layout),
        cmocka_unit_test(merged_shards_stand_in_section_order_not_in_rank_order),
        cmocka_unit_test(the_stored_order_does_not_depend_on_tp),
        cmocka_unit_test(a_fused_key_value_pair_is_cut_in_both_halves),
        cmocka_unit_test(several_shared_experts_are_one_flat_mlp),
        cmocka_unit_test(shared_experts_that_are_viewed_one_by_one_are_cut_one_by_one),
        cmocka_unit_test(groups_are_cut_inside_when_there_are_fewer_than_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
