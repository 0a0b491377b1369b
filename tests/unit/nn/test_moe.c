/*
 * Mixtures of experts as modules: their names, experts spread over ranks by a transport that is bound, parts
 * of experts, experts without tokens.
 */
#include "golden_case.h"
#include "net_case.h"
#include "tiny_model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"

enum { TOKENS = 7, EXPERTS = 6, HALF = EXPERTS / 2 };

static net_case at;

static void open_case(const char *name)
{
    net_case_open(&at, golden_folder(name), &(sw_net_options){.dtype = SW_DTYPE_F64}, true);
}

static int close_case(void **state)
{
    (void)state;
    net_case_close(&at);
    return 0;
}

static void expect_class(const char *fqn, const char *class)
{
    const sw_module *module = sw_net_module(at.net, fqn);

    if (module == NULL)
        fail_msg("no module %s", fqn);
    assert_string_equal(module->class->name, class);
}

static void modules_have_the_names_of_a_plan(void **state)
{
    (void)state;
    open_case("qwen2_moe");
    expect_class("model.layers.1.mlp", "mixture");
    expect_class("model.layers.1.mlp.experts", "experts");
    expect_class("model.layers.1.mlp.shared_expert", "shared_experts");
    net_case_close(&at);
    open_case("mixtral");
    expect_class("model.layers.0.block_sparse_moe", "mixture");
    expect_class("model.layers.0.block_sparse_moe.experts", "experts");
    net_case_close(&at);
    open_case("deepseek_v2");
    expect_class("model.layers.0.mlp", "mlp"); /* the first layer is dense */
    expect_class("model.layers.1.mlp", "mixture");
    expect_class("model.layers.1.mlp.shared_experts", "shared_experts");
    expect_class("model.layers.1.self_attn", "latent_attention");
    expect_class("model.layers.1.self_attn.core", "attention_core");
}

/* ---- tensors of a checkpoint ---- */

#define MIXTRAL                                                                                              \
    "'architectures': ['MixtralForCausalLM'], 'hidden_size': 4, 'num_hidden_layers': 1, "                    \
    "'num_attention_heads': 2, 'num_key_value_heads': 1, 'intermediate_size': 3, 'vocab_size': 16, "         \
    "'max_position_embeddings': 32, 'num_experts_per_tok': 2, "
#define REST                                                                                                 \
    "model.embed_tokens.weight F32 16x4\nmodel.norm.weight F32 4\nlm_head.weight F32 16x4\n"                 \
    "model.layers.0.input_layernorm.weight F32 4\nmodel.layers.0.post_attention_layernorm.weight F32 4\n"    \
    "model.layers.0.self_attn.q_proj.weight F32 4x4\nmodel.layers.0.self_attn.k_proj.weight F32 2x4\n"       \
    "model.layers.0.self_attn.v_proj.weight F32 2x4\nmodel.layers.0.self_attn.o_proj.weight F32 4x4\n"       \
    "model.layers.0.block_sparse_moe.gate.weight F32 2x4\n"                                                  \
    "model.layers.0.block_sparse_moe.experts.0.w2.weight F32 4x3\n"                                          \
    "model.layers.0.block_sparse_moe.experts.1.w2.weight F32 4x3\n"                                          \
    "model.layers.0.block_sparse_moe.experts.0.w3.weight F32 3x4\n"                                          \
    "model.layers.0.block_sparse_moe.experts.1.w3.weight F32 3x4\n"

static void put_line(void *context, const char *line)
{
    sw_buffer_puts(context, line);
    sw_buffer_putc(context, '\n');
}

static void check_refused(const char *config, const char *params, const char *lines)
{
    sw_model *model = tiny_open(config, params);
    sw_buffer told = {0};
    sw_net_options options = {.on_tensor = put_line, .context = &told};
    sw_net *net = NULL;

    assert_int_equal(sw_net_create(&net, model, &options, NULL), SW_E_FORMAT);
    assert_string_equal(sw_buffer_text(&told), lines);
    sw_buffer_clear(&told);
    sw_model_close(model);
}

