/* Collectives begun and finished later give what the blocking ones give, whatever goes on meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/pending.h"
#include "comm/work.h"
#include "mpi_main.h"
#include "numbers.h"

enum { MOST = 4096 };

static sw_comm *comm;
static const sw_group *group;

static uint64_t in[MOST];
static uint64_t out[MOST];
static uint64_t expected[MOST];

static const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_BF16, SW_DTYPE_F64, SW_DTYPE_I16, SW_DTYPE_U8};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };
static const sw_along shapes[] = {
    {1, 24,  1},
    {1, 7,   5},
    {3, 9,   4},
    {1, 0,   4},
    {7, 13,  1},
    {1, 300, 7}
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void fill(sw_dtype dtype)
{
    for (uint32_t i = 0; i < MOST; i++)
        number_put(in, i, dtype, (i * 7 + i / 13 + group->index * 5) % 16);
    memset(out, 0x5a, sizeof out);
    memset(expected, 0x5a, sizeof expected);
}

/* Another collective over the group, while one is pending. */
static void do_something_else(void)
{
    uint32_t one = 1;
    uint32_t all = 0;
    sw_all_reduce(group, 1, SW_DTYPE_U32, &one, &all);
    assert_int_equal(all, group->size);
}

static void finish(sw_pending *pending)
{
    do_something_else();
    (void)sw_pending_is_here(pending);
    sw_pending_wait(pending);
    assert_memory_equal(out, expected, sizeof out);
    sw_pending_wait(pending); /* nothing is pending: nothing is done */
}

static void try_along(sw_pending *pending, const sw_along *t, sw_dtype dtype)
{
    uint64_t n = t->n_outer * t->extent * t->n_inner;

    fill(dtype);
    sw_all_gather(group, t, dtype, in, expected);
    sw_all_gather_begin(pending, t, dtype, in, out);
    finish(pending);
    fill(dtype);
    sw_reduce_scatter(group, t, dtype, in, expected);
    sw_reduce_scatter_begin(pending, t, dtype, in, out);
    finish(pending);
    fill(dtype);
    sw_all_reduce(group, n, dtype, in, expected);
    sw_all_reduce_begin(pending, n, dtype, in, out);
    finish(pending);
    memcpy(out, in, n * sw_dtype_bits(dtype) / 8);
    sw_all_reduce_begin(pending, n, dtype, out, out);
    finish(pending);
}

static void try_across(sw_pending *pending, sw_dtype dtype)
{
    const sw_across t = {2, 11, 3, 7, 2};

    fill(dtype);
    sw_all_to_all(group, &t, dtype, in, expected);
    sw_all_to_all_begin(pending, &t, dtype, in, out);
    finish(pending);
    fill(dtype);
    sw_all_to_all_back(group, &t, dtype, in, expected);
    sw_all_to_all_back_begin(pending, &t, dtype, in, out);
    finish(pending);
}

static void try_exchange(sw_pending *pending)
{
    uint64_t n_sent[8];
    uint64_t n_received[8];

    fill(SW_DTYPE_F32);
    for (uint32_t m = 0; m < group->size; m++) {
        n_sent[m] = (group->index * 3 + m * 5) % 7;
        n_received[m] = (m * 3 + group->index * 5) % 7;
    }
    sw_exchange_elems(group, SW_DTYPE_F32, in, n_sent, expected, n_received);
    sw_exchange_elems_begin(pending, SW_DTYPE_F32, in, n_sent, out, n_received);
    finish(pending);
}

static void try_everything(size_t stage_bytes)
{
    sw_pending *pending = NULL;
    int64_t live = sw_alloc_live();

    assert_int_equal(sw_pending_create(&pending, group, stage_bytes, NULL), SW_OK);
    sw_alloc_fail_at(1); /* on the way nothing is allocated */
    for (size_t s = 0; s < N_SHAPES; s++) {
        for (size_t d = 0; d < N_DTYPES; d++)
            try_along(pending, &shapes[s], dtypes[d]);
    }
    for (size_t d = 0; d < N_DTYPES; d++)
        try_across(pending, dtypes[d]);
    try_exchange(pending);
    sw_alloc_fail_at(0);
    sw_pending_destroy(pending);
    assert_int_equal(sw_alloc_live(), live);
}

static void what_is_finished_later_is_the_same(void **state)
{
    (void)state;
    try_everything(sw_pending_stage(group, 2100, SW_DTYPE_F64));
}

static void what_does_not_fit_the_stage_is_done_at_once(void **state)
{
    (void)state;
    try_everything(0);
}

static void two_may_be_pending(void **state)
{
    (void)state;
    const sw_along t = {4, 6, 3};
    sw_pending *first = NULL;
    sw_pending *second = NULL;
    static float gathered[72];

    assert_int_equal(sw_pending_create(&first, group, sw_pending_stage(group, 72, SW_DTYPE_F32), NULL),
                     SW_OK);
    assert_int_equal(sw_pending_create(&second, group, sw_pending_stage(group, 72, SW_DTYPE_F32), NULL),
                     SW_OK);
    fill(SW_DTYPE_F32);
    sw_reduce_scatter(group, &t, SW_DTYPE_F32, in, expected);
    sw_all_gather_begin(first, &t, SW_DTYPE_F32, in, gathered);
    sw_reduce_scatter_begin(second, &t, SW_DTYPE_F32, in, out);
    sw_pending_wait(second);
    assert_memory_equal(out, expected, sizeof out);
    sw_pending_wait(first);
    fill(SW_DTYPE_F32);
    sw_all_gather(group, &t, SW_DTYPE_F32, in, expected);
    assert_memory_equal(gathered, expected, sizeof gathered);
    sw_pending_destroy(first);
    sw_pending_destroy(second);
    sw_pending_destroy(NULL);
}

static void memory_may_end(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_pending *pending = NULL;
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_pending_create(&pending, group, 1000, &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK) {
            sw_pending_destroy(pending);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_int_equal(sw_alloc_live(), live);
    }
}

static int make_group(void **state)
{
    (void)state;
    char axes[16];
    sw_mesh *mesh = NULL;
    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    if (sw_mesh_create(&mesh, axes, 0, NULL) != SW_OK || sw_comm_create(&comm, mesh, NULL, NULL) != SW_OK)
        return -1;
    sw_mesh_destroy(mesh);
    group = sw_comm_group(comm, SW_GROUP_TP);
    return 0;
}

static int drop_group(void **state)
{
    (void)state;
    sw_comm_destroy(comm);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_finished_later_is_the_same),
        cmocka_unit_test(what_does_not_fit_the_stage_is_done_at_once),
        cmocka_unit_test(two_may_be_pending),
        cmocka_unit_test(memory_may_end),
    };
    return SW_MPI_MAIN_WITH("pending", tests, make_group, drop_group);
}
