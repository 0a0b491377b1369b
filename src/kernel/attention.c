/*
 * Attention by tiles (kernel/attention.h). A task of the forward and of d_q is a head and QUERIES of its
 * queries, which goes over tiles of KEYS keys; a task of d_k and d_v is a key/value head and KEYS of its
 * keys, which goes over all queries of its heads. So every number is made by one task, in one order. Keys and
 * values lie transposed, tile by tile, in the workspace, as the tile product reads them.
 */
#include "kernel/attention.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "kernel/attention_paths.h"
#include "kernel/attention_tile.h"
#include "kernel/elementwise.h"
#include "kernel/product_paths.h"

enum { QUERIES = 96, KEYS = 64 };

/* Offsets, in elements, into the workspace. */
typedef struct room {
    size_t n_tiles; /* of keys */
    size_t k_packed;
    size_t v_packed;
    size_t delta;
    size_t threads;
    size_t per_thread;
    size_t total;
} room;

/* A thread's part, in elements: two tiles of scores, sums for the out of a tile, maxima and sums. */
enum {
    TILE = QUERIES * KEYS,
    SCORES = 0,
    D_SCORES = TILE,
    MAXIMA = 2 * TILE,
    SUMS = MAXIMA + QUERIES,
    OUT = SUMS + QUERIES
};

typedef struct work {
    const sw_attention_args *a;
    const sw_kernel *kernel;
    sw_dtype dtype;
    size_t bytes;  /* of an element */
    size_t group;  /* heads a key/value head */
    size_t n_rows; /* tiles of queries a head */
    bool is_packed;
    bool is_backward;
    room room;
    char *workspace;
} work;

static size_t tiles_of(size_t n, size_t tile)
{
    return n / tile + (n % tile != 0);
}

static bool is_for_row_loop(const sw_attention_args *a)
{
    return a->n_queries <= SW_PRODUCT_FEW_ROWS;
}

/* a += b * c, false on overflow */
static bool add_product(uint64_t *a, uint64_t b, uint64_t c)
{
    uint64_t product = 0;
    return sw_mul_u64(b, c, &product) && sw_add_u64(*a, product, a);
}

static bool plan_room(const sw_attention_args *a, size_t n_threads, bool is_backward, room *out)
{
    uint64_t n_tiles = tiles_of(a->n_keys, KEYS);
    uint64_t kv = 0;
    uint64_t packed = 0;
    uint64_t rows = 0;
    uint64_t total = 0;
    uint64_t per_thread = OUT;

    bool fits = sw_mul_u64(a->n_batch, a->n_kv_heads, &kv) && sw_mul_u64(kv, n_tiles * KEYS, &packed);
    fits = fits && sw_mul_u64(a->n_batch, a->n_heads, &rows) && sw_mul_u64(rows, a->n_queries, &rows);
    *out = (room){.n_tiles = n_tiles};
    if (is_backward || !is_for_row_loop(a))
        fits = fits && add_product(&total, packed, a->width);
    out->v_packed = total;
    if (is_backward)
        fits = fits && add_product(&total, packed, a->v_width);
    out->delta = total;
    if (is_backward)
        fits = fits && add_product(&total, rows, 1);
    out->threads = total;
    fits =
        fits && add_product(&per_thread, QUERIES, a->v_width) && add_product(&total, per_thread, n_threads);
    out->per_thread = per_thread;
    out->total = total;
    return fits && total <= PTRDIFF_MAX / sizeof(double);
}

sw_status sw_attention_workspace(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                                 bool is_backward, size_t *n_bytes, sw_error *err)
{
    room planned;
    uint64_t n_elems = 0;

    if (args->n_kv_heads == 0 || args->n_heads % args->n_kv_heads != 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "each key/value head serves as many heads",
                       "attention: %zu key/value heads do not divide %zu heads", args->n_kv_heads,
                       args->n_heads);
    }
    if (args->n_queries > INT32_MAX || args->n_keys > INT32_MAX ||
        !plan_room(args, sw_kernel_threads(kernel), is_backward, &planned) ||
        !sw_attention_query_room(kernel, args, &n_elems)) {
        return SW_FAIL(err, SW_E_LIMIT, "", "attention of %zu queries and %zu keys is too large",
                       args->n_queries, args->n_keys);
    }
    if (args->n_queries != 1 || is_backward)
        n_elems = planned.total;
    *n_bytes = n_elems * sw_bytes_of(dtype);
    return SW_OK;
}

