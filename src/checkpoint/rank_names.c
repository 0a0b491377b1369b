/*
 * Names of rank files (checkpoint/rank_names.h). A set of files (dense ones, experts) is a box of coordinates
 * from 0 up; what the box has and the folder has not is missing. A stage may have no experts at all.
 */
#include "checkpoint/rank_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "mesh/mesh.h"
#include "model/shards.h"
#include "plan/plan_data.h"

enum { DENSE, EXPERT, N_SETS };

/* Sizes of a set's axes; 0: there is no such set. An axis that tells no files apart has 1. */
typedef struct box {
    int32_t pp, tp, ep;
    bool has_tp, has_ep;
} box;

static void drop_plan(sw_plan **plan)
{
    sw_plan_destroy(*plan);
}

static sw_status no_memory(const sw_opening *o)
{
    return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", o->store->path);
}

void sw_rank_names_clear(sw_rank_names *names)
{
    sw_free(names->list);
    *names = (sw_rank_names){0};
}

static int compare(const void *a, const void *b)
{
    const sw_coord *x = &((const sw_rank_name *)a)->coord;
    const sw_coord *y = &((const sw_rank_name *)b)->coord;
    const int32_t left[] = {x->tp < 0, x->pp, x->tp, x->ep};
    const int32_t right[] = {y->tp < 0, y->pp, y->tp, y->ep};

    for (size_t i = 0; i < SW_COUNT(left); i++) {
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    }
    return 0;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* ---- what is there ---- */

static sw_status list_names(sw_rank_names *out, sw_opening *o, const sw_shards *shards)
{
    out->list = sw_alloc_zero(shards->n_names + 1, sizeof *out->list);
    if (out->list == NULL)
        return no_memory(o);
    for (size_t i = 0; i < shards->n_names; i++) {
        sw_rank_name found = {.is_there = true};
        bool is_rank = sw_coord_of_file_name(&found.coord, shards->names[i]);
        if (!is_rank || larger(found.coord.pp, larger(found.coord.tp, found.coord.ep)) >= SW_MAX_SHARDS) {
            sw_opening_remark(o, "file_extra", shards->names[i], "move it away if it is left over",
                              "%s: is not named as a file of a sharded folder is", shards->names[i]);
            continue;
        }
        found.name = sw_arena_copy(o->store->arena, shards->names[i], strlen(shards->names[i]));
        if (found.name == NULL)
            return sw_opening_no_memory(o);
        out->list[out->n++] = found;
    }
    if (out->n > 1)
        qsort(out->list, out->n, sizeof *out->list, compare);
    return SW_OK;
}

/* ---- what should be there ---- */

static void measure(box boxes[N_SETS], const sw_rank_names *names)
{
    for (uint32_t i = 0; i < names->n; i++) {
        const sw_coord *c = &names->list[i].coord;
        box *of = &boxes[c->tp < 0 ? EXPERT : DENSE];
        of->pp = larger(of->pp, c->pp + 1);
        of->tp = larger(of->tp, larger(c->tp, 0) + 1);
        of->ep = larger(of->ep, larger(c->ep, 0) + 1);
        of->has_tp = of->has_tp || c->tp >= 0;
        of->has_ep = of->has_ep || c->ep >= 0;
    }
}

/* The mesh of the plan, if one stands there; what is wrong with it is for verify to say. */
static void widen_to_plan(box *dense, const sw_opening *o)
{
    sw_plan *plan SW_AUTO(drop_plan) = NULL;

    if (o->store->plan_path == NULL || sw_plan_load(&plan, o->store->plan_path, NULL) != SW_OK)
        return;
    dense->pp = larger(dense->pp, (int32_t)sw_mesh_axis_size(plan->mesh, SW_AXIS_PP));
    dense->tp = larger(dense->tp, (int32_t)sw_mesh_axis_size(plan->mesh, SW_AXIS_TP));
    if (plan->ep_mode == SW_EP_AXIS)
        dense->ep = larger(dense->ep, (int32_t)sw_mesh_axis_size(plan->mesh, SW_AXIS_EP));
}

static bool has_stage(const sw_rank_names *names, uint32_t n_there, bool is_expert, int32_t pp)
{
    for (uint32_t i = 0; i < n_there; i++) {
        if ((names->list[i].coord.tp < 0) == is_expert && names->list[i].coord.pp == pp)
            return true;
    }
    return false;
}

/* One coordinate: there, or added as missing behind those that are. */
static sw_status expect(sw_rank_names *names, uint32_t n_there, sw_opening *o, sw_coord coord)
{
    sw_rank_name wanted = {.coord = coord};
    char text[SW_COORD_TEXT_BYTES];

    if (n_there > 0 && bsearch(&wanted, names->list, n_there, sizeof *names->list, compare) != NULL)
        return SW_OK;
    sw_rank_name *grown = sw_realloc(names->list, ((size_t)names->n + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(o);
    names->list = grown;
    sw_coord_file_name(coord, text);
    wanted.name = sw_arena_copy(o->store->arena, text, strlen(text));
    if (wanted.name == NULL)
        return sw_opening_no_memory(o);
    names->list[names->n++] = wanted;
    return SW_OK;
}

static sw_status expect_box(sw_rank_names *names, uint32_t n_there, sw_opening *o, const box *of)
{
    bool is_expert = !of->has_tp;

    if ((uint64_t)of->pp * (uint64_t)of->tp > SW_MAX_SHARDS ||
        (uint64_t)of->pp * (uint64_t)of->tp * (uint64_t)of->ep > SW_MAX_SHARDS)
        return SW_FAIL(o->err, SW_E_LIMIT, "move files away that do not belong there",
                       "%s: coordinates of more than %d files", o->store->path, SW_MAX_SHARDS);
    for (int32_t pp = 0; pp < of->pp; pp++) {
        if (is_expert && !has_stage(names, n_there, is_expert, pp))
            continue;
        for (int32_t tp = 0; tp < of->tp; tp++) {
            for (int32_t ep = 0; ep < of->ep; ep++)
                SW_TRY(expect(names, n_there, o, (sw_coord){pp, of->has_tp ? tp : -1, of->has_ep ? ep : -1}));
        }
    }
    return SW_OK;
}

sw_status sw_rank_names_find(sw_rank_names *out, sw_opening *o)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};
    box boxes[N_SETS] = {0};

    SW_TRY(sw_shards_list(&shards, o->store->path, o->err));
    SW_TRY(list_names(out, o, &shards));
    uint32_t n_there = out->n;
    measure(boxes, out);
    if (boxes[DENSE].has_tp)
        widen_to_plan(&boxes[DENSE], o);
    for (size_t i = 0; i < N_SETS; i++)
        SW_TRY(expect_box(out, n_there, o, &boxes[i]));
    if (out->n > 1)
        qsort(out->list, out->n, sizeof *out->list, compare);
    return SW_OK;
}
