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
#include "shared.h"

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

/*
 * x → shard → merge, and x → shard → reshard to the mesh before → merge, for every mesh that plans; how many
 * those are.
 */
static uint32_t check_meshes(const char *model)
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
    return n;
}

static void check_all_meshes(const char *model, uint32_t least)
{
    uint32_t n = check_meshes(model);

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
    uint32_t n_models = 0;

    need_shared("oracle/_mini");
    for (size_t i = 0; i < SW_COUNT(minis); i++) {
        char name[128];
        char folder[1024];
        (void)snprintf(name, sizeof name, "oracle/_mini/%s", minis[i]);
        shared_path(folder, sizeof folder, name);
        if (!make_model_like(minis[i], folder, 1))
            continue;
        n_models += check_meshes(minis[i]) > 0;
        scratch_remove(minis[i]);
    }
    assert_true(n_models >= SW_COUNT(minis) - 2); /* what the planner refuses is the planner's business */
}

static const char *const weights[] = {"stories260K-hf", "stories260K-hf-bf16-3shards", "stories260K-untied",
                                      "stories260K-qwen2"};

static void real_weights_come_back(void **state)
{
    (void)state;
    need_shared("weights");
    for (size_t i = 0; i < SW_COUNT(weights); i++) {
        char name[128];
        char path[1024];
        (void)snprintf(name, sizeof name, "weights/%s", weights[i]);
        shared_path(path, sizeof path, name);
        check_all_meshes(path, 5);
    }
}

/* ---- what is written ---- */

static void a_sharded_folder_has_files_plan_manifest_and_what_is_carried(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 2);
    scratch_text("model/tokenizer.json", "{'a': 1}", true);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    if (sw_checkpoint_shard(scratch("model"), plan, scratch("out"), &options, &result, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    assert_string_equal(scratch_list("out"),
                        "config.json dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors "
                        "manifest.json plan.json tokenizer.json ");
    assert_int_equal(result.files, 2);
    assert_int_equal(result.replicas, 7); /* two norms a layer, the last one */
    assert_true(result.bytes_written > 2 * result.elements && result.bytes_read == 2 * result.elements);
    sw_buffer text = scratch_read("out/tokenizer.json");
    assert_string_equal(text.bytes, "{\"a\": 1}");
    sw_buffer_clear(&text);
    sw_plan *again = NULL;
    assert_int_equal(sw_plan_load(&again, scratch("out/plan.json"), NULL), SW_OK);
    assert_int_equal(sw_plan_fingerprint(again), sw_plan_fingerprint(plan));
    sw_plan_destroy(again);
    sw_plan_destroy(plan);
}

/* As the hub's cache has it: a revision is a folder of links to the blobs of all revisions. */
static void into_cache(const char *file, const char *blob)
{
    char from[64];
    char to[64];

    (void)snprintf(from, sizeof from, "model/%s", file);
    (void)snprintf(to, sizeof to, "cache/blobs/%s", blob);
    assert_int_equal(rename(scratch(from), scratch(to)), 0);
    (void)snprintf(from, sizeof from, "../../blobs/%s", blob);
    (void)snprintf(to, sizeof to, "cache/snapshots/1/%s", file);
    assert_int_equal(symlink(from, scratch(to)), 0);
}

static void a_snapshot_of_links_becomes_regular_files(void **state)
{
    static const char *const carried[] = {"config.json", "tokenizer.json"};
    struct stat about;

    (void)state;
    make_model("model", LLAMA, NULL, 2);
    make_model("kept", LLAMA, NULL, 2);
    scratch_text("model/tokenizer.json", "{'a': 1}", true);
    scratch_text("cache/blobs/other", "x", false);
    scratch_text("cache/snapshots/1/.hidden", "x", false);
    into_cache("config.json", "01");
    into_cache("tokenizer.json", "02");
    into_cache("model.safetensors.index.json", "03");
    into_cache("model-00001-of-00002.safetensors", "04");
    into_cache("model-00002-of-00002.safetensors", "05");
    assert_int_equal(symlink("../../../kept/config.json", scratch("cache/snapshots/1/outside.json")), 0);
    sw_plan *plan = plan_of("cache/snapshots/1", "tp=2", 0, NULL);
    shard_to("cache/snapshots/1", plan, "out");
    assert_string_equal(scratch_list("out"),
                        "config.json dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors "
                        "manifest.json plan.json tokenizer.json ");
    for (size_t i = 0; i < SW_COUNT(carried); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "out/%s", carried[i]);
        assert_int_equal(lstat(scratch(path), &about), 0);
        assert_true(S_ISREG(about.st_mode));
    }
    merge_to("out", "merged");
    expect_same_tensors("kept", "merged");
    sw_plan_destroy(plan);
}

