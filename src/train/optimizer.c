/* Parameters and optimizers over them (train/optimizer.h). */
#include "train/optimizer.h"

#include "base/status.h"
#include "checkpoint/fixed_math.h"
#include "kernel/elementwise.h"

/* What torch adds to the norm before it divides by it. */
#define NORM_EPSILON 1e-6

static const sw_optimizer_facts kinds[] = {
    [SW_OPTIMIZER_ADAMW] = {"adamw",             {"optim.m.", "optim.v."}, sw_kernel_adamw},
    [SW_OPTIMIZER_SGD] = {"sgd",               {NULL},                   sw_kernel_sgd  },
    [SW_OPTIMIZER_SGD_MOMENTUM] = {"sgd with momentum", {"optim.m."},             sw_kernel_sgd  },
};
_Static_assert(SW_COUNT(kinds) == SW_OPTIMIZER_COUNT_, "one row a kind");

const sw_optimizer_facts *sw_optimizer_facts_of(sw_optimizer_kind kind)
{
    return &kinds[kind];
}

uint32_t sw_optimizer_moments(sw_optimizer_kind kind)
{
    uint32_t n = 0;

    while (kinds[kind].moments[n] != NULL)
        n++;
    return n;
}

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

void sw_trained_step(const sw_trained_list *list, const sw_kernel *kernel, const sw_optimizer *optimizer,
                     double norm, uint64_t step)
{
    double factor = optimizer->clip > 0.0 ? optimizer->clip / (norm + NORM_EPSILON) : 1.0;

    for (size_t i = 0; i < list->n_params; i++) {
        const sw_trained *param = &list->params[i];
        if (!param->storage->has_gradient)
            continue;
        const sw_optimizer_args args = {
            .n = param->n_elems,
            .param = param->value,
            .grad = param->gradient,
            .m = param->moments[0],
            .v = param->moments[1],
            .step = step,
            .lr = optimizer->lr,
            .decay = sw_trained_decays(param) ? optimizer->decay : 0.0,
            .beta1 = optimizer->beta1,
            .beta2 = optimizer->beta2,
            .eps = optimizer->eps,
            .clip = factor < 1.0 ? factor : 1.0,
        };
        kinds[optimizer->kind].update(kernel, param->storage->dtype, &args);
    }
}
