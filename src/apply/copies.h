/*
 * Copies: where several ranks hold the same elements of a parameter, do they hold the same bits? Hosts may
 * have other files under the same name; what was read of them would drift apart without a word.
 */
#ifndef SW_APPLY_COPIES_H
#define SW_APPLY_COPIES_H

#include "nn/net.h"

/*
 * After the parameters of a net that was applied were filled. SW_E_FORMAT: names the first parameter that
 * differs, and a rank; SW_E_NO_MEMORY. Collective over the communicator that the plan was applied with.
 */
sw_status sw_apply_compare_copies(const sw_net *net, sw_error *err);

#endif
