/* Making a net, its memory, its constants (nn/net.h). */
#include "nn/net.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/short_float.h"
#include "base/status.h"
#include "kernel/scalar.h"
#include "nn/binding.h"

sw_status sw_net_text(const sw_net *net, const char **out, sw_error *err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    *out = sw_arena_format_list(net->arena, format, arguments);
    va_end(arguments);
    return *out == NULL ? sw_arena_fail(net->arena, "the names of a net", err) : SW_OK;
}

/* ---- constants ---- */

/* How many positions will be used: what was asked for, else those of the config up to a bound. */
static sw_status settle_positions(sw_net *net, const sw_net_options *options, sw_error *err)
{
    uint64_t given = net->settings.n_positions;
    uint64_t usual = given < SW_NET_USUAL_POSITIONS ? given : SW_NET_USUAL_POSITIONS;
    uint64_t wanted = options->n_positions > 0 ? options->n_positions : usual;

    if (wanted > INT32_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "use shorter sequences", "%" PRIu64 " positions are too many",
                       wanted);
    net->settings.n_positions = wanted;
    return SW_OK;
}

/* A learned table has so many, and no more. */
static sw_status check_table(const sw_net *net, sw_error *err)
{
    const sw_parameter *table = net->held[SW_SLOT_POSITIONS].weight;
    uint64_t wanted = net->settings.n_positions + net->settings.decoder->first_position;

    if (table == NULL || wanted <= table->dims[0])
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "use shorter sequences",
                   "%" PRIu64 " positions are more than the %" PRIu64 " of %s", net->settings.n_positions,
                   table->dims[0] - net->settings.decoder->first_position, table->fqn);
}

static bool has_rotary(const sw_net *net)
{
    for (uint32_t i = 0; i < net->n_layers; i++) {
        if (net->layers[i].is_turned)
            return true;
    }
    return false;
}

static sw_rotary_sizes rotary_sizes(const sw_net *net, const sw_config *config)
{
    int64_t trained = config->attributes.value[SW_ATTR_POSITIONS];
    uint64_t latent = net->settings.turned_dim;

    return (sw_rotary_sizes){
        .width = latent > 0 ? latent : sw_rotary_width(config, net->settings.head_dim),
        .n_positions = net->settings.n_positions,
        .trained = config->attributes.is_set[SW_ATTR_POSITIONS] && trained > 0 ? (uint64_t)trained : 0,
    };
}

/* Before tensors are looked at: is the embedding one that can be run? */
static sw_status check_rotary(const sw_net *net, const sw_config *config, sw_error *err)
{
    sw_rotary_sizes sizes = rotary_sizes(net, config);

    if (!has_rotary(net))
        return SW_OK;
    if (sizes.n_positions == 0)
        return SW_FAIL(err, SW_E_FORMAT, "add it to the config",
                       "config.json: key \"max_position_embeddings\" is missing");
    return sw_rotary_check(config, &sizes, net->memory, err);
}

/* Behind them: sizes are those of weights that are there. */
static sw_status make_rotary(sw_net *net, const sw_config *config, sw_error *err)
{
    sw_rotary_sizes sizes = rotary_sizes(net, config);

    if (!has_rotary(net))
        return SW_OK;
    return sw_rotary_create(&net->rotary, config, &sizes, net->settings.dtype, net->memory, err);
}

/* 2^(-8 i / n) for a power of two; the heads beyond it take those between of the next one. */
static double slope_of(uint64_t head, uint64_t n_heads)
{
    uint64_t power = 1;

    while (power * 2 <= n_heads)
        power *= 2;
    if (head < power)
        return sw_power(2, -8 * (double)(head + 1) / (double)power);
    return sw_power(2, -4 * (double)(2 * (head - power) + 1) / (double)power);
}

static sw_status make_slopes(sw_net *net, sw_error *err)
{
    const sw_net_settings *s = &net->settings;

    if (!s->has_alibi)
        return SW_OK;
    SW_TRY(sw_tensor_create(&net->slopes, net->memory, s->dtype, 1, &s->heads, NULL, err));
    for (uint64_t i = 0; i < s->heads; i++) {
        double slope = slope_of(i, s->heads);
        if (s->decoder->rounds_alibi)
            slope = (double)sw_float_of_bf16(sw_bf16_of_float((float)slope));
        if (s->dtype == SW_DTYPE_F64)
            ((double *)sw_tensor_data(net->slopes))[i] = slope;
        else
            ((float *)sw_tensor_data(net->slopes))[i] = (float)slope;
    }
    return SW_OK;
}

/* ---- making ---- */

static sw_status make_layers(sw_net *net, const sw_config *config, sw_error *err)
{
    net->n_layers = net->settings.n_layers;
    net->layers = sw_arena_zero(net->arena, net->n_layers, sizeof *net->layers);
    if (net->layers == NULL)
        return sw_arena_fail(net->arena, "the layers of a net", err);
    for (uint32_t i = 0; i < net->n_layers; i++) {
        net->layers[i].window = sw_layer_window(config, i);
        net->layers[i].is_turned = sw_layer_is_turned(config, i);
    }
    return SW_OK;
}

