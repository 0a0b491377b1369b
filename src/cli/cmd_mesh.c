/*
 * `shardwright mesh`: the axes of a mesh, and where ranks stand on it. A group is first rank, stride and
 * size, so that the largest mesh takes no more room than the smallest.
 */
#include <inttypes.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/input.h"
#include "io/json_write.h"
#include "mesh/mesh.h"

enum { MAX_RANKS_LISTED = 64, MAX_MEMBERS_LISTED = 8 };

enum { OPT_MESH, OPT_EP, OPT_RANK, OPT_ALL, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_MESH] = SW_OPTION_MESH,
    [OPT_EP]   = SW_OPTION_EP,
    [OPT_RANK] = { "rank", 'r', "R",  "show rank R; rank 0 is shown otherwise" },
    [OPT_ALL]  = { "all",  'a', NULL, "show every rank, of up to 64" },
    [OPT_JSON] = { "json", 0,   NULL, "write JSON, also of errors" },
    { 0 },
};
// clang-format on

/* The order in which axes are shown: those that number the ranks, outermost first, then a derived cut. */
static const sw_axis shown[] = {SW_AXIS_PP, SW_AXIS_DP, SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP, SW_AXIS_EDP};
static const sw_axis shown_derived[] = {SW_AXIS_PP, SW_AXIS_DP,  SW_AXIS_CP,
                                        SW_AXIS_TP, SW_AXIS_EDP, SW_AXIS_EP};
_Static_assert(SW_COUNT(shown) == SW_AXIS_COUNT_ && SW_COUNT(shown_derived) == SW_AXIS_COUNT_, "every axis");

/* Axis `i` in the order of showing; false when the mesh has no such axis. */
static bool axis_at(const sw_mesh *mesh, size_t i, sw_axis *axis)
{
    sw_ep_mode mode = sw_mesh_ep_mode(mesh);
    *axis = (mode == SW_EP_TP_EXTEND ? shown_derived : shown)[i];
    return mode != SW_EP_NONE || (*axis != SW_AXIS_EP && *axis != SW_AXIS_EDP);
}

/* Is the axis one of those whose sizes multiply to the ranks? */
static bool is_numbered(const sw_mesh *mesh, sw_axis axis)
{
    return axis != SW_AXIS_EDP && (axis != SW_AXIS_EP || sw_mesh_ep_mode(mesh) == SW_EP_AXIS);
}

static void put_axes(const sw_mesh *mesh, sw_buffer *out)
{
    uint32_t replicate = 1;
    uint32_t shard = 1;
    sw_axis axis = SW_AXIS_PP;

    sw_mesh_dp_parts(mesh, &replicate, &shard);
    sw_buffer_printf(out, "ranks %" PRIu32 "\n\naxis        size      stride\n", sw_mesh_ranks(mesh));
    for (size_t i = 0; i < SW_AXIS_COUNT_; i++) {
        if (!axis_at(mesh, i, &axis))
            continue;
        sw_buffer_printf(out, "%-4s  %10" PRIu32 "  %10" PRIu32, sw_axis_name(axis),
                         sw_mesh_axis_size(mesh, axis), sw_mesh_axis_stride(mesh, axis));
        if (axis == SW_AXIS_DP && shard > 1)
            sw_buffer_printf(out, "  dp_replicate %" PRIu32 " * dp_shard %" PRIu32, replicate, shard);
        else if (axis == SW_AXIS_EDP && sw_mesh_ep_mode(mesh) == SW_EP_AXIS)
            sw_buffer_puts(out, "  dp * cp: the ranks with the same experts");
        else if (!is_numbered(mesh, axis))
            sw_buffer_puts(out, "  cut out of dp * cp * tp");
        sw_buffer_putc(out, '\n');
    }
}

/* "0, 4, 8", or "0, 4, ..., 1020" when they are many. */
static void put_group(const sw_mesh *mesh, uint32_t rank, sw_axis axis, sw_buffer *out)
{
    uint32_t size = sw_mesh_axis_size(mesh, axis);
    uint32_t stride = sw_mesh_axis_stride(mesh, axis);
    uint32_t first = sw_mesh_group_first(mesh, rank, axis);
    uint32_t n_listed = size <= MAX_MEMBERS_LISTED ? size : 2;

    for (uint32_t i = 0; i < n_listed; i++)
        sw_buffer_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", first + i * stride);
    if (n_listed < size)
        sw_buffer_printf(out, ", ..., %" PRIu32, first + (size - 1) * stride);
}

static void put_rank(const sw_mesh *mesh, uint32_t rank, const sw_mesh_coord *coord, sw_buffer *out)
{
    sw_axis axis = SW_AXIS_PP;

    sw_buffer_printf(out, "\nrank %" PRIu32 "\n\naxis       index  group\n", rank);
    for (size_t i = 0; i < SW_AXIS_COUNT_; i++) {
        if (!axis_at(mesh, i, &axis))
            continue;
        sw_buffer_printf(out, "%-4s  %10" PRIu32 "  ", sw_axis_name(axis), coord->at[axis]);
        put_group(mesh, rank, axis, out);
        sw_buffer_putc(out, '\n');
    }
}

static void put_number(sw_json_writer *writer, const char *key, uint64_t value)
{
    sw_json_key(writer, key);
    sw_json_put_u64(writer, value);
}

