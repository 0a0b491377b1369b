/*
 * Reading config.json: spellings, nested configs, class defaults, kinds of layers, quantisation, and faults
 * that name the file and the key.
 */
#include "model/config.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

static sw_config read_text(const char *json)
{
    sw_config config = {0};
    sw_error err = {0};
    if (sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", &err) != SW_OK)
        fail_msg("%s", err.what);
    return config;
}

static void check_fault(const char *json, sw_status status, const char *what)
{
    sw_config config = {0};
    sw_error err = {0};
    assert_int_equal(sw_config_read(&config, sw_file_map_of(json, strlen(json)), "a/config.json", &err),
                     status);
    if (strstr(err.what, what) == NULL)
        fail_msg("%s says: %s", json, err.what);
    assert_null(config.arena);
}

static void check_value(const sw_config *config, sw_attr attr, int64_t value)
{
    if (!config->attributes.is_set[attr])
        fail_msg("%s has no value", sw_attr_name(attr));
    if (config->attributes.value[attr] != value)
        fail_msg("%s is %lld", sw_attr_name(attr), (long long)config->attributes.value[attr]);
}

static void names_and_dtype_are_kept_as_written(void **state)
{
    sw_config c = read_text("{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", "
                            "\"torch_dtype\": \"bfloat16\"}");
    (void)state;
    assert_string_equal(c.architecture, "Qwen2ForCausalLM");
    assert_string_equal(c.model_type, "qwen2");
    assert_string_equal(c.torch_dtype, "bfloat16");
    assert_int_equal(c.dtype, SW_DTYPE_BF16);
    assert_string_equal(c.family->name, "qwen2");
    assert_false(c.has_text_config);
    sw_config_clear(&c);
    sw_config_clear(&c);
}

static void the_dtype_may_be_spelled_in_several_ways(void **state)
{
    static const struct {
        const char *json;
        sw_dtype dtype;
    } cases[] = {
        {"{\"dtype\": \"float16\"}",                     SW_DTYPE_F16 },
        {"{\"torch_dtype\": \"torch.float32\"}",         SW_DTYPE_F32 },
        {"{\"torch_dtype\": \"half\"}",                  SW_DTYPE_F16 },
        {"{\"torch_dtype\": null}",                      SW_DTYPE_F32 },
        {"{}",                                           SW_DTYPE_F32 },
        {"{\"torch_dtype\": \"auto\"}",                  SW_DTYPE_F32 },
        {"{\"text_config\": {\"dtype\": \"bfloat16\"}}", SW_DTYPE_BF16},
    };
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_config c = read_text(cases[i].json);
        if (c.dtype != cases[i].dtype)
            fail_msg("%s gives %d", cases[i].json, (int)c.dtype);
        sw_config_clear(&c);
    }
}

static void common_spellings_serve_an_unknown_architecture(void **state)
{
    sw_config c = read_text("{\"architectures\": [\"NobodyForCausalLM\"], \"n_embd\": 64, \"n_layer\": 2, "
                            "\"n_head\": 4, \"multi_query_group_num\": 2, \"ffn_hidden_size\": 128, "
                            "\"padded_vocab_size\": 96, \"vocab_size\": 90, \"multi_query\": true}");
    (void)state;
    assert_null(c.family);
    check_value(&c, SW_ATTR_HIDDEN, 64);
    check_value(&c, SW_ATTR_LAYERS, 2);
    check_value(&c, SW_ATTR_HEADS, 4);
    check_value(&c, SW_ATTR_KV_HEADS, 2);
    check_value(&c, SW_ATTR_HEAD_DIM, 16);
    check_value(&c, SW_ATTR_INTERMEDIATE, 128);
    check_value(&c, SW_ATTR_VOCAB, 96);
    check_value(&c, SW_ATTR_MULTI_QUERY, 1);
    check_value(&c, SW_ATTR_TIED, 0);
    assert_false(c.attributes.is_set[SW_ATTR_EXPERTS]);
    sw_config_clear(&c);
}

static void null_and_auto_count_as_absent(void **state)
{
    sw_config c = read_text("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
                            "\"num_key_value_heads\": null, \"head_dim\": null, \"q_lora_rank\": null, "
                            "\"time_step_rank\": \"auto\", \"n_inner\": null}");
    (void)state;
    check_value(&c, SW_ATTR_KV_HEADS, 4);
    check_value(&c, SW_ATTR_HEAD_DIM, 16);
    check_value(&c, SW_ATTR_Q_LORA_RANK, 0);
    assert_false(c.attributes.is_set[SW_ATTR_TIME_STEP_RANK]);
    assert_false(c.attributes.is_set[SW_ATTR_INTERMEDIATE]);
    sw_config_clear(&c);
}

