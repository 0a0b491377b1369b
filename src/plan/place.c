/*
 * Placement of one tensor. The order is: whole or cut (role), which side (column or row), which stored dim
 * (form), where the pieces end (layout), and for a companion whether its rows can follow (factor).
 */
#include "plan/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/heads.h"
#include "plan/intern.h"
#include "plan/layout.h"
#include "plan/norm.h"
#include "plan/quant.h"
#include "plan/role.h"

/* One placement under way. */
typedef struct placing {
    sw_plan *plan;
    sw_place_where where;
    const sw_place_what *what;
    const sw_class *class_;
    sw_axes_of axes;
    sw_quant_geometry quant; /* of a companion */
    const sw_shape *shape;   /* as seen: the view, if there is one */
    sw_facts *out;
    bool is_cut; /* over tp, unless a fault is found */
    uint32_t fault;
} placing;

static void complain(placing *p, const char *code, const char *what, const char *help)
{
    if (p->where.is_tower) { /* not a fault of the plan: the tower's module is kept whole instead */
        p->fault = strcmp(code, "heads_unknown") == 0 ? SW_FAULT_TOWER_HEADS : SW_FAULT_IN_TOWER;
        return;
    }
    if (strcmp(code, "heads") == 0) { /* one finding for the whole attention: see head_check.c */
        p->fault = SW_FAULT_HEADS;
        return;
    }
    p->fault =
        sw_plan_fault(p->plan, SW_SEVERITY_ERROR, code, p->what->fqn, p->what->fqn_length, help, "%s", what);
}

static void place_on(sw_places *places, int axis, sw_placement placement)
{
    places->present |= (uint8_t)(1U << axis);
    places->on[axis] = placement;
}

/* Is the axis one that this boundary's parameters speak of? A derived ep cuts nothing but experts. */
static bool is_spoken_of(const placing *p, int axis)
{
    if (axis == SW_ON_EP && p->plan->ep_mode == SW_EP_TP_EXTEND && p->where.type != SW_BOUNDARY_MOE_MLP)
        return false;
    return p->plan->is_active[axis];
}

/* Only active axes are written, each of them; what the role table leaves out is R. */
static void normalise(const placing *p, sw_places *places)
{
    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        bool said = (places->present & (1U << axis)) != 0;
        sw_placement placement = said ? places->on[axis] : (sw_placement){0};
        memset(&places->on[axis], 0, sizeof places->on[axis]);
        places->present &= (uint8_t) ~(1U << axis);
        if (is_spoken_of(p, axis))
            place_on(places, axis, placement);
    }
}

static sw_side side_of(const placing *p)
{
    const sw_class *c = p->class_;

    if (c->side != SW_SIDE_DEFAULT)
        return c->side;
    switch (c->role) {
    case SW_ROLE_ROWWISE:
        return SW_SIDE_IN;
    case SW_ROLE_NORM: /* over all heads, or one row a head: cut with the heads it is applied to */
        return c->layout != SW_LAYOUT_PLAIN ? SW_SIDE_OUT : SW_SIDE_NONE;
    case SW_ROLE_MOE_EXPERT:
    case SW_ROLE_SHARED_EXPERT:
        return sw_role_is_row_like(p->what->path) ? SW_SIDE_IN : SW_SIDE_OUT;
    case SW_ROLE_COLWISE:
    case SW_ROLE_EMBED:
    case SW_ROLE_LM_HEAD:
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
        return SW_SIDE_OUT;
    default:
        return SW_SIDE_NONE;
    }
}

/* The stored tensor seen as [experts, a, b] where experts stand in rows one below the other (DBRX). */
static void see_as_experts(placing *p)
{
    uint64_t experts = (uint64_t)sw_plan_attribute(p->plan, SW_ATTR_EXPERTS);

    if (!p->axes.is_view || p->shape->n_dims != 2)
        return;
    if (experts == 0 || p->shape->dims[0] % experts != 0) {
        complain(p, "experts_unknown",
                 "rows of all experts in one matrix, and the number of experts does not divide them",
                 "give the number of experts in config.json");
        return;
    }
    uint64_t dims[3] = {experts, p->shape->dims[0] / experts, p->shape->dims[1]};
    const sw_shape *view = sw_plan_shape(p->plan, dims, 3);
    if (view == NULL) {
        p->plan->is_out_of_memory = true;
        return;
    }
    p->shape = view;
    p->out->view = view;
}

