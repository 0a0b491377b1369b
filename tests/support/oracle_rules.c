/*
 * The rules for differences from the reference planner. A rule recognises a difference by what it is about
 * and computes the form that is right from the model's config and the plan's own contract; see
 * oracle_rules.h.
 */
#include "oracle_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/report.h"

static oracle_verdict right_if(bool is_right)
{
    return is_right ? ORACLE_RIGHT : ORACLE_WRONG;
}

/* ---- words of the rules ---- */

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool ends(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t tail = strlen(end);

    return length >= tail && is(text + length - tail, end);
}

static bool of(const oracle_difference *d, sw_boundary_type type)
{
    return d->spec != NULL && d->spec->type == type;
}

static int64_t number(const oracle_difference *d, sw_attr attr)
{
    int64_t value = 0;

    return sw_model_attribute(d->source, attr, &value) ? value : 0;
}

static uint32_t axis_size(const oracle_difference *d, const char *axis)
{
    char key[8];
    (void)snprintf(key, sizeof key, "%s=", axis);
    const char *at = strstr(d->mesh->axes, key);

    while (at != NULL && at != d->mesh->axes && at[-1] != ',')
        at = strstr(at + 1, key);
    return at == NULL ? 1 : (uint32_t)strtoul(at + strlen(key), NULL, 10);
}

static bool is_contract(const oracle_difference *d)
{
    return d->field >= ORACLE_IN_SRC && d->field <= ORACLE_LOWER_OUT;
}

/* A field that says where something stands, not how: a role, a boundary, the holder of a parameter. */
static bool is_place(const oracle_difference *d)
{
    return d->field == ORACLE_ROLE || d->field == ORACLE_BOUNDARY || d->field == ORACLE_OWNER;
}

static const sw_placement *on_tp(const sw_io *io)
{
    return io->n == 0 ? NULL : &io->entries[0].places.on[SW_ON_TP];
}

static bool is_kind(const sw_placement *p, sw_placement_kind kind, int32_t dim)
{
    return p != NULL && p->kind == kind && (kind != SW_PLACE_SHARD || p->dim == dim);
}

/* The boundary of ours that a module stands in: the nearest one above it. */
static const sw_spec *above(const oracle_difference *d, const char *fqn)
{
    size_t length = strlen(fqn);

    while (length > 0) {
        while (length > 0 && fqn[length - 1] != '.')
            length--;
        length -= length > 0;
        const uint32_t *at = sw_map_find(&d->plan->by_fqn, fqn, length);
        if (at != NULL)
            return &d->plan->specs[*at];
    }
    return NULL;
}

static bool sums_over_tp(const sw_facts *facts, uint32_t group)
{
    for (uint32_t i = 0; i < facts->grad.n; i++) {
        if (facts->grad.sums[i].axis == SW_AXIS_TP)
            return facts->grad.sums[i].group == group;
    }
    return false;
}

/* ---- forms that a rule computes ---- */

static uint64_t query_rows(const oracle_difference *d)
{
    return (uint64_t)(number(d, SW_ATTR_HEADS) * number(d, SW_ATTR_HEAD_DIM));
}

static uint64_t kv_rows(const oracle_difference *d)
{
    return (uint64_t)(number(d, SW_ATTR_KV_HEADS) * number(d, SW_ATTR_HEAD_DIM));
}

/* Ranks that share a key/value head. */
static uint32_t kv_replicas(const oracle_difference *d)
{
    uint32_t tp = axis_size(d, "tp");
    uint32_t kv = (uint32_t)number(d, SW_ATTR_KV_HEADS);

    return kv > 0 && kv < tp ? tp / kv : 1;
}

/* One more segment of "tp:S(0;seg=", which close_segments() ends. */
static void add_segment(char *text, size_t capacity, uint64_t rows, uint32_t replicas)
{
    size_t n = strlen(text);

    n += (size_t)snprintf(text + n, capacity - n, "%s%llu", ends(text, "=") ? "" : "+",
                          (unsigned long long)rows);
    if (replicas > 1)
        (void)snprintf(text + n, capacity - n, "r%u", replicas);
}

static void close_segments(char *text, size_t capacity)
{
    size_t n = strlen(text);

    (void)snprintf(text + n, capacity - n, ")");
}

