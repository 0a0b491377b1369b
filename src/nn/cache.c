/* Keys and values of the tokens that went before (nn/cache.h). */
#include "nn/cache.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "nn/net.h"

/* [B, capacity, heads, width], of which what a head has of a row stands together: it is read as one stream.
 */
static sw_status make_store(sw_cache *cache, sw_tensor **out, sw_dtype dtype, uint64_t heads, uint64_t width,
                            sw_error *err)
{
    uint64_t dims[] = {cache->n_batch, cache->capacity, heads, width};

    SW_TRY(sw_tensor_create(out, cache->memory, dtype, 4, dims, NULL, err));
    if (heads > 1) {
        (*out)->strides[1] = width;
        (*out)->strides[2] = cache->capacity * width;
    }
    return SW_OK;
}

static sw_status make_layer(sw_cache *cache, const sw_net *net, uint32_t i, sw_error *err)
{
    const sw_module *attention = net->layers[i].attention;
    sw_cached_shape shape = attention->class->cached(attention);
    sw_dtype dtype = net->settings.dtype;

    SW_TRY(make_store(cache, &cache->keys[i], dtype, shape.heads, shape.key_width, err));
    return make_store(cache, &cache->values[i], dtype, shape.heads, shape.value_width, err);
}

static sw_status make(sw_cache *cache, const sw_net *net, sw_error *err)
{
    uint64_t dims[] = {cache->n_batch, cache->capacity};

    cache->memory = sw_stack_create();
    cache->keys = sw_alloc_zero((size_t)net->n_layers * 2, sizeof(sw_tensor *));
    if (cache->memory == NULL || cache->keys == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "out of memory for a cache of keys and values");
    cache->values = cache->keys + net->n_layers;
    for (uint32_t i = 0; i < net->n_layers; i++)
        SW_TRY(make_layer(cache, net, i, err));
    return sw_tensor_create(&cache->positions, cache->memory, SW_DTYPE_I32, 2, dims, NULL, err);
}

sw_status sw_cache_create(sw_cache **out, const sw_net *net, uint64_t n_batch, uint64_t capacity,
                          sw_error *err)
{
    sw_cache *cache = sw_alloc_zero(1, sizeof *cache);

    if (cache == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "out of memory for a cache of keys and values");
    cache->n_layers = net->n_layers;
    cache->n_batch = n_batch;
    cache->capacity = capacity;
    cache->n_parts = 1;
    sw_status status = make(cache, net, err);
    if (status != SW_OK) {
        sw_cache_destroy(cache);
        return status;
    }
    *out = cache;
    return SW_OK;
}

void sw_cache_destroy(sw_cache *cache)
{
    if (cache == NULL)
        return;
    sw_stack_destroy(cache->memory);
    sw_free(cache->keys); /* and values */
    sw_free(cache);
}

void sw_cache_take_part(sw_cache *cache, uint32_t part, uint32_t n_parts)
{
    cache->part = part;
    cache->n_parts = n_parts;
}

/* Both the first tokens and those that follow are rounded up. */
uint64_t sw_cache_part_tokens(uint64_t n_tokens, uint32_t n_parts)
{
    return n_parts == 1 ? n_tokens : n_tokens / n_parts + 2;
}

void sw_cache_empty(sw_cache *cache)
{
    cache->n_tokens = 0;
    cache->n_here = 0;
    cache->n_new = 0;
    cache->n_new_here = 0;
}

bool sw_cache_holds(const sw_cache *cache, const sw_net *net, uint64_t n_new)
{
    uint64_t n = cache->n_tokens;
    return n == 0 || sw_rotary_for(&net->rotary, n) == sw_rotary_for(&net->rotary, n + n_new);
}

/* Rows of those new tokens [B, T, ..] that are for this part into the store [B, capacity, ..], behind those
 * that are there. */