static void the_class_decides_what_the_config_does_not_say(void **state)
{
    sw_config gemma = read_text("{\"model_type\": \"gemma2\", \"hidden_size\": 64, "
                                "\"num_attention_heads\": 4}");
    sw_config said = read_text("{\"model_type\": \"gemma2\", \"tie_word_embeddings\": false, "
                               "\"head_dim\": 32}");
    (void)state;
    check_value(&gemma, SW_ATTR_TIED, 1);
    check_value(&gemma, SW_ATTR_HEAD_DIM, 256);
    check_value(&said, SW_ATTR_TIED, 0);
    check_value(&said, SW_ATTR_HEAD_DIM, 32);
    sw_config_clear(&gemma);
    sw_config_clear(&said);
}

static void a_key_that_is_null_does_not_get_the_number_of_its_class(void **state)
{
    sw_config absent = read_text("{\"model_type\": \"mistral\", \"num_attention_heads\": 12}");
    sw_config null = read_text("{\"model_type\": \"mistral\", \"num_attention_heads\": 12, "
                               "\"sliding_window\": null, \"max_position_embeddings\": null}");
    sw_config gpt2 = read_text("{\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_inner\": null}");
    (void)state;
    check_value(&absent, SW_ATTR_WINDOW, 4096);
    check_value(&absent, SW_ATTR_POSITIONS, 131072);
    assert_false(null.attributes.is_set[SW_ATTR_WINDOW]);
    assert_false(null.attributes.is_set[SW_ATTR_POSITIONS]);
    check_value(&gpt2, SW_ATTR_INTERMEDIATE, 32); /* what follows from another number does */
    sw_config_clear(&absent);
    sw_config_clear(&null);
    sw_config_clear(&gpt2);
}

static void an_unused_window_is_no_window(void **state)
{
    sw_config unused = read_text("{\"sliding_window\": 4096, \"use_sliding_window\": false}");
    sw_config used = read_text("{\"sliding_window\": 4096}");
    (void)state;
    assert_false(unused.attributes.is_set[SW_ATTR_WINDOW]);
    check_value(&used, SW_ATTR_WINDOW, 4096);
    sw_config_clear(&unused);
    sw_config_clear(&used);
}

static void numbers_of_the_nested_decoder_win(void **state)
{
    sw_config c = read_text("{\"model_type\": \"nobody_vl\", \"hidden_size\": 1, \"vocab_size\": 7, "
                            "\"text_config\": {\"model_type\": \"qwen3\", \"hidden_size\": 64, "
                            "\"num_attention_heads\": 4}, \"vision_config\": {\"hidden_size\": 32, "
                            "\"patch_size\": 14}}");
    (void)state;
    assert_true(c.has_text_config);
    assert_true(c.is_family_nested);
    assert_string_equal(c.family->name, "qwen3");
    check_value(&c, SW_ATTR_HIDDEN, 64);
    check_value(&c, SW_ATTR_VOCAB, 7);
    check_value(&c, SW_ATTR_HEAD_DIM, 128);
    check_value(&c, SW_ATTR_VISION_HIDDEN, 32);
    check_value(&c, SW_ATTR_VISION_PATCH, 14);
    check_value(&c, SW_ATTR_VISION_CHANNELS, 3);
    sw_config_clear(&c);
}

static void every_usual_place_of_the_decoder_is_known(void **state)
{
    static const char *const cases[] = {
        "{\"text_config\": {\"hidden_size\": 5}}",
        "{\"llm_config\": {\"hidden_size\": 5}}",
        "{\"language_config\": {\"hidden_size\": 5}}",
        "{\"thinker_config\": {\"text_config\": {\"hidden_size\": 5}}}",
    };
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_config c = read_text(cases[i]);
        assert_true(c.has_text_config);
        check_value(&c, SW_ATTR_HIDDEN, 5);
        sw_config_clear(&c);
    }
}

