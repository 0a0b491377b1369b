/*
 * Lints of a finished plan, each by its code: what is refused, with which words, and what is not. Overrides
 * are how a test brings about what the planner itself would not do.
 */
#include "plan/lint.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/fault.h"

#define L   "model.layers.0."
#define SA  L "self_attn."
#define MLP L "mlp."
#define LLAMA(heads, kv, dim)                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 1, "                 \
    "'hidden_size': 16, 'num_attention_heads': " heads ", 'num_key_value_heads': " kv ", 'head_dim': " dim   \
    ", 'intermediate_size': 16, 'vocab_size': 16"
#define PLAIN LLAMA("4", "4", "4")
#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, 'num_attention_heads': 8, "                \
    "'num_key_value_heads': 2, 'head_dim': 2"
#define FOUR                                                                                                 \
    SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x16\n" SA "v_proj.weight F32 16x16\n" SA          \
       "o_proj.weight F32 16x16\n"

/* Refused with this finding. */
static void check(const tiny_case *what, const char *code, const char *words, const char *help)
{
    tiny t = tiny_refuse(what);
    tiny_finding(&t, SW_SEVERITY_ERROR, code, words, help);
    tiny_drop(&t);
}

/* A placement of one parameter of Llama's attention, patched in. */
static void check_patch(const char *config, const char *params, const char *mesh, const char *patch,
                        const char *code, const char *words)
{
    char overrides[256];
    (void)snprintf(overrides, sizeof overrides, "- match: model.layers.0.self_attn\n  params: {+: {%s}}\n",
                   patch);
    check(&(tiny_case){.config = config, .params = params, .mesh = mesh, .overrides = overrides}, code, words,
          NULL);
}

/* ---- ownership and coverage ---- */

static void a_parameter_belongs_to_one_boundary(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .params = FOUR,
                       .mesh = "tp=2",
                       .overrides = "- match: model.layers.0\n"
                                    "  params: {self_attn.q_proj.weight: {tp: shard(0)}}\n"},
          "two_owners", "'model.layers.0.self_attn' and by boundary 'model.layers.0'",
          "exactly one boundary");
    check(&(tiny_case){.config = PLAIN,
                       .params = FOUR,
                       .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.self_attn.q_proj\n"
                                    "  params: {weight: {tp: shard(0)}}\n"},
          "two_owners", SA "q_proj.weight", NULL);
}

static void a_boundary_round_others_may_hold_what_they_leave_out(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = L "mlp.gate_proj.weight F32 16x16\n" L "mlp.down_proj.weight F32 16x16\n" L
                                   "bypass.weight F32 16x16\n",
                       .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.bypass\n  params: {weight: {tp: replicate}}\n");
    (void)state;
    tiny_rows(&t, L "bypass.weight", 1, "all");
    tiny_silent(&t, "uncovered");
    tiny_drop(&t);
}

static void what_no_rule_places_is_an_error_that_says_what_to_write(void **state)
{
    const char *params = FOUR L "extra.weight F32 16x16\n";
    (void)state;
    check(&(tiny_case){.config = PLAIN, .params = params, .mesh = "tp=2"}, "uncovered",
          "no rule places this parameter of 256 elements", "roles: {extend: true");
    tiny t = TINY_PLAN(.config = PLAIN, .params = params, .mesh = "tp=2", .allow_uncovered = true);
    tiny_finding(&t, SW_SEVERITY_WARNING, "uncovered", L "extra.weight", NULL);
    tiny_drop(&t);
}

static void dropping_placements_by_a_whole_field_is_said(void **state)
{
    const char *overrides = "- match: '*.self_attn'\n  params: {q_proj.weight: {tp: shard(0)}}\n";
    tiny t = TINY_REFUSE(.config = PLAIN, .params = FOUR, .mesh = "tp=2", .overrides = overrides);
    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "override_drops", "o_proj.weight", "params: {+:");
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", SA "o_proj.weight", NULL);
    tiny_drop(&t);
}

