/*
 * Boundaries: which modules are regions, of which type, and what each holds. Types come from roles first,
 * then from a module's own last segment; where this differs from the reference it says so.
 */
#include "plan/boundary.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

#define L "model.layers.0."
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'hidden_size': 8, "                 \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 2"

/* Linear layers of 8 by 8. */
#define W(name)      name ".weight F32 8x8\n"
#define QKVO(module) W(module ".q_proj") W(module ".k_proj") W(module ".v_proj") W(module ".o_proj")
#define GUD(module)  W(module ".gate_proj") W(module ".up_proj") W(module ".down_proj")

static tiny plan_names(const char *params)
{
    return TINY_PLAN(.config = STRANGER, .params = params, .mesh = "tp=2");
}

/* "fqn type n" of every boundary, in order. */
static void check_all(const tiny *t, const char *expected)
{
    sw_buffer text = {0};
    for (uint32_t i = 0; i < t->plan->n_specs; i++)
        sw_buffer_printf(&text, "%s'%s' %s %u", i == 0 ? "" : ", ", t->plan->specs[i].fqn,
                         sw_boundary_type_name(t->plan->specs[i].type), t->plan->specs[i].n_params);
    if (strcmp(sw_buffer_text(&text), expected) != 0)
        fail_msg("%s\nexpected %s", sw_buffer_text(&text), expected);
    sw_buffer_clear(&text);
}

static void check_one(const char *params, const char *boundary, const char *type)
{
    tiny t = plan_names(params);
    tiny_type(&t, boundary, type);
    tiny_drop(&t);
}

/* ---- types ---- */

static void embeddings_heads_and_norms_are_regions_of_their_own(void **state)
{
    (void)state;
    check_one("model.embed_tokens.weight F32 8x8\n", "model.embed_tokens", "embed");
    check_one("model.wte.weight F32 8x8\n", "model.wte", "embed");
    check_one("lm_head.weight F32 8x8\n", "lm_head", "lm_head");
    check_one("model.embed_out.weight F32 8x8\n", "model.embed_out", "lm_head");
    check_one("model.norm.weight F32 8\n", "model.norm", "norm");
    check_one(L "input_layernorm.weight F32 8\n", L "input_layernorm", "norm");
    check_one("model.embed.tok_embeddings.weight F32 8x8\n", "model.embed.tok_embeddings", "embed");
}

static void queries_and_outputs_make_attention(void **state)
{
    tiny t = plan_names(QKVO(L "self_attn"));
    (void)state;
    check_all(&t, "'" L "self_attn' attention 4");
    assert_true(tiny_spec(&t, L "self_attn")->needs_cp_attn);
    tiny_drop(&t);
}

static void gate_up_and_down_make_an_mlp(void **state)
{
    tiny t = plan_names(GUD(L "mlp"));
    (void)state;
    check_all(&t, "'" L "mlp' mlp 3");
    tiny_drop(&t);
    check_one(GUD(L "feedforward"), L "feedforward", "mlp"); /* the reference says attention (weak point 8) */
}

static void what_an_ancestor_is_called_does_not_matter(void **state)
{
    (void)state;
    check_one(GUD("model.attention_blocks.0.mlp"), "model.attention_blocks.0.mlp", "mlp"); /* weak point 9 */
    check_one(QKVO("model.mlp_blocks.0.self_attn"), "model.mlp_blocks.0.self_attn", "attention");
}

static void an_unknown_module_is_typed_by_what_it_holds(void **state)
{
    (void)state;
    check_one(QKVO("model.layers.0.block"), "model.layers.0.block", "attention");
    check_one(GUD("model.layers.0.block"), "model.layers.0.block", "mlp");
}

static void one_linear_layer_is_never_a_region(void **state)
{
    tiny t = plan_names(QKVO(L "self_attn") GUD(L "mlp"));
    (void)state;
    for (uint32_t i = 0; i < t.plan->n_specs; i++)
        assert_null(strstr(t.plan->specs[i].fqn, "_proj"));
    tiny_drop(&t);
}

static void a_wrapped_linear_layer_is_part_of_the_region_round_it(void **state)
{
    static const char params[] = W(L "self_attn.q_proj.base_layer") W(L "self_attn.k_proj.base_layer")
        W(L "self_attn.v_proj.base_layer") W(L "self_attn.o_proj.base_layer") W(L "mlp.gate_proj.0")
            W(L "mlp.up_proj.0") W(L "mlp.down_proj.inner.linear");
    tiny t = plan_names(params);
    (void)state;
    check_all(&t, "'" L "mlp' mlp 3, '" L "self_attn' attention 4");
    tiny_tp(&t, L "mlp.down_proj.inner.linear.weight", "S(1)");
    tiny_silent(&t, "unpaired");
    tiny_drop(&t);
    /* a residual block wraps nothing: its only module is a region */
    check_one(W(L "mlp.up_proj") W("model.layers.1.mlp.up_proj"), L "mlp", "mlp");
}

