/*
 * The numbers at the end of an explanation: what a rank holds, what a step moves over each axis, which
 * gradients are summed and why, and the largest tensors that every rank holds whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/explain.h"
#include "plan/lowering.h"

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
}

/* ---- what a rank holds ---- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0;
}

static void put_load(sw_text_table *table, const char *what, const char *most, const char *least,
                     bool is_even)
{
    sw_text_cell(table, "%s", what);
    sw_text_cell(table, "%s", most);
    sw_text_cell(table, "%s", is_even ? "" : least);
}

/* How much of the model is cut over what: "98.6 % over tp, 1.4 % over neither". */
static void put_shares(const sw_explain *e, const sw_cost_totals *t)
{
    const struct {
        double bytes;
        const char *words;
    } shares[] = {
        {t->bytes_on_tp,                                                "over tp"       },
        {t->bytes_on_ep,                                                "over ep"       },
        {t->bytes_on_both,                                              "over tp and ep"},
        {t->bytes - t->bytes_on_tp - t->bytes_on_ep - t->bytes_on_both,
         e->plan->ep > 1 ? "over neither" : "whole"                                     },
    };
    char text[160] = "";
    size_t used = 0;

    for (size_t i = 0; i < SW_COUNT(shares); i++) {
        if (shares[i].bytes <= 0 || used >= sizeof text)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.1f %% %s", used == 0 ? "" : ", ",
                                 percent(shares[i].bytes, t->bytes), shares[i].words);
    }
    if (e->plan->tp > 1 || e->plan->ep > 1)
        sw_text_line(e->out, "parameter bytes are cut: %s", text);
}

static sw_status put_loads(const sw_explain *e, sw_error *err)
{
    sw_text_table table = {.arena = e->arena, .n_columns = 3, .right = 1U << 1 | 1U << 2};
    sw_cost_totals t;
    char a[64];
    char b[64];

    SW_TRY(sw_cost_total(e->plan, &t, err));
    bool even = memcmp(&t.most, &t.least, sizeof t.most) == 0;
    (void)snprintf(a, sizeof a, even ? "each rank" : "most: rank %" PRIu32, t.most_rank);
    (void)snprintf(b, sizeof b, "least: rank %" PRIu32, t.least_rank);
    put_load(&table, "held by a rank", a, b, even);
    put_load(&table, "elements", sw_text_count(a, t.most.elems), sw_text_count(b, t.least.elems), even);
    put_load(&table, "parameters", sw_text_bytes(a, (double)t.most.param_bytes),
             sw_text_bytes(b, (double)t.least.param_bytes), even);
    put_load(&table, "gradients, in their parameters' dtypes", sw_text_bytes(a, (double)t.most.grad_bytes),
             sw_text_bytes(b, (double)t.least.grad_bytes), even);
    put_load(&table, "AdamW: master and two moments, 12 bytes an element",
             sw_text_bytes(a, (double)t.most.optimizer_bytes),
             sw_text_bytes(b, (double)t.least.optimizer_bytes), even);
    sw_text_line(e->out, "%s", "");
    sw_text_table_put(&table, 0, table.n_columns, e->out);
    put_shares(e, &t);
    return table.failed ? no_memory(err) : SW_OK;
}

/* ---- what a step moves ---- */

typedef struct traffic {
    uint64_t n_forward;
    uint64_t n_backward;
    double bytes; /* both directions */
    bool is_unknown;
} traffic;

/* Rows of the table; the last two are no collectives of a contract. */
enum { WAY_KEYS = SW_COLL_COUNT_, WAY_EXPERTS, WAY_STAGES, WAYS };

typedef struct volume {
    traffic of[SW_AXIS_COUNT_][WAYS];
} volume;

static void count(const sw_plan *plan, volume *v, const sw_lowered *row, uint64_t width)
{
    traffic *forward = &v->of[row->axis][row->collective];
    traffic *backward = &v->of[row->axis][row->backward];

    forward->n_forward++;
    forward->bytes += sw_cost_traffic(plan, row->collective, row->axis, width);
    forward->is_unknown = forward->is_unknown || width == 0;
    backward->n_backward++;
    backward->bytes += sw_cost_traffic(plan, row->backward, row->axis, width);
    backward->is_unknown = backward->is_unknown || width == 0;
}

