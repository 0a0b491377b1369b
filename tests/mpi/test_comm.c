/* Communicators of a mesh: who is in them, which are shared, what is refused on all ranks at once. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"
#include "mpi_main.h"

enum { MOST_RANKS = 8 };

static sw_comm *comm_of(const char *axes, uint32_t ep)
{
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_error err = {0};
    assert_int_equal(sw_mesh_create(&mesh, axes, ep, NULL), SW_OK);
    if (sw_comm_create(&comm, mesh, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_mesh_destroy(mesh);
    return comm;
}

/* The job's ranks in a group, as they answer. */
static void members_are(const sw_group *group, const uint32_t *expected)
{
    uint32_t heard[MOST_RANKS] = {0};
    uint32_t rank = (uint32_t)sw_test_rank();
    int index = 0;

    MPI_Comm_rank(group->mpi, &index);
    assert_int_equal(index, group->index);
    MPI_Allgather(&rank, 1, MPI_UINT32_T, heard, 1, MPI_UINT32_T, group->mpi);
    assert_memory_equal(heard, expected, group->size * sizeof *heard);
}

/* A mesh of as many ranks as there are, all but tp of size 1. */
static void one_axis_of_all_ranks_has_one_communicator(void **state)
{
    (void)state;
    char axes[16];
    int64_t live = sw_alloc_live();
    uint32_t all[MOST_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    sw_comm *comm = comm_of(axes, 0);
    const sw_group *tp = sw_comm_group(comm, SW_GROUP_TP);
    assert_int_equal(tp->size, sw_test_ranks());
    assert_ptr_equal(tp, sw_comm_group(comm, SW_GROUP_STAGE));
    assert_ptr_equal(tp, sw_comm_group(comm, SW_GROUP_WORLD));
    assert_int_equal(sw_comm_rank(comm), sw_test_rank());
    assert_int_equal(sw_mesh_ranks(sw_comm_mesh(comm)), sw_test_ranks());
    if (sw_test_ranks() == 1) {
        assert_true(tp->mpi == MPI_COMM_NULL);
    } else {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = 0;
        members_are(tp, all);
        assert_ptr_equal(sw_comm_group(comm, SW_GROUP_DP), sw_comm_group(comm, SW_GROUP_PP));
        assert_int_equal(sw_comm_group(comm, SW_GROUP_DP)->size, 1);
        MPI_Comm_get_name(tp->mpi, name, &length);
        assert_string_equal(name, "tp");
    }
    sw_comm_destroy(comm);
    assert_int_equal(sw_alloc_live(), live);
}

static void eight_ranks_are_grouped_as_the_mesh_says(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 8, "is for 8 ranks, mpi.comm.n8 runs it");
    uint32_t r = (uint32_t)sw_test_rank();
    int64_t live = sw_alloc_live();
    sw_comm *comm = comm_of("dp=2,cp=2,tp=2", 4);
    const sw_group *over = NULL;
    const sw_group *again = NULL;

    members_are(sw_comm_group(comm, SW_GROUP_DP), (uint32_t[]){r % 4, r % 4 + 4});
    members_are(sw_comm_group(comm, SW_GROUP_CP), (uint32_t[]){r & ~2U, r | 2U});
    members_are(sw_comm_group(comm, SW_GROUP_TP), (uint32_t[]){r & ~1U, r | 1U});
    members_are(sw_comm_group(comm, SW_GROUP_EP),
                r < 4 ? (uint32_t[]){0, 1, 2, 3} : (uint32_t[]){4, 5, 6, 7});
    members_are(sw_comm_group(comm, SW_GROUP_DP_CP),
                r % 2 == 0 ? (uint32_t[]){0, 2, 4, 6} : (uint32_t[]){1, 3, 5, 7});
    assert_ptr_equal(sw_comm_group(comm, SW_GROUP_EDP), sw_comm_group(comm, SW_GROUP_DP));

    /* dp and tp, without cp between them: no kind of group has these members. */
    uint32_t axes = 1U << SW_AXIS_DP | 1U << SW_AXIS_TP;
    assert_int_equal(sw_comm_over(comm, axes, &over, NULL), SW_OK);
    uint32_t c = r & 2U;
    members_are(over, (uint32_t[]){c, c + 1, c + 4, c + 5});
    assert_string_equal(over->name, "dp_tp");
    assert_int_equal(sw_comm_over(comm, axes | 1U << SW_AXIS_PP, &again, NULL), SW_OK);
    assert_ptr_equal(over, again);
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_CP | 1U << SW_AXIS_TP, &again, NULL), SW_OK);
    assert_ptr_equal(again, sw_comm_group(comm, SW_GROUP_EP));
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_DP, &again, NULL), SW_OK);
    assert_ptr_equal(again, sw_comm_group(comm, SW_GROUP_DP));
    sw_comm_destroy(comm);
    assert_int_equal(sw_alloc_live(), live);
}

