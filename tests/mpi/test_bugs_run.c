/* Cases of docs/reference/bug-cases.md that show in a run: biases that are counted as often as there are
 * ranks. */
#include "apply_case.h"

#define SIZES                                                                                                \
    "'vocab_size': 13, 'hidden_size': 16, 'num_hidden_layers': 2, 'num_attention_heads': 4, "                \
    "'max_position_embeddings': 32"

#define BIASED_LLAMA                                                                                         \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'intermediate_size': 24, 'hidden_act': "  \
    "'silu', 'rms_norm_eps': 1e-5, 'attention_bias': true, 'mlp_bias': true, " SIZES
#define NEOX                                                                                                 \
    "'architectures': ['GPTNeoXForCausalLM'], 'model_type': 'gpt_neox', 'intermediate_size': 24, "           \
    "'hidden_act': 'gelu', 'rotary_pct': 1.0, 'use_parallel_residual': true, 'layer_norm_eps': 1e-5, " SIZES
#define GPT2                                                                                                 \
    "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "  \
    "'n_positions': 32, 'n_inner': 24, 'vocab_size': 13, 'activation_function': 'gelu_new', "                \
    "'layer_norm_epsilon': 1e-5"
#define GPTJ                                                                                                 \
    "'architectures': ['GPTJForCausalLM'], 'model_type': 'gptj', 'n_embd': 16, 'n_layer': 2, 'n_head': 4, "  \
    "'n_positions': 32, 'n_inner': 24, 'rotary_dim': 4, 'vocab_size': 13, 'activation_function': "           \
    "'gelu_new', 'layer_norm_epsilon': 1e-5"
#define GPT_OSS                                                                                              \
    "'architectures': ['GptOssForCausalLM'], 'model_type': 'gpt_oss', 'intermediate_size': 8, 'head_dim': "  \
    "4, 'hidden_act': 'silu', 'num_key_value_heads': 4, 'num_local_experts': 4, 'num_experts_per_tok': 2, "  \
    "'sliding_window': 4, 'rms_norm_eps': 1e-5, 'layer_types': ['sliding_attention', "                       \
    "'full_attention'], " SIZES

/* ---- a net of zeros but for some biases ---- */

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text);
    size_t k = strlen(ending);
    return n >= k && strcmp(text + n - k, ending) == 0;
}

/* All of this rank's parameters are 0; those whose names end so are 1. */
static void fill_part(const char *const *endings)
{
    for (uint32_t i = 0; i < c.part->n_parameters; i++) {
        const sw_parameter *p = &c.part->parameters[i];
        double value = 0;
        for (size_t k = 0; endings[k] != NULL; k++)
            value = ends_with(p->fqn, endings[k]) ? 1 : value;
        for (uint64_t e = 0; e < sw_tensor_elems(p->tensor); e++)
            number_set(p->dtype, sw_tensor_data(p->tensor), e, value);
    }
}

/* What comes to the last norm: the embedding, which is 0, and what the layers have added. */
typedef struct seen {
    sw_module_wrap inner;
    double least;
    double most;
    uint64_t n;
} seen;

static sw_tensor *look(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                       const sw_tensor *const *in)
{
    seen *s = context;

    for (uint64_t i = 0; i < sw_tensor_elems(in[0]); i++) {
        double x = number_at(c.ranks.dtype, sw_tensor_data(in[0]), i);
        s->least = fmin(s->least, x);
        s->most = fmax(s->most, x);
        s->n++;
    }
    return s->inner.run == NULL ? module->class->forward(module, step, pass, in)
                                : s->inner.run(s->inner.context, module, step, pass, in);
}

/* Both layers together add `wanted`, within `tolerance`, over each way to run this mesh. */
static void adds(const char *config, const char *const *endings, const char *axes, uint32_t ep, double wanted,
                 double tolerance)
{
    for (int way = 0; way < 4; way++) {
        sw_plan_options options = SW_PLAN_OPTIONS_INIT;
        seen s = {.least = HUGE_VAL, .most = -HUGE_VAL};
        options.no_sequence_parallel = (way & 1) != 0;
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        c.n_tokens = 7;
        open_nets(config, axes, ep, &options, SW_DTYPE_F32, &(sw_apply_options){.validates = (way & 2) != 0});
        fill_part(endings);
        s.inner = c.part->final_norm->wrap;
        c.part->final_norm->wrap = (sw_module_wrap){look, &s};
        (void)run_part(NULL);
        assert_true(s.n > 0);
        if (!(fabs(s.least - wanted) <= tolerance && fabs(s.most - wanted) <= tolerance))
            fail_msg("%s ep %u, way %d: %.9g to %.9g, not %g", axes, ep, way, s.least, s.most, wanted);
        close_nets();
    }
}

