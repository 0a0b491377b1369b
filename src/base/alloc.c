/*
 * The one way to the heap. The countdown and the counts are per thread, so tests of one thread do not disturb
 * another. With the fault of disk.c the only mutable state of the
 * libraries outside their objects.
 */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>

static _Thread_local uint64_t countdown; /* 0: never fail */
static _Thread_local int64_t live;
static _Thread_local uint64_t n_asked;

static bool must_fail(void)
{
    n_asked++;
    return countdown != 0 && --countdown == 0;
}

static void *counted(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *sw_alloc(size_t bytes)
{
    return must_fail() ? NULL : counted(malloc(bytes == 0 ? 1 : bytes));
}

void *sw_alloc_zero(size_t count, size_t bytes)
{
    size_t total = 0;

    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    if (total == 0)
        count = bytes = 1;
    return must_fail() ? NULL : counted(calloc(count, bytes));
}

void *sw_realloc(void *old, size_t bytes)
{
    if (old == NULL)
        return sw_alloc(bytes);
    return must_fail() ? NULL : realloc(old, bytes == 0 ? 1 : bytes);
}

void sw_free(void *memory)
{
    live -= memory != NULL;
    free(memory);
}

void sw_alloc_fail_at(uint64_t n)
{
    countdown = n;
}

int64_t sw_alloc_live(void)
{
    return live;
}

uint64_t sw_alloc_count(void)
{
    return n_asked;
}
