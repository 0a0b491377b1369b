/* Binding: what a protocol and a module of it must be, who owns a module's communication. */
#include "rank_case.h"

#include "apply/apply.h"
#include "apply/bind.h"
#include "nn/net.h"
#include "tiny_model.h"

#define CONFIG                                                                                               \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'rms_norm_eps': 1e-5, 'hidden_act': " \
    "'silu', 'num_hidden_layers': 2, 'vocab_size': 32, 'hidden_size': 16, 'max_position_embeddings': 32, "   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24, 'num_local_experts': 4, "  \
    "'num_experts_per_tok': 2"

#define CORE    "model.layers.0.self_attn.core"
#define EXPERTS "model.layers.0.block_sparse_moe.experts"

static sw_mesh *mesh;
static sw_comm *comm;
static sw_model *model;
static sw_plan *plan;
static sw_net *net;

/* A net of this mesh, applied. */
static void open_on(const char *axes)
{
    sw_source_shards *shards = NULL;
    sw_error err = {0};

    model = tiny_open(CONFIG, NULL);
    if (sw_mesh_create(&mesh, axes, 0, &err) != SW_OK || sw_comm_create(&comm, mesh, NULL, &err) != SW_OK ||
        sw_plan_create(&plan, model, mesh, NULL, &err) != SW_OK ||
        sw_net_create(&net, model, &(sw_net_options){.dtype = SW_DTYPE_F32}, &err) != SW_OK ||
        sw_apply(&net, 1, plan, comm, &(sw_apply_options){0}, &shards, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_source_shards_destroy(shards);
}

static void close_all(void)
{
    sw_net_destroy(net);
    sw_plan_destroy(plan);
    sw_comm_destroy(comm);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

static void said(sw_status got, const sw_error *err, const char *what)
{
    assert_int_equal(got, SW_E_PLAN);
    if (strstr(err->what, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err->what, what);
}

static sw_status nothing_is_wrong(const sw_module *module, const sw_parallel_context *context, sw_error *err)
{
    (void)module;
    (void)context;
    (void)err;
    return SW_OK;
}

static sw_status it_is_wrong(const sw_module *module, const sw_parallel_context *context, sw_error *err)
{
    (void)context;
    return SW_FAIL(err, SW_E_PLAN, "", "%s is wrong", module->fqn);
}

static const sw_stage_protocol attend[] = {
    {"attend", {"q", "k", "v"}},
    {NULL,     {NULL}         },
};

static sw_parallel_spec spec_over(sw_binding_kind kind)
{
    return (sw_parallel_spec){
        .protocol = "test", .version = "1", .kind = kind, .stages = attend, .validate = nothing_is_wrong};
}

/* ---- protocols and requests ---- */

static void a_protocol_has_a_name_a_version_a_kind_stages_and_a_validator(void **state)
{
    sw_error err = {0};
    sw_parallel_spec spec = spec_over(SW_BINDING_CP);

    (void)state;
    assert_int_equal(sw_parallel_spec_check(&spec, &err), SW_OK);
    spec.protocol = "";
    said(sw_parallel_spec_check(&spec, &err), &err, "without name or version");
    spec = spec_over(SW_BINDING_CP);
    spec.version = NULL;
    said(sw_parallel_spec_check(&spec, &err), &err, "without name or version");
    spec = spec_over((sw_binding_kind)9);
    said(sw_parallel_spec_check(&spec, &err), &err, "no binding kind 9");
    spec = spec_over(SW_BINDING_EP);
    spec.stages = NULL;
    said(sw_parallel_spec_check(&spec, &err), &err, "binds over ep without stages or validator");
    spec = spec_over(SW_BINDING_MESH);
    spec.validate = NULL;
    said(sw_parallel_spec_check(&spec, &err), &err, "binds over mesh without stages or validator");
    spec = (sw_parallel_spec){.protocol = "plain", .version = "2"};
    assert_int_equal(sw_parallel_spec_check(&spec, &err), SW_OK);
}

static const sw_spec *no_layout(const sw_plan *of, const char *fqn)
{
    (void)of;
    (void)fqn;
    return NULL;
}

static void a_request_has_names_a_layout_and_a_whole_protocol(void **state)
{
    const char *names[] = {CORE, ""};
    sw_native_request request = {0, names, spec_over(SW_BINDING_CP), no_layout};
    sw_error err = {0};

    (void)state;
    said(sw_native_request_check(&request, &err), &err, "matches no names");
    request.n_match = 2;
    said(sw_native_request_check(&request, &err), &err, "matches no names");
    request.n_match = 1;
    assert_int_equal(sw_native_request_check(&request, &err), SW_OK);
    request.sharding = NULL;
    said(sw_native_request_check(&request, &err), &err, "without a layout");
    request.sharding = no_layout;
    request.spec.validate = NULL;
    said(sw_native_request_check(&request, &err), &err, "without stages or validator");
}

/* ---- modules ---- */

static const sw_module_class plain = {.name = "plain"};
static const sw_module_class staged = {.name = "staged", .stages = {{"attend", {"q", "k", "v"}}}};
static const sw_module_class bindable = {
    .name = "bindable", .stages = {{"attend", {"q", "k", "v"}}}, .bind_parallel = sw_module_bind_stages};

static void a_module_has_the_stages_with_their_arguments_and_can_be_bound(void **state)
{
    static const sw_stage_protocol others[] = {
        {"attend", {"q", "mask"}},
        {NULL,     {NULL}       }
    };
    const sw_parallel_context context = {0};
    sw_parallel_spec spec = spec_over(SW_BINDING_CP);
    sw_module module = {.class = &plain, .fqn = "m"};
    sw_error err = {0};

    (void)state;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "class plain has no stage 'attend'");
    module.class = &staged;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "class staged has no bind_parallel");
    module.class = &bindable;
    assert_int_equal(sw_validate_parallel_module(&module, &spec, &context, &err), SW_OK);
    spec.stages = others;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "stage 'attend' of class bindable takes no 'mask'");
    spec = spec_over(SW_BINDING_CP);
    spec.validate = it_is_wrong;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err, "m is wrong");
}

