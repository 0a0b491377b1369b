/*
 * What a checkpoint lacks: each case takes the names that a family's table gives for a small config, leaves
 * some out, and expects the finding that counts them; and what is no fault is not reported.
 */
#include "plan/lint_missing.h"

#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"

#define SIZES                                                                                                \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16"
#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 3, "                 \
    "'tie_word_embeddings': false, " SIZES
#define TIED                                                                                                 \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 3, "                 \
    "'tie_word_embeddings': true, " SIZES
#define HEADLESS                                                                                             \
    "'architectures': ['LlamaModel'], 'model_type': 'llama', 'num_hidden_layers': 3, "                       \
    "'tie_word_embeddings': false, " SIZES
#define MIXTRAL                                                                                              \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'num_hidden_layers': 2, "             \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, " SIZES
#define DEEPSEEK                                                                                             \
    "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'num_hidden_layers': 2, "      \
    "'hidden_size': 16, 'intermediate_size': 32, 'moe_intermediate_size': 8, 'n_routed_experts': 4, "        \
    "'n_shared_experts': 1, 'first_k_dense_replace': 1, 'num_attention_heads': 4, 'num_key_value_heads': "   \
    "4, 'q_lora_rank': 8, 'kv_lora_rank': 8, 'qk_nope_head_dim': 4, 'qk_rope_head_dim': 4, 'v_head_dim': "   \
    "4, 'vocab_size': 16, 'num_nextn_predict_layers': 1"
#define LAYER1 "model.layers.1."

/* The names of a config's model, a line each, without those that hold `dropped`; `more` at the end. Free it.
 */
static char *names_without(const char *config, const char *dropped, const char *more)
{
    sw_model *model = tiny_open(config, NULL);
    sw_buffer text = {0};

    for (size_t i = 0; i < sw_model_param_count(model); i++) {
        const sw_tensor_entry *t = sw_model_tensor(model, (uint32_t)i);
        if (dropped != NULL && strstr(t->name, dropped) != NULL)
            continue;
        sw_buffer_puts(&text, t->name);
        sw_buffer_puts(&text, " F32 ");
        for (uint32_t k = 0; k < t->shape->n_dims; k++)
            sw_buffer_printf(&text, k == 0 ? "%llu" : "x%llu", (unsigned long long)t->shape->dims[k]);
        sw_buffer_putc(&text, '\n');
    }
    sw_buffer_puts(&text, more == NULL ? "" : more);
    char *out = strdup(sw_buffer_text(&text));
    sw_buffer_clear(&text);
    sw_model_close(model);
    assert_non_null(out);
    return out;
}

/* A model without `dropped` is planned, with this warning; with --strict it is refused. */
static void expect_warning(const char *config, const char *dropped, const char *words)
{
    char *params = names_without(config, dropped, NULL);
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");

    tiny_finding(&t, SW_SEVERITY_WARNING, "missing_tensors", words, "all files");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=2", .strict = true);
    tiny_finding(&t, SW_SEVERITY_ERROR, "missing_tensors", words, "all files");
    tiny_drop(&t);
    free(params);
}

static void expect_error(const char *config, const char *dropped, const char *words)
{
    char *params = names_without(config, dropped, NULL);
    tiny t = TINY_REFUSE(.config = config, .params = params, .mesh = "tp=2");

    tiny_finding(&t, SW_SEVERITY_ERROR, "missing_tensors", words, "all files");
    tiny_drop(&t);
    free(params);
}

static void expect_silence(const char *config, const char *dropped, const char *more)
{
    char *params = names_without(config, dropped, more);
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");

    tiny_silent(&t, "missing_tensors");
    tiny_drop(&t);
    free(params);
}

/* Without `dropped`, and with `more` that does not stand for it. */
static void expect_still(const char *config, const char *dropped, const char *more, const char *words)
{
    char *params = names_without(config, dropped, more);
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "dp=2");

    tiny_finding(&t, SW_SEVERITY_WARNING, "missing_tensors", words, NULL);
    tiny_drop(&t);
    free(params);
}

