/*
 * Transitions on real ranks: random layouts and dtypes over every mesh of as many ranks as there are, forward
 * and backward, on one host and on several that are pretended. All ranks draw the same numbers, so that each
 * knows what the tensors of all must stand for (tests/support/layout_case.h).
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "comm/comm.h"
#include "dtensor/run.h"
#include "layout_case.h"
#include "mpi_main.h"
#include "numbers.h"

enum { N_CASES = 60, MOST_BYTES = 1 << 16 };

/* Bytes and Booleans are only moved: summands of the test are beyond them. BF16 has no numbers beyond 256. */
static const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32, SW_DTYPE_F16,  SW_DTYPE_I64,
                                  SW_DTYPE_I32, SW_DTYPE_I16, SW_DTYPE_BF16, SW_DTYPE_U8};
enum { N_ADDED = 6, MOST_MOVED = 250 };

static layout_case from;
static layout_case to;
static layout_case from_gradient;
static layout_case to_gradient;

static void free_all(double **tensors)
{
    for (uint32_t rank = 0; rank < CASE_MAX_RANKS; rank++) {
        free(tensors[rank]);
        tensors[rank] = NULL;
    }
}

/* The tensors of all ranks, from this rank's. */
static void share(const layout_case *c, const double *mine, double **tensors)
{
    for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
        uint64_t n = layout_case_local_elems(c, rank);
        tensors[rank] = calloc(n + 1, sizeof **tensors);
        assert_non_null(tensors[rank]);
        if ((int)rank == sw_test_rank())
            memcpy(tensors[rank], mine, n * sizeof **tensors);
        MPI_Bcast(tensors[rank], (int)n, MPI_DOUBLE, (int)rank, MPI_COMM_WORLD);
    }
}

/* Run one way from tensors that stand for `values` as `before` to tensors that must as `after`. */
static bool arrives(gen *g, const sw_step_list *list, sw_dtype dtype, const layout_case *before,
                    const layout_case *after, const double *values)
{
    _Alignas(64) static char in[MOST_BYTES];
    _Alignas(64) static char out[MOST_BYTES];
    double mine[CASE_MAX_ELEMS + 1] = {0};
    double *tensors[CASE_MAX_RANKS] = {0};
    uint32_t rank = (uint32_t)sw_test_rank();
    size_t n_bytes = 0;
    sw_error err = {0};

    layout_case_spread(g, before, values, tensors);
    for (uint64_t i = 0; i < layout_case_local_elems(before, rank); i++)
        number_put(in, i, dtype, tensors[rank][i]);
    free_all(tensors);
    if (sw_step_list_workspace(list, dtype, &n_bytes, &err) != SW_OK)
        fail_msg("%s", err.what);
    void *workspace = aligned_alloc(64, n_bytes + 64);
    memset(out, 0x7b, sizeof out);
    sw_alloc_fail_at(1); /* nothing may be allocated in a run: it could not say so */
    sw_step_list_run(list, dtype, in, out, workspace);
    sw_alloc_fail_at(0);
    free(workspace);
    const char *result = list->n == 0 ? in : out;
    for (uint64_t i = 0; i < layout_case_local_elems(after, rank); i++)
        mine[i] = number_get(result, i, dtype);
    share(after, mine, tensors);
    bool holds = layout_case_stands_for(after, tensors, values);
    free_all(tensors);
    return holds;
}

static void make_case(gen *g, const sw_grid *grid, sw_comm *comm, sw_redistribution *made, sw_arena *arena)
{
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    sw_tensor_layout before;
    sw_tensor_layout after;
    sw_grid_coord at = {{0}};
    sw_error err = {0};

    uint32_t n_dims = layout_case_shape(g, dims, CASE_MAX_ELEMS);
    layout_case_places(g, &from, grid, n_dims, dims);
    layout_case_places(g, &to, grid, n_dims, dims);
    uint32_t split = gen_below(g, 8);
    layout_case_gradient(&from_gradient, &from, 0);
    layout_case_gradient(&to_gradient, &to, split);
    for (uint32_t a = 0; a < grid->n_axes; a++)
        at.at[a] = layout_case_coord(&from, (uint32_t)sw_test_rank(), a);
    if (sw_tensor_layout_make(&before, grid, n_dims, dims, from.places, &err) != SW_OK ||
        sw_tensor_layout_make(&after, grid, n_dims, dims, to.places, &err) != SW_OK ||
        sw_redistribution_make(made, &before, &after, split, at, arena, &err) != SW_OK ||
        sw_redistribution_bind(made, comm, &err) != SW_OK)
        fail_msg("%s", err.what);
}

