/*
 * Roles by name, against the seed document param_role: its 12 rules in their order, its match modes, its
 * architecture overrides, user rules in both forms, and the table of names that the facts give.
 */
#include "plan/role.h"

#include "tiny_model.h"

#include <ctype.h>
#include <string.h>

#include "base/status.h"
#include "plan/classify.h"

#define PATTERNS(...)                                                                                        \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }
#define L "model.layers.0."

/* As the planner decides where neither a user nor a family says anything: explicit rules, rules, skip. */
static sw_role classify(const char *name, const sw_role_rules *explicit_rules, const sw_role_rules *rules)
{
    char lower[256] = "";
    const char *pattern = NULL;
    int hit = sw_role_first_explicit(explicit_rules, name, &pattern);

    if (hit >= 0)
        return explicit_rules->rules[hit].role;
    assert_true(strlen(name) < sizeof lower);
    for (size_t i = 0; name[i] != '\0'; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    hit = sw_role_first_match(rules, lower, &pattern);
    return hit < 0 ? SW_ROLE_SKIP : rules->rules[hit].role;
}

static sw_role by_defaults(const char *name)
{
    return classify(name, NULL, &sw_default_role_rules);
}

static void expect_role(const char *name, sw_role role)
{
    if (by_defaults(name) != role)
        fail_msg("%s is %s, expected %s", name, sw_role_name(by_defaults(name)), sw_role_name(role));
}

/* ---- the table ---- */

// clang-format off
static const struct { const char *patterns; sw_role role; sw_match_mode mode; } seed_rules[] = {
    { "embed_tokens.weight wte.weight tok_embeddings.weight embed_in.weight word_embeddings.weight",
                                                             SW_ROLE_EMBED,         SW_MATCH_PART  },
    { "lm_head.weight embed_out.weight output_layer.weight", SW_ROLE_LM_HEAD,       SW_MATCH_PART  },
    { "shared_expert shared_experts",                        SW_ROLE_SHARED_EXPERT, SW_MATCH_EXACT },
    { "experts",                                             SW_ROLE_MOE_EXPERT,    SW_MATCH_PART  },
    { ".mlp.gate. .router. moe_gate mlp.router",             SW_ROLE_MOE_GATE,      SW_MATCH_PART  },
    { "fused_qkv linear_qkv qkv_proj query_key_value",       SW_ROLE_FUSED_QKV,     SW_MATCH_PART  },
    { "gate_up_proj fused_gate_up .w13.",                    SW_ROLE_FUSED_GATE_UP, SW_MATCH_PART  },
    { "a_log dt_bias gated_delta",                           SW_ROLE_SPECIAL,       SW_MATCH_PART  },
    { "norm layernorm rmsnorm ln_",                          SW_ROLE_NORM,          SW_MATCH_PART  },
    { "q_proj k_proj v_proj gate_proj up_proj .w1. .w3.",    SW_ROLE_COLWISE,       SW_MATCH_PART  },
    { ".bias",                                               SW_ROLE_BIAS,          SW_MATCH_PART  },
    { "o_proj down_proj .w2.",                               SW_ROLE_ROWWISE,       SW_MATCH_PART  },
};
// clang-format on

static void the_default_rules_are_the_seeds_in_its_order(void **state)
{
    (void)state;
    assert_int_equal(sw_default_role_rules.n_rules, SW_COUNT(seed_rules));
    for (size_t i = 0; i < SW_COUNT(seed_rules); i++) {
        const sw_role_rule *rule = &sw_default_role_rules.rules[i];
        sw_buffer joined = {0};
        for (const char *const *p = rule->patterns; *p != NULL; p++)
            sw_buffer_printf(&joined, "%s%s", joined.length == 0 ? "" : " ", *p);
        assert_string_equal(sw_buffer_text(&joined), seed_rules[i].patterns);
        assert_int_equal(rule->role, seed_rules[i].role);
        assert_int_equal(rule->mode, seed_rules[i].mode);
        sw_buffer_clear(&joined);
    }
}

static void there_are_fourteen_roles_and_their_words_lead_back(void **state)
{
    sw_role role = SW_ROLE_SKIP;
    (void)state;
    assert_int_equal(SW_ROLE_COUNT_, 14);
    for (int i = 0; i < SW_ROLE_COUNT_; i++) {
        assert_true(sw_role_parse(sw_role_name((sw_role)i), &role));
        assert_int_equal(role, i);
    }
    assert_false(sw_role_parse("column", &role));
    assert_false(sw_role_parse("", &role));
    assert_null(sw_role_name(SW_ROLE_COUNT_));
    assert_string_equal(sw_match_mode_name(SW_MATCH_EXACT), "segment_exact");
    assert_string_equal(sw_match_mode_name(SW_MATCH_PART), "segment_substring");
    assert_null(sw_match_mode_name(SW_MATCH_COUNT_));
}

/* ---- names ---- */

// clang-format off
static const struct { const char *name; sw_role role; } names[] = {
    { "model.embed_tokens.weight",                           SW_ROLE_EMBED         },
    { "transformer.wte.weight",                              SW_ROLE_EMBED         },
    { "transformer.wpe.weight",                              SW_ROLE_SKIP          },
    { "tok_embeddings.weight",                               SW_ROLE_EMBED         },
    { "gpt_neox.embed_in.weight",                            SW_ROLE_EMBED         },
    { "transformer.word_embeddings.weight",                  SW_ROLE_EMBED         },
    { "output.weight",                                       SW_ROLE_SKIP          },
    { "lm_head.weight",                                      SW_ROLE_LM_HEAD       },
    { "embed_out.weight",                                    SW_ROLE_LM_HEAD       },
    { "transformer.output_layer.weight",                     SW_ROLE_LM_HEAD       },
    { "lm_head.bias",                                        SW_ROLE_BIAS          },
    { L "self_attn.q_proj.weight",                           SW_ROLE_COLWISE       },
    { L "self_attn.q_proj.bias",                             SW_ROLE_COLWISE       },
    { L "self_attn.o_proj.weight",                           SW_ROLE_ROWWISE       },
    { L "self_attn.o_proj.bias",                             SW_ROLE_BIAS          },
    { L "mlp.down_proj.bias",                                SW_ROLE_BIAS          },
    { L "self_attn.qkv_proj.bias",                           SW_ROLE_FUSED_QKV     },
    { L "input_layernorm.weight",                            SW_ROLE_NORM          },
    { L "self_attn.q_norm.weight",                           SW_ROLE_NORM          },
    { "transformer.h.0.ln_1.weight",                         SW_ROLE_NORM          },
    { "transformer.h.0.ln1.weight",                          SW_ROLE_SKIP          },
    { "transformer.word_embeddings_layernorm.weight",        SW_ROLE_NORM          },
    { L "mlp.gate.weight",                                   SW_ROLE_MOE_GATE      },
    { "mlp.gate.weight",                                     SW_ROLE_SKIP          },
    { L "mlp.gate.e_score_correction_bias",                  SW_ROLE_MOE_GATE      },
    { L "mlp.router.weight",                                 SW_ROLE_MOE_GATE      },
    { L "block_sparse_moe.gate.weight",                      SW_ROLE_SKIP          },
    { L "block_sparse_moe.experts.0.w1.weight",              SW_ROLE_MOE_EXPERT    },
    { "m.mlp.experts.0.gate_proj.weight",                    SW_ROLE_MOE_EXPERT    },
    { L "mlp.experts.gate_up_proj",                          SW_ROLE_MOE_EXPERT    },
    { L "mlp.experts.gate_up_proj_bias",                     SW_ROLE_MOE_EXPERT    },
    { L "mlp.shared_experts.w2",                             SW_ROLE_SHARED_EXPERT },
    { L "mlp.shared_expert.down_proj.weight",                SW_ROLE_SHARED_EXPERT },
    { L "mlp.shared_expert_gate.weight",                     SW_ROLE_SKIP          },
    { "m.mlp.gate_proj.weight",                              SW_ROLE_COLWISE       },
    { L "attn.fused_qkv.weight",                             SW_ROLE_FUSED_QKV     },
    { "decoder.layers.0.self_attention.linear_qkv.weight",   SW_ROLE_FUSED_QKV     },
    { "gpt_neox.layers.0.attention.query_key_value.weight",  SW_ROLE_FUSED_QKV     },
    { "gpt_neox.layers.0.attention.dense.weight",            SW_ROLE_SKIP          },
    { L "mlp.gate_up_proj.weight",                           SW_ROLE_FUSED_GATE_UP },
    { L "mlp.fused_gate_up.weight",                          SW_ROLE_FUSED_GATE_UP },
    { "layers.0.feed_forward.w13.weight",                    SW_ROLE_FUSED_GATE_UP },
    { "layers.0.feed_forward.w1.weight",                     SW_ROLE_COLWISE       },
    { "layers.0.feed_forward.w2.weight",                     SW_ROLE_ROWWISE       },
    { "layers.0.feed_forward.w3.weight",                     SW_ROLE_COLWISE       },
    { L "self_attn.kv_proj.weight",                          SW_ROLE_COLWISE       },
    { L "self_attn.q_a_proj.weight",                         SW_ROLE_SKIP          },
    { L "self_attn.kv_b_proj.weight",                        SW_ROLE_SKIP          },
    { L "self_attn.out_proj.weight",                         SW_ROLE_SKIP          },
    { "transformer.h.0.attn.c_attn.weight",                  SW_ROLE_SKIP          },
    { L "gated_delta.a_log",                                 SW_ROLE_SPECIAL       },
    { L "linear_attn.A_log",                                 SW_ROLE_SPECIAL       },
    { L "linear_attn.dt_bias",                               SW_ROLE_SPECIAL       },
    { L "gated_delta.q_proj.weight",                         SW_ROLE_SPECIAL       },
    { "model.data_logger.scale",                             SW_ROLE_SPECIAL       },
    { "model.linear.weight",                                 SW_ROLE_SKIP          },
    { "model.kernel.weight",                                 SW_ROLE_SKIP          },
    { "model.rotary_emb.inv_freq",                           SW_ROLE_SKIP          },
    { "a.b.c",                                               SW_ROLE_SKIP          },
    { L "self_attn.sinks",                                   SW_ROLE_SKIP          },
    { "model.visual.blocks.0.attn.qkv.weight",               SW_ROLE_SKIP          },
    { "model.moe_gate.weight",                               SW_ROLE_MOE_GATE      },
    { L "feed_forward.router.weight",                        SW_ROLE_MOE_GATE      },
    { "MODEL.LAYERS.0.SELF_ATTN.Q_PROJ.WEIGHT",              SW_ROLE_COLWISE       },
    { "",                                                    SW_ROLE_SKIP          },
};
// clang-format on

static void names_get_the_roles_of_the_facts(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++)
        expect_role(names[i].name, names[i].role);
}

