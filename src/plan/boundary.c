/*
 * Grouping: a sweep over the modules, deepest first, carries upward what the modules below could not use, as
 * a set of bits. A module that holds what some template cuts becomes a boundary. What is never cut (norms,
 * routers, whole weights, buffers) waits: the region that encloses it takes it as a member; where there is
 * none before the layer ends, it stands alone at its own module. A second pass gives every parameter its
 * boundary, in model order.
 */
#include "plan/boundary.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/classify.h"
#include "plan/layout.h"

/* What a module holds. */
enum {
    HAS_COLUMN = 1u << 0,
    HAS_ROW = 1u << 1,
    HAS_HEAD_COLUMN = 1u << 2, /* cut by heads: queries, keys, values, fused ones */
    HAS_HEAD_ROW = 1u << 3,
    HAS_EXPERT = 1u << 4,
    HAS_SHARED = 1u << 5,
    HAS_EMBED = 1u << 6,
    HAS_HEAD = 1u << 7,
    HAS_MIXER = 1u << 8,
    /* what waits: */
    HAS_NORM = 1u << 9,
    HAS_GATE = 1u << 10,
    HAS_WHOLE = 1u << 11,
    HAS_POSITION = 1u << 12,
    HAS_BUFFER = 1u << 13,
    HAS_BIAS = 1u << 14,
    HAS_UNKNOWN = 1u << 15,
    /* of a module itself: */
    HAS_ONLY_LEAVES = 1u << 16, /* every parameter of its own, or of the one module that it wraps, is a
                                   weight, a bias or a companion */
};

#define CUT_BITS                                                                                             \
    (HAS_COLUMN | HAS_ROW | HAS_HEAD_COLUMN | HAS_HEAD_ROW | HAS_EXPERT | HAS_SHARED | HAS_EMBED |           \
     HAS_HEAD | HAS_MIXER)
#define ATTENTION_BITS (HAS_HEAD_COLUMN | HAS_HEAD_ROW)

static uint32_t bits_of(const sw_class *c)
{
    uint32_t mixer = (c->flags & SW_ROW_MIXER) != 0 ? HAS_MIXER : 0;

    switch (c->role) {
    case SW_ROLE_COLWISE:
        return mixer | (sw_layout_has_heads(c->layout) ? HAS_HEAD_COLUMN : HAS_COLUMN);
    case SW_ROLE_FUSED_QKV:
        return mixer | HAS_HEAD_COLUMN;
    case SW_ROLE_FUSED_GATE_UP:
        return HAS_COLUMN;
    case SW_ROLE_ROWWISE:
        return mixer | (sw_layout_has_heads(c->layout) ? HAS_HEAD_ROW : HAS_ROW);
    case SW_ROLE_MOE_EXPERT:
        return HAS_EXPERT;
    case SW_ROLE_SHARED_EXPERT:
        return HAS_SHARED;
    case SW_ROLE_EMBED:
        return HAS_EMBED;
    case SW_ROLE_LM_HEAD:
        return HAS_HEAD;
    case SW_ROLE_SPECIAL:
        return HAS_MIXER;
    case SW_ROLE_NORM:
        return mixer | HAS_NORM;
    case SW_ROLE_MOE_GATE:
        return HAS_GATE;
    case SW_ROLE_REPLICATED:
        return mixer | ((c->flags & SW_ROW_POSITION) != 0 ? HAS_POSITION : HAS_WHOLE);
    case SW_ROLE_BIAS:
        return HAS_BIAS;
    case SW_ROLE_SKIP:
    case SW_ROLE_COUNT_:
        break;
    }
    return (c->flags & SW_ROW_BUFFER) != 0 ? HAS_BUFFER : HAS_UNKNOWN;
}

static bool is_leaf_name(const sw_tensor_entry *tensor, const sw_class *c)
{
    const char *dot = strrchr(tensor->name, '.');
    const char *leaf = dot == NULL ? tensor->name : dot + 1;

    return c->companion != NULL || strcmp(leaf, "weight") == 0 || strcmp(leaf, "bias") == 0;
}

static bool is_number(const char *text, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return length > 0;
}

static bool segment_is_number(const sw_module_node *m)
{
    return is_number(m->fqn + m->segment, m->fqn_length - m->segment);
}

static bool segment_has(const sw_module_node *m, const char *word)
{
    size_t n = strlen(word);

    for (uint32_t i = m->segment; i + n <= m->fqn_length; i++) {
        if (memcmp(m->fqn + i, word, n) == 0)
            return true;
    }
    return false;
}

