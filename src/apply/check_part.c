/*
 * One thing that is checked (apply/checking.h): the first rank tells all what it should be, and each takes
 * its own elements out of that. Outputs are spoken of in the permuted and padded sequence, as layouts are.
 */
#include "apply/checking.h"

#include <math.h>
#include <string.h>

#include "apply/applied.h"
#include "apply/parts.h"
#include "base/status.h"
#include "comm/collective.h"

/* ---- what it should be ---- */

static double *take_numbers(sw_arena *arena, uint64_t n)
{
    return sw_arena_alloc(arena, ((size_t)n + 1) * sizeof(double));
}

/* All tokens of all ranks of cp, rank by rank; NaN where there is padding. */
static void permute(const sw_checking *c, const double *tokens, uint64_t width, double *out)
{
    const sw_sequence *s = &c->sequence;
    uint64_t local = sw_sequence_local(s);

    for (uint64_t i = 0; i < c->n_rows * s->n_padded; i++) {
        uint64_t at = i % s->n_padded;
        uint64_t token = sw_sequence_token(s, (uint32_t)(at / local), at % local);
        const double *from = tokens + (i / s->n_padded * s->n_tokens + token) * width;
        for (uint64_t k = 0; k < width; k++)
            out[i * width + k] = token < s->n_tokens ? from[k] : NAN;
    }
}

/* The first rank's output on all ranks; *width: numbers of a token. */
static sw_status tell_output(const sw_checking *c, uint32_t i, sw_arena *arena, uint64_t *width, double **out,
                             sw_error *err)
{
    const uint64_t n_tokens = c->n_rows * c->sequence.n_tokens;
    uint64_t n = 0;

    if (c->is_first)
        *width = c->reference->outputs[i].n_elems / n_tokens;
    sw_broadcast(c->all, 0, 1, SW_DTYPE_U64, width);
    n = c->n_rows * c->sequence.n_padded * *width;
    *out = take_numbers(arena, n);
    SW_TRY(sw_comm_agree(
        c->comm, *out == NULL ? sw_arena_fail(arena, "what one rank has computed", err) : SW_OK, err));
    if (c->is_first)
        permute(c, c->reference->outputs[i].values, *width, *out);
    sw_broadcast(c->all, 0, n, SW_DTYPE_F64, *out);
    return SW_OK;
}

static sw_status tell_gradient(const sw_checking *c, uint32_t i, uint64_t n, sw_arena *arena, double **out,
                               sw_error *err)
{
    *out = take_numbers(arena, n);
    SW_TRY(sw_comm_agree(
        c->comm, *out == NULL ? sw_arena_fail(arena, "what one rank has computed", err) : SW_OK, err));
    if (c->is_first)
        memcpy(*out, c->reference->gradients[i].values, (size_t)n * sizeof **out);
    sw_broadcast(c->all, 0, n, SW_DTYPE_F64, *out);
    return SW_OK;
}

/* ---- this rank's elements ---- */

static sw_status take_wanted(sw_check_part *out, const double *whole, sw_grid_coord at, sw_arena *arena,
                             sw_error *err)
{
    double *wanted = NULL;

    out->n = sw_tensor_layout_elems(&out->layout, at);
    wanted = take_numbers(arena, out->n);
    if (wanted == NULL)
        return sw_arena_fail(arena, "what one rank has computed", err);
    out->wanted = wanted;
    return sw_layout_take(&out->layout, at, whole, sizeof *whole, wanted, err);
}

/* What ranks have as summands is summed. Collective. */
static sw_status sum_summands(sw_check_part *out, const sw_checking *c, sw_arena *arena, sw_error *err)
{
    double *sum = take_numbers(arena, out->n);

    SW_TRY(sw_comm_agree(c->comm, sum == NULL ? sw_arena_fail(arena, "a sum", err) : SW_OK, err));
    memcpy(sum, out->got, (size_t)out->n * sizeof *sum);
    for (uint32_t k = 0; k < out->layout.grid.n_axes; k++) {
        if (out->layout.is_summed[k])
            sw_all_reduce(sw_active_group(&c->active, out->layout.grid.axis[k]), out->n, SW_DTYPE_F64, sum,
                          sum);
    }
    out->got = sum;
    return SW_OK;
}

