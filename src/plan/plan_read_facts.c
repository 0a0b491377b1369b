/*
 * What a plan file says of one parameter. A plan of 100,000 parameters repeats a few dozen descriptions: one
 * whose text was read before is found by its bytes, and only a new one is taken apart.
 */
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "plan/intern.h"
#include "plan/plan_read.h"
#include "plan/plan_reader.h"
#include "plan/plan_write.h"

/* Facts are compared by their bytes: words that they point to must be these. */
static const char *const reasons[] = {"buffer", "companion", "frozen", "integers", "quantised"};
static const char *const sum_reasons[] = {"context", "data",     "expert_data", "kv_replica",
                                          "partial", "sequence", "tied"};
static const char *const adders[] = {"tp rank 0"};

/* The record while its text is read. */
typedef struct draft {
    sw_facts facts;
    bool has_dims;
    bool is_full_norm;
    bool is_centred;
    bool is_in_groups;
} draft;

static bool read_role(sw_plan_reader *r, void *at)
{
    sw_role *out = at;
    uint32_t role = 0;

    if (!sw_plan_read_word(r, "role", r->roles, SW_COUNT(r->roles), &role))
        return false;
    *out = (sw_role)role;
    return true;
}

static bool read_dtype(sw_plan_reader *r, void *at)
{
    sw_dtype *out = at;
    uint32_t dtype = 0;

    if (!sw_plan_read_word(r, "dtype", r->dtypes, SW_COUNT(r->dtypes), &dtype))
        return false;
    *out = (sw_dtype)dtype;
    return true;
}

static bool read_shape(sw_plan_reader *r, void *at)
{
    const sw_shape **out = at;
    uint64_t dims[SW_MAX_DIMS] = {0};
    uint64_t elems = 1;
    uint32_t n = 0;

    (void)sw_json_enter_array(&r->json);
    while (sw_json_next_element(&r->json)) {
        if (n == SW_MAX_DIMS)
            return sw_plan_over_limit(r, "dims of a tensor", SW_MAX_DIMS);
        if (!sw_json_u64(&r->json, &dims[n]))
            return false;
        if (!sw_mul_u64(elems, dims[n], &elems))
            return sw_plan_refuse(r, "", "the elements of a tensor do not fit 64 bits");
        n++;
    }
    if (r->json.status != SW_OK)
        return false;
    *out = sw_plan_shape(r->plan, dims, n);
    return *out != NULL || sw_plan_no_memory(r);
}

static bool read_layout_kind(sw_plan_reader *r, void *at)
{
    sw_layout *out = at;
    uint32_t layout = 0;

    if (!sw_plan_read_word(r, "layout", r->layouts, SW_COUNT(r->layouts), &layout))
        return false;
    *out = (sw_layout)layout;
    return true;
}

static bool read_layout(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("kind", read_layout_kind, sw_facts, layout),
        SW_KEY_OPTIONAL("parts", sw_plan_read_u32, sw_facts, parts),
    };
    return sw_plan_read_object(r, "layout", keys, SW_COUNT(keys), at);
}

static bool read_dim(sw_plan_reader *r, void *at)
{
    int *out = at;
    int32_t value = 0;

    if (!sw_plan_read_i32(r, &value))
        return false;
    if (value < -1 || value >= SW_MAX_DIMS)
        return sw_plan_refuse(r, "-1 stands for none", "a dim is -1 to %d", SW_MAX_DIMS - 1);
    *out = (int)value;
    return true;
}

static bool read_dims(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("out", read_dim, draft, facts.out_dim),
        SW_KEY("in", read_dim, draft, facts.in_dim),
    };
    draft *d = at;

    d->has_dims = true;
    return sw_plan_read_object(r, "dims", keys, SW_COUNT(keys), d);
}

static bool read_reason(sw_plan_reader *r, void *at)
{
    const char **out = at;
    uint32_t word = 0;

    if (!sw_plan_read_word(r, "reason", reasons, SW_COUNT(reasons), &word))
        return false;
    *out = reasons[word];
    return true;
}

static bool read_added_on(sw_plan_reader *r, void *at)
{
    bool *is_rank0_only = at;
    uint32_t word = 0;

    *is_rank0_only = true;
    return sw_plan_read_word(r, "place to add a bias", adders, SW_COUNT(adders), &word);
}

/* ---- gradient sums ---- */

static bool read_sum_reason(sw_plan_reader *r, void *at)
{
    const char **out = at;
    uint32_t word = 0;

    if (!sw_plan_read_word(r, "reason of a gradient sum", sum_reasons, SW_COUNT(sum_reasons), &word))
        return false;
    *out = sum_reasons[word];
    return true;
}

static bool read_group(sw_plan_reader *r, void *at)
{
    const uint32_t *group = at;

    if (!sw_plan_read_u32(r, at))
        return false;
    return *group > 0 || sw_plan_refuse(r, "leave it out for the whole axis", "grad_sum: a group of 0 ranks");
}

