/*
 * Random inputs for property tests. A case is a function of its seed alone, so that a failure is repeated by
 * the seed it prints: SW_SEED=N runs that case only, SW_CASES=N runs more of them.
 */
#ifndef SW_TEST_GEN_H
#define SW_TEST_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct gen {
    uint64_t seed;
    uint64_t state;
} gen;

static inline uint64_t gen_u64(gen *g) /* splitmix64 */
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* 0 .. n-1; 0 when n is 0 */
static inline uint32_t gen_below(gen *g, uint32_t n)
{
    return n == 0 ? 0 : (uint32_t)(gen_u64(g) % n);
}

static inline uint32_t gen_between(gen *g, uint32_t least, uint32_t most)
{
    return least + gen_below(g, most - least + 1);
}

static inline uint64_t gen_setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

/* Run a property for seeds 0, 1, ...; false at the first that fails, its seed printed. */
static inline bool gen_holds(bool (*property)(gen *g), uint64_t n_cases)
{
    uint64_t only = gen_setting("SW_SEED", UINT64_MAX);
    uint64_t first = only == UINT64_MAX ? 0 : only;
    uint64_t end = only == UINT64_MAX ? gen_setting("SW_CASES", n_cases) : only + 1;

    for (uint64_t seed = first; seed < end; seed++) {
        gen g = {seed, seed * 0x2545f4914f6cdd1dU + 1};
        if (!property(&g)) {
            (void)fprintf(stderr, "failed with SW_SEED=%llu\n", (unsigned long long)seed);
            return false;
        }
    }
    return true;
}

#endif