static void experts_that_are_missing_or_too_many_are_told_by_name(void **state)
{
    (void)state;
    check_refused(MIXTRAL "'num_local_experts': 2",
                  REST "model.layers.0.block_sparse_moe.experts.0.w1.weight F32 3x4\n",
                  "missing: model.layers.0.block_sparse_moe.experts.1.w1.weight\n");
    check_refused(MIXTRAL "'num_local_experts': 2",
                  REST "model.layers.0.block_sparse_moe.experts.0.w1.weight F32 3x4\n"
                       "model.layers.0.block_sparse_moe.experts.1.w1.weight F32 3x4\n"
                       "model.layers.0.block_sparse_moe.experts.2.w1.weight F32 3x4\n",
                  "extra: model.layers.0.block_sparse_moe.experts.2.w1.weight: the config has 2\n");
}

static void an_expert_under_two_names_is_told(void **state)
{
    (void)state;
    check_refused(MIXTRAL "'num_local_experts': 2",
                  REST "model.layers.0.block_sparse_moe.experts.0.w1.weight F32 3x4\n"
                       "model.layers.0.block_sparse_moe.experts.1.w1.weight F32 3x4\n"
                       "model.layers.0.mlp.experts.1.gate_proj.weight F32 3x4\n",
                  "extra: model.layers.0.mlp.experts.1.gate_proj.weight: it is in "
                  "model.layers.0.block_sparse_moe.experts.w1 already\n");
    check_refused(MIXTRAL "'num_local_experts': 2",
                  "model.layers.0.block_sparse_moe.experts.gate_proj F32 2x3x4\n" REST
                  "model.layers.0.mlp.experts.1.gate_proj.weight F32 3x4\n",
                  "extra: model.layers.0.mlp.experts.1.gate_proj.weight: it is in "
                  "model.layers.0.block_sparse_moe.experts.gate_proj already\n");
}

static void a_config_of_very_many_experts_is_refused(void **state)
{
    sw_model *model = tiny_open(MIXTRAL "'num_local_experts': 2000000000",
                                "model.layers.0.block_sparse_moe.experts.0.w1.weight F32 3x4\n");
    sw_net_options options = {.on_tensor = NULL};
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_create(&net, model, &options, &err), SW_E_LIMIT);
    assert_string_equal(err.what,
                        "model.layers.0.block_sparse_moe.experts.0.w1.weight: 2000000000 in each of 1 "
                        "layers are too many");
    sw_model_close(model);
}

/* ---- parts ---- */

/* Elements of a stack [E, rows, columns] that a part of it has. */
static void fill_part(const sw_parameter *part, const sw_parameter *whole, uint32_t half)
{
    double *to = sw_tensor_data(part->tensor);
    const double *from = sw_tensor_data(whole->tensor);
    uint64_t first[3];
    uint64_t n = 0;

    for (size_t d = 0; d < 3; d++)
        first[d] = part->dims[d] < whole->dims[d] ? half * part->dims[d] : 0;
    for (uint64_t e = 0; e < part->dims[0]; e++) {
        for (uint64_t r = 0; r < part->dims[1]; r++) {
            uint64_t row = (first[0] + e) * whole->dims[1] + first[1] + r;
            memcpy(to + n, from + row * whole->dims[2] + first[2], part->dims[2] * sizeof *to);
            n += part->dims[2];
        }
    }
}

static const sw_parameter *stack_of(const sw_net *net, sw_slot slot)
{
    return net->layers[1].held[slot].weight;
}

