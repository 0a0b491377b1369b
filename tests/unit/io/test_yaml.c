/* The YAML tree: what is read, with lines; what is refused, with lines; nulls and booleans as YAML 1.2 has
 * them. */
#include "io/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"

static sw_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = sw_arena_create(64 << 20);
    return arena == NULL;
}

static int destroy_arena(void **state)
{
    (void)state;
    sw_arena_destroy(arena);
    return 0;
}

static sw_status read_text(sw_yaml_node **out, const char *text, sw_error *err)
{
    return sw_yaml_read(out, sw_file_map_of(text, strlen(text)), "o.yaml", arena, err);
}

static void a_file_becomes_a_tree_in_its_order(void **state)
{
    (void)state;
    sw_yaml_node *root = NULL;
    assert_int_equal(read_text(&root,
                               "# overrides\n"
                               "overrides:\n"
                               "  - match: \"*.q_proj\"\n"
                               "    params: {weight: 'S(0)', bias: ~}\n"
                               "  - plain text\n"
                               "derive: false\n",
                               NULL),
                     SW_OK);
    assert_int_equal(root->kind, SW_YAML_MAPPING);
    assert_int_equal(root->n_children, 2);
    assert_null(root->key);
    const sw_yaml_node *list = sw_yaml_get(root, "overrides");
    assert_ptr_equal(list, root->children);
    assert_int_equal(list->kind, SW_YAML_SEQUENCE);
    assert_int_equal(list->n_children, 2);
    assert_int_equal(list->line, 3);
    const sw_yaml_node *entry = list->children;
    assert_int_equal(entry->kind, SW_YAML_MAPPING);
    const sw_yaml_node *match = sw_yaml_get(entry, "match");
    assert_string_equal(match->text, "*.q_proj");
    assert_string_equal(match->key, "match");
    assert_false(match->is_plain);
    assert_int_equal(match->line, 3);
    const sw_yaml_node *weight = sw_yaml_get(sw_yaml_get(entry, "params"), "weight");
    assert_string_equal(weight->text, "S(0)");
    assert_int_equal(weight->line, 4);
    assert_true(sw_yaml_is_null(sw_yaml_get(sw_yaml_get(entry, "params"), "bias")));
    assert_string_equal(entry->next->text, "plain text");
    assert_null(entry->next->key);
    assert_null(entry->next->next);
    assert_string_equal(root->children->next->key, "derive");
    assert_null(sw_yaml_get(root, "absent"));
    assert_null(sw_yaml_get(list, "match"));
    assert_null(sw_yaml_get(NULL, "match"));
}

static void a_byte_order_mark_is_no_part_of_the_first_line(void **state)
{
    (void)state;
    sw_yaml_node *root = NULL;
    assert_int_equal(read_text(&root,
                               "\xef\xbb\xbf"
                               "a: 1\nb: 2\n",
                               NULL),
                     SW_OK);
    assert_string_equal(sw_yaml_get(root, "a")->text, "1");
    assert_string_equal(sw_yaml_get(root, "b")->text, "2");
    assert_int_equal(read_text(&root, "\xef\xbb\xbf", NULL), SW_OK);
    assert_null(root);
}

static void an_empty_document_is_no_tree(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n"};
    for (size_t i = 0; i < SW_COUNT(texts); i++) {
        sw_yaml_node *root = (sw_yaml_node *)&root;
        assert_int_equal(read_text(&root, texts[i], NULL), SW_OK);
        assert_null(root);
    }
}

static const sw_yaml_node *value_of(const char *text)
{
    sw_yaml_node *root = NULL;
    assert_int_equal(read_text(&root, text, NULL), SW_OK);
    return sw_yaml_get(root, "v");
}

static void nulls_and_booleans_are_plain_words(void **state)
{
    (void)state;
    bool flag = false;
    assert_true(sw_yaml_is_null(value_of("v:")));
    assert_true(sw_yaml_is_null(value_of("v: null")));
    assert_true(sw_yaml_is_null(value_of("v: ~")));
    assert_true(sw_yaml_is_null(NULL));
    assert_false(sw_yaml_is_null(value_of("v: 'null'")));
    assert_false(sw_yaml_is_null(value_of("v: ''")));
    assert_false(sw_yaml_is_null(value_of("v: []")));
    assert_true(sw_yaml_bool(value_of("v: true"), &flag));
    assert_true(flag);
    assert_true(sw_yaml_bool(value_of("v: False"), &flag));
    assert_false(flag);
    assert_false(sw_yaml_bool(value_of("v: yes"), &flag));
    assert_false(sw_yaml_bool(value_of("v: 'true'"), &flag));
    assert_false(sw_yaml_bool(value_of("v: {true: 1}"), &flag));
    assert_false(sw_yaml_bool(NULL, &flag));
}

typedef struct refusal {
    const char *text;
    sw_status status;
    const char *what; /* its beginning: what the parser of YAML says is its own affair */
} refusal;

