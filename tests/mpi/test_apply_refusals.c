/* What apply and binding refuse, and that a refusal changes nothing. Plans are made wrong by hand. */
#include "rank_case.h"

#include "apply/applied.h"
#include "apply/apply.h"
#include "apply/bind.h"
#include "nn/net.h"
#include "tiny_model.h"

#define CONFIG                                                                                               \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'rms_norm_eps': 1e-5, 'hidden_act': "     \
    "'silu', 'num_hidden_layers': 2, 'vocab_size': 32, 'hidden_size': 16, 'max_position_embeddings': 32, "   \
    "'num_attention_heads': 8, 'num_key_value_heads': 8, 'intermediate_size': 32"

static sw_mesh *mesh;
static sw_comm *comm;
static sw_model *model;
static sw_plan *plan;
static sw_net *net;
static char folder[512];

static sw_net *make_net(void)
{
    const sw_net_options options = {.dtype = SW_DTYPE_F32};
    sw_net *made = NULL;
    sw_error err = {0};

    if (sw_net_create(&made, model, &options, &err) != SW_OK)
        fail_msg("%s", err.what);
    return made;
}

static sw_plan *make_plan(const sw_mesh *on)
{
    sw_plan *made = NULL;
    sw_error err = {0};

    if (sw_plan_create(&made, model, on, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    return made;
}

static int open_case(void **state)
{
    char text[32];

    (void)state;
    (void)snprintf(text, sizeof text, "tp=%d", sw_test_ranks());
    if (sw_test_ranks() > 4 || sw_test_ranks() == 3)
        (void)snprintf(text, sizeof text, "dp=%d", sw_test_ranks());
    model = tiny_open(CONFIG, NULL);
    if (sw_mesh_create(&mesh, text, 0, NULL) != SW_OK || sw_comm_create(&comm, mesh, NULL, NULL) != SW_OK)
        return 1;
    plan = make_plan(mesh);
    net = make_net();
    return 0;
}

static int close_case(void **state)
{
    (void)state;
    sw_net_destroy(net);
    sw_plan_destroy(plan);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
    return 0;
}

static sw_spec *spec_of(const char *fqn)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        if (strcmp(plan->specs[i].fqn, fqn) == 0)
            return &plan->specs[i];
    }
    fail_msg("no boundary %s", fqn);
    return NULL;
}

static sw_status apply(sw_error *err)
{
    sw_source_shards *shards = NULL;
    sw_status status = sw_apply(&net, 1, plan, comm, &(sw_apply_options){0}, &shards, err);

    if (status != SW_OK)
        assert_null(shards);
    sw_source_shards_destroy(shards);
    return status;
}

static void contains(const char *text, const char *what)
{
    if (strstr(text, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, what);
}

/* Applying fails with this account, and the net is as one that was just made. */
static void refuses(sw_status status, const char *what)
{
    sw_net *fresh = make_net();
    sw_error err = {0};

    assert_int_equal(apply(&err), status);
    contains(err.what, what);
    assert_null(net->owner.context);
    assert_ptr_equal(net->stages, fresh->stages);
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        assert_memory_equal(net->parameters[i].dims, fresh->parameters[i].dims,
                            sizeof fresh->parameters[i].dims);
        assert_int_equal(net->parameters[i].is_deferred, fresh->parameters[i].is_deferred);
    }
    for (uint32_t i = 0; i < net->n_modules; i++) {
        assert_null(net->modules[i].wrap.run);
        assert_ptr_equal(net->modules[i].stages, fresh->modules[i].stages);
        assert_memory_equal(net->modules[i].attributes, fresh->modules[i].attributes,
                            sizeof fresh->modules[i].attributes);
    }
    sw_net_destroy(fresh);
}

#define ATTENTION "model.layers.1.self_attn"

/* ---- preflight ---- */

static void a_second_apply_is_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    assert_int_equal(apply(&err), SW_OK);
    assert_non_null(sw_applied_of(net));
    assert_int_equal(apply(&err), SW_E_ARGUMENT);
    contains(err.what, "a plan was applied to this net already");
    assert_non_null(sw_applied_of(net));
}

