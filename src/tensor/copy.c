/* Views are walked as runs: the innermost dims that follow one another without gaps (tensor/copy.h). */
#include "tensor/copy.h"

#include <string.h>

typedef struct walk {
    uint32_t n_outer; /* dims that are counted */
    uint64_t run;     /* elements that lie together */
    uint64_t n_runs;
} walk;

static walk walk_of(const sw_tensor *t)
{
    walk w = {.n_outer = t->n_dims, .run = 1, .n_runs = 1};

    while (w.n_outer > 0 && (t->dims[w.n_outer - 1] == 1 || t->strides[w.n_outer - 1] == w.run))
        w.run *= t->dims[--w.n_outer];
    for (uint32_t i = 0; i < w.n_outer; i++)
        w.n_runs *= t->dims[i];
    return w;
}

/* The next position of the outer dims; `at` is the offset that belongs to it. */
static uint64_t advance(const sw_tensor *t, uint32_t n_outer, uint64_t *index, uint64_t at)
{
    for (uint32_t i = n_outer; i-- > 0;) {
        at += t->strides[i];
        if (++index[i] < t->dims[i])
            return at;
        at -= t->strides[i] * t->dims[i];
        index[i] = 0;
    }
    return at;
}

/* A run of one element is the common case of a strided last dim, and memcpy of a size that is known is a
 * move. */
static void copy_run(char *to, const char *from, uint64_t run, size_t bytes)
{
    if (run == 1 && bytes == sizeof(float))
        memcpy(to, from, sizeof(float));
    else
        memcpy(to, from, run * bytes);
}

void sw_copy_to_dense(const sw_tensor *from, void *to)
{
    size_t bytes = sw_elem_bytes(sw_tensor_dtype(from));
    uint64_t index[SW_TENSOR_MAX_DIMS] = {0};
    const char *data = sw_tensor_data(from);
    walk w = walk_of(from);
    uint64_t at = 0;

    for (uint64_t i = 0; i < w.n_runs && w.run > 0; i++) {
        copy_run((char *)to + i * w.run * bytes, data + at * bytes, w.run, bytes);
        at = advance(from, w.n_outer, index, at);
    }
}

static void add_f32(float *to, const float *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_f64(double *to, const double *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
}

void sw_add_to_gradient(const sw_tensor *view, const void *values)
{
    bool is_f64 = sw_gradient_dtype(sw_tensor_dtype(view)) == SW_DTYPE_F64;
    uint64_t index[SW_TENSOR_MAX_DIMS] = {0};
    walk w = walk_of(view);
    uint64_t at = view->offset;

    for (uint64_t i = 0; i < w.n_runs && w.run > 0; i++) {
        if (is_f64)
            add_f64((double *)view->storage->gradient + at, (const double *)values + i * w.run, w.run);
        else
            add_f32((float *)view->storage->gradient + at, (const float *)values + i * w.run, w.run);
        at = advance(view, w.n_outer, index, at);
    }
}
