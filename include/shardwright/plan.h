/*
 * The plan: for every parameter how it is cut and over which axes its gradient is summed, for every boundary
 * how its inputs and outputs are laid out and which collective moves them. Made from a model and a mesh, or
 * read back from a plan file. A finished plan may be read by many threads; several plans may be made at once.
 */
#ifndef SHARDWRIGHT_PLAN_H
#define SHARDWRIGHT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "mesh.h"
#include "model.h"
#include "plugin.h"
#include "report.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Semantic type of a boundary: the seven templates of the seed, then ours. */
typedef enum sw_boundary_type {
    SW_BOUNDARY_NONE = 0,
    SW_BOUNDARY_ATTENTION,
    SW_BOUNDARY_MLP,
    SW_BOUNDARY_NORM,
    SW_BOUNDARY_EMBED,
    SW_BOUNDARY_LM_HEAD,
    SW_BOUNDARY_MOE_GATE,
    SW_BOUNDARY_MOE_MLP,
    SW_BOUNDARY_POINTWISE, /**< whole parameters that work token by token: position tables, MTP projections */
    SW_BOUNDARY_MIXER,     /**< state-space or linear attention: whole, sees the whole sequence */
    SW_BOUNDARY_WHOLE,     /**< parameters kept whole, no contract: buffers, class tokens, projectors */
    SW_BOUNDARY_CUSTOM,    /**< declared in an override only */
    SW_BOUNDARY_COUNT_
} sw_boundary_type;

/** "attention", "mlp", ...; NULL when out of range. */
SW_API const char *sw_boundary_type_name(sw_boundary_type type);

/** Overrides of a plan; opaque. See docs/formats/overrides.md. */
typedef struct sw_overrides sw_overrides;

/** A plan; opaque. */
typedef struct sw_plan sw_plan;

/** Choices for sw_plan_create(). Zero in a field means the default. */
typedef struct sw_plan_options {
    size_t struct_size;            /**< set by SW_PLAN_OPTIONS_INIT: how the library knows your version */
    bool no_sequence_parallel;     /**< activations between boundaries stay whole over tp */
    bool loss_parallel;            /**< logits stay cut along the vocabulary */
    bool allow_uncovered;          /**< replicate parameters that no rule places, with a warning */
    bool strict;                   /**< warnings about unused overrides and fallbacks become errors */
    const sw_overrides *overrides; /**< borrowed during the call; NULL: none */
    sw_report *report;             /**< gets every finding, also on failure; NULL: only the first, in err */
} sw_plan_options;

#define SW_PLAN_OPTIONS_INIT                                                                                 \
    {                                                                                                        \
        sizeof(sw_plan_options), false, false, false, false, NULL, NULL                                      \
    }

/**
 * Derive the plan of `model` on `mesh`.
 *
 * @param[out] out      the plan; yours, to be given to sw_plan_destroy()
 * @param      model    borrowed until the plan is destroyed
 * @param      mesh     copied
 * @param      options  NULL for the defaults
 * @param[out] err      the first fault; may be NULL
 * @return SW_OK; SW_E_PLAN (every fault is in options->report); SW_E_FORMAT, SW_E_LIMIT, SW_E_NO_MEMORY
 *
 * Cost: linear in the number of parameters.
 */
SW_API SW_MUST_CHECK sw_status sw_plan_create(sw_plan **out, const sw_model *model, const sw_mesh *mesh,
                                              const sw_plan_options *options, sw_error *err);

/** Free a plan and everything borrowed from it. NULL is fine. */
SW_API void sw_plan_destroy(sw_plan *plan);

/** One call for the common case: open a model, make a mesh, plan with defaults. The plan owns the model. */
SW_API SW_MUST_CHECK sw_status sw_plan_model_folder(sw_plan **out, const char *model_path, const char *axes,
                                                    sw_error *err);

/* ---- reading a plan ---- */

