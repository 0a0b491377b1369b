/*
 * The plan as the phases of src/plan see it. Everything lives in the plan's arena and is freed with it.
 * Records that many parameters share (placements, gradient sums, facts) are interned, so that 100,000
 * parameters cost two dozen bytes each.
 */
#ifndef SW_PLAN_PLAN_DATA_H
#define SW_PLAN_PLAN_DATA_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "family/family.h"
#include "io/tensor_list.h"
#include "mesh/mesh.h"
#include "model/model.h"
#include "plan/report.h"
#include "shardwright/plan.h"

/* Limits of any plan, made or read. */
enum {
    SW_PLAN_MAX_BOUNDARIES = 50000,
    SW_PLAN_MAX_FACTS = 100000 /* different descriptions of a parameter; a real plan has a few dozen */
};

/* Axes that placements speak of, in the order in which they are written. */
enum { SW_ON_CP = 0, SW_ON_EP, SW_ON_TP, SW_ON_COUNT_ };

#define SW_ON_OF(axis) ((int)(axis)-SW_AXIS_CP)

/* Axis → placement; an axis that is absent means R. */
typedef struct sw_places {
    uint8_t present; /* bit per SW_ON_* */
    sw_placement on[SW_ON_COUNT_];
} sw_places;

/* How the stored dims of one tensor map to the mathematics: -1 where there is no such dim. */
typedef struct sw_axes_of {
    int expert_dim;
    int out_dim;
    int in_dim;
    bool is_view;        /* the stored tensor is seen as [experts, a, b] before any cut */
    uint64_t out_factor; /* logical rows for one stored row (scale blocks, packed words) */
    uint64_t in_factor;
} sw_axes_of;

/* What phase 1 says of a pattern (a name with its counts replaced by '#'). */
typedef enum sw_rule_source {
    SW_RULE_NONE = 0, /* nothing matched */
    SW_RULE_ARCH,     /* arch_roles: of an override file */
    SW_RULE_USER,     /* roles: of an override file */
    SW_RULE_FAMILY,
    SW_RULE_DEFAULT,
    SW_RULE_COUNT_
} sw_rule_source;

typedef struct sw_companion sw_companion;     /* plan/companion.h */
typedef struct sw_layout_rule sw_layout_rule; /* plan/override_match.c */

typedef struct sw_class {
    sw_role role;
    sw_side side;
    sw_form form;
    sw_layout layout;
    uint32_t flags; /* SW_ROW_* */
    uint32_t parts;
    sw_rule_source source;
    uint32_t rule;                 /* number of the rule in its list, from 1 */
    const char *rule_text;         /* pattern or row name that matched */
    const char *reason;            /* for SKIP: "buffer"; else NULL */
    const sw_family_row *row;      /* the table's for this name, or for the weight of a companion; or NULL */
    const sw_companion *companion; /* how it follows the tensor it belongs to; NULL: it is one itself */
    bool has_dim;                  /* an override names the stored dim */
    int dim;
    uint32_t n_segments; /* an override gives the segments */
    const sw_segment *segments;
    bool is_tower;
    bool is_row_bias;      /* a whole bias beside a row weight */
    bool is_packed_orphan; /* a packed name whose quantisation method the config does not give */
} sw_class;

typedef struct sw_grad_list {
    uint32_t n;
    sw_grad_sum sums[4];
} sw_grad_list;

/* Everything said of a parameter but its name; interned. */
typedef struct sw_facts {
    sw_role role;
    sw_dtype dtype;
    const sw_shape *shape; /* as stored (stacked: with the expert dim in front) */
    const sw_shape *view;  /* NULL: as stored */
    sw_places places;
    sw_grad_list grad;
    sw_layout layout;
    uint32_t parts;
    int out_dim; /* stored (or view) dims of the mathematics; -1: none */
    int in_dim;
    uint32_t flags;      /* SW_ROW_* */
    const char *reason;  /* NULL, or why: "buffer", "frozen", "quantised", "uncovered" */
    const char *handler; /* special handler, or NULL */
    bool is_trained;
    bool is_placed;     /* an override says where it goes: covered, whatever its role */
    bool is_rank0_only; /* a row bias inside a partial region: added on rank 0 of the axis only */
    bool is_deferred;   /* a row bias added once after the exit */
} sw_facts;

