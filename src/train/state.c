/* Scalars of a run (train/state.h). */
#include "train/state.h"

#include <inttypes.h>

#include "base/status.h"
#include "io/json_read.h"
#include "io/json_write.h"

/* Each number and its key; all of them must be there. */
static const struct {
    const char *key;
    size_t at;
} fields[] = {
    {"step",     offsetof(sw_train_state, step)    },
    {"position", offsetof(sw_train_state, position)},
    {"seed",     offsetof(sw_train_state, seed)    },
    {"seq_len",  offsetof(sw_train_state, seq_len) },
    {"tokens",   offsetof(sw_train_state, n_tokens)},
};

static const char optimizer_key[] = "optimizer";

static uint64_t *field_of(sw_train_state *state, size_t i)
{
    return (uint64_t *)(void *)((char *)state + fields[i].at);
}

sw_train_state sw_train_state_of(const sw_trainer *trainer)
{
    return (sw_train_state){trainer->n_done,
                            trainer->position,
                            trainer->options.seed,
                            trainer->options.seq_len,
                            trainer->batches.tokens->n_tokens,
                            trainer->options.optimizer.kind};
}

sw_status sw_train_state_put(sw_buffer *out, const sw_trainer *trainer, sw_error *err)
{
    sw_train_state state = sw_train_state_of(trainer);
    sw_json_writer w;

    sw_json_write_init(&w, out, false);
    sw_json_begin_object(&w);
    for (size_t i = 0; i < SW_COUNT(fields); i++) {
        sw_json_key(&w, fields[i].key);
        sw_json_put_u64(&w, *field_of(&state, i));
    }
    sw_json_key(&w, optimizer_key);
    sw_json_put_string(&w, sw_optimizer_facts_of(state.optimizer)->name);
    sw_json_end_object(&w);
    sw_buffer_putc(out, '\n');
    return out->failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the training state") : SW_OK;
}

static void read_optimizer(sw_train_state *state, sw_json *json)
{
    sw_json_text name;
    int kind = 0;

    if (!sw_json_string(json, &name))
        return;
    while (kind < SW_OPTIMIZER_COUNT_ &&
           !sw_json_text_is(name, sw_optimizer_facts_of((sw_optimizer_kind)kind)->name))
        kind++;
    state->optimizer = (sw_optimizer_kind)kind;
    if (kind == SW_OPTIMIZER_COUNT_)
        (void)sw_json_fail(json, "begin anew from its weights, without --resume",
                           "no optimizer is called \"%.*s\"", (int)(name.length < 40 ? name.length : 40),
                           name.bytes);
}

static sw_status read_fields(sw_train_state *state, sw_json *json, uint32_t *seen)
{
    sw_json_text key;

    (void)sw_json_enter_object(json);
    while (sw_json_next_key(json, &key)) {
        size_t i = 0;
        while (i < SW_COUNT(fields) && !sw_json_text_is(key, fields[i].key))
            i++;
        if (sw_json_text_is(key, optimizer_key))
            read_optimizer(state, json);
        else if (i == SW_COUNT(fields))
            (void)sw_json_skip(json);
        else if (sw_json_u64(json, field_of(state, i)))
            *seen |= 1U << i;
    }
    (void)sw_json_finish(json);
    return json->status;
}

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

sw_status sw_train_state_read(sw_train_state *out, const char *text, size_t length, const char *path,
                              sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);
    uint32_t seen = 0;
    sw_json json;

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    sw_json_init(&json, text, length, path, arena, err);
    SW_TRY(read_fields(out, &json, &seen));
    for (size_t i = 0; i < SW_COUNT(fields); i++) {
        if ((seen & 1U << i) == 0)
            return SW_FAIL(err, SW_E_FORMAT,
                           "it is no run of `shardwright-mpi train`: begin anew from its weights",
                           "%s: has no \"%s\"", path, fields[i].key);
    }
    return SW_OK;
}
