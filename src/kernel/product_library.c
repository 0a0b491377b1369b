/*
 * Products by oneDNN: a primitive a shape, kept in the context. The library works with OpenMP's threads, as
 * many as the context has; its scratchpad is in the caller's workspace, so that a shape that was seen before
 * allocates nothing of ours.
 */
#include "kernel/product_paths.h"

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/context.h"

#ifndef SW_WITHOUT_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2
#error "src/kernel/product_library.c is written for the C interface of oneDNN 2"
#endif

/* All that tells products of a library apart; compared as bytes, so it has no gaps. */
typedef struct shape {
    uint64_t m, n, k;
    uint64_t a_stride, b_stride, c_stride;
    uint16_t a_type, b_type;
    uint8_t a_is_transposed, b_is_transposed, b_is_packed, accumulate;
    uint64_t has_bias;
} shape;

_Static_assert(sizeof(shape) == 64, "no gaps");

enum { ARGUMENTS = 5 }; /* A, B, C, scratchpad, bias */

typedef struct entry {
    shape key;
    uint64_t used; /* the tick of the last use; 0: the entry is free */
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t b_desc;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    size_t scratch_bytes;
} entry;

/* Shapes whose hashes are equal share a set; the one used longest ago makes room. */
enum { SETS = 64, WAYS = 8 };

struct sw_library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t tick;
    entry entries[SETS][WAYS];
};

/* The library's interface has one kind of pointer for what it reads and what it writes. */
static void *for_library(const void *memory)
{
    union {
        const void *given;
        void *taken;
    } pointer = {memory};
    return pointer.taken;
}

static const char *const library_help = "SW_KERNEL=reference does without the library";

static sw_status check(dnnl_status_t status, const char *doing, sw_error *err)
{
    if (status == dnnl_success)
        return SW_OK;
    return SW_FAIL(err, status == dnnl_out_of_memory ? SW_E_NO_MEMORY : SW_E_ARGUMENT, library_help,
                   "oneDNN: %s failed with status %d", doing, (int)status);
}

static void clear_entry(entry *e)
{
    for (size_t i = 0; i < ARGUMENTS; i++) {
        if (e->arguments[i].memory != NULL)
            (void)dnnl_memory_destroy(e->arguments[i].memory);
    }
    if (e->primitive != NULL)
        (void)dnnl_primitive_destroy(e->primitive);
    *e = (entry){0};
}

void sw_library_destroy(sw_library *library)
{
    if (library == NULL)
        return;
    for (size_t i = 0; i < (size_t)SETS * WAYS; i++)
        clear_entry(&library->entries[i / WAYS][i % WAYS]);
    if (library->stream != NULL)
        (void)dnnl_stream_destroy(library->stream);
    if (library->engine != NULL)
        (void)dnnl_engine_destroy(library->engine);
    sw_free(library);
}

/* The library of a context, opened by the first product. */
static sw_status open_library(sw_kernel *kernel, sw_error *err)
{
    if (kernel->library != NULL)
        return SW_OK;
    sw_library *library = sw_alloc_zero(1, sizeof *library);
    if (library == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the table of products");
    sw_status status = check(dnnl_engine_create(&library->engine, dnnl_cpu, 0), "opening the engine", err);
    if (status == SW_OK) {
        status = check(dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags),
                       "opening a stream", err);
    }
    if (status != SW_OK) {
        sw_library_destroy(library);
        return status;
    }
    kernel->library = library;
    return SW_OK;
}

bool sw_library_has(const sw_product *product)
{
    return product->c_type == SW_DTYPE_F32;
}

