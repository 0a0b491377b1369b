/* sw.layout says all that the format's page says, and nothing else passes for it. */
#include "checkpoint_case.h"

#include <string.h>

#include "base/status.h"
#include "checkpoint/layout_text.h"
#include "mesh/placement.h"

typedef struct subject {
    sw_arena *arena;
    sw_tensor_list list;
    sw_store_tensor tensor;
    sw_facts facts;
} subject;

static subject make_subject(const char *tp, const char *ep)
{
    const uint64_t dims[] = {4096, 2};
    const sw_shape *shape = NULL;
    subject s = {.arena = sw_arena_create(0)};

    assert_int_equal(sw_tensor_list_init(&s.list, 0, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_shape(&s.list, dims, 2, &shape, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add(&s.list, "w", 1, SW_DTYPE_BF16, shape, UINT32_MAX, 0, NULL), SW_OK);
    s.tensor = (sw_store_tensor){.name = "w", .name_length = 1, .shape = shape};
    s.facts = (sw_facts){.layout = SW_LAYOUT_STACKED, .parts = 2};
    s.facts.places.present = 1U << SW_ON_TP;
    assert_int_equal(sw_placement_parse(&s.facts.places.on[SW_ON_TP], tp, strlen(tp), s.arena, NULL), SW_OK);
    if (ep != NULL) {
        s.facts.places.present |= 1U << SW_ON_EP;
        assert_int_equal(sw_placement_parse(&s.facts.places.on[SW_ON_EP], ep, strlen(ep), s.arena, NULL),
                         SW_OK);
    }
    return s;
}

static void drop_subject(subject *s)
{
    sw_tensor_list_clear(&s->list);
    sw_arena_destroy(s->arena);
}

static sw_buffer text_of(const subject *s)
{
    sw_buffer text = {0};
    sw_json_writer w;

    sw_json_write_init(&w, &text, true);
    sw_json_begin_object(&w);
    sw_layout_text_put(&w, &s->tensor, &s->facts);
    sw_json_end_object(&w);
    assert_non_null(sw_buffer_text(&text));
    return text;
}

static sw_status check(const subject *s, const char *text, sw_error *err)
{
    return sw_layout_text_check((sw_json_text){text, strlen(text)}, &s->list, "sw.layout", err);
}

static void kind_parts_and_both_axes_are_written(void **state)
{
    (void)state;
    subject s = make_subject("S(1)", "S(0)");
    sw_buffer text = text_of(&s);
    assert_string_equal(text.bytes,
                        "{\"w\":{\"kind\":\"stacked_parts\",\"parts\":2,\"tp\":\"S(1)\",\"ep\":\"S(0)\"}}");
    assert_int_equal(check(&s, text.bytes, NULL), SW_OK);
    sw_buffer_clear(&text);
    s.facts.layout = SW_LAYOUT_PLAIN;
    text = text_of(&s);
    assert_string_equal(text.bytes, "{}");
    assert_int_equal(check(&s, text.bytes, NULL), SW_OK);
    sw_buffer_clear(&text);
    drop_subject(&s);
}

static void a_long_placement_is_written_whole(void **state)
{
    sw_buffer placement = {0};

    (void)state;
    sw_buffer_puts(&placement, "S(0;seg=");
    for (int i = 0; i < 1024; i++)
        sw_buffer_puts(&placement, i == 0 ? "4" : "+4");
    sw_buffer_putc(&placement, ')');
    subject s = make_subject(sw_buffer_text(&placement), NULL);
    sw_buffer text = text_of(&s);
    assert_non_null(strstr(text.bytes, placement.bytes));
    assert_int_equal(check(&s, text.bytes, NULL), SW_OK);
    sw_buffer_clear(&text);
    sw_buffer_clear(&placement);
    drop_subject(&s);
}

static void other_texts_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "garbage",
        "{\"w\":1}",
        "{\"w\":{}}",
        "{\"v\":{\"kind\":\"stacked_parts\"}}",
        "{\"w\":{\"kind\":\"plain\"}}",
        "{\"w\":{\"kind\":\"stacked_parts\",\"parts\":\"2\"}}",
        "{\"w\":{\"kind\":\"stacked_parts\",\"tp\":\"S(\"}}",
        "{\"w\":{\"kind\":\"stacked_parts\",\"cp\":\"R\"}}",
        "{\"w\":{\"kind\":\"stacked_parts\"}} {}",
    };

    (void)state;
    subject s = make_subject("R", NULL);
    for (size_t i = 0; i < SW_COUNT(wrong); i++) {
        sw_error err = {0};
        if (check(&s, wrong[i], &err) != SW_E_FORMAT)
            fail_msg("'%s' is taken", wrong[i]);
        assert_non_null(strstr(err.what, "sw.layout: "));
    }
    drop_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kind_parts_and_both_axes_are_written),
        cmocka_unit_test(a_long_placement_is_written_whole),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
