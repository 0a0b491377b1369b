/* Names of functions that overrides may use, against docs/formats/overrides.md. */
#include "plan/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BUILT_IN (&sw_registry_built_in)

static void registered_names_are_known_each_to_its_kind(void **state)
{
    (void)state;
    assert_true(sw_registry_has(BUILT_IN, SW_REGISTRY_WRAPPER, "cp_ring"));
    assert_true(sw_registry_has(BUILT_IN, SW_REGISTRY_WRAPPER, "cp_attention"));
    assert_true(sw_registry_has(BUILT_IN, SW_REGISTRY_WRAPPER, "cp_ulysses"));
    assert_false(sw_registry_has(BUILT_IN, SW_REGISTRY_WRAPPER, "ep_experts"));
    assert_false(sw_registry_has(BUILT_IN, SW_REGISTRY_WRAPPER, ""));
    assert_true(sw_registry_has(BUILT_IN, SW_REGISTRY_COMPUTE, "ep_experts"));
    assert_true(sw_registry_has(BUILT_IN, SW_REGISTRY_COMPUTE, "grouped_experts"));
    assert_false(sw_registry_has(BUILT_IN, SW_REGISTRY_COMPUTE, "cp_ring"));
}

static void a_misspelt_name_has_a_nearest_one_of_its_kind(void **state)
{
    (void)state;
    assert_string_equal(sw_registry_nearest(BUILT_IN, SW_REGISTRY_WRAPPER, "cp_rang"), "cp_ring");
    assert_string_equal(sw_registry_nearest(BUILT_IN, SW_REGISTRY_COMPUTE, "ep_expert"), "ep_experts");
    assert_null(sw_registry_nearest(BUILT_IN, SW_REGISTRY_COMPUTE, "something else"));
}

static void the_page_lists_the_names_in_this_order(void **state)
{
    (void)state;
    static const char *const keys[] = {"inner_wrapper", "local_compute"};
    static char page[1 << 17];
    FILE *file = fopen(SW_SOURCE_DIR "/docs/formats/overrides.md", "rb");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);

    for (int kind = 0; kind < SW_REGISTRY_KIND_COUNT_; kind++) {
        char row[512];
        const sw_registry_names *of = &sw_registry_built_in.of[kind];
        size_t used = (size_t)snprintf(row, sizeof row, "\n| `%s` | ", keys[kind]);
        for (size_t i = 0; i < of->n_names; i++)
            used +=
                (size_t)snprintf(row + used, sizeof row - used, "%s`%s`", i == 0 ? "" : ", ", of->names[i]);
        (void)snprintf(row + used, sizeof row - used, " |\n");
        assert_non_null(strstr(page, row));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered_names_are_known_each_to_its_kind),
        cmocka_unit_test(a_misspelt_name_has_a_nearest_one_of_its_kind),
        cmocka_unit_test(the_page_lists_the_names_in_this_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