static void a_column_bias_has_its_weights_role_and_a_row_bias_is_a_bias(void **state)
{
    (void)state;
    expect_role(L "mlp.up_proj.bias", SW_ROLE_COLWISE);
    expect_role("layers.0.feed_forward.w1.bias", SW_ROLE_COLWISE);
    expect_role("layers.0.feed_forward.w2.bias", SW_ROLE_BIAS);
    expect_role(L "mlp.experts.0.down_proj.bias", SW_ROLE_MOE_EXPERT);
    expect_role(L "mlp.shared_expert.down_proj.bias", SW_ROLE_SHARED_EXPERT);
    expect_role("model.norm.bias", SW_ROLE_NORM);
    expect_role("bias", SW_ROLE_SKIP); /* ".bias" wants its dot */
}

static void replicated_never_comes_from_the_default_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sw_default_role_rules.n_rules; i++) {
        assert_int_not_equal(sw_default_role_rules.rules[i].role, SW_ROLE_REPLICATED);
        assert_int_not_equal(sw_default_role_rules.rules[i].role, SW_ROLE_SKIP);
    }
}

/* ---- modes ---- */

static void an_exact_pattern_is_a_whole_segment(void **state)
{
    (void)state;
    assert_true(sw_role_pattern_matches("a.shared_expert.b", "shared_expert", SW_MATCH_EXACT));
    assert_true(sw_role_pattern_matches("shared_expert", "shared_expert", SW_MATCH_EXACT));
    assert_true(sw_role_pattern_matches("shared_expert.b", "shared_expert", SW_MATCH_EXACT));
    assert_true(sw_role_pattern_matches("a.shared_expert", "shared_expert", SW_MATCH_EXACT));
    assert_false(sw_role_pattern_matches("a.shared_expert_gate.b", "shared_expert", SW_MATCH_EXACT));
    assert_false(sw_role_pattern_matches("a.my_shared_expert.b", "shared_expert", SW_MATCH_EXACT));
    /* a first hit that is no whole segment does not hide a later one */
    assert_true(sw_role_pattern_matches("a.xw1.w1.b", "w1", SW_MATCH_EXACT));
}