static work work_of(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *a, bool is_backward,
                    void *workspace)
{
    work w = {
        .a = a,
        .kernel = kernel,
        .dtype = dtype,
        .bytes = sw_bytes_of(dtype),
        .group = a->n_heads / a->n_kv_heads,
        .n_rows = tiles_of(a->n_queries, QUERIES),
        .is_packed = is_backward || !is_for_row_loop(a),
        .is_backward = is_backward,
        .workspace = workspace,
    };
    (void)plan_room(a, sw_kernel_threads(kernel), is_backward, &w.room);
    return w;
}

/* ---- where things are ---- */

static const void *in(const work *w, const sw_heads *x, size_t b, size_t t, size_t h)
{
    return (const char *)x->values + (b * x->batch + t * x->token + h * x->head) * w->bytes;
}

static void *out(const work *w, const sw_heads_out *x, size_t b, size_t t, size_t h)
{
    return (char *)x->values + (b * x->batch + t * x->token + h * x->head) * w->bytes;
}

static void *in_room(const work *w, size_t element)
{
    return w->workspace + element * w->bytes;
}

static void *of_thread(const work *w, size_t element)
{
    return in_room(w, w->room.threads + sw_kernel_thread_index() * w->room.per_thread + element);
}

/* Element of [B, H, T]. */
static void *of_row(const work *w, const void *values, size_t b, size_t h, size_t t)
{
    size_t at = (b * w->a->n_heads + h) * w->a->n_queries + t;
    union {
        const void *given;
        void *taken;
    } pointer = {(const char *)values + at * w->bytes};
    return pointer.taken;
}

static void *packed_k(const work *w, size_t b, size_t kv, size_t tile)
{
    size_t at = (b * w->a->n_kv_heads + kv) * w->room.n_tiles + tile;
    return in_room(w, w->room.k_packed + at * KEYS * w->a->width);
}

static void *packed_v(const work *w, size_t b, size_t kv, size_t tile)
{
    size_t at = (b * w->a->n_kv_heads + kv) * w->room.n_tiles + tile;
    return in_room(w, w->room.v_packed + at * KEYS * w->a->v_width);
}

static double value_of(const work *w, const void *values, size_t i)
{
    if (values == NULL)
        return 0;
    return w->dtype == SW_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* ---- packing ---- */

/* [n, width] with rows `stride` apart to [width, KEYS]. */
static void transpose(const work *w, const void *from, size_t stride, size_t n, size_t width, void *to)
{
    for (size_t d = 0; d < width; d++) {
        for (size_t i = 0; i < n; i++) {
            if (w->dtype == SW_DTYPE_F64)
                ((double *)to)[d * KEYS + i] = ((const double *)from)[i * stride + d];
            else
                ((float *)to)[d * KEYS + i] = ((const float *)from)[i * stride + d];
        }
    }
}

static size_t keys_of(const work *w, size_t tile)
{
    size_t left = w->a->n_keys - tile * KEYS;
    return left < KEYS ? left : KEYS;
}

static void pack_tiles(const void *args, size_t begin, size_t end)
{
    const work *w = args;

    for (size_t i = begin; i < end; i++) {
        size_t tile = i % w->room.n_tiles;
        size_t kv = i / w->room.n_tiles % w->a->n_kv_heads;
        size_t b = i / w->room.n_tiles / w->a->n_kv_heads;
        size_t n = keys_of(w, tile);
        transpose(w, in(w, &w->a->k, b, tile * KEYS, kv), w->a->k.token, n, w->a->width,
                  packed_k(w, b, kv, tile));
        if (w->is_backward) {
            transpose(w, in(w, &w->a->v, b, tile * KEYS, kv), w->a->v.token, n, w->a->v_width,
                      packed_v(w, b, kv, tile));
        }
    }
}

/* ---- tiles ---- */

/* A tile of scores: queries t .. t+rows-1 of head h, keys of a tile. */
typedef struct tile {
    size_t b;
    size_t h;
    size_t t;
    size_t rows;
    size_t index; /* of the tile of keys */
    size_t n;
    int32_t q_positions[QUERIES];
    int32_t k_positions[KEYS];
} tile;

static void take_positions(const int32_t *given, size_t first, size_t n, int32_t *positions)
{
    for (size_t i = 0; i < n; i++)
        positions[i] = given == NULL ? (int32_t)(first + i) : given[first + i];
}

static void take_queries(const work *w, tile *x, size_t b, size_t h, size_t row_tile)
{
    size_t left = w->a->n_queries - row_tile * QUERIES;
    const int32_t *positions = w->a->q_positions;

    x->b = b;
    x->h = h;
    x->t = row_tile * QUERIES;
    x->rows = left < QUERIES ? left : QUERIES;
    if (positions != NULL)
        positions += b * w->a->q_positions_batch;
    take_positions(positions, x->t, x->rows, x->q_positions);
}

static void take_keys(const work *w, tile *x, size_t b, size_t index)
{
    const int32_t *positions = w->a->k_positions;

    x->index = index;
    x->n = keys_of(w, index);
    if (positions != NULL)
        positions += b * w->a->k_positions_batch;
    take_positions(positions, index * KEYS, x->n, x->k_positions);
}

/* What the queries of a tile see of its keys, by the extremes of both. */
static sw_sight_class sight_of_tile(const work *w, const tile *x)
{
    sw_position_range queries = sw_no_positions;
    sw_position_range keys = sw_no_positions;

    for (size_t i = 0; i < x->rows; i++)
        sw_position_widen(&queries, x->q_positions[i]);
    for (size_t i = 0; i < x->n; i++)
        sw_position_widen(&keys, x->k_positions[i]);
    return sw_sight_between(w->a->is_causal, w->a->window, queries, keys);
}

static void multiply(const work *w, sw_tile_args *args, size_t rows)
{
    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_TILE)(args, 0, rows);
}

