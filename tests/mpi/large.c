/*
 * Tensors beyond what MPI counts in an int: collectives over more than 2^31 elements of one byte, and over
 * fewer of four bytes whose bytes are more than that; through the group's window and by MPI. On two ranks,
 * with 8.5 GiB: scripts/test-long.sh runs it where there is so much.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collective.h"
#include "comm/work.h"
#include "mesh/shard.h"
#include "mpi_main.h"

#define ELEMS      ((UINT64_C(1) << 31) + 4099) /* of one byte */
#define WIDE_ELEMS ((UINT64_C(1) << 29) + 1027) /* of four */
#define ROOM       ((size_t)ELEMS + 4096)

enum { NEAR = 40, STEP = 99991 };

static sw_comm *comm;
static const sw_group *group;
static struct sw_window *window;
static uint8_t *a;
static uint8_t *b;

static uint8_t value_at(uint64_t i, uint32_t rank)
{
    return (uint8_t)(i ^ i >> 8 ^ i >> 16 ^ i >> 24 ^ rank * 85);
}

static void fill(uint8_t *tensor, uint64_t first, uint64_t n, uint32_t rank)
{
    for (uint64_t i = 0; i < n; i++)
        tensor[i] = value_at(first + i, rank);
}

/* Is element `i` of a result what it must be? */
typedef bool check_fn(const uint8_t *tensor, uint64_t i);

static void check_near(const uint8_t *tensor, uint64_t n, uint64_t place, check_fn *is_right)
{
    uint64_t end = place + NEAR < n ? place + NEAR : n;

    for (uint64_t i = place < NEAR ? 0 : place - NEAR; i < end; i++) {
        if (!is_right(tensor, i))
            fail_msg("element %llu of %llu is wrong", (unsigned long long)i, (unsigned long long)n);
    }
}

/* Near the ends, the borders of parts and pieces, where an int or an unsigned ends, and here and there. */
static void check(const uint8_t *tensor, uint64_t n, check_fn *is_right)
{
    const uint64_t borders[] = {
        0, n, n / 2, (n + 1) / 2, UINT64_C(1) << 31, UINT64_C(1) << 30, UINT64_C(1) << 29};

    for (size_t i = 0; i < sizeof borders / sizeof borders[0]; i++)
        check_near(tensor, n, borders[i], is_right);
    for (uint64_t piece = 128 << 10; piece <= 4 << 20; piece *= 2)
        check_near(tensor, n, n / piece * piece, is_right);
    for (uint64_t i = 0; i < n; i += STEP)
        check_near(tensor, n, i, is_right);
}

/* The same by both ways. */
static void both_ways(void (*run)(void))
{
    for (int by_mpi = 0; by_mpi < 2; by_mpi++) {
        group->work->window = by_mpi ? NULL : window;
        run();
        print_message("  %s: ok\n", by_mpi ? "by MPI" : "through the window");
    }
    group->work->window = window;
}

static bool is_most(const uint8_t *tensor, uint64_t i)
{
    uint8_t first = value_at(i, 0);
    uint8_t second = value_at(i, 1);
    return tensor[i] == (first > second ? first : second);
}

static void reduce_bytes(void)
{
    fill(a, 0, ELEMS, group->index);
    sw_all_reduce_max(group, ELEMS, SW_DTYPE_U8, a, a);
    check(a, ELEMS, is_most);
}

static void maxima_of_more_bytes_than_an_int_counts(void **state)
{
    (void)state;
    both_ways(reduce_bytes);
}

static bool is_sum(const uint8_t *tensor, uint64_t i)
{
    uint32_t value = 0;
    memcpy(&value, tensor + i * sizeof value, sizeof value);
    return value == (uint32_t)(i * 2654435761U) + (uint32_t)i;
}

static void reduce_words(void)
{
    uint32_t *words = (uint32_t *)(void *)a;

    for (uint64_t i = 0; i < WIDE_ELEMS; i++)
        words[i] = (uint32_t)(group->index == 0 ? i * 2654435761U : i);
    sw_all_reduce(group, WIDE_ELEMS, SW_DTYPE_U32, words, words);
    check(a, WIDE_ELEMS, is_sum);
}

