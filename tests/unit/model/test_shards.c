/*
 * Checkpoints in several files: any file names, an index that agrees with the headers, says too much, too
 * little or something else, and files that are not all there.
 */
#include "model/shards.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus.h"
#include "model_folder.h"

static const char llama[] =
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': "
    "1,"
    " 'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24, 'vocab_size': 4,"
    " 'tie_word_embeddings': true, 'torch_dtype': 'bfloat16'}";

static const char two_names[] = "model.embed_tokens.weight F16 4x16\nmodel.norm.weight F16 16\n";

static int setup(void **state)
{
    int failed = folder_setup(state);
    if (failed == 0)
        folder_json("config.json", llama);
    return failed;
}

static void check_listing(const char *listing)
{
    sw_model *model = folder_open("");
    assert_string_equal(folder_listing(model), listing);
    assert_int_equal(model->n_remarks, 0);
    sw_model_close(model);
}

/* ---- file names ---- */

static void files_are_read_whatever_their_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"model-00001-of-00002.safetensors",             "model-00002-of-00002.safetensors"            },
        {"model.safetensors-00001-of-00002.safetensors", "model.safetensors-00002-of-00002.safetensors"},
        {"b.safetensors",                                "a.safetensors"                               },
        {"model 1.safetensors",                          "m\xc3\xb6"
                                "del%s.safetensors"                     },
        {"consolidated.00.safetensors",                  "adapter.safetensors"                         },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char index[600];
        folder_tensors(names[i][0], "model.norm.weight F16 16\n");
        folder_tensors(names[i][1], "model.embed_tokens.weight F16 4x16\n");
        check_listing(two_names);
        if (strchr(names[i][0], ' ') == NULL) { /* a line of the index is cut at blanks */
            (void)snprintf(index, sizeof index, "model.norm.weight %s\nmodel.embed_tokens.weight %s\n",
                           names[i][0], names[i][1]);
            folder_index(index);
            check_listing(two_names);
            assert_int_equal(remove(folder_path("model.safetensors.index.json")), 0);
        }
        assert_int_equal(remove(folder_path(names[i][0])), 0);
        assert_int_equal(remove(folder_path(names[i][1])), 0);
    }
}

static void a_name_that_counts_files_tells_of_those_that_are_missing(void **state)
{
    (void)state;
    folder_tensors("model-00001-of-00003.safetensors", "model.norm.weight F16 16\n");
    folder_tensors("model-00003-of-00003.safetensors", "model.embed_tokens.weight F16 4x16\n");
    folder_tensors("other-of-9.safetensors", "lm_head.weight F16 4x16\n"); /* counts nothing */
    sw_model *model = folder_open("");
    assert_int_equal(model->n_remarks, 1);
    assert_string_equal(model->remarks[0].code, "files_missing");
    assert_int_equal(model->remarks[0].severity, SW_SEVERITY_WARNING);
    assert_non_null(
        strstr(model->remarks[0].what, "1 of 3 files are missing beside model-00001-of-00003.safetensors"));
    sw_model_close(model);
}

static void an_index_may_name_files_without_the_usual_ending(void **state)
{
    (void)state;
    folder_index("model.norm.weight weights_0\nmodel.embed_tokens.weight .part.1\n");
    folder_tensors("weights_0", "model.norm.weight F16 16\n");
    folder_tensors(".part.1", "model.embed_tokens.weight F16 4x16\n");
    check_listing(two_names);
}

static void a_tensor_in_two_files_is_refused_with_both(void **state)
{
    (void)state;
    folder_tensors("a.safetensors", "model.norm.weight F16 16\n");
    folder_tensors("b.safetensors", "model.norm.weight F16 16\n");
    folder_refused("", SW_E_FORMAT, "tensor 'model.norm.weight' stands in ", "remove the stale file");
    folder_refused("", SW_E_FORMAT, "/a.safetensors and in ", "");
    folder_refused("", SW_E_FORMAT, "/b.safetensors", "");
    folder_index("model.norm.weight a.safetensors\nmodel.embed_tokens.weight b.safetensors\n");
    folder_refused("", SW_E_FORMAT, "tensor 'model.norm.weight' stands in ", "remove the stale file");
}

/* ---- an index and its files ---- */

