/*
 * The inside of sw_comm: its groups, for the collectives and for what is compiled to them.
 *
 * Invariant: members of a group ascend, and their order in the communicator is their order on the mesh. Two
 * groups with equal members are the same sw_group.
 */
#ifndef SW_COMM_COMM_H
#define SW_COMM_COMM_H

#include <mpi.h>
#include <stdint.h>

#include "mesh/group.h"
#include "shardwright/comm.h"

/* This rank among the ranks it works with. Borrowed from the sw_comm. */
typedef struct sw_group {
    MPI_Comm mpi; /* MPI_COMM_NULL for one rank alone */
    uint32_t size;
    uint32_t index;       /* of this rank */
    char name[64];        /* for messages: "tp", "dp_shard" */
    struct sw_work *work; /* of its collectives (comm/work.h) */
} sw_group;

/*
 * sw_comm_create() for tests of what goes on between hosts: ranks of one host that give other numbers, from 0
 * on, are taken to be on several.
 */
sw_status sw_comm_create_on(sw_comm **out, const sw_mesh *mesh, const void *mpi_comm, int host,
                            sw_error *err);

/* The group of a kind; one of size 1 where the mesh has none. Never NULL. Local. */
const sw_group *sw_comm_group(const sw_comm *comm, sw_group_kind kind);

/*
 * The group over several axes of the mesh at once: the ranks that differ in nothing else, outer axes first.
 * `axes` has bit 1 << axis for each; edp and a derived ep too, with axes that they are not cut out of. The
 * first call for a set makes the communicator, later ones find it. Collective over `comm`. SW_E_ARGUMENT,
 * also where two axes number the same ranks; SW_E_NO_MEMORY.
 */
sw_status sw_comm_over(sw_comm *comm, uint32_t axes, const sw_group **out, sw_error *err);

/*
 * The group of `n_each` neighbours on an axis that this rank is among: blocks of an axis, as replicas of a
 * piece lie (mesh/shard.h). Made and found as those above. SW_E_ARGUMENT: they do not divide the axis;
 * SW_E_LIMIT, SW_E_NO_MEMORY.
 */
sw_status sw_comm_neighbours(sw_comm *comm, sw_axis axis, uint32_t n_each, const sw_group **out,
                             sw_error *err);

/*
 * Has every rank what rank 0 has? `mine` stands for it, `what` names it. SW_E_FORMAT on all of them, with the
 * lowest rank that has another. Collective over `comm`.
 */
sw_status sw_comm_same(sw_comm *comm, uint64_t mine, const char *what, sw_error *err);

#ifdef __clang_analyzer__ /* as in comm/agree.h */
#define sw_comm_agree(comm, mine, err)                                                                       \
    __extension__({                                                                                          \
        sw_status mine_ = (mine);                                                                            \
        sw_status all_ = sw_comm_agree((comm), mine_, (err));                                                \
        mine_ != SW_OK ? mine_ : all_;                                                                       \
    })
#endif

#endif
