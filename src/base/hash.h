/*
 * xxh3 (64 bits) over bytes that come piece by piece: the checksum of stored tensors. The same number as
 * sw_hash() with seed 0 over all of them at once.
 */
#ifndef SW_BASE_HASH_H
#define SW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { SW_HASHER_BYTES = 576, SW_HASHER_ALIGNMENT = 64 };

/* In heap memory of sw_alloc() or an arena it must be placed by hand: sw_hasher_at(). */
typedef struct sw_hasher {
    _Alignas(SW_HASHER_ALIGNMENT) unsigned char state[SW_HASHER_BYTES];
} sw_hasher;

/* The i-th of an array of hashers in `room`, which has bytes for one more than the array. */
static inline sw_hasher *sw_hasher_at(void *room, size_t i)
{
    size_t off = (uintptr_t)room % SW_HASHER_ALIGNMENT;
    size_t pad = off == 0 ? 0 : SW_HASHER_ALIGNMENT - off;
    return (sw_hasher *)((unsigned char *)room + pad + i * sizeof(sw_hasher));
}

void sw_hasher_begin(sw_hasher *hasher);
void sw_hasher_add(sw_hasher *hasher, const void *bytes, size_t n_bytes);
uint64_t sw_hasher_end(const sw_hasher *hasher);

#endif
