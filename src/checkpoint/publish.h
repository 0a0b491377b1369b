/*
 * Publishing: everything is written to OUT.partial-<id>, synced, and appears under OUT by one rename; an
 * existing OUT is refused, or exchanged at once with `replace`. So OUT is absent, the old one, or right,
 * whenever the process ends.
 */
#ifndef SW_CHECKPOINT_PUBLISH_H
#define SW_CHECKPOINT_PUBLISH_H

#include <stdbool.h>

#include "shardwright/error.h"

typedef struct sw_publication {
    char *out;
    char *partial; /* where to write */
    bool replace;
    bool no_sync;
    int lock; /* held while the partial folder is in use: a dead one can be removed by the next run */
} sw_publication;

/*
 * Refuse an existing `out` (unless replace), remove partial folders of dead runs, check that `need_bytes` are
 * free (SW_E_IO says needed and free), make the partial folder.
 */
sw_status sw_publish_begin(sw_publication *publication, const char *out, bool replace, bool no_sync,
                           uint64_t need_bytes, sw_error *err);

/* Sync and rename. After SW_OK the output is there. */
sw_status sw_publish_end(sw_publication *publication, sw_error *err);

/* Remove the partial folder if it was not published. NULL-safe, for SW_AUTO. */
void sw_publish_drop(sw_publication *publication);

#endif
