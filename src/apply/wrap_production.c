/* The wrap of production (apply/wrap.h), and the pieces of every wrap. */
#include "apply/wrap.h"

sw_whole sw_apply_whole(const sw_applied_boundary *b, const sw_pass *pass)
{
    uint64_t n_cp = sw_mesh_axis_size(b->applied->plan->mesh, SW_AXIS_CP);
    return (sw_whole){.tokens = pass->tokens->dims[1] * n_cp, .width = b->width};
}

void sw_apply_enter(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass,
                    const sw_tensor *const *in, const sw_tensor **moved)
{
    for (uint32_t i = 0; b->module->class->arguments[i] != NULL; i++)
        moved[i] = b->in[i] == NULL ? in[i] : sw_move_run(b->in[i], step, in[i], sw_apply_whole(b, pass));
}

sw_tensor *sw_apply_leave(const sw_applied_boundary *b, sw_step *step, const sw_pass *pass, sw_tensor *y)
{
    if (b->out != NULL)
        y = sw_move_run(b->out, step, y, sw_apply_whole(b, pass));
    for (uint32_t i = 0; i < b->n_deferred; i++)
        y = sw_op_add_bias(step, y, b->deferred[i]->tensor);
    return y;
}

sw_tensor *sw_apply_wrap_production(void *context, const sw_module *module, sw_step *step,
                                    const sw_pass *pass, const sw_tensor *const *in)
{
    const sw_applied_boundary *b = context;
    const sw_tensor *moved[SW_MODULE_MAX_INPUTS] = {NULL};

    sw_apply_enter(b, step, pass, in, moved);
    return sw_apply_leave(b, step, pass, module->class->forward(module, step, pass, moved));
}

sw_apply_wrap *sw_apply_wrap_of(const sw_applied_boundary *boundary)
{
    bool moves = boundary->out != NULL || boundary->n_deferred > 0;

    for (uint32_t i = 0; i < SW_MODULE_MAX_INPUTS; i++)
        moves = moves || boundary->in[i] != NULL;
    if (boundary->applied->validates)
        return sw_apply_wrap_validate;
    return moves ? sw_apply_wrap_production : NULL;
}
