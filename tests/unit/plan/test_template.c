/*
 * Templates, against the seed document default_templates: every cell of the seven contracts with and without
 * sequence parallel, the placement of each role, and the special cases of the output head and the embedding.
 */
#include "plan/template.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/plan_make.h"

/* ---- the tables ---- */

/*
 * Cells in words: "tp,cp" of in_src, in_dst, out_src, out_dst. ep is R everywhere unless `ep_out` says so of
 * out_dst.
 */
// clang-format off
static const struct cells {
    sw_boundary_type type;
    const char *input;
    const char *sp, *nosp;
    const char *ep_out;
    bool needs_cp_attn;
    int8_t region_dispatch;
} cells[] = {
    { SW_BOUNDARY_ATTENTION, "hidden_states", "S1,S1 R,S1 P,S1 S1,S1",   "R,S1 R,S1 P,S1 R,S1",  "R",  true,  -1 },
    { SW_BOUNDARY_MLP,       "hidden_states", "S1,S1 R,S1 P,S1 S1,S1",   "R,S1 R,S1 P,S1 R,S1",  "R",  false, -1 },
    { SW_BOUNDARY_NORM,      "hidden_states", "S1,S1 S1,S1 S1,S1 S1,S1", "R,S1 R,S1 R,S1 R,S1",  "R",  false, -1 },
    { SW_BOUNDARY_EMBED,     "input",         "R,S1 R,S1 P,S1 S1,S1",    "R,S1 R,S1 P,S1 R,S1",  "R",  false, -1 },
    { SW_BOUNDARY_LM_HEAD,   "hidden_states", "S1,S1 R,S1 S-1,S1 S-1,S1", "R,S1 R,S1 S-1,S1 R,S1", "R", false, -1 },
    { SW_BOUNDARY_MOE_GATE,  "hidden_states", "S1,S1 R,R R,R R,R",       "R,S1 R,R R,R R,R",     "S0", false, -1 },
    { SW_BOUNDARY_MOE_MLP,   "x_BLD",         "S1,S1 R,S1 P,S1 S1,S1",   "R,S1 R,S1 P,S1 R,S1",  "R",  false, 0  },
};
// clang-format on

static void put_place(sw_buffer *out, sw_template_place p)
{
    if (!p.is_declared)
        sw_buffer_puts(out, "-");
    else if (p.kind == SW_PLACE_SHARD)
        sw_buffer_printf(out, "S%d", p.dim);
    else
        sw_buffer_puts(out, p.kind == SW_PLACE_REPLICATE ? "R" : "P");
}

static void check_contract(const char *what, const sw_template_contract *c, const char *expected,
                           const char *ep_out)
{
    const sw_template_side *sides[] = {&c->in_src, &c->in_dst, &c->out_src, &c->out_dst};
    sw_buffer text = {0};
    sw_buffer ep = {0};

    for (size_t i = 0; i < 4; i++) {
        sw_buffer_puts(&text, i == 0 ? "" : " ");
        put_place(&text, sides[i]->tp);
        sw_buffer_putc(&text, ',');
        put_place(&text, sides[i]->cp);
        put_place(&ep, sides[i]->ep);
    }
    if (strcmp(sw_buffer_text(&text), expected) != 0)
        fail_msg("%s: %s, expected %s", what, sw_buffer_text(&text), expected);
    assert_memory_equal(sw_buffer_text(&ep), "RRR", 3);
    assert_string_equal(sw_buffer_text(&ep) + 3, ep_out);
    sw_buffer_clear(&text);
    sw_buffer_clear(&ep);
}

static void every_cell_of_the_seven_contracts_is_the_seeds(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cells); i++) {
        const sw_template *t = sw_template_of(cells[i].type);
        assert_non_null(t);
        check_contract(sw_boundary_type_name(t->type), &t->sp, cells[i].sp, cells[i].ep_out);
        check_contract(sw_boundary_type_name(t->type), &t->nosp, cells[i].nosp, cells[i].ep_out);
    }
}

static void flags_and_inputs_are_the_seeds(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cells); i++) {
        const sw_template *t = sw_template_of(cells[i].type);
        assert_string_equal(t->input, cells[i].input);
        assert_int_equal(t->needs_cp_attn, cells[i].needs_cp_attn);
        assert_int_equal(t->region_dispatch, cells[i].region_dispatch);
    }
}

