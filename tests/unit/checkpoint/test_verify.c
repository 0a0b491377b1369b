/*
 * verify: a checkpoint that is right is proved, and each thing that can be wrong with one is named, alone and
 * together with all others.
 */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/safetensors.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 2," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
#define OTHER_LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 1," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 37, 'torch_dtype': 'bfloat16'"
#define PHI3 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': 1," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 32, 'vocab_size': 48," \
    "'torch_dtype': 'bfloat16'"
#define MIXTRAL \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': 16," \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24," \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, 'vocab_size': 40, 'torch_dtype': 'bfloat16'"
// clang-format on

static const char up_proj[] = "model.layers.0.mlp.up_proj.weight";

static void shard_to(const char *model, const char *mesh, uint32_t ep, const char *out)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_plan *plan = plan_of(model, mesh, ep, NULL);
    sw_error err = {0};

    options.no_sync = true;
    if (sw_checkpoint_shard(scratch(model), plan, scratch(out), &options, NULL, &err) != SW_OK)
        fail_msg("shard: %s (%s)", err.what, err.help);
    sw_plan_destroy(plan);
}

/* The usual subject: two layers over four ranks; key/value heads stand twice. */
static void make_shards(void)
{
    make_model("m", LLAMA, NULL, 1);
    shard_to("m", "tp=4", 0, "s");
}

/* Everything that verify says, a line a finding: "severity code name: what". */
static const char *said(const char *in, const char *against, sw_status *status)
{
    static char text[65536];
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    sw_report *report = NULL;
    size_t used = 0;

    assert_int_equal(sw_report_create(&report, &err), SW_OK);
    options.report = report;
    sw_status got =
        sw_checkpoint_verify(scratch(in), against == NULL ? NULL : scratch(against), &options, NULL, &err);
    if (status != NULL)
        *status = got;
    text[0] = '\0';
    for (size_t i = 0; i < sw_report_count(report); i++) {
        const sw_finding *f = sw_report_finding(report, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s: %s\n",
                                 sw_severity_name(f->severity), f->code, f->fqn, f->what);
        assert_true(used < sizeof text);
    }
    bool is_wrong = sw_report_count_of(report, SW_SEVERITY_ERROR) > 0;
    if (got != SW_OK && got != SW_E_FORMAT && got != SW_E_UNPROVED)
        fail_msg("%s", err.what);
    assert_int_equal(got != SW_OK, is_wrong);
    sw_report_destroy(report);
    return text;
}

/* Exactly this is said; '$' stands for the scratch folder. */
static void expect(const char *in, const char *against, const char *wanted)
{
    char full[8192];
    size_t n = 0;

    for (const char *at = wanted; *at != '\0'; at++) {
        if (*at == '$')
            n += (size_t)snprintf(full + n, sizeof full - n, "%s", scratch(""));
        else
            full[n++] = *at;
    }
    full[n] = '\0';
    assert_string_equal(said(in, against, NULL), full);
}

static void expect_among(const char *in, const char *wanted)
{
    const char *all = said(in, NULL, NULL);

    if (strstr(all, wanted) == NULL)
        fail_msg("not among what is said:\n%s\nthis was said:\n%s", wanted, all);
}

