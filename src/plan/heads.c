/*
 * Attributes that a module must read locally under tp: head counts follow from the final placements (a module
 * whose projections stayed whole keeps its counts), and the ones that an override declares are divided as
 * asked.
 */
#include "plan/heads.h"

#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/layout.h"

int64_t sw_plan_attribute(const sw_plan *plan, sw_attr attr)
{
    const sw_attributes *a = &plan->model->config.attributes;
    return a->is_set[attr] ? a->value[attr] : 0;
}

/* What the projections of the boundary say: are queries and keys there, and are they cut? */
typedef struct projections {
    bool has_q, q_cut;
    bool has_kv, kv_cut;
} projections;

static projections look(const sw_plan *plan, const sw_spec *spec)
{
    projections found = {0};

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        bool cut = f->places.on[SW_ON_TP].kind == SW_PLACE_SHARD;
        bool is_projection = f->role == SW_ROLE_COLWISE || f->role == SW_ROLE_FUSED_QKV;
        if (!is_projection || f->shape == NULL || f->shape->n_dims < 2)
            continue;
        if (sw_layout_has_queries(f->layout)) {
            found.has_q = true;
            found.q_cut = cut;
        }
        if (sw_layout_has_keys(f->layout)) {
            found.has_kv = true;
            found.kv_cut = cut;
        }
    }
    return found;
}

bool sw_spec_has_keys(const sw_plan *plan, const sw_spec *spec)
{
    return look(plan, spec).has_kv;
}

static sw_status add(sw_plan *plan, sw_spec *spec, const char *name, int64_t global, int64_t local,
                     bool is_declared, sw_error *err)
{
    uint32_t capacity = spec->n_tp_local;

    if (!sw_plan_grow(plan->arena, (void **)&spec->tp_local, &capacity, spec->n_tp_local,
                      sizeof *spec->tp_local))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the attributes of %s", spec->fqn);
    spec->tp_local[spec->n_tp_local++] = (sw_tp_local){name, global, local, is_declared};
    return SW_OK;
}

static sw_status automatic(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    int64_t heads = sw_plan_attribute(plan, spec->is_tower ? SW_ATTR_VISION_HEADS : SW_ATTR_HEADS);
    int64_t kv = sw_plan_attribute(plan, spec->is_tower ? SW_ATTR_VISION_HEADS : SW_ATTR_KV_HEADS);
    int64_t tp = plan->tp;
    projections p = look(plan, spec);

    if (spec->type != SW_BOUNDARY_ATTENTION || heads <= 0)
        return SW_OK;
    if (p.has_q)
        SW_TRY(
            add(plan, spec, "num_heads", heads, p.q_cut && heads % tp == 0 ? heads / tp : heads, false, err));
    if (p.has_kv && kv > 0) {
        int64_t local = kv % tp == 0 ? kv / tp : 1; /* fewer heads than ranks: each rank holds one */
        SW_TRY(add(plan, spec, "num_key_value_heads", kv, p.kv_cut ? local : kv, false, err));
    }
    return SW_OK;
}

/* ---- declared ---- */

// clang-format off
static const char *const never_divided[] = {
    "head_dim", "attention_head_size", "head_size", "num_key_value_groups", "training", "dtype", "device",
};
static const char *const automatic_names[] = {
    "num_heads", "num_attention_heads", "n_heads", "num_attn_heads", "n_head", "heads", "num_head",
    "num_key_value_heads", "num_kv_heads", "kv_heads",
};
// clang-format on

static bool is_in(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

/* The attribute that a config key spells, by the family's spellings, then the common ones. */
static sw_attr attr_of_key(const sw_plan *plan, const char *key)
{
    const sw_family *family = plan->model->family;
    sw_attr by_name = sw_attr_of(key, strlen(key));

    for (const sw_spelling *s = family == NULL ? NULL : family->spellings; s != NULL && s->key != NULL; s++) {
        if (strcmp(s->key, key) == 0)
            return s->attr;
    }
    for (const sw_spelling *s = sw_common_spellings; s->key != NULL; s++) {
        if (strcmp(s->key, key) == 0)
            return s->attr;
    }
    return by_name;
}

static void refuse(sw_plan *plan, const sw_spec *spec, const char *name, const char *why)
{
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "tp_divide", spec->fqn, spec->fqn_length,
                        "name an integer of config.json that tp divides and that is not divided by itself",
                        "tp_divide_attrs: '%s' %s", name, why);
}

static sw_status declared(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    for (uint32_t i = 0; i < spec->n_tp_divide; i++) {
        const char *name = spec->tp_divide[i];
        sw_attr attr = attr_of_key(plan, name);
        int64_t value = attr == SW_ATTR_NONE ? 0 : sw_plan_attribute(plan, attr);
        bool is_automatic = spec->n_tp_local > 0 && is_in(name, automatic_names, SW_COUNT(automatic_names));
        if (strncmp(name, "_hp_", 4) == 0 || is_in(name, never_divided, SW_COUNT(never_divided)))
            refuse(plan, spec, name, "is never divided");
        else if (is_automatic)
            refuse(plan, spec, name, "is divided by itself already");
        else if (attr == SW_ATTR_NONE || value <= 0)
            refuse(plan, spec, name, "is not a positive integer of this model");
        else if (value % (int64_t)plan->tp != 0)
            refuse(plan, spec, name, "is not divisible by tp");
        else
            SW_TRY(add(plan, spec, name, value, value / (int64_t)plan->tp, true, err));
    }
    return SW_OK;
}

sw_status sw_finish_heads(sw_plan *plan, sw_error *err)
{
    if (plan->tp <= 1)
        return SW_OK;
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        SW_TRY(automatic(plan, &plan->specs[i], err));
        SW_TRY(declared(plan, &plan->specs[i], err));
    }
    return SW_OK;
}
