/* The life of a step (tensor/step.h). */
#include "tensor/step.h"

#include "base/alloc.h"
#include "base/status.h"
#include "tensor/step_state.h"

static sw_status read_table(sw_step *step, sw_error *err)
{
    for (uint32_t i = 0; i < SW_OP_COUNT_; i++) {
        if (!sw_signature_parse(&step->signatures[i], sw_operations[i].values)) {
            return SW_FAIL(err, SW_E_ARGUMENT, "correct the table of operations", "%s: bad signature '%s'",
                           sw_operations[i].name, sw_operations[i].values);
        }
    }
    return SW_OK;
}

sw_status sw_step_create(sw_step **out, sw_kernel *kernel, sw_error *err)
{
    sw_step *step = sw_alloc_zero(1, sizeof *step);
    sw_stack *stack = sw_stack_create();
    sw_status status = SW_OK;

    if (step == NULL || stack == NULL)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a step");
    if (status == SW_OK)
        status = read_table(step, err);
    if (status != SW_OK) {
        sw_stack_destroy(stack);
        sw_free(step);
        return status;
    }
    step->kernel = kernel;
    step->stack = stack;
    *out = step;
    return SW_OK;
}

void sw_step_destroy(sw_step *step)
{
    if (step != NULL)
        sw_stack_destroy(step->stack);
    sw_free(step);
}

void sw_step_begin(sw_step *step, bool records)
{
    sw_stack_reset(step->stack);
    step->last = NULL;
    step->spare = NULL;
    step->records = records;
    step->gathers = false;
    step->n_gathered = 0;
    step->status = SW_OK;
    step->error = (sw_error){0};
}

bool sw_step_records(const sw_step *step)
{
    return step->records;
}

void sw_step_validate(sw_step *step, bool validates)
{
    step->validates = validates;
}

void sw_step_watch(sw_step *step, sw_watch *watch)
{
    step->watch = watch;
}

void sw_watch_begin(sw_watch *watch)
{
    if (watch != NULL && watch->depth++ == 0)
        watch->begun = watch->now();
}

void sw_watch_end(sw_watch *watch)
{
    if (watch != NULL && --watch->depth == 0)
        watch->seconds += watch->now() - watch->begun;
}

sw_status sw_step_status(const sw_step *step, sw_error *err)
{
    if (step->status != SW_OK && err != NULL)
        *err = step->error;
    return step->status;
}

sw_status sw_step_fail(sw_step *step, sw_status status, const sw_error *err)
{
    if (step->status == SW_OK && status != SW_OK) {
        step->status = status;
        step->error = *err;
    }
    return status;
}

void sw_step_fail_in(sw_step *step, const char *where)
{
    if (step->status != SW_OK)
        sw_error_context(&step->error, "%s", where);
}

sw_stack *sw_step_stack(sw_step *step)
{
    return step->stack;
}

sw_kernel *sw_step_kernel(const sw_step *step)
{
    return step->kernel;
}

sw_tensor *sw_step_tensor(sw_step *step, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *tensor = NULL;
    sw_error err = {0};

    if (step->status != SW_OK)
        return NULL;
    sw_status status = sw_tensor_create(&tensor, step->stack, dtype, n_dims, dims, NULL, &err);
    if (status != SW_OK) {
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
        return NULL;
    }
    return tensor;
}
