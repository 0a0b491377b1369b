/* Where bytes go that are made piece by piece, so that nobody has to hold all of them. */
#ifndef SW_BASE_SINK_H
#define SW_BASE_SINK_H

#include <stddef.h>

#include "base/buffer.h"
#include "shardwright/error.h"

/* Gets the bytes in order; a status that is not SW_OK ends the making. */
typedef sw_status sw_sink_fn(void *user, const void *bytes, size_t n_bytes, sw_error *err);

typedef struct sw_sink {
    sw_sink_fn *take;
    void *user;
} sw_sink;

/* A sink that appends to a buffer. Its failure is the buffer's. */
sw_sink sw_buffer_sink(sw_buffer *buffer);

#endif
