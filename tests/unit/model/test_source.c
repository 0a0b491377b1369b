/*
 * What MODEL may be, and what is said of everything that is none of it. Every refusal names the path, says
 * what is there and what to do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "corpus.h"
#include "model_folder.h"

/* 1 layer, 4 heads of 4, 2 kv heads, 4 vocabulary rows. */
static const char llama[] =
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': "
    "1,"
    " 'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24, 'vocab_size': 4,"
    " 'tie_word_embeddings': true, 'torch_dtype': 'bfloat16'}";

static const char llama_listing[] = "model.embed_tokens.weight BF16 4x16\n"
                                    "model.layers.0.self_attn.q_proj.weight BF16 16x16\n"
                                    "model.layers.0.self_attn.k_proj.weight BF16 8x16\n"
                                    "model.layers.0.self_attn.v_proj.weight BF16 8x16\n"
                                    "model.layers.0.self_attn.o_proj.weight BF16 16x16\n"
                                    "model.layers.0.mlp.gate_proj.weight BF16 24x16\n"
                                    "model.layers.0.mlp.up_proj.weight BF16 24x16\n"
                                    "model.layers.0.mlp.down_proj.weight BF16 16x24\n"
                                    "model.layers.0.input_layernorm.weight BF16 16\n"
                                    "model.layers.0.post_attention_layernorm.weight BF16 16\n"
                                    "model.norm.weight BF16 16\n";

static void check_listing(const char *name, const char *listing)
{
    sw_model *model = folder_open(name);
    assert_string_equal(folder_listing(model), listing);
    sw_model_close(model);
}

/* ---- kinds ---- */

static void a_config_alone_gives_names_and_shapes_of_its_family(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    check_listing("", llama_listing);
    check_listing("config.json", llama_listing);
}

static void a_config_with_a_list_of_parameters_takes_the_list(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    folder_tsv("model.norm.weight F32 16\nmodel.embed_tokens.weight F32 4x16\n");
    check_listing("", "model.embed_tokens.weight F32 4x16\nmodel.norm.weight F32 16\n");
    check_listing("params.tsv", "model.embed_tokens.weight F32 4x16\nmodel.norm.weight F32 16\n");
    check_listing("config.json", llama_listing); /* the config itself means the config alone */
}

static void headers_win_over_everything_else(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    folder_tsv("model.norm.weight F32 16\n");
    folder_tensors("model.safetensors", "model.norm.weight F16 16\nmodel.embed_tokens.weight F16 4x16\n");
    check_listing("", "model.embed_tokens.weight F16 4x16\nmodel.norm.weight F16 16\n");
}

static void a_tensor_file_is_read_with_the_config_beside_it(void **state)
{
    (void)state;
    folder_tensors("any-name.safetensors", "model.norm.weight F16 16\n");
    sw_model *model = folder_open("any-name.safetensors");
    assert_string_equal(folder_listing(model), "model.norm.weight F16 16\n");
    assert_string_equal(sw_model_architecture(model), "");
    assert_string_equal(sw_model_type(model), "");
    assert_null(model->family);
    sw_model_close(model);

    folder_json("config.json", llama);
    model = folder_open("any-name.safetensors");
    assert_string_equal(sw_model_architecture(model), "llama");
    assert_string_equal(model->family->name, "llama");
    int64_t heads = 0;
    assert_true(sw_model_attribute(model, SW_ATTR_HEADS, &heads));
    assert_int_equal(heads, 4);
    sw_model_close(model);
}

static void a_bare_file_name_means_the_current_folder(void **state)
{
    (void)state;
    char here[4096];
    folder_json("config.json", llama);
    folder_tensors("one.safetensors", "model.norm.weight F16 16\n");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder_path("")), 0);
    sw_model *model = NULL;
    sw_error err = {0};
    sw_status status = sw_model_open(&model, "one.safetensors", &err);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(status, SW_OK);
    assert_string_equal(sw_model_architecture(model), "llama");
    sw_model_close(model);
}

