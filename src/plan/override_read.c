/*
 * One override document (docs/formats/overrides.md) into the list of overrides: the document, its entries and
 * their contract fields. The caller's list is changed only when the whole document is right: everything is
 * read into a draft of it, and the first fault ends the reading.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/glob.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "plan/override_reader.h"

enum { TREE_BYTES = 64 << 20 }; /* of one document while it is read */

/* ---- placements ---- */

/* Axes of placements. Those of data and pipeline are words of the field, so they are refused by name. */
// clang-format off
static const struct { const char *word; sw_axis axis; const char *refusal; } axis_words[] = {
    { "tp",           SW_AXIS_TP,  NULL },
    { "cp",           SW_AXIS_CP,  NULL },
    { "ep",           SW_AXIS_EP,  NULL },
    { "dp",           SW_AXIS_DP,  "a data-parallel placement does not belong in a plan" },
    { "dp_replicate", SW_AXIS_DP,  "a data-parallel placement does not belong in a plan" },
    { "dp_shard",     SW_AXIS_DP,  "a data-parallel placement does not belong in a plan" },
    { "dp_cp",        SW_AXIS_DP,  "a data-parallel placement does not belong in a plan" },
    { "ep_shard",     SW_AXIS_EDP, "a data-parallel placement does not belong in a plan" },
    { "edp",          SW_AXIS_EDP, "a data-parallel placement does not belong in a plan" },
    { "pp",           SW_AXIS_PP,  "a pipeline placement does not belong in a plan"      },
};
// clang-format on

static sw_status take_axis(const sw_reader *r, const sw_yaml_node *at, const char *name, sw_axis *out)
{
    static const char *const placed[] = {"tp", "cp", "ep"};

    for (size_t i = 0; i < SW_COUNT(axis_words); i++) {
        if (strcmp(at->key, axis_words[i].word) != 0)
            continue;
        if (axis_words[i].refusal != NULL)
            return sw_reader_fail(r, at, "placements are over tp, cp and ep", "%.200s: axis %s: %s", name,
                                  at->key, axis_words[i].refusal);
        *out = axis_words[i].axis;
        return SW_OK;
    }
    return sw_reader_unknown(r, at, "axis", at->key, placed, SW_COUNT(placed));
}

/* What stands behind an axis. `name` is what it places, for messages. */
static sw_status take_placement(const sw_reader *r, const sw_yaml_node *at, const char *name, bool is_param,
                                sw_placement *out)
{
    if (at->kind != SW_YAML_SCALAR)
        return sw_reader_fail(r, at, "write replicate, partial or shard(N)",
                              "%.200s: %s: a placement is a word, not a list or a mapping", name, at->key);
    sw_status status = sw_placement_parse_word(out, at->text, strlen(at->text), r->into->arena, r->err);
    if (status == SW_E_NO_MEMORY)
        return sw_reader_no_room(r);
    if (status != SW_OK) {
        sw_error_context(r->err, "%s:%u: %s: %.200s: %s", r->path, at->line, r->field, name, at->key);
        return status;
    }
    const char *fault = sw_override_place_fault(out, is_param);
    if (fault != NULL)
        return sw_reader_fail(r, at, "write replicate or shard(N)", "%.200s: %s: %s", name, at->key, fault);
    return SW_OK;
}

/* A named placement: {axis: placement, ...}, at least one. */
static sw_status take_places(const sw_reader *r, const sw_yaml_node *mapping, const char *name, bool is_param,
                             sw_places *out)
{
    if (mapping->kind != SW_YAML_MAPPING || mapping->n_children == 0)
        return sw_reader_fail(r, mapping, "write {tp: shard(0)}",
                              "%.200s is not a mapping from axis to placement", name);
    for (const sw_yaml_node *at = mapping->children; at != NULL; at = at->next) {
        sw_axis axis = SW_AXIS_TP;
        SW_TRY(take_axis(r, at, name, &axis));
        SW_TRY(take_placement(r, at, name, is_param, &out->on[SW_ON_OF(axis)]));
        out->present |= (uint8_t)(1U << SW_ON_OF(axis));
    }
    return SW_OK;
}

/* A mapping from names to named placements. */
static sw_status take_named(const sw_reader *r, const sw_yaml_node *mapping, bool is_param,
                            sw_override_io *out)
{
    out->entries = sw_arena_zero(r->into->arena, mapping->n_children + 1, sizeof *out->entries);
    if (out->entries == NULL)
        return sw_reader_no_room(r);
    for (const sw_yaml_node *at = mapping->children; at != NULL; at = at->next) {
        sw_io_entry *e = &out->entries[out->n++];
        SW_TRY(sw_reader_name(r, at, "name", at->key, &e->name));
        SW_TRY(take_places(r, at, e->name, is_param, &e->places));
    }
    return SW_OK;
}