/* Is a side of the matrix as wide as all heads of its layout? */
static bool is_all_heads(const placing *p, uint64_t extent)
{
    sw_layout layout = p->class_->layout;
    sw_attr count = layout == SW_LAYOUT_HEADS      ? SW_ATTR_HEADS
                    : layout == SW_LAYOUT_KV_HEADS ? SW_ATTR_KV_HEADS
                                                   : SW_ATTR_NONE;
    uint64_t heads = count == SW_ATTR_NONE ? 0 : (uint64_t)sw_plan_attribute(p->plan, count);
    uint64_t head_dim = (uint64_t)sw_plan_attribute(p->plan, SW_ATTR_HEAD_DIM);

    return heads != 0 && extent % heads == 0 && extent / heads == head_dim;
}

/*
 * Where no table says how a weight is stored, its dims must: one of them is the hidden size, on the input
 * side of a column weight and on the output side of a row weight. Stacked experts may be stored either way; a
 * single matrix the other way round is refused, since a cut of the wrong side is wrong in silence. Heads that
 * are as wide as the hidden size stand where they should, whatever the width of the other side.
 */
static sw_form form_by_dims(placing *p)
{
    const sw_class *c = p->class_;
    uint64_t hidden = (uint64_t)sw_plan_attribute(p->plan, SW_ATTR_HIDDEN);
    uint32_t front = p->where.is_stacked ? 1 : 0; /* one matrix an expert, under one name */
    bool is_stacked = c->form == SW_FORM_EXPERTS && p->shape->n_dims == 3 && front == 0;
    bool is_plain = c->form == SW_FORM_LINEAR && p->shape->n_dims == 2 + front && c->companion == NULL;
    bool is_row = side_of(p) == SW_SIDE_IN;

    if (c->source != SW_RULE_DEFAULT || c->has_dim || hidden == 0 || p->where.is_tower ||
        (!is_stacked && !is_plain) ||
        (c->role != SW_ROLE_COLWISE && c->role != SW_ROLE_ROWWISE && c->role != SW_ROLE_MOE_EXPERT))
        return c->form;
    uint64_t out = p->shape->dims[is_stacked ? 1 : front];
    uint64_t in = p->shape->dims[is_stacked ? 2 : front + 1];
    bool is_usual = is_row ? out == hidden : in == hidden;
    bool is_other = is_row ? in == hidden : out == hidden;
    bool is_placed_by_heads = is_plain && is_all_heads(p, is_row ? in : out);
    if (is_stacked && is_usual && is_other && p->is_cut && c->layout != SW_LAYOUT_UNKNOWN) {
        complain(p, "layout_unknown",
                 "experts of hidden_size both ways: nothing says which dim is the output",
                 "state it in an override: `layout: {kind: plain, dim: N}`, N the stored dim that tp cuts");
    }
    if (is_usual || !is_other || is_placed_by_heads)
        return c->form;
    if (is_stacked)
        return SW_FORM_EXPERTS_T;
    complain(p, "layout_unknown",
             "hidden_size stands on the other side: the weight seems to be stored transposed",
             "no table knows this architecture: transpose the weights, or place them in an override");
    return c->form;
}

/*
 * An override that names the dim of the cut side says which way round a matrix is stored. Dims are those of
 * the file: without the experts that a stack or a view puts in front. A vector has only one, whatever is
 * said.
 */
static void turn_to_dim(placing *p)
{
    const sw_class *c = p->class_;
    sw_axes_of *a = &p->axes;
    int front = p->where.is_stacked || a->is_view ? 1 : 0;
    int n_dims = (int)p->shape->n_dims - (p->where.is_stacked ? 1 : 0);
    int dim = (c->dim < 0 ? c->dim + n_dims : c->dim) + front;
    int cut = side_of(p) == SW_SIDE_IN ? a->in_dim : a->out_dim;
    int other = side_of(p) == SW_SIDE_IN ? a->out_dim : a->in_dim;
    char what[96];

    if (!c->has_dim || n_dims < 2 || side_of(p) == SW_SIDE_NONE || dim == cut)
        return;
    if (dim < 0 || dim != other) {
        (void)snprintf(what, sizeof what, "layout says dim %d, which is no side of the stored matrix",
                       c->dim);
        complain(p, "no_such_dim", what, "name the stored dim of the side that tp cuts, or leave dim out");
        return;
    }
    int out_dim = a->out_dim;
    a->out_dim = a->in_dim;
    a->in_dim = out_dim;
}

