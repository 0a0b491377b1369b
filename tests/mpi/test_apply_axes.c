/* Plans applied over all axes: groups of key heads, sequences, batches, experts. */
#include "apply_case.h"

/* ---- four ranks ---- */

#define SIZES(more)                                                                                          \
    "'num_hidden_layers': 2, 'vocab_size': 29, 'hidden_size': 16, 'max_position_embeddings': 32, " more

#define MIXTRAL                                                                                              \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'rms_norm_eps': 1e-5, 'hidden_act': " \
    "'silu', " SIZES("'num_attention_heads': 4, 'num_key_value_heads': 1, 'intermediate_size': 24, "         \
                     "'num_local_experts': 4, "                                                              \
                     "'num_experts_per_tok': 2")

/* Key/value heads that are fewer than ranks, apart, fused, alone; uneven vocabularies; experts cut inside. */
static const char *const four[] = {
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'rms_norm_eps': 1e-5, 'hidden_act': "
    "'silu', " SIZES("'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"),
    "'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', 'rms_norm_eps': 1e-5, 'hidden_act': "
    "'silu', " SIZES("'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24, "
                     "'tie_word_embeddings': true"),
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'rms_norm_eps': 1e-5, 'hidden_act': "
    "'silu', " SIZES("'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"),
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', 'rms_norm_eps': 1e-5, 'hidden_act': "
    "'silu', " SIZES("'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 24"),
    MIXTRAL,
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "
    "'n_positions': 32, 'n_inner': 32, 'vocab_size': 29, 'activation_function': 'gelu_new', "
    "'layer_norm_epsilon': 1e-5",
    "'architectures': ['GPTBigCodeForCausalLM'], 'model_type': 'gpt_bigcode', 'n_embd': 16, 'n_layer': 2, "
    "'n_head': 4, 'n_positions': 32, 'n_inner': 32, 'vocab_size': 29, 'activation_function': 'gelu', "
    "'multi_query': true, 'layer_norm_epsilon': 1e-5",
};

static void fewer_key_value_heads_than_ranks_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 4, "is for 4 ranks");
    all_of(four, SW_COUNT(four), NULL);
}

static void four_ranks_without_sequence_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() == 4, "is for 4 ranks");
    options.no_sequence_parallel = true;
    options.loss_parallel = true;
    all_of(four, SW_COUNT(four), &options);
}

/* ---- context parallel ---- */

static void in_all_forms(const char *axes, const sw_plan_options *options)
{
    for (int form = 0; form < SW_CP_FORM_COUNT_; form++) {
        for (int order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++) {
            c.form = (sw_cp_form)form;
            c.order = (sw_sequence_order)order;
            for (size_t i = 0; i < SW_COUNT(sequence_families); i++) {
                print_message("    %s %s %s\n", sequence_families[i], sw_cp_form_name(c.form), axes);
                equals_one_rank(sequence_families[i], axes, 0, options);
            }
        }
    }
    c.form = SW_CP_GATHER;
    c.order = SW_SEQUENCE_CONTIGUOUS;
}

static void sequences_over_cp_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    in_all_forms(sw_test_ranks() == 2 ? "cp=2" : "cp=2,tp=2", NULL);
}

/* ---- data parallel ---- */

static void batches_over_dp_equal_one_rank(void **state)
{
    static const char *const axes[] = {[2] = "dp=2", [4] = "dp=2,tp=2", [8] = "dp=2,cp=2,tp=2"};

    (void)state;
    sw_test_need(sw_test_ranks() <= 8 && sw_test_ranks() % 2 == 0 && axes[sw_test_ranks()] != NULL,
                 "is for 2, 4 and 8 ranks");
    equals_one_rank("llama", axes[sw_test_ranks()], 0, NULL);
    equals_one_rank("gpt2", axes[sw_test_ranks()], 0, NULL);
}

/* ---- expert parallel ---- */

/* Meshes by the number of ranks, with the size of a derived ep. */
typedef struct expert_mesh {
    int ranks;
    const char *axes;
    uint32_t ep;
} expert_mesh;

static const expert_mesh expert_meshes[] = {
    {2, "ep=2",      0},
    {2, "dp=2",      2},
    {2, "tp=2",      2},
    {4, "cp=2,ep=2", 0},
    {4, "dp=2,tp=2", 2},
    {4, "cp=2,tp=2", 2},
};

static void experts_over(const sw_plan_options *options)
{
    if (sw_test_ranks() == 4) {
        equals_one_rank(MIXTRAL, "ep=2,tp=2", 0, options);
        equals_one_rank("deepseek_v2", "ep=2,tp=2", 0, options);
    }
    for (size_t m = 0; m < SW_COUNT(expert_meshes); m++) {
        for (size_t i = 0; i < SW_COUNT(expert_families) && expert_meshes[m].ranks == sw_test_ranks(); i++) {
            print_message("    %s %s ep %d\n", expert_families[i], expert_meshes[m].axes,
                          (int)expert_meshes[m].ep);
            equals_one_rank(expert_families[i], expert_meshes[m].axes, expert_meshes[m].ep, options);
        }
    }
}

static void experts_over_ranks_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    experts_over(NULL);
}

static void experts_over_ranks_without_sequence_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    options.no_sequence_parallel = true;
    experts_over(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_key_value_heads_than_ranks_equal_one_rank),
        cmocka_unit_test(four_ranks_without_sequence_parallel_equal_one_rank),
        cmocka_unit_test(sequences_over_cp_equal_one_rank),
        cmocka_unit_test(batches_over_dp_equal_one_rank),
        cmocka_unit_test(experts_over_ranks_equal_one_rank),
        cmocka_unit_test(experts_over_ranks_without_sequence_parallel_equal_one_rank),
    };
    return SW_MPI_MAIN_WITH("apply_axes", tests, open_ranks, close_ranks);
}
