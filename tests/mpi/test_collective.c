/*
 * Collectives against plain loops over the whole tensor, which every rank can compute: for each dtype, for
 * dims in front, in the middle and last, for extents that the ranks do not divide, for parts that are empty,
 * and again with a stage and a message so small that everything goes in many pieces. All of it by MPI, where
 * short tensors go in slots, with lanes for everything, and over a window of shared memory.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/collective.h"
#include "comm/window.h"
#include "comm/work.h"
#include "mesh/shard.h"
#include "mpi_main.h"
#include "numbers.h"

enum { MOST = 8192 + 64 }; /* elements of a tensor here */

static sw_comm *comm;
static const sw_group *group;
static sw_window *window; /* of the group, where it has one */

/* Guarded tensors: nothing may be written behind their end. */
static uint64_t in_room[MOST + 1];
static uint64_t out_room[MOST + 1];
static void *const in = in_room;
static void *const out = out_room;

static const sw_dtype dtypes[] = {SW_DTYPE_F64, SW_DTYPE_F32, SW_DTYPE_F16, SW_DTYPE_BF16,
                                  SW_DTYPE_I64, SW_DTYPE_I32, SW_DTYPE_I16, SW_DTYPE_I8,
                                  SW_DTYPE_U64, SW_DTYPE_U32, SW_DTYPE_U16, SW_DTYPE_U8};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static const sw_along shapes[] = {
    {1, 24,  1},
    {1, 7,   5},
    {3, 9,   4},
    {4, 16,  1},
    {2, 1,   3},
    {1, 0,   4},
    {0, 5,   2},
    {5, 3,   0},
    {1, 8,   8},
    {7, 13,  1},
    {1, 300, 7}
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* The whole tensor: a number for each element and rank, 0 to 15. */
static double number_at(uint64_t i, uint32_t rank)
{
    return (double)((i * 7 + i / 13 + rank * 5) % 16);
}

static sw_range rows_of(uint64_t extent, uint32_t rank)
{
    return sw_shard_range(extent, group->size, rank);
}

/* Element (o, r, i) of the whole. */
static uint64_t place_of(const sw_along *t, uint64_t o, uint64_t r, uint64_t i)
{
    return (o * t->extent + r) * t->n_inner + i;
}

static void clear(void)
{
    memset(in_room, 0xa5, sizeof in_room);
    memset(out_room, 0x5a, sizeof out_room);
}

static void check_end(uint64_t n_elems, sw_dtype dtype)
{
    const char *end = (const char *)out + n_elems * sw_dtype_bits(dtype) / 8;
    for (int i = 0; i < 8; i++)
        assert_int_equal(end[i], 0x5a);
}

/* This rank's rows of the whole of `of_rank`, in `in`; the number of them. */
static uint64_t put_rows(const sw_along *t, sw_range rows, sw_dtype dtype, uint32_t of_rank)
{
    uint64_t n = 0;
    for (uint64_t o = 0; o < t->n_outer; o++) {
        for (uint64_t r = rows.begin; r < rows.end; r++) {
            for (uint64_t i = 0; i < t->n_inner; i++)
                number_put(in, n++, dtype, number_at(place_of(t, o, r, i), of_rank));
        }
    }
    return n;
}

/* `out` has these rows, of the sum over all ranks or of rank 0 alone. */
static void check_rows(const sw_along *t, sw_range rows, sw_dtype dtype, bool is_sum)
{
    uint64_t n = 0;
    for (uint64_t o = 0; o < t->n_outer; o++) {
        for (uint64_t r = rows.begin; r < rows.end; r++) {
            for (uint64_t i = 0; i < t->n_inner; i++) {
                double expected = 0;
                for (uint32_t rank = 0; rank < (is_sum ? group->size : 1); rank++)
                    expected += number_at(place_of(t, o, r, i), rank);
                double found = number_get(out, n++, dtype);
                if (found != expected)
                    fail_msg("%s, [%u,%u,%u], element %u: %g, not %g", sw_dtype_name(dtype),
                             (unsigned)t->n_outer, (unsigned)t->extent, (unsigned)t->n_inner,
                             (unsigned)(n - 1), found, expected);
            }
        }
    }
    check_end(n, dtype);
}

static void check_gather(const sw_along *t, sw_dtype dtype)
{
    clear();
    put_rows(t, rows_of(t->extent, group->index), dtype, 0);
    sw_all_gather(group, t, dtype, in, out);
    check_rows(t, (sw_range){0, t->extent}, dtype, false);
}

static void check_scatter(const sw_along *t, sw_dtype dtype)
{
    clear();
    put_rows(t, (sw_range){0, t->extent}, dtype, group->index);
    sw_reduce_scatter(group, t, dtype, in, out);
    check_rows(t, rows_of(t->extent, group->index), dtype, true);
}

static void check_reduce(const sw_along *t, sw_dtype dtype)
{
    clear();
    uint64_t n = put_rows(t, (sw_range){0, t->extent}, dtype, group->index);
    sw_all_reduce(group, n, dtype, in, out);
    check_rows(t, (sw_range){0, t->extent}, dtype, true);
    memcpy(out, in, n * sw_dtype_bits(dtype) / 8);
    sw_all_reduce(group, n, dtype, out, out);
    check_rows(t, (sw_range){0, t->extent}, dtype, true);
}

static void check_slice(const sw_along *t, sw_dtype dtype)
{
    clear();
    put_rows(t, (sw_range){0, t->extent}, dtype, 0);
    sw_slice(group, t, dtype, in, out);
    check_rows(t, rows_of(t->extent, group->index), dtype, false);
}

static void check_max(const sw_along *t, sw_dtype dtype)
{
    clear();
    uint64_t n = put_rows(t, (sw_range){0, t->extent}, dtype, group->index);
    sw_all_reduce_max(group, n, dtype, in, out);
    for (uint64_t i = 0; i < n; i++) {
        double expected = 0;
        for (uint32_t rank = 0; rank < group->size; rank++)
            expected = fmax(expected, number_at(i, rank));
        if (number_get(out, i, dtype) != expected)
            fail_msg("%s: %g, not %g", sw_dtype_name(dtype), number_get(out, i, dtype), expected);
    }
    check_end(n, dtype);
}

static void check_broadcast(const sw_along *t, sw_dtype dtype)
{
    for (uint32_t root = 0; root < group->size; root++) {
        clear();
        uint64_t n = put_rows(t, (sw_range){0, t->extent}, dtype, root);
        memcpy(out, in, group->index == root ? n * sw_dtype_bits(dtype) / 8 : 0);
        sw_broadcast(group, root, n, dtype, out);
        assert_memory_equal(out, in, n * sw_dtype_bits(dtype) / 8);
        check_end(n, dtype);
    }
}

static void everywhere(void (*check)(const sw_along *t, sw_dtype dtype))
{
    for (size_t s = 0; s < N_SHAPES; s++) {
        for (size_t d = 0; d < N_DTYPES; d++)
            check(&shapes[s], dtypes[d]);
    }
}

/* The same in fewer cases, for runs in which each takes many messages. */
static void in_places(void (*check)(const sw_along *t, sw_dtype dtype))
{
    for (size_t s = 0; s < N_SHAPES - 1; s++) {
        check(&shapes[s], SW_DTYPE_F32);
        check(&shapes[s], SW_DTYPE_BF16);
    }
}

static void gathered_rows_are_the_tensor(void **state)
{
    (void)state;
    everywhere(check_gather);
}

static void scattered_sums_are_rows_of_the_sum(void **state)
{
    (void)state;
    everywhere(check_scatter);
}

static void reduced_values_are_the_sum(void **state)
{
    (void)state;
    everywhere(check_reduce);
}

static void reduced_maxima_are_the_largest(void **state)
{
    (void)state;
    everywhere(check_max);
}

static void a_slice_is_the_own_rows(void **state)
{
    (void)state;
    everywhere(check_slice);
}

static void a_broadcast_comes_from_any_root(void **state)
{
    (void)state;
    everywhere(check_broadcast);
}

static void a_gather_may_be_in_place(void **state)
{
    (void)state;
    for (uint64_t extent = 0; extent < 20; extent++) {
        const sw_along t = {1, extent, 3};
        sw_range own = rows_of(extent, group->index);
        clear();
        uint64_t n = put_rows(&t, own, SW_DTYPE_F32, 0);
        char *place = (char *)out + own.begin * 3 * sizeof(float);
        memcpy(place, in, n * sizeof(float));
        sw_all_gather(group, &t, SW_DTYPE_F32, place, out);
        check_rows(&t, (sw_range){0, extent}, SW_DTYPE_F32, false);
    }
}

/* ---- all_to_all ---- */

/* The tensor with these rows of both dims: written to `in`, or compared with `out`. */
static void across_rows(const sw_across *t, sw_range first, sw_range second, sw_dtype dtype, bool is_check)
{
    uint64_t n = 0;
    for (uint64_t o = 0; o < t->n_outer; o++) {
        for (uint64_t a = first.begin; a < first.end; a++) {
            for (uint64_t m = 0; m < t->n_middle; m++) {
                for (uint64_t b = second.begin; b < second.end; b++) {
                    for (uint64_t i = 0; i < t->n_inner; i++) {
                        uint64_t at =
                            (((o * t->first + a) * t->n_middle + m) * t->second + b) * t->n_inner + i;
                        if (is_check)
                            assert_true(number_get(out, n, dtype) == number_at(at, 0));
                        else
                            number_put(in, n, dtype, number_at(at, 0));
                        n++;
                    }
                }
            }
        }
    }
    if (is_check)
        check_end(n, dtype);
}

static void across_everywhere(size_t n_dtypes)
{
    static const sw_across tensors[] = {
        {1, 8,  1, 8,  1},
        {2, 7,  3, 5,  2},
        {1, 16, 1, 24, 4},
        {3, 2,  1, 9,  1},
        {1, 1,  1, 1,  1},
        {1, 0,  2, 6,  1},
        {2, 11, 1, 13, 3},
        {1, 24, 1, 25, 1},
        {1, 25, 2, 24, 1}
    };
    for (size_t s = 0; s < sizeof tensors / sizeof tensors[0]; s++) {
        const sw_across *t = &tensors[s];
        sw_range first = {0, t->first};
        sw_range second = {0, t->second};
        sw_range my_first = rows_of(t->first, group->index);
        sw_range my_second = rows_of(t->second, group->index);
        for (size_t d = 0; d < n_dtypes; d++) {
            clear();
            across_rows(t, first, my_second, dtypes[d], false);
            sw_all_to_all(group, t, dtypes[d], in, out);
            across_rows(t, my_first, second, dtypes[d], true);
            clear();
            across_rows(t, my_first, second, dtypes[d], false);
            sw_all_to_all_back(group, t, dtypes[d], in, out);
            across_rows(t, first, my_second, dtypes[d], true);
        }
    }
}

static void an_all_to_all_turns_one_cut_into_another(void **state)
{
    (void)state;
    across_everywhere(N_DTYPES);
}

/* ---- exchanges ---- */

/* What rank `from` has for rank `to`. */
static uint64_t count_of(uint32_t from, uint32_t to)
{
    return (from * 3 + to * 5 + from * to) % 7; /* zeros among them */
}

static void exchange_everything(void)
{
    uint64_t n_sent[8];
    uint64_t n_received[8] = {0};
    uint64_t n = 0;

    clear();
    for (uint32_t to = 0; to < group->size; to++) {
        n_sent[to] = count_of(group->index, to);
        for (uint64_t i = 0; i < n_sent[to]; i++)
            number_put(in, n++, SW_DTYPE_I32, group->index * 10000.0 + to * 100.0 + (double)i);
    }
    sw_exchange_counts(group, 1, n_sent, n_received);
    sw_exchange_elems(group, SW_DTYPE_I32, in, n_sent, out, n_received);
    n = 0;
    for (uint32_t from = 0; from < group->size; from++) {
        assert_int_equal(n_received[from], count_of(from, group->index));
        for (uint64_t i = 0; i < n_received[from]; i++)
            assert_int_equal(number_get(out, n++, SW_DTYPE_I32), from * 10000 + group->index * 100 + i);
    }
    check_end(n, SW_DTYPE_I32);
}

static void an_exchange_brings_what_each_rank_has_for_another(void **state)
{
    (void)state;
    exchange_everything();
}

static void counts_may_be_several_for_each_rank(void **state)
{
    (void)state;
    uint64_t sent[24];
    uint64_t received[24] = {0};
    for (uint32_t i = 0; i < 3 * group->size; i++)
        sent[i] = group->index * 1000 + i;
    sw_exchange_counts(group, 3, sent, received);
    for (uint32_t i = 0; i < 3 * group->size; i++)
        assert_int_equal(received[i], i / 3 * 1000 + group->index * 3 + i % 3);
}

/* ---- numbers ---- */

static void short_floats_are_added_in_f32_and_rounded_once(void **state)
{
    (void)state;
    /* 256 and ones: added one by one in BF16, each 256 + 1 is 256 again. In F32 they count. */
    for (uint64_t n = 1; n <= 4096; n += 4095) {
        for (uint64_t i = 0; i < n; i++)
            number_put(in, i, SW_DTYPE_BF16, group->index == 0 ? 256 : 1);
        sw_all_reduce(group, n, SW_DTYPE_BF16, in, out);
        double exact = 255 + group->size;
        for (uint64_t i = 0; i < n; i++)
            assert_true(fabs(number_get(out, i, SW_DTYPE_BF16) - exact) <= 1);
        const sw_along row = {1, n, 1};
        sw_reduce_scatter(group, &row, SW_DTYPE_BF16, in, out);
        sw_range own = rows_of(n, group->index);
        for (uint64_t i = 0; i < own.end - own.begin; i++)
            assert_true(fabs(number_get(out, i, SW_DTYPE_BF16) - exact) <= 1);
    }
}

static void every_rank_and_size_gets_the_same_bits(void **state)
{
    (void)state;
    static uint16_t small[64];
    enum { N = 16384 };
    static uint16_t values[N];
    static uint16_t sums[N];
    for (int i = 0; i < N; i++) { /* the same 64 numbers over and over */
        float value = 1.0F / (float)(1 + (i % 64 * 37 + (int)group->index * 11) % 97);
        uint32_t bits = 0;
        memcpy(&bits, &value, sizeof bits);
        values[i] = (uint16_t)(bits >> 16);
    }
    sw_all_reduce(group, 64, SW_DTYPE_BF16, values, small); /* gathered and added by all */
    sw_all_reduce(group, N, SW_DTYPE_BF16, values, sums);   /* added by owners */
    for (int i = 0; i < N; i++)
        assert_int_equal(sums[i], small[i % 64]);
}

static void a_maximum_with_nan_is_nan(void **state)
{
    (void)state;
    double value = group->index == group->size / 2 ? (double)NAN : 5;
    double most = 0;
    sw_all_reduce_max(group, 1, SW_DTYPE_F64, &value, &most);
    assert_true(isnan(most));
}

/* ---- strides ---- */

/* Rows of a matrix of 11 columns, of which every second is used, from the last row up. */
static sw_view strided(void *data, uint64_t rows, uint64_t columns)
{
    return (sw_view){
        .data = (char *)data + 10 * 33 * sizeof(float),
        .width = sizeof(float),
        .n_dims = 2,
        .dims = {rows, columns},
        .strides = {-33,  2      }
    };
}

static float *strided_at(void *data, uint64_t row, uint64_t column)
{
    return (float *)data + (10 - row) * 33 + 2 * column;
}

static void strides_do_not_matter(void **state)
{
    (void)state;
    enum { ROWS = 10, COLUMNS = 15 };
    sw_range own = rows_of(COLUMNS, group->index);
    uint64_t mine = own.end - own.begin;
    float dense[ROWS * COLUMNS] = {0};

    clear();
    for (uint64_t r = 0; r < ROWS; r++) {
        for (uint64_t c = 0; c < mine; c++)
            *strided_at(in, r, c) = (float)(r * COLUMNS + own.begin + c);
    }
    sw_view source = strided(in, ROWS, mine);
    sw_view target = sw_view_dense(dense, sizeof(float), 2, (const uint64_t[]){ROWS, COLUMNS});
    sw_all_gather_view(group, 1, SW_DTYPE_F32, &source, &target);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(dense[i] == (float)i);

    sw_view scattered = strided(out, ROWS, mine);
    sw_reduce_scatter_view(group, 1, SW_DTYPE_F32, &target, &scattered);
    for (uint64_t r = 0; r < ROWS; r++) {
        for (uint64_t c = 0; c < mine; c++)
            assert_true(*strided_at(out, r, c) == (float)(r * COLUMNS + own.begin + c) * (float)group->size);
    }
    sw_view whole = strided(out, ROWS, COLUMNS);
    sw_all_reduce_view(group, SW_DTYPE_F32, SW_COMBINE_SUM, &target, &whole);
    for (uint64_t r = 0; r < ROWS; r++) {
        for (uint64_t c = 0; c < COLUMNS; c++)
            assert_true(*strided_at(out, r, c) == (float)(r * COLUMNS + c) * (float)group->size);
    }

    sw_range rows = rows_of(ROWS, group->index);
    sw_view crossed = strided(out, rows.end - rows.begin, COLUMNS);
    sw_all_to_all_view(group, 0, 1, SW_DTYPE_F32, &source, &crossed);
    for (uint64_t r = rows.begin; r < rows.end; r++) {
        for (uint64_t c = 0; c < COLUMNS; c++)
            assert_true(*strided_at(out, r - rows.begin, c) == (float)(r * COLUMNS + c));
    }
}

/* ---- slots and lanes ---- */

/* MPI's own, counted. */
static uint32_t n_sends;
static uint32_t n_swaps;

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm on, MPI_Request *request)
{
    n_sends++;
    return PMPI_Isend(data, n, type, to, tag, on, request);
}