static bool is_summed(const sw_tensor_layout *layout)
{
    bool is_it = false;

    for (uint32_t k = 0; k < layout->grid.n_axes; k++)
        is_it = is_it || layout->is_summed[k];
    return is_it;
}

/* Has every rank as many elements as its layout says? */
static bool is_as_laid_out(const sw_checking *c, const sw_check_part *part, uint64_t n)
{
    double is_other = n == part->n ? 0 : 1;

    sw_all_reduce_max(c->all, 1, SW_DTYPE_F64, &is_other, &is_other);
    return is_other == 0;
}

static sw_status finish(sw_check_part *out, const sw_checking *c, const sw_traced *traced, sw_status taken,
                        sw_arena *arena, sw_error *err)
{
    SW_TRY(sw_comm_agree(c->comm, taken, err));
    out->fqn = traced->fqn;
    out->spec = traced->spec;
    out->got = traced->values;
    out->has_other_extents = !is_as_laid_out(c, out, traced->n_elems);
    if (out->has_other_extents || !is_summed(&out->layout))
        return SW_OK;
    return sum_summands(out, c, arena, err);
}

/* ---- both ---- */

/* Rows of this rank of dp, over the axes of activations. */
static sw_status lay_out_output(sw_check_part *out, const sw_checking *c, const sw_traced *traced,
                                uint64_t width, sw_arena *arena, sw_error *err)
{
    const sw_io *io = traced->spec->out_dst.n > 0 ? &traced->spec->out_dst : &traced->spec->out_src;
    const uint64_t dims[] = {c->options->n_rows, c->sequence.n_padded, width};
    sw_placement places[SW_GRID_MAX_AXES];

    sw_active_places(&c->active.grid, &io->entries[0].places, places);
    SW_TRY(sw_tensor_layout_make(&out->layout, &c->active.grid, 3, dims, places, err));
    return take_wanted(out, out->whole, c->active.at, arena, err);
}

sw_status sw_check_output(sw_check_part *out, const sw_checking *c, uint32_t i, sw_arena *arena,
                          sw_error *err)
{
    const sw_traced *traced = &c->trace->outputs[i];
    uint64_t width = 0;
    double *all = NULL;

    *out = (sw_check_part){0};
    SW_TRY(tell_output(c, i, arena, &width, &all, err));
    out->whole = all + c->active.coord.at[SW_AXIS_DP] * c->options->n_rows * c->sequence.n_padded * width;
    return finish(out, c, traced, lay_out_output(out, c, traced, width, arena, err), arena, err);
}

static sw_status lay_out_gradient(sw_check_part *out, const sw_applied_parameter *p, sw_arena *arena,
                                  sw_error *err)
{
    if (p->is_elsewhere) {
        out->wanted = take_numbers(arena, 0);
        return out->wanted == NULL ? sw_arena_fail(arena, p->parameter->fqn, err) : SW_OK;
    }
    return take_wanted(out, out->whole, p->at, arena, err);
}

sw_status sw_check_gradient(sw_check_part *out, const sw_checking *c, uint32_t i, sw_arena *arena,
                            sw_error *err)
{
    const sw_applied_parameter *p = sw_applied_parameter_at(c->net, i);
    uint64_t n = 1;

    *out = (sw_check_part){
        .layout = p->layout, .sums = &p->facts->grad, .is_member = p->parameter->stack != NULL};
    for (uint32_t d = 0; d < p->layout.n_dims; d++)
        n *= p->layout.dims[d];
    SW_TRY(tell_gradient(c, i, n, arena, &out->whole, err));
    return finish(out, c, &c->trace->gradients[i], lay_out_gradient(out, p, arena, err), arena, err);
}