static void a_part_pattern_lies_inside_one_segment(void **state)
{
    (void)state;
    assert_true(sw_role_pattern_matches("a.input_layernorm.weight", "norm", SW_MATCH_PART));
    assert_true(sw_role_pattern_matches("a.q_proj.weight", "q_proj", SW_MATCH_PART));
    assert_false(sw_role_pattern_matches("a.no.rm.weight", "norm", SW_MATCH_PART));
    assert_false(sw_role_pattern_matches("a.q.proj.weight", "q_proj", SW_MATCH_PART));
}

static void a_dotted_pattern_is_a_part_of_the_whole_name_in_every_mode(void **state)
{
    (void)state;
    for (int mode = 0; mode < SW_MATCH_COUNT_; mode++) {
        assert_true(sw_role_pattern_matches("m.mlp.gate.weight", ".mlp.gate.", (sw_match_mode)mode));
        assert_true(
            sw_role_pattern_matches("m.xembed_tokens.weight", "embed_tokens.weight", (sw_match_mode)mode));
        assert_false(sw_role_pattern_matches("mlp.gate.weight", ".mlp.gate.", (sw_match_mode)mode));
        assert_false(sw_role_pattern_matches("m.mlp.gate", ".mlp.gate.", (sw_match_mode)mode));
    }
}

