/*
 * Hostile and odd input through the commands on checkpoints: each is refused with the file and the reason, by
 * every command alike, nothing is left behind, and nothing hangs.
 */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/contents.h"
#include "shardwright/checkpoint.h"

/* A file with this header length and text, and `n_data` bytes behind it. */
static void write_tensors(const char *name, uint64_t length, const char *header, size_t n_data)
{
    sw_buffer file = {0};

    for (int i = 0; i < 8; i++)
        sw_buffer_putc(&file, (char)(length >> (8 * i) & 0xff));
    for (; *header != '\0'; header++)
        sw_buffer_putc(&file, *header == '\'' ? '"' : *header);
    for (size_t i = 0; i < n_data; i++)
        sw_buffer_putc(&file, (char)i);
    scratch_bytes(name, file.bytes, file.length);
    sw_buffer_clear(&file);
}

static sw_status list(const char *path, sw_error *err)
{
    sw_contents contents = {0};
    sw_status status = sw_contents_make(&contents, path, false, NULL, err);

    sw_contents_clear(&contents);
    return status;
}

/* What every command says of a folder that cannot be read; "" when they agree that it can. */
static const char *refusal_of(const char *folder)
{
    static char what[sizeof((sw_error *)NULL)->what];
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error errors[4] = {{0}};
    sw_plan *plan = NULL;

    options.no_sync = true;
    if (!scratch_has("any.plan.json")) {
        make_model("any", "", "any.weight BF16 4x4\n", 1);
        sw_plan *made = plan_of("any", "tp=1", 0, NULL);
        assert_int_equal(sw_plan_save(made, scratch("any.plan.json"), &errors[0]), SW_OK);
        sw_plan_destroy(made);
    }
    assert_int_equal(sw_plan_load(&plan, scratch("any.plan.json"), &errors[0]), SW_OK);
    int64_t live = sw_alloc_live();
    sw_status statuses[4] = {
        list(scratch(folder), &errors[0]),
        sw_checkpoint_verify(scratch(folder), NULL, &options, NULL, &errors[1]),
        sw_checkpoint_shard(scratch(folder), plan, scratch("out"), &options, NULL, &errors[2]),
        sw_checkpoint_diff(scratch(folder), scratch("any"), &options, NULL, &errors[3]),
    };
    assert_int_equal(sw_alloc_live(), live);
    sw_plan_destroy(plan);
    for (size_t i = 0; i < SW_COUNT(statuses); i++) {
        bool is_input = statuses[i] == SW_E_FORMAT || statuses[i] == SW_E_LIMIT || statuses[i] == SW_E_PLAN;
        if (statuses[i] != SW_OK && !is_input)
            fail_msg("command %zu: %s", i, errors[i].what);
    }
    assert_false(scratch_has("out"));
    if (statuses[0] == SW_OK)
        return "";
    for (size_t i = 1; i < SW_COUNT(statuses); i++) {
        if (statuses[i] == SW_OK)
            fail_msg("command %zu takes what ls refuses: %s", i, errors[0].what);
    }
    (void)snprintf(what, sizeof what, "%s", errors[0].what);
    return what;
}

static void expect_refusal(const char *folder, const char *wanted)
{
    const char *what = refusal_of(folder);

    if (strstr(what, wanted) == NULL)
        fail_msg("'%s' is not in '%s'", wanted, what);
}

/* ---- headers ---- */

static void header_lengths_are_bounded_by_the_file_and_the_limit(void **state)
{
    static const uint64_t lengths[] = {
        UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, 100000001, 100000000, 3};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(lengths); i++) {
        write_tensors("m/model.safetensors", lengths[i], "{}", 0);
        expect_refusal("m", "m/model.safetensors: header of ");
    }
    scratch_bytes("m/model.safetensors", "\x02\0\0\0", 4);
    expect_refusal("m", "m/model.safetensors: ");
    scratch_bytes("m/model.safetensors", "", 0);
    expect_refusal("m", "m/model.safetensors: ");
}

