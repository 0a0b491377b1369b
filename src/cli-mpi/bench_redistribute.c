/*
 * The measurements of `bench redistribute`. A table says what is measured: sections with a path and a bar,
 * and what is moved in each. Tensors are matrices of F32 whose sides the ranks divide, so that the bare
 * collective is one call: "bytes" are those of the tensor that a rank has whole, or for all_to_all of what
 * it has of it.
 */
#include "cli-mpi/bench_redistribute.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/window.h"
#include "comm/work.h"
#include "dtensor/run.h"

enum { COLUMNS = 64, ARENA_BYTES = 16 << 20, ALIGN = 64 };

/* What is done, in all its forms. */
typedef enum movement { GATHER = 0, SCATTER, REDUCE, ACROSS, ACROSS_BACK, MOVEMENT_COUNT } movement;

/* One measurement at work. */
typedef struct bed {
    sw_comm *comm;
    const sw_group *group;
    sw_window *copies; /* the group's own, put aside while MPI is measured */
    sw_window *window; /* NULL: none */
    float *in;         /* as much as a tensor has, each */
    float *out;
    char *relaid;
    char *workspace_room;
    char *workspace; /* in it, aligned */
    size_t workspace_bytes;
    uint64_t rows; /* of the matrix that a rank has whole */
    uint64_t columns;
    bool is_relaid; /* the bare collective is followed by one copy of the bytes */
    sw_redistribution made;
} bed;

/* ---- bare ---- */

static int elems_of(const bed *b)
{
    return (int)(b->rows * b->columns);
}

static void relay(const bed *b)
{
    if (b->is_relaid)
        memcpy(b->relaid, b->in, (size_t)elems_of(b) * sizeof(float));
}

static void bare_gather(void *what)
{
    const bed *b = what;
    int n = elems_of(b) / (int)b->group->size;

    MPI_Allgather(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, b->group->mpi);
    relay(b);
}

static void bare_scatter(void *what)
{
    const bed *b = what;

    MPI_Reduce_scatter_block(b->in, b->out, elems_of(b) / (int)b->group->size, MPI_FLOAT, MPI_SUM,
                             b->group->mpi);
    relay(b);
}

static void bare_reduce(void *what)
{
    const bed *b = what;
    MPI_Allreduce(b->in, b->out, elems_of(b), MPI_FLOAT, MPI_SUM, b->group->mpi);
}

static void bare_across(void *what)
{
    const bed *b = what;
    int n = elems_of(b) / (int)b->group->size;

    MPI_Alltoall(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, b->group->mpi);
    relay(b);
}

/* ---- ours ---- */

static void run_list(void *what)
{
    const bed *b = what;
    sw_step_list_run(&b->made.forward, SW_DTYPE_F32, b->in, b->out, b->workspace);
}

static void gather_in_place(void *what)
{
    const bed *b = what;
    sw_window_all_gather(b->window, &(sw_along){1, b->rows, b->columns}, SW_DTYPE_F32, b->window->common);
}

static void scatter_in_place(void *what)
{
    const bed *b = what;
    sw_window_reduce_scatter(b->window, &(sw_along){1, b->rows, b->columns}, SW_DTYPE_F32,
                             sw_window_own(b->window), b->out);
}

static void reduce_in_place(void *what)
{
    const bed *b = what;
    sw_window_all_reduce(b->window, (uint64_t)elems_of(b), SW_DTYPE_F32, SW_COMBINE_SUM,
                         sw_window_own(b->window), b->window->common);
}

/* A value by itself: not even its own list. */
static void reduce_value(void *what)
{
    const bed *b = what;
    sw_all_reduce(b->group, (uint64_t)elems_of(b), SW_DTYPE_F32, b->in, b->out);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    void (*bare)(void *what);
    void (*in_place)(void *what);
} movements[] = {
    [GATHER] = {"all_gather",      bare_gather,  gather_in_place },
    [SCATTER] = {"reduce_scatter",  bare_scatter, scatter_in_place},
    [REDUCE] = {"all_reduce",      bare_reduce,  reduce_in_place },
    [ACROSS] = {"all_to_all",      bare_across,  NULL            },
    [ACROSS_BACK] = {"all_to_all back", bare_across,  NULL            },
};
_Static_assert(SW_COUNT(movements) == MOVEMENT_COUNT, "one row a movement");

#define BIT(n) (1U << (n))

typedef enum path { BY_MPI = 0, COPIED, IN_PLACE, BY_ITSELF } path;