static void without_derivation_coverage_is_the_users_business(void **state)
{
    tiny t = TINY_PLAN(.config = PLAIN, .params = FOUR, .mesh = "tp=2",
                       .overrides = "derive: false\noverrides:\n- match: ''\n  params: {}\n");
    (void)state;
    assert_int_equal(t.plan->n_specs, 1);
    tiny_silent(&t, "uncovered");
    tiny_drop(&t);
}

/* ---- one parameter ---- */

static void a_dim_that_is_not_there_is_refused(void **state)
{
    (void)state;
    check_patch(PLAIN, FOUR, "tp=2", "o_proj.weight: {tp: shard(2)}", "no_such_dim", "[16, 16] has 2 dims");
}

static void a_fused_tensor_is_never_torn_by_a_plain_cut(void **state)
{
    const char *params = SA "qkv_proj.weight F32 48x16\n" SA "o_proj.weight F32 16x16\n";
    const char *phi = "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 16, "
                      "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 4, "
                      "'intermediate_size': 16, 'vocab_size': 16";
    (void)state;
    check_patch(phi, params, "tp=2", "qkv_proj.weight: {tp: shard(0)}", "fused_contiguous", "torn");
    check_patch(phi, params, "tp=2", "qkv_proj.weight: {tp: 'S(-2)'}", "fused_contiguous", "torn");
    tiny t = TINY_PLAN(.config = phi, .params = params, .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.self_attn\n"
                                    "  params: {+: {qkv_proj.weight: {tp: 'S(0;seg=16+16+16)'}}}\n");
    tiny_rows(&t, SA "qkv_proj.weight", 0, "0:8 16:24 32:40");
    tiny_drop(&t);
}

static void heads_are_never_torn_by_a_plain_cut(void **state)
{
    /* 4 rows of 2 key heads over 4 ranks: one row is half a head */
    const char *params = SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 4x16\n" SA
                            "v_proj.weight F32 4x16\n" SA "o_proj.weight F32 16x16\n";
    (void)state;
    check_patch(LLAMA("8", "2", "2"), params, "tp=4", "k_proj.weight: {tp: shard(0)}", "heads",
                SA "k_proj.weight");
}

static void segments_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    check_patch(PLAIN, FOUR, "tp=2", "q_proj.weight: {tp: 'S(0;seg=8+4)'}", "bad_cut", "q_proj.weight");
    check_patch(PLAIN, FOUR, "tp=2", "q_proj.weight: {tp: 'S(0;seg=16r3)'}", "bad_cut", "q_proj.weight");
}

static void rows_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    check(&(tiny_case){.config = STRANGER,
                       .params = L "mlp.gate_proj.weight F32 3x16\n" L "mlp.down_proj.weight F32 16x3\n",
                       .mesh = "tp=2"},
          "indivisible", "3 rows are not divisible by tp=2", "1, 3");
    check_patch(PLAIN, FOUR, "cp=3", "q_proj.weight: {cp: shard(0)}", "indivisible", "not divisible by cp=3");
}

static void two_axes_never_cut_one_dim_whatever_stands_between(void **state)
{
    (void)state;
    check_patch(PLAIN, FOUR, "cp=2,tp=2", "q_proj.weight: {tp: shard(0), cp: shard(0)}", "dim_cut_twice",
                "q_proj.weight");
    check_patch(PLAIN, FOUR, "cp=2,ep=2,tp=2", "q_proj.weight: {cp: shard(0), ep: shard(1), tp: shard(0)}",
                "dim_cut_twice", "q_proj.weight");
}

/* ---- one boundary ---- */

static void an_input_that_is_wanted_must_be_said_to_arrive(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .params = FOUR,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.self_attn'\n  in_src: {}\n"
                                    "  in_dst: {x: {tp: replicate}}\n"},
          "half_declared", L "self_attn", "in_src");
    tiny t = TINY_PLAN(.config = PLAIN, .params = FOUR, .mesh = "tp=2",
                       .overrides = "- match: '*.self_attn'\n  in_src: none\n  in_dst: none\n");
    assert_int_equal(tiny_spec(&t, L "self_attn")->in_dst.n, 0);
    tiny_drop(&t);
}