static bool segment_is(const sw_module_node *m, const char *word)
{
    return m->fqn_length - m->segment == strlen(word) && segment_has(m, word);
}

/* Routed experts stand below a segment that holds "experts"; a shared expert's container is not one. */
static bool is_in_experts(const sw_model *model, uint32_t module)
{
    for (uint32_t i = module; i != SW_NO_MODULE; i = model->modules[i].parent) {
        const sw_module_node *m = &model->modules[i];
        if (segment_is(m, "shared_experts") || segment_is(m, "shared_expert"))
            return false;
        if (segment_has(m, "experts"))
            return true;
    }
    return false;
}

/* A numbered module that no numbered one encloses: a layer, and not a head's own norm inside one. */
static bool is_layer(const sw_model *model, uint32_t module)
{
    if (!segment_is_number(&model->modules[module]))
        return false;
    for (uint32_t i = model->modules[module].parent; i != SW_NO_MODULE; i = model->modules[i].parent) {
        if (segment_is_number(&model->modules[i]))
            return false;
    }
    return true;
}

/* A module that only wraps another, as `q_proj` does in q_proj.base_layer.weight. What a residual block holds
 * is no wrapper: it may be a region that lacks its other half. */
static bool is_wrapper(const sw_model *model, uint32_t module)
{
    const sw_module_node *m = &model->modules[module];

    return m->n_own == 0 && m->n_children == 1 && m->parent != SW_NO_MODULE && !is_layer(model, module) &&
           !segment_is_number(&model->modules[m->parent]);
}

/* The type of a module that holds `bits`, its own and those carried up. */
static sw_boundary_type decide(const sw_model *model, uint32_t module, uint32_t bits)
{
    const sw_module_node *m = &model->modules[module];
    bool is_leaf = (m->n_children == 0 || is_wrapper(model, module)) && (bits & HAS_ONLY_LEAVES) != 0 &&
                   m->fqn_length > 0;

    if ((bits & CUT_BITS) == 0 || is_in_experts(model, module))
        return SW_BOUNDARY_NONE;
    if ((bits & HAS_EMBED) != 0)
        return SW_BOUNDARY_EMBED;
    if ((bits & HAS_HEAD) != 0)
        return SW_BOUNDARY_LM_HEAD;
    if (is_leaf && m->parent != SW_NO_MODULE)
        return SW_BOUNDARY_NONE; /* one linear layer: its parent is the region */
    if ((bits & HAS_EXPERT) != 0)
        return SW_BOUNDARY_MOE_MLP;
    if ((bits & HAS_MIXER) != 0)
        return SW_BOUNDARY_MIXER;
    if ((bits & ATTENTION_BITS) != 0)
        return SW_BOUNDARY_ATTENTION;
    if ((bits & HAS_SHARED) == 0 && (segment_has(m, "attn") || segment_has(m, "attention")))
        return SW_BOUNDARY_ATTENTION;
    return SW_BOUNDARY_MLP;
}

/* Bits that go on to the parent. What waits stops at the end of a layer. */
static uint32_t carried(const sw_model *model, uint32_t module, uint32_t bits, sw_boundary_type type)
{
    if (type != SW_BOUNDARY_NONE)
        return 0;
    uint32_t parent = model->modules[module].parent;
    if (parent == SW_NO_MODULE || !is_wrapper(model, parent))
        bits &= ~(uint32_t)HAS_ONLY_LEAVES;
    return is_layer(model, module) && !is_in_experts(model, module) ? bits & CUT_BITS : bits;
}

static void sweep(const sw_model *model, uint32_t *bits, uint8_t *type)
{
    for (uint32_t i = model->n_modules; i-- > 0;) {
        sw_boundary_type t = decide(model, i, bits[i]);
        uint32_t parent = model->modules[i].parent;
        type[i] = (uint8_t)t;
        if (parent != SW_NO_MODULE)
            bits[parent] |= carried(model, i, bits[i], t);
    }
}

/* Is the module a region that cuts, and not one where something merely stands alone? */
static bool is_region(uint8_t type)
{
    return type != SW_BOUNDARY_NONE && type != SW_BOUNDARY_NORM && type != SW_BOUNDARY_MOE_GATE &&
           type != SW_BOUNDARY_POINTWISE && type != SW_BOUNDARY_WHOLE;
}

