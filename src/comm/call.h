/*
 * The entry of every collective: where a test makes a rank fail, and where debug builds find ranks that call
 * different collectives. Both cost nothing when nobody asked for them.
 */
#ifndef SW_COMM_CALL_H
#define SW_COMM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm.h"
#include "shardwright/model.h"

typedef enum sw_call_kind {
    SW_CALL_AGREE = 0,
    SW_CALL_ALL_GATHER,
    SW_CALL_REDUCE_SCATTER,
    SW_CALL_ALL_REDUCE,
    SW_CALL_ALL_TO_ALL,
    SW_CALL_EXCHANGE,
    SW_CALL_BROADCAST,
    SW_CALL_KIND_COUNT_
} sw_call_kind;

enum { SW_CALL_NUMBERS = 6 };

/* What all ranks of a group must call alike. Numbers that do not matter are 0. */
typedef struct sw_call {
    uint32_t kind;
    uint32_t dtype;
    uint32_t op; /* 1 for a maximum */
    uint32_t n_numbers;
    uint64_t numbers[SW_CALL_NUMBERS]; /* extents, as messages show them */
} sw_call;

/* Enter a collective over `group` of more than one rank. Does not return when a fault is found. */
void sw_call_enter(const sw_group *group, const sw_call *call);

/*
 * The fault to inject from now on, from text: "all_reduce:rank=2:after=3:error" lets three all-reduces of
 * rank 2 pass and makes the fourth fail; "kill" instead of "error" sends SIGKILL to the rank, with "alloc"
 * its next allocation fails. `any` counts all calls. NULL: none. The state of the process, for tests.
 * SW_E_ARGUMENT: not such a text.
 */
sw_status sw_call_fault_set(const char *text, sw_error *err);

/* Whether the fault comes now: then the call is to fail. */
bool sw_call_must_fail(sw_call_kind kind);

#endif