static void a_net_with_memory_is_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_allocate(net, false, NULL), SW_OK);
    assert_int_equal(apply(&err), SW_E_ARGUMENT);
    contains(err.what, "model.embed_tokens.weight has its memory already");
}

static void a_plan_for_another_mesh_says_how_many_ranks_it_wants(void **state)
{
    sw_mesh *other = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_mesh_create(&other, "dp=2,tp=8", 0, NULL), SW_OK);
    sw_plan_destroy(plan);
    plan = make_plan(other);
    sw_mesh_destroy(other);
    refuses(SW_E_PLAN, "the plan is for dp=2,tp=8, the ranks are ");
    assert_int_equal(apply(&err), SW_E_PLAN);
    contains(err.help, "mpirun -n 16");
}

static void stages_of_a_pipeline_are_refused(void **state)
{
    sw_mesh *other = NULL;
    char text[32];

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    (void)snprintf(text, sizeof text, "pp=%d", sw_test_ranks());
    assert_int_equal(sw_mesh_create(&other, text, 0, NULL), SW_OK);
    sw_plan_destroy(plan);
    plan = make_plan(other);
    sw_comm_destroy(comm);
    assert_int_equal(sw_comm_create(&comm, other, NULL, NULL), SW_OK);
    sw_mesh_destroy(other);
    refuses(SW_E_PLAN, "pipeline stages can be planned but not run");
}

static void an_inner_target_without_wrapper_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->inner_target = "core";
    refuses(SW_E_PLAN, ATTENTION ": inner_target 'core' without inner_wrapper");
}

static void an_inner_wrapper_without_target_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->inner_wrapper = "cp_ring";
    refuses(SW_E_PLAN, ATTENTION ": inner_wrapper 'cp_ring' without inner_target");
}

static void wrap_attention(const char *name, const char *target, int8_t region_dispatch)
{
    spec_of(ATTENTION)->inner_wrapper = name;
    spec_of(ATTENTION)->inner_target = target;
    spec_of(ATTENTION)->region_dispatch = region_dispatch;
}

static void a_wrapper_that_is_not_there_is_refused(void **state)
{
    (void)state;
    wrap_attention("sdpa_moon", "self", 0);
    refuses(SW_E_PLAN, ATTENTION ": inner_wrapper 'sdpa_moon' can be planned but not run");
}

static void an_injection_without_region_dispatch_is_refused(void **state)
{
    (void)state;
    wrap_attention("cp_ring", "self", -1);
    refuses(SW_E_PLAN, ATTENTION ": inner_wrapper 'cp_ring' without region_dispatch: false");
}

static void a_wrapper_for_cp_without_cp_is_refused(void **state)
{
    (void)state;
    wrap_attention("cp_ring", "self", 0);
    refuses(SW_E_PLAN, ATTENTION ": inner_wrapper 'cp_ring' on a mesh without cp");
}

static void a_wrapper_round_a_child_says_what_comes_out(void **state)
{
    (void)state;
    plan->cp = 2;
    spec_of("model.layers.0.self_attn")->needs_cp_attn = false;
    wrap_attention("cp_ring", "core", 0);
    refuses(SW_E_PLAN, ATTENTION ": inner_wrapper 'cp_ring' round 'core' without inner_out_src");
}

static void a_compute_that_is_not_there_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->local_compute = "by_hand";
    refuses(SW_E_PLAN, ATTENTION ": local_compute 'by_hand' can be planned but not run");
}

static void attention_over_cp_that_nobody_binds_is_refused(void **state)
{
    (void)state;
    plan->cp = 2;
    refuses(SW_E_PLAN, ".self_attn: nobody brings the keys and values of cp=2 ranks together");
}

static void experts_that_nobody_binds_are_refused(void **state)
{
    (void)state;
    spec_of("model.layers.1.mlp")->ep_size = 2;
    refuses(SW_E_PLAN, "model.layers.1.mlp: nobody takes tokens to the experts of ep=2 ranks");
}

