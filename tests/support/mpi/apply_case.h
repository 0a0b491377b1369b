/*
 * Plans applied, for tests: every rank has the whole net beside its part of another, and compares what they
 * compute. The lists of families are those that two ranks of an axis can share.
 */
#ifndef SW_TEST_APPLY_CASE_H
#define SW_TEST_APPLY_CASE_H

#include "rank_case.h"

#include <float.h>

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
    uint64_t draw; /* other tokens for another number */
    double norm;   /* of the gradients of both nets */
    sw_dtype only; /* F32 or F64 alone; UNKNOWN: both */
    bool validates;
    bool recomputes;
    sw_cp_form form;
    sw_sequence_order order;
    sw_sequence sequence;
} apply_case;

static apply_case c;

static inline int open_ranks(void **state)
{
    (void)state;
    rank_case_open(&c.ranks);
    return 0;
}

static inline int close_ranks(void **state)
{
    (void)state;
    rank_case_close(&c.ranks);
    return 0;
}

/* ---- both nets ---- */

/* Small numbers by name and place, the same on all ranks; norms are near 1. */
static inline void fill_whole(const sw_parameter *p, uint32_t number)
{
    for (uint64_t i = 0; i < sw_tensor_elems(p->tensor); i++) {
        double x = random_at(number + 7, i) * 0.2;
        number_set(p->dtype, sw_tensor_data(p->tensor), i, p->n_dims == 1 && !p->is_bias ? 1 + x : x);
    }
}

static inline const sw_applied_parameter *part_of(uint32_t i)
{
    const sw_applied_parameter *p = sw_applied_parameter_at(c.part, i);
    assert_non_null(p);
    return p;
}

static inline void fill_nets(void)
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

/* A folder of tests/parity/data, or members of a config, which begin with a quote; their parameters are those
 * of the family. */
static inline sw_model *open_model(const char *what)
{
    char path[512];
    sw_model *model = NULL;
    sw_error err = {0};

    if (*what == '\'' || *what == '"')
        return tiny_open(what, NULL);
    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, what);
    must(sw_model_open(&model, path, &err), &err);
    return model;
}

static inline void close_nets(void)
{
    sw_gradients_destroy(c.gradients);
    sw_source_shards_destroy(c.shards);
    sw_net_destroy(c.part);
    sw_net_destroy(c.whole);
    sw_plan_destroy(c.plan);
    sw_model_close(c.model);
    sw_comm_destroy(c.comm);
    sw_mesh_destroy(c.mesh);
    c.gradients = NULL;
    c.shards = NULL;
    c.part = NULL;
    c.whole = NULL;
    c.plan = NULL;
    c.model = NULL;
    c.comm = NULL;
    c.mesh = NULL;
}

/* The part of a net up to where memory is taken: what can be refused. */
static inline sw_status spread(const char *what, const char *axes, uint32_t ep,
                               const sw_plan_options *options, sw_dtype dtype, const sw_apply_options *how,
                               sw_error *err)
{
    c.model = open_model(what);
    SW_TRY(sw_mesh_create(&c.mesh, axes, ep, err));
    SW_TRY(sw_comm_create(&c.comm, c.mesh, NULL, err));
    SW_TRY(sw_plan_create(&c.plan, c.model, c.mesh, options, err));
    SW_TRY(sw_net_create(&c.part, c.model, &(sw_net_options){.dtype = dtype}, err));
    SW_TRY(sw_apply(&c.part, 1, c.plan, c.comm, how, &c.shards, err));
    return sw_bind_parallel_modules(c.part, &(sw_bind_options){.cp_form = c.form}, err);
}

/* Memory and values for both nets. */
static inline void fill_both(sw_dtype dtype)
{
    sw_error err = {0};

    must(sw_net_create(&c.whole, c.model, &(sw_net_options){.dtype = dtype}, &err), &err);
    must(sw_net_allocate(c.whole, true, &err), &err);
    must(sw_net_allocate(c.part, true, &err), &err);
    must(sw_validate_materialized_modules(c.part, &err), &err);
    must(sw_apply_layouts(c.part, &err), &err);
    must(sw_apply_gradients(&c.gradients, c.part, 1 << 16, &err), &err);
    fill_nets();
    c.vocab = c.whole->held[SW_SLOT_TOKENS].weight->dims[0];
}

