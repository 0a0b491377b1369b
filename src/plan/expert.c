/*
 * Experts. A stack's sources must be numbered 0..n-1 and have one shape: a hole is a fault, not a smaller
 * model. The three stores: one by one (stacked here), batched [E, ...], and rows of all experts in one matrix
 * (seen as [E, rows, columns] by the placement).
 */
#include "plan/expert.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/classify.h"
#include "plan/derive.h"
#include "plan/fault.h"
#include "plan/intern.h"

/* The parts of "experts.12.gate_proj.weight": lengths of "experts." and of all before ".gate_proj.weight". */
static bool split_path(const char *path, size_t *prefix, size_t *suffix, uint64_t *number)
{
    const char *hit = strstr(path, "experts.");

    if (hit == NULL)
        return false;
    const char *digits = hit + strlen("experts.");
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 7 || digits[n] != '.')
        return false;
    *prefix = (size_t)(digits - path);
    *suffix = *prefix + n;
    *number = strtoull(digits, NULL, 10);
    return true;
}

/* "experts.gate_proj" for ".gate_proj.weight"; other leaves keep their name:
 * "experts.gate_proj.weight_scale_inv". */
static char *stacked_path(sw_plan *plan, const char *path, size_t prefix, const char *suffix)
{
    size_t length = strlen(suffix);
    size_t leaf = strlen(".weight");

    if (length > leaf && strcmp(suffix + length - leaf, ".weight") == 0)
        length -= leaf;
    return sw_arena_format(plan->arena, "%.*s%.*s", (int)(prefix - 1), path, (int)length, suffix);
}

static sw_ep_stack *find_stack(const sw_plan *plan, sw_spec *spec, uint32_t param)
{
    uint32_t pattern = plan->model->params[param].pattern;

    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        if (plan->model->params[spec->stacks[i].first_param].pattern == pattern)
            return &spec->stacks[i];
    }
    return NULL;
}

static sw_status start_stack(sw_plan *plan, sw_spec *spec, uint32_t param, const char *path, size_t prefix,
                             size_t suffix, sw_ep_stack **out, sw_error *err)
{
    sw_ep_stack stack = {.first_param = param, .param = spec->n_params};

    stack.path = stacked_path(plan, path, prefix, path + suffix);
    stack.prefix = sw_arena_copy(plan->arena, path, prefix);
    stack.suffix = path + suffix;
    if (stack.path == NULL || stack.prefix == NULL ||
        !sw_plan_grow(plan->arena, (void **)&spec->stacks, &spec->stacks_capacity, spec->n_stacks,
                      sizeof *spec->stacks))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the experts of %s", spec->fqn);
    spec->stacks[spec->n_stacks] = stack;
    *out = &spec->stacks[spec->n_stacks++];
    return sw_spec_add_param(
        plan, spec, (sw_spec_param){stack.path, (uint32_t)strlen(stack.path), UINT32_MAX, UINT32_MAX}, err);
}

sw_status sw_expert_stack(sw_plan *plan, sw_spec *spec, uint32_t param, const char *path, bool *was_stacked,
                          sw_error *err)
{
    size_t prefix = 0;
    size_t suffix = 0;
    uint64_t number = 0;

    *was_stacked = false;
    if (spec->type != SW_BOUNDARY_MOE_MLP || plan->ep_mode == SW_EP_NONE ||
        sw_class_of(plan, param)->role != SW_ROLE_MOE_EXPERT || !split_path(path, &prefix, &suffix, &number))
        return SW_OK;
    *was_stacked = true;
    sw_ep_stack *stack = find_stack(plan, spec, param);
    if (stack == NULL)
        SW_TRY(start_stack(plan, spec, param, path, prefix, suffix, &stack, err));
    const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
    const sw_tensor_entry *first = sw_model_tensor(plan->model, stack->first_param);
    if (number != stack->n) {
        (void)sw_plan_fault(
            plan, SW_SEVERITY_ERROR, "expert_gap", t->name, t->name_length,
            "check that every shard of the checkpoint is there",
            "experts must be numbered from 0 without a gap to be stacked, and number %u is missing",
            stack->n);
    }
    if (t->shape != first->shape || t->dtype != first->dtype)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "expert_shape", t->name, t->name_length,
                            "experts of one projection must have one shape and dtype to be stacked",
                            "shape or dtype differs from %s", first->name);
    stack->n = (uint32_t)number + 1;
    if (plan->stacked_in == NULL)
        plan->stacked_in = sw_arena_zero(plan->arena, plan->model->n_params, sizeof *plan->stacked_in);
    if (plan->stacked_in == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the experts of %s", spec->fqn);
    plan->stacked_in[param] = (uint32_t)(spec - plan->specs) + 1;
    return SW_OK;
}

