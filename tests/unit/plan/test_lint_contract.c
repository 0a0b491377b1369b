/* Declarations of one boundary: names on both sides of a contract, and what a vocabulary's role asks for. */
#include "plan/lint_contract.h"

#include "tiny_model.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'tie_word_embeddings': true"

static void refuse(const char *overrides, const char *code, const char *words, const char *help)
{
    tiny t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2", .overrides = overrides);

    tiny_finding(&t, SW_SEVERITY_ERROR, code, words, help);
    tiny_drop(&t);
}

static void both_sides_of_a_contract_name_the_same_tensors(void **state)
{
    (void)state;
    refuse("- {match: '*.mlp', in_dst: {foo: {tp: R}}}", "names_differ",
           "in_dst names 'foo', and in_src does not", "did you mean 'hidden_states'?");
    refuse("- {match: '*.mlp', out_dst: {outputs: {tp: S(1)}}}", "names_differ",
           "out_dst names 'outputs', and out_src does not", "did you mean 'output'?");
    refuse("- {match: '*.mlp', in_src: {hidden_states: {tp: S(1)}, mask: {tp: R}}, "
           "in_dst: {hidden_states: {tp: R}, masks: {tp: R}}}",
           "names_differ", "in_dst names 'masks'", "did you mean 'mask'?");
    refuse("- {match: '*.mlp', in_src: {hidden_states: {tp: S(1)}, mask: {tp: R}}, "
           "in_dst: {hidden_states: {tp: R}, elsewhere: {tp: R}}}",
           "names_differ", "in_dst names 'elsewhere'", "the same names on both sides");
}

static void a_tensor_that_stays_as_it_arrives_needs_one_side_only(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2",
                       .overrides = "- {match: '*.mlp', in_src: {hidden_states: {tp: S(1)}, mask: {tp: R}}}");

    (void)state;
    tiny_silent(&t, "names_differ");
    tiny_drop(&t);
}

static void a_vector_is_no_vocabulary(void **state)
{
    (void)state;
    refuse("roles: {extend: true, rules: [{pattern: model.norm, role: lm_head}]}\n", "role_shape",
           "model.norm: 'weight' has the role lm_head and is a vector", "give the role to the matrix");
    refuse("roles: {extend: true, rules: [{pattern: model.norm, role: embed}]}\n", "role_shape",
           "model.norm: 'weight' has the role embed and is a vector", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_of_a_contract_name_the_same_tensors),
        cmocka_unit_test(a_tensor_that_stays_as_it_arrives_needs_one_side_only),
        cmocka_unit_test(a_vector_is_no_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
