/* Random weights in memory, and the model of a config that has no folder. */
#include <string.h>

#include "shardwright/checkpoint.h"
#include "train/initial.h"
#include "train/load.h"
#include "train_case.h"

#define CONFIG(dtype)                                                                                        \
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 24, "                     \
    "'num_hidden_layers': "                                                                                  \
    "2, 'num_attention_heads': 6, 'num_key_value_heads': 2, 'intermediate_size': 40, 'vocab_size': 37, "     \
    "'max_position_embeddings': 64, 'rms_norm_eps': 1e-5, 'tie_word_embeddings': true, 'torch_dtype': "      \
    "'" dtype "'}"

static const char config[] = CONFIG("bfloat16");
static const char float_config[] = CONFIG("float32");

enum { SEED = 11 };

static void write_folder(void)
{
    sw_init_options init = SW_INIT_OPTIONS_INIT;
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    init.seed = SEED;
    options.no_sync = true;
    scratch_text("config.json", config, true);
    train_must(sw_checkpoint_init(scratch("config.json"), scratch("model"), &init, &options, NULL, &err),
               &err);
}

/* A net of the config alone, with memory. */
static void open_net(sw_model **model, sw_net **net, sw_dtype dtype)
{
    const sw_net_options options = {.dtype = dtype, .keeps_short = dtype == SW_DTYPE_F32};
    sw_file_map map = {0};
    sw_error err = {0};

    train_must(sw_file_map_open(&map, scratch("config.json"), UINT64_MAX, &err), &err);
    train_must(sw_model_of_config(model, "a text", map, &err), &err);
    sw_file_map_close(&map);
    train_must(sw_net_create(net, *model, &options, &err), &err);
    train_must(sw_net_allocate(*net, false, &err), &err);
}

static void weights_in_memory_are_those_that_init_writes(void **state)
{
    sw_model *model = NULL;
    sw_net *net = NULL;
    sw_weights weights = {0};
    sw_error err = {0};

    (void)state;
    write_folder();
    open_net(&model, &net, SW_DTYPE_F32);
    train_must(sw_initial_weights(net, model, SEED, &err), &err);
    train_must(sw_weights_open(&weights, scratch("model"), &err), &err);
    assert_int_equal(net->n_parameters, 20);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        sw_weight weight = {0};
        bool is_there = false;
        train_must(sw_weights_find(&weights, p->fqn, &weight, &is_there, &err), &err);
        assert_true(is_there);
        assert_int_equal(weight.n_elems, sw_parameter_elems(p));
        if (p->dtype == SW_DTYPE_BF16)
            assert_memory_equal(sw_tensor_data(p->tensor), weight.bytes, weight.n_elems * 2);
        else
            assert_true(*(const float *)sw_tensor_data(p->tensor) == 1.0F); /* a norm's */
    }
    sw_weights_close(&weights);
    sw_net_destroy(net);
    sw_model_close(model);
}

static void a_net_in_f64_has_the_numbers_of_one_in_f32(void **state)
{
    sw_model *models[2] = {NULL, NULL};
    sw_net *nets[2] = {NULL, NULL};
    sw_error err = {0};

    (void)state;
    scratch_text("config.json", float_config, true);
    for (int i = 0; i < 2; i++) {
        open_net(&models[i], &nets[i], i == 0 ? SW_DTYPE_F32 : SW_DTYPE_F64);
        train_must(sw_initial_weights(nets[i], models[i], SEED, &err), &err);
    }
    for (uint32_t i = 0; i < nets[0]->n_parameters; i++) {
        const float *narrow = sw_tensor_data(nets[0]->parameters[i].tensor);
        const double *wide = sw_tensor_data(nets[1]->parameters[i].tensor);
        for (uint64_t k = 0; k < sw_parameter_elems(&nets[0]->parameters[i]); k++)
            assert_true((double)narrow[k] == wide[k]);
    }
    for (int i = 0; i < 2; i++) {
        sw_net_destroy(nets[i]);
        sw_model_close(models[i]);
    }
}

static void a_config_that_describes_no_model_is_refused_by_its_name(void **state)
{
    static const char text[] = "{\"architectures\": [\"LlamaForCausalLM\"]}";
    sw_model *model = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_model_of_config(&model, "a text", sw_file_map_of(text, sizeof text - 1), &err),
                     SW_E_FORMAT);
    assert_null(model);
    assert_non_null(strstr(err.what, "a text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_in_memory_are_those_that_init_writes, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_net_in_f64_has_the_numbers_of_one_in_f32, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(a_config_that_describes_no_model_is_refused_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
