/* Reading sw.slices (checkpoint/slices.h). */
#include "checkpoint/slices.h"

#include "base/status.h"

static bool read_shape(sw_json *json, sw_slice_record *record)
{
    record->n_dims = 0;
    if (!sw_json_enter_array(json))
        return false;
    while (sw_json_next_element(json)) {
        if (record->n_dims == SW_MAX_DIMS)
            return sw_json_fail(json, "", "more than %d dims", SW_MAX_DIMS);
        if (!sw_json_u64(json, &record->dims[record->n_dims++]))
            return false;
    }
    return json->status == SW_OK;
}

/* "shape" and "regions", in this order. */
static bool read_record(sw_json *json, sw_regions_reader *regions, sw_slice_record *record)
{
    sw_json_text key;
    size_t n = 0;

    if (!sw_json_enter_object(json))
        return false;
    for (; sw_json_next_key(json, &key); n++) {
        if (n > 1 || !sw_json_text_is(key, n == 0 ? "shape" : "regions"))
            return sw_json_fail(json, "", "the keys of a slice are shape and regions");
        if (n == 0 ? !read_shape(json, record) : !sw_regions_read(regions, json, &record->held))
            return false;
    }
    if (json->status == SW_OK && n != 2)
        return sw_json_fail(json, "", "a slice without shape and regions");
    return json->status == SW_OK;
}

sw_status sw_slices_read(sw_json_text slices, const char *path, sw_regions_reader *regions,
                         sw_slice_record_fn *visit, void *user, sw_error *err)
{
    sw_json json;
    sw_slice_record record;

    sw_json_init(&json, slices.bytes, slices.length, path, regions->arena, err);
    (void)sw_json_enter_object(&json);
    while (sw_json_next_key(&json, &record.name)) {
        if (!read_record(&json, regions, &record))
            break;
        SW_TRY(visit(user, &record, err));
    }
    (void)sw_json_finish(&json);
    return json.status;
}
