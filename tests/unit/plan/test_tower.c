/*
 * Modules of towers: cut where both sides of their matrices are known, else whole with the reason.
 */
#include "plan/tower.h"

#include "tiny_model.h"

#define V "vision_tower.layers.0.self_attn."
#define CONFIG(vision)                                                                                       \
    "'architectures': ['StrangerForConditionalGeneration'], 'hidden_size': 8, 'num_attention_heads': 4, "    \
    "'vision_config': {" vision "}"
#define FOUR_HEADS CONFIG("'num_attention_heads': 4")
#define TEXT                                                                                                 \
    "model.layers.0.self_attn.q_proj.weight F32 8x8\nmodel.layers.0.self_attn.o_proj.weight F32 8x8\n"
#define QKV V "q_proj.weight F32 8x8\n" V "k_proj.weight F32 8x8\n" V "v_proj.weight F32 8x8\n"

static void check_whole(const char *config, const char *params, const char *fqn, const char *what,
                        const char *help)
{
    tiny t = TINY_PLAN(.config = config, .params = params, .mesh = "tp=2");
    tiny_tp(&t, fqn, "R");
    tiny_finding(&t, SW_SEVERITY_WARNING, "tower_replicated", what, help);
    tiny_silent(&t, "unpaired");
    tiny_drop(&t);
}

static void attention_with_both_sides_is_cut(void **state)
{
    tiny t =
        TINY_PLAN(.config = FOUR_HEADS, .params = TEXT QKV V "out_proj.weight F32 8x8\n", .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, V "q_proj.weight", "S(0)");
    tiny_tp(&t, V "out_proj.weight", "S(1)");
    tiny_silent(&t, "tower_replicated");
    tiny_drop(&t);
}

static void heads_of_a_tower_go_by_two_names(void **state)
{
    tiny t = TINY_PLAN(.config = CONFIG("'attention_heads': 4"),
                       .params = TEXT QKV V "o_proj.weight F32 8x8\n", .mesh = "tp=2");
    (void)state;
    tiny_attributes(&t, "vision_tower.layers.0.self_attn", "num_heads 4/2, num_key_value_heads 4/2");
    tiny_silent(&t, "tower_replicated");
    tiny_drop(&t);
}

static void columns_without_a_known_output_stay_whole(void **state)
{
    const char *params = TEXT QKV V "projection_layer.weight F32 8x8\n";
    tiny t = TINY_PLAN(.config = FOUR_HEADS, .params = params, .mesh = "tp=2");
    (void)state;
    tiny_contract(&t, "vision_tower.layers.0.self_attn", SW_AXIS_TP, "hidden_states: R -> R; output: R -> R");
    tiny_attributes(&t, "vision_tower.layers.0.self_attn", "num_heads 4/4, num_key_value_heads 4/4");
    tiny_drop(&t);
    check_whole(FOUR_HEADS, params, V "q_proj.weight", "no table says which of its matrices is the output",
                "roles and layouts");
}

static void rows_without_a_known_input_stay_whole(void **state)
{
    (void)state;
    check_whole(FOUR_HEADS, TEXT V "in_proj_weight F32 24x8\n" V "out_proj.weight F32 8x8\n",
                V "out_proj.weight", "no table says which of its matrices is the input", "roles and layouts");
}

static void heads_that_are_not_known_or_do_not_divide_are_not_cut(void **state)
{
    const char *params = TEXT QKV V "out_proj.weight F32 8x8\n";
    (void)state;
    check_whole(CONFIG(""), params, V "out_proj.weight", "does not say how many heads it has",
                "vision_config.num_attention_heads");
    check_whole(CONFIG("'num_attention_heads': 1"), params, V "out_proj.weight", "tp does not divide it",
                "choose a tp");
}

static void a_feed_forward_is_whole_or_cut_by_itself(void **state)
{
    tiny t = TINY_PLAN(.config = CONFIG(""),
                       .params = TEXT QKV V "out_proj.weight F32 8x8\n"
                                            "vision_tower.layers.0.mlp.fc1.weight F32 16x8\n"
                                            "vision_tower.layers.0.mlp.fc2.weight F32 8x16\n",
                       .mesh = "tp=2");
    (void)state;
    tiny_tp(&t, V "q_proj.weight", "R");
    tiny_tp(&t, "vision_tower.layers.0.mlp.fc1.weight", "S(0)");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_with_both_sides_is_cut),
        cmocka_unit_test(heads_of_a_tower_go_by_two_names),
        cmocka_unit_test(columns_without_a_known_output_stay_whole),
        cmocka_unit_test(rows_without_a_known_input_stay_whole),
        cmocka_unit_test(heads_that_are_not_known_or_do_not_divide_are_not_cut),
        cmocka_unit_test(a_feed_forward_is_whole_or_cut_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
