/*
 * Every model of the corpus ($SW_SHARED/corpus) on every mesh of a sweep: tp 1, 2, 4, 8, with and without
 * sequence parallel, cp 2, experts over ep in both modes. Which of them are legal is decided here, from head
 * and expert counts written down below; what every plan must satisfy is said here again and not taken from
 * the planner: each parameter is held once, its pieces add up, its gradient sums follow decision A2,
 * contracts of the residual stream agree.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/map.h"
#include "base/status.h"
#include "corpus.h"
#include "mesh/shard.h"
#include "plan/plan_data.h"

/* Public facts about a model. kv 0: the class does not count them apart (latent attention, GPT-J, OPT);
 * experts 0: dense. */
typedef struct known {
    const char *name;
    uint32_t heads, kv, experts;
    bool has_mixers;
    bool is_tied;
} known;

/* clang-format off */
static const known models[] = {
    {"baichuan2-7b",             32, 32,   0, false, false},
    {"bloom-560m",               16, 16,   0, false, true},
    {"chatglm3-6b",              32,  2,   0, false, false},
    {"command-r-plus-104b",      96,  8,   0, false, true},
    {"dbrx",                     48,  8,  16, false, false},
    {"deepseek-v2-lite",         16,  0,  64, false, false},
    {"deepseek-v3",             128,  0, 256, false, false},
    {"falcon-40b",              128,  8,   0, false, true},
    {"falcon-7b",                71,  1,   0, false, true},
    {"gemma-2-2b",                8,  4,   0, false, true},
    {"gemma-2-9b",               16,  8,   0, false, true},
    {"gemma-2b",                  8,  1,   0, false, true},
    {"gemma-3-1b",                4,  1,   0, false, true},
    {"glm-4-9b-hf",              32,  2,   0, false, false},
    {"glm-4.5-air",              96,  8, 128, false, false},
    {"gpt-j-6b",                 16,  0,   0, false, false},
    {"gpt-neox-20b",             64, 64,   0, false, false},
    {"gpt-oss-20b",              64,  8,  32, false, false},
    {"gpt2",                     12, 12,   0, false, true},
    {"granite-3.1-1b-a400m",     16,  8,  32, false, true},
    {"internlm2.5-7b",           32,  8,   0, false, false},
    {"jamba-v0.1",               32,  8,  16, true,  false},
    {"kimi-k2",                  64,  0, 384, false, false},
    {"kimi-linear-48b-a3b",      32,  0, 256, true,  false},
    {"llama-2-13b",              40, 40,   0, false, false},
    {"llama-2-7b",               32, 32,   0, false, false},
    {"llama-3.1-70b",            64,  8,   0, false, false},
    {"llama-3.1-8b",             32,  8,   0, false, false},
    {"llama-3.2-1b",             32,  8,   0, false, true},
    {"llama-3.2-3b",             24,  8,   0, false, true},
    {"llama-4-scout-17b-16e",    40,  8,  16, false, false},
    {"llava-1.5-7b",             32, 32,   0, false, false},
    {"mamba-130m",                0,  0,   0, true,  true},
    {"minicpm-2b",               36, 36,   0, false, true},
    {"minimax-text-01",          64,  8,  32, true,  false},
    {"mistral-7b-v0.1",          32,  8,   0, false, false},
    {"mistral-7b-v0.3",          32,  8,   0, false, false},
    {"mixtral-8x7b-v0.1",        32,  8,   8, false, false},
    {"mpt-7b",                   32, 32,   0, false, true},
    {"olmo-1b",                  16, 16,   0, false, true},
    {"olmo2-32b",                40,  8,   0, false, false},
    {"olmo2-7b",                 32, 32,   0, false, false},
    {"olmoe-1b-7b",              16, 16,  64, false, false},
    {"opt-6.7b",                 32,  0,   0, false, true},
    {"phi-1",                    32, 32,   0, false, false},
    {"phi-2",                    32, 32,   0, false, false},
    {"phi-3.5-mini",             32, 32,   0, false, false},
    {"phi-4-mini",               24,  8,   0, false, true},
    {"pythia-410m",              16, 16,   0, false, false},
    {"qwen-1.8b",                16, 16,   0, false, false},
    {"qwen1.5-1.8b",             16, 16,   0, false, true},
    {"qwen1.5-moe-a2.7b",        16, 16,  60, false, false},
    {"qwen2-0.5b",               14,  2,   0, false, true},
    {"qwen2-7b",                 28,  4,   0, false, false},
    {"qwen2.5-3b",               16,  2,   0, false, true},
    {"qwen2.5-7b",               28,  4,   0, false, false},
    {"qwen3-0.6b",               16,  8,   0, false, true},
    {"qwen3-30b-a3b",            32,  4, 128, false, false},
    {"qwen3-8b",                 32,  8,   0, false, false},
    {"qwen3-next-80b-a3b",       16,  2, 512, true,  false},
    {"santacoder-1.1b",          16,  1,   0, false, true},
    {"smollm-1.7b",              32, 32,   0, false, true},
    {"smollm-135m",               9,  3,   0, false, true},
    {"smollm3-3b",               16,  4,   0, false, true},
    {"stablelm-3b-4e1t",         32, 32,   0, false, false},
    {"starcoder2-7b",            36,  4,   0, false, true},
    {"tinyllama-1.1b-chat-v1.0", 32,  4,   0, false, false},
};
/* clang-format on */