static bool read_sums(sw_plan_reader *r, void *at)
{
    static const sw_plan_key keys[] = {
        SW_KEY("axis", sw_plan_read_axis, sw_grad_sum, axis),
        SW_KEY_OPTIONAL("group", read_group, sw_grad_sum, group),
        SW_KEY("reason", read_sum_reason, sw_grad_sum, reason),
    };
    sw_grad_list *list = at;

    (void)sw_json_enter_array(&r->json);
    while (sw_json_next_element(&r->json)) {
        if (list->n == SW_COUNT(list->sums))
            return sw_plan_over_limit(r, "gradient sums of a parameter", (uint32_t)SW_COUNT(list->sums));
        if (!sw_plan_read_object(r, "grad_sum", keys, SW_COUNT(keys), &list->sums[list->n]))
            return false;
        list->n++;
    }
    return r->json.status == SW_OK;
}

/* ---- the whole ---- */

static const sw_plan_key facts_keys[] = {
    SW_KEY("role", read_role, draft, facts.role),
    SW_KEY("dtype", read_dtype, draft, facts.dtype),
    SW_KEY("shape", read_shape, draft, facts.shape),
    SW_KEY_OPTIONAL("view", read_shape, draft, facts.view),
    SW_KEY("placement", sw_plan_read_places, draft, facts.places),
    SW_KEY_OPTIONAL("layout", read_layout, draft, facts),
    SW_KEY_OF_ALL_OPTIONAL("dims", read_dims),
    SW_KEY("grad_sum", read_sums, draft, facts.grad),
    SW_KEY_OPTIONAL("trained", sw_plan_read_bool, draft, facts.is_trained),
    SW_KEY_OPTIONAL("reason", read_reason, draft, facts.reason),
    SW_KEY_OPTIONAL("full_norm", sw_plan_read_bool, draft, is_full_norm),
    SW_KEY_OPTIONAL("centred", sw_plan_read_bool, draft, is_centred),
    SW_KEY_OPTIONAL("in_groups", sw_plan_read_bool, draft, is_in_groups),
    SW_KEY_OPTIONAL("overridden", sw_plan_read_bool, draft, facts.is_placed),
    SW_KEY_OPTIONAL("added_on", read_added_on, draft, facts.is_rank0_only),
};

static bool parse_facts(sw_plan_reader *r, uint32_t *out)
{
    draft d;

    if (r->plan->n_facts >= SW_PLAN_MAX_FACTS)
        return sw_plan_over_limit(r, "different descriptions of parameters", SW_PLAN_MAX_FACTS);
    memset(&d, 0, sizeof d); /* padding too: see sw_plan_intern_facts() */
    d.facts.is_trained = true;
    if (!sw_plan_read_object(r, "a parameter", facts_keys, SW_COUNT(facts_keys), &d))
        return false;
    if (d.facts.is_trained != (d.facts.reason == NULL))
        return sw_plan_refuse(r, "give both, or neither", "%s",
                              d.facts.is_trained ? "a reason why it is not trained, and it is"
                                                 : "trained is false without a reason");
    const sw_shape *shape = d.facts.view != NULL ? d.facts.view : d.facts.shape;
    if (!d.has_dims)
        sw_plan_usual_dims(shape->n_dims, &d.facts.out_dim, &d.facts.in_dim);
    if (d.facts.out_dim >= (int)shape->n_dims || d.facts.in_dim >= (int)shape->n_dims)
        return sw_plan_refuse(r, "", "dims: the tensor has %u dims", shape->n_dims);
    d.facts.flags = (d.is_full_norm ? (uint32_t)SW_ROW_FULL_NORM : 0) |
                    (d.is_centred ? (uint32_t)SW_ROW_CENTRED : 0) |
                    (d.is_in_groups ? (uint32_t)SW_ROW_IN_GROUPS : 0);
    *out = sw_plan_intern_facts(r->plan, &d.facts);
    return *out != UINT32_MAX || sw_plan_no_memory(r);
}

bool sw_plan_read_facts(sw_plan_reader *r, void *at)
{
    uint32_t *out = at;
    bool is_new = false;

    if (sw_json_peek(&r->json) != SW_JSON_OBJECT)
        return sw_plan_refuse(r, "", "a parameter is described by an object");
    const char *begin = r->json.at;
    if (!sw_json_skip(&r->json))
        return false;
    const char *end = r->json.at;
    uint32_t *known = sw_map_put(&r->by_text, begin, (size_t)(end - begin), UINT32_MAX, &is_new);
    if (known == NULL)
        return sw_plan_no_memory(r);
    if (is_new) {
        r->json.at = begin;
        if (!parse_facts(r, known))
            return false;
    }
    *out = *known;
    return true;
}
