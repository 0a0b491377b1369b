/* Stages over ranks (apply/bound.h): adapters between the stages of src/nn and the functions of src/parallel.
 */
#include "apply/bound.h"

#include "apply/applied.h"
#include "base/status.h"
#include "parallel/collective_node.h"
#include "parallel/node.h"

/* ---- context parallel ---- */

static sw_tensor *attend_gather(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                                const sw_tensor *v, const sw_attend_args *args)
{
    const sw_bound *b = context;
    return sw_attention_gather(step, b->group, q, k, v, args);
}

static sw_tensor *attend_ring(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                              const sw_tensor *v, const sw_attend_args *args)
{
    const sw_bound *b = context;
    return sw_attention_ring(step, b->ring, q, k, v, args);
}

static sw_tensor *attend_ulysses(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                                 const sw_tensor *v, const sw_attend_args *args)
{
    const sw_bound *b = context;
    return sw_attention_ulysses(step, b->group, q, k, v, args);
}

static sw_tensor *attend_alike(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                               const sw_tensor *v, const sw_attend_args *args)
{
    const sw_bound *b = context;
    return sw_attention_cached(step, b->group, q, k, v, args);
}

static sw_status make_cp(sw_bound *b, struct sw_applied *a, sw_error *err)
{
    static const sw_attend_stage forms[SW_CP_FORM_COUNT_] = {
        {attend_gather,  attend_alike, NULL},
        {attend_ring,    attend_alike, NULL},
        {attend_ulysses, attend_alike, NULL}
    };
    const sw_module *attention = b->module->parent;

    if (sw_cp_form_name(b->form) == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "choose gather, ring or ulysses",
                       "no form %d of attention over cp", (int)b->form);
    if (b->form == SW_CP_ULYSSES && attention != NULL) {
        sw_status status = sw_ulysses_check((uint64_t)attention->attributes[0], b->group->size, err);
        if (status != SW_OK)
            sw_error_context(err, "%s", b->module->fqn);
        SW_TRY(status);
    }
    if (b->form == SW_CP_RING && a->ring == NULL)
        SW_TRY(sw_ring_create(&a->ring, b->group, err));
    b->ring = a->ring;
    b->stages.attend = forms[b->form];
    b->stages.attend.context = b;
    return SW_OK;
}

/* ---- expert parallel ---- */

/* With an axis of its own all ranks see all tokens, each for its own experts: gradients are summands. */
static sw_tensor *enter(void *context, sw_step *step, const sw_tensor *x)
{
    const sw_bound *b = context;
    return sw_sum_node(step, b->group, x, SW_SUM_BACKWARD);
}

typedef struct routed {
    const sw_expert_route *route;
    const sw_tensor *weights; /* [N, k] */
} routed;

static sw_status dispatch(void *context, sw_step *step, const sw_tensor *x, const sw_routing *routing,
                          sw_dispatched *out)
{
    const sw_bound *b = context;
    routed *r = sw_node_context(step, sizeof *r);

    if (r == NULL)
        return sw_step_status(step, NULL);
    const sw_tensor *rows = sw_experts_dispatch(step, &b->experts, x, routing->experts, &r->route);
    if (rows == NULL)
        return sw_step_status(step, NULL);
    r->weights = routing->weights;
    *out = (sw_dispatched){.rows = rows, .ends = r->route->ends, .n_tokens = r->route->n_tokens, .plan = r};
    return SW_OK;
}

static sw_tensor *combine(void *context, sw_step *step, const sw_dispatched *dispatched, const sw_tensor *y)
{
    const routed *r = dispatched->plan;

    (void)context;
    return sw_experts_combine(step, r->route, y, r->weights);
}

static sw_status make_ep(sw_bound *b, const struct sw_applied *a)
{
    sw_ep_mode mode = sw_mesh_ep_mode(a->plan->mesh);

    b->experts = (sw_expert_ranks){b->group, mode, (uint64_t)b->spec.n_experts};
    b->stages.transport = (sw_transport_stage){dispatch, combine, mode == SW_EP_AXIS ? enter : NULL, b};
    return SW_OK;
}

/* ---- both ---- */

sw_status sw_bound_make(sw_bound *bound, struct sw_applied *applied, sw_error *err)
{
    const sw_mesh_binding binding = {applied->active.comm};

    bound->stages = *bound->module->stages; /* what else is bound to it stays */
    if (bound->spec.kind == SW_BINDING_MESH)
        return SW_OK;
    SW_TRY(sw_mesh_binding_axis(&binding, sw_binding_kind_name(bound->spec.kind), &bound->group, err));
    return bound->spec.kind == SW_BINDING_CP ? make_cp(bound, applied, err) : make_ep(bound, applied);
}

/* Attention and experts are told by the stage that they have. */
static sw_status validate_cp(const sw_module *module, const sw_parallel_context *context, sw_error *err)
{
    if (context->n_cp > 1 && module->parent != NULL)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "bind the core of attention", "class %s is no core of attention over cp",
                   module->class->name);
}

static sw_status validate_ep(const sw_module *module, const sw_parallel_context *context, sw_error *err)
{
    if (context->owner != NULL)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "bind the experts of a mixture", "class %s is not in a block of experts",
                   module->class->name);
}

sw_bound_validate *sw_bound_validator(sw_binding_kind kind)
{
    return kind == SW_BINDING_CP ? validate_cp : kind == SW_BINDING_EP ? validate_ep : NULL;
}
