/*
 * Names, shapes and dtypes from a config alone: every model of the corpus must come out as its checkpoint is,
 * and a config that does not give enough must be refused by name.
 */
#include "model/generate.h"

#include "base/alloc.h"
#include "base/status.h"
#include "corpus.h"

/* Parameters that a checkpoint holds although its config says otherwise. */
static const struct {
    const char *model;
    const char *name;
} kept[] = {
    {"qwen3-0.6b", "lm_head.weight"}, /* tie_word_embeddings is true, the head is saved all the same */
    {"falcon-7b",  "lm_head.weight"}, /* tied by the class default, saved all the same */
    {"falcon-40b", "lm_head.weight"}, /* likewise */
};

static bool is_kept(const char *model, const char *name)
{
    for (size_t i = 0; i < SW_COUNT(kept); i++) {
        if (strcmp(kept[i].model, model) == 0 && strcmp(kept[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_optional(const sw_family *family, const char *name)
{
    char pattern[512];
    size_t length = corpus_pattern(name, pattern, sizeof pattern);
    const sw_family_row *row = sw_family_match(family, pattern, length, NULL);
    return row != NULL && (row->flags & SW_ROW_OPTIONAL) != 0;
}

static void check_same(const char *model, const sw_tensor_entry *made, const sw_tensor_entry *real)
{
    if (real == NULL) {
        fail_msg("%s: %s is generated, and not in the checkpoint", model, made->name);
        return;
    }
    if (made->dtype != real->dtype)
        fail_msg("%s: %s is generated as %s, and is %s", model, made->name, sw_dtype_name(made->dtype),
                 sw_dtype_name(real->dtype));
    bool is_same = made->shape->n_dims == real->shape->n_dims;
    for (uint32_t i = 0; i < made->shape->n_dims && is_same; i++) {
        if (made->shape->dims[i] != real->shape->dims[i])
            fail_msg("%s: dim %u of %s is generated as %llu, and is %llu", model, i, made->name,
                     (unsigned long long)made->shape->dims[i], (unsigned long long)real->shape->dims[i]);
    }
    if (!is_same)
        fail_msg("%s: %s is generated with %u dims", model, made->name, made->shape->n_dims);
}

static void follows_from_its_config(void **state)
{
    const char *model = *(const char **)*state;
    sw_tensor_list real = {0};
    sw_tensor_list made = {0};
    sw_config config = {0};
    sw_error err = {0};

    corpus_config(&config, model);
    corpus_params(&real, model);
    assert_non_null(config.family);
    assert_int_equal(sw_tensor_list_init(&made, (size_t)1 << 30, &err), SW_OK);
    if (sw_generate_tensors(&made, config.family, &config, &err) != SW_OK)
        fail_msg("%s: %s", model, err.what);
    for (size_t i = 0; i < made.n_tensors; i++) {
        const sw_tensor_entry *entry = &made.tensors[i];
        check_same(model, entry, sw_tensor_list_find(&real, entry->name, entry->name_length));
    }
    for (size_t i = 0; i < real.n_tensors; i++) {
        const sw_tensor_entry *entry = &real.tensors[i];
        if (sw_tensor_list_find(&made, entry->name, entry->name_length) == NULL &&
            !is_kept(model, entry->name) && !is_optional(config.family, entry->name))
            fail_msg("%s: %s is in the checkpoint, and not generated", model, entry->name);
    }
    sw_tensor_list_clear(&made);
    sw_tensor_list_clear(&real);
    sw_config_clear(&config);
}

/* Scales of FP8 blocks go with their weight, and need no row. */
static size_t without_companion(const char *pattern, size_t length)
{
    static const char ending[] = "_scale_inv";
    size_t n = sizeof ending - 1;
    return length > n && strcmp(pattern + length - n, ending) == 0 ? length - n : length;
}

static void finds_a_row_for_every_name(void **state)
{
    const char *model = *(const char **)*state;
    sw_tensor_list real = {0};
    sw_config config = {0};

    corpus_config(&config, model);
    corpus_params(&real, model);
    assert_non_null(config.family);
    for (size_t i = 0; i < real.n_tensors; i++) {
        char pattern[512];
        int cut = 1;
        size_t length = corpus_pattern(real.tensors[i].name, pattern, sizeof pattern);
        length = without_companion(pattern, length);
        if (sw_family_match(config.family, pattern, length, &cut) == NULL || cut != 0)
            fail_msg("%s: no row of %s is named %s", model, config.family->name, pattern);
    }
    sw_tensor_list_clear(&real);
    sw_config_clear(&config);
}

/* ---- small configs ---- */

typedef struct made_model {
    sw_config config;
    sw_tensor_list list;
    sw_status status;
    sw_error err;
} made_model;

static void make(made_model *out, const char *json)
{
    *out = (made_model){.status = SW_OK};
    sw_file_map map = sw_file_map_of(json, strlen(json));
    if (sw_config_read(&out->config, map, "config.json", &out->err) != SW_OK)
        fail_msg("%s", out->err.what);
    assert_int_equal(sw_tensor_list_init(&out->list, (size_t)1 << 26, &out->err), SW_OK);
    out->status = sw_generate_tensors(&out->list, out->config.family, &out->config, &out->err);
}

static void clear(made_model *model)
{
    sw_tensor_list_clear(&model->list);
    sw_config_clear(&model->config);
}

#define TINY_SIZES                                                                                           \
    "\"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 16, "  \
    "\"vocab_size\": 32"

static void parameters_stand_in_model_order(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", " TINY_SIZES "}");
    assert_int_equal(m.status, SW_OK);
    assert_int_equal(m.list.n_tensors, 21);
    assert_string_equal(m.list.tensors[0].name, "model.embed_tokens.weight");
    assert_string_equal(m.list.tensors[1].name, "model.layers.0.self_attn.q_proj.weight");
    assert_string_equal(m.list.tensors[10].name, "model.layers.1.self_attn.q_proj.weight");
    assert_string_equal(m.list.tensors[19].name, "model.norm.weight");
    assert_string_equal(m.list.tensors[20].name, "lm_head.weight");
    assert_int_equal(m.list.tensors[20].dtype, SW_DTYPE_F32);
    clear(&m);
}

static void experts_stand_one_after_the_other(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"mixtral\", \"num_local_experts\": 2, " TINY_SIZES "}");
    assert_int_equal(m.status, SW_OK);
    assert_string_equal(m.list.tensors[6].name, "model.layers.0.block_sparse_moe.experts.0.w1.weight");
    assert_string_equal(m.list.tensors[8].name, "model.layers.0.block_sparse_moe.experts.0.w2.weight");
    assert_string_equal(m.list.tensors[9].name, "model.layers.0.block_sparse_moe.experts.1.w1.weight");
    clear(&m);
}

static void a_missing_size_is_refused_with_its_key(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 2, "
             "\"num_attention_heads\": 2, \"vocab_size\": 32}");
    assert_int_equal(m.status, SW_E_FORMAT);
    assert_string_equal(m.err.what, "cannot generate model.layers.#.mlp.gate_proj.weight: expression "
                                    "\"intermediate, hidden\": attribute intermediate has no value");
    assert_string_equal(m.err.help, "add intermediate_size to the config");
    clear(&m);
}

static void a_size_of_zero_is_refused(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 2, \"vocab_size\": 0, "
             "\"num_attention_heads\": 2, \"intermediate_size\": 16}");
    assert_int_equal(m.status, SW_E_FORMAT);
    assert_non_null(strstr(m.err.what, "extent 0 of \"vocab, hidden\" is 0"));
    clear(&m);
}

static void an_unknown_architecture_is_refused_by_name(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"architectures\": [\"NobodyForCausalLM\"], \"model_type\": \"nobody\"}");
    assert_int_equal(m.status, SW_E_FORMAT);
    assert_non_null(strstr(m.err.what, "no family is known for architecture \"NobodyForCausalLM\""));
    clear(&m);
}

