/*
 * The modules of a net, in the order of the work: which there are follows from the slots that are filled, and
 * their names from the names of what fills them.
 */
#include "nn/binding.h"

#include <string.h>

#include "base/status.h"
#include "model/tied_name.h"
#include "nn/classes.h"

enum { A_LAYER = 9, AROUND = 8 }; /* modules of a layer, at most, and of the rest */

/* The class of attention, or of the MLP, is that of the first slot that is filled. */
typedef struct kind {
    sw_slot slot;
    const sw_module_class *class;
    const sw_module_class *core; /* of a module below it; NULL: none */
    const char *core_name;
} kind;

static const kind attention_kinds[] = {
    {SW_SLOT_KV_DOWN, &sw_class_latent,    &sw_class_attention_core, "core"},
    {SW_SLOT_QKV,     &sw_class_attention, &sw_class_attention_core, "core"},
    {SW_SLOT_Q,       &sw_class_attention, &sw_class_attention_core, "core"},
};

static const kind mlp_kinds[] = {
    {SW_SLOT_ROUTER,  &sw_class_mixture, &sw_class_experts, "experts"},
    {SW_SLOT_GATE_UP, &sw_class_mlp,     NULL,              NULL     },
    {SW_SLOT_UP,      &sw_class_mlp,     NULL,              NULL     },
};

typedef struct building {
    sw_net *net;
    const sw_family *family;
    sw_error *err;
} building;

static sw_status add(building *b, const sw_module_class *class, const char *fqn, int32_t layer, sw_slot slot,
                     sw_module **out)
{
    sw_net *net = b->net;
    sw_module *module = &net->modules[net->n_modules++];

    *module = (sw_module){.class = class,
                          .fqn = fqn,
                          .layer = layer,
                          .net = net,
                          .held = layer < 0 ? net->held : net->layers[layer].held,
                          .slot = slot,
                          .stages = &sw_stages_local};
    if (class->prepare != NULL)
        class->prepare(module);
    *out = module;
    return SW_OK;
}

/* The name without its last `n` segments. */
static sw_status parent_name(const building *b, const char *name, uint32_t n, const char **out)
{
    size_t length = strlen(name);

    for (; n > 0 && length > 0; n--) {
        while (length > 0 && name[length - 1] != '.')
            length--;
        length -= length > 0;
    }
    return sw_net_text(b->net, out, b->err, "%.*s", (int)length, name);
}

/* The name of a module whose class has no parameters: what the family calls the slot. */
static const char *usual_name(const sw_decoder *decoder, sw_slot slot)
{
    const sw_slot_name *lists[] = {decoder->slots, sw_common_slot_names};

    for (size_t i = 0; i < SW_COUNT(lists); i++) {
        for (const sw_slot_name *name = lists[i]; name != NULL && name->name != NULL; name++) {
            if (name->slot == slot)
                return name->name;
        }
    }
    return "";
}

static bool is_bare(const building *b, sw_slot slot)
{
    return b->net->settings.decoder->norm == SW_NORM_LAYER_BARE &&
           (slot == SW_SLOT_ATTENTION_NORM || slot == SW_SLOT_MLP_NORM || slot == SW_SLOT_FINAL_NORM);
}

/* A module that is one slot, if that is filled. `layer_name` goes before the name of one without parameters.
 */
static sw_status add_single(building *b, const sw_module_class *class, int32_t layer, sw_slot slot,
                            const char *layer_name, sw_module **out)
{
    const sw_held *held = layer < 0 ? &b->net->held[slot] : &b->net->layers[layer].held[slot];
    const char *fqn = NULL;

    if (held->weight == NULL && !is_bare(b, slot))
        return SW_OK;
    if (held->weight != NULL)
        SW_TRY(parent_name(b, held->weight->fqn, 1, &fqn));
    else
        SW_TRY(sw_net_text(b->net, &fqn, b->err, "%s%s%s", layer_name, *layer_name == '\0' ? "" : ".",
                           usual_name(b->net->settings.decoder, slot)));
    return add(b, class, fqn, layer, slot, out);
}

static sw_status add_of_kind(building *b, const kind *kinds, size_t n_kinds, int32_t layer, const char *what,
                             sw_module **out)
{
    const sw_held *held = b->net->layers[layer].held;
    const char *fqn = NULL;
    const kind *found = NULL;

    for (size_t i = 0; i < n_kinds && found == NULL; i++)
        found = held[kinds[i].slot].weight != NULL ? &kinds[i] : NULL;
    if (found == NULL)
        return SW_FAIL(b->err, SW_E_FORMAT, "this form of layer can be planned but not run",
                       "layer %d has no %s that can be run", layer, what);
    SW_TRY(parent_name(b, held[found->slot].weight->fqn, 2, &fqn));
    SW_TRY(add(b, found->class, fqn, layer, found->slot, out));
    if (found->core == NULL)
        return SW_OK;
    SW_TRY(sw_net_text(b->net, &fqn, b->err, "%s.%s", fqn, found->core_name));
    SW_TRY(add(b, found->core, fqn, layer, found->slot, &(*out)->core));
    (*out)->core->parent = *out;
    return SW_OK;
}

