/*
 * Philox and the inverse of the normal distribution (checkpoint/random.h). The coefficients are those of
 * AS241, "The percentage points of the normal distribution", Applied Statistics 37 (1988), exact to 1e-16.
 */
#include "checkpoint/random.h"

#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "checkpoint/fixed_math.h"

/* ---- bits ---- */

enum { ROUNDS = 10 };

static inline void one_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, const uint32_t key[2])
{
    uint64_t a = UINT64_C(0xd2511f53) * *c0;
    uint64_t b = UINT64_C(0xcd9e8d57) * *c2;

    *c0 = (uint32_t)(b >> 32) ^ *c1 ^ key[0];
    *c1 = (uint32_t)b;
    *c2 = (uint32_t)(a >> 32) ^ *c3 ^ key[1];
    *c3 = (uint32_t)a;
}

static inline void next_key(uint32_t key[2])
{
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
}

void sw_philox(uint32_t block[4], const uint32_t key[2])
{
    uint32_t at[2] = {key[0], key[1]};

    for (int round = 0; round < ROUNDS; round++) {
        one_round(&block[0], &block[1], &block[2], &block[3], at);
        next_key(at);
    }
}

sw_random sw_random_of(uint64_t seed, const char *name, size_t length)
{
    return (sw_random){.seed = seed, .key = sw_hash(name, length, 0)};
}

/* As many as go through the loops below side by side; a constant, so that compilers use vectors. */
enum { LANES = 8, NUMBERS = 2 * LANES };

/* The numbers of the blocks from `number` on. */
static void blocks_at(const sw_random *random, uint64_t number, uint64_t out[NUMBERS])
{
    uint32_t block[4][LANES];
    uint32_t key[2] = {(uint32_t)random->key, (uint32_t)(random->key >> 32)};

    for (size_t i = 0; i < LANES; i++) {
        block[0][i] = (uint32_t)(number + i);
        block[1][i] = (uint32_t)((number + i) >> 32);
        block[2][i] = (uint32_t)random->seed;
        block[3][i] = (uint32_t)(random->seed >> 32);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < LANES; i++)
            one_round(&block[0][i], &block[1][i], &block[2][i], &block[3][i], key);
        next_key(key);
    }
    for (size_t i = 0; i < LANES; i++) {
        out[2 * i] = block[0][i] | (uint64_t)block[1][i] << 32;
        out[2 * i + 1] = block[2][i] | (uint64_t)block[3][i] << 32;
    }
}

void sw_random_bits(const sw_random *random, uint64_t first, size_t n, uint64_t *out)
{
    uint64_t some[NUMBERS];
    size_t skipped = first % 2;

    for (size_t i = 0; i < n;) {
        size_t n_made = NUMBERS - skipped;
        size_t n_now = n_made < n - i ? n_made : n - i;
        blocks_at(random, (first + i) / 2, some);
        memcpy(out + i, some + skipped, n_now * sizeof *out);
        i += n_now;
        skipped = 0;
    }
}

/* ---- distributions ---- */

double sw_uniform(uint64_t bits)
{
    uint64_t from_one = bits >> 12 | UINT64_C(0x3ff) << 52; /* 1 + bits / 2^12 / 2^52 */
    double x = 0;

    memcpy(&x, &from_one, sizeof x);
    return (x - 1.0) + 0x1p-53; /* 53 bits: exact */
}

/* A quotient of polynomials, the highest power first. */
typedef struct quotient {
    double above[8];
    double below[8];
} quotient;

static const quotient middle = {
    {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
     1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0},
    {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
     5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0                     }
};
static const quotient tail = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
     4.63033784615654529590e+0, 1.42343711074968357734e+0},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e+0,
     2.05319162663775882187e+0, 1.0                      }
};
static const quotient far_tail = {
    {2.01033439929228813265e-7,  2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e+0,
     5.46378491116411436990e+0, 6.65790464350110377720e+0},
    {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0                      }
};

static double horner(const double c[8], double r)
{
    return ((((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5]) * r + c[6]) * r + c[7];
}

#define MIDDLE 0.425 /* of p - 1/2 on both sides */

/* q = p - 1/2, in place. */
static void middle_of(double q[LANES])
{
    double r[LANES];
    double above[LANES];
    double below[LANES];

    for (size_t i = 0; i < LANES; i++)
        r[i] = 0.180625 - q[i] * q[i];
    for (size_t i = 0; i < LANES; i++)
        above[i] = horner(middle.above, r[i]);
    for (size_t i = 0; i < LANES; i++)
        below[i] = horner(middle.below, r[i]);
    for (size_t i = 0; i < LANES; i++)
        q[i] = above[i] * q[i] / below[i];
}

/* The same for what is not in the middle; far_tail is for one number in 10^11. */
static void tail_of(double q[LANES])
{
    double r[LANES];
    double x[LANES];

    for (size_t i = 0; i < LANES; i++)
        r[i] = sw_fixed_sqrt(-sw_fixed_log(q[i] < 0.0 ? 0.5 + q[i] : 0.5 - q[i]));
    for (size_t i = 0; i < LANES; i++)
        x[i] = horner(tail.above, r[i] - 1.6) / horner(tail.below, r[i] - 1.6);
    for (size_t i = 0; i < LANES; i++) {
        if (r[i] > 5.0)
            x[i] = horner(far_tail.above, r[i] - 5.0) / horner(far_tail.below, r[i] - 5.0);
        q[i] = q[i] < 0.0 ? -x[i] : x[i];
    }
}

/* First all as if they were of the middle, in loops without a branch; then the others, one in seven, anew. */
void sw_normals(const uint64_t *bits, size_t n, double *out)
{
    double all[SW_RANDOM_BATCH] = {0};
    double some[SW_RANDOM_BATCH + LANES];
    uint16_t others[SW_RANDOM_BATCH];
    size_t n_others = 0;

    for (size_t i = 0; i < n; i++) {
        double q = sw_uniform(bits[i]) - 0.5;
        all[i] = q;
        others[n_others] = (uint16_t)i;
        some[n_others] = q;
        n_others += q < -MIDDLE || q > MIDDLE;
    }
    for (size_t i = 0; i < LANES; i++)
        some[n_others + i] = MIDDLE; /* fills up the last lanes */
    for (size_t i = 0; i < n; i += LANES)
        middle_of(all + i);
    for (size_t k = 0; k < n_others; k += LANES)
        tail_of(some + k);
    for (size_t k = 0; k < n_others; k++)
        all[others[k]] = some[k];
    memcpy(out, all, n * sizeof *out);
}