/* A net that has half of the experts of layer 1, or half of each of them. */
static sw_net *half_of(uint32_t half, bool is_of_each)
{
    static const sw_slot slots[] = {SW_SLOT_EXPERT_GATE, SW_SLOT_EXPERT_UP, SW_SLOT_EXPERT_DOWN};
    sw_net *net = NULL;

    assert_int_equal(sw_net_create(&net, at.model, &(sw_net_options){.dtype = SW_DTYPE_F64}, NULL), SW_OK);
    for (size_t i = 0; i < SW_COUNT(slots); i++) {
        uint32_t dim = !is_of_each ? 0 : slots[i] == SW_SLOT_EXPERT_DOWN ? 2 : 1;
        net->layers[1].held[slots[i]].weight->dims[dim] /= 2;
    }
    assert_int_equal(sw_net_allocate(net, false, NULL), SW_OK);
    for (size_t i = 0; i < SW_COUNT(slots); i++)
        fill_part(stack_of(net, slots[i]), stack_of(at.net, slots[i]), half);
    return net;
}

/* The rows of this rank's experts, of what one rank would have. */
static sw_status dispatch_half(void *context, sw_step *step, const sw_tensor *x, const sw_routing *routing,
                               sw_dispatched *out)
{
    const uint32_t *half = context;
    const uint64_t n_here = HALF;
    sw_dispatched all = {0};

    SW_TRY(sw_stages_local.transport.dispatch(NULL, step, x, routing, &all));
    const int32_t *ends = sw_tensor_data(all.ends);
    uint64_t begin = *half == 0 ? 0 : (uint64_t)ends[HALF - 1];
    uint64_t n = (uint64_t)ends[*half == 0 ? HALF - 1 : EXPERTS - 1] - begin;
    sw_tensor *own = sw_step_tensor(step, SW_DTYPE_I32, 1, &n_here);
    assert_non_null(own);
    for (uint32_t e = 0; e < HALF; e++)
        ((int32_t *)sw_tensor_data(own))[e] = ends[*half * HALF + e] - (int32_t)begin;
    *out = (sw_dispatched){.rows = sw_view_slice(step, all.rows, 0, begin, n),
                           .ends = own,
                           .weights = sw_view_slice(step, all.weights, 0, begin, n),
                           .tokens = sw_view_slice(step, all.tokens, 0, begin, n),
                           .n_tokens = all.n_tokens};
    return sw_step_status(step, NULL);
}

/* Tokens of some width and a choice of two experts each. */
static const sw_tensor *run_experts(const sw_net *net)
{
    const uint64_t of_x[] = {TOKENS, at.net->settings.hidden};
    const uint64_t of_choice[] = {TOKENS, 2};
    sw_tensor *x = sw_step_tensor(at.step, SW_DTYPE_F64, 2, of_x);
    sw_tensor *experts = sw_step_tensor(at.step, SW_DTYPE_I32, 2, of_choice);
    sw_tensor *weights = sw_step_tensor(at.step, SW_DTYPE_F64, 2, of_choice);
    const sw_pass pass = {.tokens = NULL};

    for (uint64_t i = 0; i < sw_tensor_elems(x); i++)
        ((double *)sw_tensor_data(x))[i] = sin((double)i);
    for (int32_t i = 0; i < 2 * TOKENS; i++) {
        ((int32_t *)sw_tensor_data(experts))[i] = i * i % 5; /* nobody chooses the last */
        ((double *)sw_tensor_data(weights))[i] = 0.1 * (i + 1);
    }
    const sw_tensor *y = sw_module_run(sw_net_module(net, "model.layers.1.mlp.experts"), at.step, &pass,
                                       (const sw_tensor *[]){x, experts, weights});
    sw_error err = {0};
    if (sw_step_status(at.step, &err) != SW_OK)
        fail_msg("%s", err.what);
    return y;
}