/* ---- rules: how our plan is made ---- */

/* R → R into a computation that is split: nothing to do forward, a sum backward. The reference leaves it out.
 */
static oracle_verdict backward_row(const oracle_difference *d)
{
    if (d->field != ORACLE_BACKWARD)
        return ORACLE_NOT_MINE;
    const sw_placement *out = on_tp(&d->spec->out_src);
    bool is_split = is_kind(out, SW_PLACE_PARTIAL, 0) || is_kind(out, SW_PLACE_SHARD, -1);
    return right_if(ends(d->found, "=all_reduce(tp)") && is_split &&
                    is_kind(on_tp(&d->spec->in_src), SW_PLACE_REPLICATE, 0) &&
                    is_kind(on_tp(&d->spec->in_dst), SW_PLACE_REPLICATE, 0));
}

static oracle_verdict head_is_last(const oracle_difference *d)
{
    return d->field != ORACLE_TERMINAL ? ORACLE_NOT_MINE : right_if(of(d, SW_BOUNDARY_LM_HEAD));
}

/* ---- rules: faults of the reference on models that it plans ---- */

static oracle_verdict shared_expert(const oracle_difference *d)
{
    if (!is_contract(d) || d->spec == NULL || !d->spec->in_moe || d->plan->ep_mode == SW_EP_TP_EXTEND)
        return ORACLE_NOT_MINE;
    return right_if(is_kind(on_tp(&d->spec->in_src), SW_PLACE_REPLICATE, 0) &&
                    is_kind(on_tp(&d->spec->in_dst), SW_PLACE_REPLICATE, 0) &&
                    is_kind(on_tp(&d->spec->out_src), SW_PLACE_PARTIAL, 0) &&
                    is_kind(on_tp(&d->spec->out_dst), SW_PLACE_PARTIAL, 0) && d->spec->n_lower_out == 0);
}

static oracle_verdict fused_qkv(const oracle_difference *d)
{
    char text[128] = "tp:S(0;seg=";

    if (d->field != ORACLE_PLACEMENT || d->facts->role != SW_ROLE_FUSED_QKV ||
        d->facts->layout != SW_LAYOUT_QKV_STACKED)
        return ORACLE_NOT_MINE;
    add_segment(text, sizeof text, query_rows(d), 1);
    add_segment(text, sizeof text, kv_rows(d), kv_replicas(d));
    add_segment(text, sizeof text, kv_rows(d), kv_replicas(d));
    close_segments(text, sizeof text);
    return right_if(is(d->found, text));
}

static oracle_verdict fused_gate_up(const oracle_difference *d)
{
    char text[128] = "tp:S(0;seg=";

    if (d->field != ORACLE_PLACEMENT || d->facts->role != SW_ROLE_FUSED_GATE_UP)
        return ORACLE_NOT_MINE;
    add_segment(text, sizeof text, d->facts->shape->dims[0] / 2, 1);
    add_segment(text, sizeof text, d->facts->shape->dims[0] / 2, 1);
    close_segments(text, sizeof text);
    return right_if(is(d->found, text));
}

/* The head's boundary is there, with its gather and its loss-parallel exit, whoever stores its tensor. */
static oracle_verdict tied_head(const oracle_difference *d)
{
    if (d->field == ORACLE_TIED && number(d, SW_ATTR_NEXTN_LAYERS) == 0)
        return right_if(number(d, SW_ATTR_TIED) == 1 && d->plan->n_tied == 1);
    if (!is_place(d) || !of(d, SW_BOUNDARY_LM_HEAD) || !is(d->expected, "-") || d->plan->n_tied != 1 ||
        strncmp(d->plan->tied[0].second, d->fqn, strlen(d->fqn)) != 0)
        return ORACLE_NOT_MINE;
    bool is_cut = is_kind(on_tp(&d->spec->out_src), SW_PLACE_SHARD, -1);
    return right_if((is_cut || d->plan->tp == 1) && is_kind(on_tp(&d->spec->in_dst), SW_PLACE_REPLICATE, 0));
}

