/* One of each thing that the public calls work on, made in the scratch folder, for tests of all the calls. */
#ifndef SW_TEST_API_CASE_H
#define SW_TEST_API_CASE_H

#include "scratch.h"
#include "shardwright/shardwright.h"

typedef struct api_things {
    sw_model *model;         /* scratch("model"), with weights */
    sw_mesh *mesh;           /* tp=2 */
    sw_plan *plan;           /* of the two; also scratch("plan.json") and scratch("sharded") */
    sw_report *report;       /* with an error in it */
    sw_overrides *overrides; /* empty; scratch("o.yaml") has an entry */
} api_things;

extern api_things api;

/* For each test: setup and teardown of cmocka, the scratch folder's included. */
int api_setup(void **state);
int api_teardown(void **state);

#endif
