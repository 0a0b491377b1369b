/*
 * Overrides from C (include/shardwright/plan.h): the list, files and texts into it, and entries given as
 * structs. What is given is checked as a file is and copied; a refused call leaves the list as it was.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/options.h"
#include "base/status.h"
#include "io/yaml.h"
#include "plan/override_entry.h"

enum { MOST_SEGMENTS = 65536 };

sw_status sw_overrides_create(sw_overrides **out, sw_error *err)
{
    SW_NEED(out, err);
    *out = NULL;
    sw_overrides *made = sw_alloc_zero(1, sizeof *made);
    if (made != NULL)
        made->arena = sw_arena_create(SW_OVERRIDE_ARENA_BYTES);
    if (made == NULL || made->arena == NULL) {
        sw_free(made);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a list of overrides");
    }
    made->registry = sw_registry_built_in;
    made->derive = true;
    *out = made;
    return SW_OK;
}

void sw_overrides_destroy(sw_overrides *overrides)
{
    if (overrides == NULL)
        return;
    sw_arena_destroy(overrides->arena);
    sw_free(overrides);
}

void sw_overrides_set_derive(sw_overrides *overrides, bool derive)
{
    if (overrides != NULL)
        overrides->derive = derive;
}

sw_status sw_overrides_add_text(sw_overrides *overrides, const char *text, size_t length, const char *name,
                                sw_error *err)
{
    SW_NEED(overrides, err);
    if (length > 0)
        SW_NEED(text, err);
    return sw_overrides_read(overrides, text == NULL ? "" : text, length, name == NULL ? "overrides" : name,
                             err);
}

sw_status sw_overrides_add_file(sw_overrides *overrides, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_NEED(overrides, err);
    SW_NEED(path, err);
    SW_TRY(sw_file_map_open(&map, path, SW_YAML_MAX_BYTES, err));
    return sw_overrides_read(overrides, map.bytes == NULL ? "" : (const char *)map.bytes, map.n_bytes, path,
                             err);
}

/* ---- one entry from C ---- */

/* An entry while it is checked and copied. */
typedef struct adding {
    sw_overrides *overrides;
    const char *match; /* for messages */
    sw_error *err;
} adding;

static sw_status no_room(const adding *a)
{
    return sw_arena_fail(a->overrides->arena, "the overrides", a->err);
}

static const char api_help[] = "shardwright/plan.h says what each field of sw_override takes";

static sw_status refuse(const adding *a, const char *field, const char *name, const char *what)
{
    return SW_FAIL(a->err, SW_E_ARGUMENT, api_help, "override of '%.200s': %s%s%.200s%s: %s", a->match, field,
                   name == NULL ? "" : ": '", name == NULL ? "" : name, name == NULL ? "" : "'", what);
}

static sw_status copy_name(const adding *a, const char *field, const char *name, const char **out)
{
    const char *fault = name == NULL ? "is not given" : sw_override_name_fault(name);

    if (fault != NULL)
        return refuse(a, field, name, fault);
    *out = sw_arena_copy(a->overrides->arena, name, strlen(name));
    return *out == NULL ? no_room(a) : SW_OK;
}

static sw_status copy_cut(const adding *a, const char *field, const char *name, const sw_cut *cut,
                          const sw_cut **out)
{
    if (cut->n_segments == 0 || cut->n_segments > MOST_SEGMENTS || cut->segments == NULL)
        return refuse(a, field, name, "a cut needs 1 to 65536 segments");
    sw_cut *copy = sw_arena_zero(a->overrides->arena, 1, sizeof *copy);
    sw_segment *segments = sw_arena_zero(a->overrides->arena, cut->n_segments, sizeof *segments);
    if (copy == NULL || segments == NULL)
        return no_room(a);
    memcpy(segments, cut->segments, cut->n_segments * sizeof *segments);
    *copy = (sw_cut){cut->n_groups == 0 ? 1 : cut->n_groups, cut->n_segments, segments};
    *out = copy;
    return SW_OK;
}

