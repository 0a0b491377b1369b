/*
 * A crew: a few threads that work through a list of items, while the calling thread reports progress. The
 * first failure wins and stops all of them; so does a progress callback that returns false.
 */
#ifndef SW_CHECKPOINT_CREW_H
#define SW_CHECKPOINT_CREW_H

#include <stdatomic.h>

#include "shardwright/checkpoint.h"

enum { SW_CREW_USUAL = 2, SW_CREW_LARGEST = 16 };

/* What to do when work was stopped on wish. */
#define SW_CREW_STOPPED_HELP "nothing was written; run it again, it starts over"

/* Do one item. `thread` is below the number of threads: each has its own buffers. */
typedef sw_status sw_crew_fn(void *user, uint32_t thread, uint64_t item, sw_error *err);

typedef struct sw_crew {
    uint32_t n_threads; /* 0: SW_CREW_USUAL */
    uint64_t n_items;
    sw_crew_fn *work;
    void *user;
    sw_progress_fn *on_progress; /* may be NULL */
    void *progress_user;
    const char *stage;
    const char *unit;
    uint64_t total;
    atomic_uint_fast64_t done; /* of `total`: added to by the workers */
    atomic_bool is_stopping;   /* long items look at it now and then: sw_crew_is_stopping() */
} sw_crew;

/* The number of threads that a wish of the options means. */
uint32_t sw_crew_size(uint32_t wanted);

/*
 * Work until all items are done. Returns the first failure; SW_E_IO "stopped" when the callback stopped it;
 * SW_E_NO_MEMORY when no thread can be had. The crew may be run again with other items.
 */
sw_status sw_crew_run(sw_crew *crew, sw_error *err);

/* Who works, and who is told of the bytes done; `total` stays. */
void sw_crew_hire(sw_crew *crew, uint32_t n_threads, void *user, sw_progress_fn *on_progress,
                  void *progress_user);

/* Run a hired crew on the items of its next stage; of what was done, the count begins anew. */
sw_status sw_crew_stage(sw_crew *crew, const char *stage, sw_crew_fn *work, uint64_t n_items, sw_error *err);

static inline void sw_crew_add(sw_crew *crew, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&crew->done, n, memory_order_relaxed);
}

static inline bool sw_crew_is_stopping(sw_crew *crew)
{
    return atomic_load_explicit(&crew->is_stopping, memory_order_relaxed);
}

#endif
