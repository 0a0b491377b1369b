/*
 * The templates of the seed document default_templates, row by row, and its derivation of placements and
 * contracts.
 *
 * Rules behind the table: cp never cuts a parameter; input activations are S(1) over cp whether SP is on or
 * off and cp is an identity at every boundary but the router's (keys and values are gathered inside
 * attention); everything but expert weights is R over ep.
 */
#include "plan/template.h"

#include <string.h>

#include "base/status.h"
#include "plan/role.h"

// clang-format off
#define PR    { 1, SW_PLACE_REPLICATE, 0 }
#define PP    { 1, SW_PLACE_PARTIAL, 0 }
#define PS(d) { 1, SW_PLACE_SHARD, (d) }
#define NO    { 0, 0, 0 }
#define ON(tp, cp) { tp, cp, PR } /* the seed's _hid and _out: ep defaults to R */
#define COLUMN PS(0)
#define ROW    PS(1)

static const sw_template templates[] = {
    /* attention: q, k, v by columns, o by rows; cp stays S(1): keys and values are gathered inside */
    { SW_BOUNDARY_ATTENTION, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = -1, .needs_cp_attn = true, .is_split = true },
    { SW_BOUNDARY_MLP, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = -1, .is_split = true },
    { SW_BOUNDARY_NORM, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PS(1), PS(1)), ON(PS(1), PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = -1 },
    /* embed: vocabulary rows, every rank contributes the tokens that it holds */
    { SW_BOUNDARY_EMBED, "input", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PR, PS(1)), ON(PR, PS(1)), ON(PP, PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR, PS(1)), ON(PR, PS(1)), ON(PP, PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = -1 },
    /* lm_head: out_dst is replaced by the choice of loss parallel, cp by whether it is active */
    { SW_BOUNDARY_LM_HEAD, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PR, PS(1)), ON(PS(-1), PS(1)), ON(PS(-1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR, PS(1)), ON(PS(-1), PS(1)), ON(PR,     PS(1)) },
      .region_dispatch = -1, .is_split = true },
    /* moe_gate: a router that stands alone */
    { SW_BOUNDARY_MOE_GATE, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PR, PR), ON(PR, PR), { PR, PR, PS(0) } },
      .nosp = { ON(PR,    PS(1)), ON(PR, PR), ON(PR, PR), { PR, PR, PS(0) } },
      .region_dispatch = -1 },
    { SW_BOUNDARY_MOE_MLP, "x_BLD", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PP, PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = 0, .is_split = true },

    /* ---- ours ---- */
    /* pointwise: whole parameters that work on the tokens that are there, like a norm */
    { SW_BOUNDARY_POINTWISE, "hidden_states", COLUMN, ROW, PR, PS(0),
      .sp   = { ON(PS(1), PS(1)), ON(PS(1), PS(1)), ON(PS(1), PS(1)), ON(PS(1), PS(1)) },
      .nosp = { ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PR,    PS(1)), ON(PR,    PS(1)) },
      .region_dispatch = -1 },
    /* mixer: a recurrence over the sequence, so it is gathered, run whole on every rank, and cut again */
    { SW_BOUNDARY_MIXER, "hidden_states", PR, PR, PR, PS(0),
      .sp   = { ON(PS(1), PR), ON(PR, PR), ON(PR, PR), ON(PS(1), PR) },
      .nosp = { ON(PR,    PR), ON(PR, PR), ON(PR, PR), ON(PR,    PR) },
      .region_dispatch = -1 },
    { SW_BOUNDARY_WHOLE, NULL, PR, PR, PR, PS(0), .region_dispatch = -1 },
};

static const char *const type_names[] = {
    [SW_BOUNDARY_NONE] = "none",
    [SW_BOUNDARY_ATTENTION] = "attention",
    [SW_BOUNDARY_MLP] = "mlp",
    [SW_BOUNDARY_NORM] = "norm",
    [SW_BOUNDARY_EMBED] = "embed",
    [SW_BOUNDARY_LM_HEAD] = "lm_head",
    [SW_BOUNDARY_MOE_GATE] = "moe_gate",
    [SW_BOUNDARY_MOE_MLP] = "moe_mlp",
    [SW_BOUNDARY_POINTWISE] = "pointwise",
    [SW_BOUNDARY_MIXER] = "mixer",
    [SW_BOUNDARY_WHOLE] = "whole",
    [SW_BOUNDARY_CUSTOM] = "custom",
};
// clang-format on

_Static_assert(SW_COUNT(type_names) == SW_BOUNDARY_COUNT_, "a name for every boundary type");

const char *sw_boundary_type_name(sw_boundary_type type)
{
    return (unsigned)type < SW_BOUNDARY_COUNT_ ? type_names[type] : NULL;
}

const sw_template *sw_template_of(sw_boundary_type type)
{
    for (size_t i = 0; i < SW_COUNT(templates); i++) {
        if (templates[i].type == type)
            return &templates[i];
    }
    return NULL;
}

static void put(sw_places *places, int axis, sw_template_place place)
{
    if (!place.is_declared)
        return;
    places->present |= (uint8_t)(1U << axis);
    places->on[axis] = (sw_placement){.kind = (sw_placement_kind)place.kind, .dim = place.dim};
}

