/*
 * Windows of shared memory against plain MPI: each collective in place, copied through the group's window,
 * and by MPI gives the same bytes, for all dtypes and from no element to 4 MiB; sums that round are those of
 * the members in order, in every run. All of it on one host, and on several that are pretended, of one, two
 * and three ranks, or taking ranks in turn: there the sums are those of the hosts in order.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/window.h"
#include "comm/work.h"
#include "mesh/shard.h"
#include "mpi_main.h"
#include "numbers.h"

/* How ranks are spread over hosts. */
typedef struct spreading {
    int each; /* so many neighbours on one; 0: all */
    int turn; /* or so many hosts take them in turn */
} spreading;

enum { MOST = (4 << 20) + 4096, TILE = 509, GUARD = 64 };

static sw_comm *comm;
static const sw_group *group;
static sw_window *copies; /* the group's own */
static sw_window *window; /* of the tests */
static char *in;
static char *out;
static char *expected;

static const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32, SW_DTYPE_F16, SW_DTYPE_BF16,
                                  SW_DTYPE_I64, SW_DTYPE_I32, SW_DTYPE_I16, SW_DTYPE_I8,
                                  SW_DTYPE_U64, SW_DTYPE_U32, SW_DTYPE_U16, SW_DTYPE_U8};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0], N_FLOATS = 4 };

