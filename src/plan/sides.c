/* Which sides of a region's matrices tp cuts: what a boundary without its other half is known by. */
#include "plan/sides.h"

#include "mesh/placement.h"

uint32_t sw_spec_sides(const sw_plan *plan, const sw_spec *spec)
{
    bool is_pair = spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP;
    uint32_t sides = 0;

    for (uint32_t i = 0; is_pair && i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        const sw_placement *p = &f->places.on[SW_ON_TP];
        uint32_t dim = 0;
        if (f->shape == NULL || f->shape->n_dims < 2 || f->role == SW_ROLE_NORM ||
            p->kind != SW_PLACE_SHARD || !sw_placement_dim(p, f->shape->n_dims, &dim))
            continue;
        sides |= (int)dim == f->out_dim ? SW_CUTS_COLUMNS : 0;
        sides |= (int)dim == f->in_dim ? SW_CUTS_ROWS : 0;
    }
    return sides;
}
