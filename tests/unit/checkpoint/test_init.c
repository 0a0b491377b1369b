/*
 * Models that are made from a config: what is in the folder, that nothing but seed and config decides its
 * bytes, what is refused, and that nothing is left behind when it fails.
 */
#include "checkpoint_case.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/narrow.h"
#include "shardwright/checkpoint.h"
#include "shardwright/report.h"

// clang-format off
#define LLAMA(layers, vocab) \
    "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 64," \
    "'num_hidden_layers': " layers ", 'num_attention_heads': 4, 'num_key_value_heads': 2," \
    "'intermediate_size': 96, 'vocab_size': " vocab ", 'torch_dtype': 'bfloat16'}"
/* Its embedding has more elements than one chunk of work. */
#define LLAMA_LARGE LLAMA("2", "5001")
#define LLAMA_SMALL LLAMA("2", "100")
#define DEEPSEEK_FP8 \
    "{'architectures': ['DeepseekV3ForCausalLM'], 'model_type': 'deepseek_v3', 'hidden_size': 64," \
    "'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 96," \
    "'moe_intermediate_size': 32, 'n_routed_experts': 4, 'n_shared_experts': 1, 'num_experts_per_tok': 2," \
    "'first_k_dense_replace': 1, 'q_lora_rank': 24, 'kv_lora_rank': 16, 'qk_nope_head_dim': 8," \
    "'qk_rope_head_dim': 8, 'v_head_dim': 8, 'num_nextn_predict_layers': 1, 'vocab_size': 100," \
    "'torch_dtype': 'bfloat16'," \
    "'quantization_config': {'quant_method': 'fp8', 'weight_block_size': [16, 16]}}"
// clang-format on

/* What a test asks for; zero is the default. */
typedef struct wish {
    sw_init_options init;
    sw_checkpoint_options options;
} wish;

static wish any(void)
{
    wish w = {SW_INIT_OPTIONS_INIT, SW_CHECKPOINT_OPTIONS_INIT};
    w.options.no_sync = true;
    return w;
}

