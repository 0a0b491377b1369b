/*
 * Answers of the reference planner ($SW_SHARED/oracle): one JSON file for each model and mesh, compared with
 * a plan of ours. The comparison knows nothing of which differences are meant: it reports every one, a field
 * at a time, and the caller judges. An axis that an answer leaves out is R there; names folded as {0-7} stand
 * for all of them.
 */
#ifndef SW_TEST_ORACLE_H
#define SW_TEST_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/plan_data.h"

/* What two plans can differ in. */
typedef enum oracle_field {
    ORACLE_OUTCOME = 0, /* one of them is an error: codes of the faults, or "ok" */
    ORACLE_ROLE,        /* of a parameter of the file */
    ORACLE_BOUNDARY,    /* its type; "-" where there is no such boundary */
    ORACLE_OWNER,       /* the boundary that holds a parameter; "-" where none does */
    ORACLE_PLACEMENT,   /* of a parameter that both hold */
    ORACLE_IN_SRC,
    ORACLE_IN_DST,
    ORACLE_OUT_SRC,
    ORACLE_OUT_DST,
    ORACLE_LOWER_IN,
    ORACLE_LOWER_OUT,
    ORACLE_BACKWARD, /* a row that only the backward pass has: not in the reference's plans at all */
    ORACLE_CP_ATTN,
    ORACLE_REGION,
    ORACLE_EP_SIZE,
    ORACLE_EP_STACK,
    ORACLE_DEFERRED,
    ORACLE_TP_LOCAL,
    ORACLE_TERMINAL,
    ORACLE_TIED,
    ORACLE_SPECIAL,
    ORACLE_FIELD_COUNT_
} oracle_field;

const char *oracle_field_name(oracle_field field);

/* One answer. */
typedef struct oracle_answer oracle_answer;

/* What the file says of the mesh and the switches. */
typedef struct oracle_mesh {
    const char *name; /* "tp2cp2-sp" */
    char axes[64];    /* for sw_mesh_create() */
    uint32_t ep;      /* derived; 0: none, or an axis */
    bool sequence_parallel;
    bool loss_parallel;
} oracle_mesh;

/* One difference. Texts are borrowed and good during the call only. */
typedef struct oracle_difference {
    oracle_field field;
    const char *model; /* its name */
    const oracle_mesh *mesh;
    bool is_planned_there; /* the reference's outcome is "ok" */
    const char *fqn;       /* boundary, or parameter for a role, an owner and a placement */
    const char *expected;  /* the reference's */
    const char *found;     /* ours */
    const sw_model *source;
    const sw_plan *plan; /* ours; NULL when it was refused */
    const sw_report *report;
    const sw_spec *spec;   /* of ours: the boundary, or the one that holds the parameter; NULL: none */
    const sw_facts *facts; /* of ours, for a parameter; NULL: none */
} oracle_difference;

typedef void oracle_judge(void *context, const oracle_difference *difference);

/* NULL when the file is absent or is no answer; `why` then says so. */
oracle_answer *oracle_open(const char *path, char *why, size_t capacity);
void oracle_close(oracle_answer *answer);
const oracle_mesh *oracle_mesh_of(const oracle_answer *answer);
bool oracle_is_planned(const oracle_answer *answer);

/*
 * Compare. `plan` is NULL when ours was refused; `report` then has the faults. Returns the number of fields
 * that were looked at, 0 without memory.
 */
size_t oracle_compare(const oracle_answer *answer, const sw_model *model, const sw_plan *plan,
                      const sw_report *report, oracle_judge *judge, void *context);

#endif
