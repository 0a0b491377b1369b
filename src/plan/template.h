/*
 * Templates: what each semantic type of boundary declares for its inputs, outputs and parameters (seed
 * document default_templates, plus ours for what the seed has no template for). Pure data and pure functions
 * of it: a plan copies from here and never points into these tables.
 */
#ifndef SW_PLAN_TEMPLATE_H
#define SW_PLAN_TEMPLATE_H

#include "plan/plan_data.h"

/* A placement in a template: kind and dim; the axis may be undeclared. */
typedef struct sw_template_place {
    uint8_t is_declared;
    uint8_t kind; /* sw_placement_kind */
    int8_t dim;
} sw_template_place;

/* One side of a contract, in the seed's order of axes. */
typedef struct sw_template_side {
    sw_template_place tp, cp, ep;
} sw_template_side;

typedef struct sw_template_contract {
    sw_template_side in_src, in_dst, out_src, out_dst;
} sw_template_contract;

typedef struct sw_template {
    sw_boundary_type type;
    const char *input; /* name of the single input; NULL: no contract at all */
    sw_template_place colwise, rowwise, norm, expert;
    sw_template_contract sp;   /* sequence parallel */
    sw_template_contract nosp; /* without */
    int8_t region_dispatch;    /* -1 undeclared, 0, 1 */
    bool needs_cp_attn;
    bool is_split; /* its computation is cut over tp: what enters whole is used in parts */
} sw_template;

/* The template of a type; NULL for NONE and CUSTOM. */
const sw_template *sw_template_of(sw_boundary_type type);

/*
 * The seed's role → placement table: 13 roles, aware of the number of dims of an expert weight. `path` is
 * relative to the boundary (its words decide between column and row for experts). Returns false for SPECIAL
 * and SKIP, which get no entry. Keys appear exactly as in the seed: a dense role without tp has no tp key, an
 * expert without tp has an explicit tp R, an expert without ep has no ep key.
 */
bool sw_template_place_role(const char *path, sw_role role, const sw_template *template_, bool has_tp,
                            bool has_ep, uint32_t n_dims, sw_places *out);

/*
 * The contract of a template for a plan: SP or not, with the seed's special cases (lm_head: cp and loss
 * parallel; embed under cp). Everything is copied into the plan's arena, with only the plan's active axes.
 */
sw_status sw_template_contract_of(sw_plan *plan, const sw_template *template_, bool sequence_parallel,
                                  sw_spec *spec, sw_error *err);

#endif
