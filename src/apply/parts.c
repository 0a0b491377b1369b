/* Parts of parameters (apply/parts.h): boxes, by the arithmetic of layouts. */
#include "apply/parts.h"

#include "base/status.h"
#include "dtensor/runs.h"
#include "dtensor/share.h"

static sw_status make_box(sw_box *out, const sw_tensor_layout *layout, sw_grid_coord at, sw_arena *arena,
                          sw_error *err)
{
    const sw_share mine = {.holder = at};

    *out = (sw_box){.elems = 1};
    for (uint32_t d = 0; d < layout->n_dims; d++) {
        SW_TRY(sw_tensor_layout_rows(&out->along[d], layout, d, &mine, arena, err));
        out->elems *= out->along[d].count;
    }
    return SW_OK;
}

typedef struct copy {
    const void *from;
    void *to;
    size_t width;
    bool is_put;
} copy;

static sw_status run(const sw_tensor_layout *layout, sw_grid_coord at, const copy *c, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);
    sw_box box;
    sw_runs runs;

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a part of a tensor");
    sw_status status = make_box(&box, layout, at, arena, err);
    if (status == SW_OK && box.elems > 0) {
        sw_runs_begin(&runs, &box, layout->dims, layout->n_dims);
        if (c->is_put)
            (void)sw_box_unpack(c->to, c->from, &runs, c->width);
        else
            (void)sw_box_pack(c->to, c->from, &runs, c->width);
    }
    sw_arena_destroy(arena);
    return status;
}

static sw_status run_parameter(const sw_applied_parameter *p, const copy *c, sw_error *err)
{
    sw_status status = p->is_elsewhere ? SW_OK : run(&p->layout, p->at, c, err);

    if (status != SW_OK)
        sw_error_context(err, "%s", p->parameter->fqn);
    return status;
}

sw_status sw_layout_take(const sw_tensor_layout *layout, sw_grid_coord at, const void *whole, size_t width,
                         void *part, sw_error *err)
{
    return run(layout, at, &(copy){whole, part, width, false}, err);
}

sw_status sw_part_take(const sw_applied_parameter *p, const void *whole, size_t width, void *part,
                       sw_error *err)
{
    return run_parameter(p, &(copy){whole, part, width, false}, err);
}

sw_status sw_part_put(const sw_applied_parameter *p, void *whole, size_t width, const void *part,
                      sw_error *err)
{
    return run_parameter(p, &(copy){part, whole, width, true}, err);
}
