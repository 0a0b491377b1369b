/*
 * cmocka on several ranks. Every rank runs every test; rank 0 alone prints, the others print what failed; the
 * program fails when a test failed on any rank. A test that waits for a rank that has failed is ended by the
 * test's time limit.
 */
#ifndef SW_TEST_MPI_MAIN_H
#define SW_TEST_MPI_MAIN_H

/* clang-format off */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

int sw_test_rank(void); /* of this process in the job */
int sw_test_ranks(void);

/* Skips the running test, and says why, where the job is not one that it is for. */
static inline void sw_test_need(bool is_met, const char *why)
{
    if (is_met)
        return;
    print_message("skipped: %s\n", why);
    skip();
}

/* The whole of main(): start MPI, run the tests, end MPI; the exit status. */
int sw_mpi_main(const char *name, const struct CMUnitTest *tests, size_t n_tests, CMFixtureFunction begin,
                CMFixtureFunction end);
#define SW_MPI_MAIN_WITH(name, tests, begin, end)                                                            \
    sw_mpi_main((name), (tests), sizeof(tests) / sizeof((tests)[0]), (begin), (end))
#define SW_MPI_MAIN(name, tests) SW_MPI_MAIN_WITH((name), (tests), NULL, NULL)

#endif