/* MLX stores the experts of a layer one behind the other, words and groups alike. */
static bool is_stack_of_experts(const placing *p)
{
    const sw_class *c = p->class_;
    return p->where.is_stacked || (c->role == SW_ROLE_MOE_EXPERT && p->shape->n_dims == 3 &&
                                   c->companion->method == SW_QUANTIZATION_MLX);
}

static void find_axes(placing *p)
{
    sw_form form = form_by_dims(p);

    if (p->class_->companion != NULL && !(p->class_->flags & SW_ROW_QUANTISED)) {
        sw_quant_geometry_of(p->plan, p->class_->companion, p->what->fqn, p->what->fqn_length, p->shape,
                             is_stack_of_experts(p), &p->quant);
        p->axes = p->quant.axes;
        if (p->quant.mismatch[0] != '\0') {
            complain(p, "quant_mismatch", p->quant.mismatch,
                     "check quantization_config (bits, group_size, weight_block_size) against the tensors");
        }
        return;
    }
    if (p->where.is_stacked)
        form = SW_FORM_EXPERTS;
    p->axes = sw_form_axes(form, p->shape->n_dims);
    if (p->class_->flags & SW_ROW_QUANTISED && p->shape->n_dims >= 3)
        p->axes.in_factor = 32; /* MXFP4: a block of 32 values along the input, kept as one stored row */
    turn_to_dim(p);
    see_as_experts(p);
}

/* Rows that must not be torn apart: a head, or groups of 32 because another tensor is cut with them. */
static uint64_t group_unit(const placing *p, sw_side side)
{
    uint64_t head = (uint64_t)sw_plan_attribute(p->plan, SW_ATTR_HEAD_DIM);

    if (p->class_->layout == SW_LAYOUT_STACKED && p->where.type == SW_BOUNDARY_ATTENTION && head != 0)
        return head;
    if ((p->class_->flags & (SW_ROW_QUANTISED | SW_ROW_IN_GROUPS)) == 0)
        return 1;
    return side == SW_SIDE_OUT ? 32 : 1;
}

static void note_uneven(placing *p, const sw_cut_request *q)
{
    uint64_t chunk = (q->extent + q->ranks - 1) / q->ranks;
    uint64_t full = chunk == 0 ? 0 : q->extent / chunk;
    uint64_t rest = q->extent - full * chunk;
    uint64_t empty = q->ranks - full - (rest != 0);
    char help[192];
    char tail[96] = "";

    if (q->layout != SW_LAYOUT_VOCAB || p->shape->n_dims < 2)
        return;
    int n = rest == 0 ? 0 : snprintf(tail, sizeof tail, ", the next %" PRIu64, rest);
    if (empty > 0 && n >= 0)
        (void)snprintf(tail + n, sizeof tail - (size_t)n, ", %" PRIu64 " none", empty);
    (void)snprintf(help, sizeof help, "pad the vocabulary to %" PRIu64 " rows for equal chunks",
                   chunk * q->ranks);
    (void)sw_plan_fault(p->plan, SW_SEVERITY_WARNING, "uneven_vocab", p->what->fqn, p->what->fqn_length, help,
                        "%" PRIu64 " vocabulary rows over tp=%u: %" PRIu64 " %s %" PRIu64 "%s", q->extent,
                        q->ranks, full, full == 1 ? "rank holds" : "ranks hold", chunk, tail);
}

static void set_cut(placing *p, int dim, const sw_cut_result *cut)
{
    sw_placement placement;

    memset(&placement, 0, sizeof placement);
    placement.kind = SW_PLACE_SHARD;
    placement.dim = dim;
    if (cut->n_segments > 0) {
        sw_segment segments[SW_CUT_MAX_SEGMENTS];
        memcpy(segments, cut->segments, cut->n_segments * sizeof *segments);
        if (cut->n_groups == 1 && cut->n_segments == 1)
            segments[0].extent = 0; /* the whole dim: S(0;rep=4) */
        placement.cut = sw_plan_cut(p->plan, cut->n_groups, segments, cut->n_segments);
        p->plan->is_out_of_memory = p->plan->is_out_of_memory || placement.cut == NULL;
    }
    place_on(&p->out->places, SW_ON_TP, placement);
}

