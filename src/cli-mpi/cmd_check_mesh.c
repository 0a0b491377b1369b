/*
 * `shardwright-mpi check-mesh`: the communicators of a mesh, proved on the ranks of the job. Who belongs to a
 * group is worked out anew from the coordinates of all ranks, not from the sizes and strides of which the
 * communicators were made, and compared with who answers: every rank gathers the job's rank numbers over the
 * group, and hears from its neighbour in it.
 */
#include <inttypes.h>
#include <mpi.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cli-mpi/commands.h"
#include "cli/input.h"
#include "comm/comm.h"
#include "io/json_write.h"

enum { MAX_GROUPS_LISTED = 8, MAX_MEMBERS_LISTED = 8 };

enum { OPT_MESH, OPT_EP, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_MESH] = SW_OPTION_MESH,
    [OPT_EP]   = SW_OPTION_EP,
    [OPT_JSON] = { "json", 0, NULL, "write JSON, also of errors" },
    { 0 },
};
// clang-format on

/* What ranks can have in common. */
typedef enum fact {
    FACT_PP = 0,
    FACT_DP,
    FACT_DP_OUTER, /* of dp_replicate * dp_shard */
    FACT_DP_INNER,
    FACT_CP,
    FACT_TP,
    FACT_EP,
    FACT_EDP,
    FACT_EDP_OUTER,
    FACT_EDP_INNER,
    FACT_COUNT
} fact;

#define BIT(fact) (1U << (fact))

/*
 * What the ranks of a group have in common; all ranks that have it in common are the group. An ep axis stands
 * beside the dense axes and tp beside the experts', so with one the groups of either side have the other in
 * common too.
 */
static const struct {
    uint32_t common;
    uint32_t common_with_ep_axis;
} rules[] = {
    [SW_GROUP_PP] = {BIT(FACT_DP) | BIT(FACT_CP) | BIT(FACT_TP),                      BIT(FACT_EP)},
    [SW_GROUP_DP] = {BIT(FACT_PP) | BIT(FACT_CP) | BIT(FACT_TP),                      BIT(FACT_EP)},
    [SW_GROUP_DP_REPLICATE] = {BIT(FACT_PP) | BIT(FACT_DP_INNER) | BIT(FACT_CP) | BIT(FACT_TP), BIT(FACT_EP)},
    [SW_GROUP_DP_SHARD] = {BIT(FACT_PP) | BIT(FACT_DP_OUTER) | BIT(FACT_CP) | BIT(FACT_TP), BIT(FACT_EP)},
    [SW_GROUP_CP] = {BIT(FACT_PP) | BIT(FACT_DP) | BIT(FACT_TP),                      BIT(FACT_EP)},
    [SW_GROUP_TP] = {BIT(FACT_PP) | BIT(FACT_DP) | BIT(FACT_CP),                      BIT(FACT_EP)},
    [SW_GROUP_EP] = {BIT(FACT_PP) | BIT(FACT_EDP),                                    BIT(FACT_TP)},
    [SW_GROUP_EDP] = {BIT(FACT_PP) | BIT(FACT_EP),                                     BIT(FACT_TP)},
    [SW_GROUP_EDP_REPLICATE] = {BIT(FACT_PP) | BIT(FACT_EP) | BIT(FACT_EDP_INNER),               BIT(FACT_TP)},
    [SW_GROUP_EDP_SHARD] = {BIT(FACT_PP) | BIT(FACT_EP) | BIT(FACT_EDP_OUTER),               BIT(FACT_TP)},
    [SW_GROUP_DP_CP] = {BIT(FACT_PP) | BIT(FACT_TP),                                     BIT(FACT_EP)},
    [SW_GROUP_STAGE] = {BIT(FACT_PP),                                                    0           },
    [SW_GROUP_WORLD] = {0,                                                               0           },
};
_Static_assert(SW_COUNT(rules) == SW_GROUP_KIND_COUNT_, "one rule a kind");

/* ---- who should be there ---- */

/* Ranks of edp that share a replica of dp: edp over the most replicas that divide both. */
static uint32_t edp_inner(const sw_mesh *mesh)
{
    uint32_t replicate = 1;
    uint32_t edp = sw_mesh_axis_size(mesh, SW_AXIS_EDP);

    sw_mesh_dp_parts(mesh, &replicate, NULL);
    while (edp % replicate != 0 || mesh->dp_replicate % replicate != 0)
        replicate--;
    return edp / replicate;
}

