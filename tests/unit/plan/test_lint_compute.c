/*
 * What enters a region's computation and what leaves it follow from its parameters' cuts: overrides that say
 * otherwise are refused, overrides that only re-lay the stream are not, and plan files are held to the same.
 */
#include "plan/lint_compute.h"

#include <stdio.h>

#include "check_bench.h"

#include "base/status.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'tie_word_embeddings': false"
#define L "model.layers.0."

typedef struct row {
    const char *config;
    const char *mesh;
    uint32_t ep;
    const char *overrides;
    const char *code; /* NULL: legal */
    const char *words;
} row;

static void check(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const row *r = &rows[i];
        tiny t = TINY_TRY(.config = r->config, .mesh = r->mesh, .ep = r->ep, .overrides = r->overrides);
        if ((t.status == SW_OK) != (r->code == NULL))
            print_error("%s\n%s: %s\n", r->overrides, sw_status_name(t.status), t.err.what);
        assert_int_equal(t.status, r->code == NULL ? SW_OK : SW_E_PLAN);
        if (r->code != NULL)
            tiny_finding(&t, SW_SEVERITY_ERROR, r->code, r->words, NULL);
        tiny_drop(&t);
    }
}

#define ALL_S(dim) "in_src: {hidden_states: {tp: S(" dim ")}}, out_dst: {output: {tp: S(" dim ")}}"

