/*
 * From the tensors of a checkpoint to slots: the row of the family's table that a name belongs to says which
 * slot it fills and what shape it must have. Everything that does not fit is counted and told, and only then
 * refused.
 */
#include "nn/binding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "model/complete.h"

enum {
    FIRST = 200,
    LINE = 1024,
    STACKS = 8
}; /* of a layer: gate, up, down and their biases, norms of q and k */

typedef enum fault_kind { MISSING = 0, EXTRA, MISSHAPEN, FAULT_COUNT } fault_kind;

static const char *const fault_names[FAULT_COUNT] = {"missing", "extra", "misshapen"};

typedef struct binding {
    sw_net *net;
    const sw_model *model;
    const sw_net_options *options;
    bool head_is_table; /* tied, and stored under the head's name alone */
    bool **has;         /* of each stack: which of its parts */
    uint64_t n_faults[FAULT_COUNT];
    char first[FIRST];
    sw_error *err;
} binding;

static void __attribute__((format(printf, 3, 4))) note(binding *b, fault_kind kind, const char *format, ...)
{
    char line[LINE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (b->n_faults[MISSING] + b->n_faults[EXTRA] + b->n_faults[MISSHAPEN] == 0)
        (void)snprintf(b->first, sizeof b->first, "%s: %.*s", fault_names[kind], FIRST - 20, line);
    b->n_faults[kind]++;
    if (b->options->on_tensor != NULL) {
        char told[LINE + 16];
        (void)snprintf(told, sizeof told, "%s: %s", fault_names[kind], line);
        b->options->on_tensor(b->options->context, told);
    }
}

static sw_status no_memory(const binding *b)
{
    return sw_arena_fail(b->net->arena, "the parameters of a net", b->err);
}

static sw_held *held_of(const binding *b, int32_t layer, sw_slot slot)
{
    return layer < 0 ? &b->net->held[slot] : &b->net->layers[layer].held[slot];
}

static bool holds(const binding *b, const sw_family_row *row, int64_t layer)
{
    int64_t value = 1;

    if (row->when == NULL)
        return true;
    return sw_expression(row->when, &b->model->config.attributes, layer < 0 ? 0 : layer, &value, NULL) ==
               SW_OK &&
           value != 0;
}

static bool is_layered(const sw_family_row *row)
{
    return strchr(row->name, '#') != NULL;
}

/* One of many: its name has a second count. */
static bool is_of_a_stack(const sw_family_row *row)
{
    const char *layer = strchr(row->name, '#');
    return layer != NULL && strchr(layer + 1, '#') != NULL;
}

static bool is_left_alone(const binding *b, const sw_family_row *row, int32_t layer)
{
    bool is_bias = false;
    sw_slot slot = sw_decoder_slot(b->net->settings.decoder, row->name, &is_bias);

    if ((row->flags & (SW_ROW_BUFFER | SW_ROW_COPY)) != 0)
        return true;
    if (is_layered(row) &&
        layer >= (int64_t)b->net->n_layers) /* behind the last: to predict further tokens */
        return strcmp(sw_family_layer_count(b->model->family, row->name), "layers") != 0;
    return slot == SW_SLOT_HEAD && !is_bias && b->net->settings.is_tied && !b->head_is_table;
}

/* Is this the row of a slot's weight? */
static bool fills(const binding *b, const sw_family_row *row, sw_slot slot)
{
    bool is_bias = false;
    return sw_decoder_slot(b->net->settings.decoder, row->name, &is_bias) == slot && !is_bias;
}

static bool stores(const binding *b, sw_slot slot)
{
    for (uint32_t i = 0; i < b->model->n_params; i++) {
        const sw_family_row *row = b->model->patterns[b->model->params[i].pattern].row;
        if (row != NULL && fills(b, row, slot))
            return true;
    }
    return false;
}

/* Matrices that a product or a lookup reads, which may be in BF16; there are no products with F16. Routers
 * choose in full precision. */
static bool may_be_short(const sw_parameter *p)
{
    return p->n_dims >= 2 && !p->is_bias && p->row->role != SW_ROLE_NORM && p->slot != SW_SLOT_ROUTER;
}

static sw_dtype dtype_of(const binding *b, const sw_parameter *p)
{
    sw_dtype activations = b->net->settings.dtype;
    bool is_kept = b->options->keeps_short && p->stored == SW_DTYPE_BF16 && activations == SW_DTYPE_F32;

    return is_kept && may_be_short(p) ? SW_DTYPE_BF16 : activations;
}

static bool is_a_number_type(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 || dtype == SW_DTYPE_F32 || dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16;
}

/* The shape that the table gives; a fault where the checkpoint has another. */
static void check_shape(binding *b, const sw_tensor_entry *entry, sw_parameter *p)
{
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = 0;
    char wanted[SW_SHAPE_TEXT];
    char found[SW_SHAPE_TEXT] = "of unknown shape";

    if (!sw_row_shape(b->model->family, p->row, &b->model->config.attributes, p->layer, dims, &n_dims) ||
        n_dims > SW_TENSOR_MAX_DIMS) {
        note(b, MISSHAPEN, "%s: its shape does not follow from the config", entry->name);
        return;
    }
    p->n_dims = n_dims;
    memcpy(p->dims, dims, n_dims * sizeof *dims);
    if (entry->shape != NULL && entry->shape->n_dims == n_dims &&
        memcmp(entry->shape->dims, dims, n_dims * sizeof *dims) == 0 &&
        is_a_number_type((sw_dtype)entry->dtype))
        return;
    sw_shape_text(n_dims, dims, wanted);
    if (entry->shape != NULL && entry->shape->n_dims <= SW_TENSOR_MAX_DIMS)
        sw_shape_text(entry->shape->n_dims, entry->shape->dims, found);
    note(b, MISSHAPEN, "%s is %s %s, not %s of floats", entry->name, sw_dtype_name((sw_dtype)entry->dtype),
         found, wanted);
}

/* ---- parameters with a second count, of experts or heads, which are stacked ---- */

/* How many the second count counts. */
static uint64_t n_inner(const binding *b, const sw_family_row *row)
{
    int64_t n = 0;
    const char *count = sw_family_inner_count(b->model->family, row->name);

    if (sw_expression(count, &b->model->config.attributes, 0, &n, NULL) != SW_OK || n < 0)
        return 0;
    return (uint64_t)n;
}

/* "model.layers.0.mlp.experts.gate_proj" of "model.layers.0.mlp.experts.3.gate_proj.weight" */
static sw_status name_stack(const binding *b, const sw_parameter *p, const char **out)
{
    const char *tail = strchr(strchr(p->row->name, '#') + 1, '#') + 1;
    int leaf = (int)(strrchr(tail, '.') - tail);
    int length = (int)(strlen(p->fqn) - strlen(tail));

    while (length > 0 && p->fqn[length - 1] != '.')
        length--;
    return sw_net_text(b->net, out, b->err, "%.*s%.*s", length - 1, p->fqn, leaf, tail);
}

/* The stack that a parameter belongs to. */
static sw_status find_stack(binding *b, const sw_parameter *p, sw_parameter **slot, sw_parameter **out)
{
    sw_net *net = b->net;

    if (*slot == NULL) {
        uint64_t n = n_inner(b, p->row);
        if (n > SW_MAX_TENSORS / net->n_layers)
            return SW_FAIL(b->err, SW_E_LIMIT, "correct the config",
                           "%s: %" PRIu64 " in each of %u layers are too many", p->fqn, n, net->n_layers);
        b->has[net->n_stacks] = sw_arena_zero(net->arena, (size_t)n, sizeof(bool));
        if (b->has[net->n_stacks] == NULL)
            return no_memory(b);
        sw_parameter *stack = &net->stacks[net->n_stacks++];
        *stack = *p;
        stack->index = 0;
        SW_TRY(name_stack(b, p, &stack->fqn));
        stack->source = UINT32_MAX;
        stack->expert = -1;
        stack->n_dims = p->n_dims + 1;
        stack->dims[0] = n;
        memcpy(stack->dims + 1, p->dims, p->n_dims * sizeof *p->dims);
        *slot = stack;
    }
    *out = *slot;
    return SW_OK;
}

static sw_status place_in_stack(binding *b, sw_parameter *p, sw_parameter **slot)
{
    if (p->expert < 0 || (uint64_t)p->expert >= n_inner(b, p->row) || p->n_dims + 1 > SW_TENSOR_MAX_DIMS) {
        note(b, EXTRA, "%s: the config has %" PRIu64, p->fqn, n_inner(b, p->row));
        return SW_OK;
    }
    p->index = (uint64_t)p->expert;
    if (*slot == NULL || (*slot)->source == UINT32_MAX)
        SW_TRY(find_stack(b, p, slot, &p->stack));
    bool *has = p->stack == NULL ? NULL : &b->has[p->stack - b->net->stacks][p->index];
    if (has == NULL || *has) {
        note(b, EXTRA, "%s: it is in %s already", p->fqn, (*slot)->fqn);
        return SW_OK;
    }
    *has = true;
    p->stack->index++;
    b->net->n_parameters++;
    return SW_OK;
}

/* ---- each tensor to its slot ---- */

static sw_status place(binding *b, sw_parameter *p)
{
    sw_held *held = held_of(b, p->layer, p->slot);
    sw_parameter **slot = p->is_bias ? &held->bias : &held->weight;

    p->dtype = dtype_of(b, p);
    if (is_of_a_stack(p->row))
        return place_in_stack(b, p, slot);
    if (*slot != NULL) {
        note(b, EXTRA, "%s: %s is there already", p->fqn, (*slot)->fqn);
        return SW_OK;
    }
    *slot = p;
    b->net->n_parameters++;
    return SW_OK;
}

static sw_status bind_tensor(binding *b, uint32_t i)
{
    const sw_param_node *node = &b->model->params[i];
    const sw_tensor_entry *entry = sw_model_tensor(b->model, i);
    const sw_family_row *row = b->model->patterns[node->pattern].row;
    int32_t layer = row != NULL && is_layered(row) ? node->layer : -1;
    sw_parameter *p = &b->net->parameters[b->net->n_parameters];

    if (row != NULL && is_left_alone(b, row, layer))
        return sw_net_text(b->net, &b->net->left_alone[b->net->n_left_alone++], b->err, "%s", entry->name);
    if (row != NULL)
        row = sw_family_row_for(b->model->family, row, &b->model->config.attributes, layer < 0 ? 0 : layer);
    bool is_table = row != NULL && b->head_is_table && fills(b, row, SW_SLOT_HEAD);
    if (row == NULL || layer >= (int64_t)b->net->n_layers || (!is_table && !holds(b, row, layer))) {
        note(b, EXTRA, "%s", entry->name);
        return SW_OK;
    }
    *p = (sw_parameter){.source = i,
                        .row = row,
                        .layer = layer,
                        .expert = is_of_a_stack(row) ? node->expert : -1,
                        .stored = (sw_dtype)entry->dtype,
                        .is_frozen = (row->flags & SW_ROW_FROZEN) != 0};
    p->slot = sw_decoder_slot(b->net->settings.decoder, row->name, &p->is_bias);
    if (p->slot == SW_SLOT_HEAD && !p->is_bias && b->head_is_table)
        p->slot = SW_SLOT_TOKENS;
    if (p->slot == SW_SLOT_NONE) {
        note(b, EXTRA, "%s: family %s does not compute with it", entry->name, b->model->family->name);
        return SW_OK;
    }
    check_shape(b, entry, p); /* a wrong one is not missing too */
    SW_TRY(sw_net_text(b->net, &p->fqn, b->err, "%s", entry->name));
    return place(b, p);
}

/* ---- what is not there ---- */

/* A row's name in a layer and, where it has two counts, of an expert. */
static void name_row(const sw_family_row *row, int64_t layer, uint64_t expert, char name[LINE])
{
    size_t at = 0;
    uint64_t counts[] = {(uint64_t)layer, expert};
    uint32_t n = 0;

    for (const char *c = row->name; *c != '\0' && at + 24 < LINE; c++) {
        if (*c == '#')
            at += (size_t)snprintf(name + at, LINE - at, "%" PRIu64, counts[n++ > 0]);
        else
            name[at++] = *c;
    }
    name[at] = '\0';
}

static void check_stack(binding *b, const sw_family_row *row, int64_t layer, const sw_parameter *stack)
{
    char name[LINE];

    if (stack->index == stack->dims[0])
        return;
    for (uint64_t e = 0; e < stack->dims[0]; e++) {
        if (b->has[stack - b->net->stacks][e])
            continue;
        name_row(row, layer, e, name);
        note(b, MISSING, "%s", name);
    }
}

static bool is_in_another_form(const binding *b, int32_t layer, sw_slot slot)
{
    bool is_half = slot == SW_SLOT_EXPERT_GATE || slot == SW_SLOT_EXPERT_UP;
    return is_half && held_of(b, layer, SW_SLOT_EXPERT_GATE_UP)->weight != NULL;
}

static void check_row(binding *b, const sw_family_row *row, int32_t layer)
{
    char name[LINE];
    bool is_bias = false;
    sw_slot slot = sw_decoder_slot(b->net->settings.decoder, row->name, &is_bias);

    if (slot == SW_SLOT_HEAD && !is_bias && b->head_is_table)
        slot = SW_SLOT_TOKENS;
    if (slot == SW_SLOT_NONE || !holds(b, row, layer) || is_left_alone(b, row, layer) ||
        is_in_another_form(b, layer, slot))
        return;
    const sw_held *held = held_of(b, layer, slot);
    const sw_parameter *p = is_bias ? held->bias : held->weight;
    if (p != NULL && is_of_a_stack(row) && p->source == UINT32_MAX) {
        check_stack(b, row, layer, p);
    } else if (p == NULL) {
        name_row(row, layer, 0, name);
        note(b, MISSING, "%s", name);
    }
}

static void check_rows(binding *b)
{
    uint32_t unneeded = SW_ROW_BUFFER | SW_ROW_OPTIONAL | SW_ROW_COPY;

    for (const sw_family_block *block = b->model->family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            if ((row->flags & unneeded) != 0)
                continue;
            if (!is_layered(row))
                check_row(b, row, -1);
            for (uint32_t layer = 0; is_layered(row) && layer < b->net->n_layers; layer++)
                check_row(b, row, (int32_t)layer);
        }
    }
}