static inline void open_nets(const char *what, const char *axes, uint32_t ep, const sw_plan_options *options,
                             sw_dtype dtype, const sw_apply_options *how)
{
    sw_error err = {0};

    must(spread(what, axes, ep, options, dtype, how, &err), &err);
    fill_both(dtype);
}

/* ---- both runs ---- */

/* Tokens and labels of all ranks, [rows, n_tokens]. */
static inline void draw(uint64_t n_rows, int32_t *ids, int32_t *labels)
{
    for (uint64_t i = 0; i < n_rows * c.n_tokens; i++) {
        ids[i] = (int32_t)((random_at(2 * c.draw + 1, i) + 1) / 2 * (double)c.vocab) % (int32_t)c.vocab;
        labels[i] = i % 5 == 3 ? -1
                               : (int32_t)((random_at(2 * c.draw + 2, i) + 1) / 2 * (double)c.vocab) %
                                     (int32_t)c.vocab;
    }
}

/* `n_rows` rows from `first` on, in this cut of the sequence: what a pass and its loss need. */
static inline const sw_tensor *cut_batch(const sw_sequence *sequence, uint32_t rank, uint64_t first,
                                         uint64_t n_rows, sw_pass *pass)
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
    const sw_batch batch = {
        .n_rows = n_rows, .ids = ids + first * c.n_tokens, .labels = labels + first * c.n_tokens};
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

/* false: a step has failed, which is told. */
static inline bool back(const sw_tensor *loss)
{
    sw_error err = {0};
    sw_status status = sw_step_status(c.ranks.step, &err);

    if (status == SW_OK)
        status = sw_step_backward(c.ranks.step, loss, NULL, &err);
    if (status != SW_OK)
        rank_case_tell(&c.ranks, "%s", err.what);
    return status == SW_OK;
}

/* Loss and logits; gradients of the parameters are filled. NaN: the step has failed. */
static inline double run(const sw_net *net, const sw_sequence *sequence, uint32_t rank, uint64_t first,
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
    return back(loss) ? number_at(c.ranks.dtype, sw_tensor_data(loss), 0) : (double)NAN;
}

static inline uint32_t size_of(sw_axis axis)
{
    return sw_mesh_axis_size(c.mesh, axis);
}

static inline uint32_t index_on(sw_axis axis)
{
    return sw_applied_of(c.part)->active.coord.at[axis];
}

static inline double run_whole(const sw_tensor **logits)
{
    sw_sequence all;

    must(sw_sequence_make(&all, c.n_tokens, 1, SW_SEQUENCE_CONTIGUOUS, NULL), NULL);
    return run(c.whole, &all, 0, 0, BATCH * size_of(SW_AXIS_DP), logits);
}

/* This rank's summand of the loss. */
static inline double run_part(const sw_tensor **logits)
{
    must(sw_sequence_make(&c.sequence, c.n_tokens, size_of(SW_AXIS_CP), c.order, NULL), NULL);
    double loss = run(c.part, &c.sequence, index_on(SW_AXIS_CP), BATCH * index_on(SW_AXIS_DP), BATCH, logits);
    if (sw_step_status(c.ranks.step, NULL) == SW_OK)
        sw_gradients_sum(c.gradients);
    return loss;
}

/* The logits of this rank's tokens. */
static inline void compare_logits(const sw_tensor *whole, const sw_tensor *part)
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
static inline char *gradient_of(const sw_parameter *p)
{
    return (char *)p->tensor->storage->gradient +
           p->tensor->offset * sw_elem_bytes(sw_gradient_dtype(p->dtype));
}

static inline void compare_gradient(uint32_t i, double scale)
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

