/*
 * Binding: modules whose stages cross ranks get the communication they need, after a plan was applied and
 * before memory is taken. A protocol says what a module's class must have; binding checks all modules first
 * and then binds them all, so that a failure leaves none bound.
 */
#ifndef SW_APPLY_BIND_H
#define SW_APPLY_BIND_H

#include "apply/cp_form.h"
#include "comm/comm.h"
#include "nn/net.h"
#include "parallel/attention.h"
#include "plan/plan_data.h"

typedef enum sw_binding_kind {
    SW_BINDING_NONE = 0,
    SW_BINDING_CP,
    SW_BINDING_EP,
    SW_BINDING_MESH,
    SW_BINDING_KIND_COUNT_
} sw_binding_kind;

/* "none", "cp", "ep", "mesh"; NULL when out of range. */
const char *sw_binding_kind_name(sw_binding_kind kind);

struct sw_parallel_context;

/* How a module's class works in parts: what of it is versioned, bound and checked. */
typedef struct sw_parallel_spec {
    const char *protocol;
    const char *version;
    sw_binding_kind kind;
    const sw_stage_protocol *stages; /* ended by one without a name; NULL: none */
    /* Of this protocol alone, after all that is checked of any; may be NULL where nothing is bound. */
    sw_status (*validate)(const sw_module *module, const struct sw_parallel_context *context, sw_error *err);
    /* After memory was taken; may be NULL. */
    sw_status (*validate_materialized)(const sw_module *module, sw_error *err);
    int64_t n_experts; /* of the whole model; kind ep */
} sw_parallel_spec;

/* SW_E_PLAN: no protocol or version, no such kind, something to bind without stages or validator. */
sw_status sw_parallel_spec_check(const sw_parallel_spec *spec, sw_error *err);
bool sw_parallel_spec_equal(const sw_parallel_spec *a, const sw_parallel_spec *b);

/* What is known of a module's layout where it is validated. */
typedef struct sw_parallel_context {
    const sw_plan *plan;
    const sw_spec *sharding; /* of the boundary that is the module, NULL: it has none of its own */
    const sw_spec *owner;    /* of the boundary that holds its parameters */
    uint32_t n_cp;
    uint32_t n_ep;
} sw_parallel_context;

/*
 * Stages of the class and its bind_parallel, the contract (what comes is what is computed with, what is
 * computed is what leaves), experts' ownership, then the protocol's own validator. SW_E_PLAN.
 */
sw_status sw_validate_parallel_module(const sw_module *module, const sw_parallel_spec *spec,
                                      const sw_parallel_context *context, sw_error *err);

/* The ranks of an axis ("cp", "ep"), which there are already: nothing is made. SW_E_PLAN: there are none. */
typedef struct sw_mesh_binding {
    const sw_comm *comm; /* borrowed */
} sw_mesh_binding;

sw_status sw_mesh_binding_axis(const sw_mesh_binding *binding, const char *axis, const sw_group **out,
                               sw_error *err);

/* A module of one's own, bound by the names it has. */
typedef struct sw_native_request {
    uint32_t n_match;
    const char *const *match; /* names of modules, with * and ? */
    sw_parallel_spec spec;
    /* The layout that it works in, for the context; may not be NULL. */
    const sw_spec *(*sharding)(const sw_plan *plan, const char *fqn);
} sw_native_request;

sw_status sw_native_request_check(const sw_native_request *request, sw_error *err);

typedef struct sw_bind_options {
    sw_cp_form cp_form;
    uint32_t n_requests;
    const sw_native_request *requests;
} sw_bind_options;

/*
 * Bind the modules that the plan names, and those of requests. Binding the same again is nothing; a module
 * that was bound otherwise has an owner already and is refused. SW_E_PLAN, SW_E_NO_MEMORY. Collective over
 * the communicator that the plan was applied with.
 */
sw_status sw_bind_parallel_modules(sw_net *net, const sw_bind_options *options, sw_error *err);

/* After memory was taken: whatever is to be bound is, and the protocols' checks of what there is. */
sw_status sw_validate_materialized_modules(const sw_net *net, sw_error *err);

#endif
