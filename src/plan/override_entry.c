/*
 * Entries of a list of overrides: how they are found, added and merged, and what may stand in them.
 * Invariant: arrays that an entry points to are never changed in place, only replaced by new ones in the
 * arena, so a copy of an entry (or of the array of entries) is a snapshot that a failed call can go back to.
 */
#include "plan/override_entry.h"

#include <string.h>

#include "base/glob.h"
#include "base/map.h"
#include "base/status.h"
#include "base/text.h"
#include "plan/intern.h"

enum { LONGEST_SOURCE = 256 }; /* bytes of "a.yaml:3, a.yaml:9, ..." */

sw_override_entry sw_override_blank(const char *match, const char *source, sw_when when)
{
    return (sw_override_entry){.match = match,
                               .source = source,
                               .is_glob = match != NULL && sw_glob_is_pattern(match),
                               .when = when,
                               .region_dispatch = -1};
}

/* ---- what may stand in an entry ---- */

bool sw_when_parse(const char *word, sw_when *out)
{
    static const char *const words[] = {[SW_WHEN_TP] = "tp", [SW_WHEN_CP] = "cp", [SW_WHEN_EP] = "ep"};

    for (int i = SW_WHEN_TP; i < (int)SW_COUNT(words); i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (sw_when)i;
            return true;
        }
    }
    return false;
}

const char *sw_override_name_fault(const char *name)
{
    size_t length = strlen(name);

    if (length == 0)
        return "is empty";
    if (length > SW_OVERRIDE_MAX_NAME)
        return "is longer than 1024 bytes";
    if (sw_utf8_valid_prefix(name, length) != length)
        return "is not UTF-8";
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "has control characters";
    }
    return NULL;
}

_Static_assert(SW_OVERRIDE_MAX_NAME == 1024, "the text above says so");