typedef struct sw_spec_param {
    const char *path; /* relative path, in the model's names or the arena; `path_length` bytes */
    uint32_t path_length;
    uint32_t param; /* index in the model, UINT32_MAX for a stacked name */
    uint32_t facts; /* index into plan->facts */
} sw_spec_param;

typedef struct sw_io_entry {
    const char *name;
    sw_places places;
} sw_io_entry;

typedef struct sw_io {
    bool is_declared; /* false: none */
    uint32_t n;
    sw_io_entry *entries;
} sw_io;

typedef enum sw_collective {
    SW_COLL_NONE = 0,
    SW_COLL_ALL_GATHER,
    SW_COLL_REDUCE_SCATTER,
    SW_COLL_ALL_REDUCE,
    SW_COLL_ALL_TO_ALL,
    SW_COLL_SLICE,
    SW_COLL_COUNT_
} sw_collective;

typedef struct sw_lowered {
    const char *arg;
    sw_collective collective;
    sw_collective backward;
    sw_axis axis;
    int32_t dim;       /* of the collective; dim 0 when it has none */
    int32_t other_dim; /* all_to_all: the dim that is gathered */
    uint32_t position; /* of an output */
} sw_lowered;

/* Sources of a stacked expert parameter: `prefix`<number>`suffix`, numbers 0..n-1. */
typedef struct sw_ep_stack {
    const char *path;   /* "experts.gate_proj" */
    const char *prefix; /* "experts." */
    const char *suffix; /* ".gate_proj.weight" */
    uint32_t n;
    uint32_t first_param; /* source 0, in the model */
    uint32_t param;       /* its entry in the spec's params */
} sw_ep_stack;

typedef struct sw_inner {
    const char *op; /* "mean", "mean_square", "sum_routed_output", "sum_routed_input_grad" */
    sw_axis axis;
    uint32_t n_params;
    const char **params; /* relative paths */
    uint32_t replicas;   /* ranks that hold one piece: counted once */
} sw_inner;

typedef struct sw_tp_local {
    const char *name;
    int64_t global;
    int64_t local;
    bool is_declared; /* from tp_divide_attrs */
} sw_tp_local;

/* Why a tower's module is kept whole, with a warning. */
typedef enum sw_tower_cut {
    SW_TOWER_CUT, /* it is not */
    SW_TOWER_INDIVISIBLE,
    SW_TOWER_NO_HEADS,
    SW_TOWER_NO_OUTPUT,
    SW_TOWER_NO_INPUT,
} sw_tower_cut;

typedef struct sw_spec {
    const char *fqn;
    uint32_t fqn_length;
    uint32_t module; /* index in the model; UINT32_MAX: none (a loaded plan without its model) */
    sw_boundary_type type;
    int32_t layer;
    uint32_t pp_stage;
    bool is_tower;
    bool is_inserted;
    bool has_fault; /* some parameter could not be placed: checks of the whole would only repeat it */
    bool has_bad_heads;
    bool is_tied_alias; /* its tensor is stored under the other name of a tied pair */
    bool is_tied_apart; /* the other of its tied pair is in another stage; while gradients are planned */
    bool in_moe;        /* a shared expert inside a MoE block */
    sw_tower_cut tower; /* while the plan is derived: why a tower's module is kept whole */
    bool needs_cp_attn;
    bool is_terminal;
    int8_t region_dispatch; /* -1 unset, 0, 1 */
    uint32_t ep_size;

    sw_spec_param *params;
    uint32_t n_params;
    uint32_t params_capacity;

    sw_io in_src;
    sw_io in_dst;
    sw_io out_src;
    sw_io out_dst;
    const char **out_names; /* order of outputs; NULL: order of out_src */
    uint32_t n_out_names;

    sw_ep_stack *stacks;
    uint32_t n_stacks;
    uint32_t stacks_capacity;
    sw_tp_local *tp_local;
    uint32_t n_tp_local;
    const char **deferred; /* relative paths of biases added after the exit */
    uint32_t n_deferred;
    sw_inner *inner;
    uint32_t n_inner;
    sw_lowered *lower_in;
    uint32_t n_lower_in;
    sw_lowered *lower_out;
    uint32_t n_lower_out;

    const char *span_entry; /* the contract holds from this child's input ... */
    const char *span_exit;  /* ... to this child's output; NULL: the module itself */
    const char *inner_target;
    const char *inner_wrapper;
    sw_io inner_out_src;
    bool inner_first_input;
    const char *local_compute;
    const char **tp_divide; /* declared attributes */
    uint32_t n_tp_divide;
    const char **overrides; /* "FILE:LINE match" of entries that touched it */
    uint32_t n_overrides;
    uint32_t overrides_capacity;
} sw_spec;

