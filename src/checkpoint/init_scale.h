/*
 * How a parameter of a family begins: which rule, and how wide. What all families share is decided by the
 * role and the end of the name; what one does otherwise stands in one table (init_scale.c).
 */
#ifndef SW_CHECKPOINT_INIT_SCALE_H
#define SW_CHECKPOINT_INIT_SCALE_H

#include "checkpoint/init_values.h"
#include "model/model.h"

typedef struct sw_init_family sw_init_family;

typedef struct sw_init_scale {
    const sw_config *config;
    const sw_init_family *family; /* what is special */
    double deviation;             /* of most matrices, `factor` included */
    double residual;              /* factor of what is added to the residual stream */
    double factor;                /* the caller's */
} sw_init_scale;

/*
 * For the models of a config whose family is known.
 *
 * deviation  the config's, below 0 when it says none
 * factor     on every deviation and width; norms, biases, decays and steps stay as they are
 */
sw_init_scale sw_init_scale_of(const sw_config *config, double deviation, double factor);

/* The rule of one parameter; `shape` may be of any number of dims. */
sw_init_rule sw_init_rule_of(const sw_init_scale *scale, const char *name, size_t length,
                             const sw_shape *shape);

#endif