/* ---- rules of the user ---- */

static void the_first_rule_that_matches_wins_and_is_named(void **state)
{
    const char *pattern = NULL;
    (void)state;
    assert_int_equal(sw_role_first_match(&sw_default_role_rules, "m.mlp.experts.gate_up_proj", &pattern), 3);
    assert_string_equal(pattern, "experts");
    assert_int_equal(sw_role_first_match(&sw_default_role_rules, "m.mlp.w2.weight", &pattern), 11);
    assert_string_equal(pattern, ".w2.");
    assert_int_equal(sw_role_first_match(&sw_default_role_rules, "a.b.c", &pattern), -1);
}

static void user_rules_take_the_defaults_place(void **state)
{
    const sw_role_rule rules[] = {
        {PATTERNS("wq"),   SW_ROLE_COLWISE, SW_MATCH_EXACT},
        {PATTERNS("attn"), SW_ROLE_ROWWISE, SW_MATCH_PART },
    };
    const sw_role_rules own = {rules, SW_COUNT(rules)};
    (void)state;
    assert_int_equal(classify("layers.0.attn.wq.weight", NULL, &own), SW_ROLE_COLWISE);
    assert_int_equal(classify("layers.0.attn.wo.weight", NULL, &own), SW_ROLE_ROWWISE);
    assert_int_equal(classify("layers.0.mlp.q_proj.weight", NULL, &own), SW_ROLE_SKIP);
}

