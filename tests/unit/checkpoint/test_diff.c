/* diff: two checkpoints of any layout, compared by what they hold; each difference by its name and place. */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/safetensors.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define PHI3 \
    "'architectures': ['Phi3ForCausalLM'], 'model_type': 'phi3', 'hidden_size': 32, 'num_hidden_layers': 1," \
    "'num_attention_heads': 8, 'num_key_value_heads': 2, 'intermediate_size': 32, 'vocab_size': 48," \
    "'torch_dtype': 'bfloat16'"
#define MIXTRAL \
    "'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': 16," \
    "'num_hidden_layers': 1, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 24," \
    "'num_local_experts': 4, 'num_experts_per_tok': 2, 'vocab_size': 40, 'torch_dtype': 'bfloat16'"
// clang-format on

static const char qkv[] = "model.layers.0.self_attn.qkv_proj.weight"; /* 32 + 8 + 8 rows of 32 */

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

/* The differences, a line each: "code name: what", the scratch folder as '$'. */
static const char *differences(const char *a, const char *b)
{
    static char text[65536];
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_buffer all = {0};
    sw_error err = {0};
    size_t n = 0;

    assert_int_equal(sw_report_create(&options.report, &err), SW_OK);
    sw_status status = sw_checkpoint_diff(scratch(a), scratch(b), &options, NULL, &err);
    if (status != SW_OK && status != SW_E_FORMAT)
        fail_msg("%s", err.what);
    assert_int_equal(status == SW_OK, sw_report_count(options.report) == 0);
    for (size_t i = 0; i < sw_report_count(options.report); i++) {
        const sw_finding *f = sw_report_finding(options.report, i);
        assert_int_equal(f->severity, SW_SEVERITY_ERROR);
        sw_buffer_printf(&all, "%s %s: %s\n", f->code, f->fqn, f->what);
    }
    const char *root = scratch("");
    for (const char *at = sw_buffer_text(&all); *at != '\0'; at++) {
        bool is_root = strncmp(at, root, strlen(root)) == 0;
        assert_true(n + 1 < sizeof text);
        text[n++] = is_root ? '$' : *at;
        at += is_root ? strlen(root) - 1 : 0;
    }
    text[n] = '\0';
    sw_buffer_clear(&all);
    sw_report_destroy(options.report);
    return text;
}

static void flip(const char *file, const char *tensor, uint64_t at, char bits)
{
    sw_tensor_list list = {0};
    sw_error err = {0};
    sw_buffer bytes = scratch_read(file);
    uint64_t header = 0;

    assert_int_equal(sw_tensor_list_init(&list, 0, &err), SW_OK);
    if (sw_safetensors_read_file(&list, scratch(file), &err) != SW_OK)
        fail_msg("%s", err.what);
    const sw_tensor_entry *t = sw_tensor_list_find(&list, tensor, strlen(tensor));
    assert_non_null(t);
    for (int i = 7; i >= 0; i--)
        header = header << 8 | (unsigned char)bytes.bytes[i];
    bytes.bytes[8 + header + t->begin + at] ^= bits;
    scratch_bytes(file, bytes.bytes, bytes.length);
    sw_buffer_clear(&bytes);
    sw_tensor_list_clear(&list);
}

/* ---- the same ---- */

static void layouts_are_no_difference(void **state)
{
    static const char *const folders[] = {"m", "s2", "s4", "s8", "pp"};

    (void)state;
    make_model("m", PHI3, NULL, 2);
    shard_to("m", "tp=2", 0, "s2");
    shard_to("m", "tp=4", 0, "s4"); /* key/value heads stand twice */
    shard_to("m", "tp=8", 0, "s8");
    shard_to("m", "pp=1,tp=1", 0, "pp");
    for (size_t i = 0; i < SW_COUNT(folders); i++) {
        for (size_t k = 0; k < SW_COUNT(folders); k++)
            assert_string_equal(differences(folders[i], folders[k]), "");
    }
}