static dnnl_data_type_t library_type(sw_dtype dtype)
{
    return dtype == SW_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* A matrix of rows x columns, stored transposed or not. */
static sw_status describe(dnnl_memory_desc_t *desc, size_t rows, size_t columns, sw_dtype dtype,
                          size_t stride, bool is_transposed, sw_error *err)
{
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    dnnl_dims_t strides = {(dnnl_dim_t)stride, 1};

    if (is_transposed) {
        strides[0] = 1;
        strides[1] = (dnnl_dim_t)stride;
    }
    return check(dnnl_memory_desc_init_by_strides(desc, 2, dims, library_type(dtype), strides),
                 "describing a matrix", err);
}

static sw_status describe_b(dnnl_memory_desc_t *desc, const sw_product *p, sw_error *err)
{
    return describe(desc, p->k, p->n, p->b_type, p->b_stride, p->b_is_transposed, err);
}

static shape shape_of(const sw_product *p)
{
    return (shape){
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a_stride = p->a_stride,
        .b_stride = p->b_is_packed ? 0 : p->b_stride,
        .c_stride = p->c_stride,
        .a_type = (uint16_t)p->a_type,
        .b_type = (uint16_t)p->b_type,
        .a_is_transposed = p->a_is_transposed,
        .b_is_transposed = !p->b_is_packed && p->b_is_transposed,
        .b_is_packed = p->b_is_packed,
        .accumulate = p->accumulate,
        .has_bias = p->bias != NULL,
    };
}

static size_t set_of(const shape *key)
{
    const unsigned char *bytes = (const unsigned char *)key;
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */

    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return (size_t)((hash >> 32) % SETS);
}

/* The entry of a shape, or the one to be overwritten, whose key is another. */
static entry *look_up(sw_library *library, const shape *key)
{
    entry *set = library->entries[set_of(key)];
    entry *oldest = &set[0];

    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].used != 0 && memcmp(&set[i].key, key, sizeof *key) == 0)
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    return oldest;
}

static sw_status make_attributes(dnnl_primitive_attr_t *out, bool accumulate, sw_error *err)
{
    dnnl_post_ops_t post = NULL;

    SW_TRY(check(dnnl_primitive_attr_create(out), "making attributes", err));
    sw_status status = check(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user),
                             "taking over the scratchpad", err);
    if (status == SW_OK && accumulate) {
        status = check(dnnl_post_ops_create(&post), "making a sum", err);
        if (status == SW_OK)
            status = check(dnnl_post_ops_append_sum(post, 1), "making a sum", err);
        if (status == SW_OK)
            status = check(dnnl_primitive_attr_set_post_ops(*out, post), "making a sum", err);
        if (post != NULL)
            (void)dnnl_post_ops_destroy(post);
    }
    if (status != SW_OK)
        (void)dnnl_primitive_attr_destroy(*out);
    return status;
}

static sw_status add_argument(sw_library *library, entry *e, size_t i, int name,
                              const dnnl_memory_desc_t *desc, sw_error *err)
{
    e->arguments[i].arg = name;
    return check(dnnl_memory_create(&e->arguments[i].memory, desc, library->engine, NULL),
                 "making an argument", err);
}

/* The primitive of a description and what it is run with. */
static sw_status fill_entry(sw_library *library, const sw_product *p, entry *e, dnnl_primitive_desc_t desc,
                            sw_error *err)
{
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const dnnl_memory_desc_t *b = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);

    e->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    e->b_desc = *b;
    SW_TRY(check(dnnl_primitive_create(&e->primitive, desc), "making a product", err));
    SW_TRY(add_argument(library, e, 0, DNNL_ARG_SRC, dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0),
                        err));
    SW_TRY(add_argument(library, e, 1, DNNL_ARG_WEIGHTS, b, err));
    SW_TRY(add_argument(library, e, 2, DNNL_ARG_DST, dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0),
                        err));
    SW_TRY(add_argument(library, e, 3, DNNL_ARG_SCRATCHPAD, scratch, err));
    if (p->bias == NULL)
        return SW_OK;
    const dnnl_memory_desc_t *bias = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1);
    return add_argument(library, e, 4, DNNL_ARG_BIAS, bias, err);
}

