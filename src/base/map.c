/*
 * Open addressing with linear probing over small slots: a part of the hash and the number of an entry. So the
 * table that is hit at random stays in the cache, growing touches no key, and bytes are compared only where
 * they are almost surely equal. Invariant: at least a quarter of the slots is free.
 */
#include "base/map.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"

enum { FEWEST_SLOTS = 16 };

struct sw_map_slot {
    uint32_t tag;   /* low half of the hash; its low bits are the home of the slot */
    uint32_t entry; /* counted from 1; 0: a free slot */
};

struct sw_map_entry {
    const char *key;
    uint32_t length;
    uint32_t value;
};

uint64_t sw_hash(const void *bytes, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, length, seed);
}

void sw_map_clear(sw_map *map)
{
    sw_free(map->slots);
    sw_free(map->entries);
    *map = (sw_map){0};
}

static bool resize(sw_map *map, uint32_t n_slots)
{
    sw_map_slot *slots = sw_alloc_zero(n_slots, sizeof *slots);
    sw_map_entry *entries =
        slots == NULL ? NULL : sw_realloc(map->entries, (size_t)n_slots / 4 * 3 * sizeof *entries);
    if (entries == NULL) {
        sw_free(slots);
        return false;
    }
    uint32_t mask = n_slots - 1;
    for (uint32_t i = 0; i < map->n_slots; i++) {
        sw_map_slot old = map->slots[i];
        if (old.entry == 0)
            continue;
        uint32_t at = old.tag & mask;
        while (slots[at].entry != 0)
            at = (at + 1) & mask;
        slots[at] = old;
    }
    sw_free(map->slots);
    map->slots = slots;
    map->entries = entries;
    map->n_slots = n_slots;
    return true;
}

bool sw_map_reserve(sw_map *map, size_t n_keys)
{
    uint64_t n_slots = map->n_slots == 0 ? FEWEST_SLOTS : map->n_slots;

    if (n_keys > UINT32_MAX / 4)
        return false;
    while (n_keys > n_slots / 4 * 3)
        n_slots *= 2;
    return n_slots == map->n_slots || resize(map, (uint32_t)n_slots);
}

/* The slot of the key, or the free one where it belongs. There must be slots. */
static sw_map_slot *probe(const sw_map *map, const void *key, size_t length, uint32_t tag)
{
    uint32_t mask = map->n_slots - 1;

    for (uint32_t at = tag & mask;; at = (at + 1) & mask) {
        sw_map_slot *slot = &map->slots[at];
        if (slot->entry == 0)
            return slot;
        if (slot->tag != tag)
            continue;
        const sw_map_entry *entry = &map->entries[slot->entry - 1];
        if (entry->length == length && (length == 0 || memcmp(entry->key, key, length) == 0))
            return slot;
    }
}

uint32_t *sw_map_find(const sw_map *map, const void *key, size_t length)
{
    if (map->n_used == 0)
        return NULL;
    const sw_map_slot *slot = probe(map, key, length, (uint32_t)sw_hash(key, length, 0));
    return slot->entry == 0 ? NULL : &map->entries[slot->entry - 1].value;
}

void sw_map_prefetch(const sw_map *map, const void *key, size_t length)
{
    if (map->n_slots > 0)
        __builtin_prefetch(&map->slots[(uint32_t)sw_hash(key, length, 0) & (map->n_slots - 1)], 1);
}

uint32_t *sw_map_put(sw_map *map, const void *key, size_t length, uint32_t fresh, bool *is_new)
{
    *is_new = false;
    if (length > UINT32_MAX || !sw_map_reserve(map, (size_t)map->n_used + 1))
        return NULL;
    uint32_t tag = (uint32_t)sw_hash(key, length, 0);
    sw_map_slot *slot = probe(map, key, length, tag);
    if (slot->entry == 0) {
        map->entries[map->n_used++] = (sw_map_entry){key, (uint32_t)length, fresh};
        *slot = (sw_map_slot){tag, map->n_used};
        *is_new = true;
    }
    return &map->entries[slot->entry - 1].value;
}

void sw_map_rekey(uint32_t *value, const void *same_bytes)
{
    sw_map_entry *entry = (sw_map_entry *)(void *)((char *)value - offsetof(sw_map_entry, value));
    entry->key = same_bytes;
}
