/* What the files of a sharded folder say of themselves, and parts that cannot be put together, in verify. */
#include "checkpoint_case.h"

#include <string.h>

#include "base/status.h"
#include "command_line.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 2," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
// clang-format on

/* Errors of verify, "CODE NAME: WHAT\n" each. */
static const char *errors_of(const char *folder)
{
    static char text[4096];
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    size_t n = 0;

    text[0] = '\0';
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    assert_int_not_equal(sw_checkpoint_verify(folder, NULL, &options, NULL, NULL), SW_OK);
    for (size_t i = 0; i < sw_report_count(options.report); i++) {
        const sw_finding *f = sw_report_finding(options.report, i);
        if (f->severity == SW_SEVERITY_ERROR)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s %s: %s\n", f->code, f->fqn, f->what);
    }
    sw_report_destroy(options.report);
    return text;
}

static void metadata_that_are_missing_are_told(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 1);
    line_works("shard m --mesh tp=4 -o s -q");
    scratch_edit("s/dense-pp0-tp0.safetensors", "\"sw.slices\"", "\"sw.slice_\"");
    scratch_edit("s/dense-pp0-tp1.safetensors", "\\\"model.norm.weight\\\"", "\\\"model.morn.weight\\\"");
    scratch_edit("s/dense-pp0-tp2.safetensors", "\"sw.layout\"", "\"sw.layou_\"");
    scratch_edit("s/dense-pp0-tp3.safetensors", "\"sw.layout\":\"{}\"", "\"sw.layout\":\"[]\"");
    assert_string_equal(
        errors_of("s"),
        "slices_differ dense-pp0-tp0.safetensors: its sw.slices have 0 entries, for 0 of its 21 "
        "tensors\n"
        "slices_differ dense-pp0-tp1.safetensors: its sw.slices have 21 entries, for 20 of its 21 "
        "tensors\n"
        "layout_damaged dense-pp0-tp2.safetensors: has no sw.layout in its metadata\n"
        "layout_damaged dense-pp0-tp3.safetensors: sw.layout: byte 0: '[' where an object should "
        "stand\n");
}

/* merge would refuse it. */
static void parts_of_an_unknown_dtype_must_fit_together(void **state)
{
    static const char tensors[] = "m.opaque Q9_X 4x6\n";

    (void)state;
    make_model("m", "'architectures': ['Any'], 'model_type': 'any', 'hidden_size': 8", tensors, 1);
    scratch_text("o.yaml", "overrides:\n- match: m\n  params: {opaque: {tp: shard(0)}}\n", false);
    line_works("shard m --mesh tp=2 --overrides o.yaml -o s -q");
    scratch_remove("s/manifest.json");
    assert_string_equal(errors_of("s"), "no_checksums : s: no checksums recorded\n");
    scratch_edit("s/dense-pp0-tp1.safetensors", "\"data_offsets\":[0,36]", "\"data_offsets\":[0,48]");
    sw_buffer file = scratch_read("s/dense-pp0-tp1.safetensors");
    sw_buffer_append(&file, "twelve bytes", 12);
    scratch_bytes("s/dense-pp0-tp1.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    assert_non_null(strstr(errors_of("s"),
                           "parts_differ m.opaque: m.opaque: the bytes of its parts do not fit "
                           "together as Q9_X\n"));
    assert_int_equal(run_line("merge s -o x").exit, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup_inside, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CASE(metadata_that_are_missing_are_told),
        CASE(parts_of_an_unknown_dtype_must_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
