/*
 * Sums of gradients over groups of ranks, and their norm. The mesh is dp=2 (where ranks are even) and tp;
 * what ranks hold are whole numbers, so that sums are exact.
 */
#include "rank_case.h"

#include "mesh/layout.h"
#include "mesh/shard.h"
#include "parallel/gradients.h"
#include "parallel/owned.h"

enum { PARAMETERS = 7, ROOM = 400 };

static sw_mesh *mesh;
static sw_comm *comm;
static sw_kernel *kernel;
static uint32_t n_tp;
static uint32_t n_dp;

static int open_comm(void **state)
{
    char text[32];

    (void)state;
    n_dp = sw_test_ranks() % 2 == 0 ? 2 : 1;
    n_tp = (uint32_t)sw_test_ranks() / n_dp;
    (void)snprintf(text, sizeof text, "dp=%u,tp=%u", n_dp, n_tp);
    if (sw_mesh_create(&mesh, text, 0, NULL) != SW_OK || sw_comm_create(&comm, mesh, NULL, NULL) != SW_OK)
        return -1;
    return sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL) == SW_OK ? 0 : -1;
}

static int close_comm(void **state)
{
    (void)state;
    sw_kernel_destroy(kernel);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    return 0;
}

static const sw_group *group_of(sw_group_kind kind)
{
    return sw_comm_group(comm, kind);
}

/* Gradients in memory of their own, with gaps or without. */
typedef struct gradients {
    float memory[ROOM];
    sw_storage storages[PARAMETERS];
    sw_gradient list[PARAMETERS];
    uint32_t n;
    size_t used;
} gradients;

static sw_gradient *add(gradients *g, uint64_t n_elems, size_t gap)
{
    sw_storage *storage = &g->storages[g->n];
    sw_gradient *one = &g->list[g->n++];

    *storage = (sw_storage){.n_elems = n_elems, .dtype = SW_DTYPE_F32, .has_gradient = true};
    storage->gradient = g->memory + g->used;
    *one = (sw_gradient){.storage = storage, .values = storage->gradient, .n_elems = n_elems};
    g->used += n_elems + gap;
    return one;
}

/* What a rank has before the sum. */
static float number_of(uint32_t parameter, uint64_t i, uint32_t rank)
{
    return (float)(int)((parameter * 31 + i * 7 + rank * 13) % 101) - 50;
}

static void fill(gradients *g)
{
    uint32_t rank = (uint32_t)sw_test_rank();

    for (uint32_t p = 0; p < g->n; p++) {
        for (uint64_t i = 0; i < g->list[p].n_elems; i++)
            ((float *)g->list[p].values)[i] = number_of(p, i, rank);
    }
}

/* Is `rank` one of those that this rank's gradient of a parameter is summed over? */
typedef bool is_summed_fn(uint32_t rank);

static bool over_nobody(uint32_t rank)
{
    return rank == (uint32_t)sw_test_rank();
}

static bool over_dp(uint32_t rank)
{
    return rank % n_tp == (uint32_t)sw_test_rank() % n_tp;
}

static bool over_tp(uint32_t rank)
{
    return rank / n_tp == (uint32_t)sw_test_rank() / n_tp;
}

static bool over_all(uint32_t rank)
{
    (void)rank;
    return true;
}

static bool over_pairs(uint32_t rank)
{
    return rank / 2 == (uint32_t)sw_test_rank() / 2;
}

static void must_be_summed(const gradients *g, uint32_t parameter, is_summed_fn *is_summed)
{
    const float *values = g->list[parameter].values;

    for (uint64_t i = 0; i < g->list[parameter].n_elems; i++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < (uint32_t)sw_test_ranks(); rank++)
            sum += is_summed(rank) ? number_of(parameter, i, rank) : 0;
        if (values[i] != sum)
            fail_msg("parameter %u, element %d: %g is not %g", parameter, (int)i, (double)values[i],
                     (double)sum);
    }
}

static void sum(gradients *g, size_t bucket_bytes, uint32_t n_buckets)
{
    sw_gradients *made = NULL;

    assert_int_equal(sw_gradients_create(&made, g->list, g->n, group_of(SW_GROUP_WORLD), bucket_bytes, NULL),
                     SW_OK);
    assert_int_equal(sw_gradients_buckets(made), n_buckets);
    sw_alloc_fail_at(1);
    sw_gradients_sum(made);
    sw_alloc_fail_at(0);
    sw_gradients_destroy(made);
}

/* Seven parameters of four kinds, mixed. */
static void add_mixed(gradients *g, size_t gap)
{
    const sw_group *dp = group_of(SW_GROUP_DP);
    const sw_group *tp = group_of(SW_GROUP_TP);

    for (uint32_t p = 0; p < PARAMETERS; p++) {
        sw_gradient *one = add(g, 5 + p, gap);
        if (p % 3 != 2)
            one->sums[one->n_sums++] = dp;
        if (p % 3 == 1)
            one->sums[one->n_sums++] = tp;
    }
}

