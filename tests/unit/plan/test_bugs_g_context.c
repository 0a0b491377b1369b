/*
 * Section G of the bug cases, planning part: what a plan says of context parallelism. Masks, windows and
 * positions are the running model's; the plan names every attention that must see the keys of all cp ranks,
 * never cuts a parameter over cp, and refuses what cannot run on a slice of the sequence.
 */
#include "tiny_model.h"

#include <string.h>

/* Two layers: a window of 4, then full attention. */
#define GEMMA3                                                                                               \
    "'architectures': ['Gemma3ForCausalLM'], 'model_type': 'gemma3_text', 'num_hidden_layers': 2, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 4, "                 \
    "'intermediate_size': 16, 'vocab_size': 16, 'sliding_window': 4, "                                       \
    "'layer_types': ['sliding_attention', 'full_attention']"

/* ---- 65 ---- */

static void windowed_and_full_attention_each_get_their_own_core(void **state)
{
    tiny t = TINY_PLAN(.config = GEMMA3, .mesh = "cp=2");
    (void)state;
    assert_int_equal(t.plan->n_parallel, 2);
    assert_string_equal(t.plan->parallel[0].fqn, "model.layers.0.self_attn.core");
    assert_string_equal(t.plan->parallel[1].fqn, "model.layers.1.self_attn.core");
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(t.plan->parallel[i].kind, "cp");
        assert_int_equal(t.plan->parallel[i].axis, SW_AXIS_CP);
    }
    tiny_contract(&t, "model.layers.0.self_attn", SW_AXIS_CP,
                  "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_drop(&t);
}

static void without_cp_no_core_is_asked_for(void **state)
{
    tiny t = TINY_PLAN(.config = GEMMA3, .mesh = "tp=2");
    (void)state;
    assert_int_equal(t.plan->n_parallel, 0);
    assert_true(tiny_spec(&t, "model.layers.0.self_attn")->needs_cp_attn);
    tiny_drop(&t);
}

static void no_parameter_is_cut_over_cp_and_every_gradient_is_summed_over_it(void **state)
{
    tiny t = TINY_PLAN(.config = GEMMA3, .mesh = "dp=2,cp=2,tp=2");
    (void)state;
    for (uint32_t i = 0; i < t.plan->n_specs; i++) {
        const sw_spec *s = &t.plan->specs[i];
        for (uint32_t k = 0; k < s->n_params; k++) {
            const sw_facts *f = &t.plan->facts[s->params[k].facts];
            bool has_cp = false;
            assert_int_equal(f->places.on[SW_ON_CP].kind, SW_PLACE_REPLICATE);
            for (uint32_t g = 0; g < f->grad.n; g++)
                has_cp = has_cp || f->grad.sums[g].axis == SW_AXIS_CP;
            assert_true(has_cp);
        }
    }
    tiny_drop(&t);
}

/* ---- 66 ---- */

static void ids_arrive_cut_over_cp_so_that_labels_are_shifted_before(void **state)
{
    tiny t = TINY_PLAN(.config = GEMMA3, .mesh = "cp=2,tp=2");
    (void)state;
    tiny_contract(&t, "model.embed_tokens", SW_AXIS_CP, "input: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_contract(&t, "lm_head", SW_AXIS_CP, "hidden_states: S(1) -> S(1); output: S(1) -> S(1)");
    tiny_drop(&t);
}

/* ---- recurrences ---- */

static void a_recurrence_over_the_sequence_refuses_cp_and_says_why(void **state)
{
    tiny t =
        TINY_REFUSE(.config = "'architectures': ['MambaForCausalLM'], 'model_type': 'mamba', "
                              "'num_hidden_layers': 1, 'hidden_size': 16, 'vocab_size': 16, 'state_size': 4, "
                              "'expand': 2, 'conv_kernel': 4, 'time_step_rank': 1, 'intermediate_size': 32",
                    .mesh = "cp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "mixer_cp", "recurrence", "cp=1");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windowed_and_full_attention_each_get_their_own_core),
        cmocka_unit_test(without_cp_no_core_is_asked_for),
        cmocka_unit_test(no_parameter_is_cut_over_cp_and_every_gradient_is_summed_over_it),
        cmocka_unit_test(ids_arrive_cut_over_cp_so_that_labels_are_shifted_before),
        cmocka_unit_test(a_recurrence_over_the_sequence_refuses_cp_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
