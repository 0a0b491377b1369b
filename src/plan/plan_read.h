/*
 * Reading a plan file; the format is docs/formats/plan.md. The reader is strict: what it takes is written
 * again byte for byte by sw_plan_write(), and what it does not know it refuses.
 */
#ifndef SW_PLAN_PLAN_READ_H
#define SW_PLAN_PLAN_READ_H

#include "plan/plan_data.h"

/* Limits of a plan file, beside those of io/tensor_list.h. */
enum {
    SW_PLAN_MAX_STAGES = 4096,
    SW_PLAN_MAX_SEGMENTS = 1000000, /* of all placements whose text differs */
    SW_PLAN_MAX_MEMBERS = 1024,     /* inputs, outputs, stacks or attributes of one boundary */
    SW_PLAN_MAX_TEXT = 65536        /* bytes of a text for people */
};

#define SW_PLAN_MAX_BYTES ((uint64_t)128 << 20)

/*
 * The plan in `bytes`; `source` stands for the file in messages. The plan has no model (plan->model is NULL),
 * its report holds the file's warnings and notes. SW_E_FORMAT, SW_E_LIMIT, SW_E_NO_MEMORY.
 */
sw_status sw_plan_read(sw_plan **out, const void *bytes, size_t n_bytes, const char *source, sw_error *err);

#endif