static sw_checkpoint_result make(const char *config, const char *out, const wish *w)
{
    sw_checkpoint_result result = {0};
    sw_error err = {0};

    if (sw_checkpoint_init(scratch(config), scratch(out), &w->init, &w->options, &result, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    return result;
}

static void refuse(const char *config, const char *out, const wish *w, sw_status status, const char *what)
{
    sw_error err = {0};
    sw_status found = sw_checkpoint_init(scratch(config), scratch(out), &w->init, &w->options, NULL, &err);

    if (found != status || strstr(err.what, what) == NULL)
        fail_msg("status %d: %s", (int)found, err.what);
    assert_string_not_equal(err.what, "");
}

/* The bytes of one tensor of a folder; unload the folder. */
static const uint8_t *tensor(const loaded *l, const char *name, uint64_t *n_bytes)
{
    const sw_tensor_entry *t = sw_tensor_list_find(&l->list, name, strlen(name));

    if (t == NULL)
        fail_msg("no tensor %s", name);
    return loaded_bytes(l, t, n_bytes);
}

/* ---- what is made ---- */

static void a_folder_has_the_config_and_the_model_that_it_describes(void **state)
{
    sw_model *described = NULL;
    sw_model *made = NULL;
    sw_error err = {0};
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    sw_checkpoint_result result = make("config.json", "out", &w);
    assert_string_equal(scratch_list("out"), "config.json model.safetensors ");
    sw_buffer given = scratch_read("config.json");
    sw_buffer written = scratch_read("out/config.json");
    assert_string_equal(written.bytes, given.bytes);

    assert_int_equal(sw_model_open(&described, scratch("config.json"), &err), SW_OK);
    assert_int_equal(sw_model_open(&made, scratch("out"), &err), SW_OK);
    assert_int_equal(sw_model_fingerprint(made), sw_model_fingerprint(described));
    assert_int_equal(result.elements, sw_model_elements(described));
    assert_int_equal(result.covered, result.elements);
    assert_int_equal(result.replicas, 0);
    assert_int_equal(result.files, 1);
    sw_buffer file = scratch_read("out/model.safetensors");
    assert_int_equal(result.bytes_written, file.length + written.length);
    sw_buffer_clear(&file);
    sw_buffer_clear(&written);
    sw_buffer_clear(&given);
    sw_model_close(made);
    sw_model_close(described);
}

static void the_config_may_be_given_by_its_folder(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("model/config.json", LLAMA_SMALL, true);
    (void)make("model", "a", &w);
    (void)make("model/config.json", "b", &w);
    expect_same_tensors("a", "b");
}

static void a_large_model_is_cut_into_files_with_an_index(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    (void)make("config.json", "one", &w);
    w.options.max_shard_bytes = 50000;
    sw_checkpoint_result result = make("config.json", "many", &w);
    assert_int_equal(result.files, 4);
    assert_string_equal(scratch_list("many"),
                        "config.json model-00001-of-00004.safetensors model-00002-of-00004.safetensors "
                        "model-00003-of-00004.safetensors model-00004-of-00004.safetensors "
                        "model.safetensors.index.json ");
    expect_same_tensors("one", "many");
    sw_buffer index = scratch_read("many/model.safetensors.index.json");
    assert_non_null(strstr(index.bytes, "\"lm_head.weight\": \"model-00004-of-00004.safetensors\""));
    sw_buffer_clear(&index);
}

/* ---- what decides the bytes ---- */

static void threads_do_not_change_a_byte(void **state)
{
    static const uint32_t threads[] = {1, 2, 4};
    sw_buffer first = {0};

    (void)state;
    scratch_text("config.json", LLAMA_LARGE, true);
    for (size_t i = 0; i < SW_COUNT(threads); i++) {
        wish w = any();
        w.options.threads = threads[i];
        (void)make("config.json", "out", &w);
        sw_buffer file = scratch_read("out/model.safetensors");
        if (i == 0)
            sw_buffer_append(&first, file.bytes, file.length);
        assert_int_equal(file.length, first.length);
        assert_memory_equal(file.bytes, first.bytes, first.length);
        sw_buffer_clear(&file);
        scratch_remove("out");
    }
    sw_buffer_clear(&first);
}

/* The file of a seed, for ever: a change here breaks everyone's references. tests/data/random has the parts.
 */
static void the_bytes_of_a_seed_stay_what_they_are(void **state)
{
    static const struct {
        uint64_t seed;
        sw_dtype dtype;
        uint64_t hash;
    } cases[] = {
        {0,          SW_DTYPE_F32,  UINT64_C(0xf19f8ff17f3fe182)},
        {0,          SW_DTYPE_BF16, UINT64_C(0xa9b1da171c137b60)},
        {UINT64_MAX, SW_DTYPE_F16,  UINT64_C(0x9dbce82b49e05d20)},
    };

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        wish w = any();
        w.init.seed = cases[i].seed;
        w.init.dtype = cases[i].dtype;
        (void)make("config.json", "out", &w);
        sw_buffer file = scratch_read("out/model.safetensors");
        uint64_t hash = sw_hash(file.bytes, file.length, 0);
        if (hash != cases[i].hash)
            fail_msg("case %zu: hash %016" PRIx64, i, hash);
        sw_buffer_clear(&file);
        scratch_remove("out");
    }
}

static void another_seed_is_another_model(void **state)
{
    wish w = any();
    uint64_t n = 0;

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    (void)make("config.json", "a", &w);
    w.init.seed = 1;
    (void)make("config.json", "b", &w);
    loaded a = load_folder(scratch("a"));
    loaded b = load_folder(scratch("b"));
    const uint8_t *of_a = tensor(&a, "model.embed_tokens.weight", &n);
    assert_memory_not_equal(of_a, tensor(&b, "model.embed_tokens.weight", &n), n);
    of_a = tensor(&a, "model.norm.weight", &n);
    assert_memory_equal(of_a, tensor(&b, "model.norm.weight", &n), n);
    unload(&a);
    unload(&b);
}

static void no_two_matrices_and_no_two_halves_are_alike(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    (void)make("config.json", "out", &w);
    loaded l = load_folder(scratch("out"));
    for (size_t i = 0; i < l.list.n_tensors; i++) {
        uint64_t n = 0;
        const sw_tensor_entry *t = &l.list.tensors[i];
        const uint8_t *bytes = loaded_bytes(&l, t, &n);
        if (t->shape->n_dims < 2)
            continue;
        assert_memory_not_equal(bytes, bytes + n / 2, n / 2);
        for (size_t k = 0; k < i; k++) {
            uint64_t n_other = 0;
            const uint8_t *other = loaded_bytes(&l, &l.list.tensors[k], &n_other);
            if (n_other == n)
                assert_memory_not_equal(bytes, other, n);
        }
    }
    unload(&l);
}

static void the_mesh_that_it_is_cut_for_changes_nothing(void **state)
{
    static const char *const meshes[] = {"tp=1", "tp=2", "dp=2,tp=2", "pp=2,tp=2"};
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    wish w = any();

    (void)state;
    options.no_sync = true;
    w.init.seed = 1;
    scratch_text("config.json", LLAMA_SMALL, true);
    (void)make("config.json", "model", &w);
    for (size_t i = 0; i < SW_COUNT(meshes); i++) {
        sw_error err = {0};
        sw_plan *plan = plan_of("model", meshes[i], 0, NULL);
        if (sw_checkpoint_shard(scratch("model"), plan, scratch("sharded"), &options, NULL, &err) != SW_OK ||
            sw_checkpoint_merge(scratch("sharded"), scratch("merged"), &options, NULL, &err) != SW_OK)
            fail_msg("%s", err.what);
        expect_same_tensors("model", "merged");
        scratch_remove("sharded");
        scratch_remove("merged");
        sw_plan_destroy(plan);
    }
}

static float f32_at(const uint8_t *bytes, uint64_t i)
{
    float value = 0;
    memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
}

static uint16_t u16_at(const uint8_t *bytes, uint64_t i)
{
    uint16_t value = 0;
    memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
}

static void a_narrow_model_is_the_wide_one_rounded(void **state)
{
    static const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_BF16, SW_DTYPE_F16};
    static const char *const folders[] = {"F32", "BF16", "F16"};
    loaded all[3];
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    for (size_t i = 0; i < 3; i++) {
        w.init.dtype = dtypes[i];
        (void)make("config.json", folders[i], &w);
        all[i] = load_folder(scratch(folders[i]));
    }
    for (size_t i = 0; i < all[0].list.n_tensors; i++) {
        uint64_t n = 0;
        const char *name = all[0].list.tensors[i].name;
        const uint8_t *wide = tensor(&all[0], name, &n);
        const uint8_t *bf16 = tensor(&all[1], name, &n);
        const uint8_t *f16 = tensor(&all[2], name, &n);
        for (uint64_t e = 0; e < n / 2; e++) {
            assert_int_equal(u16_at(bf16, e), sw_bf16_of(f32_at(wide, e)));
            assert_int_equal(u16_at(f16, e), sw_f16_of(f32_at(wide, e)));
        }
    }
    for (size_t i = 0; i < 3; i++)
        unload(&all[i]);
    sw_buffer config = scratch_read("F16/config.json");
    assert_non_null(strstr(config.bytes, "\"torch_dtype\": \"float16\""));
    sw_buffer_clear(&config);
}

