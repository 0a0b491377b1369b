/* The pipeline stage of norms outside the layers: by the family's table, by name, and by guess. */
#include "plan/outer_norm.h"

#include "tiny_model.h"

#include <stdio.h>

#include "base/status.h"

#define STRANGER                                                                                             \
    "'architectures': ['StrangerForCausalLM'], 'hidden_size': 8, 'num_attention_heads': 4, "                 \
    "'tie_word_embeddings': false"
#define LAYER(n)                                                                                             \
    "model.layers." n ".self_attn.q_proj.weight F32 8x8\nmodel.layers." n ".self_attn.o_proj.weight F32 "    \
    "8x8\n"

/* Stages of two norms beside two layers, on pp=2. */
static tiny plan_norms(const char *first, const char *second)
{
    char params[1024];

    (void)snprintf(params, sizeof params,
                   "lm_head.weight F32 16x8\nmodel.embed_tokens.weight F32 16x8\n%s.weight F32 8\n%s.weight "
                   "F32 8\n" LAYER("0") LAYER("1"),
                   first, second);
    return TINY_PLAN(.config = STRANGER, .params = params, .mesh = "pp=2");
}

static void a_norm_with_a_usual_name_is_the_last_wherever_it_is_listed(void **state)
{
    static const char *const names[] = {"model.norm", "model.final_layernorm", "transformer.ln_f",
                                        "model.norm_f"};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        tiny t = plan_norms(names[i], "model.layers.0.input_layernorm");
        assert_int_equal(tiny_spec(&t, names[i])->pp_stage, 1);
        assert_int_equal(tiny_spec(&t, "model.layers.0.input_layernorm")->pp_stage, 0);
        tiny_silent(&t, "stage_guessed");
        tiny_drop(&t);
    }
}

static void a_norm_beside_a_final_one_is_guessed_to_be_the_first(void **state)
{
    tiny t = plan_norms("model.input_norm", "model.norm");
    (void)state;
    assert_int_equal(tiny_spec(&t, "model.input_norm")->pp_stage, 0);
    assert_int_equal(tiny_spec(&t, "model.norm")->pp_stage, 1);
    tiny_finding(&t, SW_SEVERITY_WARNING, "stage_guessed", "it is put on stage 0", "used there");
    tiny_drop(&t);
}

static void a_norm_alone_is_guessed_to_be_the_final_one(void **state)
{
    tiny t = plan_norms("model.embedding_norm", "model.layers.1.input_layernorm"); /* so LFM2 calls it */
    (void)state;
    assert_int_equal(tiny_spec(&t, "model.embedding_norm")->pp_stage, 1);
    tiny_finding(&t, SW_SEVERITY_WARNING, "stage_guessed", "it is put on stage 1", NULL);
    tiny_drop(&t);
}

static void a_familys_table_says_where_its_norms_stand(void **state)
{
    tiny t =
        TINY_PLAN(.config = "'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', 'n_layer': 2, "
                            "'hidden_size': 8, 'n_head': 2, 'vocab_size': 16",
                  .mesh = "pp=2");
    (void)state;
    assert_int_equal(tiny_spec(&t, "word_embeddings_layernorm")->pp_stage, 0);
    assert_int_equal(tiny_spec(&t, "ln_f")->pp_stage, 1);
    tiny_silent(&t, "stage_guessed");
    tiny_drop(&t);
}

static void opts_final_norm_is_the_last(void **state)
{
    tiny t =
        TINY_PLAN(.config =
                      "'architectures': ['OPTForCausalLM'], 'model_type': 'opt', 'num_hidden_layers': 2, "
                      "'hidden_size': 8, 'num_attention_heads': 2, 'ffn_dim': 16, 'vocab_size': 16, "
                      "'max_position_embeddings': 8, 'word_embed_proj_dim': 8",
                  .mesh = "pp=2");
    (void)state;
    assert_int_equal(tiny_spec(&t, "model.decoder.final_layer_norm")->pp_stage, 1);
    tiny_silent(&t, "stage_guessed");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_with_a_usual_name_is_the_last_wherever_it_is_listed),
        cmocka_unit_test(a_norm_beside_a_final_one_is_guessed_to_be_the_first),
        cmocka_unit_test(a_norm_alone_is_guessed_to_be_the_final_one),
        cmocka_unit_test(a_familys_table_says_where_its_norms_stand),
        cmocka_unit_test(opts_final_norm_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