static void misaligned(placing *p, const sw_cut_request *q, uint64_t factor)
{
    char what[256];
    char help[320];
    sw_cut_request try_ = *q;
    sw_sizes sizes = {0};

    (void)snprintf(what, sizeof what,
                   "tp=%u cuts the weight's %" PRIu64 " rows or columns inside a block of %" PRIu64
                   " that shares one stored scale or word",
                   q->ranks, q->extent, factor);
    for (try_.ranks = 1; try_.ranks <= 256 && sizes.n < SW_SIZES_MOST; try_.ranks++) {
        sw_cut_result logical;
        sw_cut_result stored;
        sw_cut_solve(&try_, &logical);
        if (logical.fault == NULL && sw_cut_scale(&logical, try_.extent, try_.ranks, factor, &stored))
            (void)sw_sizes_add(&sizes, try_.ranks, "");
    }
    (void)snprintf(help, sizeof help, "tp sizes that keep blocks whole: %s", sw_sizes_text(&sizes));
    complain(p, "block_misaligned", what, help);
}

/* How many values share a stored row is not known, or is no whole number. */
static void complain_factor(placing *p)
{
    int64_t bits = p->quant.bits;
    char what[96];

    if (bits <= 0 || 32 % bits == 0) {
        complain(p, "quant_unknown", "the config does not say how many values share one stored row",
                 "give quantization_config with bits and group_size");
        return;
    }
    (void)snprintf(what, sizeof what,
                   "values of %" PRId64 " bits straddle the 32-bit words they are packed in", bits);
    complain(p, "quant_unsupported", what, "dequantise it first, or take a checkpoint of 2, 4 or 8 bits");
}

/* Cut one side of the tensor over tp. */
static void cut_side(placing *p, sw_side side)
{
    const sw_class *c = p->class_;
    int dim = side == SW_SIDE_OUT ? p->axes.out_dim : p->axes.in_dim;
    uint64_t factor = side == SW_SIDE_OUT ? p->axes.out_factor : p->axes.in_factor;
    uint64_t stored = dim >= 0 ? p->shape->dims[dim] : 0;
    sw_cut_result logical;
    sw_cut_result cut;

    if (dim < 0)
        return; /* no such side: a row bias, a scale for the whole weight */
    if (factor == 0) {
        complain_factor(p);
        return;
    }
    if (c->companion != NULL && !c->companion->is_weight && stored == 1 && factor != 1)
        return; /* one scale for the whole side */
    uint64_t extent = stored * factor;
    if (c->companion != NULL && !c->companion->is_weight) {
        uint64_t weight = side == SW_SIDE_OUT ? p->quant.out : p->quant.in;
        extent = weight != 0 ? weight : extent;
    }
    bool tower = p->where.is_tower;
    uint64_t heads = (uint64_t)sw_plan_attribute(p->plan, tower ? SW_ATTR_VISION_HEADS : SW_ATTR_HEADS);
    uint64_t kv = (uint64_t)sw_plan_attribute(p->plan, tower ? SW_ATTR_VISION_HEADS : SW_ATTR_KV_HEADS);
    bool grouped = (c->flags & (SW_ROW_QUANTISED | SW_ROW_IN_GROUPS)) != 0;
    sw_cut_request q = {.layout = c->layout,
                        .role = c->role,
                        .parts = c->parts,
                        .extent = grouped && side == SW_SIDE_IN ? stored : extent,
                        .unit = group_unit(p, side),
                        .heads = heads,
                        .kv_heads = kv,
                        .ranks = p->plan->tp,
                        .is_input = side == SW_SIDE_IN,
                        .may_be_uneven = grouped || c->layout == SW_LAYOUT_VOCAB};
    q.n_explicit = c->n_segments;
    q.explicit_segments = c->segments;
    if (grouped)
        factor = 1;
    sw_cut_solve(&q, &logical);
    if (logical.fault != NULL) {
        complain(p, logical.fault, logical.what, logical.help);
        return;
    }
    if (!sw_cut_scale(&logical, q.extent, q.ranks, factor, &cut)) {
        misaligned(p, &q, factor);
        return;
    }
    if (logical.is_uneven)
        note_uneven(p, &q);
    set_cut(p, dim, &cut);
}

