/*
 * Filling: the bytes of some parts of one tensor, produced side by side through bounded memory. Each part has
 * a window that is handed to its sink when it is full. Long spans are read straight into it; short ones come
 * from a block of the source that is read once for all parts that want something of it.
 */
#ifndef SW_CHECKPOINT_COPY_FILL_H
#define SW_CHECKPOINT_COPY_FILL_H

#include "checkpoint/copy.h"
#include "checkpoint/copy_plan.h"
#include "checkpoint/source.h"

#define SW_COPY_ANY_BYTES UINT64_MAX

/* One a thread; it is reused for tensor after tensor. */
typedef struct sw_copy_filler {
    sw_source source;
    uint8_t *memory;
    sw_copy_pick pick;
    bool is_checking; /* compare source parts that are read whole with their checksums */
} sw_copy_filler;

typedef struct sw_copy_request {
    const sw_part *part;
    uint64_t n_bytes; /* that the part must have (SW_E_FORMAT), or SW_COPY_ANY_BYTES */
    uint64_t offset;  /* where its first byte goes in a file: pieces begin at pages of the file if they can */
    sw_sink_fn *sink;
    void *user;
} sw_copy_request;

/* `store` is borrowed until clear; n_slots is of sw_file_slots(). */
sw_status sw_copy_filler_init(sw_copy_filler *filler, const sw_store *store, uint32_t n_slots, sw_error *err);
void sw_copy_filler_clear(sw_copy_filler *filler);

sw_status sw_copy_fill(sw_copy_filler *filler, const sw_store_tensor *tensor, const sw_copy_request *requests,
                       uint32_t n_requests, sw_error *err);

#endif
