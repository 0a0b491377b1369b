/*
 * Functions that an override may name: `inner_wrapper` (what is put round the attention of a boundary) and
 * `local_compute` (what computes a region on local tensors). C has no import path, so a name stands for a
 * function that is compiled in or that a plugin brings; the planner knows the names only, the runtime has the
 * functions.
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

enum {
    SW_REGISTRY_MAX_NAMES = 256, /* of a kind */
    SW_REGISTRY_MAX_NAME = 64    /* bytes of a name that a plugin brings */
};

/* The names of a kind. */
typedef struct sw_registry_names {
    const char *const *names;
    size_t n_names;
} sw_registry_names;

/* What the entries of a list of overrides may name: what is compiled in, then what plugins bring. */
typedef struct sw_registry {
    sw_registry_names of[SW_REGISTRY_KIND_COUNT_];
} sw_registry;

/* What is compiled in, in the order of docs/formats/overrides.md. */
extern const sw_registry sw_registry_built_in;

bool sw_registry_has(const sw_registry *registry, sw_registry_kind kind, const char *name);

/* The name nearest to a misspelt one, or NULL. */
const char *sw_registry_nearest(const sw_registry *registry, sw_registry_kind kind, const char *name);

#endif
