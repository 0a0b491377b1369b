/*
 * Attention of one query a row of the batch, as a text is written with a cache: keys and values come from
 * memory once, and all else is small. What a query sees of the keys is cut into parts, whose sums are the
 * leaves of a tree, the same one for any number of threads; a task does a part of the tree, head by head, for
 * the keys of a head follow one another in a cache.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "kernel/attention_paths.h"
#include "kernel/attention_tile.h"
#include "kernel/product_paths.h"

enum {
    LEAST_KEYS = 64, /* of a part */
    MOST_PARTS = 64,
    KEYS = 1024,                   /* whose scores are made at a time */
    TOGETHER = SW_PRODUCT_FEW_ROWS /* heads that read a key together */
};

/* Sums of a part: maxima [H], sums of weights [H] and weighted values [H, E], in elements of the workspace.
 */
typedef struct room {
    size_t n_parts; /* a power of two */
    size_t sums;
    size_t out;
    size_t per_part;
    size_t threads; /* scores [TOGETHER, KEYS] of each thread */
} room;

typedef struct work {
    const sw_attention_args *a;
    const sw_kernel *kernel;
    sw_dtype dtype;
    size_t bytes; /* of an element */
    size_t group; /* heads a key/value head */
    room room;
    size_t parts_of_task;
    char *workspace;
} work;

/* Not by the number of threads: it shows in the last bits. */
static size_t parts_of(size_t n_keys)
{
    size_t n = 1;

    while (n < MOST_PARTS && n_keys / (2 * n) >= LEAST_KEYS)
        n *= 2;
    return n;
}

static room plan_room(const sw_attention_args *a)
{
    room r = {.n_parts = parts_of(a->n_keys), .sums = a->n_heads, .out = 2 * a->n_heads};

    r.per_part = r.out + a->n_heads * a->v_width;
    r.threads = a->n_batch * r.n_parts * r.per_part;
    return r;
}

bool sw_attention_query_room(const sw_kernel *kernel, const sw_attention_args *args, uint64_t *n_elems)
{
    uint64_t n = 0;
    uint64_t scores = (uint64_t)sw_kernel_threads(kernel) * TOGETHER * KEYS;

    return sw_add_u64(args->v_width, 2, &n) && sw_mul_u64(n, args->n_heads, &n) &&
           sw_mul_u64(n, args->n_batch, &n) && sw_mul_u64(n, parts_of(args->n_keys), &n) &&
           sw_add_u64(n, scores, n_elems) && *n_elems <= PTRDIFF_MAX / sizeof(double);
}

static void *at(const work *w, const void *values, size_t element)
{
    union {
        const void *given;
        void *taken;
    } pointer = {(const char *)values + element * w->bytes};
    return pointer.taken;
}

static void *part_at(const work *w, size_t b, size_t part)
{
    return at(w, w->workspace, (b * w->room.n_parts + part) * w->room.per_part);
}

/* ---- keys ---- */

/* Keys first .. end-1 of a row of the batch. */
typedef struct stretch {
    size_t b;
    size_t first;
    size_t end;
} stretch;

static sw_sight sight_of(const work *w, size_t b)
{
    const sw_attention_args *a = w->a;
    int32_t position = a->q_positions == NULL ? 0 : a->q_positions[b * a->q_positions_batch];

    return sw_sight_of(a->is_causal, a->window, position);
}

static int32_t position_of_key(const work *w, size_t b, size_t key)
{
    const sw_attention_args *a = w->a;
    return a->k_positions == NULL ? (int32_t)key : a->k_positions[b * a->k_positions_batch + key];
}

/* From the first to the last key that the query sees. */
static stretch seen_keys(const work *w, size_t b)
{
    sw_sight sight = sight_of(w, b);
    stretch s = {b, 0, w->a->n_keys};

    for (; s.first < s.end; s.first++) {
        int32_t position = position_of_key(w, b, s.first);
        if (position >= sight.least && position <= sight.most)
            break;
    }
    for (; s.end > s.first; s.end--) {
        int32_t position = position_of_key(w, b, s.end - 1);
        if (position >= sight.least && position <= sight.most)
            break;
    }
    return s;
}

static stretch part_of(const stretch *seen, size_t part, size_t n_parts)
{
    size_t n = seen->end - seen->first;
    size_t each = n / n_parts;
    size_t more = n % n_parts; /* parts that have one more */
    size_t first = seen->first + part * each + (part < more ? part : more);

    return (stretch){seen->b, first, first + each + (part < more)};
}