/* One point of the sweep. */
typedef struct point {
    uint32_t dp, cp, tp, ep;
    sw_ep_mode mode;
    bool no_sp;
    bool loss_parallel;
} point;

/* What the checks of one plan need. */
typedef struct subject {
    const known *known;
    const sw_model *model;
    const sw_plan *plan;
    point at;
    sw_map names;    /* of the model → number */
    uint8_t *n_held; /* by number: boundaries that hold it */
    char label[128];
    size_t n_told; /* faults */
} subject;

/* ---- what is legal ---- */

static bool heads_fit(const known *k, uint32_t tp)
{
    if (k->heads == 0)
        return true;
    return k->heads % tp == 0 && (k->kv == 0 || k->kv % tp == 0 || tp % k->kv == 0);
}

/* The code of the fault that a plan must fail with, or NULL. */
static const char *must_refuse(const known *k, const point *at)
{
    if (!heads_fit(k, at->tp))
        return "heads";
    return k->has_mixers && at->cp > 1 ? "mixer_cp" : NULL;
}

/* ---- checks of a plan ---- */

enum { MAX_TOLD = 40 };

/* A fault of the plan at hand; the test fails at its end. */
static void __attribute__((format(printf, 2, 3))) tell(subject *s, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (s->n_told++ < MAX_TOLD)
        print_error("%s: %s\n", s->label, text);
}

static bool is_sp(subject *s)
{
    return !s->at.no_sp && s->at.tp > 1;
}

static const sw_placement *tp_of(const sw_places *places)
{
    return &places->on[SW_ON_TP];
}

static bool is_shard(const sw_placement *p, int32_t dim)
{
    return p->kind == SW_PLACE_SHARD && p->dim == dim;
}

static void hold(subject *s, const char *name)
{
    const uint32_t *at = sw_map_find(&s->names, name, strlen(name));

    if (at == NULL)
        tell(s, "%s is a source of a stack, but no parameter", name);
    else
        s->n_held[*at]++;
}

/* Each parameter of the model is in one boundary, alone or as a source of a stack. */
static void check_coverage(subject *s)
{
    const sw_plan *plan = s->plan;

    memset(s->n_held, 0, s->model->n_params);
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        for (uint32_t j = 0; j < spec->n_params; j++) {
            if (spec->params[j].param != UINT32_MAX && !spec->is_tied_alias)
                s->n_held[spec->params[j].param]++;
        }
        for (uint32_t j = 0; j < spec->n_stacks; j++) {
            for (uint32_t k = 0; k < spec->stacks[j].n; k++) {
                char name[512];
                (void)snprintf(name, sizeof name, "%s.%s%u%s", spec->fqn, spec->stacks[j].prefix, k,
                               spec->stacks[j].suffix);
                hold(s, name);
            }
        }
    }
    for (size_t i = 0; i < s->model->n_params; i++) {
        if (s->n_held[i] != 1)
            tell(s, "%s is held by %u boundaries", sw_model_tensor(s->model, (uint32_t)i)->name,
                 s->n_held[i]);
    }
    if (plan->n_uncovered != 0)
        tell(s, "%u parameters are uncovered", plan->n_uncovered);
}

