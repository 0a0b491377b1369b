/*
 * Lints of one region: what its parameters, its exit and the expert mode say must fit together. A derived
 * plan fits by construction; an override or a plan file may not, and each of these would be wrong numbers
 * without a word.
 */
#include "plan/lint_region.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/classify.h"
#include "plan/cut_conflict.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/lowering.h"
#include "plan/own_role.h"

static void complain(sw_plan *plan, const sw_spec *spec, const char *code, const char *help, const char *what)
{
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, code, spec->fqn, spec->fqn_length, help, "%s", what);
}

static bool leaves_cut_vocabulary(const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->out_src.n; i++) {
        if (spec->type == SW_BOUNDARY_LM_HEAD &&
            spec->out_src.entries[i].places.on[SW_ON_TP].kind == SW_PLACE_SHARD)
            return true;
    }
    return false;
}

/* The stored name whose tensor the boundary uses too; NULL: its own. */
static const char *tied_to(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; spec->is_tied_alias && i < plan->n_tied; i++) {
        if (sw_plan_find_user(plan, plan->tied[i].second) == spec)
            return plan->tied[i].first;
    }
    return NULL;
}

static void complain_of_whole_head(sw_plan *plan, const sw_spec *spec)
{
    const char *stored = tied_to(plan, spec);

    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "exit_mismatch", spec->fqn, spec->fqn_length,
                        "let out_src be replicate over tp, or cut the weight along its rows",
                        "the logits are declared cut over tp, but the weight%s%s%s is whole",
                        stored == NULL ? "" : " (tied to ", stored == NULL ? "" : stored,
                        stored == NULL ? "" : ")");
}

/* A sum needs summands: where nothing is cut, every rank has the whole already and the sum counts it tp
 * times. */
static void check_exit(sw_plan *plan, const sw_spec *spec)
{
    bool is_split = sw_spec_is_split(plan, spec, SW_ON_TP);

    if (spec->n_params == 0 && !spec->is_tied_alias)
        return; /* its parameters are somebody else's business: coverage says so */
    if (plan->tp > 1 && !is_split && sw_spec_partial_outputs(spec) > 0) {
        complain(plan, spec, "exit_mismatch",
                 "let out_src be replicate over tp, or cut a parameter of the region",
                 "the exit is a partial sum over tp, but nothing in the region is cut over it: it would be "
                 "counted tp "
                 "times");
    }
    if (plan->tp > 1 && !is_split && leaves_cut_vocabulary(spec))
        complain_of_whole_head(plan, spec);
    if (spec->type == SW_BOUNDARY_MOE_MLP && plan->ep_mode == SW_EP_AXIS &&
        !sw_spec_is_split(plan, spec, SW_ON_EP))
        complain(plan, spec, "exit_mismatch", "cut the experts over ep, or leave ep out of the mesh",
                 "the routed output is summed over ep, but no expert is cut over it: it would be counted ep "
                 "times");
}

/* Is an output of the computation declared whole over tp? */
static bool leaves_whole(const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->out_src.n; i++) {
        const sw_places *places = &spec->out_src.entries[i].places;
        if ((places->present & (1U << SW_ON_TP)) != 0 && places->on[SW_ON_TP].kind == SW_PLACE_REPLICATE)
            return true;
    }
    return false;
}

/* The mirror image: something is cut, and nobody puts the results together. */
static void check_unreduced(sw_plan *plan, const sw_spec *spec)
{
    bool is_region = spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP ||
                     spec->type == SW_BOUNDARY_MOE_MLP || spec->type == SW_BOUNDARY_EMBED;

    if (plan->tp <= 1 || spec->local_compute != NULL || !sw_spec_is_split(plan, spec, SW_ON_TP) ||
        !leaves_whole(spec))
        return;
    if (spec->type == SW_BOUNDARY_LM_HEAD)
        complain(
            plan, spec, "exit_mismatch", "let out_src be shard of the last dim, as the weight is cut",
            "the logits are declared whole, but the weight is cut over tp: every rank has a slice of them");
    if (is_region) {
        (void)sw_plan_fault(
            plan, plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "exit_unreduced", spec->fqn,
            spec->fqn_length, "let out_src be partial over tp, unless the region sums by itself",
            "the exit is declared whole over tp, but parameters of the region are cut over it");
    }
}

