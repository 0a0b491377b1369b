/* What stands around the forward of a module with a boundary. */
#ifndef SW_APPLY_WRAP_H
#define SW_APPLY_WRAP_H

#include "apply/applied.h"

/* NULL: nothing moves, nothing is added, nothing is checked. */
typedef sw_tensor *sw_apply_wrap(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                                 const sw_tensor *const *in);
sw_apply_wrap *sw_apply_wrap_of(const sw_applied_boundary *boundary);

/* Validate: the same, and what comes and goes is compared with the contract. */
sw_apply_wrap sw_apply_wrap_validate;

/* Production: moves and the class's own forward, nothing else. */
sw_apply_wrap sw_apply_wrap_production;

/* Extents of the whole that a contract's cuts need. */
sw_whole sw_apply_whole(const sw_applied_boundary *b, const sw_pass *pass);

/* The pieces that every way of wrapping has. */
void sw_apply_enter(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass,
                    const sw_tensor *const *in, const sw_tensor **moved);
sw_tensor *sw_apply_leave(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass, sw_tensor *y);

#endif
