/* Making a net: what is refused and how it is told, names of modules, memory, failures. */
#include "golden_case.h"
#include "net_case.h"
#include "tiny_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 2, "                      \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 6, 'vocab_size': 16, "         \
    "'max_position_embeddings': 32"

static void put_line(void *context, const char *line)
{
    sw_buffer_puts(context, line);
    sw_buffer_putc(context, '\n');
}

/* The net of this config is refused with these words; *lines gets what is told of tensors. */
static void check_refused(const char *config, const char *params, const char *what, sw_buffer *lines)
{
    sw_model *model = tiny_open(config, params);
    sw_net_options options = {.on_tensor = lines == NULL ? NULL : put_line, .context = lines};
    sw_net *net = NULL;
    sw_error err = {0};

    if (sw_net_create(&net, model, &options, &err) == SW_OK)
        fail_msg("a net is made of {%s}", config);
    if (strstr(err.what, what) == NULL)
        fail_msg("{%s} says: %s", config, err.what);
    assert_true(err.help[0] != '\0');
    assert_null(net);
    sw_model_close(model);
}

static sw_net *make_net(const char *config, const sw_net_options *options)
{
    sw_model *model = tiny_open(config, NULL);
    sw_net *net = NULL;
    sw_error err = {0};

    if (sw_net_create(&net, model, options, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_model_close(model);
    return net;
}

static void a_family_that_does_not_run_is_refused_by_name(void **state)
{
    (void)state;
    check_refused("'architectures': ['MambaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 1, "
                  "'vocab_size': 16, 'state_size': 4, 'conv_kernel': 4, 'time_step_rank': 2, 'expand': 2",
                  NULL, "family mamba can be planned but not run", NULL);
    check_refused("'architectures': ['WonderForCausalLM']", "w F32 2x2\n",
                  "architecture \"WonderForCausalLM\" is of no known family", NULL);
}

static void a_config_that_cannot_run_is_refused_by_key_and_value(void **state)
{
    static const struct {
        const char *more;
        const char *what;
    } cases[] = {
        {", 'hidden_act': 'selu'",                                                "key \"hidden_act\" is \"selu\""           },
        {", 'hidden_act': 7",                                                     "key \"hidden_act\" is \"7\""              },
        {", 'rope_scaling': {'rope_type': 'spiral', 'factor': 2}",
         "key \"rope_scaling.rope_type\" is \"spiral\""                                                                      },
        {", 'rope_scaling': {'type': 'linear'}",                                  "rope type \"linear\" needs factor above 0"},
        {", 'rope_scaling': {'type': 'linear', 'factor': 'two'}",                 "key \"rope_scaling.factor\" is \"two\""   },
        {", 'rope_scaling': {'rope_type': 'llama3', 'factor': 8}",                "needs low_freq_factor above 0"            },
        {", 'rope_scaling': {'type': 'su', 'short_factor': [1, 2], 'factor': 2}",
         "needs 1 values in short_factor, not 2"                                                                             },
        {", 'rope_theta': -1",                                                    "key \"rope_theta\" is \"-1\""             },
        {", 'rope_theta': [1]",                                                   "key \"rope_theta\" is \"[1]\""            },
        {", 'rms_norm_eps': -0.5",                                                "key \"rms_norm_eps\" is \"-0.5\""         },
        {", 'clip_qkv': 0",                                                       "key \"clip_qkv\" is \"0\""                },
        {", 'quantization_config': {'quant_method': 'gptq', 'bits': 4}",
         "weights quantised by \"gptq\" cannot be run"                                                                       },
        {", 'layer_types': ['full_attention', 'mamba']",                          "layer 1 is a state-space"                 },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_buffer config = {0};
        sw_buffer_printf(&config, "%s%s", LLAMA, cases[i].more);
        check_refused(sw_buffer_text(&config), "model.norm.weight F32 8\nlm_head.weight F32 16x8\n",
                      cases[i].what, NULL);
        sw_buffer_clear(&config);
    }
}

static void sizes_that_are_missing_or_do_not_fit_are_refused(void **state)
{
    (void)state;
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 2",
                  "model.norm.weight F32 8\n", "key \"num_attention_heads\" is missing", NULL);
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 4, 'num_key_value_heads': 3, 'intermediate_size': 6, "
                  "'vocab_size': 16, 'max_position_embeddings': 32",
                  NULL, "4 heads are no multiple of 3 key/value heads", NULL);
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 9, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 3, 'intermediate_size': 6, 'vocab_size': 16, "
                  "'max_position_embeddings': 32",
                  NULL, "3 elements of a head cannot turn in pairs", NULL);
    check_refused(LLAMA, "model.norm.weight F32 8\n", "2 layers, and only 1 tensors", NULL);
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 4, 'head_dim': 2000000, 'vocab_size': 16",
                  "model.norm.weight F32 8\n", "key \"head_dim\" is 2000000, which cannot be run", NULL);
}