/* A norm needs all features of a token. */
static void check_features(sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; spec->type == SW_BOUNDARY_NORM && i < spec->in_dst.n; i++) {
        const sw_placement *p = &spec->in_dst.entries[i].places.on[SW_ON_TP];
        if (plan->tp > 1 && p->kind == SW_PLACE_SHARD && p->dim != 0 && p->dim != 1)
            complain(
                plan, spec, "feature_cut", "cut the tokens, or gather the features before the norm",
                "the norm's input is cut along its features: the statistics would be over a part of them");
    }
}

/* Whether a weight is cut over tp, and on which of its two sides. */
typedef enum side_cut { NOT_CUT = 0, CUT_OUT, CUT_IN, CUT_ELSEWHERE } side_cut;

static side_cut side_of(const sw_facts *f)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    const sw_placement *p = &f->places.on[SW_ON_TP];
    uint32_t dim = 0;

    if (p->kind != SW_PLACE_SHARD)
        return NOT_CUT;
    if (!sw_placement_dim(p, shape->n_dims, &dim))
        return CUT_ELSEWHERE;
    return (int)dim == f->out_dim ? CUT_OUT : (int)dim == f->in_dim ? CUT_IN : CUT_ELSEWHERE;
}

static bool is_column(sw_role role)
{
    return role == SW_ROLE_COLWISE || role == SW_ROLE_FUSED_QKV || role == SW_ROLE_FUSED_GATE_UP;
}

static void complain_of(sw_plan *plan, const sw_spec *spec, const sw_spec_param *p, const char *code,
                        const char *help, const char *what)
{
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, code, spec->fqn, spec->fqn_length, help, "'%.*s' %s",
                        (int)p->path_length, p->path, what);
}

/* The one key head of a multi-query attention is what every rank needs: whole is the same as held by all. */
static bool is_the_only_head(const sw_model *model, const sw_spec_param *p, const sw_facts *f)
{
    const sw_attributes *a = &model->config.attributes;
    bool holds_keys = f->layout == SW_LAYOUT_KV_HEADS ||
                      (p->param != UINT32_MAX && sw_own_of(model, p->param).layout == SW_LAYOUT_KV_HEADS);

    return holds_keys && a->is_set[SW_ATTR_KV_HEADS] && a->value[SW_ATTR_KV_HEADS] == 1;
}

static bool is_companion(const sw_facts *f)
{
    return f->reason != NULL && strcmp(f->reason, "companion") == 0;
}

static bool is_row(sw_role role)
{
    return role == SW_ROLE_ROWWISE;
}

/* Roles that a rule of `roles:` may give to a matrix that nothing cuts, and that say what it is for. */
static bool is_on_purpose(sw_role role)
{
    return role == SW_ROLE_MOE_GATE || role == SW_ROLE_SPECIAL;
}

static bool is_cut_role(sw_role role)
{
    return is_column(role) || is_row(role) || role == SW_ROLE_MOE_EXPERT || role == SW_ROLE_SHARED_EXPERT ||
           role == SW_ROLE_EMBED || role == SW_ROLE_LM_HEAD;
}

/*
 * The role of a weight in its region. A rule may take a matrix of the region's products for something that is
 * never cut: it stays what its name says, and is whole beside the others.
 */
static sw_role acting_role(const sw_model *model, const sw_spec *spec, const sw_spec_param *p,
                           const sw_facts *f)
{
    bool holds = is_cut_role(f->role) || is_on_purpose(f->role) || spec->local_compute != NULL;

    return holds || p->param == UINT32_MAX ? f->role : sw_own_of(model, p->param).role;
}