static sw_status make(sw_net *net, const sw_model *model, const sw_net_options *options, sw_error *err)
{
    sw_dtype dtype = options->dtype == SW_DTYPE_UNKNOWN ? SW_DTYPE_F32 : options->dtype;

    if (dtype != SW_DTYPE_F32 && dtype != SW_DTYPE_F64)
        return SW_FAIL(err, SW_E_ARGUMENT, "choose F32 or F64", "activations are F32 or F64, not %s",
                       sw_dtype_name(dtype));
    SW_TRY(sw_net_settings_read(&net->settings, model, err));
    net->settings.dtype = dtype;
    net->stages = &sw_stages_local;
    SW_TRY(make_layers(net, &model->config, err));
    SW_TRY(settle_positions(net, options, err));
    SW_TRY(check_rotary(net, &model->config, err));
    SW_TRY(sw_net_bind(net, model, options, err));
    SW_TRY(check_table(net, err));
    SW_TRY(make_rotary(net, &model->config, err));
    SW_TRY(make_slopes(net, err));
    return sw_net_build_modules(net, model->family, err);
}

sw_status sw_net_create(sw_net **out, const sw_model *model, const sw_net_options *options, sw_error *err)
{
    sw_net *net = sw_alloc_zero(1, sizeof *net);
    sw_status status = SW_OK;

    if (net != NULL) {
        net->arena = sw_arena_create(0);
        net->memory = sw_stack_create();
    }
    if (net == NULL || net->arena == NULL || net->memory == NULL)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "out of memory for a net");
    else
        status = make(net, model, options, err);
    if (status != SW_OK) {
        sw_net_destroy(net);
        return status;
    }
    *out = net;
    return SW_OK;
}

void sw_net_destroy(sw_net *net)
{
    if (net == NULL)
        return;
    if (net->owner.release != NULL)
        net->owner.release(net->owner.context);
    sw_stack_destroy(net->memory);
    sw_arena_destroy(net->arena);
    sw_free(net);
}

/* ---- memory ---- */

static sw_status allocate(const sw_net *net, sw_parameter *p, sw_error *err)
{
    sw_status status = sw_tensor_create(&p->tensor, net->memory, p->dtype, p->n_dims, p->dims, NULL, err);

    if (status != SW_OK)
        sw_error_context(err, "%s", p->fqn);
    return status;
}

static sw_status allocate_gradient(const sw_net *net, const sw_parameter *p, sw_error *err)
{
    size_t bytes = (size_t)sw_tensor_elems(p->tensor) * sw_elem_bytes(sw_gradient_dtype(p->dtype));
    void *gradient = p->is_frozen ? NULL : sw_stack_take(net->memory, bytes);

    if (p->is_frozen)
        return SW_OK;
    if (gradient == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for a gradient of %zu bytes", p->fqn, bytes);
    sw_tensor_lend_gradient(p->tensor, gradient);
    return SW_OK;
}

/* Behind all values: what is loaded lies together, and no page of gradients is made for it. */
static sw_status allocate_gradients(const sw_net *net, sw_error *err)
{
    for (uint32_t i = 0; i < net->n_stacks; i++)
        SW_TRY(allocate_gradient(net, &net->stacks[i], err));
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        if (net->parameters[i].stack == NULL)
            SW_TRY(allocate_gradient(net, &net->parameters[i], err));
    }
    return SW_OK;
}

/* One expert's parameter is a view of the stack; an empty one for an expert that is elsewhere. */
static sw_status view_of_stack(sw_net *net, sw_parameter *p, sw_error *err)
{
    const sw_tensor *stack = p->stack->tensor;
    sw_tensor *view = sw_stack_take(net->memory, sizeof *view);

    if (view == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for a tensor", p->fqn);
    bool is_here = p->index < stack->dims[0];
    *view = *stack;
    view->offset += is_here ? p->index * stack->strides[0] : 0;
    view->n_dims = stack->n_dims - 1;
    memmove(view->dims, stack->dims + 1, view->n_dims * sizeof *view->dims);
    memmove(view->strides, stack->strides + 1, view->n_dims * sizeof *view->strides);
    if (!is_here)
        view->dims[0] = 0;
    p->tensor = view;
    return SW_OK;
}

sw_status sw_net_allocate(sw_net *net, bool trains, sw_error *err)
{
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        if (net->parameters[i].tensor != NULL)
            return SW_FAIL(err, SW_E_ARGUMENT, "make another net", "%s has its memory already",
                           net->parameters[i].fqn);
    }
    for (uint32_t i = 0; i < net->n_stacks; i++)
        SW_TRY(allocate(net, &net->stacks[i], err));
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        sw_parameter *p = &net->parameters[i];
        SW_TRY(p->stack == NULL ? allocate(net, p, err) : view_of_stack(net, p, err));
    }
    if (trains)
        SW_TRY(allocate_gradients(net, err));
    for (uint32_t i = 0; i < net->n_modules; i++) {
        const sw_module *module = &net->modules[i];
        if (module->class->validate_materialized != NULL)
            SW_TRY(module->class->validate_materialized(module, err));
    }
    return SW_OK;
}

void sw_net_forget_gradients(sw_net *net)
{
    for (uint32_t i = 0; i < net->n_parameters; i++)
        net->parameters[i].tensor->storage->has_gradient = false;
}

sw_module *sw_net_module(const sw_net *net, const char *fqn)
{
    for (uint32_t i = 0; i < net->n_modules; i++) {
        if (strcmp(net->modules[i].fqn, fqn) == 0)
            return &net->modules[i];
    }
    return NULL;
}

bool sw_net_leaves_alone(const sw_net *net, const char *fqn)
{
    size_t length = strlen(fqn);

    for (uint32_t i = 0; i < net->n_left_alone; i++) {
        const char *name = net->left_alone[i];
        if (strncmp(name, fqn, length) == 0 && (name[length] == '\0' || name[length] == '.'))
            return true;
    }
    return false;
}

sw_parameter *sw_net_parameter(const sw_net *net, const char *fqn)
{
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        if (strcmp(net->parameters[i].fqn, fqn) == 0)
            return &net->parameters[i];
    }
    return NULL;
}