/* A checkpoint as the config has it, but for a tensor that is missing, one too many and one of another shape.
 */
static void all_tensors_that_do_not_fit_are_told_at_once(void **state)
{
    sw_buffer lines = {0};

    (void)state;
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 4, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 2, 'intermediate_size': 6, 'vocab_size': 16, "
                  "'max_position_embeddings': 32, 'tie_word_embeddings': true",
                  "model.embed_tokens.weight F32 16x4\n"
                  "model.layers.0.self_attn.q_proj.weight F32 4x4\n"
                  "model.layers.0.self_attn.k_proj.weight F32 4x4\n"
                  "model.layers.0.self_attn.v_proj.weight F32 4x5\n"
                  "model.layers.0.self_attn.v_proj.bias F32 4\n"
                  "model.layers.0.self_attn.o_proj.weight I8 4x4\n"
                  "model.layers.0.mlp.gate_proj.weight F32 6x4\n"
                  "model.layers.0.mlp.up_proj.weight F32 6x4\n"
                  "model.layers.0.mlp.extra.weight F32 6x4\n"
                  "model.layers.0.input_layernorm.weight F32 4\n"
                  "model.layers.0.post_attention_layernorm.weight F32 4\n"
                  "model.layers.1.mlp.up_proj.weight F32 6x4\n",
                  "2 missing, 3 extra, 2 misshapen; misshapen: model.layers.0.self_attn.v_proj.weight is F32 "
                  "[4, 5], not [4, 4] of floats",
                  &lines);
    const char *told = sw_buffer_text(&lines);
    static const char *const wanted[] = {
        "missing: model.layers.0.mlp.down_proj.weight\n",
        "missing: model.norm.weight\n",
        "extra: model.layers.0.self_attn.v_proj.bias\n",
        "extra: model.layers.0.mlp.extra.weight\n",
        "extra: model.layers.1.mlp.up_proj.weight\n",
        "misshapen: model.layers.0.self_attn.o_proj.weight is I8 [4, 4], not [4, 4] of floats\n",
    };
    for (size_t i = 0; i < SW_COUNT(wanted); i++) {
        if (strstr(told, wanted[i]) == NULL)
            fail_msg("%s is not told:\n%s", wanted[i], told);
    }
    sw_buffer_clear(&lines);
}

static void what_a_tied_head_and_buffers_store_is_left_alone(void **state)
{
    sw_model *model = tiny_open("'architectures': ['LlamaForCausalLM'], 'hidden_size': 4, "
                                "'num_hidden_layers': 0, 'num_attention_heads': 2, 'intermediate_size': 6, "
                                "'vocab_size': 16, 'max_position_embeddings': 32",
                                "model.embed_tokens.weight F32 16x4\n");

    (void)state;
    sw_model_close(model);
    sw_net *net = make_net(LLAMA ", 'tie_word_embeddings': true", &(sw_net_options){0});
    assert_null(sw_net_parameter(net, "lm_head.weight"));
    assert_non_null(sw_net_module(net, "lm_head"));
    assert_ptr_equal(net->head, sw_net_module(net, "lm_head"));
    assert_false(sw_net_leaves_alone(net, "lm_head.weight")); /* it is not there */
    sw_net_destroy(net);
    assert_int_equal(sw_model_open(&model, golden_folder("falcon_multi_query"), NULL), SW_OK);
    assert_int_equal(sw_net_create(&net, model, &(sw_net_options){0}, NULL), SW_OK);
    assert_int_equal(net->n_left_alone, 1);
    assert_true(sw_net_leaves_alone(net, "lm_head.weight"));
    assert_true(sw_net_leaves_alone(net, "lm_head"));
    assert_false(sw_net_leaves_alone(net, "lm_head.w"));
    assert_false(sw_net_leaves_alone(net, ""));
    assert_false(sw_net_leaves_alone(net, "transformer.h.0"));
    sw_net_destroy(net);
    sw_model_close(model);
}

