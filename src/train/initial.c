/* Random weights, by the rules of checkpoint/init_scale.h (train/initial.h). */
#include "train/initial.h"

#include "apply/parts.h"
#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/init_scale.h"

/* Where a parameter's numbers go: they are made whole, this rank's are taken, and those are widened. */
typedef struct filling {
    const sw_parameter *parameter;
    const sw_applied_parameter *part; /* NULL: the whole is here */
    const sw_init_rule *rule;
    const sw_random *random;
    size_t n; /* of the whole */
} filling;

/* The last elements first: their place is behind that of those that are still to be read. */
static void widen(double *out, uint64_t n)
{
    const float *in = (const float *)(const void *)out;

    while (n-- > 0)
        out[n] = (double)in[n];
}

/* Of a part, or in F64: by way of the whole in F32. */
static sw_status fill_through(const filling *f, sw_error *err)
{
    void *out = sw_tensor_data(f->parameter->tensor);
    sw_dtype dtype = f->parameter->dtype == SW_DTYPE_F64 ? SW_DTYPE_F32 : f->parameter->dtype;
    size_t width = sw_elem_bytes(dtype);
    sw_status status = SW_OK;
    uint8_t *whole = f->part == NULL ? out : sw_alloc_zero(f->n, width);

    if (whole == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for random weights", f->parameter->fqn);
    sw_init_fill(f->rule, f->random, dtype, 0, f->n, whole);
    if (f->part != NULL)
        status = sw_part_take(f->part, whole, width, out, err);
    if (status == SW_OK && f->parameter->dtype == SW_DTYPE_F64)
        widen(out, sw_tensor_elems(f->parameter->tensor));
    if (f->part != NULL)
        sw_free(whole);
    return status;
}

static size_t whole_elems(const sw_parameter *p, const sw_applied_parameter *part)
{
    size_t n = 1;

    for (uint32_t d = 0; d < p->n_dims; d++)
        n *= (size_t)(part == NULL ? p->dims[d] : part->layout.dims[d]);
    return n;
}

sw_status sw_initial_weights(const sw_net *net, const sw_model *model, uint64_t seed, sw_error *err)
{
    sw_init_scale scale = sw_init_scale_of(&model->config, -1.0, 1.0);

    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        const sw_applied_parameter *part = sw_applied_parameter_at(net, i);
        const sw_tensor_entry *tensor = sw_model_tensor(model, p->source);
        sw_init_rule rule = sw_init_rule_of(&scale, tensor->name, tensor->name_length, tensor->shape);
        sw_random random = sw_random_of(seed, tensor->name, tensor->name_length);
        const filling f = {p, part, &rule, &random, whole_elems(p, part)};
        if (part == NULL || !part->is_elsewhere)
            SW_TRY(fill_through(&f, err));
    }
    return SW_OK;
}