/* Rows that all ranks of an axis hold together must be the rows of the dim, replicas counted. */
static void check_pieces(subject *s, const char *path, const sw_facts *f, int axis, uint32_t size)
{
    const sw_placement *p = &f->places.on[axis];
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    uint64_t held = 0;
    uint64_t must = 0;

    if (p->kind != SW_PLACE_SHARD)
        return;
    uint64_t extent = p->dim >= 0 && (uint32_t)p->dim < shape->n_dims ? shape->dims[p->dim] : 0;
    for (uint32_t rank = 0; rank < size; rank++)
        held += sw_shard_local_extent(p, extent, size, rank);
    for (uint32_t i = 0; p->cut != NULL && i < p->cut->n_segments; i++) {
        const sw_segment *segment = &p->cut->segments[i];
        uint64_t rows = segment->extent == 0 ? extent : segment->extent;
        must += rows * p->cut->n_groups * (segment->replicas > 1 ? segment->replicas : 1);
    }
    must = p->cut == NULL ? extent : must;
    if (extent == 0 || held != must)
        tell(s, "%s: the ranks hold %llu of %llu rows", path, (unsigned long long)held,
             (unsigned long long)must);
}

/* A cut tensor's rows follow what kinds of parts it has. */
static void check_facts(subject *s, const char *path, const sw_facts *f)
{
    const sw_placement *ep = &f->places.on[SW_ON_EP];
    const sw_placement *tp = tp_of(&f->places);
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;

    check_pieces(s, path, f, SW_ON_TP, s->at.tp);
    check_pieces(s, path, f, SW_ON_EP, s->at.ep);
    if (f->places.on[SW_ON_CP].kind != SW_PLACE_REPLICATE)
        tell(s, "%s is cut over cp", path);
    if (ep->kind == SW_PLACE_SHARD && tp->kind == SW_PLACE_SHARD && ep->dim == tp->dim)
        tell(s, "%s is cut twice along dim %d", path, (int)ep->dim);
    bool is_expert = f->role == SW_ROLE_MOE_EXPERT && s->at.ep > 1;
    if (is_expert != (ep->kind == SW_PLACE_SHARD) || (is_expert && shape->dims[ep->dim] != s->known->experts))
        tell(s, "%s over ep is wrong", path);
    if (is_expert && s->at.mode == SW_EP_TP_EXTEND && tp->kind != SW_PLACE_REPLICATE)
        tell(s, "%s is cut over tp besides ep", path);
}

/* ---- gradient sums, by decision A2 ---- */

static void add_sum(sw_buffer *out, const char *axis, uint32_t group, const char *reason)
{
    if (out->length > 0)
        sw_buffer_puts(out, ", ");
    sw_buffer_puts(out, axis);
    if (group > 0)
        sw_buffer_printf(out, "/%u", group);
    sw_buffer_printf(out, " %s", reason);
}

/* Does this tensor hold key/value heads, so that ranks share rows when there are fewer heads than ranks? */
static bool has_kv(const sw_facts *f)
{
    return f->layout == SW_LAYOUT_KV_HEADS || f->layout == SW_LAYOUT_QKV_STACKED ||
           f->layout == SW_LAYOUT_QKV_GROUPED;
}

/* Why a parameter that is whole over tp is summed over it; NULL: it is not. */
static const char *tp_reason(subject *s, const sw_spec *spec, const sw_facts *f)
{
    const char *by_sequence = is_sp(s) && !spec->is_tower ? "sequence" : NULL;

    switch (spec->type) {
    case SW_BOUNDARY_NORM:
    case SW_BOUNDARY_POINTWISE:
        return by_sequence;
    case SW_BOUNDARY_ATTENTION:
    case SW_BOUNDARY_MLP:
        return f->is_deferred ? by_sequence : "partial";
    case SW_BOUNDARY_MOE_MLP: /* under TP-extend-EP every rank has tokens of its own, with or without SP */
        return s->at.mode == SW_EP_TP_EXTEND ? "sequence" : "partial";
    default:
        return NULL;
    }
}

