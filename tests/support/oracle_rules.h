/*
 * The differences from the reference planner that are meant: the rows of docs/reference/differences.md, in
 * its order, each with the rule that tells it and says whether ours has the right form.
 */
#ifndef SW_TEST_ORACLE_RULES_H
#define SW_TEST_ORACLE_RULES_H

#include "oracle.h"

typedef enum oracle_verdict {
    ORACLE_NOT_MINE = 0, /* the difference is about something else */
    ORACLE_RIGHT,
    ORACLE_WRONG /* it is what the row is about, but ours is not as it must be */
} oracle_verdict;

typedef struct oracle_rule {
    const char *code; /* as on the page */
    oracle_verdict (*rule)(const oracle_difference *);
    const char *what;
} oracle_rule;

/* The first rule that a difference belongs to judges it. */
extern const oracle_rule oracle_rules[];
extern const size_t oracle_n_rules;

#endif