/* On dp=2,cp=2,tp=2 with four experts: edp is of ranks four apart, ep of neighbours. */
static void groups_over_derived_axes_are_those_of_the_ranks_they_number(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 8, "is for 8 ranks, mpi.comm.n8 runs it");
    uint32_t r = (uint32_t)sw_test_rank();
    uint32_t c = r & 2U;
    sw_comm *comm = comm_of("dp=2,cp=2,tp=2", 4);
    const sw_group *over = NULL;
    const sw_group *dense = NULL;
    const uint32_t both = 1U << SW_AXIS_EDP | 1U << SW_AXIS_EP;

    assert_int_equal(sw_comm_over(comm, both, &over, NULL), SW_OK);
    assert_ptr_equal(over, sw_comm_group(comm, SW_GROUP_STAGE));
    assert_int_equal(sw_comm_over(comm, both | 1U << SW_AXIS_PP, &over, NULL), SW_OK);
    assert_ptr_equal(over, sw_comm_group(comm, SW_GROUP_WORLD));
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_EDP | 1U << SW_AXIS_TP, &over, NULL), SW_OK);
    members_are(over, (uint32_t[]){c, c + 1, c + 4, c + 5});
    assert_string_equal(over->name, "edp_tp");
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_DP | 1U << SW_AXIS_TP, &dense, NULL), SW_OK);
    assert_ptr_equal(over, dense); /* the same ranks */
    sw_comm_destroy(comm);
}

static void groups_over_axes_that_number_the_same_ranks_are_refused(void **state)
{
    (void)state;
    char axes[16];
    const sw_group *over = NULL;
    sw_error err = {0};

    (void)snprintf(axes, sizeof axes, "dp=%d", sw_test_ranks());
    sw_comm *comm = comm_of(axes, (uint32_t)sw_test_ranks());
    if (sw_test_ranks() > 1) {
        assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_DP | 1U << SW_AXIS_EP, &over, &err), SW_E_ARGUMENT);
        assert_string_equal(err.what, "a group over dp and ep, which number the same ranks");
    }
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_EP, &over, &err), SW_OK);
    assert_ptr_equal(over, sw_comm_group(comm, SW_GROUP_EP));
    assert_int_equal(sw_comm_over(comm, 1U << 31, &over, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a group over axis 31, which is none");
    assert_int_equal(sw_comm_over(comm, 0, &over, &err), SW_OK);
    assert_int_equal(over->size, 1);
    sw_comm_destroy(comm);
}

static void neighbours_on_an_axis_are_a_group(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 8, "is for 8 ranks, mpi.comm.n8 runs it");
    uint32_t r = (uint32_t)sw_test_rank();
    int64_t live = sw_alloc_live();
    sw_comm *comm = comm_of("dp=2,tp=4", 0);
    const sw_group *pair = NULL;
    const sw_group *again = NULL;
    sw_error err = {0};

    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 2, &pair, NULL), SW_OK);
    members_are(pair, (uint32_t[]){r & ~1U, r | 1U});
    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 2, &again, NULL), SW_OK);
    assert_ptr_equal(pair, again);
    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 4, &again, NULL), SW_OK);
    assert_ptr_equal(again, sw_comm_group(comm, SW_GROUP_TP));
    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 1, &again, NULL), SW_OK);
    assert_int_equal(again->size, 1);
    assert_int_equal(sw_comm_over(comm, 1U << SW_AXIS_TP, &again, NULL), SW_OK);
    assert_ptr_equal(again, sw_comm_group(comm, SW_GROUP_TP));
    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 3, &again, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "blocks of 3 neighbours do not divide tp=4");
    sw_comm_destroy(comm);
    assert_int_equal(sw_alloc_live(), live);
}

static void a_part_of_the_job_can_have_a_mesh(void **state)
{
    (void)state;
    int rank = sw_test_rank();
    MPI_Comm half = MPI_COMM_NULL;
    int ranks = 0;
    char axes[16];
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* the other way round */
    MPI_Comm_size(half, &ranks);
    (void)snprintf(axes, sizeof axes, "cp=%d", ranks);
    assert_int_equal(sw_mesh_create(&mesh, axes, 0, NULL), SW_OK);
    assert_int_equal(sw_comm_create(&comm, mesh, &half, NULL), SW_OK);
    assert_int_equal(sw_comm_rank(comm), ranks - 1 - rank / 2);
    assert_int_equal(sw_comm_group(comm, SW_GROUP_CP)->size, ranks);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    MPI_Comm_free(&half);
}

/* Try to make a mesh of this text, and expect all ranks to hear the same. */
static void is_refused(const char *axes, sw_status expected, const char *what, const char *help)
{
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_error err = {0};
    int64_t live = sw_alloc_live();

    assert_int_equal(sw_mesh_create(&mesh, axes, 0, NULL), SW_OK);
    assert_int_equal(sw_comm_create(&comm, mesh, NULL, &err), expected);
    assert_null(comm);
    assert_string_equal(err.what, what);
    assert_string_equal(err.help, help);
    sw_mesh_destroy(mesh);
    assert_int_equal(sw_alloc_live(), live);
}

