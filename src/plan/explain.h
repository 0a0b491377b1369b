/*
 * The explanation while it is made (design: "Explain"): what was asked for, which boundaries show, and which
 * of them are shown as one. Nothing here depends on the model, so that a loaded plan explains itself as a
 * fresh one does.
 */
#ifndef SW_PLAN_EXPLAIN_H
#define SW_PLAN_EXPLAIN_H

#include "plan/cost.h"
#include "plan/explain_text.h"

/* Boundaries that differ by their layer number only, shown as one. */
typedef struct sw_explain_group {
    uint32_t first; /* spec; sw_explain.next leads to the others */
    uint32_t last;
    uint32_t n;
} sw_explain_group;

typedef struct sw_explain {
    const sw_plan *plan;
    sw_explain_options options;
    sw_arena *arena; /* freed with the explanation */
    sw_buffer *out;
    uint64_t hidden;
    uint32_t rank; /* whose local extents are shown */
    uint32_t stage;
    sw_cost_coord at;

    bool *is_shown;        /* per spec */
    const uint8_t **shown; /* per spec: a byte per parameter; NULL: all of them */
    uint32_t *next;        /* per spec: the next one of its group; UINT32_MAX ends */
    sw_explain_group *groups;
    uint32_t n_groups;
    uint32_t groups_capacity;
} sw_explain;

/* ---- explain_select.c ---- */

/* Fill is_shown and shown. SW_E_ARGUMENT when the pattern matches nothing; the nearest name is in the help.
 */
sw_status sw_explain_select(sw_explain *e, sw_error *err);

/* ---- explain_json.c ---- */

/* What `pattern` asks for, in the plan file's own form; NULL: the plan file. Failures as above. */
sw_status sw_explain_json(const sw_plan *plan, const char *pattern, sw_buffer *out, sw_error *err);

/* ---- explain_fold.c ---- */

/* Fill groups and next. */
sw_status sw_explain_fold(sw_explain *e, sw_error *err);

/* Parameters of a spec that are shown as one: equal but for an expert's number. */
typedef struct sw_explain_row {
    uint32_t first; /* in the spec's params */
    uint32_t last;
    uint32_t n;
} sw_explain_row;

/* Rows of a spec in order; *next as in sw_explain, per parameter. Both in the explanation's arena. */
sw_status sw_explain_rows(const sw_explain *e, const sw_spec *spec, sw_explain_row **rows, uint32_t *n_rows,
                          uint32_t **next, sw_error *err);

/* "model.layers.{0..15}.self_attn", in the arena; NULL without memory. */
const char *sw_explain_group_name(const sw_explain *e, const sw_explain_group *group);
const char *sw_explain_row_name(const sw_explain *e, const sw_spec *spec, const sw_explain_row *row,
                                const uint32_t *next);

/* ---- explain_boundary.c ---- */

sw_status sw_explain_boundary(const sw_explain *e, const sw_explain_group *group, sw_error *err);

/* ---- explain_param.c ---- */

/* The table of a boundary's parameters. */
sw_status sw_explain_params(const sw_explain *e, const sw_spec *spec, sw_error *err);

/* "tp S(0), ep S(0)", "R" when no axis cuts it. */
const char *sw_explain_placement(const sw_explain *e, const sw_facts *facts);

/* "[2048,2048]". */
const char *sw_explain_shape(const sw_explain *e, const uint64_t *dims, uint32_t n_dims);

/* ---- explain_totals.c ---- */

/* What a rank holds, what a step moves, the largest whole tensors. */
sw_status sw_explain_totals(const sw_explain *e, sw_error *err);

/* Gradient sums of what is shown, each with its reason in words. */
void sw_explain_gradients(const sw_explain *e);

#endif
