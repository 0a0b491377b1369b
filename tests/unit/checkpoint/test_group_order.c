/* Group indices of GPTQ and compressed tensors: rows go with the scales that they take, or the cut is
 * refused. */
#include "checkpoint_case.h"

#include <string.h>

#include "shardwright/checkpoint.h"

// clang-format off
#define CONFIG(order) \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 1," \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': 8," \
    "'quantization_config': {'quant_method': 'gptq', 'bits': 4, 'group_size': 4" order "}"
#define LINEAR(name) \
    "model.layers.0.self_attn." name ".qweight I32 2x16\n" \
    "model.layers.0.self_attn." name ".qzeros I32 4x2\n" \
    "model.layers.0.self_attn." name ".scales F16 4x16\n" \
    "model.layers.0.self_attn." name ".g_idx I32 16\n"
// clang-format on

static const char tensors[] = LINEAR("q_proj") LINEAR("k_proj") LINEAR("v_proj") LINEAR("o_proj");

/* Groups of the 16 rows of every weight. */
static const char in_order[] = "0000111122223333";
static const char inside[] = "1010011033222323";  /* not in order, and yet each half takes its own */
static const char ordered[] = "0000111122230333"; /* one row of the second half takes group 0 */
static const char the_same[] = "0000000000000000";

static void make_of(const char *config, const char *names, const char *groups)
{
    make_model("m", config, names, 1);
    loaded l = load_folder(scratch("m"));
    sw_buffer file = scratch_read("m/model.safetensors");
    size_t data = file.length - l.data[0].length;

    for (size_t i = 0; i < l.list.n_tensors; i++) {
        const sw_tensor_entry *t = &l.list.tensors[i];
        if (strstr(t->name, "g_idx") == NULL)
            continue;
        for (size_t row = 0; row < 16; row++) {
            const char word[4] = {(char)(groups[row] - '0'), 0, 0, 0};
            memcpy(file.bytes + data + t->begin + 4 * row, word, sizeof word);
        }
    }
    scratch_bytes("m/model.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    unload(&l);
}

static void make(const char *config, const char *groups)
{
    make_of(config, tensors, groups);
}

static sw_status shard(const char *mesh, sw_error *err)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_plan *plan = plan_of("m", mesh, 0, NULL);

    options.no_sync = true;
    scratch_remove("s");
    sw_status status = sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, err);
    sw_plan_destroy(plan);
    return status;
}

static void expect_done(const char *mesh)
{
    sw_error err = {0};

    if (shard(mesh, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
}

static void rows_that_take_their_own_groups_are_cut(void **state)
{
    (void)state;
    make(CONFIG(""), in_order);
    expect_done("tp=2");
    make(CONFIG(""), inside);
    expect_done("tp=2");
    make(CONFIG(", 'desc_act': false"), the_same); /* written where nothing is ordered */
    expect_done("tp=2");
}

static void rows_that_take_groups_of_another_rank_are_refused(void **state)
{
    static const char what[] =
        "model.layers.0.self_attn.o_proj.g_idx: its groups are not in order: rows in "
        "dense-pp0-tp1.safetensors take group 0, and model.layers.0.self_attn.o_proj.scales there has others";
    sw_error err = {0};

    (void)state;
    make(CONFIG(", 'desc_act': false"), ordered);
    assert_int_equal(shard("tp=2", &err), SW_E_FORMAT);
    assert_string_equal(err.what, what);
    assert_non_null(strstr(err.help, "desc_act: true in quantization_config"));
    assert_string_equal(scratch_list(""), "m ");
    make(CONFIG(""), ordered);
    assert_int_equal(shard("tp=2", &err), SW_E_FORMAT);
    assert_string_equal(err.what, what);
    expect_done("tp=1");
}

static void scales_that_are_whole_serve_any_order(void **state)
{
    (void)state;
    make(CONFIG(", 'desc_act': true"), ordered);
    expect_done("tp=2");
}

static void a_sharded_source_is_looked_at_too(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    (void)state;
    make(CONFIG(""), ordered);
    expect_done("tp=1");
    sw_plan *plan = plan_of("m", "tp=2", 0, NULL);
    options.no_sync = true;
    assert_int_equal(sw_checkpoint_reshard(scratch("s"), plan, scratch("t"), &options, NULL, &err),
                     SW_E_FORMAT);
    assert_non_null(strstr(err.what, "o_proj.g_idx: its groups are not in order"));
    sw_plan_destroy(plan);
}

#define CT_CONFIG(more)                                                                                      \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16,"                       \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 4,"                            \
    "'intermediate_size': 16, 'vocab_size': 8,"                                                              \
    "'quantization_config': {'quant_method': 'compressed-tensors', 'config_groups': {'group_0': "            \
    "{'weights': {'num_bits': 4, 'group_size': 4, 'strategy': 'group'" more "}}}}"

static void compressed_tensors_have_scales_of_another_form(void **state)
{
    static const char names[] = "model.layers.0.self_attn.o_proj.weight_packed I32 16x2\n"
                                "model.layers.0.self_attn.o_proj.weight_scale F16 16x4\n"
                                "model.layers.0.self_attn.o_proj.weight_g_idx I32 16\n";
    sw_error err = {0};

    (void)state;
    make_of(CT_CONFIG(""), names, in_order);
    expect_done("tp=2");
    make_of(CT_CONFIG(""), names, ordered);
    assert_int_equal(shard("tp=2", &err), SW_E_FORMAT);
    assert_non_null(
        strstr(err.what, "o_proj.weight_g_idx: its groups are not in order: rows in dense-pp0-tp1"));
    assert_non_null(strstr(err.help, "say actorder: group"));
    make_of(CT_CONFIG(", 'actorder': 'group'"), names, ordered);
    expect_done("tp=2");
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(rows_that_take_their_own_groups_are_cut),
        ONE(rows_that_take_groups_of_another_rank_are_refused),
        ONE(scales_that_are_whole_serve_any_order),
        ONE(a_sharded_source_is_looked_at_too),
        ONE(compressed_tensors_have_scales_of_another_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
