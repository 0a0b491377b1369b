/*
 * The corpus of real models ($SW_SHARED/corpus, or ../shared/corpus beside the project): configs and
 * parameter lists. Tests that need it skip with a printed reason when it is not there.
 */
#ifndef SW_TEST_CORPUS_H
#define SW_TEST_CORPUS_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/params_tsv.h"
#include "model/config.h"
#include "shared.h"

/* Every model of the corpus; a pointer into it is the state of a test. */
static const char *corpus_models[] = {
    "baichuan2-7b",
    "bloom-560m",
    "chatglm3-6b",
    "command-r-plus-104b",
    "dbrx",
    "deepseek-v2-lite",
    "deepseek-v3",
    "falcon-40b",
    "falcon-7b",
    "gemma-2-2b",
    "gemma-2-9b",
    "gemma-2b",
    "gemma-3-1b",
    "glm-4-9b-hf",
    "glm-4.5-air",
    "gpt-j-6b",
    "gpt-neox-20b",
    "gpt-oss-20b",
    "gpt2",
    "granite-3.1-1b-a400m",
    "internlm2.5-7b",
    "jamba-v0.1",
    "kimi-k2",
    "kimi-linear-48b-a3b",
    "llama-2-13b",
    "llama-2-7b",
    "llama-3.1-70b",
    "llama-3.1-8b",
    "llama-3.2-1b",
    "llama-3.2-3b",
    "llama-4-scout-17b-16e",
    "llava-1.5-7b",
    "mamba-130m",
    "minicpm-2b",
    "minimax-text-01",
    "mistral-7b-v0.1",
    "mistral-7b-v0.3",
    "mixtral-8x7b-v0.1",
    "mpt-7b",
    "olmo-1b",
    "olmo2-32b",
    "olmo2-7b",
    "olmoe-1b-7b",
    "opt-6.7b",
    "phi-1",
    "phi-2",
    "phi-3.5-mini",
    "phi-4-mini",
    "pythia-410m",
    "qwen-1.8b",
    "qwen1.5-1.8b",
    "qwen1.5-moe-a2.7b",
    "qwen2-0.5b",
    "qwen2-7b",
    "qwen2.5-3b",
    "qwen2.5-7b",
    "qwen3-0.6b",
    "qwen3-30b-a3b",
    "qwen3-8b",
    "qwen3-next-80b-a3b",
    "santacoder-1.1b",
    "smollm-1.7b",
    "smollm-135m",
    "smollm3-3b",
    "stablelm-3b-4e1t",
    "starcoder2-7b",
    "tinyllama-1.1b-chat-v1.0",
};

enum { CORPUS_N_MODELS = sizeof corpus_models / sizeof corpus_models[0] };

static inline void corpus_path(char *out, size_t capacity, const char *model, const char *file)
{
    char name[256];

    (void)snprintf(name, sizeof name, "corpus/%s/%s", model, file);
    shared_path(out, capacity, name);
}

/* A file of the corpus; skips the running test when there is no corpus. */
static inline sw_file_map corpus_open(const char *path)
{
    sw_file_map map = {0};
    sw_error err = {0};
    need_shared("corpus");
    if (sw_file_map_open(&map, path, 1U << 30, &err) != SW_OK)
        fail_msg("%s", err.what);
    return map;
}

static inline void corpus_config(sw_config *out, const char *model)
{
    char path[512];
    sw_error err = {0};
    corpus_path(path, sizeof path, model, "config.json");
    sw_file_map map = corpus_open(path);
    if (sw_config_read(out, map, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_file_map_close(&map);
}

static inline void corpus_params(sw_tensor_list *out, const char *model)
{
    char path[512];
    sw_error err = {0};
    corpus_path(path, sizeof path, model, "params.tsv");
    sw_file_map map = corpus_open(path);
    if (sw_tensor_list_init(out, (size_t)1 << 30, &err) != SW_OK ||
        sw_params_tsv_read(out, map, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_file_map_close(&map);
}

/* The pattern of a name: segments of digits replaced by '#'. Returns its length. */
static inline size_t corpus_pattern(const char *name, char *out, size_t capacity)
{
    size_t n = 0;
    while (*name != '\0' && n + 2 < capacity) {
        size_t digits = strspn(name, "0123456789");
        bool is_number = digits > 0 && (name[digits] == '.' || name[digits] == '\0');
        size_t length = strcspn(name, ".");
        if (length + n + 2 > capacity)
            break;
        if (is_number)
            out[n++] = '#';
        else
            memcpy(out + n, name, length);
        n += is_number ? 0 : length;
        name += length;
        if (*name == '.')
            out[n++] = *name++;
    }
    out[n] = '\0';
    return n;
}

#endif
