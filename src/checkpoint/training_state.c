/*
 * The training state (checkpoint/opening.h): one JSON object that is kept as it is. Readers of JSON differ
 * about a key that stands twice, so that none may, however deep.
 */
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"

enum { SHOWN = 150 };

static bool check_value(sw_json *json);

static bool check_object(sw_json *json)
{
    sw_map keys SW_AUTO(sw_map_clear) = {0};
    sw_json_text key;

    if (!sw_json_enter_object(json))
        return false;
    while (sw_json_next_key(json, &key)) {
        bool is_new = false;
        if (sw_map_put(&keys, key.bytes, key.length, 0, &is_new) == NULL) {
            json->status = SW_FAIL(json->err, SW_E_NO_MEMORY, "", "%.200s: no memory", json->source);
            return false;
        }
        if (!is_new)
            return sw_json_fail(json, "remove one", "the key '%.*s' of the training state stands twice",
                                (int)(key.length < SHOWN ? key.length : SHOWN), key.bytes);
        if (!check_value(json))
            return false;
    }
    return json->status == SW_OK;
}

/* Recursion is bounded by SW_JSON_MAX_DEPTH. */
static bool check_value(sw_json *json)
{
    switch (sw_json_peek(json)) {
    case SW_JSON_OBJECT:
        return check_object(json);
    case SW_JSON_ARRAY:
        if (!sw_json_enter_array(json))
            return false;
        while (sw_json_next_element(json)) {
            if (!check_value(json))
                return false;
        }
        return json->status == SW_OK;
    default:
        return sw_json_skip(json);
    }
}

sw_status sw_store_take_state(sw_store *store, const char *path, const void *bytes, size_t n_bytes,
                              sw_error *err)
{
    sw_json json;

    if (n_bytes > SW_MOST_STATE_BYTES)
        return SW_FAIL(err, SW_E_LIMIT, "keep what is large in tensors",
                       "%s: a training state of %zu bytes, at most %d are carried", path, n_bytes,
                       SW_MOST_STATE_BYTES);
    sw_json_init(&json, bytes, n_bytes, path, store->arena, err);
    if (sw_json_peek(&json) != SW_JSON_OBJECT && json.status == SW_OK)
        (void)sw_json_fail(&json, "write an object", "the training state is not an object");
    const char *begin = json.at;
    (void)check_value(&json);
    const char *end = json.at;
    if (!sw_json_finish(&json))
        return json.status;
    store->state_length = (size_t)(end - begin);
    store->state_json = sw_arena_copy(store->arena, begin, store->state_length);
    return store->state_json == NULL ? sw_arena_fail(store->arena, path, err) : SW_OK;
}