/* ---- contract fields ---- */

/* `auto`, `none` or a mapping; only a mapping is read on (mode SW_FIELD_VALUE). */
static sw_status take_field_mode(const sw_reader *r, const sw_yaml_node *value, const char *form,
                                 sw_field_mode *mode)
{
    char help[96];

    *mode = SW_FIELD_VALUE;
    if (value->kind == SW_YAML_MAPPING)
        return SW_OK;
    if (value->kind == SW_YAML_SCALAR && strcmp(value->text, "auto") == 0) {
        *mode = SW_FIELD_UNSET;
        return SW_OK;
    }
    if (value->kind == SW_YAML_SCALAR && strcmp(value->text, "none") == 0) {
        *mode = SW_FIELD_NONE;
        return SW_OK;
    }
    (void)snprintf(help, sizeof help, "write %s", form);
    if (value->kind == SW_YAML_SEQUENCE)
        return sw_reader_fail(r, value, help, "a list; expected auto, none or a mapping");
    return sw_reader_fail(r, value, help, "'%.200s' is not auto, none or a mapping", value->text);
}

/* Path → placement, or {+: path → placement}, which changes single keys. */
static sw_status take_params(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_io *field = slot;
    const char *form = "{q_proj.weight: {tp: shard(0)}}";
    const sw_yaml_node *patch = sw_yaml_get(value, "+");

    SW_TRY(take_field_mode(r, value, form, &field->mode));
    if (field->mode != SW_FIELD_VALUE)
        return SW_OK;
    if (patch == NULL)
        return take_named(r, value, true, field);
    if (value->n_children != 1)
        return sw_reader_fail(r, patch, "put the other keys under '+'", "'+' stands alone in its mapping");
    if (patch->kind != SW_YAML_MAPPING)
        return sw_reader_fail(r, patch, "write {+: {q_proj.weight: {tp: shard(0)}}}", "'+' is not a mapping");
    field->mode = SW_FIELD_PATCH;
    return take_named(r, patch, true, field);
}

static sw_status take_inputs(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_io *field = slot;

    SW_TRY(take_field_mode(r, value, "{hidden_states: {tp: shard(1)}}", &field->mode));
    return field->mode == SW_FIELD_VALUE ? take_named(r, value, false, field) : SW_OK;
}

/* Are the values words, so that the mapping is one placement without a name? */
static bool is_bare(const sw_yaml_node *mapping)
{
    for (const sw_yaml_node *at = mapping->children; at != NULL; at = at->next) {
        if (at->kind == SW_YAML_SCALAR)
            return true;
    }
    return false;
}

/* Name → placement, or one placement for the single output "output". */
static sw_status take_one_or_named(const sw_reader *r, const sw_yaml_node *value, sw_override_io *field)
{
    if (!is_bare(value))
        return take_named(r, value, false, field);
    field->is_bare = true;
    field->n = 1;
    field->entries = sw_arena_zero(r->into->arena, 1, sizeof *field->entries);
    if (field->entries == NULL)
        return sw_reader_no_room(r);
    field->entries->name = "output";
    return take_places(r, value, "output", false, &field->entries->places);
}

static sw_status take_outputs(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_io *field = slot;

    SW_TRY(take_field_mode(r, value, "{tp: shard(1)}, or {output: {tp: shard(1)}}", &field->mode));
    return field->mode == SW_FIELD_VALUE ? take_one_or_named(r, value, field) : SW_OK;
}

static sw_status take_out_names(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_entry *entry = slot;

    if (value->kind != SW_YAML_SEQUENCE) {
        SW_TRY(take_field_mode(r, value, "[hidden_states, weights]", &entry->out_names_mode));
        return entry->out_names_mode != SW_FIELD_VALUE
                   ? SW_OK
                   : sw_reader_fail(r, value, "write [hidden_states, weights]",
                                    "a mapping; expected a list of names");
    }
    entry->out_names_mode = SW_FIELD_VALUE;
    return sw_reader_names(r, value, "name", SW_OVERRIDE_MAX_LIST, &entry->out_names, &entry->n_out_names);
}

