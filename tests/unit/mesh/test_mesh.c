/* Meshes: the text, its refusals with their words, and the arithmetic of ranks against numbers done by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "mesh/mesh.h"

static sw_mesh mesh_of(const char *axes, uint32_t ep)
{
    sw_error err = {0};
    sw_mesh mesh = {0};
    sw_status status = sw_mesh_init(&mesh, axes, ep, &err);
    if (status != SW_OK)
        fail_msg("%s: %s", axes, err.what);
    return mesh;
}

static void expect_refusal(const char *axes, uint32_t ep, sw_status status, const char *what,
                           const char *help)
{
    sw_error err = {0};
    sw_mesh *mesh = NULL;
    assert_int_equal(sw_mesh_create(&mesh, axes, ep, &err), status);
    assert_null(mesh);
    assert_string_equal(err.what, what);
    assert_string_equal(err.help, help);
    assert_int_equal(sw_mesh_create(&mesh, axes, ep, NULL), status);
}

static void expect_group(const sw_mesh *mesh, uint32_t rank, sw_axis axis, const uint32_t *members,
                         uint32_t n)
{
    uint32_t found[64] = {0};
    assert_int_equal(sw_mesh_axis_size(mesh, axis), n);
    assert_int_equal(sw_mesh_group_members(mesh, rank, axis, found, NULL), SW_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(found[i], members[i]);
}

#define EXPECT_GROUP(mesh, rank, axis, ...)                                                                  \
    expect_group((mesh), (rank), (axis), (const uint32_t[]){__VA_ARGS__},                                    \
                 (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static void an_empty_text_is_one_rank(void **state)
{
    (void)state;
    const char *const texts[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        sw_mesh mesh = mesh_of(texts[i], 0);
        assert_int_equal(sw_mesh_ranks(&mesh), 1);
        assert_int_equal(sw_mesh_ep_mode(&mesh), SW_EP_NONE);
        for (int axis = 0; axis < SW_AXIS_COUNT_; axis++)
            assert_int_equal(sw_mesh_axis_size(&mesh, (sw_axis)axis), 1);
    }
}

static void the_order_of_the_text_does_not_matter(void **state)
{
    (void)state;
    sw_mesh a = mesh_of("pp=2,dp=3,cp=5,ep=7,tp=4", 0);
    sw_mesh b = mesh_of("tp=4,ep=7,cp=5,dp=3,pp=2", 0);
    assert_int_equal(sw_mesh_ranks(&a), 840);
    for (int axis = 0; axis < SW_AXIS_COUNT_; axis++) {
        assert_int_equal(sw_mesh_axis_size(&a, (sw_axis)axis), sw_mesh_axis_size(&b, (sw_axis)axis));
        assert_int_equal(sw_mesh_axis_stride(&a, (sw_axis)axis), sw_mesh_axis_stride(&b, (sw_axis)axis));
    }
}

static void dp_may_be_given_by_its_parts(void **state)
{
    (void)state;
    uint32_t replicate = 0;
    uint32_t shard = 0;
    sw_mesh mesh = mesh_of("dp_shard=3,dp_replicate=2,tp=2", 0);
    assert_int_equal(sw_mesh_axis_size(&mesh, SW_AXIS_DP), 6);
    sw_mesh_dp_parts(&mesh, &replicate, &shard);
    assert_int_equal(replicate, 2);
    assert_int_equal(shard, 3);

    mesh = mesh_of("dp=4", 0);
    sw_mesh_dp_parts(&mesh, &replicate, &shard);
    assert_int_equal(replicate, 4);
    assert_int_equal(shard, 1);

    mesh = mesh_of("dp_shard=5", 0);
    sw_mesh_dp_parts(&mesh, &replicate, &shard);
    assert_int_equal(replicate, 1);
    assert_int_equal(shard, 5);
}

static void ranks_are_numbered_with_tp_fastest(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("pp=2,dp=2,cp=2,tp=2", 0);
    sw_mesh_coord at = {{0}};
    assert_int_equal(sw_mesh_coord_of(&mesh, 13, &at, NULL), SW_OK); /* 13 = 1101b */
    assert_int_equal(at.at[SW_AXIS_PP], 1);
    assert_int_equal(at.at[SW_AXIS_DP], 1);
    assert_int_equal(at.at[SW_AXIS_CP], 0);
    assert_int_equal(at.at[SW_AXIS_TP], 1);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_TP, 12, 13);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_CP, 13, 15);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_DP, 9, 13);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_PP, 5, 13);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_EP, 13);
    EXPECT_GROUP(&mesh, 13, SW_AXIS_EDP, 13);
}