static void mixed_must_be_summed(const gradients *g)
{
    for (uint32_t p = 0; p < PARAMETERS; p++)
        must_be_summed(g, p, p % 3 == 0 ? over_dp : p % 3 == 1 ? over_all : over_nobody);
}

static void gradients_are_summed_over_their_groups_and_no_others(void **state)
{
    gradients g = {.n = 0};

    (void)state;
    add_mixed(&g, 3);
    fill(&g);
    sum(&g, 1 << 20, 2);
    mixed_must_be_summed(&g);
}

/* 0, 3 and 6 over dp have 5, 8 and 11 elements, 1 and 4 over both have 6 and 9. */
static void buckets_end_where_they_are_full(void **state)
{
    gradients g = {.n = 0};

    (void)state;
    add_mixed(&g, 1);
    fill(&g);
    sum(&g, 13 * sizeof(float), 4);
    mixed_must_be_summed(&g);
    fill(&g);
    sum(&g, 1, 5); /* each alone */
    mixed_must_be_summed(&g);
}

static void gradients_that_lie_together_are_summed_where_they_are(void **state)
{
    gradients g = {.n = 0};

    (void)state;
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        sw_gradient *one = add(&g, 4 + p, 0);
        one->sums[one->n_sums++] = group_of(SW_GROUP_TP);
    }
    fill(&g);
    sum(&g, 1 << 20, 1);
    for (uint32_t p = 0; p < PARAMETERS; p++)
        must_be_summed(&g, p, over_tp);
}

/* Key/value heads that two neighbours hold: their gradients are summed between those two alone. */
static void replicas_are_summed_in_their_group_only(void **state)
{
    gradients g = {.n = 0};
    const sw_group *pair = NULL;

    (void)state;
    sw_test_need(n_tp % 2 == 0, "is for an even tp, mpi.parallel_gradients.n4 and n8 run it");
    assert_int_equal(sw_comm_neighbours(comm, SW_AXIS_TP, 2, &pair, NULL), SW_OK);
    sw_gradient *one = add(&g, 9, 0);
    one->sums[one->n_sums++] = pair;
    fill(&g);
    sum(&g, 1 << 20, 1);
    must_be_summed(&g, 0, over_pairs);
}

/* Nothing has flowed back on the last rank; of another parameter nowhere. */
static void a_rank_without_a_gradient_brings_zeros(void **state)
{
    gradients g = {.n = 0};
    uint32_t last = (uint32_t)sw_test_ranks() - 1;

    (void)state;
    for (uint32_t p = 0; p < 2; p++) {
        sw_gradient *one = add(&g, 6, 0);
        one->sums[one->n_sums++] = group_of(SW_GROUP_WORLD);
    }
    fill(&g);
    g.storages[0].has_gradient = (uint32_t)sw_test_rank() != last || last == 0;
    g.storages[1].has_gradient = false;
    sum(&g, 1 << 20, 1);
    assert_true(g.storages[0].has_gradient);
    assert_false(g.storages[1].has_gradient);
    for (uint64_t i = 0; i < 6; i++) {
        float expected = last == 0 ? number_of(0, i, 0) : 0;
        for (uint32_t rank = 0; rank < last; rank++)
            expected += number_of(0, i, rank);
        assert_true(((float *)g.list[0].values)[i] == expected);
    }
}

/* ---- the norm ---- */

/* The parameters of a model by how they are cut over tp; all are copies over dp. */
typedef struct cut_parameter {
    uint64_t dims[2];
    sw_placement place;
} cut_parameter;

/* This rank's part of one, whose element (r, c) is r + 2c + 1; returns the square sum of the whole. */
static double add_part(gradients *g, const cut_parameter *p, sw_arena *arena)
{
    const sw_grid grid = {1, {SW_AXIS_TP}, {n_tp}};
    sw_grid_coord at = {{group_of(SW_GROUP_TP)->index}};
    sw_tensor_layout layout;
    uint64_t local[2];
    double squares = 0;

    assert_int_equal(sw_tensor_layout_make(&layout, &grid, 2, p->dims, &p->place, NULL), SW_OK);
    sw_tensor_layout_local(&layout, at, local);
    sw_gradient *one = add(g, local[0] * local[1], 1);
    if (group_of(SW_GROUP_DP)->index == 0)
        assert_int_equal(sw_owned_elements(&layout, at, arena, &one->owned, &one->n_owned, NULL), SW_OK);
    sw_range rows = {0, p->dims[0]};
    if (p->place.kind == SW_PLACE_SHARD && p->place.cut == NULL)
        rows = sw_shard_range(p->dims[0], n_tp, at.at[0]);
    for (uint64_t i = 0; i < one->n_elems; i++) {
        uint64_t row = rows.begin + i / p->dims[1];
        ((float *)one->values)[i] = (float)(row + 2 * (i % p->dims[1]) + 1);
    }
    for (uint64_t i = 0; i < p->dims[0] * p->dims[1]; i++) {
        double x = (double)(i / p->dims[1] + 2 * (i % p->dims[1]) + 1);
        squares += x * x;
    }
    return squares;
}