static sw_status take_inner_out_src(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_entry *entry = slot;

    entry->has_inner_out_src = true;
    entry->inner_first_input = value->kind == SW_YAML_SCALAR && strcmp(value->text, "first_input") == 0;
    if (entry->inner_first_input)
        return SW_OK;
    if (value->kind != SW_YAML_MAPPING || value->n_children == 0)
        return sw_reader_fail(r, value, "write first_input, {tp: shard(2)} or {output: {tp: shard(2)}}",
                              "expected first_input or placements");
    entry->inner_out_src.mode = SW_FIELD_VALUE;
    return take_one_or_named(r, value, &entry->inner_out_src);
}

/* ---- the other keys of an entry ---- */

static sw_status take_match(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    const char **match = slot;

    if (value->kind != SW_YAML_SCALAR)
        return sw_reader_fail(r, value,
                              "write one entry for each, or a pattern: `*` stands for any characters",
                              "a list or a mapping; expected one FQN or pattern");
    if (value->text[0] != '\0')
        return sw_reader_name(r, value, "name", value->text, match);
    *match = ""; /* the root module */
    return SW_OK;
}

static sw_status take_when(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    if (value->kind == SW_YAML_SCALAR && sw_when_parse(value->text, slot))
        return SW_OK;
    return sw_reader_fail(r, value,
                          "write tp, cp or ep: the entry holds when that axis has more than one rank",
                          "'%.200s' is not tp, cp or ep", value->text);
}

static sw_status take_tp_divide(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    sw_override_entry *entry = slot;
    const sw_yaml_node *at = value->children;

    SW_TRY(
        sw_reader_names(r, value, "attribute", SW_OVERRIDE_MAX_LIST, &entry->tp_divide, &entry->n_tp_divide));
    for (uint32_t i = 0; i < entry->n_tp_divide; i++, at = at->next) {
        if (!sw_is_identifier(entry->tp_divide[i]))
            return sw_reader_fail(r, at, "name an attribute of the module, such as num_heads",
                                  "'%.200s' is not the name of an attribute", entry->tp_divide[i]);
    }
    entry->has_tp_divide = true;
    return SW_OK;
}

static sw_status take_dispatch(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    int8_t *dispatch = slot;
    bool is_on = false;

    if (!sw_yaml_bool(value, &is_on))
        return sw_reader_fail(r, value, "write true or false, without quotes",
                              "'%.200s' is not true or false", value->text);
    *dispatch = is_on ? 1 : 0;
    return SW_OK;
}

static sw_status take_word(const sw_reader *r, const sw_yaml_node *value, const char **out)
{
    if (value->kind != SW_YAML_SCALAR)
        return sw_reader_fail(r, value, "write one name", "a list or a mapping; expected a name");
    return sw_reader_name(r, value, "name", value->text, out);
}

static sw_status take_target(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    return take_word(r, value, slot);
}

/* A function by its registered name. */
static sw_status take_registered(const sw_reader *r, const sw_yaml_node *value, sw_registry_kind kind,
                                 const char **out)
{
    const sw_registry_names *known = &r->into->registry.of[kind];

    SW_TRY(take_word(r, value, out));
    if (!sw_registry_has(&r->into->registry, kind, *out))
        return sw_reader_unknown(r, value, "function", *out, known->names, known->n_names);
    return SW_OK;
}

static sw_status take_wrapper(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    return take_registered(r, value, SW_REGISTRY_WRAPPER, slot);
}

static sw_status take_compute(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    return take_registered(r, value, SW_REGISTRY_COMPUTE, slot);
}

/* ---- entries ---- */

/* In the order of docs/formats/overrides.md. */
// clang-format off
static const sw_reader_key entry_keys[] = {
    { "match",           take_match,         offsetof(sw_override_entry, match)           },
    { "when",            take_when,          offsetof(sw_override_entry, when)            },
    { "params",          take_params,        offsetof(sw_override_entry, params)          },
    { "in_src",          take_inputs,        offsetof(sw_override_entry, in_src)          },
    { "in_dst",          take_inputs,        offsetof(sw_override_entry, in_dst)          },
    { "out_src",         take_outputs,       offsetof(sw_override_entry, out_src)         },
    { "out_dst",         take_outputs,       offsetof(sw_override_entry, out_dst)         },
    { "out_names",       take_out_names,     0                                            },
    { "layout",          sw_reader_layout,   0                                            },
    { "tp_divide_attrs", take_tp_divide,     0                                            },
    { "region_dispatch", take_dispatch,      offsetof(sw_override_entry, region_dispatch) },
    { "inner_target",    take_target,        offsetof(sw_override_entry, inner_target)    },
    { "inner_wrapper",   take_wrapper,       offsetof(sw_override_entry, inner_wrapper)   },
    { "inner_out_src",   take_inner_out_src, 0                                            },
    { "local_compute",   take_compute,       offsetof(sw_override_entry, local_compute)   },
};
// clang-format on