static void a_dispatch_without_injection_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->region_dispatch = 1;
    refuses(SW_E_PLAN, ATTENTION ": region_dispatch is true and nothing is injected");
}

static void a_special_handler_that_is_not_there_is_refused(void **state)
{
    static sw_special special = {"model.norm.weight", "shard_by_moon", "test"};

    (void)state;
    plan->special = &special;
    plan->n_special = 1;
    refuses(SW_E_PLAN, "model.norm.weight: no handler 'shard_by_moon'");
}

static void a_boundary_that_the_net_lacks_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->fqn = "model.layers.1.attention";
    refuses(SW_E_PLAN, "model.layers.1.attention: the net has no such module");
}

static void two_outputs_of_one_are_refused(void **state)
{
    static sw_io_entry entries[2] = {{.name = "output"}, {.name = "cache"}};

    (void)state;
    spec_of(ATTENTION)->out_src = (sw_io){true, 2, entries};
    refuses(SW_E_PLAN, ATTENTION ": class attention has one output, the plan has more");
}

static void inputs_that_nobody_takes_are_refused(void **state)
{
    static sw_io_entry entries[2] = {{.name = "hidden_states"}, {.name = "mask"}};

    (void)state;
    spec_of(ATTENTION)->in_src = (sw_io){true, 2, entries};
    refuses(SW_E_PLAN, ATTENTION ": class attention has no input 'mask'");
}

/* ---- phases: failures after much was worked out ---- */

static void a_parameter_that_is_not_placed_is_refused(void **state)
{
    (void)state;
    spec_of("model.norm")->n_params = 0;
    refuses(SW_E_PLAN, "model.norm.weight: the plan does not place it");
}

static void a_parameter_that_the_net_lacks_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->params[0].path = "z_proj.weight";
    refuses(SW_E_PLAN, ATTENTION ".z_proj.weight: the net has no such parameter");
}

static void a_parameter_that_is_planned_twice_is_refused(void **state)
{
    (void)state;
    spec_of(ATTENTION)->params[0] = spec_of(ATTENTION)->params[1];
    refuses(SW_E_PLAN, ".weight: planned twice");
}

static void an_attribute_that_the_class_lacks_is_refused(void **state)
{
    static sw_tp_local local = {"n_moons", 8, 4, true};

    (void)state;
    spec_of(ATTENTION)->tp_local = &local;
    spec_of(ATTENTION)->n_tp_local = 1;
    refuses(SW_E_PLAN, ATTENTION ": class attention has no attribute 'n_moons'");
}

static void a_deferred_bias_that_is_none_is_refused(void **state)
{
    static const char *path = "o_proj.bias";

    (void)state;
    spec_of(ATTENTION)->deferred = &path;
    spec_of(ATTENTION)->n_deferred = 1;
    refuses(SW_E_PLAN, ATTENTION ": the deferred bias o_proj.bias is no bias of the net");
}

static void a_dim_that_a_tensor_lacks_is_refused(void **state)
{
    sw_spec *spec = spec_of(ATTENTION);

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    spec->out_dst.entries[0].places.on[SW_ON_TP] = (sw_placement){SW_PLACE_SHARD, 3, NULL};
    refuses(SW_E_PLAN, ATTENTION ", output output: ");
}

static void a_tied_pair_of_two_parameters_is_refused(void **state)
{
    static sw_tied_pair pair = {"model.embed_tokens.weight", "lm_head.weight"};

    (void)state;
    plan->tied = &pair;
    plan->n_tied = 1;
    refuses(SW_E_PLAN, "are tied in the plan and two parameters in the net");
}

static void a_tied_pair_that_is_not_cut_alike_is_refused(void **state)
{
    static sw_tied_pair pair = {"model.embed_tokens.weight", "lm_head.weight"};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    plan->tied = &pair;
    plan->n_tied = 1;
    uint32_t facts = spec_of("lm_head")->params[0].facts;
    sw_facts whole = plan->facts[facts];
    whole.places.on[SW_ON_TP] = (sw_placement){SW_PLACE_SHARD, 1, NULL};
    plan->facts[facts] = whole;
    refuses(SW_E_PLAN, "are tied but not cut alike");
}

