/* The text of a fault: what is taken, and how the rest is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/call.h"

static void faults_are_written_in_one_way(void **state)
{
    (void)state;
    assert_int_equal(sw_call_fault_set("all_reduce:rank=2:after=3:error", NULL), SW_OK);
    assert_int_equal(sw_call_fault_set("any:after=0:kill", NULL), SW_OK);
    assert_int_equal(sw_call_fault_set("agree:rank=0:after=18:kill", NULL), SW_OK);
    assert_int_equal(sw_call_fault_set(NULL, NULL), SW_OK);
    assert_false(sw_call_must_fail(SW_CALL_AGREE));
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "all_reduce",
                                        "all_reduce:after=1",
                                        "reduce:after=1:kill",
                                        "any:after=x:kill",
                                        "any:rank=:after=1:kill",
                                        "any:after=1:kill:",
                                        "any:after=1:die",
                                        "any:after=1",
                                        "any:rank=4294967296:after=1:"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sw_error err = {0};
        assert_int_equal(sw_call_fault_set(wrong[i], &err), SW_E_ARGUMENT);
        assert_string_equal(err.help, "for example all_reduce:rank=2:after=3:error or any:after=0:kill");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_written_in_one_way),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
