/*
 * Training and evaluating over ranks: losses, norms and parameters are those of one rank. Every rank has the
 * whole run beside its part of another, and compares.
 */
#include "rank_case.h"

#include "apply/applied.h"
#include "apply/cp_form.h"
#include "apply/gradients.h"
#include "apply/parts.h"
#include "shardwright/plan.h"
#include "train/eval.h"
#include "train/load.h"
#include "train/loop.h"

enum { STEPS = 3, TOKENS = 400 };

/* How a model is spread. */
typedef struct spread {
    const char *axes; /* NULL: one rank alone */
    uint32_t ep;
    sw_cp_form form;
    sw_sequence_order order;
    bool no_sp;
    bool loss_parallel;
    bool recomputes;
} spread;

/* One run of a model: of one rank, or this rank's part of one over a mesh. */
typedef struct bench {
    spread how;
    sw_mesh *mesh;
    sw_comm *comm;
    sw_weights weights;
    sw_plan *plan;
    sw_net *net;
    sw_tokens tokens;
    sw_trainer trainer;
    sw_curve_point points[STEPS];
} bench;

/* its mesh is not used */
RANK_CASE(ranks, open_ranks, close_ranks)
static uint8_t bytes[TOKENS];

static int begin(void **state)
{
    for (uint32_t i = 0; i < TOKENS; i++)
        bytes[i] = (uint8_t)((i * i / 3 + i % 5) % 53);
    return open_ranks(state);
}

/* ---- runs ---- */

static void open_net(bench *b, const char *folder, const spread *how, sw_dtype dtype)
{
    sw_load_options load = {.dtype = dtype, .trains = true, .cp_form = how->form};
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    char path[512];
    sw_error err = {0};

    *b = (bench){
        .how = *how, .tokens = {.first = bytes, .n_tokens = TOKENS, .dtype = SW_DTYPE_U8}
    };
    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, folder);
    if (how->axes == NULL) {
        must(sw_weights_open(&b->weights, path, &err), &err);
    } else {
        options.no_sequence_parallel = how->no_sp;
        options.loss_parallel = how->loss_parallel;
        must(sw_mesh_create(&b->mesh, how->axes, how->ep, &err), &err);
        must(sw_comm_create(&b->comm, b->mesh, NULL, &err), &err);
        must(sw_weights_open(&b->weights, path, &err), &err);
        must(sw_plan_create(&b->plan, b->weights.model, b->mesh, &options, &err), &err);
        load.plan = b->plan;
        load.comm = b->comm;
    }
    must(sw_load(&b->net, &b->weights, &load, ranks.kernel, &err), &err);
}

static void open_trainer(bench *b)
{
    const sw_train_options options = {
        .batch = 4,
        .accumulate = 2,
        .seq_len = 7, /* which two ranks cut unevenly */
        .seed = 3,
        .recomputes = b->how.recomputes,
        .cp_order = b->how.order,
        .router_loss = 0.3,
        .schedule = {SW_SCHEDULE_LINEAR, 1e-2,          0,           10         },
        .optimizer = { .decay = 0.1,      .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .clip = 0.5},
    };
    sw_error err = {0};

    must(sw_trainer_create(&b->trainer, b->net, ranks.kernel, &b->tokens, "tokens", &options, &err), &err);
}

static void run(bench *b, const char *folder, const spread *how, sw_dtype dtype)
{
    sw_error err = {0};

    open_net(b, folder, how, dtype);
    open_trainer(b);
    for (uint32_t i = 0; i < STEPS; i++)
        must(sw_trainer_step(&b->trainer, &b->points[i], &err), &err);
}

static void close_bench(bench *b)
{
    sw_trainer_clear(&b->trainer);
    sw_net_destroy(b->net);
    sw_plan_destroy(b->plan);
    sw_weights_close(&b->weights);
    sw_comm_destroy(b->comm);
    sw_mesh_destroy(b->mesh);
}

