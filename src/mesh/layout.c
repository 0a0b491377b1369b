/*
 * Layouts (mesh/layout.h): one walk over the axes that cut a dim answers every question. It keeps what the
 * axes so far have left to the rank; the next axis cuts the rows of that, counted from 0.
 */
#include "mesh/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "mesh/group.h"
#include "mesh/placement.h"
#include "mesh/shard.h"

enum { WIDEST_ELEMENT = 16 }; /* bytes; accumulators included */

/* ---- grids ---- */

/* May `inner` stand behind `outer` in a grid? */
static sw_status check_pair(const sw_mesh *mesh, sw_axis outer, sw_axis inner, sw_error *err)
{
    const sw_mesh_axis *a = &mesh->axes[outer];
    const sw_mesh_axis *b = &mesh->axes[inner];

    if (outer == inner || (b->size > 1 && sw_mesh_axes_nest(*b, *a) && !sw_mesh_axes_nest(*a, *b)))
        return SW_FAIL(err, SW_E_ARGUMENT, "name each axis once, outermost first",
                       "a layout over %s and then %s", sw_axis_name(outer), sw_axis_name(inner));
    if (!sw_mesh_axes_nest(*a, *b))
        return SW_FAIL(
            err, SW_E_ARGUMENT, "take edp and the derived ep alone, or the axes that they are cut out of",
            "a layout over %s and %s, which number the same ranks", sw_axis_name(outer), sw_axis_name(inner));
    return SW_OK;
}

sw_status sw_grid_of_mesh(sw_grid *out, const sw_mesh *mesh, const sw_axis *axes, uint32_t n_axes,
                          sw_error *err)
{
    sw_grid grid = {.n_axes = n_axes};

    if (n_axes > SW_GRID_MAX_AXES) {
        return SW_FAIL(err, SW_E_LIMIT, "leave out axes over which nothing is cut",
                       "a layout over %" PRIu32 " axes, at most %d are possible", n_axes, SW_GRID_MAX_AXES);
    }
    for (uint32_t a = 0; a < n_axes; a++) {
        if (sw_axis_name(axes[a]) == NULL)
            return SW_FAIL(err, SW_E_ARGUMENT, "", "a layout over axis %d, which is none", (int)axes[a]);
        grid.axis[a] = axes[a];
        grid.size[a] = sw_mesh_axis_size(mesh, axes[a]);
        for (uint32_t outer = a; outer-- > 0;)
            SW_TRY(check_pair(mesh, axes[outer], axes[a], err));
    }
    *out = grid;
    return SW_OK;
}

bool sw_grid_equal(const sw_grid *a, const sw_grid *b)
{
    if (a->n_axes != b->n_axes)
        return false;
    for (uint32_t i = 0; i < a->n_axes; i++) {
        if (a->axis[i] != b->axis[i] || a->size[i] != b->size[i])
            return false;
    }
    return true;
}

uint32_t sw_grid_ranks(const sw_grid *grid, uint32_t axes)
{
    uint32_t n = 1;

    for (uint32_t a = 0; a < grid->n_axes; a++)
        n *= (axes >> a & 1) != 0 ? grid->size[a] : 1;
    return n;
}

sw_grid_coord sw_grid_member(const sw_grid *grid, uint32_t axes, sw_grid_coord at, uint32_t i)
{
    for (uint32_t a = grid->n_axes; a-- > 0;) {
        if ((axes >> a & 1) == 0)
            continue;
        at.at[a] = i % grid->size[a];
        i /= grid->size[a];
    }
    return at;
}

uint32_t sw_grid_index(const sw_grid *grid, uint32_t axes, sw_grid_coord at)
{
    uint32_t i = 0;

    for (uint32_t a = 0; a < grid->n_axes; a++)
        i = (axes >> a & 1) != 0 ? i * grid->size[a] + at.at[a] : i;
    return i;
}

/* ---- making ---- */

static sw_status check_sizes(const sw_tensor_layout *layout, sw_error *err)
{
    uint64_t n_ranks = 1;
    uint64_t bytes = WIDEST_ELEMENT;

    for (uint32_t a = 0; a < layout->grid.n_axes; a++) {
        if (layout->grid.size[a] == 0 || !sw_mul_u64(n_ranks, layout->grid.size[a], &n_ranks) ||
            n_ranks > UINT32_MAX)
            return SW_FAIL(err, SW_E_ARGUMENT, "", "a grid without ranks, or of more than 32 bits count");
    }
    for (uint32_t d = 0; d < layout->n_dims; d++) {
        uint64_t extent =
            layout->dims[d] == 0 ? 1 : layout->dims[d]; /* also what lies beside a 0 is kept sane */
        if (!sw_mul_u64(bytes, extent, &bytes) || bytes > INT64_MAX) {
            return SW_FAIL(err, SW_E_LIMIT, "", "a tensor whose dims 0 to %" PRIu32 " do not fit an address",
                           d);
        }
    }
    return SW_OK;
}