static const sw_along shapes[] = {
    {1, 0,     1 },
    {1, 1,     1 },
    {1, 2,     3 },
    {1, 17,    1 },
    {3, 9,     4 },
    {0, 5,     2 },
    {2, 5,     0 },
    {1, 1021,  7 },
    {5, 64,    33},
    {1, 65536, 1 },
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static const sw_along large[] = {
    {1, 262144, 1   }, /* 1 MiB of F32 */
    {1, 1021,   1027},
    {3, 1024,   256 },
    {1, 501,    61  }, /* times 21: many turns across dims */
};
enum { N_LARGE = sizeof large / sizeof large[0] };

static uint64_t elems_of(const sw_along *t)
{
    return t->n_outer * t->extent * t->n_inner;
}

static size_t width_of(sw_dtype dtype)
{
    return sw_dtype_bits(dtype) / 8;
}

/* Small whole numbers, whose sums are exact, other ones on every rank. */
static void fill(char *tensor, uint64_t n, sw_dtype dtype)
{
    size_t width = width_of(dtype);
    for (uint64_t i = 0; i < n && i < TILE; i++)
        number_put(tensor, i, dtype, (double)((i * 7 + i / 13 + group->index * 5) % 16));
    for (uint64_t i = TILE; i < n; i += TILE)
        memcpy(tensor + i * width, tensor, (n - i < TILE ? n - i : TILE) * width);
}

/* Numbers whose sums depend on the order: fractions, as many bits as the dtype has. */
static void fill_fractions(char *tensor, uint64_t n, sw_dtype dtype)
{
    for (uint64_t i = 0; i < n; i++) {
        double value = 1.0 / (1.0 + (double)((i % TILE * 37 + group->index * 11) % 97));
        float single = (float)value;
        uint32_t bits = 0;
        memcpy(&bits, &single, sizeof bits);
        if (dtype == SW_DTYPE_F64)
            memcpy(tensor + i * 8, &value, 8);
        else if (dtype == SW_DTYPE_F32)
            memcpy(tensor + i * 4, &single, 4);
        else if (dtype == SW_DTYPE_BF16)
            memcpy(tensor + i * 2, &(uint16_t){(uint16_t)(bits >> 16)}, 2);
        else /* F16: the exponent has another bias */
            memcpy(tensor + i * 2, &(uint16_t){(uint16_t)((bits >> 13) - (112U << 10))}, 2);
    }
}

static void clear(char *tensor)
{
    memset(tensor, 0x5a, MOST + GUARD);
}

static void check_same(const char *found, uint64_t n_elems, sw_dtype dtype, const char *what)
{
    size_t bytes = n_elems * width_of(dtype);
    if (memcmp(found, expected, bytes) != 0)
        fail_msg("%s: other bytes than by MPI, %zu bytes of %s", what, bytes, sw_dtype_name(dtype));
}

/* Nothing is written behind a result. */
static void check_guard(const char *tensor, uint64_t n_elems, sw_dtype dtype)
{
    const char *end = tensor + n_elems * width_of(dtype);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(end[i], 0x5a);
}

static void check_reduce(const sw_along *t, sw_dtype dtype)
{
    uint64_t n = elems_of(t);
    size_t bytes = n * width_of(dtype);

    fill(in, n, dtype);
    group->work->window = NULL;
    sw_all_reduce(group, n, dtype, in, expected);
    group->work->window = copies;
    clear(out);
    sw_all_reduce(group, n, dtype, in, out);
    check_same(out, n, dtype, "copied");
    check_guard(out, n, dtype);
    memcpy(out, in, bytes);
    sw_all_reduce(group, n, dtype, out, out);
    check_same(out, n, dtype, "copied, one tensor");
    char *own = sw_window_own(window);
    memcpy(own, in, bytes);
    sw_window_all_reduce(window, n, dtype, SW_COMBINE_SUM, own, window->common);
    memset(own, 0, bytes); /* allowed from here on */
    check_same(window->common, n, dtype, "in place");
}

static void check_max(const sw_along *t, sw_dtype dtype)
{
    uint64_t n = elems_of(t);

    fill(in, n, dtype);
    group->work->window = NULL;
    sw_all_reduce_max(group, n, dtype, in, expected);
    group->work->window = copies;
    sw_all_reduce_max(group, n, dtype, in, out);
    check_same(out, n, dtype, "copied");
    memcpy(sw_window_own(window), in, n * width_of(dtype));
    sw_window_all_reduce(window, n, dtype, SW_COMBINE_MAX, sw_window_own(window), window->common);
    check_same(window->common, n, dtype, "in place");
}

static void check_scatter(const sw_along *t, sw_dtype dtype)
{
    sw_range rows = sw_shard_range(t->extent, group->size, group->index);
    uint64_t n = t->n_outer * (rows.end - rows.begin) * t->n_inner;

    fill(in, elems_of(t), dtype);
    group->work->window = NULL;
    sw_reduce_scatter(group, t, dtype, in, expected);
    group->work->window = copies;
    clear(out);
    sw_reduce_scatter(group, t, dtype, in, out);
    check_same(out, n, dtype, "copied");
    check_guard(out, n, dtype);
    char *own = sw_window_own(window) + 64; /* anywhere, but at the same place on all */
    memcpy(own, in, elems_of(t) * width_of(dtype));
    clear(out);
    sw_window_reduce_scatter(window, t, dtype, own, out);
    memset(own, 0, elems_of(t) * width_of(dtype));
    check_same(out, n, dtype, "in place");
    check_guard(out, n, dtype);
}

static void check_gather(const sw_along *t, sw_dtype dtype)
{
    sw_range rows = sw_shard_range(t->extent, group->size, group->index);
    size_t row = t->n_inner * width_of(dtype);
    size_t bytes = (rows.end - rows.begin) * row;
    char *whole = window->common;

    fill(in, t->n_outer * (rows.end - rows.begin) * t->n_inner, dtype);
    group->work->window = NULL;
    sw_all_gather(group, t, dtype, in, expected);
    group->work->window = copies;
    clear(out);
    sw_all_gather(group, t, dtype, in, out);
    check_same(out, elems_of(t), dtype, "copied");
    check_guard(out, elems_of(t), dtype);
    sw_window_meet(window); /* all have read what is there */
    for (uint64_t o = 0; o < t->n_outer; o++)
        memcpy(whole + (o * t->extent + rows.begin) * row, in + o * bytes, bytes);
    sw_window_all_gather(window, t, dtype, whole);
    check_same(whole, elems_of(t), dtype, "in place");
}

/* Across the dim and one behind it of uneven extent, and back. */
static void check_across(const sw_along *t, sw_dtype dtype)
{
    const sw_across across = {t->n_outer == 0 ? 0 : 1, t->extent, t->n_inner, 7, 3};
    sw_range first = sw_shard_range(across.first, group->size, group->index);
    sw_range second = sw_shard_range(across.second, group->size, group->index);
    uint64_t rest = across.n_outer * across.n_middle * across.n_inner;
    uint64_t n_in = across.first * (second.end - second.begin) * rest;
    uint64_t n_out = (first.end - first.begin) * across.second * rest;

    /* The first member has the most of both; all members decide alike. */
    uint64_t most_in = across.first * sw_shard_range(across.second, group->size, 0).end * rest;
    uint64_t most_out = sw_shard_range(across.first, group->size, 0).end * across.second * rest;
    if (most_in * width_of(dtype) > MOST || most_out * width_of(dtype) > MOST)
        return;
    fill(in, n_in, dtype);
    group->work->window = NULL;
    sw_all_to_all(group, &across, dtype, in, expected);
    group->work->window = copies;
    clear(out);
    sw_all_to_all(group, &across, dtype, in, out);
    check_same(out, n_out, dtype, "copied");
    check_guard(out, n_out, dtype);
    memcpy(expected, in, n_in * width_of(dtype));
    memcpy(in, out, n_out * width_of(dtype));
    clear(out);
    sw_all_to_all_back(group, &across, dtype, in, out);
    check_same(out, n_in, dtype, "copied back");
    check_guard(out, n_in, dtype);
}

/* Between hosts elements are only bytes, but for their sums: some dtypes will do. */
static void everywhere(void (*check)(const sw_along *t, sw_dtype dtype))
{
    for (size_t s = 0; s < N_SHAPES; s++) {
        for (size_t d = 0; d < N_DTYPES; d += window->hosts.n == 1 ? 1 : 3)
            check(&shapes[s], dtypes[d]);
    }
    for (size_t s = 0; s < N_LARGE; s++) {
        check(&large[s], SW_DTYPE_F32);
        check(&large[s], SW_DTYPE_BF16);
    }
}

static void sums_for_all_are_those_of_mpi(void **state)
{
    (void)state;
    everywhere(check_reduce);
}

static void maxima_are_those_of_mpi(void **state)
{
    (void)state;
    everywhere(check_max);
}

static void scattered_sums_are_those_of_mpi(void **state)
{
    (void)state;
    everywhere(check_scatter);
}

static void gathered_rows_are_those_of_mpi(void **state)
{
    (void)state;
    everywhere(check_gather);
}

static void rows_that_change_their_dim_are_those_of_mpi(void **state)
{
    (void)state;
    everywhere(check_across);
}

/* What sums must be: the members' numbers host by host, one after the other, then those of the hosts. */
static void add_in_order(uint64_t n, sw_dtype dtype)
{
    const sw_hosts *hosts = &window->hosts;
    const void *parts[8];
    const void *sums[8];
    size_t bytes = n * width_of(dtype);
    size_t sum_bytes = n * sw_combine_width(dtype, SW_COMBINE_SUM);
    char *theirs = malloc(group->size * bytes);
    char *partial = malloc(group->size * sum_bytes);

    assert_true(theirs != NULL && partial != NULL);
    memcpy(theirs, in, bytes);
    if (group->size > 1)
        MPI_Allgather(in, (int)bytes, MPI_BYTE, theirs, (int)bytes, MPI_BYTE, group->mpi);
    for (uint32_t h = 0; h < hosts->n; h++) {
        uint32_t n_there = 0;
        for (uint32_t m = 0; m < group->size; m++) {
            if (hosts->host_of[m] == h)
                parts[n_there++] = theirs + m * bytes;
        }
        sums[h] = partial + h * sum_bytes;
        sw_combine_begin(partial + h * sum_bytes, parts, n_there, n, dtype, SW_COMBINE_SUM);
    }
    sw_combine_end(expected, sums, hosts->n, n, dtype, SW_COMBINE_SUM);
    free(theirs);
    free(partial);
}

static void sums_have_the_same_bits_in_every_run(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 1000, 20011, 150001};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            uint64_t n = sizes[s];
            const sw_along row = {1, n, 1};
            sw_range own = sw_shard_range(n, group->size, group->index);
            char *room = sw_window_own(window);
            fill_fractions(in, n, dtypes[d]);
            memcpy(room, in, n * width_of(dtypes[d]));
            add_in_order(n, dtypes[d]);
            for (int run = 0; run < 5; run++) {
                sw_all_reduce(group, n, dtypes[d], in, out);
                if (copies != NULL || group->size == 1) /* else it is MPI's sum */
                    check_same(out, n, dtypes[d], "copied");
                sw_window_all_reduce(window, n, dtypes[d], SW_COMBINE_SUM, room, window->common);
                check_same(window->common, n, dtypes[d], "in place");
                sw_window_reduce_scatter(window, &row, dtypes[d], room, out);
                assert_memory_equal(out, expected + own.begin * width_of(dtypes[d]),
                                    (own.end - own.begin) * width_of(dtypes[d]));
            }
        }
    }
}

