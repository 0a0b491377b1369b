/*
 * Context parallel by gathering keys and values (parallel/attention.h): the operation of one rank, between
 * collectives. What each rank found for all keys is added up and scattered in the backward.
 */
#include "parallel/attention.h"
#include "parallel/attention_shape.h"
#include "parallel/collective_node.h"

sw_tensor *sw_attention_gather(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                               const sw_tensor *v, const sw_attend_args *args)
{
    const sw_tensor *qkv[] = {q, k, v};
    sw_attend_args all = *args;

    if (!sw_attention_fits(step, "attention by gathered keys", qkv, args, false) ||
        !sw_attention_local(step, qkv, &all))
        return NULL;
    const sw_tensor *keys = sw_gather_node(step, group, qkv[1], 1);
    const sw_tensor *values = sw_gather_node(step, group, qkv[2], 1);
    all.k_positions = sw_gather_node(step, group, all.k_positions, 1);
    return sw_attention_result(step, q, sw_op_attention(step, qkv[0], keys, values, &all));
}
