/* Operations from outside; regions that run again in the backward are one of them (tensor/step.h). */
#include <string.h>

#include "base/status.h"
#include "tensor/copy.h"
#include "tensor/rows_of_table.h"
#include "tensor/step_state.h"

/* The row of the table has no forward: the call is made here, by what `custom` gives. */
sw_status sw_custom_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_custom_back back = {call->in, call->out[0], g->d_out, g->d_in};
    return call->args.custom->backward(call->args.context, call->step, &back, err);
}

/* The gradient of the output must not be that of an input, whatever the elements are. */
static sw_status check_storage(const sw_call *call, sw_error *err)
{
    bool is_own = !call->out[0]->storage->is_lent;

    for (uint32_t i = 0; i < call->n_inputs; i++)
        is_own &= call->in[i] == NULL || call->in[i]->storage != call->out[0]->storage;
    if (is_own)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "make a tensor with the input's data",
                   "the output has an input's storage");
}

static sw_status run_custom(sw_call *call, sw_error *err)
{
    const sw_custom *custom = call->args.custom;

    sw_watch_begin(call->step->watch);
    sw_status status = custom->forward(call->args.context, call->step, call->in, &call->out[0], err);
    sw_watch_end(call->step->watch);
    SW_TRY(status);
    SW_TRY(check_storage(call, err));
    call->dtype = sw_gradient_dtype(sw_tensor_dtype(call->out[0]));
    return SW_OK;
}

static sw_call *custom_call(sw_step *step, const sw_custom *custom, void *context, const sw_tensor *const *in,
                            uint32_t n_inputs)
{
    sw_error err = {0};
    sw_status status = SW_OK;

    if (step->status != SW_OK)
        return NULL;
    sw_call *call = sw_stack_take(step->stack, sizeof *call);
    if (n_inputs > SW_MAX_INPUTS) {
        status = SW_FAIL(&err, SW_E_LIMIT, "give fewer", "%u inputs, at most %d", (unsigned)n_inputs,
                         (int)SW_MAX_INPUTS);
    } else if (call == NULL) {
        status = SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for the tape");
    } else {
        *call = (sw_call){
            .step = step,
            .operation = &sw_operations[SW_OP_CUSTOM],
            .signature = &step->signatures[SW_OP_CUSTOM],
            .args = {.custom = custom, .context = context},
            .n_inputs = n_inputs
        };
        for (uint32_t i = 0; i < n_inputs; i++)
            call->in[i] = in[i];
        status = run_custom(call, &err);
    }
    if (status == SW_OK)
        return call;
    sw_error_context(&err, "%s", custom->name);
    SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return NULL;
}

sw_tensor *sw_step_custom(sw_step *step, const sw_custom *custom, void *context, const sw_tensor *const *in,
                          uint32_t n_inputs)
{
    sw_call *call = custom_call(step, custom, context, in, n_inputs);

    if (call == NULL)
        return NULL;
    if (sw_call_needs_gradient(call))
        sw_step_record(step, call);
    return call->out[0];
}

/* ---- recomputation ---- */

typedef struct region {
    sw_recompute_fn *run;
    void *context;
    uint32_t n_inputs;
} region;

/*
 * The result of a region, moved down to where the region began: it may stand anywhere above, so its elements
 * go first, and only then is something else written there.
 */