static void the_top_of_the_tree_is_a_module_like_any_other(void **state)
{
    tiny t = plan_names(W("gate_proj") W("up_proj") W("down_proj"));
    (void)state;
    tiny_type(&t, "", "mlp");
    tiny_rows(&t, "down_proj.weight", 1, "4:8");
    assert_int_equal(tiny_spec(&t, "")->n_params, 3);
    tiny_drop(&t);
}

static void a_residual_block_that_holds_a_feed_forward_says_where_it_spans(void **state)
{
    tiny t =
        TINY_PLAN(.config =
                      "'architectures': ['OPTForCausalLM'], 'model_type': 'opt', 'num_hidden_layers': 1, "
                      "'hidden_size': 8, 'num_attention_heads': 4, 'ffn_dim': 16, 'vocab_size': 8, "
                      "'max_position_embeddings': 4, 'word_embed_proj_dim': 8",
                  .mesh = "tp=2");
    const sw_spec *spec = tiny_spec(&t, "model.decoder.layers.0");
    (void)state;
    tiny_type(&t, "model.decoder.layers.0", "mlp");
    assert_string_equal(spec->span_entry, "fc1");
    assert_string_equal(spec->span_exit, "fc2");
    tiny_finding(&t, SW_SEVERITY_NOTE, "residual_block", "from fc1 to fc2", NULL);
    /* the layer's norms are no part of it */
    tiny_type(&t, "model.decoder.layers.0.self_attn_layer_norm", "norm");
    tiny_type(&t, "model.decoder.layers.0.final_layer_norm", "norm");
    tiny_type(&t, "model.decoder.layers.0.self_attn", "attention");
    assert_string_equal(tiny_owner(&t, "model.decoder.layers.0.fc2.bias"), "model.decoder.layers.0");
    tiny_drop(&t);
}

/* ---- grouping ---- */

static void a_plain_decoder_has_eleven_regions(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                                 "'num_hidden_layers': 2, 'hidden_size': 16, 'num_attention_heads': 4, "
                                 "'intermediate_size': 32, 'vocab_size': 32, 'tie_word_embeddings': false",
                       .mesh = "tp=2");
    (void)state;
    check_all(
        &t,
        "'model.embed_tokens' embed 1, 'model.layers.0.self_attn' attention 4, 'model.layers.0.mlp' mlp 3, "
        "'model.layers.0.input_layernorm' norm 1, 'model.layers.0.post_attention_layernorm' norm 1, "
        "'model.layers.1.self_attn' attention 4, 'model.layers.1.mlp' mlp 3, "
        "'model.layers.1.input_layernorm' norm 1, 'model.layers.1.post_attention_layernorm' norm 1, "
        "'model.norm' norm 1, 'lm_head' lm_head 1");
    assert_int_equal(tiny_spec(&t, "model.layers.1.mlp")->layer, 1);
    assert_int_equal(tiny_spec(&t, "model.norm")->layer, -1);
    tiny_drop(&t);
}

static void a_norm_inside_attention_belongs_to_it(void **state)
{
    tiny t = plan_names(QKVO(L "self_attn") L "self_attn.q_norm.weight F32 2\n" L
                                              "self_attn.k_norm.weight F32 2\n");
    (void)state;
    check_all(&t, "'" L "self_attn' attention 6");
    tiny_drop(&t);
}

static void a_router_belongs_to_its_block(void **state)
{
    tiny t = plan_names(L "mlp.gate.weight F32 4x8\n" L "mlp.experts.w1 F32 4x6x8\n" L
                          "mlp.experts.w2 F32 4x8x6\n");
    (void)state;
    check_all(&t, "'" L "mlp' moe_mlp 3");
    tiny_drop(&t);
}

static void a_shared_expert_is_a_region_in_its_block(void **state)
{
    tiny t =
        plan_names(L "mlp.gate.weight F32 4x8\n" L "mlp.experts.w1 F32 4x6x8\n" L
                     "mlp.experts.w2 F32 4x8x6\n" W(L "mlp.shared_experts.w1") W(L "mlp.shared_experts.w2"));
    (void)state;
    tiny_type(&t, L "mlp", "moe_mlp");
    tiny_type(&t, L "mlp.shared_experts", "mlp");
    assert_int_equal(tiny_spec(&t, L "mlp")->n_params, 3);
    assert_int_equal(tiny_spec(&t, L "mlp.shared_experts")->n_params, 2);
    tiny_drop(&t);
}

