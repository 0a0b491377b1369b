/*
 * Lints. Coverage and ownership look at the whole plan with one array over the model's parameters; the others
 * look at one boundary or one parameter at a time.
 */
#include "plan/lint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/expert.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/lint_bias.h"
#include "plan/lint_compute.h"
#include "plan/lint_config.h"
#include "plan/lint_contract.h"
#include "plan/lint_expert.h"
#include "plan/lint_heads.h"
#include "plan/lint_missing.h"
#include "plan/lint_pair.h"
#include "plan/lint_region.h"
#include "plan/lint_stream.h"
#include "plan/lint_vocabulary.h"
#include "plan/lint_widths.h"

static const sw_axis axis_of[SW_ON_COUNT_] = {
    [SW_ON_CP] = SW_AXIS_CP, [SW_ON_EP] = SW_AXIS_EP, [SW_ON_TP] = SW_AXIS_TP};

typedef struct linting {
    sw_plan *plan;
    const sw_model *model;
    uint32_t *owner; /* per parameter of the model: 1 + index of the spec that holds it */
    sw_error *err;
} linting;

/* ---- ownership and coverage ---- */

static void claim(linting *l, uint32_t param, uint32_t spec)
{
    const sw_tensor_entry *t = sw_model_tensor(l->model, param);
    uint32_t held = l->owner[param];

    if (held != 0 && held != spec + 1) {
        (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, "two_owners", t->name, t->name_length,
                            "a parameter belongs to exactly one boundary: remove it from one of them",
                            "held by boundary '%s' and by boundary '%s'", l->plan->specs[held - 1].fqn,
                            l->plan->specs[spec].fqn);
    }
    l->owner[param] = spec + 1;
}

/* A source of a stack that the boundary also holds alone would be stored and trained twice. */
static void claim_source(linting *l, uint32_t param, uint32_t spec, const sw_ep_stack *stack)
{
    const sw_tensor_entry *t = sw_model_tensor(l->model, param);

    if (l->owner[param] == spec + 1)
        (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, "two_owners", t->name, t->name_length,
                            "place the stack, which stands for all experts, or none of it",
                            "its boundary holds it twice: in the stack '%s', and alone", stack->path);
    claim(l, param, spec);
}

/* Index of a tensor of the model by its place in the list; the list's order is not the model's. */
static sw_status index_by_tensor(const linting *l, uint32_t **out)
{
    uint32_t *index = sw_alloc_zero(l->model->list.n_tensors + 1, sizeof *index);

    if (index == NULL)
        return SW_FAIL(l->err, SW_E_NO_MEMORY, "", "no memory for the lints");
    for (uint32_t i = 0; i < l->model->n_params; i++)
        index[l->model->params[i].tensor] = i;
    *out = index;
    return SW_OK;
}

static const sw_tensor_entry *find_tensor(const linting *l, const sw_spec *spec, const char *path,
                                          size_t length)
{
    char name[4096];
    size_t n = spec->fqn_length;

    if (n + length + 2 > sizeof name)
        return NULL;
    memcpy(name, spec->fqn, n);
    if (n > 0)
        name[n++] = '.';
    memcpy(name + n, path, length);
    return sw_tensor_list_find(&l->model->list, name, n + length);
}

static void missing_in_model(linting *l, const sw_spec *spec, const char *path, size_t length)
{
    (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, "not_in_model", spec->fqn, spec->fqn_length,
                        "make the plan again for this model",
                        "the plan holds '%.*s', which the model does not", (int)length, path);
}

/* A plan of this very model knows its stacked sources by index; one that was loaded only by name. */
static void claim_stack(linting *l, const uint32_t *by_tensor, uint32_t i, const sw_ep_stack *stack)
{
    const sw_spec *spec = &l->plan->specs[i];
    sw_buffer path = {0};

    for (uint32_t k = 0; k < stack->n && l->plan->model != l->model; k++) {
        path.length = 0;
        sw_buffer_puts(&path, stack->prefix);
        sw_buffer_u64(&path, k);
        sw_buffer_puts(&path, stack->suffix);
        const sw_tensor_entry *t = path.failed ? NULL : find_tensor(l, spec, path.bytes, path.length);
        if (t == NULL)
            missing_in_model(l, spec, path.failed ? "" : path.bytes, path.failed ? 0 : path.length);
        else
            claim_source(l, by_tensor[t - l->model->list.tensors], i, stack);
    }
    l->plan->is_out_of_memory = l->plan->is_out_of_memory || path.failed;
    sw_buffer_clear(&path);
}

