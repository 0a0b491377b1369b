/*
 * sw.slices of a file's metadata: what the file holds of each tensor, said by the file itself, so that a
 * folder can be read without its manifest and a file that does not belong to it is seen.
 */
#ifndef SW_CHECKPOINT_SLICES_H
#define SW_CHECKPOINT_SLICES_H

#include "checkpoint/regions.h"

/* One tensor; texts are good as long as the metadata. */
typedef struct sw_slice_record {
    sw_json_text name;
    uint64_t dims[SW_MAX_DIMS]; /* of the whole */
    uint32_t n_dims;
    const sw_held *held; /* in the arena of the reader of regions */
} sw_slice_record;

typedef sw_status sw_slice_record_fn(void *user, const sw_slice_record *record, sw_error *err);

/*
 * Visit every tensor. Regions are not compared with the extents of the tensor. SW_E_FORMAT names `path`; a
 * failure of `visit` ends the reading.
 */
sw_status sw_slices_read(sw_json_text slices, const char *path, sw_regions_reader *regions,
                         sw_slice_record_fn *visit, void *user, sw_error *err);

#endif