static void a_whole_checkpoint_lacks_nothing(void **state)
{
    static const char *const configs[] = {LLAMA, TIED, HEADLESS, MIXTRAL, DEEPSEEK};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(configs); i++)
        expect_silence(configs[i], NULL, NULL);
}

static void a_tensor_that_one_layer_lacks_is_counted_and_placed(void **state)
{
    (void)state;
    expect_warning(
        LLAMA, LAYER1 "self_attn.q_proj",
        "model.layers.#.self_attn.q_proj.weight: 1 of 3 are not in the files, the first is that of "
        "layer 1");
    expect_warning(LLAMA, "up_proj", "model.layers.#.mlp.up_proj.weight: 3 of 3 are not in the files");
    expect_warning(LLAMA, "input_layernorm", "3 of 3");
}

static void tensors_outside_the_layers_are_missed_too(void **state)
{
    (void)state;
    expect_warning(LLAMA, "model.norm", "model.norm.weight: config.json asks for it");
    expect_warning(LLAMA, "embed_tokens", "model.embed_tokens.weight: config.json asks for it");
    expect_warning(LLAMA, "lm_head", "lm_head.weight: config.json asks for it");
    expect_warning(TIED, "embed_tokens", "model.embed_tokens.weight: config.json asks for it");
}

static void a_tied_pair_needs_one_of_its_names(void **state)
{
    (void)state;
    expect_silence(TIED, "embed_tokens", "lm_head.weight F32 16x16\n");
    expect_silence(HEADLESS, "lm_head", NULL);
}

static void a_block_without_some_of_its_experts_is_refused(void **state)
{
    (void)state;
    expect_error(
        MIXTRAL, "experts.3.",
        "model.layers.#.block_sparse_moe.experts.#.w1.weight: 2 of 8 are not in the files, the first "
        "is that of layer 0, expert 3");
    expect_error(MIXTRAL, LAYER1 "block_sparse_moe.experts.2.w3",
                 "experts.#.w3.weight: 1 of 8 are not in the files, the first is that of layer 1, expert 2");
    expect_error(MIXTRAL, "w2", "experts.#.w2.weight: 8 of 8");
    expect_error(DEEPSEEK, LAYER1 "mlp.experts.0.up_proj",
                 "mlp.experts.#.up_proj.weight: 1 of 8 are not in the files, the first is that of layer 1, "
                 "expert 0");
}

static void a_block_without_any_expert_is_a_warning(void **state)
{
    (void)state;
    expect_warning(
        MIXTRAL, LAYER1 "block_sparse_moe.experts",
        "experts.#.w1.weight: 4 of 8 are not in the files, the first is that of layer 1, expert 0");
}

#define QWEN3_NEXT                                                                                           \
    "'architectures': ['Qwen3NextForCausalLM'], 'model_type': 'qwen3_next', 'num_hidden_layers': 2, "        \
    "'num_experts': 2, 'moe_intermediate_size': 8, 'shared_expert_intermediate_size': 8, "                   \
    "'linear_num_key_heads': 2, 'linear_num_value_heads': 2, 'linear_key_head_dim': 4, "                     \
    "'linear_value_head_dim': 4, 'linear_conv_kernel_dim': 4, 'head_dim': 4, " SIZES
#define ONE_LINEAR QWEN3_NEXT ", 'layer_types': ['linear_attention', 'full_attention']"
#define ALL_FULL   QWEN3_NEXT ", 'layer_types': ['full_attention', 'full_attention']"
#define ALL_LINEAR QWEN3_NEXT ", 'layer_types': ['linear_attention', 'linear_attention']"

/* Of the names of one config, none is missing by another, but those without `dropped`. */
static void expect_of_other(const char *config, const char *other, const char *dropped, const char *words)
{
    char *params = names_without(config, dropped, NULL);
    tiny t = TINY_PLAN(.config = other, .params = params, .mesh = "tp=2");

    if (words == NULL)
        tiny_silent(&t, "missing_tensors");
    else
        tiny_finding(&t, SW_SEVERITY_WARNING, "missing_tensors", words, NULL);
    tiny_drop(&t);
    free(params);
}

