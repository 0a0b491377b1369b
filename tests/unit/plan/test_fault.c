/* Faults while a plan is made: equal ones of many layers are one finding with a count, in the order of the
 * first. */
#include "plan/fault.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/plan_make.h"

static sw_plan *empty(void)
{
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    assert_int_equal(sw_mesh_create(&mesh, "tp=2", 0, NULL), SW_OK);
    assert_int_equal(sw_plan_make_empty(&plan, mesh, NULL), SW_OK);
    sw_mesh_destroy(mesh);
    return plan;
}

static uint32_t add(sw_plan *plan, const char *fqn, int number)
{
    return sw_plan_fault(plan, SW_SEVERITY_ERROR, "code", fqn, strlen(fqn), "do this", "%d rows", number);
}

static void the_same_fault_in_many_layers_is_one_with_a_count(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    for (int i = 0; i < 40; i++) {
        char fqn[64];
        (void)snprintf(fqn, sizeof fqn, "model.layers.%d.mlp", i);
        (void)add(plan, fqn, 3);
    }
    sw_plan_faults_flush(plan);
    assert_int_equal(sw_report_count(plan->report), 1);
    const sw_finding *f = sw_report_finding(plan->report, 0);
    assert_string_equal(f->fqn, "model.layers.#.mlp");
    assert_string_equal(f->what, "model.layers.#.mlp: 3 rows (40 alike)");
    assert_string_equal(f->help, "do this");
    assert_string_equal(f->code, "code");
    sw_plan_destroy(plan);
}

static void a_fault_of_the_whole_model_is_one_whatever_the_names(void **state)
{
    static const char *const names[] = {"layers.0.q_proj.scales", "layers.0.k_proj.qzeros",
                                        "layers.1.q_proj.scales"};
    sw_plan *plan = empty();
    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "quant_unknown", names[i], strlen(names[i]), "", "why");
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "quant_unknown", "x", 1, "", "why else");
    sw_plan_faults_flush(plan);
    assert_int_equal(sw_report_count(plan->report), 2);
    assert_string_equal(sw_report_finding(plan->report, 0)->what, "layers.#.q_proj.scales: why (3 alike)");
    assert_string_equal(sw_report_finding(plan->report, 1)->what, "x: why else");
    sw_plan_destroy(plan);
}

static void a_single_fault_keeps_its_own_name(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    (void)add(plan, "model.layers.7.mlp", 3);
    sw_plan_faults_flush(plan);
    assert_string_equal(sw_report_finding(plan->report, 0)->fqn, "model.layers.7.mlp");
    assert_string_equal(sw_report_finding(plan->report, 0)->what, "model.layers.7.mlp: 3 rows");
    sw_plan_destroy(plan);
}

static void a_fault_of_the_whole_plan_has_no_name(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    (void)add(plan, "", 3);
    sw_plan_faults_flush(plan);
    assert_string_equal(sw_report_finding(plan->report, 0)->what, "3 rows");
    sw_plan_destroy(plan);
}

static void other_numbers_codes_or_names_are_other_faults(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    uint32_t first = add(plan, "a.0.b", 3);
    assert_int_equal(add(plan, "a.1.b", 3), first);
    assert_int_not_equal(add(plan, "a.0.b", 4), first);
    assert_int_not_equal(add(plan, "a.0.c", 3), first);
    assert_int_not_equal(sw_plan_fault(plan, SW_SEVERITY_ERROR, "other", "a.0.b", 5, "do this", "%d rows", 3),
                         first);
    sw_plan_faults_flush(plan);
    assert_int_equal(sw_report_count(plan->report), 4);
    sw_plan_destroy(plan);
}

static void a_remembered_fault_is_counted_again(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    uint32_t index = add(plan, "a.0.b", 3);
    sw_plan_fault_again(plan, index);
    sw_plan_fault_again(plan, UINT32_MAX);     /* none */
    sw_plan_fault_again(plan, UINT32_MAX - 1); /* a tower's: none either */
    sw_plan_faults_flush(plan);
    assert_string_equal(sw_report_finding(plan->report, 0)->what, "a.#.b: 3 rows (2 alike)");
    sw_plan_destroy(plan);
}

static void findings_stand_in_the_order_of_the_first_of_each(void **state)
{
    sw_plan *plan = empty();
    (void)state;
    (void)add(plan, "a.0.b", 1);
    (void)add(plan, "x", 2);
    (void)add(plan, "a.1.b", 1);
    sw_plan_faults_flush(plan);
    (void)add(plan, "y", 3);
    sw_plan_faults_flush(plan);
    sw_plan_faults_flush(plan); /* nothing left */
    assert_int_equal(sw_report_count(plan->report), 3);
    assert_string_equal(sw_report_finding(plan->report, 0)->fqn, "a.#.b");
    assert_string_equal(sw_report_finding(plan->report, 1)->fqn, "x");
    assert_string_equal(sw_report_finding(plan->report, 2)->fqn, "y");
    sw_plan_destroy(plan);
}

static void a_fault_that_was_lost_for_want_of_memory_fails_the_plan(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_plan *plan = empty();
        sw_alloc_fail_at(n);
        uint32_t index = add(plan, "a.0.b", 3);
        sw_alloc_fail_at(0);
        bool lost = plan->is_out_of_memory;
        assert_int_equal(lost, index == UINT32_MAX);
        sw_plan_destroy(plan);
        if (!lost)
            break;
    }
    assert_int_equal(sw_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_fault_in_many_layers_is_one_with_a_count),
        cmocka_unit_test(a_fault_of_the_whole_model_is_one_whatever_the_names),
        cmocka_unit_test(a_single_fault_keeps_its_own_name),
        cmocka_unit_test(a_fault_of_the_whole_plan_has_no_name),
        cmocka_unit_test(other_numbers_codes_or_names_are_other_faults),
        cmocka_unit_test(a_remembered_fault_is_counted_again),
        cmocka_unit_test(findings_stand_in_the_order_of_the_first_of_each),
        cmocka_unit_test(a_fault_that_was_lost_for_want_of_memory_fails_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