static double deviation_of(const char *folder, const char *name)
{
    uint64_t n = 0;
    double sum = 0.0;
    loaded l = load_folder(scratch(folder));
    const uint8_t *bytes = tensor(&l, name, &n);

    for (uint64_t i = 0; i < n / 4; i++)
        sum += (double)f32_at(bytes, i) * (double)f32_at(bytes, i);
    unload(&l);
    return sqrt(sum / (double)(n / 4));
}

static void the_scale_is_a_factor_on_the_deviation(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_LARGE, true);
    w.init.dtype = SW_DTYPE_F32;
    (void)make("config.json", "usual", &w);
    w.init.scale = 3.5;
    (void)make("config.json", "wide", &w);
    assert_true(fabs(deviation_of("usual", "lm_head.weight") / 0.02 - 1.0) < 0.01);
    assert_true(fabs(deviation_of("wide", "lm_head.weight") / 0.07 - 1.0) < 0.01);
    assert_true(deviation_of("wide", "model.norm.weight") == 1.0);
}

/* ---- edited configs ---- */

static void fewer_layers_are_what_the_config_then_says(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    w.init.layers = 1;
    (void)make("config.json", "out", &w);
    sw_buffer config = scratch_read("out/config.json");
    assert_non_null(strstr(config.bytes, "\"num_hidden_layers\": 1"));
    sw_buffer_clear(&config);
    loaded l = load_folder(scratch("out"));
    assert_non_null(sw_tensor_list_find(&l.list, "model.layers.0.mlp.up_proj.weight", 33));
    assert_null(sw_tensor_list_find(&l.list, "model.layers.1.mlp.up_proj.weight", 33));
    unload(&l);
    w.init.layers = 3; /* more of them are as good */
    (void)make("config.json", "more", &w);
    l = load_folder(scratch("more"));
    assert_non_null(sw_tensor_list_find(&l.list, "model.layers.2.mlp.up_proj.weight", 33));
    unload(&l);
}

