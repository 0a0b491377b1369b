/* What ls shows: files, and tensors of one kind as one row, of every kind of checkpoint. */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/contents.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define LLAMA \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 16, 'num_hidden_layers': 12," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 4, 'intermediate_size': 24," \
    "'vocab_size': 40, 'torch_dtype': 'bfloat16'"
// clang-format on

/* "name x count DTYPE bytes stored", a line a row. */
static const char *rows_of(const sw_contents *c)
{
    static char text[65536];
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < c->n_rows; i++) {
        const sw_contents_row *r = &c->rows[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s x%" PRIu32 " %s %" PRIu64 " %s%s\n",
                                 r->name, r->n_tensors, r->dtype, r->n_bytes, r->stored,
                                 r->is_state ? " (state)" : "");
        assert_true(used < sizeof text);
    }
    return text;
}

static sw_contents open_contents(const char *path, bool all)
{
    sw_contents c = {0};
    sw_error err = {0};

    if (sw_contents_make(&c, scratch(path), all, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    return c;
}

static void layers_are_one_row(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 2);
    sw_contents c = open_contents("m", false);
    assert_string_equal(c.kind, "Hugging Face folder");
    assert_int_equal(c.n_files, 2);
    assert_string_equal(c.files[1].name, "model-00002-of-00002.safetensors");
    assert_int_equal(c.files[0].n_tensors + c.files[1].n_tensors, 111);
    assert_true(c.files[0].is_there && c.files[0].n_bytes > 0);
    assert_int_equal(c.n_params, 111);
    assert_int_equal(c.n_bytes, 2 * c.n_elements);
    assert_non_null(strstr(rows_of(&c), "model.layers.#.mlp.up_proj.weight x12 BF16 9216 whole\n"));
    assert_non_null(strstr(rows_of(&c), "lm_head.weight x1 BF16 1280 whole\n"));
    assert_int_equal(c.n_rows, 12);
    sw_contents_clear(&c);
}

static void all_shows_each_tensor_with_its_file(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 2);
    sw_contents c = open_contents("m", true);
    assert_int_equal(c.n_rows, 111);
    assert_non_null(strstr(rows_of(&c), "model.layers.11.mlp.up_proj.weight x1 BF16 768 "
                                        "model-00002-of-00002.safetensors\n"));
    sw_contents_clear(&c);
}

/* The same name at another shape or dtype is a row of its own, and keeps its full name when it is alone. */
static void only_what_is_alike_is_folded(void **state)
{
    (void)state;
    make_model("m", "", "h.0.w BF16 4\nh.1.w BF16 4\nh.2.w BF16 5\nh.3.w F32 4\nh.4.q Q9_X 4\n", 1);
    sw_contents c = open_contents("m", false);
    assert_string_equal(rows_of(&c), "h.#.w x2 BF16 16 whole\n"
                                     "h.2.w x1 BF16 10 whole\n"
                                     "h.3.w x1 F32 16 whole\n"
                                     "h.4.q x1 Q9_X 12 whole\n");
    sw_contents_clear(&c);
}

static void a_sharded_folder_shows_how_tensors_lie(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    (void)state;
    make_model("m", LLAMA, NULL, 1);
    sw_plan *plan = plan_of("m", "pp=2,tp=4", 0, NULL);
    options.no_sync = true;
    assert_int_equal(sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, &err), SW_OK);
    sw_plan_destroy(plan);
    sw_contents c = open_contents("s", false);
    assert_string_equal(c.kind, "sharded folder");
    assert_int_equal(c.n_files, 8);
    assert_string_equal(c.files[5].name, "dense-pp1-tp1.safetensors");
    assert_string_equal(c.files[5].coord, "pp=1,tp=1");
    assert_int_equal(c.n_params, 111);
    assert_int_equal(c.n_bytes, 2 * c.n_elements);
    const char *rows = rows_of(&c);
    assert_non_null(strstr(rows, "model.layers.#.mlp.up_proj.weight x12 BF16 9216 4 parts along dim 0\n"));
    assert_non_null(strstr(rows, "model.layers.#.mlp.down_proj.weight x12 BF16 9216 4 parts along dim 1\n"));
    assert_non_null(strstr(rows, "model.norm.weight x1 BF16 32 whole in 4 files\n"));
    sw_contents_clear(&c);
}