static void experts_need_no_special_name_of_their_block(void **state)
{
    (void)state;
    /* Llama-4's and DBRX's names: weak point 7 of the reference */
    check_one(L "feed_forward.router.weight F32 4x8\n" L "feed_forward.experts.w1 F32 4x6x8\n" L
                "feed_forward.experts.w2 F32 4x8x6\n",
              L "feed_forward", "moe_mlp");
    check_one(W(L "block_sparse_moe.experts.0.w1") W(L "block_sparse_moe.experts.0.w2") //
              W(L "block_sparse_moe.experts.1.w1") W(L "block_sparse_moe.experts.1.w2"),
              L "block_sparse_moe", "moe_mlp");
}

static void a_router_without_experts_stands_alone(void **state)
{
    tiny t = plan_names(L "mlp.router.weight F32 4x8\n");
    (void)state;
    tiny_type(&t, L "mlp.router", "moe_gate");
    tiny_drop(&t);
}

static void latent_attention_is_one_region_by_its_familys_table(void **state)
{
    tiny t = TINY_PLAN(.config =
                           "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', "
                           "'num_hidden_layers': 1, "
                           "'hidden_size': 8, 'num_attention_heads': 2, 'q_lora_rank': 4, 'kv_lora_rank': 4, "
                           "'qk_nope_head_dim': 2, 'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 8, "
                           "'n_routed_experts': 2, 'moe_intermediate_size': 4, 'intermediate_size': 8, "
                           "'first_k_dense_replace': 1",
                       .mesh = "tp=2");
    (void)state;
    tiny_type(&t, L "self_attn", "attention");
    assert_int_equal(tiny_spec(&t, L "self_attn")->n_params,
                     7); /* five matrices, and the latent norms with them */
    tiny_drop(&t);
}

static void what_no_rule_knows_stays_where_it_is(void **state)
{
    tiny t =
        TINY_PLAN(.config = STRANGER, .params = GUD(L "mlp") L "mlp.some_scale F32 8\nzzz.qqq.weight F32 8\n",
                  .mesh = "tp=2", .allow_uncovered = true);
    (void)state;
    assert_string_equal(tiny_owner(&t, L "mlp.some_scale"), L "mlp");
    tiny_type(&t, "zzz.qqq", "whole");
    tiny_rows(&t, "zzz.qqq.weight", 0, "all");
    tiny_contract(&t, "zzz.qqq", SW_AXIS_TP, "");
    tiny_drop(&t);
}

static void position_tables_work_on_the_tokens_that_are_there(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_layer': 1, "
                                 "'n_embd': 16, 'n_head': 4, 'vocab_size': 16, 'n_positions': 8",
                       .mesh = "tp=2");
    (void)state;
    tiny_type(&t, "wpe", "pointwise");
    tiny_contract(&t, "wpe", SW_AXIS_TP, "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_drop(&t);
}

static void mixers_are_whole_regions_that_gather_their_input(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['MambaForCausalLM'], 'model_type': 'mamba', "
                            "'num_hidden_layers': 1, 'hidden_size': 16, 'vocab_size': 16, 'state_size': 4, "
                            "'expand': 2, 'conv_kernel': 4, 'time_step_rank': 1, 'intermediate_size': 32",
                  .mesh = "tp=2");
    (void)state;
    tiny_type(&t, "backbone.layers.0.mixer", "mixer");
    tiny_contract(&t, "backbone.layers.0.mixer", SW_AXIS_TP, "hidden_states: S(1) -> R; output: R -> S(1)");
    tiny_rows(&t, "backbone.layers.0.mixer.in_proj.weight", 1, "all");
    tiny_finding(&t, SW_SEVERITY_NOTE, "mixer_replicated", "kept whole over tp=2", NULL);
    tiny_drop(&t);
}

static void boundaries_stand_in_model_order(void **state)
{
    /* The file's order is another: names sorted, layer 10 before layer 2. */
    tiny t =
        plan_names(GUD("model.layers.10.mlp") GUD("model.layers.2.mlp") "model.embed_tokens.weight F32 8x8\n"
                                                                        "lm_head.weight F32 8x8\n"
                                                                        "model.norm.weight F32 8\n");
    uint32_t two = (uint32_t)sw_plan_find(t.plan, "model.layers.2.mlp");
    uint32_t ten = (uint32_t)sw_plan_find(t.plan, "model.layers.10.mlp");
    (void)state;
    assert_true(two < ten);
    tiny_drop(&t);
}

