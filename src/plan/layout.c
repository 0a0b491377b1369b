/*
 * Cuts of fused, head-structured and plain tensors. A layout is turned into a list of segments with a granule
 * (the rows that must stay together); each segment is cut over the ranks on its own, or each of its pieces is
 * held by several neighbouring ranks when there are fewer granules than ranks (key/value heads).
 */
#include "plan/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"

static const char *const layout_names[] = {
    [SW_LAYOUT_PLAIN] = "plain",           [SW_LAYOUT_HEADS] = "heads",
    [SW_LAYOUT_KV_HEADS] = "kv_heads",     [SW_LAYOUT_QKV_STACKED] = "stacked",
    [SW_LAYOUT_QKV_PER_HEAD] = "per_head", [SW_LAYOUT_QKV_GROUPED] = "grouped",
    [SW_LAYOUT_QKV_BLOCKS] = "blocks",     [SW_LAYOUT_KV_STACKED] = "kv_stacked",
    [SW_LAYOUT_STACKED] = "stacked_parts", [SW_LAYOUT_INTERLEAVED] = "interleaved",
    [SW_LAYOUT_VOCAB] = "vocab",           [SW_LAYOUT_UNKNOWN] = "unknown",
    [SW_LAYOUT_EXPLICIT] = "segments",
};

_Static_assert(SW_COUNT(layout_names) == SW_LAYOUT_COUNT_, "a name for every layout");

const char *sw_layout_name(sw_layout layout)
{
    return (unsigned)layout < SW_LAYOUT_COUNT_ ? layout_names[layout] : NULL;
}

sw_axes_of sw_form_axes(sw_form form, uint32_t n_dims)
{
    sw_axes_of axes = {.expert_dim = -1, .out_dim = 0, .in_dim = -1, .out_factor = 1, .in_factor = 1};

    switch (form) {
    case SW_FORM_LINEAR:
        axes.in_dim = n_dims >= 2 ? 1 : -1;
        break;
    case SW_FORM_CONV1D:
        axes.out_dim = n_dims >= 2 ? 1 : 0;
        axes.in_dim = n_dims >= 2 ? 0 : -1;
        break;
    case SW_FORM_EXPERT_ROWS:
    case SW_FORM_EXPERTS:
        axes.expert_dim = 0;
        axes.out_dim = 1;
        axes.in_dim = n_dims >= 3 || form == SW_FORM_EXPERT_ROWS ? 2 : -1;
        break;
    case SW_FORM_EXPERT_ROWS_T:
    case SW_FORM_EXPERTS_T:
        axes.expert_dim = 0;
        axes.out_dim = n_dims >= 3 || form == SW_FORM_EXPERT_ROWS_T ? 2 : 1;
        axes.in_dim = n_dims >= 3 || form == SW_FORM_EXPERT_ROWS_T ? 1 : -1;
        break;
    }
    axes.is_view = form == SW_FORM_EXPERT_ROWS || form == SW_FORM_EXPERT_ROWS_T;
    return axes;
}

static void fault(sw_cut_result *result, const char *code)
{
    result->fault = code;
    result->n_segments = 0;
}

/* A run of `count` granules of `granule` rows: cut, or replicated when fewer than ranks. */
typedef struct run {
    uint64_t count;
    uint64_t granule;
    bool may_replicate;
} run;

/* Append a run as a segment for `ranks` ranks; false when neither cutting nor replicating fits. */
static bool add_run(sw_cut_result *result, run r, uint32_t ranks)
{
    uint32_t replicas = 1;

    if (r.count % ranks != 0) {
        if (!r.may_replicate || r.count == 0 || ranks % r.count != 0)
            return false;
        replicas = (uint32_t)(ranks / r.count);
    }
    if (replicas > result->replicas)
        result->replicas = replicas;
    result->segments[result->n_segments++] =
        (sw_segment){.extent = r.count * r.granule, .replicas = replicas};
    return true;
}

/* One segment that every rank gets an equal, unshared piece of is a plain shard. */
static void simplify(sw_cut_result *result)
{
    if (result->n_groups == 1 && result->n_segments == 1 && result->segments[0].replicas <= 1 &&
        result->segments[0].unit <= 1)
        result->n_segments = 0;
}

