/* Validate mode over right plans: no mismatch, and the same numbers. */
#include "apply_case.h"

/* ---- validate mode ---- */

static void validate_mode_finds_no_mismatch_and_the_same_numbers(void **state)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    c.validates = true;
    all_of(tensor_families, SW_COUNT(tensor_families), NULL);
    options.no_sequence_parallel = true;
    options.loss_parallel = true;
    all_of(tensor_families, SW_COUNT(tensor_families), &options);
    for (size_t i = 0; i < SW_COUNT(sequence_families); i++)
        equals_one_rank(sequence_families[i], "cp=2", 0, NULL);
    for (size_t i = 0; i < SW_COUNT(expert_families); i++)
        equals_one_rank(expert_families[i], "ep=2", 0, NULL);
    c.validates = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_mode_finds_no_mismatch_and_the_same_numbers),
    };
    return SW_MPI_MAIN_WITH("apply_layouts", tests, open_ranks, close_ranks);
}