/* ---- comparisons ---- */

static void compare_parameter(const bench *whole, const bench *part, uint32_t i)
{
    const sw_parameter *a = &whole->net->parameters[i];
    const sw_parameter *b = &part->net->parameters[i];
    uint64_t n = sw_parameter_elems(b);
    size_t width = sw_elem_bytes(a->dtype);
    void *wanted = sw_alloc_zero((size_t)n + 1, width);
    sw_error err = {0};

    assert_non_null(wanted);
    must(sw_part_take(sw_applied_parameter_at(part->net, i), sw_tensor_data(a->tensor), width, wanted, &err),
         &err);
    rank_case_near(&ranks, a->fqn, sw_tensor_data(b->tensor), 0, wanted, 0, n,
                   rank_case_scale(&ranks, sw_tensor_data(a->tensor), sw_parameter_elems(a)));
    sw_free(wanted);
}

static void compare(const bench *whole, const bench *part)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        const sw_curve_point *a = &whole->points[i];
        const sw_curve_point *b = &part->points[i];
        if (!(fabs(a->loss - b->loss) <= ranks.tolerance * a->loss))
            fail_msg("step %u: loss %.17g is not %.17g", i + 1, b->loss, a->loss);
        if (!(fabs(a->norm - b->norm) <= 10 * ranks.tolerance * a->norm))
            fail_msg("step %u: norm %.17g is not %.17g", i + 1, b->norm, a->norm);
        assert_int_equal(a->tokens, b->tokens);
    }
    assert_int_equal(whole->net->n_parameters, part->net->n_parameters);
    for (uint32_t i = 0; i < whole->net->n_parameters; i++)
        compare_parameter(whole, part, i);
}

/* A model over several spreads, in f64 and (one model is enough) in f32; where a list of spreads ends, `axes`
 * is NULL. */
static void equals_one_rank(const char *folder, bool in_both, const spread *spreads)
{
    const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32};
    bench whole;
    bench part;

    for (size_t d = 0; d < (in_both ? SW_COUNT(dtypes) : 1); d++) {
        rank_case_begin(&ranks, dtypes[d]);
        run(&whole, folder, &(spread){0}, dtypes[d]);
        for (const spread *how = spreads; how->axes != NULL; how++) {
            print_message("    %s over %s ep %u %s %s\n", folder, how->axes, (unsigned)how->ep,
                          sw_cp_form_name(how->form),
                          how->order == SW_SEQUENCE_BALANCED ? "balanced" : "contiguous");
            run(&part, folder, how, dtypes[d]);
            compare(&whole, &part);
            close_bench(&part);
        }
        close_bench(&whole);
    }
}

/* ---- tests ---- */

enum { MOST_RANKS = 8, MOST_SPREADS = 8 };

/* By the number of ranks. */
// clang-format off
static const spread dense[MOST_RANKS + 1][MOST_SPREADS] = {
    [2] = {{.axes = "tp=2"},
           {.axes = "dp=2"},
           {.axes = "tp=2", .loss_parallel = true},
           {.axes = "tp=2", .loss_parallel = true, .no_sp = true}},
    [4] = {{.axes = "dp=2,tp=2"},
           {.axes = "dp=4"},
           {.axes = "dp=2,tp=2", .loss_parallel = true},
           {.axes = "dp=2,tp=2", .loss_parallel = true, .no_sp = true}},
};

