/*
 * Cases of docs/reference/bug-cases.md about runs that go on elsewhere: what one mesh has trained and saved
 * is taken up by another, and by one rank, as if nothing had happened.
 */
#include "rank_case.h"

#include "shardwright/checkpoint.h"
#include "shardwright/plan.h"
#include "train/save.h"

enum { STEPS = 4, SAVED = 2, TOKENS = 300 };

typedef struct bench {
    sw_mesh *mesh;
    sw_comm *comm;
    sw_weights weights;
    sw_plan *plan;
    sw_net *net;
    sw_trainer trainer;
} bench;

RANK_CASE(ranks, open_ranks, close_ranks)
static uint8_t bytes[TOKENS];
static const sw_tokens tokens = {.first = bytes, .n_tokens = TOKENS, .dtype = SW_DTYPE_U8};

static int begin(void **state)
{
    int status = open_ranks(state);

    rank_case_begin(&ranks, SW_DTYPE_F64);
    for (uint32_t i = 0; i < TOKENS; i++)
        bytes[i] = (uint8_t)((i * i / 3 + i % 5) % 53);
    return status;
}

/* A folder that all ranks see. */
static const char *shared(char *path, size_t capacity, const char *name)
{
    (void)snprintf(path, capacity, "%s/tests/bugs-train-%d-%s", SW_BINARY_DIR, sw_test_ranks(), name);
    return path;
}

/* `axes` NULL: each rank alone. */
static void open_bench(bench *b, const char *path, const char *axes, sw_optimizer_kind kind)
{
    sw_load_options load = {.dtype = SW_DTYPE_F64, .trains = true};
    const sw_train_options options = {
        .batch = 4,
        .accumulate = 1,
        .seq_len = 7,
        .seed = 3,
        .schedule = {SW_SCHEDULE_LINEAR, 1e-2,     0,           10         },
        .optimizer = { kind, .decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .clip = 0.5},
    };
    sw_error err = {0};

    *b = (bench){.mesh = NULL};
    must(sw_weights_open(&b->weights, path, &err), &err);
    if (axes != NULL) {
        must(sw_mesh_create(&b->mesh, axes, 0, &err), &err);
        must(sw_comm_create(&b->comm, b->mesh, NULL, &err), &err);
        must(sw_plan_create(&b->plan, b->weights.model, b->mesh, NULL, &err), &err);
        load.plan = b->plan;
        load.comm = b->comm;
    }
    must(sw_load(&b->net, &b->weights, &load, ranks.kernel, &err), &err);
    must(sw_trainer_create(&b->trainer, b->net, ranks.kernel, &tokens, "tokens", &options, &err), &err);
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

/* The losses of steps from `first` on are those of one rank. */
static void goes_on(bench *b, uint32_t first, uint32_t end, const double *losses)
{
    sw_error err = {0};

    for (uint32_t i = first; i < end; i++) {
        sw_curve_point point = {0};
        must(sw_trainer_step(&b->trainer, &point, &err), &err);
        assert_int_equal(point.step, i + 1);
        if (!(fabs(point.loss - losses[i]) <= 1e-10 * losses[i]))
            fail_msg("step %u: loss %.17g is not %.17g", i + 1, point.loss, losses[i]);
    }
}

static void resumes(const char *path, const char *axes, sw_optimizer_kind kind, const double *losses)
{
    bench b;
    sw_error err = {0};

    open_bench(&b, path, axes, kind);
    must(sw_train_resume(&b.trainer, &b.weights, &err), &err);
    goes_on(&b, SAVED, STEPS, losses);
    close_bench(&b);
}

/* Trained and saved over one mesh, taken up over another and, merged, by one rank. */
static void is_uninterrupted(const char *model, const char *axes, const char *other_axes,
                             sw_optimizer_kind kind)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    char path[512];
    char saved[512];
    char merged[512];
    double losses[STEPS];
    bench b;
    sw_error err = {0};

    (void)snprintf(path, sizeof path, "%s/tests/parity/data/%s", SW_SOURCE_DIR, model);
    open_bench(&b, path, NULL, kind);
    for (uint32_t i = 0; i < STEPS; i++) {
        sw_curve_point point = {0};
        must(sw_trainer_step(&b.trainer, &point, &err), &err);
        losses[i] = point.loss;
    }
    close_bench(&b);
    open_bench(&b, path, axes, kind);
    goes_on(&b, 0, SAVED, losses);
    must(sw_train_save(&b.trainer, &b.weights, shared(saved, sizeof saved, "saved"), true, &err), &err);
    options.replace = true;
    options.no_sync = true;
    (void)shared(merged, sizeof merged, "merged");
    sw_status status = sw_test_rank() == 0 ? sw_checkpoint_merge(saved, merged, &options, NULL, &err) : SW_OK;
    must(sw_comm_agree(b.comm, status, &err), &err);
    close_bench(&b);
    resumes(saved, other_axes, kind, losses);
    resumes(merged, NULL, kind, losses);
}

/* ---- cases ---- */

static void bug_8_fused_rows_are_stored_in_one_order_whatever_the_mesh(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    is_uninterrupted("phi3", "tp=2", "dp=2", SW_OPTIMIZER_ADAMW);
    is_uninterrupted("codegen", "tp=2", "dp=2", SW_OPTIMIZER_ADAMW);
}

static void bug_80_moments_go_along_to_another_mesh(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 4, "is for 4 ranks");
    is_uninterrupted("qwen2", "dp=2,tp=2", "dp=4", SW_OPTIMIZER_ADAMW);
    is_uninterrupted("llama_tied", "dp=4", "dp=2,tp=2", SW_OPTIMIZER_ADAMW);
    is_uninterrupted("mixtral", "dp=4", "dp=2,ep=2", SW_OPTIMIZER_ADAMW);
    is_uninterrupted("llama_tied", "dp=4", "dp=2,tp=2", SW_OPTIMIZER_SGD_MOMENTUM);
    is_uninterrupted("llama_tied", "dp=2,tp=2", "dp=4", SW_OPTIMIZER_SGD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bug_8_fused_rows_are_stored_in_one_order_whatever_the_mesh),
        cmocka_unit_test(bug_80_moments_go_along_to_another_mesh),
    };
    return SW_MPI_MAIN_WITH("bugs_train", tests, begin, close_ranks);
}