static sw_status give_verdict(const binding *b)
{
    const uint64_t *n = b->n_faults;

    if (n[MISSING] + n[EXTRA] + n[MISSHAPEN] == 0)
        return SW_OK;
    return SW_FAIL(b->err, SW_E_FORMAT, "compare the checkpoint with its config.json",
                   "%s: tensors of family %s: %" PRIu64 " missing, %" PRIu64 " extra, %" PRIu64
                   " misshapen; %s",
                   b->model->path, b->model->family->name, n[MISSING], n[EXTRA], n[MISSHAPEN], b->first);
}

sw_status sw_net_bind(sw_net *net, const sw_model *model, const sw_net_options *options, sw_error *err)
{
    binding b = {.net = net, .model = model, .options = options, .err = err};
    size_t n = model->n_params + 1;

    net->parameters = sw_arena_zero(net->arena, n, sizeof *net->parameters);
    net->stacks = sw_arena_zero(net->arena, (size_t)net->n_layers * STACKS + 1, sizeof *net->stacks);
    net->left_alone = sw_arena_zero(net->arena, n, sizeof *net->left_alone);
    b.has = sw_arena_zero(net->arena, (size_t)net->n_layers * STACKS + 1, sizeof *b.has);
    if (net->parameters == NULL || net->stacks == NULL || net->left_alone == NULL || b.has == NULL)
        return no_memory(&b);
    b.head_is_table = net->settings.is_tied && stores(&b, SW_SLOT_HEAD) && !stores(&b, SW_SLOT_TOKENS);
    for (uint32_t i = 0; i < model->n_params; i++)
        SW_TRY(bind_tensor(&b, i));
    check_rows(&b);
    return give_verdict(&b);
}