static sw_status keep(sw_step *step, sw_stack_mark mark, const sw_tensor *made, sw_tensor **out,
                      sw_error *err)
{
    sw_tensor was = *made;
    sw_dtype dtype = sw_tensor_dtype(made);
    const void *values = sw_tensor_data(made);
    size_t bytes = (size_t)sw_tensor_elems(made) * sw_elem_bytes(dtype);
    sw_tensor_layout layout = made->layout == NULL ? (sw_tensor_layout){0} : *made->layout;

    sw_stack_release(step->stack, mark);
    void *data = sw_stack_take(step->stack, bytes);
    if (data == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu bytes", bytes);
    memmove(data, values, bytes);
    SW_TRY(sw_tensor_create(out, step->stack, dtype, was.n_dims, was.dims, data, err));
    if (was.layout == NULL)
        return SW_OK;
    sw_tensor_layout *kept = sw_stack_take(step->stack, sizeof *kept);
    if (kept == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the layouts of a step");
    *kept = layout;
    (*out)->layout = kept;
    return SW_OK;
}

static sw_status region_result(const sw_step *step, const sw_tensor *made, sw_error *err)
{
    SW_TRY(sw_step_status(step, err));
    if (made != NULL && sw_tensor_is_dense(made))
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "end with an operation",
                   "the result of a region that runs again is a view with gaps");
}

/* Run without a tape. */
static sw_status region_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                sw_error *err)
{
    const region *r = context;
    sw_stack_mark mark = sw_stack_top(step->stack);
    bool records = step->records;

    step->records = false;
    const sw_tensor *made = r->run(r->context, step, in);
    step->records = records;
    SW_TRY(region_result(step, made, err));
    return keep(step, mark, made, out, err);
}

/* Inputs once more as leaves whose gradients go to d_in. */
static sw_status make_leaves(const region *r, sw_step *step, const sw_custom_back *back,
                             const sw_tensor **leaves, sw_error *err)
{
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        const sw_tensor *in = back->in[i];
        sw_tensor *leaf = NULL;
        leaves[i] = in;
        if (back->d_in[i] == NULL)
            continue;
        bool is_dense = sw_tensor_is_dense(in);
        SW_TRY(sw_tensor_create(&leaf, step->stack, sw_tensor_dtype(in), in->n_dims, in->dims,
                                is_dense ? sw_tensor_data(in) : NULL, err));
        if (!is_dense)
            sw_copy_to_dense(in, sw_tensor_data(leaf));
        sw_tensor_lend_gradient(leaf, back->d_in[i]);
        leaf->layout = in->layout;
        leaves[i] = leaf;
    }
    return SW_OK;
}

static sw_status run_again(const region *r, sw_step *step, const sw_custom_back *back,
                           const sw_tensor *const *leaves, sw_error *err)
{
    const sw_tensor *made = r->run(r->context, step, leaves);

    SW_TRY(region_result(step, made, err));
    if (!made->storage->needs_gradient)
        return SW_OK;
    SW_TRY(sw_tape_seed(step, made, back->d_out, err));
    return sw_tape_walk(step, NULL, err);
}

/* On a tape of its own; what it takes is given back by whoever walks the outer one. */
static sw_status region_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const region *r = context;
    const sw_tensor *leaves[SW_MAX_INPUTS] = {0};
    sw_call *last = step->last;
    sw_spare *spare = step->spare;

    SW_TRY(make_leaves(r, step, back, leaves, err));
    step->last = NULL;
    step->spare = NULL;
    step->records = true;
    sw_status status = run_again(r, step, back, leaves, err);
    step->last = last;
    step->spare = spare;
    for (uint32_t i = 0; i < r->n_inputs && status == SW_OK; i++) {
        if (back->d_in[i] != NULL && !leaves[i]->storage->has_gradient) {
            memset(back->d_in[i], 0,
                   (size_t)sw_tensor_elems(leaves[i]) * sw_elem_bytes(sw_tensor_dtype(leaves[i])));
        }
    }
    return status;
}

static const sw_custom region_custom = {"recompute", region_forward, region_backward};

sw_tensor *sw_step_recompute(sw_step *step, sw_recompute_fn *run, void *context, const sw_tensor *const *in,
                             uint32_t n_inputs)
{
    sw_error err = {0};
    region *r = step->status == SW_OK ? sw_stack_take(step->stack, sizeof *r) : NULL;

    if (step->status == SW_OK && r == NULL) {
        sw_status status = SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for the tape");
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    }
    if (r == NULL)
        return NULL;
    *r = (region){run, context, n_inputs};
    sw_call *call = custom_call(step, &region_custom, r, in, n_inputs);
    if (call == NULL)
        return NULL;
    if (step->records) /* parameters may be used inside */
        sw_step_record(step, call);
    return call->out[0];
}
