/* manifest.json: what is written, and that nothing hostile is read. */
#include "checkpoint_case.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/manifest.h"

// clang-format off
static const char good[] =
    "{'format': 'shardwright-checkpoint', 'version': 1, 'fingerprint': '00000000000000ff',"
    " 'files': [{'name': 'dense-pp0-tp0.safetensors', 'bytes': 100, 'pp': 0, 'tp': 0},"
    "           {'name': 'dense-pp0-tp1.safetensors', 'bytes': 90, 'pp': 0, 'tp': 1}],"
    " 'carried': [{'name': 'config.json', 'bytes': 7, 'xxh3': '00000000000000c1'},"
    "             {'name': 'tokenizer.json', 'bytes': 0, 'xxh3': '00000000000000c2'}],"
    " 'state': {'step': 3, 'seed': [1, 2]}, 'state_xxh3': '00000000000000aa',"
    " 'tensors': {"
    "  'a.weight': {'dtype': 'F32', 'shape': [4, 2], 'parts': ["
    "     {'file': 0, 'xxh3': '0123456789abcdef', 'regions': [{'begin': [0, 0], 'extent': [2, 2]}]},"
    "     {'file': 1, 'xxh3': '0123456789abcdee', 'regions': [{'begin': [2, 0], 'extent': [2, 2]}]}]},"
    "  'norm': {'dtype': 'Q9_X', 'shape': [], 'parts': ["
    "     {'file': 0, 'regions': [{'begin': [], 'extent': []}]},"
    "     {'file': 1, 'regions': [{'begin': [], 'extent': [], 'replica': true}]}]}}}";
// clang-format on

static void clear_store(sw_store *store)
{
    sw_tensor_list_clear(&store->list);
    sw_free(store->files);
    sw_free(store->tensors);
    sw_free(store->parts);
    sw_free(store->carried);
    sw_arena_destroy(store->arena);
}

/* `text` with double quotes, as a buffer. */
static sw_buffer quoted(const char *text)
{
    sw_buffer b = {0};

    for (; *text != '\0'; text++) {
        char c = *text == '\'' ? '"' : *text;
        sw_buffer_putc(&b, c);
    }
    return b;
}

static sw_status read_bytes(sw_store *store, const void *bytes, size_t n_bytes, sw_error *err)
{
    *store = (sw_store){.path = "x", .folder = "x", .arena = sw_arena_create(0)};
    if (store->arena == NULL || sw_tensor_list_init(&store->list, 0, err) != SW_OK)
        return SW_E_NO_MEMORY;
    return sw_manifest_read(store, sw_file_map_of(bytes, n_bytes), "manifest.json", err);
}

