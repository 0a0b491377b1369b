/* Running a net: wrapped modules, bound stages, parts of heads, the cache, failures and memory of a step. */
#include "golden_case.h"
#include "net_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

static net_case at;

static int open_llama(void **state)
{
    (void)state;
    net_case_open(&at, golden_folder("llama"), &(sw_net_options){.dtype = SW_DTYPE_F64}, true);
    return 0;
}

static int close_net(void **state)
{
    (void)state;
    net_case_close(&at);
    return 0;
}

enum { TOKENS = 7 };

static sw_pass pass_of(uint64_t first)
{
    static const int32_t ids[TOKENS] = {5, 9, 33, 4, 62, 17, 8};

    return (sw_pass){.tokens = net_case_ids(&at, ids, 1, TOKENS),
                     .positions = sw_net_positions(at.net, at.step, 1, TOKENS, first)};
}

static const sw_tensor *run(const sw_pass *pass)
{
    sw_error err = {0};
    const sw_tensor *logits = sw_net_logits(at.net, at.step, pass, sw_net_hidden(at.net, at.step, pass));

    if (sw_step_status(at.step, &err) != SW_OK)
        fail_msg("%s", err.what);
    return logits;
}

/* ---- modules and stages ---- */

typedef struct counted {
    uint32_t n_calls;
    const char *last;
} counted;

static sw_tensor *count_and_double(void *context, const sw_module *module, sw_step *step, const sw_pass *pass,
                                   const sw_tensor *const *in)
{
    counted *c = context;

    c->n_calls++;
    c->last = module->fqn;
    return sw_op_scale(step, module->class->forward(module, step, pass, in), 2);
}

static void a_wrap_stands_around_the_forward_of_its_module(void **state)
{
    counted c = {0};
    sw_module *head = sw_net_module(at.net, "lm_head");

    (void)state;
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    const double *plain = sw_tensor_data(run(&pass));
    head->wrap = (sw_module_wrap){count_and_double, &c};
    const double *doubled = sw_tensor_data(run(&pass));
    assert_int_equal(c.n_calls, 1);
    assert_string_equal(c.last, "lm_head");
    for (size_t i = 0; i < 63; i++)
        assert_true(doubled[i] == 2 * plain[i]);
}

static void every_module_can_be_wrapped(void **state)
{
    counted c = {0};

    (void)state;
    for (uint32_t i = 0; i < at.net->n_modules; i++)
        at.net->modules[i].wrap = (sw_module_wrap){count_and_double, &c};
    sw_step_begin(at.step, true);
    sw_pass pass = pass_of(0);
    (void)run(&pass);
    assert_int_equal(c.n_calls, at.net->n_modules);
    assert_int_equal(c.n_calls, 1 + 2 * 5 + 2); /* tokens, layers, norm and head */
}

static sw_tensor *attend_to_values(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                                   const sw_tensor *v, const sw_attend_args *args)
{
    counted *c = context;

    c->n_calls += args->is_causal && k->dims[2] == v->dims[2];
    return sw_op_copy(step, q);
}