/* What an MTP layer stores once more is tied to the model's own. */
static oracle_verdict mtp_copy(const oracle_difference *d)
{
    char text[256];
    if (d->field != ORACLE_TIED || number(d, SW_ATTR_NEXTN_LAYERS) != 1)
        return ORACLE_NOT_MINE;
    int mtp = (int)number(d, SW_ATTR_LAYERS);
    (void)snprintf(text, sizeof text,
                   "model.embed_tokens.weight model.layers.%d.embed_tokens.weight "
                   "lm_head.weight model.layers.%d.shared_head.head.weight",
                   mtp, mtp);
    return right_if(is(d->found, text));
}

static oracle_verdict kv_heads(const oracle_difference *d)
{
    char text[32];
    uint32_t replicas = kv_replicas(d);

    if (d->field != ORACLE_PLACEMENT || replicas == 1 || d->facts->layout != SW_LAYOUT_KV_HEADS)
        return ORACLE_NOT_MINE;
    (void)snprintf(text, sizeof text, "tp:S(0;rep=%u)", replicas);
    return right_if(is(d->found, text) && sums_over_tp(d->facts, replicas));
}

/* Heads that tp does not divide: refused, with the numbers. */
static oracle_verdict heads(const oracle_difference *d)
{
    int64_t tp = axis_size(d, "tp");
    int64_t queries = number(d, SW_ATTR_HEADS);
    int64_t kv = number(d, SW_ATTR_KV_HEADS);

    if (d->field != ORACLE_OUTCOME || !is(d->found, "heads"))
        return ORACLE_NOT_MINE;
    return right_if(queries % tp != 0 || (kv > 0 && kv % tp != 0 && tp % kv != 0));
}

/* A norm inside an attention: a member of it, without a sequence contract of its own. */
static oracle_verdict norm_in_attention(const oracle_difference *d)
{
    bool is_owner = d->field == ORACLE_OWNER && d->facts != NULL && d->facts->role == SW_ROLE_NORM;

    if (d->field == ORACLE_BOUNDARY && is(d->expected, "norm") && is(d->found, "-")) {
        const sw_spec *spec = above(d, d->fqn);
        return spec != NULL && spec->type == SW_BOUNDARY_ATTENTION ? ORACLE_RIGHT : ORACLE_NOT_MINE;
    }
    if (!is_owner || !of(d, SW_BOUNDARY_ATTENTION))
        return ORACLE_NOT_MINE;
    bool is_cut = d->facts->places.on[SW_ON_TP].kind == SW_PLACE_SHARD;
    return right_if(d->spec == above(d, d->expected) &&
                    (is_cut || d->plan->tp == 1 || sums_over_tp(d->facts, 0)));
}

/* A q/k norm as long as its input is cut with it; if it norms over all heads, its mean square is summed. */
static oracle_verdict wide_norm(const oracle_difference *d)
{
    bool is_summed = false;
    bool per_head =
        d->facts != NULL && d->facts->shape->n_dims == 2; /* Cohere: [heads, head_dim], a norm a head */

    if (d->field != ORACLE_PLACEMENT || d->facts->role != SW_ROLE_NORM || !of(d, SW_BOUNDARY_ATTENTION))
        return ORACLE_NOT_MINE;
    for (uint32_t i = 0; i < d->spec->n_inner; i++)
        is_summed = is_summed || is(d->spec->inner[i].op, "mean_square");
    return right_if(is(d->found, "tp:S(0)") && is_summed == !per_head);
}

/* A vocabulary that tp does not divide: ceil chunks and a warning. */
static oracle_verdict vocabulary(const oracle_difference *d)
{
    const sw_report *report = d->plan == NULL ? NULL : sw_plan_findings(d->plan);
    bool is_uneven = false;

    if (d->field != ORACLE_OUTCOME || !has(d->expected, "SHARD_NOT_DIVISIBLE") || report == NULL)
        return ORACLE_NOT_MINE;
    for (uint32_t i = 0; i < d->plan->n_facts; i++) {
        const sw_facts *f = &d->plan->facts[i];
        is_uneven = is_uneven || (f->role == SW_ROLE_EMBED && f->shape->dims[0] % d->plan->tp != 0);
    }
    if (!is_uneven)
        return ORACLE_NOT_MINE;
    for (size_t i = 0; i < sw_report_count(report); i++) {
        if (is(sw_report_finding(report, i)->code, "uneven_vocab"))
            return ORACLE_RIGHT;
    }
    return ORACLE_WRONG;
}

/* ---- rules: names that a substring misleads ---- */

