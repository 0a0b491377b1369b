/*
 * Lowering: the table of transitions, forward and backward, and the rows that a whole plan gets. With one
 * logical loss a gradient is summed where a whole tensor was used in parts, and nowhere else.
 */
#include "plan/lowering.h"

#include "tiny_model.h"

#include <string.h>

#include "base/status.h"

#define L "model.layers.0."

/* ---- the table ---- */

static const sw_placement r = {.kind = SW_PLACE_REPLICATE};
static const sw_placement p = {.kind = SW_PLACE_PARTIAL};
static const sw_placement s0 = {.kind = SW_PLACE_SHARD, .dim = 0};
static const sw_placement s1 = {.kind = SW_PLACE_SHARD, .dim = 1};
static const sw_placement last = {.kind = SW_PLACE_SHARD, .dim = -1};

static void check(sw_placement from, sw_placement to, bool is_split, sw_collective forward,
                  sw_collective backward)
{
    sw_transition t = sw_lower(from, to, is_split);
    assert_true(t.is_known);
    assert_int_equal(t.forward, forward);
    assert_int_equal(t.backward, backward);
}

static void a_whole_tensor_used_in_parts_gets_its_gradient_summed(void **state)
{
    (void)state;
    check(r, r, true, SW_COLL_NONE, SW_COLL_ALL_REDUCE);
    check(s1, r, true, SW_COLL_ALL_GATHER, SW_COLL_REDUCE_SCATTER);
    check(p, r, true, SW_COLL_ALL_REDUCE, SW_COLL_ALL_REDUCE);
}

static void a_whole_tensor_used_whole_does_not(void **state)
{
    (void)state;
    check(r, r, false, SW_COLL_NONE, SW_COLL_NONE);
    check(s1, r, false, SW_COLL_ALL_GATHER, SW_COLL_SLICE);
    check(p, r, false, SW_COLL_ALL_REDUCE, SW_COLL_NONE);
}

static void cut_tensors_go_back_as_they_came(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        check(r, s1, split != 0, SW_COLL_SLICE, SW_COLL_ALL_GATHER);
        check(s1, s1, split != 0, SW_COLL_NONE, SW_COLL_NONE);
        check(s0, s1, split != 0, SW_COLL_ALL_TO_ALL, SW_COLL_ALL_TO_ALL);
        check(p, s1, split != 0, SW_COLL_REDUCE_SCATTER, SW_COLL_ALL_GATHER);
        check(p, p, split != 0, SW_COLL_NONE, SW_COLL_NONE);
        check(last, last, split != 0, SW_COLL_NONE, SW_COLL_NONE);
    }
}

static void dims_are_those_of_the_cut(void **state)
{
    (void)state;
    assert_int_equal(sw_lower(s1, r, false).dim, 1);
    assert_int_equal(sw_lower(r, s1, false).dim, 1);
    assert_int_equal(sw_lower(p, s1, false).dim, 1);
    assert_int_equal(sw_lower(last, r, false).dim, -1);
    assert_int_equal(sw_lower(s0, s1, false).dim, 1);
    assert_int_equal(sw_lower(s0, s1, false).other_dim, 0);
}

static void nothing_becomes_a_partial_sum(void **state)
{
    (void)state;
    assert_false(sw_lower(r, p, false).is_known);
    assert_false(sw_lower(r, p, true).is_known);
    assert_false(sw_lower(s1, p, false).is_known);
}

static void collectives_have_words(void **state)
{
    (void)state;
    assert_string_equal(sw_collective_name(SW_COLL_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(sw_collective_name(SW_COLL_NONE), "none");
    assert_null(sw_collective_name(SW_COLL_COUNT_));
}

/* ---- plans ---- */

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, 'hidden_size': "  \
    "8, "                                                                                                    \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 8, 'vocab_size': 8"

static void sequence_parallel_gathers_and_scatters(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    (void)state;
    tiny_lowering(&t, L "self_attn", "in tp all_gather 1 reduce_scatter; out tp reduce_scatter 1 all_gather");
    tiny_lowering(&t, L "mlp", "in tp all_gather 1 reduce_scatter; out tp reduce_scatter 1 all_gather");
    tiny_lowering(&t, L "input_layernorm", "");
    tiny_lowering(&t, "model.norm", "");
    tiny_lowering(&t, "model.embed_tokens", "out tp reduce_scatter 1 all_gather");
    tiny_lowering(&t, "lm_head", "in tp all_gather 1 reduce_scatter; out tp all_gather -1 slice");
    tiny_drop(&t);
}

static void without_it_outputs_are_summed_and_inputs_gradients_too(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .no_sp = true);
    (void)state;
    tiny_lowering(&t, L "self_attn", "in tp none 0 all_reduce; out tp all_reduce 0 none");
    tiny_lowering(&t, L "mlp", "in tp none 0 all_reduce; out tp all_reduce 0 none");
    tiny_lowering(&t, "model.embed_tokens", "out tp all_reduce 0 none");
    tiny_lowering(&t, "model.norm", "");
    tiny_lowering(&t, "lm_head", "in tp none 0 all_reduce; out tp all_gather -1 slice");
    tiny_drop(&t);
}

static void loss_parallel_leaves_the_logits_cut(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .loss_parallel = true);
    (void)state;
    tiny_lowering(&t, "lm_head", "in tp all_gather 1 reduce_scatter");
    tiny_drop(&t);
}