static void offsets_and_shapes_are_checked_before_anything_is_read(void **state)
{
    static const char *const tensors[] = {
        /* of shape and dtype, but other bytes */
        "{'w':{'dtype':'F32','shape':[1000,1000],'data_offsets':[0,4]}}",
        "{'w':{'dtype':'F32','shape':[1],'data_offsets':[4,0]}}",
        "{'w':{'dtype':'F32','shape':[4],'data_offsets':[0,16]}}",
        /* numbers that are none, or wrap */
        "{'w':{'dtype':'F32','shape':[1],'data_offsets':[-4,0]}}",
        "{'w':{'dtype':'F32','shape':[1],'data_offsets':[0,4.5]}}",
        "{'w':{'dtype':'F32','shape':[1],'data_offsets':[9223372036854775808,9223372036854775812]}}",
        "{'w':{'dtype':'F32','shape':[1],'data_offsets':[18446744073709551612,0]}}",
        "{'w':{'dtype':'F32','shape':[99999999999999999999],'data_offsets':[0,4]}}",
        /* products that overflow */
        "{'w':{'dtype':'F32','shape':[4294967296,4294967296],'data_offsets':[0,0]}}",
        "{'w':{'dtype':'F64','shape':[2305843009213693952],'data_offsets':[0,0]}}",
        "{'w':{'dtype':'U8','shape':[3037000500,3037000500,3],'data_offsets':[0,4]}}",
        /* a dtype that nobody knows is no way round the checks */
        "{'w':{'dtype':'Q9_X','shape':[1],'data_offsets':[9223372036854775808,9223372036854775812]}}",
        "{'w':{'dtype':'Q9_X','shape':[1],'data_offsets':[8,4]}}",
        "{'w':{'dtype':'Q9_X','shape':[1],'data_offsets':[0,9]}}",
        /* holes, overlap, repeats, depth */
        "{'v':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},'w':{'dtype':'U8','shape':[1],'data_offsets':["
        "3,4]}}",
        "{'v':{'dtype':'U8','shape':[3],'data_offsets':[0,3]},'w':{'dtype':'U8','shape':[2],'data_offsets':["
        "2,4]}}",
        "{'w':{'dtype':'U8','shape':[2],'data_offsets':[0,2]},'w':{'dtype':'U8','shape':[2],'data_offsets':["
        "2,4]}}",
        "{'w':{'dtype':'U8','shape':[1,1,1,1,1,1,1,1,4],'data_offsets':[0,4]}}",
        /* names */
        "{'a\\u0000b':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}",
        "{'a\\u001b[2Jb':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}",
        "{'':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}",
        /* no header at all */
        "[]",
        "{'w':",
        "nothing",
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(tensors); i++) {
        write_tensors("m/model.safetensors", strlen(tensors[i]), tensors[i], 4);
        expect_refusal("m", "m/model.safetensors");
    }
}

/* Name of n bytes in one tensor of four bytes. */
static void write_long_name(size_t n)
{
    sw_buffer header = {0};

    sw_buffer_puts(&header, "{'");
    for (size_t i = 0; i < n; i++)
        sw_buffer_putc(&header, 'n');
    sw_buffer_puts(&header, "':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}");
    write_tensors("m/model.safetensors", header.length, sw_buffer_text(&header), 4);
    sw_buffer_clear(&header);
}

static void names_of_64_kib_are_carried_and_longer_ones_refused(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_error err = {0};

    (void)state;
    write_long_name(65537);
    expect_refusal("m", "m/model.safetensors");
    write_long_name(65536);
    options.no_sync = true;
    choices.allow_uncovered = true;
    assert_int_equal(sw_model_open(&model, scratch("m"), &err), SW_OK);
    assert_int_equal(sw_mesh_create(&mesh, "tp=2", 0, &err), SW_OK);
    assert_int_equal(sw_plan_create(&plan, model, mesh, &choices, &err), SW_OK);
    assert_int_equal(sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, &err), SW_OK);
    assert_int_equal(sw_checkpoint_verify(scratch("s"), scratch("m"), &options, NULL, &err), SW_OK);
    assert_int_equal(sw_checkpoint_merge(scratch("s"), scratch("back"), &options, NULL, &err), SW_OK);
    expect_same_tensors("m", "back");
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
}