/* Scores of a tile: q.k */
static void make_scores(const work *w, const tile *x, void *scores)
{
    const sw_attention_args *a = w->a;
    const void *q = in(w, &a->q, x->b, x->t, x->h);
    size_t kv = x->h / w->group;

    if (w->is_packed) {
        sw_tile_args args = {.n = x->n,
                             .k = a->width,
                             .a = q,
                             .b = packed_k(w, x->b, kv, x->index),
                             .c = scores,
                             .a_row = a->q.token,
                             .a_column = 1,
                             .b_row = KEYS,
                             .c_row = KEYS};
        multiply(w, &args, x->rows);
        return;
    }
    sw_product product = {.m = x->rows,
                          .n = x->n,
                          .k = a->width,
                          .a = q,
                          .b = in(w, &a->k, x->b, x->index * KEYS, kv),
                          .c = scores,
                          .a_stride = a->q.token,
                          .b_stride = a->k.token,
                          .c_stride = KEYS,
                          .a_type = w->dtype,
                          .b_type = w->dtype,
                          .c_type = w->dtype,
                          .b_is_transposed = true};
    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_ROW_PRODUCT)(&product, 0, x->n);
}

static sw_score_args score_args(const work *w, const tile *x)
{
    const sw_attention_args *a = w->a;

    return (sw_score_args){
        .n = x->n,
        .scores = of_thread(w, SCORES),
        .d_scores = of_thread(w, D_SCORES),
        .stride = KEYS,
        .scale = a->scale,
        .soft_cap = a->soft_cap,
        .slope = value_of(w, a->slopes, x->h),
        .rounded_alibi = a->rounded_alibi,
        .is_masked = true,
        .is_causal = a->is_causal,
        .window = a->window,
        .q_positions = x->q_positions,
        .k_positions = x->k_positions,
        .max = of_thread(w, MAXIMA),
        .sum = of_thread(w, SUMS),
        .out = of_thread(w, OUT),
        .width = a->v_width,
    };
}

static void start_sums(const work *w, size_t rows)
{
    void *maxima = of_thread(w, MAXIMA);

    memset(of_thread(w, SUMS), 0, QUERIES * w->bytes);
    memset(of_thread(w, OUT), 0, rows * w->a->v_width * w->bytes);
    for (size_t i = 0; i < rows; i++) {
        if (w->dtype == SW_DTYPE_F64)
            ((double *)maxima)[i] = (double)-INFINITY;
        else
            ((float *)maxima)[i] = -INFINITY;
    }
}

static void end_forward(const work *w, const tile *x)
{
    const sw_attention_args *a = w->a;
    sw_score_args args = score_args(w, x);

    if (a->sinks != NULL)
        args.sink = (const char *)a->sinks + x->h * w->bytes;
    args.result = out(w, &a->out, x->b, x->t, x->h);
    args.result_row = a->out.token;
    args.lse = of_row(w, a->lse, x->b, x->h, x->t);
    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE_END)(&args, 0, x->rows);
}

/* One head and a tile of its queries. Items count down, so that in causal attention the longest come first.
 */