/* Column weights of one region are cut along their output or are whole, all of them: their products meet. */
static void check_members(sw_plan *plan, const sw_model *model, const sw_spec *spec)
{
    static const char alike[] = "cut every column weight of the region along its output, or none";
    const sw_spec_param *first = NULL;
    side_cut first_side = NOT_CUT;

    for (uint32_t i = 0; i < spec->n_params && plan->tp > 1; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if (f->shape == NULL || f->shape->n_dims < 2 || is_companion(f) ||
            !is_column(acting_role(model, spec, p, f)))
            continue;
        side_cut side = side_of(f);
        if (side == CUT_IN || side == CUT_ELSEWHERE) {
            complain_of(plan, spec, p, "members_disagree", alike,
                        "is a column weight, and is not cut along its output over tp");
            return;
        }
        if (side == NOT_CUT && is_the_only_head(model, p, f))
            continue;
        if (first == NULL) {
            first = p;
            first_side = side;
        }
        if (side == first_side)
            continue;
        (void)sw_plan_fault(
            plan, SW_SEVERITY_ERROR, "members_disagree", spec->fqn, spec->fqn_length, alike,
            "'%.*s' and '%.*s' are column weights of one region, and are not cut alike over tp",
            (int)first->path_length, first->path, (int)p->path_length, p->path);
        return;
    }
}

/* A whole row weight would take features that the cut columns before it do not give. Of one whose role says
 * so the pair tells where the exit is a partial sum (`unpaired`). */
static void check_row(sw_plan *plan, const sw_model *model, const sw_spec *spec)
{
    bool is_pair = spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP;
    bool says_pair = sw_spec_partial_outputs(spec) > 0;

    if (plan->tp <= 1 || !is_pair || spec->local_compute != NULL || !sw_spec_is_split(plan, spec, SW_ON_TP))
        return;
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if (f->shape == NULL || f->shape->n_dims < 2 || is_companion(f) || side_of(f) != NOT_CUT ||
            !is_row(acting_role(model, spec, p, f)) || (says_pair && is_row(f->role)))
            continue;
        complain_of(plan, spec, p, "members_disagree", "cut it along its input, or cut nothing in the region",
                    "is a row weight and whole, but other weights of the region are cut over tp");
        return;
    }
}

/* A side of a feed-forward matrix that meets the others of its expert, or of its block. */
static bool meets_others(const sw_spec *spec, const sw_facts *f, uint64_t *extent)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    const sw_placement *p = &f->places.on[SW_ON_TP];
    bool is_matrix = f->role == SW_ROLE_COLWISE || f->role == SW_ROLE_ROWWISE ||
                     f->role == SW_ROLE_MOE_EXPERT || f->role == SW_ROLE_SHARED_EXPERT;
    uint32_t dim = 0;

    if ((spec->type != SW_BOUNDARY_MLP && spec->type != SW_BOUNDARY_MOE_MLP) || !is_matrix ||
        f->layout != SW_LAYOUT_PLAIN || f->reason != NULL || shape == NULL || shape->n_dims < 2 ||
        p->kind != SW_PLACE_SHARD || !sw_placement_dim(p, shape->n_dims, &dim))
        return false;
    *extent = shape->dims[dim];
    return true;
}

/* Length of what is common to the matrices of one expert: "experts.3" of "experts.3.w1.weight". */
static uint32_t expert_length(const sw_spec *spec, const sw_spec_param *p)
{
    const char *experts = "experts.";
    const size_t n = strlen(experts);
    uint32_t at = (uint32_t)n;

    if (spec->type != SW_BOUNDARY_MOE_MLP || p->path_length <= n || memcmp(p->path, experts, n) != 0)
        return 0;
    while (at < p->path_length && p->path[at] >= '0' && p->path[at] <= '9')
        at++;
    return at;
}