static void a_legacy_rule_of_two_fields_is_a_part_of_the_whole_name(void **state)
{
    const sw_role_rule legacy = {PATTERNS("shared_expert"), SW_ROLE_SHARED_EXPERT, SW_MATCH_WHOLE};
    const sw_role_rule current = {PATTERNS("shared_expert"), SW_ROLE_SHARED_EXPERT, SW_MATCH_EXACT};
    const char *name = L "mlp.shared_expert_gate.weight";
    (void)state;
    assert_int_equal(classify(name, NULL, &(sw_role_rules){&legacy, 1}), SW_ROLE_SHARED_EXPERT);
    assert_int_equal(classify(name, NULL, &(sw_role_rules){&current, 1}), SW_ROLE_SKIP);
}

static void names_are_lowered_and_the_patterns_of_a_rule_are_not(void **state)
{
    const sw_role_rule upper = {PATTERNS("Q_PROJ"), SW_ROLE_COLWISE, SW_MATCH_PART};
    (void)state;
    assert_int_equal(classify("a.Q_PROJ.weight", NULL, &(sw_role_rules){&upper, 1}), SW_ROLE_SKIP);
    assert_int_equal(classify("a.Q_PROJ.weight", NULL, &sw_default_role_rules), SW_ROLE_COLWISE);
}

/* ---- architecture overrides ---- */

