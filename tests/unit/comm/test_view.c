/* Views: joining, and packing from any element on, against indexing by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/view.h"
#include "gen.h"

enum { ROOM = 8192 };

static void dense_dims_are_joined(void **state)
{
    (void)state;
    char room[240] = {0};
    sw_view view = sw_view_dense(room, 4, 3, (const uint64_t[]){3, 4, 5});
    sw_view joined = sw_view_joined(&view);
    assert_true(sw_view_is_dense(&joined));
    assert_int_equal(joined.dims[0], 60);

    sw_view rows = sw_view_rows(&view, 0, (sw_range){1, 3});
    joined = sw_view_joined(&rows);
    assert_true(sw_view_is_dense(&joined));
    assert_ptr_equal(joined.data, room + 80);

    sw_view columns = sw_view_rows(&view, 1, (sw_range){1, 3});
    joined = sw_view_joined(&columns);
    assert_false(sw_view_is_dense(&joined));
    assert_int_equal(joined.n_dims, 2);
    assert_int_equal(joined.dims[1], 10);
    assert_int_equal(joined.strides[0], 20);

    sw_view none = sw_view_rows(&view, 1, (sw_range){2, 2});
    joined = sw_view_joined(&none);
    assert_int_equal(sw_view_elems(&joined), 0);
    assert_true(sw_view_is_dense(&joined));
}

/* A view with random extents and strides, some negative, that lies inside of a room. */
static sw_view random_view(gen *g, char *room, uint32_t width)
{
    sw_view view = {.data = room, .width = width, .n_dims = gen_between(g, 1, 4)};
    int64_t stride = gen_between(g, 1, 2);

    for (uint32_t i = view.n_dims; i-- > 0;) {
        view.dims[i] = gen_between(g, 1, 4);
        view.strides[i] = stride;
        stride = stride * (int64_t)view.dims[i] + gen_below(g, 2);
    }
    for (uint32_t i = 0; i < view.n_dims; i++) {
        if (gen_below(g, 3) == 0) {
            view.data += (int64_t)(view.dims[i] - 1) * view.strides[i] * (int64_t)width;
            view.strides[i] = -view.strides[i];
        }
    }
    return view;
}

static char *element_of(const sw_view *view, uint64_t index)
{
    char *at = view->data;
    for (uint32_t d = view->n_dims; d-- > 0; index /= view->dims[d])
        at += (int64_t)(index % view->dims[d]) * view->strides[d] * (int64_t)view->width;
    return at;
}

static bool any_piece_is_packed_and_put_back(gen *g)
{
    static char room[ROOM];
    static char copy[ROOM];
    char row[ROOM];
    uint32_t width = 1U << gen_below(g, 4);
    sw_view view = random_view(g, room, width);
    sw_view joined = sw_view_joined(&view);
    uint64_t n = sw_view_elems(&view);
    uint64_t first = gen_below(g, (uint32_t)n);
    uint64_t length = gen_between(g, 0, (uint32_t)(n - first));

    for (size_t i = 0; i < ROOM; i++)
        room[i] = (char)gen_u64(g);
    sw_view_pack(row, &joined, first, length);
    for (uint64_t i = 0; i < length; i++) {
        if (memcmp(row + i * width, element_of(&view, first + i), width) != 0)
            return false;
    }
    memcpy(copy, room, ROOM);
    for (uint64_t i = 0; i < length; i++)
        memset(element_of(&view, first + i), 0, width);
    sw_view_unpack(&joined, first, length, row);
    return memcmp(copy, room, ROOM) == 0;
}

static bool a_view_is_copied_to_one_of_other_strides(gen *g)
{
    static char from_room[ROOM];
    static char to_room[ROOM];
    uint32_t width = 1U << gen_below(g, 4);
    sw_view from = random_view(g, from_room, width);
    sw_view dense = sw_view_dense(to_room, width, from.n_dims, from.dims);
    for (size_t i = 0; i < ROOM; i++)
        from_room[i] = (char)gen_u64(g);
    sw_view_copy(&dense, &from);
    for (uint64_t i = 0; i < sw_view_elems(&from); i++) {
        if (memcmp(element_of(&dense, i), element_of(&from, i), width) != 0)
            return false;
    }
    memset(from_room, 0, sizeof from_room);
    sw_view_copy(&from, &dense);
    for (uint64_t i = 0; i < sw_view_elems(&from); i++) {
        if (memcmp(element_of(&dense, i), element_of(&from, i), width) != 0)
            return false;
    }
    return true;
}

static void packing_holds(void **state)
{
    (void)state;
    assert_true(gen_holds(any_piece_is_packed_and_put_back, 20000));
}

static void copying_holds(void **state)
{
    (void)state;
    assert_true(gen_holds(a_view_is_copied_to_one_of_other_strides, 20000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_dims_are_joined),
        cmocka_unit_test(packing_holds),
        cmocka_unit_test(copying_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
