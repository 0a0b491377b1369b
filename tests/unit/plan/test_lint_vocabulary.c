/* Embedding and head against each other, with and without a table of the family. 64 tokens of width 32. */
#include "plan/lint_vocabulary.h"

#include "tiny_model.h"

#define SIZES                                                                                                \
    "'num_hidden_layers': 1, 'hidden_size': 32, 'intermediate_size': 32, 'vocab_size': 64, "                 \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'tie_word_embeddings': false"
#define STRANGER "'architectures': ['StrangerForCausalLM'], " SIZES
#define LLAMA    "'architectures': ['LlamaForCausalLM'], " SIZES
#define LLAVA                                                                                                \
    "'architectures': ['LlavaForConditionalGeneration'], 'model_type': 'llava', 'text_config': {" SIZES "}"
#define PAIR(embed, head)                                                                                    \
    "model.embed_tokens.weight F32 " embed "\nmodel.norm.weight F32 32\nlm_head.weight F32 " head "\n"

static void expect_error(const char *config, const char *params, const char *words)
{
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=2");

    tiny_finding(&t, SW_SEVERITY_ERROR, "shape_mismatch", words, NULL);
    tiny_drop(&t);
}

static void expect_silence(const char *config, const char *params)
{
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");

    tiny_silent(&t, "shape_mismatch");
    tiny_drop(&t);
}

static void embedding_and_head_have_the_same_rows(void **state)
{
    (void)state;
    expect_silence(STRANGER, PAIR("64x32", "64x32"));
    expect_silence(STRANGER, PAIR("72x32", "72x32"));
    expect_error(STRANGER, PAIR("64x32", "60x32"), "lm_head.weight: has 60 rows, and model.embed_tokens");
    expect_error(LLAMA, PAIR("64x32", "60x32"), "lm_head.weight: has 60 rows, and model.embed_tokens");
    expect_error(STRANGER, PAIR("60x32", "64x32"), "has 64 rows, and model.embed_tokens.weight has 60");
}

static void a_vocabulary_stored_along_the_columns_is_refused(void **state)
{
    (void)state;
    expect_error(STRANGER, PAIR("32x64", "64x32"), "embed_tokens.weight: is [32, 64], hidden_size by vocab");
    expect_error(STRANGER, PAIR("64x32", "32x64"), "lm_head.weight: is [32, 64]");
    expect_error(STRANGER, "model.embed_tokens.weight F32 32x64\n", "embed_tokens.weight: is [32, 64]");
}

#define TEXT(embed, head)                                                                                    \
    "language_model.model.embed_tokens.weight F32 " embed "\nlanguage_model.lm_head.weight F32 " head "\n"

static void a_model_with_images_may_read_more_tokens_than_it_writes(void **state)
{
    tiny t = TINY_PLAN(.config = LLAVA, .params = TEXT("72x32", "64x32"), .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "shape_mismatch", "lm_head.weight: has 64 rows", "never writes");
    tiny_drop(&t);
    expect_error(LLAVA, TEXT("64x32", "72x32"), "lm_head.weight: has 72 rows");
    t = TINY_PLAN(.config = STRANGER, .params = PAIR("72x32", "64x32") "visual.conv.weight F32 8x8\n",
                  .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "shape_mismatch", "lm_head.weight: has 64 rows", "never writes");
    tiny_drop(&t);
}

static void what_no_name_pairs_is_left_alone(void **state)
{
    (void)state;
    expect_silence(STRANGER, PAIR("64x32", "64x32") "talker.model.embed_tokens.weight F32 16x32\n");
    expect_silence(STRANGER ", 'quantization_config': {'quant_method': 'gptq', 'bits': 4, 'group_size': 16}",
                   "model.embed_tokens.weight F16 64x32\nlm_head.qweight I32 4x64\nlm_head.scales F16 2x64\n"
                   "lm_head.qzeros I32 2x8\nlm_head.g_idx I32 32\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedding_and_head_have_the_same_rows),
        cmocka_unit_test(a_vocabulary_stored_along_the_columns_is_refused),
        cmocka_unit_test(a_model_with_images_may_read_more_tokens_than_it_writes),
        cmocka_unit_test(what_no_name_pairs_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