static void a_derived_ep_fills_the_tp_group_first(void **state)
{
    (void)state;
    /* One stage has dp=2 * cp=2 * tp=2 = 8 ranks; ep=4 takes four consecutive ones. */
    sw_mesh mesh = mesh_of("pp=2,dp=2,cp=2,tp=2", 4);
    sw_mesh_coord at = {{0}};
    assert_int_equal(sw_mesh_ep_mode(&mesh), SW_EP_TP_EXTEND);
    assert_int_equal(sw_mesh_ranks(&mesh), 16);
    assert_int_equal(sw_mesh_coord_of(&mesh, 14, &at, NULL), SW_OK); /* stage-local 6 */
    assert_int_equal(at.at[SW_AXIS_EP], 2);
    assert_int_equal(at.at[SW_AXIS_EDP], 1);
    assert_int_equal(at.at[SW_AXIS_TP], 0);
    EXPECT_GROUP(&mesh, 14, SW_AXIS_EP, 12, 13, 14, 15);
    EXPECT_GROUP(&mesh, 14, SW_AXIS_EDP, 10, 14);
    EXPECT_GROUP(&mesh, 14, SW_AXIS_TP, 14, 15);
}

static void a_derived_ep_need_not_be_a_multiple_of_tp(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("pp=2,dp=3,tp=2", 3); /* 6 dense ranks a stage */
    EXPECT_GROUP(&mesh, 10, SW_AXIS_EP, 9, 10, 11);
    EXPECT_GROUP(&mesh, 10, SW_AXIS_EDP, 7, 10);
}

static void with_an_ep_axis_edp_is_dp_and_cp(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("dp=2,cp=2,ep=2,tp=2", 0);
    sw_mesh_coord at = {{0}};
    assert_int_equal(sw_mesh_ep_mode(&mesh), SW_EP_AXIS);
    assert_int_equal(sw_mesh_ranks(&mesh), 16);
    assert_int_equal(sw_mesh_coord_of(&mesh, 11, &at, NULL), SW_OK); /* dp 1, cp 0, ep 1, tp 1 */
    assert_int_equal(at.at[SW_AXIS_EP], 1);
    assert_int_equal(at.at[SW_AXIS_EDP], 2);
    EXPECT_GROUP(&mesh, 11, SW_AXIS_EP, 9, 11);
    EXPECT_GROUP(&mesh, 11, SW_AXIS_EDP, 3, 7, 11, 15);
}

static void an_ep_axis_of_one_is_no_expert_parallelism(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("ep=1,tp=4", 1);
    assert_int_equal(sw_mesh_ep_mode(&mesh), SW_EP_NONE);
}

static void an_unknown_axis_names_the_nearest(void **state)
{
    (void)state;
    expect_refusal("tq=4", 0, SW_E_ARGUMENT, "unknown axis 'tq'",
                   "did you mean 'tp'? axes are pp, dp, cp, ep, tp");
    expect_refusal("dp=2,TP=4", 0, SW_E_ARGUMENT, "unknown axis 'TP'",
                   "did you mean 'tp'? axes are pp, dp, cp, ep, tp");
    expect_refusal("dp_replicat=4", 0, SW_E_ARGUMENT, "unknown axis 'dp_replicat'",
                   "did you mean 'dp_replicate'? axes are pp, dp, cp, ep, tp");
    expect_refusal("edp=4", 0, SW_E_ARGUMENT, "unknown axis 'edp'",
                   "did you mean 'dp'? axes are pp, dp, cp, ep, tp");
    expect_refusal("sequence=4", 0, SW_E_ARGUMENT, "unknown axis 'sequence'", "axes are pp, dp, cp, ep, tp");
    expect_refusal("=4", 0, SW_E_ARGUMENT, "unknown axis ''", "axes are pp, dp, cp, ep, tp");
    expect_refusal("this_is_a_name_far_longer_than_any_axis_could_ever_have=4", 0, SW_E_ARGUMENT,
                   "unknown axis 'this_is_a_name_far_longer_than_a'", "axes are pp, dp, cp, ep, tp");
    expect_refusal("t\np=4", 0, SW_E_ARGUMENT, "the mesh text has white space in it",
                   "write it in one word, such as dp=2,tp=4");
}