static void injections_say_how_their_region_is_run(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .params = FOUR,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.self_attn'\n  region_dispatch: true\n"},
          "injection", "without an injection", NULL);
}

static void a_column_needs_its_row_and_a_row_its_column(void **state)
{
    const char *columns = L "mlp.gate_proj.weight F32 16x16\n" L "mlp.up_proj.weight F32 16x16\n";

    (void)state;
    check(&(tiny_case){.config = STRANGER, .params = columns, .mesh = "tp=2", .strict = true}, "unpaired",
          "column-parallel layers without a row-parallel partner", "roles:");
    check(&(tiny_case){.config = STRANGER,
                       .params = L "mlp.down_proj.weight F32 16x16\n",
                       .mesh = "tp=2",
                       .strict = true},
          "unpaired", "row-parallel layers without a column-parallel partner", NULL);
    /* half a model: the cut of what is there is right all the same */
    tiny t = TINY_PLAN(.config = STRANGER, .params = columns, .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "unpaired", "without a row-parallel partner", NULL);
    tiny_rows(&t, L "mlp.up_proj.weight", 1, "8:16");
    tiny_drop(&t);
    /* two halves of two regions are not torn apart */
    t = TINY_PLAN(.config = STRANGER, .mesh = "tp=2",
                  .params = SA "q_proj.weight F32 16x16\n" L "mlp.down_proj.weight F32 16x16\n");
    tiny_finding(&t, SW_SEVERITY_WARNING, "unpaired", L "self_attn", NULL);
    tiny_drop(&t);
}

static void a_region_in_several_boundaries_is_refused(void **state)
{
    const char *scaled = SA "q_proj.weight F32 16x16\n" SA "q_proj.global_gain F32 1\n" SA
                            "o_proj.weight F32 16x16\n" SA "o_proj.global_gain F32 1\n";

    (void)state;
    tiny_case what = {.config = STRANGER,
                      .params = scaled,
                      .mesh = "tp=2",
                      .overrides =
                          "roles: {extend: true, rules: [{pattern: global_gain, role: replicated}]}\n"};
    check(&what, "unpaired", SA "o_proj: row-parallel layers without a column-parallel partner, which stands",
          "drop the rule");
    check(&what, "unpaired", SA "q_proj: column-parallel layers", "role replicated");
    /* partners are torn apart only below one module */
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = SA "q_proj.weight F32 16x16\n"
                                    "model.layers.1.self_attn.o_proj.weight F32 16x16\n",
                       .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "unpaired", "layers without a row-parallel partner, and", NULL);
    tiny_drop(&t);
}

/* ---- contradictions ---- */

#define MOE                                                                                                  \
    "'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'moe_intermediate_size': 8, 'decoder_sparse_step': 1"

static void an_exit_is_no_sum_when_nothing_is_cut(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n  params: {gate_proj.weight: {tp: replicate}, "
                                    "up_proj.weight: {tp: replicate}, "
                                    "down_proj.weight: {tp: replicate}}\n"},
          "exit_mismatch", L "mlp", NULL);
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: model.embed_tokens\n"
                                    "  params: {weight: {tp: replicate}}\n"},
          "exit_mismatch", "model.embed_tokens", NULL);
    tiny t = TINY_PLAN(.config = PLAIN, .mesh = "tp=2",
                       .overrides = "- match: model.embed_tokens\n  params: {weight: {tp: replicate}}\n"
                                    "  out_src: {tp: replicate}\n  out_dst: {tp: shard(1)}\n");
    tiny_rows(&t, "model.embed_tokens.weight", 1, "all");
    tiny_drop(&t);
}

static void logits_are_not_cut_by_a_whole_head(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: lm_head\n  params: {weight: {tp: replicate}}\n"},
          "exit_mismatch", "lm_head", NULL);
}

