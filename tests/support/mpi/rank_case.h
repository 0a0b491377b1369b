/*
 * One computation twice: whole on every rank, and in parts over all ranks of the job. What a test of
 * src/parallel needs for both: a step, parameters with gradients, random numbers that all ranks draw alike,
 * and comparisons that say where numbers differ.
 */
#ifndef SW_TEST_RANK_CASE_H
#define SW_TEST_RANK_CASE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "comm/collective.h"
#include "kernel/kernel.h"
#include "mpi_main.h"
#include "tensor/operations.h"
#include "tensor/step.h"

typedef struct rank_case {
    sw_mesh *mesh;
    sw_comm *comm;
    const sw_group *group; /* of all ranks */
    sw_kernel *kernel;
    sw_step *step;
    sw_dtype dtype;
    double tolerance; /* relative to the largest number */
    bool goes_on;     /* what differs is told and counted, and does not end the test: ranks stay together */
    uint32_t n_told;
} rank_case;

/* Something differs. */
__attribute__((format(printf, 2, 3))) static inline void rank_case_tell(rank_case *c, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!c->goes_on)
        fail_msg("%s", text);
    c->n_told++;
    print_error("rank %d: %s\n", sw_test_rank(), text);
}

static inline void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

static inline void rank_case_open(rank_case *c)
{
    char text[32];
    sw_error err = {0};

    (void)snprintf(text, sizeof text, "cp=%d", sw_test_ranks());
    if (sw_mesh_create(&c->mesh, text, 0, &err) != SW_OK ||
        sw_comm_create(&c->comm, c->mesh, NULL, &err) != SW_OK ||
        sw_kernel_create(&c->kernel, 1, SW_KERNEL_BEST, &err) != SW_OK ||
        sw_step_create(&c->step, c->kernel, &err) != SW_OK)
        fail_msg("%s", err.what);
    c->group = sw_comm_group(c->comm, SW_GROUP_CP);
}

static inline void rank_case_close(rank_case *c)
{
    sw_step_destroy(c->step);
    sw_kernel_destroy(c->kernel);
    sw_comm_destroy(c->comm);
    sw_mesh_destroy(c->mesh);
}

/* The case of a test program, and what opens and closes it around the tests. */
#define RANK_CASE(name, open, close)                                                                         \
    static rank_case name;                                                                                   \
    static int open(void **state)                                                                            \
    {                                                                                                        \
        (void)state;                                                                                         \
        rank_case_open(&(name));                                                                             \
        return 0;                                                                                            \
    }                                                                                                        \
    static int close(void **state)                                                                           \
    {                                                                                                        \
        (void)state;                                                                                         \
        rank_case_close(&(name));                                                                            \
        return 0;                                                                                            \
    }

static inline void rank_case_begin(rank_case *c, sw_dtype dtype)
{
    c->dtype = dtype;
    c->tolerance = dtype == SW_DTYPE_F64 ? 1e-10 : 1e-5;
    sw_step_begin(c->step, true);
}

/* -1 .. 1, by the seed and the index alone. */
static inline double random_at(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15U + i * 0xd1342543de82ef95U;

    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    x ^= x >> 32;
    return (double)(int64_t)(x >> 11) / 4503599627370496.0 - 1;
}

static inline double number_at(sw_dtype dtype, const void *values, uint64_t i)
{
    return dtype == SW_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static inline void number_set(sw_dtype dtype, void *values, uint64_t i, double value)
{
    if (dtype == SW_DTYPE_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

/* A tensor of the step with a gradient of its own; elements are not set. */
static inline sw_tensor *rank_case_tensor(const rank_case *c, uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *x = sw_step_tensor(c->step, c->dtype, n_dims, dims);

    assert_non_null(x);
    size_t bytes = (size_t)sw_tensor_elems(x) * sw_elem_bytes(c->dtype);
    void *gradient = sw_stack_take(sw_step_stack(c->step), bytes);
    assert_non_null(gradient);
    memset(gradient, 0x7f, bytes);
    sw_tensor_lend_gradient(x, gradient);
    return x;
}

static inline sw_tensor *rank_case_random(const rank_case *c, uint32_t n_dims, const uint64_t *dims,
                                          uint64_t seed)
{
    sw_tensor *x = rank_case_tensor(c, n_dims, dims);

    for (uint64_t i = 0; i < sw_tensor_elems(x); i++)
        number_set(c->dtype, sw_tensor_data(x), i, random_at(seed, i));
    return x;
}

/* I32, not set. */
static inline sw_tensor *rank_case_whole(const rank_case *c, uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *x = sw_step_tensor(c->step, SW_DTYPE_I32, n_dims, dims);

    assert_non_null(x);
    return x;
}

static inline void rank_case_must(const rank_case *c, const sw_tensor *y)
{
    sw_error err = {0};

    if (sw_step_status(c->step, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_non_null(y);
}

static inline void rank_case_back(const rank_case *c, const sw_tensor *y, const void *d_y)
{
    sw_error err = {0};

    rank_case_must(c, y);
    if (sw_step_backward(c->step, y, d_y, &err) != SW_OK)
        fail_msg("%s", err.what);
}

/* What a status and its account must be. */
static inline void rank_case_refused(const rank_case *c, sw_status status, const char *what)
{
    sw_error err = {0};

    assert_int_equal(sw_step_status(c->step, &err), status);
    if (strstr(err.what, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.what, what);
}

/* Largest magnitude of n numbers, at least 1e-3: what differences are relative to. */
static inline double rank_case_scale(const rank_case *c, const void *values, uint64_t n)
{
    double most = 1e-3;

    for (uint64_t i = 0; i < n; i++)
        most = fmax(most, fabs(number_at(c->dtype, values, i)));
    return most;
}

/* `n` numbers from `at` on of `got` against those of `want` from `from` on; scale: of all of `want`. */
static inline void rank_case_near(rank_case *c, const char *name, const void *got, uint64_t at,
                                  const void *want, uint64_t from, uint64_t n, double scale)
{
    for (uint64_t i = 0; i < n; i++) {
        double a = number_at(c->dtype, got, at + i);
        double b = number_at(c->dtype, want, from + i);
        if (!(fabs(a - b) <= c->tolerance * scale)) {
            rank_case_tell(c, "%s, element %d: %.17g is not %.17g (largest %g)", name, (int)(from + i), a, b,
                           scale);
            return;
        }
    }
}

#endif