static void a_towers_modules_are_marked(void **state)
{
    tiny t = plan_names(QKVO("vision_tower.layers.0.self_attn") QKVO(L "self_attn"));
    (void)state;
    assert_true(tiny_spec(&t, "vision_tower.layers.0.self_attn")->is_tower);
    assert_false(tiny_spec(&t, L "self_attn")->is_tower);
    tiny_drop(&t);
}

static void grouping_without_memory_is_a_status(void **state)
{
    tiny t = plan_names(QKVO(L "self_attn"));
    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_grouping grouping = {0};
        sw_error err = {0};
        sw_alloc_fail_at(n);
        sw_status status = sw_group(&grouping, t.plan, &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK) {
            assert_true(n > 4); /* four arrays */
            sw_grouping_clear(&grouping);
            break;
        }
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_null(grouping.type);
        assert_null(grouping.owner);
    }
    tiny_drop(&t);
}

static void a_tower_with_matrices_that_no_table_knows_is_whole_and_says_so_once(void **state)
{
    static const char params[] =
        "visual.blocks.0.attn.qkv.weight F32 24x8\nvisual.blocks.0.attn.proj.weight F32 8x8\n"
        "visual.blocks.1.attn.qkv.weight F32 24x8\nvisual.blocks.1.attn.proj.weight F32 8x8\n"
        "visual.blocks.0.norm1.weight F32 8\nvisual.pos_embed.weight F32 16x8\n" L
        "self_attn.q_proj.weight F32 8x8\n" L "self_attn.o_proj.weight F32 8x8\n";
    const char *config = "'architectures': ['StrangerForConditionalGeneration'], 'hidden_size': 8, "
                         "'num_attention_heads': 4";
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");
    uint32_t n = 0;
    (void)state;
    tiny_tp(&t, "visual.blocks.0.attn.qkv.weight", "R");
    for (size_t i = 0; i < sw_report_count(t.report); i++) {
        const sw_finding *f = sw_report_finding(t.report, i);
        n += strcmp(f->code, "tower_replicated") == 0 && strcmp(f->fqn, "visual") == 0;
    }
    assert_int_equal(n, 1);
    tiny_finding(&t, SW_SEVERITY_WARNING, "tower_replicated", "every rank holds them whole (2 alike)",
                 "override");
    tiny_drop(&t);
    t = TINY_PLAN(.config = config, .params = params, .mesh = "dp=2");
    tiny_silent(&t, "tower_replicated");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embeddings_heads_and_norms_are_regions_of_their_own),
        cmocka_unit_test(queries_and_outputs_make_attention),
        cmocka_unit_test(gate_up_and_down_make_an_mlp),
        cmocka_unit_test(what_an_ancestor_is_called_does_not_matter),
        cmocka_unit_test(an_unknown_module_is_typed_by_what_it_holds),
        cmocka_unit_test(one_linear_layer_is_never_a_region),
        cmocka_unit_test(a_wrapped_linear_layer_is_part_of_the_region_round_it),
        cmocka_unit_test(the_top_of_the_tree_is_a_module_like_any_other),
        cmocka_unit_test(a_residual_block_that_holds_a_feed_forward_says_where_it_spans),
        cmocka_unit_test(a_plain_decoder_has_eleven_regions),
        cmocka_unit_test(a_norm_inside_attention_belongs_to_it),
        cmocka_unit_test(a_router_belongs_to_its_block),
        cmocka_unit_test(a_shared_expert_is_a_region_in_its_block),
        cmocka_unit_test(experts_need_no_special_name_of_their_block),
        cmocka_unit_test(a_router_without_experts_stands_alone),
        cmocka_unit_test(latent_attention_is_one_region_by_its_familys_table),
        cmocka_unit_test(what_no_rule_knows_stays_where_it_is),
        cmocka_unit_test(position_tables_work_on_the_tokens_that_are_there),
        cmocka_unit_test(mixers_are_whole_regions_that_gather_their_input),
        cmocka_unit_test(boundaries_stand_in_model_order),
        cmocka_unit_test(a_towers_modules_are_marked),
        cmocka_unit_test(grouping_without_memory_is_a_status),
        cmocka_unit_test(a_tower_with_matrices_that_no_table_knows_is_whole_and_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