static const uint64_t large[] = {1 << 20, 4 << 20, 16 << 20, 0};
static const uint64_t small[] = {1 << 10, 4 << 10, 0};
static const uint64_t near[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 0};
static const uint64_t value[] = {8, 0};

enum {
    BY_SUMS = BIT(GATHER) | BIT(SCATTER) | BIT(REDUCE),
    BY_MOVES = BIT(ACROSS) | BIT(ACROSS_BACK),
};

// clang-format off
/* Sections, in the order of the report. */
static const struct section {
    const char *name;
    path path;
    uint32_t dim;       /* that is cut */
    bool is_relaid;     /* a copy of the bytes is granted */
    uint32_t movements; /* bits */
    const uint64_t *bytes;
    sw_bench_bar_kind bar_kind;
    double bar;
    uint32_t ranks; /* bits of the numbers of ranks that are judged; 0: any */
} sections[] = {
    { "by MPI, dim 0",           BY_MPI,    0, false, BY_SUMS,                              large, SW_BENCH_RATIO,   1.10,   0 },
    { "by MPI, other dims",      BY_MPI,    1, true,  BIT(GATHER) | BIT(SCATTER) | BY_MOVES, large, SW_BENCH_RATIO,   1.10,   0 },
    { "by MPI, small",           BY_MPI,    0, false, BY_SUMS | BIT(ACROSS),                small, SW_BENCH_RATIO,   1.50,   0 },
    { "in a window",             IN_PLACE,  0, false, BY_SUMS,                              near,  SW_BENCH_RATIO,   0.50,   BIT(2) | BIT(4) },
    { "copied through a window", COPIED,    0, false, BY_SUMS | BY_MOVES,                   near,  SW_BENCH_RATIO,   1.00,   BIT(2) | BIT(4) },
    { "a value",                 BY_ITSELF, 0, false, BIT(REDUCE),                          value, SW_BENCH_SECONDS, 100e-6, BIT(8) },
};
// clang-format on

/* ---- one measurement ---- */

static void places_of(movement m, uint32_t dim, sw_placement *from, sw_placement *to)
{
    const sw_placement shard = {SW_PLACE_SHARD, (int32_t)dim, NULL};
    const sw_placement other = {SW_PLACE_SHARD, (int32_t)(1 - dim), NULL};
    const sw_placement whole = {SW_PLACE_REPLICATE, 0, NULL};
    const sw_placement summed = {SW_PLACE_PARTIAL, 0, NULL};

    *from = m == GATHER || m == ACROSS ? shard : m == ACROSS_BACK ? other : summed;
    *to = m == SCATTER || m == ACROSS_BACK ? shard : m == ACROSS ? other : whole;
}

static sw_status make_list(bed *b, movement m, uint32_t dim, sw_arena *arena, sw_error *err)
{
    bool is_across = m == ACROSS || m == ACROSS_BACK;
    const uint64_t dims[] = {is_across ? b->rows * b->group->size : b->rows, b->columns};
    const sw_axis axis = SW_AXIS_TP;
    sw_grid grid = {0};
    sw_tensor_layout from = {0};
    sw_tensor_layout to = {0};
    sw_placement places[2];
    size_t bytes = 0;

    places_of(m, dim, &places[0], &places[1]);
    SW_TRY(sw_grid_of_mesh(&grid, sw_comm_mesh(b->comm), &axis, 1, err));
    SW_TRY(sw_tensor_layout_make(&from, &grid, 2, dims, &places[0], err));
    SW_TRY(sw_tensor_layout_make(&to, &grid, 2, dims, &places[1], err));
    SW_TRY(sw_redistribution_make(&b->made, &from, &to, 0, (sw_grid_coord){{b->group->index}}, arena, err));
    SW_TRY(sw_step_list_workspace(&b->made.forward, SW_DTYPE_F32, &bytes, err));
    if (bytes > b->workspace_bytes)
        return SW_FAIL(err, SW_E_LIMIT, "", "a transition of %zu bytes of workspace", bytes);
    return SW_OK;
}

/* The matrix of a tensor of some bytes whose sides the ranks divide. */
static void set_shape(bed *b, uint64_t bytes)
{
    uint64_t size = b->group->size;
    uint64_t row = COLUMNS * sizeof(float);

    b->columns = bytes < row ? bytes / sizeof(float) : (COLUMNS + size - 1) / size * size;
    b->rows = bytes < row ? 1 : (bytes / row + size - 1) / size * size;
}