static void the_manifest_and_the_metadata_say_what_stands_where(void **state)
{
    (void)state;
    make_model("model", PHI3, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=4", 0, NULL);
    shard_to("model", plan, "out");
    sw_plan_destroy(plan);
    sw_buffer text = scratch_read("out/manifest.json");
    assert_non_null(strstr(text.bytes, "\"format\": \"shardwright-checkpoint\""));
    assert_non_null(strstr(text.bytes, "{\"name\": \"dense-pp0-tp1.safetensors\", \"bytes\": "));
    /* q, k, v of rank 1: k and v are those of rank 0 */
    assert_non_null(strstr(text.bytes, "\"regions\": [{\"begin\": [8, 0], \"extent\": [8, 32]}, "
                                       "{\"begin\": [32, 0], \"extent\": [4, 32], \"replica\": true}, "
                                       "{\"begin\": [40, 0], \"extent\": [4, 32], \"replica\": true}]"));
    sw_buffer_clear(&text);
    text = scratch_read("out/dense-pp0-tp1.safetensors");
    static const char *const words[] = {
        "\"sw.format\":\"shardwright-checkpoint/1\"",
        "\"sw.coord\":\"pp=0,tp=1\"",
        "\"sw.fingerprint\":\"",
        "\"format\":\"pt\"",
        "\"made_by\":\"a test\"",
        "\\\"model.norm.weight\\\":{\\\"shape\\\":[32],\\\"regions\\\":[{\\\"begin\\\":[0],\\\"extent\\\":["
        "32],"
        "\\\"replica\\\":true}]}",
        "\\\"model.layers.0.self_attn.qkv_proj.weight\\\":{\\\"kind\\\":\\\"stacked\\\"",
    };
    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (memmem(text.bytes, text.length, words[i], strlen(words[i])) == NULL)
            fail_msg("no %s in the header", words[i]);
    }
    sw_buffer_clear(&text);
}