static void check_halves(sw_net *const *halves)
{
    sw_step_begin(at.step, false);
    const double *whole = sw_tensor_data(run_experts(at.net));
    const double *a = sw_tensor_data(run_experts(halves[0]));
    const double *b = sw_tensor_data(run_experts(halves[1]));

    for (uint64_t i = 0; i < (uint64_t)TOKENS * at.net->settings.hidden; i++)
        assert_true(fabs(whole[i] - a[i] - b[i]) < 1e-12);
}

static void what_two_ranks_with_their_own_experts_give_sums_to_the_whole(void **state)
{
    uint32_t ranks[] = {0, 1};
    sw_stages stages[] = {sw_stages_local, sw_stages_local};
    sw_net *halves[2] = {NULL, NULL};

    (void)state;
    open_case("deepseek_v2");
    for (uint32_t i = 0; i < 2; i++) {
        halves[i] = half_of(i, false);
        stages[i].transport.dispatch = dispatch_half;
        stages[i].transport.context = &ranks[i];
        sw_module *experts = sw_net_module(halves[i], "model.layers.1.mlp.experts");
        assert_string_equal(experts->class->stages[0].name, "dispatch");
        assert_int_equal(experts->class->bind_parallel(experts, &stages[i], NULL), SW_OK);
    }
    check_halves(halves);
    sw_net_destroy(halves[0]);
    sw_net_destroy(halves[1]);
}

static void halves_of_every_expert_are_summands_of_the_whole(void **state)
{
    sw_net *halves[2] = {NULL, NULL};

    (void)state;
    open_case("deepseek_v2");
    for (uint32_t i = 0; i < 2; i++)
        halves[i] = half_of(i, true);
    check_halves(halves);
    sw_net_destroy(halves[0]);
    sw_net_destroy(halves[1]);
}

static void weights_of_different_numbers_of_experts_are_refused(void **state)
{
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    open_case("deepseek_v2");
    assert_int_equal(sw_net_create(&net, at.model, &(sw_net_options){.dtype = SW_DTYPE_F64}, NULL), SW_OK);
    net->layers[1].held[SW_SLOT_EXPERT_UP].weight->dims[0] /= 2;
    assert_int_equal(sw_net_allocate(net, false, &err), SW_E_PLAN);
    assert_string_equal(err.what, "model.layers.1.mlp.experts.up_proj has 3 experts, "
                                  "model.layers.1.mlp.experts.down_proj has 6");
    sw_net_destroy(net);
}

/* ---- experts without tokens ---- */

static void check_gradient(const char *fqn, bool is_zero)
{
    const sw_parameter *p = sw_net_parameter(at.net, fqn);
    const double *gradient = (const double *)p->tensor->storage->gradient + p->tensor->offset;
    double most = 0;

    assert_true(p->tensor->storage->has_gradient);
    for (uint64_t i = 0; i < sw_tensor_elems(p->tensor); i++)
        most = isnan(gradient[i]) ? INFINITY : fmax(most, fabs(gradient[i]));
    if (most == INFINITY || (most == 0) != is_zero)
        fail_msg("gradients of %s are up to %g", fqn, most);
}

static const int32_t ids[TOKENS] = {5, 9, 14, 3, 22, 31, 8};