static void an_axis_is_named_once(void **state)
{
    (void)state;
    expect_refusal("tp=4,dp=2,tp=4", 0, SW_E_ARGUMENT, "axis 'tp' is given twice", "name each axis once");
    expect_refusal("dp=4,dp_shard=2", 0, SW_E_ARGUMENT, "axis 'dp' and its parts are both given",
                   "give dp, or dp_replicate and dp_shard, whose product is dp");
}

static void a_size_is_a_number_in_range(void **state)
{
    (void)state;
    const char *range = "sizes are 1 to 1048576";
    expect_refusal("tp", 0, SW_E_ARGUMENT, "axis 'tp' has no size",
                   "write each axis as name=size, such as tp=4");
    expect_refusal("tp=", 0, SW_E_ARGUMENT, "axis 'tp' has no size",
                   "write each axis as name=size, such as tp=4");
    expect_refusal("tp=0", 0, SW_E_ARGUMENT, "size 0 of axis 'tp' is out of range", range);
    expect_refusal("tp=1048577", 0, SW_E_ARGUMENT, "size 1048577 of axis 'tp' is out of range", range);
    expect_refusal("tp=18446744073709551617", 0, SW_E_ARGUMENT,
                   "size 18446744073709551617 of axis 'tp' is out of range", range);
    const char *const texts[] = {"tp=-2", "tp=+2", "tp=2x", "tp=2=2", "tp=0x2"};
    const char *const shown[] = {"-2", "+2", "2x", "2=2", "0x2"};
    for (size_t i = 0; i < SW_COUNT(texts); i++) {
        char what[64];
        (void)snprintf(what, sizeof what, "size '%s' of axis 'tp' is not a number", shown[i]);
        expect_refusal(texts[i], 0, SW_E_ARGUMENT, what, "sizes are decimal digits only");
    }
    assert_int_equal(mesh_of("tp=1048576", 0).n_ranks, 1048576);
}

static void commas_stand_between_axes_only(void **state)
{
    (void)state;
    const char *help = "write axes as dp=2,tp=4, one comma between two";
    expect_refusal("tp=4,", 0, SW_E_ARGUMENT, "the mesh text has a trailing comma", help);
    expect_refusal(",tp=4", 0, SW_E_ARGUMENT, "the mesh text has an empty entry", help);
    expect_refusal("dp=2,,tp=4", 0, SW_E_ARGUMENT, "the mesh text has an empty entry", help);
    expect_refusal("dp=2, tp=4", 0, SW_E_ARGUMENT, "the mesh text has white space in it",
                   "write it in one word, such as dp=2,tp=4");
}

static void both_expert_modes_together_are_refused(void **state)
{
    (void)state;
    expect_refusal("ep=2,tp=4", 4, SW_E_ARGUMENT,
                   "ep=4 is derived from the dense ranks and 'ep' is an axis too",
                   "--ep and an ep axis exclude each other: leave one of them out");
}

static void a_derived_ep_that_does_not_divide_names_the_sizes_that_do(void **state)
{
    (void)state;
    expect_refusal("dp=2,tp=4", 3, SW_E_PLAN,
                   "ep=3 does not divide the 8 dense ranks of a stage (dp=2 * cp=1 * tp=4)",
                   "ep sizes that fit: 1, 2, 4, 8");
    expect_refusal("dp=3,cp=3", 2, SW_E_PLAN,
                   "ep=2 does not divide the 9 dense ranks of a stage (dp=3 * cp=3 * tp=1)",
                   "ep sizes that fit: 1, 3, 9");
    expect_refusal("dp=720,cp=7", 11, SW_E_PLAN,
                   "ep=11 does not divide the 5040 dense ranks of a stage (dp=720 * cp=7 * tp=1)",
                   "ep sizes that fit: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20");
    expect_refusal("pp=16", 2, SW_E_PLAN,
                   "ep=2 does not divide the 1 dense ranks of a stage (dp=1 * cp=1 * tp=1)",
                   "ep sizes that fit: 1");
}

