/*
 * shard, merge and reshard end to end: whatever the family and the mesh, what comes back is what went in,
 * byte for byte, and what is refused is refused with names and numbers.
 */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/plan_data.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 3," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
#define LLAMA_TIED LLAMA ", 'tie_word_embeddings': true"
#define PHI3 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': 2," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 32, 'vocab_size': 48," \
    "'torch_dtype': 'bfloat16'"
#define GPT2 \
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 16, 'n_layer': 2, 'n_head': 4," \
    "'n_positions': 32, 'vocab_size': 50, 'torch_dtype': 'float32'"
#define MIXTRAL \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': 16," \
    "'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24," \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, 'vocab_size': 40, 'torch_dtype': 'bfloat16'"
#define DBRX \
    "'architectures': ['DbrxForCausalLM'], 'model_type': 'dbrx', 'd_model': 16, 'n_layers': 2, 'n_heads': 4," \
    "'max_seq_len': 64, 'vocab_size': 40, 'attn_config': {'kv_n_heads': 2}," \
    "'ffn_config': {'ffn_hidden_size': 24, 'moe_num_experts': 4, 'moe_top_k': 2}, 'torch_dtype': 'bfloat16'"
#define BLOOM \
    "'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', 'hidden_size': 16, 'n_layer': 2," \
    "'n_head': 4, 'vocab_size': 40, 'torch_dtype': 'float16'"
#define QWEN2MOE \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'hidden_size': 16," \
    "'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 32," \
    "'moe_intermediate_size': 8, 'shared_expert_intermediate_size': 16, 'num_experts': 8," \
    "'num_experts_per_tok': 2, 'decoder_sparse_step': 1, 'mlp_only_layers': [], 'vocab_size': 40," \
    "'torch_dtype': 'bfloat16'"
#define MAMBA \
    "'architectures': ['MambaForCausalLM'], 'model_type': 'mamba', 'hidden_size': 16, 'num_hidden_layers': 2," \
    "'state_size': 4, 'conv_kernel': 4, 'expand': 2, 'time_step_rank': 2, 'vocab_size': 40," \
    "'torch_dtype': 'float32'"
// clang-format on

/* FP8 in blocks of 4 x 4, with scales that a cut keeps beside their weights. */
#define FP8 LLAMA ", 'quantization_config': {'quant_method': 'fp8', 'weight_block_size': [4, 4]}"
static const char fp8_tensors[] = "model.embed_tokens.weight BF16 40x16\n"
                                  "model.layers.0.self_attn.q_proj.weight F8_E4M3 32x16\n"
                                  "model.layers.0.self_attn.q_proj.weight_scale_inv F32 8x4\n"
                                  "model.layers.0.self_attn.k_proj.weight F8_E4M3 8x16\n"
                                  "model.layers.0.self_attn.k_proj.weight_scale_inv F32 2x4\n"
                                  "model.layers.0.self_attn.v_proj.weight F8_E4M3 8x16\n"
                                  "model.layers.0.self_attn.v_proj.weight_scale_inv F32 2x4\n"
                                  "model.layers.0.self_attn.o_proj.weight F8_E4M3 16x32\n"
                                  "model.layers.0.self_attn.o_proj.weight_scale_inv F32 4x8\n"
                                  "model.layers.0.input_layernorm.weight BF16 16\n"
                                  "model.norm.weight BF16 16\n"
                                  "lm_head.weight BF16 40x16\n";

typedef struct mesh_case {
    const char *axes;
    uint32_t ep;
} mesh_case;

static const mesh_case meshes[] = {
    {"tp=1",           0},
    {"tp=2",           0},
    {"tp=4",           0},
    {"tp=8",           0},
    {"pp=2,tp=2",      0},
    {"dp=2,cp=2,tp=2", 0},
    {"tp=2,ep=2",      0},
    {"tp=2,ep=4",      0},
    {"tp=4",           4},
    {"dp=2,tp=2",      2},
    {"pp=2,dp=2,tp=1", 2},
};

static void expect_proof(const sw_checkpoint_result *r)
{
    assert_true(r->elements > 0);
    assert_int_equal(r->elements, r->covered);
    assert_true(r->files > 0);
}

static void shard_to(const char *model, const sw_plan *plan, const char *out)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    options.no_sync = true;
    if (sw_checkpoint_shard(scratch(model), plan, scratch(out), &options, &result, &err) != SW_OK)
        fail_msg("shard: %s (%s)", err.what, err.help);
    expect_proof(&result);
}

static void merge_to(const char *in, const char *out)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    options.no_sync = true;
    options.max_shard_bytes = 3000;
    if (sw_checkpoint_merge(scratch(in), scratch(out), &options, &result, &err) != SW_OK)
        fail_msg("merge: %s (%s)", err.what, err.help);
    expect_proof(&result);
}

static void reshard_to(const char *in, const sw_plan *plan, const char *out)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    options.no_sync = true;
    if (sw_checkpoint_reshard(scratch(in), plan, scratch(out), &options, &result, &err) != SW_OK)
        fail_msg("reshard: %s (%s)", err.what, err.help);
    expect_proof(&result);
}