static const spread contexts[MOST_RANKS + 1][MOST_SPREADS] = {
    [2] = {{.axes = "cp=2"},
           {.axes = "cp=2", .form = SW_CP_RING},
           {.axes = "cp=2", .form = SW_CP_ULYSSES},
           {.axes = "cp=2", .order = SW_SEQUENCE_BALANCED, .recomputes = true},
           {.axes = "cp=2", .form = SW_CP_RING, .order = SW_SEQUENCE_BALANCED},
           {.axes = "cp=2", .form = SW_CP_ULYSSES, .order = SW_SEQUENCE_BALANCED}},
    [4] = {{.axes = "cp=2,tp=2", .order = SW_SEQUENCE_BALANCED},
           {.axes = "cp=2,tp=2", .form = SW_CP_RING, .loss_parallel = true},
           {.axes = "dp=2,cp=2", .form = SW_CP_RING, .order = SW_SEQUENCE_BALANCED}},
    [8] = {{.axes = "dp=2,cp=2,tp=2", .order = SW_SEQUENCE_BALANCED}},
};

static const spread experts[MOST_RANKS + 1][MOST_SPREADS] = {
    [2] = {{.axes = "ep=2"},
           {.axes = "dp=2", .ep = 2},
           {.axes = "tp=2", .ep = 2, .recomputes = true},
           {.axes = "tp=2", .ep = 2, .no_sp = true},
           {.axes = "cp=2", .ep = 2, .order = SW_SEQUENCE_BALANCED},
           {.axes = "cp=2"}},
    [4] = {{.axes = "cp=2,tp=2", .ep = 2, .order = SW_SEQUENCE_BALANCED},
           {.axes = "dp=2,ep=2"},
           {.axes = "cp=2,tp=2", .ep = 2, .no_sp = true, .recomputes = true}},
    [6] = {{.axes = "cp=3,tp=2", .ep = 6, .order = SW_SEQUENCE_BALANCED}},
};

/* With experts that tp divides. */
static const spread cut_experts[MOST_RANKS + 1][MOST_SPREADS] = {
    [2] = {{.axes = "tp=2"},
           {.axes = "tp=2", .no_sp = true}},
    [4] = {{.axes = "ep=2,tp=2"},
           {.axes = "cp=2,ep=2", .order = SW_SEQUENCE_BALANCED}},
    [6] = {{.axes = "cp=3,tp=2"}},
};
// clang-format on

static const spread *here(const spread (*spreads)[MOST_SPREADS])
{
    int n = sw_test_ranks();

    sw_test_need(n <= MOST_RANKS && spreads[n][0].axes != NULL, "is for other numbers of ranks");
    return spreads[n];
}

static void three_steps_over_a_mesh_equal_one_rank(void **state)
{
    static const char *const folders[] = {"llama_tied", "gpt2", "olmo2"};
    const spread *spreads = here(dense);

    (void)state;
    for (size_t i = 0; i < SW_COUNT(folders); i++)
        equals_one_rank(folders[i], i == 0, spreads);
}

static void sequences_that_are_cut_equal_one_rank(void **state)
{
    static const char *const folders[] = {"llama", "gemma2"};
    const spread *spreads = here(contexts);

    (void)state;
    for (size_t i = 0; i < SW_COUNT(folders); i++)
        equals_one_rank(folders[i], i == 0, spreads);
}

/* With the auxiliary loss of their routers, which padding has no part in. */
static void experts_over_ranks_equal_one_rank(void **state)
{
    const spread *spreads = here(experts);

    (void)state;
    equals_one_rank("mixtral", true, spreads);
    equals_one_rank("qwen2_moe", false, spreads);
    equals_one_rank("deepseek_v2", false, here(cut_experts));
}

static void the_same_mesh_twice_gives_the_same_bits(void **state)
{
    const spread *how = here(dense);
    bench one;
    bench two;

    (void)state;
    run(&one, "llama", how, SW_DTYPE_F32);
    run(&two, "llama", how, SW_DTYPE_F32);
    for (uint32_t i = 0; i < STEPS; i++) {
        assert_memory_equal(&one.points[i].loss, &two.points[i].loss, sizeof(double));
        assert_memory_equal(&one.points[i].norm, &two.points[i].norm, sizeof(double));
    }
    for (uint32_t i = 0; i < one.net->n_parameters; i++)
        assert_memory_equal(sw_tensor_data(one.net->parameters[i].tensor),
                            sw_tensor_data(two.net->parameters[i].tensor),
                            sw_parameter_elems(&one.net->parameters[i]) * sizeof(float));
    close_bench(&two);
    close_bench(&one);
}

