/*
 * `layout:` of an override entry: how a fused parameter is stored. One form (a word, or a mapping with kind,
 * parts, dim or segments) speaks of the parameters that the entry's match names; a mapping of paths gives
 * each its form.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/layout.h"
#include "plan/override_reader.h"

enum { MOST_PARTS = 65536, MOST_DIMS = 8 };

/* Words of `kind`. `parts`: may it be given, and what holds when it is not (0: unknown here, see
 * `needs_parts`). */
// clang-format off
static const struct layout_word {
    const char *word;
    sw_layout layout;
    bool takes_parts;
    bool needs_parts;
    uint32_t parts;
} layout_words[] = {
    { "plain",         SW_LAYOUT_PLAIN,        false, false, 0 },
    { "heads",         SW_LAYOUT_HEADS,        false, false, 0 },
    { "kv_heads",      SW_LAYOUT_KV_HEADS,     false, false, 0 },
    { "stacked",       SW_LAYOUT_QKV_STACKED,  true,  false, 0 }, /* q, k, v or equal parts: the role says which */
    { "per_head",      SW_LAYOUT_QKV_PER_HEAD, false, false, 0 },
    { "grouped",       SW_LAYOUT_QKV_GROUPED,  false, false, 0 },
    { "blocks",        SW_LAYOUT_QKV_BLOCKS,   true,  true,  0 },
    { "kv_stacked",    SW_LAYOUT_KV_STACKED,   false, false, 0 },
    { "stacked_parts", SW_LAYOUT_STACKED,      true,  false, 2 },
    { "interleaved",   SW_LAYOUT_INTERLEAVED,  true,  false, 2 },
    { "vocab",         SW_LAYOUT_VOCAB,        false, false, 0 },
    { "unknown",       SW_LAYOUT_UNKNOWN,      false, false, 0 },
    { "segments",      SW_LAYOUT_EXPLICIT,     false, false, 0 },
};
// clang-format on

/* A form while it is read. */
typedef struct said_form {
    sw_override_layout layout;
    const struct layout_word *word;
} said_form;

static sw_status take_kind(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    const char *words[SW_COUNT(layout_words)];
    said_form *form = slot;

    if (value->kind != SW_YAML_SCALAR)
        return sw_reader_fail(r, value, "write one word, such as stacked", "the kind of a layout is a word");
    for (size_t i = 0; i < SW_COUNT(layout_words); i++) {
        words[i] = layout_words[i].word;
        if (strcmp(value->text, words[i]) == 0)
            form->word = &layout_words[i];
    }
    if (form->word == NULL)
        return sw_reader_unknown(r, value, "layout", value->text, words, SW_COUNT(words));
    form->layout.layout = form->word->layout;
    return SW_OK;
}

static sw_status take_parts(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_form *form = slot;
    int64_t parts = 0;

    SW_TRY(sw_reader_number(r, value, 2, MOST_PARTS, &parts));
    form->layout.parts = (uint32_t)parts;
    return SW_OK;
}

static sw_status take_dim(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_form *form = slot;
    int64_t dim = 0;

    SW_TRY(sw_reader_number(r, value, -MOST_DIMS, MOST_DIMS - 1, &dim));
    form->layout.has_dim = true;
    form->layout.dim = (int32_t)dim;
    return SW_OK;
}

/* EXTENT[rN][uM], as in the placements of a plan file, whose parser reads it. */
static sw_status take_segment(const sw_reader *r, const sw_yaml_node *value, sw_segment *out)
{
    char text[96];
    sw_placement made = {0};
    int length = snprintf(text, sizeof text, "S(0;seg=%s)", value->text);
    sw_status status = SW_E_FORMAT;

    if (value->kind == SW_YAML_SCALAR && length > 0 && (size_t)length < sizeof text)
        status = sw_placement_parse(&made, text, (size_t)length, r->into->arena, NULL);
    if (status == SW_E_NO_MEMORY)
        return sw_reader_no_room(r);
    if (status != SW_OK || made.cut->n_segments != 1)
        return sw_reader_fail(r, value,
                              "write its rows, then rN for replicas and uM for units: 4096, 1024r2, 2048u64",
                              "'%.60s' is not a segment", value->text);
    *out = made.cut->segments[0];
    return SW_OK;
}