typedef struct sw_tied_pair {
    const char *first;  /* the tensor that is stored */
    const char *second; /* the other name */
} sw_tied_pair;

typedef struct sw_special {
    const char *fqn;
    const char *handler;
    const char *reason;
} sw_special;

typedef struct sw_parallel_module {
    const char *fqn;
    const char *kind; /* "cp", "ep" */
    sw_axis axis;
    uint32_t size;
} sw_parallel_module;

typedef struct sw_stage {
    uint32_t first_layer;
    uint32_t end_layer; /* one past the last */
    bool has_embed;
    bool has_head;
} sw_stage;

/* A finding that is still being counted: equal ones of many layers are one. */
typedef struct sw_fault {
    sw_severity severity;
    const char *code;
    const char *fqn;     /* of the first */
    const char *pattern; /* the same with counts replaced by '#' */
    const char *what;
    const char *help;
    uint32_t n;
} sw_fault;

/* A remembered placement: facts and, if it cannot be, the fault. */
typedef struct sw_memo {
    uint32_t facts;
    uint32_t fault;
} sw_memo;

struct sw_plan {
    sw_arena *arena;
    bool is_out_of_memory; /* something was lost for want of memory: the plan fails at the end of the phase */
    const sw_model *model; /* NULL for a loaded plan */
    sw_model *owned_model; /* opened by sw_plan_model_folder() */
    sw_mesh *mesh;
    sw_report *report;

    /* the model, as the file records it */
    const char *architecture;
    const char *model_type;
    const char *family;
    uint64_t n_params;
    uint64_t elements;
    uint64_t fingerprint;

    bool sequence_parallel;
    bool loss_parallel;
    bool allow_uncovered;
    bool strict;
    bool derive;
    uint32_t tp, cp, ep; /* sizes; ep in either mode */
    sw_ep_mode ep_mode;
    bool is_active[SW_ON_COUNT_]; /* axes that placements list; ep also when it is derived */

    sw_class *classes; /* per pattern of the model, then those of single names */
    uint32_t n_classes;
    uint32_t classes_capacity;
    uint32_t *class_of;   /* per parameter, when a user rule looks at layer numbers; NULL: by pattern */
    uint32_t *stacked_in; /* per parameter: 1 + index of the spec that stacks it, 0: none; NULL without ep */
    sw_spec *specs;
    uint32_t n_specs;
    uint32_t specs_capacity;
    sw_map by_fqn; /* boundary FQN → index */
    sw_facts *facts;
    uint32_t n_facts;
    uint32_t facts_capacity;
    sw_map by_facts;
    sw_map by_cut; /* bytes of a cut → index into cuts */
    const sw_cut **cuts;
    uint32_t n_cuts;
    uint32_t cuts_capacity;
    sw_map by_shape; /* shapes that the model lacks (stacked, views) */
    const sw_shape **shapes;
    uint32_t n_shapes;
    uint32_t shapes_capacity;
    sw_memo *memos;
    uint32_t n_memos;
    uint32_t memos_capacity;
    sw_map by_memo;
    sw_fault *faults;
    uint32_t n_faults;
    uint32_t faults_capacity;
    sw_map by_fault;
    sw_buffer fault_key;                        /* of the fault that is being added */
    uint32_t n_more_faults[SW_SEVERITY_COUNT_]; /* different ones that are only counted */

    sw_tied_pair *tied;
    uint32_t n_tied;
    sw_special *special;
    uint32_t n_special;
    sw_layout_rule *layout_rules; /* how overrides say that parameters are stored; while the plan is made */
    uint32_t n_layout_rules;
    uint64_t override_steps; /* taken by matching and applying overrides */
    sw_parallel_module *parallel;
    uint32_t n_parallel;
    sw_stage *stages;
    uint32_t n_stages;
    uint32_t n_layers;
    const char **uncovered;
    uint32_t n_uncovered;
};

#endif