bool sw_is_identifier(const char *word)
{
    static const char letters[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    return word[0] != '\0' && (word[0] < '0' || word[0] > '9') && word[strspn(word, letters)] == '\0';
}

const char *sw_override_place_fault(const sw_placement *placement, bool is_param)
{
    if (is_param && placement->kind == SW_PLACE_PARTIAL)
        return "a stored parameter cannot be partial";
    if (!is_param && placement->cut != NULL)
        return "a composed cut belongs in params; inputs and outputs are cut into equal pieces";
    return NULL;
}

/* ---- finding and adding ---- */

static sw_override_entry *find_entry(const sw_overrides *overrides, const char *match, sw_when when)
{
    for (uint32_t i = 0; i < overrides->n_entries; i++) {
        sw_override_entry *e = &overrides->entries[i];
        if (e->when == when && strcmp(e->match, match) == 0)
            return e;
    }
    return NULL;
}

static sw_override_entry *append_entry(sw_overrides *overrides, const char *match, sw_when when)
{
    const char *copy = sw_arena_copy(overrides->arena, match, strlen(match));

    if (copy == NULL || !sw_plan_grow(overrides->arena, (void **)&overrides->entries, &overrides->capacity,
                                      overrides->n_entries, sizeof *overrides->entries))
        return NULL;
    sw_override_entry *fresh = &overrides->entries[overrides->n_entries++];
    *fresh = sw_override_blank(copy, "", when);
    return fresh;
}

sw_override_entry *sw_overrides_entry(sw_overrides *overrides, const char *match, sw_when when)
{
    sw_override_entry *found = find_entry(overrides, match, when);

    return found != NULL ? found : append_entry(overrides, match, when);
}

/* ---- merging ---- */

/* Entries of `old` with those of `said` put over them by name; NULL without memory. */
static sw_io_entry *patched(sw_arena *arena, const sw_override_io *old, const sw_override_io *said,
                            uint32_t *n_out)
{
    sw_map by_name SW_AUTO(sw_map_clear) = {0};
    sw_io_entry *all = sw_arena_zero(arena, (size_t)old->n + said->n + 1, sizeof *all);
    uint32_t n = 0;

    for (uint32_t i = 0; all != NULL && i < old->n + said->n; i++) {
        const sw_io_entry *e = i < old->n ? &old->entries[i] : &said->entries[i - old->n];
        bool is_new = false;
        uint32_t *at = sw_map_put(&by_name, e->name, strlen(e->name), n, &is_new);
        if (at == NULL)
            return NULL;
        all[*at] = *e;
        n += is_new;
    }
    *n_out = n;
    return all;
}

static bool merge_io(sw_arena *arena, sw_override_io *field, const sw_override_io *said)
{
    if (said->mode == SW_FIELD_UNSET)
        return true;
    if (said->mode != SW_FIELD_PATCH || field->mode == SW_FIELD_UNSET) {
        *field = *said;
        return true;
    }
    field->entries = patched(arena, field, said, &field->n);
    if (field->mode == SW_FIELD_NONE) /* cleared, then given these: that is their value */
        field->mode = SW_FIELD_VALUE;
    return field->entries != NULL;
}

/* Later layouts stand behind: the last that names a parameter wins. */
static bool merge_layouts(sw_arena *arena, sw_override_entry *entry, const sw_override_entry *said)
{
    size_t n = (size_t)entry->n_layouts + said->n_layouts;

    if (said->n_layouts == 0)
        return true;
    sw_override_layout *all = sw_arena_zero(arena, n, sizeof *all);
    if (all == NULL)
        return false;
    if (entry->n_layouts > 0)
        memcpy(all, entry->layouts, entry->n_layouts * sizeof *all);
    memcpy(all + entry->n_layouts, said->layouts, said->n_layouts * sizeof *all);
    entry->layouts = all;
    entry->n_layouts = (uint32_t)n;
    return true;
}

static bool merge_source(sw_arena *arena, sw_override_entry *entry, const sw_override_entry *said)
{
    if (entry->source[0] == '\0')
        entry->source = said->source;
    else if (strlen(entry->source) + strlen(said->source) < LONGEST_SOURCE &&
             strcmp(entry->source, said->source) != 0)
        entry->source = sw_arena_format(arena, "%s, %s", entry->source, said->source);
    return entry->source != NULL;
}

static void merge_words(sw_override_entry *entry, const sw_override_entry *said)
{
    if (said->out_names_mode != SW_FIELD_UNSET) {
        entry->out_names_mode = said->out_names_mode;
        entry->out_names = said->out_names;
        entry->n_out_names = said->n_out_names;
    }
    if (said->has_tp_divide) {
        entry->has_tp_divide = true;
        entry->tp_divide = said->tp_divide;
        entry->n_tp_divide = said->n_tp_divide;
    }
    if (said->region_dispatch >= 0)
        entry->region_dispatch = said->region_dispatch;
    if (said->inner_target != NULL)
        entry->inner_target = said->inner_target;
    if (said->inner_wrapper != NULL)
        entry->inner_wrapper = said->inner_wrapper;
    if (said->local_compute != NULL)
        entry->local_compute = said->local_compute;
    if (said->has_inner_out_src) {
        entry->has_inner_out_src = true;
        entry->inner_first_input = said->inner_first_input;
        entry->inner_out_src = said->inner_out_src;
    }
}

static bool merge_entry(sw_arena *arena, sw_override_entry *entry, const sw_override_entry *said)
{
    bool ok =
        merge_io(arena, &entry->params, &said->params) && merge_io(arena, &entry->in_src, &said->in_src) &&
        merge_io(arena, &entry->in_dst, &said->in_dst) && merge_io(arena, &entry->out_src, &said->out_src) &&
        merge_io(arena, &entry->out_dst, &said->out_dst) && merge_layouts(arena, entry, said) &&
        merge_source(arena, entry, said);

    merge_words(entry, said);
    return ok;
}

sw_status sw_overrides_put(sw_overrides *overrides, const sw_override_entry *said, sw_error *err)
{
    sw_override_entry *entry = find_entry(overrides, said->match, said->when);
    sw_override_entry merged = entry != NULL ? *entry : sw_override_blank(said->match, "", said->when);

    if (entry == NULL && overrides->n_entries >= SW_OVERRIDE_MAX_ENTRIES)
        return SW_FAIL(err, SW_E_LIMIT, "use patterns: `*` stands for any layer",
                       "%s: more than %d overrides", said->source, SW_OVERRIDE_MAX_ENTRIES);
    if (!merge_entry(overrides->arena, &merged, said))
        return sw_arena_fail(overrides->arena, "the overrides", err);
    if (entry == NULL)
        entry = append_entry(overrides, said->match, said->when);
    if (entry == NULL)
        return sw_arena_fail(overrides->arena, "the overrides", err);
    merged.match = entry->match;
    *entry = merged;
    return SW_OK;
}