static void expected_sums(subject *s, const sw_spec *spec, const sw_facts *f, sw_buffer *out)
{
    bool extends = s->at.mode == SW_EP_TP_EXTEND && f->role == SW_ROLE_MOE_EXPERT;
    bool sees_no_tokens = spec->is_tower || spec->type == SW_BOUNDARY_WHOLE;

    if (!f->is_trained)
        return;
    if (extends) {
        if (s->at.dp * s->at.cp * s->at.tp > s->at.ep)
            add_sum(out, "edp", 0, "data");
        return;
    }
    if (s->at.tp > 1 && tp_of(&f->places)->kind == SW_PLACE_SHARD) {
        if (has_kv(f) && !spec->is_tower && s->known->kv > 0 && s->known->kv < s->at.tp)
            add_sum(out, "tp", s->at.tp / s->known->kv, "kv_replica");
    } else if (s->at.tp > 1 && tp_reason(s, spec, f) != NULL) {
        add_sum(out, "tp", 0, tp_reason(s, spec, f));
    }
    if (s->at.mode == SW_EP_AXIS && f->role == SW_ROLE_MOE_GATE)
        add_sum(out, "ep", 0, "partial");
    if (s->at.cp > 1 && !sees_no_tokens)
        add_sum(out, "cp", 0, "context");
    if (s->at.dp > 1)
        add_sum(out, "dp", 0, "data");
}

static void check_sums(subject *s, const sw_spec *spec, const char *path, const sw_facts *f)
{
    sw_buffer must = {0};
    sw_buffer does = {0};

    expected_sums(s, spec, f, &must);
    for (uint32_t i = 0; i < f->grad.n; i++)
        add_sum(&does, sw_axis_name(f->grad.sums[i].axis), f->grad.sums[i].group, f->grad.sums[i].reason);
    if (strcmp(sw_buffer_text(&must), sw_buffer_text(&does)) != 0)
        tell(s, "%s.%s: gradient sums are \"%s\", must be \"%s\"", spec->fqn, path, sw_buffer_text(&does),
             sw_buffer_text(&must));
    sw_buffer_clear(&must);
    sw_buffer_clear(&does);
}

/* ---- contracts ---- */

static const sw_placement *first(const sw_io *io)
{
    static const sw_placement whole;

    return io->n == 0 ? &whole : tp_of(&io->entries[0].places);
}

/* What is handed over between boundaries of the decoder is cut along the sequence under SP, and whole
 * without. */
static void check_stream(subject *s, const sw_spec *spec)
{
    bool hands_on = spec->type != SW_BOUNDARY_LM_HEAD && spec->type != SW_BOUNDARY_WHOLE;
    bool takes = spec->type != SW_BOUNDARY_EMBED && spec->type != SW_BOUNDARY_WHOLE;
    bool is_nested = spec->in_moe && s->at.mode != SW_EP_TP_EXTEND;
    bool is_sliced = spec->in_moe && s->at.mode == SW_EP_TP_EXTEND && s->at.tp > 1;
    bool on_tp = (is_sp(s) && !spec->is_tower && !is_nested) || is_sliced;

    if (!spec->in_src.is_declared || spec->in_src.n == 0 || spec->type == SW_BOUNDARY_POINTWISE)
        return;
    if (takes && is_shard(first(&spec->in_src), 1) != on_tp)
        tell(s, "%s takes its input %s over tp", spec->fqn, on_tp ? "whole" : "cut");
    if (hands_on && !is_nested && is_shard(first(&spec->out_dst), 1) != on_tp)
        tell(s, "%s hands its output on %s over tp", spec->fqn, on_tp ? "whole" : "cut");
    if (is_nested && s->at.tp > 1 && first(&spec->out_dst)->kind != SW_PLACE_PARTIAL)
        tell(s, "%s inside a MoE block reduces on its own", spec->fqn);
    bool must_stay = s->at.loss_parallel && s->at.tp > 1;
    if (spec->type == SW_BOUNDARY_LM_HEAD && is_shard(first(&spec->out_dst), -1) != must_stay)
        tell(s, "%s hands on its logits wrongly", spec->fqn);
}

