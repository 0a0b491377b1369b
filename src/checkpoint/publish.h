/*
 * Publishing: everything is written to OUT.partial-<id>, synced, and appears under OUT by one rename; an
 * existing OUT is refused, or exchanged at once with `replace`. So OUT is absent, the old one, or right,
 * whenever the process ends. The partial folder is locked as long as its process lives: what a dead one left
 * behind is removed by the next run for the same OUT.
 */
#ifndef SW_CHECKPOINT_PUBLISH_H
#define SW_CHECKPOINT_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "shardwright/error.h"

typedef struct sw_publish_choices {
    const char *source; /* what is read meanwhile, borrowed; NULL: nothing */
    bool replace;
    bool no_sync;
    uint64_t need_bytes; /* that must be free */
} sw_publish_choices;

typedef struct sw_publication {
    char *out;     /* without slashes at its end */
    char *partial; /* where to write; NULL: begin did not succeed, or it is published */
    sw_publish_choices choices;
    int lock;     /* the partial folder, open and locked */
} sw_publication; /* all zero is none */

/*
 * Refuse an existing `out` (unless replace; then only what sw_replace_check() allows is exchanged), remove
 * partial folders of dead runs, check that `need_bytes` are free (SW_E_IO says needed and free), make the
 * partial folder. SW_E_ARGUMENT: `out` is there, or no name for a folder.
 */
sw_status sw_publish_begin(sw_publication *publication, const char *out, const sw_publish_choices *choices,
                           sw_error *err);

/* Sync the files and the folder, rename, sync the folder above. After SW_OK the output is there. */
sw_status sw_publish_end(sw_publication *publication, sw_error *err);

/* Remove the partial folder if it was not published. NULL-safe, for SW_AUTO. */
void sw_publish_drop(sw_publication *publication);

#endif
