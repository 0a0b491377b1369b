/* Loading from maps: parts of tensors out of the files of any store, exactly their bytes, and what is wrong
 * with those. */
#include "checkpoint_case.h"

#include <string.h>

#include "base/status.h"
#include "checkpoint/mapped.h"
#include "shardwright/checkpoint.h"

#define CONFIG                                                                                               \
    "'architectures': ['LlamaForCausalLM'], 'hidden_size': 8, 'num_hidden_layers': 1, "                      \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 12, 'vocab_size': 16"

enum { ROWS = 8, COLUMNS = 12, WIDTH = 4 };

static const char down[] = "model.layers.0.mlp.down_proj.weight"; /* [8, 12], cut along columns */

static sw_store *store;
static sw_mapped *mapped;

static void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s (%s)", err->what, err->help);
}

static int make(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    assert_int_equal(scratch_setup(state), 0);
    options.no_sync = true;
    make_model("model", CONFIG, NULL, 2);
    sw_plan *plan = plan_of("model", "tp=2", 0, NULL);
    must(sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, &err), &err);
    sw_plan_destroy(plan);
    return 0;
}

static void open_store(const char *name)
{
    sw_error err = {0};

    must(sw_store_open(&store, scratch(name), NULL, &err), &err);
    must(sw_mapped_create(&mapped, store, &err), &err);
}

static void close_store(void)
{
    sw_mapped_destroy(mapped);
    sw_store_close(store);
    mapped = NULL;
    store = NULL;
}

static const sw_store_tensor *tensor(const char *name)
{
    const sw_store_tensor *found = sw_store_find(store, name, strlen(name));

    assert_non_null(found);
    return found;
}

/* Rows and columns [begin, end) of the matrix that is cut. */
static sw_status take(const sw_range *rows, const sw_range *columns, uint8_t *to, sw_error *err)
{
    const sw_pieces along[] = {
        {1, rows   },
        {1, columns}
    };
    const sw_part part = {2, along};

    return sw_mapped_take(mapped, tensor(down), &part, to, err);
}

static void check_bytes(const uint8_t *bytes, const sw_range *rows, const sw_range *columns)
{
    for (uint64_t r = rows->begin; r < rows->end; r++) {
        for (uint64_t b = columns->begin * WIDTH; b < columns->end * WIDTH; b++)
            assert_int_equal(*bytes++, data_byte(down, strlen(down), r * COLUMNS * WIDTH + b));
    }
}

static void any_part_is_taken_from_any_files_and_nothing_else_is_read(void **state)
{
    static const char *const folders[] = {"model", "sharded"};
    static const sw_range parts[][2] = {
        {{0, ROWS}, {0, COLUMNS}},
        {{0, ROWS}, {0, 6}      },
        {{0, ROWS}, {3, 9}      },
        {{2, 5},    {5, 7}      }
    };
    uint8_t bytes[ROWS * COLUMNS * WIDTH];
    sw_error err = {0};

    (void)state;
    for (size_t i = 0; i < 2 * SW_COUNT(parts); i++) {
        const sw_range *rows = &parts[i / 2][0];
        const sw_range *columns = &parts[i / 2][1];
        open_store(folders[i % 2]);
        must(take(rows, columns, bytes, &err), &err);
        check_bytes(bytes, rows, columns);
        assert_int_equal(mapped->bytes_read,
                         (rows->end - rows->begin) * (columns->end - columns->begin) * WIDTH);
        close_store();
    }
}

static void files_that_hold_nothing_of_it_are_not_opened(void **state)
{
    static const sw_range rows = {0, ROWS};
    static const sw_range columns = {6, COLUMNS};
    uint8_t bytes[ROWS * 6 * WIDTH];
    sw_error err = {0};

    (void)state;
    open_store("sharded");
    scratch_remove("sharded/dense-pp0-tp0.safetensors");
    must(take(&rows, &columns, bytes, &err), &err);
    check_bytes(bytes, &rows, &columns);
    const sw_range others = {0, 7};
    assert_int_equal(take(&rows, &others, bytes, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "sharded/dense-pp0-tp0.safetensors"));
    close_store();
}

static void a_whole_tensor_is_lent_where_one_file_has_it(void **state)
{
    static const char norm[] = "model.norm.weight";
    const uint8_t *bytes = NULL;
    sw_error err = {0};

    (void)state;
    open_store("sharded");
    must(sw_mapped_lend(mapped, tensor(down), &bytes, &err), &err);
    assert_null(bytes);
    must(sw_mapped_lend(mapped, tensor(norm), &bytes, &err), &err);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8 * WIDTH; i++)
        assert_int_equal(bytes[i], data_byte(norm, strlen(norm), i));
    close_store();
}

/* The last byte of a file is one of a tensor. */
static void damage(const char *name)
{
    sw_buffer file = scratch_read(name);

    file.bytes[file.length - 1] ^= 1;
    scratch_bytes(name, file.bytes, file.length);
    sw_buffer_clear(&file);
}

static void a_checksum_that_differs_names_file_and_tensor(void **state)
{
    const uint8_t *bytes = NULL;
    uint8_t *taken = malloc(4096);
    bool is_found = false;
    sw_error err = {0};

    (void)state;
    assert_non_null(taken);
    damage("sharded/dense-pp0-tp1.safetensors");
    open_store("sharded");
    for (uint32_t i = 0; i < store->n_tensors && !is_found; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        sw_arena *arena = sw_arena_create(0);
        sw_part whole;
        must(sw_part_whole(&whole, t->shape->dims, t->shape->n_dims, arena, &err), &err);
        is_found = sw_mapped_take(mapped, t, &whole, taken, &err) == SW_E_FORMAT;
        assert_true(is_found || sw_mapped_lend(mapped, t, &bytes, &err) == SW_OK);
        sw_arena_destroy(arena);
    }
    assert_true(is_found);
    assert_non_null(strstr(err.what, "sharded/dense-pp0-tp1.safetensors: tensor '"));
    assert_non_null(strstr(err.what, "has not the checksum that the manifest says"));
    close_store();
    free(taken);
}

static void a_file_that_was_cut_meanwhile_is_refused(void **state)
{
    static const sw_range rows = {0, ROWS};
    static const sw_range columns = {0, COLUMNS};
    uint8_t bytes[ROWS * COLUMNS * WIDTH];
    sw_error err = {0};

    (void)state;
    open_store("sharded");
    scratch_bytes("sharded/dense-pp0-tp1.safetensors", "1234", 4);
    assert_int_equal(take(&rows, &columns, bytes, &err), SW_E_IO);
    assert_non_null(strstr(err.what, "dense-pp0-tp1.safetensors: has 4 bytes now, it had "));
    close_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_part_is_taken_from_any_files_and_nothing_else_is_read, make,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(files_that_hold_nothing_of_it_are_not_opened, make, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_whole_tensor_is_lent_where_one_file_has_it, make, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_checksum_that_differs_names_file_and_tensor, make,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_cut_meanwhile_is_refused, make, scratch_teardown),
    };
    return cmocka_run_group_tests_name("mapped", tests, NULL, NULL);
}