/* Gate, up and down meet row by row: a rank must hold the same ones of each. */
static void check_rows(sw_plan *plan, const sw_spec *spec)
{
    const sw_spec_param *first = NULL;
    const sw_placement *first_cut = NULL;
    uint64_t first_extent = 0;

    for (uint32_t i = 0; i < spec->n_params && plan->tp > 1 && spec->local_compute == NULL; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        uint32_t length = expert_length(spec, p);
        uint64_t extent = 0;
        if (!meets_others(spec, f, &extent))
            continue;
        bool is_of_first = first != NULL && length == expert_length(spec, first) &&
                           memcmp(p->path, first->path, length) == 0 && extent == first_extent;
        if (!is_of_first) {
            first = p;
            first_cut = &f->places.on[SW_ON_TP];
            first_extent = extent;
        } else if (!sw_same_rows(first_cut, &f->places.on[SW_ON_TP], extent, plan->tp)) {
            (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "members_disagree", spec->fqn, spec->fqn_length,
                                "cut them in the same rows",
                                "'%.*s' and '%.*s' meet in the region, and tp cuts other rows",
                                (int)first->path_length, first->path, (int)p->path_length, p->path);
            return;
        }
    }
}

static void check_axes(sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        bool on_tp = f->places.on[SW_ON_TP].kind == SW_PLACE_SHARD;
        bool on_ep = f->places.on[SW_ON_EP].kind == SW_PLACE_SHARD;
        if (f->places.on[SW_ON_CP].kind == SW_PLACE_SHARD)
            complain_of(plan, spec, p, "cp_parameter", "cut it over tp or ep, or replicate it",
                        "is cut over cp: cp cuts the sequence, and nothing would gather a parameter");
        if (plan->ep_mode == SW_EP_TP_EXTEND && on_tp && (on_ep || f->role == SW_ROLE_MOE_EXPERT)) {
            complain_of(plan, spec, p, "expert_tp",
                        "leave the experts replicate over tp, or use an explicit ep axis",
                        on_ep ? "is cut over ep and over tp, but the derived ep group contains the tp ranks"
                              : "is cut over tp, but the derived ep group contains the tp ranks");
        }
    }
}

/* Rows or columns of a plain matrix, or of a stack of them, along one of its sides; 0 where that says nothing
 * (packed, a vector). */
static uint64_t side_extent(const sw_facts *f, int dim)
{
    const sw_shape *shape = f->view != NULL ? f->view : f->shape;
    uint32_t n_dims = f->role == SW_ROLE_MOE_EXPERT ? 3 : 2;

    if (shape == NULL || shape->n_dims < 2 || shape->n_dims > n_dims || f->reason != NULL || dim < 0)
        return 0;
    return shape->dims[dim];
}

/* The model's parameter that this one is, or the first of those that are stacked in it; UINT32_MAX: none. */
static uint32_t source_of(const sw_spec *spec, const sw_spec_param *p)
{
    for (uint32_t i = 0; i < spec->n_stacks && p->param == UINT32_MAX; i++) {
        const sw_ep_stack *stack = &spec->stacks[i];
        if (strlen(stack->path) == p->path_length && memcmp(stack->path, p->path, p->path_length) == 0)
            return stack->first_param;
    }
    return p->param;
}

/* The width between the two products of a feed-forward, as this weight has it, and on which side; 0 where it
 * does not tell. */
static uint64_t inner_width(const sw_plan *plan, const sw_spec *spec, const sw_spec_param *p, sw_side *out)
{
    uint32_t source = source_of(spec, p);
    const sw_facts *f = &plan->facts[p->facts];
    uint64_t parts = f->parts > 0 ? f->parts : 1;
    sw_side side = SW_SIDE_NONE;

    if (f->layout == SW_LAYOUT_EXPLICIT || f->layout == SW_LAYOUT_UNKNOWN ||
        (f->role == SW_ROLE_COLWISE && f->layout != SW_LAYOUT_PLAIN))
        return 0; /* an override says how it is stored, not what its parts are for */
    if (f->role == SW_ROLE_COLWISE || f->role == SW_ROLE_FUSED_GATE_UP)
        side = SW_SIDE_OUT;
    else if (f->role == SW_ROLE_ROWWISE)
        side = SW_SIDE_IN;
    else if (f->role == SW_ROLE_MOE_EXPERT && plan->model != NULL && source != UINT32_MAX)
        side = sw_class_of(plan, source)->side;
    *out = side;
    return side == SW_SIDE_OUT  ? side_extent(f, f->out_dim) / parts
           : side == SW_SIDE_IN ? side_extent(f, f->in_dim)
                                : 0;
}