static void parameters_have_the_seeds_defaults_in_every_template(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cells); i++) {
        const sw_template *t = sw_template_of(cells[i].type);
        sw_buffer text = {0};
        put_place(&text, t->colwise);
        put_place(&text, t->rowwise);
        put_place(&text, t->norm);
        put_place(&text, t->expert);
        assert_string_equal(sw_buffer_text(&text), "S0S1RS0");
        sw_buffer_clear(&text);
    }
}

static void types_without_a_template_have_none(void **state)
{
    (void)state;
    assert_null(sw_template_of(SW_BOUNDARY_NONE));
    assert_null(sw_template_of(SW_BOUNDARY_CUSTOM));
    assert_null(sw_template_of(SW_BOUNDARY_COUNT_));
    assert_null(sw_boundary_type_name(SW_BOUNDARY_COUNT_));
    assert_string_equal(sw_boundary_type_name(SW_BOUNDARY_MOE_MLP), "moe_mlp");
}

static void our_own_templates_say_what_they_are_for(void **state)
{
    (void)state;
    /* pointwise works on the tokens that are there, as a norm does; a mixer sees the whole sequence */
    check_contract("pointwise", &sw_template_of(SW_BOUNDARY_POINTWISE)->sp, "S1,S1 S1,S1 S1,S1 S1,S1", "R");
    check_contract("pointwise", &sw_template_of(SW_BOUNDARY_POINTWISE)->nosp, "R,S1 R,S1 R,S1 R,S1", "R");
    check_contract("mixer", &sw_template_of(SW_BOUNDARY_MIXER)->sp, "S1,R R,R R,R S1,R", "R");
    check_contract("mixer", &sw_template_of(SW_BOUNDARY_MIXER)->nosp, "R,R R,R R,R R,R", "R");
    assert_null(sw_template_of(SW_BOUNDARY_WHOLE)->input);
}

/* ---- roles ---- */

/* "tp cp ep" of a role, "-" for a key that is absent; "none" when the role gets no entry. */
static void check_role(const char *path, sw_role role, uint32_t n_dims, bool has_tp, bool has_ep,
                       const char *expected)
{
    static const int order[] = {SW_ON_TP, SW_ON_CP, SW_ON_EP};
    const sw_template *t = sw_template_of(SW_BOUNDARY_ATTENTION);
    sw_places places;
    sw_buffer text = {0};

    if (!sw_template_place_role(path, role, t, has_tp, has_ep, n_dims, &places)) {
        assert_int_equal(places.present, 0);
        assert_string_equal("none", expected);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        char one[32] = "-";
        if ((places.present & (1U << order[i])) != 0)
            (void)sw_placement_text(&places.on[order[i]], one, sizeof one);
        sw_buffer_printf(&text, "%s%s", i == 0 ? "" : " ", one);
    }
    if (strcmp(sw_buffer_text(&text), expected) != 0)
        fail_msg("%s %s: %s, expected %s", sw_role_name(role), path, sw_buffer_text(&text), expected);
    sw_buffer_clear(&text);
}

static void column_roles_are_cut_along_dim_0(void **state)
{
    static const sw_role columns[] = {SW_ROLE_COLWISE, SW_ROLE_EMBED, SW_ROLE_LM_HEAD, SW_ROLE_FUSED_QKV,
                                      SW_ROLE_FUSED_GATE_UP};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(columns); i++) {
        check_role("q_proj.weight", columns[i], 2, true, true, "S(0) R R");
        check_role("q_proj.weight", columns[i], 2, true, false, "S(0) R R");
        check_role("q_proj.weight", columns[i], 2, false, true, "- R R"); /* no tp: no tp key */
        check_role("q_proj.weight", columns[i], 2, false, false, "- R R");
        check_role("q_proj.bias", columns[i], 1, true, false, "S(0) R R");
    }
}

static void row_roles_are_cut_along_dim_1(void **state)
{
    (void)state;
    check_role("o_proj.weight", SW_ROLE_ROWWISE, 2, true, true, "S(1) R R");
    check_role("o_proj.weight", SW_ROLE_ROWWISE, 2, false, true, "- R R");
}

