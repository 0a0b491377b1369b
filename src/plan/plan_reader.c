/*
 * Reading of a plan file, the parts without knowledge of its content. An object is read by a table of its
 * keys; the search for a key starts behind the last one found, so that a file in our own order costs one
 * comparison a key.
 */
#include "plan/plan_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "mesh/mesh.h"
#include "mesh/placement.h"
#include "plan/intern.h"
#include "plan/layout.h"
#include "plan/lowering.h"
#include "plan/plan_read.h"

enum { LONGEST_WORD = 64 };

void sw_plan_reader_init(sw_plan_reader *r)
{
    for (uint32_t i = 0; i < SW_ROLE_COUNT_; i++)
        r->roles[i] = sw_role_name((sw_role)i);
    for (uint32_t i = 0; i < SW_DTYPE_COUNT_; i++)
        r->dtypes[i] = sw_dtype_name((sw_dtype)i);
    for (uint32_t i = 0; i < SW_BOUNDARY_COUNT_; i++)
        r->types[i] = sw_boundary_type_name((sw_boundary_type)i);
    for (uint32_t i = 0; i < SW_LAYOUT_COUNT_; i++)
        r->layouts[i] = sw_layout_name((sw_layout)i);
    for (uint32_t i = 0; i < SW_COLL_COUNT_; i++)
        r->collectives[i] = sw_collective_name((sw_collective)i);
    for (uint32_t i = 0; i < SW_AXIS_COUNT_; i++)
        r->axes[i] = sw_axis_name((sw_axis)i);
}

void sw_plan_reader_clear(sw_plan_reader *r)
{
    sw_map_clear(&r->by_name);
    sw_map_clear(&r->by_text);
}

/* ---- failures ---- */