static sw_checkpoint_result proof_of(const char *in, const char *against)
{
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    if (sw_checkpoint_verify(scratch(in), against == NULL ? NULL : scratch(against), NULL, &result, &err) !=
        SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    return result;
}

static uint64_t data_begin(const sw_buffer *file)
{
    uint64_t header = 0;

    for (int i = 7; i >= 0; i--)
        header = header << 8 | (unsigned char)file->bytes[i];
    return 8 + header;
}

/* Flip bits of byte `at` of a tensor in a file. */
static void flip(const char *file, const char *tensor, uint64_t at, char bits)
{
    sw_tensor_list list = {0};
    sw_error err = {0};
    sw_buffer bytes = scratch_read(file);

    assert_int_equal(sw_tensor_list_init(&list, 0, &err), SW_OK);
    if (sw_safetensors_read_file(&list, scratch(file), &err) != SW_OK)
        fail_msg("%s", err.what);
    const sw_tensor_entry *t = sw_tensor_list_find(&list, tensor, strlen(tensor));
    assert_non_null(t);
    bytes.bytes[data_begin(&bytes) + t->begin + at] ^= bits;
    scratch_bytes(file, bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
    sw_tensor_list_clear(&list);
}

static void copy_file(const char *from, const char *to)
{
    sw_buffer bytes = scratch_read(from);

    scratch_bytes(to, bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
}

/* Take every ', "xxh3": "..."' of a tensor out of a manifest; how many there were. */
static size_t strip_hashes(const char *manifest, size_t most)
{
    static const char key[] = ", \"xxh3\": \"";
    sw_buffer old = scratch_read(manifest);
    sw_buffer fresh = {0};
    size_t n = 0;

    size_t first = (size_t)(strstr(sw_buffer_text(&old), "\"tensors\"") - old.bytes);
    sw_buffer_append(&fresh, old.bytes, first);
    for (size_t i = first; i < old.length;) {
        bool is_hash =
            n < most && i + sizeof key < old.length && memcmp(old.bytes + i, key, sizeof key - 1) == 0;
        n += is_hash;
        if (is_hash)
            i += sizeof key - 1 + 17;
        else
            sw_buffer_putc(&fresh, old.bytes[i++]);
    }
    scratch_bytes(manifest, fresh.bytes, fresh.length);
    sw_buffer_clear(&old);
    sw_buffer_clear(&fresh);
    return n;
}

/* ---- what is right ---- */

static void a_right_checkpoint_is_proved(void **state)
{
    static const struct {
        const char *config;
        const char *mesh;
        uint32_t ep;
        uint32_t n_files;
    } cases[] = {
        {LLAMA,   "tp=1",      0, 1},
        {LLAMA,   "tp=2",      0, 2},
        {LLAMA,   "tp=8",      0, 8},
        {LLAMA,   "pp=2,tp=2", 0, 4},
        {PHI3,    "tp=4",      0, 4},
        {PHI3,    "tp=8",      0, 8},
        {MIXTRAL, "tp=2,ep=2", 0, 4},
        {MIXTRAL, "dp=2,tp=2", 4, 6},
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        scratch_remove("m");
        scratch_remove("s");
        make_model("m", cases[i].config, NULL, 2);
        shard_to("m", cases[i].mesh, cases[i].ep, "s");
        expect("s", "m", "");
        sw_checkpoint_result r = proof_of("s", NULL);
        assert_int_equal(r.files, cases[i].n_files);
        assert_int_equal(r.covered, r.elements);
        assert_true(r.elements > 0);
        assert_true((r.replicas > 0) == (cases[i].n_files > 1));
        assert_int_equal(r.bytes_written, 0);
    }
}

static void every_byte_is_read_once(void **state)
{
    uint64_t bytes = 0;

    (void)state;
    make_shards();
    for (int i = 0; i < 4; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "s/dense-pp0-tp%d.safetensors", i);
        sw_buffer file = scratch_read(name);
        bytes += file.length - data_begin(&file);
        sw_buffer_clear(&file);
    }
    sw_checkpoint_result r = proof_of("s", NULL);
    assert_int_equal(r.bytes_read, bytes);
}

static void a_hugging_face_folder_has_no_checksums_to_check(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 3);
    expect("m", NULL, "warning no_checksums : $/m: no checksums recorded\n");
    expect("m", "m", "");
    sw_checkpoint_result r = proof_of("m", "m");
    assert_int_equal(r.covered, r.elements);
    assert_int_equal(r.files, 3);
    assert_int_equal(r.replicas, 0);
}

static void a_single_file_is_verified_too(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 1);
    expect("m/model.safetensors", NULL,
           "warning no_checksums : $/m/model.safetensors: no checksums recorded\n");
}

/* ---- bytes ---- */

static void a_flipped_bit_is_found_in_any_tensor_and_file(void **state)
{
    static const struct {
        const char *file;
        const char *tensor;
    } places[] = {
        {"dense-pp0-tp0.safetensors", "model.embed_tokens.weight"             },
        {"dense-pp0-tp3.safetensors", "lm_head.weight"                        },
        {"dense-pp0-tp1.safetensors", "model.norm.weight"                     },
        {"dense-pp0-tp2.safetensors", "model.layers.1.self_attn.k_proj.weight"},
        {"dense-pp0-tp1.safetensors", "model.layers.0.mlp.down_proj.weight"   },
    };

    (void)state;
    make_shards();
    for (size_t i = 0; i < SW_COUNT(places); i++) {
        char path[128];
        char wanted[256];
        (void)snprintf(path, sizeof path, "s/%s", places[i].file);
        flip(path, places[i].tensor, 3, 1);
        (void)snprintf(wanted, sizeof wanted, "error checksum %s: damaged in %s, bytes ", places[i].tensor,
                       places[i].file);
        const char *all = said("s", NULL, NULL);
        assert_int_equal(strncmp(all, wanted, strlen(wanted)), 0);
        assert_ptr_equal(strchr(all, '\n') + 1, all + strlen(all)); /* a damaged copy is not told twice */
        flip(path, places[i].tensor, 3, 1);
    }
    expect("s", NULL, "");
}