/* What no axis cuts is the same on all ranks, bit for bit. */
static void expect_equal_copies(const bench *b)
{
    const sw_group *all = sw_comm_group(b->comm, SW_GROUP_WORLD);

    for (uint32_t i = 0; i < b->net->n_parameters; i++) {
        const sw_parameter *p = &b->net->parameters[i];
        const sw_tensor_layout *layout = &sw_applied_parameter_at(b->net, i)->layout;
        size_t n_bytes = (size_t)sw_parameter_elems(p) * sw_elem_bytes(p->dtype);
        bool is_cut = p->stack != NULL;
        for (uint32_t k = 0; k < layout->grid.n_axes; k++)
            is_cut = is_cut || layout->on[k].kind != SW_PLACE_REPLICATE;
        if (is_cut)
            continue;
        void *first = sw_alloc_zero(n_bytes, 1);
        assert_non_null(first);
        memcpy(first, sw_tensor_data(p->tensor), n_bytes);
        sw_broadcast(all, 0, n_bytes, SW_DTYPE_U8, first);
        if (memcmp(first, sw_tensor_data(p->tensor), n_bytes) != 0)
            fail_msg("%s over %s: copies differ", p->fqn, b->how.axes);
        sw_free(first);
    }
}

/* Cases 42 and 43: routers, gates of shared experts, norms. */
static void bug_43_copies_stay_the_same_bits_while_they_are_trained(void **state)
{
    static const char *const folders[] = {"qwen2_moe", "deepseek_v2"};
    bench b;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(folders); i++) {
        for (const spread *how = here(i == 0 ? experts : cut_experts); how->axes != NULL; how++) {
            run(&b, folders[i], how, SW_DTYPE_F32);
            expect_equal_copies(&b);
            close_bench(&b);
        }
    }
}

/* ---- steady steps, memory ---- */

/* Forward and backward of this rank's part of rows that all know. */
static void run_pass(const bench *b, sw_step *step, sw_cutter *cutter, const sw_feed *whole)
{
    const sw_feed feed = sw_cutter_cut(cutter, whole);
    sw_pass pass;
    sw_error err = {0};

    sw_net_forget_gradients(b->net);
    sw_step_begin(step, true);
    sw_feed_pass(&pass, b->net, step, &feed);
    const sw_tensor *labels = sw_feed_matrix(step, feed.targets, feed.n_rows, feed.n_tokens);
    const sw_tensor *y = sw_net_loss(b->net, step, &pass, labels, 1.0, NULL);
    must(sw_step_status(step, &err), &err);
    must(sw_step_backward(step, y, NULL, &err), &err);
}

/* The gradients of the same rows over and over, of which none takes more than the one before. */
static uint64_t allocations_of_steady_steps(bench *b)
{
    sw_trainer *t = &b->trainer;
    const sw_feed whole = {
        .n_rows = t->n_rows, .n_tokens = t->options.seq_len, .ids = t->ids, .targets = t->targets};
    uint64_t before = 0;

    for (int i = 0; i < 5; i++) {
        before = i == 2 ? sw_alloc_count() : before;
        run_pass(b, t->step, &t->cutter, &whole);
        sw_gradients_sum(t->gradients);
    }
    return sw_alloc_count() - before;
}

static void steady_steps_allocate_nothing(const char *folder, const spread *spreads)
{
    bench b;

    for (const spread *how = spreads; how->axes != NULL; how++) {
        run(&b, folder, how, SW_DTYPE_F32); /* the tokens are there then */
        uint64_t n = allocations_of_steady_steps(&b);
        if (n != 0)
            fail_msg("%s over %s, %s: steady steps have allocated %u times", folder, how->axes,
                     sw_cp_form_name(how->form), (unsigned)n);
        close_bench(&b);
    }
}