// clang-format off
static const refusal refusals[] = {
    { "a: 1\nb: &x 2\n",        SW_E_FORMAT, "o.yaml: line 2: anchors and aliases are not supported" },
    { "a: &x [1]\n",            SW_E_FORMAT, "o.yaml: line 1: anchors and aliases are not supported" },
    { "a: &x {b: 1}\n",         SW_E_FORMAT, "o.yaml: line 1: anchors and aliases are not supported" },
    { "a: *x\n",                SW_E_FORMAT, "o.yaml: line 1: anchors and aliases are not supported" },
    { "a: !!str 1\n",           SW_E_FORMAT, "o.yaml: line 1: tags are not supported" },
    { "a: !x [1]\n",            SW_E_FORMAT, "o.yaml: line 1: tags are not supported" },
    { "a: !x {b: 1}\n",         SW_E_FORMAT, "o.yaml: line 1: tags are not supported" },
    { "a: 1\n---\nb: 1\n",      SW_E_FORMAT, "o.yaml: line 2: a second document" },
    { "a: 1\nb: 2\na: 3\n",     SW_E_FORMAT, "o.yaml: line 3: the key 'a' stands twice" },
    { "x:\n - {k: 1, k: 2}\n",  SW_E_FORMAT, "o.yaml: line 2: the key 'k' stands twice" },
    { "? [a]\n: 1\n",           SW_E_FORMAT, "o.yaml: line 1: a key that is a mapping or a list" },
    { "? {a: b}\n: 1\n",        SW_E_FORMAT, "o.yaml: line 1: a key that is a mapping or a list" },
    { "'': 1\n",                SW_E_FORMAT, "o.yaml: line 1: an empty key" },
    { "a: \"x\\0y\"\n",         SW_E_FORMAT, "o.yaml: line 1: a NUL character in a text" },
    { "\"x\\0y\": 1\n",         SW_E_FORMAT, "o.yaml: line 1: a NUL character in a text" },
    { "a: [1\n",                SW_E_FORMAT, "o.yaml: line 2: " },
    { "a:\n\t- 1\n",            SW_E_FORMAT, "o.yaml: line 2: " },
    { "a: \"x\n",               SW_E_FORMAT, "o.yaml: line 2: " },
    { "a: caf\xe9\n",           SW_E_FORMAT, "o.yaml: byte 6: " },
    { "a: \x01\n",              SW_E_FORMAT, "o.yaml: byte 3: " },
};
// clang-format on

static void each_surprise_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_yaml_node *root = NULL;
        sw_error err = {0};
        sw_status status = read_text(&root, refusals[i].text, &err);
        if (status != refusals[i].status ||
            strncmp(err.what, refusals[i].what, strlen(refusals[i].what)) != 0) {
            fail_msg("%s: %s (%d)\n  instead of: %s", refusals[i].text, err.what, status, refusals[i].what);
        }
        assert_null(root);
    }
}

static void nesting_and_size_are_bounded(void **state)
{
    (void)state;
    sw_yaml_node *root = NULL;
    sw_error err = {0};
    char text[2 * SW_YAML_MAX_DEPTH + 3];
    memset(text, '[', SW_YAML_MAX_DEPTH + 1);
    memset(text + SW_YAML_MAX_DEPTH + 1, ']', SW_YAML_MAX_DEPTH + 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(read_text(&root, text, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "o.yaml: line 1: more than 32 levels deep");
    text[sizeof text - 2] = '\0';
    assert_int_equal(read_text(&root, text + 1, &err), SW_OK);

    assert_int_equal(sw_yaml_read(&root, sw_file_map_of(text, SW_YAML_MAX_BYTES + 1), "o.yaml", arena, &err),
                     SW_E_LIMIT);
    assert_string_equal(err.what, "o.yaml: 4194305 bytes, at most 4194304 are read");
}

static void memory_is_bounded_by_the_arena(void **state)
{
    (void)state;
    sw_yaml_node *root = NULL;
    sw_error err = {0};
    sw_arena *small = sw_arena_create(4096);
    sw_buffer text = {0};
    for (int i = 0; i < 1000; i++) {
        sw_buffer_puts(&text, "- x\n");
    }
    assert_int_equal(sw_yaml_read(&root, sw_file_map_of(text.bytes, text.length), "o.yaml", small, &err),
                     SW_E_LIMIT);
    assert_string_equal(err.what, "o.yaml: more than the 4096 bytes of memory allowed for it");
    sw_buffer_clear(&text);
    sw_arena_destroy(small);
}

static void a_mapping_of_many_keys_is_read_in_one_pass(void **state)
{
    (void)state;
    sw_yaml_node *root = NULL;
    sw_buffer text = {0};
    for (int i = 0; i < 50000; i++) {
        sw_buffer_printf(&text, "key%d: 1\n", i);
    }
    assert_int_equal(sw_yaml_read(&root, sw_file_map_of(text.bytes, text.length), "o.yaml", arena, NULL),
                     SW_OK);
    assert_int_equal(root->n_children, 50000);
    sw_buffer_clear(&text);
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_arena *own = sw_arena_create(0);
        sw_yaml_node *root = NULL;
        sw_error err = {0};
        static const char text[] = "a: {b: [1, 2]}\nc: d\n";
        sw_alloc_fail_at(n);
        status = sw_yaml_read(&root, sw_file_map_of(text, sizeof text - 1), "o.yaml", own, &err);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK ||
                    (status == SW_E_NO_MEMORY && err.status == SW_E_NO_MEMORY && root == NULL));
        sw_arena_destroy(own);
        assert_int_equal(sw_alloc_live(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_becomes_a_tree_in_its_order, make_arena, destroy_arena),
        cmocka_unit_test_setup_teardown(a_byte_order_mark_is_no_part_of_the_first_line, make_arena,
                                        destroy_arena),
        cmocka_unit_test_setup_teardown(an_empty_document_is_no_tree, make_arena, destroy_arena),
        cmocka_unit_test_setup_teardown(nulls_and_booleans_are_plain_words, make_arena, destroy_arena),
        cmocka_unit_test_setup_teardown(each_surprise_is_refused_with_its_line, make_arena, destroy_arena),
        cmocka_unit_test_setup_teardown(nesting_and_size_are_bounded, make_arena, destroy_arena),
        cmocka_unit_test(memory_is_bounded_by_the_arena),
        cmocka_unit_test_setup_teardown(a_mapping_of_many_keys_is_read_in_one_pass, make_arena,
                                        destroy_arena),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
