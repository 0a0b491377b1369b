/* docs/formats/sharded-checkpoint.md says what is written and what is read: its example and its tables. */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "page.h"
#include "shardwright/checkpoint.h"

#define PAGE SW_SOURCE_DIR "/docs/formats/sharded-checkpoint.md"

// clang-format off
#define TINY \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': 1," \
    "'num_attention_heads': 2, 'num_key_value_heads': 1, 'head_dim': 4, 'intermediate_size': 8," \
    "'vocab_size': 5, 'torch_dtype': 'bfloat16'"
// clang-format on

static const char tensors[] = "model.embed_tokens.weight BF16 5x8\n"
                              "model.layers.0.self_attn.q_proj.weight BF16 8x8\n"
                              "model.layers.0.self_attn.k_proj.weight BF16 4x8\n"
                              "model.layers.0.self_attn.o_proj.weight BF16 8x8\n"
                              "model.norm.weight BF16 8\n";

static void make_example(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    make_model("m", TINY, tensors, 2);
    make_model("o", "", "optim.m.model.norm.weight F32 8\n", 1);
    sw_buffer moments = scratch_read("o/model.safetensors");
    scratch_bytes("m/optimizer-00001-of-00001.safetensors", moments.bytes, moments.length);
    sw_buffer_clear(&moments);
    scratch_text("m/training_state.json", "{'step': 100}", true);
    sw_plan *plan = plan_of("m", "tp=2", 0, NULL);
    options.no_sync = true;
    if (sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    sw_plan_destroy(plan);
}

/* The first block of JSON on the page, with the checksum of the plan that was made; to be given to free(). */
static char *example(void)
{
    static const char key[] = "\"plan_xxh3\": \"";
    char hash[SW_HEX_BYTES];
    char *page = page_file(PAGE);
    char *begin = strstr(page, "```json\n");

    assert_non_null(begin);
    begin += strlen("```json\n");
    char *end = strstr(begin, "```\n");
    assert_non_null(end);
    *end = '\0';
    memmove(page, begin, (size_t)(end - begin) + 1);
    sw_buffer plan = scratch_read("s/plan.json");
    sw_hex_text(sw_hash(plan.bytes, plan.length, 0), hash);
    sw_buffer_clear(&plan);
    char *at = strstr(page, key);
    assert_non_null(at);
    memcpy(at + strlen(key), hash, SW_HEX_BYTES - 1);
    return page;
}

static void the_example_is_what_is_written(void **state)
{
    (void)state;
    make_example();
    char *wanted = example();
    sw_buffer manifest = scratch_read("s/manifest.json");
    assert_string_equal(manifest.bytes, wanted);
    sw_buffer_clear(&manifest);
    free(wanted);
}

static void the_example_is_read(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    (void)state;
    make_example();
    char *manifest = example();
    scratch_text("s/manifest.json", manifest, false);
    if (sw_checkpoint_verify(scratch("s"), scratch("m"), &options, &result, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(result.replicas, 3); /* the key head, the norm, its moment */
    options.no_sync = true;
    if (sw_checkpoint_merge(scratch("s"), scratch("back"), &options, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    expect_same_tensors("m", "back");
    assert_true(scratch_has("back/optimizer-00001-of-00001.safetensors"));
    sw_buffer scalars = scratch_read("back/training_state.json");
    assert_string_equal(scalars.bytes, "{\"step\": 100}");
    sw_buffer_clear(&scalars);
    free(manifest);
}

/* Every key of the tables stands in the example, and a folder that lacks one which is needed is refused. */
static void the_keys_of_the_tables_are_those_of_the_manifest(void **state)
{
    static const char *const headings[] = {"manifest.json", "A file", "A small file",
                                           "A tensor",      "A part", "Regions"};

    (void)state;
    make_example();
    sw_buffer right = scratch_read("s/manifest.json");
    for (size_t h = 0; h < SW_COUNT(headings); h++) {
        page_table table;
        page_open(&table, "../formats/sharded-checkpoint.md", headings[h]);
        assert_true(table.n_rows > 2);
        for (size_t i = 0; i < table.n_rows; i++) {
            const char *key = table.cells[i][0];
            bool is_needed = strcmp(table.cells[i][2], "-") == 0;
            char quoted[80];
            char other[80];
            sw_error err = {0};
            if (strcmp(key, "ep") == 0) /* the example has no experts */
                continue;
            (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
            (void)snprintf(other, sizeof other, "\"%s_\": ", key);
            scratch_bytes("s/manifest.json", right.bytes, right.length);
            scratch_edit("s/manifest.json", quoted, other);
            assert_int_equal(sw_checkpoint_verify(scratch("s"), NULL, NULL, NULL, &err), SW_E_FORMAT);
            if (strstr(err.what, other + 1) == NULL && strstr(err.what, "_'") == NULL)
                fail_msg("%s under %s: %s (needed: %d)", key, headings[h], err.what, is_needed);
        }
        page_close(&table);
    }
    sw_buffer_clear(&right);
}

/* Names of files, keys of the metadata, and numbers that the page gives. */
static void names_and_numbers_of_the_page_are_right(void **state)
{
    static const char *const keys[] = {"sw.format", "sw.fingerprint", "sw.run",
                                       "sw.coord",  "sw.slices",      "sw.layout"};
    char *page = page_file(PAGE);
    char empty[32];

    (void)state;
    make_example();
    assert_string_equal(scratch_list("s"), "config.json dense-pp0-tp0.safetensors dense-pp0-tp1.safetensors "
                                           "manifest.json plan.json ");
    sw_buffer file = scratch_read("s/dense-pp0-tp1.safetensors");
    for (size_t i = 0; i < SW_COUNT(keys); i++) {
        char quoted[64];
        (void)snprintf(quoted, sizeof quoted, "\"%s\":\"", keys[i]);
        assert_non_null(memmem(file.bytes, file.length, quoted, strlen(quoted)));
        (void)snprintf(quoted, sizeof quoted, "| `%s` |", keys[i]);
        assert_non_null(strstr(page, quoted));
    }
    assert_non_null(memmem(file.bytes, file.length, "\"sw.coord\":\"pp=0,tp=1\"", 22));
    sw_buffer_clear(&file);
    (void)snprintf(empty, sizeof empty, "`%016" PRIx64 "`", sw_hash("", 0, 0));
    assert_non_null(strstr(page, empty));
    for (int d = 1; d < SW_DTYPE_COUNT_; d++) {
        const char *list = strstr(page, "then from 1 F64 ");
        assert_non_null(list);
        const char *at = list + strlen("then from 1 ");
        for (int skip = 1; skip < d; skip++)
            at = strchr(at, ' ') + 1;
        size_t n = strlen(sw_dtype_name((sw_dtype)d));
        assert_int_equal(strncmp(at, sw_dtype_name((sw_dtype)d), n), 0);
        assert_true(at[n] == ' ' || at[n] == '.');
    }
    free(page);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(the_example_is_what_is_written),
        ONE(the_example_is_read),
        ONE(the_keys_of_the_tables_are_those_of_the_manifest),
        ONE(names_and_numbers_of_the_page_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