static void the_checksum_finding_has_bytes_and_both_sums(void **state)
{
    (void)state;
    make_shards();
    flip("s/dense-pp0-tp1.safetensors", up_proj, 0, 4);
    const char *all = said("s", NULL, NULL);
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t is = 0;
    uint64_t recorded = 0;
    assert_int_equal(sscanf(all,
                            "error checksum model.layers.0.mlp.up_proj.weight: damaged in "
                            "dense-pp0-tp1.safetensors, bytes %" SCNu64 " to %" SCNu64
                            ": their xxh3 is %" SCNx64 ", the manifest says %" SCNx64,
                            &begin, &end, &is, &recorded),
                     4);
    assert_int_equal(end - begin, 6 * 16 * 2);
    assert_true(is != recorded);
}

static void a_file_of_another_step_is_called_stale(void **state)
{
    (void)state;
    make_shards();
    copy_file("s/dense-pp0-tp1.safetensors", "before");
    sw_buffer bytes = scratch_read("s/dense-pp0-tp1.safetensors");
    for (size_t i = data_begin(&bytes); i < bytes.length; i++)
        bytes.bytes[i] ^= 1;
    scratch_bytes("s/dense-pp0-tp1.safetensors", bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
    expect("s", NULL,
           "error file_stale dense-pp0-tp1.safetensors: none of its 21 tensors "
           "has its checksum: the file is of another step or run\n");
}

static void no_recorded_checksums_are_a_fault_of_their_own(void **state)
{
    (void)state;
    make_shards();
    assert_int_equal(strip_hashes("s/manifest.json", 1), 1);
    expect("s", NULL,
           "error no_checksums model.embed_tokens.weight: no checksums recorded for 1 of 84 stored tensors, "
           "this is the first\n");
    assert_int_equal(strip_hashes("s/manifest.json", SIZE_MAX), 83);
    expect("s", NULL, "error no_checksums : $/s: no checksums recorded\n");
    sw_status status = SW_OK;
    (void)said("s", NULL, &status);
    assert_int_equal(status, SW_E_UNPROVED);
    expect("s", "m", "warning no_checksums : $/s: no checksums recorded\n"); /* the model is the check */
    flip("s/dense-pp0-tp1.safetensors", up_proj, 2, 1);
    expect_among("s", "no_checksums");
    scratch_edit("s/config.json", "8", "9");
    (void)said("s", NULL, &status); /* what is wrong counts more than what is not known */
    assert_int_equal(status, SW_E_FORMAT);
    assert_non_null(strstr(said("s", "m", NULL),
                           "error other_bytes model.layers.0.mlp.up_proj.weight: 1 of 384 "
                           "elements differs, first at [6,1]: 0x"));
}

/* ---- copies ---- */

static void copies_that_differ_are_named_with_the_place(void **state)
{
    (void)state;
    make_shards();
    (void)strip_hashes("s/manifest.json", SIZE_MAX);
    flip("s/dense-pp0-tp2.safetensors", "model.norm.weight", 2 * 5, 1);
    expect_among("s",
                 "error replica_differs model.norm.weight: the copy in dense-pp0-tp2.safetensors is not its "
                 "owner's: 1 of 16 elements differs, first at [5]: 0x");
    flip("s/dense-pp0-tp2.safetensors", "model.norm.weight", 2 * 5, 1);
    flip("s/dense-pp0-tp0.safetensors", "model.norm.weight", 2 * 7, 1); /* the owner: every copy differs */
    for (int i = 1; i < 4; i++) {
        char wanted[160];
        (void)snprintf(
            wanted, sizeof wanted,
            "error replica_differs model.norm.weight: the copy in dense-pp0-tp%d.safetensors is not", i);
        expect_among("s", wanted);
    }
}

/* Key/value rows inside a fused tensor stand on two ranks, the query rows beside them on one. */
static void a_copy_that_is_part_of_a_tensor_is_compared_too(void **state)
{
    static const char qkv[] = "model.layers.0.self_attn.qkv_proj.weight"; /* 32 + 8 + 8 rows of 32 */

    (void)state;
    make_model("m", PHI3, NULL, 1);
    shard_to("m", "tp=4", 0, "s");
    (void)strip_hashes("s/manifest.json", SIZE_MAX);
    expect("s", NULL, "error no_checksums : $/s: no checksums recorded\n");
    flip("s/dense-pp0-tp1.safetensors", qkv, (8 * 32 + 2) * 2, 1); /* the first row of k there: row 32 */
    expect_among("s",
                 "error replica_differs model.layers.0.self_attn.qkv_proj.weight: the copy in "
                 "dense-pp0-tp1.safetensors is not its owner's: 1 of 1536 elements differs, first at [32,2]");
    flip("s/dense-pp0-tp1.safetensors", qkv, (8 * 32 + 2) * 2, 1);
    flip("s/dense-pp0-tp1.safetensors", qkv, 0, 1); /* a query row: no copy of anything */
    expect("s", NULL, "error no_checksums : $/s: no checksums recorded\n");
}

/* ---- files ---- */

static void a_missing_file_is_named_with_what_it_holds(void **state)
{
    (void)state;
    make_shards();
    scratch_remove("s/dense-pp0-tp2.safetensors");
    expect("s", NULL,
           "error file_missing dense-pp0-tp2.safetensors: dense-pp0-tp2.safetensors: is missing (it holds 21 "
           "tensors, model.embed_tokens.weight first)\n");
}

static void a_file_too_many_is_named(void **state)
{
    (void)state;
    make_shards();
    copy_file("m/model.safetensors", "s/left-over.safetensors");
    expect("s", NULL,
           "error file_extra left-over.safetensors: stands beside the manifest, which does not name it\n");
}

static void a_file_that_stands_twice_is_named_with_its_double(void **state)
{
    (void)state;
    make_shards();
    copy_file("s/dense-pp0-tp1.safetensors", "s/dense-pp0-tp1 (copy).safetensors");
    expect(
        "s", NULL,
        "error file_duplicate dense-pp0-tp1 (copy).safetensors: is the file of pp=0,tp=1 once more, besides "
        "dense-pp0-tp1.safetensors\n");
}

static void a_truncated_file_is_named(void **state)
{
    struct stat about;

    (void)state;
    make_shards();
    assert_int_equal(stat(scratch("s/dense-pp0-tp1.safetensors"), &about), 0);
    assert_int_equal(truncate(scratch("s/dense-pp0-tp1.safetensors"), about.st_size - 4), 0);
    expect_among("s", "error file_damaged dense-pp0-tp1.safetensors: dense-pp0-tp1.safetensors: tensor '");
    assert_int_equal(truncate(scratch("s/dense-pp0-tp1.safetensors"), 4), 0);
    expect_among("s", "error file_damaged dense-pp0-tp1.safetensors: ");
    assert_int_equal(truncate(scratch("s/dense-pp0-tp1.safetensors"), 0), 0);
    expect_among("s", "error file_damaged dense-pp0-tp1.safetensors: ");
}

static void a_file_in_the_place_of_another_is_foreign(void **state)
{
    (void)state;
    make_shards();
    copy_file("s/dense-pp0-tp0.safetensors", "s/dense-pp0-tp1.safetensors");
    expect_among("s",
                 "error file_foreign dense-pp0-tp1.safetensors: dense-pp0-tp1.safetensors: is the file of "
                 "pp=0,tp=0, the manifest says pp=0,tp=1\n");
}

static void a_file_of_another_model_is_foreign(void **state)
{
    (void)state;
    make_shards();
    make_model("other", OTHER_LLAMA, NULL, 1);
    shard_to("other", "tp=4", 0, "t");
    copy_file("t/dense-pp0-tp1.safetensors", "s/dense-pp0-tp1.safetensors");
    expect_among("s",
                 "error file_foreign dense-pp0-tp1.safetensors: dense-pp0-tp1.safetensors: is of a model of "
                 "fingerprint ");
}

static void links_are_not_followed(void **state)
{
    (void)state;
    make_shards();
    copy_file("s/dense-pp0-tp1.safetensors", "elsewhere.safetensors");
    scratch_remove("s/dense-pp0-tp1.safetensors");
    assert_int_equal(symlink("../elsewhere.safetensors", scratch("s/dense-pp0-tp1.safetensors")), 0);
    expect_among("s",
                 "error file_damaged dense-pp0-tp1.safetensors: dense-pp0-tp1.safetensors: is a symbolic "
                 "link, not a regular file");
}

static void small_files_that_changed_are_named(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 1);
    scratch_text("m/merges.txt", "a b", false);
    scratch_text("m/tokenizer.json", "{}", false);
    scratch_text("m/vocab.json", "{}", false);
    scratch_text("m/notes.txt", "", false);
    shard_to("m", "tp=4", 0, "s");
    scratch_edit("s/config.json", "8", "9");
    scratch_text("s/tokenizer.json", "{ }", false);
    scratch_remove("s/merges.txt");
    scratch_remove("s/vocab.json");
    assert_int_equal(symlink("config.json", scratch("s/vocab.json")), 0);
    scratch_text("s/added.txt", "by hand", false);
    expect(
        "s", NULL,
        "warning file_unlisted added.txt: added.txt: stands beside the manifest, which does not name it: it "
        "is not carried along\n"
        "error checksum config.json: was edited or damaged after it was written\n"
        "error file_missing merges.txt: merges.txt: is missing\n"
        "error file_size tokenizer.json: has 3 bytes, the manifest says 2\n"
        "error file_damaged vocab.json: vocab.json: is a symbolic link, not a regular file\n");
}

