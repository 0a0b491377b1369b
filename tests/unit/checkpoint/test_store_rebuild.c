/*
 * A sharded folder whose manifest is gone: files of one run make a checkpoint, others never do, and verify
 * names every cause once.
 */
#include "checkpoint_case.h"

#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "checkpoint/format.h"
#include "command_line.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 2," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
// clang-format on

static void must_not(const char *line, const char *what)
{
    outcome o = run_line(line);

    if (o.exit == 0 || strstr(o.messages, what) == NULL)
        fail_msg("%s: exit %d, '%s' is not in '%s'", line, o.exit, what, o.messages);
}

static void copy_to(const char *from, const char *to)
{
    sw_buffer bytes = scratch_read(from);

    scratch_bytes(to, bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
}

/* "m" in "s" over tp=4, without a manifest. */
static void make_shards(void)
{
    make_model("m", LLAMA, NULL, 1);
    line_works("shard m --mesh tp=4 -o s -q");
    scratch_remove("s/manifest.json");
}

/* Errors of verify: "CODE NAME: WHAT\n" each, but for the checksums that are never there. */
static const char *faults_of(const char *folder)
{
    static char text[4096];
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    size_t n = 0;

    text[0] = '\0';
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    assert_int_not_equal(sw_checkpoint_verify(folder, NULL, &options, NULL, NULL), SW_OK);
    for (size_t i = 0; i < sw_report_count(options.report); i++) {
        const sw_finding *f = sw_report_finding(options.report, i);
        if (f->severity == SW_SEVERITY_ERROR && strcmp(f->code, "no_checksums") != 0)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s %s: %s\n", f->code, f->fqn, f->what);
    }
    sw_report_destroy(options.report);
    return text;
}

static void files_of_two_runs_are_not_mixed(void **state)
{
    (void)state;
    make_shards();
    sw_buffer model = scratch_read("m/model.safetensors");
    model.bytes[model.length - 1] ^= 1; /* the next step */
    scratch_bytes("m/model.safetensors", model.bytes, model.length);
    sw_buffer_clear(&model);
    line_works("shard m --mesh tp=4 -o next -q");
    copy_to("next/dense-pp0-tp2.safetensors", "s/dense-pp0-tp2.safetensors");
    must_not("merge s -o out",
             "dense-pp0-tp2.safetensors: was written by another run than dense-pp0-tp0.safetensors");
    must_not("reshard s --mesh tp=2 -o out", "was written by another run");
    assert_false(scratch_has("out"));
    assert_string_equal(faults_of("s"),
                        "file_foreign dense-pp0-tp2.safetensors: dense-pp0-tp2.safetensors: was "
                        "written by another run than dense-pp0-tp0.safetensors\n");
}

static void the_same_input_gives_the_same_run(void **state)
{
    (void)state;
    make_shards();
    line_works("shard m --mesh tp=4 -o again -q --threads 7");
    copy_to("again/dense-pp0-tp2.safetensors", "s/dense-pp0-tp2.safetensors");
    line_works("merge s -o out -q");
    expect_same_tensors("m", "out");
}

static void a_missing_file_is_one_finding(void **state)
{
    (void)state;
    make_shards();
    scratch_remove("s/dense-pp0-tp1.safetensors");
    scratch_remove("s/dense-pp0-tp3.safetensors");
    assert_string_equal(faults_of("s"),
                        "file_missing dense-pp0-tp1.safetensors: dense-pp0-tp1.safetensors: is "
                        "missing\n"
                        "file_missing dense-pp0-tp3.safetensors: dense-pp0-tp3.safetensors: is "
                        "missing\n");
    must_not("merge s -o out", "s/dense-pp0-tp1.safetensors: is missing");
    scratch_remove("s/plan.json"); /* then only gaps are seen, and what no file holds */
    assert_non_null(strstr(faults_of("s"), "file_missing dense-pp0-tp1.safetensors"));
    must_not("merge s -o out", "is missing");
}

static void a_missing_file_of_experts_is_told(void **state)
{
    (void)state;
    make_model("e",
               "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': 16,"
               "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 2,"
               "'intermediate_size': 24, 'num_local_experts': 4, 'num_experts_per_tok': 2, 'vocab_size': 40,"
               "'torch_dtype': 'bfloat16'",
               NULL, 1);
    line_works("shard e --mesh tp=2,dp=2 --ep 4 -o s -q");
    scratch_remove("s/manifest.json");
    line_works("merge s -o out -q");
    expect_same_tensors("e", "out");
    scratch_remove("s/expert-pp0-ep2.safetensors");
    assert_string_equal(faults_of("s"),
                        "file_missing expert-pp0-ep2.safetensors: expert-pp0-ep2.safetensors: is "
                        "missing\n");
}

static void every_bad_file_is_told_in_one_run(void **state)
{
    (void)state;
    make_shards();
    scratch_text("s/dense-pp0-tp0.safetensors", "not this", false);
    scratch_edit("s/dense-pp0-tp2.safetensors", "\"sw.slices\"", "\"sw.slice_\"");
    copy_to("s/dense-pp0-tp1.safetensors", "s/dense-pp0-tp1 (copy).safetensors");
    copy_to("s/dense-pp0-tp1.safetensors", "s/dense-pp0-tp3.safetensors");
    copy_to("m/model.safetensors", "s/adapter.safetensors");
    const char *said = faults_of("s");
    static const char *const wanted[] = {
        "file_damaged dense-pp0-tp0.safetensors: ",
        "file_damaged dense-pp0-tp2.safetensors: dense-pp0-tp2.safetensors: has no sw.slices in its "
        "metadata\n",
        "file_foreign dense-pp0-tp3.safetensors: dense-pp0-tp3.safetensors: is the file of pp=0,tp=1\n",
        "file_duplicate dense-pp0-tp1 (copy).safetensors: is the file of pp=0,tp=1 once more, besides "
        "dense-pp0-tp1.safetensors\n",
        "file_extra adapter.safetensors: is not named as a file of a sharded folder is\n",
    };
    size_t n_lines = 0;
    for (size_t i = 0; i < SW_COUNT(wanted); i++) {
        if (strstr(said, wanted[i]) == NULL)
            fail_msg("'%s' is not in '%s'", wanted[i], said);
    }
    for (const char *c = said; *c != '\0'; c++)
        n_lines += *c == '\n';
    assert_int_equal(n_lines, SW_COUNT(wanted));
}

static void more_than_ten_ranks_stand_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    make_model("m", "'architectures': ['Any'], 'model_type': 'any', 'hidden_size': 8", "m.w BF16 24x3\n", 1);
    scratch_text("o.yaml", "overrides:\n- match: m\n  params: {w: {tp: shard(0)}}\n", false);
    line_works("shard m --mesh tp=12 --overrides o.yaml -o s -q");
    scratch_remove("s/manifest.json");
    outcome o = run_line("ls s");
    const char *second = strstr(o.out, "dense-pp0-tp2.safetensors");
    const char *tenth = strstr(o.out, "dense-pp0-tp10.safetensors");
    assert_true(second != NULL && tenth != NULL && second < tenth);
    line_works("verify s --against m -q");
}

