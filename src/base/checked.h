/* Arithmetic on sizes that come from files: false on overflow, the result untouched. */
#ifndef SW_BASE_CHECKED_H
#define SW_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool sw_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool sw_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
