/* Names of a plugin in a list of overrides: what is taken, what is refused, and that entries then know them.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "override_case.h"

#define NAMES(...)                                                                                           \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

#define OWN_NAME   "give each function a name of its own, such as acme_experts"
#define NOT_A_NAME "is not made of letters, digits and '_', beginning with no digit"
#define FOUR       "abcd"
#define SIXTEEN    FOUR FOUR FOUR FOUR
#define LONGEST    SIXTEEN SIXTEEN SIXTEEN SIXTEEN /* 64 bytes */

static sw_plugin plugin_of(const char *const *wrappers, const char *const *computes)
{
    return (sw_plugin){sizeof(sw_plugin), wrappers, computes};
}

static void take(sw_overrides *o, const char *const *wrappers, const char *const *computes)
{
    const sw_plugin plugin = plugin_of(wrappers, computes);
    sw_error err = {0};
    sw_status status = sw_overrides_register(o, &plugin, &err);

    if (status != SW_OK)
        print_error("%s\n", err.what);
    assert_int_equal(status, SW_OK);
}

static void entries_may_name_what_is_registered_each_by_its_key(void **state)
{
    (void)state;
    sw_overrides *o = list_of("");
    sw_override entry = {.struct_size = sizeof entry, .match = "b", .inner_wrapper = "acme_ring"};
    take(o, NAMES("acme_ring"), NAMES("acme_experts", LONGEST));
    read_more(o, "- {match: a, inner_wrapper: acme_ring, local_compute: acme_experts}", "o.yaml");
    read_more(o, "- {match: c, inner_wrapper: cp_ring, local_compute: " LONGEST "}", "o.yaml");
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_OK);
    assert_string_equal(o->entries[0].inner_wrapper, "acme_ring");
    assert_string_equal(o->entries[0].local_compute, "acme_experts");
    assert_string_equal(o->entries[2].inner_wrapper, "acme_ring");
    entry.inner_wrapper = "acme_experts";
    assert_int_equal(sw_overrides_add(o, &entry, NULL), SW_E_ARGUMENT);
    sw_overrides_destroy(o);
}

static void names_are_of_one_list_and_of_one_that_was_registered_before(void **state)
{
    (void)state;
    static const char text[] = "- {match: a, local_compute: acme_experts}";
    sw_overrides *first = list_of("");
    sw_overrides *second = list_of("");
    take(first, NULL, NAMES("acme_experts"));
    assert_int_equal(sw_overrides_add_text(first, text, sizeof text - 1, NULL, NULL), SW_OK);
    assert_int_equal(sw_overrides_add_text(second, text, sizeof text - 1, NULL, NULL), SW_E_FORMAT);
    take(second, NULL, NAMES("acme_experts"));
    assert_int_equal(sw_overrides_add_text(second, text, sizeof text - 1, NULL, NULL), SW_OK);
    sw_overrides_destroy(first);
    sw_overrides_destroy(second);
}

static void the_names_are_copied(void **state)
{
    (void)state;
    char name[] = "acme_experts";
    const char *names[] = {name, NULL};
    sw_overrides *o = list_of("");
    take(o, NULL, names);
    name[0] = '!';
    names[0] = NULL;
    read_more(o, "- {match: a, local_compute: acme_experts}", "o.yaml");
    sw_overrides_destroy(o);
}

static void a_message_on_a_misspelt_name_knows_the_registered_ones(void **state)
{
    (void)state;
    static const char yaml[] = "- {match: a, local_compute: acme_expert}";
    static const char far[] = "- {match: a, local_compute: zzz}";
    sw_override entry = {.struct_size = sizeof entry, .match = "a", .local_compute = "acme_expert"};
    sw_overrides *o = list_of("");
    sw_error err = {0};
    take(o, NULL, NAMES("acme_experts"));
    assert_int_equal(sw_overrides_add_text(o, yaml, sizeof yaml - 1, "o.yaml", &err), SW_E_FORMAT);
    assert_string_equal(err.what, "o.yaml:1: local_compute: unknown function 'acme_expert'");
    assert_string_equal(err.help, "did you mean 'acme_experts'?");
    assert_int_equal(sw_overrides_add(o, &entry, &err), SW_E_ARGUMENT);
    assert_string_equal(err.help, "did you mean 'acme_experts'?");
    assert_int_equal(sw_overrides_add_text(o, far, sizeof far - 1, "o.yaml", &err), SW_E_FORMAT);
    assert_string_equal(err.help, "known: ep_experts, grouped_experts, acme_experts");
    sw_overrides_destroy(o);
}

/* Each "known: " with more names than a help has room for ends with a whole name. */
static void a_long_list_of_names_is_cut_between_two(void **state)
{
    (void)state;
    static const char far[] = "- {match: a, local_compute: zzz}";
    char names[32][32];
    const char *list[33] = {NULL};
    char known[1024];
    size_t used = (size_t)snprintf(known, sizeof known, "known: ep_experts, grouped_experts");
    sw_overrides *o = list_of("");
    sw_error err = {0};
    for (int i = 0; i < 32; i++) {
        (void)snprintf(names[i], sizeof names[i], "acme_name_%02d", i);
        list[i] = names[i];
        used += (size_t)snprintf(known + used, sizeof known - used, ", %s", names[i]);
    }
    take(o, NULL, list);
    assert_int_equal(sw_overrides_add_text(o, far, sizeof far - 1, "o.yaml", &err), SW_E_FORMAT);
    size_t length = strlen(err.help);
    assert_in_range(length, sizeof err.help - 15, sizeof err.help - 1);
    assert_string_equal(err.help + length - 5, ", ...");
    assert_memory_equal(err.help, known, length - 5);
    assert_int_equal(known[length - 5], ',');
    sw_overrides_destroy(o);
}