/* A checkpoint that stores a tied head too: the net does without, wherever the plan puts it like the table.
 */
static void a_stored_copy_of_a_tied_table_is_cut_as_the_table(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    (void)close_case(NULL);
    (void)snprintf(folder, sizeof folder, "%s/tests/parity/data/falcon_multi_query", SW_SOURCE_DIR);
    assert_int_equal(sw_model_open(&model, folder, NULL), SW_OK);
    assert_int_equal(sw_mesh_create(&mesh, "cp=2", 0, NULL), SW_OK);
    assert_int_equal(sw_comm_create(&comm, mesh, NULL, NULL), SW_OK);
    plan = make_plan(mesh);
    net = make_net();
    uint32_t facts = spec_of("lm_head")->params[0].facts;
    sw_facts right = plan->facts[facts];
    plan->facts[facts].places.on[SW_ON_CP] = (sw_placement){SW_PLACE_SHARD, 0, NULL};
    refuses(SW_E_PLAN, "transformer.word_embeddings.weight and lm_head.weight are tied but not cut alike");
    plan->facts[facts] = right;
    assert_int_equal(apply(NULL), SW_OK);
}

static void a_parameter_that_is_cut_over_cp_has_no_source(void **state)
{
    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    plan->facts[spec_of("model.norm")->params[0].facts].places.on[SW_ON_CP].kind = SW_PLACE_SHARD;
    refuses(SW_E_PLAN, ": cut over cp, which data parallelism shards over");
}

/* Wherever memory runs out, the net stays as it was and nothing is lost; at last it is enough. */
static void no_memory_changes_nothing(void **state)
{
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    sw_test_need(sw_test_ranks() == 1, "is for 1 rank");
    for (uint64_t n = 1; status != SW_OK && n < 10000; n++) {
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = apply(&err);
        sw_alloc_fail_at(0);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_int_equal(sw_alloc_live(), live);
        assert_null(net->owner.context);
    }
    assert_int_equal(status, SW_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_case, close_case)
        TEST(a_second_apply_is_refused),
        TEST(a_net_with_memory_is_refused),
        TEST(a_plan_for_another_mesh_says_how_many_ranks_it_wants),
        TEST(stages_of_a_pipeline_are_refused),
        TEST(an_inner_target_without_wrapper_is_refused),
        TEST(an_inner_wrapper_without_target_is_refused),
        TEST(a_wrapper_that_is_not_there_is_refused),
        TEST(an_injection_without_region_dispatch_is_refused),
        TEST(a_wrapper_for_cp_without_cp_is_refused),
        TEST(a_wrapper_round_a_child_says_what_comes_out),
        TEST(a_compute_that_is_not_there_is_refused),
        TEST(attention_over_cp_that_nobody_binds_is_refused),
        TEST(experts_that_nobody_binds_are_refused),
        TEST(a_dispatch_without_injection_is_refused),
        TEST(a_special_handler_that_is_not_there_is_refused),
        TEST(a_boundary_that_the_net_lacks_is_refused),
        TEST(two_outputs_of_one_are_refused),
        TEST(inputs_that_nobody_takes_are_refused),
        TEST(a_parameter_that_is_not_placed_is_refused),
        TEST(a_parameter_that_the_net_lacks_is_refused),
        TEST(a_parameter_that_is_planned_twice_is_refused),
        TEST(an_attribute_that_the_class_lacks_is_refused),
        TEST(a_deferred_bias_that_is_none_is_refused),
        TEST(a_dim_that_a_tensor_lacks_is_refused),
        TEST(a_tied_pair_of_two_parameters_is_refused),
        TEST(a_tied_pair_that_is_not_cut_alike_is_refused),
        TEST(a_stored_copy_of_a_tied_table_is_cut_as_the_table),
        TEST(a_parameter_that_is_cut_over_cp_has_no_source),
        TEST(no_memory_changes_nothing),
    };
    return SW_MPI_MAIN("apply_refusals", tests);
}
