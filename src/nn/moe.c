/*
 * Mixtures of experts: a router, the experts it chooses from, which are a module of their own, and experts of
 * every token beside them. Tokens are rows [N, C]; on their way to experts and back they go through the
 * transport stage.
 */
#include <inttypes.h>

#include "base/status.h"
#include "nn/classes.h"
#include "nn/router.h"

/* ---- the experts ---- */

/* What the glu of gpt-oss multiplies its gate with inside the sigmoid. */
static const double clamped_alpha = 1.702;

static sw_tensor *unite(const sw_module *module, sw_step *step, const sw_tensor *gate, const sw_tensor *up)
{
    const sw_net_settings *s = &module->net->settings;

    if (s->glu_limit > 0)
        return sw_op_clamped_glu(step, gate, up, s->glu_limit, clamped_alpha);
    return sw_op_glu(step, gate, up, s->activation);
}

/* Columns of gate and up in turn: every other one of `y` [M, 2 * I], from `first` on. */
static sw_tensor *every_other(sw_step *step, const sw_tensor *y, uint64_t first)
{
    return sw_view_merge(step, sw_view_slice(step, sw_view_split(step, y, 1, 2), 2, first, 1), 1);
}

static sw_tensor *fused(const sw_module *module, sw_step *step, const sw_dispatched *d)
{
    const sw_held *held = &module->held[SW_SLOT_EXPERT_GATE_UP];
    const sw_tensor *y = sw_project_experts(step, held, d->rows, d->ends);

    if (y == NULL)
        return NULL;
    if (held->weight->row->layout == SW_LAYOUT_INTERLEAVED)
        return unite(module, step, every_other(step, y, 0), every_other(step, y, 1));
    uint64_t width = y->dims[1] / 2;
    return unite(module, step, sw_view_slice(step, y, 1, 0, width), sw_view_slice(step, y, 1, width, width));
}

static sw_tensor *experts_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                  const sw_tensor *const *in)
{
    const sw_held *held = module->held;
    const sw_transport_stage *transport = &module->stages->transport;
    sw_routing routing = {
        .experts = in[1], .weights = in[2], .n_experts = module->net->settings.router.n_experts};
    sw_dispatched d = {0};
    const sw_tensor *h = NULL;

    (void)pass;
    if (transport->dispatch(transport->context, step, in[0], &routing, &d) != SW_OK)
        return NULL; /* the step has failed */
    if (held[SW_SLOT_EXPERT_GATE_UP].weight != NULL)
        h = fused(module, step, &d);
    else
        h = unite(module, step, sw_project_experts(step, &held[SW_SLOT_EXPERT_GATE], d.rows, d.ends),
                  sw_project_experts(step, &held[SW_SLOT_EXPERT_UP], d.rows, d.ends));
    const sw_tensor *y = sw_project_experts(step, &held[SW_SLOT_EXPERT_DOWN], h, d.ends);
    return transport->combine(transport->context, step, &d, y);
}

/* After memory was taken: all weights have the same experts. */
static sw_status validate_experts(const sw_module *module, sw_error *err)
{
    static const sw_slot slots[] = {SW_SLOT_EXPERT_GATE, SW_SLOT_EXPERT_UP, SW_SLOT_EXPERT_GATE_UP};
    const sw_parameter *down = module->held[SW_SLOT_EXPERT_DOWN].weight;

    for (size_t i = 0; i < SW_COUNT(slots); i++) {
        const sw_parameter *p = module->held[slots[i]].weight;
        if (p != NULL && p->dims[0] != down->dims[0])
            return SW_FAIL(err, SW_E_PLAN, "cut experts alike", "%s has %" PRIu64 " experts, %s has %" PRIu64,
                           p->fqn, p->dims[0], down->fqn, down->dims[0]);
    }
    return SW_OK;
}

const sw_module_class sw_class_experts = {
    .name = "experts",
    .arguments = {"hidden_states", "experts",                              "weights"},
    .stages = {{"dispatch", {"hidden_states", "experts", "weights"}},               {"combine", {"rows"}}},
    .forward = experts_forward,
    .bind_parallel = sw_module_bind_stages,
    .validate_materialized = validate_experts,
};

/* ---- experts of every token ---- */

static sw_tensor *shared_forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                                 const sw_tensor *const *in)
{
    const sw_held *held = module->held;

    (void)pass;
    sw_step_gather_products(step);
    const sw_tensor *gate = sw_project(step, &held[SW_SLOT_SHARED_GATE], in[0]);
    const sw_tensor *up = sw_project(step, &held[SW_SLOT_SHARED_UP], in[0]);
    sw_step_run_gathered(step);
    return sw_project(step, &held[SW_SLOT_SHARED_DOWN],
                      sw_op_glu(step, gate, up, module->net->settings.activation));
}

const sw_module_class sw_class_shared_experts = {
    .name = "shared_experts",
    .arguments = {"hidden_states"},
    .forward = shared_forward,
};

/* ---- the mixture ---- */

/* The shared experts, behind their gate where the family has one, of x [B, T, C]. */
static const sw_tensor *shared(const sw_module *module, sw_step *step, const sw_pass *pass,
                               const sw_tensor *x)
{
    const sw_held *router = &module->held[SW_SLOT_SHARED_ROUTER];
    const sw_tensor *y = sw_module_run_on(module->shared, step, pass, x);

    if (router->weight == NULL)
        return y;
    const sw_tensor *gate = sw_op_activate(step, sw_project(step, router, x), SW_ACT_SIGMOID);
    return sw_op_row_scale(step, y, sw_view_merge(step, gate, 1));
}

static sw_tensor *forward(const sw_module *module, sw_step *step, const sw_pass *pass,
                          const sw_tensor *const *in)
{
    const sw_held *held = module->held;
    const sw_tensor *x = sw_view_merge(step, in[0], 0);
    sw_router router = {.settings = &module->net->settings.router,
                        .weight = held[SW_SLOT_ROUTER].weight->tensor,
                        .bias = sw_tensor_of(held[SW_SLOT_ROUTER].bias),
                        .correction = sw_tensor_of(held[SW_SLOT_ROUTER_CORRECTION].weight)};
    const sw_transport_stage *transport = &module->core->stages->transport;

    if (transport->enter != NULL)
        x = transport->enter(transport->context, step, x);
    sw_routing routing = sw_route(&router, step, x);

    if (in[0] == NULL)
        return NULL;
    routing.experts = sw_router_choices(step, routing.experts,
                                        sw_router_places(&module->net->stages->router, step, pass->places));
    if (pass->routers != NULL)
        pass->routers->last = routing.logits;
    const sw_tensor *to_experts[] = {x, routing.experts, routing.weights};
    sw_tensor *y = sw_module_run(module->core, step, pass, to_experts);
    y = sw_view_split_into(step, y, 0, in[0]->dims[0]);
    return module->shared == NULL ? y : sw_op_add(step, y, shared(module, step, pass, in[0]));
}

const sw_module_class sw_class_mixture = {
    .name = "mixture",
    .arguments = {"x_BLD"},
    .forward = forward,
};