static uint32_t value_of(const sw_mesh *mesh, const sw_mesh_coord *coord, fact which)
{
    const uint32_t *at = coord->at;
    uint32_t dp_inner = 1;

    sw_mesh_dp_parts(mesh, NULL, &dp_inner);
    const uint32_t values[] = {
        [FACT_PP] = at[SW_AXIS_PP],
        [FACT_DP] = at[SW_AXIS_DP],
        [FACT_DP_OUTER] = at[SW_AXIS_DP] / dp_inner,
        [FACT_DP_INNER] = at[SW_AXIS_DP] % dp_inner,
        [FACT_CP] = at[SW_AXIS_CP],
        [FACT_TP] = at[SW_AXIS_TP],
        [FACT_EP] = at[SW_AXIS_EP],
        [FACT_EDP] = at[SW_AXIS_EDP],
        [FACT_EDP_OUTER] = at[SW_AXIS_EDP] / edp_inner(mesh),
        [FACT_EDP_INNER] = at[SW_AXIS_EDP] % edp_inner(mesh),
    };
    _Static_assert(SW_COUNT(values) == FACT_COUNT, "one value a fact");
    return values[which];
}

/* Are these ranks members of one group? */
static bool are_together(const sw_mesh *mesh, sw_group_kind kind, const sw_mesh_coord *a,
                         const sw_mesh_coord *b)
{
    uint32_t common = rules[kind].common;

    if (sw_mesh_ep_mode(mesh) == SW_EP_AXIS)
        common |= rules[kind].common_with_ep_axis;
    for (int i = 0; i < FACT_COUNT; i++) {
        if ((common & BIT(i)) != 0 && value_of(mesh, a, (fact)i) != value_of(mesh, b, (fact)i))
            return false;
    }
    return true;
}

/* The members of the group of `rank`, in the order of the job's ranks; room for all of them. */
static sw_status expect_members(const sw_mesh *mesh, sw_group_kind kind, uint32_t rank, uint32_t *members,
                                uint32_t *n_members, sw_error *err)
{
    sw_mesh_coord mine = {{0}};

    *n_members = 0;
    SW_TRY(sw_mesh_coord_of(mesh, rank, &mine, err));
    for (uint32_t other = 0; other < sw_mesh_ranks(mesh); other++) {
        sw_mesh_coord coord = {{0}};
        SW_TRY(sw_mesh_coord_of(mesh, other, &coord, err));
        if (are_together(mesh, kind, &mine, &coord))
            members[(*n_members)++] = other;
    }
    return SW_OK;
}

/* ---- who is there ---- */

/* One check of this rank. */
typedef struct roll {
    uint32_t *expected;
    uint32_t n_expected;
    uint32_t *heard; /* room for all ranks */
} roll;

/* The member before this rank, round the group. */
static uint32_t before_of(const sw_group *group)
{
    return (group->index == 0 ? group->size : group->index) - 1;
}

/* Compare a group with the mesh; no communication. */
static sw_status compare(const sw_group *group, const roll *call, uint32_t before, sw_error *err)
{
    static const char help[] = "this is a fault of the program: report it with the mesh";

    for (uint32_t i = 0; i < group->size; i++) {
        if (call->heard[i] != call->expected[i]) {
            return SW_FAIL(err, SW_E_PEER, help,
                           "group %s: member %" PRIu32 " is rank %" PRIu32 ", the mesh has rank %" PRIu32
                           " there",
                           group->name, i, call->heard[i], call->expected[i]);
        }
    }
    uint32_t neighbour = call->expected[before_of(group)];
    if (before != neighbour)
        return SW_FAIL(err, SW_E_PEER, help,
                       "group %s: rank %" PRIu32 " sent where rank %" PRIu32 " is the neighbour", group->name,
                       before, neighbour);
    return SW_OK;
}

/*
 * Call the roll of a group: everybody's number from everybody, and the neighbour's by a message of its own.
 * Ranks disagree on the size of a group only if its communicator is wrong: then nobody calls.
 */
