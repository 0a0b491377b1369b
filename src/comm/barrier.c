/* The barrier (comm/barrier.h). */
#include "comm/barrier.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "comm/fatal.h"
#include "comm/work.h"

enum {
    LOOKS = 8192, /* some hundred microseconds */
    LOOKS_IN_A_CROWD = 50,
    YIELDS_TO_MPI = 64, /* turns of others between two looks of MPI at its messages */
    YIELDS_TO_LIFE = 4096
};

static void rest(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static bool is_gone(const sw_barrier_line *line)
{
    return kill((pid_t)line->process, 0) != 0 && errno == ESRCH;
}

void sw_barrier_begin(sw_barrier *barrier, const sw_group *group, sw_barrier_line *lines)
{
    *barrier = (sw_barrier){.group = group,
                            .lines = lines,
                            .n_looks = group->work->is_crowded ? LOOKS_IN_A_CROWD : LOOKS,
                            .sees_processes = true};
    atomic_init(&lines[group->index].n_arrived, 0);
    lines[group->index].process = (int64_t)getpid();
    if (group->size == 1)
        return;
    MPI_Barrier(group->mpi);
    for (uint32_t m = 0; m < group->size; m++)
        barrier->sees_processes = barrier->sees_processes && !is_gone(&lines[m]);
}

/* A member is late: let others run, and now and then look after what they may wait for. */
static void be_patient(const sw_barrier *barrier, const sw_barrier_line *line, uint64_t n_yields)
{
    int is_there = 0;

    (void)sched_yield();
    if (n_yields % YIELDS_TO_MPI == 0)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, barrier->group->mpi, &is_there, MPI_STATUS_IGNORE);
    if (n_yields % YIELDS_TO_LIFE == 0 && barrier->sees_processes && is_gone(line))
        sw_fatal_await(); /* the launcher knows better what became of it */
}

static void wait_for(const sw_barrier *barrier, const sw_barrier_line *line)
{
    uint64_t n_looks = 0;

    while (atomic_load_explicit(&line->n_arrived, memory_order_acquire) < barrier->n_arrived) {
        n_looks++;
        if (n_looks < barrier->n_looks)
            rest();
        else
            be_patient(barrier, line, n_looks - barrier->n_looks + 1);
    }
}

void sw_barrier_arrive(sw_barrier *barrier)
{
    sw_barrier_line *own = &barrier->lines[barrier->group->index];

    barrier->n_arrived++;
    atomic_store_explicit(&own->n_arrived, barrier->n_arrived, memory_order_release);
}

void sw_barrier_wait(sw_barrier *barrier)
{
    const sw_group *group = barrier->group;

    for (uint32_t i = 1; i < group->size; i++)
        wait_for(barrier, &barrier->lines[(group->index + i) % group->size]);
}

void sw_barrier_pass(sw_barrier *barrier)
{
    sw_barrier_arrive(barrier);
    sw_barrier_wait(barrier);
}
