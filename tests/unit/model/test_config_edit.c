/* A config.json edited as text: what is asked for changes, the rest stays as it is and in its order. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/config_edit.h"

/* JSON with single quotes for double ones, and the edit. The result is compared without blanks and lines. */
static char *double_quotes(const char *text)
{
    static char buffers[2][4096];
    static size_t turn;
    char *out = buffers[turn++ % 2];

    assert_in_range(strlen(text), 1, sizeof buffers[0] - 1);
    (void)strcpy(out, text);
    for (char *at = out; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    return out;
}

static sw_status edit(sw_buffer *out, const char *text, sw_config_edit what, sw_error *err)
{
    sw_config config = {0};
    sw_file_map map = sw_file_map_of(text, strlen(text));

    if (sw_config_read(&config, map, "config.json", err) != SW_OK)
        fail_msg("%s", err->what);
    sw_status status = sw_config_edited(out, map, "config.json", &config, &what, err);
    sw_config_clear(&config);
    return status;
}

static void remove_blanks(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        if (*text != ' ' && *text != '\n')
            *to++ = *text;
    }
    *to = '\0';
}

static void check(const char *text, sw_config_edit what, const char *wanted)
{
    sw_buffer out = {0};
    sw_error err = {0};
    char found[4096];

    if (edit(&out, double_quotes(text), what, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_in_range(out.length, 1, sizeof found - 1);
    (void)strcpy(found, sw_buffer_text(&out));
    remove_blanks(found);
    assert_string_equal(found, double_quotes(wanted));
    sw_buffer_clear(&out);
}

#define LAYERS(n) ((sw_config_edit){.layers = (n)})
#define DTYPE(d)  ((sw_config_edit){.dtype = (d)})

static void an_edit_of_nothing_keeps_every_byte(void **state)
{
    static const char text[] = "{\"b\": 1e-05,  \"num_hidden_layers\":2,\"torch_dtype\":\"float16\"}\n\n";
    static const sw_config_edit edits[] = {
        {0}, {.layers = 2}, {.dtype = SW_DTYPE_F16}, {.drops_quantization = true}};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(edits); i++) {
        sw_buffer out = {0};
        sw_error err = {0};
        assert_int_equal(edit(&out, text, edits[i], &err), SW_OK);
        assert_string_equal(sw_buffer_text(&out), text);
        sw_buffer_clear(&out);
    }
}

static void the_rest_keeps_its_order_and_its_numbers(void **state)
{
    (void)state;
    check("{'z': [1, [2.5, -3], {}], 'n_layer': 9, 'e': 1e-05, 'f': 0.1, 'g': 0.30000000000000004,"
          "'h': 1.0, 'i': 1e300, 'j': -0.0, 'k': 9223372036854775807, 'l': null, 'm': true, 'a': "
          "'x\\u00e9\\n'}",
          LAYERS(2),
          "{'z':[1,[2.5,-3],{}],'n_layer':2,'e':1e-5,'f':0.1,'g':0.30000000000000004,"
          "'h':1.0,'i':1e300,'j':-0.0,'k':9223372036854775807,'l':null,'m':true,'a':'x\xc3\xa9\\n'}");
}

static void layers_are_set_under_every_spelling_that_is_there(void **state)
{
    (void)state;
    check("{'model_type': 'chatglm', 'num_layers': 28, 'num_hidden_layers': 28}", LAYERS(1),
          "{'model_type':'chatglm','num_layers':1,'num_hidden_layers':1}");
    check("{'model_type': 'mpt', 'n_layers': 32}", LAYERS(3), "{'model_type':'mpt','n_layers':3}");
}

static void layers_of_a_nested_decoder_are_set_there_and_not_in_the_tower(void **state)
{
    (void)state;
    check("{'model_type': 'llava', 'text_config': {'model_type': 'llama', 'num_hidden_layers': 32},"
          "'vision_config': {'num_hidden_layers': 24, 'torch_dtype': 'float32'}}",
          LAYERS(2),
          "{'model_type':'llava','text_config':{'model_type':'llama','num_hidden_layers':2},"
          "'vision_config':{'num_hidden_layers':24,'torch_dtype':'float32'}}");
    check("{'model_type': 'llava', 'text_config': {'model_type': 'llama'}}", LAYERS(2),
          "{'model_type':'llava','text_config':{'model_type':'llama','num_hidden_layers':2}}");
}

static void lists_of_layers_are_cut_with_them(void **state)
{
    (void)state;
    check("{'num_hidden_layers': 4, 'layer_types': ['a', 'b', 'c', 'd'], 'no_rope_layers': [1, 1, 1, 0],"
          "'mlp_only_layers': [0, 2, 3, 1]}",
          LAYERS(2),
          "{'num_hidden_layers':2,'layer_types':['a','b'],'no_rope_layers':[1,1],'mlp_only_layers':[0,1]}");
    check(
        "{'num_hidden_layers': 4, 'linear_attn_config': {'kda_layers': [1, 2, 3], 'full_attn_layers': [4]}}",
        LAYERS(2), "{'num_hidden_layers':2,'linear_attn_config':{'kda_layers':[1,2],'full_attn_layers':[]}}");
    check("{'num_layers': 6, 'attention_types': [[['global', 'local'], 2], [['local'], 2]]}", LAYERS(5),
          "{'num_layers':5,'attention_types':[[['global','local','global','local','local'],1]]}");
}

static void a_list_that_is_too_short_is_refused(void **state)
{
    sw_buffer out = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(
        edit(&out, "{\"num_hidden_layers\": 2, \"layer_types\": [\"a\", \"b\"]}", LAYERS(3), &err),
        SW_E_FORMAT);
    assert_string_equal(err.what, "config.json: key \"layer_types\" has 2 entries for 3 layers");
    assert_string_equal(err.help, "give fewer layers, or lengthen the list in the config");
    sw_buffer_clear(&out);
}

static void the_dtype_is_set_where_the_config_says_one(void **state)
{
    (void)state;
    check("{'torch_dtype': 'float16'}", DTYPE(SW_DTYPE_BF16), "{'torch_dtype':'bfloat16'}");
    check("{'dtype': 'bfloat16'}", DTYPE(SW_DTYPE_F32), "{'dtype':'float32'}");
    check("{'a': 1}", DTYPE(SW_DTYPE_F16), "{'a':1,'torch_dtype':'float16'}");
    check("{'text_config': {'dtype': 'bfloat16'}}", DTYPE(SW_DTYPE_F32),
          "{'text_config':{'dtype':'float32'}}");
}

static void quantisation_is_dropped_wherever_it_stands(void **state)
{
    (void)state;
    check("{'quantization_config': {'quant_method': 'fp8'}, 'a': 1, 'text_config': {'quantization_config': "
          "{}}}",
          (sw_config_edit){.drops_quantization = true}, "{'a':1,'text_config':{}}");
    check("{'quantization': {'bits': 4}}", (sw_config_edit){.drops_quantization = true}, "{}");
}

static sw_status deviation_of(const char *text, double *out, sw_error *err)
{
    sw_config config = {0};
    const char *json = double_quotes(text);
    sw_file_map map = sw_file_map_of(json, strlen(json));

    assert_int_equal(sw_config_read(&config, map, "config.json", err), SW_OK);
    sw_status status = sw_config_deviation(out, map, "config.json", &config, err);
    sw_config_clear(&config);
    return status;
}

static void the_deviation_is_the_decoders_own(void **state)
{
    static const struct {
        const char *text;
        double wanted;
    } cases[] = {
        {"{'initializer_range': 0.1}",                                            0.1  },
        {"{'init_std': 0.006}",                                                   0.006},
        {"{'initializer_range': 1}",                                              1.0  },
        {"{'initializer_range': 0.1, 'text_config': {'initializer_range': 0.5}}", 0.5  },
        {"{'initializer_range': 0.1, 'text_config': {}}",                         0.1  },
        {"{'initializer_range': null}",                                           -7.0 },
        {"{}",                                                                    -7.0 },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        double found = -7.0;
        sw_error err = {0};
        assert_int_equal(deviation_of(cases[i].text, &found, &err), SW_OK);
        assert_true(found == cases[i].wanted);
    }
}

static void a_deviation_that_is_none_is_refused(void **state)
{
    double found = 0.0;
    sw_error err = {0};

    (void)state;
    assert_int_equal(deviation_of("{'initializer_range': 'x'}", &found, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "config.json: key \"initializer_range\" is a string, not a number");
    assert_int_equal(deviation_of("{'init_std': -0.5}", &found, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "config.json: key \"init_std\" is -0.5, a deviation is not below 0");
}

static void lack_of_memory_is_said(void **state)
{
    static const char text[] = "{\"num_hidden_layers\": 2}";
    sw_file_map map = sw_file_map_of(text, sizeof text - 1);
    sw_config_edit what = LAYERS(1);
    sw_config config = {0};
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;
    bool is_editing = false;

    (void)state;
    assert_int_equal(sw_config_read(&config, map, "config.json", &err), SW_OK);
    for (uint64_t n = 1; n < 100 && status != SW_OK; n++) {
        sw_buffer out = {0};
        sw_alloc_fail_at(n);
        status = sw_config_edited(&out, map, "config.json", &config, &what, &err);
        sw_alloc_fail_at(0);
        sw_buffer_clear(&out);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        is_editing = strcmp(err.what, "config.json: no memory to edit it") == 0;
        assert_true(is_editing || strcmp(err.what, "config.json: out of memory") == 0); /* to read it */
    }
    assert_int_equal(status, SW_OK);
    assert_true(is_editing);
    sw_config_clear(&config);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_of_nothing_keeps_every_byte),
        cmocka_unit_test(the_rest_keeps_its_order_and_its_numbers),
        cmocka_unit_test(layers_are_set_under_every_spelling_that_is_there),
        cmocka_unit_test(layers_of_a_nested_decoder_are_set_there_and_not_in_the_tower),
        cmocka_unit_test(lists_of_layers_are_cut_with_them),
        cmocka_unit_test(a_list_that_is_too_short_is_refused),
        cmocka_unit_test(the_dtype_is_set_where_the_config_says_one),
        cmocka_unit_test(quantisation_is_dropped_wherever_it_stands),
        cmocka_unit_test(the_deviation_is_the_decoders_own),
        cmocka_unit_test(a_deviation_that_is_none_is_refused),
        cmocka_unit_test(lack_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