static void optimizer_state_is_told_apart(uint32_t n_files)
{
    make_model("m", "", "a.weight BF16 4\nb.weight BF16 6\n", n_files);
    make_model("o", "", "optim.m.a.weight F32 4\noptim.v.a.weight F32 4\n", 1);
    sw_buffer bytes = scratch_read("o/model.safetensors");
    scratch_bytes("m/optimizer-00001-of-00001.safetensors", bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
    sw_contents c = open_contents("m", false);
    assert_int_equal(c.n_params, 2);
    assert_int_equal(c.n_states, 2);
    assert_int_equal(c.n_elements, 10);
    assert_int_equal(c.n_files, n_files + 1);
    assert_non_null(strstr(rows_of(&c), "optim.m.a.weight x1 F32 16 whole (state)\n"));
    sw_contents_clear(&c);
}

static void optimizer_state_beside_an_index_is_told_apart(void **state)
{
    (void)state;
    optimizer_state_is_told_apart(2);
}

static void optimizer_state_without_an_index_is_told_apart(void **state)
{
    (void)state;
    optimizer_state_is_told_apart(1);
}

static void what_an_index_names_is_listed_once(void **state)
{
    (void)state;
    make_model("m", "", "a.weight BF16 4\n", 1);
    assert_int_equal(
        rename(scratch("m/model.safetensors"), scratch("m/optimizer-00001-of-00001.safetensors")), 0);
    scratch_text("m/model.safetensors.index.json",
                 "{'weight_map': {'a.weight': 'optimizer-00001-of-00001.safetensors'}}", true);
    sw_contents c = open_contents("m", false);
    assert_int_equal(c.n_params, 1);
    assert_int_equal(c.n_states, 0);
    assert_int_equal(c.n_files, 1);
    sw_contents_clear(&c);
}

static void a_dtype_that_is_not_known_has_the_word_and_size_of_the_header(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;

    (void)state;
    make_model("m", "'architectures': ['Any'], 'model_type': 'any', 'hidden_size': 8",
               "m.a BF16 4x2\nm.opaque Q9_X 4x6\nm.other Z 2\nm.z F32 3\n", 2);
    sw_contents c = open_contents("m", false);
    assert_string_equal(rows_of(&c), "m.a x1 BF16 16 whole\nm.opaque x1 Q9_X 72 whole\n"
                                     "m.other x1 Z 6 whole\nm.z x1 F32 12 whole\n");
    assert_int_equal(c.n_bytes, 16 + 72 + 6 + 12);
    sw_contents_clear(&c);
    sw_plan *plan =
        plan_of("m", "tp=2", 0, "overrides:\n- match: m\n  params: {+: {opaque: {tp: shard(0)}}}\n");
    sw_error err = {0};
    if (sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    sw_plan_destroy(plan);
    c = open_contents("s", false);
    assert_non_null(strstr(rows_of(&c), "m.opaque x1 Q9_X 72 2 parts along dim 0\n"));
    sw_contents_clear(&c);
}

static void an_index_without_its_files_is_listed(void **state)
{
    (void)state;
    make_model("m", LLAMA, NULL, 2);
    scratch_remove("m/model-00001-of-00002.safetensors");
    scratch_remove("m/model-00002-of-00002.safetensors");
    sw_contents c = open_contents("m", false);
    assert_string_equal(c.kind, "index without its files");
    assert_int_equal(c.n_files, 2);
    assert_false(c.files[0].is_there);
    assert_int_equal(c.n_params, 111);
    assert_non_null(strstr(rows_of(&c), "model.layers.#.mlp.up_proj.weight x12 BF16 9216 whole\n"));
    sw_contents_clear(&c);
}

static void what_is_wrong_is_said(void **state)
{
    sw_contents c = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_contents_make(&c, scratch("nothing"), false, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/nothing: no such file or folder"));
    assert_null(c.arena);
}

static void lack_of_memory_is_told_and_leaves_nothing(void **state)
{
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    make_model("m", "", "h.0.w BF16 4\nh.1.w BF16 4\nh.2.w BF16 5\n", 1);
    for (uint64_t n = 1; status != SW_OK; n++) {
        sw_contents c = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_contents_make(&c, scratch("m"), false, NULL, &err);
        sw_alloc_fail_at(0);
        sw_contents_clear(&c);
        assert_int_equal(sw_alloc_live(), live);
        if (status != SW_OK && status != SW_E_NO_MEMORY)
            fail_msg("allocation %" PRIu64 ": %s", n, err.what);
    }
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(layers_are_one_row),
        ONE(all_shows_each_tensor_with_its_file),
        ONE(only_what_is_alike_is_folded),
        ONE(a_sharded_folder_shows_how_tensors_lie),
        ONE(optimizer_state_beside_an_index_is_told_apart),
        ONE(optimizer_state_without_an_index_is_told_apart),
        ONE(what_an_index_names_is_listed_once),
        ONE(an_index_without_its_files_is_listed),
        ONE(a_dtype_that_is_not_known_has_the_word_and_size_of_the_header),
        ONE(what_is_wrong_is_said),
        ONE(lack_of_memory_is_told_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