static void put_axes_json(const sw_mesh *mesh, sw_json_writer *writer)
{
    uint32_t replicate = 1;
    uint32_t shard = 1;
    sw_axis axis = SW_AXIS_PP;

    sw_mesh_dp_parts(mesh, &replicate, &shard);
    put_number(writer, "ranks", sw_mesh_ranks(mesh));
    put_number(writer, "dp_replicate", replicate);
    put_number(writer, "dp_shard", shard);
    sw_json_key(writer, "ep_mode");
    sw_json_put_string(writer, sw_ep_mode_name(sw_mesh_ep_mode(mesh)));
    sw_json_key(writer, "axes");
    sw_json_begin_object(writer);
    for (size_t i = 0; i < SW_AXIS_COUNT_; i++) {
        if (!axis_at(mesh, i, &axis))
            continue;
        sw_json_key(writer, sw_axis_name(axis));
        sw_json_inline(writer);
        sw_json_begin_object(writer);
        put_number(writer, "size", sw_mesh_axis_size(mesh, axis));
        put_number(writer, "stride", sw_mesh_axis_stride(mesh, axis));
        sw_json_end_object(writer);
    }
    sw_json_end_object(writer);
}

static void put_rank_json(const sw_mesh *mesh, uint32_t rank, const sw_mesh_coord *coord,
                          sw_json_writer *writer)
{
    sw_axis axis = SW_AXIS_PP;

    sw_json_begin_object(writer);
    put_number(writer, "rank", rank);
    sw_json_key(writer, "axes");
    sw_json_begin_object(writer);
    for (size_t i = 0; i < SW_AXIS_COUNT_; i++) {
        if (!axis_at(mesh, i, &axis))
            continue;
        sw_json_key(writer, sw_axis_name(axis));
        sw_json_inline(writer);
        sw_json_begin_object(writer);
        put_number(writer, "index", coord->at[axis]);
        put_number(writer, "first", sw_mesh_group_first(mesh, rank, axis));
        put_number(writer, "stride", sw_mesh_axis_stride(mesh, axis));
        put_number(writer, "size", sw_mesh_axis_size(mesh, axis));
        sw_json_end_object(writer);
    }
    sw_json_end_object(writer);
    sw_json_end_object(writer);
}

/* Ranks [first, end), as text or through `writer`. */
static sw_status put_ranks(const sw_mesh *mesh, uint32_t first, uint32_t end, sw_buffer *out,
                           sw_json_writer *writer, sw_error *err)
{
    for (uint32_t rank = first; rank < end; rank++) {
        sw_mesh_coord coord = {{0}};
        SW_TRY(sw_mesh_coord_of(mesh, rank, &coord, err));
        if (writer != NULL)
            put_rank_json(mesh, rank, &coord, writer);
        else
            put_rank(mesh, rank, &coord, out);
    }
    return SW_OK;
}

static sw_status put_json(const sw_mesh *mesh, uint32_t first, uint32_t end, sw_buffer *out, sw_error *err)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    put_axes_json(mesh, &writer);
    sw_json_key(&writer, "at");
    sw_json_begin_array(&writer);
    SW_TRY(put_ranks(mesh, first, end, out, &writer, err));
    sw_json_end_array(&writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
    return SW_OK;
}

/* Which ranks to show: *first up to but without *end. */
static sw_status choose_ranks(const sw_arguments *arguments, uint32_t n_ranks, uint32_t *first, uint32_t *end,
                              sw_error *err)
{
    SW_TRY(sw_arguments_exclude(arguments, OPT_RANK, OPT_ALL, err));
    if (sw_arguments_has(arguments, OPT_ALL)) {
        if (n_ranks > MAX_RANKS_LISTED)
            return SW_FAIL(err, SW_E_ARGUMENT, "choose one with --rank R",
                           "--all shows up to %d ranks, the mesh has %" PRIu32, MAX_RANKS_LISTED, n_ranks);
        *first = 0;
        *end = n_ranks;
        return SW_OK;
    }
    *first = 0;
    SW_TRY(sw_arguments_u32(arguments, OPT_RANK, 0, n_ranks - 1, first, err));
    *end = *first + 1;
    return SW_OK;
}

static void drop_mesh(sw_mesh **mesh)
{
    sw_mesh_destroy(*mesh);
}

static sw_status run_mesh(sw_run *run, sw_error *err)
{
    sw_mesh *mesh SW_AUTO(drop_mesh) = NULL;
    uint32_t first = 0;
    uint32_t end = 0;

    SW_TRY(sw_input_mesh(&mesh, &run->arguments, OPT_MESH, OPT_EP, err));
    SW_TRY(choose_ranks(&run->arguments, sw_mesh_ranks(mesh), &first, &end, err));
    if (sw_arguments_has(&run->arguments, OPT_JSON))
        return put_json(mesh, first, end, &run->out, err);
    put_axes(mesh, &run->out);
    return put_ranks(mesh, first, end, &run->out, NULL, err);
}

const sw_command sw_command_mesh = {
    .name = "mesh",
    .summary = "show the axes, coordinates and groups of a mesh",
    .usage = "--mesh AXES [--ep N] [--rank R | --all] [--json]",
    .description =
        "Show the size of each axis, and for a rank its index on each axis and the ranks of its groups.\n"
        "Ranks are numbered over pp, dp, cp, ep, tp, tp fastest, in whatever order AXES has them.\n",
    .options = options,
    .run = run_mesh,
};
