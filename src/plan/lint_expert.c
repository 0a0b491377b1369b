/*
 * The weights of a block's experts meet in its products. One that stands whole where the others are cut over
 * ep would be another rank's experts; one whole beside cut ones over tp, rows that nobody has.
 */
#include "plan/lint_expert.h"

#include <string.h>

#include "plan/fault.h"
#include "plan/own_role.h"

/* Which axis, of which role, and whether vectors follow as well. */
typedef struct alike {
    int axis;
    sw_role role;
    bool only_matrices;
} alike;

static bool is_companion(const sw_facts *f)
{
    return f->reason != NULL && strcmp(f->reason, "companion") == 0;
}

static bool is_matrix(const sw_facts *f)
{
    return f->out_dim >= 0 && f->in_dim >= 0;
}

/* By what the plan says it is, or by its name: a rule of `roles:` does not make an expert's matrix another
 * thing, unless it is the router. */
static bool has_role(const sw_model *model, const sw_spec_param *p, const sw_facts *f, sw_role role)
{
    bool holds = f->role == SW_ROLE_MOE_EXPERT || f->role == SW_ROLE_SHARED_EXPERT ||
                 f->role == SW_ROLE_MOE_GATE || !is_matrix(f);

    return holds || p->param == UINT32_MAX ? f->role == role : sw_own_of(model, p->param).role == role;
}

static bool is_member(const sw_model *model, const sw_spec_param *p, const sw_facts *f, const alike *what)
{
    return f->shape != NULL && !is_companion(f) && (is_matrix(f) || !what->only_matrices) &&
           has_role(model, p, f, what->role);
}

static void check_alike(sw_plan *plan, const sw_model *model, const sw_spec *spec, const alike *what)
{
    const sw_spec_param *first = NULL;
    sw_placement_kind kind = SW_PLACE_REPLICATE;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if (!is_member(model, p, f, what))
            continue;
        if (first == NULL) {
            first = p;
            kind = f->places.on[what->axis].kind;
        }
        if (f->places.on[what->axis].kind == kind)
            continue;
        const char *axis = what->axis == SW_ON_EP ? "ep" : "tp";
        const sw_spec_param *cut = kind == SW_PLACE_SHARD ? first : p;
        const sw_spec_param *whole = kind == SW_PLACE_SHARD ? p : first;
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "members_disagree", spec->fqn, spec->fqn_length,
                            "cut all weights of the block's experts over the axis, or none",
                            "'%.*s' and '%.*s' meet in the experts, and only the first is cut over %s",
                            (int)cut->path_length, cut->path, (int)whole->path_length, whole->path, axis);
        return;
    }
}

void sw_lint_experts(sw_plan *plan, const sw_model *model, const sw_spec *spec)
{
    static const alike rules[] = {
        {SW_ON_EP, SW_ROLE_MOE_EXPERT,    false},
        {SW_ON_TP, SW_ROLE_MOE_EXPERT,    true },
        {SW_ON_TP, SW_ROLE_SHARED_EXPERT, true },
    };
    bool is_block = spec->type == SW_BOUNDARY_MOE_MLP || spec->type == SW_BOUNDARY_MLP;

    for (size_t i = 0; is_block && !spec->has_fault && i < sizeof rules / sizeof *rules; i++) {
        uint32_t size = rules[i].axis == SW_ON_EP ? plan->ep : plan->tp;
        if (size > 1 && spec->local_compute == NULL)
            check_alike(plan, model, spec, &rules[i]);
    }
}