static sw_status call_roll(sw_comm *comm, sw_group_kind kind, const roll *call, sw_error *err)
{
    const sw_group *group = sw_comm_group(comm, kind);
    uint32_t rank = sw_comm_rank(comm);
    uint32_t before = rank;
    sw_status status = SW_OK;

    if (group->size != call->n_expected)
        status = SW_FAIL(err, SW_E_PEER, "this is a fault of the program: report it with the mesh",
                         "group %s has %" PRIu32 " ranks, the mesh has %" PRIu32 " there",
                         sw_group_kind_name(kind), group->size, call->n_expected);
    SW_TRY(sw_comm_agree(comm, status, err));
    call->heard[0] = rank;
    if (group->size > 1) {
        int next = (int)((group->index + 1) % group->size);
        int last = (int)before_of(group);
        MPI_Allgather(&rank, 1, MPI_UINT32_T, call->heard, 1, MPI_UINT32_T, group->mpi);
        MPI_Sendrecv(&rank, 1, MPI_UINT32_T, next, 0, &before, 1, MPI_UINT32_T, last, 0, group->mpi,
                     MPI_STATUS_IGNORE);
    }
    return sw_comm_agree(comm, compare(group, call, before, err), err);
}

/* ---- what is said ---- */

/* Where a rank was found, for the table. */
typedef struct seat {
    uint32_t first; /* member 0 of its group */
    uint32_t index;
} seat;

/* A row of the table. `seats` are those of all ranks. */
typedef struct row {
    const char *name;
    uint32_t size;
    uint32_t n_groups;
    const seat *seats;
    uint32_t n_seats;
} row;

/* The rank with this place in the group that begins with `first`. */
static uint32_t rank_at(const row *r, uint32_t first, uint32_t index)
{
    for (uint32_t rank = first; rank < r->n_seats; rank++) {
        if (r->seats[rank].first == first && r->seats[rank].index == index)
            return rank;
    }
    return first;
}

static void put_group(const row *r, uint32_t first, sw_buffer *out)
{
    uint32_t n_listed = r->size <= MAX_MEMBERS_LISTED ? r->size : 2;

    for (uint32_t i = 0; i < n_listed; i++)
        sw_buffer_printf(out, "%s%" PRIu32, i == 0 ? " [" : " ", rank_at(r, first, i));
    if (n_listed < r->size)
        sw_buffer_printf(out, " ... %" PRIu32, rank_at(r, first, r->size - 1));
    sw_buffer_putc(out, ']');
}

static void put_row(const row *r, sw_buffer *out)
{
    uint32_t n_listed = 0;

    sw_buffer_printf(out, "%-13s  %6" PRIu32 "  %4" PRIu32 " ", r->name, r->n_groups, r->size);
    for (uint32_t rank = 0; rank < r->n_seats && n_listed < MAX_GROUPS_LISTED; rank++) {
        if (r->seats[rank].index == 0) {
            put_group(r, rank, out);
            n_listed++;
        }
    }
    sw_buffer_puts(out, n_listed < r->n_groups ? " ...\n" : "\n");
}

static void put_row_json(const row *r, sw_json_writer *writer)
{
    sw_json_key(writer, r->name);
    sw_json_begin_array(writer);
    for (uint32_t rank = 0; rank < r->n_seats; rank++) {
        if (r->seats[rank].index != 0)
            continue;
        sw_json_inline(writer);
        sw_json_begin_array(writer);
        for (uint32_t i = 0; i < r->size; i++)
            sw_json_put_u64(writer, rank_at(r, rank, i));
        sw_json_end_array(writer);
    }
    sw_json_end_array(writer);
}

/* Memory of one run. */
typedef struct desk {
    uint32_t *expected;
    uint32_t *heard;
    seat *seats;
} desk;

static void clear_desk(desk *d)
{
    sw_free(d->expected);
    sw_free(d->heard);
    sw_free(d->seats);
}