static void more_parameters_than_the_limit_are_refused(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", \"num_hidden_layers\": 1000000000, \"hidden_size\": 8, "
             "\"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 32}");
    assert_int_equal(m.status, SW_E_LIMIT);
    assert_non_null(strstr(m.err.what, "would stand 1000000000 times: more than 1000000"));
    clear(&m);
}

static void a_product_beyond_64_bits_is_refused(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 1099511627776, "
             "\"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 1099511627776}");
    assert_int_equal(m.status, SW_E_LIMIT);
    clear(&m);
}

static void a_quantisation_whose_names_do_not_follow_is_refused(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": "
             "4}, " TINY_SIZES "}");
    assert_int_equal(m.status, SW_E_FORMAT);
    assert_non_null(strstr(m.err.what, "quantised by \"gptq\" do not follow from config.json"));
    clear(&m);
}

#define FP8                                                                                                  \
    "\"torch_dtype\": \"bfloat16\", \"quantization_config\": {\"quant_method\": \"fp8\", "                   \
    "\"weight_block_size\": [4, 3], \"modules_to_not_convert\": [\"model.layers.1.mlp\", \"k_proj\", "       \
    "\"*.v_proj\"]}, "

static const sw_tensor_entry *find(const made_model *m, const char *name)
{
    return sw_tensor_list_find(&m->list, name, strlen(name));
}

static void fp8_blocks_give_scales_rounded_up(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", " FP8 TINY_SIZES "}");
    assert_int_equal(m.status, SW_OK);
    const sw_tensor_entry *weight = find(&m, "model.layers.0.mlp.down_proj.weight");
    const sw_tensor_entry *scales = find(&m, "model.layers.0.mlp.down_proj.weight_scale_inv");
    assert_int_equal(weight->dtype, SW_DTYPE_F8_E4M3);
    assert_ptr_equal(weight + 1, scales);
    assert_int_equal(scales->dtype, SW_DTYPE_F32);
    assert_int_equal(scales->shape->dims[0], 2); /* of 8 rows */
    assert_int_equal(scales->shape->dims[1], 6); /* of 16 columns, the last of 1 */
    assert_int_equal(find(&m, "lm_head.weight")->dtype, SW_DTYPE_BF16);
    assert_int_equal(find(&m, "model.embed_tokens.weight")->dtype, SW_DTYPE_BF16);
    clear(&m);
}