static const sw_template_place replicate = PR;

/* _moe_expert_tp_placement: in a batched weight [E, out, in] dim 0 belongs to ep, so tp moves up by one. */
static sw_template_place expert_tp(const char *path, const sw_template *template_, uint32_t n_dims)
{
    static const sw_template_place out_of_3d = PS(1);
    static const sw_template_place in_of_3d = PS(2);
    bool is_row = sw_role_is_row_like(path);

    if (n_dims >= 3)
        return is_row ? in_of_3d : out_of_3d;
    return is_row ? template_->rowwise : template_->colwise;
}

bool sw_template_place_role(const char *path, sw_role role, const sw_template *template_, bool has_tp,
                            bool has_ep, uint32_t n_dims, sw_places *out)
{
    sw_template_place tp = NO;
    sw_template_place ep = PR;

    *out = (sw_places){0};
    switch (role) {
    case SW_ROLE_COLWISE:
    case SW_ROLE_EMBED:
    case SW_ROLE_LM_HEAD:
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
        tp = template_->colwise;
        break;
    case SW_ROLE_ROWWISE:
        tp = template_->rowwise;
        break;
    case SW_ROLE_NORM:
    case SW_ROLE_MOE_GATE:
        tp = template_->norm;
        break;
    case SW_ROLE_MOE_EXPERT:
        put(out, SW_ON_TP, has_tp ? expert_tp(path, template_, n_dims) : replicate);
        put(out, SW_ON_CP, replicate);
        if (has_ep)
            put(out, SW_ON_EP, template_->expert);
        return true;
    case SW_ROLE_SHARED_EXPERT:
        tp = sw_role_is_row_like(path) ? template_->rowwise : template_->colwise;
        break;
    case SW_ROLE_BIAS:
    case SW_ROLE_REPLICATED:
        put(out, SW_ON_TP, replicate); /* present even without tp */
        break;
    case SW_ROLE_SPECIAL:
    case SW_ROLE_SKIP:
    case SW_ROLE_COUNT_:
        return false;
    }
    if (has_tp)
        put(out, SW_ON_TP, tp);
    put(out, SW_ON_CP, replicate);
    put(out, SW_ON_EP, ep);
    return true;
}

/* ---- contracts ---- */

static sw_places places_of(const sw_plan *plan, const sw_template_side *side)
{
    sw_places places = {0};

    if (plan->is_active[SW_ON_TP])
        put(&places, SW_ON_TP, side->tp);
    if (plan->is_active[SW_ON_CP])
        put(&places, SW_ON_CP, side->cp);
    /* Activations know ep only as an axis of the mesh: a derived ep group is inside the dense region. */
    if (plan->is_active[SW_ON_EP] && plan->ep_mode == SW_EP_AXIS)
        put(&places, SW_ON_EP, side->ep);
    return places;
}

static sw_status single(sw_plan *plan, sw_io *io, const char *name, const sw_template_side *side,
                        sw_error *err)
{
    io->entries = sw_arena_zero(plan->arena, 1, sizeof *io->entries);
    if (io->entries == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a contract");
    io->is_declared = true;
    io->n = 1;
    io->entries[0] = (sw_io_entry){name, places_of(plan, side)};
    return SW_OK;
}

/* Special cases of the seed's _build_spec_from_template. */
static sw_template_contract adapt(const sw_plan *plan, const sw_template *template_, bool sequence_parallel)
{
    static const sw_template_place whole = PR;
    static const sw_template_place sequence = PS(1);
    static const sw_template_place vocabulary = PS(-1);
    sw_template_contract contract = sequence_parallel ? template_->sp : template_->nosp;

    if (template_->type == SW_BOUNDARY_LM_HEAD) {
        sw_template_place cp = plan->is_active[SW_ON_CP] ? sequence : whole;
        contract.in_src.cp = cp;
        contract.in_dst.cp = cp;
        contract.out_src = (sw_template_side){vocabulary, cp, whole};
        contract.out_dst = (sw_template_side){plan->loss_parallel ? vocabulary : whole, cp, whole};
    }
    /* The data pipeline has cut the ids over cp already: a boundary that cut them again would lose tokens. */
    if (template_->type == SW_BOUNDARY_EMBED && plan->is_active[SW_ON_CP]) {
        contract.in_src = (sw_template_side){whole, sequence, whole};
        contract.in_dst = contract.in_src;
        contract.out_src = (sw_template_side)ON(PP, PS(1));
    }
    return contract;
}

sw_status sw_template_contract_of(sw_plan *plan, const sw_template *template_, bool sequence_parallel,
                                  sw_spec *spec, sw_error *err)
{
    spec->region_dispatch = template_->region_dispatch;
    spec->needs_cp_attn = template_->needs_cp_attn;
    if (template_->input == NULL)
        return SW_OK;

    sw_template_contract contract = adapt(plan, template_, sequence_parallel);
    SW_TRY(single(plan, &spec->in_src, template_->input, &contract.in_src, err));
    SW_TRY(single(plan, &spec->in_dst, template_->input, &contract.in_dst, err));
    SW_TRY(single(plan, &spec->out_src, "output", &contract.out_src, err));
    return single(plan, &spec->out_dst, "output", &contract.out_dst, err);
}
