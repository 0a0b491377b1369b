/* Latent attention: its heads cut over ranks, what its cache holds, attributes and weights that do not fit.
 */
#include "golden_case.h"
#include "net_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { TOKENS = 7 };

static net_case at;

static int open_case(void **state)
{
    (void)state;
    net_case_open(&at, golden_folder("deepseek_v3"), &(sw_net_options){.dtype = SW_DTYPE_F64}, false);
    return 0;
}

static int close_case(void **state)
{
    (void)state;
    net_case_close(&at);
    return 0;
}

static const char *const names[] = {
    "q_a_proj", "q_a_layernorm", "kv_a_proj_with_mqa", "kv_a_layernorm", "q_b_proj", "kv_b_proj", "o_proj"};
enum { FIRST_CUT = 4, LAST = 6 };

static sw_parameter *parameter(const sw_net *net, size_t i)
{
    char name[96];

    (void)snprintf(name, sizeof name, "model.layers.0.self_attn.%s.weight", names[i]);
    sw_parameter *p = sw_net_parameter(net, name);
    assert_non_null(p);
    return p;
}

/* The whole, or the half of its rows (of the last, of its columns) that a part has. */
static void fill(const sw_parameter *part, const sw_parameter *whole, uint32_t half)
{
    uint64_t columns = part->n_dims == 2 ? part->dims[1] : 1;
    uint64_t of_whole = whole->n_dims == 2 ? whole->dims[1] : 1;
    uint64_t first_row = part->dims[0] < whole->dims[0] ? half * part->dims[0] : 0;
    uint64_t first_column = columns < of_whole ? half * columns : 0;
    double *to = sw_tensor_data(part->tensor);
    const double *from = sw_tensor_data(whole->tensor);

    for (uint64_t r = 0; r < part->dims[0]; r++)
        memcpy(to + r * columns, from + (first_row + r) * of_whole + first_column, columns * sizeof *to);
}

static sw_net *half_of(uint32_t half)
{
    sw_net *net = NULL;

    assert_int_equal(sw_net_create(&net, at.model, &(sw_net_options){.dtype = SW_DTYPE_F64}, NULL), SW_OK);
    *sw_module_attribute(sw_net_module(net, "model.layers.0.self_attn"), "num_heads") /= 2;
    for (size_t i = FIRST_CUT; i <= LAST; i++)
        parameter(net, i)->dims[i == LAST] /= 2;
    assert_int_equal(sw_net_allocate(net, false, NULL), SW_OK);
    for (size_t i = 0; i <= LAST; i++)
        fill(parameter(net, i), parameter(at.net, i), half);
    return net;
}

static const sw_tensor *attend(const sw_net *net, const sw_pass *pass, const sw_tensor *x)
{
    return sw_module_run_on(sw_net_module(net, "model.layers.0.self_attn"), at.step, pass, x);
}

static void halves_of_the_heads_are_summands_of_the_whole(void **state)
{
    const uint64_t dims[] = {1, TOKENS, at.net->settings.hidden};
    sw_net *halves[] = {half_of(0), half_of(1)};
    sw_error err = {0};

    (void)state;
    sw_step_begin(at.step, false);
    sw_tensor *x = sw_step_tensor(at.step, SW_DTYPE_F64, 3, dims);
    for (uint64_t i = 0; i < sw_tensor_elems(x); i++)
        ((double *)sw_tensor_data(x))[i] = sin((double)i);
    sw_pass pass = {.positions = sw_net_positions(at.net, at.step, 1, TOKENS, 0),
                    .rotary = &at.net->rotary.usual};
    const sw_tensor *whole = attend(at.net, &pass, x);
    const sw_tensor *sum = sw_op_add(at.step, attend(halves[0], &pass, x), attend(halves[1], &pass, x));
    if (sw_step_status(at.step, &err) != SW_OK)
        fail_msg("%s", err.what);
    for (uint64_t i = 0; i < sw_tensor_elems(whole); i++)
        assert_true(fabs(((double *)sw_tensor_data(whole))[i] - ((double *)sw_tensor_data(sum))[i]) < 1e-12);
    sw_net_destroy(halves[0]);
    sw_net_destroy(halves[1]);
}

static void keys_are_as_wide_as_both_parts_of_a_head(void **state)
{
    sw_cache *cache = NULL;

    (void)state;
    assert_int_equal(sw_cache_create(&cache, at.net, 1, TOKENS, NULL), SW_OK);
    assert_int_equal(cache->keys[0]->dims[2], 4);
    assert_int_equal(cache->keys[0]->dims[3], parameter(at.net, FIRST_CUT)->dims[0] / 4);
    assert_int_equal(cache->values[0]->dims[3], parameter(at.net, LAST)->dims[1] / 4);
    sw_cache_destroy(cache);
}

static void heads_that_do_not_fit_the_weights_are_refused(void **state)
{
    sw_net *net = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_net_create(&net, at.model, &(sw_net_options){.dtype = SW_DTYPE_F64}, NULL), SW_OK);
    *sw_module_attribute(sw_net_module(net, "model.layers.0.self_attn"), "num_heads") /= 2;
    assert_int_equal(sw_net_allocate(net, false, &err), SW_E_PLAN);
    assert_string_equal(err.what, "model.layers.0.self_attn: 2 heads of 5 do not fit 20 columns of "
                                  "model.layers.0.self_attn.o_proj.weight");
    sw_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_the_heads_are_summands_of_the_whole),
        cmocka_unit_test(keys_are_as_wide_as_both_parts_of_a_head),
        cmocka_unit_test(heads_that_do_not_fit_the_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, open_case, close_case);
}
