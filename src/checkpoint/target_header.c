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

/* The header of one file while it is written. */
typedef struct heading {
    const sw_target *target;
    const sw_target_file *file;
    sw_write_meta *keys;
    size_t n_keys;
    char fingerprint[SW_HEX_BYTES];
    char run[SW_HEX_BYTES];
    char coord[SW_COORD_TEXT_BYTES];
    uint64_t dims[SW_MAX_DIMS]; /* of the entry that was asked for last */
} heading;

static void clear_heading(heading *h)
{
    sw_free(h->keys);
}

/* ---- what our keys say of every tensor ---- */

static void put_slice(sw_json_writer *w, const heading *h, const sw_target_part *p)
{
    const sw_store_tensor *t = &h->target->source->tensors[p->tensor];

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

static void put_layout(sw_json_writer *w, const heading *h, const sw_target_part *p)
{
    const sw_target *target = h->target;

    sw_layout_text_put(w, &target->source->tensors[p->tensor],
                       &target->plan->facts[target->facts[p->tensor]]);
}

/* One JSON object with what `put` says of each part of the file. */
static sw_status put_parts(const heading *h,
                           void (*put)(sw_json_writer *, const heading *, const sw_target_part *),
                           const sw_sink *into, sw_error *err)
{
    sw_buffer room SW_AUTO(sw_buffer_clear) = {0};
    sw_json_writer w;

    sw_json_write_to(&w, &room, true, into, err);
    sw_json_begin_object(&w);
    for (uint32_t i = 0; i < h->file->n_parts; i++)
        put(&w, h, &h->target->parts[h->file->first_part + i]);
    sw_json_end_object(&w);
    return sw_json_write_end(&w);
}

static sw_status put_slices(void *user, const sw_sink *into, sw_error *err)
{
    return put_parts(user, put_slice, into, err);
}

static sw_status put_layouts(void *user, const sw_sink *into, sw_error *err)
{
    return put_parts(user, put_layout, into, err);
}

/* ---- keys ---- */

static void add_key(heading *h, const char *key, const char *value, size_t length)
{
    h->keys[h->n_keys++] = (sw_write_meta){.key = key, .value = value, .value_length = length};
}

static void add_our_keys(heading *h)
{
    sw_hex_text(h->target->plan->fingerprint, h->fingerprint);
    sw_hex_text(h->target->run, h->run);
    sw_coord_text((sw_coord){h->file->pp, h->file->tp, h->file->ep}, h->coord);
    add_key(h, SW_META_FORMAT, SW_META_FORMAT_VALUE, strlen(SW_META_FORMAT_VALUE));
    add_key(h, SW_META_FINGERPRINT, h->fingerprint, strlen(h->fingerprint));
    add_key(h, SW_META_RUN, h->run, strlen(h->run));
    add_key(h, SW_META_COORD, h->coord, strlen(h->coord));
    h->keys[h->n_keys++] = (sw_write_meta){.key = SW_META_SLICES, .put = put_slices};
    h->keys[h->n_keys++] = (sw_write_meta){.key = SW_META_LAYOUT, .put = put_layouts};
}

/* Ours first, then what the source had; "format" is what other readers look for. */
static sw_status list_keys(heading *h, sw_error *err)
{
    const sw_store *source = h->target->source;
    bool has_format = false;

    h->keys = sw_alloc_zero(OUR_KEYS + (size_t)source->n_meta + 1, sizeof *h->keys);
    if (h->keys == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the keys of a header");
    if (h->target->plan != NULL)
        add_our_keys(h);
    for (uint32_t i = 0; i < source->n_meta; i++) {
        const sw_store_meta *m = &source->meta[i];
        has_format = has_format || strcmp(m->key, "format") == 0;
        add_key(h, m->key, m->value, m->value_length);
    }
    if (!has_format)
        add_key(h, "format", "pt", 2);
    return SW_OK;
}

/* ---- tensors ---- */

static void entry_of(void *user, size_t i, sw_write_entry *out)
{
    heading *h = user;
    const sw_target_part *p = &h->target->parts[h->file->first_part + i];
    const sw_store_tensor *t = &h->target->source->tensors[p->tensor];

    for (uint32_t d = 0; d < p->held->part.n_dims; d++)
        h->dims[d] = sw_part_extent(&p->held->part, d);
    *out = (sw_write_entry){.name = t->name,
                            .name_length = t->name_length,
                            .dtype = t->dtype_word,
                            .n_dims = p->held->part.n_dims,
                            .dims = h->dims,
                            .n_bytes = p->n_bytes};
}

static sw_status begin(heading *h, sw_write_header *out, sw_error *err)
{
    SW_TRY(list_keys(h, err));
    *out = (sw_write_header){
        .entry = entry_of, .n_entries = h->file->n_parts, .meta = h->keys, .n_meta = h->n_keys, .user = h};
    return SW_OK;
}

sw_status sw_target_header_measure(const sw_target *target, uint32_t number, uint64_t *header_bytes,
                                   sw_error *err)
{
    heading h SW_AUTO(clear_heading) = {.target = target, .file = &target->files[number]};
    sw_write_header header;
    uint64_t data_bytes = 0;

    sw_status status = begin(&h, &header, err);
    if (status == SW_OK)
        status = sw_safetensors_measure(&header, header_bytes, &data_bytes, err);
    if (status != SW_OK)
        sw_error_context(err, "%s", h.file->name);
    return status;
}

sw_status sw_target_header_write(const sw_target *target, uint32_t number, const sw_sink *sink, sw_error *err)
{
    heading h SW_AUTO(clear_heading) = {.target = target, .file = &target->files[number]};
    sw_write_header header;

    SW_TRY(begin(&h, &header, err));
    return sw_safetensors_write(&header, sink, err);
}