/* A whole input of a computation that is split over tp has a sum in the backward pass. */
static void check_backward(subject *s, const sw_spec *spec)
{
    const sw_placement *out = first(&spec->out_src);
    /* what leaves as a partial sum is finished by the enclosing block, and so is the gradient that enters it
     */
    bool is_finished_outside = spec->out_dst.n > 0 && first(&spec->out_dst)->kind == SW_PLACE_PARTIAL;
    bool is_split = spec->type != SW_BOUNDARY_EMBED && !is_finished_outside &&
                    (out->kind == SW_PLACE_PARTIAL || (out->kind == SW_PLACE_SHARD && out->dim == -1));
    bool stays_whole = s->at.tp > 1 && spec->in_src.n > 0 &&
                       first(&spec->in_src)->kind == SW_PLACE_REPLICATE &&
                       first(&spec->in_dst)->kind == SW_PLACE_REPLICATE;
    bool has_sum = false;

    for (uint32_t i = 0; i < spec->n_lower_in; i++)
        has_sum = has_sum ||
                  (spec->lower_in[i].axis == SW_AXIS_TP && spec->lower_in[i].collective == SW_COLL_NONE &&
                   spec->lower_in[i].backward == SW_COLL_ALL_REDUCE);
    if (has_sum != (is_split && stays_whole))
        tell(s, "%s %s an input gradient", spec->fqn, has_sum ? "must not sum" : "does not sum");
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    return length >= strlen(end) && memcmp(text + length - strlen(end), end, strlen(end)) == 0;
}

/* Norms that stand inside an attention and belong to it. */
static const char *const inner_norms[] = {".q_norm", ".k_norm", ".q_a_layernorm", ".kv_a_layernorm"};

static void check_spec(subject *s, const sw_spec *spec, uint8_t *is_done)
{
    bool is_region = spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &s->plan->facts[p->facts];
        uint8_t bit = (uint8_t)(1U << (spec->type % 8));
        if ((is_done[p->facts] & bit) != 0 && !spec->is_tower && !spec->in_moe)
            continue;
        is_done[p->facts] |= bit;
        check_facts(s, p->path, f);
        check_sums(s, spec, p->path, f);
    }
    check_stream(s, spec);
    check_backward(s, spec);
    if (is_region && s->at.tp > 1 && first(&spec->out_src)->kind != SW_PLACE_PARTIAL)
        tell(s, "%s is not split over tp", spec->fqn);
    if (spec->needs_cp_attn != (spec->type == SW_BOUNDARY_ATTENTION && !spec->is_tower))
        tell(s, "%s: needs_cp_attn is wrong", spec->fqn);
    for (size_t i = 0; i < SW_COUNT(inner_norms) && spec->type == SW_BOUNDARY_NORM; i++) {
        if (ends_with(spec->fqn, spec->fqn_length, inner_norms[i]))
            tell(s, "%s is a boundary of its own", spec->fqn);
    }
}

/* Row biases are added once, after the exit; head counts are local. */
static void check_region(subject *s, const sw_spec *spec)
{
    uint32_t n_row_biases = 0;
    int64_t kv = s->known->kv;
    int64_t tp = s->at.tp;

    for (uint32_t i = 0; i < spec->n_params; i++)
        n_row_biases += s->plan->facts[spec->params[i].facts].role == SW_ROLE_BIAS;
    if (spec->n_deferred != (tp > 1 ? n_row_biases : 0))
        tell(s, "%s: %u of %u row biases are deferred", spec->fqn, spec->n_deferred, n_row_biases);
    if (spec->type != SW_BOUNDARY_ATTENTION || spec->is_tower || tp == 1)
        return;
    if (spec->n_tp_local != (kv > 0 ? 2U : 1U) || spec->tp_local[0].local * tp != s->known->heads ||
        (kv > 0 && spec->tp_local[1].local != (kv > tp ? kv / tp : 1)))
        tell(s, "%s: local head counts are wrong", spec->fqn);
}

