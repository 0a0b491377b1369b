/* Running any operation: its inputs checked, its outputs made, its kernels called (tensor/operation.h). */
#include <inttypes.h>

#include "base/status.h"
#include "tensor/copy.h"
#include "tensor/rule.h"
#include "tensor/step_state.h"

sw_kernel *sw_call_kernel(const sw_call *call)
{
    return call->step->kernel;
}

size_t sw_call_elems(const sw_call *call, uint32_t i)
{
    return (size_t)sw_tensor_elems(call->in[i]);
}

size_t sw_call_bytes(const sw_call *call, uint32_t i)
{
    sw_dtype dtype = sw_gradient_dtype(sw_tensor_dtype(call->in[i]));
    return sw_call_elems(call, i) * sw_elem_bytes(dtype);
}

/* A copy without gaps, which stays: the backward may want it again. */
static sw_status make_dense(sw_call *call, uint32_t i, sw_error *err)
{
    const sw_tensor *from = call->in[i];
    sw_tensor *copy = NULL;

    SW_TRY(sw_tensor_create(&copy, call->step->stack, sw_tensor_dtype(from), from->n_dims, from->dims, NULL,
                            err));
    sw_copy_to_dense(from, sw_tensor_data(copy));
    call->dense[i] = copy;
    return SW_OK;
}

sw_status sw_call_rows(sw_call *call, uint32_t i, uint32_t inner, sw_tensor_rows *rows, const void **data,
                       sw_error *err)
{
    const sw_tensor *tensor = call->dense[i] != NULL ? call->dense[i] : call->in[i];

    if (!sw_tensor_as_rows(tensor, inner, rows)) {
        SW_TRY(make_dense(call, i, err));
        tensor = call->dense[i];
        (void)sw_tensor_as_rows(tensor, inner, rows); /* dense */
    }
    *data = sw_tensor_data(tensor);
    return SW_OK;
}

sw_status sw_call_dense(sw_call *call, uint32_t i, const void **data, sw_error *err)
{
    *data = NULL;
    if (call->in[i] == NULL)
        return SW_OK;
    if (call->dense[i] == NULL && !sw_tensor_is_dense(call->in[i]))
        SW_TRY(make_dense(call, i, err));
    *data = sw_tensor_data(call->dense[i] != NULL ? call->dense[i] : call->in[i]);
    return SW_OK;
}

sw_status sw_call_workspace(sw_call *call, size_t bytes, void **out, sw_error *err)
{
    *out = sw_stack_take(call->step->stack, bytes);
    if (*out != NULL)
        return SW_OK;
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a workspace of %zu bytes", bytes);
}

/* Products of one A; more than one of them have few rows. */
static sw_status run_products(sw_step *step, const sw_product *products, size_t n, sw_error *err)
{
    sw_stack_mark mark = sw_stack_top(step->stack);
    size_t bytes = 0;

    SW_TRY(sw_product_workspace(step->kernel, products, &bytes, err));
    void *workspace = sw_stack_take(step->stack, bytes);
    if (workspace == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a workspace of %zu bytes", bytes);
    sw_status status = n == 1 ? sw_product_run(step->kernel, products, workspace, err)
                              : sw_product_run_together(step->kernel, products, n, workspace, err);
    sw_stack_release(step->stack, mark);
    return status;
}

sw_status sw_call_product(sw_call *call, const sw_product *product, sw_error *err)
{
    sw_step *step = call->step;

    if (step->gathers && step->n_gathered < SW_PRODUCTS_TOGETHER && sw_product_is_of_rows(product)) {
        step->gathered[step->n_gathered++] = *product;
        return SW_OK;
    }
    return run_products(step, product, 1, err);
}

void sw_step_gather_products(sw_step *step)
{
    step->gathers = true;
}

void sw_step_run_gathered(sw_step *step)
{
    sw_error err = {0};
    sw_status status = step->status;
    const sw_product *p = step->gathered;
    uint32_t n = step->n_gathered;

    step->gathers = false;
    step->n_gathered = 0;
    sw_watch_begin(step->watch);
    for (uint32_t i = 0, end = 0; i < n && status == SW_OK; i = end) {
        for (end = i + 1; end < n && sw_products_are_alike(&p[i], &p[end]);)
            end++;
        status = run_products(step, &p[i], end - i, &err);
        if (status != SW_OK)
            SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    }
    sw_watch_end(step->watch);
}

sw_tensor_rows sw_call_out_rows(const sw_call *call, uint32_t inner)
{
    sw_tensor_rows rows = {0};

    (void)sw_tensor_as_rows(call->out[0], inner, &rows); /* outputs are dense */
    return rows;
}

/* The type of activations: that of the first input that is one; of a weight's gradient if there is none. */
static sw_dtype type_of(const sw_call *call)
{
    sw_dtype fallback = SW_DTYPE_F32;

    for (uint32_t i = call->n_inputs; i-- > 0;) {
        const sw_value *value = &call->signature->values[i];
        if (call->in[i] != NULL && value->is_weight)
            fallback = sw_gradient_dtype(sw_tensor_dtype(call->in[i]));
    }
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        const sw_value *value = &call->signature->values[i];
        if (call->in[i] != NULL && !value->is_weight && !value->is_whole_number)
            return sw_tensor_dtype(call->in[i]);
    }
    return fallback;
}