static void an_architecture_without_a_table_is_named(void **state)
{
    (void)state;
    folder_json("config.json", "{'architectures': ['NewNetForCausalLM'], 'model_type': 'newnet'}");
    folder_refused("", SW_E_FORMAT, "no family is known for architecture \"NewNetForCausalLM\"",
                   "params.tsv");
    folder_tensors("model.safetensors", "model.norm.weight F16 16\n");
    sw_model *model = folder_open("");
    assert_string_equal(sw_model_architecture(model), "newnet");
    assert_string_equal(sw_model_type(model), "newnet");
    sw_model_close(model);
}

static void the_model_type_names_an_architecture_that_the_config_leaves_out(void **state)
{
    (void)state;
    folder_json("config.json", "{'model_type': 'qwen2_moe', 'hidden_size': 16}");
    folder_tensors("model.safetensors", "model.norm.weight F16 16\n");
    sw_model *model = folder_open("");
    assert_string_equal(sw_model_architecture(model), "qwen2moe");
    assert_string_equal(sw_model_type(model), "qwen2_moe");
    sw_model_close(model);
}

static void numbers_of_a_nested_config_are_found(void **state)
{
    (void)state;
    folder_json("config.json",
                "{'architectures': ['NewVisionForConditionalGeneration'], 'model_type': 'newvision',"
                " 'text_config': {'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 1,"
                " 'num_attention_heads': 4, 'intermediate_size': 24, 'vocab_size': 4}}");
    folder_tensors("model.safetensors", "language_model.model.layers.0.self_attn.q_proj.weight F16 16x16\n");
    sw_model *model = folder_open("");
    int64_t heads = 0;
    assert_true(sw_model_attribute(model, SW_ATTR_HEADS, &heads));
    assert_int_equal(heads, 4);
    assert_string_equal(model->family->name, "llama");
    assert_non_null(model->patterns[0].row); /* the prefix is recognised */
    assert_int_equal(model->patterns[0].prefix_cut, strlen("language_model."));
    sw_model_close(model);
    assert_int_equal(remove(folder_path("model.safetensors")), 0);
    folder_refused("", SW_E_FORMAT, "no family is known",
                   "safetensors"); /* the tower's names do not follow */
}

/* ---- what is none of them ---- */

static void a_path_without_anything_is_refused(void **state)
{
    (void)state;
    folder_refused("absent", SW_E_FORMAT, "no such file or folder", "check the path");
    folder_refused("absent/config.json", SW_E_FORMAT, "no such file or folder", "check the path");
}

static void a_folder_without_a_model_says_what_was_looked_for(void **state)
{
    (void)state;
    folder_refused("", SW_E_FORMAT, "neither config.json nor *.safetensors nor their index",
                   "give a Hugging Face folder");
    folder_bytes("README.md", "x", 1);
    folder_bytes(".model.safetensors", "x", 1); /* hidden: the start of a copy, or a desktop's own file */
    folder_refused("", SW_E_FORMAT, "neither config.json nor *.safetensors nor their index",
                   "give a Hugging Face folder");
}

static void a_list_without_a_config_is_not_a_model_by_itself(void **state)
{
    (void)state;
    folder_tsv("model.norm.weight F32 16\n");
    sw_model *model = folder_open("");
    assert_null(model->family);
    sw_model_close(model);
}

static void a_file_of_another_kind_is_refused_by_its_name(void **state)
{
    (void)state;
    folder_bytes("pytorch_model.bin", "PK", 2);
    folder_refused("pytorch_model.bin", SW_E_FORMAT, "no model is read from a file of this name",
                   "a config.json");
}

static void pipes_and_sockets_are_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(folder_path("model.safetensors"), 0600), 0);
    folder_refused("model.safetensors", SW_E_FORMAT, "is a pipe, socket or device", "regular file");
    folder_json("config.json", llama);
    folder_refused("", SW_E_FORMAT, "model.safetensors: is a pipe, socket or device, not a file",
                   "take this away");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", folder_path("socket"));
    int file = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (const struct sockaddr *)&address, sizeof address), 0);
    folder_refused("socket", SW_E_FORMAT, "is a pipe, socket or device", "regular file");
    assert_int_equal(close(file), 0);
}

