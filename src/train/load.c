/* Checkpoints into nets (train/load.h). */
#include "train/load.h"

#include "apply/apply.h"
#include "apply/bind.h"
#include "apply/copies.h"
#include "apply/load.h"
#include "base/status.h"
#include "plan/report.h"
#include "train/same.h"

uint64_t sw_parameter_elems(const sw_parameter *parameter)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < parameter->n_dims; d++)
        n *= parameter->dims[d];
    return n;
}

/* The tensor of a parameter, which was there when the net was made: with its shape, and of floats. */
static sw_status find(const sw_weights *weights, const sw_parameter *parameter, sw_weight *out, sw_error *err)
{
    bool is_there = false;

    SW_TRY(sw_weights_find(weights, parameter->fqn, out, &is_there, err));
    if (is_there && out->n_elems == sw_parameter_elems(parameter) &&
        sw_weight_is_readable(out->dtype, parameter->dtype)) {
        return SW_OK;
    }
    return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                   sw_weights_path(weights));
}

/* A line of what does not fit, for the report. */
static void report_tensor(void *report, const char *line)
{
    if (report != NULL)
        sw_report_add(report, SW_SEVERITY_ERROR, "tensor_unfit", "",
                      "compare the checkpoint with its config.json", "%.400s", line);
}

/* May a tensor stay in the map: all of its storage, of its type, and aligned for its elements? */
static bool can_borrow(const sw_parameter *parameter, const sw_weight *weight)
{
    return parameter->stack == NULL && weight->dtype == parameter->dtype &&
           (uintptr_t)weight->bytes % sw_elem_bytes(weight->dtype) == 0;
}

/* All of a parameter: where it lies, or from there, or put together. */
static sw_status fill(const sw_net *net, uint32_t i, const sw_weights *weights, bool trains,
                      const sw_local_reader *reader, sw_error *err)
{
    const sw_parameter *p = &net->parameters[i];
    sw_weight weight = {0};

    SW_TRY(find(weights, p, &weight, err));
    if (weight.bytes == NULL)
        return sw_apply_read(net, i, reader, p->fqn, p->dtype, sw_tensor_data(p->tensor), err);
    if (!trains && can_borrow(p, &weight))
        p->tensor->storage->data = (void *)weight.bytes; /* nothing writes where no gradient is */
    else
        sw_weight_read(&weight, reader->kernel, p->dtype, sw_tensor_data(p->tensor));
    return SW_OK;
}

sw_status sw_load_parameters(const sw_net *net, const sw_weights *weights, const sw_kernel *kernel,
                             sw_error *err)
{
    const sw_local_reader reader = {weights->files, kernel};

    return sw_apply_fill(net, &reader, err);
}

static sw_status load(sw_net *net, const sw_weights *weights, const sw_load_options *options,
                      const sw_kernel *kernel, sw_error *err)
{
    SW_TRY(sw_net_allocate(net, options->trains, err));
    SW_TRY(sw_validate_materialized_modules(net, err));
    if (options->comm != NULL)
        return sw_load_parameters(net, weights, kernel, err);
    const sw_local_reader reader = {weights->files, kernel};
    for (uint32_t i = 0; i < net->n_parameters; i++)
        SW_TRY(fill(net, i, weights, options->trains, &reader, err));
    return SW_OK;
}

/* The plan made real on all ranks, or on none, and what crosses ranks inside of modules bound. */
static sw_status apply(sw_net *net, sw_status made, const sw_weights *weights, const sw_load_options *options,
                       sw_error *err)
{
    const sw_apply_options how = {.validates = false};
    sw_source_shards *shards = NULL;

    if (options->comm == NULL)
        return made;
    SW_TRY(sw_comm_agree(options->comm, made, err));
    SW_TRY(sw_same_model(weights, options->plan, options->comm, err));
    SW_TRY(sw_apply(&net, 1, options->plan, options->comm, &how, &shards, err));
    sw_source_shards_destroy(shards); /* nothing is sharded further */
    return sw_bind_parallel_modules(net, &(sw_bind_options){.cp_form = options->cp_form}, err);
}

sw_status sw_load(sw_net **out, const sw_weights *weights, const sw_load_options *options,
                  const sw_kernel *kernel, sw_error *err)
{
    const sw_net_options net = {.dtype = options->dtype == SW_DTYPE_F64 ? SW_DTYPE_F64 : SW_DTYPE_F32,
                                .keeps_short = options->dtype == SW_DTYPE_BF16,
                                .n_positions = options->positions,
                                .on_tensor = report_tensor,
                                .context = options->report};

    *out = NULL;
    sw_status status = sw_net_create(out, weights->model, &net, err);
    status = apply(*out, status, weights, options, err);
    if (status == SW_OK)
        status = load(*out, weights, options, kernel, err);
    if (options->comm != NULL)
        status = sw_comm_agree(options->comm, status, err);
    if (options->comm != NULL && status == SW_OK)
        status = sw_apply_compare_copies(*out, err);
    if (status != SW_OK) {
        sw_net_destroy(*out);
        *out = NULL;
    }
    return status;
}