static double square_sum(gradients *g)
{
    sw_gradients *made = NULL;

    assert_int_equal(sw_gradients_create(&made, g->list, g->n, group_of(SW_GROUP_WORLD), 1 << 20, NULL),
                     SW_OK);
    sw_gradients_sum(made);
    double result = sw_gradients_square_sum(made, kernel);
    sw_gradients_destroy(made);
    return result;
}

/* Cut, whole, and one piece that all ranks of tp hold: copies count once, and so do those of dp. */
static void bug_54_copies_count_once_in_the_norm(void **state)
{
    const sw_segment segment = {.extent = 3, .unit = 1, .replicas = n_tp};
    const sw_cut held_by_all = {.n_groups = 1, .n_segments = 1, .segments = &segment};
    const cut_parameter parameters[] = {
        {{12, 2}, {SW_PLACE_SHARD, 0, NULL}        },
        {{7, 2},  {SW_PLACE_SHARD, 0, NULL}        },
        {{5, 3},  {SW_PLACE_REPLICATE, 0, NULL}    },
        {{3, 4},  {SW_PLACE_SHARD, 0, &held_by_all}},
    };
    gradients g = {.n = 0};
    sw_arena *arena = sw_arena_create(0);
    double expected = 0;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(parameters); i++)
        expected += add_part(&g, &parameters[i], arena);
    assert_true(square_sum(&g) == expected);
    sw_arena_destroy(arena);
}

/* Experts of other ranks, which this one holds nothing of, are in its norm. */
static void bug_55_experts_of_all_ranks_are_in_the_norm(void **state)
{
    gradients g = {.n = 0};
    uint32_t rank = (uint32_t)sw_test_rank();
    double expected = 0;

    (void)state;
    sw_gradient *experts = add(&g, 3, 0);
    const sw_range all = {0, 3};
    experts->owned = &all;
    experts->n_owned = 1;
    for (uint64_t i = 0; i < 3; i++)
        ((float *)experts->values)[i] = (float)(rank * 3 + i);
    for (uint64_t i = 0; i < 3 * (uint64_t)sw_test_ranks(); i++)
        expected += (double)(i * i);
    assert_true(square_sum(&g) == expected);
}

static void the_norm_has_the_same_bits_on_all_ranks_and_in_every_run(void **state)
{
    double first = 0;

    (void)state;
    for (int run = 0; run < 2; run++) {
        gradients g = {.n = 0};
        const sw_range all = {0, 29};
        sw_gradient *one = add(&g, 29, 0);
        one->owned = &all;
        one->n_owned = 1;
        for (uint64_t i = 0; i < 29; i++)
            ((float *)one->values)[i] = (float)random_at((uint64_t)sw_test_rank(), i);
        double got = square_sum(&g);
        if (run == 0)
            first = got;
        assert_memory_equal(&first, &got, sizeof got);
    }
    double most = first;
    sw_all_reduce_max(group_of(SW_GROUP_WORLD), 1, SW_DTYPE_F64, &most, &most);
    assert_memory_equal(&first, &most, sizeof most);
}

static void nan_on_one_rank_is_nan_on_all(void **state)
{
    gradients g = {.n = 0};
    const sw_range all = {0, 4};
    sw_gradient *one = add(&g, 4, 0);

    (void)state;
    one->owned = &all;
    one->n_owned = 1;
    fill(&g);
    if (sw_test_rank() == sw_test_ranks() - 1)
        ((float *)one->values)[2] = NAN;
    assert_true(isnan(square_sum(&g)));
}

static void without_memory_nothing_is_made_and_nothing_left(void **state)
{
    gradients g = {.n = 0};
    int64_t live = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    add_mixed(&g, 3);
    for (uint64_t n = 1; status == SW_E_NO_MEMORY; n++) {
        sw_gradients *made = NULL;
        sw_alloc_fail_at(n);
        status = sw_gradients_create(&made, g.list, g.n, group_of(SW_GROUP_WORLD), 1 << 20, NULL);
        sw_alloc_fail_at(0);
        sw_gradients_destroy(made);
        assert_int_equal(sw_alloc_live(), live);
    }
    assert_int_equal(status, SW_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_summed_over_their_groups_and_no_others),
        cmocka_unit_test(buckets_end_where_they_are_full),
        cmocka_unit_test(gradients_that_lie_together_are_summed_where_they_are),
        cmocka_unit_test(replicas_are_summed_in_their_group_only),
        cmocka_unit_test(a_rank_without_a_gradient_brings_zeros),
        cmocka_unit_test(bug_54_copies_count_once_in_the_norm),
        cmocka_unit_test(bug_55_experts_of_all_ranks_are_in_the_norm),
        cmocka_unit_test(the_norm_has_the_same_bits_on_all_ranks_and_in_every_run),
        cmocka_unit_test(nan_on_one_rank_is_nan_on_all),
        cmocka_unit_test(without_memory_nothing_is_made_and_nothing_left),
    };
    return SW_MPI_MAIN_WITH("parallel_gradients", tests, open_comm, close_comm);
}