int MPI_Alltoall(const void *sent, int n_sent, MPI_Datatype sent_type, void *received, int n_received,
                 MPI_Datatype received_type, MPI_Comm on)
{
    n_swaps++;
    return PMPI_Alltoall(sent, n_sent, sent_type, received, n_received, received_type, on);
}

/* A tensor with a part of `n` elements for each member goes one way or the other. */
static void check_way(uint64_t n, bool is_short)
{
    const sw_across across = {1, group->size, 1, group->size * n - 1, 1};
    const sw_along along = {1, group->size * n - 1, 1};

    for (int i = 0; i < 2 && group->size > 1; i++) {
        n_sends = n_swaps = 0;
        if (i == 0)
            sw_all_to_all(group, &across, SW_DTYPE_F64, in, out);
        else
            sw_reduce_scatter(group, &along, SW_DTYPE_F64, in, out);
        assert_int_equal(n_swaps, is_short ? 1 : 0);
        assert_int_equal(n_sends, is_short ? 0 : group->size - 1);
    }
}

static void short_tensors_are_one_call_of_mpi(void **state)
{
    (void)state;
    uint64_t most = SW_SHORT_BYTES / sizeof(double) / group->size;

    clear();
    check_way(1 + 1, true);
    check_way(most, true);
    check_way(most + 1, false);
}

