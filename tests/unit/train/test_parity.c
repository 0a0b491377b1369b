/* Optimizers, clipping and schedules against what torch and transformers computed (tests/parity). */
#include <math.h>
#include <string.h>

#include "golden_case.h"
#include "kernel_op.h"
#include "train/optimizer.h"
#include "train/schedule.h"

enum { N_TENSORS = 3, STEPS = 20, MOST_ELEMS = 64 };

static const char *const names[N_TENSORS] = {"a", "b", "c"};

/* A parameter of the golden run. */
typedef struct subject {
    float value[MOST_ELEMS];
    float gradient[MOST_ELEMS];
    float moments[SW_MOST_MOMENTS][MOST_ELEMS];
    sw_storage storage;
    const float *grads; /* of all steps */
    const float *after;
} subject;

static const float *floats(const golden_file *file, const char *run, const char *name, const char *what,
                           size_t *n)
{
    char full[64];

    (void)snprintf(full, sizeof full, "%s.%s.%s", run, name, what);
    return golden_f32(file, full, n);
}

static sw_trained begin(subject *s, const golden_file *file, const char *run, const char *name,
                        sw_optimizer_kind kind)
{
    size_t n = 0;
    const float *before = floats(file, run, name, "before", &n);

    *s = (subject){
        .storage = {.dtype = SW_DTYPE_F32, .n_elems = n, .has_gradient = true}
    };
    assert_in_range(n, 1, MOST_ELEMS);
    memcpy(s->value, before, n * sizeof *before);
    s->grads = floats(file, run, name, "grads", NULL);
    s->after = floats(file, run, name, "after", NULL);
    /* All of them decay in the golden run: as matrices do here. */
    sw_trained param = {.fqn = name,
                        .storage = &s->storage,
                        .n_dims = 2,
                        .n_elems = n,
                        .value = s->value,
                        .gradient = s->gradient};
    for (uint32_t k = 0; k < sw_optimizer_moments(kind); k++)
        param.moments[k] = s->moments[k];
    return param;
}

/* Run the steps of a golden run of a file; the norms of the gradients go to `norms`. */
static void follow(const char *name, const char *run, const sw_optimizer *optimizer, double norms[STEPS])
{
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    subject subjects[N_TENSORS];
    sw_trained params[N_TENSORS];
    const sw_trained_list list = {params, N_TENSORS};
    golden_file file;

    golden_open(&file, name);
    for (int i = 0; i < N_TENSORS; i++)
        params[i] = begin(&subjects[i], &file, run, names[i], optimizer->kind);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < N_TENSORS; i++)
            memcpy(subjects[i].gradient, subjects[i].grads + step * params[i].n_elems,
                   params[i].n_elems * sizeof(float));
        norms[step] = sw_trained_norm(&list, kernel);
        sw_trained_step(&list, kernel, optimizer, norms[step], step + 1);
        for (int i = 0; i < N_TENSORS; i++) {
            const float *after = subjects[i].after + step * params[i].n_elems;
            for (uint64_t k = 0; k < params[i].n_elems; k++)
                assert_true(fabs((double)subjects[i].value[k] - (double)after[k]) <= 1e-6);
        }
    }
    golden_close(&file);
    sw_kernel_destroy(kernel);
}

/* An optimizer of torch, and ours. */
static const struct {
    const char *name;
    sw_optimizer ours;
} optimizers[] = {
    {"adamw",        {SW_OPTIMIZER_ADAMW, 1e-2, 0.1, 0.9, 0.95, 1e-8, 0.0}              },
    {"sgd",          {SW_OPTIMIZER_SGD, .lr = 1e-1, .decay = 0.1}                       },
    {"sgd_momentum", {SW_OPTIMIZER_SGD_MOMENTUM, .lr = 1e-1, .decay = 0.1, .beta1 = 0.9}},
};
_Static_assert(sizeof optimizers / sizeof optimizers[0] == SW_OPTIMIZER_COUNT_, "all of them");

static void twenty_steps_are_those_of_torch(void **state)
{
    double norms[STEPS];

    (void)state;
    for (int i = 0; i < SW_OPTIMIZER_COUNT_; i++)
        follow(optimizers[i].name, optimizers[i].name, &optimizers[i].ours, norms);
}

static void twenty_clipped_steps_are_those_of_torch(void **state)
{
    (void)state;
    for (int i = 0; i < SW_OPTIMIZER_COUNT_; i++) {
        sw_optimizer clipped = optimizers[i].ours;
        double norms[STEPS];
        golden_file file;
        size_t n = 0;
        uint32_t n_clipped = 0;
        clipped.clip = 1.5;
        follow(optimizers[i].name, "clipped", &clipped, norms);
        golden_open(&file, optimizers[i].name);
        const float *expected = golden_f32(&file, "clipped.norms", &n);
        assert_int_equal(n, STEPS);
        for (int k = 0; k < STEPS; k++) {
            assert_true(fabs(norms[k] - (double)expected[k]) <= 1e-6 * norms[k]);
            n_clipped += norms[k] > 1.5;
        }
        assert_in_range(n_clipped, 1, STEPS);
        golden_close(&file);
    }
}

static void follow_schedule(const golden_file *file, const char *name, sw_schedule_kind kind)
{
    const sw_schedule schedule = {kind, 1e-2, 5, 30};
    size_t n = 0;
    const double *rates = golden_f64(file, name, &n);

    assert_int_equal(n, 30);
    for (uint64_t step = 0; step < n; step++)
        assert_true(fabs(sw_schedule_rate(&schedule, step) - rates[step]) <= 1e-15);
}

static void rates_are_those_of_transformers(void **state)
{
    golden_file file;

    (void)state;
    golden_open(&file, "schedules");
    follow_schedule(&file, "cosine", SW_SCHEDULE_COSINE);
    follow_schedule(&file, "linear", SW_SCHEDULE_LINEAR);
    golden_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_are_those_of_torch),
        cmocka_unit_test(twenty_clipped_steps_are_those_of_torch),
        cmocka_unit_test(rates_are_those_of_transformers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
