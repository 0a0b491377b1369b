/*
 * The inside of a mesh, for the layers above that keep one by value or walk its groups without copying them.
 *
 * Invariant: every axis, the derived ones included, is a size and a stride over the rank numbers, so that the
 * coordinate of a rank is rank / stride % size and its group is an arithmetic progression. Axes of size 1
 * have a stride too. See docs/concepts.md and the header shardwright/mesh.h for the order of the axes.
 */
#ifndef SW_MESH_MESH_H
#define SW_MESH_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/mesh.h"

#define SW_AXIS_SIZE_LIMIT 1048576U /* largest size of one axis that a text may give */

typedef struct sw_mesh_axis {
    uint32_t size;
    uint32_t stride; /* distance of neighbouring members in rank numbers */
} sw_mesh_axis;

struct sw_mesh {
    sw_mesh_axis axes[SW_AXIS_COUNT_];
    uint32_t dp_replicate; /* dp_replicate * dp_shard is the size of dp */
    uint32_t dp_shard;
    uint32_t n_ranks;
    sw_ep_mode ep_mode;
};

/* Fill `mesh` in place; same contract as sw_mesh_create(), nothing to destroy. Untouched on failure. */
sw_status sw_mesh_init(sw_mesh *mesh, const char *axes, uint32_t ep, sw_error *err);

/* The axis of a name of `length` bytes, "edp" included; false when there is none. */
bool sw_axis_parse(const char *name, size_t length, sw_axis *out);

/* Distance of neighbouring members of a group over `axis`; 1 when out of range. */
uint32_t sw_mesh_axis_stride(const sw_mesh *mesh, sw_axis axis);

/* Lowest rank of the group of `rank` over `axis`: its member 0. The rank must be one of the mesh. */
uint32_t sw_mesh_group_first(const sw_mesh *mesh, uint32_t rank, sw_axis axis);

#endif