static void what_is_short_does_not_matter(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) { /* elements of a slot, at most */
        group->work->short_bytes = n * sizeof(float) * group->size;
        in_places(check_gather);
        in_places(check_scatter);
        across_everywhere(2);
    }
    group->work->short_bytes = SW_SHORT_BYTES;
}

/* ---- pieces, memory ---- */

static size_t room_bytes; /* as the window was made */

/* While nobody is in the window. */
static void set_room_bytes(size_t bytes)
{
    if (group->work->window == NULL)
        return;
    sw_window_meet(window);
    window->room_bytes = bytes;
    sw_window_meet(window);
}

static void small_pieces_change_nothing(void **state)
{
    (void)state;
    sw_work *work = group->work;
    const sw_work before = *work;
    set_room_bytes(2 * 8 * (size_t)group->size * 3);
    work->stage_bytes = 2 * 8 * group->size * 3; /* three elements of eight bytes a lane */
    for (int i = 0; i < 2; i++) {
        in_places(check_gather);
        in_places(check_scatter);
        in_places(check_reduce);
        in_places(check_max);
        in_places(check_broadcast);
        across_everywhere(2);
        exchange_everything();
        strides_do_not_matter(NULL);
        work->most_elems = 2; /* as if MPI counted to two */
    }
    *work = before;
    set_room_bytes(room_bytes);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    sw_alloc_fail_at(1); /* whatever asks for memory gets none, and falls */
    check_gather(&shapes[2], SW_DTYPE_F32);
    check_scatter(&shapes[2], SW_DTYPE_BF16);
    check_reduce(&shapes[10], SW_DTYPE_BF16);
    check_max(&shapes[2], SW_DTYPE_F32);
    across_everywhere(2);
    exchange_everything();
    strides_do_not_matter(NULL);
    void *memory = sw_alloc(1);
    assert_null(memory); /* the first that asked */
    sw_alloc_fail_at(0);
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
    window = group->work->window;
    room_bytes = window == NULL ? 0 : window->room_bytes;
    return window == NULL && group->size > 1 ? -1 : 0;
}

