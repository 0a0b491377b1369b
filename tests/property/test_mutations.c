/*
 * Damaged checkpoints: whatever happens to the bytes and files of a folder, nothing crashes, every command
 * ends with a status that is documented, and what verify calls right is right: merged, it is the model that
 * was split. The same holds for whatever merge puts out while the manifest is there.
 */
#include "checkpoint_case.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/contents.h"
#include "gen.h"
#include "shardwright/checkpoint.h"

// clang-format off
#define TINY \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': 8, 'num_hidden_layers': 1," \
    "'num_attention_heads': 4, 'num_key_value_heads': 1, 'head_dim': 2, 'intermediate_size': 8," \
    "'vocab_size': 3, 'torch_dtype': 'bfloat16'"
// clang-format on

static const char tensors[] = "model.embed_tokens.weight BF16 3x8\n"
                              "model.layers.0.self_attn.q_proj.weight BF16 8x8\n"
                              "model.layers.0.self_attn.k_proj.weight BF16 2x8\n"
                              "model.layers.0.self_attn.o_proj.weight BF16 8x8\n"
                              "model.layers.0.mlp.gate_proj.weight F32 8x8\n"
                              "model.layers.0.mlp.up_proj.weight F32 8x8\n"
                              "model.layers.0.mlp.down_proj.weight F32 8x8\n"
                              "model.norm.weight BF16 8\n";

static const char *const shard_files[] = {"dense-pp0-tp0.safetensors", "dense-pp0-tp1.safetensors",
                                          "dense-pp0-tp2.safetensors", "dense-pp0-tp3.safetensors",
                                          "manifest.json"};
