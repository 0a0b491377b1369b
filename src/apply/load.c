/* Loading (apply/load.h): files are mapped, and of each tensor the rows of this rank are packed and
 * converted. */
#include "apply/load.h"

#include <string.h>

#include "apply/files.h"
#include "apply/parts.h"
#include "base/alloc.h"
#include "base/status.h"
#include "kernel/read_floats.h"

typedef struct loading {
    const sw_kernel *kernel;
    sw_files files;
    void *stage; /* elements of a part, as they are stored */
    size_t stage_bytes;
    uint64_t n_bytes;
    sw_error *err;
} loading;

/* ---- a tensor ---- */

static sw_status find(const loading *l, const sw_applied_parameter *p, sw_file_tensor *out)
{
    const char *fqn = p->parameter->fqn;

    SW_TRY(sw_files_find(&l->files, fqn, out, l->err));
    if (out->n_dims != p->layout.n_dims ||
        memcmp(out->dims, p->layout.dims, out->n_dims * sizeof *out->dims) != 0)
        return SW_FAIL(l->err, SW_E_FORMAT, "load the checkpoint that was planned",
                       "%s: another shape than the model's", fqn);
    if (!sw_can_read_floats(out->dtype, p->parameter->dtype))
        return SW_FAIL(l->err, SW_E_FORMAT, "store the weights as F32, BF16, F16 or F64",
                       "%s: no product reads %s", fqn, out->dtype_word);
    return SW_OK;
}

static sw_status need_stage(loading *l, size_t bytes)
{
    if (bytes <= l->stage_bytes)
        return SW_OK;
    sw_free(l->stage);
    l->stage = sw_alloc_zero(bytes, 1);
    l->stage_bytes = l->stage == NULL ? 0 : bytes;
    return l->stage == NULL
               ? SW_FAIL(l->err, SW_E_NO_MEMORY, "", "no memory for %zu bytes of a tensor", bytes)
               : SW_OK;
}

static sw_status fill(loading *l, const sw_applied_parameter *p)
{
    const sw_tensor *tensor = p->parameter->tensor;
    sw_file_tensor stored = {0};

    SW_TRY(find(l, p, &stored));
    if (p->is_elsewhere)
        return SW_OK;
    size_t width = sw_dtype_bits(stored.dtype) / 8;
    uint64_t n = sw_tensor_elems(tensor);
    l->n_bytes += n * width;
    if (stored.dtype == p->parameter->dtype)
        return sw_part_take(p, stored.bytes, width, sw_tensor_data(tensor), l->err);
    SW_TRY(need_stage(l, (size_t)n * width));
    SW_TRY(sw_part_take(p, stored.bytes, width, l->stage, l->err));
    sw_kernel_read_floats(l->kernel, stored.dtype, l->stage, p->parameter->dtype, sw_tensor_data(tensor), n);
    return SW_OK;
}

static sw_status load(loading *l, const sw_net *net, const char *path)
{
    SW_TRY(sw_files_open(&l->files, path, l->err));
    for (uint32_t i = 0; i < net->n_parameters; i++)
        SW_TRY(fill(l, sw_applied_parameter_at(net, i)));
    return SW_OK;
}

/* ---- all of it ---- */

sw_status sw_apply_load(sw_net *net, const char *path, const sw_kernel *kernel, uint64_t *n_bytes,
                        sw_error *err)
{
    const sw_applied *a = sw_applied_of(net);
    loading l = {.kernel = kernel, .err = err};

    if (a == NULL || net->n_parameters == 0 || net->parameters[0].tensor == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "apply a plan and take memory first",
                       "the net is not ready to be loaded");
    sw_status status = sw_comm_agree(a->active.comm, load(&l, net, path), err);
    sw_files_close(&l.files);
    sw_free(l.stage);
    if (n_bytes != NULL)
        *n_bytes = l.n_bytes;
    return status;
}