/* Rank files hold what another reader expects: rows of the whole, in order. */
static void rank_files_are_plain_safetensors_with_local_rows(void **state)
{
    static const char name[] = "model.layers.0.self_attn.qkv_proj.weight";
    static const uint32_t rows[] = {8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 35, 40, 41, 42, 43};

    (void)state;
    make_model("model", PHI3, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=4", 0, NULL);
    shard_to("model", plan, "out");
    sw_plan_destroy(plan);
    scratch_remove("one");
    sw_buffer file = scratch_read("out/dense-pp0-tp1.safetensors");
    scratch_bytes("one/x.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    loaded l = load_folder(scratch("one"));
    const sw_tensor_entry *t = sw_tensor_list_find(&l.list, name, strlen(name));
    assert_int_equal(t->shape->dims[0], 16);
    uint64_t n_bytes = 0;
    const uint8_t *bytes = loaded_bytes(&l, t, &n_bytes);
    for (size_t r = 0; r < 16; r++) {
        for (size_t b = 0; b < 64; b++)
            assert_int_equal(bytes[r * 64 + b], data_byte(name, strlen(name), rows[r] * 64 + b));
    }
    unload(&l);
}

static void a_merged_folder_has_an_index_and_files_up_to_the_limit(void **state)
{
    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    shard_to("model", plan, "out");
    sw_plan_destroy(plan);
    merge_to("out", "merged");
    assert_non_null(strstr(scratch_list("merged"), "config.json model-00001-of-0000"));
    assert_non_null(strstr(scratch_list("merged"), "model.safetensors.index.json "));
    assert_null(strstr(scratch_list("merged"), "plan.json"));
    sw_model *model = NULL;
    assert_int_equal(sw_model_open(&model, scratch("merged"), NULL), SW_OK);
    sw_model_close(model);
    const char *first = strstr(scratch_list("merged"), "model-00001-of-");
    char name[128];
    (void)snprintf(name, sizeof name, "merged/%.*s", (int)strcspn(first, " "), first);
    sw_buffer text = scratch_read(name);
    assert_non_null(memmem(text.bytes, text.length, "\"made_by\":\"a test\"", 18));
    assert_null(memmem(text.bytes, text.length, "sw.format", 9));
    sw_buffer_clear(&text);
}

/* A plan that still knows its model, and one that was read from a file, give the same. */
static void a_plan_that_was_just_made_serves_as_well(void **state)
{
    sw_plan *fresh = NULL;
    sw_plan *read = NULL;
    sw_error err = {0};

    (void)state;
    make_model("model", MIXTRAL, NULL, 1);
    if (sw_plan_model_folder(&fresh, scratch("model"), "ep=2,tp=2", &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    assert_int_equal(sw_plan_save(fresh, scratch("fresh.json"), &err), SW_OK);
    assert_int_equal(sw_plan_load(&read, scratch("fresh.json"), &err), SW_OK);
    shard_to("model", fresh, "fresh");
    shard_to("model", read, "read");
    sw_buffer a = scratch_read("fresh/manifest.json");
    sw_buffer b = scratch_read("read/manifest.json");
    assert_string_equal(a.bytes, b.bytes);
    sw_buffer_clear(&a);
    sw_buffer_clear(&b);
    merge_to("fresh", "merged");
    expect_same_tensors("model", "merged");
    sw_plan_destroy(fresh);
    sw_plan_destroy(read);
}

/* ---- odd tensors ---- */

#define OTHER "'architectures': ['SomethingElse'], 'model_type': 'something', 'hidden_size': 8"
#define RULES                                                                                                \
    "overrides:\n- match: m\n  params: {+: {f4: {tp: shard(1)}, opaque: {tp: shard(0)}, odd: {tp: "          \
    "shard(0)}, "                                                                                            \
    "deep: {tp: shard(2)}}}\n"

static void odd_tensors_come_back(void **state)
{
    (void)state;
    make_model("model", OTHER,
               "m.f4 F4 2x8\nm.opaque Q9_X 4x6\nm.whole Z 3x5\nm.none F32 0x4\nm.none2 BF16 3x0\n"
               "m.odd C64 8x3\nm.deep U16 2x3x8x5\nm.b BOOL 9\nm.e8 F8_E8M0 2x4\nm.i I64 1\nm.u U32 3x3x3\n",
               2);
    sw_plan *two = plan_of("model", "tp=2", 0, RULES);
    sw_plan *four = plan_of("model", "tp=4", 0, RULES);
    shard_to("model", two, "two");
    merge_to("two", "merged");
    expect_same_tensors("model", "merged");
    reshard_to("two", four, "four");
    scratch_remove("merged");
    merge_to("four", "merged");
    expect_same_tensors("model", "merged");
    reshard_to("four", two, "again");
    scratch_remove("merged");
    merge_to("again", "merged");
    expect_same_tensors("model", "merged");
    sw_plan_destroy(two);
    sw_plan_destroy(four);
}

static void optimizer_state_goes_along(void **state)
{
    (void)state;
    make_model("model", LLAMA, NULL, 1);
    make_model("state", OTHER,
               "optim.m.model.norm.weight F32 16\noptim.v.model.norm.weight F32 16\n"
               "optim.m.model.layers.0.self_attn.k_proj.weight F32 8x16\n"
               "optim.master.model.layers.0.mlp.down_proj.weight F32 16x24\n",
               1);
    assert_int_equal(
        rename(scratch("state/model.safetensors"), scratch("model/optimizer-00001-of-00001.safetensors")), 0);
    scratch_text("model/training_state.json", "{'step': 12, 'rng': [1, 2.5e3, null]}", true);
    scratch_text("weight_map", "", false);
    loaded l = load_folder(scratch("model"));
    sw_buffer index = {0};
    sw_buffer_puts(&index, "{\"weight_map\": {");
    for (size_t i = 0, n = 0; i < l.list.n_tensors; i++) {
        if (strncmp(l.list.tensors[i].name, "optim.", 6) != 0)
            sw_buffer_printf(&index, "%s\"%s\": \"model.safetensors\"", n++ == 0 ? "" : ", ",
                             l.list.tensors[i].name);
    }
    sw_buffer_puts(&index, "}}");
    scratch_bytes("model/model.safetensors.index.json", index.bytes, index.length);
    sw_buffer_clear(&index);
    unload(&l);

    sw_plan *four = plan_of("model", "tp=4", 0, NULL);
    sw_plan *two = plan_of("model", "pp=2,tp=2", 0, NULL);
    shard_to("model", four, "four");
    sw_buffer text = scratch_read("four/manifest.json");
    assert_non_null(strstr(text.bytes, "\"state\": {\"step\": 12, \"rng\": [1, 2.5e3, null]}"));
    assert_non_null(strstr(text.bytes,
                           "\"optim.m.model.layers.0.self_attn.k_proj.weight\": {\"dtype\": \"F32\", "
                           "\"shape\": [8, 16], \"parts\": [{\"file\": 0, "));
    sw_buffer_clear(&text);
    assert_null(strstr(scratch_list("four"), "training_state"));
    reshard_to("four", two, "two");
    merge_to("two", "merged");
    expect_same_tensors("model", "merged");
    assert_non_null(strstr(scratch_list("merged"), "optimizer-00001-of-00001.safetensors "));
    text = scratch_read("merged/training_state.json");
    assert_string_equal(text.bytes, "{\"step\": 12, \"rng\": [1, 2.5e3, null]}");
    sw_buffer_clear(&text);
    shard_to("merged", four, "again");
    scratch_remove("merged");
    merge_to("again", "merged");
    expect_same_tensors("model", "merged");
    sw_plan_destroy(two);
    sw_plan_destroy(four);
}

/* ---- when files are lost ---- */

static void a_folder_without_manifest_plan_and_config_is_merged(void **state)
{
    (void)state;
    make_model("model", QWEN2MOE, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 2, NULL);
    sw_plan *other = plan_of("model", "tp=4", 0, NULL);
    shard_to("model", plan, "out");
    scratch_remove("out/plan.json");
    merge_to("out", "merged");
    expect_same_tensors("model", "merged");
    scratch_remove("merged");
    scratch_remove("out/config.json");
    scratch_remove("out/manifest.json");
    merge_to("out", "merged");
    expect_same_tensors("model", "merged");
    reshard_to("out", other, "other");
    scratch_remove("merged");
    merge_to("other", "merged");
    expect_same_tensors("model", "merged");
    sw_plan_destroy(plan);
    sw_plan_destroy(other);
}

/* ---- refusals ---- */

static void expect_refusal(sw_status status, const sw_error *err, sw_status wanted, const char *what,
                           const char *help)
{
    if (status != wanted || strstr(err->what, what) == NULL || strstr(err->help, help) == NULL)
        fail_msg("%s: %s (%s)", sw_status_name(status), err->what, err->help);
}

static void a_plan_of_another_model_is_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    make_model("other", LLAMA_TIED, NULL, 1);
    sw_plan *plan = plan_of("other", "tp=2", 0, NULL);
    sw_plan *right = plan_of("model", "tp=2", 0, NULL);
    expect_refusal(sw_checkpoint_shard(scratch("model"), plan, scratch("out"), NULL, NULL, &err), &err,
                   SW_E_PLAN, "the plan is of another model: its fingerprint is ", "from this model");
    assert_false(scratch_has("out"));
    shard_to("model", right, "out");
    expect_refusal(sw_checkpoint_reshard(scratch("out"), plan, scratch("out2"), NULL, NULL, &err), &err,
                   SW_E_PLAN, "the plan is of another model", "from this model");
    sw_plan_destroy(plan);
    sw_plan_destroy(right);
}

static void a_source_of_the_other_kind_is_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    shard_to("model", plan, "out");
    expect_refusal(sw_checkpoint_shard(scratch("out"), plan, scratch("x"), NULL, NULL, &err), &err,
                   SW_E_FORMAT, "is a sharded folder already", "reshard");
    expect_refusal(sw_checkpoint_merge(scratch("model"), scratch("x"), NULL, NULL, &err), &err, SW_E_FORMAT,
                   "is no sharded folder", "shard splits");
    expect_refusal(sw_checkpoint_reshard(scratch("model"), plan, scratch("x"), NULL, NULL, &err), &err,
                   SW_E_FORMAT, "is no sharded folder", "shard splits");
    sw_plan_destroy(plan);
}

static void an_output_that_is_there_is_replaced_only_when_asked(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *two = plan_of("model", "tp=2", 0, NULL);
    sw_plan *four = plan_of("model", "tp=4", 0, NULL);
    shard_to("model", two, "out");
    expect_refusal(sw_checkpoint_shard(scratch("model"), four, scratch("out"), &options, NULL, &err), &err,
                   SW_E_ARGUMENT, "is there already", "--replace");
    options.replace = true;
    assert_int_equal(sw_checkpoint_reshard(scratch("out"), four, scratch("out"), &options, NULL, &err),
                     SW_OK);
    assert_non_null(strstr(scratch_list("out"), "dense-pp0-tp3.safetensors"));
    assert_string_equal(scratch_list(""), "model out ");
    merge_to("out", "merged");
    expect_same_tensors("model", "merged");
    sw_plan_destroy(two);
    sw_plan_destroy(four);
}

static void options_of_size_0_are_refused(void **state)
{
    sw_checkpoint_options options = {0};
    sw_error err = {0};

    (void)state;
    expect_refusal(sw_checkpoint_merge(scratch("x"), scratch("y"), &options, NULL, &err), &err, SW_E_ARGUMENT,
                   "struct_size is 0", "SW_CHECKPOINT_OPTIONS_INIT");
}

/* Flip a byte of a tensor in a rank file. */
static void spoil(const char *file, const char *tensor)
{
    sw_buffer all = scratch_read(file);
    char key[256];
    uint64_t header = 0;

    for (int k = 7; k >= 0; k--)
        header = header << 8 | (uint8_t)all.bytes[k];
    (void)snprintf(key, sizeof key, "\"%s\":{\"dtype\"", tensor);
    const char *at = memmem(all.bytes, all.length, key, strlen(key));
    assert_non_null(at);
    const char *offsets = strstr(at, "\"data_offsets\":[");
    uint64_t begin = strtoull(offsets + strlen("\"data_offsets\":["), NULL, 10);
    all.bytes[8 + header + begin + 3] ^= 1;
    scratch_bytes(file, all.bytes, all.length);
    sw_buffer_clear(&all);
}

static void replicas_that_differ_are_refused_unless_one_is_picked(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=4", 0, NULL);
    shard_to("model", plan, "out");
    spoil("out/dense-pp0-tp2.safetensors", "model.norm.weight");
    spoil("out/dense-pp0-tp1.safetensors", "model.layers.1.self_attn.k_proj.weight");
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err), &err,
                   SW_E_FORMAT, "2 copies differ: tensor 'model.", "merge --pick RANK");
    assert_int_equal(sw_report_count(options.report), 2);
    assert_string_equal(sw_report_finding(options.report, 0)->code, "replica_differs");
    assert_non_null(strstr(sw_report_finding(options.report, 0)->what, "is not its owner's: 1 of "));
    expect_refusal(sw_checkpoint_reshard(scratch("out"), plan, scratch("re"), NULL, NULL, &err), &err,
                   SW_E_FORMAT, "2 copies differ", "merge --pick RANK");
    sw_report_destroy(options.report);
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    options.has_pick = true;
    options.pick = 4;
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err), &err,
                   SW_E_ARGUMENT, "has no files of rank 4, but of 0, 1, 2, 3", "pick one");
    options.pick = 2; /* it has another of the two key heads: the copies of that one are compared */
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err), &err,
                   SW_E_FORMAT, "k_proj.weight': the copy in dense-pp0-tp1.safetensors is not its owner's",
                   "find out");
    spoil("out/dense-pp0-tp1.safetensors", "model.layers.1.self_attn.k_proj.weight"); /* right again */
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err), &err,
                   SW_E_FORMAT, "tensor 'model.norm.weight' has not the checksum", "verify");
    scratch_remove("out/manifest.json"); /* and with it the checksums */
    sw_report_destroy(options.report);
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    assert_int_equal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, &result, &err), SW_OK);
    assert_string_equal(sw_report_finding(options.report, 1)->code, "replica_picked");
    sw_report_destroy(options.report);

    loaded l = load_folder(scratch("merged"));
    const sw_tensor_entry *norm = sw_tensor_list_find(&l.list, "model.norm.weight", 17);
    uint64_t n_bytes = 0;
    assert_int_equal(loaded_bytes(&l, norm, &n_bytes)[3], data_byte("model.norm.weight", 17, 3) ^ 1);
    unload(&l);
    sw_plan_destroy(plan);
}