/* DBRX: everything below norm_attn_norm. */
static oracle_verdict name_with_norm(const oracle_difference *d)
{
    if (!has(d->fqn, "norm_attn_norm.attn"))
        return ORACLE_NOT_MINE;
    switch (d->field) {
    case ORACLE_ROLE:
        return right_if(is(d->found, ends(d->fqn, "Wqkv.weight") ? "fused_qkv" : "rowwise"));
    case ORACLE_BOUNDARY:
        return right_if(is(d->found, ends(d->fqn, ".attn") ? "attention" : "-"));
    case ORACLE_OWNER:
        return right_if(ends(d->found, "norm_attn_norm.attn"));
    case ORACLE_PLACEMENT:
        return right_if(is(d->found, "tp:S(1)") && ends(d->fqn, "out_proj.weight"));
    default:
        return ORACLE_NOT_MINE;
    }
}

/* Bloom: word_embeddings_layernorm is a norm. */
static oracle_verdict embedding_norm(const oracle_difference *d)
{
    if (!ends(d->fqn, "word_embeddings_layernorm") || (!is_contract(d) && d->field != ORACLE_BOUNDARY))
        return ORACLE_NOT_MINE;
    return right_if(of(d, SW_BOUNDARY_NORM) && d->spec->n_lower_in == 0 && d->spec->n_lower_out == 0);
}

/* Qwen-1: w1 and w2 are columns, c_proj is the row. */
static oracle_verdict up_named_w2(const oracle_difference *d)
{
    if (!ends(d->fqn, "mlp.w2.weight") || !of(d, SW_BOUNDARY_MLP))
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, d->field == ORACLE_ROLE ? "colwise" : "tp:S(0)"));
}

/* GPT-J: a bias alone was taken for a boundary of its own, with names that the model has not. */
static oracle_verdict bias_alone(const oracle_difference *d)
{
    if (!has(d->fqn, "mlp.fc_in"))
        return ORACLE_NOT_MINE;
    if (d->field == ORACLE_BOUNDARY || (d->field == ORACLE_OWNER && is(d->found, "-")))
        return right_if(is(d->found, "-") && !is(d->expected, "-"));
    if (d->field == ORACLE_OWNER && ends(d->expected, "mlp.fc_in"))
        return right_if(of(d, SW_BOUNDARY_MLP) && ends(d->found, ".mlp"));
    return d->field == ORACLE_PLACEMENT ? right_if(is(d->found, "tp:S(0)")) : ORACLE_NOT_MINE;
}

/* ---- rules: experts ---- */

/* A MoE block is known by the experts in it, whatever its name. */
static oracle_verdict moe_by_content(const oracle_difference *d)
{
    if (d->field != ORACLE_BOUNDARY || !is(d->expected, "-") || !of(d, SW_BOUNDARY_MOE_MLP))
        return ORACLE_NOT_MINE;
    for (uint32_t i = 0; i < d->spec->n_params; i++) {
        if (d->plan->facts[d->spec->params[i].facts].role == SW_ROLE_MOE_EXPERT)
            return ORACLE_RIGHT;
    }
    return ORACLE_WRONG;
}

/* A router inside a MoE block is a member of it: whole, its gradient summed where its tokens or its use are
 * cut. */
static oracle_verdict router_member(const oracle_difference *d)
{
    if (d->field == ORACLE_BOUNDARY && is(d->expected, "moe_gate")) {
        const sw_spec *spec = above(d, d->fqn);
        return right_if(spec != NULL && spec->type == SW_BOUNDARY_MOE_MLP);
    }
    if (d->field != ORACLE_OWNER || d->facts == NULL || d->facts->role != SW_ROLE_MOE_GATE ||
        is(d->expected, "-"))
        return ORACLE_NOT_MINE;
    return right_if(of(d, SW_BOUNDARY_MOE_MLP) && d->facts->places.on[SW_ON_TP].kind == SW_PLACE_REPLICATE &&
                    (d->plan->tp == 1 || sums_over_tp(d->facts, 0)));
}