static void cp_moves_nothing_at_a_border(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2");
    (void)state;
    for (uint32_t i = 0; i < t.plan->n_specs; i++)
        tiny_lowering(&t, t.plan->specs[i].fqn, "");
    tiny_drop(&t);
}

static void a_tied_head_uses_the_embeddings_shard(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA ", 'tie_word_embeddings': true", .mesh = "tp=2", .no_sp = true);
    (void)state;
    /* no parameter of its own, but it consumes its input in parts all the same */
    assert_true(sw_spec_is_split(t.plan, tiny_spec(&t, "lm_head"), SW_ON_TP));
    tiny_lowering(&t, "lm_head", "in tp none 0 all_reduce; out tp all_gather -1 slice");
    tiny_drop(&t);
}

static void a_transition_that_no_collective_makes_is_a_fault(void **state)
{
    tiny t =
        TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "- match: model.layers.0.mlp\n  in_dst: {hidden_states: {tp: partial}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "impossible_transition", "S(1) into P", "in_dst or out_dst");
    tiny_drop(&t);
}

static void outputs_are_numbered_by_name(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.mlp\n"
                                    "  out_src: {weights: {tp: replicate}, output: {tp: partial}}\n"
                                    "  out_dst: {weights: {tp: shard(0)}, output: {tp: shard(1)}}\n"
                                    "  out_names: [output, weights]\n");
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    (void)state;
    assert_int_equal(spec->n_lower_out, 2);
    assert_string_equal(spec->lower_out[0].arg, "weights");
    assert_int_equal(spec->lower_out[0].position, 1);
    assert_int_equal(spec->lower_out[1].position, 0);
    tiny_drop(&t);
}

static void axes_of_one_dim_are_joined_inside_out_and_cut_outside_in(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2,tp=2",
                       .overrides = "- match: model.layers.0.mlp\n"
                                    "  out_src: {output: {cp: shard(1), tp: partial},\n"
                                    "    joined: {cp: shard(1), tp: shard(1)},\n"
                                    "    cut: {cp: replicate, tp: partial}}\n"
                                    "  out_dst: {output: {cp: shard(1), tp: shard(1)},\n"
                                    "    joined: {cp: replicate, tp: replicate},\n"
                                    "    cut: {cp: shard(1), tp: shard(1)}}\n");
    (void)state;
    static const struct {
        const char *arg;
        sw_axis axis;
        sw_collective collective;
    } expected[] = {
        {"output", SW_AXIS_TP, SW_COLL_REDUCE_SCATTER},
        {"joined", SW_AXIS_TP, SW_COLL_ALL_GATHER    },
        {"joined", SW_AXIS_CP, SW_COLL_ALL_GATHER    },
        {"cut",    SW_AXIS_CP, SW_COLL_SLICE         },
        {"cut",    SW_AXIS_TP, SW_COLL_REDUCE_SCATTER},
    };
    const sw_spec *spec = tiny_spec(&t, L "mlp");
    assert_int_equal(spec->n_lower_out, SW_COUNT(expected));
    for (uint32_t i = 0; i < SW_COUNT(expected); i++) {
        assert_string_equal(spec->lower_out[i].arg, expected[i].arg);
        assert_int_equal(spec->lower_out[i].axis, expected[i].axis);
        assert_int_equal(spec->lower_out[i].collective, expected[i].collective);
    }
    tiny_drop(&t);
}

/* ---- a case on the loss's side (59) ---- */

static void a_vocabulary_parallel_loss_never_gets_gathered_logits(void **state)
{
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2", .loss_parallel = true,
                         .overrides = "- match: lm_head\n  out_dst: {tp: replicate}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "loss_contract", "lm_head", NULL);
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2",
                    .overrides = "- match: lm_head\n  out_dst: {tp: shard(2)}\n");
    tiny_finding(&t, SW_SEVERITY_ERROR, "loss_contract", "lm_head", NULL);
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_tensor_used_in_parts_gets_its_gradient_summed),
        cmocka_unit_test(a_whole_tensor_used_whole_does_not),
        cmocka_unit_test(cut_tensors_go_back_as_they_came),
        cmocka_unit_test(dims_are_those_of_the_cut),
        cmocka_unit_test(nothing_becomes_a_partial_sum),
        cmocka_unit_test(collectives_have_words),
        cmocka_unit_test(sequence_parallel_gathers_and_scatters),
        cmocka_unit_test(without_it_outputs_are_summed_and_inputs_gradients_too),
        cmocka_unit_test(loss_parallel_leaves_the_logits_cut),
        cmocka_unit_test(cp_moves_nothing_at_a_border),
        cmocka_unit_test(a_tied_head_uses_the_embeddings_shard),
        cmocka_unit_test(a_transition_that_no_collective_makes_is_a_fault),
        cmocka_unit_test(outputs_are_numbered_by_name),
        cmocka_unit_test(axes_of_one_dim_are_joined_inside_out_and_cut_outside_in),
        cmocka_unit_test(a_vocabulary_parallel_loss_never_gets_gathered_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