static void an_edited_training_state_is_told(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("m", LLAMA, NULL, 1);
    scratch_text("m/training_state.json", "{'step': 12}", true);
    shard_to("m", "tp=4", 0, "s");
    expect("s", NULL, "");
    scratch_edit("s/manifest.json", "{\"step\": 12}", "{\"step\": 13}");
    expect("s", NULL,
           "error checksum manifest.json: manifest.json: the training state has not the checksum that is "
           "recorded\n");
    assert_int_equal(sw_checkpoint_merge(scratch("s"), scratch("back"), NULL, NULL, &err), SW_E_FORMAT);
    assert_string_equal(err.what, "manifest.json: the training state has not the checksum that is recorded");
}

/* ---- the manifest ---- */

static void a_region_that_nobody_owns_is_named(void **state)
{
    (void)state;
    make_shards();
    scratch_edit("s/manifest.json", "\"begin\": [6, 0], \"extent\": [6, 16]}",
                 "\"begin\": [6, 0], \"extent\": [6, 16], \"replica\": true}");
    expect_among("s",
                 "error region_uncovered model.layers.0.mlp.gate_proj.weight: 96 of 384 elements have no "
                 "owner\n");
}

static void a_region_that_two_own_is_named(void **state)
{
    (void)state;
    make_shards();
    scratch_edit("s/manifest.json", "\"extent\": [16], \"replica\": true}", "\"extent\": [16]}");
    expect_among("s",
                 "error region_twice model.layers.0.input_layernorm.weight: 16 of 16 elements have more than "
                 "one owner\n");
}