static void a_quantised_config_gives_plain_weights_and_says_so(void **state)
{
    wish w = any();
    sw_error err = {0};

    (void)state;
    scratch_text("config.json", DEEPSEEK_FP8, true);
    assert_int_equal(sw_report_create(&w.options.report, &err), SW_OK);
    (void)make("config.json", "out", &w);
    loaded l = load_folder(scratch("out"));
    for (size_t i = 0; i < l.list.n_tensors; i++) {
        const sw_tensor_entry *t = &l.list.tensors[i];
        bool is_correction = strstr(t->name, "e_score_correction_bias") != NULL;
        assert_int_equal(t->dtype, is_correction ? SW_DTYPE_F32 : SW_DTYPE_BF16);
        assert_null(strstr(t->name, "scale_inv"));
    }
    unload(&l);
    sw_buffer config = scratch_read("out/config.json");
    assert_null(strstr(config.bytes, "quantization_config"));
    sw_buffer_clear(&config);
    assert_int_equal(sw_report_count(w.options.report), 1);
    const sw_finding *note = sw_report_finding(w.options.report, 0);
    assert_int_equal(note->severity, SW_SEVERITY_NOTE);
    assert_string_equal(note->code, "init_unquantised");
    assert_non_null(strstr(note->what, "describes weights quantised by \"fp8\"; they are written in BF16"));
    sw_report_destroy(w.options.report);
}

static void a_silent_quantised_config_gives_bf16(void **state)
{
    wish w = any();

    (void)state;
    scratch_text(
        "config.json",
        "{'model_type': 'llama', 'hidden_size': 64, 'num_hidden_layers': 1, 'num_attention_heads': 4,"
        "'intermediate_size': 96, 'vocab_size': 100, 'quantization_config': {'quant_method': 'awq'}}",
        true);
    (void)make("config.json", "out", &w);
    loaded l = load_folder(scratch("out"));
    assert_int_equal(l.list.tensors[0].dtype, SW_DTYPE_BF16);
    unload(&l);
    sw_buffer config = scratch_read("out/config.json");
    assert_non_null(strstr(config.bytes, "\"torch_dtype\": \"bfloat16\""));
    sw_buffer_clear(&config);
}

/* ---- refusals ---- */

static void what_is_no_config_of_a_known_family_is_refused(void **state)
{
    wish w = any();

    (void)state;
    refuse("nothing", "out", &w, SW_E_FORMAT, "/nothing");
    scratch_text("folder/model.txt", "x", false);
    refuse("folder", "out", &w, SW_E_FORMAT, "folder/config.json");
    scratch_text("config.json", "{'model_type': 'llama'", true);
    refuse("config.json", "out", &w, SW_E_FORMAT, "config.json: line 1");
    scratch_text("config.json", "{'architectures': ['NoSuchModel'], 'model_type': 'none'}", true);
    refuse("config.json", "out", &w, SW_E_FORMAT,
           "no family is known for architecture \"NoSuchModel\" and model_type \"none\"");
    scratch_text("config.json", "{'model_type': 'llama', 'hidden_size': 64}", true);
    refuse("config.json", "out", &w, SW_E_FORMAT, "config.json: cannot generate");
    scratch_text("config.json", "{'model_type': 'llama', 'initializer_range': -1}", true);
    refuse("config.json", "out", &w, SW_E_FORMAT, "cannot generate");
    assert_string_equal(scratch_list(""), "config.json folder ");
}

static void options_that_make_no_sense_are_refused(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    w.init.dtype = SW_DTYPE_I8;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "no random weights are written in dtype I8");
    w = any();
    w.init.scale = -1.0;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "the scale -1 is no factor");
    w.init.scale = HUGE_VAL;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "the scale inf is no factor");
    w.init.scale = 1001.0;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "the scale 1001 is no factor");
    w = any();
    w.init.layers = UINT32_MAX;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "4294967295 layers are more than");
    w = any();
    w.init.struct_size = 0;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "sw_init_options: struct_size is 0");
    w = any();
    w.options.struct_size = 0;
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "sw_checkpoint_options: struct_size is 0");
}

static void an_output_that_is_there_is_refused_or_exchanged(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    (void)make("config.json", "out", &w);
    refuse("config.json", "out", &w, SW_E_ARGUMENT, "out: is there already");
    w.options.replace = true;
    w.init.layers = 1;
    (void)make("config.json", "out", &w);
    assert_string_equal(scratch_list(""), "config.json out ");
}

static void a_model_that_the_disk_cannot_hold_is_refused_before_anything_is_written(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA("2", "1000000000000"), true);
    refuse("config.json", "out", &w, SW_E_IO, "out: needs 256000");
    assert_string_equal(scratch_list(""), "config.json ");
}

