/*
 * The groups of ranks that work together on a mesh, beyond those of its single axes: parts of dp and edp, dp
 * and cp flattened, the stage, the whole job. Each is a size and a stride over the rank numbers, as an axis.
 */
#ifndef SW_MESH_GROUP_H
#define SW_MESH_GROUP_H

#include "mesh/mesh.h"

/* In the order in which they are shown: those of the numbered axes, of the experts, what is flattened. */
typedef enum sw_group_kind {
    SW_GROUP_PP = 0,
    SW_GROUP_DP,
    SW_GROUP_DP_REPLICATE, /* dp is dp_replicate * dp_shard, neighbours share a replica */
    SW_GROUP_DP_SHARD,
    SW_GROUP_CP,
    SW_GROUP_TP,
    SW_GROUP_EP, /* an axis of the mesh, or cut out of dp * cp * tp */
    SW_GROUP_EDP,
    SW_GROUP_EDP_REPLICATE, /* edp cut as dp is: replicas of experts lie in different replicas of dp */
    SW_GROUP_EDP_SHARD,
    SW_GROUP_DP_CP, /* who shares the dense parameters */
    SW_GROUP_STAGE, /* all ranks of a pipeline stage */
    SW_GROUP_WORLD,
    SW_GROUP_KIND_COUNT_
} sw_group_kind;

/*
 * Size and stride: the group of a rank has the index rank / stride % size for it, and its members ascend.
 * What the mesh does not have is of size 1.
 */
sw_mesh_axis sw_mesh_group(const sw_mesh *mesh, sw_group_kind kind);

/*
 * Do two axes number ranks independently of each other, the outer one in whole rounds of the inner? Not so a
 * derived ep or edp and what it is cut across. An axis of one rank does with any other.
 */
bool sw_mesh_axes_nest(sw_mesh_axis outer, sw_mesh_axis inner);

/* "pp", "dp_replicate", ...; NULL when out of range. */
const char *sw_group_kind_name(sw_group_kind kind);

#endif