static void sums_of_more_bytes_than_an_int_counts(void **state)
{
    (void)state;
    both_ways(reduce_words);
}

static bool is_of_first(const uint8_t *tensor, uint64_t i)
{
    return tensor[i] == value_at(i, 0);
}

static void broadcast(void)
{
    if (group->index == 0)
        fill(a, 0, ELEMS, 0);
    else
        memset(a, 0, ELEMS);
    sw_broadcast(group, 0, ELEMS, SW_DTYPE_I8, a);
    check(a, ELEMS, is_of_first);
}

static void more_bytes_than_an_int_counts_are_broadcast(void **state)
{
    (void)state;
    broadcast();
}

/* This rank's rows are in their place. */
static void gather(void)
{
    const sw_along row = {1, ELEMS, 1};
    sw_range own = sw_shard_range(ELEMS, group->size, group->index);

    memset(a, 0, ELEMS);
    fill(a + own.begin, own.begin, own.end - own.begin, 0);
    sw_all_gather(group, &row, SW_DTYPE_U8, a + own.begin, a);
    check(a, ELEMS, is_of_first);
}

static void more_rows_than_an_int_counts_are_gathered(void **state)
{
    (void)state;
    both_ways(gather);
}

/* A matrix of four rows, of which a rank has all of half the columns, then two of all columns. */
enum { N_ROWS = 4 };
#define COLUMNS ((UINT64_C(1) << 30) + 6)

static bool is_of_own_rows(const uint8_t *tensor, uint64_t i)
{
    return tensor[i] == value_at(group->index * (N_ROWS / 2) * COLUMNS + i, 0);
}

static void swap_rows(void)
{
    const sw_across across = {1, N_ROWS, 1, COLUMNS, 1};
    uint64_t half = COLUMNS / 2;

    for (uint64_t row = 0; row < N_ROWS; row++)
        fill(a + row * half, row * COLUMNS + group->index * half, half, 0);
    memset(b, 0, ELEMS);
    sw_all_to_all(group, &across, SW_DTYPE_U8, a, b);
    check(b, N_ROWS / 2 * COLUMNS, is_of_own_rows);
    memset(a, 0, ELEMS);
    sw_all_to_all_back(group, &across, SW_DTYPE_U8, b, a);
    for (uint64_t row = 0; row < N_ROWS; row++) {
        for (uint64_t c = 0; c < half; c += c < NEAR || c + STEP >= half ? 1 : STEP)
            assert_int_equal(a[row * half + c], value_at(row * COLUMNS + group->index * half + c, 0));
    }
}

static void more_elements_than_an_int_counts_change_their_dim(void **state)
{
    (void)state;
    both_ways(swap_rows);
}

static int begin(void **state)
{
    sw_mesh *mesh = NULL;

    (void)state;
    if (sw_test_ranks() != 2 || sw_mesh_create(&mesh, "tp=2", 0, NULL) != SW_OK ||
        sw_comm_create(&comm, mesh, NULL, NULL) != SW_OK)
        return -1;
    sw_mesh_destroy(mesh);
    group = sw_comm_group(comm, SW_GROUP_TP);
    window = group->work->window;
    a = malloc(ROOM);
    b = malloc(ROOM);
    return a != NULL && b != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    sw_comm_destroy(comm);
    free(a);
    free(b);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxima_of_more_bytes_than_an_int_counts),
        cmocka_unit_test(sums_of_more_bytes_than_an_int_counts),
        cmocka_unit_test(more_bytes_than_an_int_counts_are_broadcast),
        cmocka_unit_test(more_rows_than_an_int_counts_are_gathered),
        cmocka_unit_test(more_elements_than_an_int_counts_change_their_dim),
    };
    return SW_MPI_MAIN_WITH("large", tests, begin, end);
}
