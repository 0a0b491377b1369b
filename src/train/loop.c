/* Steps of training (train/loop.h). */
#include "train/loop.h"

#include <inttypes.h>
#include <string.h>

#include "apply/gradients.h"
#include "base/alloc.h"
#include "base/status.h"
#include "train/diagnose.h"
#include "train/load.h"

enum { PROBE_TOKENS = 128, BUCKET_BYTES = 4 << 20 };

/* ---- beginning ---- */

static sw_status no_memory(const char *what, sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "take a smaller --batch or --seq-len, or --recompute",
                   "no memory for %s", what);
}

/* Gradients lie as parameters do, in storages of the same extent. */
static void *gradient_at(const sw_storage *storage, const void *value)
{
    return (char *)storage->gradient + ((const char *)value - (const char *)storage->data);
}

static sw_status list_parameter(sw_trainer *t, const sw_parameter *parameter, sw_error *err)
{
    const sw_storage *storage = parameter->tensor->storage; /* an expert's is that of its stack */
    sw_trained trained = {.fqn = parameter->fqn,
                          .storage = storage,
                          .n_dims = parameter->n_dims,
                          .n_elems = sw_parameter_elems(parameter),
                          .value = sw_tensor_data(parameter->tensor)};
    size_t n_bytes = trained.n_elems * sw_elem_bytes(storage->dtype);

    trained.gradient = gradient_at(storage, trained.value);
    for (uint32_t i = 0; i < sw_optimizer_moments(t->options.optimizer.kind); i++) {
        trained.moments[i] = sw_stack_take(t->moments, n_bytes);
        if (trained.moments[i] == NULL)
            return no_memory("the moments of the optimizer", err);
        memset(trained.moments[i], 0, n_bytes);
    }
    t->list.params[t->list.n_params++] = trained;
    return SW_OK;
}

static sw_status list_parameters(sw_trainer *t, sw_error *err)
{
    t->moments = sw_stack_create();
    t->list.params = sw_alloc_zero(t->net->n_parameters, sizeof *t->list.params);
    if (t->moments == NULL || t->list.params == NULL)
        return no_memory("the moments of the optimizer", err);
    for (uint32_t i = 0; i < t->net->n_parameters; i++) {
        if (!t->net->parameters[i].is_frozen)
            SW_TRY(list_parameter(t, &t->net->parameters[i], err));
    }
    return SW_OK;
}

/* Every rank has as many rows, so that all run the same passes. */
static sw_status share_rows(sw_trainer *t, sw_error *err)
{
    uint32_t n_parts = sw_ranks_parts(&t->ranks);

    t->n_rows = t->options.batch / n_parts;
    if (t->options.batch % n_parts == 0)
        return SW_OK;
    return SW_FAIL(err, SW_E_PLAN, "give a --batch that they divide",
                   "dp=%" PRIu32 ": %" PRIu32 " sequences of a micro-batch cannot be shared out evenly",
                   n_parts, t->options.batch);
}

static sw_status create(sw_trainer *t, const sw_tokens *tokens, const char *tokens_path, sw_error *err)
{
    const sw_train_options *o = &t->options;
    uint64_t n_tokens = (uint64_t)o->batch * o->accumulate * o->seq_len;
    uint64_t most = sw_most_positions(t->net);

    if (o->seq_len > most)
        return SW_FAIL(err, SW_E_LIMIT, "give a smaller --seq-len",
                       "sequences of %" PRIu32 " tokens, the model has %" PRIu64 " positions", o->seq_len,
                       most);
    SW_TRY(share_rows(t, err));
    SW_TRY(sw_cutter_create(&t->cutter, &t->ranks, o->cp_order, t->n_rows, o->seq_len, err));
    SW_TRY(sw_batches_create(&t->batches, tokens, o->seq_len, o->seed, tokens_path, err));
    SW_TRY(sw_step_create(&t->step, t->kernel, err));
    SW_TRY(list_parameters(t, err));
    t->ids = sw_alloc_zero(n_tokens, sizeof *t->ids);
    t->targets = sw_alloc_zero(n_tokens, sizeof *t->targets);
    return t->ids == NULL || t->targets == NULL ? no_memory("the tokens of a step", err) : SW_OK;
}