static const char *tensor_axes(void)
{
    static const char *const axes[] = {[1] = "tp=1", [2] = "tp=2", [4] = "tp=4"};
    int n = sw_test_ranks();

    sw_test_need(n == 1 || n == 2 || n == 4, "is for 1, 2 and 4 ranks");
    return axes[n];
}

/* ---- cases ---- */

static void bug_33_a_row_bias_is_added_once(void **state)
{
    static const char *const ones[] = {"o_proj.bias", "down_proj.bias", NULL};

    (void)state;
    adds(BIASED_LLAMA, ones, tensor_axes(), 0, 4, 0);
}

static void bug_35_both_biases_of_a_parallel_residual_are_added_once(void **state)
{
    static const char *const ones[] = {"attention.dense.bias", "mlp.dense_4h_to_h.bias", NULL};

    (void)state;
    adds(NEOX, ones, tensor_axes(), 0, 4, 0);
}

static void bug_110_a_transposed_row_bias_is_added_once_in_both_modes(void **state)
{
    static const char *const ones[] = {"attn.c_proj.bias", "mlp.c_proj.bias", NULL};

    (void)state;
    adds(GPT2, ones, tensor_axes(), 0, 4, 0);
}

/* Weights of a token's experts sum to 1, and so do the biases that they weigh. */
static void bug_37_an_experts_output_bias_is_weighted_and_added_once(void **state)
{
    static const char *const ones[] = {"mlp.experts.down_proj_bias", NULL};

    (void)state;
    adds(GPT_OSS, ones, tensor_axes(), 0, 2, 1e-6);
    if (sw_test_ranks() == 1)
        return;
    adds(GPT_OSS, ones, tensor_axes(), (uint32_t)sw_test_ranks(), 2, 1e-6);
    adds(GPT_OSS, ones, sw_test_ranks() == 2 ? "ep=2" : "ep=2,tp=2", 0, 2, 1e-6);
}

/* The head's bias is cut with the vocabulary: over zeros, logits are the bias. */
static void bug_110_the_heads_bias_is_cut_with_the_vocabulary(void **state)
{
    const sw_tensor *logits = NULL;

    (void)state;
    rank_case_begin(&c.ranks, SW_DTYPE_F32);
    c.n_tokens = 7;
    open_nets(GPTJ, tensor_axes(), 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    fill_part((const char *const[]){NULL});
    sw_parameter *bias = sw_net_parameter(c.part, "lm_head.bias");
    assert_non_null(bias);
    uint64_t first = sw_test_ranks() == 1 ? 0
                                          : (13 + (uint64_t)sw_test_ranks() - 1) / (uint64_t)sw_test_ranks() *
                                                (uint64_t)sw_test_rank();
    for (uint64_t i = 0; i < bias->dims[0]; i++)
        number_set(SW_DTYPE_F32, sw_tensor_data(bias->tensor), i, (double)(first + i));
    (void)run_part(&logits);
    assert_int_equal(logits->dims[2], 13);
    for (uint64_t i = 0; i < sw_tensor_elems(logits); i++)
        assert_true(number_at(SW_DTYPE_F32, sw_tensor_data(logits), i) == (double)(i % 13));
    close_nets();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bug_33_a_row_bias_is_added_once),
        cmocka_unit_test(bug_35_both_biases_of_a_parallel_residual_are_added_once),
        cmocka_unit_test(bug_37_an_experts_output_bias_is_weighted_and_added_once),
        cmocka_unit_test(bug_110_a_transposed_row_bias_is_added_once_in_both_modes),
        cmocka_unit_test(bug_110_the_heads_bias_is_cut_with_the_vocabulary),
    };
    return SW_MPI_MAIN_WITH("bugs_run", tests, open_ranks, close_ranks);
}