static void forward_task(const work *w, size_t item)
{
    const sw_attention_args *a = w->a;
    sw_block_fn *score = sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE);
    size_t heads = a->n_batch * a->n_heads;
    tile x = {0};

    take_queries(w, &x, item % heads / a->n_heads, item % a->n_heads, w->n_rows - 1 - item / heads);
    start_sums(w, x.rows);
    for (size_t i = 0; i < w->room.n_tiles; i++) {
        take_keys(w, &x, x.b, i);
        sw_sight_class sight = sight_of_tile(w, &x);
        if (sight == SW_SEES_NONE)
            continue;
        sw_score_args args = score_args(w, &x);
        args.is_masked = sight == SW_SEES_SOME;
        make_scores(w, &x, args.scores);
        score(&args, 0, x.rows);
        sw_tile_args values = {.n = a->v_width,
                               .k = x.n,
                               .a = args.scores,
                               .b = in(w, &a->v, x.b, i * KEYS, x.h / w->group),
                               .c = args.out,
                               .a_row = KEYS,
                               .a_column = 1,
                               .b_row = a->v.token,
                               .c_row = a->v_width,
                               .accumulate = true};
        multiply(w, &values, x.rows);
    }
    end_forward(w, &x);
}

static void forward_tasks(const void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        forward_task(args, i);
}

void sw_kernel_attention(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                         void *workspace)
{
    work w = work_of(kernel, dtype, args, false, workspace);

    if (args->n_queries == 1) {
        sw_attention_query(kernel, dtype, args, workspace);
        return;
    }
    if (w.is_packed)
        sw_kernel_run(kernel, pack_tiles, &w, args->n_batch * args->n_kv_heads * w.room.n_tiles, 1);
    sw_kernel_run_uneven(kernel, forward_tasks, &w, args->n_batch * args->n_heads * w.n_rows, 1);
}

/* ---- backward ---- */

/* exp(x - lse) to the scores, the gradient of q.k to d_scores. */
static sw_score_args make_gradients(const work *w, const tile *x, sw_sight_class sight)
{
    const sw_attention_args *a = w->a;
    sw_score_args args = score_args(w, x);
    sw_tile_args by_value = {.n = x->n,
                             .k = a->v_width,
                             .a = in(w, &a->d_out, x->b, x->t, x->h),
                             .b = packed_v(w, x->b, x->h / w->group, x->index),
                             .c = args.d_scores,
                             .a_row = a->d_out.token,
                             .a_column = 1,
                             .b_row = KEYS,
                             .c_row = KEYS};

    make_scores(w, x, args.scores);
    multiply(w, &by_value, x->rows);
    args.is_masked = sight == SW_SEES_SOME;
    args.lse = of_row(w, a->lse, x->b, x->h, x->t);
    args.delta = of_row(w, in_room(w, w->room.delta), x->b, x->h, x->t);
    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE_BACK)(&args, 0, x->rows);
    return args;
}

static void clear_rows(const work *w, const sw_heads_out *x, size_t b, size_t t, size_t h, size_t rows,
                       size_t width)
{
    for (size_t i = 0; i < rows && width != 0; i++)
        memset(out(w, x, b, t + i, h), 0, width * w->bytes);
}

static void make_delta(const work *w, const tile *x)
{
    const sw_attention_args *a = w->a;
    sw_block_fn *dot = sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_ROW_DOT);

    for (size_t i = 0; i < x->rows; i++) {
        sw_rows_args args = {.n_rows = 1,
                             .width = a->v_width,
                             .a = in(w, &a->d_out, x->b, x->t + i, x->h),
                             .b = out(w, &a->out, x->b, x->t + i, x->h),
                             .out = of_row(w, in_room(w, w->room.delta), x->b, x->h, x->t + i)};
        dot(&args, 0, 1);
    }
}

static void query_task(const work *w, size_t item)
{
    const sw_attention_args *a = w->a;
    size_t heads = a->n_batch * a->n_heads;
    tile x = {0};

    take_queries(w, &x, item % heads / a->n_heads, item % a->n_heads, w->n_rows - 1 - item / heads);
    make_delta(w, &x);
    if (!a->adds)
        clear_rows(w, &a->d_q, x.b, x.t, x.h, x.rows, a->width);
    for (size_t i = 0; i < w->room.n_tiles; i++) {
        take_keys(w, &x, x.b, i);
        sw_sight_class sight = sight_of_tile(w, &x);
        if (sight == SW_SEES_NONE)
            continue;
        sw_score_args made = make_gradients(w, &x, sight);
        sw_tile_args args = {.n = a->width,
                             .k = x.n,
                             .a = made.d_scores,
                             .b = in(w, &a->k, x.b, i * KEYS, x.h / w->group),
                             .c = out(w, &a->d_q, x.b, x.t, x.h),
                             .a_row = KEYS,
                             .a_column = 1,
                             .b_row = a->k.token,
                             .c_row = a->d_q.token,
                             .accumulate = true};
        multiply(w, &args, x.rows);
    }
}