sw_status sw_trainer_create(sw_trainer *out, sw_net *net, sw_kernel *kernel, const sw_tokens *tokens,
                            const char *tokens_path, const sw_train_options *options, sw_error *err)
{
    sw_trainer trainer = {.options = *options, .net = net, .kernel = kernel, .ranks = sw_ranks_of(net)};
    sw_status status = sw_ranks_agree(&trainer.ranks, create(&trainer, tokens, tokens_path, err), err);

    if (status == SW_OK && trainer.ranks.comm != NULL)
        status = sw_apply_gradients(&trainer.gradients, net, BUCKET_BYTES, err);
    if (status != SW_OK) {
        sw_trainer_clear(&trainer);
        return status;
    }
    *out = trainer;
    return SW_OK;
}

void sw_trainer_clear(sw_trainer *trainer)
{
    sw_free(trainer->ids);
    sw_free(trainer->targets);
    sw_free(trainer->list.params);
    sw_gradients_destroy(trainer->gradients);
    sw_stack_destroy(trainer->moments);
    sw_step_destroy(trainer->step);
    sw_batches_clear(&trainer->batches);
    sw_cutter_clear(&trainer->cutter);
    *trainer = (sw_trainer){0};
}

/* ---- a step ---- */

/* The auxiliary loss is of a micro-batch, the mean over those of a step. */
static double router_factor(const sw_trainer *t)
{
    return sw_net_has_routers(t->net) ? t->options.router_loss / t->options.accumulate : 0.0;
}

/* Forward and backward of one micro-batch; `factor` times its summed loss is added to *loss. */
static sw_status run_micro(sw_trainer *t, sw_step *step, const sw_feed *feed, double factor, double *loss,
                           sw_error *err)
{
    sw_pass pass;

    sw_step_begin(step, true);
    sw_feed_pass(&pass, t->net, step, feed);
    pass.recomputes = t->options.recomputes;
    if (router_factor(t) > 0.0)
        pass.routers = sw_net_trace_routers(t->net, step);
    const sw_tensor *labels = sw_feed_matrix(step, feed->targets, feed->n_rows, feed->n_tokens);
    const sw_tensor *y = sw_net_loss(t->net, step, &pass, labels, factor, NULL);
    if (pass.routers != NULL)
        y = sw_op_add(step, y, sw_net_router_loss(t->net, step, pass.routers, router_factor(t)));
    SW_TRY(sw_step_status(step, err));
    *loss += sw_scalar_of(y);
    return sw_step_backward(step, y, NULL, err);
}

/* This rank's tokens of its rows of micro-batch `i` of the step. */
static sw_feed micro_of(sw_trainer *t, uint32_t i)
{
    const sw_train_options *o = &t->options;
    uint64_t row = (uint64_t)i * o->batch + (uint64_t)sw_ranks_part(&t->ranks) * t->n_rows;
    uint64_t first = row * o->seq_len;

    const sw_feed whole = {
        .n_rows = t->n_rows, .n_tokens = o->seq_len, .ids = t->ids + first, .targets = t->targets + first};
    return sw_cutter_cut(&t->cutter, &whole);
}

static sw_status refuse_number(const sw_trainer *t, const char *what, double value, const char *where,
                               sw_error *err)
{
    return SW_FAIL(err, SW_E_FORMAT, "try a smaller --lr, a longer --warmup, or --clip",
                   "step %" PRIu64 ": %s is %s; the first bad tensor: %s", t->n_done + 1, what,
                   value != value ? "nan" : "infinite", where);
}

/* A value that is a number on all ranks: the others would go on without one that has found none. */
static sw_status need_number(sw_trainer *t, const sw_feed *feed, const char *what, double value,
                             sw_error *err)
{
    char where[SW_BAD_TENSOR_TEXT];
    bool is_good = __builtin_isfinite(value);

    if (sw_ranks_all(&t->ranks, is_good))
        return SW_OK;
    SW_TRY(sw_diagnose(&t->list, t->net, t->step, feed, &t->ranks, where, err));
    return sw_ranks_agree(&t->ranks, is_good ? SW_OK : refuse_number(t, what, value, where, err), err);
}

/* The step's loss, and gradients of all its micro-batches. */
static sw_status run_micros(sw_trainer *t, uint64_t n_targets, double *loss, sw_error *err)
{
    sw_net_forget_gradients(t->net);
    for (uint32_t i = 0; i < t->options.accumulate; i++) {
        const sw_feed feed = micro_of(t, i);
        double mine = 0.0;
        sw_status status = run_micro(t, t->step, &feed, 1.0 / (double)n_targets, &mine, err);
        if (status != SW_OK) {
            sw_error_context(err, "step %" PRIu64, t->n_done + 1);
            return status;
        }
        *loss += sw_ranks_sum(&t->ranks, mine);
        SW_TRY(need_number(t, &feed, "the loss", *loss, err));
    }
    return SW_OK;
}

