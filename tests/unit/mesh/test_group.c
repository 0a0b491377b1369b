/* Groups of a mesh against ranks written out by hand, and their laws on many meshes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mesh/group.h"

static sw_mesh mesh_of(const char *axes, uint32_t ep)
{
    sw_mesh mesh;
    assert_int_equal(sw_mesh_init(&mesh, axes, ep, NULL), SW_OK);
    return mesh;
}

/* The groups of rank 0 and of the last rank, as "0 2 | 5 7". */
static void groups_are(const sw_mesh *mesh, sw_group_kind kind, const char *expected)
{
    char text[256] = "";
    size_t length = 0;
    sw_mesh_axis group = sw_mesh_group(mesh, kind);
    const uint32_t ranks[] = {0, mesh->n_ranks - 1};

    for (size_t i = 0; i < 2; i++) {
        uint32_t first = ranks[i] - ranks[i] / group.stride % group.size * group.stride;
        for (uint32_t m = 0; m < group.size; m++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%u", m == 0 ? "" : " ",
                                       (unsigned)(first + m * group.stride));
        if (i == 0)
            length += (size_t)snprintf(text + length, sizeof text - length, " | ");
    }
    assert_string_equal(text, expected);
}

static void the_dense_groups_follow_the_order_of_the_axes(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("pp=2,dp_replicate=2,dp_shard=2,cp=2,tp=2", 0);
    groups_are(&mesh, SW_GROUP_PP, "0 16 | 15 31");
    groups_are(&mesh, SW_GROUP_DP, "0 4 8 12 | 19 23 27 31");
    groups_are(&mesh, SW_GROUP_DP_REPLICATE, "0 8 | 23 31");
    groups_are(&mesh, SW_GROUP_DP_SHARD, "0 4 | 27 31");
    groups_are(&mesh, SW_GROUP_CP, "0 2 | 29 31");
    groups_are(&mesh, SW_GROUP_TP, "0 1 | 30 31");
    groups_are(&mesh, SW_GROUP_DP_CP, "0 2 4 6 8 10 12 14 | 17 19 21 23 25 27 29 31");
    groups_are(&mesh, SW_GROUP_STAGE,
               "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 | "
               "16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31");
    groups_are(&mesh, SW_GROUP_EP, "0 | 31");
    groups_are(&mesh, SW_GROUP_EDP_SHARD, "0 | 31");
}

static void derived_experts_fill_neighbouring_ranks(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("pp=2,dp_replicate=2,dp_shard=2,tp=2", 2);
    groups_are(&mesh, SW_GROUP_EP, "0 1 | 14 15");
    groups_are(&mesh, SW_GROUP_EDP, "0 2 4 6 | 9 11 13 15");
    groups_are(&mesh, SW_GROUP_EDP_REPLICATE, "0 4 | 11 15");
    groups_are(&mesh, SW_GROUP_EDP_SHARD, "0 2 | 13 15");
}

static void experts_that_span_replicas_have_the_fewer_copies(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("dp=4,tp=2", 4); /* an EP group is two replicas of dp */
    groups_are(&mesh, SW_GROUP_EDP, "0 4 | 3 7");
    groups_are(&mesh, SW_GROUP_EDP_REPLICATE, "0 4 | 3 7");
    groups_are(&mesh, SW_GROUP_EDP_SHARD, "0 | 7");
    mesh = mesh_of("dp=2,tp=6", 4); /* the second EP group lies in both replicas: no copy is whole in one */
    groups_are(&mesh, SW_GROUP_EDP_REPLICATE, "0 | 11");
    groups_are(&mesh, SW_GROUP_EDP_SHARD, "0 4 8 | 3 7 11");
}

static void an_ep_axis_stands_between_cp_and_tp(void **state)
{
    (void)state;
    sw_mesh mesh = mesh_of("dp_replicate=2,dp_shard=2,cp=2,ep=2,tp=2", 0);
    groups_are(&mesh, SW_GROUP_EP, "0 2 | 29 31");
    groups_are(&mesh, SW_GROUP_EDP, "0 4 8 12 16 20 24 28 | 3 7 11 15 19 23 27 31");
    groups_are(&mesh, SW_GROUP_EDP_REPLICATE, "0 16 | 15 31");
    groups_are(&mesh, SW_GROUP_EDP_SHARD, "0 4 8 12 | 19 23 27 31");
    groups_are(&mesh, SW_GROUP_DP_CP, "0 4 8 12 16 20 24 28 | 3 7 11 15 19 23 27 31");
}

