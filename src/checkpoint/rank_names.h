/*
 * Which files a sharded folder should have, told without a manifest: those that are there by their names, and
 * those that lie between them, or that the plan's mesh asks for, and are missing.
 */
#ifndef SW_CHECKPOINT_RANK_NAMES_H
#define SW_CHECKPOINT_RANK_NAMES_H

#include "checkpoint/format.h"
#include "checkpoint/opening.h"

typedef struct sw_rank_name {
    const char *name;
    sw_coord coord;
    bool is_there;
} sw_rank_name;

typedef struct sw_rank_names {
    sw_rank_name *list; /* by coordinate, as a manifest has them */
    uint32_t n;
} sw_rank_names;

/* Files with tensors whose names are no rank's are remarked: "file_extra". */
sw_status sw_rank_names_find(sw_rank_names *out, sw_opening *o);
void sw_rank_names_clear(sw_rank_names *names);

#endif