static int go_by_mpi(void **state)
{
    (void)state;
    group->work->window = NULL;
    return 0;
}

static int go_by_lanes(void **state)
{
    group->work->short_bytes = 0;
    return go_by_mpi(state);
}

static int go_over_window(void **state)
{
    (void)state;
    group->work->short_bytes = SW_SHORT_BYTES;
    group->work->window = window;
    return 0;
}

// clang-format off
#define BY_MPI(test)      {#test " (by MPI)", test, go_by_mpi, go_over_window, NULL}
#define BY_LANES(test)    {#test " (by lanes)", test, go_by_lanes, go_over_window, NULL}
#define OVER_WINDOW(test) {#test " (over a window)", test, NULL, NULL, NULL}
#define EACH_WAY(test)    BY_MPI(test), BY_LANES(test), OVER_WINDOW(test)
// clang-format on

static int drop_group(void **state)
{
    (void)state;
    sw_comm_destroy(comm);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH_WAY(gathered_rows_are_the_tensor),
        EACH_WAY(scattered_sums_are_rows_of_the_sum),
        EACH_WAY(reduced_values_are_the_sum),
        EACH_WAY(reduced_maxima_are_the_largest),
        EACH_WAY(a_slice_is_the_own_rows),
        EACH_WAY(a_broadcast_comes_from_any_root),
        EACH_WAY(a_gather_may_be_in_place),
        EACH_WAY(an_all_to_all_turns_one_cut_into_another),
        EACH_WAY(an_exchange_brings_what_each_rank_has_for_another),
        EACH_WAY(counts_may_be_several_for_each_rank),
        EACH_WAY(short_floats_are_added_in_f32_and_rounded_once),
        EACH_WAY(every_rank_and_size_gets_the_same_bits),
        EACH_WAY(a_maximum_with_nan_is_nan),
        EACH_WAY(strides_do_not_matter),
        BY_MPI(short_tensors_are_one_call_of_mpi),
        BY_MPI(what_is_short_does_not_matter),
        EACH_WAY(small_pieces_change_nothing),
        EACH_WAY(nothing_is_allocated),
    };
    return SW_MPI_MAIN_WITH("collective", tests, make_group, drop_group);
}