static sw_status copy_placement(const adding *a, const char *field, const sw_named_place *place,
                                bool is_param, sw_placement *out)
{
    const char *fault = sw_override_place_fault(&place->placement, is_param);

    if ((unsigned)place->placement.kind >= SW_PLACE_KIND_COUNT_)
        fault = "no such kind of placement";
    if (fault != NULL)
        return refuse(a, field, place->name, fault);
    *out = (sw_placement){.kind = place->placement.kind};
    if (out->kind != SW_PLACE_SHARD)
        return SW_OK;
    out->dim = place->placement.dim;
    return place->placement.cut == NULL ? SW_OK
                                        : copy_cut(a, field, place->name, place->placement.cut, &out->cut);
}

static const char *axis_fault(sw_axis axis)
{
    if (axis == SW_AXIS_DP || axis == SW_AXIS_EDP)
        return "a data-parallel placement does not belong in a plan";
    if (axis == SW_AXIS_PP)
        return "a pipeline placement does not belong in a plan";
    return axis == SW_AXIS_TP || axis == SW_AXIS_CP || axis == SW_AXIS_EP ? NULL : "no such axis";
}

/* The entry of that name among those made so far, or the next free one. */
static sw_io_entry *entry_of(sw_override_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return &io->entries[i];
    }
    return &io->entries[io->n];
}

static sw_status copy_place(const adding *a, const char *field, const sw_named_place *place, bool is_param,
                            sw_override_io *io)
{
    const char *fault = axis_fault(place->axis);

    if (fault != NULL)
        return refuse(a, field, place->name, fault);
    sw_io_entry *e = entry_of(io, place->name);
    if (e->name == NULL) {
        SW_TRY(copy_name(a, field, place->name, &e->name));
        io->n++;
    }
    uint8_t bit = (uint8_t)(1U << SW_ON_OF(place->axis));
    if ((e->places.present & bit) != 0)
        return refuse(a, field, place->name, "an axis is placed twice");
    e->places.present |= bit;
    return copy_placement(a, field, place, is_param, &e->places.on[SW_ON_OF(place->axis)]);
}

/* Output fields may leave the name out: the single output "output". */
static sw_status copy_field(const adding *a, const char *field, const sw_override_field *said,
                            sw_override_io *io)
{
    bool is_param = strcmp(field, "params") == 0;
    bool is_output = strncmp(field, "out_", 4) == 0;

    io->mode = said->mode;
    if ((unsigned)said->mode > SW_FIELD_PATCH || (said->mode == SW_FIELD_PATCH && !is_param))
        return refuse(a, field, NULL, "no such mode for this field");
    bool has_value = said->mode == SW_FIELD_VALUE || said->mode == SW_FIELD_PATCH;
    if (said->n_places > 0 && (!has_value || said->places == NULL))
        return refuse(a, field, NULL, "places are counted, but the mode takes none or the pointer is NULL");
    if (!has_value)
        return SW_OK;
    if (said->n_places > SW_OVERRIDE_MAX_PLACES)
        return SW_FAIL(a->err, SW_E_LIMIT, "split the override",
                       "override of '%.200s': %s: %zu places, at most %d are taken", a->match, field,
                       said->n_places, SW_OVERRIDE_MAX_PLACES);
    io->entries = sw_arena_zero(a->overrides->arena, said->n_places + 1, sizeof *io->entries);
    if (io->entries == NULL)
        return no_room(a);
    for (size_t i = 0; i < said->n_places; i++) {
        sw_named_place place = said->places[i];
        if (place.name == NULL && is_output) {
            place.name = "output";
            io->is_bare = true;
        }
        if (place.name == NULL)
            return refuse(a, field, NULL, "a place without a name");
        SW_TRY(copy_place(a, field, &place, is_param, io));
    }
    return SW_OK;
}

