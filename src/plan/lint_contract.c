/*
 * Lints of one boundary's declarations. They look at the boundary alone, so that a derived plan, an override
 * and a plan file are held to the same.
 */
#include "plan/lint_contract.h"

#include "plan/fault.h"

static void check_contract(sw_plan *plan, const sw_spec *spec)
{
    if (spec->in_dst.n > 0 && spec->in_src.n == 0)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "half_declared", spec->fqn, spec->fqn_length,
                            "declare in_src: how the input arrives",
                            "in_dst is declared and in_src is empty");
}

/* What is put into a boundary is put in whole, and its author says on what it runs. */
static void check_injection(sw_plan *plan, const sw_spec *spec)
{
    bool injects = spec->inner_wrapper != NULL || spec->local_compute != NULL;
    if ((spec->inner_wrapper == NULL) != (spec->inner_target == NULL))
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "injection", spec->fqn, spec->fqn_length,
                            "give both inner_target and inner_wrapper, or neither",
                            "inner_target and inner_wrapper come as a pair");
    if (injects && spec->region_dispatch < 0)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "injection", spec->fqn, spec->fqn_length,
                            "add region_dispatch: false (the region is a black box) or true",
                            "an injection needs an explicit region_dispatch");
    if (!injects && spec->region_dispatch > 0)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "injection", spec->fqn, spec->fqn_length,
                            "give an inner_wrapper or local_compute, or remove region_dispatch",
                            "region_dispatch: true without an injection");
    if (!injects && (spec->inner_first_input || spec->inner_out_src.is_declared))
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "injection", spec->fqn, spec->fqn_length,
                            "give an inner_wrapper, or remove inner_out_src",
                            "inner_out_src speaks of a wrapped child, and nothing is wrapped");
}

/* The loss reads what the head hands on: cut logits under loss parallel, whole ones without. */
static void check_loss(sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0;
         spec->type == SW_BOUNDARY_LM_HEAD && spec->is_terminal && plan->tp > 1 && i < spec->out_dst.n; i++) {
        bool is_cut = spec->out_dst.entries[i].places.on[SW_ON_TP].kind == SW_PLACE_SHARD;
        if (is_cut != plan->loss_parallel) {
            (void)sw_plan_fault(
                plan, SW_SEVERITY_ERROR, "loss_contract", spec->fqn, spec->fqn_length,
                is_cut ? "use --loss-parallel, or let out_dst be replicate"
                       : "leave --loss-parallel out, or let out_dst be shard of the last dim",
                is_cut ? "the logits leave cut along the vocabulary, and the loss expects them whole"
                       : "the logits leave whole, and a vocabulary-parallel loss would count them tp times");
        }
    }
}

/* A boundary must stand on a module of the model (seed: local attributes are finalised on existing modules
 * only). */
static void check_module(sw_plan *plan, const sw_spec *spec)
{
    if (spec->module == SW_NO_MODULE && !spec->is_tied_alias && spec->n_params == 0)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "not_in_model", spec->fqn, spec->fqn_length,
                            "make the plan again for this model", "the model has no module of this name");
}

void sw_lint_contract(sw_plan *plan, const sw_spec *spec)
{
    check_contract(plan, spec);
    check_injection(plan, spec);
    check_loss(plan, spec);
    check_module(plan, spec);
}
