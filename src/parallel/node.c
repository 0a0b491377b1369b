/* Memory and tensors of custom nodes (parallel/node.h). */
#include "parallel/node.h"

#include "base/status.h"
#include "tensor/copy.h"

sw_status sw_node_take(sw_step *step, size_t bytes, void **out, sw_error *err)
{
    *out = sw_stack_take(sw_step_stack(step), bytes);
    if (*out == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu bytes", bytes);
    return SW_OK;
}

void *sw_node_context(sw_step *step, size_t bytes)
{
    sw_error err = {0};
    void *context = NULL;

    if (sw_step_status(step, NULL) != SW_OK)
        return NULL;
    sw_status status = sw_node_take(step, bytes, &context, &err);
    if (status != SW_OK)
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return context;
}

sw_status sw_node_dense(sw_step *step, const sw_tensor *x, const void **out, sw_error *err)
{
    void *copy = NULL;

    *out = sw_tensor_data(x);
    if (sw_tensor_is_dense(x))
        return SW_OK;
    SW_TRY(sw_node_take(step, (size_t)sw_tensor_elems(x) * sw_elem_bytes(sw_tensor_dtype(x)), &copy, err));
    sw_copy_to_dense(x, copy);
    *out = copy;
    return SW_OK;
}

sw_status sw_node_tensor(sw_step *step, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims,
                         sw_tensor **out, sw_error *err)
{
    return sw_tensor_create(out, sw_step_stack(step), dtype, n_dims, dims, NULL, err);
}

const sw_tensor *sw_node_local(sw_step *step, const sw_tensor *x)
{
    if (x == NULL || x->layout == NULL)
        return x;
    sw_tensor *local = sw_node_context(step, sizeof *local);
    if (local != NULL) {
        *local = *x;
        local->layout = NULL;
    }
    return local;
}

sw_status sw_node_layout(sw_step *step, const sw_tensor_layout *like, uint64_t last,
                         const sw_tensor_layout **out, sw_error *err)
{
    void *memory = NULL;

    *out = like;
    if (like == NULL || like->dims[like->n_dims - 1] == last)
        return SW_OK;
    SW_TRY(sw_node_take(step, sizeof *like, &memory, err));
    sw_tensor_layout *made = memory;
    *made = *like;
    made->dims[made->n_dims - 1] = last;
    *out = made;
    return SW_OK;
}

sw_status sw_node_check_real(const char *name, const sw_tensor *x, const sw_tensor *like, sw_error *err)
{
    sw_dtype dtype = sw_tensor_dtype(x);

    if (dtype != SW_DTYPE_F32 && dtype != SW_DTYPE_F64) {
        return SW_FAIL(err, SW_E_ARGUMENT, "activations are F32 or F64", "%s is %s", name,
                       sw_dtype_name(dtype));
    }
    if (like != NULL && dtype != sw_tensor_dtype(like)) {
        return SW_FAIL(err, SW_E_ARGUMENT, "convert one of them", "%s is %s beside %s", name,
                       sw_dtype_name(dtype), sw_dtype_name(sw_tensor_dtype(like)));
    }
    return SW_OK;
}