static void count_way(volume *v, sw_axis axis, int way, uint64_t times, double bytes)
{
    v->of[axis][way].n_forward += times;
    v->of[axis][way].n_backward += times;
    v->of[axis][way].bytes += 2 * (double)times * bytes;
    v->of[axis][way].is_unknown = v->of[axis][way].is_unknown || bytes <= 0;
}

static void count_inside(const sw_explain *e, volume *v, const sw_spec *spec, uint64_t width)
{
    const sw_plan *plan = e->plan;

    for (uint32_t i = 0; i < spec->n_inner; i++) {
        const sw_inner *inner = &spec->inner[i];
        bool is_statistic = strncmp(inner->op, "mean", 4) == 0; /* one number of 4 bytes, both ways */
        bool is_backward = strcmp(inner->op, "sum_routed_input_grad") == 0;
        uint64_t of = is_statistic ? 2 : width;
        traffic *t = &v->of[inner->axis][SW_COLL_ALL_REDUCE];
        t->n_forward += !is_backward;
        t->n_backward += is_backward || is_statistic;
        t->bytes += sw_cost_traffic(plan, SW_COLL_ALL_REDUCE, inner->axis, is_statistic ? 2 * of : of);
        t->is_unknown = t->is_unknown || of == 0;
    }
    if (spec->needs_cp_attn && plan->cp > 1 && !spec->is_tower)
        count_way(v, SW_AXIS_CP, WAY_KEYS, 1,
                  (double)(plan->cp - 1) * (double)sw_cost_kv_width(plan, spec) * SW_COST_ACTIVATION_BYTES);
    if (spec->ep_size > 1) { /* a token goes out and comes back; a tp rank sends its slice of the tokens */
        double bytes =
            (double)width * SW_COST_ACTIVATION_BYTES * (spec->ep_size - 1) / spec->ep_size / plan->tp;
        count_way(v, SW_AXIS_EP, WAY_EXPERTS, 2, bytes);
    }
}

static void count_stages(const sw_explain *e, volume *v)
{
    uint32_t n = sw_mesh_axis_size(e->plan->mesh, SW_AXIS_PP);
    double bytes = (double)e->hidden * SW_COST_ACTIVATION_BYTES;

    if (n > 1)
        count_way(v, SW_AXIS_PP, WAY_STAGES, n - 1, e->plan->sequence_parallel ? bytes / e->plan->tp : bytes);
}

static volume count_all(const sw_explain *e)
{
    volume v;

    memset(&v, 0, sizeof v);
    for (uint32_t i = 0; i < e->plan->n_specs; i++) {
        const sw_spec *spec = &e->plan->specs[i];
        sw_cost_widths widths = sw_cost_widths_of(e->plan, spec, e->hidden);
        for (uint32_t k = 0; k < spec->n_lower_in; k++)
            count(e->plan, &v, &spec->lower_in[k], widths.in);
        for (uint32_t k = 0; k < spec->n_lower_out; k++)
            count(e->plan, &v, &spec->lower_out[k], widths.out);
        count_inside(e, &v, spec, widths.out);
    }
    count_stages(e, &v);
    return v;
}

static const char *way_name(int way)
{
    static const char *const names[] = {[WAY_KEYS - SW_COLL_COUNT_] = "keys and values of the other ranks",
                                        [WAY_EXPERTS - SW_COLL_COUNT_] =
                                            "all_to_all for each expert of a token",
                                        [WAY_STAGES - SW_COLL_COUNT_] = "send and receive"};
    return way < SW_COLL_COUNT_ ? sw_collective_name((sw_collective)way) : names[way - SW_COLL_COUNT_];
}

/* What was counted over one axis, a row for each way. */
static void put_axis(sw_text_table *table, const volume *v, sw_axis axis)
{
    char number[SW_TEXT_NUMBER];

    for (int way = SW_COLL_NONE + 1; way < WAYS; way++) {
        const traffic *t = &v->of[axis][way];
        if (t->n_forward + t->n_backward == 0)
            continue;
        sw_text_cell(table, "%s", sw_axis_name(axis));
        sw_text_cell(table, "%s", way_name(way));
        sw_text_cell(table, "%" PRIu64, t->n_forward);
        sw_text_cell(table, "%" PRIu64, t->n_backward);
        sw_text_cell(table, "%s", t->is_unknown ? "not known" : sw_text_amount(number, t->bytes));
    }
}

