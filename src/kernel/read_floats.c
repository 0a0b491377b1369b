/* Floats of files (kernel/read_floats.h), a chunk at a time. */
#include "kernel/read_floats.h"

#include <string.h>

#include "kernel/convert.h"

enum { CHUNK = 4096 /* elements that are converted at once */ };

static size_t width_of(sw_dtype dtype)
{
    return sw_dtype_bits(dtype) / 8;
}

/* A chunk of floats on its way. In a file nothing is aligned. */
typedef union chunk {
    uint16_t shorts[CHUNK];
    float floats[CHUNK];
    double doubles[CHUNK];
} chunk;

static void widen(const float *from, double *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

static void narrow(const double *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* n elements of a short or single float as F32. */
static void read_floats(const sw_kernel *kernel, sw_dtype dtype, const uint8_t *from, float *to, size_t n)
{
    chunk raw;

    memcpy(&raw, from, n * width_of(dtype));
    if (dtype == SW_DTYPE_BF16)
        sw_kernel_from_bf16(kernel, raw.shorts, to, n);
    else if (dtype == SW_DTYPE_F16)
        sw_kernel_from_f16(kernel, raw.shorts, to, n);
    else
        memcpy(to, raw.floats, n * sizeof *to);
}

static void convert_chunk(const sw_kernel *kernel, sw_dtype from_type, const uint8_t *from, sw_dtype to_type,
                          void *to, size_t n)
{
    chunk made;

    if (from_type == SW_DTYPE_F64) {
        memcpy(made.doubles, from, n * sizeof(double));
        narrow(made.doubles, to, n);
    } else if (to_type == SW_DTYPE_F32) {
        read_floats(kernel, from_type, from, to, n);
    } else {
        read_floats(kernel, from_type, from, made.floats, n);
        widen(made.floats, to, n);
    }
}

void sw_kernel_read_floats(const sw_kernel *kernel, sw_dtype from, const void *bytes, sw_dtype to, void *out,
                           uint64_t n)
{
    size_t from_width = width_of(from);
    size_t to_width = width_of(to);

    if (from == to) {
        memcpy(out, bytes, (size_t)n * to_width);
        return;
    }
    for (uint64_t i = 0; i < n; i += CHUNK) {
        size_t n_now = n - i < CHUNK ? (size_t)(n - i) : CHUNK;
        convert_chunk(kernel, from, (const uint8_t *)bytes + i * from_width, to,
                      (uint8_t *)out + i * to_width, n_now);
    }
}

static bool is_float(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F32 || dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16 || dtype == SW_DTYPE_F64;
}

bool sw_can_read_floats(sw_dtype from, sw_dtype to)
{
    return is_float(from) && (from == to || to == SW_DTYPE_F32 || to == SW_DTYPE_F64);
}
