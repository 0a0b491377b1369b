/* The active mesh (apply/active.h). */
#include "apply/active.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"

static const sw_axis dense_axes[] = {SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP};

static bool is_same_mesh(const sw_mesh *a, const sw_mesh *b)
{
    bool is_same = a->n_ranks == b->n_ranks && a->ep_mode == b->ep_mode;

    for (int i = 0; i < SW_AXIS_COUNT_; i++)
        is_same = is_same && a->axes[i].size == b->axes[i].size && a->axes[i].stride == b->axes[i].stride;
    return is_same;
}

static void mesh_text(const sw_mesh *mesh, char *text, size_t capacity)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < SW_AXIS_COUNT_; i++) {
        uint32_t size = sw_mesh_axis_size(mesh, (sw_axis)i);
        if (size == 1 || length >= capacity)
            continue;
        length += (size_t)snprintf(text + length, capacity - length, "%s%s=%" PRIu32, length == 0 ? "" : ",",
                                   sw_axis_name((sw_axis)i), size);
    }
    if (length == 0)
        (void)snprintf(text, capacity, "one rank");
}

static sw_status check_mesh(const sw_plan *plan, const sw_comm *comm, sw_error *err)
{
    char planned[96];
    char given[96];
    char help[64];

    if (is_same_mesh(plan->mesh, sw_comm_mesh(comm)))
        return SW_OK;
    mesh_text(plan->mesh, planned, sizeof planned);
    mesh_text(sw_comm_mesh(comm), given, sizeof given);
    (void)snprintf(help, sizeof help, "run with mpirun -n %" PRIu32 " and the plan's mesh",
                   plan->mesh->n_ranks);
    return SW_FAIL(err, SW_E_PLAN, help, "the plan is for %s, the ranks are %s", planned, given);
}

/* Axes of more than one rank, in the order of the mesh. A derived ep numbers ranks of other axes. */
static sw_status make_grid(sw_grid *out, const sw_mesh *mesh, bool is_expert, sw_error *err)
{
    sw_axis axes[SW_GRID_MAX_AXES];
    uint32_t n = 0;

    for (size_t i = 0; i < SW_COUNT(dense_axes); i++) {
        bool is_derived = dense_axes[i] == SW_AXIS_EP && mesh->ep_mode == SW_EP_TP_EXTEND;
        if (is_derived == is_expert && sw_mesh_axis_size(mesh, dense_axes[i]) > 1)
            axes[n++] = dense_axes[i];
    }
    return sw_grid_of_mesh(out, mesh, axes, n, err);
}

static sw_grid_coord coord_on(const sw_grid *grid, const sw_mesh_coord *coord)
{
    sw_grid_coord at = {{0}};

    for (uint32_t a = 0; a < grid->n_axes; a++)
        at.at[a] = coord->at[grid->axis[a]];
    return at;
}

sw_status sw_active_make(sw_active *out, const sw_plan *plan, sw_comm *comm, sw_error *err)
{
    *out = (sw_active){.plan = plan, .comm = comm};
    SW_TRY(check_mesh(plan, comm, err));
    SW_TRY(make_grid(&out->grid, plan->mesh, false, err));
    SW_TRY(make_grid(&out->expert_grid, plan->mesh, true, err));
    SW_TRY(sw_mesh_coord_of(plan->mesh, sw_comm_rank(comm), &out->coord, err));
    out->at = coord_on(&out->grid, &out->coord);
    out->expert_at = coord_on(&out->expert_grid, &out->coord);
    return SW_OK;
}

void sw_active_places(const sw_grid *grid, const sw_places *places, sw_placement *out)
{
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        int on = SW_ON_OF(grid->axis[a]);
        bool is_listed = (places->present >> on & 1) != 0;
        out[a] = is_listed ? places->on[on] : (sw_placement){SW_PLACE_REPLICATE, 0, NULL};
    }
}

uint32_t sw_active_axis(const sw_grid *grid, sw_axis axis)
{
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        if (grid->axis[a] == axis)
            return 1U << a;
    }
    return 0;
}

const sw_group *sw_active_group(const sw_active *active, sw_axis axis)
{
    static const sw_group_kind kind_of[SW_AXIS_COUNT_] = {
        [SW_AXIS_PP] = SW_GROUP_PP, [SW_AXIS_DP] = SW_GROUP_DP, [SW_AXIS_CP] = SW_GROUP_CP,
        [SW_AXIS_EP] = SW_GROUP_EP, [SW_AXIS_TP] = SW_GROUP_TP, [SW_AXIS_EDP] = SW_GROUP_EDP,
    };

    return sw_comm_group(active->comm, kind_of[axis]);
}
