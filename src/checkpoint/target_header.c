/*
 * The header of a file of a target (checkpoint/target.h): its tensors, the keys of the source's files, and of
 * a sharded folder what makes the file tell of itself: coordinate, regions, layout.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/layout_text.h"
#include "checkpoint/regions.h"
#include "checkpoint/target.h"
#include "io/json_write.h"
#include "io/safetensors_write.h"

enum { OUR_KEYS = 6 };

/* What our keys say. */
typedef struct metadata {
    sw_buffer slices;
    sw_buffer layout;
    char fingerprint[SW_HEX_BYTES];
    char run[SW_HEX_BYTES];
    char coord[SW_COORD_TEXT_BYTES];
} metadata;

static void clear_metadata(metadata *meta)
{
    sw_buffer_clear(&meta->slices);
    sw_buffer_clear(&meta->layout);
}

/* The tensors of a file, as the writer of the format wants them. */
typedef struct entries {
    sw_write_entry *list;
    uint64_t *dims; /* of all of them */
} entries;

static void clear_entries(entries *e)
{
    sw_free(e->list);
    sw_free(e->dims);
}

static void drop_meta(sw_write_meta **meta)
{
    sw_free(*meta);
}

static sw_status no_memory(const sw_target_file *file, sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for its header", file->name);
}

/* ---- our keys ---- */

static void put_slice(sw_json_writer *w, const sw_store_tensor *t, const sw_target_part *p)
{

    sw_json_key_n(w, t->name, t->name_length);
    sw_json_begin_object(w);
    sw_json_key(w, "shape");
    sw_json_begin_array(w);
    for (uint32_t d = 0; d < t->shape->n_dims; d++)
        sw_json_put_u64(w, t->shape->dims[d]);
    sw_json_end_array(w);
    sw_json_key(w, "regions");
    sw_regions_write(w, p->held);
    sw_json_end_object(w);
}

static sw_status describe(metadata *meta, const sw_target *target, const sw_target_file *file, sw_error *err)
{
    sw_json_writer slices;
    sw_json_writer layout;

    sw_json_write_init(&slices, &meta->slices, true);
    sw_json_write_init(&layout, &meta->layout, true);
    sw_json_begin_object(&slices);
    sw_json_begin_object(&layout);
    for (uint32_t i = file->first_part; i < file->first_part + file->n_parts; i++) {
        const sw_target_part *p = &target->parts[i];
        const sw_store_tensor *t = &target->source->tensors[p->tensor];
        put_slice(&slices, t, p);
        sw_layout_text_put(&layout, t, &target->plan->facts[target->facts[p->tensor]]);
    }
    sw_json_end_object(&slices);
    sw_json_end_object(&layout);
    sw_hex_text(target->plan->fingerprint, meta->fingerprint);
    sw_hex_text(target->run, meta->run);
    sw_coord_text((sw_coord){file->pp, file->tp, file->ep}, meta->coord);
    return meta->slices.failed || meta->layout.failed ? no_memory(file, err) : SW_OK;
}

/* Ours first, then what the source had; "format" is what other readers look for. NULL without memory. */
static sw_write_meta *list_keys(const sw_target *target, const metadata *ours, size_t *n)
{
    const sw_store *source = target->source;
    sw_write_meta *all = sw_alloc_zero(OUR_KEYS + (size_t)source->n_meta + 1, sizeof *all);
    bool has_format = false;

    *n = 0;
    if (all == NULL)
        return NULL;
    if (target->plan != NULL) {
        all[(*n)++] = (sw_write_meta){SW_META_FORMAT, SW_META_FORMAT_VALUE, strlen(SW_META_FORMAT_VALUE)};
        all[(*n)++] = (sw_write_meta){SW_META_FINGERPRINT, ours->fingerprint, strlen(ours->fingerprint)};
        all[(*n)++] = (sw_write_meta){SW_META_RUN, ours->run, strlen(ours->run)};
        all[(*n)++] = (sw_write_meta){SW_META_COORD, ours->coord, strlen(ours->coord)};
        all[(*n)++] = (sw_write_meta){SW_META_SLICES, ours->slices.bytes, ours->slices.length};
        all[(*n)++] = (sw_write_meta){SW_META_LAYOUT, ours->layout.bytes, ours->layout.length};
    }
    for (uint32_t i = 0; i < source->n_meta; i++) {
        const sw_store_meta *m = &source->meta[i];
        has_format = has_format || strcmp(m->key, "format") == 0;
        all[(*n)++] = (sw_write_meta){m->key, m->value, m->value_length};
    }
    if (!has_format)
        all[(*n)++] = (sw_write_meta){"format", "pt", 2};
    return all;
}

/* ---- tensors ---- */

static sw_status list_entries(entries *out, const sw_target *target, const sw_target_file *file,
                              sw_error *err)
{
    const sw_target_part *parts = &target->parts[file->first_part];
    size_t n_dims = 0;

    for (uint32_t i = 0; i < file->n_parts; i++)
        n_dims += parts[i].held->part.n_dims;
    out->list = sw_alloc_zero((size_t)file->n_parts + 1, sizeof *out->list);
    out->dims = sw_alloc_zero(n_dims + 1, sizeof *out->dims);
    if (out->list == NULL || out->dims == NULL)
        return no_memory(file, err);
    uint64_t *dims = out->dims;
    for (uint32_t i = 0; i < file->n_parts; i++) {
        const sw_store_tensor *t = &target->source->tensors[parts[i].tensor];
        const sw_part *part = &parts[i].held->part;
        out->list[i] = (sw_write_entry){.name = t->name,
                                        .name_length = t->name_length,
                                        .dtype = t->dtype_word,
                                        .n_dims = part->n_dims,
                                        .dims = dims,
                                        .n_bytes = parts[i].n_bytes};
        for (uint32_t d = 0; d < part->n_dims; d++)
            *dims++ = sw_part_extent(part, d);
    }
    return SW_OK;
}

sw_status sw_target_header(const sw_target *target, uint32_t number, sw_buffer *out, sw_error *err)
{
    const sw_target_file *file = &target->files[number];
    metadata ours SW_AUTO(clear_metadata) = {0};
    entries tensors SW_AUTO(clear_entries) = {0};
    uint64_t data_bytes = 0;
    size_t n_keys = 0;

    SW_TRY(list_entries(&tensors, target, file, err));
    if (target->plan != NULL)
        SW_TRY(describe(&ours, target, file, err));
    sw_write_meta *keys SW_AUTO(drop_meta) = list_keys(target, &ours, &n_keys);
    if (keys == NULL)
        return no_memory(file, err);
    sw_status status =
        sw_safetensors_header(out, tensors.list, file->n_parts, keys, n_keys, &data_bytes, err);
    if (status != SW_OK)
        sw_error_context(err, "%s", file->name);
    return status;
}