static void calls_of_all_kinds_may_follow_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        const sw_along *t = &shapes[i % N_SHAPES];
        (i % 4 == 0   ? check_gather
         : i % 4 == 1 ? check_reduce
         : i % 4 == 2 ? check_scatter
                      : check_across)(t, dtypes[i % N_DTYPES]);
    }
}

static void messages_arrive_while_their_sender_waits_in_a_window(void **state)
{
    (void)state;
    MPI_Request request = MPI_REQUEST_NULL;
    memset(in, (int)group->index + 1, MOST);
    if (group->size > 1 && group->index == 0)
        MPI_Isend(in, MOST, MPI_BYTE, 1, 7, group->mpi, &request);
    if (group->index == 1)
        MPI_Recv(out, MOST, MPI_BYTE, 0, 7, group->mpi, MPI_STATUS_IGNORE);
    sw_window_meet(window);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (group->index == 1)
        assert_int_equal(out[MOST - 1], 1);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    sw_alloc_fail_at(1); /* whatever asks for memory gets none, and falls */
    check_reduce(&shapes[9], SW_DTYPE_BF16);
    check_scatter(&shapes[8], SW_DTYPE_F32);
    check_gather(&shapes[8], SW_DTYPE_F32);
    check_across(&shapes[7], SW_DTYPE_F32);
    void *memory = sw_alloc(1);
    assert_null(memory); /* the first that asked */
    sw_alloc_fail_at(0);
}

