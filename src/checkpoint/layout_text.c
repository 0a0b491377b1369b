/* Writing and checking sw.layout (checkpoint/layout_text.h). */
#include "checkpoint/layout_text.h"

#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/layout.h"
#include "plan/plan_write.h"

static const sw_axis axes[] = {SW_AXIS_TP, SW_AXIS_EP}; /* those that tell files apart */

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

static bool is_one_run(sw_layout layout)
{
    return layout == SW_LAYOUT_PLAIN || layout == SW_LAYOUT_HEADS || layout == SW_LAYOUT_KV_HEADS ||
           layout == SW_LAYOUT_VOCAB;
}

void sw_layout_text_put(sw_json_writer *w, const sw_store_tensor *t, const sw_facts *f)
{
    if (is_one_run(f->layout))
        return;
    sw_json_key_n(w, t->name, t->name_length);
    sw_json_begin_object(w);
    sw_json_key(w, "kind");
    sw_json_put_string(w, sw_layout_name(f->layout));
    if (f->parts > 1) {
        sw_json_key(w, "parts");
        sw_json_put_u64(w, f->parts);
    }
    for (size_t i = 0; i < SW_COUNT(axes); i++) {
        int on = SW_ON_OF(axes[i]);
        if ((f->places.present & (1U << on)) == 0)
            continue;
        sw_json_key(w, sw_axis_name(axes[i]));
        sw_placement_put(w, &f->places.on[on]);
    }
    sw_json_end_object(w);
}

/* ---- checking ---- */

static bool check_kind(sw_json *json)
{
    sw_json_text word;

    if (!sw_json_string(json, &word))
        return false;
    for (int i = 0; i < SW_LAYOUT_COUNT_; i++) {
        if (!is_one_run((sw_layout)i) && sw_json_text_is(word, sw_layout_name((sw_layout)i)))
            return true;
    }
    return sw_json_fail(json, "", "no kind of a fused layout");
}

static bool check_placement(sw_json *json)
{
    sw_placement placement;
    sw_json_text text;

    if (!sw_json_string(json, &text))
        return false;
    if (sw_placement_parse(&placement, text.bytes, text.length, json->arena, NULL) == SW_OK)
        return true;
    return sw_json_fail(json, "", "no placement");
}

static bool check_value(sw_json *json, sw_json_text key)
{
    uint64_t n = 0;

    if (sw_json_text_is(key, "kind"))
        return check_kind(json);
    if (sw_json_text_is(key, "parts"))
        return sw_json_u64(json, &n);
    for (size_t i = 0; i < SW_COUNT(axes); i++) {
        if (sw_json_text_is(key, sw_axis_name(axes[i])))
            return check_placement(json);
    }
    return sw_json_fail(json, "", "a key that a layout has not");
}

static bool check_entry(sw_json *json)
{
    sw_json_text key;
    bool has_kind = false;

    if (!sw_json_enter_object(json))
        return false;
    while (sw_json_next_key(json, &key)) {
        has_kind = has_kind || sw_json_text_is(key, "kind");
        if (!check_value(json, key))
            return false;
    }
    return json->status == SW_OK && (has_kind || sw_json_fail(json, "", "a layout without its kind"));
}

sw_status sw_layout_text_check(sw_json_text layout, const sw_tensor_list *tensors, const char *path,
                               sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);
    sw_json json;
    sw_json_text name;

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    sw_json_init(&json, layout.bytes, layout.length, path, arena, err);
    (void)sw_json_enter_object(&json);
    while (sw_json_next_key(&json, &name)) {
        if (sw_tensor_list_find(tensors, name.bytes, name.length) == NULL)
            (void)sw_json_fail(&json, "", "a tensor that is not in the file");
        else
            (void)check_entry(&json);
    }
    (void)sw_json_finish(&json);
    return json.status;
}
