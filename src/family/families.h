/*
 * Declarations of every family table, for the table's own file and for the list in families.c. A new family
 * is one file, one line here and one line there.
 */
#ifndef SW_FAMILY_FAMILIES_H
#define SW_FAMILY_FAMILIES_H

#include "family/family.h"

extern const sw_family sw_family_baichuan;
extern const sw_family sw_family_bloom;
extern const sw_family sw_family_chatglm;
extern const sw_family sw_family_codegen;
extern const sw_family sw_family_cohere;
extern const sw_family sw_family_cohere2;
extern const sw_family sw_family_dbrx;
extern const sw_family sw_family_deepseek_v2;
extern const sw_family sw_family_deepseek_v3;
extern const sw_family sw_family_falcon;
extern const sw_family sw_family_gemma;
extern const sw_family sw_family_gemma2;
extern const sw_family sw_family_gemma3;
extern const sw_family sw_family_glm;
extern const sw_family sw_family_glm4;
extern const sw_family sw_family_glm4_moe;
extern const sw_family sw_family_gpt2;
extern const sw_family sw_family_gpt_bigcode;
extern const sw_family sw_family_gpt_neo;
extern const sw_family sw_family_gpt_neox;
extern const sw_family sw_family_gpt_oss;
extern const sw_family sw_family_gptj;
extern const sw_family sw_family_granite;
extern const sw_family sw_family_granitemoe;
extern const sw_family sw_family_internlm2;
extern const sw_family sw_family_jamba;
extern const sw_family sw_family_kimi_linear;
extern const sw_family sw_family_llama;
extern const sw_family sw_family_llama4;
extern const sw_family sw_family_llava;
extern const sw_family sw_family_mamba;
extern const sw_family sw_family_minicpm;
extern const sw_family sw_family_minimax;
extern const sw_family sw_family_mistral;
extern const sw_family sw_family_mixtral;
extern const sw_family sw_family_mpt;
extern const sw_family sw_family_olmo;
extern const sw_family sw_family_olmo2;
extern const sw_family sw_family_olmoe;
extern const sw_family sw_family_opt;
extern const sw_family sw_family_phi;
extern const sw_family sw_family_phi3;
extern const sw_family sw_family_qwen;
extern const sw_family sw_family_qwen2;
extern const sw_family sw_family_qwen2_moe;
extern const sw_family sw_family_qwen3;
extern const sw_family sw_family_qwen3_moe;
extern const sw_family sw_family_qwen3_next;
extern const sw_family sw_family_smollm3;
extern const sw_family sw_family_stablelm;
extern const sw_family sw_family_starcoder2;

#endif
