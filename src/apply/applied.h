/*
 * What apply has worked out for one part of a model: how its parameters are cut, what its modules' boundaries
 * move, what is bound to their stages. The phases fill it in and change nothing; then it is committed to the
 * net at once, and lives as long as the net does.
 */
#ifndef SW_APPLY_APPLIED_H
#define SW_APPLY_APPLIED_H

#include "apply/active.h"
#include "apply/move.h"
#include "nn/net.h"

/* A parameter of the net, or a stack of them. */
typedef struct sw_applied_parameter {
    sw_parameter *parameter;
    const sw_facts *facts;             /* of the plan; NULL: a stack, which is cut as its members are */
    sw_grid_coord at;                  /* of this rank on the grid of the layout */
    bool is_elsewhere;                 /* one of several experts, of which this rank has others */
    uint64_t index;                    /* of one that is here: in the stack of this rank */
    sw_tensor_layout layout;           /* of the whole, in the dims of the parameter */
    uint64_t dims[SW_TENSOR_MAX_DIMS]; /* of this rank */
    bool is_deferred;
} sw_applied_parameter;

/* A number of a module that is another one here. */
typedef struct sw_applied_number {
    int64_t *at;
    int64_t local;
} sw_applied_number;

/* A module with a boundary: what stands around its forward. */
typedef struct sw_applied_boundary {
    struct sw_applied *applied;
    const sw_spec *spec;
    sw_module *module;
    sw_move *in[SW_MODULE_MAX_INPUTS]; /* NULL: as it comes */
    sw_move *out;
    sw_placement in_src[SW_MODULE_MAX_INPUTS][SW_GRID_MAX_AXES];
    bool has_in[SW_MODULE_MAX_INPUTS];
    uint64_t width; /* of the whole output's last dim */
    sw_placement out_src[SW_GRID_MAX_AXES];
    sw_placement out_dst[SW_GRID_MAX_AXES]; /* as out_src where the contract says nothing */
    bool has_out_src;
    uint32_t n_deferred;
    const sw_parameter **deferred; /* biases that are added behind the exit */
    sw_tensor *(*wrap)(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                       const sw_tensor *const *in); /* NULL: none is needed */
} sw_applied_boundary;

/* A module with stages of its own. */
typedef struct sw_applied_stages {
    sw_module *module;
    sw_stages stages;
} sw_applied_stages;

/* Where a run in validate mode is, to know whose output does not fit what is behind it. */
typedef struct sw_applied_trail {
    uint32_t depth;                     /* boundaries that have begun and not ended */
    const sw_applied_boundary *left[2]; /* that ended last, the later one first; NULL: none in this run */
} sw_applied_trail;

typedef struct sw_applied {
    sw_arena *arena; /* of everything here */
    sw_net *net;
    const sw_plan *plan;
    sw_active active;
    bool validates;
    sw_moves moves;
    sw_applied_parameter *parameters; /* as net->parameters, then net->stacks */
    uint32_t n_parameters;
    sw_applied_number *numbers;
    uint32_t n_numbers;
    sw_applied_boundary *boundaries; /* the deepest first */
    uint32_t n_boundaries;
    sw_applied_trail trail;
    sw_applied_stages *stages;
    uint32_t n_stages;
    struct sw_bound *bound; /* apply/bound.h; NULL: nothing */
    struct sw_ring *ring;
    sw_stages net_stages; /* of the net itself, when has_net_stages */
    bool has_net_stages;
} sw_applied;

/* The parameter of a net that was applied, by its number among net->parameters; stacks follow. */
const sw_applied_parameter *sw_applied_parameter_at(const sw_net *net, uint32_t i);

/* What was applied to a net; NULL: nothing. */
sw_applied *sw_applied_of(const sw_net *net);

/* Stages of a module, the local ones at first; the room is for each module once. */
sw_stages *sw_applied_stages_of(sw_applied *applied, sw_module *module);
/* Those of the net itself. */
sw_stages *sw_applied_net_stages(sw_applied *applied);

#endif
