/* Loading (apply/load.h): of each parameter what of it is here. */
#include "apply/load.h"

#include "apply/applied.h"
#include "apply/copies.h"
#include "base/status.h"

sw_status sw_apply_read(const sw_net *net, uint32_t i, const sw_local_reader *reader, const char *name,
                        sw_dtype dtype, void *to, sw_error *err)
{
    const sw_applied_parameter *part = sw_applied_parameter_at(net, i);
    const sw_parameter *p = &net->parameters[i];

    if (part == NULL)
        return sw_local_read_whole(reader, p->n_dims, p->dims, name, dtype, to, err);
    if (part->is_elsewhere)
        return SW_OK;
    return sw_local_read(reader, &part->layout, part->at, name, dtype, to, err);
}

sw_status sw_apply_fill(const sw_net *net, const sw_local_reader *reader, sw_error *err)
{
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        SW_TRY(sw_apply_read(net, i, reader, p->fqn, p->dtype, sw_tensor_data(p->tensor), err));
    }
    return SW_OK;
}

static sw_status load(sw_local_files *files, const sw_net *net, const char *path, const sw_kernel *kernel,
                      sw_error *err)
{
    SW_TRY(sw_local_open(files, path, err));
    return sw_apply_fill(net, &(sw_local_reader){files->files, kernel}, err);
}

sw_status sw_apply_load(sw_net *net, const char *path, const sw_kernel *kernel, uint64_t *n_bytes,
                        sw_error *err)
{
    const sw_applied *a = sw_applied_of(net);
    sw_local_files files SW_AUTO(sw_local_close) = {NULL, NULL};

    if (a == NULL || net->n_parameters == 0 || net->parameters[0].tensor == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "apply a plan and take memory first",
                       "the net is not ready to be loaded");
    sw_status status = sw_comm_agree(a->active.comm, load(&files, net, path, kernel, err), err);
    if (n_bytes != NULL)
        *n_bytes = sw_local_bytes_read(&files);
    return status == SW_OK ? sw_apply_compare_copies(net, err) : status;
}