/* A router of zeros: all scores are equal, and every token chooses the first two. */
static void experts_that_nobody_chose_have_gradients_of_zero(void **state)
{
    sw_error err = {0};

    (void)state;
    open_case("mixtral");
    const sw_tensor *router = sw_net_parameter(at.net, "model.layers.0.block_sparse_moe.gate.weight")->tensor;
    memset(sw_tensor_data(router), 0, sw_tensor_elems(router) * sizeof(double));
    sw_step_begin(at.step, true);
    const sw_tensor *tokens = net_case_ids(&at, ids, 1, TOKENS);
    sw_pass pass = {.tokens = tokens, .positions = sw_net_positions(at.net, at.step, 1, TOKENS, 0)};
    const sw_tensor *loss = sw_net_loss(at.net, at.step, &pass, tokens, 1.0 / TOKENS, NULL);
    if (loss == NULL || sw_step_backward(at.step, loss, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    check_gradient("model.layers.0.block_sparse_moe.experts.0.w1.weight", false);
    check_gradient("model.layers.0.block_sparse_moe.experts.1.w2.weight", false);
    check_gradient("model.layers.0.block_sparse_moe.experts.2.w1.weight", true);
    check_gradient("model.layers.0.block_sparse_moe.experts.5.w2.weight", true);
    check_gradient("model.layers.0.block_sparse_moe.gate.weight", false);
}

/* As a rank has them that got none of few. */
static void a_mixture_of_no_tokens_gives_none_and_has_a_backward(void **state)
{
    static const char *const cases[] = {"qwen2_moe", "deepseek_v2"};
    sw_error err = {0};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        open_case(cases[i]);
        const uint64_t dims[] = {2, 0, at.net->settings.hidden};
        sw_step_begin(at.step, true);
        const sw_module *mixture = sw_net_module(at.net, "model.layers.1.mlp");
        sw_pass pass = {.tokens = NULL};
        const sw_tensor *x = sw_step_tensor(at.step, SW_DTYPE_F64, 3, dims);
        sw_tensor *y = sw_module_run_on(mixture, at.step, &pass, x);
        if (sw_step_status(at.step, &err) != SW_OK)
            fail_msg("%s", err.what);
        assert_int_equal(y->n_dims, 3);
        assert_memory_equal(y->dims, dims, sizeof dims);
        assert_int_equal(sw_step_backward(at.step, sw_op_sum(at.step, y), NULL, &err), SW_OK);
        if (i + 1 < SW_COUNT(cases))
            net_case_close(&at);
    }
}

static void the_second_step_allocates_nothing_whoever_is_chosen(void **state)
{
    sw_error err = {0};

    (void)state;
    open_case("mixtral");
    for (uint32_t i = 0; i < 4; i++) {
        int32_t shifted[TOKENS];
        for (uint32_t t = 0; t < TOKENS; t++)
            shifted[t] = ids[(t + i) % TOKENS] + (int32_t)i; /* other tokens, other experts */
        sw_alloc_fail_at(i > 1 ? 1 : 0);
        sw_step_begin(at.step, true);
        sw_net_forget_gradients(at.net);
        const sw_tensor *tokens = net_case_ids(&at, shifted, 1, TOKENS);
        sw_pass pass = {.tokens = tokens,
                        .positions = sw_net_positions(at.net, at.step, 1, TOKENS, 0),
                        .routers = sw_net_trace_routers(at.net, at.step)};
        const sw_tensor *loss = sw_net_loss(at.net, at.step, &pass, tokens, 1.0 / TOKENS, NULL);
        loss = sw_op_add(at.step, loss, sw_net_router_loss(at.net, at.step, pass.routers, 0.1));
        sw_status status = sw_step_backward(at.step, loss, NULL, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK)
            fail_msg("step %u: %s", i, err.what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(modules_have_the_names_of_a_plan, close_case),
        cmocka_unit_test(experts_that_are_missing_or_too_many_are_told_by_name),
        cmocka_unit_test(an_expert_under_two_names_is_told),
        cmocka_unit_test(a_config_of_very_many_experts_is_refused),
        cmocka_unit_test_teardown(what_two_ranks_with_their_own_experts_give_sums_to_the_whole, close_case),
        cmocka_unit_test_teardown(halves_of_every_expert_are_summands_of_the_whole, close_case),
        cmocka_unit_test_teardown(weights_of_different_numbers_of_experts_are_refused, close_case),
        cmocka_unit_test_teardown(experts_that_nobody_chose_have_gradients_of_zero, close_case),
        cmocka_unit_test_teardown(a_mixture_of_no_tokens_gives_none_and_has_a_backward, close_case),
        cmocka_unit_test_teardown(the_second_step_allocates_nothing_whoever_is_chosen, close_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
