/* Gradients of a net that was applied: which are summed over which ranks, as its plan says. */
#ifndef SW_APPLY_GRADIENTS_H
#define SW_APPLY_GRADIENTS_H

#include "nn/net.h"
#include "parallel/gradients.h"

/*
 * After memory was taken, with gradients. Elements of parameters that several ranks hold are counted by one.
 * SW_E_NO_MEMORY. Collective over the communicator that the plan was applied with.
 */
sw_status sw_apply_gradients(sw_gradients **out, const sw_net *net, size_t bucket_bytes, sw_error *err);

#endif