/* Norms over all heads take one sum of squares over tp, each of them; nothing else does. */
static void check_statistics(subject *s, const sw_spec *spec)
{
    bool is_wide = strncmp(s->known->name, "olmo2", 5) == 0 || strncmp(s->known->name, "olmoe", 5) == 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->n_inner; i++) {
        if (strcmp(spec->inner[i].op, "mean_square") == 0 && spec->inner[i].axis == SW_AXIS_TP)
            n += spec->inner[i].n_params;
    }
    if (n != (is_wide && spec->type == SW_BOUNDARY_ATTENTION && s->at.tp > 1 ? 2U : 0U))
        tell(s, "%s: %u norms sum their squares over tp", spec->fqn, n);
}

/* An MTP layer stores embedding and head once more. */
static bool has_copies(const known *model)
{
    return strcmp(model->name, "deepseek-v3") == 0 || strcmp(model->name, "glm-4.5-air") == 0;
}

/* A tensor that has two names is cut alike under both, if both are stored. */
static void check_pair(subject *s, const sw_tied_pair *pair)
{
    const char *names[2] = {pair->first, pair->second};
    const sw_placement *places[2] = {NULL, NULL};

    for (uint32_t i = 0; i < s->plan->n_specs; i++) {
        const sw_spec *spec = &s->plan->specs[i];
        for (int k = 0; k < 2; k++) {
            size_t length = spec->fqn_length;
            if (strncmp(names[k], spec->fqn, length) == 0 && strcmp(names[k] + length, ".weight") == 0 &&
                !spec->is_tied_alias)
                places[k] = tp_of(&s->plan->facts[spec->params[0].facts].places);
        }
    }
    if (places[1] != NULL && (places[0] == NULL || !sw_placement_equal(places[0], places[1])))
        tell(s, "%s and %s are not cut alike", pair->first, pair->second);
}

static void check_tied(subject *s)
{
    if (s->plan->n_tied != (s->known->is_tied ? 1U : 0U) + (has_copies(s->known) ? 2U : 0U)) {
        tell(s, "%u tied pairs", s->plan->n_tied);
        return;
    }
    for (uint32_t i = 0; i < s->plan->n_tied; i++)
        check_pair(s, &s->plan->tied[i]);
}

/* Under an explicit ep axis each rank runs its own experts on all tokens: output and input gradient are
 * summed. */
static void check_inner(subject *s, const sw_spec *spec)
{
    bool has_output = false;
    bool has_gradient = false;

    if (spec->type != SW_BOUNDARY_MOE_MLP)
        return;
    for (uint32_t i = 0; i < spec->n_inner; i++) {
        has_output = has_output || strcmp(spec->inner[i].op, "sum_routed_output") == 0;
        has_gradient = has_gradient || strcmp(spec->inner[i].op, "sum_routed_input_grad") == 0;
    }
    bool must = s->at.mode == SW_EP_AXIS;
    if (has_output != must || has_gradient != must)
        tell(s, "%s: sums over ep inside the block are wrong", spec->fqn);
    if (spec->ep_size != (s->at.mode == SW_EP_TP_EXTEND ? s->at.ep : 0))
        tell(s, "%s: ep_size is %u", spec->fqn, spec->ep_size);
}

static void check_plan(subject *s)
{
    uint8_t *is_done = calloc(s->plan->n_facts + 1U, 1);
    uint32_t n_attention = 0;
    uint32_t n_moe = 0;
    uint32_t n_heads = 0;
    uint32_t n_last = 0;

    assert_non_null(is_done);
    check_coverage(s);
    for (uint32_t i = 0; i < s->plan->n_specs; i++) {
        const sw_spec *spec = &s->plan->specs[i];
        check_spec(s, spec, is_done);
        check_inner(s, spec);
        if (spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP)
            check_region(s, spec);
        check_statistics(s, spec);
        n_attention += spec->type == SW_BOUNDARY_ATTENTION && !spec->is_tower;
        n_moe += spec->type == SW_BOUNDARY_MOE_MLP;
        n_heads += spec->type == SW_BOUNDARY_LM_HEAD && spec->layer < 0;
        n_last += spec->is_terminal && spec->type == SW_BOUNDARY_LM_HEAD;
    }
    free(is_done);
    if ((n_moe > 0) != (s->known->experts > 0) || n_heads != 1 || n_last != 1)
        tell(s, "%u MoE blocks, %u heads, %u of them last", n_moe, n_heads, n_last);
    if (s->plan->n_parallel != (s->at.cp > 1 ? n_attention : 0) + (s->at.ep > 1 ? n_moe : 0))
        tell(s, "%u modules run in parallel inside", s->plan->n_parallel);
    check_tied(s);
}

