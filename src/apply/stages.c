/*
 * Phase C, inside of modules: the stages of a module whose work crosses ranks. The table of tokens is cut by
 * rows, so that each rank looks up its own and the others give zeros; a norm over all heads sums its squares;
 * the loss sees logits that are cut along the vocabulary.
 */
#include "apply/phases.h"

#include <string.h>

#include "base/status.h"
#include "dtensor/share.h"
#include "parallel/collective_node.h"
#include "parallel/loss.h"
#include "parallel/node.h"

sw_stages *sw_applied_stages_of(sw_applied *applied, sw_module *module)
{
    for (uint32_t i = 0; i < applied->n_stages; i++) {
        if (applied->stages[i].module == module)
            return &applied->stages[i].stages;
    }
    sw_applied_stages *fresh = &applied->stages[applied->n_stages++];
    *fresh = (sw_applied_stages){module, sw_stages_local};
    return &fresh->stages;
}

sw_stages *sw_applied_net_stages(sw_applied *applied)
{
    if (!applied->has_net_stages)
        applied->net_stages = *applied->net->stages;
    applied->has_net_stages = true;
    return &applied->net_stages;
}

/* ---- rows of a table over tp ---- */

typedef struct vocabulary {
    sw_vocabulary_part part;
} vocabulary;

/* The first row of a parameter that this rank has, where its rows are one run. */
static sw_status first_row(const sw_applied *a, const sw_tensor_layout *layout, uint64_t *out, sw_error *err)
{
    const sw_share mine = {.holder = a->active.at};
    sw_rows rows;

    SW_TRY(sw_tensor_layout_rows(&rows, layout, 0, &mine, a->arena, err));
    *out = rows.n == 0 ? layout->dims[0] : rows.ranges[0].begin;
    return SW_OK;
}

static const sw_tensor_layout *layout_of(const sw_applied *a, const sw_parameter *p)
{
    for (uint32_t i = 0; i < a->n_parameters && p != NULL; i++) {
        if (a->parameters[i].parameter == p)
            return &a->parameters[i].layout;
    }
    return NULL;
}

/* Is a tensor cut over tp along `dim`? */
static bool is_cut(const sw_applied *a, const sw_tensor_layout *layout, int dim)
{
    uint32_t axis = sw_active_axis(&a->active.grid, SW_AXIS_TP);

    for (uint32_t k = 0; layout != NULL && k < a->active.grid.n_axes; k++) {
        if ((axis >> k & 1) != 0)
            return layout->on[k].kind == SW_PLACE_SHARD && layout->on[k].dim == dim;
    }
    return false;
}

static sw_status make_part(sw_applied *a, const sw_tensor_layout *layout, vocabulary **out, sw_error *err)
{
    vocabulary *v = sw_arena_zero(a->arena, 1, sizeof *v);

    if (v == NULL)
        return sw_arena_fail(a->arena, "a part of the vocabulary", err);
    v->part.group = sw_comm_group(a->active.comm, SW_GROUP_TP);
    v->part.extent = layout->dims[0];
    SW_TRY(first_row(a, layout, &v->part.first, err));
    *out = v;
    return SW_OK;
}

static sw_tensor *look_up(void *context, sw_step *step, const sw_tensor *ids, const sw_tensor *weight)
{
    const vocabulary *v = context;
    return sw_op_embedding_part(step, ids, weight, (int64_t)v->part.first);
}

static sw_status bind_table(sw_applied *a, sw_error *err)
{
    sw_module *module = a->net->embedding;
    const sw_tensor_layout *layout = layout_of(a, module->held[SW_SLOT_TOKENS].weight);
    vocabulary *v = NULL;

    if (!is_cut(a, layout, 0))
        return SW_OK;
    SW_TRY(make_part(a, layout, &v, err));
    sw_applied_stages_of(a, module)->lookup = (sw_lookup_stage){look_up, v};
    return SW_OK;
}

/* ---- the loss ---- */

static sw_tensor *lose(void *context, sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                       double factor)
{
    const vocabulary *v = context;
    return sw_loss_parallel(step, &v->part, logits, targets, factor);
}

