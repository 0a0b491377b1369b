/*
 * Coordinates number the ranks one to one, and the groups over an axis are the ranks that differ in that
 * axis's coordinate alone. Expected coordinates come from counting the ranks in nested loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "gen.h"
#include "mesh/mesh.h"

enum { MAX_RANKS = 2048, N_CASES = 3000 };

typedef struct shape {
    uint32_t pp, dp, cp, ep_axis, tp, ep;
} shape;

static shape make_shape(gen *g)
{
    shape s = {gen_between(g, 1, 3), gen_between(g, 1, 4), gen_between(g, 1, 3), 1, gen_between(g, 1, 5), 0};
    uint32_t dense = s.dp * s.cp * s.tp;
    if (gen_below(g, 3) == 0) {
        s.ep_axis = gen_between(g, 1, 4);
    } else if (gen_below(g, 2) == 0) {
        s.ep = gen_between(g, 1, dense);
        while (dense % s.ep != 0)
            s.ep--;
    }
    return s;
}

static bool make_mesh(gen *g, const shape *s, sw_mesh *mesh)
{
    char text[128];
    const char *const orders[] = {"pp=%u,dp=%u,cp=%u,ep=%u,tp=%u", "pp=%u,dp_shard=%u,cp=%u,ep=%u,tp=%u"};
    if (s->ep > 1) {
        (void)snprintf(text, sizeof text, "cp=%u,tp=%u,pp=%u,dp=%u", s->cp, s->tp, s->pp, s->dp);
    } else if (gen_below(g, 2) == 0) {
        (void)snprintf(text, sizeof text, orders[0], s->pp, s->dp, s->cp, s->ep_axis, s->tp);
    } else {
        (void)snprintf(text, sizeof text, orders[1], s->pp, s->dp, s->cp, s->ep_axis, s->tp);
    }
    return sw_mesh_init(mesh, text, s->ep, NULL) == SW_OK;
}

/* What the coordinates of all ranks must be. */
static uint32_t count_coords(const shape *s, sw_mesh_coord *coords)
{
    uint32_t rank = 0;
    for (uint32_t pp = 0; pp < s->pp; pp++) {
        uint32_t in_stage = 0;
        for (uint32_t dp = 0; dp < s->dp; dp++) {
            for (uint32_t cp = 0; cp < s->cp; cp++) {
                for (uint32_t ep = 0; ep < s->ep_axis; ep++) {
                    for (uint32_t tp = 0; tp < s->tp; tp++) {
                        sw_mesh_coord *at = &coords[rank++];
                        *at = (sw_mesh_coord){
                            {pp, dp, cp, ep, tp, 0}
                        };
                        if (s->ep_axis > 1)
                            at->at[SW_AXIS_EDP] = dp * s->cp + cp;
                        if (s->ep > 1) {
                            at->at[SW_AXIS_EP] = in_stage % s->ep;
                            at->at[SW_AXIS_EDP] = in_stage / s->ep;
                        }
                        in_stage++;
                    }
                }
            }
        }
    }
    return rank;
}

/* Which coordinates a rank shares with its group over `axis`. */
static bool is_in_group(const shape *s, const sw_mesh_coord *a, const sw_mesh_coord *b, sw_axis axis)
{
    bool is_expert_axis = axis == SW_AXIS_EP || axis == SW_AXIS_EDP;
    for (int other = 0; other < SW_AXIS_COUNT_; other++) {
        bool is_expert = other == SW_AXIS_EP || other == SW_AXIS_EDP;
        if (other == (int)axis)
            continue;
        /* A derived cut and the dense axes are two ways to name the same ranks: compare one way only. */
        if (s->ep > 1 && is_expert != is_expert_axis && other != SW_AXIS_PP)
            continue;
        /* With an axis, edp is dp and cp together. */
        if (axis == SW_AXIS_EDP && (other == SW_AXIS_DP || other == SW_AXIS_CP))
            continue;
        if (other == SW_AXIS_EDP && (axis == SW_AXIS_DP || axis == SW_AXIS_CP))
            continue;
        if (a->at[other] != b->at[other])
            return false;
    }
    return true;
}

static bool check_rank(const shape *s, const sw_mesh *mesh, const sw_mesh_coord *coords, uint32_t rank)
{
    static uint32_t members[MAX_RANKS];
    for (int axis = 0; axis < SW_AXIS_COUNT_; axis++) {
        uint32_t n = 0;
        uint32_t size = sw_mesh_axis_size(mesh, (sw_axis)axis);
        if (sw_mesh_group_members(mesh, rank, (sw_axis)axis, members, NULL) != SW_OK)
            return false;
        if (axis == SW_AXIS_EDP && s->ep <= 1 && s->ep_axis <= 1) {
            if (size != 1 || members[0] != rank)
                return false;
            continue;
        }
        for (uint32_t other = 0; other < mesh->n_ranks; other++) {
            if (!is_in_group(s, &coords[rank], &coords[other], (sw_axis)axis))
                continue;
            if (n >= size || members[n] != other || coords[other].at[axis] != n)
                return false;
            n++;
        }
        if (n != size)
            return false;
    }
    return true;
}

static bool coordinates_and_groups_agree(gen *g)
{
    static sw_mesh_coord coords[MAX_RANKS];
    shape s = make_shape(g);
    sw_mesh mesh;
    if (!make_mesh(g, &s, &mesh) || count_coords(&s, coords) != sw_mesh_ranks(&mesh))
        return false;
    for (uint32_t rank = 0; rank < mesh.n_ranks; rank++) {
        sw_mesh_coord found = {{0}};
        if (sw_mesh_coord_of(&mesh, rank, &found, NULL) != SW_OK ||
            memcmp(&found, &coords[rank], sizeof found) != 0)
            return false;
    }
    return check_rank(&s, &mesh, coords, gen_below(g, mesh.n_ranks));
}

static void groups_are_the_ranks_that_differ_in_one_coordinate(void **state)
{
    (void)state;
    assert_true(gen_holds(coordinates_and_groups_agree, N_CASES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_the_ranks_that_differ_in_one_coordinate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