static void a_manifest_against_headers_is_told_tensor_by_tensor(void **state)
{
    (void)state;
    make_shards();
    scratch_edit("s/manifest.json", "\"model.norm.weight\": {\"dtype\": \"BF16\"",
                 "\"model.norm.weight\": {\"dtype\": \"F16\"");
    expect_among("s",
                 "error tensor_differs model.norm.weight: dense-pp0-tp0.safetensors: model.norm.weight is "
                 "BF16, the manifest says F16");
    expect_among("s", "error tensor_differs model.norm.weight: dense-pp0-tp3.safetensors");
    expect_among("s", "error fingerprint : ");
}

static void metadata_that_say_otherwise_are_told(void **state)
{
    (void)state;
    make_shards();
    /* Of the same size, so that nothing but the text differs. */
    scratch_edit("s/dense-pp0-tp1.safetensors", "\\\"begin\\\":[6,0]", "\\\"begin\\\":[7,0]");
    expect_among(
        "s", "error slices_differ dense-pp0-tp1.safetensors: its metadata say otherwise than the manifest "
             "which regions it holds of 1 tensors, the first is model.layers.");
}

static void a_manifest_that_cannot_be_read_ends_it(void **state)
{
    (void)state;
    make_shards();
    scratch_text("s/manifest.json", "{", false);
    expect_among("s", "error cannot_open : ");
}