static void missing_files_are_listed_with_what_they_hold(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\nmodel.embed_tokens.weight b.safetensors\n"
                 "lm_head.weight b.safetensors\nextra.weight c.safetensors\n");
    folder_tensors("a.safetensors", "model.norm.weight F16 16\n");
    folder_refused(
        "", SW_E_FORMAT,
        "2 of 3 files are missing, with 3 tensors: b.safetensors (2: model.embed_tokens.weight ...), "
        "c.safetensors (1: extra.weight)",
        "download the missing files");
}

static void of_many_missing_files_the_first_are_listed(void **state)
{
    (void)state;
    char lines[2048] = "";
    size_t used = 0;
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used, "t%02d.weight f%02d.safetensors\n", i, i);
    folder_index(lines);
    folder_tensors("f39.safetensors", "t39.weight F16 16\n");
    folder_refused(
        "", SW_E_FORMAT,
        "39 of 40 files are missing, with 39 tensors: f00.safetensors (1: t00.weight), f01.safetensors "
        "(1: t01.weight), f02.safetensors (1: t02.weight), ...",
        "download the missing files");
}

static void a_long_list_of_missing_files_stays_one_line(void **state)
{
    (void)state;
    char lines[4096] = "";
    char name[260];
    size_t used = 0;
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 4; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used, "%.200s%d %.230s%d\n", name, i, name, i);
    folder_index(lines);
    (void)snprintf(lines, sizeof lines, "%.230s3", name);
    folder_tensors(lines, "t.weight F16 16\n");
    folder_refused("", SW_E_FORMAT, "3 of 4 files are missing, with 3 tensors: nnn",
                   "download the missing files");
}

static void a_file_that_lacks_a_tensor_of_the_index_is_refused(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\nmtp.fc.weight a.safetensors\n");
    folder_tensors("a.safetensors", "model.norm.weight F16 16\n");
    folder_refused("", SW_E_FORMAT,
                   "mtp.fc.weight is not in a.safetensors (1 names of the index are in no file)",
                   "download the file again");
}

static void a_tensor_in_another_file_than_the_index_says_is_refused(void **state)
{
    (void)state;
    folder_index(
        "model.norm.weight a.safetensors\nmtp.fc.weight b.safetensors\nlm_head.weight b.safetensors\n");
    folder_tensors("a.safetensors", "model.norm.weight F16 16\nmtp.fc.weight F16 16x16\n");
    folder_tensors("b.safetensors", "lm_head.weight F16 16x16\n");
    folder_refused("", SW_E_FORMAT, "mtp.fc.weight is in a.safetensors, the index says b.safetensors",
                   "write the index again");
}

static void tensors_that_the_index_omits_are_kept_and_remarked(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\n");
    folder_tensors("a.safetensors",
                   "model.norm.weight F16 16\nmtp.fc.weight F16 16x16\nmtp.norm.weight F16 16\n");
    sw_model *model = folder_open("");
    assert_int_equal(sw_model_param_count(model), 3);
    const sw_finding *remark = folder_remark(model, "index_omits");
    assert_non_null(remark);
    assert_int_equal(remark->severity, SW_SEVERITY_WARNING);
    assert_string_equal(remark->fqn, "mtp.fc.weight");
    assert_string_equal(remark->what,
                        "2 tensors stand in the files and not in model.safetensors.index.json, the first "
                        "in a.safetensors");
    assert_non_null(strstr(remark->help, "write the index again"));
    assert_int_equal(model->n_remarks, 1);
    sw_model_close(model);
}

static void files_that_the_index_does_not_name_are_remarked_and_not_read(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\nmodel.embed_tokens.weight a.safetensors\n");
    folder_tensors("a.safetensors", two_names);
    folder_tensors("consolidated.safetensors", "norm.weight F16 16\n");
    folder_bytes("stale.safetensors", "not even a header", 17);
    sw_model *model = folder_open("");
    assert_string_equal(folder_listing(model), two_names);
    const sw_finding *remark = folder_remark(model, "file_unlisted");
    assert_non_null(remark);
    assert_int_equal(remark->severity, SW_SEVERITY_WARNING);
    assert_string_equal(remark->what,
                        "2 files beside model.safetensors.index.json are not in it and are not read, the "
                        "first is consolidated.safetensors");
    sw_model_close(model);
}

