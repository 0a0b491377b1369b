/* The weights of a block's experts are cut alike over ep, and all or none over tp. */
#include "plan/lint_expert.h"

#include <stdio.h>

#include "check_bench.h"

#include "base/status.h"

#define BLOCK "model.layers.0.mlp"

static const tiny_case extends = {.config = MOE, .mesh = "dp=2,tp=2", .ep = 4};
static const tiny_case axis = {.config = MOE, .mesh = "ep=2,tp=2"};
static const tiny_case dense = {.config = MOE, .mesh = "tp=2"};

/* Patch parameters of the block; NULL: there is a plan. */
static void check(const tiny_case *what, const char *patch, const char *code, const char *words)
{
    char overrides[400];
    tiny_case c = *what;

    (void)snprintf(overrides, sizeof overrides, "- match: " BLOCK "\n  params: {+: {%s}}\n", patch);
    c.overrides = overrides;
    tiny t = code == NULL ? tiny_plan(&c) : tiny_refuse(&c);
    if (code != NULL)
        tiny_finding(&t, SW_SEVERITY_ERROR, code, words, NULL);
    tiny_drop(&t);
}

static void an_expert_stands_in_its_stack_or_alone(void **state)
{
    (void)state;
    check(&extends, "experts.0.down_proj.weight: {tp: shard(1)}", "two_owners",
          BLOCK ".experts.0.down_proj.weight: its boundary holds it twice: in the stack 'experts.down_proj', "
                "and alone");
    check(&axis, "experts.1.up_proj.weight: {tp: R}", "two_owners", "in the stack 'experts.up_proj'");
}

static void all_experts_are_cut_over_ep_or_none(void **state)
{
    (void)state;
    check(
        &extends, "experts.down_proj: {tp: S(2)}", "members_disagree",
        "'experts.gate_proj' and 'experts.down_proj' meet in the experts, and only the first is cut over ep");
    check(&extends, "experts.gate_proj: {ep: R, tp: R}", "members_disagree",
          "'experts.up_proj' and 'experts.gate_proj' meet in the experts, and only the first is cut over ep");
    check(&axis, "experts.down_proj: {tp: S(2)}", "members_disagree", "only the first is cut over ep");
}

static void a_role_does_not_make_an_expert_another_thing(void **state)
{
    tiny_case c = extends;

    (void)state;
    c.overrides = "roles: {extend: true, rules: [{pattern: down_proj, role: rowwise}]}\n";
    tiny t = tiny_refuse(&c);
    tiny_finding(
        &t, SW_SEVERITY_ERROR, "members_disagree",
        "'experts.gate_proj' and 'experts.0.down_proj.weight' meet in the experts, and only the first "
        "is cut over ep",
        NULL);
    tiny_drop(&t);
}

static void experts_of_a_derived_ep_are_not_cut_over_tp(void **state)
{
    (void)state;
    check(&extends, "experts.down_proj: {tp: S(2)}", "expert_tp", "'experts.down_proj' is cut over tp");
    check(&extends,
          "experts.gate_proj: {tp: S(1)}, experts.up_proj: {tp: S(1)}, experts.down_proj: {tp: S(2)}",
          "expert_tp", "is cut over tp, but the derived ep group contains the tp ranks");
}

static void all_experts_are_cut_over_tp_or_none(void **state)
{
    (void)state;
    check(
        &axis, "experts.gate_proj: {ep: S(0), tp: R}, experts.up_proj: {ep: S(0), tp: R}", "members_disagree",
        "'experts.down_proj' and 'experts.gate_proj' meet in the experts, and only the first is cut over tp");
    check(&dense, "experts.0.gate_proj.weight: {tp: R}", "members_disagree",
          "'experts.0.up_proj.weight' and 'experts.0.gate_proj.weight'");
    tiny_case c = dense;
    c.overrides = "- match: '*.shared_expert'\n  params: {+: {gate_proj.weight: {tp: R}}}\n";
    tiny t = tiny_refuse(&c);
    tiny_finding(&t, SW_SEVERITY_ERROR, "members_disagree", "'up_proj.weight' and 'gate_proj.weight'", NULL);
    tiny_drop(&t);
}

static void the_same_cuts_written_out_are_silent(void **state)
{
    (void)state;
    check(&axis,
          "experts.gate_proj: {ep: S(0), tp: S(1)}, experts.up_proj: {ep: S(0), tp: S(1)}, "
          "experts.down_proj: {ep: S(0), tp: S(2)}",
          NULL, NULL);
    check(&extends, "experts.gate_proj: {ep: S(0)}", NULL, NULL);
}

static void a_plan_file_is_held_to_the_same(void **state)
{
    bench b = bench_of(&axis);

    (void)state;
    bench_edit_after(&b, "'experts.gate_proj'", "'tp':'S(1)'", "'tp':'R'");
    bench_edit_after(&b, "'experts.down_proj'", "'ep':'S(0)'", "'ep':'R'");
    bench_check(&b);
    bench_must_find(
        &b, SW_SEVERITY_ERROR, "members_disagree",
        "'experts.up_proj' and 'experts.gate_proj' meet in the experts, and only the first is cut "
        "over tp");
    bench_must_find(&b, SW_SEVERITY_ERROR, "members_disagree", "only the first is cut over ep");
    bench_drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expert_stands_in_its_stack_or_alone),
        cmocka_unit_test(all_experts_are_cut_over_ep_or_none),
        cmocka_unit_test(a_role_does_not_make_an_expert_another_thing),
        cmocka_unit_test(experts_of_a_derived_ep_are_not_cut_over_tp),
        cmocka_unit_test(all_experts_are_cut_over_tp_or_none),
        cmocka_unit_test(the_same_cuts_written_out_are_silent),
        cmocka_unit_test(a_plan_file_is_held_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