static sw_status fill_desk(desk *d, uint32_t ranks, sw_error *err)
{
    d->expected = sw_alloc_zero(ranks, sizeof *d->expected);
    d->heard = sw_alloc_zero(ranks, sizeof *d->heard);
    d->seats = sw_alloc_zero(ranks, sizeof *d->seats);
    if (d->expected == NULL || d->heard == NULL || d->seats == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the numbers of %" PRIu32 " ranks", ranks);
    return SW_OK;
}

static bool has_kind(const sw_mesh *mesh, sw_group_kind kind)
{
    bool is_of_experts = kind >= SW_GROUP_EP && kind <= SW_GROUP_EDP_SHARD;
    return !is_of_experts || sw_mesh_ep_mode(mesh) != SW_EP_NONE;
}

/* Check the groups of one kind; rank 0 says what was found. */
static sw_status check_kind(sw_comm *comm, sw_group_kind kind, const desk *d, sw_buffer *out,
                            sw_json_writer *writer, sw_error *err)
{
    const sw_mesh *mesh = sw_comm_mesh(comm);
    uint32_t ranks = sw_mesh_ranks(mesh);
    roll call = {d->expected, 0, d->heard};

    sw_status status = expect_members(mesh, kind, sw_comm_rank(comm), d->expected, &call.n_expected, err);
    SW_TRY(sw_comm_agree(comm, status, err));
    SW_TRY(call_roll(comm, kind, &call, err));

    const sw_group *group = sw_comm_group(comm, kind);
    seat mine = {d->heard[0], group->index};
    if (group->size == 1)
        return SW_OK;
    MPI_Gather(&mine, 2, MPI_UINT32_T, d->seats, 2, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (sw_comm_rank(comm) != 0)
        return SW_OK;
    const row r = {sw_group_kind_name(kind), group->size, ranks / group->size, d->seats, ranks};
    if (writer != NULL)
        put_row_json(&r, writer);
    else
        put_row(&r, out);
    return SW_OK;
}

static sw_status check_kinds(sw_comm *comm, const desk *d, sw_buffer *out, sw_json_writer *writer,
                             sw_error *err)
{
    for (int kind = 0; kind < SW_GROUP_KIND_COUNT_; kind++) {
        if (has_kind(sw_comm_mesh(comm), (sw_group_kind)kind))
            SW_TRY(check_kind(comm, (sw_group_kind)kind, d, out, writer, err));
    }
    return SW_OK;
}

static sw_status check_mesh(sw_comm *comm, const desk *d, bool is_json, sw_buffer *out, sw_error *err)
{
    uint32_t ranks = sw_mesh_ranks(sw_comm_mesh(comm));

    if (!is_json) {
        sw_buffer_puts(out, "group          groups  size  ranks of each\n");
        SW_TRY(check_kinds(comm, d, out, NULL, err));
        sw_buffer_printf(out, "\n%" PRIu32 " rank%s answered, each in its place\n", ranks,
                         ranks == 1 ? "" : "s");
        return SW_OK;
    }
    sw_json_writer writer;
    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "ranks");
    sw_json_put_u64(&writer, ranks);
    sw_json_key(&writer, "groups");
    sw_json_begin_object(&writer);
    SW_TRY(check_kinds(comm, d, out, &writer, err));
    sw_json_end_object(&writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
    return SW_OK;
}

static void drop_mesh(sw_mesh **mesh)
{
    sw_mesh_destroy(*mesh);
}

static void drop_comm(sw_comm **comm)
{
    sw_comm_destroy(*comm);
}

static sw_status run_check_mesh(sw_run *run, sw_error *err)
{
    sw_mesh *mesh SW_AUTO(drop_mesh) = NULL;
    sw_comm *comm SW_AUTO(drop_comm) = NULL;
    desk d SW_AUTO(clear_desk) = {NULL, NULL, NULL};

    SW_TRY(sw_input_mesh(&mesh, &run->arguments, OPT_MESH, OPT_EP, err));
    SW_TRY(sw_comm_create(&comm, mesh, NULL, err));
    SW_TRY(sw_comm_agree(comm, fill_desk(&d, sw_mesh_ranks(mesh), err), err));
    return check_mesh(comm, &d, sw_arguments_has(&run->arguments, OPT_JSON), &run->out, err);
}

const sw_command sw_command_check_mesh = {
    .name = "check-mesh",
    .summary = "prove on the ranks of the job that the groups of a mesh are right",
    .usage = "--mesh AXES [--ep N] [--json]",
    .description =
        "Make the communicators of a mesh on the ranks of this job, and prove that each holds the ranks\n"
        "that the mesh puts there, in order: every rank calls the roll of its groups.\n"
        "The job must have as many ranks as the mesh.\n",
    .options = options,
    .run = run_check_mesh,
};