static void ranks_must_fit_32_bits(void **state)
{
    (void)state;
    assert_int_equal(mesh_of("dp=1048576,tp=4095", 0).n_ranks, 4293918720U);
    expect_refusal("dp=1048576,tp=4096", 0, SW_E_LIMIT,
                   "the axes multiply to more ranks than the 4294967295 that can be numbered",
                   "give smaller axes");
    expect_refusal("pp=1048576,dp_replicate=1048576,dp_shard=1048576,cp=1048576,ep=1048576,tp=1048576", 0,
                   SW_E_LIMIT, "the axes multiply to more ranks than the 4294967295 that can be numbered",
                   "give smaller axes");
}

static void a_rank_or_axis_outside_is_refused(void **state)
{
    (void)state;
    sw_error err = {0};
    sw_mesh mesh = mesh_of("tp=4", 0);
    sw_mesh_coord at = {{0}};
    uint32_t member = 0;
    assert_int_equal(sw_mesh_coord_of(&mesh, 4, &at, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "rank 4 is not one of the 4 ranks of the mesh");
    assert_int_equal(sw_mesh_group_members(&mesh, 4, SW_AXIS_TP, &member, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_mesh_group_members(&mesh, 0, SW_AXIS_COUNT_, &member, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "the mesh has no axis number 6");
    assert_int_equal(sw_mesh_axis_size(&mesh, SW_AXIS_COUNT_), 0);
    assert_int_equal(sw_mesh_axis_stride(&mesh, SW_AXIS_COUNT_), 1);
    assert_int_equal(sw_mesh_group_first(&mesh, 3, SW_AXIS_COUNT_), 3);
}

static void axes_and_modes_have_names(void **state)
{
    (void)state;
    assert_string_equal(sw_axis_name(SW_AXIS_PP), "pp");
    assert_string_equal(sw_axis_name(SW_AXIS_EDP), "edp");
    assert_null(sw_axis_name(SW_AXIS_COUNT_));
    assert_string_equal(sw_ep_mode_name(SW_EP_TP_EXTEND), "tp_extend");
    assert_null(sw_ep_mode_name(SW_EP_MODE_COUNT_));
    for (int i = 0; i < SW_AXIS_COUNT_; i++) {
        sw_axis axis = SW_AXIS_COUNT_;
        const char *name = sw_axis_name((sw_axis)i);
        assert_true(sw_axis_parse(name, strlen(name), &axis));
        assert_int_equal(axis, i);
    }
    sw_axis axis = SW_AXIS_COUNT_;
    assert_false(sw_axis_parse("tpx", 3, &axis));
    assert_true(sw_axis_parse("tpx", 2, &axis));
    assert_int_equal(axis, SW_AXIS_TP);
}

static void a_mesh_without_memory_is_a_status(void **state)
{
    (void)state;
    sw_error err = {0};
    sw_mesh *mesh = NULL;
    int64_t live = sw_alloc_live();
    sw_alloc_fail_at(1);
    assert_int_equal(sw_mesh_create(&mesh, "tp=4", 0, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_null(mesh);
    assert_int_equal(sw_alloc_live(), live);
    assert_int_equal(sw_mesh_create(&mesh, "tp=4", 2, &err), SW_OK);
    sw_mesh_destroy(mesh);
    sw_mesh_destroy(NULL);
    assert_int_equal(sw_alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_text_is_one_rank),
        cmocka_unit_test(the_order_of_the_text_does_not_matter),
        cmocka_unit_test(dp_may_be_given_by_its_parts),
        cmocka_unit_test(ranks_are_numbered_with_tp_fastest),
        cmocka_unit_test(a_derived_ep_fills_the_tp_group_first),
        cmocka_unit_test(a_derived_ep_need_not_be_a_multiple_of_tp),
        cmocka_unit_test(with_an_ep_axis_edp_is_dp_and_cp),
        cmocka_unit_test(an_ep_axis_of_one_is_no_expert_parallelism),
        cmocka_unit_test(an_unknown_axis_names_the_nearest),
        cmocka_unit_test(an_axis_is_named_once),
        cmocka_unit_test(a_size_is_a_number_in_range),
        cmocka_unit_test(commas_stand_between_axes_only),
        cmocka_unit_test(both_expert_modes_together_are_refused),
        cmocka_unit_test(a_derived_ep_that_does_not_divide_names_the_sizes_that_do),
        cmocka_unit_test(ranks_must_fit_32_bits),
        cmocka_unit_test(a_rank_or_axis_outside_is_refused),
        cmocka_unit_test(axes_and_modes_have_names),
        cmocka_unit_test(a_mesh_without_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