static void every_token_enters_whole_where_tp_cuts_the_parameters(void **state)
{
    // clang-format off
    static const row rows[] = {
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', in_dst: {hidden_states: {tp: S(1)}}}", "entry_mismatch",
         "in_dst is S(1) over tp, but tp cuts the region's parameters"},
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', in_dst: {hidden_states: {tp: S(2)}}}", "entry_mismatch",
         "in_dst is S(2) over tp"},
        {LLAMA, "tp=2", 0, "- {match: '*.self_attn', in_dst: {hidden_states: {tp: S(1)}}}", "entry_mismatch",
         "model.layers.#.self_attn: in_dst is S(1) over tp"},
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', in_dst: none}", "entry_mismatch", "is S(1) over tp"},
        {LLAMA, "tp=2", 0, "- {match: lm_head, in_dst: {hidden_states: {tp: S(1)}}}", "entry_mismatch",
         "lm_head: in_dst is S(1) over tp"},
        {LLAMA, "tp=2", 0, "- {match: model.embed_tokens, in_dst: {input: {tp: S(1)}}}", "entry_mismatch",
         "model.embed_tokens: in_dst is S(1) over tp"},
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', in_src: {hidden_states: {tp: S(1)}, mask: {tp: S(1)}}, "
                           "in_dst: {mask: {tp: S(1)}, hidden_states: {tp: R}}}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void the_sum_over_the_cut_is_made(void **state)
{
    // clang-format off
    static const row rows[] = {
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', out_src: {output: {tp: S(1)}}}", "exit_mismatch",
         "out_src is S(1) over tp, but tp cuts the region's parameters: the sum of its parts would never"},
        {LLAMA, "tp=2", 0, "- {match: '*.self_attn', out_src: {output: {tp: S(2)}}}", "exit_mismatch",
         "out_src is S(2) over tp"},
        {LLAMA, "tp=2", 0, "- {match: model.embed_tokens, out_src: {output: {tp: S(1)}}}", "exit_mismatch",
         "out_src is S(1) over tp"},
        {LLAMA, "tp=2", 0, "- {match: lm_head, out_src: {output: {tp: S(1)}}, out_dst: {output: {tp: R}}}",
         "exit_mismatch", "out_src is S(1) over tp, but the weight is cut over it along the vocabulary"},
        {LLAMA, "tp=2", 0, "- {match: lm_head, out_src: {output: {tp: P}}}", "exit_mismatch",
         "out_src is P over tp"},
        {LLAMA, "tp=2", 0, "- {match: '*.self_attn', out_src: {weights: {tp: S(1)}, hidden_states: {tp: P}}, "
                           "out_dst: {weights: {tp: S(1)}, hidden_states: {tp: S(1)}}}", NULL, NULL},
        /* the region may sum by itself: a warning, not an error */
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', out_src: {output: {tp: R}}}", NULL, NULL},
        {LLAMA, "tp=2", 0, "- {match: lm_head, out_src: {output: {tp: S(2)}}}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void where_tp_cuts_nothing_tokens_leave_as_they_enter(void **state)
{
    // clang-format off
    static const char whole[] = "gate_proj.weight: {tp: R}, up_proj.weight: {tp: R}, down_proj.weight: {tp: R}";
    // clang-format on
    static const char *const contracts[] = {
        "in_dst: {hidden_states: {tp: R}}, out_src: {output: {tp: S(1)}}",
        "in_dst: {hidden_states: {tp: S(1)}}, out_src: {output: {tp: R}}",
        "in_dst: {hidden_states: {tp: S(1)}}, out_src: {output: {tp: S(1)}}",
        "in_dst: {hidden_states: {tp: R}}, out_src: {output: {tp: R}}",
    };
    char text[400];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(contracts); i++) {
        (void)snprintf(text, sizeof text, "- {match: '*.mlp', params: {%s}, %s}", whole, contracts[i]);
        row r = {LLAMA, "tp=2", 0, text, i < 2 ? "exit_mismatch" : NULL, "since tp cuts no parameter"};
        check(&r, 1);
    }
    row norm = {LLAMA,
                "tp=2",
                0,
                "- {match: model.norm, out_src: {output: {tp: R}}}",
                "exit_mismatch",
                "out_src is R over tp, and in_dst is S(1)"};
    check(&norm, 1);
}

static void nothing_changes_cp_between_entry_and_exit(void **state)
{
    // clang-format off
    static const row rows[] = {
        {LLAMA, "cp=2,tp=2", 0, "- {match: '*.mlp', out_src: {output: {tp: P, cp: P}}}", "exit_mismatch",
         "out_src is P over cp, and in_dst is S(1)"},
        {LLAMA, "cp=2,tp=2", 0, "- {match: '*.mlp', in_dst: {hidden_states: {tp: R, cp: R}}}", "exit_mismatch",
         "out_src is S(1) over cp, and in_dst is R"},
        {LLAMA, "cp=2", 0, "- {match: '*.self_attn', in_dst: {hidden_states: {cp: R}}}", "exit_mismatch",
         "out_src is S(1) over cp, and in_dst is R"},
        {LLAMA, "cp=2,tp=2", 0, "- {match: '*.mlp', in_dst: {hidden_states: {tp: R, cp: R}}, "
                                "out_src: {output: {tp: P, cp: R}}}", NULL, NULL},
        {LLAMA, "cp=2", 0, "- {match: '*.mlp', in_src: {hidden_states: {cp: R}}, out_dst: {output: {cp: R}}}",
         NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void a_sequence_in_the_first_dim_is_legal(void **state)
{
    // clang-format off
    static const row rows[] = {
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', " ALL_S("0") "}", NULL, NULL},
        {LLAMA, "cp=2", 0, "- {match: '*.mlp', in_src: {hidden_states: {cp: S(0)}}, "
                           "in_dst: {hidden_states: {cp: S(0)}}, out_src: {output: {cp: S(0)}}, "
                           "out_dst: {output: {cp: S(0)}}}", NULL, NULL},
        {LLAMA, "cp=2", 0, "- {match: model.embed_tokens, out_src: {output: {cp: S(0)}}, "
                           "out_dst: {output: {cp: S(0)}}}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void with_an_injection_the_users_word_holds(void **state)
{
    // clang-format off
    static const row rows[] = {
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', in_dst: {hidden_states: {tp: S(1)}}, region_dispatch: false, "
                           "local_compute: grouped_experts}", NULL, NULL},
        {LLAMA, "tp=2", 0, "- {match: '*.mlp', out_src: {output: {tp: S(1)}}, region_dispatch: false, "
                           "inner_target: self, inner_wrapper: cp_ring}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

#define BLOCK "model.layers.*.mlp"

static void tokens_are_sent_to_experts_once(void **state)
{
    // clang-format off
    static const row rows[] = {
        {MOE, "dp=2,tp=2", 4, "- {match: " BLOCK ", in_dst: {x_BLD: {tp: R}}}", "entry_mismatch",
         "in_dst is R over tp, and the experts stand on the ranks of tp"},
        {MOE, "dp=2,tp=2", 4, "- {match: " BLOCK ", out_src: {output: {tp: R}}}", "exit_mismatch",
         "out_src is R over tp, and in_dst is S(1)"},
        {MOE, "dp=2,tp=2", 4, "- {match: " BLOCK ", in_src: {x_BLD: {tp: R}}, out_dst: {output: {tp: R}}}",
         NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void an_ep_axis_is_summed_inside_the_block(void **state)
{
    // clang-format off
    static const row rows[] = {
        {MOE, "ep=2,tp=2", 0, "- {match: " BLOCK ", out_src: {output: {tp: P, ep: P}}}", "exit_mismatch",
         "out_src is P over ep, but the routed output is summed over ep inside"},
        {MOE, "ep=2,tp=2", 0, "- {match: " BLOCK ", in_dst: {x_BLD: {tp: R, ep: S(1)}}}", "entry_mismatch",
         "in_dst is S(1) over ep"},
        {MOE, "ep=2,tp=2", 0, "- {match: '*.self_attn', out_src: {output: {tp: P, ep: P}}}", "exit_mismatch",
         "out_src is P over ep, and in_dst is R"},
        {MOE, "ep=2,tp=2", 0, "- {match: " BLOCK ", in_src: {x_BLD: {tp: R}}}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void a_shared_expert_takes_what_its_block_has(void **state)
{
    // clang-format off
    static const row rows[] = {
        {MOE, "tp=2", 0, "- {match: '*.shared_expert', in_src: {hidden_states: {tp: S(1)}}}",
         "entry_mismatch", "in_src is S(1) over tp, but the in_dst of the block around it is R"},
        {MOE, "tp=2", 0, "- {match: '*.shared_expert', out_dst: {output: {tp: S(1)}}}", "exit_mismatch",
         "out_dst is S(1) over tp, but the out_src of the block around it is P"},
        {MOE, "dp=2,tp=2", 4, "- {match: '*.shared_expert', in_src: {hidden_states: {tp: R}}}",
         "entry_mismatch", "in_src is R over tp, but the in_dst of the block around it is S(1)"},
        {MOE, "tp=2", 0, "- {match: '*.shared_expert', region_dispatch: false, local_compute: grouped_experts, "
                         "out_dst: {output: {tp: S(1)}}}", NULL, NULL},
    };
    // clang-format on

    (void)state;
    check(rows, SW_COUNT(rows));
}

static void a_plan_file_is_held_to_the_same(void **state)
{
    static const tiny_case dense = {.config = LLAMA, .mesh = "cp=2,tp=2"};
    static const tiny_case extends = {.config = MOE, .mesh = "dp=2,tp=2", .ep = 4};
    // clang-format off
    static const struct edit {
        const tiny_case *plan;
        const char *after, *from, *to, *code, *words;
    } edits[] = {
        {&dense,   L "mlp'", "'in_dst': {'hidden_states': {'tp': 'R'", "'in_dst': {'hidden_states': {'tp': 'S(1)'",
         "entry_mismatch", "in_dst is S(1) over tp"},
        {&dense,   L "mlp'", "'out_src': {'output': {'tp': 'P'", "'out_src': {'output': {'tp': 'S(1)'",
         "exit_mismatch", "out_src is S(1) over tp"},
        {&dense,   L "mlp'", "'out_src': {'output': {'tp': 'P', 'cp': 'S(1)'",
         "'out_src': {'output': {'tp': 'P', 'cp': 'P'", "exit_mismatch", "out_src is P over cp"},
        {&extends, L "mlp'", "'in_dst': {'x_BLD': {'tp': 'S(1)'", "'in_dst': {'x_BLD': {'tp': 'R'",
         "entry_mismatch", "every token would be sent tp times"},
        {&extends, L "mlp.shared_expert'", "'in_src': {'hidden_states': {'tp': 'S(1)'",
         "'in_src': {'hidden_states': {'tp': 'R'", "entry_mismatch", "the block around it is S(1)"},
    };
    // clang-format on

    (void)state;
    for (size_t i = 0; i < SW_COUNT(edits); i++) {
        bench b = bench_of(edits[i].plan);
        bench_edit_after(&b, edits[i].after, edits[i].from, edits[i].to);
        bench_check(&b);
        bench_must_find(&b, SW_SEVERITY_ERROR, edits[i].code, edits[i].words);
        bench_drop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_enters_whole_where_tp_cuts_the_parameters),
        cmocka_unit_test(the_sum_over_the_cut_is_made),
        cmocka_unit_test(where_tp_cuts_nothing_tokens_leave_as_they_enter),
        cmocka_unit_test(nothing_changes_cp_between_entry_and_exit),
        cmocka_unit_test(a_sequence_in_the_first_dim_is_legal),
        cmocka_unit_test(with_an_injection_the_users_word_holds),
        cmocka_unit_test(tokens_are_sent_to_experts_once),
        cmocka_unit_test(an_ep_axis_is_summed_inside_the_block),
        cmocka_unit_test(a_shared_expert_takes_what_its_block_has),
        cmocka_unit_test(a_plan_file_is_held_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
