/*
 * All heap memory of the libraries goes through here, so that a test can fail the n-th allocation and count
 * what is alive. The fault state is per thread and only test code sets it.
 */
#ifndef SW_BASE_ALLOC_H
#define SW_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

void *sw_alloc(size_t bytes);                    /* NULL when memory is gone */
void *sw_alloc_zero(size_t count, size_t bytes); /* overflow of count * bytes is NULL too */
void *sw_realloc(void *old, size_t bytes);
void sw_free(void *memory); /* NULL is fine */

void sw_alloc_fail_at(uint64_t n); /* test hook: the n-th allocation from now fails; 0: never */
int64_t sw_alloc_live(void);       /* allocations of this thread not yet freed by it */
uint64_t sw_alloc_count(void);     /* of this thread, since it began */

#endif
