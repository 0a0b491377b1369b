/*
 * Philox and the inverse of the normal distribution (checkpoint/random.h). The coefficients are those of
 * AS241, "The percentage points of the normal distribution", Applied Statistics 37 (1988), exact to 1e-16.
 */
#include "checkpoint/random.h"

#include "base/map.h"
#include "base/status.h"
#include "checkpoint/fixed_math.h"

/* ---- bits ---- */

void sw_philox(uint32_t block[4], const uint32_t key[2])
{
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * block[0];
        uint64_t b = UINT64_C(0xcd9e8d57) * block[2];
        block[0] = (uint32_t)(b >> 32) ^ block[1] ^ k0;
        block[1] = (uint32_t)b;
        block[2] = (uint32_t)(a >> 32) ^ block[3] ^ k1;
        block[3] = (uint32_t)a;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
}

sw_random sw_random_of(uint64_t seed, const char *name, size_t length)
{
    return (sw_random){.seed = seed, .key = sw_hash(name, length, 0)};
}

static void block_at(const sw_random *random, uint64_t number, uint64_t pair[2])
{
    const uint32_t key[2] = {(uint32_t)random->key, (uint32_t)(random->key >> 32)};
    uint32_t block[4] = {(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)random->seed,
                         (uint32_t)(random->seed >> 32)};

    sw_philox(block, key);
    pair[0] = block[0] | (uint64_t)block[1] << 32;
    pair[1] = block[2] | (uint64_t)block[3] << 32;
}

void sw_random_bits(const sw_random *random, uint64_t first, size_t n, uint64_t *out)
{
    uint64_t pair[2];
    size_t i = 0;

    if (n > 0 && first % 2 == 1) {
        block_at(random, first / 2, pair);
        out[i++] = pair[1];
    }
    for (; i + 1 < n; i += 2)
        block_at(random, (first + i) / 2, out + i);
    if (i < n) {
        block_at(random, (first + i) / 2, pair);
        out[i] = pair[0];
    }
}

/* ---- distributions ---- */

double sw_uniform(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52; /* 53 bits: exact */
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

double sw_normal(uint64_t bits)
{
    double p = sw_uniform(bits);
    double q = p - 0.5;

    if (q >= -0.425 && q <= 0.425) {
        double r = 0.180625 - q * q;
        return horner(middle.above, r) * q / horner(middle.below, r);
    }
    double r = sw_fixed_sqrt(-sw_fixed_log(q < 0.0 ? p : 1.0 - p));
    const quotient *part = r <= 5.0 ? &tail : &far_tail;
    r -= r <= 5.0 ? 1.6 : 5.0;
    double x = horner(part->above, r) / horner(part->below, r);
    return q < 0.0 ? -x : x;
}