static void experts_are_compared_one_by_one(void **state)
{
    (void)state;
    make_model("m", MIXTRAL, NULL, 1);
    shard_to("m", "tp=2,ep=2", 0, "axis");
    shard_to("m", "dp=2,tp=2", 4, "derived");
    assert_string_equal(differences("axis", "derived"), "");
    assert_string_equal(differences("derived", "m"), "");
    flip("derived/expert-pp0-ep2.safetensors", "model.layers.0.block_sparse_moe.experts.2.w2.weight",
         (5 * 24 + 3) * 2, 1);
    const char *text = differences("axis", "derived");
    assert_non_null(strstr(text, "other_bytes model.layers.0.block_sparse_moe.experts.2.w2.weight: 1 of 384 "
                                 "elements differs, first at [5,3]: 0x"));
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
}

/* ---- names, dtypes, shapes ---- */

static void names_dtypes_and_shapes_are_told_before_bytes(void **state)
{
    (void)state;
    make_model("a", "", "x.weight F32 4x2\ny.weight BF16 8\nz.weight I8 3\nw.weight F16 2x3\n", 1);
    make_model("b", "", "x.weight F32 2x4\ny.weight F16 8\nz.weight I8 3\nv.bias F64 -\n", 1);
    assert_string_equal(differences("a", "b"), "other_shape x.weight: F32 [4,2] in $/a, F32 [2,4] in $/b\n"
                                               "other_dtype y.weight: BF16 [8] in $/a, F16 [8] in $/b\n"
                                               "only_in_first w.weight: only in $/a: F16 [2,3]\n"
                                               "only_in_second v.bias: only in $/b: F64 []\n");
}

