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

static void open_nets(const char *folder, const char *axes, uint32_t ep, const sw_plan_options *options,
                      sw_dtype dtype, const sw_apply_options *how)
{
    char path[512];
    const sw_net_options net = {.dtype = dtype};
    sw_error err = {0};

    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, folder);
    must(sw_mesh_create(&c.mesh, axes, ep, &err), &err);
    must(sw_comm_create(&c.comm, c.mesh, NULL, &err), &err);
    must(sw_model_open(&c.model, path, &err), &err);
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
    };
    return SW_MPI_MAIN_WITH("apply", tests, open_ranks, close_ranks);
}
