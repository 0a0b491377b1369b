/*
 * A tiny model, the text of its plan, and what the check finds once the text was edited. A sound plan gives
 * no finding, so each one is the edit's.
 */
#ifndef SW_TEST_CHECK_BENCH_H
#define SW_TEST_CHECK_BENCH_H

#include "tiny_model.h"

#define BIASED                                                                                               \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': 16, "        \
    "'attention_bias': true, 'mlp_bias': true"
#define MOE                                                                                                  \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 2, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'shared_expert_intermediate_size': 8, 'decoder_sparse_step': 1"
#define FUSED                                                                                                \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'num_hidden_layers': 1, 'hidden_size': "    \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 16, "        \
    "'tie_word_embeddings': false"
#define TIED                                                                                                 \
    "'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', 'num_hidden_layers': 1, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': 16, "        \
    "'tie_word_embeddings': true"
#define FULL_NORM                                                                                            \
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', 'num_hidden_layers': 1, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': 16"

/* A model, its plan's text, and what the last check found. */
typedef struct bench {
    tiny t;
    char *text;
    sw_report *found;
    sw_status status;
} bench;

bench bench_of(const tiny_case *what);
#define BENCH(...) bench_of(&(const tiny_case){__VA_ARGS__})
void bench_drop(bench *b);

/* Replace the first `from` behind the first `after`; single quotes stand for double ones. */
void bench_edit(bench *b, const char *from, const char *to);
void bench_edit_after(bench *b, const char *after, const char *from, const char *to);

/* Read the text and check the plan; the test fails unless it can be read. */
void bench_check(bench *b);

/* The last check must have found this; else what it found is printed. */
void bench_must_find(const bench *b, sw_severity severity, const char *code, const char *what);

#endif