bool sw_plan_refuse(sw_plan_reader *r, const char *help, const char *format, ...)
{
    char what[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (help[0] == '\0')
        help = "mend it, or make the plan again with `shardwright plan`";
    if (r->boundary.bytes == NULL)
        return sw_json_fail(&r->json, help, "%s", what);
    if (r->param.bytes == NULL)
        return sw_json_fail(&r->json, help, "boundary '%.*s': %s", sw_plan_shown(r->boundary),
                            r->boundary.bytes, what);
    return sw_json_fail(&r->json, help, "boundary '%.*s': '%.*s': %s", sw_plan_shown(r->boundary),
                        r->boundary.bytes, sw_plan_shown(r->param), r->param.bytes, what);
}

bool sw_plan_no_memory(sw_plan_reader *r)
{
    if (r->json.status == SW_OK)
        r->json.status = sw_arena_fail(r->plan->arena, r->json.source, r->err);
    return false;
}

bool sw_plan_over_limit(sw_plan_reader *r, const char *what, uint32_t most)
{
    if (r->json.status == SW_OK)
        r->json.status = SW_FAIL(r->err, SW_E_LIMIT, "the file is damaged or was not written by shardwright",
                                 "%.200s: %s: more than %u", r->json.source, what, most);
    return false;
}

/* "did you mean 'X'?" for a misspelt word, or `otherwise`. */
static void help_nearest(char *help, size_t capacity, sw_json_text text, const char *const *words,
                         size_t n_words, const char *otherwise)
{
    char word[LONGEST_WORD + 1];
    const char *near_ = NULL;

    if (text.length <= LONGEST_WORD) {
        memcpy(word, text.bytes, text.length);
        word[text.length] = '\0';
        near_ = sw_nearest(word, words, n_words);
    }
    (void)snprintf(help, capacity, near_ == NULL ? "%s" : "did you mean '%s'?",
                   near_ == NULL ? otherwise : near_);
}

/* ---- objects ---- */

static bool unknown_key(sw_plan_reader *r, const char *what, sw_json_text key, const sw_plan_key *keys,
                        size_t n_keys)
{
    const char *words[32];
    char help[128];

    if (!r->has_format)
        return sw_json_fail(&r->json, "make one with `shardwright plan MODEL --mesh ... -o plan.json`",
                            "not a plan file: '%.*s' stands where \"format\": \"shardwright-plan\" should",
                            sw_plan_shown(key), key.bytes);
    for (size_t i = 0; i < n_keys; i++)
        words[i] = keys[i].name;
    help_nearest(help, sizeof help, key, words, n_keys, "docs/formats/plan.md names every key");
    return sw_plan_refuse(r, help, "%s has no key '%.*s'", what, sw_plan_shown(key), key.bytes);
}

static size_t find_key(sw_json_text key, const sw_plan_key *keys, size_t n_keys, size_t from)
{
    for (size_t i = 0; i < n_keys; i++) {
        size_t at = from + i < n_keys ? from + i : from + i - n_keys;
        if (sw_json_text_is(key, keys[at].name))
            return at;
    }
    return n_keys;
}

bool sw_plan_read_object(sw_plan_reader *r, const char *what, const sw_plan_key *keys, size_t n_keys,
                         void *into)
{
    sw_json_text key;
    uint32_t seen = 0;
    size_t from = 0;

    (void)sw_json_enter_object(&r->json);
    while (sw_json_next_key(&r->json, &key)) {
        size_t at = find_key(key, keys, n_keys, from);
        if (at == n_keys)
            return unknown_key(r, what, key, keys, n_keys);
        if ((seen & (1U << at)) != 0)
            return sw_plan_refuse(r, "", "%s: '%s' stands twice", what, keys[at].name);
        seen |= 1U << at;
        from = at + 1;
        if (!keys[at].read(r, (char *)into + keys[at].offset))
            return false;
    }
    for (size_t i = 0; r->json.status == SW_OK && i < n_keys; i++) {
        if (keys[i].is_required && (seen & (1U << i)) == 0)
            return sw_plan_refuse(r, "", "%s lacks '%s'", what, keys[i].name);
    }
    return r->json.status == SW_OK;
}

/* Room for one more item; NULL after a failure. */
static void *one_more(sw_plan_reader *r, const char *what, const sw_plan_list *list, uint32_t *capacity)
{
    if (*list->n >= list->most) {
        (void)sw_plan_over_limit(r, what, list->most);
        return NULL;
    }
    if (!sw_plan_grow(r->plan->arena, list->items, capacity, *list->n, list->item_bytes)) {
        (void)sw_plan_no_memory(r);
        return NULL;
    }
    return (char *)*list->items + *list->n * list->item_bytes;
}

bool sw_plan_read_list(sw_plan_reader *r, const char *what, sw_plan_list list, sw_plan_read_fn *read)
{
    uint32_t capacity = *list.n;

    (void)sw_json_enter_array(&r->json);
    while (sw_json_next_element(&r->json)) {
        void *item = one_more(r, what, &list, &capacity);
        if (item == NULL || !read(r, item))
            return false;
        ++*list.n;
    }
    return r->json.status == SW_OK;
}

bool sw_plan_read_members(sw_plan_reader *r, const char *what, sw_plan_list list, sw_plan_read_fn *read)
{
    uint32_t capacity = *list.n;
    uint32_t object = ++r->n_objects;
    sw_json_text key;

    (void)sw_json_enter_object(&r->json);
    while (sw_json_next_key(&r->json, &key)) {
        uint32_t name = sw_plan_name_of(r, key);
        void *item = name == UINT32_MAX ? NULL : one_more(r, what, &list, &capacity);
        if (item == NULL)
            return false;
        if (r->names[name].object == object)
            return sw_plan_refuse(r, "", "%s: '%.*s' stands twice", what, sw_plan_shown(key), key.bytes);
        r->names[name].object = object;
        memcpy(item, &r->names[name].text, sizeof r->names[name].text);
        if (!read(r, item))
            return false;
        ++*list.n;
    }
    return r->json.status == SW_OK;
}

bool sw_plan_read_two(sw_plan_reader *r, const char *what, const char *meaning, sw_plan_read_fn *read,
                      void *first, void *second)
{
    void *const slots[] = {first, second};
    uint32_t n = 0;

    (void)sw_json_enter_array(&r->json);
    while (sw_json_next_element(&r->json)) {
        if (n < SW_COUNT(slots) ? !read(r, slots[n]) : !sw_json_skip(&r->json))
            return false;
        n++;
    }
    return r->json.status == SW_OK &&
           (n == SW_COUNT(slots) ||
            sw_plan_refuse(r, "", "%s has %" PRIu32 " values, not two: %s", what, n, meaning));
}

/* ---- names and words ---- */

bool sw_plan_check_name(sw_plan_reader *r, sw_json_text text)
{
    bool is_sound = text.length > 0 && text.length <= SW_MAX_NAME_BYTES &&
                    sw_text_printable_prefix(text.bytes, text.length) == text.length;

    return is_sound ||
           sw_plan_refuse(r, "", "a name is empty, longer than %d bytes, or has control characters",
                          SW_MAX_NAME_BYTES);
}

uint32_t sw_plan_name_of(sw_plan_reader *r, sw_json_text text)
{
    bool is_new = false;

    if (!sw_plan_check_name(r, text))
        return UINT32_MAX;
    uint32_t *at = sw_map_put(&r->by_name, text.bytes, text.length, r->n_names, &is_new);
    if (at != NULL && !is_new)
        return *at;
    char *copy = at == NULL ? NULL : sw_arena_copy(r->plan->arena, text.bytes, text.length);
    if (copy == NULL ||
        !sw_plan_grow(r->plan->arena, (void **)&r->names, &r->names_capacity, r->n_names, sizeof *r->names)) {
        (void)sw_plan_no_memory(r);
        return UINT32_MAX;
    }
    sw_map_rekey(at, copy);
    r->names[r->n_names] = (sw_plan_name){.text = copy, .length = (uint32_t)text.length};
    return r->n_names++;
}

uint32_t sw_plan_param_at(const sw_plan_reader *r, uint32_t spec, const char *path)
{
    const uint32_t *at = sw_map_find(&r->by_name, path, strlen(path));

    return at == NULL || r->names[*at].spec != spec + 1 ? UINT32_MAX : r->names[*at].param;
}

bool sw_plan_read_word(sw_plan_reader *r, const char *what, const char *const *words, size_t n_words,
                       uint32_t *out)
{
    sw_json_text text;
    char help[128];

    if (!sw_json_string(&r->json, &text))
        return false;
    for (size_t i = 0; i < n_words; i++) {
        if (sw_json_text_is(text, words[i])) {
            *out = (uint32_t)i;
            return true;
        }
    }
    help_nearest(help, sizeof help, text, words, n_words, "docs/formats/plan.md names every word");
    return sw_plan_refuse(r, help, "no %s is called '%.*s'", what, sw_plan_shown(text), text.bytes);
}

/* ---- simple values ---- */

bool sw_plan_read_bool(sw_plan_reader *r, void *at)
{
    return sw_json_bool(&r->json, at);
}

bool sw_plan_read_u64(sw_plan_reader *r, void *at)
{
    return sw_json_u64(&r->json, at);
}

bool sw_plan_read_i64(sw_plan_reader *r, void *at)
{
    return sw_json_i64(&r->json, at);
}

bool sw_plan_read_i32(sw_plan_reader *r, void *at)
{
    int32_t *out = at;
    int64_t value = 0;

    if (!sw_json_i64(&r->json, &value))
        return false;
    if (value < INT32_MIN || value > INT32_MAX)
        return sw_plan_refuse(r, "", "a number does not fit 32 bits");
    *out = (int32_t)value;
    return true;
}

bool sw_plan_read_u32(sw_plan_reader *r, void *at)
{
    uint32_t *out = at;
    uint64_t value = 0;

    if (!sw_json_u64(&r->json, &value))
        return false;
    if (value > UINT32_MAX)
        return sw_plan_refuse(r, "", "a number does not fit 32 bits");
    *out = (uint32_t)value;
    return true;
}

bool sw_plan_read_name(sw_plan_reader *r, void *at)
{
    const char **out = at;
    sw_json_text text;

    if (!sw_json_string(&r->json, &text))
        return false;
    uint32_t name = sw_plan_name_of(r, text);
    if (name == UINT32_MAX)
        return false;
    *out = r->names[name].text;
    return true;
}

bool sw_plan_read_text(sw_plan_reader *r, void *at)
{
    const char **out = at;
    sw_json_text text;

    if (!sw_json_string(&r->json, &text))
        return false;
    if (text.length > SW_PLAN_MAX_TEXT || memchr(text.bytes, '\0', text.length) != NULL)
        return sw_plan_refuse(r, "", "a text is longer than %d bytes or has a zero byte", SW_PLAN_MAX_TEXT);
    *out = sw_arena_copy(r->plan->arena, text.bytes, text.length);
    return *out != NULL || sw_plan_no_memory(r);
}

bool sw_plan_read_axis(sw_plan_reader *r, void *at)
{
    sw_axis *out = at;
    uint32_t axis = 0;

    if (!sw_plan_read_word(r, "axis", r->axes, SW_COUNT(r->axes), &axis))
        return false;
    *out = (sw_axis)axis;
    return true;
}

/* ---- placements ---- */

static bool keep_cut(sw_plan_reader *r, const sw_cut *parsed, sw_placement *out)
{
    if (parsed->n_segments > SW_PLAN_MAX_SEGMENTS - r->n_segments)
        return sw_plan_over_limit(r, "segments of placements", SW_PLAN_MAX_SEGMENTS);
    r->n_segments += parsed->n_segments;
    out->cut = sw_plan_cut(r->plan, parsed->n_groups, parsed->segments, parsed->n_segments);
    return out->cut != NULL || sw_plan_no_memory(r);
}

static bool read_placement(sw_plan_reader *r, sw_placement *out)
{
    sw_placement parsed = {0};
    sw_json_text text;
    sw_error why = {0};

    if (!sw_json_string(&r->json, &text))
        return false;
    sw_status status = sw_placement_parse(&parsed, text.bytes, text.length, r->plan->arena, &why);
    if (status == SW_E_NO_MEMORY)
        return sw_plan_no_memory(r);
    if (status == SW_E_LIMIT)
        return sw_plan_over_limit(r, "bytes of a placement", SW_PLACEMENT_TEXT_LIMIT);
    if (status != SW_OK)
        return sw_plan_refuse(r, why.help, "%s", why.what);
    out->kind = parsed.kind;
    out->dim = parsed.dim;
    return parsed.cut == NULL || keep_cut(r, parsed.cut, out);
}

bool sw_plan_read_places(sw_plan_reader *r, void *at)
{
    static const char *const words[SW_ON_COUNT_] = {[SW_ON_CP] = "cp", [SW_ON_EP] = "ep", [SW_ON_TP] = "tp"};
    sw_places *out = at;
    sw_json_text key;
    char help[128];

    memset(out, 0, sizeof *out);
    (void)sw_json_enter_object(&r->json);
    while (sw_json_next_key(&r->json, &key)) {
        uint32_t axis = 0;
        while (axis < SW_ON_COUNT_ && !sw_json_text_is(key, words[axis]))
            axis++;
        if (axis == SW_ON_COUNT_) {
            help_nearest(help, sizeof help, key, words, SW_COUNT(words), "placements speak of tp, cp and ep");
            return sw_plan_refuse(r, help, "no placement over an axis '%.*s'", sw_plan_shown(key), key.bytes);
        }
        if ((out->present & (1U << axis)) != 0)
            return sw_plan_refuse(r, "", "two placements over %s", words[axis]);
        out->present |= (uint8_t)(1U << axis);
        if (!read_placement(r, &out->on[axis]))
            return false;
    }
    return r->json.status == SW_OK;
}

bool sw_plan_read_io_places(sw_plan_reader *r, sw_places *places)
{
    if (!sw_plan_read_places(r, places))
        return false;
    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        if (places->on[axis].cut != NULL)
            return sw_plan_refuse(
                r, "", "a composed cut belongs in params; inputs and outputs are cut into equal pieces");
    }
    return true;
}
