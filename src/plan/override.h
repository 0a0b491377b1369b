/*
 * Overrides inside the library: what a file or a C caller asked for, in one form. Reading is in
 * override_read.c (YAML) and override_api.c (C), applying in override.c. The file form is
 * docs/formats/overrides.md.
 */
#ifndef SW_PLAN_OVERRIDE_H
#define SW_PLAN_OVERRIDE_H

#include "plan/plan_data.h"
#include "plan/registry.h"
#include "plan/role.h"

/* A contract field: names in the order given, each with a placement per axis. */
typedef struct sw_override_io {
    sw_field_mode mode;
    bool is_bare; /* out fields: placements without a name, meaning the single output "output" */
    uint32_t n;
    sw_io_entry *entries;
} sw_override_io;

/* How a fused parameter is stored. */
typedef struct sw_override_layout {
    const char *path; /* relative to the boundary, or NULL: the entry's match names the parameter */
    sw_layout layout;
    uint32_t parts;
    bool has_dim;
    int32_t dim;
    uint32_t n_segments;
    sw_segment *segments;
} sw_override_layout;

typedef enum sw_when { SW_WHEN_ALWAYS = 0, SW_WHEN_TP, SW_WHEN_CP, SW_WHEN_EP, SW_WHEN_COUNT_ } sw_when;

typedef struct sw_override_entry {
    const char *match;
    const char *source; /* "FILE:LINE", for messages */
    bool is_glob;
    sw_when when;
    sw_override_io params;
    sw_override_io in_src;
    sw_override_io in_dst;
    sw_override_io out_src;
    sw_override_io out_dst;
    sw_field_mode out_names_mode;
    const char **out_names;
    uint32_t n_out_names;
    sw_override_layout *layouts;
    uint32_t n_layouts;
    bool has_tp_divide;
    const char **tp_divide;
    uint32_t n_tp_divide;
    int8_t region_dispatch; /* -1 unset */
    const char *inner_target;
    const char *inner_wrapper;
    const char *local_compute;
    bool has_inner_out_src;
    bool inner_first_input;
    sw_override_io inner_out_src;
} sw_override_entry;

/* Rules of one architecture (`arch_roles:`). */
typedef struct sw_arch_rules {
    const char *architecture; /* normalised */
    sw_role_rules rules;
} sw_arch_rules;

struct sw_overrides {
    sw_arena *arena;
    sw_registry registry; /* functions that entries may name */
    sw_override_entry *entries;
    uint32_t n_entries;
    uint32_t capacity;
    bool derive;
    bool has_roles;
    bool extends_roles; /* user rules first, then the defaults; otherwise they replace them */
    sw_role_rules roles;
    sw_arch_rules *arch_roles;
    uint32_t n_arch_roles;
    uint32_t arch_capacity;
};

/* Does the entry hold on this mesh? */
bool sw_override_holds(const sw_override_entry *entry, const sw_plan *plan);

/* Phase 4.5: merge and insert every entry, in order; faults go to the plan's report. */
sw_status sw_overrides_apply(sw_plan *plan, const sw_overrides *overrides, sw_error *err);

/* Read one YAML document into `overrides`. */
sw_status sw_overrides_read(sw_overrides *overrides, const char *text, size_t length, const char *name,
                            sw_error *err);

#endif