static void norms_and_routers_are_whole(void **state)
{
    (void)state;
    check_role("weight", SW_ROLE_NORM, 1, true, true, "R R R");
    check_role("weight", SW_ROLE_NORM, 1, false, false, "- R R");
    check_role("gate.weight", SW_ROLE_MOE_GATE, 2, true, false, "R R R");
    check_role("gate.weight", SW_ROLE_MOE_GATE, 2, false, false, "- R R");
}

static void biases_and_replicated_ones_have_an_explicit_r(void **state)
{
    (void)state;
    check_role("o_proj.bias", SW_ROLE_BIAS, 1, true, true, "R R R");
    check_role("o_proj.bias", SW_ROLE_BIAS, 1, false, false, "R R R");
    check_role("q_a_proj.weight", SW_ROLE_REPLICATED, 2, true, false, "R R R");
    check_role("q_a_proj.weight", SW_ROLE_REPLICATED, 2, false, true, "R R R");
}

static void experts_are_cut_over_ep_and_by_their_dims_over_tp(void **state)
{
    (void)state;
    /* one matrix an expert */
    check_role("experts.w1", SW_ROLE_MOE_EXPERT, 2, true, true, "S(0) R S(0)");
    check_role("experts.w2", SW_ROLE_MOE_EXPERT, 2, true, true, "S(1) R S(0)");
    check_role("experts.0.down_proj.weight", SW_ROLE_MOE_EXPERT, 2, true, true, "S(1) R S(0)");
    /* a batch: dim 0 belongs to ep, tp moves up by one */
    check_role("experts.w1", SW_ROLE_MOE_EXPERT, 3, true, true, "S(1) R S(0)");
    check_role("experts.w2", SW_ROLE_MOE_EXPERT, 3, true, true, "S(2) R S(0)");
    check_role("experts.gate_up_proj", SW_ROLE_MOE_EXPERT, 3, true, true, "S(1) R S(0)");
    check_role("experts.down_proj", SW_ROLE_MOE_EXPERT, 4, true, false, "S(2) R -");
    /* without tp an explicit R, without ep no key */
    check_role("experts.w1", SW_ROLE_MOE_EXPERT, 3, false, true, "R R S(0)");
    check_role("experts.w1", SW_ROLE_MOE_EXPERT, 2, true, false, "S(0) R -");
    check_role("experts.w1", SW_ROLE_MOE_EXPERT, 2, false, false, "R R -");
    /* the seed's table as it stands, whatever the layer above makes of expert biases */
    check_role("experts.gate_up_proj_bias", SW_ROLE_MOE_EXPERT, 2, true, true, "S(0) R S(0)");
    check_role("experts.down_proj_bias", SW_ROLE_MOE_EXPERT, 2, true, true, "S(1) R S(0)");
}

static void shared_experts_are_whole_over_ep(void **state)
{
    (void)state;
    check_role("shared_experts.w1", SW_ROLE_SHARED_EXPERT, 2, true, true, "S(0) R R");
    check_role("shared_experts.w2", SW_ROLE_SHARED_EXPERT, 2, true, true, "S(1) R R");
    check_role("gate_proj.weight", SW_ROLE_SHARED_EXPERT, 2, true, false, "S(0) R R");
    check_role("down_proj.weight", SW_ROLE_SHARED_EXPERT, 2, true, false, "S(1) R R");
    check_role("shared_expert.down.weight", SW_ROLE_SHARED_EXPERT, 2, true, false, "S(1) R R");
    check_role("w2", SW_ROLE_SHARED_EXPERT, 2, false, true, "- R R");
}

static void special_and_skip_get_no_entry(void **state)
{
    (void)state;
    check_role("a_log", SW_ROLE_SPECIAL, 1, true, true, "none");
    check_role("x", SW_ROLE_SKIP, 1, true, true, "none");
}

/* ---- contracts of a plan ---- */

typedef struct choice {
    const char *mesh;
    bool sp;
    bool loss_parallel;
} choice;

/* The contract that a template gives, "in_src in_dst out_src out_dst" on one axis ("-" for an axis not
 * listed). */