static void a_stage_is_bound_to_the_module_that_names_it(void **state)
{
    counted c = {0};
    sw_stages stages = sw_stages_local;
    sw_module *core = sw_net_module(at.net, "model.layers.0.self_attn.core");
    sw_error err = {0};

    (void)state;
    stages.attend = (sw_attend_stage){.run = attend_to_values, .context = &c};
    assert_string_equal(core->class->stages[0].name, "attend");
    assert_string_equal(core->class->stages[0].arguments[2], "v");
    assert_int_equal(core->class->bind_parallel(core, &stages, &err), SW_OK);
    sw_step_begin(at.step, true);
    sw_pass pass = pass_of(0);
    (void)run(&pass);
    assert_int_equal(c.n_calls, 1); /* of two layers the first */
    assert_int_equal(sw_module_bind_stages(at.net->head, &stages, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "lm_head: class lm_head has no stages");
}

/* ---- parts of heads ---- */

/* Rows (dim 0) or columns of a matrix of `whole`, of which `part` has half. */
static void fill_half(const sw_parameter *part, const sw_parameter *whole, uint32_t half)
{
    double *to = sw_tensor_data(part->tensor);
    const double *from = sw_tensor_data(whole->tensor);
    uint64_t rows = part->dims[0];
    uint64_t columns = part->dims[1];
    uint64_t first_row = rows < whole->dims[0] ? half * rows : 0;
    uint64_t first_column = columns < whole->dims[1] ? half * columns : 0;

    for (uint64_t r = 0; r < rows; r++)
        memcpy(to + r * columns, from + (first_row + r) * whole->dims[1] + first_column,
               columns * sizeof *to);
}

/* A net with half of the heads and of the MLP of layer 0, filled from the whole one. */
static sw_net *half_of(uint32_t half)
{
    static const char *const cut[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                      "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                      "mlp.down_proj"};
    char name[96];
    sw_net *net = NULL;

    assert_int_equal(sw_net_create(&net, at.model, &(sw_net_options){.dtype = SW_DTYPE_F64}, NULL), SW_OK);
    sw_module *attention = sw_net_module(net, "model.layers.0.self_attn");
    *sw_module_attribute(attention, "num_heads") /= 2;
    *sw_module_attribute(attention, "num_key_value_heads") /= 2;
    assert_null(sw_module_attribute(attention, "num_wheels"));
    for (size_t i = 0; i < SW_COUNT(cut); i++) {
        (void)snprintf(name, sizeof name, "model.layers.0.%s.weight", cut[i]);
        sw_net_parameter(net, name)->dims[i == 3 || i == 6] /= 2;
    }
    assert_int_equal(sw_net_allocate(net, false, NULL), SW_OK);
    for (size_t i = 0; i < SW_COUNT(cut); i++) {
        (void)snprintf(name, sizeof name, "model.layers.0.%s.weight", cut[i]);
        fill_half(sw_net_parameter(net, name), sw_net_parameter(at.net, name), half);
    }
    return net;
}

static void halves_of_a_module_are_summands_of_the_whole(void **state)
{
    static const char *const names[] = {"model.layers.0.self_attn", "model.layers.0.mlp"};
    sw_net *halves[] = {half_of(0), half_of(1)};

    (void)state;
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    pass.rotary = &at.net->rotary.usual;
    const sw_tensor *x = sw_module_run_on(at.net->embedding, at.step, &pass, pass.tokens);
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        const sw_tensor *whole = sw_module_run_on(sw_net_module(at.net, names[i]), at.step, &pass, x);
        const sw_tensor *a = sw_module_run_on(sw_net_module(halves[0], names[i]), at.step, &pass, x);
        const sw_tensor *b = sw_module_run_on(sw_net_module(halves[1], names[i]), at.step, &pass, x);
        const sw_tensor *sum = sw_op_add(at.step, a, b);
        assert_int_equal(sw_step_status(at.step, NULL), SW_OK);
        for (uint64_t e = 0; e < sw_tensor_elems(whole); e++)
            assert_true(fabs(((double *)sw_tensor_data(whole))[e] - ((double *)sw_tensor_data(sum))[e]) <
                        1e-12);
    }
    sw_net_destroy(halves[0]);
    sw_net_destroy(halves[1]);
}

static void a_deferred_bias_is_left_out(void **state)
{
    (void)state;
    net_case_close(&at);
    net_case_open(&at, golden_folder("llama_biases"), &(sw_net_options){.dtype = SW_DTYPE_F64}, true);
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    sw_parameter *bias = sw_net_parameter(at.net, "model.layers.0.self_attn.o_proj.bias");
    const sw_module *attention = sw_net_module(at.net, "model.layers.0.self_attn");
    pass.rotary = &at.net->rotary.usual;
    const sw_tensor *x = sw_module_run_on(at.net->embedding, at.step, &pass, pass.tokens);
    const sw_tensor *with = sw_module_run_on(attention, at.step, &pass, x);
    bias->is_deferred = true;
    const sw_tensor *without = sw_module_run_on(attention, at.step, &pass, x);
    const sw_tensor *again = sw_op_add_bias(at.step, without, bias->tensor);
    assert_int_equal(sw_step_status(at.step, NULL), SW_OK);
    for (uint64_t e = 0; e < sw_tensor_elems(with); e++) {
        double wanted = ((double *)sw_tensor_data(with))[e];
        assert_true(fabs(wanted - ((double *)sw_tensor_data(again))[e]) < 1e-12);
        assert_true(wanted != ((double *)sw_tensor_data(without))[e]);
    }
}

/* ---- cache and positions ---- */

static void a_cache_gives_what_all_tokens_at_once_give(void **state)
{
    sw_cache *cache = NULL;

    (void)state;
    assert_int_equal(sw_cache_create(&cache, at.net, 1, TOKENS, NULL), SW_OK);
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    const double *whole = sw_tensor_data(run(&pass));
    for (uint64_t t = 0; t < TOKENS; t++) {
        sw_pass one = {.tokens = sw_view_slice(at.step, pass.tokens, 1, t, 1),
                       .positions = sw_net_positions(at.net, at.step, 1, 1, t),
                       .cache = cache};
        const double *logits = sw_tensor_data(run(&one));
        for (size_t i = 0; i < 63; i++)
            assert_true(fabs(logits[i] - whole[t * 63 + i]) < 1e-12);
        assert_int_equal(cache->n_tokens, t + 1);
    }
    sw_cache_destroy(cache);
}

static void check_step(const char *what)
{
    sw_error err = {0};

    assert_int_equal(sw_step_status(at.step, &err), SW_E_ARGUMENT);
    if (strstr(err.what, what) == NULL)
        fail_msg("says: %s", err.what);
    assert_true(err.help[0] != '\0');
}

static void what_does_not_fit_a_cache_or_the_positions_is_refused(void **state)
{
    sw_cache *cache = NULL;

    (void)state;
    assert_int_equal(sw_cache_create(&cache, at.net, 1, TOKENS - 1, NULL), SW_OK);
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    pass.cache = cache;
    assert_null(sw_net_hidden(at.net, at.step, &pass));
    check_step("1 rows of 7 tokens do not fit a cache of 1 rows with room for 6");
    assert_int_equal(cache->n_tokens, 0);
    sw_cache_destroy(cache);
    sw_step_begin(at.step, false);
    pass = pass_of(26); /* of 32 */
    assert_null(sw_net_hidden(at.net, at.step, &pass));
    check_step("position 32 is beyond the 32 of the net");
}

/* Positions that a part of a cache holds, one behind the other. */
static void part_holds(const sw_cache *cache, const char *wanted)
{
    char found[128] = "";
    size_t length = 0;

    for (uint64_t i = 0; i < cache->n_here; i++)
        length += (size_t)snprintf(found + length, sizeof found - length, "%s%d", i == 0 ? "" : " ",
                                   ((const int32_t *)sw_tensor_data(cache->positions))[i]);
    assert_string_equal(found, wanted);
}

/* Tokens `first` .. of a pass that all parts have alike, or a part's own, of 5 in all. */
static void give_part(sw_cache *cache, const int32_t *positions, uint64_t n)
{
    const uint64_t dims[] = {1, n};
    sw_tensor *given = sw_step_tensor(at.step, SW_DTYPE_I32, 2, dims);

    memcpy(sw_tensor_data(given), positions, n * sizeof *positions);
    const sw_tensor *seen = sw_cache_begin(cache, at.step, given, 5);
    assert_int_equal(sw_step_status(at.step, NULL), SW_OK);
    assert_int_equal(seen->dims[1], cache->n_here + cache->n_new_here);
    sw_cache_end(cache);
}

/* Five tokens and a padding are cut, 5 .. 9 follow in turn: one, then three at once, then one. */
static void parts_of_a_cache_take_tokens_in_turn(void **state)
{
    static const int32_t first[2][3] = {
        {0, 1, 2 },
        {3, 4, -1}
    };
    static const int32_t next[] = {5, 6, 7, 8, 9};
    static const char *const held[] = {"0 1 2 6 8", "3 4 -1 5 7 9"};

    (void)state;
    for (uint32_t part = 0; part < 2; part++) {
        sw_cache *cache = NULL;
        assert_int_equal(sw_cache_create(&cache, at.net, 1, sw_cache_part_tokens(10, 2), NULL), SW_OK);
        sw_cache_take_part(cache, part, 2);
        for (int again = 0; again < 2; again++) {
            sw_step_begin(at.step, false);
            give_part(cache, first[part], 3);
            assert_false(cache->is_alike);
            assert_int_equal(cache->n_tokens, 5);
            give_part(cache, next, 1);
            assert_true(cache->is_alike);
            give_part(cache, next + 1, 3);
            give_part(cache, next + 4, 1);
            assert_int_equal(cache->n_tokens, 10);
            part_holds(cache, held[part]);
            sw_cache_empty(cache);
        }
        sw_cache_destroy(cache);
    }
}

static void a_part_of_a_cache_needs_a_stage_that_knows_of_it(void **state)
{
    sw_cache *cache = NULL;

    (void)state;
    assert_int_equal(sw_cache_create(&cache, at.net, 1, 2 * TOKENS, NULL), SW_OK);
    sw_cache_take_part(cache, 1, 2);
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    pass.cache = cache;
    (void)run(&pass);
    assert_int_equal(cache->n_tokens, TOKENS);
    sw_pass one = {.tokens = sw_view_slice(at.step, pass.tokens, 1, 0, 1),
                   .positions = sw_net_positions(at.net, at.step, 1, 1, TOKENS),
                   .cache = cache};
    assert_null(sw_net_hidden(at.net, at.step, &one));
    check_step("self_attn.core: the cache is part 1 of 2");
    sw_cache_destroy(cache);
}

static void keys_of_a_shorter_sequence_do_not_hold_beyond_the_limit_of_longrope(void **state)
{
    sw_cache *cache = NULL;

    (void)state;
    net_case_close(&at);
    net_case_open(&at, golden_folder("phi3_longrope"), &(sw_net_options){.dtype = SW_DTYPE_F64}, false);
    uint64_t limit = at.net->rotary.limit;
    assert_in_range(limit, TOKENS, 15);
    assert_int_equal(sw_cache_create(&cache, at.net, 1, 2 * TOKENS + limit, NULL), SW_OK);
    sw_step_begin(at.step, false);
    sw_pass pass = pass_of(0);
    pass.cache = cache;
    (void)run(&pass);
    assert_true(sw_cache_holds(cache, at.net, limit - TOKENS));
    assert_false(sw_cache_holds(cache, at.net, limit - TOKENS + 1));
    sw_pass more = {.tokens = pass.tokens,
                    .positions = sw_net_positions(at.net, at.step, 1, TOKENS, limit),
                    .cache = cache};
    cache->n_tokens = limit;
    assert_null(sw_net_hidden(at.net, at.step, &more));
    check_step("keys in the cache do not hold beyond");
    sw_cache_empty(cache);
    assert_true(sw_cache_holds(cache, at.net, limit + 1));
    sw_cache_destroy(cache);
}

/* ---- steps ---- */

static void the_second_step_of_the_same_shapes_allocates_nothing(void **state)
{
    sw_error err = {0};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        sw_alloc_fail_at(i == 2 ? 1 : 0);
        sw_step_begin(at.step, true);
        sw_net_forget_gradients(at.net);
        sw_pass pass = pass_of(0);
        const sw_tensor *loss = sw_net_loss(at.net, at.step, &pass, pass.tokens, 1.0 / TOKENS, NULL);
        assert_int_equal(sw_step_backward(at.step, loss, NULL, &err), SW_OK);
    }
    sw_alloc_fail_at(0);
}

