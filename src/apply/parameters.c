/*
 * Phase A: each parameter's part of this rank, by the arithmetic of mesh/shard.h, and the numbers of modules
 * that are divided with it. What the plan lists and the net does not have is what the net leaves alone, of
 * which buffers may be in the plan only; the other way round is refused.
 */
#include "apply/phases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "dtensor/share.h"
#include "plan/check.h"

enum { NAME = 1024 };

/* ---- which parameter is meant ---- */

/* net->parameters, then net->stacks. */
static sw_parameter *nth(const sw_net *net, uint32_t i)
{
    return i < net->n_parameters ? &net->parameters[i] : &net->stacks[i - net->n_parameters];
}

static sw_status begin(sw_applied *a, sw_map *by_name, sw_error *err)
{
    a->n_parameters = a->net->n_parameters + a->net->n_stacks;
    a->parameters = sw_arena_zero(a->arena, a->n_parameters, sizeof *a->parameters);
    if (a->parameters == NULL)
        return sw_arena_fail(a->arena, "cut parameters", err);
    for (uint32_t i = 0; i < a->n_parameters; i++) {
        sw_parameter *p = nth(a->net, i);
        bool is_new = false;
        a->parameters[i].parameter = p;
        if (i < a->net->n_parameters && sw_map_put(by_name, p->fqn, strlen(p->fqn), i, &is_new) == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the names of parameters");
    }
    return SW_OK;
}

/* ---- cutting ---- */

/* Routed experts under TP-extend-EP lie on a mesh of their own. */
static bool is_on_expert_mesh(const sw_applied *a, const sw_spec *spec, const sw_spec_param *planned)
{
    static const char prefix[] = "experts.";
    size_t length = sizeof prefix - 1;

    return a->active.expert_grid.n_axes > 0 && spec->ep_size > 1 && planned->path_length > length &&
           memcmp(planned->path, prefix, length) == 0;
}

/* What is cut: a parameter's dims, over a grid. */
typedef struct cutting {
    const sw_grid *grid;
    sw_grid_coord at;
    sw_placement places[SW_GRID_MAX_AXES];
} cutting;

static cutting cutting_of(const sw_applied *a, const sw_spec *spec, const sw_spec_param *planned)
{
    bool is_expert = is_on_expert_mesh(a, spec, planned);
    cutting c = {.grid = is_expert ? &a->active.expert_grid : &a->active.grid,
                 .at = is_expert ? a->active.expert_at : a->active.at};

    sw_active_places(c.grid, &a->plan->facts[planned->facts].places, c.places);
    return c;
}

static sw_status cut(const sw_applied *a, sw_applied_parameter *p, const cutting *c, const sw_facts *facts,
                     sw_error *err)
{
    const sw_parameter *parameter = p->parameter;

    if (p->facts != NULL)
        return SW_FAIL(err, SW_E_PLAN, "make the plan again", "%s: planned twice", parameter->fqn);
    p->facts = facts;
    p->at = c->at;
    p->index = parameter->index;
    p->is_deferred = facts->is_deferred || (facts->is_rank0_only && a->active.coord.at[SW_AXIS_TP] > 0);
    sw_status status =
        sw_tensor_layout_make(&p->layout, c->grid, parameter->n_dims, parameter->dims, c->places, err);
    if (status == SW_OK)
        sw_tensor_layout_local(&p->layout, c->at, p->dims);
    else
        sw_error_context(err, "%s", parameter->fqn);
    return status;
}

/* A parameter by a name; NULL when the net has none. */
static sw_applied_parameter *find(sw_applied *a, const sw_map *by_name, const char *name, size_t length)
{
    const uint32_t *at = sw_map_find(by_name, name, length);
    return at == NULL ? NULL : &a->parameters[*at];
}

/* ---- experts one by one ---- */

static const sw_ep_stack *stack_of(const sw_spec *spec, uint32_t param)
{
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        if (spec->stacks[i].param == param)
            return &spec->stacks[i];
    }
    return NULL;
}

