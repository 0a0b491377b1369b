/*
 * Plans applied: what ranks compute together is what one rank computes alone. Every rank has the whole net
 * beside its part of another, and compares.
 */
#include "rank_case.h"

#include "apply/apply.h"
#include "apply/gradients.h"
#include "apply/parts.h"
#include "nn/net.h"
#include "shardwright/plan.h"
#include "tiny_model.h"

enum { BATCH = 2 };

typedef struct apply_case {
    rank_case ranks; /* its mesh is not used */
    sw_mesh *mesh;
    sw_comm *comm;
    sw_model *model;
    sw_plan *plan;
    sw_net *whole;
    sw_net *part;
    sw_source_shards *shards;
    sw_gradients *gradients;
    uint64_t n_tokens;
    uint64_t vocab;
} apply_case;

static apply_case c;

static void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

static int open_ranks(void **state)
{
    (void)state;
    rank_case_open(&c.ranks);
    return 0;
}

static int close_ranks(void **state)
{
    (void)state;
    rank_case_close(&c.ranks);
    return 0;
}

/* ---- both nets ---- */

/* Small numbers by name and place, the same on all ranks; norms are near 1. */
static void fill_whole(const sw_parameter *p, uint32_t number)
{
    for (uint64_t i = 0; i < sw_tensor_elems(p->tensor); i++) {
        double x = random_at(number + 7, i) * 0.2;
        number_set(p->dtype, sw_tensor_data(p->tensor), i, p->n_dims == 1 && !p->is_bias ? 1 + x : x);
    }
}

static const sw_applied_parameter *part_of(uint32_t i)
{
    const sw_applied_parameter *p = sw_applied_parameter_at(c.part, i);
    assert_non_null(p);
    return p;
}

static void fill_nets(void)
{
    sw_error err = {0};

    for (uint32_t i = 0; i < c.whole->n_parameters; i++) {
        const sw_parameter *p = &c.whole->parameters[i];
        fill_whole(p, i);
        must(sw_part_take(sw_applied_of(c.part), part_of(i), sw_tensor_data(p->tensor),
                          sw_elem_bytes(p->dtype), sw_tensor_data(c.part->parameters[i].tensor), &err),
             &err);
    }
}

/* A folder of tests/parity/data, or members of a config, whose parameters are those of its family. */
static sw_model *open_model(const char *what)
{
    char path[512];
    sw_model *model = NULL;
    sw_error err = {0};

    if (*what == '\'')
        return tiny_open(what, NULL);
    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, what);
    must(sw_model_open(&model, path, &err), &err);
    return model;
}

static void open_nets(const char *what, const char *axes, uint32_t ep, const sw_plan_options *options,
                      sw_dtype dtype, const sw_apply_options *how)
{
    const sw_net_options net = {.dtype = dtype};
    sw_error err = {0};

    must(sw_mesh_create(&c.mesh, axes, ep, &err), &err);
    must(sw_comm_create(&c.comm, c.mesh, NULL, &err), &err);
    c.model = open_model(what);
    must(sw_plan_create(&c.plan, c.model, c.mesh, options, &err), &err);
    must(sw_net_create(&c.whole, c.model, &net, &err), &err);
    must(sw_net_allocate(c.whole, true, &err), &err);
    must(sw_net_create(&c.part, c.model, &net, &err), &err);
    must(sw_apply(&c.part, 1, c.plan, c.comm, how, &c.shards, &err), &err);
    must(sw_net_allocate(c.part, true, &err), &err);
    must(sw_apply_gradients(&c.gradients, c.part, 1 << 16, &err), &err);
    fill_nets();
    c.vocab = c.whole->held[SW_SLOT_TOKENS].weight->dims[0];
}

static void close_nets(void)
{
    sw_gradients_destroy(c.gradients);
    sw_source_shards_destroy(c.shards);
    sw_net_destroy(c.part);
    sw_net_destroy(c.whole);
    sw_plan_destroy(c.plan);
    sw_model_close(c.model);
    sw_comm_destroy(c.comm);
    sw_mesh_destroy(c.mesh);
}

/* ---- both runs ---- */

static const sw_tensor *tokens_by(uint64_t seed, bool are_labels)
{
    const uint64_t dims[] = {BATCH, c.n_tokens};
    sw_tensor *ids = rank_case_whole(&c.ranks, 2, dims);

    for (uint64_t i = 0; i < BATCH * c.n_tokens; i++) {
        double x = (random_at(seed, i) + 1) / 2 * (double)c.vocab;
        ((int32_t *)sw_tensor_data(ids))[i] = are_labels && i % 5 == 3 ? -1 : (int32_t)x % (int32_t)c.vocab;
    }
    return ids;
}