static void gradients_of_two_passes_are_summed_until_they_are_forgotten(void **state)
{
    const sw_parameter *p = sw_net_parameter(at.net, "model.layers.1.mlp.up_proj.weight");
    const double *gradient = p->tensor->storage->gradient;
    double once = 0;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        if (i != 1)
            sw_net_forget_gradients(at.net);
        sw_step_begin(at.step, true);
        sw_pass pass = pass_of(0);
        const sw_tensor *loss = sw_net_loss(at.net, at.step, &pass, pass.tokens, 1, NULL);
        assert_int_equal(sw_step_backward(at.step, loss, NULL, NULL), SW_OK);
        once = i == 0 ? gradient[3] : once;
        assert_true(fabs(gradient[3] - (i == 1 ? 2 : 1) * once) < 1e-12);
        assert_true(once != 0);
    }
}

static void a_failure_in_a_layer_is_the_steps(void **state)
{
    sw_error err = {0};

    (void)state;
    sw_step_begin(at.step, true);
    sw_pass pass = pass_of(0);
    pass.positions = sw_net_positions(at.net, at.step, 1, TOKENS - 1, 0);
    const sw_tensor *logits = NULL;
    assert_null(sw_net_loss(at.net, at.step, &pass, pass.tokens, 1, &logits));
    assert_null(logits);
    assert_int_equal(sw_step_status(at.step, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "rope"));
}

