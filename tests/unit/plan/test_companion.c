/* Companions: which names belong to a quantised weight under which method, and how their dims map to it. */
#include "plan/companion.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/status.h"

#define NONE_ SW_QUANTIZATION_NONE
#define FP8   SW_QUANTIZATION_FP8
#define GPTQ  SW_QUANTIZATION_GPTQ
#define AWQ   SW_QUANTIZATION_AWQ
#define MLX   SW_QUANTIZATION_MLX
#define CT    SW_QUANTIZATION_COMPRESSED_TENSORS

// clang-format off
static const struct row {
    const char *leaf;
    sw_quantization_method method;
    int out; sw_factor out_factor;
    int in;  sw_factor in_factor;
    bool is_weight;
} rows[] = {
    { "qweight",           GPTQ,  1, SW_FACTOR_ONE,        0, SW_FACTOR_PACK,       true  },
    { "qzeros",            GPTQ,  1, SW_FACTOR_PACK,       0, SW_FACTOR_GROUP,      false },
    { "scales",            GPTQ,  1, SW_FACTOR_ONE,        0, SW_FACTOR_GROUP,      false },
    { "g_idx",             GPTQ, -1, SW_FACTOR_ONE,        0, SW_FACTOR_ONE,        false },
    { "qweight",           AWQ,   1, SW_FACTOR_PACK,       0, SW_FACTOR_ONE,        true  },
    { "qzeros",            AWQ,   1, SW_FACTOR_PACK,       0, SW_FACTOR_GROUP,      false },
    { "scales",            AWQ,   1, SW_FACTOR_ONE,        0, SW_FACTOR_GROUP,      false },
    { "weight",            MLX,   0, SW_FACTOR_ONE,        1, SW_FACTOR_PACK,       true  },
    { "scales",            MLX,   0, SW_FACTOR_ONE,        1, SW_FACTOR_GROUP,      false },
    { "biases",            MLX,   0, SW_FACTOR_ONE,        1, SW_FACTOR_GROUP,      false },
    { "weight_packed",     CT,    0, SW_FACTOR_ONE,        1, SW_FACTOR_PACK,       true  },
    { "weight_zero_point", CT,    0, SW_FACTOR_PACK,       1, SW_FACTOR_GROUP,      false },
    { "weight_shape",      CT,   -1, SW_FACTOR_ONE,       -1, SW_FACTOR_ONE,        false },
    { "weight_scale_inv",  FP8,   0, SW_FACTOR_BLOCK_ROWS, 1, SW_FACTOR_BLOCK_COLS, false },
    { "weight_scale",      FP8,   0, SW_FACTOR_BLOCK_ROWS, 1, SW_FACTOR_BLOCK_COLS, false },
    { "weight_scale_inv",  NONE_, 0, SW_FACTOR_BLOCK_ROWS, 1, SW_FACTOR_BLOCK_COLS, false },
    { "input_scale",       FP8,  -1, SW_FACTOR_ONE,       -1, SW_FACTOR_ONE,        false },
    { "weight_global_scale", CT, -1, SW_FACTOR_ONE,       -1, SW_FACTOR_ONE,        false },
    { "input_global_scale", CT,  -1, SW_FACTOR_ONE,       -1, SW_FACTOR_ONE,        false },
    { "output_max",        NONE_, -1, SW_FACTOR_ONE,      -1, SW_FACTOR_ONE,        false },
    { "clip_min",          NONE_, -1, SW_FACTOR_ONE,      -1, SW_FACTOR_ONE,        false },
};
// clang-format on

static const sw_companion *find(const char *leaf, sw_quantization_method method, size_t *stem)
{
    char name[128] = "model.layers.0.mlp.down_proj.";
    strcat(name, leaf);
    return sw_companion_of(name, strlen(name), method, stem);
}

