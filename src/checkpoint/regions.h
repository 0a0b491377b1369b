/*
 * What a file holds of a tensor, as JSON: a list of regions {"begin": [...], "extent": [...]}, one a box in
 * row-major order, with "replica": true where a lower coordinate holds the same. The same form stands in the
 * manifest and in the metadata of a file (docs/formats/sharded-checkpoint.md).
 */
#ifndef SW_CHECKPOINT_REGIONS_H
#define SW_CHECKPOINT_REGIONS_H

#include "base/map.h"
#include "checkpoint/part.h"
#include "io/json_read.h"
#include "io/json_write.h"

enum { SW_MAX_REGIONS = 1 << 20 }; /* of one stored tensor */

void sw_regions_write(sw_json_writer *writer, const sw_held *held);

/* Regions of a part that are held by a lower coordinate too. */
uint64_t sw_regions_replicas(const sw_held *held);

/* Reads lists of regions; equal texts give one. Zero but for the arena; texts must outlive it. */
typedef struct sw_regions_reader {
    sw_arena *arena;      /* of the parts */
    sw_map seen;          /* text → index into held */
    const sw_held **held; /* in the arena */
    uint32_t n_held;
    uint32_t capacity;
} sw_regions_reader;

void sw_regions_reader_clear(sw_regions_reader *reader);

/* The list that stands next, in the arena of the reader. A failure is json's, without the name of the tensor.
 */
bool sw_regions_read(sw_regions_reader *reader, sw_json *json, const sw_held **out);

#endif