/* Of a tied pair whichever name is stored is both. */
static void bug_31_a_head_that_is_stored_alone_is_the_table_too(void **state)
{
    sw_model *model =
        tiny_open("'architectures': ['LlamaForCausalLM'], 'hidden_size': 4, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 2, 'intermediate_size': 6, 'vocab_size': 16, "
                  "'max_position_embeddings': 32, 'tie_word_embeddings': true",
                  "model.layers.0.self_attn.q_proj.weight F32 4x4\n"
                  "model.layers.0.self_attn.k_proj.weight F32 4x4\n"
                  "model.layers.0.self_attn.v_proj.weight F32 4x4\n"
                  "model.layers.0.self_attn.o_proj.weight F32 4x4\n"
                  "model.layers.0.mlp.gate_proj.weight F32 6x4\n"
                  "model.layers.0.mlp.up_proj.weight F32 6x4\n"
                  "model.layers.0.mlp.down_proj.weight F32 4x6\n"
                  "model.layers.0.input_layernorm.weight F32 4\n"
                  "model.layers.0.post_attention_layernorm.weight F32 4\n"
                  "model.norm.weight F32 4\nlm_head.weight F32 16x4\n");
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    if (sw_net_create(&net, model, &(sw_net_options){0}, &err) != SW_OK)
        fail_msg("%s", err.what);
    const sw_parameter *table = sw_net_parameter(net, "lm_head.weight");
    assert_non_null(table);
    assert_ptr_equal(net->held[SW_SLOT_TOKENS].weight, table);
    assert_null(net->head->held[SW_SLOT_HEAD].weight);
    assert_string_equal(net->embedding->fqn, "model.embed_tokens");
    assert_string_equal(net->head->fqn, "lm_head");
    assert_int_equal(net->n_parameters, 11);
    sw_net_destroy(net);
    sw_model_close(model);
}

/* ---- names ---- */

/* Every boundary of a plan of a case is a module, of a class that takes the boundary's argument. */
static void check_names(const char *name)
{
    sw_model *model = NULL;
    sw_net *net = NULL;
    sw_plan *plan = NULL;
    sw_mesh *mesh = NULL;
    sw_error err = {0};

    assert_int_equal(sw_model_open(&model, golden_folder(name), &err), SW_OK);
    assert_int_equal(sw_mesh_create(&mesh, "cp=2", 0, &err), SW_OK);
    if (sw_net_create(&net, model, &(sw_net_options){0}, &err) != SW_OK ||
        sw_plan_create(&plan, model, mesh, NULL, &err) != SW_OK)
        fail_msg("%s: %s", name, err.what);
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        sw_buffer fqn = {0};
        sw_buffer_append(&fqn, spec->fqn, spec->fqn_length);
        const sw_module *module = sw_net_module(net, sw_buffer_text(&fqn));
        if (module == NULL)
            fail_msg("%s: no module %s", name, sw_buffer_text(&fqn));
        if (spec->in_src.n > 0 && strcmp(spec->in_src.entries[0].name, module->class->arguments[0]) != 0)
            fail_msg("%s: %s takes %s, not %s", name, sw_buffer_text(&fqn), module->class->arguments[0],
                     spec->in_src.entries[0].name);
        for (uint32_t p = 0; p < spec->n_params; p++)
            assert_int_equal(spec->params[p].param == UINT32_MAX, 0);
        sw_buffer_clear(&fqn);
    }
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    sw_net_destroy(net);
    sw_model_close(model);
}

static void every_boundary_of_a_plan_is_a_module(void **state)
{
    static const char *const names[] = {"llama",
                                        "gpt2",
                                        "gpt_neox",
                                        "opt",
                                        "opt_narrow_post_norm",
                                        "bloom",
                                        "gemma2",
                                        "internlm2",
                                        "cohere",
                                        "mpt",
                                        "olmo2",
                                        "gptj",
                                        "codegen",
                                        "falcon_grouped",
                                        "glm4",
                                        "phi",
                                        "starcoder2",
                                        "stablelm"};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++)
        check_names(names[i]);
}

static void what_attends_is_a_module_below_attention(void **state)
{
    sw_net *net = make_net(LLAMA, &(sw_net_options){0});
    const sw_module *core = sw_net_module(net, "model.layers.1.self_attn.core");

    (void)state;
    assert_non_null(core);
    assert_ptr_equal(core->parent, sw_net_module(net, "model.layers.1.self_attn"));
    assert_ptr_equal(core, core->parent->core);
    assert_null(sw_net_module(net, "model.layers.2.self_attn"));
    sw_net_destroy(net);
}

/* ---- memory ---- */

