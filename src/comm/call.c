/*
 * Entries of collectives (comm/call.h). Calls are compared by one small all-reduce of a checksum that every
 * rank of the group takes part in before it goes on; where it differs, the calls themselves are gathered, and
 * the first rank of the group says which do not go together. A rank that never comes is found by the clock.
 */
#include "comm/call.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "comm/fatal.h"
#include "comm/work.h"

static const char *const names[] = {"agree",      "all_gather", "reduce_scatter", "all_reduce",
                                    "all_to_all", "exchange",   "broadcast",      "any"};
_Static_assert(SW_COUNT(names) == SW_CALL_KIND_COUNT_ + 1, "one name a kind, and any");

/* ---- faults on purpose ---- */

typedef enum fault_action {
    FAULT_ERROR = 0,
    FAULT_KILL,
    FAULT_ALLOC /* the call passes, the next allocation fails */
} fault_action;

static const char *const actions[] = {"error", "kill", "alloc"};

/* The only state of a process: tests set it once. */
static struct {
    bool is_set;
    unsigned action;
    unsigned kind; /* SW_CALL_KIND_COUNT_: any */
    int rank;      /* of MPI_COMM_WORLD; -1: every rank */
    uint64_t left; /* calls that pass before */
} fault;

/* The readers of the text's parts move *text behind what they took. */
static bool read_word(const char **text, const char *const *words, size_t n, unsigned *out)
{
    size_t length = strcspn(*text, ":");

    for (size_t i = 0; i < n; i++) {
        if (strlen(words[i]) == length && memcmp(*text, words[i], length) == 0) {
            *text += length;
            *out = (unsigned)i;
            return true;
        }
    }
    return false;
}

static bool read_number(const char **text, const char *key, uint64_t *out)
{
    size_t length = strlen(key);
    char *end = NULL;

    if (strncmp(*text, key, length) != 0 || (*text)[length] < '0' || (*text)[length] > '9')
        return false;
    *out = strtoull(*text + length, &end, 10);
    *text = end;
    return true;
}

sw_status sw_call_fault_set(const char *text, sw_error *err)
{
    const char *at = text;
    uint64_t rank = 0;

    fault.is_set = false;
    if (text == NULL)
        return SW_OK;
    bool is_right = read_word(&at, names, SW_COUNT(names), &fault.kind);
    fault.rank = is_right && read_number(&at, ":rank=", &rank) && rank <= INT32_MAX ? (int)rank : -1;
    is_right = is_right && read_number(&at, ":after=", &fault.left) && *at == ':';
    at += is_right;
    if (!is_right || !read_word(&at, actions, SW_COUNT(actions), &fault.action) || *at != '\0')
        return SW_FAIL(err, SW_E_ARGUMENT, "for example all_reduce:rank=2:after=3:error or any:after=0:kill",
                       "fault '%.100s' is not CALL:rank=R:after=N: and error, kill or alloc", text);
    fault.is_set = true;
    return SW_OK;
}

bool sw_call_must_fail(sw_call_kind kind)
{
    int rank = 0;

    if (!fault.is_set || (fault.kind != SW_CALL_KIND_COUNT_ && fault.kind != (unsigned)kind))
        return false;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((fault.rank >= 0 && fault.rank != rank) || fault.left-- != 0)
        return false;
    fault.is_set = false;
    if (fault.action == FAULT_KILL)
        (void)kill(getpid(), SIGKILL);
    if (fault.action == FAULT_ALLOC)
        sw_alloc_fail_at(1);
    return fault.action != FAULT_ALLOC;
}

/* ---- same question, same answer ---- */

static void describe(const sw_call *call, char *text, size_t capacity)
{
    size_t length = (size_t)snprintf(text, capacity, "%s%s(%s", names[call->kind],
                                     call->op != 0 ? "_max" : "", sw_dtype_name((sw_dtype)call->dtype));

    for (uint32_t i = 0; i < call->n_numbers && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%" PRIu64, i == 0 ? " " : ",",
                                   call->numbers[i]);
    if (length < capacity)
        (void)snprintf(text + length, capacity - length, ")");
}

/* Wait until all ranks of the group have come. */
static void wait_for_all(const sw_group *group, const sw_call *call, MPI_Request *request)
{
    char text[160];
    int is_done = 0;
    time_t last = time(NULL) + (time_t)group->work->patience;

    MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    while (!is_done) {
        if (time(NULL) > last) {
            describe(call, text, sizeof text);
            sw_fatal("%s over %s: not all of its %" PRIu32 " ranks came within %" PRIu32 " s", text,
                     group->name, group->size, group->work->patience);
        }
        (void)sched_yield();
        MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    }
}

/* The calls differ. Member 0 says which; the others wait for the end. */
_Noreturn static void report(const sw_group *group, const sw_call *call)
{
    char first[160];
    char other[160];
    uint32_t i = 1;
    sw_call *calls = group->work->calls;

    MPI_Gather(call, (int)sizeof *call, MPI_BYTE, calls, (int)sizeof *call, MPI_BYTE, 0, group->mpi);
    if (group->index != 0)
        sw_fatal_await();
    while (i + 1 < group->size && memcmp(&calls[0], &calls[i], sizeof *calls) == 0)
        i++;
    describe(&calls[0], first, sizeof first);
    describe(&calls[i], other, sizeof other);
    sw_fatal("ranks call different collectives over %s: %s is called by member 0, %s by member %" PRIu32,
             group->name, first, other, i);
}

static void compare(const sw_group *group, const sw_call *call)
{
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t checksum = sw_hash(call, sizeof *call, 0);
    uint64_t mine[2] = {checksum, ~checksum};
    uint64_t least[2] = {0, 0};

    MPI_Iallreduce(mine, least, 2, MPI_UINT64_T, MPI_MIN, group->mpi, &request);
    wait_for_all(group, call, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (least[0] != ~least[1])
        report(group, call);
}

void sw_call_enter(const sw_group *group, const sw_call *call)
{
    if (fault.is_set && sw_call_must_fail((sw_call_kind)call->kind))
        sw_fatal("%s over %s: a fault for a test", names[call->kind], group->name);
    if (group->work->compares_calls)
        compare(group, call);
}
