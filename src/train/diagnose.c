/* Where a number went bad (train/diagnose.h). */
#include "train/diagnose.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "kernel/elementwise.h"

static bool is_finite(const sw_kernel *kernel, sw_dtype dtype, const void *values, uint64_t n)
{
    return __builtin_isfinite(sw_kernel_sum(kernel, dtype, values, n));
}

/* Looks at what modules give. */
typedef struct looking {
    sw_module_wrap was; /* what stood in front of the module before */
    const sw_module **bad;
} looking;

/* What a module gave, looked at; what it does is not changed. */
static sw_tensor *run_checked(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                              const sw_tensor *const *in)
{
    const looking *look = context;
    sw_tensor *y = look->was.run != NULL ? look->was.run(look->was.context, module, step, pass, in)
                                         : module->class->forward(module, step, pass, in);

    if (y == NULL || *look->bad != NULL)
        return y;
    const sw_tensor *dense = sw_tensor_is_dense(y) ? y : sw_op_copy(step, y);
    if (dense != NULL && !is_finite(sw_step_kernel(step), sw_tensor_dtype(dense), sw_tensor_data(dense),
                                    sw_tensor_elems(dense)))
        *look->bad = module;
    return y;
}

/* The first module in one more forward whose output is not finite; NULL: none. */
static sw_status find_bad_output(sw_net *net, sw_step *step, const sw_feed *feed, const sw_module **bad,
                                 sw_error *err)
{
    sw_pass pass;

    *bad = NULL;
    sw_step_begin(step, false);
    looking *looks = sw_stack_take(sw_step_stack(step), net->n_modules * sizeof *looks);
    if (looks == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to look at what modules give");
    for (uint32_t i = 0; i < net->n_modules; i++) {
        looks[i] = (looking){net->modules[i].wrap, bad};
        net->modules[i].wrap = (sw_module_wrap){run_checked, &looks[i]};
    }
    sw_feed_pass(&pass, net, step, feed);
    (void)sw_net_logits(net, step, &pass, sw_net_hidden(net, step, &pass));
    for (uint32_t i = 0; i < net->n_modules; i++)
        net->modules[i].wrap = looks[i].was;
    return sw_step_status(step, err);
}

/* The first parameter whose values, or gradient, are not finite; NULL: there is none. */
static const sw_trained *find_bad(const sw_trained_list *list, const sw_kernel *kernel,
                                  bool looks_at_gradients)
{
    for (size_t i = 0; i < list->n_params; i++) {
        const sw_trained *p = &list->params[i];
        const void *values = looks_at_gradients ? p->gradient : p->value;
        bool is_there = !looks_at_gradients || p->storage->has_gradient;
        if (is_there && !is_finite(kernel, p->storage->dtype, values, p->n_elems))
            return p;
    }
    return NULL;
}

/* `name`, where any rank has one: then `text` says so on all of them. */
static bool tell(const sw_ranks *ranks, const char *what, const char *name, char text[SW_BAD_TENSOR_TEXT])
{
    uint32_t rank = sw_ranks_first(ranks, name != NULL);

    if (rank == UINT32_MAX)
        return false;
    if (ranks->comm == NULL)
        (void)snprintf(text, SW_BAD_TENSOR_TEXT, "%s of %.300s", what, name);
    else
        (void)snprintf(text, SW_BAD_TENSOR_TEXT, "%s of %.300s, on rank %" PRIu32, what,
                       name == NULL ? "" : name, rank);
    sw_ranks_tell(ranks, rank, text, SW_BAD_TENSOR_TEXT);
    return true;
}

sw_status sw_diagnose(const sw_trained_list *list, sw_net *net, sw_step *step, const sw_feed *feed,
                      const sw_ranks *ranks, char text[SW_BAD_TENSOR_TEXT], sw_error *err)
{
    const sw_kernel *kernel = sw_step_kernel(step);
    const sw_trained *param = find_bad(list, kernel, false);
    const sw_module *module = NULL;

    if (tell(ranks, "values", param == NULL ? NULL : param->fqn, text))
        return SW_OK;
    SW_TRY(find_bad_output(net, step, feed, &module, err));
    if (tell(ranks, "output", module == NULL ? NULL : module->fqn, text))
        return SW_OK;
    param = find_bad(list, kernel, true);
    if (!tell(ranks, "gradient", param == NULL ? NULL : param->fqn, text))
        (void)snprintf(text, SW_BAD_TENSOR_TEXT, "none that is kept");
    return SW_OK;
}