static sw_status measure(bed *b, const struct section *s, movement m, const sw_bench_limits *limits,
                         sw_bench_figures *figures, sw_error *err)
{
    sw_bench_pair pair = {.ours = run_list, .bare = movements[m].bare, .what = b};
    sw_arena *arena = NULL;
    sw_status status = SW_OK;

    b->is_relaid = s->is_relaid;
    b->group->work->window = s->path == BY_MPI ? NULL : b->copies;
    if (s->path == BY_ITSELF)
        pair.ours = reduce_value;
    if (s->path == IN_PLACE)
        pair.ours = movements[m].in_place;
    if (pair.ours == run_list) {
        arena = sw_arena_create(ARENA_BYTES);
        status = arena == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a transition")
                               : make_list(b, m, s->dim, arena, err);
        status = sw_comm_agree(b->comm, status, err);
        if (status == SW_OK)
            status = sw_redistribution_bind(&b->made, b->comm, err);
    }
    if (status == SW_OK)
        sw_bench_measure(figures, &pair, limits->n_rounds, b->group->mpi);
    b->group->work->window = b->copies;
    sw_arena_destroy(arena);
    return status;
}

static bool is_judged(const struct section *s, uint32_t ranks)
{
    return s->ranks == 0 || (ranks < 32 && (s->ranks >> ranks & 1U) != 0);
}

static sw_status run_section(bed *b, const struct section *s, const sw_bench_limits *limits,
                             sw_bench_results *results, sw_error *err)
{
    bool needs_window = s->path == IN_PLACE || s->path == COPIED;

    for (int m = 0; m < MOVEMENT_COUNT; m++) {
        for (const uint64_t *bytes = s->bytes; *bytes != 0; bytes++) {
            if ((s->movements >> m & 1U) == 0 || *bytes > limits->most_bytes ||
                (needs_window && b->window == NULL))
                continue;
            set_shape(b, *bytes);
            sw_bench_result row = {.section = s->name,
                                   .name = movements[m].name,
                                   .bytes = (uint64_t)elems_of(b) * sizeof(float),
                                   .bar_kind = is_judged(s, b->group->size) ? s->bar_kind : SW_BENCH_SHOWN,
                                   .bar = s->bar};
            sw_bench_result *result = NULL;
            SW_TRY(sw_bench_add(results, &row, &result, err));
            SW_TRY(measure(b, s, (movement)m, limits, &result->figures, err));
        }
    }
    return SW_OK;
}

/* ---- the bed ---- */

static void clear_bed(bed *b)
{
    sw_free(b->in);
    sw_free(b->out);
    sw_free(b->relaid);
    sw_free(b->workspace_room);
    sw_window_destroy(b->window);
}

static sw_status fill_bed(bed *b, size_t bytes, sw_error *err)
{
    b->workspace_bytes = 4 * bytes;
    b->in = sw_alloc_zero(1, bytes);
    b->out = sw_alloc_zero(1, bytes);
    b->relaid = sw_alloc_zero(1, bytes);
    b->workspace_room = sw_alloc_zero(1, b->workspace_bytes + ALIGN);
    if (b->in == NULL || b->out == NULL || b->relaid == NULL || b->workspace_room == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for tensors of %zu bytes", bytes);
    b->workspace = b->workspace_room + (ALIGN - (uintptr_t)b->workspace_room % ALIGN) % ALIGN;
    return SW_OK;
}

sw_status sw_bench_redistribute(sw_comm *comm, const sw_bench_limits *limits, sw_bench_results *results,
                                bool *has_window, sw_error *err)
{
    const sw_group *group = sw_comm_group(comm, SW_GROUP_TP);
    bed b SW_AUTO(clear_bed) = {.comm = comm, .group = group, .copies = group->work->window};
    size_t most = limits->most_bytes < large[2] ? (size_t)limits->most_bytes : (size_t)large[2];
    size_t room = most + (size_t)group->size * 2 * COLUMNS * COLUMNS; /* sides are rounded up to the ranks */

    SW_TRY(sw_comm_agree(comm, fill_bed(&b, room, err), err));
    if (b.copies != NULL)
        b.window = sw_window_try(group, room, room);
    if (b.window != NULL) {
        memset(sw_window_own(b.window), 0, room); /* pages are there before the first round */
        sw_window_meet(b.window);
    }
    group->work->compares_calls = false; /* of debug builds: a collective before each */
    *has_window = b.window != NULL;
    for (size_t i = 0; i < SW_COUNT(sections); i++)
        SW_TRY(run_section(&b, &sections[i], limits, results, err));
    return SW_OK;
}