static void regions_that_do_not_cover_are_refused_by_name(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    shard_to("model", plan, "out");
    sw_plan_destroy(plan);
    sw_buffer good = scratch_read("out/manifest.json");
    const char *norm = strstr(good.bytes, "\"model.norm.weight\"");
    assert_non_null(norm);
    scratch_edit("out/manifest.json", ", \"replica\": true", "");
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("x"), NULL, NULL, &err), &err, SW_E_FORMAT,
                   "elements have an owner, 16 of them more than one", "another layout");
    assert_true(strncmp(err.what, "tensor 'model.", 14) == 0);
    scratch_bytes("out/manifest.json", good.bytes, good.length);
    scratch_edit("out/manifest.json", "{\"begin\": [4, 0]", "{\"begin\": [3, 0]");
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("x"), NULL, NULL, &err), &err, SW_E_FORMAT,
                   "112 of 128 elements have an owner, 16 of them more than one", "another layout");
    assert_false(scratch_has("x"));
    sw_buffer_clear(&good);
}

/* ---- the work itself ---- */

static bool stop_at_once(const sw_progress *progress, void *user)
{
    uint32_t *n = user;

    (void)progress;
    return ++*n < 2;
}

static void work_that_is_stopped_leaves_nothing(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    uint32_t n = 0;
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    shard_to("model", plan, "out");
    options.on_progress = stop_at_once;
    options.user = &n;
    expect_refusal(sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err), &err,
                   SW_E_IO, "stopped", "");
    assert_string_equal(scratch_list(""), "model out ");
    sw_plan_destroy(plan);
}