/* Is a piece of the shard the whole dim, on every rank of the axis? */
static bool is_whole(const sw_cut *cut, uint32_t parts)
{
    if (cut == NULL || cut->n_groups > 1)
        return false;
    for (uint32_t i = 0; i < cut->n_segments; i++) {
        if (cut->segments[i].replicas != parts)
            return false;
    }
    return true;
}

/* The axes below `end` that cut `dim`, a bit each. */
static uint32_t axes_of(const sw_tensor_layout *layout, uint32_t dim, uint32_t end)
{
    uint32_t axes = 0;

    for (uint32_t a = 0; a < end; a++) {
        if (layout->on[a].kind == SW_PLACE_SHARD && (uint32_t)layout->on[a].dim == dim)
            axes |= 1U << a;
    }
    return axes;
}

/* Rows of `dim` that the axes below `end` leave at a coordinate. */
static uint64_t extent_of(const sw_tensor_layout *layout, uint32_t dim, uint32_t end, sw_grid_coord at)
{
    uint64_t extent = layout->dims[dim];

    for (uint32_t a = 0; a < end; a++) {
        if ((axes_of(layout, dim, end) >> a & 1) != 0)
            extent = sw_shard_local_extent(&layout->on[a], extent, layout->grid.size[a], at.at[a]);
    }
    return extent;
}

/* Does the cut of axis `a` fit whatever the outer axes leave? */
static sw_status check_cut(const sw_tensor_layout *layout, uint32_t a, sw_error *err)
{
    const sw_placement *placement = &layout->on[a];
    uint32_t outer = axes_of(layout, (uint32_t)placement->dim, a);

    if (placement->cut == NULL) /* a plain shard always fits */
        return SW_OK;
    for (uint32_t i = 0; i < sw_grid_ranks(&layout->grid, outer); i++) {
        sw_grid_coord at = sw_grid_member(&layout->grid, outer, (sw_grid_coord){{0}}, i);
        uint64_t extent = extent_of(layout, (uint32_t)placement->dim, a, at);
        sw_status status = sw_cut_check(placement->cut, extent, layout->grid.size[a], err);
        if (status != SW_OK) {
            sw_error_context(err, "dim %" PRId32 " over %s", placement->dim,
                             sw_axis_name(layout->grid.axis[a]));
            return status;
        }
    }
    return SW_OK;
}

/* Does the cut of axis `a` come to plain chunks, whatever the outer axes leave? Its unit may not matter. */
static bool is_plain(const sw_tensor_layout *layout, uint32_t a)
{
    const sw_placement *placement = &layout->on[a];
    const sw_cut *cut = placement->cut;
    uint32_t parts = layout->grid.size[a];

    if (cut == NULL || cut->n_groups > 1 || cut->n_segments > 1 || cut->segments[0].replicas > 1)
        return false;
    uint32_t outer = axes_of(layout, (uint32_t)placement->dim, a);
    for (uint32_t i = 0; i < sw_grid_ranks(&layout->grid, outer); i++) {
        sw_grid_coord at = sw_grid_member(&layout->grid, outer, (sw_grid_coord){{0}}, i);
        uint64_t extent = extent_of(layout, (uint32_t)placement->dim, a, at);
        /* The first chunk is as large as any, and says how large they are. */
        if (sw_shard_local_extent(placement, extent, parts, 0) != sw_shard_range(extent, parts, 0).end)
            return false;
    }
    return true;
}