static const char *const model_files[] = {"model-00001-of-00002.safetensors",
                                          "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                                          "config.json"};

/* A folder whose files are put back before each case. */
typedef struct subject {
    const char *folder;
    const char *const *names;
    size_t n;
    sw_buffer files[8];
} subject;

static subject shards = {"s", shard_files, SW_COUNT(shard_files), {{0}}};
static subject model = {"m", model_files, SW_COUNT(model_files), {{0}}};

static const char *path_of(const subject *s, const char *name)
{
    static char paths[4][256];
    static size_t turn;
    char *path = paths[turn++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", s->folder, name);
    return path;
}

static void remember(subject *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->files[i] = scratch_read(path_of(s, s->names[i]));
}

static void put_back(const subject *s)
{
    for (size_t i = 0; i < s->n; i++)
        scratch_bytes(path_of(s, s->names[i]), s->files[i].bytes, s->files[i].length);
    scratch_remove(path_of(s, "extra.safetensors"));
}

static void forget(subject *s)
{
    for (size_t i = 0; i < s->n; i++)
        sw_buffer_clear(&s->files[i]);
}

/* ---- mutations ---- */

static void flip_a_bit(gen *g, sw_buffer *bytes)
{
    if (bytes->length > 0)
        bytes->bytes[gen_below(g, (uint32_t)bytes->length)] ^= (char)(1 << gen_below(g, 8));
}

static void cut_off(gen *g, sw_buffer *bytes)
{
    bytes->length = gen_below(g, (uint32_t)bytes->length + 1);
}

static void leave_out(gen *g, sw_buffer *bytes)
{
    uint32_t at = gen_below(g, (uint32_t)bytes->length);
    uint32_t n = gen_between(g, 1, 16);

    if (at + n >= bytes->length)
        return;
    memmove(bytes->bytes + at, bytes->bytes + at + n, bytes->length - at - n);
    bytes->length -= n;
}

static void overwrite(gen *g, sw_buffer *bytes)
{
    uint32_t at = gen_below(g, (uint32_t)bytes->length);
    uint32_t n = gen_between(g, 1, 600);
    bool is_random = gen_below(g, 2) == 0;

    for (uint32_t i = at; i < at + n && i < bytes->length; i++)
        bytes->bytes[i] = (char)(is_random ? gen_below(g, 256) : 0);
}

static void append(gen *g, sw_buffer *bytes)
{
    for (uint32_t n = gen_between(g, 1, 40); n > 0; n--)
        sw_buffer_putc(bytes, (char)gen_below(g, 256));
}

/* Two digits anywhere: numbers that are legal, and wrong. */
static void change_a_digit(gen *g, sw_buffer *bytes)
{
    uint32_t start = gen_below(g, (uint32_t)bytes->length);

    for (uint32_t i = 0; i < bytes->length; i++) {
        char *c = &bytes->bytes[(start + i) % bytes->length];
        if (*c >= '0' && *c <= '9') {
            *c = (char)('0' + (*c - '0' + (int)gen_between(g, 1, 9)) % 10);
            return;
        }
    }
}

static void mutate(gen *g, const subject *s)
{
    static void (*const changes[])(gen *, sw_buffer *) = {
        flip_a_bit, flip_a_bit, cut_off, leave_out, overwrite, append, change_a_digit, change_a_digit};
    const char *path = path_of(s, s->names[gen_below(g, (uint32_t)s->n)]);
    const char *other = path_of(s, s->names[gen_below(g, (uint32_t)s->n)]);
    uint32_t kind = gen_below(g, SW_COUNT(changes) + 3);

    if (!scratch_has(path) || !scratch_has(other))
        return;
    sw_buffer bytes = scratch_read(path);
    if (kind < SW_COUNT(changes) && bytes.length > 0) {
        changes[kind](g, &bytes);
        scratch_bytes(path, bytes.bytes, bytes.length);
    } else if (kind == SW_COUNT(changes)) {
        scratch_remove(path);
    } else if (kind == SW_COUNT(changes) + 1) {
        scratch_bytes(other, bytes.bytes, bytes.length);
    } else {
        scratch_bytes(path_of(s, "extra.safetensors"), bytes.bytes, bytes.length);
    }
    sw_buffer_clear(&bytes);
}

/* ---- properties ---- */

static bool is_documented(sw_status status, const sw_error *err)
{
    if (status == SW_OK)
        return true;
    bool is_input = status == SW_E_FORMAT || status == SW_E_LIMIT || status == SW_E_IO ||
                    status == SW_E_PLAN || status == SW_E_UNPROVED;
    if (!is_input || err->what[0] == '\0')
        print_error("status %s: '%s'\n", sw_status_name(status), err->what);
    return is_input && err->what[0] != '\0';
}

static sw_status merge(sw_error *err)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;

    options.no_sync = true;
    scratch_remove("back");
    return sw_checkpoint_merge(scratch("s"), scratch("back"), &options, NULL, err);
}

static sw_status list(const char *folder, sw_error *err)
{
    sw_contents contents = {0};
    sw_status status = sw_contents_make(&contents, scratch(folder), false, NULL, err);

    sw_contents_clear(&contents);
    return status;
}

static bool what_is_called_right_is_right(gen *g)
{
    sw_error err = {0};
    sw_error of_merge = {0};
    int64_t live = sw_alloc_live();

    put_back(&shards);
    for (uint32_t n = gen_between(g, 1, 3); n > 0; n--)
        mutate(g, &shards);
    bool has_manifest = scratch_has("s/manifest.json");
    sw_status verified = sw_checkpoint_verify(scratch("s"), NULL, NULL, NULL, &err);
    sw_status merged = merge(&of_merge);
    if (!is_documented(verified, &err) || !is_documented(merged, &of_merge))
        return false;
    if (verified == SW_OK && merged != SW_OK) {
        print_error("verified, but not to be merged: %s\n", of_merge.what);
        return false;
    }
    if (merged == SW_OK && has_manifest)
        expect_same_tensors("before", "back");
    return is_documented(list("s", &err), &err) &&
           is_documented(sw_checkpoint_diff(scratch("before"), scratch("s"), NULL, NULL, &err), &err) &&
           sw_alloc_live() == live;
}

static bool damaged_models_are_refused_or_split(gen *g)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};
    int64_t live = sw_alloc_live();

    put_back(&model);
    for (uint32_t n = gen_between(g, 1, 3); n > 0; n--)
        mutate(g, &model);
    options.no_sync = true;
    scratch_remove("out");
    sw_plan *plan = NULL;
    if (sw_plan_load(&plan, scratch("plan.json"), &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_status verified = sw_checkpoint_verify(scratch("m"), NULL, NULL, NULL, &err);
    bool holds = is_documented(verified, &err);
    sw_status sharded = sw_checkpoint_shard(scratch("m"), plan, scratch("out"), &options, NULL, &err);
    holds = holds && is_documented(sharded, &err);
    if (sharded == SW_OK) /* its data may be other ones, but they are carried as they are */
        holds = holds && sw_checkpoint_verify(scratch("out"), scratch("m"), NULL, NULL, &err) == SW_OK;
    holds = holds && is_documented(list("m", &err), &err);
    holds =
        holds && is_documented(sw_checkpoint_diff(scratch("before"), scratch("m"), NULL, NULL, &err), &err);
    sw_plan_destroy(plan);
    return holds && sw_alloc_live() == live;
}

/* ---- setting up ---- */

static void make_subjects(void)
{
    sw_checkpoint_options options = SW_CHECKPOINT_OPTIONS_INIT;
    sw_error err = {0};

    make_model("m", TINY, tensors, 2);
    make_model("before", TINY, tensors, 2);
    sw_plan *plan = plan_of("m", "tp=4", 0, NULL); /* three rows for four ranks, one key head for all */
    options.no_sync = true;
    if (sw_checkpoint_shard(scratch("m"), plan, scratch("s"), &options, NULL, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    assert_int_equal(sw_plan_save(plan, scratch("plan.json"), &err), SW_OK);
    sw_plan_destroy(plan);
    remember(&shards);
    remember(&model);
}

static void damaged_shards_are_never_called_right(void **state)
{
    (void)state;
    make_subjects();
    bool holds = gen_holds(what_is_called_right_is_right, 2500);
    forget(&shards);
    forget(&model);
    assert_true(holds);
}

static void damaged_models_end_tidily(void **state)
{
    (void)state;
    make_subjects();
    bool holds = gen_holds(damaged_models_are_refused_or_split, 1500);
    forget(&shards);
    forget(&model);
    assert_true(holds);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest all[] = {
        ONE(damaged_shards_are_never_called_right),
        ONE(damaged_models_end_tidily),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