static stretch common(stretch a, stretch b)
{
    return (stretch){a.b, a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
}

/* ---- a part ---- */

static double slope_of(const work *w, size_t h)
{
    if (w->a->slopes == NULL)
        return 0;
    return w->dtype == SW_DTYPE_F64 ? ((const double *)w->a->slopes)[h]
                                    : (double)((const float *)w->a->slopes)[h];
}

static sw_score_args score_args(const work *w, void *part, size_t h)
{
    const sw_attention_args *a = w->a;

    return (sw_score_args){
        .stride = KEYS,
        .scale = a->scale,
        .soft_cap = a->soft_cap,
        .slope = slope_of(w, h),
        .rounded_alibi = a->rounded_alibi,
        .is_masked = true,
        .is_causal = a->is_causal,
        .window = a->window,
        .max = at(w, part, h),
        .sum = at(w, part, w->room.sums + h),
        .out = at(w, part, w->room.out + h * a->v_width),
        .width = a->v_width,
    };
}

static void make_scores(const work *w, const stretch *s, size_t h, size_t rows, void *scores)
{
    const sw_attention_args *a = w->a;
    size_t key = s->b * a->k.batch + s->first * a->k.token + h / w->group * a->k.head;
    sw_product product = {.m = rows,
                          .n = s->end - s->first,
                          .k = a->width,
                          .a = at(w, a->q.values, s->b * a->q.batch + h * a->q.head),
                          .b = at(w, a->k.values, key),
                          .c = scores,
                          .a_stride = a->q.head,
                          .b_stride = a->k.token,
                          .c_stride = KEYS,
                          .a_type = w->dtype,
                          .b_type = w->dtype,
                          .c_type = w->dtype,
                          .b_is_transposed = true};

    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_ROW_PRODUCT)(&product, 0, product.n);
}

/* Scores to weights; rows with slopes of their own one by one. */
static void weigh(const work *w, const stretch *s, size_t h, size_t rows, void *scores, void *part)
{
    sw_block_fn *score = sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE);
    size_t step = w->a->slopes == NULL ? rows : 1;
    int32_t q_positions[TOGETHER];
    int32_t k_positions[KEYS];

    for (size_t i = 0; i < rows; i++)
        q_positions[i] = w->a->q_positions == NULL ? 0 : w->a->q_positions[s->b * w->a->q_positions_batch];
    for (size_t i = s->first; i < s->end; i++)
        k_positions[i - s->first] = position_of_key(w, s->b, i);
    for (size_t i = 0; i < rows; i += step) {
        sw_score_args args = score_args(w, part, h + i);
        args.n = s->end - s->first;
        args.scores = at(w, scores, i * KEYS);
        args.q_positions = q_positions;
        args.k_positions = k_positions;
        score(&args, 0, step);
    }
}

static void add_values(const work *w, const stretch *s, size_t h, size_t rows, const void *scores, void *part)
{
    const sw_attention_args *a = w->a;
    size_t value = s->b * a->v.batch + s->first * a->v.token + h / w->group * a->v.head;
    sw_tile_args values = {.n = a->v_width,
                           .k = s->end - s->first,
                           .a = scores,
                           .b = at(w, a->v.values, value),
                           .c = at(w, part, w->room.out + h * a->v_width),
                           .a_row = KEYS,
                           .a_column = 1,
                           .b_row = a->v.token,
                           .c_row = a->v_width,
                           .accumulate = true};

    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_TILE)(&values, 0, rows);
}

static void start_part(const work *w, void *part)
{
    memset(part, 0, w->room.per_part * w->bytes);
    for (size_t h = 0; h < w->a->n_heads; h++) {
        if (w->dtype == SW_DTYPE_F64)
            ((double *)part)[h] = (double)-INFINITY;
        else
            ((float *)part)[h] = -INFINITY;
    }
}

/*
 * Heads h .. h+rows-1, of one key/value head, over keys of parts first .. end-1, whose scores have room: all
 * keys and then all values, for memory gives its best in long stretches.
 */
static void do_keys(const work *w, const stretch *seen, const stretch *keys, size_t first, size_t end,
                    size_t h, size_t rows)
{
    char *scores = at(w, w->workspace, w->room.threads + sw_kernel_thread_index() * TOGETHER * KEYS);

    make_scores(w, keys, h, rows, scores);
    for (size_t i = first; i < end; i++) {
        stretch s = common(part_of(seen, i, w->room.n_parts), *keys);
        weigh(w, &s, h, rows, at(w, scores, s.first - keys->first), part_at(w, seen->b, i));
    }
    for (size_t i = first; i < end; i++) {
        stretch s = common(part_of(seen, i, w->room.n_parts), *keys);
        add_values(w, &s, h, rows, at(w, scores, s.first - keys->first), part_at(w, seen->b, i));
    }
}