static void columns_of_one_region_are_cut_alike(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.self_attn'\n"
                                    "  params: {+: {v_proj.weight: {tp: replicate}}}\n"},
          "members_disagree", L "self_attn", NULL);
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.self_attn'\n"
                                    "  params: {+: {q_proj.weight: {tp: shard(1)}}}\n"},
          "members_disagree", L "self_attn", NULL);
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "tp=2",
                       .overrides = "- match: '*.mlp'\n"
                                    "  params: {+: {up_proj.weight: {tp: replicate}}}\n"},
          "members_disagree", L "mlp", NULL);
}

static void experts_of_an_extended_tp_are_whole_over_it(void **state)
{
    (void)state;
    check(&(tiny_case){.config = MOE,
                       .mesh = "tp=2",
                       .ep = 2,
                       .overrides = "- match: '*.mlp'\n"
                                    "  params: {+: {experts.gate_proj: {ep: shard(0), tp: shard(1)}}}\n"},
          "expert_tp", L "mlp", NULL);
}

static void cp_never_cuts_a_parameter(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .mesh = "cp=2",
                       .overrides = "- match: '*.self_attn'\n"
                                    "  params: {+: {q_proj.weight: {cp: shard(1)}}}\n"},
          "cp_parameter", L "self_attn", NULL);
}

static void a_file_that_contradicts_its_config_is_refused(void **state)
{
    (void)state;
    /* the config says 2 key heads of 2 rows, the file has 4 */
    check(&(tiny_case){.config = LLAMA("8", "2", "2"),
                       .params = SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 8x16\n" SA
                                    "v_proj.weight F32 8x16\n" SA "o_proj.weight F32 16x16\n",
                       .mesh = "tp=4"},
          "shape_mismatch", "k_proj.weight", NULL);
    check(&(tiny_case){.config = MOE,
                       .params = MLP "gate.weight F32 3x16\n" MLP "experts.gate_up_proj F32 4x16x16\n" MLP
                                     "experts.down_proj F32 4x16x8\n",
                       .mesh = "ep=2"},
          "shape_mismatch", "gate.weight", NULL);
}

static void counts_of_layers_and_vocabulary_are_the_configs(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .params = "model.layers.1.input_layernorm.weight F32 16\n",
                       .mesh = "tp=2"},
          "layer_count", "model.layers.1.input_layernorm.weight", "config.json");
    check(
        &(tiny_case){.config = PLAIN, .params = "model.norm.weight F32 16\n", .mesh = "tp=2", .strict = true},
        "missing_layers", "1 of 1 layers have no tensor, the first is layer 0", "files");
    check(&(tiny_case){.config = PLAIN,
                       .params = "model.embed_tokens.weight F32 16x16\nlm_head.weight F32 18x16\n",
                       .mesh = "tp=2"},
          "shape_mismatch", "18 rows", NULL);
    tiny t = TINY_PLAN(.config = PLAIN,
                       .params = "model.embed_tokens.weight F32 18x16\nlm_head.weight F32 18x16\n",
                       .mesh = "tp=2");
    tiny_finding(&t, SW_SEVERITY_WARNING, "vocab_padded", "is [18, 16], config.json gives [16, 16]", NULL);
    tiny_rows(&t, "lm_head.weight", 1, "9:18");
    tiny_drop(&t);
}

static void a_matrix_stored_in_another_form_is_refused(void **state)
{
    (void)state;
    /* [hidden, heads] by the config: 8 heads of 4 make 32, stored the other way round */
    check(&(tiny_case){.config = LLAMA("8", "8", "4"),
                       .params = SA "q_proj.weight F32 32x16\n" SA "k_proj.weight F32 32x16\n" SA
                                    "v_proj.weight F32 32x16\n" SA "o_proj.weight F32 32x16\n",
                       .mesh = "tp=2"},
          "shape_mismatch", SA "o_proj.weight: is [32, 16], config.json gives [16, 32]", "config.json");
    check(&(tiny_case){.config = PLAIN,
                       .params = SA "q_proj.weight F32 256\n" SA "k_proj.weight F32 16x16\n" SA
                                    "v_proj.weight F32 16x16\n" SA "o_proj.weight F32 16x16\n",
                       .mesh = "tp=2"},
          "shape_mismatch", SA "q_proj.weight: is [256], config.json gives [16, 16]", NULL);
}

