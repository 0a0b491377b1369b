/*
 * Entries of a list of overrides: how they are found, added and merged, and what may stand in them.
 * Invariant: arrays that an entry points to are never changed in place, only replaced by new ones in the
 * arena, so a copy of an entry (or of the array of entries) is a snapshot that a failed call can go back to.
 */
#include "plan/override_entry.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
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
    return sw_text_printable_prefix(name, length) == length ? NULL : "has control characters";
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

/* ---- entries of one match ---- */

#define NO_MORE UINT32_MAX

/* What is said, sorted out: each group becomes one entry, those of the list first. */
typedef struct merging {
    sw_overrides *into;
    const sw_override_entry *said;
    uint32_t n_said;
    sw_map by_match[SW_WHEN_COUNT_]; /* match -> group */
    uint32_t *next;                  /* per item of said: the next one of its group, or NO_MORE */
    uint32_t *first;                 /* per group: its items of said */
    uint32_t *last;
    uint32_t n_groups;
} merging;

static void clear_merging(merging *m)
{
    for (int when = 0; when < SW_WHEN_COUNT_; when++)
        sw_map_clear(&m->by_match[when]);
    sw_free(m->next);
    sw_free(m->first);
    sw_free(m->last);
}

static bool find_group(merging *m, const char *match, sw_when when, uint32_t *out)
{
    const sw_overrides *into = m->into;
    bool is_new = false;

    if (m->n_said == 1) { /* one entry given from C: no map is worth it */
        uint32_t i = 0;
        while (i < into->n_entries &&
               (into->entries[i].when != when || strcmp(into->entries[i].match, match) != 0))
            i++;
        *out = i;
        return true;
    }
    uint32_t *at = sw_map_put(&m->by_match[when], match, strlen(match), m->n_groups, &is_new);
    if (at != NULL)
        *out = *at;
    return at != NULL;
}

static bool begin_groups(merging *m)
{
    size_t most = (size_t)m->into->n_entries + m->n_said;
    uint32_t group = 0;

    m->next = sw_alloc_zero(m->n_said, sizeof *m->next);
    m->first = sw_alloc_zero(most, sizeof *m->first);
    m->last = sw_alloc_zero(most, sizeof *m->last);
    if (m->next == NULL || m->first == NULL || m->last == NULL)
        return false;
    for (uint32_t i = 0; i < m->into->n_entries; i++, m->n_groups++) {
        const sw_override_entry *e = &m->into->entries[i];
        m->first[i] = NO_MORE;
        if (m->n_said > 1 && !find_group(m, e->match, e->when, &group))
            return false;
    }
    return true;
}

static sw_status make_groups(merging *m, sw_error *err)
{
    bool done = begin_groups(m);

    for (uint32_t i = 0; done && i < m->n_said; i++) {
        const sw_override_entry *said = &m->said[i];
        uint32_t group = 0;
        done = find_group(m, said->match, said->when, &group);
        if (done && group == SW_OVERRIDE_MAX_ENTRIES)
            return SW_FAIL(err, SW_E_LIMIT, "use patterns: `*` stands for any layer",
                           "%s: more than %d overrides", said->source, SW_OVERRIDE_MAX_ENTRIES);
        if (!done)
            break;
        if (group == m->n_groups)
            m->first[m->n_groups++] = NO_MORE;
        m->next[i] = NO_MORE;
        if (m->first[group] == NO_MORE)
            m->first[group] = i;
        else
            m->next[m->last[group]] = i;
        m->last[group] = i;
    }
    return done ? SW_OK : SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the overrides");
}

/* ---- merging ---- */

static const size_t fields[] = {offsetof(sw_override_entry, params), offsetof(sw_override_entry, in_src),
                                offsetof(sw_override_entry, in_dst), offsetof(sw_override_entry, out_src),
                                offsetof(sw_override_entry, out_dst)};

static const sw_override_io *field_of(const sw_override_entry *entry, size_t offset)
{
    return (const sw_override_io *)((const char *)entry + offset);
}

/* Put entries over those that are there, by name. `all` has room. */
static bool put_entries(sw_map *by_name, sw_io_entry *all, const sw_override_io *said, uint32_t *n)
{
    for (uint32_t i = 0; i < said->n; i++) {
        bool is_new = false;
        const uint32_t *at =
            sw_map_put(by_name, said->entries[i].name, strlen(said->entries[i].name), *n, &is_new);
        if (at == NULL)
            return false;
        all[*at] = said->entries[i];
        *n += is_new;
    }
    return true;
}