static void claim_stacked(linting *l)
{
    const sw_plan *plan = l->plan;

    for (uint32_t i = 0; plan->stacked_in != NULL && i < l->model->n_params; i++) {
        if (plan->stacked_in[i] == 0)
            continue;
        const sw_spec *spec = &plan->specs[plan->stacked_in[i] - 1];
        for (uint32_t s = 0; s < spec->n_stacks; s++) { /* an override may have dropped the stack */
            uint32_t first = spec->stacks[s].first_param;
            if (l->model->params[first].pattern == l->model->params[i].pattern)
                claim_source(l, i, plan->stacked_in[i] - 1, &spec->stacks[s]);
        }
    }
}

static void claim_all(linting *l, const uint32_t *by_tensor)
{
    for (uint32_t i = 0; i < l->plan->n_specs; i++) {
        const sw_spec *spec = &l->plan->specs[i];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            sw_spec_param *p = &spec->params[k];
            bool is_stack = false;
            for (uint32_t s = 0; s < spec->n_stacks && !is_stack; s++)
                is_stack = spec->stacks[s].param == k ||
                           (strlen(spec->stacks[s].path) == p->path_length &&
                            memcmp(spec->stacks[s].path, p->path, p->path_length) == 0);
            if (is_stack)
                continue;
            if (p->param != UINT32_MAX && l->plan->model == l->model) {
                claim(l, p->param, i);
                continue;
            }
            const sw_tensor_entry *t = find_tensor(l, spec, p->path, p->path_length);
            if (t == NULL) {
                missing_in_model(l, spec, p->path, p->path_length);
                continue;
            }
            p->param = by_tensor[t - l->model->list.tensors]; /* a plan that was loaded learns it here */
            claim(l, p->param, i);
        }
        for (uint32_t s = 0; s < spec->n_stacks; s++)
            claim_stack(l, by_tensor, i, &spec->stacks[s]);
    }
    if (l->plan->model == l->model)
        claim_stacked(l);
}

/* A first extent that equals a head count is the likeliest reading of an unknown tensor: say so, never assume
 * it. */
static const char *head_hint(const linting *l, const sw_shape *shape)
{
    uint64_t first = shape == NULL || shape->n_dims == 0 ? 0 : shape->dims[0];
    const sw_attributes *a = &l->model->config.attributes;

    if (first > 1 && a->is_set[SW_ATTR_HEADS] && first == (uint64_t)a->value[SW_ATTR_HEADS])
        return "; its first dim equals the number of query heads";
    if (first > 1 && a->is_set[SW_ATTR_KV_HEADS] && first == (uint64_t)a->value[SW_ATTR_KV_HEADS])
        return "; its first dim equals the number of key/value heads";
    return "";
}

static void uncovered(linting *l, const char *fqn, size_t length, const sw_shape *shape)
{
    sw_plan *plan = l->plan;

    (void)sw_plan_fault(
        plan, plan->allow_uncovered ? SW_SEVERITY_WARNING : SW_SEVERITY_ERROR, "uncovered", fqn, length,
        "say what it is: `roles: {extend: true, rules: [{pattern: ..., role: ...}]}`, or place it in "
        "an override; --allow-uncovered keeps it whole",
        "no rule places this parameter of %" PRIu64 " elements%s%s",
        shape == NULL ? (uint64_t)0 : shape->elems,
        plan->allow_uncovered ? ": every rank holds it whole" : "", head_hint(l, shape));
}

/* Parameters in no boundary, and those that a boundary holds without anyone having said what they are. */
static void check_coverage(linting *l)
{
    const sw_plan *plan = l->plan;

    for (uint32_t i = 0; plan->derive && i < l->model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(l->model, i);
        if (l->owner[i] == 0)
            uncovered(l, t->name, t->name_length, t->shape);
    }
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            const sw_spec_param *p = &spec->params[k];
            const sw_facts *f = &plan->facts[p->facts];
            char fqn[4096];
            if (f->role != SW_ROLE_SKIP || f->reason != NULL || f->is_placed)
                continue;
            int n = snprintf(fqn, sizeof fqn, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                             (int)p->path_length, p->path);
            uncovered(l, fqn, n > 0 && (size_t)n < sizeof fqn ? (size_t)n : 0, f->shape);
        }
    }
}