/* A draft model's attention reads embeddings and hidden states side by side: 32 wide, and no table knows it.
 */
static void heads_as_wide_as_the_model_are_no_sign_of_a_transposed_weight(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = SA "q_proj.weight F32 16x32\n" SA "k_proj.weight F32 4x32\n" SA
                                    "v_proj.weight F32 4x32\n" SA "o_proj.weight F32 16x16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_rows(&t, SA "q_proj.weight", 1, "8:16");
    tiny_silent(&t, "layout_unknown");
    tiny_drop(&t);
    check(&(tiny_case){.config = STRANGER,
                       .params = SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 16x4\n" SA
                                    "v_proj.weight F32 16x4\n" SA "o_proj.weight F32 16x16\n",
                       .mesh = "tp=2"},
          "layout_unknown", SA "k_proj.weight: hidden_size stands on the other side", "transpose");
}

#define NARROW(n)                                                                                            \
    MLP "experts." n ".gate_proj.weight F32 8x16\n" MLP "experts." n ".up_proj.weight F32 8x16\n" MLP        \
        "experts." n ".down_proj.weight F32 16x6\n"

static void the_products_of_a_feed_forward_meet_in_one_width(void **state)
{
    (void)state;
    check(&(tiny_case){.config = PLAIN,
                       .params = MLP "gate_proj.weight F32 16x16\n" MLP "up_proj.weight F32 16x16\n" MLP
                                     "down_proj.weight F32 16x12\n",
                       .mesh = "tp=2"},
          "extents_disagree", "'gate_proj.weight' and 'down_proj.weight' meet in the region, but one has 16",
          "one checkpoint");
    check(&(tiny_case){.config = MOE,
                       .params = MLP "gate.weight F32 4x16\n" MLP "experts.gate_up_proj F32 4x16x16\n" MLP
                                     "experts.down_proj F32 4x16x6\n",
                       .mesh = "tp=2"},
          "extents_disagree", "one has 8 and the other 6", NULL);
    for (int stacked = 0; stacked < 2; stacked++) {
        check(&(tiny_case){.config = MOE,
                           .params =
                               MLP "gate.weight F32 4x16\n" NARROW("0") NARROW("1") NARROW("2") NARROW("3"),
                           .mesh = stacked ? "tp=2,ep=2" : "tp=2"},
              "extents_disagree", "one has 8 and the other 6", NULL);
    }
}

static void two_linears_of_a_projector_are_no_feed_forward(void **state)
{
    /* both names hold the word o_proj */
    tiny t = TINY_REFUSE(.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16",
                         .params = "audio_projection_layer.linear1.weight F32 16x12\n"
                                   "audio_projection_layer.linear2.weight F32 16x16\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_silent(&t, "extents_disagree");
    tiny_finding(&t, SW_SEVERITY_ERROR, "members_disagree",
                 "'linear1.weight' and 'linear2.weight' are both cut along their input", NULL);
    tiny_drop(&t);
}

static void one_weight_of_an_attention_is_row_parallel(void **state)
{
    (void)state;
    check(&(tiny_case){.config = "'architectures': ['StrangerForCausalLM'], 'hidden_size': 16, "
                                 "'num_attention_heads': 4, 'num_key_value_heads': 4",
                       .params = FOUR,
                       .mesh = "tp=2",
                       .overrides = "roles: {extend: true, rules: [{pattern: q_proj, role: rowwise}]}\n"},
          "members_disagree", "'q_proj.weight'", "output projection");
}

static void the_only_key_head_may_be_whole(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA("4", "1", "4"),
                       .params = SA "q_proj.weight F32 16x16\n" SA "k_proj.weight F32 4x16\n" SA
                                    "v_proj.weight F32 4x16\n" SA "o_proj.weight F32 16x16\n",
                       .mesh = "tp=4",
                       .overrides = "- match: model.layers.0.self_attn\n"
                                    "  params: {+: {k_proj.weight: {tp: replicate}, "
                                    "v_proj.weight: {tp: replicate}}}\n");
    (void)state;
    tiny_rows(&t, SA "q_proj.weight", 1, "4:8");
    tiny_rows(&t, SA "k_proj.weight", 1, "all");
    tiny_grads(&t, SA "k_proj.weight", "tp partial");
    tiny_drop(&t);
}

