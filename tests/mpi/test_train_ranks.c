/*
 * Training and evaluating over ranks: losses, norms and parameters are those of one rank. Every rank has the
 * whole run beside its part of another, and compares.
 */
#include "rank_case.h"

#include "apply/applied.h"
#include "apply/parts.h"
#include "shardwright/plan.h"
#include "train/eval.h"
#include "train/load.h"
#include "train/loop.h"

enum { STEPS = 3, TOKENS = 400 };

/* One run of a model: of one rank, or this rank's part of one over a mesh. */
typedef struct bench {
    sw_mesh *mesh;
    sw_comm *comm;
    sw_weights weights;
    sw_plan *plan;
    sw_net *net;
    sw_tokens tokens;
    sw_trainer trainer;
    sw_curve_point points[STEPS];
} bench;

static rank_case ranks; /* its mesh is not used */
static uint8_t bytes[TOKENS];

static void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

static int open_ranks(void **state)
{
    (void)state;
    rank_case_open(&ranks);
    for (uint32_t i = 0; i < TOKENS; i++)
        bytes[i] = (uint8_t)((i * i / 3 + i % 5) % 53);
    return 0;
}

static int close_ranks(void **state)
{
    (void)state;
    rank_case_close(&ranks);
    return 0;
}

/* ---- runs ---- */

/* `axes` NULL: one rank alone. */
static void open_net(bench *b, const char *folder, const char *axes, const sw_plan_options *options,
                     sw_dtype dtype)
{
    sw_load_options load = {.dtype = dtype, .trains = true};
    char path[512];
    sw_error err = {0};

    *b = (bench){
        .tokens = {.first = bytes, .n_tokens = TOKENS, .dtype = SW_DTYPE_U8}
    };
    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, folder);
    if (axes == NULL) {
        must(sw_weights_open(&b->weights, path, &err), &err);
    } else {
        must(sw_mesh_create(&b->mesh, axes, 0, &err), &err);
        must(sw_comm_create(&b->comm, b->mesh, NULL, &err), &err);
        must(sw_weights_open_parts(&b->weights, path, &err), &err);
        must(sw_plan_create(&b->plan, b->weights.model, b->mesh, options, &err), &err);
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
        .schedule = {SW_SCHEDULE_LINEAR, 1e-2,          0,           10         },
        .adamw = { .decay = 0.1,      .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .clip = 0.5},
    };
    sw_error err = {0};

    must(sw_trainer_create(&b->trainer, b->net, ranks.kernel, &b->tokens, "tokens", &options, &err), &err);
}

static void run(bench *b, const char *folder, const char *axes, const sw_plan_options *options,
                sw_dtype dtype)
{
    sw_error err = {0};

    open_net(b, folder, axes, options, dtype);
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

static const char *const folders[] = {"llama_tied", "gpt2", "olmo2"};

static void all_of(const char *axes, const sw_plan_options *options)
{
    const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32};
    bench whole;
    bench part;

    for (size_t i = 0; i < 2 * SW_COUNT(folders); i++) {
        print_message("    %s over %s\n", folders[i / 2], axes);
        rank_case_begin(&ranks, dtypes[i % 2]);
        run(&whole, folders[i / 2], NULL, NULL, dtypes[i % 2]);
        run(&part, folders[i / 2], axes, options, dtypes[i % 2]);
        compare(&whole, &part);
        close_bench(&part);
        close_bench(&whole);
    }
}

/* ---- tests ---- */

/* Meshes of so many ranks. */
static const char *const meshes[5][2] = {
    [2] = {"tp=2",      "dp=2"},
      [4] = {"dp=2,tp=2", "dp=4"}
};

static void need_mesh(void)
{
    sw_test_need(sw_test_ranks() == 2 || sw_test_ranks() == 4, "is for 2 and 4 ranks");
}

static void three_steps_over_a_mesh_equal_one_rank(void **state)
{
    (void)state;
    need_mesh();
    for (size_t i = 0; i < 2; i++)
        all_of(meshes[sw_test_ranks()][i], NULL);
}

static void without_sequence_parallel_and_with_loss_parallel_too(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    need_mesh();
    options.loss_parallel = true;
    all_of(meshes[sw_test_ranks()][0], &options);
    options.no_sequence_parallel = true;
    all_of(meshes[sw_test_ranks()][0], &options);
}

static void the_same_mesh_twice_gives_the_same_bits(void **state)
{
    bench one;
    bench two;

    (void)state;
    need_mesh();
    run(&one, "llama", meshes[sw_test_ranks()][0], NULL, SW_DTYPE_F32);
    run(&two, "llama", meshes[sw_test_ranks()][0], NULL, SW_DTYPE_F32);
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

static double loss_of(bench *b, sw_step *step, uint64_t seq_len)
{
    const sw_eval_options options = {.seq_len = seq_len, .pass_tokens = 50};
    sw_evaluation found = {0};
    sw_error err = {0};

    must(sw_evaluate(&found, b->net, step, &b->tokens, &options, &err), &err);
    return found.loss;
}

/* Sequences that ranks do not divide, the last one shorter. */
static void evaluating_over_a_mesh_equals_one_rank(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    bench whole;
    bench part;

    (void)state;
    need_mesh();
    for (int i = 0; i < 4; i++) {
        options.no_sequence_parallel = i >= 2;
        open_net(&whole, "llama", NULL, NULL, SW_DTYPE_F64);
        open_net(&part, "llama", meshes[sw_test_ranks()][i % 2], &options, SW_DTYPE_F64);
        double wanted = loss_of(&whole, ranks.step, 23);
        double got = loss_of(&part, ranks.step, 23);
        assert_true(fabs(got - wanted) <= 1e-10 * wanted);
        close_bench(&part);
        close_bench(&whole);
    }
}

static void a_number_gone_bad_on_one_rank_is_named_on_all(void **state)
{
    bench b;
    sw_curve_point point;
    char wanted[100];
    sw_error err = {0};

    (void)state;
    need_mesh();
    rank_case_begin(&ranks, SW_DTYPE_F32);
    open_net(&b, "llama", meshes[sw_test_ranks()][0], NULL, SW_DTYPE_F32);
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

static void rows_that_ranks_do_not_divide_are_refused(void **state)
{
    const sw_train_options options = {.batch = 3, .accumulate = 1, .seq_len = 7};
    bench b;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_net(&b, "llama", "dp=2", NULL, SW_DTYPE_F32);
    assert_int_equal(sw_trainer_create(&b.trainer, b.net, ranks.kernel, &b.tokens, "tokens", &options, &err),
                     SW_E_PLAN);
    assert_string_equal(err.what, "dp=2: 3 sequences of a micro-batch cannot be shared out evenly");
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_over_a_mesh_equal_one_rank),
        cmocka_unit_test(without_sequence_parallel_and_with_loss_parallel_too),
        cmocka_unit_test(the_same_mesh_twice_gives_the_same_bits),
        cmocka_unit_test(evaluating_over_a_mesh_equals_one_rank),
        cmocka_unit_test(a_number_gone_bad_on_one_rank_is_named_on_all),
        cmocka_unit_test(rows_that_ranks_do_not_divide_are_refused),
    };
    return SW_MPI_MAIN_WITH("train_ranks", tests, open_ranks, close_ranks);
}