static void sizes_that_a_nested_config_leaves_out_are_those_of_its_class(void **state)
{
    sw_config nested = read_text("{\"text_config\": {\"model_type\": \"llama\", \"vocab_size\": 32064}}");
    sw_config plain = read_text("{\"model_type\": \"llama\", \"vocab_size\": 32064}");
    (void)state;
    check_value(&nested, SW_ATTR_HIDDEN, 4096);
    check_value(&nested, SW_ATTR_INTERMEDIATE, 11008);
    check_value(&nested, SW_ATTR_KV_HEADS, 32);
    check_value(&nested, SW_ATTR_VOCAB, 32064);
    assert_false(plain.attributes.is_set[SW_ATTR_HIDDEN]);
    sw_config_clear(&nested);
    sw_config_clear(&plain);
}

static void check_kinds(const char *json, const char *kinds)
{
    sw_config c = read_text(json);
    assert_int_equal(c.attributes.n_layer_kinds, strlen(kinds));
    for (uint32_t i = 0; i < c.attributes.n_layer_kinds; i++) {
        if ("FWL"[c.attributes.layer_kinds[i]] != kinds[i])
            fail_msg("%s: layer %u is %c", json, i, "FWL"[c.attributes.layer_kinds[i]]);
    }
    sw_config_clear(&c);
}

static void kinds_of_layers_are_said_in_many_ways(void **state)
{
    (void)state;
    check_kinds("{\"layer_types\": [\"full_attention\", \"sliding_attention\", \"linear_attention\", "
                "\"mamba\", \"attention\", \"chunked_attention\"]}",
                "FWLLFW");
    check_kinds("{\"num_hidden_layers\": 2, \"layers_block_type\": [\"mamba\", \"attention\"]}", "LF");
    check_kinds("{\"num_hidden_layers\": 3, \"attn_type_list\": [0, 0, 1]}", "LLF");
    check_kinds("{\"num_hidden_layers\": 4, \"linear_attn_config\": {\"full_attn_layers\": [3], "
                "\"kda_layers\": [1, 2, 4]}}",
                "LLFL");
    check_kinds("{\"num_hidden_layers\": 5, \"full_attention_interval\": 4}", "LLLFL");
    check_kinds("{\"num_hidden_layers\": 5, \"attn_layer_period\": 4, \"attn_layer_offset\": 1}", "LFLLL");
    check_kinds("{\"num_hidden_layers\": 4, \"sliding_window_pattern\": 3}", "WWFW");
    check_kinds("{\"num_hidden_layers\": 4}", "");
    check_kinds("{\"full_attention_interval\": 4}", "");
}

static void layers_listed_as_dense_are_kept(void **state)
{
    sw_config c = read_text("{\"num_hidden_layers\": 4, \"mlp_only_layers\": [0, 3]}");
    (void)state;
    assert_int_equal(c.attributes.n_dense_layers, 4);
    assert_int_equal(c.attributes.dense_layers[0], 1);
    assert_int_equal(c.attributes.dense_layers[1], 0);
    assert_int_equal(c.attributes.dense_layers[3], 1);
    sw_config_clear(&c);
}

static void mlx_writes_its_settings_twice_and_some_modules_have_their_own(void **state)
{
    sw_config twice = read_text("{\"quantization\": {\"group_size\": 64, \"bits\": 4, \"mode\": \"affine\", "
                                "\"b.x\": {\"bits\": 8}, \"b\": "
                                "{\"group_size\": 32, \"bits\": 6}, \"c\": false}, \"quantization_config\": "
                                "{\"group_size\": 64, \"bits\": 4}}");
    sw_config named =
        read_text("{\"quantization\": {\"bits\": 4}, \"quantization_config\": {\"quant_method\": "
                  "\"fp8\"}}");
    const sw_quantization *q = &twice.quantization;

    (void)state;
    assert_int_equal(q->method, SW_QUANTIZATION_MLX);
    assert_int_equal(q->bits, 4);
    assert_int_equal(q->n_modules, 2);
    assert_int_equal(sw_quantization_module_of(q, "b.x.weight", 3)->bits, 8);
    assert_int_equal(sw_quantization_module_of(q, "b.x.weight", 3)->group_size, 64);
    assert_int_equal(sw_quantization_module_of(q, "b.weight", 1)->group_size, 32);
    assert_null(sw_quantization_module_of(q, "b.x.weight", 2));
    assert_null(sw_quantization_module_of(q, "c", 1));
    assert_int_equal(named.quantization.method, SW_QUANTIZATION_FP8);
    sw_config_clear(&twice);
    sw_config_clear(&named);
}