static void check_derived(sw_boundary_type type, choice c, sw_axis axis, const char *expected)
{
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_spec spec = {.fqn = "x"};
    sw_buffer text = {0};

    assert_int_equal(sw_mesh_create(&mesh, c.mesh, 0, NULL), SW_OK);
    assert_int_equal(sw_plan_make_empty(&plan, mesh, NULL), SW_OK);
    plan->loss_parallel = c.loss_parallel;
    assert_int_equal(sw_template_contract_of(plan, sw_template_of(type), c.sp, &spec, NULL), SW_OK);
    const sw_io *sides[] = {&spec.in_src, &spec.in_dst, &spec.out_src, &spec.out_dst};
    for (size_t i = 0; i < 4; i++) {
        char one[32] = "-";
        assert_true(sides[i]->is_declared);
        assert_int_equal(sides[i]->n, 1);
        if ((sides[i]->entries[0].places.present & (1U << SW_ON_OF(axis))) != 0)
            (void)sw_placement_text(&sides[i]->entries[0].places.on[SW_ON_OF(axis)], one, sizeof one);
        sw_buffer_printf(&text, "%s%s", i == 0 ? "" : " ", one);
    }
    assert_string_equal(spec.out_src.entries[0].name, "output");
    if (strcmp(sw_buffer_text(&text), expected) != 0)
        fail_msg("%s on %s: %s, expected %s", sw_boundary_type_name(type), c.mesh, sw_buffer_text(&text),
                 expected);
    sw_buffer_clear(&text);
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
}

static void the_heads_exit_follows_loss_parallel_whether_sp_is_on_or_off(void **state)
{
    static const sw_boundary_type head = SW_BOUNDARY_LM_HEAD;
    (void)state;
    check_derived(head, (choice){"tp=2", true, false}, SW_AXIS_TP, "S(1) R S(-1) R");
    check_derived(head, (choice){"tp=2", true, true}, SW_AXIS_TP, "S(1) R S(-1) S(-1)");
    check_derived(head, (choice){"tp=2", false, false}, SW_AXIS_TP, "R R S(-1) R");
    check_derived(head, (choice){"tp=2", false, true}, SW_AXIS_TP, "R R S(-1) S(-1)");
}

static void the_heads_cp_follows_whether_cp_is_there(void **state)
{
    static const sw_boundary_type head = SW_BOUNDARY_LM_HEAD;
    (void)state;
    for (int sp = 0; sp < 2; sp++) {
        for (int loss = 0; loss < 2; loss++) {
            check_derived(head, (choice){"cp=2,tp=2", sp != 0, loss != 0}, SW_AXIS_CP, "S(1) S(1) S(1) S(1)");
            check_derived(head, (choice){"tp=2", sp != 0, loss != 0}, SW_AXIS_CP, "- - - -");
        }
    }
}

static void the_embeddings_ids_are_cut_over_cp_already(void **state)
{
    (void)state;
    check_derived(SW_BOUNDARY_EMBED, (choice){"cp=2,tp=2", true, false}, SW_AXIS_CP, "S(1) S(1) S(1) S(1)");
    check_derived(SW_BOUNDARY_EMBED, (choice){"cp=2,tp=2", false, false}, SW_AXIS_CP, "S(1) S(1) S(1) S(1)");
    check_derived(SW_BOUNDARY_EMBED, (choice){"cp=2,tp=2", true, false}, SW_AXIS_TP, "R R P S(1)");
    check_derived(SW_BOUNDARY_EMBED, (choice){"cp=2,tp=2", false, false}, SW_AXIS_TP, "R R P R");
    check_derived(SW_BOUNDARY_EMBED, (choice){"tp=2", true, false}, SW_AXIS_TP, "R R P S(1)");
}

static void ep_is_whole_everywhere_but_behind_a_router_that_stands_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cells); i++) {
        const char *expected = cells[i].type == SW_BOUNDARY_MOE_GATE ? "R R R S(0)" : "R R R R";
        check_derived(cells[i].type, (choice){"ep=2,tp=2", true, false}, SW_AXIS_EP, expected);
        check_derived(cells[i].type, (choice){"ep=2,tp=2", false, false}, SW_AXIS_EP, expected);
    }
    check_derived(SW_BOUNDARY_MLP, (choice){"tp=2", true, false}, SW_AXIS_EP, "- - - -");
}