_Static_assert(SW_COUNT(entry_keys) <= SW_READER_MAX_KEYS, "room for all keys in a message");

static sw_status take_entry(sw_reader *r, const sw_yaml_node *node, sw_override_entry *out)
{
    sw_override_entry entry = sw_override_blank(NULL, NULL, SW_WHEN_ALWAYS);

    if (node->kind != SW_YAML_MAPPING)
        return sw_reader_fail(r, node, "write - {match: model.norm, ...}", "an override is a mapping");
    SW_TRY(sw_reader_mapping(r, node, entry_keys, SW_COUNT(entry_keys), &entry));
    if (entry.match == NULL)
        return sw_reader_fail(r, node, "name a module, or a pattern: match: \"*.self_attn\"",
                              "an override without match");
    entry.is_glob = sw_glob_is_pattern(entry.match);
    entry.source = sw_arena_format(r->into->arena, "%s:%u", r->path, node->line);
    if (entry.source == NULL)
        return sw_reader_no_room(r);
    *out = entry;
    return SW_OK;
}

static sw_status take_list(sw_reader *r, const sw_yaml_node *list, sw_override_entry *said)
{
    uint32_t n = 0;

    for (const sw_yaml_node *child = list->children; child != NULL; child = child->next)
        SW_TRY(take_entry(r, child, &said[n++]));
    return sw_overrides_put(r->into, said, n, r->err);
}

static sw_status take_entries(sw_reader *r, const sw_yaml_node *list, void *slot)
{
    (void)slot;
    if (list->kind != SW_YAML_SEQUENCE)
        return sw_reader_fail(r, list, "begin each entry with '- match:'", "expected a list of overrides");
    r->field = NULL; /* messages of an entry begin with its own keys */
    sw_override_entry *said = sw_alloc_zero(list->n_children + 1, sizeof *said);
    if (said == NULL)
        return SW_FAIL(r->err, SW_E_NO_MEMORY, "", "no memory for %s", r->path);
    sw_status status = take_list(r, list, said);
    sw_free(said);
    return status;
}

/* ---- the document ---- */

static sw_status take_derive(sw_reader *r, const sw_yaml_node *value, void *slot)
{
    if (!sw_yaml_bool(value, slot))
        return sw_reader_fail(r, value, "write true or false, without quotes",
                              "'%.200s' is not true or false", value->text);
    return SW_OK;
}

// clang-format off
static const sw_reader_key document_keys[] = {
    { "overrides",  take_entries,         0                              },
    { "roles",      sw_reader_roles,      0                              },
    { "arch_roles", sw_reader_arch_roles, 0                              },
    { "derive",     take_derive,          offsetof(sw_overrides, derive) },
};
// clang-format on

static sw_status take_document(sw_reader *r, const sw_yaml_node *root)
{
    if (root == NULL) /* nothing but comments: nothing to override */
        return SW_OK;
    if (root->kind == SW_YAML_SEQUENCE)
        return take_entries(r, root, NULL);
    if (root->kind == SW_YAML_MAPPING)
        return sw_reader_mapping(r, root, document_keys, SW_COUNT(document_keys), r->into);
    return sw_reader_fail(r, root, "begin with 'overrides:' or with '- match:'",
                          "expected a mapping or a list of overrides");
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

/* The entries are copied, so that merging into them leaves the caller's as they are. */
static sw_status make_draft(const sw_overrides *overrides, sw_overrides *draft, const char *name,
                            sw_error *err)
{
    *draft = *overrides;
    draft->capacity = overrides->n_entries;
    draft->entries = sw_arena_zero(overrides->arena, (size_t)draft->capacity + 1, sizeof *draft->entries);
    if (draft->entries == NULL)
        return sw_arena_fail(overrides->arena, name, err);
    if (draft->n_entries > 0)
        memcpy(draft->entries, overrides->entries, draft->n_entries * sizeof *draft->entries);
    return SW_OK;
}

sw_status sw_overrides_read(sw_overrides *overrides, const char *text, size_t length, const char *name,
                            sw_error *err)
{
    sw_arena *tree SW_AUTO(drop_arena) = sw_arena_create(TREE_BYTES);
    sw_yaml_node *root = NULL;
    sw_overrides draft;

    if (tree == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %s", name);
    SW_TRY(sw_yaml_read(&root, sw_file_map_of(text, length), name, tree, err));
    SW_TRY(make_draft(overrides, &draft, name, err));
    sw_reader r = {.into = &draft, .path = name, .err = err};
    SW_TRY(take_document(&r, root));
    *overrides = draft;
    return SW_OK;
}