static sw_status take_segments(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    said_form *form = slot;

    if (value->kind != SW_YAML_SEQUENCE || value->n_children == 0 || value->n_children > SW_CUT_MAX_SEGMENTS)
        return sw_reader_fail(r, value, "write [4096, 1024, 1024]",
                              "segments is a list of 1 to %d stretches of rows", SW_CUT_MAX_SEGMENTS);
    sw_segment *segments = sw_arena_zero(r->into->arena, value->n_children, sizeof *segments);
    if (segments == NULL)
        return sw_reader_no_room(r);
    form->layout.segments = segments;
    for (const sw_yaml_node *child = value->children; child != NULL; child = child->next)
        SW_TRY(take_segment(r, child, &segments[form->layout.n_segments++]));
    return SW_OK;
}

static const sw_reader_key form_keys[] = {
    {"kind",     take_kind,     0},
    {"parts",    take_parts,    0},
    {"dim",      take_dim,      0},
    {"segments", take_segments, 0},
};

static bool is_form(const sw_yaml_node *mapping)
{
    for (size_t i = 0; i < SW_COUNT(form_keys); i++) {
        if (sw_yaml_get(mapping, form_keys[i].key) != NULL)
            return true;
    }
    return false;
}

/* Do the keys of a form go together? Fills in what is not said. */
static sw_status settle(const sw_reader *r, const sw_yaml_node *at, said_form *form)
{
    sw_override_layout *layout = &form->layout;

    if (layout->n_segments > 0) {
        bool is_other = form->word != NULL && form->word->layout != SW_LAYOUT_EXPLICIT;
        if (is_other || layout->parts > 0)
            return sw_reader_fail(r, at, "leave kind and parts out",
                                  "segments already say how the rows are stored");
        layout->layout = SW_LAYOUT_EXPLICIT;
        return SW_OK;
    }
    if (form->word == NULL)
        return sw_reader_fail(r, at, "write kind: stacked, or segments: [...]",
                              "neither kind nor segments is given");
    if (layout->layout == SW_LAYOUT_EXPLICIT)
        return sw_reader_fail(r, at, "write segments: [4096, 1024, 1024]", "the segments are not given");
    if (layout->parts > 0 && !form->word->takes_parts)
        return sw_reader_fail(r, at, "leave parts out", "a %s layout has no parts", form->word->word);
    if (layout->parts == 0 && form->word->needs_parts)
        return sw_reader_fail(r, at, "write {kind: blocks, parts: 4}", "a %s layout needs parts",
                              form->word->word);
    bool is_stacked = layout->layout == SW_LAYOUT_QKV_STACKED || layout->layout == SW_LAYOUT_STACKED;
    if (layout->parts > SW_CUT_MAX_SEGMENTS && is_stacked)
        return sw_reader_fail(r, at, "check the number of parts",
                              "%u stacked parts, at most %d are supported", layout->parts,
                              SW_CUT_MAX_SEGMENTS);
    if (layout->parts == 0)
        layout->parts = form->word->parts;
    return SW_OK;
}

static sw_status take_form(sw_reader *r, const sw_yaml_node *value, sw_override_layout *out)
{
    said_form form = {0};

    if (value->kind == SW_YAML_SEQUENCE)
        return sw_reader_fail(r, value, "write a word, or {segments: [...]}", "a list is not a layout");
    if (value->kind == SW_YAML_SCALAR)
        SW_TRY(take_kind(r, value, &form));
    else
        SW_TRY(sw_reader_mapping(r, value, form_keys, SW_COUNT(form_keys), &form));
    SW_TRY(settle(r, value, &form));
    form.layout.path = out->path;
    *out = form.layout;
    return SW_OK;
}

sw_status sw_reader_layout(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_entry *entry = slot;
    bool has_paths = value->kind == SW_YAML_MAPPING && value->n_children > 0 && !is_form(value);
    size_t n = has_paths ? value->n_children : 1;
    sw_override_layout *layouts = sw_arena_zero(r->into->arena, n, sizeof *layouts);

    if (layouts == NULL)
        return sw_reader_no_room(r);
    entry->layouts = layouts;
    entry->n_layouts = (uint32_t)n;
    if (!has_paths)
        return take_form(r, value, layouts);
    for (const sw_yaml_node *child = value->children; child != NULL; child = child->next, layouts++) {
        SW_TRY(sw_reader_name(r, child, "path", child->key, &layouts->path));
        SW_TRY(take_form(r, child, layouts));
    }
    return SW_OK;
}