static void modules_that_fp8_leaves_alone_keep_their_dtype(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"llama\", " FP8 TINY_SIZES "}");
    assert_int_equal(m.status, SW_OK);
    assert_int_equal(find(&m, "model.layers.1.mlp.up_proj.weight")->dtype, SW_DTYPE_BF16);
    assert_null(find(&m, "model.layers.1.mlp.up_proj.weight_scale_inv"));
    assert_int_equal(find(&m, "model.layers.0.self_attn.k_proj.weight")->dtype, SW_DTYPE_BF16);
    assert_int_equal(find(&m, "model.layers.1.self_attn.v_proj.weight")->dtype, SW_DTYPE_BF16);
    assert_int_equal(find(&m, "model.layers.0.self_attn.q_proj.weight")->dtype, SW_DTYPE_F8_E4M3);
    clear(&m);
}

static void listed_dense_layers_have_no_experts(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"model_type\": \"qwen3_moe\", \"num_experts\": 2, \"moe_intermediate_size\": 4, "
             "\"mlp_only_layers\": [1], " TINY_SIZES "}");
    assert_int_equal(m.status, SW_OK);
    assert_non_null(find(&m, "model.layers.0.mlp.experts.1.up_proj.weight"));
    assert_null(find(&m, "model.layers.0.mlp.up_proj.weight"));
    assert_null(find(&m, "model.layers.1.mlp.experts.1.up_proj.weight"));
    assert_non_null(find(&m, "model.layers.1.mlp.up_proj.weight"));
    clear(&m);
}

static void running_out_of_memory_is_said_and_leaks_nothing(void **state)
{
    static const char json[] = "{\"model_type\": \"mixtral\", \"num_local_experts\": 8, " FP8 TINY_SIZES "}";
    sw_status status = SW_E_NO_MEMORY;
    int64_t before = sw_alloc_live();
    (void)state;
    for (uint64_t n = 1; n < 200 && status != SW_OK; n++) {
        sw_config config = {0};
        sw_tensor_list list = {0};
        sw_error err = {0};
        assert_int_equal(sw_config_read(&config, sw_file_map_of(json, strlen(json)), "c", &err), SW_OK);
        assert_int_equal(sw_tensor_list_init(&list, (size_t)1 << 26, &err), SW_OK);
        sw_alloc_fail_at(n);
        status = sw_generate_tensors(&list, config.family, &config, &err);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        sw_tensor_list_clear(&list);
        sw_config_clear(&config);
        assert_int_equal(sw_alloc_live(), before);
    }
    assert_int_equal(status, SW_OK);
}

static void the_decoder_of_an_unknown_whole_is_not_enough(void **state)
{
    (void)state;
    made_model m;
    make(&m, "{\"architectures\": [\"NobodyForConditionalGeneration\"], \"text_config\": "
             "{\"model_type\": \"llama\"}}");
    assert_int_equal(m.status, SW_E_FORMAT);
    assert_non_null(strstr(m.err.what, "\"NobodyForConditionalGeneration\""));
    clear(&m);
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(parameters_stand_in_model_order),
        cmocka_unit_test(experts_stand_one_after_the_other),
        cmocka_unit_test(a_missing_size_is_refused_with_its_key),
        cmocka_unit_test(a_size_of_zero_is_refused),
        cmocka_unit_test(an_unknown_architecture_is_refused_by_name),
        cmocka_unit_test(more_parameters_than_the_limit_are_refused),
        cmocka_unit_test(a_product_beyond_64_bits_is_refused),
        cmocka_unit_test(a_quantisation_whose_names_do_not_follow_is_refused),
        cmocka_unit_test(fp8_blocks_give_scales_rounded_up),
        cmocka_unit_test(modules_that_fp8_leaves_alone_keep_their_dtype),
        cmocka_unit_test(listed_dense_layers_have_no_experts),
        cmocka_unit_test(running_out_of_memory_is_said_and_leaks_nothing),
        cmocka_unit_test(the_decoder_of_an_unknown_whole_is_not_enough),
    };
    static struct CMUnitTest generated[CORPUS_N_MODELS];
    static struct CMUnitTest matched[CORPUS_N_MODELS];
    for (size_t i = 0; i < CORPUS_N_MODELS; i++) {
        void *model = &corpus_models[i];
        generated[i] = (struct CMUnitTest){corpus_models[i], follows_from_its_config, NULL, NULL, model};
        matched[i] = (struct CMUnitTest){corpus_models[i], finds_a_row_for_every_name, NULL, NULL, model};
    }
    int failed = cmocka_run_group_tests_name("small configs", plain, NULL, NULL);
    failed += cmocka_run_group_tests_name("checkpoints follow from their configs", generated, NULL, NULL);
    failed += cmocka_run_group_tests_name("every name has a row", matched, NULL, NULL);
    return failed;
}
