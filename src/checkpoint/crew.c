/*
 * A crew of threads (checkpoint/crew.h). Workers take the next item by a counter and never call anything of
 * the user's but `work`; the calling thread waits, wakes ten times a second and calls on_progress. Signals go
 * to the calling thread.
 */
#include "checkpoint/crew.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/status.h"

enum { TICK_NS = 100000000 };

/* One run of a crew. */
typedef struct shift {
    sw_crew *crew;
    atomic_uint_fast64_t next_item;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint32_t n_working;
    sw_status status;
    sw_error err;
} shift;

typedef struct worker {
    shift *of;
    uint32_t number;
} worker;

uint32_t sw_crew_size(uint32_t wanted)
{
    if (wanted == 0)
        return SW_CREW_USUAL;
    return wanted < SW_CREW_LARGEST ? wanted : SW_CREW_LARGEST;
}

static void note_failure(shift *of, sw_status status, const sw_error *err)
{
    (void)pthread_mutex_lock(&of->lock);
    if (of->status == SW_OK) {
        of->status = status;
        of->err = *err;
    }
    (void)pthread_mutex_unlock(&of->lock);
    atomic_store(&of->crew->is_stopping, true);
}

static void *work_on(void *user)
{
    const worker *me = user;
    shift *of = me->of;
    sw_crew *crew = of->crew;

    while (!sw_crew_is_stopping(crew)) {
        uint64_t item = atomic_fetch_add(&of->next_item, 1);
        sw_error err = {0};
        if (item >= crew->n_items)
            break;
        sw_status status = crew->work(crew->user, me->number, item, &err);
        if (status != SW_OK)
            note_failure(of, status, &err);
    }
    (void)pthread_mutex_lock(&of->lock);
    of->n_working--;
    (void)pthread_cond_signal(&of->changed);
    (void)pthread_mutex_unlock(&of->lock);
    return NULL;
}

/* False: the user wants to stop. */
static bool report(sw_crew *crew)
{
    if (crew->on_progress == NULL)
        return true;
    const sw_progress now = {
        .stage = crew->stage, .done = atomic_load(&crew->done), .total = crew->total, .unit = crew->unit};
    return crew->on_progress(&now, crew->progress_user);
}

static struct timespec next_tick(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += TICK_NS;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* The user's wish is the failure, not what a worker says that is told to stop. The lock is held. */
static void stop(shift *of)
{
    const sw_crew *crew = of->crew;

    if (of->status == SW_OK) {
        of->status =
            SW_FAIL(&of->err, SW_E_IO, SW_CREW_STOPPED_HELP, "stopped after %" PRIu64 " of %" PRIu64 " %s",
                    (uint64_t)atomic_load(&crew->done), crew->total, crew->unit);
    }
    atomic_store(&of->crew->is_stopping, true);
}

/* Wait for the workers, reporting. The lock is not held while the user is called. */
static void wait_for_all(shift *of)
{
    bool goes_on = report(of->crew);

    (void)pthread_mutex_lock(&of->lock);
    while (of->n_working > 0) {
        if (!goes_on)
            stop(of);
        struct timespec tick = next_tick();
        if (pthread_cond_timedwait(&of->changed, &of->lock, &tick) != ETIMEDOUT || !goes_on)
            continue;
        (void)pthread_mutex_unlock(&of->lock);
        goes_on = report(of->crew);
        (void)pthread_mutex_lock(&of->lock);
    }
    if (!goes_on)
        stop(of);
    (void)pthread_mutex_unlock(&of->lock);
}

/* Start the threads; how many there are. */
static uint32_t start(shift *of, worker *workers, pthread_t *threads, uint32_t n_wanted)
{
    sigset_t all;
    sigset_t before;
    uint32_t n = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    of->n_working = n_wanted;
    for (; n < n_wanted; n++) {
        workers[n] = (worker){of, n};
        if (pthread_create(&threads[n], NULL, work_on, &workers[n]) != 0)
            break;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_mutex_lock(&of->lock);
    of->n_working -= n_wanted - n;
    (void)pthread_mutex_unlock(&of->lock);
    return n;
}

sw_status sw_crew_run(sw_crew *crew, sw_error *err)
{
    worker workers[SW_CREW_LARGEST];
    pthread_t threads[SW_CREW_LARGEST];
    pthread_condattr_t clock;
    shift of = {.crew = crew, .lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t n_useful = crew->n_items < SW_CREW_LARGEST ? crew->n_items : SW_CREW_LARGEST;
    uint32_t n_wanted = sw_crew_size(crew->n_threads);

    atomic_store(&crew->is_stopping, false);
    if (n_useful == 0)
        return SW_OK;
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&of.changed, &clock);
    (void)pthread_condattr_destroy(&clock);

    uint32_t n = start(&of, workers, threads, n_wanted < n_useful ? n_wanted : (uint32_t)n_useful);
    wait_for_all(&of);
    for (uint32_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_cond_destroy(&of.changed);
    (void)pthread_mutex_destroy(&of.lock);
    if (n == 0)
        return SW_FAIL(err, SW_E_NO_MEMORY,
                       "raise the limit of processes (ulimit -u), or that of memory (ulimit -v)",
                       "no thread can be started");
    if (of.status != SW_OK) {
        if (err != NULL)
            *err = of.err;
        return of.status;
    }
    (void)report(crew); /* all of it; there is nothing left to stop */
    return SW_OK;
}

void sw_crew_hire(sw_crew *crew, uint32_t n_threads, void *user, sw_progress_fn *on_progress,
                  void *progress_user)
{
    crew->n_threads = n_threads;
    crew->user = user;
    crew->on_progress = on_progress;
    crew->progress_user = progress_user;
    crew->unit = "bytes";
}

sw_status sw_crew_stage(sw_crew *crew, const char *stage, sw_crew_fn *work, uint64_t n_items, sw_error *err)
{
    crew->stage = stage;
    crew->work = work;
    crew->n_items = n_items;
    atomic_store(&crew->done, 0);
    return sw_crew_run(crew, err);
}