/* A dtype that has the numbers of the case. */
static sw_dtype pick_dtype(gen *g)
{
    uint32_t n = SW_COUNT(dtypes);

    for (uint32_t a = 0; a < from.grid.n_axes; a++) {
        if (from.is_summed[a] || to.is_summed[a] || to_gradient.is_summed[a])
            n = N_ADDED;
    }
    return dtypes[gen_below(g, n)];
}

static void run_case(uint64_t seed, const sw_grid *grid, sw_comm *comm)
{
    gen g = {seed, seed * 0x2545f4914f6cdd1dU + 1};
    sw_arena *arena = sw_arena_create(0);
    sw_redistribution made;
    double values[CASE_MAX_ELEMS + 1];

    make_case(&g, grid, comm, &made, arena);
    sw_dtype dtype = pick_dtype(&g);
    for (uint64_t i = 0; i < layout_case_elems(&from); i++)
        values[i] = (double)(i % MOST_MOVED + 1);
    bool holds = arrives(&g, &made.forward, dtype, &from, &to, values) &&
                 arrives(&g, &made.backward, dtype, &to_gradient, &from_gradient, values);
    sw_arena_destroy(arena);
    if (!holds)
        fail_msg("seed %d on %u x %u x %u ranks", (int)seed, grid->size[0], grid->size[1], grid->size[2]);
}

/* Random transitions over the axes of a mesh, which together number all ranks. */
static void run_mesh(const char *text, uint32_t ep, const sw_axis *axes, uint32_t n_axes, int host_ranks)
{
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_grid grid;
    sw_error err = {0};

    if (sw_mesh_create(&mesh, text, ep, &err) != SW_OK ||
        sw_comm_create_on(&comm, mesh, NULL, sw_test_rank() / host_ranks, &err) != SW_OK ||
        sw_grid_of_mesh(&grid, mesh, axes, n_axes, &err) != SW_OK)
        fail_msg("%s: %s", text, err.what);
    for (uint64_t seed = 0; seed < N_CASES; seed++)
        run_case(seed, &grid, comm);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
}

/* Every way to see the ranks as a grid of cp, ep, tp. */
static void any_transition_on_any_mesh_keeps_tensor_and_gradient(void **state)
{
    static const sw_axis axes[] = {SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP};
    uint32_t n = (uint32_t)sw_test_ranks();
    int host_ranks = *(const int *)*state;

    for (uint32_t i = 0; i < n * n; i++) {
        uint32_t cp = i / n + 1;
        uint32_t ep = i % n + 1;
        char text[64];
        if (n % (cp * ep) != 0)
            continue;
        (void)snprintf(text, sizeof text, "cp=%u,ep=%u,tp=%u", cp, ep, n / cp / ep);
        run_mesh(text, 0, axes, SW_COUNT(axes), host_ranks);
    }
}

/*
 * Experts that are cut out of dp, cp and tp number the same ranks as these, in two axes of their own; edp
 * also stands beside a tp that ep is made of.
 */
static void any_transition_over_derived_experts_keeps_tensor_and_gradient(void **state)
{
    static const sw_axis experts[] = {SW_AXIS_PP, SW_AXIS_EDP, SW_AXIS_EP};
    static const sw_axis mixed[] = {SW_AXIS_EDP, SW_AXIS_TP};
    uint32_t n = (uint32_t)sw_test_ranks();
    int host_ranks = *(const int *)*state;

    for (uint32_t ep = 2; ep <= n; ep++) { /* of one there is no such axis */
        char text[64];
        if (n % ep != 0)
            continue;
        (void)snprintf(text, sizeof text, "cp=%u", n);
        run_mesh(text, ep, experts, SW_COUNT(experts), host_ranks);
        (void)snprintf(text, sizeof text, "dp=%u,tp=%u", n / ep, ep);
        run_mesh(text, ep, mixed, SW_COUNT(mixed), host_ranks);
        if (n % 2 != 0 || n / 2 % ep != 0)
            continue;
        (void)snprintf(text, sizeof text, "pp=2,dp=%u", n / 2);
        run_mesh(text, ep, experts, SW_COUNT(experts), host_ranks);
    }
}

static int host_of_all = INT32_MAX;
static int host_of_two = 2;
static int host_of_three = 3;

#define EXPERTS_ON(host_ranks)                                                                               \
    cmocka_unit_test_prestate(any_transition_over_derived_experts_keeps_tensor_and_gradient, &(host_ranks))
#define ON(host_ranks)                                                                                       \
    cmocka_unit_test_prestate(any_transition_on_any_mesh_keeps_tensor_and_gradient, &(host_ranks))

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(host_of_all), ON(host_of_two), ON(host_of_three), EXPERTS_ON(host_of_all), EXPERTS_ON(host_of_two),
    };
    return SW_MPI_MAIN("redistribution", tests);
}
