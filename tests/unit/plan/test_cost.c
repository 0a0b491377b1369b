/*
 * Costs: what ranks hold together is the model times its copies, totals are what counting rank by rank finds,
 * and traffic is what a ring moves.
 */
#include "plan_text.h"
#include "tiny_model.h"

#include <string.h>

#include "base/status.h"
#include "plan/cost.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 4, 'hidden_size': "  \
    "32, "                                                                                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 64, 'vocab_size': 101, "       \
    "'torch_dtype': 'bfloat16', 'tie_word_embeddings': "
#define UNTIED LLAMA "false"
#define TIED   LLAMA "true"
#define PHI3                                                                                                 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'num_hidden_layers': 2, 'hidden_size': "    \
    "32, "                                                                                                   \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 96"
#define MOE                                                                                                  \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 2, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 18, 'num_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'shared_expert_intermediate_size': 8, 'decoder_sparse_step': 1"

// clang-format off
static const tiny_case cases[] = {
    {.config = UNTIED, .mesh = "tp=1"},
    {.config = UNTIED, .mesh = "pp=2,dp=2,cp=2,tp=4"},
    {.config = UNTIED, .mesh = "tp=8"},
    {.config = TIED, .mesh = "pp=3,tp=2"},
    {.config = PHI3, .mesh = "dp=3,tp=4"},
    {.config = MOE, .mesh = "dp=2,cp=2,tp=4", .ep = 8},
    {.config = MOE, .mesh = "dp=2,tp=2,ep=4"},
    {.config = MOE, .mesh = "tp=4", .no_sp = true},
};
// clang-format on

/* Over the ranks of a stage every element is held by as many ranks as the parameter says it has copies. */
static void pieces_add_up_to_copies_of_the_whole(void **state)
{
    (void)state;
    for (size_t c = 0; c < SW_COUNT(cases); c++) {
        tiny t = tiny_plan(&cases[c]);
        uint32_t ranks = sw_mesh_ranks(t.mesh) / sw_mesh_axis_size(t.mesh, SW_AXIS_PP);
        for (uint32_t i = 0; i < t.plan->n_facts; i++) {
            const sw_facts *f = &t.plan->facts[i];
            uint64_t held = 0;
            uint64_t least = 0;
            uint64_t most = 0;
            for (uint32_t rank = 0; rank < ranks; rank++) {
                sw_cost_coord at = sw_cost_coord_of(t.plan, rank);
                held += sw_cost_local_elems(t.plan, f, &at);
            }
            sw_cost_copies(t.plan, f, &least, &most);
            assert_in_range(held, sw_cost_shape(f)->elems * least, sw_cost_shape(f)->elems * most);
            if (least == most)
                assert_int_equal(held, sw_cost_shape(f)->elems * most);
        }
        tiny_drop(&t);
    }
}

/* Elements that `rank` holds, counted parameter by parameter; a tied tensor also where its other name is
 * used. */
static uint64_t count_elems(const tiny *t, uint32_t rank)
{
    uint32_t ranks = sw_mesh_ranks(t->mesh) / sw_mesh_axis_size(t->mesh, SW_AXIS_PP);
    sw_cost_coord at = sw_cost_coord_of(t->plan, rank);
    uint64_t elems = 0;

    for (uint32_t i = 0; i < t->plan->n_specs; i++) {
        const sw_spec *s = &t->plan->specs[i];
        const sw_spec *stored = s->is_tied_alias ? tiny_spec(t, "model.embed_tokens") : s;
        bool is_here = s->pp_stage == rank / ranks && !(s->is_tied_alias && stored->pp_stage == s->pp_stage);
        for (uint32_t k = 0; is_here && k < stored->n_params; k++)
            elems += sw_cost_local_elems(t->plan, &t->plan->facts[stored->params[k].facts], &at);
    }
    return elems;
}

static void totals_are_those_of_the_fullest_and_the_emptiest_rank(void **state)
{
    (void)state;
    for (size_t c = 0; c < SW_COUNT(cases); c++) {
        tiny t = tiny_plan(&cases[c]);
        sw_cost_totals totals;
        uint64_t most = 0;
        uint64_t least = UINT64_MAX;
        assert_int_equal(sw_cost_total(t.plan, &totals, NULL), SW_OK);
        for (uint32_t rank = 0; rank < sw_mesh_ranks(t.mesh); rank++) {
            uint64_t elems = count_elems(&t, rank);
            most = elems > most ? elems : most;
            least = elems < least ? elems : least;
        }
        assert_int_equal(totals.most.elems, most);
        assert_int_equal(totals.least.elems, least);
        assert_int_equal(count_elems(&t, totals.most_rank), most);
        assert_int_equal(count_elems(&t, totals.least_rank), least);
        assert_int_equal(totals.most.optimizer_bytes, 12 * most);
        tiny_drop(&t);
    }
}

