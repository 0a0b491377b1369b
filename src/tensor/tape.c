/*
 * The tape: calls in the order in which they were made, each knowing the one before. Walking back, a call
 * gets the gradient of its output, which is complete by then, and adds to those of its inputs. The memory of
 * a gradient that was used up serves for the next one of its size.
 */
#include <string.h>

#include "base/status.h"
#include "tensor/copy.h"
#include "tensor/step_state.h"

bool sw_call_needs_gradient(const sw_call *call)
{
    bool needs = false;

    for (uint32_t i = 0; i < call->n_inputs; i++)
        needs |= call->in[i] != NULL && call->in[i]->storage->needs_gradient;
    return needs && call->step->records && call->operation->backward != NULL;
}

void sw_step_record(sw_step *step, sw_call *call)
{
    call->previous = step->last;
    step->last = call;
    call->out[0]->storage->needs_gradient = true;
}

static size_t gradient_bytes(const sw_storage *storage)
{
    size_t bytes = (size_t)storage->n_elems * sw_elem_bytes(sw_gradient_dtype(storage->dtype));
    return bytes < sizeof(sw_spare) ? sizeof(sw_spare) : bytes;
}

static sw_status give_memory(sw_step *step, sw_storage *storage, sw_error *err)
{
    size_t bytes = gradient_bytes(storage);

    for (sw_spare **at = &step->spare; *at != NULL; at = &(*at)->next) {
        if ((*at)->bytes == bytes) {
            storage->gradient = *at;
            *at = (*at)->next;
            return SW_OK;
        }
    }
    storage->gradient = sw_stack_take(step->stack, bytes);
    if (storage->gradient == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a gradient of %zu bytes", bytes);
    return SW_OK;
}

static void take_memory(sw_step *step, sw_storage *storage)
{
    sw_spare *spare = storage->gradient;

    storage->has_gradient = false;
    storage->gradient = NULL;
    if (spare == NULL || storage->is_lent)
        return;
    *spare = (sw_spare){step->spare, gradient_bytes(storage)};
    step->spare = spare;
}

static bool has_name(const char *names, const sw_value *value)
{
    for (const char *at = names; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == (size_t)value->name_length && strncmp(at, value->name, length) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Where the gradient of input `i` goes: to its storage, or (then *is_apart) to memory of its own first. */
static sw_status aim(sw_call *call, uint32_t i, sw_gradients *g, bool *is_apart, sw_error *err)
{
    const sw_tensor *in = call->in[i];
    sw_storage *storage = in->storage;
    bool is_dense = sw_tensor_is_dense(in);
    bool is_whole = is_dense && sw_tensor_elems(in) == storage->n_elems;
    bool can_add = has_name(call->operation->adds, &call->signature->values[i]);
    size_t bytes = sw_elem_bytes(sw_gradient_dtype(storage->dtype));

    *is_apart = false;
    if (storage->gradient == NULL)
        SW_TRY(give_memory(call->step, storage, err));
    if (!storage->has_gradient && !is_whole)
        memset(storage->gradient, 0, (size_t)storage->n_elems * bytes);
    g->adds[i] = storage->has_gradient || !is_whole;
    storage->has_gradient = true;
    if (g->adds[i] && !(is_dense && can_add)) {
        g->adds[i] = false;
        *is_apart = true;
        return SW_OK;
    }
    g->d_in[i] = (char *)storage->gradient + in->offset * bytes;
    return SW_OK;
}

/* In the memory of the workspace, for the time of the call. */
static sw_status walk_call(sw_call *call, sw_error *err)
{
    sw_gradients g = {.d_out = call->out[0]->storage->gradient};
    bool is_apart[SW_MAX_INPUTS] = {0};

    for (uint32_t i = 0; i < call->n_inputs; i++) {
        if (call->in[i] != NULL && call->in[i]->storage->needs_gradient)
            SW_TRY(aim(call, i, &g, &is_apart[i], err));
    }
    sw_stack_mark mark = sw_stack_top(call->step->stack);
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        if (is_apart[i])
            SW_TRY(sw_call_workspace(call, sw_call_bytes(call, i), &g.d_in[i], err));
    }
    sw_watch_begin(call->step->watch);
    sw_status status = call->operation->backward(call, &g, err);
    for (uint32_t i = 0; i < call->n_inputs && status == SW_OK; i++) {
        if (is_apart[i])
            sw_add_to_gradient(call->in[i], g.d_in[i]);
    }
    sw_watch_end(call->step->watch);
    sw_stack_release(call->step->stack, mark);
    return status;
}

sw_status sw_tape_seed(sw_step *step, const sw_tensor *y, const void *d_y, sw_error *err)
{
    sw_storage *storage = y->storage;
    size_t n = (size_t)storage->n_elems;

    if (!storage->needs_gradient || !sw_tensor_is_dense(y) || sw_tensor_elems(y) != n || storage->is_lent) {
        return SW_FAIL(err, SW_E_ARGUMENT, "begin from the output of an operation that was recorded",
                       "there is no way back from this tensor");
    }
    SW_TRY(give_memory(step, storage, err));
    storage->has_gradient = true;
    if (d_y != NULL) {
        memcpy(storage->gradient, d_y, n * sw_elem_bytes(storage->dtype));
        return SW_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (storage->dtype == SW_DTYPE_F64)
            ((double *)storage->gradient)[i] = 1;
        else
            ((float *)storage->gradient)[i] = 1;
    }
    return SW_OK;
}

sw_status sw_tape_walk(sw_step *step, const sw_call *first, sw_error *err)
{
    for (sw_call *call = step->last; call != first; call = call->previous) {
        sw_storage *storage = call->out[0]->storage;
        if (storage->has_gradient) {
            sw_status status = walk_call(call, err);
            if (status != SW_OK) {
                const sw_custom *custom = call->args.custom;
                sw_error_context(err, "backward of %s",
                                 custom != NULL ? custom->name : call->operation->name);
                return status;
            }
        }
        take_memory(step, storage);
    }
    return SW_OK;
}

sw_status sw_step_backward(sw_step *step, const sw_tensor *y, const void *d_y, sw_error *err)
{
    sw_error unasked = {0};

    if (err == NULL)
        err = &unasked;
    if (step->status != SW_OK)
        return sw_step_status(step, err);
    sw_status status = sw_tape_seed(step, y, d_y, err);
    if (status == SW_OK)
        status = sw_tape_walk(step, NULL, err);
    step->last = NULL;
    return sw_step_fail(step, status, err);
}