static void quantisation_is_read_whatever_the_method(void **state)
{
    sw_config fp8 = read_text("{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": "
                              "[128, 64], \"modules_to_not_convert\": [\"lm_head\", \"x\"]}}");
    sw_config gptq = read_text("{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, "
                               "\"group_size\": -1, \"desc_act\": true}}");
    sw_config mxfp4 = read_text("{\"quantization_config\": {\"quant_method\": \"mxfp4\"}}");
    sw_config mlx = read_text("{\"quantization\": {\"group_size\": 64, \"bits\": 8}}");
    sw_config other = read_text("{\"quantization_config\": {\"quant_method\": \"new\"}}");
    sw_config none = read_text("{\"quantization_config\": null}");
    sw_config nested = read_text("{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", "
                                 "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, "
                                 "\"group_size\": 32}}}, \"ignore\": [\"re:.*gate\"]}}");
    (void)state;
    assert_int_equal(fp8.quantization.method, SW_QUANTIZATION_FP8);
    assert_int_equal(fp8.quantization.bits, 8);
    assert_int_equal(fp8.quantization.block_rows, 128);
    assert_int_equal(fp8.quantization.block_cols, 64);
    assert_int_equal(fp8.quantization.n_unconverted, 2);
    assert_string_equal(fp8.quantization.unconverted[0], "lm_head");
    assert_int_equal(gptq.quantization.method, SW_QUANTIZATION_GPTQ);
    assert_int_equal(gptq.quantization.group_size, -1);
    assert_true(gptq.quantization.desc_act);
    check_value(&mxfp4, SW_ATTR_MXFP4, 1);
    check_value(&gptq, SW_ATTR_MXFP4, 0);
    assert_int_equal(mlx.quantization.method, SW_QUANTIZATION_MLX);
    assert_int_equal(mlx.quantization.bits, 8);
    assert_int_equal(mlx.quantization.group_size, 64);
    assert_int_equal(other.quantization.method, SW_QUANTIZATION_OTHER);
    assert_string_equal(other.quantization.name, "new");
    assert_int_equal(none.quantization.method, SW_QUANTIZATION_NONE);
    assert_string_equal(none.quantization.name, "");
    assert_int_equal(nested.quantization.bits, 4);
    assert_int_equal(nested.quantization.group_size, 32);
    assert_string_equal(nested.quantization.unconverted[0], "re:.*gate");
    sw_config *all[] = {&fp8, &gptq, &mxfp4, &mlx, &other, &none, &nested};
    for (size_t i = 0; i < SW_COUNT(all); i++)
        sw_config_clear(all[i]);
}

static void what_is_no_json_object_is_refused_with_its_line(void **state)
{
    (void)state;
    check_fault("", SW_E_FORMAT, "a/config.json: line ");
    check_fault("{\n\"a\": 1,\n}", SW_E_FORMAT, "a/config.json: line 3: ");
    check_fault("{\n\"a\": 1,\n\"a\": 2}", SW_E_FORMAT, "a/config.json: line 3: duplicate");
    check_fault("[1]", SW_E_FORMAT, "a/config.json: line 1: not an object");
    check_fault("{} x", SW_E_FORMAT, "a/config.json: line 1: ");
    check_fault("{\"a\": 99999999999999999999}", SW_E_FORMAT, "too big integer");
}

static void numbers_that_json_has_not_count_as_not_given(void **state)
{
    sw_config c = read_text("{\"time_step_limit\": [0.0,Infinity], \"a\": -Infinity, \"b\":NaN, "
                            "\"head_dim\": NaN, \"hidden_size\": 8}");
    (void)state;
    check_value(&c, SW_ATTR_HIDDEN, 8);
    sw_config_clear(&c);
    c = read_text("{\"model_type\": \"\\\"Infinity, NaN\\\\\", \"torch_dtype\": null}");
    assert_string_equal(c.model_type, "\"Infinity, NaN\\"); /* a string is what it is */
    sw_config_clear(&c);
    check_fault("{\"a\": Infinityx}", SW_E_FORMAT, "a/config.json: line 1: ");
    check_fault("{\"a\": 1Infinity}", SW_E_FORMAT, "a/config.json: line 1: ");
    check_fault("{\n\"a\": +Infinity}", SW_E_FORMAT, "a/config.json: line 2: ");
    check_fault("{\"a\": nan}", SW_E_FORMAT, "a/config.json: line 1: ");
    check_fault("{\"a\\", SW_E_FORMAT, "a/config.json: line 1: "); /* ends inside a string */
}