/* Numbers of the fault; the boundary's finding (head_check.c) names every constraint of its heads at once. */
static void head_fault(const sw_cut_request *q, sw_cut_result *result)
{
    fault(result, "heads");
    (void)snprintf(result->what, sizeof result->what,
                   "tp=%u does not fit %" PRIu64 " query and %" PRIu64 " key/value heads", q->ranks, q->heads,
                   q->kv_heads);
}

// clang-format off
static const struct { bool queries, keys; } heads_of[SW_LAYOUT_COUNT_] = {
    [SW_LAYOUT_HEADS]        = { true,  false },
    [SW_LAYOUT_KV_HEADS]     = { false, true  },
    [SW_LAYOUT_QKV_STACKED]  = { true,  true  },
    [SW_LAYOUT_QKV_PER_HEAD] = { true,  true  },
    [SW_LAYOUT_QKV_GROUPED]  = { true,  true  },
    [SW_LAYOUT_QKV_BLOCKS]   = { true,  true  },
    [SW_LAYOUT_KV_STACKED]   = { false, true  },
};
// clang-format on

bool sw_layout_has_queries(sw_layout layout)
{
    return heads_of[layout].queries;
}

bool sw_layout_has_keys(sw_layout layout)
{
    return heads_of[layout].keys;
}

bool sw_layout_has_heads(sw_layout layout)
{
    return heads_of[layout].queries || heads_of[layout].keys;
}

/* Rows of one head when `extent` holds `n` of them; 0 and a fault when it does not come out even. */
static uint64_t head_rows(const sw_cut_request *q, uint64_t n, const char *formula, sw_cut_result *result)
{
    if (n != 0 && q->extent % n == 0)
        return q->extent / n;
    fault(result, "layout_mismatch");
    (void)snprintf(result->what, sizeof result->what,
                   "%" PRIu64 " rows are not a multiple of %s = %" PRIu64 " (%" PRIu64 " query and %" PRIu64
                   " key/value heads)",
                   q->extent, formula, n, q->heads, q->kv_heads);
    (void)snprintf(
        result->help, sizeof result->help,
        "check the head counts in config.json, or state the storage with `layout:` in an override");
    return 0;
}

static void solve_grouped(const sw_cut_request *q, sw_cut_result *result, uint64_t groups, uint64_t heads,
                          uint64_t kv)
{
    /* `heads` query heads and `kv` key and value heads stand in each of `groups` equal groups. */
    uint64_t rows = head_rows(q, groups * (heads + 2 * kv), "rows of all groups", result);
    uint32_t ranks = q->ranks;

    if (rows == 0 || groups % ranks == 0)
        return; /* whole groups: contiguous */
    if (ranks % groups != 0) {
        head_fault(q, result);
        return;
    }
    result->n_groups = (uint32_t)groups;
    ranks = (uint32_t)(ranks / groups);
    if (!add_run(result, (run){heads, rows, false}, ranks) ||
        !add_run(result, (run){kv, rows, true}, ranks) || !add_run(result, (run){kv, rows, true}, ranks))
        head_fault(q, result);
}

static void solve_heads(const sw_cut_request *q, sw_cut_result *result)
{
    uint64_t rows;
    bool ok = true;

    switch (q->layout) {
    case SW_LAYOUT_HEADS:
    case SW_LAYOUT_QKV_PER_HEAD:
        rows = head_rows(q, q->heads, "the query heads", result);
        ok = rows == 0 || add_run(result, (run){q->heads, rows, false}, q->ranks);
        break;
    case SW_LAYOUT_KV_HEADS:
        rows = head_rows(q, q->kv_heads, "the key/value heads", result);
        ok = rows == 0 || add_run(result, (run){q->kv_heads, rows, true}, q->ranks);
        break;
    case SW_LAYOUT_QKV_STACKED:
        rows = head_rows(q, q->heads + 2 * q->kv_heads, "query + 2 x key/value heads", result);
        ok = rows == 0 || (add_run(result, (run){q->heads, rows, false}, q->ranks) &&
                           add_run(result, (run){q->kv_heads, rows, true}, q->ranks) &&
                           add_run(result, (run){q->kv_heads, rows, true}, q->ranks));
        break;
    case SW_LAYOUT_KV_STACKED:
        rows = head_rows(q, 2 * q->kv_heads, "2 x key/value heads", result);
        ok = rows == 0 || (add_run(result, (run){q->kv_heads, rows, true}, q->ranks) &&
                           add_run(result, (run){q->kv_heads, rows, true}, q->ranks));
        break;
    case SW_LAYOUT_QKV_GROUPED:
        if (q->heads % q->kv_heads == 0)
            solve_grouped(q, result, q->kv_heads, q->heads / q->kv_heads, 1);
        else
            ok = false;
        break;
    default: /* QKV_BLOCKS */
        if (q->parts != 0 && q->heads % q->parts == 0 && q->kv_heads % q->parts == 0)
            solve_grouped(q, result, q->parts, q->heads / q->parts, q->kv_heads / q->parts);
        else
            ok = false;
        break;
    }
    if (!ok)
        head_fault(q, result);
}

