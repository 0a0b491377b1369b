/* Parts of tensors by lane (comm/parts.h). */
#include "comm/parts.h"

#include "mesh/shard.h"

uint32_t sw_width_of(sw_dtype dtype)
{
    return sw_dtype_bits(dtype) / 8;
}

sw_range sw_rows_of(const sw_group *group, uint64_t extent, uint32_t member)
{
    return sw_shard_range(extent, group->size, member);
}

uint64_t sw_own_rows(const sw_group *group, uint64_t extent)
{
    sw_range own = sw_rows_of(group, extent, group->index);
    return own.end - own.begin;
}

sw_view sw_along_view(const sw_along *along, uint64_t rows, sw_dtype dtype, const void *data)
{
    return sw_view_dense(data, sw_width_of(dtype), 3,
                         (const uint64_t[]){along->n_outer, rows, along->n_inner});
}

sw_view sw_across_view(const sw_group *group, const sw_across *across, bool is_first_cut, sw_dtype dtype,
                       const void *data)
{
    const uint64_t dims[] = {
        across->n_outer, is_first_cut ? sw_own_rows(group, across->first) : across->first, across->n_middle,
        is_first_cut ? across->second : sw_own_rows(group, across->second), across->n_inner};
    return sw_view_dense(data, sw_width_of(dtype), 5, dims);
}

/* ---- lanes ---- */

/* All of `in` goes to everybody, whose rows come. */
void sw_lanes_of_gather(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out)
{
    for (uint32_t m = 0; m < group->size; m++) {
        sw_view part = sw_view_rows(out, dim, sw_rows_of(group, out->dims[dim], m));
        sw_lane_set(group, m, in, &part);
    }
}

/* Everybody's rows go to them, and this rank's come from everybody. */
void sw_lanes_of_scatter(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out)
{
    for (uint32_t m = 0; m < group->size; m++) {
        sw_view part = sw_view_rows(in, dim, sw_rows_of(group, in->dims[dim], m));
        sw_lane_set(group, m, &part, out);
    }
}

/* Everybody's rows of one dim go to them, their rows of the other come. */
void sw_lanes_of_all_to_all(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                            const sw_view *out)
{
    for (uint32_t m = 0; m < group->size; m++) {
        sw_view sent = sw_view_rows(in, cut_dim, sw_rows_of(group, in->dims[cut_dim], m));
        sw_view received = sw_view_rows(out, joined_dim, sw_rows_of(group, out->dims[joined_dim], m));
        sw_lane_set(group, m, &sent, &received);
    }
}

/* The first member has the most rows. */
uint64_t sw_longest_across(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                           const sw_view *out)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < in->n_dims; d++) {
        uint64_t extent = d == joined_dim ? out->dims[d] : in->dims[d];
        n *= d == cut_dim || d == joined_dim ? sw_rows_of(group, extent, 0).end : extent;
    }
    return n;
}

void sw_lanes_of_exchange(const sw_group *group, uint32_t width, const void *sent, const uint64_t *n_sent,
                          void *received, const uint64_t *n_received)
{
    const char *from = sent;
    char *to = received;

    for (uint32_t m = 0; m < group->size; m++) {
        sw_view out = sw_view_dense(from, width, 1, &n_sent[m]);
        sw_view in = sw_view_dense(to, width, 1, &n_received[m]);
        sw_lane_set(group, m, &out, &in);
        from += n_sent[m] * width;
        to += n_received[m] * width;
    }
}

/* ---- entries ---- */

void sw_enter(const sw_group *group, sw_call_kind kind, sw_dtype dtype, sw_combine_op op, uint32_t n_numbers,
              const uint64_t *numbers)
{
    sw_call call = {
        .kind = (uint32_t)kind, .dtype = (uint32_t)dtype, .op = (uint32_t)op, .n_numbers = n_numbers};

    if (group->size == 1)
        return;
    for (uint32_t i = 0; i < n_numbers; i++)
        call.numbers[i] = numbers[i];
    sw_call_enter(group, &call);
}

void sw_enter_along(const sw_group *group, sw_call_kind kind, sw_dtype dtype, const sw_along *along)
{
    sw_enter(group, kind, dtype, SW_COMBINE_SUM, 3,
             (const uint64_t[]){along->n_outer, along->extent, along->n_inner});
}

void sw_enter_across(const sw_group *group, sw_dtype dtype, const sw_across *across, bool is_back)
{
    sw_enter(group, SW_CALL_ALL_TO_ALL, dtype, SW_COMBINE_SUM, 6,
             (const uint64_t[]){across->n_outer, across->first, across->n_middle, across->second,
                                across->n_inner, is_back});
}

MPI_Datatype sw_sum_type(sw_dtype dtype, sw_combine_op op)
{
    if (op != SW_COMBINE_SUM)
        return MPI_DATATYPE_NULL;
    switch (dtype) {
    case SW_DTYPE_F64:
        return MPI_DOUBLE;
    case SW_DTYPE_F32:
        return MPI_FLOAT;
    case SW_DTYPE_I64:
    case SW_DTYPE_U64:
        return MPI_UINT64_T;
    case SW_DTYPE_I32:
    case SW_DTYPE_U32:
        return MPI_UINT32_T;
    default:
        return MPI_DATATYPE_NULL;
    }
}