static void values_of_the_wrong_kind_are_refused_by_key(void **state)
{
    static const char *const cases[][2] = {
        {"{\"hidden_size\": \"64\"}",                                      "key \"hidden_size\" is a string, not an integer"    },
        {"{\"hidden_size\": 64.5}",                                        "key \"hidden_size\" is a fraction, not an integer"  },
        {"{\"tie_word_embeddings\": \"false\"}",
         "key \"tie_word_embeddings\" is a string, not true or false"                                                           },
        {"{\"num_hidden_layers\": [1, 2]}",                                "key \"num_hidden_layers\" is a list, not an integer"},
        {"{\"tie_word_embeddings\": \"yes\"}",                             "key \"tie_word_embeddings\" is a string"            },
        {"{\"intermediate_size\": -2.0}",                                  "key \"intermediate_size\" is -2, not from 0 to "    },
        {"{\"hidden_size\": -1}",                                          "key \"hidden_size\" is -1, not from 0 to "          },
        {"{\"vocab_size\": 1099511627777}",                                "key \"vocab_size\" is 1099511627777, not from 0 to "},
        {"{\"architectures\": \"LlamaForCausalLM\"}",                      "key \"architectures\" is a string, not a list"      },
        {"{\"architectures\": [1]}",                                       "key \"architectures\" is an integer, not a string"  },
        {"{\"model_type\": 3}",                                            "key \"model_type\" is an integer, not a string"     },
        {"{\"torch_dtype\": true}",                                        "key \"torch_dtype\" is a boolean, not a string"     },
        {"{\"text_config\": [1]}",                                         "key \"text_config\" is a list, not an object"       },
        {"{\"layer_types\": \"full\"}",                                    "key \"layer_types\" is a string, not a list"        },
        {"{\"layer_types\": [\"mamba\"], \"num_hidden_layers\": 2}",
         "key \"layer_types\" has 1 entries for 2 layers"                                                                       },
        {"{\"model_type\": \"mpt\", \"attn_config\": {\"attn_type\": 1}}",
         "key \"attn_config.attn_type\" is an integer, not a string"                                                            },
        {"{\"attn_type_list\": [2]}",                                      "key \"attn_type_list\" is 2, not from 0 to 1"       },
        {"{\"num_hidden_layers\": 2, \"mlp_only_layers\": [2]}",
         "key \"mlp_only_layers\" is 2, not from 0 to 1"                                                                        },
        {"{\"num_hidden_layers\": 2, \"full_attention_interval\": 0}",
         "key \"full_attention_interval\" is 0, not from 1"                                                                     },
        {"{\"quantization_config\": \"fp8\"}",                             "key \"quantization_config\" is a string"            },
        {"{\"quantization_config\": {\"weight_block_size\": [128]}}",
         "key \"weight_block_size\" is a list, not a list of two integers"                                                      },
        {"{\"quantization_config\": {\"weight_block_size\": [0, 1]}}",
         "key \"weight_block_size\" is 0, not from 1"                                                                           },
        {"{\"quantization_config\": {\"desc_act\": 1}}",                   "key \"desc_act\" is an integer, not a boolean"      },
        {"{\"quantization_config\": {\"modules_to_not_convert\": [1]}}",
         "key \"modules_to_not_convert\" is an integer, not a string"                                                           },
    };
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++)
        check_fault(cases[i][0], SW_E_FORMAT, cases[i][1]);
}

static void keys_that_nobody_uses_may_hold_anything(void **state)
{
    sw_config c = read_text("{\"rope_scaling\": {\"factor\": [1.5]}, \"eos_token_id\": [1, 2], \"z\": 1e9}");
    (void)state;
    assert_null(c.family);
    sw_config_clear(&c);
}

static void too_many_layers_to_list_are_refused(void **state)
{
    (void)state;
    check_fault("{\"num_hidden_layers\": 1000000000000, \"full_attention_interval\": 4}", SW_E_LIMIT,
                "1000000000000 layers are more than 1000000");
}

static void a_file_above_the_limit_is_refused(void **state)
{
    size_t n = SW_CONFIG_MAX_BYTES + 1;
    char *text = malloc(n);
    sw_config config = {0};
    sw_error err = {0};
    (void)state;
    assert_non_null(text);
    memset(text, ' ', n);
    assert_int_equal(sw_config_read(&config, sw_file_map_of(text, n), "c.json", &err), SW_E_LIMIT);
    assert_string_equal(err.what, "c.json: 4194305 bytes are more than 4194304");
    free(text);
}