/* Bytes that a pass through the first layers takes. */
static size_t peak_of(uint32_t n_layers, bool records)
{
    uint32_t all = at.net->n_layers;
    sw_step *others = at.step;
    sw_error err = {0};

    assert_int_equal(sw_step_create(&at.step, at.kernel, &err), SW_OK);
    at.net->n_layers = n_layers;
    sw_step_begin(at.step, records);
    sw_pass pass = pass_of(0);
    (void)run(&pass);
    size_t peak = sw_stack_peak(sw_step_stack(at.step));
    at.net->n_layers = all;
    sw_step_destroy(at.step);
    at.step = others;
    return peak;
}

static void a_layer_leaves_little_more_than_its_output_where_nothing_is_recorded(void **state)
{
    (void)state;
    assert_true(at.net->n_layers >= 2);
    size_t kept = peak_of(2, true) - peak_of(1, true);
    assert_true(peak_of(2, false) - peak_of(1, false) < kept / 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_llama, close_net)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wrap_stands_around_the_forward_of_its_module),
        TEST(every_module_can_be_wrapped),
        TEST(a_stage_is_bound_to_the_module_that_names_it),
        TEST(halves_of_a_module_are_summands_of_the_whole),
        TEST(a_deferred_bias_is_left_out),
        TEST(a_cache_gives_what_all_tokens_at_once_give),
        TEST(what_does_not_fit_a_cache_or_the_positions_is_refused),
        TEST(parts_of_a_cache_take_tokens_in_turn),
        TEST(a_part_of_a_cache_needs_a_stage_that_knows_of_it),
        TEST(keys_of_a_shorter_sequence_do_not_hold_beyond_the_limit_of_longrope),
        TEST(the_second_step_of_the_same_shapes_allocates_nothing),
        TEST(a_layer_leaves_little_more_than_its_output_where_nothing_is_recorded),
        TEST(gradients_of_two_passes_are_summed_until_they_are_forgotten),
        TEST(a_failure_in_a_layer_is_the_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