static sw_status put_volume(const sw_explain *e, sw_error *err)
{
    static const sw_axis shown[] = {SW_AXIS_TP, SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_PP};
    static const char *const titles[] = {"axis", "moved by", "forward", "backward", "bytes a token"};
    sw_text_table table = {
        .arena = e->arena, .n_columns = SW_COUNT(titles), .right = 1U << 2 | 1U << 3 | 1U << 4};
    volume v = count_all(e);

    sw_text_row(&table, titles);
    for (size_t a = 0; a < SW_COUNT(shown); a++)
        put_axis(&table, &v, shown[a]);
    if (table.n_cells == SW_COUNT(titles) || table.failed)
        return table.failed ? no_memory(err) : SW_OK;
    sw_text_line(e->out, "%s", "");
    sw_text_line(e->out, "activations of one step%s: how often, and the bytes that a rank receives for",
                 e->plan->n_stages > 1 ? " (all stages together)" : "");
    sw_text_line(e->out,
                 "each token of its dp and cp part, both directions together (2 bytes an element, rings)");
    sw_text_table_put(&table, 2, table.n_columns, e->out);
    return SW_OK;
}

/* ---- gradients ---- */

// clang-format off
static const struct { const char *reason, *words; } reasons[] = {
    { "data",        "the ranks see other samples" },
    { "context",     "the ranks see other tokens of a sequence" },
    { "sequence",    "whole over the axis; the ranks see other tokens" },
    { "partial",     "whole over the axis; each rank makes a part of a sum" },
    { "kv_replica",  "the ranks hold the same key/value heads for other queries" },
    { "expert_data", "the ranks hold the same experts and see other tokens" },
    { "tied",        "one tensor is used in two stages" },
};
// clang-format on

enum { REASONS = SW_COUNT(reasons) + 1 }; /* the last one: of a file, and unknown here */

typedef struct grad_volume {
    uint64_t n;
    double bytes;
    uint32_t group;
    bool has_groups; /* of different sizes */
} grad_volume;

static size_t reason_index(const char *reason)
{
    size_t i = 0;

    while (i < SW_COUNT(reasons) && strcmp(reasons[i].reason, reason) != 0)
        i++;
    return i;
}

static void count_gradients(const sw_explain *e, grad_volume of[SW_AXIS_COUNT_][REASONS])
{
    sw_cost_coord first = {{0}};

    for (uint32_t i = 0; i < e->plan->n_specs; i++) {
        const sw_spec *spec = &e->plan->specs[i];
        for (uint32_t k = 0; e->is_shown[i] && k < spec->n_params; k++) {
            const sw_facts *f = &e->plan->facts[spec->params[k].facts];
            if (e->shown[i] != NULL && !e->shown[i][k])
                continue;
            for (uint32_t g = 0; g < f->grad.n; g++) {
                grad_volume *v = &of[f->grad.sums[g].axis][reason_index(f->grad.sums[g].reason)];
                v->has_groups = v->has_groups || (v->n > 0 && v->group != f->grad.sums[g].group);
                v->n++;
                v->bytes += (double)sw_cost_bytes(f->dtype, sw_cost_local_elems(e->plan, f, &first));
                v->group = f->grad.sums[g].group;
            }
        }
    }
}

static void put_gradient(sw_text_table *table, sw_axis axis, size_t reason, const grad_volume *v)
{
    char number[SW_TEXT_NUMBER];

    if (v->has_groups)
        sw_text_cell(table, "%s by groups", sw_axis_name(axis));
    else if (v->group > 0)
        sw_text_cell(table, "%s by %" PRIu32, sw_axis_name(axis), v->group);
    else
        sw_text_cell(table, "%s", sw_axis_name(axis));
    sw_text_cell(table, "%s", sw_text_count(number, v->n));
    sw_text_cell(table, "%s", sw_text_bytes(number, v->bytes));
    if (reason < SW_COUNT(reasons))
        sw_text_cell(table, "%s: %s", reasons[reason].reason, reasons[reason].words);
    else
        sw_text_cell(table, "another reason");
}

