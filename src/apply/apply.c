/*
 * The order of apply (apply/apply.h): meshes and preflight of every part, then each part's phases on a draft,
 * then the ranks agree, then all drafts are committed, which cannot fail.
 */
#include "apply/apply.h"

#include "apply/phases.h"
#include "base/alloc.h"
#include "base/status.h"
#include "parallel/attention.h"

/* ---- drafts ---- */

static void destroy_draft(void *context)
{
    sw_applied *a = context;

    if (a == NULL)
        return;
    sw_ring_destroy(a->ring);
    sw_arena_destroy(a->arena); /* it is in there itself */
}

static sw_status make_draft(sw_applied **out, sw_net *net, const sw_plan *plan, sw_comm *comm,
                            const sw_apply_options *options, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);
    sw_applied *a = arena == NULL ? NULL : sw_arena_zero(arena, 1, sizeof *a);

    if (a == NULL) {
        sw_arena_destroy(arena);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to apply a plan");
    }
    *a = (sw_applied){.arena = arena, .net = net, .plan = plan, .validates = options->validates};
    a->moves = (sw_moves){.arena = arena, .active = &a->active};
    *out = a;
    return sw_active_make(&a->active, plan, comm, err);
}

static sw_status run_phases(sw_applied *a, sw_error *err)
{
    SW_TRY(sw_apply_parameters(a, err));
    SW_TRY(sw_apply_special(a, err));
    SW_TRY(sw_apply_boundaries(a, err));
    SW_TRY(sw_apply_stages(a, err));
    return sw_apply_tied(a, err);
}

/* ---- changing the nets ---- */

static void commit(sw_applied *a)
{
    sw_net *net = a->net;

    for (uint32_t i = 0; i < a->n_parameters; i++) {
        const sw_applied_parameter *p = &a->parameters[i];
        for (uint32_t d = 0; d < p->parameter->n_dims; d++)
            p->parameter->dims[d] = p->dims[d];
        p->parameter->is_deferred = p->is_deferred;
        if (p->parameter->stack != NULL)
            p->parameter->index = p->index;
    }
    for (uint32_t i = 0; i < a->n_numbers; i++)
        *a->numbers[i].at = a->numbers[i].local;
    for (uint32_t i = 0; i < a->n_stages; i++)
        a->stages[i].module->stages = &a->stages[i].stages;
    for (uint32_t i = 0; i < a->n_boundaries; i++) {
        sw_applied_boundary *b = &a->boundaries[i];
        if (b->wrap != NULL)
            b->module->wrap = (sw_module_wrap){b->wrap, b};
    }
    if (a->has_net_stages)
        net->stages = &a->net_stages;
    net->owner = (sw_net_owner){destroy_draft, a};
}

/* ---- all of it ---- */

typedef struct drafts {
    sw_applied **of; /* a part each */
    uint32_t n;
} drafts;

static sw_status draft_all(drafts *d, sw_net *const *parts, const sw_plan *plan, sw_comm *comm,
                           const sw_apply_options *options, sw_error *err)
{
    for (uint32_t i = 0; i < d->n; i++)
        SW_TRY(make_draft(&d->of[i], parts[i], plan, comm, options, err));
    for (uint32_t i = 0; i < d->n; i++)
        SW_TRY(sw_apply_preflight(d->of[i], err));
    for (uint32_t i = 0; i < d->n; i++)
        SW_TRY(run_phases(d->of[i], err));
    return SW_OK;
}

sw_status sw_apply(sw_net *const *parts, uint32_t n_parts, const sw_plan *plan, sw_comm *comm,
                   const sw_apply_options *options, sw_source_shards **shards, sw_error *err)
{
    drafts d = {sw_alloc_zero(n_parts, sizeof(sw_applied *)), n_parts};
    sw_source_shards *made = NULL;
    sw_status status = d.of == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to apply a plan")
                                    : draft_all(&d, parts, plan, comm, options, err);

    *shards = NULL;
    if (status == SW_OK && n_parts > 0 && !options->validates)
        status = sw_source_shards_make(&made, plan, &d.of[0]->active, err);
    status = sw_comm_agree(comm, status, err);
    for (uint32_t i = 0; d.of != NULL && i < n_parts; i++) {
        if (status == SW_OK)
            commit(d.of[i]);
        else
            destroy_draft(d.of[i]);
    }
    if (status == SW_OK)
        *shards = made;
    else
        sw_source_shards_destroy(made);
    sw_free(d.of);
    return status;
}

sw_applied *sw_applied_of(const sw_net *net)
{
    return net->owner.release == destroy_draft ? net->owner.context : NULL;
}

const sw_applied_parameter *sw_applied_parameter_at(const sw_net *net, uint32_t i)
{
    const sw_applied *a = sw_applied_of(net);
    return a == NULL || i >= a->n_parameters ? NULL : &a->parameters[i];
}
