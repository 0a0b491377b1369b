/* cmocka on several ranks: see the header. */
#include "mpi_main.h"

#include <mpi.h>
#include <stdio.h>

int sw_test_rank(void)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int sw_test_ranks(void)
{
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

int sw_mpi_main(const char *name, const struct CMUnitTest *tests, size_t n_tests, CMFixtureFunction begin,
                CMFixtureFunction end)
{
    int provided = 0;
    int n_failed_all = 0;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    /* Failures go to standard error, everything else to standard output. */
    if (sw_test_rank() != 0 && freopen("/dev/null", "w", stdout) == NULL)
        return 1;
    int n_failed = _cmocka_run_group_tests(name, tests, n_tests, begin, end);
    if (n_failed != 0)
        (void)fprintf(stderr, "rank %d of %d: %d failed\n", sw_test_rank(), sw_test_ranks(), n_failed);
    MPI_Allreduce(&n_failed, &n_failed_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return n_failed_all == 0 ? 0 : 1;
}