void sw_explain_gradients(const sw_explain *e)
{
    static const char *const titles[] = {"summed over", "tensors", "bytes a rank", "reason"};
    sw_text_table table = {.arena = e->arena, .n_columns = SW_COUNT(titles), .right = 1U << 1 | 1U << 2};
    grad_volume of[SW_AXIS_COUNT_][REASONS];

    memset(of, 0, sizeof of);
    count_gradients(e, of);
    sw_text_row(&table, titles);
    for (int axis = 0; axis < SW_AXIS_COUNT_; axis++) {
        for (size_t r = 0; r < REASONS; r++) {
            const grad_volume *v = &of[axis][r];
            if (v->n == 0)
                continue;
            put_gradient(&table, (sw_axis)axis, r, v);
        }
    }
    if (table.n_cells == SW_COUNT(titles) && !table.failed)
        return;
    sw_text_line(e->out, "%s", "");
    sw_text_line(e->out, "gradients of one step%s",
                 e->plan->n_stages > 1 && e->options.pattern == NULL ? " (all stages together)" : "");
    sw_text_table_put(&table, 2, table.n_columns, e->out);
}

/* ---- the largest whole tensors ---- */

enum { LARGEST = 5 };

typedef struct whole_tensor {
    uint32_t group;
    uint32_t param;
    double bytes; /* of all alike */
} whole_tensor;

static void insert(whole_tensor largest[LARGEST], uint32_t *n, whole_tensor tensor)
{
    uint32_t at = *n;

    while (at > 0 && largest[at - 1].bytes < tensor.bytes)
        at--;
    if (at == LARGEST)
        return;
    *n = *n < LARGEST ? *n + 1 : LARGEST;
    memmove(&largest[at + 1], &largest[at], (*n - at - 1) * sizeof *largest);
    largest[at] = tensor;
}

static sw_status put_whole_tensor(const sw_explain *e, sw_text_table *table, const whole_tensor *w,
                                  sw_error *err)
{
    const sw_explain_group *group = &e->groups[w->group];
    const sw_spec *spec = &e->plan->specs[group->first];
    const sw_spec_param *p = &spec->params[w->param];
    const sw_facts *f = &e->plan->facts[p->facts];
    const char *name = sw_explain_group_name(e, group);
    const char *shape = sw_explain_shape(e, f->shape->dims, f->shape->n_dims);
    char number[SW_TEXT_NUMBER];

    if (name == NULL || shape == NULL)
        return no_memory(err);
    sw_text_cell(table, "%s%s%.*s", spec->fqn_length == 0 ? "" : name, spec->fqn_length == 0 ? "" : ".",
                 (int)p->path_length, p->path);
    sw_text_cell(table, "%s", sw_role_name(f->role));
    sw_text_cell(table, "%s", shape);
    sw_text_cell(table, "%s", sw_text_bytes(number, w->bytes));
    return SW_OK;
}

static sw_status put_largest(const sw_explain *e, sw_error *err)
{
    static const char *const titles[] = {"whole on every rank of tp and ep", "role", "shape", "bytes"};
    sw_text_table table = {.arena = e->arena, .n_columns = SW_COUNT(titles), .right = 1U << 3};
    whole_tensor largest[LARGEST + 1];
    uint32_t n = 0;

    for (uint32_t g = 0; g < e->n_groups; g++) {
        const sw_spec *spec = &e->plan->specs[e->groups[g].first];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            const sw_facts *f = &e->plan->facts[spec->params[k].facts];
            bool is_whole = f->places.on[SW_ON_TP].kind == SW_PLACE_REPLICATE &&
                            f->places.on[SW_ON_EP].kind == SW_PLACE_REPLICATE && f->shape != NULL;
            if (is_whole)
                insert(
                    largest, &n,
                    (whole_tensor){g, k, (double)sw_cost_bytes(f->dtype, f->shape->elems) * e->groups[g].n});
        }
    }
    if (n == 0 || (e->plan->tp == 1 && e->plan->ep == 1))
        return SW_OK;
    sw_text_row(&table, titles);
    for (uint32_t i = 0; i < n; i++)
        SW_TRY(put_whole_tensor(e, &table, &largest[i], err));
    sw_text_line(e->out, "%s", "");
    sw_text_table_put(&table, 0, table.n_columns, e->out);
    return SW_OK;
}

sw_status sw_explain_totals(const sw_explain *e, sw_error *err)
{
    SW_TRY(put_loads(e, err));
    SW_TRY(put_volume(e, err));
    sw_explain_gradients(e);
    return put_largest(e, err);
}
