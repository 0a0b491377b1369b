/*
 * What a plan file says in two places. A consumer may believe either: a switch that is turned by hand, or a
 * mark that is set where nothing stands behind it, must not pass.
 */
#include "plan/check.h"

#include <string.h>

#include "plan/fault.h"
#include "plan/intern.h"

/* ---- switches ---- */

static bool cuts_sequence(const sw_io *io)
{
    for (uint32_t i = 0; i < io->n; i++) {
        const sw_placement *p = &io->entries[i].places.on[SW_ON_TP];
        if (p->kind == SW_PLACE_SHARD && (p->dim == 0 || p->dim == 1))
            return true;
    }
    return false;
}

/*
 * Follows the plan's switch: overrides choose contracts of their own, towers run without it, and a shared
 * expert gets what its block hands it.
 */
static bool follows_switch(const sw_spec *spec)
{
    return spec->n_overrides == 0 && !spec->is_tower && (spec->in_src.n > 0 || spec->out_dst.n > 0) &&
           !spec->in_moe;
}

static void check_sequence_parallel(sw_plan *work)
{
    uint32_t n_following = 0;
    uint32_t n_cut = 0;

    for (uint32_t i = 0; i < work->n_specs; i++) {
        const sw_spec *s = &work->specs[i];
        bool is_cut = cuts_sequence(&s->in_src) || cuts_sequence(&s->out_dst);
        if (!follows_switch(s))
            continue;
        n_following++;
        n_cut += is_cut;
        if (is_cut && !work->sequence_parallel) {
            (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_switch", s->fqn, s->fqn_length,
                                "make the plan again with --no-sp, or let sequence_parallel be true",
                                "sequence_parallel is false, but what goes in or out is cut along the "
                                "sequence over tp");
        }
    }
    if (work->sequence_parallel && work->tp > 1 && n_following > 0 && n_cut == 0)
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_switch", "", 0,
                            "make the plan again without --no-sp, or let sequence_parallel be false",
                            "sequence_parallel is true, but no boundary gets or hands on a cut sequence");
}

/* ---- overrides ---- */

/* Without derivation every boundary is declared by an override. */
static void check_derived_switch(sw_plan *work, const sw_spec *s)
{
    if (!work->derive && s->n_overrides == 0)
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_switch", s->fqn, s->fqn_length,
                            "make the plan again, or let derived be true",
                            "derived is false, but no override declares this boundary");
}

static void check_override_marks(sw_plan *work, const sw_spec *s)
{
    static const char help[] = "list where the override stands in overrides, or make the plan again";

    if (s->n_overrides > 0)
        return;
    if (s->is_inserted)
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_override", s->fqn, s->fqn_length, help,
                            "marked inserted, and no override touched it");
    for (uint32_t k = 0; k < s->n_params; k++) {
        char fqn[4096];
        if (!work->facts[s->params[k].facts].is_placed)
            continue;
        size_t length = sw_check_fqn(s, &s->params[k], fqn, sizeof fqn);
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_override", fqn, length, help,
                            "marked overridden, and no override touched its boundary");
    }
}

/* ---- experts ---- */

static void check_ep_size(sw_plan *work, const sw_spec *s)
{
    if (s->ep_size != 0 && (work->ep_mode != SW_EP_TP_EXTEND || s->ep_size != work->ep)) {
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "stale_parallel", s->fqn, s->fqn_length,
                            "make the plan again with `shardwright plan`",
                            "ep_size is %u, but the mesh has a derived ep of %u", s->ep_size,
                            work->ep_mode == SW_EP_TP_EXTEND ? work->ep : 1);
    }
}

/* ---- tied names ---- */

/* The boundary of a tensor's name; *is_held: it holds the tensor. NULL: there is none. */
static const sw_spec *boundary_of(const sw_plan *plan, const char *name, bool *is_held)
{
    const char *dot = strrchr(name, '.');
    const char *leaf = dot == NULL ? name : dot + 1;
    const sw_spec *s = sw_plan_find_spec(plan, name, dot == NULL ? 0 : (size_t)(dot - name));

    *is_held = false;
    for (uint32_t k = 0; s != NULL && k < s->n_params && !*is_held; k++)
        *is_held = s->params[k].path_length == strlen(leaf) &&
                   memcmp(s->params[k].path, leaf, s->params[k].path_length) == 0;
    return s;
}

static void check_tied(sw_plan *work)
{
    static const char help[] = "make the plan again with `shardwright plan`";
    bool is_held = false;

    for (uint32_t i = 0; i < work->n_tied; i++) {
        const sw_tied_pair *pair = &work->tied[i];
        (void)boundary_of(work, pair->first, &is_held);
        if (!is_held)
            (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "tied_conflict", pair->first, strlen(pair->first),
                                help, "tied lists it as stored, and no boundary holds it");
        const sw_spec *other = boundary_of(work, pair->second, &is_held);
        if (!is_held && (other == NULL || !other->is_tied_alias))
            (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "tied_conflict", pair->second, strlen(pair->second),
                                help, "tied to %.200s, and no boundary holds it or is its tied_alias",
                                pair->first);
    }
}

static bool is_second_name(const sw_plan *plan, const sw_spec *spec)
{
    bool is_held = false;

    for (uint32_t i = 0; i < plan->n_tied; i++) {
        if (boundary_of(plan, plan->tied[i].second, &is_held) == spec && !is_held)
            return true;
    }
    return false;
}

static void check_alias(sw_plan *work, const sw_spec *s)
{
    if (s->is_tied_alias && !is_second_name(work, s))
        (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "tied_conflict", s->fqn, s->fqn_length,
                            "make the plan again with `shardwright plan`",
                            "marked tied_alias, and tied lists no tensor of it that is stored elsewhere");
}

void sw_check_marks(sw_plan *work)
{
    check_sequence_parallel(work);
    check_tied(work);
    for (uint32_t i = 0; i < work->n_specs; i++) {
        const sw_spec *s = &work->specs[i];
        check_derived_switch(work, s);
        check_override_marks(work, s);
        check_ep_size(work, s);
        check_alias(work, s);
    }
}