static void without_a_manifest_the_files_are_still_verified(void **state)
{
    (void)state;
    make_shards();
    scratch_remove("s/manifest.json");
    expect("s", NULL,
           "warning manifest_missing : $/s: has no manifest.json; put together from the files' own metadata\n"
           "error no_checksums : $/s: no checksums recorded\n");
}

/* ---- the plan ---- */

static void save_plan(const char *model, const char *mesh, const char *path)
{
    sw_plan *plan = plan_of(model, mesh, 0, NULL);
    sw_error err = {0};

    assert_int_equal(sw_plan_save(plan, scratch(path), &err), SW_OK);
    sw_plan_destroy(plan);
}

static void a_plan_of_another_model_is_named(void **state)
{
    (void)state;
    make_shards();
    make_model("other", OTHER_LLAMA, NULL, 1);
    save_plan("other", "tp=4", "s/plan.json");
    expect_among("s", "error plan_foreign plan.json: is of another model: its fingerprint is ");
}

static void a_plan_of_another_layout_is_named(void **state)
{
    (void)state;
    make_shards();
    save_plan("m", "tp=2", "s/plan.json");
    expect("s", NULL,
           "error plan_differs plan.json: lays out 2 files, the checkpoint has 4; the first that differs is "
           "dense-pp0-tp2.safetensors\n");
    sw_plan *plan = plan_of("m", "tp=4", 0,
                            "[{match: lm_head, params: {weight: {tp: R}}, out_src: "
                            "{logits: {tp: R}}, out_dst: {logits: {tp: R}}}]");
    sw_error err = {0};
    assert_int_equal(sw_plan_save(plan, scratch("s/plan.json"), &err), SW_OK);
    sw_plan_destroy(plan);
    expect("s", NULL,
           "error plan_differs plan.json: cuts lm_head.weight otherwise than the checkpoint has it\n");
}

static void a_plan_that_is_gone_or_damaged_is_told(void **state)
{
    (void)state;
    make_shards();
    scratch_edit("s/plan.json", "hidden_states", "hidden_statez");
    expect("s", NULL, "error checksum plan.json: was edited or damaged after it was written\n");
    scratch_text("s/plan.json", "[]", false);
    expect_among("s", "error plan_damaged plan.json: ");
    scratch_remove("s/plan.json");
    expect("s", NULL,
           "warning plan_missing plan.json: is not there, so the layout is not compared with it\n");
}

/* ---- all together ---- */

static void everything_is_found_in_one_run(void **state)
{
    static const char *const wanted[] = {
        "error file_missing dense-pp0-tp3.safetensors: ",
        "error file_duplicate copy.safetensors: ",
        "error file_extra left-over.safetensors: ",
        "error checksum model.layers.0.mlp.up_proj.weight: damaged in dense-pp0-tp1.safetensors",
        "error checksum model.norm.weight: damaged in dense-pp0-tp2.safetensors",
        "error region_twice model.layers.0.input_layernorm.weight: ",
        "error region_uncovered model.layers.0.mlp.gate_proj.weight: ",
        "error plan_foreign plan.json: ",
    };

    (void)state;
    make_shards();
    make_model("other", OTHER_LLAMA, NULL, 1);
    save_plan("other", "tp=4", "s/plan.json");
    scratch_edit("s/manifest.json", "\"begin\": [6, 0], \"extent\": [6, 16]}",
                 "\"begin\": [6, 0], \"extent\": [6, 16], \"replica\": true}");
    scratch_edit("s/manifest.json", "\"extent\": [16], \"replica\": true}", "\"extent\": [16]}");
    copy_file("s/dense-pp0-tp0.safetensors", "s/copy.safetensors");
    copy_file("m/model.safetensors", "s/left-over.safetensors");
    flip("s/dense-pp0-tp1.safetensors", up_proj, 0, 1);
    flip("s/dense-pp0-tp2.safetensors", "model.norm.weight", 0, 1);
    scratch_remove("s/dense-pp0-tp3.safetensors");
    for (size_t i = 0; i < SW_COUNT(wanted); i++)
        expect_among("s", wanted[i]);

    sw_error err = {0};
    assert_int_equal(sw_checkpoint_verify(scratch("s"), NULL, NULL, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, " faults, covered "));
}

/* ---- Hugging Face folders ---- */