static void running_out_of_memory_is_said_and_leaks_nothing(void **state)
{
    static const char json[] =
        "{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": 100000, "
        "\"full_attention_interval\": 4, \"mlp_only_layers\": [3], \"torch_dtype\": \"bfloat16\", "
        "\"quantization_config\": {\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"lm_head\"]}}";
    int64_t before = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;
    (void)state;
    for (uint64_t n = 1; n < 100 && status != SW_OK; n++) {
        sw_config config = {0};
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_string_equal(err.what, "config.json: out of memory");
        }
        sw_config_clear(&config);
        assert_int_equal(sw_alloc_live(), before);
    }
    assert_int_equal(status, SW_OK);
}

static void a_number_that_is_no_number_counts_as_not_given(void **state)
{
    static const char *const cases[][2] = {
        {"'intermediate_size': [16, 32]",                                              "key \"intermediate_size\" is a list ([16, 32]), not an integer"},
        {"'moe_layer_freq': [0, 1, 1]",                                                "key \"moe_layer_freq\" is a list ([0, 1, 1])"                  },
        {"'sliding_window': [128, null]",                                              "key \"sliding_window\" is a list"                              },
        {"'bias': 'none'",                                                             "key \"bias\" is a string (\"none\"), not true or false"        },
        {"'expand': 1.5",                                                              "key \"expand\" is a fraction (1.5)"                            },
        {"'num_key_value_heads': [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]",
         "key \"num_key_value_heads\" is a list ([4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4...)"                                                     },
    };
    static const sw_attr attrs[] = {SW_ATTR_INTERMEDIATE, SW_ATTR_MOE_PERIOD,   SW_ATTR_WINDOW,
                                    SW_ATTR_MLP_BIAS,     SW_ATTR_MIXER_EXPAND, SW_ATTR_KV_HEADS};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "{'num_attention_heads': 8, %s}", cases[i][0]);
        for (char *at = text; *at != '\0'; at++)
            *at = (char)(*at == '\'' ? '"' : *at);
        sw_config c = read_text(text);
        assert_false(c.attributes.is_set[attrs[i]]); /* no default either */
        assert_non_null(c.ignored);
        assert_null(c.ignored->next);
        if (strstr(c.ignored->text, cases[i][1]) == NULL)
            fail_msg("%s, not %s", c.ignored->text, cases[i][1]);
        sw_config_clear(&c);
    }
}

static void a_fraction_without_a_rest_is_an_integer(void **state)
{
    sw_config c = read_text("{\"expand\": 2.0, \"num_attention_heads\": 8}");
    (void)state;
    assert_int_equal(c.attributes.value[SW_ATTR_MIXER_EXPAND], 2);
    assert_null(c.ignored);
    sw_config_clear(&c);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_dtype_are_kept_as_written),
        cmocka_unit_test(the_dtype_may_be_spelled_in_several_ways),
        cmocka_unit_test(common_spellings_serve_an_unknown_architecture),
        cmocka_unit_test(null_and_auto_count_as_absent),
        cmocka_unit_test(the_class_decides_what_the_config_does_not_say),
        cmocka_unit_test(a_key_that_is_null_does_not_get_the_number_of_its_class),
        cmocka_unit_test(an_unused_window_is_no_window),
        cmocka_unit_test(numbers_of_the_nested_decoder_win),
        cmocka_unit_test(every_usual_place_of_the_decoder_is_known),
        cmocka_unit_test(sizes_that_a_nested_config_leaves_out_are_those_of_its_class),
        cmocka_unit_test(kinds_of_layers_are_said_in_many_ways),
        cmocka_unit_test(layers_listed_as_dense_are_kept),
        cmocka_unit_test(quantisation_is_read_whatever_the_method),
        cmocka_unit_test(mlx_writes_its_settings_twice_and_some_modules_have_their_own),
        cmocka_unit_test(what_is_no_json_object_is_refused_with_its_line),
        cmocka_unit_test(numbers_that_json_has_not_count_as_not_given),
        cmocka_unit_test(values_of_the_wrong_kind_are_refused_by_key),
        cmocka_unit_test(keys_that_nobody_uses_may_hold_anything),
        cmocka_unit_test(too_many_layers_to_list_are_refused),
        cmocka_unit_test(a_file_above_the_limit_is_refused),
        cmocka_unit_test(running_out_of_memory_is_said_and_leaks_nothing),
        cmocka_unit_test(a_number_that_is_no_number_counts_as_not_given),
        cmocka_unit_test(a_fraction_without_a_rest_is_an_integer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
