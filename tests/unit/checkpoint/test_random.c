/*
 * The random numbers of a parameter: against published vectors, against another implementation
 * (tests/data/random/make.py), and as a distribution.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "checkpoint/init_values.h"
#include "io/tensor_list.h"

/* ---- against others ---- */

/* Vectors of the authors' own library (Random123, kat_vectors). */
static void philox_gives_the_published_vectors(void **state)
{
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t block[4];
    } vectors[] = {
        {{0, 0, 0, 0},                                     {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}                                                          },
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}                                                          },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(vectors); i++) {
        uint32_t block[4];
        memcpy(block, vectors[i].counter, sizeof block);
        sw_philox(block, vectors[i].key);
        assert_memory_equal(block, vectors[i].block, sizeof block);
    }
}

static double normal(uint64_t bits)
{
    double x = 0.0;
    sw_normals(&bits, 1, &x);
    return x;
}

/* The cells of a line, which is cut up. */
static size_t cells_of(char *line, char *cells[8])
{
    size_t n = 0;

    line[strcspn(line, "\n")] = '\0';
    for (char *rest = line; rest != NULL && n < 8;)
        cells[n++] = strsep(&rest, "\t");
    return n;
}

static void check_bits(char *const *cells)
{
    uint64_t bits = 0;
    sw_random random = sw_random_of(strtoull(cells[1], NULL, 10), cells[2], strlen(cells[2]));

    sw_random_bits(&random, strtoull(cells[3], NULL, 10), 1, &bits);
    if (bits != strtoull(cells[4], NULL, 16))
        fail_msg("seed %s, \"%s\" at %s: %016" PRIx64 ", not %s", cells[1], cells[2], cells[3], bits,
                 cells[4]);
}

static void check_normal(const char *bits, const char *wanted)
{
    double x = normal(strtoull(bits, NULL, 16));

    if (x != strtod(wanted, NULL)) /* the very same double */
        fail_msg("the normal number of %s is %a, not %s", bits, x, wanted);
}

static void check_tensor(char *const *cells)
{
    static uint8_t bytes[1 << 16];
    size_t n = strtoul(cells[3], NULL, 10);
    sw_dtype dtype = sw_dtype_of(cells[4], strlen(cells[4]));
    sw_init_rule rule = {.kind = SW_INIT_NORMAL, .a = strtod(cells[5], NULL)};
    sw_random random = sw_random_of(strtoull(cells[1], NULL, 10), cells[2], strlen(cells[2]));

    assert_in_range(n, 1, sizeof bytes / 4);
    sw_init_fill(&rule, &random, dtype, 0, n, bytes);
    uint64_t hash = sw_hash(bytes, n * sw_dtype_bits(dtype) / 8, 0);
    if (hash != strtoull(cells[6], NULL, 16))
        fail_msg("%s elements of deviation %s in %s: hash %016" PRIx64 ", not %s", cells[3], cells[5],
                 cells[4], hash, cells[6]);
}

static void another_implementation_gives_the_same_numbers(void **state)
{
    FILE *file = fopen(SW_SOURCE_DIR "/tests/data/random/values.tsv", "r");
    char line[512];
    char *cells[8];
    size_t n_lines = 0;

    (void)state;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file) != NULL; n_lines++) {
        size_t n = cells_of(line, cells);
        if (n == 6 && strcmp(cells[0], "bits") == 0) {
            check_bits(cells);
            check_normal(cells[4], cells[5]);
        } else if (n == 3 && strcmp(cells[0], "normal") == 0) {
            check_normal(cells[1], cells[2]);
        } else if (n == 7 && strcmp(cells[0], "tensor") == 0) {
            check_tensor(cells);
        } else {
            fail_msg("a line of %zu cells, '%s'", n, cells[0]);
        }
    }
    (void)fclose(file);
    assert_in_range(n_lines, 150, 1000);
}

/* ---- how they are asked for ---- */

static void a_run_of_numbers_is_the_same_wherever_it_begins(void **state)
{
    uint64_t all[40];
    uint64_t some[40];
    sw_random random = sw_random_of(3, "a", 1);

    (void)state;
    sw_random_bits(&random, 100, SW_COUNT(all), all);
    for (size_t first = 0; first < SW_COUNT(all); first++) {
        for (size_t n = 0; first + n <= SW_COUNT(all); n++) {
            memset(some, 0xee, sizeof some);
            sw_random_bits(&random, 100 + first, n, some);
            if (n > 0)
                assert_memory_equal(some, all + first, n * sizeof *all);
            assert_true(n == SW_COUNT(some) || some[n] == UINT64_C(0xeeeeeeeeeeeeeeee)); /* nothing behind */
        }
    }
}