static sw_status copy_attributes(const adding *a, const char *const *attributes, sw_override_entry *entry)
{
    uint32_t n = 0;

    if (attributes == NULL)
        return SW_OK;
    while (n <= SW_OVERRIDE_MAX_LIST && attributes[n] != NULL)
        n++;
    if (n > SW_OVERRIDE_MAX_LIST)
        return refuse(a, "tp_divide_attrs", NULL,
                      "more names than an override may list, or no NULL at the end");
    entry->has_tp_divide = true;
    entry->tp_divide = sw_arena_zero(a->overrides->arena, (size_t)n + 1, sizeof *entry->tp_divide);
    if (entry->tp_divide == NULL)
        return no_room(a);
    for (uint32_t i = 0; i < n; i++) {
        if (!sw_is_identifier(attributes[i]))
            return refuse(a, "tp_divide_attrs", attributes[i], "is not the name of an attribute");
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(attributes[k], attributes[i]) == 0)
                return refuse(a, "tp_divide_attrs", attributes[i], "stands twice");
        }
        SW_TRY(copy_name(a, "tp_divide_attrs", attributes[i], &entry->tp_divide[entry->n_tp_divide++]));
    }
    return SW_OK;
}

static sw_status copy_registered(const adding *a, const char *field, sw_registry_kind kind, const char *name,
                                 const char **out)
{
    if (name == NULL)
        return SW_OK;
    SW_TRY(copy_name(a, field, name, out));
    if (sw_registry_has(&a->overrides->registry, kind, name))
        return SW_OK;
    char help[96] = "see docs/formats/overrides.md for the names";
    const char *near_ = sw_registry_nearest(&a->overrides->registry, kind, name);
    if (near_ != NULL)
        (void)snprintf(help, sizeof help, "did you mean '%s'?", near_);
    return SW_FAIL(a->err, SW_E_ARGUMENT, help, "override of '%.200s': %s: unknown function '%.200s'",
                   a->match, field, name);
}

static sw_status copy_fields(const adding *a, const sw_override *said, sw_override_entry *entry)
{
    SW_TRY(copy_field(a, "params", &said->params, &entry->params));
    SW_TRY(copy_field(a, "in_src", &said->in_src, &entry->in_src));
    SW_TRY(copy_field(a, "in_dst", &said->in_dst, &entry->in_dst));
    SW_TRY(copy_field(a, "out_src", &said->out_src, &entry->out_src));
    SW_TRY(copy_field(a, "out_dst", &said->out_dst, &entry->out_dst));
    SW_TRY(copy_attributes(a, said->tp_divide_attrs, entry));
    if (said->has_region_dispatch)
        entry->region_dispatch = said->region_dispatch ? 1 : 0;
    if (said->inner_target != NULL)
        SW_TRY(copy_name(a, "inner_target", said->inner_target, &entry->inner_target));
    SW_TRY(
        copy_registered(a, "inner_wrapper", SW_REGISTRY_WRAPPER, said->inner_wrapper, &entry->inner_wrapper));
    return copy_registered(a, "local_compute", SW_REGISTRY_COMPUTE, said->local_compute,
                           &entry->local_compute);
}

sw_status sw_overrides_add(sw_overrides *overrides, const sw_override *entry, sw_error *err)
{
    static const sw_options_type type = {"sw_override", "set struct_size = sizeof(sw_override)",
                                         SW_END_OF(sw_override, local_compute), sizeof(sw_override)};
    sw_override said = {0};
    sw_when when = SW_WHEN_ALWAYS;

    SW_NEED(overrides, err);
    SW_NEED(entry, err);
    SW_TRY(sw_options_read(&said, entry, &type, err));
    adding a = {overrides, said.match == NULL ? "" : said.match, err};
    if (said.match == NULL)
        return refuse(&a, "match", NULL, "is not given");
    if (said.when != NULL && !sw_when_parse(said.when, &when))
        return refuse(&a, "when", said.when, "is not tp, cp or ep");
    const char *fault =
        said.match[0] == '\0' ? NULL : sw_override_name_fault(said.match); /* "" is the root */
    if (fault != NULL)
        return refuse(&a, "match", NULL, fault);
    sw_override_entry made = sw_override_blank(said.match, "sw_overrides_add()", when);
    SW_TRY(copy_fields(&a, &said, &made));
    return sw_overrides_put(overrides, &made, 1, err);
}
