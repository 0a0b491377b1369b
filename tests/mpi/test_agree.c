/* Agreement on outcomes: whoever fails, all ranks leave with the account of the lowest rank that failed. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "comm/agree.h"
#include "mpi_main.h"

/* Agree with the ranks of the bits of `failing`, each with a message of its own. */
static sw_status agree_of(unsigned failing, sw_error *err)
{
    int rank = sw_test_rank();
    sw_status mine = SW_OK;

    if ((failing >> rank & 1U) != 0)
        mine = SW_FAIL(err, rank % 2 == 0 ? SW_E_FORMAT : SW_E_IO, "look at it", "file of rank %d", rank);
    return sw_agree_over(MPI_COMM_WORLD, mine, err);
}

static void all_well_is_well_everywhere(void **state)
{
    (void)state;
    sw_error err = {0};
    assert_int_equal(agree_of(0, &err), SW_OK);
    assert_int_equal(err.status, SW_OK);
    assert_int_equal(sw_agree_over(MPI_COMM_WORLD, SW_OK, NULL), SW_OK);
}

static void any_set_of_failing_ranks_gives_the_lowest_ones_account(void **state)
{
    (void)state;
    int ranks = sw_test_ranks();

    for (unsigned failing = 1; failing < 1U << ranks; failing++) {
        sw_error err = {0};
        char what[64];
        int lowest = __builtin_ctz(failing);
        (void)snprintf(what, sizeof what, "file of rank %d", lowest);
        assert_int_equal(agree_of(failing, &err), lowest % 2 == 0 ? SW_E_FORMAT : SW_E_IO);
        assert_string_equal(err.what, what);
        assert_string_equal(err.help, "look at it");
        assert_int_equal(err.rank, lowest);
        assert_int_equal(err.ranks, ranks);
    }
}

static void ranks_without_an_account_hear_the_status(void **state)
{
    (void)state;
    bool is_last = sw_test_rank() == sw_test_ranks() - 1;
    sw_status status = sw_agree_over(MPI_COMM_WORLD, is_last ? SW_E_LIMIT : SW_OK, NULL);
    assert_int_equal(status, SW_E_LIMIT);
}

static void what_was_agreed_on_keeps_its_rank(void **state)
{
    (void)state;
    sw_error err = {0};
    int last = sw_test_ranks() - 1;
    sw_status status = agree_of(1U << last, &err);
    assert_int_equal(sw_agree_over(MPI_COMM_WORLD, status, &err), status);
    assert_int_equal(err.rank, last);
    assert_int_equal(agree_of(1, &err), SW_E_FORMAT); /* a new failure in the same record */
    assert_int_equal(err.rank, 0);
}

static void what_nobody_else_knows_of_is_not_agreed_on(void **state)
{
    (void)state;
    sw_error err = {0};
    sw_status mine = SW_FAIL(&err, SW_E_IO, "", "a file");
    assert_false(sw_is_agreed(mine, &err));
    assert_int_equal(sw_agree_over(MPI_COMM_WORLD, mine, &err), SW_E_IO);
    assert_true(sw_is_agreed(SW_E_IO, &err));
    assert_false(sw_is_agreed(SW_E_FORMAT, &err)); /* a later failure that was given no record */
    mine = SW_FAIL(&err, SW_E_IO, "", "another file");
    assert_false(sw_is_agreed(mine, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_well_is_well_everywhere),
        cmocka_unit_test(any_set_of_failing_ranks_gives_the_lowest_ones_account),
        cmocka_unit_test(what_was_agreed_on_keeps_its_rank),
        cmocka_unit_test(what_nobody_else_knows_of_is_not_agreed_on),
        cmocka_unit_test(ranks_without_an_account_hear_the_status),
    };
    return SW_MPI_MAIN("agree", tests);
}