static void the_standalone_router_gathers_cp(void **state)
{
    (void)state;
    check_derived(SW_BOUNDARY_MOE_GATE, (choice){"cp=2,tp=2", true, false}, SW_AXIS_CP, "S(1) R R R");
    check_derived(SW_BOUNDARY_MOE_GATE, (choice){"cp=2,tp=2", false, false}, SW_AXIS_TP, "R R R R");
}

static void every_other_template_keeps_cp_at_its_borders(void **state)
{
    static const sw_boundary_type types[] = {SW_BOUNDARY_ATTENTION, SW_BOUNDARY_MLP, SW_BOUNDARY_NORM,
                                             SW_BOUNDARY_MOE_MLP};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(types); i++) {
        check_derived(types[i], (choice){"cp=2,tp=2", true, false}, SW_AXIS_CP, "S(1) S(1) S(1) S(1)");
        check_derived(types[i], (choice){"cp=2", false, false}, SW_AXIS_TP, "- - - -");
    }
}

/* ---- plans never share ---- */

static void a_plan_never_points_into_a_template_or_at_another_boundary(void **state)
{
    tiny t = TINY_PLAN(.config = "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', "
                                 "'num_hidden_layers': 2, 'hidden_size': 8, 'num_attention_heads': 4, "
                                 "'num_key_value_heads': 4, 'intermediate_size': 8, 'vocab_size': 8",
                       .mesh = "tp=2",
                       .overrides = "- match: model.layers.0.self_attn\n"
                                    "  in_src: {hidden_states: {tp: replicate}}\n"
                                    "  in_dst: {hidden_states: {tp: replicate}}\n");
    const sw_spec *one = tiny_spec(&t, "model.layers.0.self_attn");
    const sw_spec *two = tiny_spec(&t, "model.layers.1.self_attn");
    (void)state;
    tiny_contract(&t, "model.layers.0.self_attn", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_contract(&t, "model.layers.1.self_attn", SW_AXIS_TP, "hidden_states: S(1) -> R; output: P -> S(1)");
    assert_ptr_not_equal(one->out_src.entries, two->out_src.entries);
    assert_ptr_not_equal(two->in_src.entries, two->in_dst.entries);
    two->out_src.entries[0].places.on[SW_ON_TP].kind = SW_PLACE_REPLICATE; /* dirties its own plan only */
    check_contract("attention", &sw_template_of(SW_BOUNDARY_ATTENTION)->sp, cells[0].sp, "R");
    tiny_contract(&t, "model.layers.0.self_attn", SW_AXIS_TP, "hidden_states: R -> R; output: P -> S(1)");
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_of_the_seven_contracts_is_the_seeds),
        cmocka_unit_test(flags_and_inputs_are_the_seeds),
        cmocka_unit_test(parameters_have_the_seeds_defaults_in_every_template),
        cmocka_unit_test(types_without_a_template_have_none),
        cmocka_unit_test(our_own_templates_say_what_they_are_for),
        cmocka_unit_test(column_roles_are_cut_along_dim_0),
        cmocka_unit_test(row_roles_are_cut_along_dim_1),
        cmocka_unit_test(norms_and_routers_are_whole),
        cmocka_unit_test(biases_and_replicated_ones_have_an_explicit_r),
        cmocka_unit_test(experts_are_cut_over_ep_and_by_their_dims_over_tp),
        cmocka_unit_test(shared_experts_are_whole_over_ep),
        cmocka_unit_test(special_and_skip_get_no_entry),
        cmocka_unit_test(the_heads_exit_follows_loss_parallel_whether_sp_is_on_or_off),
        cmocka_unit_test(the_heads_cp_follows_whether_cp_is_there),
        cmocka_unit_test(the_embeddings_ids_are_cut_over_cp_already),
        cmocka_unit_test(ep_is_whole_everywhere_but_behind_a_router_that_stands_alone),
        cmocka_unit_test(the_standalone_router_gathers_cp),
        cmocka_unit_test(every_other_template_keeps_cp_at_its_borders),
        cmocka_unit_test(a_plan_never_points_into_a_template_or_at_another_boundary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
