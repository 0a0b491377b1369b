/*
 * Plans applied: what ranks compute together is what one rank computes alone. Every rank has the whole net
 * beside its part of another, and compares.
 */
#include "rank_case.h"

#include "apply/apply.h"
#include "apply/bind.h"
#include "apply/gradients.h"
#include "apply/parts.h"
#include "apply/validate.h"
#include "base/map.h"
#include "nn/cache.h"
#include "nn/net.h"
#include "parallel/sequence.h"
#include "shardwright/plan.h"
#include "tiny_model.h"

enum { BATCH = 2, MOST_IDS = 256 };

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
    bool validates;
    bool recomputes;
    sw_cp_form form;
    sw_sequence_order order;
    sw_sequence sequence;
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
        must(sw_part_take(part_of(i), sw_tensor_data(p->tensor), sw_elem_bytes(p->dtype),
                          sw_tensor_data(c.part->parameters[i].tensor), &err),
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
    must(sw_bind_parallel_modules(c.part, &(sw_bind_options){.cp_form = c.form}, &err), &err);
    must(sw_net_allocate(c.part, true, &err), &err);
    must(sw_validate_materialized_modules(c.part, &err), &err);
    must(sw_apply_layouts(c.part, &err), &err);
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

/* Tokens and labels of all ranks, [rows, n_tokens]. */
static void draw(uint64_t n_rows, int32_t *ids, int32_t *labels)
{
    for (uint64_t i = 0; i < n_rows * c.n_tokens; i++) {
        ids[i] = (int32_t)((random_at(1, i) + 1) / 2 * (double)c.vocab) % (int32_t)c.vocab;
        labels[i] =
            i % 5 == 3 ? -1 : (int32_t)((random_at(2, i) + 1) / 2 * (double)c.vocab) % (int32_t)c.vocab;
    }
}

/* `n_rows` rows from `first` on, in this cut of the sequence: what a pass and its loss need. */
static const sw_tensor *cut_batch(const sw_sequence *sequence, uint32_t rank, uint64_t first, uint64_t n_rows,
                                  sw_pass *pass)
{
    const uint64_t dims[] = {n_rows, sw_sequence_local(sequence)};
    int32_t ids[MOST_IDS];
    int32_t labels[MOST_IDS];
    sw_tensor *tokens = rank_case_whole(&c.ranks, 2, dims);
    sw_tensor *targets = rank_case_whole(&c.ranks, 2, dims);
    sw_tensor *positions = rank_case_whole(&c.ranks, 2, dims);
    sw_tensor *keys = rank_case_whole(&c.ranks, 2, dims);

    assert_true((first + n_rows) * c.n_tokens <= MOST_IDS);
    draw(first + n_rows, ids, labels);
    const sw_batch batch = {n_rows, ids + first * c.n_tokens, labels + first * c.n_tokens, NULL};
    const sw_batch_part part = {sw_tensor_data(tokens), sw_tensor_data(targets), sw_tensor_data(keys)};
    sw_sequence_cut(sequence, rank, &batch, &part);
    for (uint64_t i = 0; i < sw_tensor_elems(positions);
         i++) { /* padding is turned by something, and not seen */
        int32_t at = ((const int32_t *)sw_tensor_data(keys))[i];
        ((int32_t *)sw_tensor_data(positions))[i] = at < 0 ? 0 : at;
    }
    *pass =
        (sw_pass){.tokens = tokens, .positions = positions, .key_positions = keys, .n_positions = c.n_tokens};
    return targets;
}

/* Loss and logits; gradients of the parameters are filled. */
static double run(const sw_net *net, const sw_sequence *sequence, uint32_t rank, uint64_t first,
                  uint64_t n_rows, const sw_tensor **logits)
{
    sw_pass pass;
    const sw_tensor *targets = cut_batch(sequence, rank, first, n_rows, &pass);

    pass.recomputes = c.recomputes;
    pass.tokens = sw_apply_tokens(net, c.ranks.step, pass.tokens);
    pass.positions = sw_apply_tokens(net, c.ranks.step, pass.positions);
    pass.key_positions = sw_apply_tokens(net, c.ranks.step, pass.key_positions);
    targets = sw_apply_tokens(net, c.ranks.step, targets);
    sw_net_forget_gradients((sw_net *)net);
    sw_step_validate(c.ranks.step, sw_applied_of(net) != NULL && sw_applied_of(net)->validates);
    sw_tensor *loss = sw_net_loss(net, c.ranks.step, &pass, targets, 0.125, logits);
    rank_case_back(&c.ranks, loss, NULL);
    return number_at(c.ranks.dtype, sw_tensor_data(loss), 0);
}

static uint32_t size_of(sw_axis axis)
{
    return sw_mesh_axis_size(c.mesh, axis);
}

static uint32_t index_on(sw_axis axis)
{
    return sw_applied_of(c.part)->active.coord.at[axis];
}

static double run_whole(const sw_tensor **logits)
{
    sw_sequence all;

    must(sw_sequence_make(&all, c.n_tokens, 1, SW_SEQUENCE_CONTIGUOUS, NULL), NULL);
    return run(c.whole, &all, 0, 0, BATCH * size_of(SW_AXIS_DP), logits);
}

/* This rank's summand of the loss. */
static double run_part(const sw_tensor **logits)
{
    must(sw_sequence_make(&c.sequence, c.n_tokens, size_of(SW_AXIS_CP), c.order, NULL), NULL);
    double loss = run(c.part, &c.sequence, index_on(SW_AXIS_CP), BATCH * index_on(SW_AXIS_DP), BATCH, logits);
    sw_gradients_sum(c.gradients);
    return loss;
}

/* The logits of this rank's tokens. */
static void compare_logits(const sw_tensor *whole, const sw_tensor *part)
{
    uint64_t width = whole->dims[2];
    double scale = rank_case_scale(&c.ranks, sw_tensor_data(whole), sw_tensor_elems(whole));

    for (uint64_t row = 0; row < BATCH * part->dims[1]; row++) {
        uint64_t token = sw_sequence_token(&c.sequence, index_on(SW_AXIS_CP), row % part->dims[1]);
        uint64_t batch = BATCH * index_on(SW_AXIS_DP) + row / part->dims[1];
        if (token < c.n_tokens)
            rank_case_near(&c.ranks, "logits", sw_tensor_data(part), row * width, sw_tensor_data(whole),
                           (batch * c.n_tokens + token) * width, width, scale);
    }
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
    assert_true(part->tensor->storage->has_gradient || n == 0);
    must(sw_part_take(part_of(i), gradient_of(whole), width, wanted, &err), &err);
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

    double loss = run_whole(&whole);
    double square = 0;
    for (uint32_t i = 0; i < c.whole->n_parameters; i++) {
        const sw_parameter *p = &c.whole->parameters[i];
        largest = fmax(largest, rank_case_scale(&c.ranks, gradient_of(p), sw_tensor_elems(p->tensor)));
        for (uint64_t k = 0; k < sw_tensor_elems(p->tensor); k++)
            square += pow(number_at(c.ranks.dtype, gradient_of(p), k), 2);
    }
    double got = run_part(&part);
    sw_all_reduce(sw_comm_group(c.comm, SW_GROUP_DP_CP), 1, SW_DTYPE_F64, &got, &got);
    assert_true(fabs(got - loss) <= c.ranks.tolerance * fabs(loss));
    if (!c.plan->loss_parallel)
        compare_logits(whole, part);
    for (uint32_t i = 0; i < c.whole->n_parameters; i++)
        compare_gradient(i, scale_of(i, largest));
    double norm = sqrt(sw_gradients_square_sum(c.gradients, c.ranks.kernel));
    assert_true(fabs(norm - sqrt(square)) <= 10 * c.ranks.tolerance * norm);
}

static void equals_one_rank(const char *folder, const char *axes, uint32_t ep, const sw_plan_options *options)
{
    const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32};
    const sw_apply_options how = {.validates = c.validates};

    for (size_t i = 0; i < SW_COUNT(dtypes); i++) {
        rank_case_begin(&c.ranks, dtypes[i]);
        c.n_tokens = 7; /* which two ranks cut unevenly */
        open_nets(folder, axes, ep, options, dtypes[i], &how);
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
        equals_one_rank(folders[i], axes, 0, options);
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
        (void)run_part(NULL);
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
        (void)run_part(NULL);
        sw_alloc_fail_at(0);
    }
    close_nets();
}

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