/* ---- the whole plan ---- */

static void all_faults_are_in_one_report_and_the_first_in_the_error(void **state)
{
    tiny t = TINY_REFUSE(.config = STRANGER,
                         .params = L "mlp.gate_proj.weight F32 3x16\n" L "mlp.down_proj.weight F32 16x3\n"
                                     "a.b.weight F32 4x4\n"
                                     "c.d.weight F32 4x4\n",
                         .mesh = "tp=2");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "indivisible", "gate_proj", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", "a.b.weight", NULL);
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", "c.d.weight", NULL);
    assert_non_null(strstr(t.err.what, sw_report_finding(t.report, 0)->what));
    assert_non_null(strstr(t.err.what, "more)"));
    tiny_drop(&t);
}

static void a_sound_plan_is_silent(void **state)
{
    tiny t = TINY_PLAN(.config = PLAIN, .mesh = "dp=2,cp=2,tp=2", .strict = true);
    (void)state;
    assert_int_equal(sw_report_count(t.report), 0);
    tiny_drop(&t);
}

static void lints_without_memory_say_so(void **state)
{
    tiny t = TINY_PLAN(.config = PLAIN, .mesh = "tp=2");
    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_error err = {0};
        sw_alloc_fail_at(n);
        sw_status status = sw_lint(t.plan, t.model, &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
    }
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parameter_belongs_to_one_boundary),
        cmocka_unit_test(a_boundary_round_others_may_hold_what_they_leave_out),
        cmocka_unit_test(what_no_rule_places_is_an_error_that_says_what_to_write),
        cmocka_unit_test(dropping_placements_by_a_whole_field_is_said),
        cmocka_unit_test(without_derivation_coverage_is_the_users_business),
        cmocka_unit_test(a_dim_that_is_not_there_is_refused),
        cmocka_unit_test(a_fused_tensor_is_never_torn_by_a_plain_cut),
        cmocka_unit_test(heads_are_never_torn_by_a_plain_cut),
        cmocka_unit_test(segments_that_do_not_fit_are_refused),
        cmocka_unit_test(rows_that_do_not_divide_are_refused),
        cmocka_unit_test(two_axes_never_cut_one_dim_whatever_stands_between),
        cmocka_unit_test(an_input_that_is_wanted_must_be_said_to_arrive),
        cmocka_unit_test(injections_say_how_their_region_is_run),
        cmocka_unit_test(a_column_needs_its_row_and_a_row_its_column),
        cmocka_unit_test(a_region_in_several_boundaries_is_refused),
        cmocka_unit_test(an_exit_is_no_sum_when_nothing_is_cut),
        cmocka_unit_test(logits_are_not_cut_by_a_whole_head),
        cmocka_unit_test(columns_of_one_region_are_cut_alike),
        cmocka_unit_test(experts_of_an_extended_tp_are_whole_over_it),
        cmocka_unit_test(cp_never_cuts_a_parameter),
        cmocka_unit_test(a_file_that_contradicts_its_config_is_refused),
        cmocka_unit_test(counts_of_layers_and_vocabulary_are_the_configs),
        cmocka_unit_test(a_matrix_stored_in_another_form_is_refused),
        cmocka_unit_test(heads_as_wide_as_the_model_are_no_sign_of_a_transposed_weight),
        cmocka_unit_test(two_linears_of_a_projector_are_no_feed_forward),
        cmocka_unit_test(the_products_of_a_feed_forward_meet_in_one_width),
        cmocka_unit_test(one_weight_of_an_attention_is_row_parallel),
        cmocka_unit_test(the_only_key_head_may_be_whole),
        cmocka_unit_test(all_faults_are_in_one_report_and_the_first_in_the_error),
        cmocka_unit_test(a_sound_plan_is_silent),
        cmocka_unit_test(lints_without_memory_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