/* The same, where a part may be long. */
static void do_heads(const work *w, const stretch *seen, size_t first, size_t end, size_t h, size_t rows)
{
    size_t last = part_of(seen, end - 1, w->room.n_parts).end;
    stretch s = {seen->b, part_of(seen, first, w->room.n_parts).first, 0};

    for (; s.first < last; s.first = s.end) {
        s.end = last - s.first < KEYS ? last : s.first + KEYS;
        do_keys(w, seen, &s, first, end, h, rows);
    }
}

/* The end of those parts from `first` on, up to `end`, whose scores have room together; or of one long part.
 * So a part is done in the same pieces, whatever is done with it. */
static size_t parts_together(const work *w, const stretch *seen, size_t first, size_t end)
{
    size_t n = w->room.n_parts;
    size_t from = part_of(seen, first, n).first;
    size_t i = first + 1;

    while (i < end && part_of(seen, i, n).end - from <= KEYS)
        i++;
    return i;
}

/* Parts first .. first+n-1: as many at a time as their scores have room. */
static void do_parts(const work *w, size_t b, size_t first, size_t n)
{
    stretch seen = seen_keys(w, b);

    for (size_t i = first; i < first + n; i++)
        start_part(w, part_at(w, b, i));
    for (size_t h = 0; h < w->a->n_heads;) {
        size_t left = w->group - h % w->group;
        size_t rows = left < TOGETHER ? left : TOGETHER;
        for (size_t i = first; i < first + n;) {
            size_t end = parts_together(w, &seen, i, first + n);
            do_heads(w, &seen, i, end, h, rows);
            i = end;
        }
        h += rows;
    }
}

/* ---- the tree ---- */

/* Parts first .. first+n-1, of which every `step`th has the sums of those before the next: heads begin ..
 * end-1 of all of them into those of the first. */
static void join_parts(const work *w, size_t b, size_t first, size_t n, size_t step, size_t begin, size_t end)
{
    sw_block_fn *join = sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE_JOIN);

    for (; step < n; step *= 2) {
        for (size_t i = first; i < first + n; i += 2 * step) {
            sw_score_args into = score_args(w, part_at(w, b, i), 0);
            sw_score_args from = score_args(w, part_at(w, b, i + step), 0);
            sw_join_args args = {.max = into.max,
                                 .sum = into.sum,
                                 .out = into.out,
                                 .from_max = from.max,
                                 .from_sum = from.sum,
                                 .from_out = from.out,
                                 .width = into.width};
            join(&args, begin, end);
        }
    }
}

static void do_tasks(const void *args, size_t begin, size_t end)
{
    const work *w = args;
    size_t tasks = w->room.n_parts / w->parts_of_task; /* of a row of the batch */

    for (size_t task = begin; task < end; task++) {
        size_t b = task / tasks;
        size_t first = task % tasks * w->parts_of_task;
        do_parts(w, b, first, w->parts_of_task);
        join_parts(w, b, first, w->parts_of_task, 1, 0, w->a->n_heads);
    }
}

/* What the tasks have left, of a head of a row of the batch. */
static void finish_head(const work *w, size_t b, size_t h)
{
    const sw_attention_args *a = w->a;

    join_parts(w, b, 0, w->room.n_parts, w->parts_of_task, h, h + 1);
    sw_score_args args = score_args(w, part_at(w, b, 0), h);
    if (a->sinks != NULL)
        args.sink = at(w, a->sinks, h);
    args.result = at(w, a->out.values, b * a->out.batch + h * a->out.head);
    args.lse = at(w, a->lse, b * a->n_heads + h);
    sw_kernel_loop(w->kernel, w->dtype, SW_LOOP_SCORE_END)(&args, 0, 1);
}

static void finish_heads(const void *args, size_t begin, size_t end)
{
    const work *w = args;

    for (size_t i = begin; i < end; i++)
        finish_head(w, i / w->a->n_heads, i % w->a->n_heads);
}

void sw_attention_query(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                        void *workspace)
{
    work w = {.a = args,
              .kernel = kernel,
              .dtype = dtype,
              .bytes = sw_bytes_of(dtype),
              .group = args->n_heads / args->n_kv_heads,
              .room = plan_room(args),
              .workspace = workspace};
    size_t heads = args->n_batch * args->n_heads;

    w.parts_of_task = w.room.n_parts;
    while (args->n_batch * (w.room.n_parts / w.parts_of_task) < sw_kernel_threads(kernel) &&
           w.parts_of_task > 1)
        w.parts_of_task /= 2;
    size_t tasks = w.room.n_parts / w.parts_of_task;
    sw_kernel_run(kernel, do_tasks, &w, args->n_batch * tasks, 1);
    sw_kernel_run(kernel, finish_heads, &w, heads, sw_kernel_grain(tasks * args->v_width));
}
