/* `roles:` and `arch_roles:` of an override file: each form of a rule, and each refusal with its text. */
#include "override_case.h"

static void rules_are_mappings_or_tuples(void **state)
{
    (void)state;
    sw_overrides *o = list_of("roles:\n"
                              "  - {patterns: [a, B.c], role: colwise, mode: segment_exact}\n"
                              "  - {pattern: d, role: fused_qkv}\n"
                              "  - [[e, f], norm, segment_substring]\n"
                              "  - [g, skip]\n"
                              "  - {pattern: h, role: bias, mode: whole}\n");
    const sw_role_rule *rules = o->roles.rules;
    assert_true(o->has_roles);
    assert_false(o->extends_roles);
    assert_int_equal(o->roles.n_rules, 5);
    assert_string_equal(rules[0].patterns[0], "a");
    assert_string_equal(rules[0].patterns[1], "B.c");
    assert_null(rules[0].patterns[2]);
    assert_int_equal(rules[0].role, SW_ROLE_COLWISE);
    assert_int_equal(rules[0].mode, SW_MATCH_EXACT);
    assert_string_equal(rules[1].patterns[0], "d");
    assert_null(rules[1].patterns[1]);
    assert_int_equal(rules[1].mode, SW_MATCH_WHOLE);
    assert_int_equal(rules[2].role, SW_ROLE_NORM);
    assert_int_equal(rules[2].mode, SW_MATCH_PART);
    assert_int_equal(rules[3].role, SW_ROLE_SKIP);
    assert_int_equal(rules[3].mode, SW_MATCH_WHOLE);
    assert_int_equal(rules[4].mode, SW_MATCH_WHOLE);
    sw_overrides_destroy(o);
}

static void rules_replace_the_built_in_ones_unless_they_extend_them(void **state)
{
    (void)state;
    sw_overrides *o = list_of("roles: {extend: true, rules: [[a, norm]]}");
    assert_true(o->has_roles);
    assert_true(o->extends_roles);
    assert_int_equal(o->roles.n_rules, 1);
    read_more(o, "roles: [[b, bias], [c, bias]]", "later");
    assert_false(o->extends_roles);
    assert_int_equal(o->roles.n_rules, 2);
    assert_string_equal(o->roles.rules[0].patterns[0], "b");
    read_more(o, "roles: []", "none");
    assert_true(o->has_roles);
    assert_int_equal(o->roles.n_rules, 0);
    sw_overrides_destroy(o);
}

static void rules_of_an_architecture_go_by_its_normalised_name(void **state)
{
    (void)state;
    sw_overrides *o = list_of("arch_roles:\n"
                              "  Qwen2ForCausalLM:\n"
                              "    - {patterns: [q_a, kv_a], role: replicated}\n"
                              "    - [x, skip]\n"
                              "  GPT_Neo-X: [[[y], norm]]\n");
    assert_int_equal(o->n_arch_roles, 2);
    assert_string_equal(o->arch_roles[0].architecture, "qwen2");
    assert_int_equal(o->arch_roles[0].rules.n_rules, 2);
    assert_string_equal(o->arch_roles[0].rules.rules[0].patterns[1], "kv_a");
    assert_string_equal(o->arch_roles[1].architecture, "gptneox");

    read_more(o, "arch_roles: {qwen2: [[z, bias]], llama: []}", "later");
    assert_int_equal(o->n_arch_roles, 3);
    assert_int_equal(o->arch_roles[0].rules.n_rules, 1);
    assert_string_equal(o->arch_roles[0].rules.rules[0].patterns[0], "z");
    assert_string_equal(o->arch_roles[2].architecture, "llama");
    assert_int_equal(o->arch_roles[2].rules.n_rules, 0);
    sw_overrides_destroy(o);
}

static void rules_with_faults_are_refused(void **state)
{
    (void)state;
    // clang-format off
    static const refusal rows[] = {
        { "roles: norm", "o.yaml:1: roles: expected a list of rules", "write - {patterns: [q_proj], role: colwise}" },
        { "roles:\n  - {patterns: [a], role: colwize}", "o.yaml:2: roles: unknown role 'colwize'", "did you mean 'colwise'?" },
        { "roles:\n  - {patterns: [a], role: ROWWISE}", "o.yaml:2: roles: unknown role 'rowwise'", "did you mean 'rowwise'?" },
        { "roles:\n  - [a, norm, segment_exat]", "o.yaml:2: roles: unknown mode 'segment_exat'",
          "did you mean 'segment_exact'?" },
        { "roles:\n  - [a]", "o.yaml:2: roles: a rule of 1 fields, expected [patterns, role] or [patterns, role, mode]",
          "write [[q_proj, k_proj], colwise]" },
        { "roles:\n  - x", "o.yaml:2: roles: 'x' is not a rule", "write {patterns: [q_proj], role: colwise}" },
        { "roles:\n  - {role: norm}", "o.yaml:2: roles: a rule without patterns", "write {patterns: [q_proj], role: colwise}" },
        { "roles:\n  - {pattern: a}", "o.yaml:2: roles: a rule without a role", "write {patterns: [q_proj], role: colwise}" },
        { "roles:\n  - {patterns: [], role: norm}", "o.yaml:2: roles: a rule without patterns",
          "remove the rule, or name a pattern" },
        { "roles:\n  - {patterns: [\"\"], role: norm}", "o.yaml:2: roles: the pattern '' is empty", "write 1 to 1024 bytes of UTF-8 on one line" },
        { "roles:\n  - {pattern: \"\", role: norm}", "o.yaml:2: roles: the pattern '' is empty", "write 1 to 1024 bytes of UTF-8 on one line" },
        { "roles:\n  - {pattern: a, patterns: [b], role: norm}", "o.yaml:2: roles: a rule has either pattern or patterns",
          "put all of them in patterns" },
        { "roles:\n  - {patern: a, role: norm}", "o.yaml:2: roles: unknown key 'patern'", "did you mean 'pattern'?" },
        { "roles: {extend: true}", "o.yaml:1: roles: no rules are given", "write roles: {extend: true, rules: [...]}" },
        { "roles: {extend: 1, rules: []}", "o.yaml:1: roles: extend is '1', not true or false", "write true or false, without quotes" },
        { "arch_roles: [a]", "o.yaml:1: arch_roles: expected a mapping from architecture to a list of rules",
          "write {Qwen2ForCausalLM: [[[q_proj], colwise]]}" },
        { "arch_roles: {ForCausalLM: []}", "o.yaml:1: arch_roles: 'ForCausalLM' is not the name of an architecture",
          "write it as config.json does: Qwen2ForCausalLM" },
        { "arch_roles: {qwen2: [],\n  Qwen2ForCausalLM: []}", "o.yaml:2: arch_roles: the architecture 'qwen2' stands twice",
          "join the two lists" },
        { "arch_roles: {qwen2: [[a, norm, segment_exact]]}",
          "o.yaml:1: arch_roles: a rule of 3 fields, expected [patterns, role]", "write [[q_proj, k_proj], colwise]" },
        { "arch_roles: {qwen2: [{pattern: a, role: norm, mode: segment_exact}]}",
          "o.yaml:1: arch_roles: unknown key 'mode'", "known: patterns, pattern, role" },
    };
    // clang-format on
    check_refusals(rows, SW_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_mappings_or_tuples),
        cmocka_unit_test(rules_replace_the_built_in_ones_unless_they_extend_them),
        cmocka_unit_test(rules_of_an_architecture_go_by_its_normalised_name),
        cmocka_unit_test(rules_with_faults_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