static void memory_that_is_gone_leaves_nothing_behind(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_status status = SW_E_NO_MEMORY;
    sw_error err = {0};

    (void)state;
    options.no_sync = true;
    options.threads = 1;
    make_model("model", OTHER, "m.odd BF16 8x3\nm.deep U16 2x3x8x5\n", 1);
    sw_plan *plan =
        plan_of("model", "tp=2", 0,
                "overrides:\n- match: m\n  params: {odd: {tp: shard(0)}, deep: {tp: shard(2)}}\n");
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_checkpoint_shard(scratch("model"), plan, scratch("out"), &options, NULL, &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        if (status != SW_E_NO_MEMORY)
            fail_msg("allocation %" PRIu64 ": %s", n, err.what);
        assert_false(scratch_has("out"));
    }
    sw_plan_destroy(plan);
    status = SW_E_NO_MEMORY;
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_checkpoint_merge(scratch("out"), scratch("merged"), &options, NULL, &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status != SW_OK && status != SW_E_NO_MEMORY)
            fail_msg("allocation %" PRIu64 ": %s", n, err.what);
    }
    expect_same_tensors("model", "merged");
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
        CASE(a_sharded_folder_has_files_plan_manifest_and_what_is_carried),
        CASE(a_snapshot_of_links_becomes_regular_files),
        CASE(the_manifest_and_the_metadata_say_what_stands_where),
        CASE(rank_files_are_plain_safetensors_with_local_rows),
        CASE(a_merged_folder_has_an_index_and_files_up_to_the_limit),
        CASE(a_plan_that_was_just_made_serves_as_well),
        CASE(odd_tensors_come_back),
        CASE(optimizer_state_goes_along),
        CASE(a_folder_without_manifest_plan_and_config_is_merged),
        CASE(a_plan_of_another_model_is_refused),
        CASE(a_source_of_the_other_kind_is_refused),
        CASE(an_output_that_is_there_is_replaced_only_when_asked),
        CASE(options_of_size_0_are_refused),
        CASE(replicas_that_differ_are_refused_unless_one_is_picked),
        CASE(regions_that_do_not_cover_are_refused_by_name),
        CASE(work_that_is_stopped_leaves_nothing),
        CASE(memory_that_is_gone_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