/* Loss and logits; gradients of the parameters are filled. */
static double run(const sw_net *net, const sw_tensor **logits)
{
    sw_pass pass = {.tokens = tokens_by(1, false)};

    pass.positions = sw_net_positions(net, c.ranks.step, BATCH, c.n_tokens, 0);
    sw_net_forget_gradients((sw_net *)net);
    sw_tensor *loss = sw_net_loss(net, c.ranks.step, &pass, tokens_by(2, true), 0.125, logits);
    rank_case_back(&c.ranks, loss, NULL);
    return number_at(c.ranks.dtype, sw_tensor_data(loss), 0);
}

/* Where a parameter's gradient begins; one of several experts has a stretch of its stack's. */
static char *gradient_of(const sw_parameter *p)
{
    return (char *)p->tensor->storage->gradient +
           p->tensor->offset * sw_elem_bytes(sw_gradient_dtype(p->dtype));
}

static void compare_gradient(uint32_t i, double scale)
{
    const sw_parameter *whole = &c.whole->parameters[i];
    const sw_parameter *part = &c.part->parameters[i];
    uint64_t n = sw_tensor_elems(part->tensor);
    size_t width = sw_elem_bytes(sw_gradient_dtype(whole->dtype));
    char *wanted = sw_alloc_zero((size_t)n + 1, width);
    sw_error err = {0};

    assert_non_null(wanted);
    assert_true(part->tensor->storage->has_gradient);
    must(sw_part_take(sw_applied_of(c.part), part_of(i), gradient_of(whole), width, wanted, &err), &err);
    rank_case_near(&c.ranks, whole->fqn, gradient_of(part), 0, wanted, 0, n, scale);
    sw_free(wanted);
}

/* What a gradient's differences are relative to: its largest, or a little of the largest of all. */
static double scale_of(uint32_t i, double largest)
{
    const sw_parameter *p = &c.whole->parameters[i];
    double own = rank_case_scale(&c.ranks, gradient_of(p), sw_tensor_elems(p->tensor));
    return fmax(own, 1e-3 * largest);
}

static void compare_all(void)
{
    const sw_tensor *whole = NULL;
    const sw_tensor *part = NULL;
    double largest = 0;

    double loss = run(c.whole, &whole);
    double square = 0;
    for (uint32_t i = 0; i < c.whole->n_parameters; i++) {
        const sw_parameter *p = &c.whole->parameters[i];
        largest = fmax(largest, rank_case_scale(&c.ranks, gradient_of(p), sw_tensor_elems(p->tensor)));
        for (uint64_t k = 0; k < sw_tensor_elems(p->tensor); k++)
            square += pow(number_at(c.ranks.dtype, gradient_of(p), k), 2);
    }
    double got = run(c.part, &part);
    sw_gradients_sum(c.gradients);
    assert_true(fabs(got - loss) <= c.ranks.tolerance * fabs(loss));
    if (!c.plan->loss_parallel)
        rank_case_near(&c.ranks, "logits", sw_tensor_data(part), 0, sw_tensor_data(whole), 0,
                       sw_tensor_elems(whole),
                       rank_case_scale(&c.ranks, sw_tensor_data(whole), sw_tensor_elems(whole)));
    for (uint32_t i = 0; i < c.whole->n_parameters; i++)
        compare_gradient(i, scale_of(i, largest));
    double norm = sqrt(sw_gradients_square_sum(c.gradients, c.ranks.kernel));
    assert_true(fabs(norm - sqrt(square)) <= 10 * c.ranks.tolerance * norm);
}

static void equals_one_rank(const char *folder, const char *axes, const sw_plan_options *options)
{
    const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32};
    const sw_apply_options how = {.validates = false};

    for (size_t i = 0; i < SW_COUNT(dtypes); i++) {
        rank_case_begin(&c.ranks, dtypes[i]);
        c.n_tokens = 7; /* which two ranks cut unevenly */
        open_nets(folder, axes, 0, options, dtypes[i], &how);
        compare_all();
        close_nets();
    }
}

/* ---- families over tp ---- */

static const char *const two[] = {"codegen",
                                  "cohere",
                                  "cohere_qk_norm",
                                  "deepseek_v2",
                                  "deepseek_v2_lite",
                                  "falcon_alibi",
                                  "falcon_grouped",
                                  "falcon_one_norm",
                                  "gemma",
                                  "gemma2",
                                  "glm",
                                  "glm4",
                                  "gpt2",
                                  "gpt_bigcode",
                                  "gpt_bigcode_many_heads",
                                  "gptj",
                                  "granite",
                                  "internlm2",
                                  "internlm2_bias",
                                  "llama",
                                  "llama_rope_linear",
                                  "llama_rope_llama3",
                                  "llama_rope_yarn",
                                  "llama_tied",
                                  "mistral",
                                  "olmo",
                                  "olmo2",
                                  "opt",
                                  "opt_narrow_post_norm",
                                  "opt_post_norm",
                                  "phi3",
                                  "phi3_longrope",
                                  "phi3_longrope_short",
                                  "qwen2",
                                  "qwen2_window",
                                  "qwen3",
                                  "smollm3",
                                  "starcoder2"};

