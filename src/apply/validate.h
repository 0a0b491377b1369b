/* Validate mode: layouts on what no boundary makes: parameters, tables, and what comes from outside. */
#ifndef SW_APPLY_VALIDATE_H
#define SW_APPLY_VALIDATE_H

#include "nn/net.h"
#include "tensor/step.h"

/*
 * From here on parameters and tables of the net carry their layouts; after memory was taken. Nothing in
 * production. SW_E_NO_MEMORY. Local.
 */
sw_status sw_apply_layouts(sw_net *net, sw_error *err);

/* Tokens, positions or targets [B, T] of this rank in the layout of tokens; themselves in production. */
const sw_tensor *sw_apply_tokens(const sw_net *net, sw_step *step, const sw_tensor *x);

#endif
