/* The sink of base/sink.h that keeps everything. */
#include "base/sink.h"

#include "base/status.h"

static sw_status append(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    sw_buffer *buffer = user;

    sw_buffer_append(buffer, bytes, n_bytes);
    return buffer->failed ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu bytes of output", n_bytes)
                          : SW_OK;
}

sw_sink sw_buffer_sink(sw_buffer *buffer)
{
    return (sw_sink){append, buffer};
}