static void every_companion_knows_its_dims(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        size_t stem = 0;
        const sw_companion *c = find(rows[i].leaf, rows[i].method, &stem);
        if (c == NULL)
            fail_msg("%s is no companion", rows[i].leaf);
        assert_int_equal(stem, strlen("model.layers.0.mlp.down_proj"));
        if (c->out_dim != rows[i].out || c->out_factor != rows[i].out_factor || c->in_dim != rows[i].in ||
            c->in_factor != rows[i].in_factor || c->is_weight != rows[i].is_weight)
            fail_msg("%s of method %d", rows[i].leaf, (int)rows[i].method);
    }
}

static void a_name_belongs_to_the_methods_that_have_it(void **state)
{
    size_t stem = 0;
    (void)state;
    assert_null(find("qweight", NONE_, &stem));
    assert_null(find("qweight", FP8, &stem));
    assert_null(find("weight", GPTQ, &stem)); /* norms of a GPTQ file are ordinary */
    assert_null(find("weight", NONE_, &stem));
    assert_null(find("biases", GPTQ, &stem));
    assert_null(find("bias", MLX, &stem));
    assert_null(find("scales", FP8, &stem));
}

static void a_suffix_alone_is_no_companion(void **state)
{
    size_t stem = 0;
    (void)state;
    assert_null(sw_companion_of(".scales", 7, GPTQ, &stem)); /* of nothing */
    assert_null(sw_companion_of("scales", 6, GPTQ, &stem));
    assert_null(sw_companion_of("", 0, GPTQ, &stem));
    assert_null(sw_companion_of("a.myscales", 10, GPTQ, &stem));
}

static void scales_of_methods_with_a_group_index_follow_an_act_order(void **state)
{
    size_t stem = 0;
    (void)state;
    assert_true(find("scales", GPTQ, &stem)->follows_act_order);
    assert_true(find("qzeros", GPTQ, &stem)->follows_act_order);
    assert_false(find("qweight", GPTQ, &stem)->follows_act_order);
    assert_false(find("g_idx", GPTQ, &stem)->follows_act_order);
    assert_true(find("weight_scale", CT, &stem)->follows_act_order);
    assert_true(find("weight_zero_point", CT, &stem)->follows_act_order);
    assert_false(find("weight_scale", FP8, &stem)->follows_act_order);
    assert_false(find("scales", AWQ, &stem)->follows_act_order);
}

static void a_weight_that_is_no_words_is_no_companion(void **state)
{
    size_t stem = 0;
    const sw_companion *words = find("weight", MLX, &stem);
    (void)state;
    assert_true(sw_companion_fits(words, SW_DTYPE_U32));
    assert_false(sw_companion_fits(words, SW_DTYPE_BF16)); /* a norm, or a module left as it is */
    assert_true(sw_companion_fits(find("scales", MLX, &stem), SW_DTYPE_BF16));
    assert_true(sw_companion_fits(find("qweight", GPTQ, &stem), SW_DTYPE_I32));
}

static void packed_names_are_known_without_a_method(void **state)
{
    static const char *const packed[] = {"a.qweight", "a.qzeros", "a.g_idx", "a.scales", "a.weight_packed"};
    (void)state;
    for (size_t i = 0; i < SW_COUNT(packed); i++)
        assert_true(sw_companion_is_packed_name(packed[i], strlen(packed[i])));
    assert_false(sw_companion_is_packed_name("a.weight", 8));
    assert_false(sw_companion_is_packed_name("a.weight_scale_inv", 18));
    assert_false(sw_companion_is_packed_name("qweight", 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_companion_knows_its_dims),
        cmocka_unit_test(a_name_belongs_to_the_methods_that_have_it),
        cmocka_unit_test(a_suffix_alone_is_no_companion),
        cmocka_unit_test(scales_of_methods_with_a_group_index_follow_an_act_order),
        cmocka_unit_test(a_weight_that_is_no_words_is_no_companion),
        cmocka_unit_test(packed_names_are_known_without_a_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
