/* Parts of tensors into memory (apply/local.h): the rows of a layout are the ranges of a part. */
#include "apply/local.h"

#include <string.h>

#include "base/status.h"
#include "checkpoint/mapped.h"
#include "dtensor/share.h"
#include "kernel/read_floats.h"

sw_status sw_local_open(sw_local_files *out, const char *path, sw_error *err)
{
    *out = (sw_local_files){NULL, NULL};
    SW_TRY(sw_store_open(&out->store, path, NULL, err));
    sw_status status = sw_mapped_create(&out->files, out->store, err);
    if (status != SW_OK)
        sw_local_close(out);
    return status;
}

uint64_t sw_local_bytes_read(const sw_local_files *files)
{
    return files->files == NULL ? 0 : files->files->bytes_read;
}

void sw_local_close(sw_local_files *files)
{
    sw_mapped_destroy(files->files);
    sw_store_close(files->store);
    *files = (sw_local_files){NULL, NULL};
}

static sw_status find(const sw_local_reader *reader, const sw_tensor_layout *layout, const char *name,
                      sw_dtype dtype, const sw_store_tensor **out, sw_error *err)
{
    const sw_store *store = reader->files->store;
    const sw_store_tensor *t = sw_store_find(store, name, strlen(name));
    const char *wrong = NULL;

    if (t == NULL)
        wrong = "is missing";
    else if (t->shape->n_dims != layout->n_dims ||
             memcmp(t->shape->dims, layout->dims, layout->n_dims * sizeof *layout->dims) != 0)
        wrong = "has another shape than its parameter";
    else if (!sw_can_read_floats(t->dtype, dtype))
        wrong = "is of a type that is no float";
    *out = t;
    return wrong == NULL ? SW_OK
                         : SW_FAIL(err, SW_E_FORMAT, "take the checkpoint of this model", "%.200s: %.300s %s",
                                   store->path, name, wrong);
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

static sw_status read_part(const sw_local_reader *reader, const sw_store_tensor *t, const sw_part *part,
                           sw_arena *arena, sw_dtype dtype, void *to, sw_error *err)
{
    uint64_t n = sw_part_elems(part);
    void *raw = NULL;

    if (t->dtype == dtype)
        return sw_mapped_take(reader->files, t, part, to, err);
    raw = sw_arena_alloc(arena, n * (sw_dtype_bits(t->dtype) / 8));
    if (raw == NULL)
        return sw_arena_fail(arena, t->name, err);
    SW_TRY(sw_mapped_take(reader->files, t, part, raw, err));
    sw_kernel_read_floats(reader->kernel, t->dtype, raw, dtype, to, n);
    return SW_OK;
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

sw_status sw_local_read(const sw_local_reader *reader, const sw_tensor_layout *layout, sw_grid_coord at,
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

sw_status sw_local_read_whole(const sw_local_reader *reader, uint32_t n_dims, const uint64_t *dims,
                              const char *name, sw_dtype dtype, void *to, sw_error *err)
{
    const sw_grid alone = {.n_axes = 0};
    sw_tensor_layout layout;

    SW_TRY(sw_tensor_layout_make(&layout, &alone, n_dims, dims, NULL, err));
    return sw_local_read(reader, &layout, (sw_grid_coord){{0}}, name, dtype, to, err);
}