/* What a feed-forward's columns make its rows must take, and those of each expert. Two rows do not meet. */
static void check_extents(sw_plan *plan, const sw_spec *spec)
{
    const sw_spec_param *first = NULL;
    uint64_t width = 0;
    sw_side first_side = SW_SIDE_NONE;
    bool is_block = (spec->type == SW_BOUNDARY_MLP || spec->type == SW_BOUNDARY_MOE_MLP) && !spec->is_tower;

    for (uint32_t i = 0; i < spec->n_params && is_block; i++) {
        const sw_spec_param *p = &spec->params[i];
        bool is_expert = plan->facts[p->facts].role == SW_ROLE_MOE_EXPERT;
        sw_side side = SW_SIDE_NONE;
        uint64_t extent =
            is_expert == (spec->type == SW_BOUNDARY_MOE_MLP) ? inner_width(plan, spec, p, &side) : 0;
        if (extent == 0)
            continue;
        if (first == NULL) {
            first = p;
            width = extent;
            first_side = side;
        }
        if (extent == width || (side == SW_SIDE_IN && first_side == SW_SIDE_IN))
            continue;
        (void)sw_plan_fault(
            plan, SW_SEVERITY_ERROR, "extents_disagree", spec->fqn, spec->fqn_length,
            "check that all files are of one checkpoint",
            "'%.*s' and '%.*s' meet in the region, but one has %" PRIu64 " and the other %" PRIu64 " there",
            (int)first->path_length, first->path, (int)p->path_length, p->path, width, extent);
        return;
    }
}

static bool has_columns(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (is_column(plan->facts[spec->params[i].facts].role))
            return true;
    }
    return false;
}

/* In an attention, heads are what projections make and what one output takes: a query or key weight cut
 * along its input would add up parts of products that nobody sums. So would the first of two linears, such as
 * a projector's, that are both taken for an output. */
static void check_one_output(sw_plan *plan, const sw_spec *spec)
{
    const sw_spec_param *first = NULL;
    bool has_one =
        spec->type == SW_BOUNDARY_ATTENTION || (spec->type == SW_BOUNDARY_MLP && !has_columns(plan, spec));

    for (uint32_t i = 0; i < spec->n_params && plan->tp > 1 && has_one; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if (f->role != SW_ROLE_ROWWISE || f->shape == NULL || f->shape->n_dims < 2 || is_companion(f) ||
            side_of(f) != CUT_IN)
            continue;
        if (first == NULL) {
            first = p;
            continue;
        }
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "members_disagree", spec->fqn, spec->fqn_length,
                            "let one weight be row-parallel, the output projection; the others are colwise",
                            "'%.*s' and '%.*s' are both cut along their input over tp",
                            (int)first->path_length, first->path, (int)p->path_length, p->path);
        return;
    }
}

void sw_lint_region(sw_plan *plan, const sw_model *model, const sw_spec *spec)
{
    if (spec->has_fault)
        return; /* what could not be placed is whole for want of a cut: only the cause is worth a finding */
    check_exit(plan, spec);
    check_unreduced(plan, spec);
    check_features(plan, spec);
    check_extents(plan, spec);
    check_members(plan, model, spec);
    check_row(plan, model, spec);
    check_one_output(plan, spec);
    check_rows(plan, spec);
    check_axes(plan, spec);
}