/* Does a boundary take a parameter that waits? A residual block (a numbered module) leaves it alone. */
static bool takes(const sw_model *model, const uint8_t *type, uint32_t module, uint32_t bits)
{
    if (!is_region(type[module]))
        return false;
    if ((bits & CUT_BITS) != 0)
        return true;
    return !segment_is_number(&model->modules[module]);
}

/* The module whose boundary holds a parameter with these bits; SW_NO_MODULE: none encloses it. */
static uint32_t find_owner(const sw_model *model, const uint8_t *type, uint32_t module, uint32_t bits)
{
    bool waits = (bits & CUT_BITS) == 0;

    for (uint32_t i = module; i != SW_NO_MODULE; i = model->modules[i].parent) {
        if (takes(model, type, i, bits))
            return i;
        if (waits && is_layer(model, i) && !is_in_experts(model, i))
            return SW_NO_MODULE;
    }
    return SW_NO_MODULE;
}

/* Type of a module whose parameters no region takes. */
static sw_boundary_type alone(const sw_model *model, uint32_t module, uint32_t bits, bool is_tower)
{
    const sw_module_node *m = &model->modules[module];

    if ((bits & HAS_NORM) != 0)
        return SW_BOUNDARY_NORM;
    if ((bits & HAS_GATE) != 0)
        return SW_BOUNDARY_MOE_GATE;
    if (is_tower || (bits & (HAS_WHOLE | HAS_POSITION | HAS_BIAS)) == 0)
        return SW_BOUNDARY_WHOLE;
    return m->n_children == 0 && m->fqn_length > 0 && (bits & HAS_ONLY_LEAVES) != 0 ? SW_BOUNDARY_POINTWISE
                                                                                    : SW_BOUNDARY_WHOLE;
}

static void own_bits(const sw_plan *plan, uint32_t *bits)
{
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_modules; i++)
        bits[i] = model->modules[i].n_own > 0 ? HAS_ONLY_LEAVES : 0;
    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_class *c = sw_class_of(plan, i);
        uint32_t module = model->params[i].module;
        bits[module] |= bits_of(c);
        if (!is_leaf_name(sw_model_tensor(model, i), c))
            bits[module] &= ~(uint32_t)HAS_ONLY_LEAVES;
    }
}

/* A bias that stays whole goes with the weight beside it. */
static uint32_t bits_for_owner(const uint32_t *own, uint32_t module, uint32_t bits)
{
    return bits == HAS_BIAS && (own[module] & CUT_BITS) != 0 ? bits | (own[module] & CUT_BITS) : bits;
}

static void assign(const sw_plan *plan, const uint32_t *own, sw_grouping *out)
{
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_class *c = sw_class_of(plan, i);
        uint32_t module = model->params[i].module;
        uint32_t bits = bits_for_owner(own, module, bits_of(c));
        uint32_t owner = find_owner(model, out->type, module, bits);
        if (owner == SW_NO_MODULE) {
            owner = module;
            if (out->type[module] == SW_BOUNDARY_NONE)
                out->type[module] = (uint8_t)alone(model, module, own[module], c->is_tower);
        }
        out->owner[i] = owner;
        out->n_held[owner]++;
    }
}

void sw_grouping_clear(sw_grouping *grouping)
{
    sw_free(grouping->type);
    sw_free(grouping->owner);
    sw_free(grouping->n_held);
    *grouping = (sw_grouping){0};
}

sw_status sw_group(sw_grouping *out, const sw_plan *plan, sw_error *err)
{
    const sw_model *model = plan->model;
    uint32_t *own = sw_alloc_zero(model->n_modules, sizeof *own);
    uint32_t *bits = sw_alloc_zero(model->n_modules, sizeof *bits);

    *out = (sw_grouping){0};
    out->type = sw_alloc_zero(model->n_modules, sizeof *out->type);
    out->owner = sw_alloc_zero(model->n_params + 1, sizeof *out->owner);
    out->n_held = sw_alloc_zero(model->n_modules, sizeof *out->n_held);
    sw_status status = SW_OK;
    if (own == NULL || bits == NULL || out->type == NULL || out->owner == NULL || out->n_held == NULL) {
        sw_grouping_clear(out);
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to group %zu parameters", model->n_params);
    } else {
        own_bits(plan, own);
        memcpy(bits, own, model->n_modules * sizeof *bits);
        sweep(model, bits, out->type);
        assign(plan, own, out);
    }
    sw_free(own);
    sw_free(bits);
    return status;
}
