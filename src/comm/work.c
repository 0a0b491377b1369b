/* Working memory of a group: arrays of what every member needs (comm/work.h). */
#include "comm/work.h"

#include <limits.h>

#include "base/alloc.h"
#include "base/status.h"

enum { PATIENCE = 60 };

void sw_work_destroy(sw_work *work)
{
    if (work == NULL)
        return;
    sw_free(work->lanes);
    sw_free(work->parts);
    sw_free(work->requests);
    sw_free(work->counts);
    sw_free(work->calls);
    sw_free(work);
}

sw_status sw_work_create(sw_work **out, uint32_t size, char *stage, size_t stage_bytes, sw_error *err)
{
    sw_work *work = sw_alloc_zero(1, sizeof *work);

    if (work != NULL) {
        work->stage = stage;
        work->stage_bytes = stage_bytes;
        work->short_bytes = SW_SHORT_BYTES;
        work->most_elems = INT_MAX;
        work->lanes = sw_alloc_zero(size, sizeof *work->lanes);
        work->parts = sw_alloc_zero(size, sizeof *work->parts);
        work->requests = sw_alloc_zero(size, 2 * sizeof(MPI_Request));
        work->counts = sw_alloc_zero(size, 2 * sizeof *work->counts);
        work->calls = sw_alloc_zero(size, sizeof *work->calls);
        work->patience = PATIENCE;
#ifndef NDEBUG
        work->compares_calls = true;
#endif
    }
    if (work == NULL || work->lanes == NULL || work->parts == NULL || work->requests == NULL ||
        work->counts == NULL || work->calls == NULL) {
        sw_work_destroy(work);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the collectives of %u ranks", size);
    }
    *out = work;
    return SW_OK;
}