static void explicit_stages_compute_in_the_layout_that_comes(void **state)
{
    static sw_io_entry whole = {.name = "x"};
    static sw_io_entry cut = {.name = "x"};
    sw_parallel_spec spec = spec_over(SW_BINDING_CP);
    sw_module module = {.class = &bindable, .fqn = "m"};
    sw_spec sharding = {
        .fqn = "m", .in_src = {true, 1, &whole},
             .in_dst = {true, 1, &cut  }
    };
    const sw_parallel_context context = {.sharding = &sharding};
    sw_error err = {0};

    (void)state;
    cut.places.on[SW_ON_TP] = (sw_placement){SW_PLACE_SHARD, 1, NULL};
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err, "in the layout they compute in");
    sharding.in_dst = sharding.in_src;
    sharding.out_src = sharding.in_src;
    assert_int_equal(sw_validate_parallel_module(&module, &spec, &context, &err), SW_OK);
    sharding.out_dst = (sw_io){true, 1, &cut};
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err, "in the layout they declare");
    sharding.out_dst = sharding.out_src;
    sharding.n_stacks = 1;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err, "stacked experts of their own");
}

static void experts_are_owned_whole_and_evenly(void **state)
{
    static const uint64_t six = 6;
    static sw_facts facts;
    static sw_spec_param param = {.path = "experts.w", .path_length = 9};
    sw_shape *shape = sw_alloc_zero(1, sizeof(sw_shape) + 8 * sizeof(uint64_t));
    sw_plan given = {.facts = &facts};
    sw_spec owner = {.fqn = "m", .params = &param, .n_params = 1};
    const sw_parallel_context context = {.plan = &given, .owner = &owner, .n_ep = 2};
    sw_parallel_spec spec = spec_over(SW_BINDING_EP);
    sw_module module = {.class = &bindable, .fqn = "m"};
    sw_error err = {0};

    (void)state;
    shape->n_dims = 1;
    memcpy((void *)(uintptr_t)&shape->dims[0], &six, sizeof six);
    facts = (sw_facts){.shape = shape};
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "0 experts are not divided by ep=2");
    spec.n_experts = 5;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "5 experts are not divided by ep=2");
    spec.n_experts = 6;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err, "nobody owns the experts");
    facts.places.on[SW_ON_EP] = (sw_placement){SW_PLACE_SHARD, 1, NULL};
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "experts.w is not cut in whole experts over ep");
    facts.places.on[SW_ON_EP].dim = 0;
    assert_int_equal(sw_validate_parallel_module(&module, &spec, &context, &err), SW_OK);
    spec.n_experts = 4;
    said(sw_validate_parallel_module(&module, &spec, &context, &err), &err,
         "experts.w is not cut in whole experts over ep");
    sw_free(shape);
}

/* ---- the ranks of an axis ---- */

static void an_axis_that_the_mesh_lacks_has_no_ranks(void **state)
{
    const sw_group *group = NULL;
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_on("cp=2");
    const sw_mesh_binding binding = {comm};
    assert_int_equal(sw_mesh_binding_axis(&binding, "cp", &group, &err), SW_OK);
    assert_ptr_equal(group, sw_comm_group(comm, SW_GROUP_CP));
    said(sw_mesh_binding_axis(&binding, "ep", &group, &err), &err, "the mesh has no ep to bind over");
    said(sw_mesh_binding_axis(&binding, "dp", &group, &err), &err, "no ranks to bind over 'dp'");
    close_all();
}

