/*
 * Phase 4, parameters: the placement of one tensor in one kind of boundary. The seed's role table says
 * column, row or whole; form and layout say which stored dim and in which segments; a companion is cut as its
 * weight is.
 */
#ifndef SW_PLAN_PLACE_H
#define SW_PLAN_PLACE_H

#include "plan/template.h"

/* Fault index of a tensor that cannot be cut in a tower, which is no fault of the plan. */
#define SW_FAULT_IN_TOWER (UINT32_MAX - 1)

/* The same of one whose heads the config does not give. */
#define SW_FAULT_TOWER_HEADS (UINT32_MAX - 3)

/* Fault index of a tensor whose heads tp does not fit: reported once for its boundary. */
#define SW_FAULT_HEADS (UINT32_MAX - 2)

/* What a placement depends on besides the tensor. */
typedef struct sw_place_where {
    sw_boundary_type type;
    bool is_tower;
    bool is_replicated; /* the boundary is kept whole */
    bool is_stacked;    /* experts of one projection under one name: the expert dim stands in front */
} sw_place_where;

/* A tensor to be placed. */
typedef struct sw_place_what {
    const char *fqn; /* for messages; `fqn_length` bytes */
    size_t fqn_length;
    const char
        *path; /* relative to the boundary: its words decide the side of an expert that no table knows */
    const sw_class *class_;
    const sw_shape *shape; /* as stored, with the expert dim in front when stacked */
    sw_dtype dtype;
} sw_place_what;

/*
 * Facts of the tensor. A placement that cannot be is a fault of the plan, whose index goes to *fault_index
 * (else UINT32_MAX); the facts then say R. Want of memory is noted in plan->is_out_of_memory.
 */
void sw_place(sw_plan *plan, sw_place_where where, const sw_place_what *what, sw_facts *out,
              uint32_t *fault_index);

#endif
