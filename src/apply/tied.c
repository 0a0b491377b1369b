/*
 * Phase D: tied weights. A tied pair is one parameter of the net under two names: the optimizer sees it once,
 * and both uses add to one gradient. The plan names the pairs; a plan that names none gets those that the net
 * has. Both ends must be cut alike.
 */
#include "apply/phases.h"

#include <string.h>

#include "base/status.h"
#include "plan/check.h"

enum { NAME = 1024 };

static const sw_applied_parameter *find(const sw_applied *a, const char *fqn)
{
    for (uint32_t i = 0; i < a->net->n_parameters; i++) {
        if (strcmp(a->parameters[i].parameter->fqn, fqn) == 0)
            return &a->parameters[i];
    }
    return NULL;
}

/* The pair of a net whose head has no weight of its own. */
static bool is_tied(const sw_net *net)
{
    return net->head->held[SW_SLOT_HEAD].weight == NULL && net->held[SW_SLOT_TOKENS].weight != NULL;
}

/* What the plan says of a tensor by its name; NULL: nothing. */
static const sw_facts *planned(const sw_plan *plan, const char *fqn)
{
    char name[NAME];

    for (uint32_t s = 0; s < plan->n_specs; s++) {
        const sw_spec *spec = &plan->specs[s];
        for (uint32_t i = 0; i < spec->n_params; i++) {
            (void)sw_check_fqn(spec, &spec->params[i], name, sizeof name);
            if (strcmp(name, fqn) == 0)
                return &plan->facts[spec->params[i].facts];
        }
    }
    return NULL;
}

static sw_status refuse_cuts(const sw_tied_pair *pair, sw_error *err)
{
    return SW_FAIL(err, SW_E_PLAN, "give both names the same placement",
                   "%s and %s are tied but not cut alike", pair->first, pair->second);
}

/* A checkpoint may have both names: the second is the first once more, and nothing is read of it. */
static sw_status check_copy(const sw_applied *a, const sw_applied_parameter *first, const sw_tied_pair *pair,
                            sw_error *err)
{
    const sw_facts *facts = planned(a->plan, pair->second);
    sw_placement places[SW_GRID_MAX_AXES];
    sw_tensor_layout copy;

    if (facts == NULL)
        return SW_OK;
    sw_active_places(&first->layout.grid, &facts->places, places);
    SW_TRY(sw_tensor_layout_make(&copy, &first->layout.grid, first->layout.n_dims, first->layout.dims, places,
                                 err));
    return sw_tensor_layout_equal(&first->layout, &copy) ? SW_OK : refuse_cuts(pair, err);
}

static sw_status check_pair(const sw_applied *a, const sw_tied_pair *pair, sw_error *err)
{
    const sw_applied_parameter *first = find(a, pair->first);
    const sw_applied_parameter *second = find(a, pair->second);

    if (first == NULL) /* in another part */
        return SW_OK;
    if (second == NULL) /* one parameter, or the other end is in another part */
        return check_copy(a, first, pair, err);
    if (first->parameter->dtype != second->parameter->dtype ||
        !sw_tensor_layout_equal(&first->layout, &second->layout))
        return refuse_cuts(pair, err);
    return SW_FAIL(err, SW_E_PLAN, "set tie_word_embeddings as the checkpoint has it",
                   "%s and %s are tied in the plan and two parameters in the net", pair->first, pair->second);
}

sw_status sw_apply_tied(sw_applied *a, sw_error *err)
{
    for (uint32_t i = 0; i < a->plan->n_tied; i++)
        SW_TRY(check_pair(a, &a->plan->tied[i], err));
    if (a->plan->n_tied > 0 || !is_tied(a->net))
        return SW_OK;
    const sw_applied_parameter *table = find(a, a->net->held[SW_SLOT_TOKENS].weight->fqn);
    return table == NULL ? SW_OK
                         : check_pair(a, &(sw_tied_pair){table->parameter->fqn, a->net->head->fqn}, err);
}