static void query_tasks(const void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        query_task(args, i);
}

/* d_k and d_v of a tile of keys from a tile of queries: products with the scores transposed. */
static void add_to_keys(const work *w, const tile *x, const sw_score_args *made)
{
    const sw_attention_args *a = w->a;
    size_t kv = x->h / w->group;
    size_t first = x->index * KEYS;
    sw_tile_args values = {.n = a->v_width,
                           .k = x->rows,
                           .a = made->scores,
                           .b = in(w, &a->d_out, x->b, x->t, x->h),
                           .c = out(w, &a->d_v, x->b, first, kv),
                           .a_row = 1,
                           .a_column = KEYS,
                           .b_row = a->d_out.token,
                           .c_row = a->d_v.token,
                           .accumulate = true};
    sw_tile_args keys = {.n = a->width,
                         .k = x->rows,
                         .a = made->d_scores,
                         .b = in(w, &a->q, x->b, x->t, x->h),
                         .c = out(w, &a->d_k, x->b, first, kv),
                         .a_row = 1,
                         .a_column = KEYS,
                         .b_row = a->q.token,
                         .c_row = a->d_k.token,
                         .accumulate = true};

    multiply(w, &values, x->n);
    multiply(w, &keys, x->n);
}

static void key_task(const work *w, size_t item)
{
    const sw_attention_args *a = w->a;
    size_t kv_heads = a->n_batch * a->n_kv_heads;
    size_t b = item % kv_heads / a->n_kv_heads;
    size_t kv = item % a->n_kv_heads;
    tile x = {0};

    take_keys(w, &x, b, item / kv_heads);
    if (!a->adds) {
        clear_rows(w, &a->d_k, b, x.index * KEYS, kv, x.n, a->width);
        clear_rows(w, &a->d_v, b, x.index * KEYS, kv, x.n, a->v_width);
    }
    for (size_t i = 0; i < w->group * w->n_rows; i++) {
        take_queries(w, &x, b, kv * w->group + i / w->n_rows, i % w->n_rows);
        sw_sight_class sight = sight_of_tile(w, &x);
        if (sight == SW_SEES_NONE)
            continue;
        sw_score_args made = make_gradients(w, &x, sight);
        add_to_keys(w, &x, &made);
    }
}

static void key_tasks(const void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        key_task(args, i);
}

/* d_sink = -sum over batch and queries of exp(sink - lse) * delta; items: heads. */
static void sink_tasks(const void *args, size_t begin, size_t end)
{
    const work *w = args;

    for (size_t h = begin; h < end; h++) {
        double sink = value_of(w, w->a->sinks, h);
        double sum = 0;
        for (size_t b = 0; b < w->a->n_batch; b++) {
            const void *lse = of_row(w, w->a->lse, b, h, 0);
            const void *delta = of_row(w, in_room(w, w->room.delta), b, h, 0);
            for (size_t t = 0; t < w->a->n_queries; t++)
                sum -= exp(sink - value_of(w, lse, t)) * value_of(w, delta, t);
        }
        if (w->dtype == SW_DTYPE_F64)
            ((double *)w->a->d_sinks)[h] += sum;
        else
            ((float *)w->a->d_sinks)[h] += (float)sum;
    }
}

void sw_kernel_attention_back(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                              void *workspace)
{
    work w = work_of(kernel, dtype, args, true, workspace);
    size_t kv_tiles = args->n_batch * args->n_kv_heads * w.room.n_tiles;

    sw_kernel_run(kernel, pack_tiles, &w, kv_tiles, 1);
    sw_kernel_run_uneven(kernel, query_tasks, &w, args->n_batch * args->n_heads * w.n_rows, 1);
    sw_kernel_run_uneven(kernel, key_tasks, &w, kv_tiles, 1);
    if (args->sinks != NULL && args->d_sinks != NULL)
        sw_kernel_run(kernel, sink_tasks, &w, args->n_heads, 1);
}