static void copy_in(const sw_cache *cache, sw_tensor *store, const sw_tensor *from)
{
    size_t bytes = sw_elem_bytes(sw_tensor_dtype(store));
    char *to = sw_tensor_data(store);
    const char *at = sw_tensor_data(from);
    uint64_t n_heads = store->n_dims == 4 ? store->dims[2] : 1;
    uint64_t width = store->n_dims == 4 ? store->dims[3] : 1;
    uint64_t head = store->n_dims == 4 ? store->strides[2] : 0;
    uint64_t given_head = store->n_dims == 4 ? from->strides[2] : 0;
    uint64_t stride = cache->is_alike ? cache->n_parts : 1;

    for (uint64_t b = 0; b < cache->n_batch; b++) {
        for (uint64_t t = 0; t < cache->n_new_here; t++) {
            uint64_t row = b * store->strides[0] + (cache->n_here + t) * store->strides[1];
            uint64_t given = b * from->strides[0] + (cache->first_new + t * stride) * from->strides[1];
            for (uint64_t h = 0; h < n_heads; h++)
                memcpy(to + (row + h * head) * bytes, at + (given + h * given_head) * bytes, width * bytes);
        }
    }
}

static sw_tensor *filled(const sw_cache *cache, sw_step *step, const sw_tensor *store)
{
    return sw_view_slice(step, store, 1, 0, cache->n_here + cache->n_new_here);
}

/* Which of the pass's tokens are for this part. */
static void take_tokens(sw_cache *cache, uint64_t n_given, uint64_t n_whole)
{
    bool is_part = cache->n_parts > 1;
    uint64_t turn = cache->n_tokens % cache->n_parts; /* the part that the first one is for */

    cache->is_alike = is_part && cache->n_tokens > 0;
    cache->n_new = is_part && !cache->is_alike ? n_whole : n_given;
    cache->first_new = cache->is_alike ? (cache->part + cache->n_parts - turn) % cache->n_parts : 0;
    cache->n_new_here = n_given;
    if (cache->is_alike)
        cache->n_new_here = (n_given + cache->n_parts - 1 - cache->first_new) / cache->n_parts;
}

const sw_tensor *sw_cache_begin(sw_cache *cache, sw_step *step, const sw_tensor *positions, uint64_t n_whole)
{
    sw_error err = {0};

    if (positions == NULL)
        return NULL; /* the step has failed */
    take_tokens(cache, positions->dims[1], n_whole);
    if (positions->dims[0] != cache->n_batch || cache->n_new_here > cache->capacity - cache->n_here) {
        SW_IGNORE(sw_step_fail(step,
                               SW_FAIL(&err, SW_E_ARGUMENT, "make a larger cache",
                                       "%" PRIu64 " rows of %" PRIu64 " tokens do not fit a cache of %" PRIu64
                                       " rows with room for %" PRIu64,
                                       positions->dims[0], cache->n_new_here, cache->n_batch,
                                       cache->capacity - cache->n_here),
                               &err));
        return NULL;
    }
    copy_in(cache, cache->positions, positions);
    return filled(cache, step, cache->positions);
}

void sw_cache_end(sw_cache *cache)
{
    cache->n_tokens += cache->n_new;
    cache->n_here += cache->n_new_here;
    cache->n_new = 0;
    cache->n_new_here = 0;
}

/* A tensor whose last dim is without gaps. */
static const sw_tensor *together(sw_step *step, const sw_tensor *x)
{
    return x != NULL && x->strides[3] != 1 && x->dims[3] > 1 ? sw_op_copy(step, x) : x;
}

sw_status sw_cache_put(sw_cache *cache, sw_step *step, uint32_t layer, const sw_tensor **k,
                       const sw_tensor **v)
{
    const sw_tensor *new_k = together(step, *k);
    const sw_tensor *new_v = together(step, *v);

    SW_TRY(sw_step_status(step, NULL));
    copy_in(cache, cache->keys[layer], new_k);
    copy_in(cache, cache->values[layer], new_v);
    *k = filled(cache, step, cache->keys[layer]);
    *v = filled(cache, step, cache->values[layer]);
    return sw_step_status(step, NULL);
}