static void steady_steps_over_a_mesh_allocate_nothing(void **state)
{
    (void)state;
    rank_case_begin(&ranks, SW_DTYPE_F32);
    steady_steps_allocate_nothing("llama", here(dense));
    steady_steps_allocate_nothing("llama", here(contexts));
    steady_steps_allocate_nothing("mixtral", here(experts));
    steady_steps_allocate_nothing("deepseek_v2", here(cut_experts));
}

/* The most that a step over a ring takes on this rank, in bytes. */
static double peak_of(const bench *b, uint64_t n_tokens)
{
    const sw_ranks all = sw_ranks_of(b->net);
    int32_t ids[32];
    const sw_feed whole = {.n_rows = 1, .n_tokens = n_tokens, .ids = ids, .targets = ids};
    sw_step *step = NULL;
    sw_cutter cutter;
    sw_error err = {0};

    for (int i = 0; i < (int)SW_COUNT(ids); i++)
        ids[i] = i;
    must(sw_step_create(&step, ranks.kernel, &err), &err);
    must(sw_cutter_create(&cutter, &all, SW_SEQUENCE_BALANCED, 1, n_tokens, &err), &err);
    run_pass(b, step, &cutter, &whole);
    double peak = (double)sw_stack_peak(sw_step_stack(step));
    sw_cutter_clear(&cutter);
    sw_step_destroy(step);
    return peak;
}

/* How much more tokens take more: records of the tape, which are as many for few, are not in it. */
static double growth_over(const char *axes)
{
    bench b;

    open_net(&b, "llama", &(spread){.axes = axes, .form = SW_CP_RING}, SW_DTYPE_F32);
    double growth = peak_of(&b, 32) - peak_of(&b, 16);
    close_bench(&b);
    return growth;
}

static void memory_over_a_ring_falls_with_its_ranks(void **state)
{
    char axes[16];

    (void)state;
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
    (void)snprintf(axes, sizeof axes, "cp=%d", sw_test_ranks());
    double one = growth_over(NULL);
    double part = growth_over(axes);
    if (!(part > 0 && part * sw_test_ranks() <= 1.15 * one))
        fail_msg("%s: %.0f bytes more, of one rank %.0f", axes, part, one);
}

static double loss_of(bench *b, sw_step *step, uint64_t seq_len)
{
    /* room for the logits of a few places */
    const sw_eval_options options = {
        .seq_len = seq_len, .pass_tokens = 50, .most_logits = 800, .cp_order = b->how.order};
    sw_evaluation found = {0};
    sw_error err = {0};

    must(sw_evaluate(&found, b->net, step, &b->tokens, &options, &err), &err);
    return found.loss;
}

/* Sequences that ranks divide or not, the last one shorter. */
static void evaluates_as_one_rank(const char *folder, uint64_t seq_len, const spread *spreads)
{
    bench whole;
    bench part;

    open_net(&whole, folder, &(spread){0}, SW_DTYPE_F64);
    double wanted = loss_of(&whole, ranks.step, seq_len);
    for (const spread *how = spreads; how->axes != NULL; how++) {
        open_net(&part, folder, how, SW_DTYPE_F64);
        double got = loss_of(&part, ranks.step, seq_len);
        if (!(fabs(got - wanted) <= 1e-10 * wanted))
            fail_msg("%s over %s: %.17g is not %.17g", folder, how->axes, got, wanted);
        close_bench(&part);
    }
    close_bench(&whole);
}

static void evaluating_over_a_mesh_equals_one_rank(void **state)
{
    (void)state;
    evaluates_as_one_rank("llama", 23, here(dense));
    evaluates_as_one_rank("llama", 24, here(dense));
    evaluates_as_one_rank("llama", 23, here(contexts));
    evaluates_as_one_rank("mixtral", 24, here(experts));
}