/* merge writes them beside the model, and shard reads them. */
static void files_of_optimizer_state_are_not_left_over(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\nmodel.embed_tokens.weight a.safetensors\n");
    folder_tensors("a.safetensors", two_names);
    folder_tensors("optimizer-00001-of-00001.safetensors", "optim.m.model.norm.weight F32 16\n");
    sw_model *model = folder_open("");
    assert_null(folder_remark(model, "file_unlisted"));
    sw_model_close(model);
    folder_tensors("norm.safetensors", "norm.weight F16 16\n");
    model = folder_open("");
    assert_string_equal(folder_remark(model, "file_unlisted")->what,
                        "1 file beside model.safetensors.index.json is not in it and is not read: "
                        "norm.safetensors");
    sw_model_close(model);
}

static void a_folder_under_the_name_of_a_file_is_refused(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\n");
    assert_int_equal(mkdir(folder_path("a.safetensors"), 0700), 0);
    folder_refused("", SW_E_FORMAT, "a.safetensors: is a folder, not a file", "put the file itself there");
}

static void names_that_leave_the_folder_are_refused(void **state)
{
    (void)state;
    folder_json("model.safetensors.index.json", "{'weight_map': {'a': '../a.safetensors'}}");
    folder_refused("", SW_E_FORMAT, "'../a.safetensors' is not a plain file name", "by plain names");
}

/* ---- an index alone ---- */

static void an_index_alone_gets_its_shapes_from_the_table(void **state)
{
    (void)state;
    folder_index("model.norm.weight a.safetensors\nmodel.embed_tokens.weight b.safetensors\n"
                 "model.layers.0.self_attn.k_proj.weight b.safetensors\nmodel.odd.weight b.safetensors\n");
    sw_model *model = folder_open("model.safetensors.index.json");
    assert_string_equal(folder_listing(model), "model.embed_tokens.weight BF16 4x16\n"
                                               "model.layers.0.self_attn.k_proj.weight BF16 8x16\n"
                                               "model.norm.weight BF16 16\n"
                                               "model.odd.weight ? ?\n");
    assert_false(model->has_shapes);
    assert_int_equal(model->n_remarks, 0);
    sw_model_close(model);
}

static void an_index_alone_without_a_config_has_no_shapes_and_says_why(void **state)
{
    (void)state;
    assert_int_equal(remove(folder_path("config.json")), 0);
    folder_index("model.norm.weight a.safetensors\n");
    sw_model *model = folder_open("");
    assert_string_equal(folder_listing(model), "model.norm.weight ? ?\n");
    const sw_finding *remark = folder_remark(model, "no_shapes");
    assert_non_null(remark);
    assert_int_equal(remark->severity, SW_SEVERITY_NOTE);
    assert_non_null(strstr(remark->what, "no family is known"));
    sw_model_close(model);
}

static void an_index_of_packed_weights_gets_no_shapes_from_the_table(void **state)
{
    (void)state;
    folder_json("config.json",
                "{'architectures': ['LlamaForCausalLM'], 'hidden_size': 16, 'num_hidden_layers': 1,"
                " 'num_attention_heads': 4, 'intermediate_size': 24, 'vocab_size': 4,"
                " 'quantization_config': {'quant_method': 'bitsandbytes', 'load_in_4bit': true}}");
    folder_index("model.layers.0.self_attn.q_proj.weight a.safetensors\n");
    sw_model *model = folder_open("");
    assert_string_equal(folder_listing(model), "model.layers.0.self_attn.q_proj.weight ? ?\n");
    assert_non_null(folder_remark(model, "no_shapes"));
    sw_model_close(model);
}

static void copy_config(const char *model)
{
    char path[512];
    corpus_path(path, sizeof path, model, "config.json");
    sw_file_map map = corpus_open(path);
    folder_bytes("config.json", map.bytes, map.n_bytes);
    sw_file_map_close(&map);
}

/* The names of `real` as an index of 163 files, none of them there. */
static void write_index_of(const sw_tensor_list *real)
{
    FILE *file = fopen(folder_path("model.safetensors.index.json"), "w");
    assert_non_null(file);
    (void)fputs("{\"metadata\": {\"total_size\": 688586727753}, \"weight_map\": {", file);
    for (size_t i = 0; i < real->n_tensors; i++)
        (void)fprintf(file, "%s\"%s\": \"model-%05zu-of-00163.safetensors\"", i == 0 ? "" : ",\n",
                      real->tensors[i].name, i % 163 + 1);
    (void)fputs("}}", file);
    assert_int_equal(fclose(file), 0);
}