static void index_and_headers_are_compared_name_by_name(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 3);
    scratch_edit("m/model.safetensors.index.json",
                 "\"model.norm.weight\":\"model-00003-of-00003.safetensors\"",
                 "\"model.norm.weight\":\"model-00001-of-00003.safetensors\","
                 "\"mtp.fc.weight\":\"model-00002-of-00003.safetensors\"");
    scratch_edit("m/model.safetensors.index.json", ",\"lm_head.weight\":\"model-00003-of-00003.safetensors\"",
                 "");
    expect(
        "m", NULL,
        "error index_differs model.norm.weight: the index says it is in model-00001-of-00003.safetensors, it "
        "is "
        "in model-00003-of-00003.safetensors\n"
        "error tensor_missing mtp.fc.weight: the index says it is in model-00002-of-00003.safetensors, which "
        "holds no such tensor\n"
        "warning index_omits model-00003-of-00003.safetensors: holds 1 tensors that the index lacks, "
        "lm_head.weight first\n");
}

static void every_bad_file_of_an_index_is_named(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 4);
    scratch_remove("m/model-00002-of-00004.safetensors");
    assert_int_equal(truncate(scratch("m/model-00003-of-00004.safetensors"), 100), 0);
    copy_file("m/model-00001-of-00004.safetensors", "m/model-00004-of-00004.safetensors");
    copy_file("m/model-00001-of-00004.safetensors", "m/other.safetensors");
    const char *all = said("m", NULL, NULL);
    assert_non_null(strstr(all, "error file_missing model-00002-of-00004.safetensors: is missing, with "));
    assert_non_null(strstr(all, "error file_damaged model-00003-of-00004.safetensors: "));
    assert_non_null(strstr(all,
                           "error file_duplicate model-00004-of-00004.safetensors: holds the same tensors as "
                           "model-00001-of-00004.safetensors\n"));
    assert_non_null(strstr(all, "warning file_unlisted other.safetensors: "));
    assert_non_null(strstr(all, "error tensor_missing lm_head.weight: the index says it is in "
                                "model-00004-of-00004.safetensors, which holds no such tensor\n"));
    assert_null(strstr(all, "index_differs"));
}

static void a_tensor_in_two_files_is_named_with_both(void **state)
{
    (void)state;
    make_model("m", LLAMA, "a.weight BF16 4\nb.weight BF16 4\n", 1);
    make_model("n", LLAMA, "b.weight BF16 4\nc.weight BF16 4\n", 1);
    copy_file("n/model.safetensors", "m/other.safetensors");
    expect("m", NULL, "error tensor_twice b.weight: stands in model.safetensors and in other.safetensors\n");
}

static void an_index_that_leads_out_of_the_folder_is_refused(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 2);
    scratch_edit("m/model.safetensors.index.json", "\"model-00002-of-00002.safetensors\"",
                 "\"../m/model-00002-of-00002.safetensors\"");
    expect_among("m", "error index_damaged model.safetensors.index.json: ");
    expect_among("m", "'../m/model-00002-of-00002.safetensors' is not a plain file name");
}

/* ---- against a model ---- */

static void a_model_that_differs_is_told_by_index(void **state)
{
    (void)state;
    make_shards();
    flip("m/model.safetensors", up_proj, (3 * 16 + 7) * 2, 1);
    flip("m/model.safetensors", up_proj, (23 * 16 + 15) * 2 + 1, 1);
    const char *all = said("s", "m", NULL);
    assert_non_null(strstr(all,
                           "error other_bytes model.layers.0.mlp.up_proj.weight: 2 of 384 elements differ, "
                           "first at [3,7]: 0x"));
    assert_ptr_equal(strchr(all, '\n') + 1, all + strlen(all));
}

static void another_model_differs_in_names(void **state)
{
    (void)state;
    make_shards();
    make_model("other", OTHER_LLAMA, NULL, 1);
    const char *all = said("s", "other", NULL);
    assert_non_null(strstr(all, "error only_in_first model.layers.1.mlp.up_proj.weight: only in /"));
    assert_non_null(strstr(all, "/s: BF16 [24,16]\n"));
    assert_null(strstr(all, "other_bytes")); /* equal names have equal bytes here */
}

static void training_state_that_only_one_side_has_is_no_difference(void **state)
{
    (void)state;
    make_shards();
    make_model("t", LLAMA, NULL, 2); /* with an index: the state stands beside it */
    make_model("o", "", "optim.m.model.norm.weight F32 16\n", 1);
    sw_buffer moments = scratch_read("o/model.safetensors");
    scratch_bytes("t/optimizer-00001-of-00001.safetensors", moments.bytes, moments.length);
    sw_buffer_clear(&moments);
    shard_to("t", "tp=2", 0, "with");
    (void)proof_of("with", "m");
    (void)proof_of("m", "with");
    (void)proof_of("s", "with");
}

