/*
 * A column layer without its row partner leaves its output cut, and the other way round. A partner that is
 * there and whole, or in a boundary of its own beside this one, makes wrong numbers; one that the files lack
 * is half a model.
 */
#include "plan/lint_pair.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/sides.h"

typedef struct pairing {
    sw_plan *plan;
    bool *has_whole; /* per spec: a matrix that may be the missing partner stands in it, or below */
    uint8_t *alone;  /* per spec: the side that it cuts without the other; 0: none */
    sw_map beside;   /* FQN of a parent: all of `alone` below it, attentions and then feed-forwards */
} pairing;

/* A whole matrix that no rule places, or that is whole although its role says a cut. */
static bool has_whole_matrix(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        bool may_be_partner =
            f->role == SW_ROLE_SKIP || f->role == SW_ROLE_COLWISE || f->role == SW_ROLE_ROWWISE;
        if (may_be_partner && f->shape != NULL && f->shape->n_dims >= 2 &&
            f->places.on[SW_ON_TP].kind != SW_PLACE_SHARD &&
            (f->reason == NULL || strcmp(f->reason, "uncovered") == 0))
            return true;
    }
    return false;
}

/* Marks the boundaries round a whole matrix. */
static void mark_whole(pairing *p, const sw_spec *spec)
{
    size_t length = has_whole_matrix(p->plan, spec) ? spec->fqn_length : 0;

    while (length > 0) {
        const sw_spec *above = sw_plan_find_spec(p->plan, spec->fqn, length);
        if (above != NULL)
            p->has_whole[above - p->plan->specs] = true;
        while (length > 0 && spec->fqn[--length] != '.') {
        }
    }
}

static uint8_t alone_in(const sw_plan *plan, const sw_spec *spec)
{
    if (spec->has_fault || spec->is_inserted || sw_spec_partial_outputs(spec) == 0)
        return 0;
    uint32_t sides = sw_spec_sides(plan, spec);
    return sides == SW_CUTS_COLUMNS || sides == SW_CUTS_ROWS ? (uint8_t)sides : 0;
}

static size_t parent_length(const sw_spec *spec)
{
    const char *dot = strrchr(spec->fqn, '.');

    return dot == NULL ? 0 : (size_t)(dot - spec->fqn);
}

/* Halves are of one region only where they are of one type: an attention without its output beside a
 * feed-forward without its columns is half a model. */
static uint32_t shift_of(const sw_spec *spec)
{
    return spec->type == SW_BOUNDARY_ATTENTION ? 0 : 2;
}

static sw_status look(pairing *p, sw_error *err)
{
    const sw_plan *plan = p->plan;
    bool is_new = false;

    p->has_whole = sw_alloc_zero(plan->n_specs + 1, sizeof *p->has_whole);
    p->alone = sw_alloc_zero(plan->n_specs + 1, sizeof *p->alone);
    if (p->has_whole == NULL || p->alone == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints");
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        mark_whole(p, spec);
        p->alone[i] = alone_in(plan, spec);
        if (p->alone[i] == 0)
            continue;
        uint32_t *all = sw_map_put(&p->beside, spec->fqn, parent_length(spec), 0, &is_new);
        if (all == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints");
        *all |= (uint32_t)p->alone[i] << shift_of(spec);
    }
    return SW_OK;
}

static void report(const pairing *p, uint32_t i)
{
    const sw_spec *spec = &p->plan->specs[i];
    const uint32_t *beside = sw_map_find(&p->beside, spec->fqn, parent_length(spec));
    uint32_t sides = beside == NULL ? 0 : *beside >> shift_of(spec) & (SW_CUTS_COLUMNS | SW_CUTS_ROWS);
    bool is_torn = sides == (SW_CUTS_COLUMNS | SW_CUTS_ROWS);
    bool is_wrong = p->plan->strict || p->has_whole[i] || is_torn;
    bool has_column = p->alone[i] == SW_CUTS_COLUMNS;

    (void)sw_plan_fault(
        p->plan, is_wrong ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "unpaired", spec->fqn, spec->fqn_length,
        is_torn
            ? "give both the role replicated in an override (`roles:`), or drop the rule of yours that parts "
              "them"
            : "give the other layer its role in an override (`roles:`), or declare the exit in one",
        "%s-parallel layers without a %s-parallel partner%s, and the exit is a partial sum",
        has_column ? "column" : "row", has_column ? "row" : "column",
        is_torn ? ", which stands in a boundary of its own beside this one" : "");
}

sw_status sw_lint_pairs(sw_plan *plan, sw_error *err)
{
    pairing p = {.plan = plan};
    sw_status status = look(&p, err);

    for (uint32_t i = 0; status == SW_OK && i < plan->n_specs; i++) {
        if (p.alone[i] != 0)
            report(&p, i);
    }
    sw_map_clear(&p.beside);
    sw_free(p.has_whole);
    sw_free(p.alone);
    return status;
}