static bool is_type_of(const sw_call *call, const sw_value *value, sw_dtype dtype)
{
    if (value->is_whole_number)
        return dtype == SW_DTYPE_I32;
    if (dtype == call->dtype)
        return true;
    return value->is_weight && call->dtype == SW_DTYPE_F32 &&
           (dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16);
}

static sw_status check_types(const sw_call *call, sw_error *err)
{
    if (call->dtype != SW_DTYPE_F32 && call->dtype != SW_DTYPE_F64) {
        return SW_FAIL(err, SW_E_ARGUMENT, "convert it first", "activations are F32 or F64, not %s",
                       sw_dtype_name(call->dtype));
    }
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        const sw_value *value = &call->signature->values[i];
        if (call->in[i] == NULL || is_type_of(call, value, sw_tensor_dtype(call->in[i])))
            continue;
        return SW_FAIL(err, SW_E_ARGUMENT, "convert it first", "%.*s is %s, but must be %s%s",
                       value->name_length, value->name, sw_dtype_name(sw_tensor_dtype(call->in[i])),
                       value->is_whole_number ? "I32" : sw_dtype_name(call->dtype),
                       value->is_weight ? " or a short float beside F32" : "");
    }
    return SW_OK;
}

static sw_status check_presence(const sw_call *call, sw_error *err)
{
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        const sw_value *value = &call->signature->values[i];
        const sw_tensor *in = call->in[i];
        if (in == NULL && !value->is_optional) {
            return SW_FAIL(err, SW_E_ARGUMENT, "give it", "%.*s is missing", value->name_length, value->name);
        }
        if (in == NULL)
            continue;
        if (value->is_constant && in->storage->needs_gradient && call->step->records) {
            return SW_FAIL(err, SW_E_ARGUMENT, "give it as a constant", "%.*s has no gradient",
                           value->name_length, value->name);
        }
    }
    return SW_OK;
}

static sw_status find_extents(const sw_call *call, sw_extents *out, sw_error *err)
{
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        const sw_tensor *in = call->in[i];
        if (in != NULL)
            SW_TRY(sw_extents_add(out, call->signature, i, in->n_dims, in->dims, err));
    }
    return SW_OK;
}

static sw_status make_outputs(sw_call *call, const sw_extents *extents, sw_error *err)
{
    const sw_signature *signature = call->signature;

    for (uint32_t i = 0; i < signature->n_outputs; i++) {
        uint64_t dims[SW_TENSOR_MAX_DIMS] = {0};
        uint32_t n_dims = 0;
        bool is_whole_number = signature->values[signature->n_inputs + i].is_whole_number;
        SW_TRY(sw_extents_output(extents, signature, i, call->args.extent, &n_dims, dims, err));
        SW_TRY(sw_tensor_create(&call->out[i], call->step->stack,
                                is_whole_number ? SW_DTYPE_I32 : call->dtype, n_dims, dims, NULL, err));
    }
    return SW_OK;
}

static sw_status run_call(sw_call *call, sw_error *err)
{
    sw_extents extents = {0};
    const sw_tensor_layout *layout[SW_MAX_OUTPUTS] = {0};

    call->dtype = type_of(call);
    SW_TRY(check_presence(call, err));
    SW_TRY(check_types(call, err));
    if (call->step->validates) /* first: layouts tell more than sizes that do not fit */
        SW_TRY(sw_rule_apply(call, layout, err));
    SW_TRY(find_extents(call, &extents, err));
    SW_TRY(make_outputs(call, &extents, err));
    for (uint32_t i = 0; i < call->signature->n_outputs; i++)
        call->out[i]->layout = layout[i];
    sw_watch_begin(call->step->watch);
    sw_status status = call->operation->forward(call, err);
    sw_watch_end(call->step->watch);
    return status;
}

sw_call *sw_call_run(sw_step *step, sw_op op, const sw_call *given)
{
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;

    if (step->status != SW_OK)
        return NULL;
    sw_call *call = sw_stack_take(step->stack, sizeof *call);
    if (call == NULL) {
        status = SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for the tape");
    } else {
        *call = *given;
        call->step = step;
        call->operation = &sw_operations[op];
        call->signature = &step->signatures[op];
        call->n_inputs = call->signature->n_inputs;
        status = run_call(call, &err);
    }
    if (status != SW_OK) {
        sw_error_context(&err, "%s", sw_operations[op].name);
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
        return NULL;
    }
    if (sw_call_needs_gradient(call))
        sw_step_record(step, call);
    return call;
}