static void a_mesh_of_other_size_is_refused_with_both_numbers(void **state)
{
    (void)state;
    char what[64];
    char help[96];
    (void)snprintf(what, sizeof what, "the mesh has 24 ranks, the job has %d", sw_test_ranks());
    (void)snprintf(help, sizeof help, "start 24 ranks (mpirun -n 24), or give a mesh of %d", sw_test_ranks());
    is_refused("dp=2,cp=3,tp=4", SW_E_PLAN, what, help);
}

static void ranks_with_different_meshes_are_refused(void **state)
{
    (void)state;
    char axes[24];
    char what[128];
    int ranks = sw_test_ranks();
    sw_test_need(ranks > 1, "is for several ranks, mpi.comm.n2 and others run it");
    bool is_last = sw_test_rank() == ranks - 1;
    (void)snprintf(axes, sizeof axes, "%s=%d", is_last ? "cp" : "tp", ranks);
    (void)snprintf(what, sizeof what, "ranks were given different meshes: cp is %d here and 1 on rank 0",
                   ranks);
    is_refused(axes, SW_E_PLAN, what, "give every rank the same mesh");
}

static void a_rank_without_a_mesh_fails_all(void **state)
{
    (void)state;
    char axes[16];
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_error err = {0};
    bool is_last = sw_test_rank() == sw_test_ranks() - 1;

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    assert_int_equal(sw_mesh_create(&mesh, axes, 0, NULL), SW_OK);
    assert_int_equal(sw_comm_create(&comm, is_last ? NULL : mesh, NULL, &err), SW_E_ARGUMENT);
    assert_null(comm);
    assert_string_equal(err.what, "sw_comm_create(): mesh is NULL");
    assert_int_equal(err.rank, sw_test_ranks() - 1);
    sw_mesh_destroy(mesh);
}

static void a_rank_without_memory_fails_all(void **state)
{
    (void)state;
    char axes[16];
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_error err = {0};

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    assert_int_equal(sw_mesh_create(&mesh, axes, 0, NULL), SW_OK);
    if (sw_test_rank() == sw_test_ranks() - 1)
        sw_alloc_fail_at(1);
    assert_int_equal(sw_comm_create(&comm, mesh, NULL, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_string_equal(err.what, "no memory for communicators");
    sw_mesh_destroy(mesh);
}

static void a_rank_that_has_something_else_is_named_on_all(void **state)
{
    (void)state;
    char axes[16];
    sw_mesh *mesh = NULL;
    sw_comm *comm = NULL;
    sw_error err = {0};
    uint64_t last = (uint64_t)sw_test_ranks() - 1;

    (void)snprintf(axes, sizeof axes, "tp=%d", sw_test_ranks());
    assert_int_equal(sw_mesh_create(&mesh, axes, 0, NULL), SW_OK);
    assert_int_equal(sw_comm_create(&comm, mesh, NULL, NULL), SW_OK);
    assert_int_equal(sw_comm_same(comm, UINT64_MAX, "a file", &err), SW_OK);
    if (last > 0) {
        assert_int_equal(sw_comm_same(comm, (uint64_t)sw_test_rank() == last ? 7 : 8, "a file", &err),
                         SW_E_FORMAT);
        assert_string_equal(err.what, "a file: is not what rank 0 has");
        assert_int_equal(err.rank, last);
    }
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
}

static void nothing_is_asked_of_nothing(void **state)
{
    (void)state;
    sw_error err = {0};
    sw_comm_destroy(NULL);
    assert_null(sw_comm_mesh(NULL));
    assert_int_equal(sw_comm_rank(NULL), 0);
    assert_int_equal(sw_comm_agree(NULL, SW_OK, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "sw_comm_agree(): comm is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_axis_of_all_ranks_has_one_communicator),
        cmocka_unit_test(eight_ranks_are_grouped_as_the_mesh_says),
        cmocka_unit_test(groups_over_derived_axes_are_those_of_the_ranks_they_number),
        cmocka_unit_test(groups_over_axes_that_number_the_same_ranks_are_refused),
        cmocka_unit_test(neighbours_on_an_axis_are_a_group),
        cmocka_unit_test(a_part_of_the_job_can_have_a_mesh),
        cmocka_unit_test(a_mesh_of_other_size_is_refused_with_both_numbers),
        cmocka_unit_test(ranks_with_different_meshes_are_refused),
        cmocka_unit_test(a_rank_without_a_mesh_fails_all),
        cmocka_unit_test(a_rank_without_memory_fails_all),
        cmocka_unit_test(a_rank_that_has_something_else_is_named_on_all),
        cmocka_unit_test(nothing_is_asked_of_nothing),
    };
    return SW_MPI_MAIN("comm", tests);
}
