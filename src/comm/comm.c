/*
 * Communicators of a mesh. A group is known by the mesh alone (mesh/group.h), so all ranks make the same ones
 * in the same order; each is one MPI_Comm_split() of the job, coloured by the lowest member.
 */
#include "comm/comm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "comm/agree.h"
#include "comm/fatal.h"
#include "comm/window.h"
#include "comm/window_copy.h"
#include "comm/work.h"

enum { OVER_LIMIT = 2 << SW_AXIS_COUNT_ }; /* sets of axes, and as many blocks of neighbours */

/* Axes, outer ones first; neighbours that number ranks without a gap are one. */
typedef struct axis_set {
    uint32_t n;
    sw_mesh_axis axes[SW_AXIS_COUNT_];
} axis_set;

/* A group over a set of axes, or a block of neighbours on one, that is none of the kinds. */
typedef struct over_group {
    axis_set set;
    sw_group *group;
} over_group;

struct sw_comm {
    sw_mesh mesh;
    uint32_t rank;
    char *stage; /* for all groups: they take turns */
    size_t stage_bytes;
    bool is_crowded;
    int host;                              /* pretended (comm/work.h) */
    MPI_Comm job;                          /* a copy of the caller's */
    sw_group groups[SW_GROUP_KIND_COUNT_]; /* owners */
    sw_group *kinds[SW_GROUP_KIND_COUNT_]; /* of `groups`, shared where members are equal */
    over_group over[OVER_LIMIT];           /* groups of their own, allocated */
    uint32_t n_over;
};

/* Are there more ranks of the job on this host than cores? Collective over the job. */
static bool is_crowded(MPI_Comm job)
{
    MPI_Comm host = MPI_COMM_NULL;
    int n_here = 0;

    MPI_Comm_split_type(job, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &n_here);
    MPI_Comm_free(&host);
    return n_here > sysconf(_SC_NPROCESSORS_ONLN);
}

/* Make the communicator of a group: members have equal `first`, and come in the order of `index`. */
static void split(const sw_comm *comm, sw_group *group, uint32_t first)
{
    char name[MPI_MAX_OBJECT_NAME];

    if (group->size == 1)
        return;
    MPI_Comm_split(comm->job, (int)first, (int)group->index, &group->mpi);
    (void)snprintf(name, sizeof name, "%s", group->name);
    sw_fatal_watch(group->mpi, name);
    group->work->is_crowded = comm->is_crowded;
    group->work->host = comm->host;
    group->work->window = sw_window_for_copies(group);
}

/* All groups of one rank are one, and so are those of the same size and stride. */
static bool is_same(sw_mesh_axis a, sw_mesh_axis b)
{
    return a.size == b.size && (a.size == 1 || a.stride == b.stride);
}

/* A group without its communicator: local. */
static sw_status fill_group(const sw_comm *comm, sw_group *group, uint32_t size, uint32_t index,
                            sw_error *err)
{
    *group = (sw_group){.mpi = MPI_COMM_NULL, .size = size, .index = index};
    return sw_work_create(&group->work, size, comm->stage, comm->stage_bytes, err);
}

static sw_status fill_kind(sw_comm *comm, sw_group_kind kind, sw_error *err)
{
    sw_mesh_axis axis = sw_mesh_group(&comm->mesh, kind);
    sw_group *group = &comm->groups[kind];

    for (int k = 0; k < (int)kind; k++) {
        if (is_same(axis, sw_mesh_group(&comm->mesh, (sw_group_kind)k))) {
            comm->kinds[kind] = comm->kinds[k];
            return SW_OK;
        }
    }
    comm->kinds[kind] = group;
    SW_TRY(fill_group(comm, group, axis.size, comm->rank / axis.stride % axis.size, err));
    (void)snprintf(group->name, sizeof group->name, "%s", sw_group_kind_name(kind));
    return SW_OK;
}

static void split_kind(sw_comm *comm, sw_group_kind kind)
{
    sw_group *group = &comm->groups[kind];

    if (comm->kinds[kind] == group)
        split(comm, group, comm->rank - group->index * sw_mesh_group(&comm->mesh, kind).stride);
}

static void free_group(sw_group *group)
{
    if (group->work != NULL)
        sw_window_destroy(group->work->window);
    if (group->mpi != MPI_COMM_NULL)
        MPI_Comm_free(&group->mpi);
    sw_work_destroy(group->work);
}