/* ---- one parameter ---- */

static void bad_param(linting *l, const sw_spec *spec, const sw_spec_param *p, const char *code,
                      const char *help, const char *what)
{
    char fqn[4096];
    int n = snprintf(fqn, sizeof fqn, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                     (int)p->path_length, p->path);

    (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, code, fqn,
                        n > 0 && (size_t)n < sizeof fqn ? (size_t)n : 0, help, "%s", what);
}

static uint32_t size_on(const sw_plan *plan, int axis)
{
    return axis == SW_ON_TP ? plan->tp : axis == SW_ON_CP ? plan->cp : plan->ep;
}

static void shape_text(const sw_shape *shape, char *text, size_t capacity)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < shape->n_dims && used + 24 < capacity; i++)
        used +=
            (size_t)snprintf(text + used, capacity - used, "%s%" PRIu64, i == 0 ? "" : ", ", shape->dims[i]);
}

/* A fused tensor under a plain contiguous cut: rank 0 would get all of the first part. */
static bool tears_parts(const sw_facts *f, const sw_placement *p, uint32_t dim)
{
    bool is_fused = f->layout == SW_LAYOUT_QKV_STACKED || f->layout == SW_LAYOUT_KV_STACKED ||
                    f->layout == SW_LAYOUT_STACKED || f->layout == SW_LAYOUT_UNKNOWN;
    return is_fused && p->cut == NULL && (int)dim == f->out_dim;
}

/* Rows that a cut must not part: a head, or a whole group of heads that are stored together. 0: none. */
static uint64_t rows_together(const linting *l, const sw_spec *spec, const sw_facts *f, uint64_t extent)
{
    const sw_attributes *a = &l->model->config.attributes;
    sw_attr heads_attr = spec->is_tower ? SW_ATTR_VISION_HEADS : SW_ATTR_HEADS;
    uint64_t heads = a->is_set[heads_attr] ? (uint64_t)a->value[heads_attr] : 0;
    uint64_t kv =
        a->is_set[SW_ATTR_KV_HEADS] && !spec->is_tower ? (uint64_t)a->value[SW_ATTR_KV_HEADS] : heads;
    uint64_t n = 0;

    switch (f->layout) {
    case SW_LAYOUT_HEADS:
    case SW_LAYOUT_QKV_PER_HEAD:
        n = heads;
        break;
    case SW_LAYOUT_KV_HEADS:
    case SW_LAYOUT_QKV_GROUPED:
        n = kv;
        break;
    case SW_LAYOUT_QKV_STACKED:
        n = heads + 2 * kv;
        break;
    case SW_LAYOUT_KV_STACKED:
        n = 2 * kv;
        break;
    default:
        return 0;
    }
    if (f->layout == SW_LAYOUT_QKV_GROUPED && f->places.on[SW_ON_TP].cut != NULL && kv != 0)
        n = heads + 2 * kv; /* cut inside its groups: single heads stay whole */
    return n != 0 && extent % n == 0 ? extent / n : 0;
}

/* A cut that an override gives must end between heads, like one that is derived. */
static void check_heads(linting *l, const sw_spec *spec, const sw_spec_param *param, const sw_facts *f,
                        uint64_t extent)
{
    const sw_placement *p = &f->places.on[SW_ON_TP];
    uint64_t rows = f->is_placed ? rows_together(l, spec, f, extent) : 0;
    sw_range pieces[64];
    uint32_t n = 0;

    for (uint32_t rank = 0; rows > 1 && rank < l->plan->tp; rank++) {
        if (sw_shard_pieces(p, extent, l->plan->tp, rank, pieces, SW_COUNT(pieces), &n, NULL) != SW_OK)
            return;
        for (uint32_t i = 0; i < n; i++) {
            char what[192];
            if (pieces[i].begin % rows == 0 && pieces[i].end % rows == 0)
                continue;
            (void)snprintf(what, sizeof what,
                           "rank %u would hold rows %" PRIu64 ":%" PRIu64 ", and heads are %" PRIu64 " rows",
                           rank, pieces[i].begin, pieces[i].end, rows);
            bad_param(l, spec, param, "heads",
                      "cut whole heads: S(d), or S(d;rep=N) when there are fewer than ranks", what);
            return;
        }
    }
}

