/*
 * Copies of embedding and head that a family stores once more (MTP layers): tied to the model's own, cut
 * alike, and in another stage their gradients are summed.
 */
#include "tiny_model.h"

#include <string.h>

#include "base/status.h"
#include "shardwright/plan.h"

#define GLM(tied)                                                                                            \
    "'architectures': ['Glm4MoeForCausalLM'], 'model_type': 'glm4_moe', 'hidden_size': 32, "                 \
    "'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'head_dim': 8, "            \
    "'intermediate_size': 64, 'moe_intermediate_size': 16, 'n_routed_experts': 4, "                          \
    "'num_experts_per_tok': 2, 'n_shared_experts': 1, 'first_k_dense_replace': 1, 'vocab_size': 64, "        \
    "'num_nextn_predict_layers': 1, 'tie_word_embeddings': " tied

#define MTP   "model.layers.2."
#define EMBED "model.embed_tokens.weight"
#define HEAD  "lm_head.weight"

/* "first second" of every pair. */
static void check_pairs(const tiny *t, const char *const (*pairs)[2], uint32_t n)
{
    assert_int_equal(t->plan->n_tied, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(t->plan->tied[i].first, pairs[i][0]);
        assert_string_equal(t->plan->tied[i].second, pairs[i][1]);
    }
}

static void an_mtp_layer_is_tied_to_the_embedding_and_the_head(void **state)
{
    static const char *const pairs[][2] = {
        {EMBED, MTP "embed_tokens.weight"    },
        {HEAD,  MTP "shared_head.head.weight"},
    };
    tiny t = TINY_PLAN(.config = GLM("false"), .mesh = "tp=2");
    (void)state;
    check_pairs(&t, pairs, SW_COUNT(pairs));
    tiny_rows(&t, MTP "embed_tokens.weight", 1, "32:64");
    tiny_rows(&t, MTP "shared_head.head.weight", 1, "32:64");
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(sw_plan_explain(t.plan, NULL, &text, &length, NULL), SW_OK);
    assert_non_null(strstr(text, "tied               " EMBED " is stored, " MTP
                                 "embed_tokens.weight is the same tensor, stored too\n"));
    sw_text_free(text);
    tiny_drop(&t);
}

static void the_copy_of_a_head_that_is_not_stored_is_tied_to_the_embedding(void **state)
{
    static const char *const pairs[][2] = {
        {EMBED, HEAD                         },
        {EMBED, MTP "embed_tokens.weight"    },
        {EMBED, MTP "shared_head.head.weight"},
    };
    tiny t = TINY_PLAN(.config = GLM("true"), .mesh = "tp=2");
    (void)state;
    check_pairs(&t, pairs, SW_COUNT(pairs));
    tiny_drop(&t);
}

static void only_copies_in_other_stages_have_their_gradients_summed(void **state)
{
    tiny t = TINY_PLAN(.config = GLM("false"), .mesh = "pp=2");
    (void)state;
    tiny_grads(&t, EMBED, "pp tied");
    tiny_grads(&t, MTP "embed_tokens.weight", "pp tied");
    tiny_grads(&t, HEAD, "");
    tiny_grads(&t, MTP "shared_head.head.weight", "");
    tiny_drop(&t);
}

static void copies_that_are_cut_differently_are_refused(void **state)
{
    tiny t =
        TINY_REFUSE(.config = GLM("false"), .mesh = "tp=2",
                    .overrides = "- match: " MTP "shared_head.head\n  params: {weight: {tp: replicate}}\n"
                                 "  out_src: {output: {tp: replicate}}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "tied_conflict", MTP "shared_head.head.weight: tied to " HEAD, NULL);
    tiny_drop(&t);
}

static void a_layer_of_the_decoder_holds_no_copy(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                            "'hidden_size': 8, 'num_hidden_layers': 1, 'num_attention_heads': 4, "
                            "'intermediate_size': 16, 'vocab_size': 16",
                  .params = EMBED " F32 16x8\nmodel.layers.0.embed_tokens.weight F32 16x8\n", .mesh = "tp=2");
    (void)state;
    check_pairs(&t, NULL, 0);
    tiny_drop(&t);
}

#define TIED_LLAMA                                                                                           \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, "                       \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'intermediate_size': 16, 'vocab_size': 16, "          \
    "'tie_word_embeddings': true"

static void a_rule_that_takes_the_tied_tensor_for_something_else_is_refused(void **state)
{
    tiny t = TINY_REFUSE(.config = TIED_LLAMA, .mesh = "tp=2",
                         .overrides =
                             "roles: {extend: true, rules: [{pattern: embed_tokens, role: replicated}]}\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "tied_conflict",
                 EMBED ": it is the embedding and tied to the head, and a rule gives it the role replicated",
                 "params: {weight: {tp: replicate}}");
    tiny_drop(&t);
}

static void an_untied_embedding_may_be_made_whole_by_its_role(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, "
                            "'num_hidden_layers': 1, 'num_attention_heads': 4, 'intermediate_size': 16, "
                            "'vocab_size': 16, 'tie_word_embeddings': false",
                  .mesh = "tp=2",
                  .overrides = "roles: {extend: true, rules: [{pattern: embed_tokens, role: replicated}]}\n");
    (void)state;
    tiny_silent(&t, "tied_conflict");
    tiny_drop(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_mtp_layer_is_tied_to_the_embedding_and_the_head),
        cmocka_unit_test(the_copy_of_a_head_that_is_not_stored_is_tied_to_the_embedding),
        cmocka_unit_test(only_copies_in_other_stages_have_their_gradients_summed),
        cmocka_unit_test(copies_that_are_cut_differently_are_refused),
        cmocka_unit_test(a_layer_of_the_decoder_holds_no_copy),
        cmocka_unit_test(a_rule_that_takes_the_tied_tensor_for_something_else_is_refused),
        cmocka_unit_test(an_untied_embedding_may_be_made_whole_by_its_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