static void forms_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < SW_CP_FORM_COUNT_; i++)
        assert_int_equal(sw_cp_form_of_name(sw_cp_form_name((sw_cp_form)i)), i);
    assert_int_equal(sw_cp_form_of_name("rin"), SW_CP_FORM_COUNT_);
    assert_null(sw_cp_form_name(SW_CP_FORM_COUNT_));
}

/* ---- nets ---- */

static sw_status bind(sw_cp_form form, const sw_native_request *request, sw_error *err)
{
    const sw_bind_options options = {form, request == NULL ? 0 : 1, request};
    return sw_bind_parallel_modules(net, &options, err);
}

static void binding_again_is_nothing_and_otherwise_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_on("cp=2");
    assert_int_equal(bind(SW_CP_GATHER, NULL, &err), SW_OK);
    const sw_stages *stages = sw_net_module(net, CORE)->stages;
    assert_ptr_not_equal(stages, &sw_stages_local);
    assert_int_equal(bind(SW_CP_GATHER, NULL, &err), SW_OK);
    assert_ptr_equal(sw_net_module(net, CORE)->stages, stages);
    said(bind(SW_CP_RING, NULL, &err), &err, CORE " already has a communication owner");
    assert_ptr_equal(sw_net_module(net, CORE)->stages, stages);
    close_all();
}

static void a_failure_of_the_second_module_leaves_the_first_unbound(void **state)
{
    const char *names[] = {"model.layers.1.mlp*", "model.norm"};
    sw_native_request request = {2, names, spec_over(SW_BINDING_CP), no_layout};
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_on("cp=2");
    said(bind(SW_CP_GATHER, &request, &err), &err, "model.norm: class norm has no stage 'attend'");
    assert_ptr_equal(sw_net_module(net, CORE)->stages, &sw_stages_local);
    close_all();
}

static void a_name_that_is_matched_twice_is_refused(void **state)
{
    const char *names[] = {CORE};
    sw_native_request request = {1, names, spec_over(SW_BINDING_CP), no_layout};
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_on("cp=2");
    said(bind(SW_CP_GATHER, &request, &err), &err, CORE " already has a communication owner");
    close_all();
}

static void experts_are_bound_to_their_axis_and_an_unbound_net_is_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 2, "is for 2 ranks");
    open_on("ep=2");
    assert_int_equal(sw_net_allocate(net, false, &err), SW_OK);
    said(sw_validate_materialized_modules(net, &err), &err,
         EXPERTS ": the plan spreads it over ep and it is not bound");
    assert_int_equal(bind(SW_CP_GATHER, NULL, &err), SW_OK);
    assert_non_null(sw_net_module(net, EXPERTS)->stages->transport.enter);
    assert_int_equal(sw_validate_materialized_modules(net, &err), SW_OK);
    close_all();
}

static void heads_that_ulysses_cannot_deal_out_are_refused(void **state)
{
    sw_error err = {0};

    (void)state;
    sw_test_need(sw_test_ranks() == 3, "is for 3 ranks");
    open_on("cp=3");
    said(bind(SW_CP_ULYSSES, NULL, &err), &err, CORE ": ");
    assert_ptr_equal(sw_net_module(net, CORE)->stages, &sw_stages_local);
    close_all();
}

static void a_net_without_a_plan_is_not_bound(void **state)
{
    sw_error err = {0};

    (void)state;
    model = tiny_open(CONFIG, NULL);
    assert_int_equal(sw_net_create(&net, model, &(sw_net_options){.dtype = SW_DTYPE_F32}, &err), SW_OK);
    assert_int_equal(bind(SW_CP_GATHER, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "no plan was applied to the net");
    sw_net_destroy(net);
    sw_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_protocol_has_a_name_a_version_a_kind_stages_and_a_validator),
        cmocka_unit_test(a_request_has_names_a_layout_and_a_whole_protocol),
        cmocka_unit_test(a_module_has_the_stages_with_their_arguments_and_can_be_bound),
        cmocka_unit_test(explicit_stages_compute_in_the_layout_that_comes),
        cmocka_unit_test(experts_are_owned_whole_and_evenly),
        cmocka_unit_test(an_axis_that_the_mesh_lacks_has_no_ranks),
        cmocka_unit_test(forms_have_names),
        cmocka_unit_test(binding_again_is_nothing_and_otherwise_refused),
        cmocka_unit_test(a_failure_of_the_second_module_leaves_the_first_unbound),
        cmocka_unit_test(a_name_that_is_matched_twice_is_refused),
        cmocka_unit_test(experts_are_bound_to_their_axis_and_an_unbound_net_is_refused),
        cmocka_unit_test(heads_that_ulysses_cannot_deal_out_are_refused),
        cmocka_unit_test(a_net_without_a_plan_is_not_bound),
    };
    return SW_MPI_MAIN("apply_bind", tests);
}
