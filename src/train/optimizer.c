/* Parameters and AdamW over them (train/optimizer.h). */
#include "train/optimizer.h"

#include "checkpoint/fixed_math.h"
#include "kernel/elementwise.h"
#include "kernel/optimizer.h"

/* What torch adds to the norm before it divides by it. */
#define NORM_EPSILON 1e-6

bool sw_trained_decays(const sw_trained *param)
{
    return param->n_dims >= 2;
}

double sw_trained_norm_of(double square_sum)
{
    return square_sum >= DBL_MIN && square_sum <= DBL_MAX ? sw_fixed_sqrt(square_sum) : square_sum;
}

double sw_trained_norm(const sw_trained_list *list, const sw_kernel *kernel)
{
    double sum = 0.0;

    for (size_t i = 0; i < list->n_params; i++) {
        const sw_trained *param = &list->params[i];
        if (param->storage->has_gradient)
            sum += sw_kernel_square_sum(kernel, param->storage->dtype, param->gradient, param->n_elems);
    }
    return sw_trained_norm_of(sum);
}

void sw_trained_step(const sw_trained_list *list, const sw_kernel *kernel, const sw_adamw *adamw, double norm,
                     uint64_t step)
{
    double factor = adamw->clip > 0.0 ? adamw->clip / (norm + NORM_EPSILON) : 1.0;

    for (size_t i = 0; i < list->n_params; i++) {
        const sw_trained *param = &list->params[i];
        if (!param->storage->has_gradient)
            continue;
        const sw_optimizer_args args = {
            .n = param->n_elems,
            .param = param->value,
            .grad = param->gradient,
            .m = param->m,
            .v = param->v,
            .step = step,
            .lr = adamw->lr,
            .decay = sw_trained_decays(param) ? adamw->decay : 0.0,
            .beta1 = adamw->beta1,
            .beta2 = adamw->beta2,
            .eps = adamw->eps,
            .clip = factor < 1.0 ? factor : 1.0,
        };
        sw_kernel_adamw(kernel, param->storage->dtype, &args);
    }
}
