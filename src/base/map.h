/*
 * Hash map from byte strings to uint32_t. Keys are borrowed: they must outlive the map. Insertion order is
 * the caller's business (values are usually indices into an array). Memory is of the heap, grows by doubling.
 */
#ifndef SW_BASE_MAP_H
#define SW_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sw_map_slot sw_map_slot;
typedef struct sw_map_entry sw_map_entry;

typedef struct sw_map {
    sw_map_slot *slots;
    sw_map_entry *entries; /* in order of insertion, room for three quarters of the slots */
    uint32_t n_slots;      /* a power of two, or 0 */
    uint32_t n_used;
} sw_map; /* all zero is an empty map */

void sw_map_clear(sw_map *map);
bool sw_map_reserve(sw_map *map, size_t n_keys); /* false without memory */

/* Value of a key, or NULL. The pointer is good until the next insertion. */
uint32_t *sw_map_find(const sw_map *map, const void *key, size_t length);

/* Fetch into the cache what looking up this key soon will need. A large table is a miss for every key. */
void sw_map_prefetch(const sw_map *map, const void *key, size_t length);

/*
 * Value of a key, inserted with `fresh` when it is new; *is_new says which. NULL without memory. When new,
 * the caller may replace the borrowed key by a longer-lived copy with sw_map_rekey().
 */
uint32_t *sw_map_put(sw_map *map, const void *key, size_t length, uint32_t fresh, bool *is_new);
void sw_map_rekey(uint32_t *value, const void *same_bytes);

uint64_t sw_hash(const void *bytes, size_t length, uint64_t seed); /* xxh3, 64 bits */

#endif
