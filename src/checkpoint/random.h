/*
 * Random numbers of a parameter as a function of seed, name and index: whoever computes an element, on
 * whatever mesh and with how many threads, gets the same value. Normative (docs/reference/init.md):
 *
 *     block  = Philox4x32-10(counter = {index / 2, seed}, key = xxh3_64(name)), low words first
 *     bits   = 64 bits of the block: words 0 and 1 for an even index, 2 and 3 for an odd one, low word first
 *     uniform = (bits / 2^12 + 1/2) / 2^52
 *     normal = Wichura's AS241 of it, with the functions of fixed_math.h
 */
#ifndef SW_CHECKPOINT_RANDOM_H
#define SW_CHECKPOINT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The numbers of one parameter. */
typedef struct sw_random {
    uint64_t seed;
    uint64_t key; /* hash of the name */
} sw_random;

sw_random sw_random_of(uint64_t seed, const char *name, size_t length);

/* Bits of the elements from `first` on; an index is the element's place in the whole, row-major tensor. */
void sw_random_bits(const sw_random *random, uint64_t first, size_t n, uint64_t *out);

/* Ten rounds of Philox4x32 (Salmon et al. 2011) in place. */
void sw_philox(uint32_t block[4], const uint32_t key[2]);

double sw_uniform(uint64_t bits); /* between 0 and 1, never either */

/* Of mean 0 and deviation 1, never beyond 8.3. At most SW_RANDOM_BATCH at once. */
enum { SW_RANDOM_BATCH = 256 };
void sw_normals(const uint64_t *bits, size_t n, double *out);

#endif