static void a_layer_is_asked_for_a_mixer_or_for_an_attention(void **state)
{
    (void)state;
    expect_of_other(ONE_LINEAR, ONE_LINEAR, NULL, NULL);
    expect_of_other(ONE_LINEAR, ALL_FULL, NULL, NULL);
    expect_of_other(ONE_LINEAR, ALL_LINEAR, NULL, NULL);
    expect_of_other(ONE_LINEAR, ONE_LINEAR, "linear_attn.out_proj", "linear_attn.out_proj.weight: 1 of 1");
    expect_of_other(ONE_LINEAR, ONE_LINEAR, "self_attn.k_proj", "self_attn.k_proj.weight: 1 of 1");
    expect_of_other(ONE_LINEAR, ONE_LINEAR, "linear_attn.", "linear_attn.out_proj.weight: 1 of 1");
}

static void a_layer_that_is_not_there_at_all_is_one_finding(void **state)
{
    char *params = names_without(LLAMA, LAYER1, NULL);
    tiny t = TINY_PLAN(.config = LLAMA, .params = params, .mesh = "tp=2");

    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "missing_layers",
                 "1 of 3 layers have no tensor, the first is layer 1", "all files");
    tiny_silent(&t, "missing_tensors");
    tiny_drop(&t);
    free(params);
    expect_silence(DEEPSEEK, "model.layers.2.",
                   NULL); /* the layer of multi-token prediction may be left out */
}

static void the_same_in_another_form_is_not_missing(void **state)
{
    (void)state;
    expect_silence(MIXTRAL, "block_sparse_moe.experts.",
                   "model.layers.0.block_sparse_moe.experts.gate_up_proj F32 4x32x16\n"
                   "model.layers.0.block_sparse_moe.experts.down_proj F32 4x16x16\n"
                   "model.layers.1.block_sparse_moe.experts.gate_up_proj F32 4x32x16\n"
                   "model.layers.1.block_sparse_moe.experts.down_proj F32 4x16x16\n");
}

static void a_name_outside_the_layers_in_another_place_is_not_missing(void **state)
{
    (void)state;
    expect_silence(LLAMA, "model.norm", "model.language_model.norm.weight F32 16\n");
    expect_still(LLAMA, "model.norm", "model.language_model.layers.9.norm.weight F32 16\n",
                 "model.norm.weight");
    expect_still(LLAMA, "model.norm", "vision_tower.norm.weight F32 16\n", "model.norm.weight");
    expect_still(LLAMA, "model.norm", "model.language_model.prenorm.weight F32 16\n", "model.norm.weight");
}

static void more_layers_than_any_model_has_are_not_looked_at_one_by_one(void **state)
{
    (void)state;
    tiny t =
        TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'num_hidden_layers': 1000000, " SIZES,
                  .params = "model.layers.0.input_layernorm.weight F32 16\n", .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "missing_layers", "999999 of 1000000 layers", NULL);
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_checkpoint_lacks_nothing),
        cmocka_unit_test(a_tensor_that_one_layer_lacks_is_counted_and_placed),
        cmocka_unit_test(tensors_outside_the_layers_are_missed_too),
        cmocka_unit_test(a_tied_pair_needs_one_of_its_names),
        cmocka_unit_test(a_block_without_some_of_its_experts_is_refused),
        cmocka_unit_test(a_block_without_any_expert_is_a_warning),
        cmocka_unit_test(a_layer_is_asked_for_a_mixer_or_for_an_attention),
        cmocka_unit_test(a_layer_that_is_not_there_at_all_is_one_finding),
        cmocka_unit_test(the_same_in_another_form_is_not_missing),
        cmocka_unit_test(a_name_outside_the_layers_in_another_place_is_not_missing),
        cmocka_unit_test(more_layers_than_any_model_has_are_not_looked_at_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
