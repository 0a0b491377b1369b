/*
 * Tiny models for planner tests: a config and a list of parameters as text, written into a temporary folder,
 * opened, planned on a mesh, and asked about. What a question expects is text too, so that a failure prints
 * what was found beside what was wanted. Single quotes in a config stand for double ones; a parameter is a
 * line "NAME DTYPE AxB".
 */
#ifndef SW_TEST_TINY_MODEL_H
#define SW_TEST_TINY_MODEL_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdbool.h>

#include "plan/plan_data.h"

/* What is planned. Zero in a field means the default. */
typedef struct tiny_case {
    const char *config;    /* members of config.json without the outer braces */
    const char *params;    /* lines; NULL: names and shapes come from the family's table */
    const char *mesh;      /* "tp=2" */
    uint32_t ep;           /* a derived expert axis */
    const char *overrides; /* YAML; NULL: none */
    bool no_sp;
    bool loss_parallel;
    bool allow_uncovered;
    bool strict;
} tiny_case;

/* A tiny model with its plan, or with the reasons why there is none. */
typedef struct tiny {
    sw_model *model;
    sw_mesh *mesh;
    sw_overrides *overrides;
    sw_report *report;
    sw_plan *plan; /* NULL: refused */
    sw_status status;
    sw_error err;
} tiny;

/* Open a folder with this config and these parameters. Fails the test when it cannot be read. */
sw_model *tiny_open(const char *config, const char *params);

/* Plan; the test fails unless there is a plan, or, for tiny_refuse(), unless there is none (SW_E_PLAN). */
tiny tiny_plan(const tiny_case *what);
tiny tiny_refuse(const tiny_case *what);

/* Plan, whatever the outcome: status and err say. */
tiny tiny_try(const tiny_case *what);

/* The same with the fields of the case as arguments: TINY_PLAN(.config = LLAMA, .mesh = "tp=2"). */
#define TINY_PLAN(...)   tiny_plan(&(const tiny_case){__VA_ARGS__})
#define TINY_REFUSE(...) tiny_refuse(&(const tiny_case){__VA_ARGS__})
#define TINY_TRY(...)    tiny_try(&(const tiny_case){__VA_ARGS__})

/* Is there a finding of this code? */
bool tiny_has(const tiny *t, const char *code);

/* Free everything. */
void tiny_drop(tiny *t);

/* The boundary of this FQN; fails the test when there is none. */
const sw_spec *tiny_spec(const tiny *t, const char *fqn);

/* What the plan says of a parameter by its full name; fails the test when no boundary holds it. */
const sw_facts *tiny_facts(const tiny *t, const char *fqn);

/* The FQN of the boundary that holds a parameter. */
const char *tiny_owner(const tiny *t, const char *fqn);

/* ---- expectations; `fqn` is a parameter's full name unless said ---- */

/* Role in words ("colwise"). */
void tiny_role(const tiny *t, const char *fqn, const char *role);

/* Placements as in a plan file: tiny_tp(t, name, "S(0;seg=32+8+8)"). An axis that is not listed is "-". */
void tiny_tp(const tiny *t, const char *fqn, const char *placement);
void tiny_ep(const tiny *t, const char *fqn, const char *placement);
void tiny_cp(const tiny *t, const char *fqn, const char *placement);

/* Rows of the cut dim that a rank of tp (of ep) holds, in order: "0:16 32:36 40:44"; "" none, "all" when
 * whole. */
void tiny_rows(const tiny *t, const char *fqn, uint32_t rank, const char *rows);
void tiny_ep_rows(const tiny *t, const char *fqn, uint32_t rank, const char *rows);

/* Over the ranks of tp every row of the cut dim is held `times` times, and each rank's rows ascend. */
void tiny_tiles(const tiny *t, const char *fqn, uint32_t times);

/* Gradient sums: "tp/2 kv_replica, dp data"; "" none. */
void tiny_grads(const tiny *t, const char *fqn, const char *sums);

/* Type of a boundary ("attention"). */
void tiny_type(const tiny *t, const char *boundary, const char *type);

/* One axis of a boundary's contract: "hidden_states: S(1) -> R; output: P -> S(1)". "" when there is none. */
void tiny_contract(const tiny *t, const char *boundary, sw_axis axis, const char *text);

/* Lowering of a boundary: "in tp all_gather 1 reduce_scatter; out tp reduce_scatter 1 all_gather". */
void tiny_lowering(const tiny *t, const char *boundary, const char *text);

/* Local attributes: "num_heads 8/4, num_key_value_heads 2/1". */
void tiny_attributes(const tiny *t, const char *boundary, const char *text);

/* Paths of deferred biases, separated by ", ". */
void tiny_deferred(const tiny *t, const char *boundary, const char *text);

/* There is a finding of this severity and code whose name, text or help hold these words (NULL: any). */
void tiny_finding(const tiny *t, sw_severity severity, const char *code, const char *what, const char *help);

/* No finding of this code. */
void tiny_silent(const tiny *t, const char *code);

#endif