/* All but the communicator of the job. */
static void free_comm(sw_comm *comm)
{
    if (comm == NULL)
        return;
    for (uint32_t i = 0; i < comm->n_over; i++) {
        free_group(comm->over[i].group);
        sw_free(comm->over[i].group);
    }
    for (int kind = 0; kind < SW_GROUP_KIND_COUNT_; kind++) {
        if (comm->kinds[kind] == &comm->groups[kind])
            free_group(&comm->groups[kind]);
    }
    sw_free(comm->stage);
    sw_free(comm);
}

/* ---- making ---- */

/* What must be equal on all ranks. */
enum { N_FACTS = SW_AXIS_COUNT_ + 2 };

static void facts_of(const sw_mesh *mesh, uint32_t facts[N_FACTS])
{
    for (int i = 0; i < SW_AXIS_COUNT_; i++)
        facts[i] = mesh->axes[i].size;
    facts[SW_AXIS_COUNT_] = mesh->dp_shard;
    facts[SW_AXIS_COUNT_ + 1] = (uint32_t)mesh->ep_mode;
}

static sw_status check_size(const sw_mesh *mesh, uint32_t ranks, sw_error *err)
{
    char help[128] = "";

    if (mesh->n_ranks == ranks)
        return SW_OK;
    (void)snprintf(help, sizeof help,
                   "start %" PRIu32 " ranks (mpirun -n %" PRIu32 "), or give a mesh of %" PRIu32,
                   mesh->n_ranks, mesh->n_ranks, ranks);
    return SW_FAIL(err, SW_E_PLAN, help, "the mesh has %" PRIu32 " ranks, the job has %" PRIu32,
                   mesh->n_ranks, ranks);
}

/* Was every rank given the mesh of rank 0? Collective. */
static sw_status check_equal(MPI_Comm job, const sw_mesh *mesh, sw_error *err)
{
    static const char *const more[] = {"dp_shard", "ep mode"};
    uint32_t mine[N_FACTS];
    uint32_t first[N_FACTS];
    sw_status status = SW_OK;

    facts_of(mesh, mine);
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, N_FACTS, MPI_UINT32_T, 0, job);
    for (int i = 0; i < N_FACTS && status == SW_OK; i++) {
        const char *name = i < SW_AXIS_COUNT_ ? sw_axis_name((sw_axis)i) : more[i - SW_AXIS_COUNT_];
        if (mine[i] != first[i]) {
            status =
                SW_FAIL(err, SW_E_PLAN, "give every rank the same mesh",
                        "ranks were given different meshes: %s is %" PRIu32 " here and %" PRIu32 " on rank 0",
                        name, mine[i], first[i]);
        }
    }
    return sw_agree_over(job, status, err);
}

sw_status sw_comm_same(sw_comm *comm, uint64_t mine, const char *what, sw_error *err)
{
    uint64_t first = mine;
    sw_status status = SW_OK;

    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm->job);
    if (mine != first)
        status =
            SW_FAIL(err, SW_E_FORMAT, "give all hosts the same files", "%s: is not what rank 0 has", what);
    return sw_comm_agree(comm, status, err);
}