static void all_of(const char *const *folders, size_t n, const sw_plan_options *options)
{
    char axes[32];

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    for (size_t i = 0; i < n; i++) {
        print_message("    %s\n", folders[i]);
        equals_one_rank(folders[i], axes, options);
    }
}

/* ---- collectives ---- */

/* What the plan's lowering says a forward and a backward run. */
static void count_rows(const sw_lowered *rows, uint32_t n, uint64_t *forward, uint64_t *backward)
{
    for (uint32_t i = 0; i < n; i++) {
        forward[rows[i].collective]++;
        backward[rows[i].backward]++;
    }
}

static void a_step_runs_the_collectives_of_the_plan(void **state)
{
    static const char *const folders[] = {"llama", "gpt2", "gptj", "olmo2"};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    for (size_t f = 0; f < 4 * SW_COUNT(folders); f++) {
        sw_plan_options options = SW_PLAN_OPTIONS_INIT;
        uint64_t forward[SW_COLL_COUNT_] = {0};
        uint64_t backward[SW_COLL_COUNT_] = {0};
        options.no_sequence_parallel = (f & 1) != 0;
        options.loss_parallel = (f & 2) != 0;
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        c.n_tokens = 7;
        open_nets(folders[f / 4], "tp=2", 0, &options, SW_DTYPE_F32, &(sw_apply_options){0});
        for (uint32_t i = 0; i < c.plan->n_specs; i++) {
            const sw_spec *spec = &c.plan->specs[i];
            count_rows(spec->lower_in, spec->n_lower_in, forward, backward);
            count_rows(spec->lower_out, spec->n_lower_out, forward, backward);
        }
        (void)run(c.part, NULL);
        const sw_moves *moves = &sw_applied_of(c.part)->moves;
        for (int kind = SW_COLL_ALL_GATHER; kind < SW_COLL_SLICE; kind++) {
            assert_int_equal(moves->n_forward[kind], forward[kind]);
            assert_int_equal(moves->n_backward[kind], backward[kind]);
        }
        if (f == 0) { /* llama, 2 layers: two of each a layer, the embedding, the head with its logits */
            assert_int_equal(moves->n_forward[SW_COLL_ALL_GATHER], 2 * 2 + 2);
            assert_int_equal(moves->n_forward[SW_COLL_REDUCE_SCATTER], 2 * 2 + 1);
            assert_int_equal(moves->n_forward[SW_COLL_ALL_REDUCE], 0);
        }
        close_nets();
    }
}

static void steady_steps_allocate_nothing(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    rank_case_begin(&c.ranks, SW_DTYPE_F32);
    c.n_tokens = 7;
    open_nets("gpt2", "tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    for (int i = 0; i < 3; i++) {
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        sw_alloc_fail_at(i == 2 ? 1 : 0);
        (void)run(c.part, NULL);
        sw_gradients_sum(c.gradients);
        sw_alloc_fail_at(0);
    }
    close_nets();
}

/* ---- four ranks ---- */

#define SIZES(more)                                                                                          \
    "'num_hidden_layers': 2, 'vocab_size': 29, 'hidden_size': 16, 'max_position_embeddings': 32, " more

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
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'rms_norm_eps': 1e-5, 'hidden_act': "
    "'silu', " SIZES("'num_attention_heads': 4, 'num_key_value_heads': 1, 'intermediate_size': 24, "
                     "'num_local_experts': 4, "
                     "'num_experts_per_tok': 2"),
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

/* ---- two ranks ---- */

static void families_over_tp_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    all_of(two, SW_COUNT(two), NULL);
}

static void families_over_tp_without_sequence_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    options.no_sequence_parallel = true;
    all_of(two, SW_COUNT(two), &options);
}

static void families_with_loss_parallel_equal_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() <= 2, "is for 1 and 2 ranks");
    options.loss_parallel = true;
    all_of(two, SW_COUNT(two), &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_over_tp_equal_one_rank),
        cmocka_unit_test(families_over_tp_without_sequence_parallel_equal_one_rank),
        cmocka_unit_test(families_with_loss_parallel_equal_one_rank),
        cmocka_unit_test(fewer_key_value_heads_than_ranks_equal_one_rank),
        cmocka_unit_test(four_ranks_without_sequence_parallel_equal_one_rank),
        cmocka_unit_test(a_step_runs_the_collectives_of_the_plan),
        cmocka_unit_test(steady_steps_allocate_nothing),
    };
    return SW_MPI_MAIN_WITH("apply", tests, open_ranks, close_ranks);
}