static sw_status finish_stack(sw_plan *plan, sw_spec *spec, sw_ep_stack *stack, sw_error *err)
{
    const sw_shape *one = sw_model_tensor(plan->model, stack->first_param)->shape;
    uint64_t dims[SW_MAX_DIMS + 1];
    uint32_t fault = UINT32_MAX;

    if (one == NULL || one->n_dims >= SW_MAX_DIMS) {
        const sw_tensor_entry *t = sw_model_tensor(plan->model, stack->first_param);
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_unknown", t->name, t->name_length,
                            "add the shard files or a params.tsv", "its shape is not known");
        spec->params[stack->param].facts = 0;
        return SW_OK;
    }
    dims[0] = stack->n;
    memcpy(dims + 1, one->dims, one->n_dims * sizeof *dims);
    const sw_shape *stacked = sw_plan_shape(plan, dims, one->n_dims + 1);
    if (stacked == NULL && sw_dims_fit(dims, one->n_dims + 1))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the experts of %s", spec->fqn);
    if (stacked == NULL)
        return SW_FAIL(err, SW_E_LIMIT, "the number of elements must fit 64 bits", "%s.%s: shape overflows",
                       spec->fqn, stack->path);
    SW_TRY(sw_derive_facts(plan, spec, stack->first_param, stacked, &spec->params[stack->param].facts, &fault,
                           err));
    spec->has_fault = spec->has_fault || fault != UINT32_MAX;
    return SW_OK;
}

sw_status sw_expert_finish(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        for (uint32_t k = 0; k < spec->n_stacks; k++)
            SW_TRY(finish_stack(plan, spec, &spec->stacks[k], err));
    }
    return SW_OK;
}

static void set_tp(sw_io *io, sw_placement_kind kind, int32_t dim)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if ((io->entries[i].places.present & (1U << SW_ON_TP)) != 0)
            io->entries[i].places.on[SW_ON_TP] = (sw_placement){.kind = kind, .dim = dim};
    }
}

static void set_all(sw_spec *spec, sw_placement_kind in_src, sw_placement_kind in_dst,
                    sw_placement_kind out_src, sw_placement_kind out_dst)
{
    set_tp(&spec->in_src, in_src, in_src == SW_PLACE_SHARD ? 1 : 0);
    set_tp(&spec->in_dst, in_dst, in_dst == SW_PLACE_SHARD ? 1 : 0);
    set_tp(&spec->out_src, out_src, out_src == SW_PLACE_SHARD ? 1 : 0);
    set_tp(&spec->out_dst, out_dst, out_dst == SW_PLACE_SHARD ? 1 : 0);
}

/* A batched store whose names the planner knows; others are aware of ep by construction. */
static bool has_batched(const sw_plan *plan, const sw_spec *spec)
{
    static const char *const leaves[] = {"gate_up_proj", "gate_and_up_projs", "down_proj",
                                         "down_projs",   "gate_proj",         "up_proj"};

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const char *leaf = p->path + (p->path_length > 8 ? 8 : 0);
        if (strncmp(p->path, "experts.", 8) != 0 || plan->facts[p->facts].shape->n_dims < 3)
            continue;
        for (size_t k = 0; k < SW_COUNT(leaves); k++) {
            if (strcmp(leaf, leaves[k]) == 0)
                return true;
        }
    }
    return false;
}

sw_status sw_expert_contract(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    sw_placement_kind arrives = plan->sequence_parallel ? SW_PLACE_SHARD : SW_PLACE_REPLICATE;

    (void)err;
    if (spec->type == SW_BOUNDARY_MOE_MLP && plan->ep_mode == SW_EP_TP_EXTEND) {
        /* An identity on slices of the sequence; tokens that arrive whole are sliced, so that none is sent
         * twice. */
        set_all(spec, arrives, SW_PLACE_SHARD, SW_PLACE_SHARD, arrives);
        spec->ep_size = plan->ep;
        if (spec->n_stacks > 0 || has_batched(plan, spec))
            spec->region_dispatch = -1;
    } else if (spec->in_moe && spec->type == SW_BOUNDARY_MLP) {
        if (plan->ep_mode == SW_EP_TP_EXTEND) /* the block passes slices: gather and reduce-scatter here */
            set_all(spec, SW_PLACE_SHARD, SW_PLACE_REPLICATE, SW_PLACE_PARTIAL, SW_PLACE_SHARD);
        else /* the block has gathered, and reduces its output once for both */
            set_all(spec, SW_PLACE_REPLICATE, SW_PLACE_REPLICATE, SW_PLACE_PARTIAL, SW_PLACE_PARTIAL);
    }
    return SW_OK;
}

bool sw_plan_has_experts(const sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        if (plan->specs[i].type == SW_BOUNDARY_MOE_MLP)
            return true;
    }
    return false;
}