static void names_with_faults_are_refused_and_nothing_is_registered(void **state)
{
    (void)state;
    static const char good[] = "- {match: a, inner_wrapper: acme_first}";
    // clang-format off
    static const struct {
        const char *wrappers[3];
        const char *computes[2];
        const char *what;
    } rows[] = {
        { {"acme_first", ""}, {NULL}, "inner_wrappers: '' " NOT_A_NAME },
        { {"acme_first", "1st"}, {NULL}, "inner_wrappers: '1st' " NOT_A_NAME },
        { {"acme_first"}, {"acme experts"}, "local_computes: 'acme experts' " NOT_A_NAME },
        { {"acme_first", LONGEST "e"}, {NULL}, "inner_wrappers: '" LONGEST "' is longer than 64 bytes" },
        { {"acme_first", "cp_ring"}, {NULL}, "inner_wrappers: 'cp_ring' is compiled in" },
        { {"acme_first", "acme_first"}, {NULL}, "inner_wrappers: 'acme_first' is registered already" },
        { {"acme_first", "acme_before"}, {NULL}, "inner_wrappers: 'acme_before' is registered already" },
    };
    // clang-format on
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        const sw_plugin plugin = plugin_of(rows[i].wrappers, rows[i].computes);
        sw_overrides *o = list_of("");
        sw_error err = {0};
        char what[256];
        take(o, NAMES("acme_before"), NULL);
        assert_int_equal(sw_overrides_register(o, &plugin, &err), SW_E_ARGUMENT);
        (void)snprintf(what, sizeof what, "sw_plugin: %s", rows[i].what);
        assert_string_equal(err.what, what);
        assert_string_equal(err.help, OWN_NAME);
        assert_int_equal(sw_overrides_add_text(o, good, sizeof good - 1, NULL, NULL), SW_E_FORMAT);
        sw_overrides_destroy(o);
    }
}

static void a_name_may_be_that_of_the_other_kind(void **state)
{
    (void)state;
    sw_overrides *o = list_of("");
    take(o, NAMES("ep_experts", "acme"), NAMES("cp_ring", "acme"));
    read_more(o, "- {match: a, inner_wrapper: ep_experts, local_compute: cp_ring}", "o.yaml");
    sw_overrides_destroy(o);
}

static void names_without_an_end_are_refused(void **state)
{
    (void)state;
    char names[SW_REGISTRY_MAX_NAMES][16];
    const char *list[SW_REGISTRY_MAX_NAMES] = {NULL};
    size_t most = SW_REGISTRY_MAX_NAMES - sw_registry_built_in.of[SW_REGISTRY_WRAPPER].n_names;
    const sw_plugin plugin = plugin_of(list, NULL);
    sw_overrides *o = list_of("");
    sw_error err = {0};
    for (size_t i = 0; i < SW_COUNT(list); i++) {
        (void)snprintf(names[i], sizeof names[i], "acme_%zu", i);
        list[i] = names[i];
    }
    assert_int_equal(sw_overrides_register(o, &plugin, &err), SW_E_LIMIT);
    assert_string_equal(
        err.what, "sw_plugin: inner_wrappers: more than 256 functions with those that are known already");
    assert_string_equal(err.help, "end the names by NULL, and leave out what no override names");
    list[most] = NULL; /* as many as there is room for */
    assert_int_equal(sw_overrides_register(o, &plugin, &err), SW_OK);
    read_more(o, "- {match: a, inner_wrapper: acme_0}", "o.yaml");
    sw_overrides_destroy(o);
}

static void every_failed_allocation_is_reported_and_changes_nothing(void **state)
{
    (void)state;
    const sw_plugin plugin = plugin_of(NAMES("acme_ring"), NAMES("acme_experts"));
    int64_t live = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_overrides *o = NULL;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_overrides_create(&o, &err);
        if (status == SW_OK)
            status = sw_overrides_register(o, &plugin, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK) {
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_int_equal(err.status, SW_E_NO_MEMORY);
            assert_true(o == NULL || memcmp(&o->registry, &sw_registry_built_in, sizeof o->registry) == 0);
        }
        sw_overrides_destroy(o);
        assert_int_equal(sw_alloc_live(), live);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_may_name_what_is_registered_each_by_its_key),
        cmocka_unit_test(names_are_of_one_list_and_of_one_that_was_registered_before),
        cmocka_unit_test(the_names_are_copied),
        cmocka_unit_test(a_message_on_a_misspelt_name_knows_the_registered_ones),
        cmocka_unit_test(a_long_list_of_names_is_cut_between_two),
        cmocka_unit_test(names_with_faults_are_refused_and_nothing_is_registered),
        cmocka_unit_test(a_name_may_be_that_of_the_other_kind),
        cmocka_unit_test(names_without_an_end_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