static void an_override_wins_over_the_default_rules(void **state)
{
    const sw_role_rule one = {PATTERNS("q_a_proj"), SW_ROLE_REPLICATED, SW_MATCH_WHOLE};
    const sw_role_rule list = {PATTERNS("q_b_proj", "q_proj"), SW_ROLE_ROWWISE, SW_MATCH_WHOLE};
    const sw_role_rule both[] = {one, list};
    const sw_role_rules explicit_rules = {both, 2};
    (void)state;
    assert_int_equal(classify(L "self_attn.q_a_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_REPLICATED);
    assert_int_equal(classify(L "self_attn.q_b_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_ROWWISE);
    assert_int_equal(classify(L "self_attn.q_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_ROWWISE);
    assert_int_equal(classify(L "self_attn.k_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_COLWISE);
}

static void an_override_that_does_not_match_falls_through(void **state)
{
    const sw_role_rule rule = {PATTERNS("embed_tokens.weight"), SW_ROLE_REPLICATED, SW_MATCH_WHOLE};
    const sw_role_rules explicit_rules = {&rule, 1};
    (void)state;
    assert_int_equal(classify("token_embed.weight", &explicit_rules, &sw_default_role_rules), SW_ROLE_SKIP);
}

static void override_patterns_are_lowered_and_match_anywhere(void **state)
{
    const sw_role_rule rule = {PATTERNS("Layers.0.SELF"), SW_ROLE_REPLICATED, SW_MATCH_WHOLE};
    const sw_role_rules explicit_rules = {&rule, 1};
    (void)state;
    assert_true(sw_role_explicit_matches("model.layers.0.self_attn", "Layers.0.SELF"));
    assert_false(sw_role_explicit_matches("model.layers.1.self_attn", "Layers.0.SELF"));
    assert_int_equal(classify(L "self_attn.q_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_REPLICATED);
}

static void the_first_override_wins(void **state)
{
    const sw_role_rule rules[] = {
        {PATTERNS("indexer.q_b_proj"), SW_ROLE_COLWISE,    SW_MATCH_WHOLE},
        {PATTERNS("q_b_proj"),         SW_ROLE_REPLICATED, SW_MATCH_WHOLE},
    };
    const sw_role_rules explicit_rules = {rules, 2};
    (void)state;
    assert_int_equal(classify("a.indexer.q_b_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_COLWISE);
    assert_int_equal(classify("a.q_b_proj.weight", &explicit_rules, &sw_default_role_rules),
                     SW_ROLE_REPLICATED);
}

/* ---- row-like names ---- */

static void row_like_is_w2_down_proj_or_down_dot(void **state)
{
    (void)state;
    assert_true(sw_role_is_row_like("experts.w2"));
    assert_true(sw_role_is_row_like("experts.0.DOWN_PROJ.weight"));
    assert_true(sw_role_is_row_like("shared_expert.down.weight"));
    assert_false(sw_role_is_row_like("shared_expert.down"));
    assert_false(sw_role_is_row_like("experts.w1"));
    assert_false(sw_role_is_row_like("experts.gate_up_proj"));
    assert_false(sw_role_is_row_like(""));
}

/* ---- a whole model ---- */

#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'model_type': 'stranger', 'num_attention_heads': 4"
#define ODD "a.0.mlp.first.weight F32 8x8\na.0.mlp.second.weight F32 8x8\n"

static void check_text(const tiny *t, uint32_t param, const char *text)
{
    char rule[256];
    sw_class_rule_text(t->plan, sw_class_of(t->plan, param), rule, sizeof rule);
    assert_string_equal(rule, text);
}

static void rules_of_an_override_file_replace_the_defaults_or_stand_before_them(void **state)
{
    const char *params = ODD "model.norm.weight F32 8\n";
    tiny t = TINY_REFUSE(.config = STRANGER, .params = params, .mesh = "tp=2",
                         .overrides = "roles: [[first, colwise], [[second], rowwise, segment_exact]]\n");
    (void)state;
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", "model.norm.weight",
                 NULL); /* no default rules any more */
    tiny_drop(&t);
    t = TINY_PLAN(.config = STRANGER, .params = params, .mesh = "tp=2",
                  .overrides = "roles:\n  extend: true\n  rules: [[first, colwise], [second, rowwise]]\n");
    tiny_role(&t, "a.0.mlp.first.weight", "colwise");
    tiny_role(&t, "a.0.mlp.second.weight", "rowwise");
    tiny_role(&t, "model.norm.weight", "norm");
    check_text(&t, 0, "roles, rule 1: first");
    check_text(&t, 2, "default rule 9: norm");
    tiny_drop(&t);
}

static void rules_of_an_architecture_hold_for_that_architecture_only(void **state)
{
    const char *rules = "arch_roles:\n"
                        "  StrangerForCausalLM: [[FIRST, colwise], [[second, third], rowwise]]\n"
                        "  OtherForCausalLM: [[second, norm], [first, norm]]\n";
    tiny t = TINY_PLAN(.config = STRANGER, .params = ODD, .mesh = "tp=2", .overrides = rules);
    (void)state;
    tiny_role(&t, "a.0.mlp.first.weight", "colwise");
    tiny_role(&t, "a.0.mlp.second.weight", "rowwise");
    check_text(&t, 1, "arch_roles stranger, rule 2: second");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = "'architectures': ['ThirdForCausalLM']", .params = ODD, .mesh = "tp=2",
                    .overrides = rules);
    tiny_finding(&t, SW_SEVERITY_ERROR, "uncovered", "a.0.mlp.first.weight", NULL);
    tiny_drop(&t);
}

static void architecture_rules_win_over_user_rules_and_both_over_the_family(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                            "'num_hidden_layers': 1, 'hidden_size': 8, 'num_attention_heads': 4, "
                            "'num_key_value_heads': 4, 'intermediate_size': 8, 'vocab_size': 8",
                  .params =
                      "model.norm.weight F32 8\nmodel.embed_tokens.weight F32 8x8\nlm_head.weight F32 8x8\n",
                  .mesh = "tp=2",
                  .overrides = "roles:\n  extend: true\n"
                               "  rules: [[model.norm, replicated], [embed_tokens, replicated]]\n"
                               "arch_roles: {llama: [[model.norm, norm]]}\n");
    (void)state;
    tiny_role(&t, "model.norm.weight", "norm");
    tiny_role(&t, "model.embed_tokens.weight", "replicated");
    tiny_role(&t, "lm_head.weight", "lm_head");
    check_text(&t, 2, "family llama: lm_head.weight");
    tiny_drop(&t);
}

static void a_rule_may_look_at_a_layers_number(void **state)
{
    tiny t = TINY_PLAN(.config = STRANGER,
                       .params = "a.0.norm.weight F32 8\na.1.norm.weight F32 8\na.10.norm.weight F32 8\n",
                       .mesh = "tp=2", .overrides = "arch_roles: {stranger: [[a.1.norm, replicated]]}\n");
    (void)state;
    tiny_role(&t, "a.0.norm.weight", "norm");
    tiny_role(&t, "a.1.norm.weight", "replicated");
    tiny_role(&t, "a.10.norm.weight", "norm");
    tiny_drop(&t);
}

static void a_familys_table_says_what_the_names_alone_do_not(void **state)
{
    tiny t = TINY_PLAN(.config =
                           "'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', "
                           "'num_hidden_layers': 1, "
                           "'hidden_size': 8, 'num_attention_heads': 2, 'q_lora_rank': 4, 'kv_lora_rank': 4, "
                           "'qk_nope_head_dim': 2, 'qk_rope_head_dim': 2, 'v_head_dim': 4, 'vocab_size': 8, "
                           "'n_routed_experts': 2, 'moe_intermediate_size': 4, 'intermediate_size': 8, "
                           "'first_k_dense_replace': 1, 'tie_word_embeddings': true",
                       .mesh = "tp=2");
    (void)state;
    tiny_role(&t, L "self_attn.q_a_proj.weight", "replicated");
    tiny_role(&t, L "self_attn.kv_a_proj_with_mqa.weight", "replicated");
    tiny_role(&t, L "self_attn.q_b_proj.weight", "colwise");
    tiny_role(&t, L "self_attn.kv_b_proj.weight", "colwise");
    tiny_drop(&t);
}

static void a_special_parameter_has_the_handler_of_the_first_word_in_its_name(void **state)
{
    (void)state;
    assert_string_equal(sw_role_handler(SW_ROLE_SPECIAL, L "linear_attn.A_log"), "gated_delta_tp_shard");
    assert_string_equal(sw_role_handler(SW_ROLE_SPECIAL, L "linear_attn.dt_bias"), "gated_delta_tp_shard");
    assert_string_equal(sw_role_handler(SW_ROLE_SPECIAL, L "Gated_Delta.w"), "gated_delta_tp_shard");
    assert_string_equal(sw_role_handler(SW_ROLE_SPECIAL, L "self_attn.k_proj.weight"), "default");
    assert_string_equal(sw_role_handler(SW_ROLE_SPECIAL, ""), "default");
    assert_null(sw_role_handler(SW_ROLE_NORM, L "linear_attn.A_log"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_rules_are_the_seeds_in_its_order),
        cmocka_unit_test(there_are_fourteen_roles_and_their_words_lead_back),
        cmocka_unit_test(names_get_the_roles_of_the_facts),
        cmocka_unit_test(a_column_bias_has_its_weights_role_and_a_row_bias_is_a_bias),
        cmocka_unit_test(replicated_never_comes_from_the_default_rules),
        cmocka_unit_test(an_exact_pattern_is_a_whole_segment),
        cmocka_unit_test(a_part_pattern_lies_inside_one_segment),
        cmocka_unit_test(a_dotted_pattern_is_a_part_of_the_whole_name_in_every_mode),
        cmocka_unit_test(the_first_rule_that_matches_wins_and_is_named),
        cmocka_unit_test(user_rules_take_the_defaults_place),
        cmocka_unit_test(a_legacy_rule_of_two_fields_is_a_part_of_the_whole_name),
        cmocka_unit_test(names_are_lowered_and_the_patterns_of_a_rule_are_not),
        cmocka_unit_test(an_override_wins_over_the_default_rules),
        cmocka_unit_test(an_override_that_does_not_match_falls_through),
        cmocka_unit_test(override_patterns_are_lowered_and_match_anywhere),
        cmocka_unit_test(the_first_override_wins),
        cmocka_unit_test(row_like_is_w2_down_proj_or_down_dot),
        cmocka_unit_test(rules_of_an_override_file_replace_the_defaults_or_stand_before_them),
        cmocka_unit_test(rules_of_an_architecture_hold_for_that_architecture_only),
        cmocka_unit_test(architecture_rules_win_over_user_rules_and_both_over_the_family),
        cmocka_unit_test(a_rule_may_look_at_a_layers_number),
        cmocka_unit_test(a_familys_table_says_what_the_names_alone_do_not),
        cmocka_unit_test(a_special_parameter_has_the_handler_of_the_first_word_in_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
