/*
 * Phase C, routers: which tokens those of this rank see. A mixture's tokens may be cut over tp, or be the
 * same on ranks of tp and ep; then its router's gradient is a sum over those ranks, and that of the auxiliary
 * loss must count once.
 */
#include "apply/phases.h"

#include <string.h>

#include "base/status.h"
#include "comm/collective.h"
#include "mesh/shard.h"
#include "parallel/collective_node.h"

enum { MOST_SAME = 2 }; /* tp and ep */

typedef struct routers {
    const sw_group *tokens;          /* that have other tokens: dp and cp */
    const sw_group *cut;             /* that share out the tokens of a pass; NULL: nobody does */
    const sw_group *same[MOST_SAME]; /* that see the same ones, and sum the router's gradient */
    uint32_t n_same;
} routers;

/* ---- the stage ---- */

/* Places of this rank's share of each row, without gaps. */
static const sw_tensor *take_places(void *context, sw_step *step, const sw_tensor *places)
{
    const routers *r = context;
    sw_range mine = sw_shard_range(places->dims[1], r->cut->size, r->cut->index);
    const uint64_t dims[] = {places->dims[0], mine.end - mine.begin};
    sw_tensor *out = sw_step_tensor(step, SW_DTYPE_I32, 2, dims);

    for (uint64_t row = 0; out != NULL && row < dims[0]; row++)
        memcpy((int32_t *)sw_tensor_data(out) + row * dims[1],
               (const int32_t *)sw_tensor_data(places) + row * places->dims[1] + mine.begin,
               (size_t)dims[1] * sizeof(int32_t));
    return out;
}

static sw_status count(void *context, sw_step *step, double *counts, uint64_t n)
{
    const routers *r = context;

    (void)step;
    sw_all_reduce(r->tokens, n, SW_DTYPE_F64, counts, counts);
    if (r->cut != NULL)
        sw_all_reduce(r->cut, n, SW_DTYPE_F64, counts, counts);
    return SW_OK;
}

static const sw_tensor *look_once(void *context, sw_step *step, const sw_tensor *logits)
{
    const routers *r = context;

    for (uint32_t i = 0; i < r->n_same; i++)
        logits = sw_once_node(step, r->same[i], logits);
    return logits;
}

/* Ranks that share out the tokens have one loss; those with other tokens have summands of it. */
static sw_tensor *sum_shares(void *context, sw_step *step, sw_tensor *sum)
{
    const routers *r = context;
    return sw_sum_node(step, r->cut, sum, SW_SUM_FORWARD);
}

/* ---- what the plan says ---- */

/* How the tokens of a mixture lie; false: no boundary says it, they come as they are. */
static bool find_places(const sw_applied *a, const sw_module *mixture, sw_placement *out)
{
    for (uint32_t i = 0; i < a->n_boundaries; i++) {
        const sw_io *io = &a->boundaries[i].spec->in_dst;
        if (a->boundaries[i].module != mixture || io->n == 0)
            continue;
        sw_active_places(&a->active.grid, &io->entries[0].places, out);
        return true;
    }
    return false;
}

static bool is_summed(const sw_applied *a, const sw_parameter *router, sw_axis axis)
{
    for (uint32_t i = 0; i < a->net->n_parameters; i++) {
        const sw_facts *facts = a->parameters[i].parameter == router ? a->parameters[i].facts : NULL;
        for (uint32_t k = 0; facts != NULL && k < facts->grad.n; k++) {
            if (facts->grad.sums[k].axis == axis)
                return true;
        }
    }
    return false;
}

static routers routers_of(const sw_applied *a, const sw_module *mixture)
{
    const sw_comm *comm = a->active.comm;
    const sw_grid *grid = &a->active.grid;
    routers r = {.tokens = sw_comm_group(comm, SW_GROUP_DP_CP)};
    sw_placement places[SW_GRID_MAX_AXES];
    bool is_known = find_places(a, mixture, places);

    for (uint32_t k = 0; k < grid->n_axes && is_known; k++) {
        bool is_tp = grid->axis[k] == SW_AXIS_TP;
        const sw_group *group = sw_comm_group(comm, is_tp ? SW_GROUP_TP : SW_GROUP_EP);
        if (grid->axis[k] == SW_AXIS_CP)
            continue;
        if (places[k].kind == SW_PLACE_SHARD)
            r.cut = group;
        else if (is_summed(a, mixture->held[SW_SLOT_ROUTER].weight, grid->axis[k]))
            r.same[r.n_same++] = group;
    }
    return r;
}

static bool is_equal(const routers *a, const routers *b)
{
    return a->cut == b->cut && a->n_same == b->n_same &&
           memcmp(a->same, b->same, a->n_same * sizeof(const sw_group *)) == 0;
}

/* All mixtures see the same tokens: what they say is counted together. */
static sw_status find_routers(const sw_applied *a, routers *out, bool *has_any, sw_error *err)
{
    for (uint32_t i = 0; i < a->net->n_layers; i++) {
        const sw_module *mlp = a->net->layers[i].mlp;
        if (mlp == NULL || mlp->held[SW_SLOT_ROUTER].weight == NULL)
            continue;
        routers r = routers_of(a, mlp);
        if (*has_any && !is_equal(&r, out)) {
            return SW_FAIL(err, SW_E_PLAN,
                           "give all mixtures the same boundary and all routers the same grad_sum",
                           "%s: its router's tokens, or the ranks that sum its gradient, are not those of "
                           "the mixtures before it",
                           mlp->fqn);
        }
        *out = r;
        *has_any = true;
    }
    return SW_OK;
}

sw_status sw_apply_routers(sw_applied *a, sw_error *err)
{
    routers *r = sw_arena_zero(a->arena, 1, sizeof *r);
    bool has_any = false;

    if (r == NULL)
        return sw_arena_fail(a->arena, "routers", err);
    SW_TRY(find_routers(a, r, &has_any, err));
    if (!has_any)
        return SW_OK;
    sw_applied_net_stages(a)->router = (sw_router_stage){.places = r->cut == NULL ? NULL : take_places,
                                                         .count = count,
                                                         .once = r->n_same == 0 ? NULL : look_once,
                                                         .sum = r->cut == NULL ? NULL : sum_shares,
                                                         .context = r};
    return SW_OK;
}
