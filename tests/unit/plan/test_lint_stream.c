/* The residual stream has one layout: an override that gives one boundary another is told. */
#include "plan/lint_stream.h"

#include "tiny_model.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, "                 \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16"
#define WHOLE "out_dst: {output: {tp: replicate}}\n"

static void an_exit_that_the_next_boundary_does_not_take_is_told(void **state)
{
    const char *overrides = "- match: model.layers.*.mlp\n  " WHOLE;
    const char *words =
        "model.layers.#.mlp: out_dst is R over tp, and the other boundaries have the residual "
        "stream as S(1) (2 alike)";
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .overrides = overrides);

    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "stream_disagrees", words, "same layout");
    tiny_drop(&t);
    t = TINY_REFUSE(.config = LLAMA, .mesh = "tp=2", .overrides = overrides, .strict = true);
    tiny_finding(&t, SW_SEVERITY_ERROR, "stream_disagrees", words, "same layout");
    tiny_drop(&t);
}

static void an_entry_of_another_layout_is_told(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "cp=2,tp=2",
                       .overrides = "- match: model.layers.1.input_layernorm\n"
                                    "  in_src: {hidden_states: {cp: replicate, tp: shard(1)}}\n");

    (void)state;
    tiny_finding(&t, SW_SEVERITY_WARNING, "stream_disagrees", "in_src is R over cp", NULL);
    tiny_drop(&t);
}

static void an_override_that_keeps_the_layout_is_silent(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2", .no_sp = true,
                       .overrides = "- match: model.layers.*.mlp\n  " WHOLE);

    (void)state;
    tiny_silent(&t, "stream_disagrees");
    tiny_drop(&t);
    t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    tiny_silent(&t, "stream_disagrees");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exit_that_the_next_boundary_does_not_take_is_told),
        cmocka_unit_test(an_entry_of_another_layout_is_told),
        cmocka_unit_test(an_override_that_keeps_the_layout_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