static void folders_in_the_place_of_files_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "params.tsv", "model.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char expected[128];
        if (i > 0)
            folder_json("config.json", llama);
        assert_int_equal(mkdir(folder_path(names[i]), 0700), 0);
        (void)snprintf(expected, sizeof expected, "%s: is a folder, not a file", names[i]);
        folder_refused("", SW_E_FORMAT, expected, "put the file itself there");
        assert_int_equal(rmdir(folder_path(names[i])), 0);
    }
}

/* Root may read everything: as root, ask as somebody else. */
static void refused_to_others(const char *what)
{
    sw_model *model = NULL;
    sw_error err = {0};
    bool is_root = geteuid() == 0;

    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    sw_status status = sw_model_open(&model, folder_path(""), &err);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, SW_E_IO);
    assert_non_null(strstr(err.what, what));
    assert_non_null(strstr(err.help, "permissions"));
}

static void what_may_not_be_read_names_the_reason(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    assert_int_equal(chmod(folder_path("config.json"), 0), 0);
    assert_int_equal(chmod(folder_path(""), 0755), 0);
    refused_to_others("config.json: cannot open: Permission denied");
    assert_int_equal(chmod(folder_path(""), 0311), 0);
    refused_to_others("cannot read the folder: Permission denied");
    assert_int_equal(chmod(folder_path(""), 0700), 0);
}

static void a_link_that_leads_nowhere_is_named(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    assert_int_equal(symlink("../../blobs/0123", folder_path("model.safetensors")), 0);
    folder_refused("", SW_E_FORMAT, "model.safetensors: cannot open: No such file or directory",
                   "check the path");
}

/* A link to nowhere is no absent file: what it stood for is missing, as after an interrupted download. */
static void a_link_to_nowhere_does_not_pass_for_an_absent_file(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "params.tsv", "model.safetensors.index.json"};
    char what[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (i > 0)
            folder_json("config.json", llama);
        assert_int_equal(symlink("nowhere", folder_path(names[i])), 0);
        (void)snprintf(what, sizeof what, "%s: cannot open: No such file or directory", names[i]);
        folder_refused("", SW_E_FORMAT, what, "check the path");
        assert_int_equal(remove(folder_path(names[i])), 0);
        assert_int_equal(symlink(names[i], folder_path(names[i])), 0);
        (void)snprintf(what, sizeof what, "%s: cannot open: Too many levels of symbolic links", names[i]);
        folder_refused("", SW_E_FORMAT, what, "check the path");
        assert_int_equal(remove(folder_path(names[i])), 0);
    }
    assert_int_equal(symlink("loop", folder_path("loop")), 0);
    folder_refused("loop", SW_E_FORMAT, "loop: cannot open: Too many levels of symbolic links",
                   "check the path");
}

static void a_shard_that_links_to_nowhere_does_not_pass_for_an_index_alone(void **state)
{
    (void)state;
    folder_json("config.json", llama);
    folder_index("model.norm.weight a.safetensors\n");
    assert_int_equal(symlink("../../blobs/0123", folder_path("a.safetensors")), 0);
    folder_refused("", SW_E_FORMAT, "a.safetensors: cannot open: No such file or directory",
                   "check the path");
}

static void pointers_of_git_lfs_are_recognised(void **state)
{
    (void)state;
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4976698672\n";
    static const char *const names[] = {"config.json", "params.tsv", "model.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        folder_json("config.json", llama);
        folder_bytes(names[i], pointer, sizeof pointer - 1);
        folder_refused("", SW_E_FORMAT, "is a Git LFS pointer", "git lfs pull");
        assert_int_equal(remove(folder_path(names[i])), 0);
    }
}