/* A primitive for B as `b` says; with the format "any" the library chooses. */
static sw_status make_entry(sw_library *library, const sw_product *p, const dnnl_memory_desc_t *b, entry *e,
                            sw_error *err)
{
    dnnl_memory_desc_t a_desc;
    dnnl_memory_desc_t c_desc;
    dnnl_memory_desc_t bias_desc;
    dnnl_matmul_desc_t product;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;

    SW_TRY(describe(&a_desc, p->m, p->k, p->a_type, p->a_stride, p->a_is_transposed, err));
    SW_TRY(describe(&c_desc, p->m, p->n, SW_DTYPE_F32, p->c_stride, false, err));
    SW_TRY(describe(&bias_desc, 1, p->n, SW_DTYPE_F32, p->n, false, err));
    SW_TRY(check(dnnl_matmul_desc_init(&product, &a_desc, b, p->bias == NULL ? NULL : &bias_desc, &c_desc),
                 "describing a product", err));
    SW_TRY(make_attributes(&attributes, p->accumulate, err));
    sw_status status = check(dnnl_primitive_desc_create(&desc, &product, attributes, library->engine, NULL),
                             "choosing a product", err);
    (void)dnnl_primitive_attr_destroy(attributes);
    if (status != SW_OK)
        return status;
    clear_entry(e);
    status = fill_entry(library, p, e, desc, err);
    (void)dnnl_primitive_desc_destroy(desc);
    if (status != SW_OK) {
        clear_entry(e);
        return status;
    }
    e->key = shape_of(p);
    return SW_OK;
}

static sw_status find_entry(sw_library *library, const sw_product *p, const dnnl_memory_desc_t *b,
                            entry **out, sw_error *err)
{
    shape key = shape_of(p);
    entry *e = look_up(library, &key);

    if (e->used == 0 || memcmp(&e->key, &key, sizeof key) != 0)
        SW_TRY(make_entry(library, p, b, e, err));
    e->used = ++library->tick;
    *out = e;
    return SW_OK;
}

/*
 * The order of a packed B, which is chosen once for all M: what the library likes for many rows without gaps.
 */
static sw_status packed_desc(sw_library *library, const sw_product *p, dnnl_memory_desc_t *out, sw_error *err)
{
    enum { MANY_ROWS = 512 };
    dnnl_dims_t dims = {(dnnl_dim_t)p->k, (dnnl_dim_t)p->n};
    sw_product many = {.m = MANY_ROWS,
                       .n = p->n,
                       .k = p->k,
                       .a_stride = p->k,
                       .c_stride = p->n,
                       .a_type = p->a_type,
                       .b_type = p->b_type,
                       .c_type = p->c_type,
                       .b_is_packed = true};
    dnnl_memory_desc_t any;
    entry *e = NULL;

    SW_TRY(check(dnnl_memory_desc_init_by_tag(&any, 2, dims, library_type(p->b_type), dnnl_format_tag_any),
                 "describing a matrix", err));
    SW_TRY(find_entry(library, &many, &any, &e, err));
    *out = e->b_desc;
    return SW_OK;
}

static sw_status entry_of(sw_kernel *kernel, const sw_product *p, entry **out, sw_error *err)
{
    dnnl_memory_desc_t b;

    SW_TRY(open_library(kernel, err));
    sw_kernel_use_threads(kernel);
    if (p->b_is_packed)
        SW_TRY(packed_desc(kernel->library, p, &b, err));
    else
        SW_TRY(describe_b(&b, p, err));
    return find_entry(kernel->library, p, &b, out, err);
}

sw_status sw_library_workspace(sw_kernel *kernel, const sw_product *product, size_t *n_bytes, sw_error *err)
{
    entry *e = NULL;

    SW_TRY(entry_of(kernel, product, &e, err));
    *n_bytes = e->scratch_bytes;
    return SW_OK;
}

sw_status sw_library_run(sw_kernel *kernel, const sw_product *product, void *workspace, sw_error *err)
{
    const void *const data[ARGUMENTS] = {product->a, product->b, product->c, workspace, product->bias};
    entry *e = NULL;
    int n_arguments = product->bias == NULL ? ARGUMENTS - 1 : ARGUMENTS;

    SW_TRY(entry_of(kernel, product, &e, err));
    for (int i = 0; i < n_arguments; i++) {
        void *memory = for_library(data[i]);
        SW_TRY(
            check(dnnl_memory_set_data_handle(e->arguments[i].memory, memory), "setting an argument", err));
    }
    SW_TRY(check(dnnl_primitive_execute(e->primitive, kernel->library->stream, n_arguments, e->arguments),
                 "a product", err));
    return check(dnnl_stream_wait(kernel->library->stream), "a product", err);
}