static void indivisible(const sw_cut_request *q, sw_cut_result *result)
{
    const char *what = q->is_input ? "columns" : "rows";

    fault(result, "indivisible");
    if (q->unit > 1) {
        (void)snprintf(result->what, sizeof result->what,
                       "%" PRIu64 " %s in groups of %" PRIu64 " cannot be cut over tp=%u", q->extent, what,
                       q->unit, q->ranks);
    } else if (q->parts > 1) {
        (void)snprintf(result->what, sizeof result->what,
                       "%u parts of %" PRIu64 " %s each are not divisible by tp=%u", q->parts,
                       q->extent / q->parts, what, q->ranks);
    } else {
        (void)snprintf(result->what, sizeof result->what, "%" PRIu64 " %s are not divisible by tp=%u",
                       q->extent, what, q->ranks);
    }
}

static void solve_plain(const sw_cut_request *q, sw_cut_result *result)
{
    uint64_t unit = q->unit == 0 ? 1 : q->unit;
    uint64_t step = 0;

    if (q->layout == SW_LAYOUT_INTERLEAVED)
        unit *= q->parts;
    if (!sw_mul_u64(unit, q->ranks, &step))
        step = 0;
    if (step != 0 && q->extent % step == 0)
        return;
    result->is_uneven = true;
    if (!q->may_be_uneven || q->extent % unit != 0) {
        indivisible(q, result);
        return;
    }
    if (unit > 1) {
        result->n_segments = 1;
        result->segments[0] = (sw_segment){.extent = q->extent, .unit = unit, .replicas = 1};
    }
}

static void solve_stacked(const sw_cut_request *q, sw_cut_result *result)
{
    uint64_t unit = q->unit == 0 ? 1 : q->unit;

    if (q->parts == 0 || q->parts > SW_CUT_MAX_SEGMENTS || q->extent % q->parts != 0) {
        fault(result, "layout_mismatch");
        (void)snprintf(result->what, sizeof result->what, "%" PRIu64 " rows are not %u equal parts",
                       q->extent, q->parts);
        return;
    }
    uint64_t part = q->extent / q->parts;
    if (part % q->ranks != 0 || (part / q->ranks) % unit != 0) {
        indivisible(q, result);
        return;
    }
    for (uint32_t i = 0; i < q->parts; i++)
        result->segments[result->n_segments++] = (sw_segment){.extent = part, .replicas = 1};
}

/* The segments must be the tensor before anything is asked of them one by one. */
static bool segments_sum_up(const sw_cut_request *q, sw_cut_result *result)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < q->n_explicit; i++) {
        if (!sw_add_u64(sum, q->explicit_segments[i].extent, &sum))
            sum = UINT64_MAX;
    }
    if (sum == q->extent && q->n_explicit <= SW_CUT_MAX_SEGMENTS)
        return true;
    fault(result, "layout_mismatch");
    (void)snprintf(result->what, sizeof result->what,
                   "the %u segments hold %" PRIu64 " rows, the tensor has %" PRIu64, q->n_explicit, sum,
                   q->extent);
    (void)snprintf(result->help, sizeof result->help,
                   "give at most %d segments that add up to the tensor's rows", SW_CUT_MAX_SEGMENTS);
    return false;
}

static void solve_explicit(const sw_cut_request *q, sw_cut_result *result)
{
    if (!segments_sum_up(q, result))
        return;

    for (uint32_t i = 0; i < q->n_explicit; i++) {
        sw_segment s = q->explicit_segments[i];
        uint64_t unit = s.unit == 0 ? 1 : s.unit;
        uint32_t replicas = s.replicas == 0 ? 1 : s.replicas;
        if (q->ranks % replicas != 0 || s.extent % unit != 0 ||
            (!q->may_be_uneven && s.extent % (q->ranks / replicas) != 0)) {
            fault(result, "indivisible");
            (void)snprintf(result->what, sizeof result->what,
                           "segment %u of %" PRIu64 " rows (unit %" PRIu64
                           ", replicas %u) cannot be cut over "
                           "tp=%u",
                           i, s.extent, unit, replicas, q->ranks);
            return;
        }
        result->segments[result->n_segments++] = s;
        if (replicas > result->replicas)
            result->replicas = replicas;
    }
}