static void windows_that_cannot_be_are_refused(void **state)
{
    (void)state;
    sw_window *none = NULL;
    sw_error err = {0};

    assert_int_equal(sw_window_create(&none, group, SIZE_MAX - 100, 0, &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "is more than memory"));
    assert_null(none);
    if (group->size == 1)
        return;
    assert_int_equal(sw_window_create(&none, group, group->index == 1 ? 64 : 128, 0, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "members of tp ask for windows of different sizes");
    sw_alloc_fail_at(group->index == 0 ? 1 : 0); /* one of them has no memory */
    assert_int_equal(sw_window_create(&none, group, 128, 0, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_string_equal(err.what, "no memory for a window of tp");
    assert_null(none);
}

static int host_of(const spreading *hosts)
{
    int rank = sw_test_rank();
    return hosts->turn > 0 ? rank % hosts->turn : hosts->each > 0 ? rank / hosts->each : 0;
}

static uint32_t n_hosts(const spreading *hosts)
{
    int ranks = sw_test_ranks();
    if (hosts->turn > 0)
        return (uint32_t)(hosts->turn < ranks ? hosts->turn : ranks);
    return hosts->each > 0 ? (uint32_t)((ranks + hosts->each - 1) / hosts->each) : 1;
}

static int begin(void **state)
{
    const spreading *hosts = *state;
    char axes[16];
    sw_mesh *mesh = NULL;
    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    if (sw_mesh_create(&mesh, axes, 0, NULL) != SW_OK ||
        sw_comm_create_on(&comm, mesh, NULL, host_of(hosts), NULL) != SW_OK)
        return -1;
    sw_mesh_destroy(mesh);
    group = sw_comm_group(comm, SW_GROUP_TP);
    copies = group->work->window;
    in = malloc(MOST + GUARD);
    out = malloc(MOST + GUARD);
    expected = malloc(MOST + GUARD);
    if (in == NULL || out == NULL || expected == NULL || (copies == NULL) != (n_hosts(hosts) == group->size))
        return -1;
    if (sw_window_create(&window, group, MOST, MOST, NULL) != SW_OK)
        return -1;
    return window->hosts.n == n_hosts(hosts) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    sw_window_destroy(window);
    sw_comm_destroy(comm);
    free(in);
    free(out);
    free(expected);
    return 0;
}

static spreading on_one = {0, 0};
static spreading alone = {1, 0};
static spreading by_two = {2, 0};
static spreading by_three = {3, 0};
static spreading in_turn = {0, 2};

/* A test on each of these. */
#define ON(hosts, test)                                                                                      \
    {                                                                                                        \
#test ", " #hosts, test, begin, end, &(hosts)                                                        \
    }
#define ON_HOSTS(test)                                                                                       \
    ON(on_one, test), ON(alone, test), ON(by_two, test), ON(by_three, test), ON(in_turn, test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOSTS(sums_for_all_are_those_of_mpi),
        ON_HOSTS(maxima_are_those_of_mpi),
        ON_HOSTS(scattered_sums_are_those_of_mpi),
        ON_HOSTS(gathered_rows_are_those_of_mpi),
        ON_HOSTS(rows_that_change_their_dim_are_those_of_mpi),
        ON_HOSTS(sums_have_the_same_bits_in_every_run),
        ON_HOSTS(calls_of_all_kinds_may_follow_each_other),
        ON_HOSTS(messages_arrive_while_their_sender_waits_in_a_window),
        ON_HOSTS(nothing_is_allocated),
        ON_HOSTS(windows_that_cannot_be_are_refused),
    };
    return SW_MPI_MAIN("window", tests);
}