/* x → shard → merge, and x → shard → reshard to the mesh before → merge, for every mesh that plans. */
static void check_all_meshes(const char *model, uint32_t least)
{
    sw_plan *before = NULL;
    uint32_t n = 0;

    for (size_t i = 0; i < SW_COUNT(meshes); i++) {
        sw_plan *plan = try_plan_of(model, meshes[i].axes, meshes[i].ep, NULL);
        if (plan == NULL)
            continue;
        n++;
        shard_to(model, plan, "sharded");
        merge_to("sharded", "merged");
        expect_same_tensors(model, "merged");
        scratch_remove("merged");
        if (before != NULL) {
            reshard_to("sharded", before, "resharded");
            merge_to("resharded", "merged");
            expect_same_tensors(model, "merged");
            scratch_remove("merged");
            scratch_remove("resharded");
        }
        scratch_remove("sharded");
        sw_plan_destroy(before);
        before = plan;
    }
    sw_plan_destroy(before);
    if (n < least)
        fail_msg("%s: only %u meshes were planned", model, n);
}

static void a_model_with_few_kv_heads_and_an_odd_vocabulary_comes_back(void **state)
{
    (void)state;
    make_model("model", LLAMA, NULL, 1);
    check_all_meshes("model", 6);
}

static void a_tied_model_comes_back(void **state)
{
    (void)state;
    make_model("model", LLAMA_TIED, NULL, 2);
    check_all_meshes("model", 6);
}

static void fused_projections_come_back(void **state)
{
    (void)state;
    make_model("model", PHI3, NULL, 3);
    check_all_meshes("model", 6);
}

static void transposed_linears_and_buffers_come_back(void **state)
{
    (void)state;
    make_model("model", GPT2, NULL, 1);
    check_all_meshes("model", 5);
}

static void experts_one_by_one_come_back_under_both_ep_modes(void **state)
{
    (void)state;
    make_model("model", MIXTRAL, NULL, 2);
    check_all_meshes("model", 8);
}

static void experts_in_rows_of_one_matrix_come_back(void **state)
{
    (void)state;
    make_model("model", DBRX, NULL, 1);
    check_all_meshes("model", 6);
}

static void per_head_projections_come_back(void **state)
{
    (void)state;
    make_model("model", BLOOM, NULL, 1);
    check_all_meshes("model", 4);
}

static void shared_experts_come_back(void **state)
{
    (void)state;
    make_model("model", QWEN2MOE, NULL, 1);
    check_all_meshes("model", 8);
}

static void mixers_that_stay_whole_come_back(void **state)
{
    (void)state;
    make_model("model", MAMBA, NULL, 1);
    check_all_meshes("model", 4);
}

static void fp8_weights_and_their_scales_come_back(void **state)
{
    (void)state;
    make_model("model", FP8, fp8_tensors, 1);
    check_all_meshes("model", 3);
}

static const char *const minis[] = {"mini-baichuan",
                                    "mini-bloom",
                                    "mini-chatglm3",
                                    "mini-deepseekv2lite",
                                    "mini-deepseekv3",
                                    "mini-falcon",
                                    "mini-gemma2",
                                    "mini-glm4",
                                    "mini-gpt2",
                                    "mini-gptneox",
                                    "mini-internlm2",
                                    "mini-llama",
                                    "mini-llama4",
                                    "mini-llama-attnbias",
                                    "mini-llama-oddvocab",
                                    "mini-llama-tied",
                                    "mini-mamba",
                                    "mini-mixtral",
                                    "mini-mpt",
                                    "mini-olmoe",
                                    "mini-opt",
                                    "mini-phi2",
                                    "mini-phi3",
                                    "mini-qwen2",
                                    "mini-qwen2moe",
                                    "mini-qwen3",
                                    "mini-qwen3moe",
                                    "mini-qwen3next"};

static void small_models_of_every_family_come_back(void **state)
{
    (void)state;
    if (shared_path("oracle/_mini") == NULL)
        skip();
    for (size_t i = 0; i < SW_COUNT(minis); i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "oracle/_mini/%s", minis[i]);
        const char *folder = shared_path(name);
        if (folder == NULL || !make_model_like(minis[i], folder, 1))
            continue;
        check_all_meshes(minis[i], 1);
        scratch_remove(minis[i]);
    }
}

static const char *const weights[] = {"stories260K-hf", "stories260K-hf-bf16-3shards", "stories260K-untied",
                                      "stories260K-qwen2"};

static void real_weights_come_back(void **state)
{
    bool has_any = false;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(weights); i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "weights/%s", weights[i]);
        const char *folder = shared_path(name);
        if (folder == NULL)
            continue;
        char path[1024];
        (void)snprintf(path, sizeof path, "%s", folder);
        check_all_meshes(path, 5);
        has_any = true;
    }
    if (!has_any)
        skip();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_model_with_few_kv_heads_and_an_odd_vocabulary_comes_back),
        CASE(a_tied_model_comes_back),
        CASE(fused_projections_come_back),
        CASE(transposed_linears_and_buffers_come_back),
        CASE(experts_one_by_one_come_back_under_both_ep_modes),
        CASE(experts_in_rows_of_one_matrix_come_back),
        CASE(per_head_projections_come_back),
        CASE(shared_experts_come_back),
        CASE(mixers_that_stay_whole_come_back),
        CASE(fp8_weights_and_their_scales_come_back),
        CASE(small_models_of_every_family_come_back),
        CASE(real_weights_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