static void a_number_gone_bad_on_one_rank_is_named_on_all(void **state)
{
    bench b;
    sw_curve_point point;
    char wanted[100];
    sw_error err = {0};

    (void)state;
    const spread *how = here(dense);
    rank_case_begin(&ranks, SW_DTYPE_F32);
    open_net(&b, "llama", how, SW_DTYPE_F32);
    open_trainer(&b);
    int last = sw_test_ranks() - 1;
    if (sw_test_rank() == last)
        number_set(SW_DTYPE_F32, sw_tensor_data(sw_net_parameter(b.net, "model.norm.weight")->tensor), 0,
                   nan(""));
    (void)snprintf(wanted, sizeof wanted, "values of model.norm.weight, on rank %d", last);
    assert_int_equal(sw_trainer_step(&b.trainer, &point, &err), SW_E_FORMAT);
    if (strstr(err.what, wanted) == NULL)
        fail_msg("%s", err.what);
    close_bench(&b);
}

/* A loss that is no number, on this rank alone. */
static sw_tensor *lose_number(void *context, sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                              double factor)
{
    const sw_loss_stage *was = context;
    sw_tensor *y = was->run(was->context, step, logits, targets, factor);

    if (y != NULL)
        number_set(SW_DTYPE_F32, sw_tensor_data(y), 0, nan(""));
    return y;
}

/* Ranks of tp have the same loss, each its own: the others would go on into the backward. */
static void a_loss_gone_bad_on_one_rank_of_tp_ends_all(void **state)
{
    bench b;
    sw_curve_point point;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    rank_case_begin(&ranks, SW_DTYPE_F32);
    open_net(&b, "llama", &(spread){.axes = "tp=2"}, SW_DTYPE_F32);
    open_trainer(&b);
    sw_loss_stage was = b.net->stages->loss;
    sw_stages odd = *b.net->stages;
    odd.loss = (sw_loss_stage){lose_number, &was};
    if (sw_test_rank() == 1)
        b.net->stages = &odd;
    assert_int_equal(sw_trainer_step(&b.trainer, &point, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "step 1: the loss is nan; the first bad tensor: none that is kept");
    assert_int_equal(err.rank, 1);
    close_bench(&b);
}

static void rows_that_ranks_do_not_divide_are_refused(void **state)
{
    const sw_train_options options = {.batch = 3, .accumulate = 1, .seq_len = 7};
    bench b;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_net(&b, "llama", &(spread){.axes = "dp=2"}, SW_DTYPE_F32);
    assert_int_equal(sw_trainer_create(&b.trainer, b.net, ranks.kernel, &b.tokens, "tokens", &options, &err),
                     SW_E_PLAN);
    assert_string_equal(err.what, "dp=2: 3 sequences of a micro-batch cannot be shared out evenly");
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_over_a_mesh_equal_one_rank),
        cmocka_unit_test(sequences_that_are_cut_equal_one_rank),
        cmocka_unit_test(experts_over_ranks_equal_one_rank),
        cmocka_unit_test(bug_43_copies_stay_the_same_bits_while_they_are_trained),
        cmocka_unit_test(the_same_mesh_twice_gives_the_same_bits),
        cmocka_unit_test(steady_steps_over_a_mesh_allocate_nothing),
        cmocka_unit_test(memory_over_a_ring_falls_with_its_ranks),
        cmocka_unit_test(evaluating_over_a_mesh_equals_one_rank),
        cmocka_unit_test(a_number_gone_bad_on_one_rank_is_named_on_all),
        cmocka_unit_test(a_loss_gone_bad_on_one_rank_of_tp_ends_all),
        cmocka_unit_test(rows_that_ranks_do_not_divide_are_refused),
    };
    return SW_MPI_MAIN_WITH("train_ranks", tests, begin, close_ranks);
}