static void seed_and_name_and_index_each_change_the_number(void **state)
{
    static const struct {
        uint64_t seed;
        const char *name;
        uint64_t index;
    } all[] = {
        {0,                 "a",  0                },
        {1,                 "a",  0                },
        {UINT64_C(1) << 32, "a",  0                },
        {0,                 "b",  0                },
        {0,                 "a",  1                },
        {0,                 "a",  2                },
        {0,                 "a",  UINT64_C(1) << 33},
        {0,                 "aa", 0                },
    };
    uint64_t bits[SW_COUNT(all)];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(all); i++) {
        sw_random random = sw_random_of(all[i].seed, all[i].name, strlen(all[i].name));
        sw_random_bits(&random, all[i].index, 1, &bits[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(bits[i], bits[k]);
    }
}

/* ---- as a distribution ---- */

enum { N = 1 << 20 };

/* Within five deviations of what the sample of this size may be off. */
static void expect_near(const char *what, double found, double wanted, double deviation)
{
    if (fabs(found - wanted) > 5.0 * deviation)
        fail_msg("%s is %g, not %g within %g", what, found, wanted, 5.0 * deviation);
}

static void normal_numbers_have_the_moments_of_the_normal_distribution(void **state)
{
    static uint64_t bits[N];
    double sum[5] = {0};
    double neighbours = 0.0;
    double last = 0.0;
    sw_random random = sw_random_of(1, "model.embed_tokens.weight", 25);

    (void)state;
    sw_random_bits(&random, 0, N, bits);
    for (size_t i = 0; i < N; i++) {
        double x = normal(bits[i]);
        double power = 1.0;
        for (size_t k = 1; k < SW_COUNT(sum); k++)
            sum[k] += power *= x;
        neighbours += x * last;
        last = x;
    }
    double root = sqrt((double)N);
    expect_near("the mean", sum[1] / N, 0.0, 1.0 / root);
    expect_near("the variance", sum[2] / N, 1.0, sqrt(2.0) / root);
    expect_near("the third moment", sum[3] / N, 0.0, sqrt(15.0) / root);
    expect_near("the fourth moment", sum[4] / N, 3.0, sqrt(96.0) / root);
    expect_near("what neighbours share", neighbours / N, 0.0, 1.0 / root);
}

static void uniform_numbers_fill_their_interval_evenly(void **state)
{
    enum { BINS = 64 };
    static uint64_t bits[N];
    double bins[BINS] = {0};
    double chi = 0.0;
    sw_random random = sw_random_of(2, "uniform", 7);

    (void)state;
    sw_random_bits(&random, 0, N, bits);
    for (size_t i = 0; i < N; i++) {
        double u = sw_uniform(bits[i]);
        assert_true(u > 0.0 && u < 1.0);
        bins[(size_t)(u * BINS)] += 1.0;
    }
    for (size_t i = 0; i < BINS; i++)
        chi += (bins[i] - (double)N / BINS) * (bins[i] - (double)N / BINS) / ((double)N / BINS);
    expect_near("chi square", chi, BINS - 1, sqrt(2.0 * (BINS - 1)));
}

static void a_normal_number_is_odd_in_its_uniform_one(void **state)
{
    (void)state;
    for (uint64_t i = 1; i < 4000; i++) {
        uint64_t bits = i * UINT64_C(0x9e3779b97f4a7c15);
        assert_true(normal(bits) == -normal(~bits));
    }
    assert_true(normal(0) > -8.3 && normal(0) < -8.0);
    assert_true(sw_uniform(0) > 0.0 && sw_uniform(UINT64_MAX) < 1.0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_vectors),
        cmocka_unit_test(another_implementation_gives_the_same_numbers),
        cmocka_unit_test(a_run_of_numbers_is_the_same_wherever_it_begins),
        cmocka_unit_test(seed_and_name_and_index_each_change_the_number),
        cmocka_unit_test(normal_numbers_have_the_moments_of_the_normal_distribution),
        cmocka_unit_test(uniform_numbers_fill_their_interval_evenly),
        cmocka_unit_test(a_normal_number_is_odd_in_its_uniform_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
