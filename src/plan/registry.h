/*
 * Functions that an override may name: `inner_wrapper` (what is put round the attention of a boundary) and
 * `local_compute` (what computes a region on local tensors). C has no import path, so a name stands for a
 * function that is compiled in; the planner knows the names only, the runtime has the functions.
 */
#ifndef SW_PLAN_REGISTRY_H
#define SW_PLAN_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sw_registry_kind {
    SW_REGISTRY_WRAPPER = 0, /* names of `inner_wrapper` */
    SW_REGISTRY_COMPUTE,     /* names of `local_compute` */
    SW_REGISTRY_KIND_COUNT_
} sw_registry_kind;

bool sw_registry_has_wrapper(const char *name);
bool sw_registry_has_compute(const char *name);

bool sw_registry_has(sw_registry_kind kind, const char *name);

/* Names of a kind in the order of docs/formats/overrides.md; *n_names gets their number. */
const char *const *sw_registry_names(sw_registry_kind kind, size_t *n_names);

/* The registered name nearest to a misspelt one, or NULL. */
const char *sw_registry_nearest(sw_registry_kind kind, const char *name);

#endif