/* Words of `layout:` that a fused weight of this role may have. */
static const char *words_of(sw_role role)
{
    switch (role) {
    case SW_ROLE_FUSED_QKV:
        return "`layout: stacked`, `per_head`, `grouped`";
    case SW_ROLE_COLWISE: /* kv_proj, qk_proj */
        return "`layout: kv_stacked`, `stacked`";
    default:
        return "`layout: stacked`, `interleaved`";
    }
}

static void solve(const sw_cut_request *q, sw_cut_result *result)
{
    *result = (sw_cut_result){.n_groups = 1, .replicas = 1};
    if (sw_layout_has_heads(q->layout)) {
        if (q->heads == 0 || q->kv_heads == 0) {
            fault(result, "heads_unknown");
            (void)snprintf(result->what, sizeof result->what,
                           "no head counts: %" PRIu64 " rows cannot be cut in whole heads", q->extent);
            (void)snprintf(result->help, sizeof result->help,
                           "add config.json with num_attention_heads and num_key_value_heads");
            return;
        }
        solve_heads(q, result);
    } else if (q->layout == SW_LAYOUT_STACKED) {
        solve_stacked(q, result);
    } else if (q->layout == SW_LAYOUT_EXPLICIT) {
        solve_explicit(q, result);
    } else if (q->layout == SW_LAYOUT_UNKNOWN) {
        fault(result, "layout_unknown");
        (void)snprintf(result->what, sizeof result->what,
                       "a fused tensor of %" PRIu64 " rows, and nothing says how its parts are stored",
                       q->extent);
        (void)snprintf(result->help, sizeof result->help, "state it in an override: %s or segments",
                       words_of(q->role));
        return;
    } else {
        solve_plain(q, result);
    }
    if (result->fault == NULL)
        simplify(result);
}

void sw_cut_legal_ranks(const sw_cut_request *request, sw_sizes *sizes)
{
    sw_cut_request q = *request;
    sw_cut_result r;

    for (q.ranks = 1; q.ranks <= SW_SIZES_HIGHEST && sizes->n < SW_SIZES_MOST; q.ranks++) {
        solve(&q, &r);
        if (r.fault == NULL)
            (void)sw_sizes_add(sizes, q.ranks, r.replicas > 1 ? " (key/value heads replicated)" : "");
    }
}

void sw_cut_solve(const sw_cut_request *request, sw_cut_result *result)
{
    solve(request, result);
    if (result->fault != NULL && result->help[0] == '\0') {
        sw_sizes sizes = {0};
        sw_cut_legal_ranks(request, &sizes);
        (void)snprintf(result->help, sizeof result->help, "tp sizes that fit: %s", sw_sizes_text(&sizes));
    }
}

static bool scale(uint64_t *rows, uint64_t factor)
{
    if (*rows % factor != 0)
        return false;
    *rows /= factor;
    return true;
}

bool sw_cut_scale(const sw_cut_result *logical, uint64_t extent, uint32_t ranks, uint64_t factor,
                  sw_cut_result *stored)
{
    *stored = *logical;
    if (factor <= 1)
        return true;
    if (logical->n_segments == 0) {
        /* Equal pieces must end on a factor; the last piece of an uneven cut may be short. */
        uint64_t chunk = extent / ranks + (extent % ranks != 0);
        return chunk % factor == 0;
    }
    uint32_t block = ranks / logical->n_groups;
    for (uint32_t i = 0; i < stored->n_segments; i++) {
        sw_segment *s = &stored->segments[i];
        uint32_t replicas = s->replicas == 0 ? 1 : s->replicas;
        uint64_t piece = s->extent / (block / replicas);
        if (s->unit > 1) {
            if (!scale(&s->unit, factor))
                return false;
        } else if (piece % factor != 0) {
            return false;
        }
        if (!scale(&s->extent, factor))
            return false;
    }
    return true;
}