static sw_status bind_loss(sw_applied *a, sw_error *err)
{
    const sw_held *held = a->net->head->held;
    const sw_parameter *own = held[SW_SLOT_HEAD].weight;
    const sw_tensor_layout *layout = layout_of(a, own != NULL ? own : held[SW_SLOT_TOKENS].weight);
    vocabulary *v = NULL;

    if (!a->plan->loss_parallel || !is_cut(a, layout, 0))
        return SW_OK;
    SW_TRY(make_part(a, layout, &v, err));
    sw_applied_net_stages(a)->loss = (sw_loss_stage){lose, v};
    return SW_OK;
}

/* ---- norms over all heads ---- */

/* A norm whose squares are summed over tp; of pieces that several ranks hold each brings its share. */
typedef struct statistic {
    const sw_group *group;
    uint32_t n;
    struct {
        const sw_parameter *weight;
        uint32_t replicas;
    } norms[4];
} statistic;

/* The layout of what was P over tp, in validate mode. */
static const sw_tensor_layout *summed(sw_step *step, const sw_tensor_layout *layout)
{
    sw_tensor_layout *made = sw_node_context(step, sizeof *made);

    if (made == NULL)
        return NULL;
    *made = *layout;
    for (uint32_t k = 0; k < made->grid.n_axes; k++) {
        if (made->grid.axis[k] == SW_AXIS_TP)
            made->is_summed[k] = false;
    }
    return made;
}

static sw_tensor *sum_squares(void *context, sw_step *step, const sw_tensor *sums, const sw_parameter *weight)
{
    const statistic *s = context;

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->norms[i].weight == weight && s->norms[i].replicas > 1)
            sums = sw_op_scale(step, sums, 1.0 / s->norms[i].replicas);
    }
    sw_tensor *all = sw_sum_node(step, s->group, sums, SW_SUM_BOTH);
    if (all != NULL && sums->layout != NULL)
        all->layout = summed(step, sums->layout);
    return all;
}

static sw_status add_norm(sw_applied *a, const sw_spec *spec, const sw_inner *inner, statistic *s,
                          sw_error *err)
{
    for (uint32_t i = 0; i < inner->n_params; i++) {
        const char *fqn = sw_arena_format(a->arena, "%s.%s", spec->fqn, inner->params[i]);
        if (fqn == NULL)
            return sw_arena_fail(a->arena, "stages of modules", err);
        const sw_parameter *weight = sw_net_parameter(a->net, fqn);
        if (weight == NULL || s->n == SW_COUNT(s->norms))
            return SW_FAIL(err, SW_E_PLAN, "make the plan of this model", "%s: no norm of %s is summed", fqn,
                           spec->fqn);
        s->norms[s->n].weight = weight;
        s->norms[s->n++].replicas = inner->replicas;
    }
    return SW_OK;
}

static sw_status bind_statistic(sw_applied *a, const sw_spec *spec, sw_error *err)
{
    sw_module *module = sw_apply_module(a, spec);
    statistic *s = NULL;

    for (uint32_t i = 0; i < spec->n_inner && module != NULL; i++) {
        const sw_inner *inner = &spec->inner[i];
        if (strcmp(inner->op, "mean_square") != 0 || inner->axis != SW_AXIS_TP)
            continue;
        if (s == NULL)
            s = sw_arena_zero(a->arena, 1, sizeof *s);
        if (s == NULL)
            return sw_arena_fail(a->arena, "stages of modules", err);
        s->group = sw_comm_group(a->active.comm, SW_GROUP_TP);
        SW_TRY(add_norm(a, spec, inner, s, err));
        sw_applied_stages_of(a, module)->statistic = (sw_statistic_stage){sum_squares, s};
    }
    return SW_OK;
}

/* ---- all of them ---- */

sw_status sw_apply_stages(sw_applied *a, sw_error *err)
{
    a->stages = sw_arena_zero(a->arena, a->net->n_modules, sizeof *a->stages);
    if (a->stages == NULL)
        return sw_arena_fail(a->arena, "stages of modules", err);
    SW_TRY(bind_table(a, err));
    SW_TRY(bind_loss(a, err));
    for (uint32_t s = 0; s < a->plan->n_specs; s++)
        SW_TRY(bind_statistic(a, &a->plan->specs[s], err));
    return sw_apply_routers(a, err);
}
