/*
 * Lints of one boundary's declarations. They look at the boundary alone, so that a derived plan, an override
 * and a plan file are held to the same.
 */
#include "plan/lint_contract.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/status.h"
#include "plan/fault.h"

static void check_contract(sw_plan *plan, const sw_spec *spec)
{
    if (spec->in_dst.n > 0 && spec->in_src.n == 0)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "half_declared", spec->fqn, spec->fqn_length,
                            "declare in_src: how the input arrives",
                            "in_dst is declared and in_src is empty");
}

static bool is_named(const sw_io *io, const char *name)
{
    for (uint32_t i = 0; i < io->n; i++) {
        if (strcmp(io->entries[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A tensor that is wanted in a layout, and does not arrive under that name, would be redistributed by nobody.
 */
static void check_names(sw_plan *plan, const sw_spec *spec, bool is_input)
{
    const sw_io *src = is_input ? &spec->in_src : &spec->out_src;
    const sw_io *dst = is_input ? &spec->in_dst : &spec->out_dst;
    const char *side = is_input ? "in" : "out";
    const char *names[64];
    size_t n = 0;

    for (; n < src->n && n < SW_COUNT(names); n++)
        names[n] = src->entries[n].name;
    for (uint32_t i = 0; i < dst->n && n > 0; i++) {
        const char *name = dst->entries[i].name;
        char help[256];
        if (is_named(src, name))
            continue;
        const char *near_ = n == 1 ? names[0] : sw_nearest(name, names, n);
        (void)snprintf(help, sizeof help,
                       near_ == NULL ? "use the same names on both sides" : "did you mean '%.100s'?", near_);
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "names_differ", spec->fqn, spec->fqn_length, help,
                            "%s_dst names '%.100s', and %s_src does not", side, name, side);
    }
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

/* Logits are products, and token ids choose rows: a vector does neither, whatever a rule calls it. */
static void check_vocabulary(sw_plan *plan, const sw_spec *spec)
{
    bool is_head = spec->type == SW_BOUNDARY_LM_HEAD;
    const sw_spec_param *vector = NULL;

    if (spec->is_tied_alias) /* its matrix is the other one's */
        return;
    for (uint32_t i = 0; (is_head || spec->type == SW_BOUNDARY_EMBED) && i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        if (f->shape == NULL || f->role != (is_head ? SW_ROLE_LM_HEAD : SW_ROLE_EMBED))
            continue;
        if (f->shape->n_dims >= 2)
            return;
        vector = vector == NULL ? &spec->params[i] : vector;
    }
    if (vector != NULL)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "role_shape", spec->fqn, spec->fqn_length,
                            "give the role to the matrix", "'%.*s' has the role %s and is a vector",
                            (int)vector->path_length, vector->path, is_head ? "lm_head" : "embed");
}

void sw_lint_contract(sw_plan *plan, const sw_spec *spec)
{
    check_contract(plan, spec);
    check_names(plan, spec, true);
    check_names(plan, spec, false);
    check_injection(plan, spec);
    check_loss(plan, spec);
    check_module(plan, spec);
    check_vocabulary(plan, spec);
}