static void a_manifest_gives_files_tensors_parts_and_state(void **state)
{
    sw_buffer text = quoted(good);
    sw_store s;
    sw_error err = {0};

    (void)state;
    if (read_bytes(&s, text.bytes, text.length, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(s.fingerprint, 0xff);
    assert_int_equal(s.n_files, 2);
    assert_string_equal(s.files[1].name, "dense-pp0-tp1.safetensors");
    assert_int_equal(s.files[1].n_bytes, 90);
    assert_int_equal(s.files[1].tp, 1);
    assert_int_equal(s.files[1].ep, -1);
    assert_int_equal(s.n_tensors, 2);
    assert_string_equal(s.tensors[1].dtype_word, "Q9_X");
    assert_int_equal(s.tensors[1].dtype, SW_DTYPE_UNKNOWN);
    assert_int_equal(s.tensors[1].first_part, 2);
    assert_int_equal(s.n_parts, 4);
    assert_true(s.parts[1].has_hash);
    assert_int_equal(s.parts[1].hash, 0x0123456789abcdee);
    assert_int_equal(s.parts[1].held->part.along[0].ranges[0].begin, 2);
    assert_false(s.parts[2].has_hash);
    assert_true(s.parts[3].held->is_replica);
    assert_true(s.parts[3].is_missing); /* its header was not read */
    assert_int_equal(s.state_length, strlen("{\"step\": 3, \"seed\": [1, 2]}"));
    assert_string_equal(s.state_json, "{\"step\": 3, \"seed\": [1, 2]}");
    assert_int_equal(s.state_hash, 0xaa);
    assert_int_equal(s.n_carried, 2);
    assert_string_equal(s.carried[0].name, "config.json");
    assert_int_equal(s.carried[0].n_bytes, 7);
    assert_int_equal(s.carried[1].hash, 0xc2);
    clear_store(&s);
    sw_buffer_clear(&text);
}

/* One change of the good one, and what is said of it. */
typedef struct bad {
    const char *from;
    const char *to;
    const char *what;
} bad;

// clang-format off
static const bad cases[] = {
    {"'format': 'shardwright-checkpoint'", "'format': 'x'", "format is 'x', not shardwright-checkpoint"},
    {"'format': 'shardwright-checkpoint', ", "", "a manifest lacks 'format'"},
    {"'version': 1", "'version': 2", "version 2, this program reads 1"},
    {"'version': 1,", "'version': 1, 'version': 1,", "'version' stands twice"},
    {"'version': 1,", "'version': 1, 'extra': 1,", "a manifest has no key 'extra'"},
    {"00000000000000ff", "00000000000000FF", "is not 16 hexadecimal digits"},
    {"00000000000000ff", "ff", "'ff' is not 16 hexadecimal digits"},
    {"dense-pp0-tp0.safetensors", "../dense.safetensors", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", "/etc/passwd", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", "a\\\\b.safetensors", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", "", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", ".safetensors", "not a plain name"},
    {"dense-pp0-tp0.safetensors", "config.json", "'config.json' is not a plain name of a .safetensors file"},
    {"dense-pp0-tp0.safetensors", "a\\u0000b.safetensors", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", "a\\nb.safetensors", "not a plain file name"},
    {"dense-pp0-tp0.safetensors", "dense-pp0-tp1.safetensors", "stands twice"},
    {"'bytes': 100", "'bytes': -1", "negative"},
    {"'bytes': 100", "'bytes': 1e3", "exponent"},
    {"'bytes': 100, ", "", "a file lacks 'bytes'"},
    {"'pp': 0, 'tp': 0", "'pp': 4294967296, 'tp': 0", "too large"},
    {"'pp': 0, 'tp': 0", "'tp': 0", "a file lacks 'pp'"},
    {"'state': {'step': 3, 'seed': [1, 2]}", "'state': [3]", "the training state is not an object"},
    {"'state': {'step': 3, 'seed': [1, 2]}, ", "", "'state' and 'state_xxh3' go together"},
    {", 'state_xxh3': '00000000000000aa'", "", "'state' and 'state_xxh3' go together"},
    {"00000000000000aa", "aa", "'aa' is not 16 hexadecimal digits"},
    {"'name': 'config.json'", "'name': '../config.json'", "'../config.json' is not a plain file name"},
    {"'name': 'config.json'", "'name': 'tokenizer.json'", "the file 'tokenizer.json' stands twice"},
    {"'name': 'config.json', ", "", "a small file lacks 'name'"},
    {", 'xxh3': '00000000000000c1'", "", "a small file lacks 'xxh3'"},
    {"'dtype': 'F32'", "'dtype': ''", "not a dtype"},
    {"'dtype': 'F32'", "'dtype': 'F\\u000032'", "not a dtype"},
    {"'dtype': 'F32', ", "", "a tensor lacks 'dtype'"},
    {"'shape': [4, 2]", "'shape': [4]", "leaves the tensor or has other dims"},
    {"'shape': [4, 2]", "'shape': [3, 2]", "leaves the tensor"},
    {"'shape': [4, 2]", "'shape': [1,1,1,1,1,1,1,1,1]", "more than 8 dims"},
    {"'shape': [4, 2]", "'shape': [4294967296, 4294967296]", "does not fit 64 bits"},
    {"'shape': [4, 2]", "'shape': 4", "an array"},
    {"{'file': 1, 'xxh3'", "{'file': 2, 'xxh3'", "file 2 of 2"},
    {"{'file': 1, 'xxh3'", "{'file': 0, 'xxh3'", "file 0 holds it twice, or parts are not in order"},
    {"'file': 1, 'xxh3': '0123456789abcdee'", "'xxh3': '0123456789abcdee'", "a part lacks 'file'"},
    {"0123456789abcdef", "0123456789abcde", "16 hexadecimal digits"},
    {"'begin': [2, 0], 'extent': [2, 2]", "'begin': [3, 0], 'extent': [2, 2]", "leaves the tensor"},
    {"'begin': [2, 0], 'extent': [2, 2]", "'begin': [2, 0], 'extent': [18446744073709551615, 2]", "no such product"},
    {"'begin': [2, 0], 'extent': [2, 2]", "'begin': [2], 'extent': [2]", "other dims"},
    {"'norm': {", "'a.weight': {", "'a.weight' is listed twice"},
    {"'norm': {", "'': {", "empty name"},
    {"'norm': {", "'a\\u0001': {", "control characters"},
    {"'parts': [     {'file': 0, 'regions': [{'begin': [], 'extent': []}]},"
     "     {'file': 1, 'regions': [{'begin': [], 'extent': [], 'replica': true}]}]", "'parts': []", "no parts"},
    {"'replica': true}]}]}}}", "'replica': true}]}]}}} x", "the end of the text"},
    {"'replica': true}]}]}}}", "'replica': true}]}]}}", "'}'"},
};
// clang-format on

static void hostile_fields_are_refused_with_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        const char *hit = strstr(good, cases[i].from);
        sw_buffer text = {0};
        sw_store s;
        sw_error err = {0};
        if (hit == NULL)
            fail_msg("no '%s' in the good one", cases[i].from);
        sw_buffer_append(&text, good, (size_t)(hit - good));
        sw_buffer_puts(&text, cases[i].to);
        sw_buffer_puts(&text, hit + strlen(cases[i].from));
        sw_buffer json = quoted(sw_buffer_text(&text));
        sw_status status = read_bytes(&s, json.bytes, json.length, &err);
        if (status != SW_E_FORMAT && status != SW_E_LIMIT)
            fail_msg("'%s': %s", cases[i].to, sw_status_name(status));
        if (strstr(err.what, cases[i].what) == NULL || strstr(err.what, "manifest.json") == NULL)
            fail_msg("'%s': %s", cases[i].to, err.what);
        clear_store(&s);
        sw_buffer_clear(&json);
        sw_buffer_clear(&text);
    }
}

static void a_message_names_the_tensor(void **state)
{
    sw_buffer text = quoted("{'format': 'shardwright-checkpoint', 'version': 1, 'fingerprint':"
                            " '00000000000000ff', 'files': [], 'tensors': {'model.norm.weight': {'x': 1}}}");
    sw_store s;
    sw_error err = {0};

    (void)state;
    assert_int_equal(read_bytes(&s, text.bytes, text.length, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "tensor 'model.norm.weight'"));
    assert_non_null(strstr(err.what, "a tensor has no key 'x'"));
    clear_store(&s);
    sw_buffer_clear(&text);
}

static void every_cut_off_manifest_is_refused(void **state)
{
    sw_buffer text = quoted(good);

    (void)state;
    for (size_t n = 0; n < text.length; n++) {
        sw_store s;
        sw_error err = {0};
        if (read_bytes(&s, text.bytes, n, &err) == SW_OK)
            fail_msg("taken with %zu bytes", n);
        clear_store(&s);
    }
    sw_buffer_clear(&text);
}

static void memory_that_is_gone_leaves_nothing_behind(void **state)
{
    sw_buffer text = quoted(good);
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_store s;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = read_bytes(&s, text.bytes, text.length, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK)
            assert_int_equal(status, SW_E_NO_MEMORY);
        clear_store(&s);
        assert_int_equal(sw_alloc_live(), live);
    }
    sw_buffer_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_gives_files_tensors_parts_and_state),
        cmocka_unit_test(hostile_fields_are_refused_with_their_place),
        cmocka_unit_test(a_message_names_the_tensor),
        cmocka_unit_test(every_cut_off_manifest_is_refused),
        cmocka_unit_test(memory_that_is_gone_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
