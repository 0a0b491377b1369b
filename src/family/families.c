/*
 * The list of families, in the order in which they are tried. Architectures and model types of two families
 * must not meet: a test checks it.
 */
#include "family/families.h"

#include <stddef.h>

// clang-format off
const sw_family *const sw_families[] = {
    &sw_family_llama,
    &sw_family_mistral,
    &sw_family_qwen2,
    &sw_family_qwen3,
    &sw_family_qwen2_moe,
    &sw_family_qwen3_moe,
    &sw_family_mixtral,
    &sw_family_deepseek_v2,
    &sw_family_deepseek_v3,
    &sw_family_glm4_moe,
    &sw_family_gemma,
    &sw_family_gemma2,
    &sw_family_gemma3,
    &sw_family_olmo,
    &sw_family_olmo2,
    &sw_family_olmoe,
    &sw_family_smollm3,
    &sw_family_baichuan,
    &sw_family_bloom,
    &sw_family_chatglm,
    &sw_family_codegen,
    &sw_family_cohere,
    &sw_family_cohere2,
    &sw_family_dbrx,
    &sw_family_falcon,
    &sw_family_glm,
    &sw_family_glm4,
    &sw_family_gpt2,
    &sw_family_gpt_bigcode,
    &sw_family_gpt_neo,
    &sw_family_gpt_neox,
    &sw_family_gpt_oss,
    &sw_family_gptj,
    &sw_family_granite,
    &sw_family_granitemoe,
    &sw_family_internlm2,
    &sw_family_jamba,
    &sw_family_kimi_linear,
    &sw_family_llama4,
    &sw_family_llava,
    &sw_family_mamba,
    &sw_family_minicpm,
    &sw_family_minimax,
    &sw_family_mpt,
    &sw_family_opt,
    &sw_family_phi,
    &sw_family_phi3,
    &sw_family_qwen,
    &sw_family_qwen3_next,
    &sw_family_stablelm,
    &sw_family_starcoder2,
    NULL,
};
// clang-format on