/* ---- the sweep ---- */

static sw_mesh *mesh_of(const point *at)
{
    char axes[64];
    sw_error err = {0};
    sw_mesh *mesh = NULL;

    int n = snprintf(axes, sizeof axes, "dp=%u,cp=%u,tp=%u", at->dp, at->cp, at->tp);
    if (at->mode == SW_EP_AXIS)
        (void)snprintf(axes + n, sizeof axes - (size_t)n, ",ep=%u", at->ep);
    if (sw_mesh_create(&mesh, axes, at->mode == SW_EP_TP_EXTEND ? at->ep : 0, &err) != SW_OK)
        fail_msg("%s: %s", axes, err.what);
    return mesh;
}

static bool has_code(const sw_report *report, const char *code)
{
    for (size_t i = 0; i < sw_report_count(report); i++) {
        if (strcmp(sw_report_finding(report, i)->code, code) == 0)
            return true;
    }
    return false;
}

/* Plan at one point and check what comes out. */
static void visit(subject *s, const point *at)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    const char *refusal = must_refuse(s->known, at);
    sw_report *report = NULL;
    sw_error err = {0};
    sw_plan *plan = NULL;
    sw_mesh *mesh = mesh_of(at);

    s->at = *at;
    (void)snprintf(s->label, sizeof s->label, "%s dp=%u cp=%u tp=%u ep=%u%s%s%s", s->known->name, at->dp,
                   at->cp, at->tp, at->ep, at->mode == SW_EP_TP_EXTEND ? " extended" : "",
                   at->no_sp ? " no-sp" : "", at->loss_parallel ? " loss-parallel" : "");
    assert_int_equal(sw_report_create(&report, &err), SW_OK);
    options.no_sequence_parallel = at->no_sp;
    options.loss_parallel = at->loss_parallel;
    options.report = report;
    sw_status status = sw_plan_create(&plan, s->model, mesh, &options, &err);
    if (status != (refusal == NULL ? SW_OK : SW_E_PLAN) || (refusal != NULL && !has_code(report, refusal)))
        tell(s, "%s must be the outcome: %s", refusal == NULL ? "a plan" : refusal,
             status == SW_OK ? "it is planned" : err.what);
    if (status == SW_OK) {
        if (sw_report_count_of(report, SW_SEVERITY_ERROR) != 0)
            tell(s, "a plan with errors");
        s->plan = plan;
        check_plan(s);
    }
    sw_plan_destroy(plan);
    sw_report_destroy(report);
    sw_mesh_destroy(mesh);
}

static void open_subject(subject *s, const known *k, const char *path)
{
    sw_error err = {0};
    sw_model *model = NULL;

    memset(s, 0, sizeof *s);
    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s: %s", k->name, err.what);
    s->known = k;
    s->model = model;
    s->n_held = calloc(model->n_params, 1);
    assert_non_null(s->n_held);
    for (uint32_t i = 0; i < model->n_params; i++) {
        bool is_new = false;
        const char *name = sw_model_tensor(model, i)->name;
        assert_non_null(sw_map_put(&s->names, name, strlen(name), i, &is_new));
    }
}

static void close_subject(subject *s, sw_model *model)
{
    sw_map_clear(&s->names);
    free(s->n_held);
    sw_model_close(model);
}

