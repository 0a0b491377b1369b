/* Checkpoints into nets (train/load.h). */
#include "train/load.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/status.h"

enum { SHOWN = 5 };

uint64_t sw_parameter_elems(const sw_parameter *parameter)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < parameter->n_dims; d++)
        n *= parameter->dims[d];
    return n;
}

/* The tensor of a parameter, which was there when the net was made. */
static sw_status find(const sw_weights *weights, const sw_parameter *parameter, sw_weight *out, sw_error *err)
{
    bool is_there = false;

    SW_TRY(sw_weights_find(weights, parameter->fqn, out, &is_there, err));
    if (is_there && out->n_elems == sw_parameter_elems(parameter))
        return SW_OK;
    return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                   sw_weights_path(weights));
}

/* Tensors whose elements cannot be read, all of them in one message. */
static sw_status check_types(const sw_net *net, const sw_weights *weights, sw_error *err)
{
    sw_buffer names SW_AUTO(sw_buffer_clear) = {0};
    sw_weight weight = {0};
    const char *word = "";
    uint32_t n = 0;

    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        SW_TRY(find(weights, p, &weight, err));
        if (sw_weight_is_readable(weight.dtype, p->dtype))
            continue;
        word = n == 0 ? weight.dtype_word : word;
        if (n++ < SHOWN)
            sw_buffer_printf(&names, "%s%s", n == 1 ? "" : ", ", weight.name);
    }
    if (n == 0)
        return SW_OK;
    const char *shown = sw_buffer_text(&names);
    return SW_FAIL(err, SW_E_FORMAT, "store the weights as F32, BF16, F16 or F64",
                   "%.200s: %" PRIu32 " tensor%s of a type that no product reads (%s): %.600s%s",
                   sw_weights_path(weights), n, n == 1 ? " is" : "s are", word, shown == NULL ? "" : shown,
                   n > SHOWN ? " ..." : "");
}

/* May a tensor stay in the map: all of its storage, of its type, and aligned for its elements? */
static bool can_borrow(const sw_parameter *parameter, const sw_weight *weight)
{
    return parameter->stack == NULL && weight->dtype == parameter->dtype &&
           (uintptr_t)weight->bytes % sw_elem_bytes(weight->dtype) == 0;
}

static sw_status fill(const sw_net *net, const sw_weights *weights, bool trains, const sw_kernel *kernel,
                      sw_error *err)
{
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        sw_weight weight = {0};
        SW_TRY(find(weights, p, &weight, err));
        if (!trains && can_borrow(p, &weight))
            p->tensor->storage->data = (void *)weight.bytes; /* nothing writes where no gradient is */
        else
            sw_weight_read(&weight, kernel, p->dtype, sw_tensor_data(p->tensor));
    }
    return SW_OK;
}

static sw_status load(sw_net *net, const sw_weights *weights, const sw_load_options *options,
                      const sw_kernel *kernel, sw_error *err)
{
    SW_TRY(check_types(net, weights, err));
    SW_TRY(sw_net_allocate(net, options->trains, err));
    return fill(net, weights, options->trains, kernel, err);
}

sw_status sw_load(sw_net **out, const sw_weights *weights, const sw_load_options *options,
                  const sw_kernel *kernel, sw_error *err)
{
    const sw_net_options net = {.dtype = options->dtype == SW_DTYPE_F64 ? SW_DTYPE_F64 : SW_DTYPE_F32,
                                .keeps_short = options->dtype == SW_DTYPE_BF16,
                                .n_positions = options->positions};

    SW_TRY(sw_net_create(out, weights->model, &net, err));
    sw_status status = load(*out, weights, options, kernel, err);
    if (status != SW_OK) {
        sw_net_destroy(*out);
        *out = NULL;
    }
    return status;
}
