/*
 * Writing manifest.json: tensors in the order of the source, of each the parts in the order of their files. A
 * line a tensor, so that a person can read it and a text tool can search it.
 */
#include "checkpoint/manifest.h"

#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/regions.h"
#include "io/json_write.h"

static void put_u64(sw_json_writer *w, const char *key, uint64_t value)
{
    sw_json_key(w, key);
    sw_json_put_u64(w, value);
}

static void put_hex(sw_json_writer *w, const char *key, uint64_t value)
{
    char text[SW_HEX_BYTES];

    sw_hex_text(value, text);
    sw_json_key(w, key);
    sw_json_put_string(w, text);
}

static void put_files(sw_json_writer *w, const sw_target *target)
{
    sw_json_key(w, "files");
    sw_json_begin_array(w);
    for (uint32_t f = 0; f < target->n_files; f++) {
        const sw_target_file *file = &target->files[f];
        sw_json_inline(w);
        sw_json_begin_object(w);
        sw_json_key(w, "name");
        sw_json_put_string(w, file->name);
        put_u64(w, "bytes", file->header_bytes + file->data_bytes);
        put_u64(w, "pp", (uint64_t)file->pp);
        if (file->tp >= 0)
            put_u64(w, "tp", (uint64_t)file->tp);
        if (file->ep >= 0)
            put_u64(w, "ep", (uint64_t)file->ep);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

static void put_carried(sw_json_writer *w, const sw_target *target)
{
    if (target->n_carried == 0)
        return;
    sw_json_key(w, "carried");
    sw_json_begin_array(w);
    for (uint32_t i = 0; i < target->n_carried; i++) {
        const sw_small_file *file = &target->carried[i];
        sw_json_inline(w);
        sw_json_begin_object(w);
        sw_json_key(w, "name");
        sw_json_put_string(w, file->name);
        put_u64(w, "bytes", file->n_bytes);
        put_hex(w, "xxh3", file->hash);
        sw_json_end_object(w);
    }
    sw_json_end_array(w);
}

static void put_part(sw_json_writer *w, const sw_target_part *p, uint32_t file)
{

    sw_json_begin_object(w);
    put_u64(w, "file", file);
    put_hex(w, "xxh3", p->hash);
    sw_json_key(w, "regions");
    sw_regions_write(w, p->held);
    sw_json_end_object(w);
}

static void put_tensor(sw_json_writer *w, const sw_store_tensor *t, const sw_target *target,
                       const sw_target_order *by, uint32_t i)
{
    sw_json_key_n(w, t->name, t->name_length);
    sw_json_inline(w);
    sw_json_begin_object(w);
    sw_json_key(w, "dtype");
    sw_json_put_string(w, t->dtype_word);
    sw_json_key(w, "shape");
    sw_json_begin_array(w);
    for (uint32_t d = 0; d < t->shape->n_dims; d++)
        sw_json_put_u64(w, t->shape->dims[d]);
    sw_json_end_array(w);
    sw_json_key(w, "parts");
    sw_json_begin_array(w);
    for (uint32_t k = by->starts[i]; k < by->starts[i + 1]; k++)
        put_part(w, &target->parts[by->order[k]], by->file_of[by->order[k]]);
    sw_json_end_array(w);
    sw_json_end_object(w);
}

sw_status sw_manifest_write(const sw_target *target, const sw_sink *sink, sw_error *err)
{
    const sw_store *source = target->source;
    sw_target_order by SW_AUTO(sw_target_order_clear) = {0};
    sw_buffer room SW_AUTO(sw_buffer_clear) = {0};
    sw_json_writer w;

    SW_TRY(sw_target_order_make(&by, target, source->n_tensors, err));
    sw_json_write_to(&w, &room, false, sink, err);
    sw_json_begin_object(&w);
    sw_json_key(&w, "format");
    sw_json_put_string(&w, SW_FORMAT_WORD);
    put_u64(&w, "version", SW_MANIFEST_VERSION);
    put_hex(&w, "fingerprint", target->plan->fingerprint);
    put_files(&w, target);
    put_carried(&w, target);
    if (target->has_plan_hash)
        put_hex(&w, "plan_xxh3", target->plan_hash);
    if (source->state_json != NULL) {
        sw_json_key(&w, "state");
        sw_json_put_raw(&w, source->state_json, source->state_length);
        put_hex(&w, "state_xxh3", sw_hash(source->state_json, source->state_length, 0));
    }
    sw_json_key(&w, "tensors");
    sw_json_begin_object(&w);
    for (uint32_t i = 0; i < source->n_tensors; i++)
        put_tensor(&w, &source->tensors[i], target, &by, i);
    sw_json_end_object(&w);
    sw_json_end_object(&w);
    sw_buffer_putc(&room, '\n');
    return sw_json_write_end(&w);
}
