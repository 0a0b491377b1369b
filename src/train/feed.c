/* Tokens into a net (train/feed.h). */
#include "train/feed.h"

#include "base/status.h"

const sw_tensor *sw_feed_matrix(sw_step *step, const int32_t *values, uint64_t n_rows, uint64_t n_columns)
{
    const uint64_t dims[] = {n_rows, n_columns};
    sw_tensor *matrix = NULL;
    sw_error err = {0};
    void *data = (void *)values; /* read only, as every tensor without a gradient of ours */

    if (sw_step_status(step, NULL) != SW_OK)
        return NULL;
    sw_status status = sw_tensor_create(&matrix, sw_step_stack(step), SW_DTYPE_I32, 2, dims, data, &err);
    if (status != SW_OK)
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return matrix;
}

/* Positions to turn by: padding is turned by something, and not seen. */
static const sw_tensor *turns_of(sw_step *step, const sw_feed *feed)
{
    const uint64_t dims[] = {feed->n_rows, feed->n_tokens};
    sw_tensor *turns = sw_step_tensor(step, SW_DTYPE_I32, 2, dims);
    int32_t *at = turns == NULL ? NULL : sw_tensor_data(turns);

    for (uint64_t i = 0; at != NULL && i < feed->n_rows * feed->n_tokens; i++)
        at[i] = feed->positions[i] < 0 ? 0 : feed->positions[i];
    return turns;
}

void sw_feed_pass(sw_pass *out, const sw_net *net, sw_step *step, const sw_feed *feed)
{
    *out = (sw_pass){.tokens = sw_feed_matrix(step, feed->ids, feed->n_rows, feed->n_tokens)};
    if (feed->positions == NULL) {
        out->positions = sw_net_positions(net, step, feed->n_rows, feed->n_tokens, feed->first);
        return;
    }
    out->positions = turns_of(step, feed);
    out->key_positions = sw_feed_matrix(step, feed->positions, feed->n_rows, feed->n_tokens);
    out->n_positions = feed->n_whole;
}

double sw_scalar_of(const sw_tensor *scalar)
{
    const void *data = sw_tensor_data(scalar);

    return sw_tensor_dtype(scalar) == SW_DTYPE_F64 ? *(const double *)data : (double)*(const float *)data;
}

uint64_t sw_most_positions(const sw_net *net)
{
    return net->settings.n_positions == 0 ? INT32_MAX : net->settings.n_positions;
}

uint64_t sw_count_targets(const int32_t *targets, uint64_t n)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < n; i++)
        count += targets[i] >= 0;
    return count;
}