/* DBRX: [experts * inner, hidden] is seen as [experts, inner, hidden] before it is cut. */
static oracle_verdict expert_rows(const oracle_difference *d)
{
    if (!has(d->fqn, "ffn.experts.mlp"))
        return ORACLE_NOT_MINE;
    if (d->field == ORACLE_BOUNDARY)
        return right_if(is(d->found, "-"));
    if (d->field == ORACLE_OWNER)
        return right_if(of(d, SW_BOUNDARY_MOE_MLP) && ends(d->found, ".ffn"));
    if (d->field != ORACLE_PLACEMENT)
        return ORACLE_NOT_MINE;
    const sw_shape *view = d->facts->view;
    return right_if(view != NULL && view->n_dims == 3 &&
                    view->dims[0] == (uint64_t)number(d, SW_ATTR_EXPERTS) &&
                    is(d->found, d->plan->ep > 1 ? "ep:S(0),tp:S(1)" : "tp:S(1)"));
}

/* gpt-oss under TP-extend-EP: biases do not switch it off; the block slices its tokens itself. */
static bool is_extended_right(const oracle_difference *d)
{
    const sw_spec *spec = d->spec;

    return spec->ep_size == d->mesh->ep && is_kind(on_tp(&spec->in_dst), SW_PLACE_SHARD, 1) &&
           is_kind(on_tp(&spec->out_src), SW_PLACE_SHARD, 1);
}

/* gpt-oss: biases and quantised blocks follow the cut of their expert, in whole groups. */
static oracle_verdict expert_parts(const oracle_difference *d)
{
    static const struct {
        const char *end, *plain, *in_groups;
    } cuts[] = {
        {"experts.gate_up_proj_bias",   "tp:S(1)", "tp:S(1;unit=64)"},
        {"experts.gate_up_proj_blocks", "tp:S(1)", "tp:S(1;unit=64)"},
        {"experts.gate_up_proj_scales", "tp:S(1)", "tp:S(1;unit=64)"},
        {"experts.down_proj_blocks",    "tp:S(2)", "tp:S(2)"        },
        {"experts.down_proj_scales",    "tp:S(2)", "tp:S(2)"        },
        {"experts.down_proj_bias",      "R",       "R"              }
    };

    if (!of(d, SW_BOUNDARY_MOE_MLP) || number(d, SW_ATTR_MXFP4) != 1)
        return ORACLE_NOT_MINE;
    if (d->field == ORACLE_EP_SIZE || is_contract(d))
        return right_if(d->mesh->ep > 1 && is_extended_right(d));
    if (d->field != ORACLE_PLACEMENT)
        return ORACLE_NOT_MINE;
    for (size_t i = 0; i < SW_COUNT(cuts); i++) {
        char both[64];
        /* 90 groups of 32 columns in down_proj, 2 * 32 rows a group in gate_up_proj */
        const char *cut = 90 % d->plan->tp == 0 ? cuts[i].plain : cuts[i].in_groups;
        if (!ends(d->fqn, cuts[i].end))
            continue;
        (void)snprintf(both, sizeof both, "ep:S(0)%s%s", is(cut, "R") ? "" : ",", is(cut, "R") ? "" : cut);
        return right_if(is(d->found, d->mesh->ep > 1 ? "ep:S(0)" : d->plan->ep > 1 ? both : cut));
    }
    return ORACLE_NOT_MINE;
}

/* The same where the reference stops at a group that tp would cut. */
static oracle_verdict whole_groups(const oracle_difference *d)
{
    if (d->field != ORACLE_OUTCOME || !has(d->expected, "SHARD_NOT_DIVISIBLE") ||
        number(d, SW_ATTR_MXFP4) != 1)
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, "ok"));
}

/* Is the parameter a source of a stack of the boundary? */
static bool is_stacked(const sw_spec *spec, const char *fqn)
{
    const char *path = fqn + spec->fqn_length + 1;

    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        const sw_ep_stack *s = &spec->stacks[i];
        if (strncmp(path, s->prefix, strlen(s->prefix)) == 0 && ends(path, s->suffix))
            return true;
    }
    return false;
}