/* The norm of all gradients, once they are those of all ranks. */
static double sum_gradients(sw_trainer *t)
{
    if (t->gradients == NULL)
        return sw_trained_norm(&t->list, t->kernel);
    sw_gradients_sum(t->gradients);
    return sw_trained_norm_of(sw_gradients_square_sum(t->gradients, t->kernel));
}

sw_status sw_trainer_step(sw_trainer *t, sw_curve_point *out, sw_error *err)
{
    const sw_train_options *o = &t->options;
    uint32_t n_sequences = o->batch * o->accumulate;
    sw_optimizer optimizer = o->optimizer;

    sw_batches_fill(&t->batches, t->position, n_sequences, t->ids, t->targets);
    *out = (sw_curve_point){.step = t->n_done + 1,
                            .lr = sw_schedule_rate(&o->schedule, t->n_done),
                            .tokens = sw_count_targets(t->targets, (uint64_t)n_sequences * o->seq_len)};
    if (out->tokens > 0) {
        SW_TRY(run_micros(t, out->tokens, &out->loss, err));
        const sw_feed first = micro_of(t, 0);
        out->norm = sum_gradients(t);
        SW_TRY(need_number(t, &first, "the norm of the gradients", out->norm, err));
        optimizer.lr = out->lr;
        sw_trained_step(&t->list, t->kernel, &optimizer, out->norm, t->n_done + 1);
    }
    t->n_done++;
    t->position += n_sequences;
    return SW_OK;
}

/* ---- memory ---- */

static void measure(const sw_trainer *t, uint64_t activations, sw_train_memory *out)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < t->list.n_params; i++)
        bytes += t->list.params[i].n_elems * sw_elem_bytes(t->list.params[i].storage->dtype);
    uint64_t moments = sw_optimizer_moments(t->options.optimizer.kind) * bytes;
    *out = (sw_train_memory){bytes, bytes, moments, activations};
}

void sw_trainer_memory(const sw_trainer *trainer, sw_train_memory *out)
{
    measure(trainer, sw_stack_peak(sw_step_stack(trainer->step)), out);
}

/* The most that forward and backward of the first tokens of some sequences take, as a number to compute with.
 */
static sw_status probe(sw_trainer *t, uint64_t n_rows, uint64_t n_tokens, double *bytes, sw_error *err)
{
    const sw_feed whole = {.n_rows = n_rows, .n_tokens = n_tokens, .ids = t->ids, .targets = t->targets};
    const sw_feed feed = sw_cutter_cut(&t->cutter, &whole);
    sw_step *step = NULL;
    double loss = 0.0;

    SW_TRY(sw_step_create(&step, t->kernel, err));
    sw_status status = run_micro(t, step, &feed, 1.0, &loss, err);
    *bytes = (double)sw_stack_peak(sw_step_stack(step));
    sw_step_destroy(step);
    sw_net_forget_gradients(t->net);
    return status;
}

/*
 * a + b * rows * tokens + c * rows: from one sequence, from half of its tokens, and from two sequences. What
 * is not longer, or not more, is not asked for.
 */
sw_status sw_trainer_predict(sw_trainer *t, sw_train_memory *out, sw_error *err)
{
    uint64_t n_rows = t->n_rows;
    uint64_t n_tokens = t->options.seq_len;
    uint64_t n_probe = n_tokens < PROBE_TOKENS ? n_tokens : PROBE_TOKENS;
    double one = 0.0;
    double half = 0.0;
    double two = 0.0;

    sw_batches_fill(&t->batches, t->position, n_rows > 1 ? 2 : 1, t->ids, t->targets);
    SW_TRY(probe(t, 1, n_probe, &one, err));
    double bytes = one;
    if (n_rows > 1) {
        SW_TRY(probe(t, 2, n_probe, &two, err));
        bytes += (two - one) * (double)(n_rows - 1);
    }
    if (n_tokens > n_probe) {
        uint64_t n_half = n_probe / 2;
        SW_TRY(probe(t, 1, n_half, &half, err));
        bytes += (one - half) / (double)(n_probe - n_half) * (double)(n_rows * (n_tokens - n_probe));
    }
    measure(t, (uint64_t)bytes, out);
    return SW_OK;
}

uint64_t sw_train_memory_sum(const sw_train_memory *memory)
{
    return memory->parameters + memory->gradients + memory->moments + memory->activations;
}
