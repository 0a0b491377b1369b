/* Taking up a training run (train/save.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply/applied.h"
#include "base/alloc.h"
#include "base/status.h"
#include "train/local.h"
#include "train/save.h"
#include "train/state.h"

static const char begin_anew[] = "begin anew from its weights, without --resume";

static void drop_text(char **text)
{
    sw_free(*text);
}

/* The same run goes on only with the same data in the same pieces. */
static sw_status check_run(const sw_trainer *trainer, const sw_train_state *found, const char *path,
                           sw_error *err)
{
    const sw_train_state mine = sw_train_state_of(trainer);
    const struct {
        const char *what;
        uint64_t was;
        uint64_t is;
    } parts[] = {
        {"--seed",               found->seed,     mine.seed    },
        {"--seq-len",            found->seq_len,  mine.seq_len },
        {"the number of tokens", found->n_tokens, mine.n_tokens},
    };

    for (size_t i = 0; i < SW_COUNT(parts); i++) {
        if (parts[i].was == parts[i].is)
            continue;
        return SW_FAIL(err, SW_E_FORMAT, "give the run what it began with, or begin anew without --resume",
                       "%.300s: its run had %" PRIu64 " for %s, now it is %" PRIu64, path, parts[i].was,
                       parts[i].what, parts[i].is);
    }
    return SW_OK;
}

/* What is wrong with the moment of a parameter; NULL: nothing. */
static const char *what_is_wrong(bool is_there, const sw_weight *weight, const sw_trained *param)
{
    if (!is_there)
        return "is missing";
    if (weight->n_elems != param->n_elems)
        return "has another shape than its parameter";
    return sw_weight_is_readable(weight->dtype, param->storage->dtype) ? NULL
                                                                       : "is of a type that is no float";
}

static sw_status take_moment(const sw_trainer *trainer, const sw_weights *checkpoint, const char *prefix,
                             const sw_trained *param, void *to, sw_error *err)
{
    const char *path = sw_weights_path(checkpoint);
    size_t capacity = strlen(prefix) + strlen(param->fqn) + 1;
    char *name SW_AUTO(drop_text) = sw_alloc(capacity);
    sw_weight weight = {0};
    bool is_there = false;

    if (name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    (void)snprintf(name, capacity, "%s%s", prefix, param->fqn);
    SW_TRY(sw_weights_find(checkpoint, name, &weight, &is_there, err));
    const char *wrong = what_is_wrong(is_there, &weight, param);
    if (wrong != NULL)
        return SW_FAIL(err, SW_E_FORMAT, begin_anew, "%.200s: %.300s %s", path, name, wrong);
    sw_weight_read(&weight, trainer->kernel, param->storage->dtype, to);
    return SW_OK;
}

static void drop_reader(sw_local_reader **reader)
{
    sw_local_reader_destroy(*reader);
}

static sw_status take_part(sw_local_reader *reader, const sw_applied_parameter *p, const char *prefix,
                           const sw_trained *param, void *to, sw_error *err)
{
    size_t capacity = strlen(prefix) + strlen(param->fqn) + 1;
    char *name SW_AUTO(drop_text) = sw_alloc(capacity);

    if (name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%.300s: no memory", param->fqn);
    (void)snprintf(name, capacity, "%s%s", prefix, param->fqn);
    return sw_local_read(reader, &p->layout, p->at, name, param->storage->dtype, to, err);
}

/* Moments of this rank's parts; the list has the parameters that are trained, in the net's order. */
static sw_status take_parts(const sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    sw_local_reader *reader SW_AUTO(drop_reader) = NULL;
    const sw_net *net = trainer->net;
    const sw_trained *param = trainer->list.params;

    SW_TRY(sw_local_reader_create(&reader, checkpoint, trainer->kernel, err));
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_applied_parameter *p = sw_applied_parameter_at(net, i);
        if (net->parameters[i].is_frozen)
            continue;
        if (!p->is_elsewhere) {
            SW_TRY(take_part(reader, p, SW_STATE_FIRST_MOMENT, param, param->m, err));
            SW_TRY(take_part(reader, p, SW_STATE_SECOND_MOMENT, param, param->v, err));
        }
        param++;
    }
    return SW_OK;
}

static sw_status take_wholes(const sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    for (size_t i = 0; i < trainer->list.n_params; i++) {
        const sw_trained *param = &trainer->list.params[i];
        SW_TRY(take_moment(trainer, checkpoint, SW_STATE_FIRST_MOMENT, param, param->m, err));
        SW_TRY(take_moment(trainer, checkpoint, SW_STATE_SECOND_MOMENT, param, param->v, err));
    }
    return SW_OK;
}

static sw_status resume(sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    const char *path = sw_weights_path(checkpoint);
    sw_train_state state = {0};
    size_t length = 0;
    const char *json = sw_weights_state(checkpoint, &length);

    if (json == NULL)
        return SW_FAIL(err, SW_E_FORMAT, begin_anew, "%s: has no training state", path);
    sw_status status = sw_train_state_read(&state, json, length, "training_state.json", err);
    if (status != SW_OK) {
        sw_error_context(err, "%.300s", path);
        return status;
    }
    SW_TRY(check_run(trainer, &state, path, err));
    SW_TRY((trainer->ranks.comm == NULL ? take_wholes : take_parts)(trainer, checkpoint, err));
    trainer->n_done = state.step;
    trainer->position = state.position;
    return SW_OK;
}

sw_status sw_train_resume(sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    return sw_ranks_agree(&trainer->ranks, resume(trainer, checkpoint, err), err);
}