static const char *const in_sequence[] = {"llama", "gpt2", "gemma2", "falcon_alibi", "qwen2_window", "olmo2"};

static void in_all_forms(const char *axes, const sw_plan_options *options)
{
    for (int form = 0; form < SW_CP_FORM_COUNT_; form++) {
        for (int order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++) {
            c.form = (sw_cp_form)form;
            c.order = (sw_sequence_order)order;
            for (size_t i = 0; i < SW_COUNT(in_sequence); i++) {
                print_message("    %s %s %s\n", in_sequence[i], sw_cp_form_name(c.form), axes);
                equals_one_rank(in_sequence[i], axes, 0, options);
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

static const char *const with_experts[] = {"mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "gpt_oss"};

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
        for (size_t i = 0; i < SW_COUNT(with_experts) && expert_meshes[m].ranks == sw_test_ranks(); i++) {
            print_message("    %s %s ep %d\n", with_experts[i], expert_meshes[m].axes,
                          (int)expert_meshes[m].ep);
            equals_one_rank(with_experts[i], expert_meshes[m].axes, expert_meshes[m].ep, options);
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

/* ---- other ways to run ---- */

static void layers_that_run_again_in_the_backward_equal_one_rank(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    c.recomputes = true;
    equals_one_rank("llama", "tp=2", 0, NULL);
    equals_one_rank("gpt2", "cp=2", 0, NULL);
    equals_one_rank("mixtral", "ep=2", 0, NULL);
    c.recomputes = false;
}

/* All gradients of this rank, put together by their bits. */
static uint64_t gradient_bits(void)
{
    uint64_t bits = 0;

    (void)run_part(NULL);
    for (uint32_t i = 0; i < c.part->n_parameters; i++) {
        const sw_parameter *p = &c.part->parameters[i];
        size_t bytes = (size_t)sw_tensor_elems(p->tensor) * sw_elem_bytes(sw_gradient_dtype(p->dtype));
        bits = sw_hash(gradient_of(p), bytes, bits);
    }
    return bits;
}

static void the_same_mesh_twice_gives_the_same_bits(void **state)
{
    uint64_t bits[2];

    (void)state;
    sw_test_need(sw_test_ranks() == 4, "is for 4 ranks");
    for (int i = 0; i < 2; i++) {
        rank_case_begin(&c.ranks, SW_DTYPE_F32);
        c.n_tokens = 7;
        open_nets("llama", "cp=2,tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
        bits[i] = gradient_bits();
        close_nets();
    }
    assert_true(bits[0] == bits[1]);
}

/* Logits of the last token when tokens come with a cache, four and then one by one. */
static void run_cached(const sw_net *net, uint64_t first, uint64_t n, sw_cache *cache, double *out)
{
    const uint64_t dims[] = {1, n};
    sw_error err = {0};

    sw_step_begin(c.ranks.step, false);
    sw_tensor *tokens = rank_case_whole(&c.ranks, 2, dims);
    for (uint64_t i = 0; i < n; i++)
        ((int32_t *)sw_tensor_data(tokens))[i] = (int32_t)((first + i) * 5 % c.vocab);
    const sw_pass pass = {
        .tokens = tokens, .positions = sw_net_positions(net, c.ranks.step, 1, n, first), .cache = cache};
    const sw_tensor *hidden = sw_net_hidden(net, c.ranks.step, &pass);
    hidden = sw_view_slice(c.ranks.step, hidden, 1, n - 1, 1);
    const sw_tensor *logits = sw_net_logits(net, c.ranks.step, &pass, hidden);
    must(sw_step_status(c.ranks.step, &err), &err);
    for (uint64_t i = 0; i < c.vocab; i++)
        out[i] = number_at(c.ranks.dtype, sw_tensor_data(logits), i);
}

static void caches_of_local_heads_give_the_logits_of_one_rank(void **state)
{
    static const char *const folders[] = {"llama", "gpt2", "gemma2", "falcon_alibi", "deepseek_v2"};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    double logits[2][256];

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    options.no_sequence_parallel = true;
    for (size_t f = 0; f < SW_COUNT(folders); f++) {
        sw_cache *caches[2] = {NULL, NULL};
        rank_case_begin(&c.ranks, SW_DTYPE_F64);
        open_nets(folders[f], "tp=2", 0, &options, SW_DTYPE_F64, &(sw_apply_options){0});
        const sw_net *nets[] = {c.whole, c.part};
        assert_true(c.vocab <= SW_COUNT(logits[0]));
        for (int i = 0; i < 2; i++)
            must(sw_cache_create(&caches[i], nets[i], 1, 8, NULL), NULL);
        for (uint64_t at = 0; at < 8; at += at == 0 ? 4 : 1) {
            for (int i = 0; i < 2; i++)
                run_cached(nets[i], at, at == 0 ? 4 : 1, caches[i], logits[i]);
            rank_case_near(&c.ranks, folders[f], logits[1], 0, logits[0], 0, c.vocab,
                           rank_case_scale(&c.ranks, logits[0], c.vocab));
        }
        for (int i = 0; i < 2; i++)
            sw_cache_destroy(caches[i]);
        close_nets();
    }
}

/* ---- source shards ---- */

static void comes_from(const char *fqn, sw_axis axis, sw_placement_kind kind)
{
    const sw_source_shard *shard = sw_source_shards_find(c.shards, fqn);

    assert_non_null(shard);
    assert_int_equal(shard->grid.n_axes, 1);
    assert_int_equal(shard->grid.axis[0], axis);
    assert_int_equal(shard->on[0].kind, kind);
    assert_int_equal(shard->on[0].dim, 0);
}

static void source_shards_tell_where_parameters_come_from(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    rank_case_begin(&c.ranks, SW_DTYPE_F32);
    open_nets("gpt2", "tp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    comes_from("wte.weight", SW_AXIS_TP, SW_PLACE_SHARD);
    comes_from("ln_f.weight", SW_AXIS_TP, SW_PLACE_REPLICATE);
    assert_null(sw_source_shards_find(c.shards, "no.weight"));
    close_nets();
    open_nets("mixtral", "dp=2", 2, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    comes_from("model.layers.0.block_sparse_moe.experts.w1", SW_AXIS_EP, SW_PLACE_SHARD);
    assert_int_equal(sw_source_shards_find(c.shards, "model.norm.weight")->grid.n_axes, 0);
    close_nets();
    open_nets("llama", "cp=2", 0, NULL, SW_DTYPE_F32, &(sw_apply_options){0});
    assert_null(c.shards); /* nothing but data parallelism owns cp */
    close_nets();
}

/* ---- validate mode ---- */

static void validate_mode_finds_no_mismatch_and_the_same_numbers(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    c.validates = true;
    all_of(two, SW_COUNT(two), NULL);
    options.no_sequence_parallel = true;
    options.loss_parallel = true;
    all_of(two, SW_COUNT(two), &options);
    for (size_t i = 0; i < SW_COUNT(in_sequence); i++)
        equals_one_rank(in_sequence[i], "cp=2", 0, NULL);
    for (size_t i = 0; i < SW_COUNT(with_experts); i++)
        equals_one_rank(with_experts[i], "ep=2", 0, NULL);
    c.validates = false;
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
        cmocka_unit_test(sequences_over_cp_equal_one_rank),
        cmocka_unit_test(batches_over_dp_equal_one_rank),
        cmocka_unit_test(experts_over_ranks_equal_one_rank),
        cmocka_unit_test(experts_over_ranks_without_sequence_parallel_equal_one_rank),
        cmocka_unit_test(layers_that_run_again_in_the_backward_equal_one_rank),
        cmocka_unit_test(the_same_mesh_twice_gives_the_same_bits),
        cmocka_unit_test(caches_of_local_heads_give_the_logits_of_one_rank),
        cmocka_unit_test(source_shards_tell_where_parameters_come_from),
        cmocka_unit_test(validate_mode_finds_no_mismatch_and_the_same_numbers),
        cmocka_unit_test(a_step_runs_the_collectives_of_the_plan),
        cmocka_unit_test(steady_steps_allocate_nothing),
    };
    return SW_MPI_MAIN_WITH("apply", tests, open_ranks, close_ranks);
}