/* What a gradient's differences are relative to: its largest, or a little of the largest of all. Terms of the
 * size of the largest may cancel, to zero in the bias of keys, and leave what rounding each of them leaves,
 * of each rank whose part is summed: no difference below that counts. In F32 that is more of the largest than
 * a thousandth times the tolerance, in F64 far less. */
static inline double scale_of(uint32_t i, double largest)
{
    const sw_parameter *p = &c.whole->parameters[i];
    double own = rank_case_scale(&c.ranks, gradient_of(p), sw_tensor_elems(p->tensor));
    double roundoff = c.ranks.dtype == SW_DTYPE_F64 ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
    uint32_t n_parts = sw_mesh_axis_size(c.mesh, SW_AXIS_DP) * sw_mesh_axis_size(c.mesh, SW_AXIS_CP);
    return fmax(own, fmax(1e-3, n_parts * roundoff / c.ranks.tolerance) * largest);
}

/* The largest gradient of the whole net; *square gets the sum of their squares. */
static inline double weigh_gradients(double *square)
{
    double largest = 0;

    *square = 0;
    for (uint32_t i = 0; i < c.whole->n_parameters; i++) {
        const sw_parameter *p = &c.whole->parameters[i];
        if (p->is_frozen)
            continue;
        largest = fmax(largest, rank_case_scale(&c.ranks, gradient_of(p), sw_tensor_elems(p->tensor)));
        for (uint64_t k = 0; k < sw_tensor_elems(p->tensor); k++)
            *square += pow(number_at(c.ranks.dtype, gradient_of(p), k), 2);
    }
    return largest;
}

static inline void compare_number(const char *name, double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance * fabs(wanted)))
        rank_case_tell(&c.ranks, "%s is %.17g, not %.17g", name, got, wanted);
}

/* What both nets compute; afterwards gradients of both are summed. */
static inline void compare_all(bool with_gradients)
{
    const sw_tensor *whole = NULL;
    const sw_tensor *part = NULL;
    double square = 0;

    double loss = run_whole(&whole);
    double largest = weigh_gradients(&square);
    double got = run_part(&part);
    if (sw_step_status(c.ranks.step, NULL) != SW_OK)
        return;
    sw_all_reduce(sw_comm_group(c.comm, SW_GROUP_DP_CP), 1, SW_DTYPE_F64, &got, &got);
    compare_number("the loss", got, loss, c.ranks.tolerance);
    if (!c.plan->loss_parallel)
        compare_logits(whole, part);
    for (uint32_t i = 0; i < c.whole->n_parameters && with_gradients; i++) {
        if (!c.whole->parameters[i].is_frozen)
            compare_gradient(i, scale_of(i, largest));
    }
    c.norm = sqrt(sw_gradients_square_sum(c.gradients, c.ranks.kernel));
    compare_number("the norm of the gradients", c.norm, sqrt(square), 10 * c.ranks.tolerance);
}

static inline void equals_one_rank(const char *folder, const char *axes, uint32_t ep,
                                   const sw_plan_options *options)
{
    const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32};
    const sw_apply_options how = {.validates = c.validates};

    for (size_t i = 0; i < SW_COUNT(dtypes); i++) {
        if (c.only != SW_DTYPE_UNKNOWN && c.only != dtypes[i])
            continue;
        rank_case_begin(&c.ranks, dtypes[i]);
        c.n_tokens = 7; /* which two ranks cut unevenly */
        open_nets(folder, axes, ep, options, dtypes[i], &how);
        compare_all(true);
        close_nets();
    }
}

static const char *const tensor_families[] = {"codegen",
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

static const char *const sequence_families[] = {"llama",        "gpt2",         "gemma2",
                                                "falcon_alibi", "qwen2_window", "olmo2"};

static const char *const expert_families[] = {"mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "gpt_oss"};

static inline void all_of(const char *const *folders, size_t n, const sw_plan_options *options)
{
    char axes[32];

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    for (size_t i = 0; i < n; i++) {
        print_message("    %s\n", folders[i]);
        equals_one_rank(folders[i], axes, 0, options);
    }
}

#endif
