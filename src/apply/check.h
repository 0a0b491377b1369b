/*
 * Check: does a plan on a mesh compute what one rank computes? One rank runs the whole net, all ranks run its
 * parts in validate mode and in production, over the same random tokens. Every boundary's output, the loss,
 * every parameter's gradient and their norm are compared, in the order of the work.
 *
 * What differs is rounding or a bug, and how far rounding reaches is measured: one rank runs in F32 and in
 * F64, and how far these two are apart at a boundary, in units of F32's precision, is how much the model
 * makes of an error of one unit there (docs/reference/check.md).
 */
#ifndef SW_APPLY_CHECK_H
#define SW_APPLY_CHECK_H

#include "apply/bind.h"
#include "parallel/sequence.h"
#include "shardwright/comm.h"

/* The parameters of a net that has memory: of the whole one, or of this rank's part (apply/applied.h). */
typedef sw_status sw_check_fill(void *context, const sw_net *net, sw_error *err);

/* Odd, so that no axis of even size divides a sequence. */
enum { SW_CHECK_USUAL_TOKENS = 33 };

typedef struct sw_check_options {
    sw_dtype dtype;    /* of the runs that are compared: F32 or F64 */
    uint64_t n_rows;   /* sequences of each rank of dp */
    uint64_t n_tokens; /* of a sequence; 0: SW_CHECK_USUAL_TOKENS, fewer if the model has fewer positions */
    uint64_t seed;     /* of the tokens */
    sw_cp_form form;   /* of attention over cp, and how its sequences are cut */
    sw_sequence_order order;
    bool skips_validate; /* production alone: numbers of a plan that validate mode refuses */
    sw_check_fill *fill; /* the same numbers for each net */
    void *context;
} sw_check_options;

typedef enum sw_check_mode { SW_CHECK_VALIDATE = 0, SW_CHECK_PRODUCTION, SW_CHECK_MODE_COUNT_ } sw_check_mode;

typedef enum sw_checked_kind {
    SW_CHECKED_OUTPUT = 0, /* of a boundary */
    SW_CHECKED_LOSS,
    SW_CHECKED_GRADIENT, /* of a parameter */
    SW_CHECKED_NORM,     /* of all gradients */
    SW_CHECKED_KIND_COUNT_
} sw_checked_kind;

/* "output", "loss", "gradient", "gradient norm"; "validate", "production"; NULL when out of range. */
const char *sw_checked_kind_name(sw_checked_kind kind);
const char *sw_check_mode_name(sw_check_mode mode);

/* One thing that was compared. Differences are relative to its largest number. */
typedef struct sw_checked {
    sw_checked_kind kind;
    const char *fqn;                         /* of the module or parameter; "" of loss and norm */
    double bar;                              /* as far as rounding reaches */
    double difference[SW_CHECK_MODE_COUNT_]; /* infinite: no number on some rank; below 0: not run */
} sw_checked;

typedef enum sw_check_verdict {
    SW_CHECK_EQUAL = 0, /* the same bits */
    SW_CHECK_ROUNDING,
    SW_CHECK_BUG,
    SW_CHECK_VERDICT_COUNT_
} sw_check_verdict;

/* "equal", "rounding", "bug" */
const char *sw_check_verdict_name(sw_check_verdict verdict);

/* The same on all ranks. */
typedef struct sw_check_result {
    sw_arena *arena; /* of everything here */
    sw_checked *checked;
    uint32_t n_checked; /* 0: validate mode has found a placement that is wrong */
    sw_check_verdict verdict;
    /* What differs first, and in which mode; of a bug the first beyond rounding. NULL: nothing, a placement.
     */
    const sw_checked *first;
    sw_check_mode mode;
    double loss; /* of one rank */
    uint64_t n_rows;
    uint64_t n_tokens;
    char what[512]; /* of a bug, one line */
    char hint[256]; /* what it looks like */
} sw_check_result;

/*
 * Check the plan of a model, which are borrowed while it runs. A plan that is wrong is a result, not a
 * failure. SW_E_PLAN: it cannot be applied; SW_E_LIMIT: longer sequences than the model has positions;
 * SW_E_FORMAT: numbers that are not finite on one rank already; SW_E_NO_MEMORY; what `fill` fails with.
 * Rank 0 has room for the whole model in F64, with gradients. Collective over `comm`.
 */
sw_status sw_check(sw_check_result **out, const sw_model *model, const sw_plan *plan, sw_comm *comm,
                   sw_kernel *kernel, const sw_check_options *options, sw_error *err);
void sw_check_result_destroy(sw_check_result *result); /* NULL is fine */

#endif
