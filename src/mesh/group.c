/* Groups as sizes and strides (mesh/group.h). Neighbouring axes flatten to one: the stride is the inner
 * one's. */
#include "mesh/group.h"

#include "base/status.h"

static const char *const names[] = {
    "pp",        "dp",    "dp_replicate", "dp_shard", "cp", "tp", "ep", "edp", "edp_replicate",
    "edp_shard", "dp_cp", "stage",        "world",
};
_Static_assert(SW_COUNT(names) == SW_GROUP_KIND_COUNT_, "one name a kind");

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The outer or the inner part of an axis that is cut in `n_outer` times the rest. */
static sw_mesh_axis part_of(sw_mesh_axis axis, uint32_t n_outer, bool is_outer)
{
    uint32_t n_inner = axis.size / n_outer;
    return is_outer ? (sw_mesh_axis){n_outer, axis.stride * n_inner} : (sw_mesh_axis){n_inner, axis.stride};
}

sw_mesh_axis sw_mesh_group(const sw_mesh *mesh, sw_group_kind kind)
{
    const sw_mesh_axis *axes = mesh->axes;
    const sw_mesh_axis dp = axes[SW_AXIS_DP];
    const sw_mesh_axis edp = axes[SW_AXIS_EDP];
    /* As many replicas of experts as lie whole in a replica of dp; an EP group may reach over several. */
    uint32_t edp_replicate = common_divisor(mesh->dp_replicate, edp.size);

    switch (kind) {
    case SW_GROUP_PP:
        return axes[SW_AXIS_PP];
    case SW_GROUP_DP:
        return dp;
    case SW_GROUP_DP_REPLICATE:
        return part_of(dp, mesh->dp_replicate, true);
    case SW_GROUP_DP_SHARD:
        return part_of(dp, mesh->dp_replicate, false);
    case SW_GROUP_CP:
        return axes[SW_AXIS_CP];
    case SW_GROUP_TP:
        return axes[SW_AXIS_TP];
    case SW_GROUP_EP:
        return axes[SW_AXIS_EP];
    case SW_GROUP_EDP:
        return edp;
    case SW_GROUP_EDP_REPLICATE:
        return part_of(edp, edp_replicate, true);
    case SW_GROUP_EDP_SHARD:
        return part_of(edp, edp_replicate, false);
    case SW_GROUP_DP_CP:
        return (sw_mesh_axis){dp.size * axes[SW_AXIS_CP].size, axes[SW_AXIS_CP].stride};
    case SW_GROUP_STAGE:
        return (sw_mesh_axis){mesh->n_ranks / axes[SW_AXIS_PP].size, 1};
    case SW_GROUP_WORLD:
    case SW_GROUP_KIND_COUNT_:
        break;
    }
    return (sw_mesh_axis){mesh->n_ranks, 1};
}

bool sw_mesh_axes_nest(sw_mesh_axis outer, sw_mesh_axis inner)
{
    return outer.size == 1 || inner.size == 1 || outer.stride % ((uint64_t)inner.stride * inner.size) == 0;
}

const char *sw_group_kind_name(sw_group_kind kind)
{
    return (unsigned)kind < SW_GROUP_KIND_COUNT_ ? names[kind] : NULL;
}