static void the_verdict_counts_tensors(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("a", "", "x.weight F32 4x2\ny.weight BF16 8\n", 1);
    make_model("b", "", "x.weight F32 4x2\nz.weight BF16 8\n", 1);
    assert_int_equal(sw_checkpoint_diff(scratch("a"), scratch("b"), NULL, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/b differ: 2 of 3 tensors"));
    make_model("a", "", "x.weight F32 4x2\n", 1);
    make_model("b", "", "x.weight F32 2x4\n", 1);
    assert_int_equal(sw_checkpoint_diff(scratch("a"), scratch("b"), NULL, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/b differ: 1 of 1 tensor"));
    assert_null(strstr(err.what, "tensors"));
}

/* ---- bytes ---- */

static void the_first_difference_has_its_index_and_both_values(void **state)
{
    (void)state;
    make_model("a", "", "f.weight F32 3x4x5\ns.bias I16 -\n", 1);
    make_model("b", "", "f.weight F32 3x4x5\ns.bias I16 -\n", 1);
    uint8_t f[4];
    for (size_t i = 0; i < 4; i++)
        f[i] = data_byte("f.weight", 8, (1 * 20 + 2 * 5 + 3) * 4 + i);
    flip("b/model.safetensors", "f.weight", (1 * 20 + 2 * 5 + 3) * 4 + 1, 0x10);
    flip("b/model.safetensors", "f.weight", (2 * 20 + 3 * 5 + 4) * 4, 1);
    flip("b/model.safetensors", "s.bias", 1, 1);
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted,
                   "other_bytes f.weight: 2 of 60 elements differ, first at [1,2,3]: 0x%02x%02x%02x%02x (",
                   f[3], f[2], f[1], f[0]);
    const char *text = differences("a", "b");
    assert_int_equal(strncmp(text, wanted, strlen(wanted)), 0);
    (void)snprintf(wanted, sizeof wanted, "), 0x%02x%02x%02x%02x (", f[3], f[2], f[1] ^ 0x10, f[0]);
    assert_non_null(strstr(text, wanted));
    assert_non_null(strstr(text, "other_bytes s.bias: 1 of 1 elements differs, first at []: 0x"));
}

static void small_elements_are_counted_by_bits_and_unknown_ones_by_size(void **state)
{
    (void)state;
    make_model("a", "", "four F4 2x8\nq Q9_X 4x2\n", 1); /* the unknown ones take three bytes each */
    make_model("b", "", "four F4 2x8\nq Q9_X 4x2\n", 1);
    flip("b/model.safetensors", "four", 5, 0x30); /* the high half of byte 5: element 11 */
    flip("b/model.safetensors", "four", 6, 0x11); /* both halves of byte 6 */
    flip("b/model.safetensors", "q", 3 * 5 + 2, 1);
    const char *text = differences("a", "b");
    assert_int_equal(strncmp(text, "other_bytes four: 3 of 16 elements differ, first at [1,3]: 0x", 61), 0);
    assert_non_null(strstr(text, "other_bytes q: 1 of 8 elements differs, first at [2,1]: 0x"));
}

/* What stands twice counts once, on whichever side it is cut. */
static void a_copied_row_counts_once(void **state)
{
    (void)state;
    make_model("m", PHI3, NULL, 1);
    make_model("n", PHI3, NULL, 1);
    shard_to("m", "tp=4", 0, "s4");
    flip("n/model.safetensors", qkv, (33 * 32 + 1) * 2, 1); /* a key row, on ranks 0 and 1 */
    flip("n/model.safetensors", qkv, (2 * 32 + 9) * 2, 1);
    const char *text = differences("s4", "n");
    assert_int_equal(
        strncmp(text,
                "other_bytes model.layers.0.self_attn.qkv_proj.weight: 2 of 1536 elements differ, first "
                "at [2,9]: 0x",
                98),
        0);
    assert_int_equal(strncmp(differences("n", "s4"), text, 98), 0);
}

static void a_large_tensor_is_compared_piece_by_piece(void **state)
{
    (void)state;
    make_model("a", "", "big.weight BF16 1200x700\n", 1);
    make_model("b", "", "big.weight BF16 1200x700\n", 1);
    for (uint64_t row = 1; row < 1200; row += 100)
        flip("b/model.safetensors", "big.weight", (row * 700 + row / 2) * 2, 1);
    assert_int_equal(strncmp(differences("a", "b"),
                             "other_bytes big.weight: 12 of 840000 elements differ, first at [1,0]: 0x", 71),
                     0);
}

static void empty_tensors_are_equal(void **state)
{
    (void)state;
    make_model("a", "", "e.weight BF16 0x4\nx.weight F32 2\n", 1);
    make_model("b", "", "e.weight BF16 0x4\nx.weight F32 2\n", 1);
    assert_string_equal(differences("a", "b"), "");
}

static void training_state_is_compared_as_it_is_written(void **state)
{
    (void)state;
    make_model("a", "", "x.weight F32 2\n", 1);
    make_model("b", "", "x.weight F32 2\n", 1);
    scratch_text("a/training_state.json", "{'step': 100}", true);
    assert_string_equal(differences("a", "b"),
                        "other_state : the training state is another: 13 bytes in $/a, 0 in $/b\n");
    scratch_text("b/training_state.json", "{'step': 101}", true);
    assert_string_equal(differences("a", "b"),
                        "other_state : the training state is another: 13 bytes in $/a, 13 in $/b\n");
    scratch_text("b/training_state.json", "{'step': 100}", true);
    assert_string_equal(differences("a", "b"), "");
}

/* ---- callers ---- */

static void what_cannot_be_opened_is_named(void **state)
{
    sw_error err = {0};

    (void)state;
    make_model("a", "", "x.weight F32 2\n", 1);
    assert_int_equal(sw_checkpoint_diff(scratch("a"), scratch("none"), NULL, NULL, &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "/none: no such file or folder"));
}

static void lack_of_memory_is_told_and_leaves_nothing(void **state)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    make_model("a", "", "x.weight F32 4x2\ny.weight BF16 8\n", 1);
    make_model("b", "", "x.weight F32 4x2\ny.weight BF16 8\n", 1);
    options.threads = 1;
    for (uint64_t n = 1; status != SW_OK; n++) {
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        status = sw_checkpoint_diff(scratch("a"), scratch("b"), &options, NULL, &err);
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
        ONE(layouts_are_no_difference),
        ONE(experts_are_compared_one_by_one),
        ONE(names_dtypes_and_shapes_are_told_before_bytes),
        ONE(the_verdict_counts_tensors),
        ONE(the_first_difference_has_its_index_and_both_values),
        ONE(small_elements_are_counted_by_bits_and_unknown_ones_by_size),
        ONE(a_copied_row_counts_once),
        ONE(a_large_tensor_is_compared_piece_by_piece),
        ONE(empty_tensors_are_equal),
        ONE(training_state_is_compared_as_it_is_written),
        ONE(what_cannot_be_opened_is_named),
        ONE(lack_of_memory_is_told_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
