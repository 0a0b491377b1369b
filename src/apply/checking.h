/* The inside of a check (apply/check.h): what its pieces know of each other. */
#ifndef SW_APPLY_CHECKING_H
#define SW_APPLY_CHECKING_H

#include "apply/active.h"
#include "apply/check.h"
#include "apply/trace.h"
#include "nn/net.h"

typedef struct sw_checking {
    const sw_model *model;
    const sw_plan *plan;
    sw_comm *comm;
    sw_kernel *kernel;
    const sw_check_options *options;
    sw_active active;
    const sw_group *all; /* ranks; the first has the whole net */
    bool is_first;
    sw_arena *arena;
    /* The batch of all ranks of dp, [rows, tokens]. */
    sw_sequence sequence;
    uint64_t n_rows;
    uint64_t n_tokens;
    int32_t *ids;
    int32_t *labels;
    double factor;       /* of the loss: 1 / targets that count */
    sw_trace *reference; /* of one rank; the first rank's alone */
    /* For each thing that is checked what its differences are relative to, and how far rounding reaches. */
    double *scale;
    double *bar;
    double numbers[2]; /* of one rank: loss and norm */
    uint32_t n_outputs;
    uint32_t n_gradients;
    uint32_t *order; /* gradients by the backward: behind what was run last */
    /* What is being compared. */
    sw_check_result *result;
    sw_check_mode mode;
    const sw_trace *trace; /* this rank's part */
    sw_net *net;           /* that made it */
} sw_checking;

/* ---- numbers ---- */

static inline double sw_size_of(double x)
{
    return x < 0 ? -x : x;
}

static inline bool sw_is_finite(double x)
{
    return x - x == 0;
}

/* ---- runs (check_run.c) ---- */

/* The whole net, on this rank alone. */
sw_status sw_check_run_whole(sw_checking *c, sw_dtype dtype, sw_trace **out, sw_error *err);

/*
 * This rank's part of it in the mode of `c`, whose net it becomes. *is_wrong: the plan does not run, in
 * validate mode for a placement; *err tells which. Collective.
 */
sw_status sw_check_run_part(sw_checking *c, sw_trace **out, bool *is_wrong, sw_error *err);

/* ---- one rank (check_reference.c) ---- */

/* The runs of the first rank, what they say of rounding, and that on all ranks. Collective. */
sw_status sw_check_reference(sw_checking *c, sw_error *err);

/* The order of gradients, by the outputs of a run. */
sw_status sw_check_order(sw_checking *c, const sw_trace *trace, sw_error *err);

/* ---- one thing that is checked (check_part.c) ---- */

/* This rank's elements of an output or gradient, and those that they should be. */
typedef struct sw_check_part {
    const char *fqn;
    const sw_spec *spec;      /* of an output */
    const sw_grad_list *sums; /* of a gradient */
    sw_tensor_layout layout;  /* of `whole` */
    double *whole;            /* of one rank, on all of them; NaN: padding, which is not compared */
    const double *got;        /* summed already where it is in summands */
    const double *wanted;     /* NaN as above */
    uint64_t n;
    bool has_other_extents; /* than its layout says: nothing else is known */
    bool is_member;         /* of a stack of experts: other ranks of ep have others */
} sw_check_part;

/* The i-th output, gradient; memory of the arena. Collective. */
sw_status sw_check_output(sw_check_part *out, const sw_checking *c, uint32_t i, sw_arena *arena,
                          sw_error *err);
sw_status sw_check_gradient(sw_check_part *out, const sw_checking *c, uint32_t i, sw_arena *arena,
                            sw_error *err);

/* ---- what a difference looks like (check_hint.c) ---- */

/* Hint for a part that is wrong by more than `slack`. Collective. */
sw_status sw_check_hint(const sw_checking *c, const sw_check_part *part, double slack, char *hint,
                        size_t capacity, sw_error *err);

/* Of a number that should be another one. Local. */
void sw_check_hint_number(const sw_checking *c, double got, double wanted, char *hint, size_t capacity);

#endif