/* Scales of experts are stacked beside their weights. */
static oracle_verdict expert_scales(const oracle_difference *d)
{
    if (d->field == ORACLE_EP_STACK)
        return right_if(has(d->found, "+experts.gate_proj.weight_scale_inv ") &&
                        has(d->found, "+experts.up_proj.weight_scale_inv ") &&
                        has(d->found, "+experts.down_proj.weight_scale_inv ") &&
                        strncmp(d->found, d->expected, strlen(d->expected)) == 0);
    if (d->field != ORACLE_OWNER || !ends(d->fqn, ".weight_scale_inv") || !has(d->fqn, ".experts."))
        return ORACLE_NOT_MINE;
    if (is(d->expected, "-"))
        return right_if(of(d, SW_BOUNDARY_MOE_MLP) && d->facts->places.on[SW_ON_EP].kind == SW_PLACE_SHARD &&
                        d->facts->places.on[SW_ON_EP].dim == 0);
    const sw_spec *spec = above(d, d->fqn);
    return right_if(is(d->found, "-") && spec != NULL && is_stacked(spec, d->fqn));
}

/* ---- rules: mixers and towers ---- */

/* Nothing is cut, the sequence is seen whole; latent attention beside mixers (Kimi-Linear) is none. */
static bool is_mixer_whole(const oracle_difference *d)
{
    const sw_spec *spec = d->spec;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (d->plan->facts[spec->params[i].facts].places.on[SW_ON_TP].kind != SW_PLACE_REPLICATE ||
            strncmp(spec->params[i].path, "kv_b_proj", 9) == 0)
            return false;
    }
    return is_kind(on_tp(&spec->in_dst), SW_PLACE_REPLICATE, 0) &&
           is_kind(on_tp(&spec->out_src), SW_PLACE_REPLICATE, 0);
}

static oracle_verdict mixer(const oracle_difference *d)
{
    if (d->field == ORACLE_OUTCOME && is(d->found, "mixer_cp"))
        return right_if(axis_size(d, "cp") > 1);
    if (d->field == ORACLE_OUTCOME && has(d->expected, "SHARD_NOT_DIVISIBLE") && has(d->model, "kimi-linear"))
        return right_if(is(d->found, "ok"));
    if (d->field == ORACLE_SPECIAL) /* A_log and dt_bias, in 20 of the 27 layers of Kimi-Linear */
        return right_if(has(d->model, "kimi-linear") && is(d->found, "40"));
    if (of(d, SW_BOUNDARY_MIXER))
        return right_if(is_mixer_whole(d));
    if (d->field == ORACLE_BOUNDARY && is(d->expected, "norm") && is(d->found, "-")) {
        const sw_spec *spec = above(d, d->fqn);
        return spec != NULL && spec->type == SW_BOUNDARY_MIXER ? ORACLE_RIGHT : ORACLE_NOT_MINE;
    }
    return ORACLE_NOT_MINE;
}

/* A vision tower runs without sequence parallel and whole over cp. */
static oracle_verdict tower(const oracle_difference *d)
{
    if (d->spec == NULL || !d->spec->is_tower || !(is_contract(d) || d->field >= ORACLE_CP_ATTN))
        return ORACLE_NOT_MINE;
    if (d->field == ORACLE_CP_ATTN)
        return right_if(!d->spec->needs_cp_attn);
    if (d->field == ORACLE_TP_LOCAL)
        return right_if(of(d, SW_BOUNDARY_ATTENTION) && has(d->found, "num_heads"));
    return right_if(!has(d->found, "S(1)") && !has(d->found, "cp:"));
}

/* Multi-head latent attention has no key/value heads of its own. */
static oracle_verdict latent_heads(const oracle_difference *d)
{
    if (d->field != ORACLE_TP_LOCAL || number(d, SW_ATTR_KV_LORA_RANK) == 0 || !of(d, SW_BOUNDARY_ATTENTION))
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, "num_heads"));
}

/* The head counts of a config that nests its decoder's. */
static oracle_verdict nested_heads(const oracle_difference *d)
{
    if (d->field != ORACLE_TP_LOCAL || !is(d->expected, "") || !of(d, SW_BOUNDARY_ATTENTION))
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, "num_heads num_key_value_heads") &&
                    d->spec->tp_local[0].global == number(d, SW_ATTR_HEADS) &&
                    d->spec->tp_local[0].local * d->plan->tp == number(d, SW_ATTR_HEADS));
}

/* ---- rules: names that the reference does not know ---- */

static oracle_verdict head_bias(const oracle_difference *d)
{
    if (d->field == ORACLE_OUTCOME && has(d->expected, "COLWISE_BIAS_NOT_SHARDED"))
        return right_if(is(d->found, "ok"));
    if (!ends(d->fqn, "lm_head.bias"))
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, d->field == ORACLE_ROLE ? "lm_head" : "tp:S(0)"));
}

