/* Writers of the benchmark inputs. A list is told once, as calls of emit(); the form decides what a call
 * writes. */
#include "inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct list_writer {
    FILE *out;
    bench_form form;
    uint64_t n_names;
    uint64_t data_bytes; /* where the next tensor begins */
} list_writer;

static uint64_t bytes_of(const char *dtype)
{
    if (strcmp(dtype, "F8_E4M3") == 0)
        return 1;
    return strcmp(dtype, "BF16") == 0 || strcmp(dtype, "F16") == 0 ? 2 : 4;
}

/* One tensor of `rows` x `cols`; cols 0: one dim. The name is a format. */
__attribute__((format(printf, 5, 6))) static void emit(list_writer *w, const char *dtype, uint64_t rows,
                                                       uint64_t cols, const char *name, ...)
{
    char text[256];
    va_list args;

    va_start(args, name);
    (void)vsnprintf(text, sizeof text, name, args);
    va_end(args);
    uint64_t end = w->data_bytes + rows * (cols == 0 ? 1 : cols) * bytes_of(dtype);
    if (w->form == BENCH_TSV) {
        (void)fprintf(w->out, "%s\t%s\t%" PRIu64, text, dtype, rows);
        if (cols != 0)
            (void)fprintf(w->out, "x%" PRIu64, cols);
        (void)fputc('\n', w->out);
    } else {
        (void)fprintf(w->out, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64, w->n_names == 0 ? "{" : ",",
                      text, dtype, rows);
        if (cols != 0)
            (void)fprintf(w->out, ",%" PRIu64, cols);
        (void)fprintf(w->out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", w->data_bytes, end);
    }
    w->data_bytes = end;
    w->n_names++;
}

/* An FP8 matrix and the scales of its 128 x 128 blocks. */
static void emit_fp8(list_writer *w, uint64_t out, uint64_t in, const char *prefix, const char *name)
{
    emit(w, "F8_E4M3", out, in, "%s%s.weight", prefix, name);
    emit(w, "F32", (out + 127) / 128, (in + 127) / 128, "%s%s.weight_scale_inv", prefix, name);
}

/* A matrix of four-bit numbers as GPTQ stores it, groups of 128. */
static void emit_gptq(list_writer *w, uint64_t out, uint64_t in, const char *prefix, const char *name)
{
    emit(w, "I32", in / 8, out, "%s%s.qweight", prefix, name);
    emit(w, "F16", in / 128, out, "%s%s.scales", prefix, name);
    emit(w, "I32", in / 128, out / 8, "%s%s.qzeros", prefix, name);
}

static void list_dense(list_writer *w)
{
    emit(w, "BF16", 128256, 4096, "model.embed_tokens.weight");
    for (int layer = 0; layer < 32; layer++) {
        char at[64];
        (void)snprintf(at, sizeof at, "model.layers.%d.", layer);
        emit(w, "BF16", 4096, 4096, "%sself_attn.q_proj.weight", at);
        emit(w, "BF16", 1024, 4096, "%sself_attn.k_proj.weight", at);
        emit(w, "BF16", 1024, 4096, "%sself_attn.v_proj.weight", at);
        emit(w, "BF16", 4096, 4096, "%sself_attn.o_proj.weight", at);
        emit(w, "BF16", 14336, 4096, "%smlp.gate_proj.weight", at);
        emit(w, "BF16", 14336, 4096, "%smlp.up_proj.weight", at);
        emit(w, "BF16", 4096, 14336, "%smlp.down_proj.weight", at);
        emit(w, "BF16", 4096, 0, "%sinput_layernorm.weight", at);
        emit(w, "BF16", 4096, 0, "%spost_attention_layernorm.weight", at);
    }
    emit(w, "BF16", 4096, 0, "model.norm.weight");
    emit(w, "BF16", 128256, 4096, "lm_head.weight");
}

static void list_mla(list_writer *w, const char *at)
{
    emit_fp8(w, 1536, 7168, at, "self_attn.q_a_proj");
    emit(w, "BF16", 1536, 0, "%sself_attn.q_a_layernorm.weight", at);
    emit_fp8(w, 24576, 1536, at, "self_attn.q_b_proj");
    emit_fp8(w, 576, 7168, at, "self_attn.kv_a_proj_with_mqa");
    emit(w, "BF16", 512, 0, "%sself_attn.kv_a_layernorm.weight", at);
    emit_fp8(w, 32768, 512, at, "self_attn.kv_b_proj");
    emit_fp8(w, 7168, 16384, at, "self_attn.o_proj");
}

static void list_fp8_mlp(list_writer *w, const char *at, const char *mlp, uint64_t width)
{
    char prefix[160];

    (void)snprintf(prefix, sizeof prefix, "%s%s.", at, mlp);
    emit_fp8(w, width, 7168, prefix, "gate_proj");
    emit_fp8(w, width, 7168, prefix, "up_proj");
    emit_fp8(w, 7168, width, prefix, "down_proj");
}

static void list_router(list_writer *w, const char *at, uint64_t n_experts)
{
    emit(w, "BF16", n_experts, 7168, "%smlp.gate.weight", at);
    emit(w, "F32", n_experts, 0, "%smlp.gate.e_score_correction_bias", at);
}

static void list_layer_norms(list_writer *w, const char *at)
{
    emit(w, "BF16", 7168, 0, "%sinput_layernorm.weight", at);
    emit(w, "BF16", 7168, 0, "%spost_attention_layernorm.weight", at);
}

static void list_deepseek_layer(list_writer *w, const char *at, bool is_dense)
{
    list_mla(w, at);
    if (is_dense) {
        list_fp8_mlp(w, at, "mlp", 18432);
    } else {
        for (int expert = 0; expert < 256; expert++) {
            char mlp[64];
            (void)snprintf(mlp, sizeof mlp, "mlp.experts.%d", expert);
            list_fp8_mlp(w, at, mlp, 2048);
        }
        list_router(w, at, 256);
        list_fp8_mlp(w, at, "mlp.shared_experts", 2048);
    }
    list_layer_norms(w, at);
}

static void list_deepseek(list_writer *w)
{
    emit(w, "BF16", 129280, 7168, "model.embed_tokens.weight");
    for (int layer = 0; layer <= 61; layer++) {
        char at[64];
        (void)snprintf(at, sizeof at, "model.layers.%d.", layer);
        list_deepseek_layer(w, at, layer < 3);
    }
    emit(w, "BF16", 129280, 7168, "model.layers.61.embed_tokens.weight");
    emit(w, "BF16", 7168, 0, "model.layers.61.enorm.weight");
    emit(w, "BF16", 7168, 0, "model.layers.61.hnorm.weight");
    emit(w, "BF16", 7168, 14336, "model.layers.61.eh_proj.weight");
    emit(w, "BF16", 7168, 0, "model.layers.61.shared_head.norm.weight");
    emit(w, "BF16", 129280, 7168, "model.layers.61.shared_head.head.weight");
    emit(w, "BF16", 7168, 0, "model.norm.weight");
    emit(w, "BF16", 129280, 7168, "lm_head.weight");
}

static void list_many_experts(list_writer *w, uint64_t n_experts)
{
    emit(w, "BF16", 129280, 7168, "model.embed_tokens.weight");
    for (int layer = 0; layer < 61; layer++) {
        char at[64];
        (void)snprintf(at, sizeof at, "model.layers.%d.", layer);
        emit(w, "BF16", 1536, 7168, "%sself_attn.q_a_proj.weight", at);
        emit(w, "BF16", 1536, 0, "%sself_attn.q_a_layernorm.weight", at);
        emit(w, "BF16", 24576, 1536, "%sself_attn.q_b_proj.weight", at);
        emit(w, "BF16", 576, 7168, "%sself_attn.kv_a_proj_with_mqa.weight", at);
        emit(w, "BF16", 512, 0, "%sself_attn.kv_a_layernorm.weight", at);
        emit(w, "BF16", 32768, 512, "%sself_attn.kv_b_proj.weight", at);
        emit(w, "BF16", 7168, 16384, "%sself_attn.o_proj.weight", at);
        for (uint64_t expert = 0; expert < n_experts; expert++) {
            char prefix[160];
            (void)snprintf(prefix, sizeof prefix, "%smlp.experts.%" PRIu64 ".", at, expert);
            emit_gptq(w, 2048, 7168, prefix, "gate_proj");
            emit_gptq(w, 2048, 7168, prefix, "up_proj");
            emit_gptq(w, 7168, 2048, prefix, "down_proj");
        }
        list_router(w, at, n_experts);
        list_layer_norms(w, at);
    }
    emit(w, "BF16", 7168, 0, "model.norm.weight");
    emit(w, "BF16", 129280, 7168, "lm_head.weight");
}

static const char dense_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 4096,\n"
    " \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, "
    "\"intermediate_size\": 14336,\n"
    " \"vocab_size\": 128256, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}\n";

/* Sizes of DeepSeek-V3; the number of experts, dense layers, MTP layers and the quantisation vary. */
static const char deepseek_config[] =
    "{\"architectures\": [\"DeepseekV3ForCausalLM\"], \"model_type\": \"deepseek_v3\", \"hidden_size\": "
    "7168,\n"
    " \"num_hidden_layers\": 61, \"num_attention_heads\": 128, \"num_key_value_heads\": 128, "
    "\"intermediate_size\": 18432,\n"
    " \"moe_intermediate_size\": 2048, \"num_experts_per_tok\": 8, \"moe_layer_freq\": 1, \"q_lora_rank\": "
    "1536,\n"
    " \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128,\n"
    " \"vocab_size\": 129280, \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\",\n"
    " \"n_routed_experts\": %" PRIu64 ", \"n_shared_experts\": %d, \"first_k_dense_replace\": %d,\n"
    " \"num_nextn_predict_layers\": %d, \"quantization_config\": %s}\n";

enum {
    MANY_DENSE_NAMES = 3 + 61 * 11,    /* names of list_many_experts() that are no expert's */
    MANY_NAMES_AN_EXPERT = 61 * 3 * 3, /* one expert in every layer */
};

static uint64_t experts_for(uint64_t n_names)
{
    uint64_t n = n_names > MANY_DENSE_NAMES ? (n_names - MANY_DENSE_NAMES) / MANY_NAMES_AN_EXPERT : 0;
    return (n + 4) / 8 * 8; /* the nearest multiple of the ep of the bench */
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return file;
}

static bool write_config(const char *folder, bench_model model, uint64_t n_experts)
{
    FILE *file = open_in(folder, "config.json");

    if (file == NULL)
        return false;
    if (model == BENCH_DENSE)
        (void)fputs(dense_config, file);
    else if (model == BENCH_DEEPSEEK)
        (void)fprintf(file, deepseek_config, (uint64_t)256, 1, 3, 1,
                      "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"weight_block_size\": [128, 128]}");
    else
        (void)fprintf(file, deepseek_config, n_experts, 0, 0, 0,
                      "{\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 128, \"desc_act\": false}");
    return fclose(file) == 0;
}

/* Put the length of the header in front and give the file the size that its tensors would have. */
static bool finish_safetensors(list_writer *w)
{
    uint8_t length[8];

    (void)fputc('}', w->out);
    long end = ftell(w->out);
    if (end < 8 || fseek(w->out, 0, SEEK_SET) != 0)
        return false;
    uint64_t header = (uint64_t)end - 8;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(header >> (8 * i));
    return fwrite(length, 1, 8, w->out) == 8 && fflush(w->out) == 0 &&
           ftruncate(fileno(w->out), (off_t)((uint64_t)end + w->data_bytes)) == 0;
}

uint64_t bench_write_input(const char *folder, bench_model model, bench_form form, uint64_t n_names)
{
    uint64_t n_experts = experts_for(n_names);
    list_writer w = {.form = form};

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        (void)fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return 0;
    }
    if (!write_config(folder, model, n_experts))
        return 0;
    w.out = open_in(folder, form == BENCH_TSV ? "params.tsv" : "model.safetensors");
    if (w.out == NULL)
        return 0;
    if (form == BENCH_SAFETENSORS)
        (void)fwrite("\0\0\0\0\0\0\0\0", 1, 8, w.out);
    if (model == BENCH_DENSE)
        list_dense(&w);
    else if (model == BENCH_DEEPSEEK)
        list_deepseek(&w);
    else
        list_many_experts(&w, n_experts);
    bool is_ok = form == BENCH_TSV || finish_safetensors(&w);
    is_ok = ferror(w.out) == 0 && is_ok;
    is_ok = fclose(w.out) == 0 && is_ok;
    if (!is_ok)
        (void)fprintf(stderr, "%s: could not be written: %s\n", folder, strerror(errno));
    return is_ok ? w.n_names : 0;
}
