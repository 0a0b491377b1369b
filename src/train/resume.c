/* Taking up a training run (train/save.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply/load.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "model/config.h"
#include "model/config_compare.h"
#include "model/shards.h"
#include "train/save.h"
#include "train/state.h"

static const char as_it_began[] = "give the run what it began with, or begin anew without --resume";
static const char begin_anew[] = "begin anew from its weights, without --resume";

static void drop_text(char **text)
{
    sw_free(*text);
}

/* The same run goes on only with its optimizer, on the same data in the same pieces. */
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

    if (found->optimizer != mine.optimizer)
        return SW_FAIL(err, SW_E_FORMAT, as_it_began, "%.300s: its run had %s for --optimizer, now it is %s",
                       path, sw_optimizer_facts_of(found->optimizer)->name,
                       sw_optimizer_facts_of(mine.optimizer)->name);
    for (size_t i = 0; i < SW_COUNT(parts); i++) {
        if (parts[i].was == parts[i].is)
            continue;
        return SW_FAIL(err, SW_E_FORMAT, as_it_began,
                       "%.300s: its run had %" PRIu64 " for %s, now it is %" PRIu64, path, parts[i].was,
                       parts[i].what, parts[i].is);
    }
    return SW_OK;
}

/* One moment of parameter `i` of the net, as far as it is here. */
static sw_status take_moment(const sw_trainer *trainer, uint32_t i, const sw_local_reader *reader,
                             const char *prefix, sw_dtype dtype, void *to, sw_error *err)
{
    const char *fqn = trainer->net->parameters[i].fqn;
    size_t capacity = strlen(prefix) + strlen(fqn) + 1;
    char *name SW_AUTO(drop_text) = sw_alloc(capacity);

    if (name == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%.300s: no memory", fqn);
    (void)snprintf(name, capacity, "%s%s", prefix, fqn);
    return sw_apply_read(trainer->net, i, reader, name, dtype, to, err);
}

/* The list has the parameters that are trained, in the net's order. */
static sw_status take_moments(const sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    const sw_local_reader reader = {checkpoint->files, trainer->kernel};
    const sw_net *net = trainer->net;
    const sw_trained *param = trainer->list.params;
    const sw_optimizer_facts *optimizer = sw_optimizer_facts_of(trainer->options.optimizer.kind);

    for (uint32_t i = 0; i < net->n_parameters; i++) {
        if (net->parameters[i].is_frozen)
            continue;
        sw_dtype dtype = param->storage->dtype;
        for (uint32_t k = 0; optimizer->moments[k] != NULL; k++)
            SW_TRY(take_moment(trainer, i, &reader, optimizer->moments[k], dtype, param->moments[k], err));
        param++;
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
    SW_TRY(take_moments(trainer, checkpoint, err));
    trainer->n_done = state.step;
    trainer->position = state.position;
    return SW_OK;
}

/* ---- the model that it began with ---- */

/* The config of a folder, or beside a file, on the heap; NULL without memory. */
static char *config_path(const char *model)
{
    if (sw_file_kind_of(model) == SW_FILE_FOLDER)
        return sw_path_in(model, "config.json");
    char *folder SW_AUTO(drop_text) = sw_folder_of(model);
    return folder == NULL ? NULL : sw_path_in(folder, "config.json");
}

sw_status sw_train_resume_check(const char *checkpoint, const char *model, sw_error *err)
{
    char *our_path SW_AUTO(drop_text) = config_path(checkpoint);
    char *their_path SW_AUTO(drop_text) = config_path(model);
    sw_file_map ours SW_AUTO(sw_file_map_close) = {0};
    sw_file_map theirs SW_AUTO(sw_file_map_close) = {0};

    if (sw_file_kind_of(model) == SW_FILE_ABSENT)
        return SW_OK;
    if (our_path == NULL || their_path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", model);
    SW_TRY(sw_map_text(&ours, our_path, SW_CONFIG_MAX_BYTES, err));
    SW_TRY(sw_map_text(&theirs, their_path, SW_CONFIG_MAX_BYTES, err));
    return sw_config_compare(ours, our_path, theirs, their_path, err);
}

/* ---- all of it ---- */

sw_status sw_train_resume(sw_trainer *trainer, const sw_weights *checkpoint, sw_error *err)
{
    return sw_ranks_agree(&trainer->ranks, resume(trainer, checkpoint, err), err);
}