/* Experts over ep: whole experts, the expert dim in front. */
static void cut_experts(placing *p)
{
    sw_placement placement;
    uint32_t ep = p->plan->ep;
    int dim = p->axes.expert_dim;

    if (p->plan->ep_mode == SW_EP_TP_EXTEND)
        place_on(&p->out->places, SW_ON_TP, (sw_placement){0});
    if (dim < 0 || (uint32_t)dim >= p->shape->n_dims) {
        p->out->places.on[SW_ON_EP] = (sw_placement){0};
        return;
    }
    if (p->shape->dims[dim] % ep != 0) {
        char what[192];
        char help[320];
        sw_sizes sizes = {0};
        sw_sizes_add_divisors(&sizes, p->shape->dims[dim]);
        (void)snprintf(help, sizeof help, "ep sizes that fit: %s", sw_sizes_text(&sizes));
        p->out->places.on[SW_ON_EP] = (sw_placement){0};
        (void)snprintf(what, sizeof what, "%" PRIu64 " experts are not divisible by ep=%u",
                       p->shape->dims[dim], ep);
        complain(p, "expert_count", what, help);
        return;
    }
    memset(&placement, 0, sizeof placement);
    placement.kind = SW_PLACE_SHARD;
    placement.dim = dim;
    place_on(&p->out->places, SW_ON_EP, placement);
}

/* A norm that no table knows; an override's layout says that it is cut with what it is applied to. */
static void settle_norm(placing *p, sw_class *own)
{
    bool is_inside = !p->where.is_tower && !p->where.is_replicated;
    char what[192];

    if (own->source == SW_RULE_FAMILY || own->role != SW_ROLE_NORM || !is_inside)
        return;
    if (own->layout != SW_LAYOUT_PLAIN) {
        own->flags |= p->shape->n_dims == 1 ? (uint32_t)SW_ROW_FULL_NORM : 0;
        return;
    }
    sw_norm_cut cut = sw_norm_cut_of(p->plan, p->where.type, p->what->path, p->shape);
    own->layout = cut.layout;
    own->flags |= cut.is_full ? (uint32_t)SW_ROW_FULL_NORM : 0;
    if (!cut.is_unknown || !p->plan->is_active[SW_ON_TP])
        return;
    (void)snprintf(what, sizeof what,
                   "no table knows this norm of %" PRIu64
                   " values, as wide as the activations that tp=%u cuts in its region",
                   p->shape->elems, p->plan->tp);
    complain(p, "feature_cut", what,
             "where it is applied to them, state `layout: heads`, `kv_heads` or its segments in an override; "
             "where it is applied to whole tokens, give it the role replicated in `roles:`");
}

static const char *reason_of(const sw_class *c, sw_dtype dtype)
{
    if (c->reason != NULL)
        return c->reason;
    if ((c->flags & SW_ROW_FROZEN) != 0)
        return "frozen";
    if (c->companion != NULL)
        return c->companion->is_weight ? "quantised" : "companion";
    if ((c->flags & SW_ROW_QUANTISED) != 0 && dtype == SW_DTYPE_U8)
        return "quantised";
    return dtype >= SW_DTYPE_I64 && dtype <= SW_DTYPE_BOOL ? "integers" : NULL;
}

static void begin_facts(placing *p)
{
    const sw_class *c = p->class_;
    sw_facts *f = p->out;

    memset(f, 0, sizeof *f);
    f->role = c->role;
    f->dtype = p->what->dtype;
    f->shape = p->what->shape;
    f->layout = c->layout;
    f->parts = c->parts;
    f->flags = c->flags;
    f->reason = reason_of(c, p->what->dtype);
    f->is_trained = f->reason == NULL;
    f->handler = sw_role_handler(c->role, p->what->fqn);
}

/* Does nothing tell which of the dims are rows and columns, but that a matrix has two of them? */
static bool is_taken_for_matrix(const placing *p)
{
    const sw_class *c = p->class_;

    if (c->companion != NULL && (c->flags & SW_ROW_QUANTISED) == 0)
        return p->axes.expert_dim < 0;
    return !p->where.is_stacked && !c->has_dim && c->n_segments == 0 &&
           (c->form == SW_FORM_LINEAR || c->form == SW_FORM_CONV1D) &&
           (c->role == SW_ROLE_COLWISE || c->role == SW_ROLE_ROWWISE || c->role == SW_ROLE_FUSED_QKV ||
            c->role == SW_ROLE_FUSED_GATE_UP);
}