static void bytes_count_by_dtype_and_what_is_not_trained_has_no_optimizer(void **state)
{
    (void)state;
    assert_int_equal(sw_cost_bytes(SW_DTYPE_BF16, 10), 20);
    assert_int_equal(sw_cost_bytes(SW_DTYPE_F32, 10), 40);
    assert_int_equal(sw_cost_bytes(SW_DTYPE_F8_E4M3, 10), 10);
    assert_int_equal(sw_cost_bytes(SW_DTYPE_F4, 9), 5);
    assert_int_equal(sw_cost_bytes(SW_DTYPE_UNKNOWN, 9), 0);

    tiny t =
        TINY_PLAN(.config = "'model_type': 'x', 'hidden_size': 8, 'num_attention_heads': 2, 'vocab_size': 16",
                  .params = "model.embed_tokens.weight F32 16x8\nmodel.norm.weight F32 8\n"
                            "model.rotary_emb.inv_freq F32 100\nlm_head.weight F32 16x8\n",
                  .mesh = "tp=2");
    sw_cost_totals totals;
    assert_int_equal(sw_cost_total(t.plan, &totals, NULL), SW_OK);
    assert_int_equal(totals.most.elems, 64 + 8 + 100 + 64);
    assert_int_equal(totals.most.param_bytes, 4 * 236);
    assert_int_equal(totals.most.grad_bytes, 4 * 136);
    assert_int_equal(totals.most.optimizer_bytes, 12 * 136);
    assert_true(totals.bytes == 4.0 * (128 + 8 + 100 + 128));
    assert_true(totals.bytes_on_tp == 4.0 * 256);
    assert_true(totals.bytes_on_ep == 0 && totals.bytes_on_both == 0);
    tiny_drop(&t);
}

static void a_tied_tensor_is_held_again_by_the_stage_of_its_other_name(void **state)
{
    (void)state;
    tiny one = TINY_PLAN(.config = TIED, .mesh = "tp=2");
    tiny two = TINY_PLAN(.config = TIED, .mesh = "pp=2,tp=2");
    sw_cost_totals a;
    sw_cost_totals b;
    assert_int_equal(sw_cost_total(one.plan, &a, NULL), SW_OK);
    assert_int_equal(sw_cost_total(two.plan, &b, NULL), SW_OK);
    /* The second stage has the final norm (32) and a second copy of its rows of the table (51 * 32). */
    assert_int_equal(b.most_rank, 2);
    assert_int_equal(2 * b.most.elems - 32, a.most.elems + 51 * 32);
    tiny_drop(&one);
    tiny_drop(&two);
}

static void collectives_move_what_rings_move(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = UNTIED, .mesh = "cp=2,tp=4");
    const sw_plan *p = t.plan;
    /* 32 elements of 2 bytes, of which a rank of four lacks three quarters. */
    assert_true(sw_cost_traffic(p, SW_COLL_ALL_GATHER, SW_AXIS_TP, 32) == 48.0);
    assert_true(sw_cost_traffic(p, SW_COLL_REDUCE_SCATTER, SW_AXIS_TP, 32) == 48.0);
    assert_true(sw_cost_traffic(p, SW_COLL_ALL_REDUCE, SW_AXIS_TP, 32) == 96.0);
    assert_true(sw_cost_traffic(p, SW_COLL_ALL_TO_ALL, SW_AXIS_TP, 32) == 12.0);
    assert_true(sw_cost_traffic(p, SW_COLL_SLICE, SW_AXIS_TP, 32) == 0.0);
    assert_true(sw_cost_traffic(p, SW_COLL_NONE, SW_AXIS_TP, 32) == 0.0);
    /* Over cp the other rank's tokens come: as many as one's own. */
    assert_true(sw_cost_traffic(p, SW_COLL_ALL_GATHER, SW_AXIS_CP, 32) == 64.0);
    tiny_drop(&t);
}

static void widths_come_from_shapes_alone(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = UNTIED, .mesh = "tp=2");
    char *text = plan_text(t.plan);
    sw_plan *loaded = plan_parsed(text);
    const sw_plan *plans[] = {t.plan, loaded};
    for (size_t i = 0; i < SW_COUNT(plans); i++) {
        const sw_plan *p = plans[i];
        uint64_t hidden = sw_cost_hidden(p);
        assert_int_equal(hidden, 32);
        sw_cost_widths w = sw_cost_widths_of(p, &p->specs[sw_plan_find(p, "model.embed_tokens")], hidden);
        assert_int_equal(w.in, 0);
        assert_int_equal(w.out, 32);
        w = sw_cost_widths_of(p, &p->specs[sw_plan_find(p, "lm_head")], hidden);
        assert_int_equal(w.in, 32);
        assert_int_equal(w.out, 101);
        w = sw_cost_widths_of(p, &p->specs[sw_plan_find(p, "model.layers.1.mlp")], hidden);
        assert_int_equal(w.in, 32);
        assert_int_equal(w.out, 32);
    }
    sw_text_free(text);
    sw_plan_destroy(loaded);
    tiny_drop(&t);
}

static void keys_and_values_are_as_wide_fused_as_apart(void **state)
{
    (void)state;
    tiny apart = TINY_PLAN(.config = UNTIED, .mesh = "cp=2,tp=4");
    tiny fused = TINY_PLAN(.config = PHI3, .mesh = "cp=2,tp=4");
    /* One key and one value head of 4 on each rank. */
    assert_int_equal(sw_cost_kv_width(apart.plan, tiny_spec(&apart, "model.layers.0.self_attn")), 8);
    assert_int_equal(sw_cost_kv_width(fused.plan, tiny_spec(&fused, "model.layers.0.self_attn")), 8);
    assert_int_equal(sw_cost_kv_width(apart.plan, tiny_spec(&apart, "model.layers.0.mlp")), 0);
    tiny_drop(&apart);
    tiny_drop(&fused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_add_up_to_copies_of_the_whole),
        cmocka_unit_test(totals_are_those_of_the_fullest_and_the_emptiest_rank),
        cmocka_unit_test(bytes_count_by_dtype_and_what_is_not_trained_has_no_optimizer),
        cmocka_unit_test(a_tied_tensor_is_held_again_by_the_stage_of_its_other_name),
        cmocka_unit_test(collectives_move_what_rings_move),
        cmocka_unit_test(widths_come_from_shapes_alone),
        cmocka_unit_test(keys_and_values_are_as_wide_fused_as_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