static void empty_files_are_refused(void **state)
{
    (void)state;
    folder_bytes("config.json", "", 0);
    folder_refused("", SW_E_FORMAT, "config.json: line 1", "correct the file");
    folder_json("config.json", llama);
    folder_bytes("params.tsv", "", 0);
    folder_refused("", SW_E_FORMAT, "holds no tensor", "give a model with parameters");
    folder_bytes("model.safetensors.index.json", "", 0);
    folder_refused("", SW_E_FORMAT, "model.safetensors.index.json", "");
    assert_int_equal(remove(folder_path("model.safetensors.index.json")), 0);
    folder_bytes("model.safetensors", "", 0);
    folder_refused("", SW_E_FORMAT, "0 bytes are too few for a safetensors file", "copy or download");
    folder_tensors("model.safetensors", "");
    folder_refused("", SW_E_FORMAT, "holds no tensor", "give a model with parameters");
}

static void another_json_file_is_not_a_config(void **state)
{
    (void)state;
    folder_json("tokenizer.json", "{'version': '1.0', 'model': {'type': 'BPE'}}");
    folder_refused("tokenizer.json", SW_E_FORMAT, "tokenizer.json: no family is known for architecture \"\"",
                   "");
}

static void a_config_of_absurd_size_is_refused_without_writing_its_names(void **state)
{
    (void)state;
    folder_json("config.json",
                "{'architectures': ['LlamaForCausalLM'], 'hidden_size': 16, 'num_hidden_layers': 900000,"
                " 'num_attention_heads': 4, 'intermediate_size': 24, 'vocab_size': 4}");
    folder_refused("", SW_E_LIMIT, "the config describes more than 1000000 parameters",
                   "check the numbers of the config");
}

static void more_layers_than_can_be_planned_are_refused(void **state)
{
    (void)state;
    folder_json("config.json", "{'architectures': ['LlamaForCausalLM'], 'num_hidden_layers': 4294967297}");
    folder_tensors("model.safetensors", "model.norm.weight F16 16\n");
    folder_refused("", SW_E_LIMIT, "4294967297 layers, at most 1000000 are planned", "config.json");
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    uint64_t n_failed = 0;
    uint64_t n_read = 0;
    folder_json("config.json", llama);
    folder_index("model.norm.weight a.safetensors\nmodel.layers.0.experts.1.w.0.weight b.safetensors\n");
    folder_tensors("a.safetensors", "model.norm.weight F16 16\nextra.weight F16 2\n");
    folder_tensors("b.safetensors", "model.layers.0.experts.1.w.0.weight F16 4x4\n");
    folder_tensors("c.safetensors", "left.over F16 4x4\n");
    const char *path = folder_path("");
    for (uint64_t n = 1; n_read < 50;
         n++) { /* an array that cannot be made smaller is kept: go on for a while */
        sw_model *model = NULL;
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_model_open(&model, path, &err);
        sw_alloc_fail_at(0);
        if (status == SW_OK) {
            n_read++;
            assert_int_equal(model->n_remarks, 2);
        } else {
            n_failed++;
            n_read = 0;
            assert_int_equal(status, SW_E_NO_MEMORY);
            assert_int_equal(err.status, SW_E_NO_MEMORY);
            assert_null(model);
        }
        sw_model_close(model);
        assert_int_equal(sw_alloc_live(), live);
    }
    assert_true(n_failed > 30);
}

static void a_name_cannot_be_had_without_memory_for_a_config_alone(void **state)
{
    (void)state;
    uint64_t n_failed = 0;
    folder_json("config.json", llama);
    const char *path = folder_path("");
    for (uint64_t n = 1, n_read = 0; n_read < 20; n++) {
        sw_model *model = NULL;
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_model_open(&model, path, NULL);
        sw_alloc_fail_at(0);
        assert_true(status == SW_OK || status == SW_E_NO_MEMORY);
        n_failed += status != SW_OK;
        n_read = status == SW_OK ? n_read + 1 : 0;
        sw_model_close(model);
        assert_int_equal(sw_alloc_live(), live);
    }
    assert_true(n_failed > 20);
}

