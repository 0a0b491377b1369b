/* Parts of tensors into memory (train/local.h): the rows of a layout are the ranges of a part. */
#include "train/local.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/copy_fill.h"
#include "dtensor/share.h"

struct sw_local_reader {
    sw_copy_filler filler;
    const sw_store *store;
    const sw_kernel *kernel;
};

sw_status sw_local_reader_create(sw_local_reader **out, const sw_weights *weights, const sw_kernel *kernel,
                                 sw_error *err)
{
    sw_local_reader *reader = sw_alloc_zero(1, sizeof *reader);

    *out = NULL;
    if (reader == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to read a checkpoint");
    sw_status status = sw_copy_filler_init(&reader->filler, weights->store, sw_file_slots(1), err);
    if (status != SW_OK) {
        sw_free(reader);
        return status;
    }
    reader->filler.is_checking = true;
    reader->store = weights->store;
    reader->kernel = kernel;
    *out = reader;
    return SW_OK;
}

void sw_local_reader_destroy(sw_local_reader *reader)
{
    if (reader != NULL)
        sw_copy_filler_clear(&reader->filler);
    sw_free(reader);
}

static sw_status find(const sw_local_reader *reader, const sw_tensor_layout *layout, const char *name,
                      sw_dtype dtype, const sw_store_tensor **out, sw_error *err)
{
    const sw_store_tensor *t = sw_store_find(reader->store, name, strlen(name));
    const char *wrong = NULL;

    if (t == NULL)
        wrong = "is missing";
    else if (t->shape->n_dims != layout->n_dims ||
             memcmp(t->shape->dims, layout->dims, layout->n_dims * sizeof *layout->dims) != 0)
        wrong = "has another shape than its parameter";
    else if (!sw_weight_is_readable(t->dtype, dtype))
        wrong = "is of a type that is no float";
    *out = t;
    return wrong == NULL ? SW_OK
                         : SW_FAIL(err, SW_E_FORMAT, "take the checkpoint of this model", "%.200s: %.300s %s",
                                   reader->store->path, name, wrong);
}

static sw_status make_part(sw_part *out, const sw_tensor_layout *layout, sw_grid_coord at, sw_arena *arena,
                           sw_error *err)
{
    const sw_share mine = {.holder = at};
    sw_pieces *along = sw_arena_zero(arena, (size_t)layout->n_dims + 1, sizeof *along);

    if (along == NULL)
        return sw_arena_fail(arena, "a part of a tensor", err);
    for (uint32_t d = 0; d < layout->n_dims; d++) {
        sw_rows rows;
        SW_TRY(sw_tensor_layout_rows(&rows, layout, d, &mine, arena, err));
        along[d] = (sw_pieces){rows.n, rows.ranges};
    }
    *out = (sw_part){layout->n_dims, along};
    return SW_OK;
}

static sw_status append(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    uint8_t **to = user;

    (void)err;
    memcpy(*to, bytes, n_bytes);
    *to += n_bytes;
    return SW_OK;
}

static sw_status read_part(sw_local_reader *reader, const sw_store_tensor *t, const sw_part *part,
                           sw_arena *arena, sw_dtype dtype, void *to, sw_error *err)
{
    uint64_t n = sw_part_elems(part);
    uint64_t n_bytes = n * (sw_dtype_bits(t->dtype) / 8);
    uint8_t *raw = t->dtype == dtype ? to : sw_arena_alloc(arena, n_bytes);
    uint8_t *end = raw;

    if (raw == NULL)
        return sw_arena_fail(arena, t->name, err);
    const sw_copy_request request = {.part = part, .n_bytes = n_bytes, .sink = append, .user = &end};
    SW_TRY(sw_copy_fill(&reader->filler, t, &request, 1, err));
    const sw_weight weight = {t->name, t->dtype, t->dtype_word, n, raw};
    if (t->dtype != dtype)
        sw_weight_read(&weight, reader->kernel, dtype, to);
    return SW_OK;
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

sw_status sw_local_read(sw_local_reader *reader, const sw_tensor_layout *layout, sw_grid_coord at,
                        const char *name, sw_dtype dtype, void *to, sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);
    const sw_store_tensor *tensor = NULL;
    sw_part part;

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a part of %.300s", name);
    SW_TRY(find(reader, layout, name, dtype, &tensor, err));
    SW_TRY(make_part(&part, layout, at, arena, err));
    return sw_part_elems(&part) == 0 ? SW_OK : read_part(reader, tensor, &part, arena, dtype, to, err);
}
