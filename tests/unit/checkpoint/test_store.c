/* Opening checkpoints of either kind: what is found, and what is said of what is wrong. */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "checkpoint/store.h"
#include "plan/report.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LAYERS(n) \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': " n "," \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 2, 'intermediate_size': 12," \
    "'vocab_size': 5, 'torch_dtype': 'bfloat16'"
#define LLAMA LAYERS("1")
#define OTHER "'architectures': ['SomethingElse'], 'model_type': 'something', 'hidden_size': 8"
// clang-format on

static sw_store *open_store(const char *name)
{
    sw_store *store = NULL;
    sw_error err = {0};

    if (sw_store_open(&store, scratch(name), NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    return store;
}

static void refused(const char *name, sw_status status, const char *what)
{
    sw_store *store = NULL;
    sw_error err = {0};
    sw_status found = sw_store_open(&store, scratch(name), NULL, &err);

    assert_null(store);
    if (found != status || strstr(err.what, what) == NULL)
        fail_msg("%s: %s (%s)", sw_status_name(found), err.what, err.help);
    assert_int_equal(err.status, found);
}

/* Codes of the findings of a lenient opening, each followed by a blank. */
static const char *codes(const char *name)
{
    static char text[4096];
    sw_store_options options = {.is_lenient = true};
    sw_store *store = NULL;
    sw_error err = {0};
    size_t used = 0;

    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    if (sw_store_open(&store, scratch(name), &options, &err) != SW_OK)
        fail_msg("%s", err.what);
    text[0] = '\0';
    for (size_t i = 0; i < sw_report_count(options.report); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ",
                                 sw_report_finding(options.report, i)->code);
    sw_store_close(store);
    sw_report_destroy(options.report);
    return text;
}

/* A sharded folder "sharded" of a small model. */
static void make_sharded(const char *mesh)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    make_model("model", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("model", mesh, 0, NULL);
    options.no_sync = true;
    if (sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    sw_plan_destroy(plan);
}

/* ---- Hugging Face folders ---- */

static void a_folder_gives_every_tensor_whole(void **state)
{
    (void)state;
    make_model("model", OTHER, "b BF16 4x2\na F32 -\nz Q9_X 2x3\nn I8 0x3\n", 2);
    sw_store *s = open_store("model");

    assert_int_equal(s->kind, SW_STORE_HF);
    assert_int_equal(s->n_files, 2);
    assert_int_equal(s->n_tensors, 4);
    assert_string_equal(s->tensors[0].name, "b"); /* in the order of the source */
    assert_string_equal(s->files[1].name, "model-00002-of-00002.safetensors");
    const sw_store_tensor *z = sw_store_find(s, "z", 1);
    assert_string_equal(z->dtype_word, "Q9_X");
    assert_int_equal(z->dtype, SW_DTYPE_UNKNOWN);
    assert_int_equal(s->parts[z->first_part].n_bytes, 18);
    assert_int_equal(s->parts[z->first_part].file, 1);
    assert_int_equal(s->parts[0].n_bytes, 16);
    assert_int_equal(sw_part_elems(&s->parts[sw_store_find(s, "a", 1)->first_part].held->part), 1);
    assert_null(sw_store_find(s, "c", 1));
    assert_int_equal(s->n_meta, 2);
    assert_string_equal(s->meta[1].key, "made_by");
    assert_string_equal(s->meta[1].value, "a test");
    sw_store_close(s);
}

static void a_file_alone_is_a_checkpoint(void **state)
{
    (void)state;
    make_model("model", OTHER, "b BF16 4x2\n", 1);
    scratch_text("model/notes.txt", "not of the file", false);
    sw_store *s = open_store("model/model.safetensors");

    assert_int_equal(s->n_tensors, 1);
    assert_int_equal(s->n_extra_files, 1);
    assert_string_equal(s->extra_files[0], "config.json");
    sw_store_close(s);
}

static void names_without_data_are_no_checkpoint(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("model", LLAMA, NULL, 2);
    scratch_remove("model/model-00001-of-00002.safetensors");
    refused("model", SW_E_FORMAT, "model-00001-of-00002.safetensors");
    scratch_remove("model/model-00002-of-00002.safetensors");
    refused("model", SW_E_FORMAT, "names and shapes only, without data");
    scratch_remove("model/model.safetensors.index.json");
    refused("model", SW_E_FORMAT, "names and shapes only, without data");
    assert_int_not_equal(sw_store_open(&(sw_store *){NULL}, scratch("absent"), NULL, &err), SW_OK);
    assert_non_null(strstr(err.what, "no such file or folder"));
}

static void unfinished_output_is_never_a_checkpoint(void **state)
{
    (void)state;
    make_sharded("tp=2");
    make_model("out.partial-12-34", OTHER, "b BF16 4x2\n", 1);
    refused("out.partial-12-34", SW_E_FORMAT, "the unfinished output of a run that was interrupted");
    refused("out.partial-12-34/", SW_E_FORMAT, "the unfinished output");
    refused("out.partial-12-34/model.safetensors", SW_E_FORMAT, "the unfinished output");
    assert_int_equal(symlink(scratch("out.partial-12-34"), scratch("link")), 0);
    refused("link", SW_E_FORMAT, "the unfinished output");
    assert_int_equal(rename(scratch("sharded"), scratch("s.partial-1")), 0);
    refused("s.partial-1", SW_E_FORMAT, "the unfinished output");
}

static void small_files_are_carried_and_others_left(void **state)
{
    sw_store_options options = {0};
    sw_store *s = NULL;

    (void)state;
    make_model("model", OTHER, "b BF16 4x2\n", 1);
    scratch_text("model/tokenizer.json", "{}", false);
    scratch_text("model/.gitattributes", "x", false);
    scratch_text("model/original/params.json", "{}", false);
    scratch_text("model/manifesto.txt", "x", false);
    scratch_text("outside.txt", "x", false);
    assert_int_equal(symlink("tokenizer.json", scratch("model/inside")), 0);
    assert_int_equal(symlink("../outside.txt", scratch("model/outside")), 0);
    assert_int_equal(symlink("nowhere", scratch("model/dangling")), 0);
    assert_int_equal(mkfifo(scratch("model/pipe"), 0600), 0);
    scratch_text("model/large.bin", "", false);
    assert_int_equal(truncate(scratch("model/large.bin"), (64 << 20) + 1), 0);
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    assert_int_equal(sw_store_open(&s, scratch("model"), &options, NULL), SW_OK);
    assert_int_equal(s->n_extra_files, 4);
    assert_string_equal(s->extra_files[0], "config.json");
    assert_string_equal(s->extra_files[1], "inside");
    assert_string_equal(s->extra_files[2], "manifesto.txt");
    assert_string_equal(s->extra_files[3], "tokenizer.json");
    assert_int_equal(sw_report_count(options.report), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(sw_report_finding(options.report, i)->code, "not_carried");
    sw_store_close(s);
    sw_report_destroy(options.report);
}

/* The reader of a manifest refuses such names, so no writer may put them there. */
static void names_that_no_manifest_can_have_are_not_carried(void **state)
{
    static const char *const names[] = {"a\nb.txt", "a\tb", "a\x7f", "a\\b.txt", "\xff.txt", "a..b"};
    char path[64];

    (void)state;
    make_model("model", OTHER, "b BF16 4x2\n", 1);
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "model/%s", names[i]);
        scratch_text(path, "x", false);
    }
    sw_store *s = open_store("model");
    assert_int_equal(s->n_extra_files, 1);
    assert_string_equal(s->extra_files[0], "config.json");
    sw_store_close(s);
    assert_string_equal(codes("model"), "not_carried not_carried not_carried not_carried not_carried "
                                        "not_carried ");
}

/* Browser extensions, build tools and others have files of these names too. */
static void a_manifest_of_another_tool_is_no_sharded_folder(void **state)
{
    static const char *const manifests[] = {
        "{'name': 'an extension', 'manifest_version': 3, 'format': 7}",       "[1]", "not JSON",
        "{'files': {'format': 'shardwright-checkpoint'}, 'format': 'other'}", "{}",
    };

    (void)state;
    make_model("model", LAYERS("1"), "model.layers.0.mlp.up_proj.weight BF16 12x8\n", 1);
    scratch_text("model/plan.json", "{'phase': 1}", true);
    for (size_t i = 0; i < SW_COUNT(manifests); i++) {
        scratch_text("model/manifest.json", manifests[i], true);
        sw_store *s = open_store("model");
        assert_int_equal(s->kind, SW_STORE_HF);
        assert_int_equal(s->n_extra_files, 1); /* the config; the others have no place in a sharded folder */
        sw_store_close(s);
        assert_string_equal(codes("model"), "not_carried not_carried ");
    }
    scratch_remove("model");
    make_sharded("tp=2");
    scratch_text("sharded/manifest.json", "{", false); /* damaged, but its files say what it is */
    refused("sharded", SW_E_FORMAT, "manifest.json");
}

static void a_training_state_has_one_limit_wherever_it_stands(void **state)
{
    sw_store store = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_store_take_state(&store, "a file", "{}", (size_t)SW_MOST_STATE_BYTES + 1, &err),
                     SW_E_LIMIT);
    assert_string_equal(err.what, "a file: a training state of 67108865 bytes, at most 67108864 are carried");
}

static void optimizer_state_belongs_to_its_parameter(void **state)
{
    (void)state;
    make_model("model", OTHER, "a BF16 4x2\noptim.m.b F32 3\n", 1);
    scratch_text("model/model.safetensors.index.json",
                 "{'weight_map': {'a': 'model.safetensors', 'optim.m.b': 'model.safetensors'}}", true);
    make_model("state", OTHER, "optim.m.a F32 4x2\noptim.master.a F32 4x2\n", 1);
    assert_int_equal(
        rename(scratch("state/model.safetensors"), scratch("model/optimizer-00001-of-00001.safetensors")), 0);
    scratch_text("model/training_state.json", " {'step': 7}\n", true);
    sw_store *s = open_store("model");
    assert_int_equal(s->n_tensors, 4);
    assert_int_equal(s->tensors[1].state_of, UINT32_MAX); /* a name that only looks like one */
    assert_int_equal(s->tensors[2].state_of, 0);
    assert_int_equal(s->tensors[3].state_of, 0);
    assert_string_equal(s->state_json, "{\"step\": 7}");
    assert_int_equal(s->n_extra_files, 1); /* the state is not carried as a file */
    sw_store_close(s);
    scratch_text("model/training_state.json", "[]", true);
    refused("model", SW_E_FORMAT, "the training state is not an object");
    scratch_text("model/training_state.json", "{'a': 1, 'b': 2, 'a': 3}", true);
    refused("model", SW_E_FORMAT, "the key 'a' of the training state stands twice");
    scratch_text("model/training_state.json", "{'a': {'step': 1}, 'b': [{'step': 1, '\\u0073tep': 3}]}",
                 true);
    refused("model", SW_E_FORMAT, "the key 'step' of the training state stands twice");
    scratch_remove("model/training_state.json");
    make_model("state", OTHER, "optim.m.a F32 2x4\n", 1);
    assert_int_equal(
        rename(scratch("state/model.safetensors"), scratch("model/optimizer-00001-of-00001.safetensors")), 0);
    refused("model", SW_E_FORMAT, "optim.m.a has another shape than a");
}

static void without_an_index_optimizer_state_is_of_no_model(void **state)
{
    (void)state;
    make_model("model", OTHER, "a BF16 4x2\n", 1);
    make_model("state", OTHER, "optim.m.a F32 4x2\n", 1);
    assert_int_equal(
        rename(scratch("state/model.safetensors"), scratch("model/optimizer-00001-of-00001.safetensors")), 0);
    sw_store *s = open_store("model");
    assert_int_equal(s->n_tensors, 2);
    assert_int_equal(s->n_model, 1);
    assert_string_equal(s->tensors[1].name, "optim.m.a");
    assert_int_equal(s->tensors[1].state_of, 0);
    sw_store_close(s);
}

/* ---- sharded folders ---- */

static void a_sharded_folder_gives_parts_and_owners(void **state)
{
    (void)state;
    make_sharded("tp=2");
    sw_store *s = open_store("sharded");

    assert_int_equal(s->kind, SW_STORE_SHARDED);
    assert_true(s->has_manifest);
    assert_non_null(s->plan_path);
    assert_int_equal(s->n_files, 2);
    assert_int_equal(s->files[1].tp, 1);
    const sw_store_tensor *q = sw_store_find(s, "model.layers.0.self_attn.q_proj.weight", 38);
    assert_int_equal(q->n_parts, 2);
    assert_int_equal(s->parts[q->first_part + 1].held->part.along[0].ranges[0].begin, 4);
    assert_true(s->parts[q->first_part + 1].has_hash);
    const sw_store_tensor *norm = sw_store_find(s, "model.norm.weight", 17);
    assert_false(s->parts[norm->first_part].held->is_replica);
    assert_true(s->parts[norm->first_part + 1].held->is_replica);
    assert_string_equal(s->meta[1].key, "made_by"); /* of the model it was made from */
    sw_store_close(s);
    assert_string_equal(codes("sharded"), "");
}

static void missing_files_are_named_with_what_they_hold(void **state)
{
    (void)state;
    make_sharded("tp=4");
    scratch_remove("sharded/dense-pp0-tp2.safetensors");
    scratch_remove("sharded/dense-pp0-tp1.safetensors");
    refused("sharded", SW_E_FORMAT,
            "dense-pp0-tp1.safetensors: is missing (it holds 12 tensors, model.embed_tokens.weight first) "
            "(and 1 more)");
    assert_string_equal(codes("sharded"), "file_missing file_missing ");
}

static void files_must_be_regular_files_of_the_folder(void **state)
{
    (void)state;
    make_sharded("tp=2");
    assert_int_equal(rename(scratch("sharded/dense-pp0-tp1.safetensors"), scratch("elsewhere")), 0);
    assert_int_equal(symlink(scratch("elsewhere"), scratch("sharded/dense-pp0-tp1.safetensors")), 0);
    refused("sharded", SW_E_FORMAT, "dense-pp0-tp1.safetensors: is a symbolic link, not a regular file");
    scratch_remove("sharded/dense-pp0-tp1.safetensors");
    assert_int_equal(mkdir(scratch("sharded/dense-pp0-tp1.safetensors"), 0777), 0);
    refused("sharded", SW_E_FORMAT, "dense-pp0-tp1.safetensors: is a folder, not a regular file");
    scratch_remove("sharded/dense-pp0-tp1.safetensors");
    assert_int_equal(mkfifo(scratch("sharded/dense-pp0-tp1.safetensors"), 0600), 0);
    refused("sharded", SW_E_FORMAT, "is a pipe, socket or device");
}

static void files_that_are_not_what_the_manifest_says_are_named(void **state)
{
    sw_buffer file;

    (void)state;
    make_sharded("tp=2");
    file = scratch_read("sharded/dense-pp0-tp1.safetensors");
    scratch_bytes("sharded/dense-pp0-tp1.safetensors", file.bytes, file.length - 4);
    refused("sharded", SW_E_FORMAT, "dense-pp0-tp1.safetensors");
    assert_string_equal(codes("sharded"), "file_damaged ");
    scratch_bytes("sharded/dense-pp0-tp1.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);

    file = scratch_read("sharded/dense-pp0-tp0.safetensors");
    scratch_bytes("sharded/dense-pp0-tp1.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    refused("sharded", SW_E_FORMAT, "is the file of pp=0,tp=0, the manifest says pp=0,tp=1");
    assert_non_null(strstr(codes("sharded"), "file_foreign"));
}

static void a_manifest_that_says_something_else_is_refused(void **state)
{
    static const char *const edits[][3] = {
        {"\"tp\": 1",             "\"tp\": 7",                                        "is the file of pp=0,tp=1, the manifest says"},
        {"\"bytes\": ",           "\"bytes\": 1",                                     "bytes, the manifest says 1"                 },
        {"\"model.norm.weight\"", "\"model.norm.scale\"",                             "model.norm.weight, of which the manifest"   },
        {"\"dtype\": \"BF16\"",   "\"dtype\": \"F16\"",                               "is BF16, the manifest says F16"             },
        {"\"extent\": [4, 8]",    "\"extent\": [3, 8]",                               "is not that of the regions in the manifest" },
        {"\"fingerprint\": \"",   "\"fingerprint\": \"0000000000000001\", \"x\": \"", "has no key 'x'"                             },
    };

    (void)state;
    make_sharded("tp=2");
    sw_buffer good = scratch_read("sharded/manifest.json");
    for (size_t i = 0; i < SW_COUNT(edits); i++) {
        scratch_edit("sharded/manifest.json", edits[i][0], edits[i][1]);
        refused("sharded", SW_E_FORMAT, edits[i][2]);
        scratch_bytes("sharded/manifest.json", good.bytes, good.length);
    }
    sw_buffer_clear(&good);
}

static void a_file_that_is_missing_whole_is_found_by_the_plan_or_the_fingerprint(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;

    (void)state;
    options.no_sync = true;
    make_model("model", LAYERS("2"),
               "model.layers.0.mlp.up_proj.weight BF16 12x8\n"
               "model.layers.1.mlp.up_proj.weight BF16 12x8\n",
               1);
    sw_plan *plan = plan_of("model", "pp=2,tp=1", 0, NULL);
    assert_int_equal(sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, NULL),
                     SW_OK);
    sw_plan_destroy(plan);
    scratch_remove("sharded/manifest.json");
    sw_store_close(open_store("sharded"));
    scratch_remove("sharded/dense-pp1-tp0.safetensors");
    refused("sharded", SW_E_FORMAT, "dense-pp1-tp0.safetensors: is missing");
    assert_string_equal(codes("sharded"), "file_missing manifest_missing ");
    scratch_remove("sharded/plan.json");
    refused("sharded", SW_E_FORMAT, "but its tensors make");
    assert_string_equal(codes("sharded"), "manifest_missing fingerprint ");
}

static void without_a_manifest_the_files_tell_of_themselves(void **state)
{
    sw_store_options options = {0};
    sw_store *s = NULL;

    (void)state;
    make_sharded("tp=4");
    sw_store *with = open_store("sharded");
    scratch_remove("sharded/manifest.json");
    scratch_remove("sharded/plan.json");
    scratch_remove("sharded/config.json");
    assert_int_equal(sw_report_create(&options.report, NULL), SW_OK);
    assert_int_equal(sw_store_open(&s, scratch("sharded"), &options, NULL), SW_OK);
    assert_int_equal(sw_report_count(options.report), 2);
    assert_string_equal(sw_report_finding(options.report, 0)->code, "manifest_missing");
    assert_string_equal(sw_report_finding(options.report, 1)->code, "config_missing");
    assert_int_equal(s->fingerprint, with->fingerprint);
    assert_int_equal(s->n_tensors, with->n_tensors);
    assert_int_equal(s->n_parts, with->n_parts);
    assert_null(s->plan_path);
    for (uint32_t i = 0; i < s->n_tensors; i++) {
        const sw_store_tensor *t = &s->tensors[i];
        const sw_store_tensor *u = sw_store_find(with, t->name, t->name_length);
        assert_int_equal(t->n_parts, u->n_parts);
        for (uint32_t k = 0; k < t->n_parts; k++) {
            const sw_store_part *p = &s->parts[t->first_part + k];
            const sw_store_part *q = &with->parts[u->first_part + k];
            assert_true(sw_held_equal(p->held, q->held));
            assert_true(p->begin == q->begin && p->n_bytes == q->n_bytes);
            assert_false(p->has_hash);
        }
    }
    sw_store_close(s);
    sw_store_close(with);
    sw_report_destroy(options.report);
}

static void metadata_that_do_not_fit_are_refused(void **state)
{
    static const char *const edits[][3] = {
        {"\\\"extent\\\":[2,8]", "\\\"extent\\\":[3,8]", "sw.slices does not fit the tensor"          },
        {"\\\"shape\\\":[5,8]",  "\\\"shape\\\":[1,8]",  "sw.slices does not fit the tensor"          },
        {"\\\"begin\\\"",        "\\\"bogus\\\"",        "unexpected key 'bogus'"                     },
        {"sw.slices",            "sw.slicez",            "has no sw.slices"                           },
        {"sw.coord",             "sw.cooor",             "do not say that it is a file of a sharded"  },
        {"pp=0,tp=0",            "pp=0,xp=0",            "sw.coord is 'pp=0,xp=0', which this program"},
        {"checkpoint/1",         "checkpoint/9",         "which this program cannot read"             },
    };

    (void)state;
    make_sharded("tp=4");
    scratch_remove("sharded/manifest.json");
    sw_buffer good = scratch_read("sharded/dense-pp0-tp0.safetensors");
    for (size_t i = 0; i < SW_COUNT(edits); i++) {
        assert_int_equal(strlen(edits[i][0]), strlen(edits[i][1]));
        scratch_edit("sharded/dense-pp0-tp0.safetensors", edits[i][0], edits[i][1]);
        refused("sharded", SW_E_FORMAT, edits[i][2]);
        scratch_bytes("sharded/dense-pp0-tp0.safetensors", good.bytes, good.length);
    }
    sw_buffer_clear(&good);
}

static void files_of_two_checkpoints_do_not_mix(void **state)
{
    (void)state;
    make_sharded("tp=2");
    assert_int_equal(rename(scratch("sharded"), scratch("first")), 0);
    scratch_remove("model");
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    options.no_sync = true;
    make_model("model", LLAMA ", 'tie_word_embeddings': true", NULL, 1);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    assert_int_equal(sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, NULL),
                     SW_OK);
    sw_plan_destroy(plan);
    sw_buffer file = scratch_read("first/dense-pp0-tp1.safetensors");
    scratch_bytes("sharded/dense-pp0-tp1.safetensors", file.bytes, file.length);
    sw_buffer_clear(&file);
    refused("sharded", SW_E_FORMAT, "is of a model of fingerprint");
    scratch_remove("sharded/manifest.json");
    refused("sharded", SW_E_FORMAT, "is of a model of fingerprint");
}

static void a_file_that_is_left_over_is_remarked(void **state)
{
    (void)state;
    make_sharded("tp=2");
    make_model("old", OTHER, "b BF16 4x2\n", 1);
    assert_int_equal(rename(scratch("old/model.safetensors"), scratch("sharded/dense-pp0-tp2.safetensors")),
                     0);
    assert_string_equal(codes("sharded"), "file_extra ");
    sw_store_close(open_store("sharded"));
}

static void small_files_that_the_manifest_does_not_list_are_remarked_and_not_carried(void **state)
{
    (void)state;
    make_sharded("tp=2");
    scratch_text("sharded/notes.txt", "x", false);
    scratch_text("sharded/sub/config.json", "{}", false);
    scratch_text("sharded/.hidden", "x", false);
    assert_string_equal(codes("sharded"), "file_unlisted file_unlisted ");
    sw_store *s = open_store("sharded");
    assert_int_equal(s->n_extra_files, 1);
    assert_string_equal(s->extra_files[0], "config.json");
    sw_store_close(s);
    scratch_remove("sharded/manifest.json"); /* without it what is there goes along */
    s = open_store("sharded");
    assert_int_equal(s->n_extra_files, 2);
    sw_store_close(s);
}

static void out_of_memory(const char *name)
{
    sw_status status = SW_E_NO_MEMORY;

    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_store *store = NULL;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        status = sw_store_open(&store, scratch(name), NULL, &err);
        sw_alloc_fail_at(0);
        if (status != SW_OK && status != SW_E_NO_MEMORY)
            fail_msg("%s: allocation %" PRIu64 ": %s", name, n, err.what);
        sw_store_close(store);
        assert_int_equal(sw_alloc_live(), live);
    }
}