sw_status sw_library_packed_bytes(sw_kernel *kernel, const sw_product *product, size_t *n_bytes,
                                  sw_error *err)
{
    dnnl_memory_desc_t packed;

    SW_TRY(open_library(kernel, err));
    sw_kernel_use_threads(kernel);
    SW_TRY(packed_desc(kernel->library, product, &packed, err));
    *n_bytes = dnnl_memory_desc_get_size(&packed);
    return SW_OK;
}

static sw_status reorder(sw_library *library, dnnl_memory_t from, dnnl_memory_t to, sw_error *err)
{
    dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, from},
        {DNNL_ARG_TO,   to  }
    };
    const dnnl_memory_desc_t *descs[2] = {NULL, NULL};
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;

    SW_TRY(check(dnnl_memory_get_memory_desc(from, &descs[0]), "packing", err));
    SW_TRY(check(dnnl_memory_get_memory_desc(to, &descs[1]), "packing", err));
    SW_TRY(check(
        dnnl_reorder_primitive_desc_create(&desc, descs[0], library->engine, descs[1], library->engine, NULL),
        "packing", err));
    sw_status status = check(dnnl_primitive_create(&primitive, desc), "packing", err);
    (void)dnnl_primitive_desc_destroy(desc);
    if (status != SW_OK)
        return status;
    status = check(dnnl_primitive_execute(primitive, library->stream, 2, arguments), "packing", err);
    if (status == SW_OK)
        status = check(dnnl_stream_wait(library->stream), "packing", err);
    (void)dnnl_primitive_destroy(primitive);
    return status;
}

sw_status sw_library_pack(sw_kernel *kernel, const sw_product *product, void *packed, sw_error *err)
{
    dnnl_memory_desc_t plain_desc;
    dnnl_memory_desc_t desc;
    dnnl_memory_t from = NULL;
    dnnl_memory_t to = NULL;

    SW_TRY(open_library(kernel, err));
    sw_kernel_use_threads(kernel);
    SW_TRY(packed_desc(kernel->library, product, &desc, err));
    SW_TRY(describe_b(&plain_desc, product, err));
    dnnl_engine_t engine = kernel->library->engine;
    SW_TRY(check(dnnl_memory_create(&from, &plain_desc, engine, for_library(product->b)), "packing", err));
    sw_status status = check(dnnl_memory_create(&to, &desc, engine, packed), "packing", err);
    if (status == SW_OK)
        status = reorder(kernel->library, from, to, err);
    (void)dnnl_memory_destroy(from);
    if (to != NULL)
        (void)dnnl_memory_destroy(to);
    return status;
}

#else

bool sw_library_has(const sw_product *product)
{
    (void)product;
    return false;
}

void sw_library_destroy(sw_library *library)
{
    (void)library;
}

static sw_status no_library(sw_error *err)
{
    return SW_FAIL(err, SW_E_ARGUMENT, "", "this build has no oneDNN");
}

sw_status sw_library_workspace(sw_kernel *kernel, const sw_product *product, size_t *n_bytes, sw_error *err)
{
    (void)kernel, (void)product, (void)n_bytes;
    return no_library(err);
}

sw_status sw_library_run(sw_kernel *kernel, const sw_product *product, void *workspace, sw_error *err)
{
    (void)kernel, (void)product, (void)workspace;
    return no_library(err);
}

sw_status sw_library_packed_bytes(sw_kernel *kernel, const sw_product *product, size_t *n_bytes,
                                  sw_error *err)
{
    (void)kernel, (void)product, (void)n_bytes;
    return no_library(err);
}

sw_status sw_library_pack(sw_kernel *kernel, const sw_product *product, void *packed, sw_error *err)
{
    (void)kernel, (void)product, (void)packed;
    return no_library(err);
}

#endif