static void check_shard(linting *l, const sw_spec *spec, const sw_spec_param *param, const sw_facts *f,
                        int axis)
{
    const sw_placement *p = &f->places.on[axis];
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    uint32_t size = size_on(l->plan, axis);
    const char *name = sw_axis_name(axis_of[axis]);
    char shape_[128];
    char what[384];
    uint32_t dim = 0;

    if (!sw_placement_dim(p, shape->n_dims, &dim)) {
        shape_text(shape, shape_, sizeof shape_);
        (void)snprintf(what, sizeof what, "S(%d) over %s, but the tensor [%s] has %u dims", p->dim, name,
                       shape_, shape->n_dims);
        bad_param(l, spec, param, "no_such_dim", "shard a dim that the tensor has, or replicate it", what);
        return;
    }
    if (size <= 1)
        return;
    if (tears_parts(f, p, dim)) {
        shape_text(shape, shape_, sizeof shape_);
        (void)snprintf(what, sizeof what,
                       "a fused tensor [%s] under a plain S(%d) over %s: its parts would be torn", shape_,
                       p->dim, name);
        bad_param(l, spec, param, "fused_contiguous",
                  "write its segments: S(0;seg=...), or state its `layout:`", what);
        return;
    }
    if (p->cut != NULL) {
        sw_error why = {0};
        if (sw_cut_check(p->cut, shape->dims[dim], size, &why) != SW_OK)
            bad_param(l, spec, param, "bad_cut", why.help, why.what);
        else if (axis == SW_ON_TP)
            check_heads(l, spec, param, f, shape->dims[dim]);
        return;
    }
    bool may_be_uneven =
        f->layout == SW_LAYOUT_VOCAB || (f->flags & (SW_ROW_QUANTISED | SW_ROW_IN_GROUPS)) != 0;
    if (shape->dims[dim] % size != 0 && !may_be_uneven) {
        shape_text(shape, shape_, sizeof shape_);
        (void)snprintf(what, sizeof what, "dim %u of [%s] is not divisible by %s=%u", dim, shape_, name,
                       size);
        bad_param(l, spec, param, "indivisible", "use a size that divides it, or replicate the parameter",
                  what);
    } else if (axis == SW_ON_TP) {
        check_heads(l, spec, param, f, shape->dims[dim]);
    }
}

static void check_dims_once(linting *l, const sw_spec *spec, const sw_spec_param *param, const sw_facts *f)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    uint32_t seen = 0; /* a bit per dim */

    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        uint32_t dim = 0;
        if (f->places.on[axis].kind != SW_PLACE_SHARD ||
            !sw_placement_dim(&f->places.on[axis], shape->n_dims, &dim))
            continue;
        if ((seen & (1U << dim)) != 0)
            bad_param(l, spec, param, "dim_cut_twice", "cut different dims, or one axis only",
                      "two axes cut the same dim of a parameter");
        seen |= 1U << dim;
    }
}

/* Legal, but every step gathers it: a norm is not worth cutting. */
static void check_norm(linting *l, const sw_spec *spec, const sw_spec_param *p, const sw_facts *f)
{
    if (f->role != SW_ROLE_NORM || !f->is_placed || f->places.on[SW_ON_TP].kind != SW_PLACE_SHARD)
        return;
    (void)sw_plan_fault(l->plan, SW_SEVERITY_WARNING, "norm_sharded", spec->fqn, spec->fqn_length,
                        "replicate it: it is small",
                        "'%.*s' is a norm cut over tp: its %" PRIu64 " elements are gathered every step",
                        (int)p->path_length, p->path, f->shape->elems);
}