static void dense_points(subject *s)
{
    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        for (uint32_t cp = 1; cp <= 2; cp++) {
            for (int no_sp = 0; no_sp < 2; no_sp++)
                visit(s, &(point){.dp = cp, .cp = cp, .tp = tp, .ep = 1, .no_sp = no_sp == 1});
        }
    }
    visit(s, &(point){.dp = 2, .cp = 1, .tp = 2, .ep = 1, .loss_parallel = true});
    visit(s, &(point){.dp = 1, .cp = 1, .tp = 2, .ep = 1, .loss_parallel = true, .no_sp = true});
}

static void expert_points(subject *s)
{
    for (uint32_t ep = 2; ep <= 8; ep *= 2) {
        if (s->known->experts % ep != 0)
            continue;
        for (uint32_t tp = 1; tp <= 8; tp *= tp == 2 ? 4 : 2) {
            for (int no_sp = 0; no_sp < 2; no_sp++) {
                visit(s, &(point){
                             .dp = 1, .cp = 1, .tp = tp, .ep = ep, .mode = SW_EP_AXIS, .no_sp = no_sp == 1});
                visit(
                    s,
                    &(point){
                        .dp = 8, .cp = 1, .tp = tp, .ep = ep, .mode = SW_EP_TP_EXTEND, .no_sp = no_sp == 1});
            }
        }
        visit(s, &(point){.dp = 2, .cp = 2, .tp = 2, .ep = ep, .mode = SW_EP_AXIS});
        visit(s, &(point){.dp = 2, .cp = 2, .tp = 2, .ep = ep, .mode = SW_EP_TP_EXTEND});
    }
}

/* The sweep of one model; gives the number of faults, which are printed. */
static size_t sweep(const known *k, const char *path)
{
    subject s;

    open_subject(&s, k, path);
    dense_points(&s);
    if (k->experts > 0)
        expert_points(&s);
    close_subject(&s, (sw_model *)s.model);
    return s.n_told;
}

static void every_model_plans_wherever_its_heads_and_experts_divide(void **state)
{
    size_t n_told = 0;

    (void)state;
    need_shared("corpus");
    for (size_t i = 0; i < SW_COUNT(models); i++) {
        char path[512];
        corpus_path(path, sizeof path, models[i].name, "");
        n_told += sweep(&models[i], path);
    }
    if (n_told > 0)
        fail_msg("%zu faults", n_told);
}

/* The same checks without the corpus. */
static void small_models_plan_wherever_their_heads_and_experts_divide(void **state)
{
    static const known smalls[] = {
        {"oracle/tiny",         4, 4, 0, false, false},
        {"corpus/small-moe",    4, 2, 8, false, false},
        {"corpus/small-latent", 8, 0, 8, false, false}
    };
    size_t n_told = 0;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(smalls); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/tests/data/%s", SW_SOURCE_DIR, smalls[i].name);
        n_told += sweep(&smalls[i], path);
    }
    if (n_told > 0)
        fail_msg("%zu faults", n_told);
}

static void experts_that_ep_does_not_divide_are_refused(void **state)
{
    char path[512];
    const known sixty = {"qwen1.5-moe-a2.7b", 16, 16, 60, false, false};
    subject s;
    sw_error err = {0};
    sw_plan *plan = NULL;

    (void)state;
    need_shared("corpus");
    corpus_path(path, sizeof path, sixty.name, "");
    open_subject(&s, &sixty, path);
    for (int mode = SW_EP_AXIS; mode <= SW_EP_TP_EXTEND; mode++) {
        sw_mesh *mesh = mesh_of(&(point){.dp = 8, .cp = 1, .tp = 1, .ep = 8, .mode = (sw_ep_mode)mode});
        assert_int_equal(sw_plan_create(&plan, s.model, mesh, NULL, &err), SW_E_PLAN);
        assert_non_null(strstr(err.what, "60 experts are not divisible by ep=8"));
        assert_non_null(strstr(err.help, "2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60"));
        sw_mesh_destroy(mesh);
    }
    close_subject(&s, (sw_model *)s.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_models_plan_wherever_their_heads_and_experts_divide),
        cmocka_unit_test(every_model_plans_wherever_its_heads_and_experts_divide),
        cmocka_unit_test(experts_that_ep_does_not_divide_are_refused),
    };

    return cmocka_run_group_tests_name("plan/corpus", tests, NULL, NULL);
}