static void memory_that_is_gone_leaves_nothing_behind(void **state)
{
    (void)state;
    make_sharded("tp=2");
    out_of_memory("model");
    out_of_memory("sharded");
    scratch_remove("sharded/manifest.json");
    out_of_memory("sharded");
}

/* ---- words of the format ---- */

static void coordinates_are_written_and_read(void **state)
{
    static const sw_coord coords[] = {
        {0, 1,  -1},
        {3, -1, 12},
        {0, 2,  5 }
    };
    static const char *const texts[] = {"pp=0,tp=1", "pp=3,ep=12", "pp=0,tp=2,ep=5"};
    static const char *const names[] = {"dense-pp0-tp1.safetensors", "expert-pp3-ep12.safetensors",
                                        "dense-pp0-tp2-ep5.safetensors"};
    static const char *const bad[] = {"",           "pp=0",           "tp=0",
                                      "pp=0,tp=01", "pp=0,tp=",       "pp=0,tp=1,",
                                      "pp=-1,tp=0", "pp=0,ep=1,tp=1", "pp=0,tp=2147483648",
                                      "pp=0,tp=1 "};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(coords); i++) {
        char text[SW_COORD_TEXT_BYTES];
        sw_coord again;
        sw_coord_text(coords[i], text);
        assert_string_equal(text, texts[i]);
        assert_true(sw_coord_parse(&again, text, strlen(text)));
        assert_memory_equal(&again, &coords[i], sizeof again);
        sw_coord_file_name(coords[i], text);
        assert_string_equal(text, names[i]);
    }
    for (size_t i = 0; i < SW_COUNT(bad); i++) {
        sw_coord coord;
        if (sw_coord_parse(&coord, bad[i], strlen(bad[i])))
            fail_msg("'%s' is taken", bad[i]);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_folder_gives_every_tensor_whole),
        CASE(a_file_alone_is_a_checkpoint),
        CASE(names_without_data_are_no_checkpoint),
        CASE(unfinished_output_is_never_a_checkpoint),
        CASE(small_files_are_carried_and_others_left),
        CASE(names_that_no_manifest_can_have_are_not_carried),
        CASE(a_manifest_of_another_tool_is_no_sharded_folder),
        CASE(optimizer_state_belongs_to_its_parameter),
        CASE(a_training_state_has_one_limit_wherever_it_stands),
        CASE(without_an_index_optimizer_state_is_of_no_model),
        CASE(a_sharded_folder_gives_parts_and_owners),
        CASE(missing_files_are_named_with_what_they_hold),
        CASE(files_must_be_regular_files_of_the_folder),
        CASE(files_that_are_not_what_the_manifest_says_are_named),
        CASE(a_manifest_that_says_something_else_is_refused),
        CASE(a_file_that_is_missing_whole_is_found_by_the_plan_or_the_fingerprint),
        CASE(without_a_manifest_the_files_tell_of_themselves),
        CASE(metadata_that_do_not_fit_are_refused),
        CASE(files_of_two_checkpoints_do_not_mix),
        CASE(a_file_that_is_left_over_is_remarked),
        CASE(small_files_that_the_manifest_does_not_list_are_remarked_and_not_carried),
        CASE(memory_that_is_gone_leaves_nothing_behind),
        CASE(coordinates_are_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