static sw_status place(sw_tensor_layout *layout, uint32_t a, const sw_placement *placement, sw_error *err)
{
    static const sw_placement whole = {SW_PLACE_REPLICATE, 0, NULL};
    uint32_t parts = layout->grid.size[a];
    uint32_t dim = 0;

    layout->on[a] = whole;
    switch (placement->kind) {
    case SW_PLACE_REPLICATE:
        return SW_OK;
    case SW_PLACE_PARTIAL:
        layout->is_summed[a] = parts > 1;
        return SW_OK;
    case SW_PLACE_SHARD:
        if (!sw_placement_dim(placement, layout->n_dims, &dim)) {
            return SW_FAIL(err, SW_E_PLAN, "name a dim that the tensor has",
                           "dim %" PRId32 " over %s of a tensor of %" PRIu32 " dims", placement->dim,
                           sw_axis_name(layout->grid.axis[a]), layout->n_dims);
        }
        layout->on[a] = (sw_placement){SW_PLACE_SHARD, (int32_t)dim, placement->cut};
        SW_TRY(check_cut(layout, a, err));
        if (parts == 1 || is_whole(placement->cut, parts))
            layout->on[a] = whole;
        else if (is_plain(layout, a))
            layout->on[a].cut = NULL;
        return SW_OK;
    default:
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a placement of kind %d, which is none", (int)placement->kind);
    }
}

sw_status sw_tensor_layout_make(sw_tensor_layout *out, const sw_grid *grid, uint32_t n_dims,
                                const uint64_t *dims, const sw_placement *places, sw_error *err)
{
    sw_tensor_layout layout = {.grid = *grid, .n_dims = n_dims};

    if (n_dims > SW_LAYOUT_MAX_DIMS) {
        return SW_FAIL(err, SW_E_LIMIT, "", "a tensor of %" PRIu32 " dims, at most %d are possible", n_dims,
                       SW_LAYOUT_MAX_DIMS);
    }
    for (uint32_t d = 0; d < n_dims; d++)
        layout.dims[d] = dims[d];
    if (grid->n_axes > SW_GRID_MAX_AXES)
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a grid of %" PRIu32 " axes", grid->n_axes);
    SW_TRY(check_sizes(&layout, err));
    for (uint32_t a = 0; a < grid->n_axes; a++)
        SW_TRY(place(&layout, a, &places[a], err));
    *out = layout;
    return SW_OK;
}

bool sw_tensor_layout_fits(const sw_tensor_layout *layout)
{
    for (uint32_t a = 0; a < layout->grid.n_axes; a++) {
        if (layout->on[a].kind == SW_PLACE_SHARD && check_cut(layout, a, NULL) != SW_OK)
            return false;
    }
    return true;
}

/* ---- comparing ---- */

bool sw_tensor_layout_same_on(const sw_tensor_layout *a, const sw_tensor_layout *b, uint32_t axis)
{
    return sw_placement_equal(&a->on[axis], &b->on[axis]) && a->is_summed[axis] == b->is_summed[axis];
}

bool sw_tensor_layout_equal(const sw_tensor_layout *a, const sw_tensor_layout *b)
{
    if (!sw_grid_equal(&a->grid, &b->grid) || a->n_dims != b->n_dims)
        return false;
    for (uint32_t d = 0; d < a->n_dims; d++) {
        if (a->dims[d] != b->dims[d])
            return false;
    }
    for (uint32_t i = 0; i < a->grid.n_axes; i++) {
        if (!sw_tensor_layout_same_on(a, b, i))
            return false;
    }
    return true;
}

/* ---- what a rank holds ---- */

void sw_tensor_layout_local(const sw_tensor_layout *layout, sw_grid_coord at, uint64_t *dims)
{
    for (uint32_t d = 0; d < layout->n_dims; d++)
        dims[d] = extent_of(layout, d, layout->grid.n_axes, at);
}

uint64_t sw_tensor_layout_elems(const sw_tensor_layout *layout, sw_grid_coord at)
{
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    uint64_t elems = 1;

    sw_tensor_layout_local(layout, at, dims);
    for (uint32_t d = 0; d < layout->n_dims; d++)
        elems *= dims[d];
    return elems;
}

/* ---- telling ---- */

sw_placement_kind sw_tensor_layout_kind(const sw_tensor_layout *layout, uint32_t axis)
{
    return layout->is_summed[axis] ? SW_PLACE_PARTIAL : layout->on[axis].kind;
}

void sw_tensor_layout_text(const sw_tensor_layout *layout, char text[SW_TENSOR_LAYOUT_TEXT])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < layout->grid.n_axes; i++) {
        sw_placement placement = layout->on[i];
        char on[64];
        size_t at = strlen(text);
        placement.kind = sw_tensor_layout_kind(layout, i);
        (void)sw_placement_text(&placement, on, sizeof on);
        (void)snprintf(text + at, SW_TENSOR_LAYOUT_TEXT - at, "%s%s=%s", i == 0 ? "" : " ",
                       sw_axis_name(layout->grid.axis[i]), on);
    }
}