/* The local part of sw_comm_create(): is the call right, is there memory? */
static sw_status begin(sw_comm **made, sw_comm **out, const sw_mesh *mesh, MPI_Comm job, sw_error *err)
{
    int ranks = 0;
    int rank = 0;

    SW_NEED_IN("sw_comm_create", out, err);
    SW_NEED_IN("sw_comm_create", mesh, err);
    MPI_Comm_size(job, &ranks);
    MPI_Comm_rank(job, &rank);
    SW_TRY(check_size(mesh, (uint32_t)ranks, err));
    sw_comm *comm = *made = sw_alloc_zero(1, sizeof **made);
    if (comm != NULL) {
        size_t least = (size_t)ranks * 2 * sizeof(uint64_t); /* an element for every lane */
        comm->stage_bytes = least > SW_STAGE_BYTES ? least : SW_STAGE_BYTES;
        comm->stage = sw_alloc(comm->stage_bytes);
    }
    if (comm == NULL || comm->stage == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for communicators");
    comm->mesh = *mesh;
    comm->rank = (uint32_t)rank;
    comm->job = job;
    for (int kind = 0; kind < SW_GROUP_KIND_COUNT_; kind++)
        SW_TRY(fill_kind(comm, (sw_group_kind)kind, err));
    return SW_OK;
}

static sw_status check_initialized(sw_error *err)
{
    int is_initialized = 0;
    int is_finalized = 0;

    MPI_Initialized(&is_initialized);
    MPI_Finalized(&is_finalized);
    if (!is_initialized || is_finalized)
        return SW_FAIL(err, SW_E_ARGUMENT, "call MPI_Init() before, and MPI_Finalize() after all of this",
                       "MPI is not initialised");
    return SW_OK;
}

sw_status sw_comm_create(sw_comm **out, const sw_mesh *mesh, const void *mpi_comm, sw_error *err)
{
    return sw_comm_create_on(out, mesh, mpi_comm, 0, err);
}

sw_status sw_comm_create_on(sw_comm **out, const sw_mesh *mesh, const void *mpi_comm, int host, sw_error *err)
{
    MPI_Comm job = MPI_COMM_NULL;
    sw_comm *comm = NULL;

    if (out != NULL)
        *out = NULL;
    SW_TRY(check_initialized(err));
    MPI_Comm_dup(mpi_comm == NULL ? MPI_COMM_WORLD : *(const MPI_Comm *)mpi_comm, &job);
    sw_fatal_watch(job, "world");
    sw_status status = sw_agree_over(job, begin(&comm, out, mesh, job, err), err);
    if (status == SW_OK)
        status = check_equal(job, mesh, err);
    if (status != SW_OK) {
        free_comm(comm);
        MPI_Comm_free(&job);
        return status;
    }
    comm->is_crowded = is_crowded(job);
    comm->host = host;
    for (int kind = 0; kind < SW_GROUP_KIND_COUNT_; kind++)
        split_kind(comm, (sw_group_kind)kind);
    *out = comm;
    return SW_OK;
}

void sw_comm_destroy(sw_comm *comm)
{
    MPI_Comm job = comm == NULL ? MPI_COMM_NULL : comm->job;

    free_comm(comm);
    if (job != MPI_COMM_NULL)
        MPI_Comm_free(&job);
}

/* ---- groups over several axes ---- */

/* Put an axis where it stands among those of the set, by its stride. */
static void insert(sw_axis *order, uint32_t n, const sw_mesh *mesh, sw_axis axis)
{
    uint32_t at = n;

    for (; at > 0 && mesh->axes[order[at - 1]].stride < mesh->axes[axis].stride; at--)
        order[at] = order[at - 1];
    order[at] = axis;
}

/*
 * The axes of a set in their order; those of size 1 do not count. No two may number the same ranks. Returns
 * how many there are.
 */
static sw_status read_axes(const sw_mesh *mesh, uint32_t axes, sw_axis *order, uint32_t *n, sw_error *err)
{
    *n = 0;
    for (int axis = 0; axis < 32; axis++) {
        if ((axes >> axis & 1U) == 0)
            continue;
        if (axis >= SW_AXIS_COUNT_)
            return SW_FAIL(err, SW_E_ARGUMENT, "", "a group over axis %d, which is none", axis);
        if (mesh->axes[axis].size > 1)
            insert(order, (*n)++, mesh, (sw_axis)axis);
    }
    for (uint32_t i = 0; i < *n; i++) {
        for (uint32_t k = i + 1; k < *n; k++) {
            if (!sw_mesh_axes_nest(mesh->axes[order[i]], mesh->axes[order[k]])) {
                return SW_FAIL(err, SW_E_ARGUMENT,
                               "take edp and the derived ep alone, or the axes that they are cut out of",
                               "a group over %s and %s, which number the same ranks", sw_axis_name(order[i]),
                               sw_axis_name(order[k]));
            }
        }
    }
    return SW_OK;
}

static axis_set set_of(const sw_mesh *mesh, const sw_axis *order, uint32_t n)
{
    axis_set set = {0};

    for (uint32_t i = 0; i < n; i++) {
        sw_mesh_axis axis = mesh->axes[order[i]];
        sw_mesh_axis *outer = set.n == 0 ? NULL : &set.axes[set.n - 1];
        if (outer != NULL && outer->stride == axis.stride * axis.size)
            *outer = (sw_mesh_axis){outer->size * axis.size, axis.stride};
        else
            set.axes[set.n++] = axis;
    }
    return set;
}

static bool is_same_set(const axis_set *a, const axis_set *b)
{
    bool is_one = a->n == b->n;

    for (uint32_t i = 0; i < a->n && is_one; i++)
        is_one = is_same(a->axes[i], b->axes[i]);
    return is_one;
}

static const sw_group *find_over(const sw_comm *comm, const axis_set *set)
{
    const sw_mesh_axis all = set->n == 0 ? (sw_mesh_axis){1, 1} : set->axes[0];

    for (int kind = 0; kind < SW_GROUP_KIND_COUNT_ && set->n < 2; kind++) {
        if (is_same(all, sw_mesh_group(&comm->mesh, (sw_group_kind)kind)))
            return comm->kinds[kind];
    }
    for (uint32_t i = 0; i < comm->n_over; i++) {
        if (is_same_set(&comm->over[i].set, set))
            return comm->over[i].group;
    }
    return NULL;
}

/* Size of the group over a set, this rank's index in it, and its lowest member. */
static uint32_t walk_set(const sw_comm *comm, const axis_set *set, uint32_t *index, uint32_t *first)
{
    uint32_t size = 1;

    *index = 0;
    *first = comm->rank;
    for (uint32_t i = 0; i < set->n; i++) {
        const sw_mesh_axis *a = &set->axes[i];
        uint32_t at = comm->rank / a->stride % a->size;
        *first -= at * a->stride;
        *index = *index * a->size + at;
        size *= a->size;
    }
    return size;
}

static void name_axes(sw_group *group, const sw_axis *order, uint32_t n)
{
    size_t length = 0;

    for (uint32_t i = 0; i < n && length < sizeof group->name; i++) {
        length += (size_t)snprintf(group->name + length, sizeof group->name - length, "%s%s",
                                   i == 0 ? "" : "_", sw_axis_name(order[i]));
    }
}

/* The group over a set: found, or made and named after the axes. Collective. */
static sw_status take_over(sw_comm *comm, const axis_set *set, const sw_axis *order, uint32_t n,
                           const sw_group **out, sw_error *err)
{
    uint32_t index = 0;
    uint32_t first = 0;

    *out = find_over(comm, set);
    if (*out != NULL)
        return SW_OK;
    if (comm->n_over == OVER_LIMIT)
        return SW_FAIL(err, SW_E_LIMIT, "", "more than %d groups of ranks", (int)OVER_LIMIT);
    uint32_t size = walk_set(comm, set, &index, &first);
    sw_group *group = sw_alloc_zero(1, sizeof *group);
    sw_status status = group == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a communicator")
                                     : fill_group(comm, group, size, index, err);
    status = sw_agree_over(comm->job, status, err);
    if (status != SW_OK) {
        if (group != NULL)
            sw_work_destroy(group->work);
        sw_free(group);
        return status;
    }
    name_axes(group, order, n);
    split(comm, group, first);
    comm->over[comm->n_over++] = (over_group){*set, group};
    *out = group;
    return SW_OK;
}

sw_status sw_comm_over(sw_comm *comm, uint32_t axes, const sw_group **out, sw_error *err)
{
    sw_axis order[SW_AXIS_COUNT_];
    uint32_t n = 0;

    SW_TRY(read_axes(&comm->mesh, axes, order, &n, err)); /* the same on all ranks */
    const axis_set set = set_of(&comm->mesh, order, n);
    return take_over(comm, &set, order, n, out, err);
}

sw_status sw_comm_neighbours(sw_comm *comm, sw_axis axis, uint32_t n_each, const sw_group **out,
                             sw_error *err)
{
    sw_mesh_axis all = comm->mesh.axes[axis];
    const axis_set set = {1, {{n_each, all.stride}}};

    if (n_each == 0 || all.size % n_each != 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "blocks of %" PRIu32 " neighbours do not divide %s=%" PRIu32,
                       n_each, sw_axis_name(axis), all.size);
    return take_over(comm, &set, &axis, 1, out, err);
}

/* ---- asking ---- */

const sw_group *sw_comm_group(const sw_comm *comm, sw_group_kind kind)
{
    return comm->kinds[kind];
}

const sw_mesh *sw_comm_mesh(const sw_comm *comm)
{
    return comm == NULL ? NULL : &comm->mesh;
}

uint32_t sw_comm_rank(const sw_comm *comm)
{
    return comm == NULL ? 0 : comm->rank;
}

sw_status(sw_comm_agree)(sw_comm *comm, sw_status mine, sw_error *err)
{
    SW_NEED(comm, err);
    return sw_agree_over(comm->job, mine, err);
}
