/* Context parallel as a ring (parallel/attention.h): one node of the tape, whose inside is parallel/ring.h.
 */
#include "base/status.h"
#include "parallel/attention_shape.h"
#include "parallel/ring.h"

static const sw_custom ring_node = {"ring attention", sw_ring_forward, sw_ring_backward};

static sw_ring_size size_of(const sw_tensor *k, const sw_tensor *v, size_t width)
{
    size_t positions = (size_t)(k->dims[0] * k->dims[1]) * sizeof(int32_t);
    sw_ring_size size = {sw_tensor_elems(k), sw_tensor_elems(v), 0};

    size.all = size.keys + size.values + (positions + width - 1) / width;
    return size;
}

sw_tensor *sw_attention_ring(sw_step *step, sw_ring *ring, const sw_tensor *q, const sw_tensor *k,
                             const sw_tensor *v, const sw_attend_args *args)
{
    const sw_tensor *in[] = {q, k, v, NULL};
    sw_attend_args local = *args;

    if (!sw_attention_fits(step, "ring attention", in, args, false) || !sw_attention_local(step, in, &local))
        return NULL;
    sw_ring_call *a = sw_node_context(step, sizeof *a);
    if (a == NULL)
        return NULL;
    in[3] = local.sinks;
    *a = (sw_ring_call){.ring = ring, .args = local, .dtype = sw_tensor_dtype(q)};
    a->width = sw_elem_bytes(a->dtype);
    a->size = size_of(k, v, a->width);
    return sw_attention_result(step, q, sw_step_custom(step, &ring_node, a, in, SW_COUNT(in)));
}