/* A name without a role there: here it has one, and a boundary (buffers are skipped on purpose). */
static oracle_verdict known_name(const oracle_difference *d)
{
    if (d->is_planned_there)
        return ORACLE_NOT_MINE;
    if (d->field == ORACLE_OUTCOME)
        return has(d->expected, "UNCOVERED") ? right_if(is(d->found, "ok")) : ORACLE_NOT_MINE;
    if (d->field == ORACLE_ROLE && (is(d->expected, "skip") || is(d->expected, "bias"))) {
        bool is_buffer = d->facts != NULL && d->facts->reason != NULL && is(d->facts->reason, "buffer");
        return right_if(d->facts != NULL && is(d->found, "skip") == is_buffer);
    }
    if ((d->field == ORACLE_BOUNDARY || d->field == ORACLE_OWNER) && is(d->expected, "-"))
        return right_if(d->spec != NULL);
    return ORACLE_NOT_MINE;
}

/* Both refuse, for the same reason. */
static oracle_verdict both_refuse(const oracle_difference *d)
{
    if (d->field != ORACLE_OUTCOME || !has(d->expected, "EP_EXPERTS_NOT_DIVISIBLE"))
        return ORACLE_NOT_MINE;
    return right_if(is(d->found, "expert_count") && d->mesh->ep > 1 &&
                    number(d, SW_ATTR_EXPERTS) % d->mesh->ep != 0);
}

/* ---- the table ---- */

/* clang-format off */
const oracle_rule oracle_rules[] = {
    {"backward_row",      backward_row,      "rows that only the backward pass has"},
    {"head_is_last",      head_is_last,      "the head is the terminal boundary"},
    {"shared_expert",     shared_expert,     "R to R and P to P inside a MoE block"},
    {"fused_qkv",         fused_qkv,         "q, k and v are cut each on its own"},
    {"fused_gate_up",     fused_gate_up,     "gate and up are cut each on its own"},
    {"tied_head",         tied_head,         "a tied head keeps its boundary"},
    {"mtp_copy",          mtp_copy,          "an MTP layer's copies of embedding and head are tied to them"},
    {"kv_heads",          kv_heads,          "fewer key/value heads than ranks: each held by several"},
    {"heads",             heads,             "heads that tp does not divide are refused"},
    {"name_with_norm",    name_with_norm,    "norm in a module's name makes no norm of what it holds"},
    {"embedding_norm",    embedding_norm,    "a norm after the embedding is a norm"},
    {"up_named_w2",       up_named_w2,       "w2 is what the family says it is"},
    {"bias_alone",        bias_alone,        "a bias makes no boundary"},
    {"mixer",             mixer,             "state-space and linear attention: whole over tp, refused under cp"},
    {"norm_in_attention", norm_in_attention, "a norm inside an attention belongs to it"},
    {"wide_norm",         wide_norm,         "a q/k norm as long as its input is cut with it"},
    {"moe_by_content",    moe_by_content,    "a MoE block is known by the experts in it"},
    {"router_member",     router_member,     "a router inside a MoE block belongs to it"},
    {"expert_rows",       expert_rows,       "a store of experts' rows is cut inside each expert"},
    {"expert_parts",      expert_parts,      "biases and quantised blocks of experts follow their expert"},
    {"whole_groups",      whole_groups,      "quantised groups are never cut"},
    {"expert_scales",     expert_scales,     "scales of experts are stacked with their weights"},
    {"vocabulary",        vocabulary,        "a vocabulary that tp does not divide gets ceil chunks"},
    {"head_bias",         head_bias,         "the head's bias is cut with its weight"},
    {"tower",             tower,             "vision towers: no sequence parallel, whole over cp"},
    {"latent_heads",      latent_heads,      "latent attention counts query heads only"},
    {"nested_heads",      nested_heads,      "head counts are found in a nested config"},
    {"both_refuse",       both_refuse,       "refused on both sides, told in other words"},
    {"known_name",        known_name,        "names that the reference leaves without a role"},
};
/* clang-format on */

const size_t oracle_n_rules = SW_COUNT(oracle_rules);