/* A group and its parts: sizes multiply, and the inner part has the stride of the whole. */
static void parts_make_up_the_whole(const sw_mesh *mesh, sw_group_kind whole, sw_group_kind outer,
                                    sw_group_kind inner)
{
    sw_mesh_axis all = sw_mesh_group(mesh, whole);
    sw_mesh_axis out = sw_mesh_group(mesh, outer);
    sw_mesh_axis in = sw_mesh_group(mesh, inner);
    assert_int_equal(all.size, out.size * in.size);
    assert_int_equal(in.stride, all.stride);
    assert_int_equal(out.stride, all.stride * in.size);
}

static void every_mesh_of_small_axes_keeps_the_laws(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 3 * 3 * 3 * 3 * 3 * 3; code++) {
        char axes[96];
        uint32_t c = code;
        uint32_t of[6];
        for (int i = 0; i < 6; i++, c /= 3)
            of[i] = 1 + c % 3;
        (void)snprintf(axes, sizeof axes, "pp=%u,dp_replicate=%u,dp_shard=%u,cp=%u,ep=%u,tp=%u", of[0], of[1],
                       of[2], of[3], of[4], of[5]);
        sw_mesh mesh = mesh_of(axes, 0);
        parts_make_up_the_whole(&mesh, SW_GROUP_DP, SW_GROUP_DP_REPLICATE, SW_GROUP_DP_SHARD);
        parts_make_up_the_whole(&mesh, SW_GROUP_EDP, SW_GROUP_EDP_REPLICATE, SW_GROUP_EDP_SHARD);
        parts_make_up_the_whole(&mesh, SW_GROUP_DP_CP, SW_GROUP_DP, SW_GROUP_CP);
        parts_make_up_the_whole(&mesh, SW_GROUP_WORLD, SW_GROUP_PP, SW_GROUP_STAGE);
    }
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(sw_group_kind_name(SW_GROUP_PP), "pp");
    assert_string_equal(sw_group_kind_name(SW_GROUP_EDP_SHARD), "edp_shard");
    assert_string_equal(sw_group_kind_name(SW_GROUP_WORLD), "world");
    assert_null(sw_group_kind_name(SW_GROUP_KIND_COUNT_));
}

/* dp=3,tp=2 has six ranks, edp=2 and ep=3 cut them elsewhere than tp. */
static void axes_nest_where_neither_cuts_the_other(void **state)
{
    (void)state;
    const sw_mesh even = mesh_of("dp=2,cp=2,tp=2", 4);
    const sw_mesh uneven = mesh_of("dp=3,tp=2", 3);
    const sw_mesh_axis *a = even.axes;
    const sw_mesh_axis *b = uneven.axes;

    assert_true(sw_mesh_axes_nest(a[SW_AXIS_DP], a[SW_AXIS_TP]));
    assert_false(sw_mesh_axes_nest(a[SW_AXIS_TP], a[SW_AXIS_DP]));
    assert_true(sw_mesh_axes_nest(a[SW_AXIS_EDP], a[SW_AXIS_EP]));
    assert_true(sw_mesh_axes_nest(a[SW_AXIS_EDP], a[SW_AXIS_TP])); /* two ranks of four apart */
    assert_false(sw_mesh_axes_nest(a[SW_AXIS_EP], a[SW_AXIS_TP]));
    assert_false(sw_mesh_axes_nest(a[SW_AXIS_DP], a[SW_AXIS_EDP]));
    assert_true(sw_mesh_axes_nest(b[SW_AXIS_EDP], b[SW_AXIS_EP]));
    assert_false(sw_mesh_axes_nest(b[SW_AXIS_EDP], b[SW_AXIS_TP]));
    assert_true(sw_mesh_axes_nest(b[SW_AXIS_TP], b[SW_AXIS_CP]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_nest_where_neither_cuts_the_other),
        cmocka_unit_test(the_dense_groups_follow_the_order_of_the_axes),
        cmocka_unit_test(derived_experts_fill_neighbouring_ranks),
        cmocka_unit_test(experts_that_span_replicas_have_the_fewer_copies),
        cmocka_unit_test(an_ep_axis_stands_between_cp_and_tp),
        cmocka_unit_test(every_mesh_of_small_axes_keeps_the_laws),
        cmocka_unit_test(every_kind_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