static void a_million_tensors_are_listed_and_verified(void **state)
{
    enum { MILLION = 1000000 };
    sw_buffer header = {0};
    sw_contents contents = {0};
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    (void)state;
    for (uint32_t i = 0; i < MILLION; i++)
        sw_buffer_printf(&header, "%c'h.%u.%c':{'dtype':'U8','shape':[0],'data_offsets':[0,0]}",
                         i == 0 ? '{' : ',', i / 2, i % 2 == 0 ? 'w' : 'b');
    sw_buffer_putc(&header, '}');
    write_tensors("m/model.safetensors", header.length, sw_buffer_text(&header), 0);
    sw_buffer_clear(&header);
    if (sw_contents_make(&contents, scratch("m"), false, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(contents.n_params, MILLION);
    assert_int_equal(contents.n_rows, 2);
    sw_contents_clear(&contents);
    assert_int_equal(sw_checkpoint_verify(scratch("m"), NULL, NULL, &result, &err), SW_OK);
}

/* ---- files ---- */

static void names_in_an_index_stay_in_the_folder(void **state)
{
    static const char *const names[] = {
        "../any/model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", ".", "",
        "a\\u0000b.safetensors"};

    (void)state;
    make_model("any", "", "any.weight BF16 4x4\n", 1);
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        char index[256];
        (void)snprintf(index, sizeof index, "{'weight_map':{'any.weight':'%s'}}", names[i]);
        scratch_text("m/model.safetensors.index.json", index, true);
        expect_refusal("m", "m/model.safetensors.index.json: byte ");
    }
}

static void only_regular_files_are_read(void **state)
{
    (void)state;
    make_model("m", "", "any.weight BF16 4x4\n", 1);
    scratch_remove("m/model.safetensors");
    assert_int_equal(mkfifo(scratch("m/model.safetensors"), 0600), 0); /* opening one would wait for ever */
    expect_refusal("m", "m/model.safetensors: is a pipe, socket or device, not a file");
    scratch_remove("m/model.safetensors");
    assert_int_equal(mkdir(scratch("m/model.safetensors"), 0700), 0);
    expect_refusal("m", "m/model.safetensors: is a folder, not a file");
    scratch_remove("m/model.safetensors");
    assert_int_equal(symlink("/dev/zero", scratch("m/model.safetensors")), 0);
    expect_refusal("m", "m/model.safetensors: is a pipe, socket or device, not a file");
    scratch_remove("m/model.safetensors");
    assert_int_equal(symlink("model.safetensors", scratch("m/model.safetensors")), 0); /* leads to itself */
    expect_refusal("m", "m/model.safetensors");
}

static void odd_files_of_a_sharded_folder_are_refused(void **state)
{
    static const char *const names[] = {"manifest.json", "dense-pp0-tp0.safetensors"};
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    (void)state;
    make_model("any", "", "any.weight BF16 4x4\n", 1);
    sw_plan *plan = plan_of("any", "tp=1", 0, NULL);
    options.no_sync = true;
    for (size_t i = 0; i < SW_COUNT(names); i++) {
        char path[64];
        scratch_remove("s");
        assert_int_equal(sw_checkpoint_shard(scratch("any"), plan, scratch("s"), &options, NULL, &err),
                         SW_OK);
        (void)snprintf(path, sizeof path, "s/%s", names[i]);
        scratch_remove(path);
        assert_int_equal(mkfifo(scratch(path), 0600), 0);
        assert_int_equal(sw_checkpoint_verify(scratch("s"), NULL, &options, NULL, &err), SW_E_FORMAT);
        assert_non_null(strstr(err.what, names[i]));
        assert_int_equal(sw_checkpoint_merge(scratch("s"), scratch("out"), &options, NULL, &err),
                         SW_E_FORMAT);
        assert_non_null(strstr(err.what, names[i]));
        assert_false(scratch_has("out"));
    }
    sw_plan_destroy(plan);
}

static void a_folder_that_cannot_be_written_is_an_error_of_the_system(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    (void)state;
    make_model("any", "", "any.weight BF16 4x4\n", 1);
    sw_plan *plan = plan_of("any", "tp=1", 0, NULL);
    assert_int_equal(sw_checkpoint_shard(scratch("any"), plan, "/proc/out", &options, NULL, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "/proc/out"));
    assert_int_equal(sw_checkpoint_shard(scratch("any"), plan, scratch("no/such/out"), &options, NULL, &err),
                     SW_E_IO);
    sw_plan_destroy(plan);
}

static void read_only_models_are_read(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("any", "", "any.weight BF16 4x4\n", 1);
    assert_int_equal(chmod(scratch("any/model.safetensors"), 0400), 0);
    assert_int_equal(chmod(scratch("any"), 0500), 0);
    assert_int_equal(list(scratch("any"), &err), SW_OK);
    assert_int_equal(sw_checkpoint_verify(scratch("any"), NULL, NULL, NULL, &err), SW_OK);
    assert_int_equal(chmod(scratch("any"), 0700), 0);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(header_lengths_are_bounded_by_the_file_and_the_limit),
        ONE(offsets_and_shapes_are_checked_before_anything_is_read),
        ONE(names_of_64_kib_are_carried_and_longer_ones_refused),
        ONE(a_million_tensors_are_listed_and_verified),
        ONE(names_in_an_index_stay_in_the_folder),
        ONE(only_regular_files_are_read),
        ONE(odd_files_of_a_sharded_folder_are_refused),
        ONE(a_folder_that_cannot_be_written_is_an_error_of_the_system),
        ONE(read_only_models_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