static void check_param(linting *l, const sw_spec *spec, const sw_spec_param *p)
{
    const sw_facts *f = &l->plan->facts[p->facts];

    if (f->shape == NULL)
        return;
    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        if ((f->places.present & (1U << axis)) == 0)
            continue;
        if (f->places.on[axis].kind == SW_PLACE_PARTIAL)
            bad_param(l, spec, p, "partial_parameter", "a stored parameter is replicate or shard",
                      "a parameter cannot be a partial sum");
        else if (f->places.on[axis].kind == SW_PLACE_SHARD)
            check_shard(l, spec, p, f, axis);
    }
    check_dims_once(l, spec, p, f);
    check_norm(l, spec, p, f);
}

/* ---- the whole plan ---- */

/* Tied names must be cut alike: one stored tensor cannot have two layouts. */
static void check_tied(linting *l)
{
    const sw_plan *plan = l->plan;

    for (uint32_t i = 0; i < plan->n_tied; i++) {
        const sw_facts *facts[2] = {NULL, NULL};
        const char *both[2] = {plan->tied[i].first, plan->tied[i].second};
        for (int k = 0; k < 2; k++) {
            const char *dot = strrchr(both[k], '.');
            const sw_spec *s = dot == NULL ? NULL : sw_plan_find_spec(plan, both[k], (size_t)(dot - both[k]));
            for (uint32_t p = 0; s != NULL && p < s->n_params; p++) {
                if (s->params[p].path_length == strlen(dot + 1) &&
                    memcmp(s->params[p].path, dot + 1, s->params[p].path_length) == 0)
                    facts[k] = &plan->facts[s->params[p].facts];
            }
        }
        if (facts[0] != NULL && facts[1] != NULL &&
            !sw_placement_equal(&facts[0]->places.on[SW_ON_TP], &facts[1]->places.on[SW_ON_TP]))
            (void)sw_plan_fault(l->plan, SW_SEVERITY_ERROR, "tied_conflict", both[1], strlen(both[1]),
                                "give both names the same placement",
                                "tied to %s, but cut differently over tp", both[0]);
    }
}

static void check_experts(linting *l)
{
    const sw_plan *plan = l->plan;
    bool is_axis = plan->ep_mode == SW_EP_AXIS;

    if (plan->ep == 1 || !plan->derive || sw_plan_has_experts(plan))
        return;
    (void)sw_plan_fault(l->plan, plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "ep_without_experts",
                        "ep", 2, is_axis ? "give its ranks to dp, cp or tp" : "leave ep out",
                        "ep=%u, and the model has no experts: %s", plan->ep,
                        is_axis ? "ranks of the axis hold the same and do the same work"
                                : "ep changes nothing");
}

sw_status sw_lint(sw_plan *plan, const sw_model *model, sw_error *err)
{
    linting l = {.plan = plan, .model = model, .err = err};
    uint32_t *by_tensor = NULL;

    l.owner = sw_alloc_zero(model->n_params + 1, sizeof *l.owner);
    sw_status status = l.owner == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints")
                                       : index_by_tensor(&l, &by_tensor);
    if (status == SW_OK) {
        claim_all(&l, by_tensor);
        check_coverage(&l);
        for (uint32_t i = 0; i < plan->n_specs; i++) {
            const sw_spec *spec = &plan->specs[i];
            sw_lint_contract(plan, spec);
            sw_lint_region(plan, model, spec);
            sw_lint_experts(plan, model, spec);
            sw_lint_compute(plan, spec);
            for (uint32_t k = 0; k < spec->n_params; k++)
                check_param(&l, spec, &spec->params[k]);
        }
        check_tied(&l);
        check_experts(&l);
        sw_lint_stream(plan);
        status = sw_lint_pairs(plan, err);
        if (status == SW_OK)
            status = sw_lint_config(plan, model, err);
        if (plan->model == model)
            sw_lint_vocabulary(plan);
        if (status == SW_OK && plan->model == model)
            status = sw_lint_missing(plan, err);
        for (uint32_t i = 0; i < plan->n_specs && plan->model == model; i++) {
            sw_lint_bias(plan, &plan->specs[i]);
            sw_lint_heads(plan, &plan->specs[i]);
            sw_lint_widths(plan, &plan->specs[i]);
        }
    }
    sw_free(l.owner);
    sw_free(by_tensor);
    return status;
}