/* ---- real files ---- */

static void a_dtype_that_is_not_known_is_remarked(void **state)
{
    (void)state;
    folder_tensors("a.safetensors", "x BF16 4\ny BF17 4\nz Q9_X 4\n");
    sw_model *model = folder_open("a.safetensors");
    const sw_finding *remark = folder_remark(model, "dtype_unknown");
    assert_non_null(remark);
    assert_int_equal(remark->severity, SW_SEVERITY_WARNING);
    assert_string_equal(remark->fqn, "y");
    assert_string_equal(remark->what, "the dtype 'BF17' is not known (2 tensors of such)");
    sw_model_close(model);
    folder_tensors("b.safetensors", "x BF16 4\n");
    model = folder_open("b.safetensors");
    assert_null(folder_remark(model, "dtype_unknown"));
    sw_model_close(model);
}

static void check_weights(const char *model_path, size_t n_params, uint64_t elements)
{
    char name[128];
    char path[600];
    sw_model *model = NULL;
    sw_error err = {0};

    (void)snprintf(name, sizeof name, "weights/%s", model_path);
    need_shared(name);
    shared_path(path, sizeof path, name);
    if (sw_model_open(&model, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(sw_model_param_count(model), n_params);
    assert_int_equal(sw_model_elements(model), elements);
    assert_int_equal(model->n_remarks, 0);
    sw_model_close(model);
}

static void real_checkpoints_are_read(void **state)
{
    (void)state;
    check_weights("stories260K-hf", 47, 260032);
    check_weights("stories260K-hf/model.safetensors", 47, 260032);
    check_weights("stories260K-hf-bf16-3shards", 47, 260032);
    check_weights("stories260K-hf-bf16-3shards/model.safetensors.index.json", 47, 260032);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_config_alone_gives_names_and_shapes_of_its_family),
        IN_FOLDER(a_config_with_a_list_of_parameters_takes_the_list),
        IN_FOLDER(headers_win_over_everything_else),
        IN_FOLDER(a_tensor_file_is_read_with_the_config_beside_it),
        IN_FOLDER(a_bare_file_name_means_the_current_folder),
        IN_FOLDER(an_architecture_without_a_table_is_named),
        IN_FOLDER(the_model_type_names_an_architecture_that_the_config_leaves_out),
        IN_FOLDER(numbers_of_a_nested_config_are_found),
        IN_FOLDER(a_path_without_anything_is_refused),
        IN_FOLDER(a_folder_without_a_model_says_what_was_looked_for),
        IN_FOLDER(a_list_without_a_config_is_not_a_model_by_itself),
        IN_FOLDER(a_file_of_another_kind_is_refused_by_its_name),
        IN_FOLDER(pipes_and_sockets_are_not_waited_for),
        IN_FOLDER(folders_in_the_place_of_files_are_refused),
        IN_FOLDER(what_may_not_be_read_names_the_reason),
        IN_FOLDER(a_link_that_leads_nowhere_is_named),
        IN_FOLDER(a_link_to_nowhere_does_not_pass_for_an_absent_file),
        IN_FOLDER(a_shard_that_links_to_nowhere_does_not_pass_for_an_index_alone),
        IN_FOLDER(pointers_of_git_lfs_are_recognised),
        IN_FOLDER(empty_files_are_refused),
        IN_FOLDER(another_json_file_is_not_a_config),
        IN_FOLDER(a_config_of_absurd_size_is_refused_without_writing_its_names),
        IN_FOLDER(more_layers_than_can_be_planned_are_refused),
        IN_FOLDER(a_failed_allocation_is_an_error_and_leaks_nothing),
        IN_FOLDER(a_name_cannot_be_had_without_memory_for_a_config_alone),
        IN_FOLDER(a_dtype_that_is_not_known_is_remarked),
        cmocka_unit_test(real_checkpoints_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
