/*
 * xxh3 by the library's own choice of instructions where it has one (SW_HAVE_XXH_DISPATCH): twice as fast as
 * what the compiler may assume of every x86-64. Elsewhere the header's code is compiled in.
 */
#include "base/hash.h"

#ifdef SW_HAVE_XXH_DISPATCH
#define XXH_STATIC_LINKING_ONLY /* for the size of the state */
#include <xxhash.h>

#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

_Static_assert(sizeof(XXH3_state_t) <= SW_HASHER_BYTES, "the state fits");

static XXH3_state_t *state_of(sw_hasher *hasher)
{
    return (XXH3_state_t *)(void *)hasher->state;
}

void sw_hasher_begin(sw_hasher *hasher)
{
    (void)XXH3_64bits_reset(state_of(hasher));
}

void sw_hasher_add(sw_hasher *hasher, const void *bytes, size_t n_bytes)
{
    (void)XXH3_64bits_update(state_of(hasher), bytes, n_bytes);
}

uint64_t sw_hasher_end(const sw_hasher *hasher)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)hasher->state);
}