/** One boundary, borrowed from the plan. */
typedef struct sw_boundary_info {
    const char *fqn; /**< "" for the root */
    sw_boundary_type type;
    size_t n_params;
    bool needs_cp_attn; /**< its attention must see keys and values of every cp rank */
    bool is_terminal;   /**< the last boundary of the model */
    bool is_tower;      /**< in a vision or audio tower: sequence parallel off */
    uint32_t ep_size;   /**< size of the derived expert axis; 0: none */
    int32_t layer;      /**< index of the layer it stands in; -1: none */
    uint32_t pp_stage;  /**< pipeline stage that holds it */
} sw_boundary_info;

/** One gradient sum. */
typedef struct sw_grad_sum {
    sw_axis axis;
    uint32_t group;     /**< neighbouring ranks that sum; 0: the whole axis */
    const char *reason; /**< "data", "context", "sequence", "partial", "kv_replica", "expert_data", "tied" */
} sw_grad_sum;

/** One parameter of a boundary, borrowed from the plan. */
typedef struct sw_param_plan {
    const char *path; /**< relative to the boundary's FQN; stacked experts under their stacked name */
    size_t path_length;
    sw_role role;
    sw_dtype dtype;
    uint32_t n_dims;
    const uint64_t *dims; /**< global extents as planned: of the view, if there is one */
    bool is_trained;
    sw_placement tp; /**< R when the axis is not active */
    sw_placement cp;
    sw_placement ep;
    size_t n_grad_sums;
    const sw_grad_sum *grad_sums;
} sw_param_plan;

/** Number of boundaries. */
SW_API size_t sw_plan_boundary_count(const sw_plan *plan);

/** Boundary `i` in model order; false when there is none. */
SW_API bool sw_plan_boundary(const sw_plan *plan, size_t i, sw_boundary_info *out);

/** Index of the boundary of that FQN, or (size_t)-1. */
SW_API size_t sw_plan_find(const sw_plan *plan, const char *fqn);

/** Parameter `j` of boundary `i`; false when there is none. */
SW_API bool sw_plan_param(const sw_plan *plan, size_t i, size_t j, sw_param_plan *out);

/** The mesh, borrowed from the plan. */
SW_API const sw_mesh *sw_plan_mesh(const sw_plan *plan);

/** Fingerprint of the model that the plan is for. */
SW_API uint64_t sw_plan_fingerprint(const sw_plan *plan);

/** Every warning and note of the plan, borrowed from it. */
SW_API const sw_report *sw_plan_findings(const sw_plan *plan);

/* ---- plan files (docs/formats/plan.md) ---- */

/** The plan as JSON, `*length` bytes (NULL: not wanted) and a final NUL; yours, for sw_text_free(). */
SW_API SW_MUST_CHECK sw_status sw_plan_json(const sw_plan *plan, char **text, size_t *length, sw_error *err);

/** Write the plan file; it appears under `path` only when complete. */
SW_API SW_MUST_CHECK sw_status sw_plan_save(const sw_plan *plan, const char *path, sw_error *err);

/** Read a plan file. SW_E_FORMAT, SW_E_LIMIT, SW_E_IO, SW_E_NO_MEMORY. */
SW_API SW_MUST_CHECK sw_status sw_plan_load(sw_plan **out, const char *path, sw_error *err);

/**
 * Run every lint on a given plan (usually a loaded one) and compare it with what would be derived.
 *
 * @param report  gets all findings; may be NULL
 * @return SW_OK when there is no error; SW_E_PLAN; SW_E_NO_MEMORY
 */
SW_API SW_MUST_CHECK sw_status sw_plan_check(const sw_plan *plan, const sw_model *model, sw_report *report,
                                             sw_error *err);

/** Choices for sw_plan_explain(). Zero in a field means the default. */
typedef struct sw_explain_options {
    size_t struct_size;
    const char *pattern; /**< FQN or glob of boundaries or parameters; NULL: the whole plan */
    bool all;            /**< do not fold equal layers */
    bool has_rank;       /**< show the rows that `rank` holds */
    uint32_t rank;
} sw_explain_options;