static void only_matrices_of_bf16_stay_in_a_short_float(void **state)
{
    sw_net *net = make_net(LLAMA ", 'torch_dtype': 'bfloat16'", &(sw_net_options){.keeps_short = true});

    (void)state;
    assert_int_equal(sw_net_parameter(net, "model.embed_tokens.weight")->dtype, SW_DTYPE_BF16);
    assert_int_equal(sw_net_parameter(net, "model.layers.0.mlp.up_proj.weight")->dtype, SW_DTYPE_BF16);
    assert_int_equal(sw_net_parameter(net, "model.norm.weight")->dtype, SW_DTYPE_F32);
    sw_net_destroy(net);
    net = make_net(LLAMA ", 'torch_dtype': 'bfloat16'",
                   &(sw_net_options){.keeps_short = true, .dtype = SW_DTYPE_F64});
    assert_int_equal(sw_net_parameter(net, "model.embed_tokens.weight")->dtype, SW_DTYPE_F64);
    sw_net_destroy(net);
    net = make_net(LLAMA ", 'torch_dtype': 'float16'", &(sw_net_options){.keeps_short = true});
    assert_int_equal(sw_net_parameter(net, "model.layers.0.mlp.up_proj.weight")->dtype, SW_DTYPE_F32);
    sw_net_destroy(net);
}

static void memory_is_taken_once_and_for_shapes_that_fit(void **state)
{
    sw_net *net = make_net(LLAMA, &(sw_net_options){0});
    sw_error err = {0};

    (void)state;
    sw_net_parameter(net, "model.layers.1.self_attn.o_proj.weight")->dims[1] = 4;
    assert_int_equal(sw_net_allocate(net, true, &err), SW_E_PLAN);
    assert_non_null(strstr(err.what,
                           "model.layers.1.self_attn: 4 heads and 2 key/value heads of 2 do not fit "
                           "4 columns of model.layers.1.self_attn.o_proj.weight"));
    assert_int_equal(sw_net_allocate(net, true, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "has its memory already"));
    sw_net_destroy(net);
}

static void positions_are_those_that_were_asked_for(void **state)
{
    static const char gpt2[] =
        "'architectures': ['GPT2LMHeadModel'], 'n_embd': 8, 'n_layer': 1, 'n_head': 2, "
        "'vocab_size': 16, 'n_positions': 12";
    sw_model *model = tiny_open(gpt2, NULL);
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_create(&net, model, &(sw_net_options){.n_positions = 13}, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "13 positions are more than the 12 of wpe.weight"));
    sw_model_close(model);
    net = make_net(LLAMA, &(sw_net_options){.n_positions = 100});
    assert_int_equal(net->rotary.usual.cos->dims[0], 100);
    sw_net_destroy(net);
    check_refused("'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 1, "
                  "'num_attention_heads': 4, 'intermediate_size': 6, 'vocab_size': 16, "
                  "'max_position_embeddings': null",
                  NULL, "key \"max_position_embeddings\" is missing", NULL);
}

static void every_allocation_may_fail(void **state)
{
    sw_model *model = tiny_open(LLAMA, NULL);
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    for (uint64_t n = 1; status == SW_E_NO_MEMORY; n++) {
        int64_t live = sw_alloc_live();
        sw_net *net = NULL;
        sw_cache *cache = NULL;
        sw_alloc_fail_at(n);
        status = sw_net_create(&net, model, &(sw_net_options){0}, NULL);
        if (status == SW_OK)
            status = sw_net_allocate(net, true, NULL);
        if (status == SW_OK)
            status = sw_cache_create(&cache, net, 1, 8, NULL);
        sw_alloc_fail_at(0);
        sw_cache_destroy(cache);
        sw_net_destroy(net);
        assert_int_equal(sw_alloc_live(), live);
    }
    assert_int_equal(status, SW_OK);
    sw_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_that_does_not_run_is_refused_by_name),
        cmocka_unit_test(a_config_that_cannot_run_is_refused_by_key_and_value),
        cmocka_unit_test(sizes_that_are_missing_or_do_not_fit_are_refused),
        cmocka_unit_test(all_tensors_that_do_not_fit_are_told_at_once),
        cmocka_unit_test(bug_31_a_head_that_is_stored_alone_is_the_table_too),
        cmocka_unit_test(what_a_tied_head_and_buffers_store_is_left_alone),
        cmocka_unit_test(every_boundary_of_a_plan_is_a_module),
        cmocka_unit_test(what_attends_is_a_module_below_attention),
        cmocka_unit_test(only_matrices_of_bf16_stay_in_a_short_float),
        cmocka_unit_test(memory_is_taken_once_and_for_shapes_that_fit),
        cmocka_unit_test(positions_are_those_that_were_asked_for),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