static void names_of_files_are_read_as_they_are_written(void **state)
{
    static const char *const wrong[] = {
        "dense-pp0.safetensors",       "dense-pp00-tp1.safetensors",
        "dense-pp0-tp1.safetensors.1", "expert-pp0-tp1.safetensors",
        "dense-pp0-ep1.safetensors",   "dense-pp0-tp1 (copy).safetensors",
        "model.safetensors",           "dense-pp0-tp99999999999.safetensors",
        "dense-pp0-tp-1.safetensors",
    };
    sw_coord coord;

    (void)state;
    for (size_t i = 0; i < SW_COUNT(wrong); i++)
        assert_false(sw_coord_of_file_name(&coord, wrong[i]));
    assert_true(sw_coord_of_file_name(&coord, "dense-pp1-tp2-ep34.safetensors"));
    assert_true(coord.pp == 1 && coord.tp == 2 && coord.ep == 34);
    assert_true(sw_coord_of_file_name(&coord, "expert-pp0-ep3.safetensors"));
    assert_true(coord.pp == 0 && coord.tp == -1 && coord.ep == 3);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup_inside, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CASE(files_of_two_runs_are_not_mixed),
        CASE(the_same_input_gives_the_same_run),
        CASE(a_missing_file_is_one_finding),
        CASE(a_missing_file_of_experts_is_told),
        CASE(every_bad_file_is_told_in_one_run),
        CASE(more_than_ten_ranks_stand_in_the_order_of_their_numbers),
        CASE(names_of_files_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