/* What a mixture has beside what it routes to. */
static sw_status add_shared(building *b, int32_t layer, sw_module *mixture)
{
    const sw_parameter *gate = b->net->layers[layer].held[SW_SLOT_SHARED_GATE].weight;
    const char *fqn = NULL;

    if (gate == NULL)
        return SW_OK;
    SW_TRY(parent_name(b, gate->fqn, 2, &fqn));
    SW_TRY(add(b, &sw_class_shared_experts, fqn, layer, SW_SLOT_SHARED_GATE, &mixture->shared));
    mixture->shared->parent = mixture;
    return SW_OK;
}

static sw_status add_layer(building *b, uint32_t i)
{
    sw_layer *layer = &b->net->layers[i];
    int32_t l = (int32_t)i;
    const char *name = "";
    const sw_held *first = &layer->held[layer->held[SW_SLOT_Q].weight != NULL ? SW_SLOT_Q : SW_SLOT_QKV];

    if (first->weight != NULL)
        SW_TRY(parent_name(b, first->weight->fqn, 3, &name));
    SW_TRY(add_single(b, &sw_class_norm, l, SW_SLOT_ATTENTION_NORM, name, &layer->attention_norm));
    SW_TRY(add_of_kind(b, attention_kinds, SW_COUNT(attention_kinds), l, "attention", &layer->attention));
    SW_TRY(add_single(b, &sw_class_norm, l, SW_SLOT_ATTENTION_OUT_NORM, name, &layer->attention_out_norm));
    SW_TRY(add_single(b, &sw_class_norm, l, SW_SLOT_MLP_NORM, name, &layer->mlp_norm));
    SW_TRY(add_of_kind(b, mlp_kinds, SW_COUNT(mlp_kinds), l, "MLP", &layer->mlp));
    SW_TRY(add_shared(b, l, layer->mlp));
    return add_single(b, &sw_class_norm, l, SW_SLOT_MLP_OUT_NORM, name, &layer->mlp_out_norm);
}

/* The module of the embedding, or of the head, that is not stored: as a plan names it. */
static sw_status tied_name(const building *b, sw_role missing, const sw_parameter *stored, const char **out)
{
    const char *weight = NULL;

    SW_TRY(parent_name(b, stored->fqn, 1, out));
    weight = sw_tied_name(b->net->arena, b->family, missing, *out, strlen(*out));
    if (weight == NULL)
        return sw_arena_fail(b->net->arena, "the names of a net", b->err);
    return parent_name(b, weight, 1, out);
}

/* A table that is stored as the head is still looked up under its own name. */
static sw_status add_embedding(building *b)
{
    const sw_decoder *decoder = b->net->settings.decoder;
    const sw_parameter *weight = b->net->held[SW_SLOT_TOKENS].weight;
    const char *fqn = NULL;
    bool is_bias = false;

    if (weight == NULL || sw_decoder_slot(decoder, weight->row->name, &is_bias) == SW_SLOT_TOKENS)
        return add_single(b, &sw_class_embedding, -1, SW_SLOT_TOKENS, "", &b->net->embedding);
    SW_TRY(tied_name(b, SW_ROLE_EMBED, weight, &fqn));
    return add(b, &sw_class_embedding, fqn, -1, SW_SLOT_TOKENS, &b->net->embedding);
}

/* A tied head is a module too: a plan names it. */
static sw_status add_head(building *b)
{
    const sw_parameter *weight = b->net->held[SW_SLOT_HEAD].weight;
    const sw_parameter *tokens = b->net->held[SW_SLOT_TOKENS].weight;
    const char *fqn = usual_name(b->net->settings.decoder, SW_SLOT_HEAD);

    if (weight != NULL)
        SW_TRY(parent_name(b, weight->fqn, 1, &fqn));
    else if (tokens != NULL)
        SW_TRY(tied_name(b, SW_ROLE_LM_HEAD, tokens, &fqn));
    return add(b, &sw_class_head, fqn, -1, SW_SLOT_HEAD, &b->net->head);
}

sw_status sw_net_build_modules(sw_net *net, const sw_family *family, sw_error *err)
{
    building b = {net, family, err};
    size_t n = (size_t)net->n_layers * A_LAYER + AROUND;

    net->modules = sw_arena_zero(net->arena, n, sizeof *net->modules);
    if (net->modules == NULL)
        return sw_arena_fail(net->arena, "the modules of a net", err);
    SW_TRY(add_embedding(&b));
    SW_TRY(add_single(&b, &sw_class_positions, -1, SW_SLOT_POSITIONS, "", &net->positions));
    SW_TRY(add_single(&b, &sw_class_linear, -1, SW_SLOT_EMBED_IN, "", &net->embed_in));
    SW_TRY(add_single(&b, &sw_class_norm, -1, SW_SLOT_EMBED_NORM, "", &net->embed_norm));
    for (uint32_t i = 0; i < net->n_layers; i++)
        SW_TRY(add_layer(&b, i));
    SW_TRY(add_single(&b, &sw_class_norm, -1, SW_SLOT_FINAL_NORM, "", &net->final_norm));
    SW_TRY(add_single(&b, &sw_class_linear, -1, SW_SLOT_EMBED_OUT, "", &net->embed_out));
    return add_head(&b);
}
