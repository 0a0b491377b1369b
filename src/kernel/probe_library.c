/*
 * Products by oneDNN called directly (kernel/probe.h): a primitive of its own and nothing kept, written
 * apart from product_library.c, which it is to judge.
 */
#include "kernel/probe.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/loops.h"

#ifndef SW_WITHOUT_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

enum { A, B, C, ARGUMENTS };

struct sw_probe_product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    void *packed_room;
};

const char *sw_probe_library_name(void)
{
    return "oneDNN";
}

static dnnl_data_type_t library_type(sw_dtype dtype)
{
    return dtype == SW_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_memory_desc_t matrix(size_t rows, size_t columns, sw_dtype dtype, dnnl_format_tag_t order)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};

    memset(&desc, 0, sizeof desc);
    (void)dnnl_memory_desc_init_by_tag(&desc, 2, dims, library_type(dtype), order);
    return desc;
}

/* The library's interface has one kind of pointer for what it reads and what it writes. */
static void *for_library(const void *memory)
{
    union {
        const void *given;
        void *taken;
    } pointer = {memory};
    return pointer.taken;
}

static bool run(const sw_probe_product *probe, dnnl_primitive_t primitive, int n_arguments,
                const dnnl_exec_arg_t *arguments)
{
    return dnnl_primitive_execute(primitive, probe->stream, n_arguments, arguments) == dnnl_success &&
           dnnl_stream_wait(probe->stream) == dnnl_success;
}

/* B in the order that the primitive chose. */
static bool pack_b(sw_probe_product *probe, const void *b, const dnnl_memory_desc_t *plain,
                   const dnnl_memory_desc_t *packed)
{
    enum { ALIGN = 64 };
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t to = probe->arguments[B].memory;

    probe->packed_room = sw_alloc(dnnl_memory_desc_get_size(packed) + ALIGN);
    if (probe->packed_room == NULL)
        return false;
    char *room = (char *)probe->packed_room + (ALIGN - (uintptr_t)probe->packed_room % ALIGN) % ALIGN;
    bool is_made = dnnl_memory_set_data_handle(to, room) == dnnl_success &&
                   dnnl_memory_create(&from, plain, probe->engine, for_library(b)) == dnnl_success &&
                   dnnl_reorder_primitive_desc_create(&desc, plain, probe->engine, packed, probe->engine,
                                                      NULL) == dnnl_success &&
                   dnnl_primitive_create(&reorder, desc) == dnnl_success;
    if (is_made) {
        const dnnl_exec_arg_t arguments[] = {
            {DNNL_ARG_FROM, from},
            {DNNL_ARG_TO,   to  }
        };
        is_made = run(probe, reorder, 2, arguments);
    }
    (void)dnnl_primitive_destroy(reorder);
    (void)dnnl_primitive_desc_destroy(desc);
    (void)dnnl_memory_destroy(from);
    return is_made;
}

static bool set_argument(sw_probe_product *probe, size_t i, int name, const dnnl_memory_desc_t *desc,
                         const void *values)
{
    probe->arguments[i].arg = name;
    return dnnl_memory_create(&probe->arguments[i].memory, desc, probe->engine, for_library(values)) ==
           dnnl_success;
}

static bool fill(sw_probe_product *probe, const sw_product *p, bool is_packed)
{
    dnnl_memory_desc_t a = matrix(p->m, p->k, p->a_type, p->a_is_transposed ? dnnl_ba : dnnl_ab);
    dnnl_memory_desc_t plain = matrix(p->k, p->n, p->b_type, p->b_is_transposed ? dnnl_ba : dnnl_ab);
    dnnl_memory_desc_t c = matrix(p->m, p->n, p->c_type, dnnl_ab);
    dnnl_memory_desc_t b = is_packed ? matrix(p->k, p->n, p->b_type, dnnl_format_tag_any) : plain;
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t desc = NULL;

    if (dnnl_engine_create(&probe->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&probe->stream, probe->engine, dnnl_stream_default_flags) != dnnl_success ||
        dnnl_matmul_desc_init(&product, &a, &b, NULL, &c) != dnnl_success ||
        dnnl_primitive_desc_create(&desc, &product, NULL, probe->engine, NULL) != dnnl_success)
        return false;
    b = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    bool is_made = dnnl_primitive_create(&probe->primitive, desc) == dnnl_success &&
                   set_argument(probe, A, DNNL_ARG_SRC, &a, p->a) &&
                   set_argument(probe, B, DNNL_ARG_WEIGHTS, &b, p->b) &&
                   set_argument(probe, C, DNNL_ARG_DST, &c, p->c);
    (void)dnnl_primitive_desc_destroy(desc);
    return is_made && (!is_packed || pack_b(probe, p->b, &plain, &b));
}

sw_status sw_probe_product_create(sw_probe_product **out, const sw_kernel *kernel, const sw_product *product,
                                  bool is_packed, sw_error *err)
{
    sw_probe_product *probe = sw_alloc_zero(1, sizeof *probe);

    if (probe == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a product of the library");
    sw_kernel_use_threads(kernel);
    if (!fill(probe, product, is_packed) || !run(probe, probe->primitive, ARGUMENTS, probe->arguments)) {
        sw_probe_product_destroy(probe);
        return SW_FAIL(err, SW_E_ARGUMENT, "", "oneDNN called directly does no product of %zu x %zu x %zu",
                       product->m, product->n, product->k);
    }
    *out = probe;
    return SW_OK;
}

void sw_probe_product_run(const sw_probe_product *probe)
{
    (void)run(probe, probe->primitive, ARGUMENTS, probe->arguments);
}

void sw_probe_product_destroy(sw_probe_product *probe)
{
    if (probe == NULL)
        return;
    for (size_t i = 0; i < ARGUMENTS; i++)
        (void)dnnl_memory_destroy(probe->arguments[i].memory);
    (void)dnnl_primitive_destroy(probe->primitive);
    (void)dnnl_stream_destroy(probe->stream);
    (void)dnnl_engine_destroy(probe->engine);
    sw_free(probe->packed_room);
    sw_free(probe);
}

#else

const char *sw_probe_library_name(void)
{
    return NULL;
}

sw_status sw_probe_product_create(sw_probe_product **out, const sw_kernel *kernel, const sw_product *product,
                                  bool is_packed, sw_error *err)
{
    (void)out, (void)kernel, (void)product, (void)is_packed;
    return SW_FAIL(err, SW_E_ARGUMENT, "", "this build has no library of products");
}

void sw_probe_product_run(const sw_probe_product *probe)
{
    (void)probe;
}

void sw_probe_product_destroy(sw_probe_product *probe)
{
    (void)probe;
}

#endif
