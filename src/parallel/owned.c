/* Elements that a rank counts (parallel/owned.h): the rows that it owns of each dim, as stretches of memory.
 */
#include "parallel/owned.h"

#include "base/checked.h"
#include "base/status.h"
#include "dtensor/share.h"

/* Rows of the local tensor, by dim. */
typedef struct local {
    sw_rows owned[SW_LAYOUT_MAX_DIMS];
    uint64_t extents[SW_LAYOUT_MAX_DIMS];
    uint32_t n_dims;
} local;

static sw_status make_local(local *out, const sw_tensor_layout *layout, sw_grid_coord at,
                            const sw_share *mine, sw_arena *arena, sw_error *err)
{
    const sw_share all = {at, at, 0};

    out->n_dims = layout->n_dims;
    for (uint32_t d = 0; d < layout->n_dims; d++) {
        sw_rows held;
        sw_rows given;
        SW_TRY(sw_tensor_layout_rows(&held, layout, d, &all, arena, err));
        SW_TRY(sw_tensor_layout_rows(&given, layout, d, mine, arena, err));
        SW_TRY(sw_rows_places(&out->owned[d], &given, &held, arena, err));
        out->extents[d] = held.count;
    }
    return SW_OK;
}

/* The last dim of which not all rows are owned, behind which elements lie together; n_dims: there is none. */
static uint32_t last_cut(const local *l)
{
    for (uint32_t d = l->n_dims; d-- > 0;) {
        if (l->owned[d].count != l->extents[d])
            return d;
    }
    return l->n_dims;
}

static uint64_t product(const uint64_t *extents, uint32_t begin, uint32_t end)
{
    uint64_t n = 1;

    for (uint32_t d = begin; d < end; d++)
        n *= extents[d];
    return n;
}

/* The i-th row of a set. */
static uint64_t row_of(const sw_rows *rows, uint64_t i)
{
    uint32_t r = 0;

    while (i >= rows->ranges[r].end - rows->ranges[r].begin) {
        i -= rows->ranges[r].end - rows->ranges[r].begin;
        r++;
    }
    return rows->ranges[r].begin + i;
}

/* Index in the dims before `cut`, row-major, of the i-th owned combination of their rows. */
static uint64_t outer_of(const local *l, uint32_t cut, uint64_t i)
{
    uint64_t index = 0;
    uint64_t scale = 1;

    for (uint32_t d = cut; d-- > 0;) {
        index += row_of(&l->owned[d], i % l->owned[d].count) * scale;
        i /= l->owned[d].count;
        scale *= l->extents[d];
    }
    return index;
}

/* Stretches: those of rows of dim `cut`, for every owned combination of rows before it. */
static sw_status make_stretches(const local *l, uint32_t cut, sw_arena *arena, const sw_range **out,
                                uint32_t *n, sw_error *err)
{
    const sw_rows *rows = &l->owned[cut];
    uint64_t inner = product(l->extents, cut + 1, l->n_dims);
    uint64_t n_outer = 1;
    uint64_t total = 0;

    for (uint32_t d = 0; d < cut; d++)
        n_outer *= l->owned[d].count;
    if (!sw_mul_u64(n_outer, rows->n, &total) || total > UINT32_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "", "a layout owns too many stretches of a tensor");
    sw_range *made = sw_arena_zero(arena, (size_t)total, sizeof *made);
    if (made == NULL)
        return sw_arena_fail(arena, "owned elements", err);
    for (uint64_t i = 0; i < total; i++) {
        sw_range range = rows->ranges[i % rows->n];
        uint64_t base = outer_of(l, cut, i / rows->n) * l->extents[cut];
        made[i] = (sw_range){(base + range.begin) * inner, (base + range.end) * inner};
    }
    *out = made;
    *n = (uint32_t)total;
    return SW_OK;
}

static sw_status make_whole(const local *l, sw_arena *arena, const sw_range **out, uint32_t *n, sw_error *err)
{
    uint64_t total = product(l->extents, 0, l->n_dims);
    sw_range *made = total == 0 ? NULL : sw_arena_zero(arena, 1, sizeof *made);

    if (total == 0)
        return SW_OK;
    if (made == NULL)
        return sw_arena_fail(arena, "owned elements", err);
    *made = (sw_range){0, total};
    *out = made;
    *n = 1;
    return SW_OK;
}

sw_status sw_owned_elements(const sw_tensor_layout *layout, sw_grid_coord at, sw_arena *arena,
                            const sw_range **out, uint32_t *n, sw_error *err)
{
    const sw_share mine = {at, {{0}}, (1U << layout->grid.n_axes) - 1}; /* reader 0 takes from the owner */
    local l;

    *out = NULL;
    *n = 0;
    if (!sw_tensor_layout_shares(layout, &mine))
        return SW_OK;
    SW_TRY(make_local(&l, layout, at, &mine, arena, err));
    for (uint32_t d = 0; d < l.n_dims; d++) {
        if (l.owned[d].count == 0)
            return SW_OK;
    }
    uint32_t cut = last_cut(&l);
    return cut == l.n_dims ? make_whole(&l, arena, out, n, err) : make_stretches(&l, cut, arena, out, n, err);
}
