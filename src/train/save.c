/* Checkpoints of training runs (train/save.h): what is in them. */
#include "train/save.h"

#include "apply/applied.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"
#include "checkpoint/publish.h"
#include "train/folder.h"
#include "train/state.h"

/* One save. */
typedef struct saving {
    const sw_trainer *trainer;
    sw_arena *arena; /* of names */
    sw_folder_tensor *tensors;
    uint32_t n_tensors;
    sw_buffer state;
    sw_error *err;
} saving;

static void clear_saving(saving *s)
{
    sw_buffer_clear(&s->state);
    sw_free(s->tensors);
    sw_arena_destroy(s->arena);
}

static sw_status no_memory(const saving *s)
{
    return SW_FAIL(s->err, SW_E_NO_MEMORY, "", "no memory to write a checkpoint");
}

/* Extents of the whole of parameter `i`. */
static const uint64_t *whole_dims(const sw_net *net, uint32_t i)
{
    const sw_applied_parameter *applied = sw_applied_parameter_at(net, i);

    return applied == NULL ? net->parameters[i].dims : applied->layout.dims;
}

static sw_status add_moment(saving *s, const char *prefix, uint32_t i, const void *data)
{
    const sw_net *net = s->trainer->net;
    const sw_parameter *p = &net->parameters[i];
    const char *name = sw_arena_format(s->arena, "%s%s", prefix, p->fqn);

    if (name == NULL)
        return no_memory(s);
    s->tensors[s->n_tensors++] = (sw_folder_tensor){name, p->n_dims, whole_dims(net, i), data, i};
    return SW_OK;
}

/* Parameters in model order; then the moments of each that is trained. */
static sw_status list_tensors(saving *s)
{
    const sw_net *net = s->trainer->net;
    const sw_trained *trained = s->trainer->list.params;
    const sw_optimizer_facts *optimizer = sw_optimizer_facts_of(s->trainer->options.optimizer.kind);

    s->tensors = sw_alloc_zero((size_t)net->n_parameters * (1 + SW_MOST_MOMENTS), sizeof *s->tensors);
    if (s->tensors == NULL || s->arena == NULL)
        return no_memory(s);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        const sw_parameter *p = &net->parameters[i];
        s->tensors[s->n_tensors++] =
            (sw_folder_tensor){p->fqn, p->n_dims, whole_dims(net, i), sw_tensor_data(p->tensor), UINT32_MAX};
    }
    for (uint32_t i = 0; i < net->n_parameters;
         i++) { /* the list has those that are trained, in this order */
        const sw_parameter *p = &net->parameters[i];
        if (p->is_frozen)
            continue;
        for (uint32_t k = 0; optimizer->moments[k] != NULL; k++)
            SW_TRY(add_moment(s, optimizer->moments[k], i, trained->moments[k]));
        trained++;
    }
    return SW_OK;
}

sw_status sw_train_save(const sw_trainer *trainer, const sw_weights *origin, const char *out, bool replace,
                        sw_error *err)
{
    saving s SW_AUTO(clear_saving) = {.trainer = trainer, .arena = sw_arena_create(0), .err = err};

    sw_status status = list_tensors(&s);
    if (status == SW_OK)
        status = sw_train_state_put(&s.state, trainer, err);
    SW_TRY(sw_ranks_agree(&trainer->ranks, status, err));
    const sw_folder folder = {.tensors = s.tensors,
                              .n_tensors = s.n_tensors,
                              .dtype = trainer->net->settings.dtype,
                              .origin = origin,
                              .state = &s.state};
    const sw_applied *applied = sw_applied_of(trainer->net);
    if (applied != NULL)
        return sw_folder_write_parts(&folder, applied->plan, trainer->ranks.comm, out, replace, err);
    return sw_folder_write(&folder, out, replace, err);
}

sw_status sw_train_save_check(const char *out, bool replace, sw_error *err)
{
    const sw_publish_choices choices = {.replace = replace};
    sw_publication publication SW_AUTO(sw_publish_drop) = {0};

    if (sw_file_kind_of(out) != SW_FILE_ABSENT && !replace)
        return SW_FAIL(err, SW_E_ARGUMENT, "--resume goes on from it, --replace begins anew in its place",
                       "%s: is there already", out);
    return sw_publish_begin(&publication, out, &choices, err);
}