/* ---- failing tidily ---- */

typedef struct watch {
    char stages[256];
    uint64_t last;
    bool stops;
} watch;

static bool note_progress(const sw_progress *progress, void *user)
{
    watch *w = user;

    if (strstr(w->stages, progress->stage) == NULL) {
        (void)strcat(w->stages, progress->stage);
        (void)strcat(w->stages, " ");
        w->last = 0;
    }
    assert_string_equal(progress->unit, "bytes");
    assert_true(progress->done >= w->last && progress->done <= progress->total);
    w->last = progress->done;
    return !w->stops;
}

static void progress_is_told_and_can_stop_it(void **state)
{
    watch seen = {.last = 0};
    wish w = any();

    (void)state;
    scratch_text("config.json", LLAMA_SMALL, true);
    w.options.no_sync = false;
    w.options.on_progress = note_progress;
    w.options.user = &seen;
    (void)make("config.json", "out", &w);
    assert_string_equal(seen.stages, "write sync ");
    assert_true(seen.last > 0);
    scratch_remove("out");
    seen = (watch){.stops = true};
    refuse("config.json", "out", &w, SW_E_IO, "stopped after");
    assert_string_equal(scratch_list(""), "config.json ");
}

static void a_disk_that_fails_leaves_nothing_behind(void **state)
{
    static const char *const faults[] = {"create:after=0:error=ENOSPC", "allocate:after=0:error=ENOSPC",
                                         "write:after=0:error=ENOSPC",  "write:after=5:error=ENOSPC",
                                         "write:after=21:error=EIO",    "sync:after=0:error=EIO",
                                         "rename:after=0:error=EIO",    "mkdir:after=0:error=EROFS"};
    wish w = any();
    sw_error err = {0};

    (void)state;
    w.options.no_sync = false;
    scratch_text("config.json", LLAMA_SMALL, true);
    for (size_t i = 0; i < SW_COUNT(faults); i++) {
        assert_int_equal(sw_disk_fault_set(faults[i], &err), SW_OK);
        refuse("config.json", "out", &w, SW_E_IO, "out");
        assert_int_equal(sw_disk_fault_set(NULL, &err), SW_OK);
        assert_string_equal(scratch_list(""), "config.json ");
    }
}

static void lack_of_memory_is_said_and_leaves_nothing_behind(void **state)
{
    wish w = any();

    (void)state;
    scratch_text("config.json", DEEPSEEK_FP8, true);
    for (uint64_t n = 1;; n++) {
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status =
            sw_checkpoint_init(scratch("config.json"), scratch("out"), &w.init, &w.options, NULL, &err);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        if (status != SW_E_NO_MEMORY)
            fail_msg("allocation %u: %s", (unsigned)n, err.what);
        assert_string_equal(scratch_list(""), "config.json ");
        assert_in_range(n, 1, 5000);
    }
}

int main(void)
{
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    static const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_folder_has_the_config_and_the_model_that_it_describes),
        IN_SCRATCH(the_config_may_be_given_by_its_folder),
        IN_SCRATCH(a_large_model_is_cut_into_files_with_an_index),
        IN_SCRATCH(threads_do_not_change_a_byte),
        IN_SCRATCH(the_bytes_of_a_seed_stay_what_they_are),
        IN_SCRATCH(another_seed_is_another_model),
        IN_SCRATCH(no_two_matrices_and_no_two_halves_are_alike),
        IN_SCRATCH(the_mesh_that_it_is_cut_for_changes_nothing),
        IN_SCRATCH(a_narrow_model_is_the_wide_one_rounded),
        IN_SCRATCH(the_scale_is_a_factor_on_the_deviation),
        IN_SCRATCH(fewer_layers_are_what_the_config_then_says),
        IN_SCRATCH(a_quantised_config_gives_plain_weights_and_says_so),
        IN_SCRATCH(a_silent_quantised_config_gives_bf16),
        IN_SCRATCH(what_is_no_config_of_a_known_family_is_refused),
        IN_SCRATCH(options_that_make_no_sense_are_refused),
        IN_SCRATCH(an_output_that_is_there_is_refused_or_exchanged),
        IN_SCRATCH(a_model_that_the_disk_cannot_hold_is_refused_before_anything_is_written),
        IN_SCRATCH(progress_is_told_and_can_stop_it),
        IN_SCRATCH(a_disk_that_fails_leaves_nothing_behind),
        IN_SCRATCH(lack_of_memory_is_said_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
