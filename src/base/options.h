/*
 * Structs of choices that begin with their size. The program that fills one may be older or newer than the
 * library: what both know is taken, the rest keeps its default or is passed over.
 */
#ifndef SW_BASE_OPTIONS_H
#define SW_BASE_OPTIONS_H

#include <stddef.h>

#include "shardwright/error.h"

/* Where a field ends: the size of a struct whose last field it was. */
#define SW_END_OF(type, field) (offsetof(type, field) + sizeof(__typeof__(((type *)0)->field)))

/* A struct of choices. Its first member is the size_t struct_size. */
typedef struct sw_options_type {
    const char *name;   /* "sw_plan_options" */
    const char *begin;  /* what sets the size, as a help */
    size_t first_bytes; /* up to the end of the last field of its first version: never changes */
    size_t bytes;       /* of the struct as it is now */
} sw_options_type;

/*
 * Read `given` over the defaults that stand in `known`; NULL leaves them. SW_E_ARGUMENT, and nothing is read
 * but the size: it is less than any version had, or more than one could have.
 */
sw_status sw_options_read(void *known, const void *given, const sw_options_type *type, sw_error *err);

#endif