static void a_tensor_without_elements_is_right_however_it_is_cut(void **state)
{
    (void)state;
    make_model("m", LLAMA, "model.norm.weight BF16 16\nlm_head.weight F32 4x0\n", 1);
    shard_to("m", "tp=2", 0, "s");
    (void)proof_of("s", "m");
}

static void what_is_not_there_is_no_checkpoint(void **state)
{
    sw_error err = {0};

    (void)state;
    make_shards();
    assert_int_equal(sw_checkpoint_verify(scratch("nothing"), NULL, NULL, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/nothing: no such file or folder"));
    assert_int_equal(sw_checkpoint_verify(scratch("s"), scratch("nothing"), NULL, NULL, &err), SW_E_FORMAT);
    assert_int_equal(strncmp(err.what, "--against: ", 11), 0);
}

/* ---- callers ---- */

static bool stop_at_once(const sw_progress *progress, void *user)
{
    assert_string_equal(progress->stage, "check");
    assert_string_equal(progress->unit, "bytes");
    ++*(int *)user;
    return false;
}

static void a_caller_can_stop_it(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    int n = 0;

    (void)state;
    make_shards();
    options.on_progress = stop_at_once;
    options.user = &n;
    assert_int_equal(sw_checkpoint_verify(scratch("s"), NULL, &options, NULL, &err), SW_E_IO);
    assert_int_equal(n, 1);
    assert_int_equal(strncmp(err.what, "stopped after ", 14), 0);
}

static void lack_of_memory_is_told_and_leaves_nothing(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    make_shards();
    options.threads = 1;
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_checkpoint_verify(scratch("s"), scratch("m"), &options, NULL, &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status != SW_OK && status != SW_E_NO_MEMORY)
            fail_msg("allocation %" PRIu64 ": %s", n, err.what);
    }
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_right_checkpoint_is_proved),
        ONE(every_byte_is_read_once),
        ONE(a_hugging_face_folder_has_no_checksums_to_check),
        ONE(a_single_file_is_verified_too),
        ONE(a_flipped_bit_is_found_in_any_tensor_and_file),
        ONE(the_checksum_finding_has_bytes_and_both_sums),
        ONE(a_file_of_another_step_is_called_stale),
        ONE(no_recorded_checksums_are_a_fault_of_their_own),
        ONE(copies_that_differ_are_named_with_the_place),
        ONE(a_copy_that_is_part_of_a_tensor_is_compared_too),
        ONE(a_missing_file_is_named_with_what_it_holds),
        ONE(a_file_too_many_is_named),
        ONE(a_file_that_stands_twice_is_named_with_its_double),
        ONE(a_truncated_file_is_named),
        ONE(a_file_in_the_place_of_another_is_foreign),
        ONE(a_file_of_another_model_is_foreign),
        ONE(links_are_not_followed),
        ONE(small_files_that_changed_are_named),
        ONE(an_edited_training_state_is_told),
        ONE(a_region_that_nobody_owns_is_named),
        ONE(a_region_that_two_own_is_named),
        ONE(a_manifest_against_headers_is_told_tensor_by_tensor),
        ONE(metadata_that_say_otherwise_are_told),
        ONE(a_manifest_that_cannot_be_read_ends_it),
        ONE(without_a_manifest_the_files_are_still_verified),
        ONE(a_plan_of_another_model_is_named),
        ONE(a_plan_of_another_layout_is_named),
        ONE(a_plan_that_is_gone_or_damaged_is_told),
        ONE(everything_is_found_in_one_run),
        ONE(index_and_headers_are_compared_name_by_name),
        ONE(every_bad_file_of_an_index_is_named),
        ONE(a_tensor_in_two_files_is_named_with_both),
        ONE(an_index_that_leads_out_of_the_folder_is_refused),
        ONE(a_model_that_differs_is_told_by_index),
        ONE(another_model_differs_in_names),
        ONE(a_tensor_without_elements_is_right_however_it_is_cut),
        ONE(what_is_not_there_is_no_checkpoint),
        ONE(training_state_that_only_one_side_has_is_no_difference),
        ONE(a_caller_can_stop_it),
        ONE(lack_of_memory_is_told_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