#define SW_EXPLAIN_OPTIONS_INIT                                                                              \
    {                                                                                                        \
        sizeof(sw_explain_options), NULL, false, false, 0                                                    \
    }

/** The plan as text for people, `*length` bytes (NULL: not wanted) and a final NUL; yours, for
 * sw_text_free(). */
SW_API SW_MUST_CHECK sw_status sw_plan_explain(const sw_plan *plan, const sw_explain_options *options,
                                               char **text, size_t *length, sw_error *err);

/** Free a text that the library made. NULL is fine. */
SW_API void sw_text_free(char *text);

/* ---- overrides ---- */

/** An empty list; yours, to be given to sw_overrides_destroy(). */
SW_API SW_MUST_CHECK sw_status sw_overrides_create(sw_overrides **out, sw_error *err);

/** Free a list. NULL is fine. */
SW_API void sw_overrides_destroy(sw_overrides *overrides);

/**
 * Make the functions of a plugin known to this list by their names, which are copied. Entries are checked
 * when they are added, so this comes before those that name one of them. A refused plugin changes nothing.
 *
 * @return SW_OK; SW_E_ARGUMENT: a name is not as shardwright/plugin.h says; SW_E_LIMIT; SW_E_NO_MEMORY
 */
SW_API SW_MUST_CHECK sw_status sw_overrides_register(sw_overrides *overrides, const sw_plugin *plugin,
                                                     sw_error *err);

/** Append the entries of a YAML file. */
SW_API SW_MUST_CHECK sw_status sw_overrides_add_file(sw_overrides *overrides, const char *path,
                                                     sw_error *err);

/**
 * Append the entries of YAML text.
 *
 * @param text  may be NULL when `length` is 0
 * @param name  stands for the file in messages; NULL: "overrides"
 */
SW_API SW_MUST_CHECK sw_status sw_overrides_add_text(sw_overrides *overrides, const char *text, size_t length,
                                                     const char *name, sw_error *err);

/** How a contract field of an override is given. */
typedef enum sw_field_mode {
    SW_FIELD_UNSET = 0, /**< keep what is derived (the word `auto` says the same) */
    SW_FIELD_NONE,      /**< clear it */
    SW_FIELD_VALUE,     /**< replace the whole field */
    SW_FIELD_PATCH      /**< params only: add or replace single keys */
} sw_field_mode;

/** One named placement: `name` (parameter path, input or output name) gets `placement` on `axis`. */
typedef struct sw_named_place {
    const char *name;
    sw_axis axis; /**< SW_AXIS_TP, SW_AXIS_CP or SW_AXIS_EP */
    sw_placement placement;
} sw_named_place;

/** A contract field: all places of one name stand for that name's placement; axes left out are R. */
typedef struct sw_override_field {
    sw_field_mode mode;
    size_t n_places;
    const sw_named_place *places;
} sw_override_field;

/** One override given from C; everything is copied. Zero in a field means "not given". */
typedef struct sw_override {
    size_t struct_size; /**< sizeof(sw_override) */
    const char *match;  /**< FQN of a module or boundary, or a glob */
    const char *when;   /**< "tp", "cp", "ep"; NULL: always */
    sw_override_field params;
    sw_override_field in_src;
    sw_override_field in_dst;
    sw_override_field out_src;
    sw_override_field out_dst;
    const char *const *tp_divide_attrs; /**< ended by NULL */
    bool has_region_dispatch;
    bool region_dispatch;
    const char *inner_target;
    const char *inner_wrapper;
    const char *local_compute;
} sw_override;

/** Append one override. */
SW_API SW_MUST_CHECK sw_status sw_overrides_add(sw_overrides *overrides, const sw_override *entry,
                                                sw_error *err);

/** Plan from the overrides alone (`derive: false`). */
SW_API void sw_overrides_set_derive(sw_overrides *overrides, bool derive);

#ifdef __cplusplus
}
#endif
#endif