/*
 * A linear layer in more than two dims: experts one behind the other, or heads apart from their rows. Dims of
 * 1 behind the columns are those of a convolution.
 */
static void check_dims(placing *p)
{
    uint32_t last = p->shape->n_dims;
    char what[96];

    while (last > 2 && p->shape->dims[last - 1] == 1)
        last--;
    if (p->fault != UINT32_MAX || !p->is_cut || last <= 2 || !is_taken_for_matrix(p))
        return;
    (void)snprintf(what, sizeof what, "a linear layer of %u dims, and nothing says which of them are rows",
                   p->shape->n_dims);
    complain(p, "layout_unknown", what,
             "give stacked experts the role moe_expert in `roles:`, or state the dim that tp cuts in an "
             "override: `layout: {kind: plain, dim: N}`");
}

static bool keeps_whole_when_ordered(const placing *p, sw_side side)
{
    const sw_companion *c = p->class_->companion;
    return c != NULL && c->follows_act_order && side == SW_SIDE_IN &&
           p->plan->model->config.quantization.desc_act;
}

static void place_tensor(placing *p, const sw_template *template_)
{
    const sw_plan *plan = p->plan;
    const sw_class *c = p->class_;
    sw_facts *f = p->out;
    bool has_tp = plan->is_active[SW_ON_TP];
    bool has_ep = plan->is_active[SW_ON_EP];

    bool is_whole =
        p->where.type == SW_BOUNDARY_MIXER || p->where.type == SW_BOUNDARY_WHOLE || p->where.is_replicated;
    sw_side side = is_whole ? SW_SIDE_NONE : side_of(p);
    bool extends = c->role == SW_ROLE_MOE_EXPERT && has_ep && plan->ep_mode == SW_EP_TP_EXTEND;

    p->is_cut = has_tp && !extends && (side == SW_SIDE_OUT || side == SW_SIDE_IN) &&
                !keeps_whole_when_ordered(p, side);
    find_axes(p);
    check_dims(p);
    f->out_dim = p->shape->n_dims == 0 ? -1 : p->axes.out_dim; /* a scalar has no dims */
    f->in_dim = p->axes.in_dim;
    if (!sw_template_place_role(p->what->path, c->role, template_, has_tp, has_ep, p->shape->n_dims,
                                &f->places))
        f->places = (sw_places){0}; /* SPECIAL and SKIP: whole */
    place_on(&f->places, SW_ON_TP, (sw_placement){0});
    if (p->is_cut && p->fault == UINT32_MAX)
        cut_side(p, side);
    if (c->role == SW_ROLE_MOE_EXPERT && has_ep && !is_whole)
        cut_experts(p);
    /* A row bias of a routed or shared expert enters the partial sum once: on rank 0 of tp. */
    bool is_expert = c->role == SW_ROLE_MOE_EXPERT || c->role == SW_ROLE_SHARED_EXPERT;
    f->is_rank0_only =
        is_expert && side == SW_SIDE_IN && p->axes.in_dim < 0 && has_tp && !extends && c->companion == NULL;
}

void sw_place(sw_plan *plan, sw_place_where where, const sw_place_what *what, sw_facts *out,
              uint32_t *fault_index)
{
    const sw_template *template_ = sw_template_of(where.type);
    sw_class own = *what->class_;
    placing p = {.plan = plan, .where = where, .what = what, .out = out, .fault = UINT32_MAX};

    if (template_ == NULL)
        template_ = sw_template_of(SW_BOUNDARY_WHOLE);
    p.class_ = &own;
    p.shape = what->shape;
    if (own.companion != NULL && !sw_companion_fits(own.companion, what->dtype))
        own.companion = NULL;
    settle_norm(&p, &own);
    begin_facts(&p);
    if (own.is_packed_orphan)
        complain(&p, "quant_unknown", "a packed tensor, and the config does not say how it is quantised",
                 "give quantization_config with quant_method, bits and group_size");
    else
        place_tensor(&p, template_);
    normalise(&p, &out->places);
    *fault_index = p.fault;
}
