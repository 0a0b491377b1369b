/* Arguments and results of context-parallel attention (parallel/attention_shape.h). */
#include "parallel/attention_shape.h"

#include <inttypes.h>

#include "base/status.h"

static sw_status check_dims(const sw_tensor *const *x, bool is_apart, sw_error *err)
{
    static const char *const names[] = {"q", "k", "v"};
    char shape[SW_SHAPE_TEXT];

    for (int i = 0; i < 3; i++) {
        const sw_tensor *like = is_apart && i > 0 ? x[1] : x[0];
        sw_shape_text(x[i]->n_dims, x[i]->dims, shape);
        SW_TRY(sw_node_check_real(names[i], x[i], x[0], err));
        if (x[i]->n_dims != 4 || x[i]->dims[0] != x[0]->dims[0] || x[i]->dims[1] != like->dims[1]) {
            return SW_FAIL(err, SW_E_ARGUMENT, "give [batch, tokens of this rank, heads, width] each",
                           "%s is %s, %s has %" PRIu64 " rows of %" PRIu64 " tokens", names[i], shape,
                           like == x[0] ? "q" : "k", x[0]->dims[0], like->dims[1]);
        }
    }
    if (x[1]->dims[3] != x[0]->dims[3] || x[1]->dims[2] != x[2]->dims[2]) {
        return SW_FAIL(err, SW_E_ARGUMENT, "queries and keys have one width, keys and values as many heads",
                       "q has width %" PRIu64 "; k has %" PRIu64 " heads of %" PRIu64 ", v has %" PRIu64,
                       x[0]->dims[3], x[1]->dims[2], x[1]->dims[3], x[2]->dims[2]);
    }
    uint64_t kv = x[1]->dims[2];
    if (kv == 0 ? x[0]->dims[2] != 0 : x[0]->dims[2] % kv != 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "each key/value head serves as many heads",
                       "%" PRIu64 " key/value heads do not divide %" PRIu64 " heads", kv, x[0]->dims[2]);
    }
    return SW_OK;
}

/* Of q, or of k. */
static sw_status check_positions(const char *name, const sw_tensor *x, const sw_tensor *q, sw_error *err)
{
    char shape[SW_SHAPE_TEXT];

    if (x->n_dims == 2 && x->dims[0] == q->dims[0] && x->dims[1] == q->dims[1] &&
        sw_tensor_dtype(x) == SW_DTYPE_I32)
        return SW_OK;
    sw_shape_text(x->n_dims, x->dims, shape);
    return SW_FAIL(err, SW_E_ARGUMENT, "give an I32 position for each token of this rank",
                   "%s is %s %s for %" PRIu64 " rows of %" PRIu64 " tokens", name,
                   sw_dtype_name(sw_tensor_dtype(x)), shape, q->dims[0], q->dims[1]);
}

static sw_status check_of_heads(const char *name, const sw_tensor *x, const sw_tensor *q, sw_error *err)
{
    char shape[SW_SHAPE_TEXT];

    if (x == NULL)
        return SW_OK;
    SW_TRY(sw_node_check_real(name, x, q, err));
    sw_shape_text(x->n_dims, x->dims, shape);
    if (x->n_dims == 1 && x->dims[0] == q->dims[2])
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "give those of the heads that are here, as the plan cuts them",
                   "%s is %s, q has %" PRIu64 " heads", name, shape, q->dims[2]);
}

static sw_status check(const sw_tensor *const *qkv, const sw_attend_args *args, bool is_apart, sw_error *err)
{
    SW_TRY(check_dims(qkv, is_apart, err));
    SW_TRY(check_positions("q_positions", args->q_positions, qkv[0], err));
    SW_TRY(check_positions("k_positions", args->k_positions, qkv[1], err));
    SW_TRY(check_of_heads("slopes", args->slopes, qkv[0], err));
    return check_of_heads("sinks", args->sinks, qkv[0], err);
}

bool sw_attention_fits(sw_step *step, const char *form, const sw_tensor *const *qkv,
                       const sw_attend_args *args, bool is_apart)
{
    sw_error err = {0};

    if (sw_step_status(step, NULL) != SW_OK)
        return false;
    sw_status status = check(qkv, args, is_apart, &err);
    if (status == SW_OK)
        return true;
    sw_error_context(&err, "%s", form);
    SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return false;
}

bool sw_attention_local(sw_step *step, const sw_tensor **qkv, sw_attend_args *args)
{
    for (int i = 0; i < 3; i++)
        qkv[i] = sw_node_local(step, qkv[i]);
    args->q_positions = sw_node_local(step, args->q_positions);
    args->k_positions = sw_node_local(step, args->k_positions);
    args->slopes = sw_node_local(step, args->slopes);
    args->sinks = sw_node_local(step, args->sinks);
    return sw_step_status(step, NULL) == SW_OK;
}

sw_tensor *sw_attention_result(sw_step *step, const sw_tensor *q, sw_tensor *out)
{
    sw_error err = {0};

    if (out == NULL)
        return NULL;
    sw_status status = sw_node_layout(step, q->layout, out->dims[3], &out->layout, &err);
    if (status == SW_OK)
        return out;
    SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return NULL;
}

sw_heads_out sw_heads_dense(void *values, uint64_t n_tokens, uint64_t n_heads, uint64_t width)
{
    size_t token = (size_t)(n_heads * width);
    return (sw_heads_out){values, token * (size_t)n_tokens, token, (size_t)width};
}

sw_heads sw_heads_read(const void *values, uint64_t n_tokens, uint64_t n_heads, uint64_t width)
{
    sw_heads_out at = sw_heads_dense(NULL, n_tokens, n_heads, width);
    return (sw_heads){values, at.batch, at.token, at.head};
}

sw_status sw_attention_frame(sw_step *step, const sw_tensor *const *qkv, const sw_attend_args *args,
                             sw_attention_args *out, sw_error *err)
{
    const sw_tensor *q = qkv[0];
    const sw_tensor *k = qkv[1];
    const void *values = NULL;
    const void *positions = NULL;

    *out = (sw_attention_args){.n_batch = (size_t)q->dims[0],
                               .n_queries = (size_t)q->dims[1],
                               .n_keys = (size_t)k->dims[1],
                               .n_heads = (size_t)q->dims[2],
                               .n_kv_heads = (size_t)k->dims[2],
                               .width = (size_t)q->dims[3],
                               .v_width = (size_t)qkv[2]->dims[3],
                               .scale = args->scale,
                               .rounded_alibi = args->rounded_alibi,
                               .soft_cap = args->soft_cap,
                               .is_causal = args->is_causal,
                               .window = args->window,
                               .q_positions_batch = (size_t)q->dims[1],
                               .k_positions_batch = (size_t)k->dims[1]};
    SW_TRY(sw_node_dense(step, q, &values, err));
    out->q = sw_heads_read(values, q->dims[1], q->dims[2], q->dims[3]);
    SW_TRY(sw_node_dense(step, args->q_positions, &positions, err));
    out->q_positions = positions;
    if (args->slopes != NULL)
        SW_TRY(sw_node_dense(step, args->slopes, &out->slopes, err));
    if (args->sinks != NULL)
        SW_TRY(sw_node_dense(step, args->sinks, &out->sinks, err));
    return SW_OK;
}