static void the_index_of_a_real_fp8_model_is_enough(void **state)
{
    (void)state;
    sw_tensor_list real = {0};
    copy_config("deepseek-v3");
    corpus_params(&real, "deepseek-v3");
    write_index_of(&real);
    sw_model *model = folder_open("");
    assert_int_equal(sw_model_param_count(model), real.n_tensors);
    assert_true(model->has_shapes);
    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        const sw_tensor_entry *want = sw_tensor_list_find(&real, t->name, t->name_length);
        if (t->dtype != want->dtype || t->shape->n_dims != want->shape->n_dims ||
            memcmp(t->shape->dims, want->shape->dims, t->shape->n_dims * sizeof *t->shape->dims) != 0)
            fail_msg("%s has another shape or dtype than in the checkpoint", t->name);
    }
    sw_model_close(model);
    sw_tensor_list_clear(&real);
}

static void an_index_of_very_many_files_is_refused(void **state)
{
    (void)state;
    FILE *file = fopen(folder_path("model.safetensors.index.json"), "w");
    assert_non_null(file);
    (void)fputs("{\"weight_map\": {", file);
    for (int i = 0; i <= SW_MAX_SHARDS; i++)
        (void)fprintf(file, "%s\"%d\": \"%d\"", i == 0 ? "" : ",", i, i);
    (void)fputs("}}", file);
    assert_int_equal(fclose(file), 0);
    folder_refused("", SW_E_LIMIT, "names 100001 files, at most 100000", "check that this is an index");
}

/* ---- listing ---- */

static void files_are_listed_in_the_order_of_their_names(void **state)
{
    (void)state;
    sw_shards shards = {0};
    folder_bytes("b.safetensors", "", 0);
    folder_bytes("a.safetensors", "", 0);
    folder_bytes("a.safetensors.tmp", "", 0);
    folder_bytes(".a.safetensors", "", 0);
    folder_bytes(".safetensors", "", 0);
    assert_int_equal(sw_shards_list(&shards, folder_path(""), NULL), SW_OK);
    assert_int_equal(shards.n_names, 2);
    assert_string_equal(shards.names[0], "a.safetensors");
    assert_string_equal(shards.names[1], "b.safetensors");
    sw_shards_clear(&shards);
    sw_shards_clear(&shards);
    sw_error err = {0};
    assert_int_equal(sw_shards_list(&shards, folder_path("absent"), &err), SW_E_IO);
    assert_non_null(strstr(err.what, "absent: cannot read the folder: No such file or directory"));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(files_are_read_whatever_their_names),
        IN_FOLDER(a_name_that_counts_files_tells_of_those_that_are_missing),
        IN_FOLDER(an_index_may_name_files_without_the_usual_ending),
        IN_FOLDER(a_tensor_in_two_files_is_refused_with_both),
        IN_FOLDER(missing_files_are_listed_with_what_they_hold),
        IN_FOLDER(of_many_missing_files_the_first_are_listed),
        IN_FOLDER(a_long_list_of_missing_files_stays_one_line),
        IN_FOLDER(a_file_that_lacks_a_tensor_of_the_index_is_refused),
        IN_FOLDER(a_tensor_in_another_file_than_the_index_says_is_refused),
        IN_FOLDER(tensors_that_the_index_omits_are_kept_and_remarked),
        IN_FOLDER(files_that_the_index_does_not_name_are_remarked_and_not_read),
        IN_FOLDER(files_of_optimizer_state_are_not_left_over),
        IN_FOLDER(a_folder_under_the_name_of_a_file_is_refused),
        IN_FOLDER(names_that_leave_the_folder_are_refused),
        IN_FOLDER(an_index_alone_gets_its_shapes_from_the_table),
        IN_FOLDER(an_index_alone_without_a_config_has_no_shapes_and_says_why),
        IN_FOLDER(an_index_of_packed_weights_gets_no_shapes_from_the_table),
        IN_FOLDER(the_index_of_a_real_fp8_model_is_enough),
        IN_FOLDER(an_index_of_very_many_files_is_refused),
        IN_FOLDER(files_are_listed_in_the_order_of_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