/* `base` and the patches of the group from `from` on as one array of at most `most` entries. */
static bool patch(const merging *m, sw_override_io *base, uint32_t from, size_t offset, size_t most)
{
    sw_map by_name SW_AUTO(sw_map_clear) = {0};
    sw_io_entry *all = sw_arena_zero(m->into->arena, most + 1, sizeof *all);
    uint32_t n = 0;
    bool ok = all != NULL && put_entries(&by_name, all, base, &n);

    for (uint32_t i = from; ok && i != NO_MORE; i = m->next[i])
        ok = put_entries(&by_name, all, field_of(&m->said[i], offset), &n);
    base->entries = all;
    base->n = n;
    return ok;
}

/* The last value of a field replaces what was before; patches behind it add to it. */
static bool merge_field(const merging *m, uint32_t group, sw_override_entry *entry, size_t offset)
{
    sw_override_io *out = (sw_override_io *)((char *)entry + offset);
    sw_override_io base = *out;
    uint32_t patches = NO_MORE;
    size_t most = base.n;
    sw_field_mode mode = base.mode;

    for (uint32_t i = m->first[group]; i != NO_MORE; i = m->next[i]) {
        const sw_override_io *said = field_of(&m->said[i], offset);
        if (said->mode == SW_FIELD_UNSET)
            continue;
        if (said->mode != SW_FIELD_PATCH || mode == SW_FIELD_UNSET) {
            base = *said;
            mode = base.mode;
            most = base.n;
            patches = NO_MORE;
            continue;
        }
        patches = patches == NO_MORE ? i : patches;
        most += said->n;
        mode = mode == SW_FIELD_NONE ? SW_FIELD_VALUE : mode; /* cleared, then given these */
    }
    base.mode = mode;
    *out = base;
    return patches == NO_MORE || patch(m, out, patches, offset, most);
}

/* Later layouts stand behind: the last that names a parameter wins. */
static bool merge_layouts(const merging *m, uint32_t group, sw_override_entry *entry)
{
    size_t n = entry->n_layouts;

    for (uint32_t i = m->first[group]; i != NO_MORE; i = m->next[i])
        n += m->said[i].n_layouts;
    if (n == entry->n_layouts)
        return true;
    sw_override_layout *all = sw_arena_zero(m->into->arena, n, sizeof *all);
    if (all == NULL)
        return false;
    if (entry->n_layouts > 0)
        memcpy(all, entry->layouts, entry->n_layouts * sizeof *all);
    for (uint32_t i = m->first[group]; i != NO_MORE; i = m->next[i]) {
        if (m->said[i].n_layouts > 0)
            memcpy(all + entry->n_layouts, m->said[i].layouts, m->said[i].n_layouts * sizeof *all);
        entry->n_layouts += m->said[i].n_layouts;
    }
    entry->layouts = all;
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

static bool merge_group(const merging *m, uint32_t group, sw_override_entry *entry)
{
    bool ok = true;

    for (size_t i = 0; ok && i < SW_COUNT(fields); i++)
        ok = merge_field(m, group, entry, fields[i]);
    ok = ok && merge_layouts(m, group, entry);
    for (uint32_t i = m->first[group]; ok && i != NO_MORE; i = m->next[i]) {
        merge_words(entry, &m->said[i]);
        ok = merge_source(m->into->arena, entry, &m->said[i]);
    }
    return ok;
}

/* The group as an entry of the list: the one that is there, or a new one at the end. */
static bool put_group(const merging *m, uint32_t group)
{
    sw_overrides *into = m->into;
    const sw_override_entry *said = m->first[group] == NO_MORE ? NULL : &m->said[m->first[group]];

    if (said == NULL)
        return true; /* nothing new is said of it */
    sw_override_entry entry =
        group < into->n_entries ? into->entries[group] : sw_override_blank(said->match, "", said->when);
    if (group == into->n_entries)
        entry.match = sw_arena_copy(into->arena, said->match, strlen(said->match));
    if (entry.match == NULL || !merge_group(m, group, &entry))
        return false;
    if (group == into->n_entries) {
        if (!sw_plan_grow(into->arena, (void **)&into->entries, &into->capacity, into->n_entries,
                          sizeof *into->entries))
            return false;
        into->n_entries++;
    }
    into->entries[group] = entry;
    return true;
}

sw_status sw_overrides_put(sw_overrides *overrides, const sw_override_entry *said, uint32_t n_said,
                           sw_error *err)
{
    merging m SW_AUTO(clear_merging) = {.into = overrides, .said = said, .n_said = n_said};

    if (n_said == 0)
        return SW_OK;
    SW_TRY(make_groups(&m, err));
    for (uint32_t group = 0; group < m.n_groups; group++) {
        if (!put_group(&m, group))
            return sw_arena_fail(overrides->arena, "the overrides", err);
    }
    return SW_OK;
}