/* One of them: all of it is here, or nothing. */
static sw_status place_member(sw_applied *a, sw_applied_parameter *p, const cutting *stack, sw_range own,
                              const sw_facts *facts, sw_error *err)
{
    uint64_t number = p->parameter->index;
    cutting c = *stack;

    for (uint32_t k = 0; k < c.grid->n_axes; k++) {
        if (c.places[k].kind == SW_PLACE_SHARD && --c.places[k].dim < 0)
            c.places[k] = (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    }
    SW_TRY(cut(a, p, &c, facts, err));
    p->is_elsewhere = number < own.begin || number >= own.end;
    p->index = p->is_elsewhere ? UINT64_MAX : number - own.begin;
    if (p->is_elsewhere)
        p->dims[0] = 0;
    return SW_OK;
}

/* The experts of a stack that are here: one run of them. */
static sw_status own_experts(const sw_applied *a, const sw_applied_parameter *stack, sw_range *out,
                             sw_error *err)
{
    const sw_share mine = {.holder = stack->at};
    sw_rows rows;

    SW_TRY(sw_tensor_layout_rows(&rows, &stack->layout, 0, &mine, a->arena, err));
    if (rows.n > 1)
        return SW_FAIL(err, SW_E_PLAN, "cut experts over ep by S(0)", "%s: experts of a rank are not one run",
                       stack->parameter->fqn);
    *out = rows.n == 0 ? (sw_range){0, 0} : rows.ranges[0];
    return SW_OK;
}

static sw_status cut_stack(sw_applied *a, const sw_spec *spec, const sw_spec_param *planned,
                           const sw_ep_stack *named, const sw_map *by_name, sw_error *err)
{
    const sw_facts *facts = &a->plan->facts[planned->facts];
    cutting c = cutting_of(a, spec, planned);
    sw_applied_parameter *stack = NULL;
    sw_range own = {0, 0};
    char name[NAME];

    for (uint32_t i = 0; i < named->n; i++) {
        int length =
            snprintf(name, sizeof name, "%s.%s%" PRIu32 "%s", spec->fqn, named->prefix, i, named->suffix);
        sw_applied_parameter *p = length < NAME ? find(a, by_name, name, (size_t)length) : NULL;
        if (p == NULL && length < NAME && sw_net_leaves_alone(a->net, name))
            return SW_OK;
        if (p == NULL || p->parameter->stack == NULL)
            return SW_FAIL(err, SW_E_PLAN, "make the plan of this model", "%s: the net stacks no such expert",
                           name);
        if (i == 0) {
            stack = &a->parameters[a->net->n_parameters + (p->parameter->stack - a->net->stacks)];
            SW_TRY(cut(a, stack, &c, facts, err));
            SW_TRY(own_experts(a, stack, &own, err));
        }
        SW_TRY(place_member(a, p, &c, own, facts, err));
    }
    return SW_OK;
}

/* A stack that the plan does not name is cut as its members are, a dim further. */
static sw_status cut_unnamed(sw_applied *a, sw_applied_parameter *stack, sw_error *err)
{
    const sw_applied_parameter *member = NULL;

    for (uint32_t i = 0; i < a->net->n_parameters && member == NULL; i++) {
        if (a->parameters[i].parameter->stack == stack->parameter)
            member = &a->parameters[i];
    }
    if (stack->facts != NULL || member == NULL)
        return SW_OK;
    cutting c = {.grid = &member->layout.grid, .at = member->at};
    for (uint32_t k = 0; k < c.grid->n_axes; k++) {
        c.places[k] = member->layout.on[k];
        c.places[k].dim += c.places[k].kind == SW_PLACE_SHARD ? 1 : 0;
    }
    return cut(a, stack, &c, member->facts, err);
}

/* ---- what the plan lists ---- */

static sw_status cut_planned(sw_applied *a, const sw_spec *spec, uint32_t i, const sw_map *by_name,
                             sw_error *err)
{
    const sw_spec_param *planned = &spec->params[i];
    const sw_facts *facts = &a->plan->facts[planned->facts];
    const sw_ep_stack *stack = stack_of(spec, i);
    char name[NAME];
    size_t length = sw_check_fqn(spec, planned, name, sizeof name);
    sw_applied_parameter *p = find(a, by_name, name, length);
    cutting c = cutting_of(a, spec, planned);

    if (stack != NULL)
        return cut_stack(a, spec, planned, stack, by_name, err);
    if (p != NULL)
        return cut(a, p, &c, facts, err);
    if (facts->role == SW_ROLE_SKIP || sw_net_leaves_alone(a->net, name))
        return SW_OK; /* the net makes its own, or does without */
    return SW_FAIL(err, SW_E_PLAN, "make the plan of this model", "%s: the net has no such parameter", name);
}

static sw_status check_all(const sw_applied *a, sw_error *err)
{
    for (uint32_t i = 0; i < a->net->n_parameters; i++) {
        if (a->parameters[i].facts == NULL)
            return SW_FAIL(err, SW_E_PLAN, "make the plan of this model", "%s: the plan does not place it",
                           a->parameters[i].parameter->fqn);
    }
    return SW_OK;
}

/* ---- numbers ---- */

/* What is divided when the plan names only queries' heads: as many keys as queries go with them. */
static bool follows_heads(const sw_module *module)
{
    const sw_net_settings *s = &module->net->settings;
    return s->kv_heads == s->heads;
}

static sw_status add_number(sw_applied *a, sw_module *module, const char *name, int64_t local, sw_error *err)
{
    int64_t *at = sw_module_attribute(module, name);

    if (at == NULL)
        return SW_FAIL(err, SW_E_PLAN, "leave it out of tp_divide_attrs",
                       "%s: class %s has no attribute '%.64s'", module->fqn, module->class->name, name);
    a->numbers[a->n_numbers++] = (sw_applied_number){at, local};
    return SW_OK;
}

static sw_status divide_numbers(sw_applied *a, const sw_spec *spec, sw_error *err)
{
    sw_module *module = sw_apply_module(a, spec);
    bool names_keys = false;
    int64_t heads = 0;

    for (uint32_t i = 0; i < spec->n_tp_local && module != NULL; i++) {
        const sw_tp_local *number = &spec->tp_local[i];
        SW_TRY(add_number(a, module, number->name, number->local, err));
        names_keys = names_keys || strcmp(number->name, "num_key_value_heads") == 0;
        heads = strcmp(number->name, "num_heads") == 0 ? number->local : heads;
    }
    if (heads == 0)
        return SW_OK;
    if (!names_keys && follows_heads(module) && sw_module_attribute(module, "num_key_value_heads") != NULL)
        SW_TRY(add_number(a, module, "num_key_value_heads", heads, err));
    if (sw_module_attribute(module, "first_head") == NULL)
        return SW_OK;
    return add_number(a, module, "first_head", heads * a->active.coord.at[SW_AXIS_TP], err);
}

/* ---- all of it ---- */

static sw_status cut_all(sw_applied *a, sw_map *by_name, sw_error *err)
{
    const sw_plan *plan = a->plan;
    size_t n_numbers = 0;

    SW_TRY(begin(a, by_name, err));
    for (uint32_t s = 0; s < plan->n_specs; s++) {
        const sw_spec *spec = &plan->specs[s];
        n_numbers += spec->n_tp_local + 2; /* and two that follow */
        for (uint32_t i = 0; i < spec->n_params; i++)
            SW_TRY(cut_planned(a, spec, i, by_name, err));
    }
    SW_TRY(check_all(a, err));
    for (uint32_t i = a->net->n_parameters; i < a->n_parameters; i++)
        SW_TRY(cut_unnamed(a, &a->parameters[i], err));
    a->numbers = sw_arena_zero(a->arena, n_numbers, sizeof *a->numbers);
    if (a->numbers == NULL)
        return sw_arena_fail(a->arena, "numbers of modules", err);
    for (uint32_t s = 0; s < plan->n_specs; s++)
        SW_TRY(divide_numbers(a, &plan->specs[s], err));
    return SW_OK;
}

sw_status sw_apply_parameters(sw_applied *a, sw_error *err)
{
    sw_map by_name = {0};
    sw_status status = cut_all(a, &by_name, err);

    sw_map_clear(&by_name);
    return status;
}
