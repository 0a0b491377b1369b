/*
 * Every refusal has two lines: what is wrong, and what to do. Each reader of input is given a sound text with
 * one fault at every place in turn (cut off there, a byte left out, a byte or a word replaced, a member
 * repeated); whatever it refuses must say both, each on one line of valid UTF-8.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "io/index.h"
#include "io/params_tsv.h"
#include "io/safetensors.h"
#include "mesh/mesh.h"
#include "model/config.h"
#include "plan/override.h"
#include "plan/plan_read.h"
#include "plan_text.h"
#include "tiny_model.h"

enum { NO_LIMIT = 0, MOST_BYTES = 1 << 17 };

/* ---- readers ---- */

typedef sw_status reader_fn(const char *text, size_t length, sw_error *err);

static sw_status read_safetensors(const char *text, size_t length, sw_error *err)
{
    static uint8_t file[MOST_BYTES + 8];
    sw_tensor_list list;
    uint32_t index = 0;

    memset(file, 0, 8);
    for (size_t i = 0; i < 8; i++)
        file[i] = (uint8_t)(length >> (8 * i));
    memcpy(file + 8, text, length);
    assert_int_equal(sw_tensor_list_init(&list, NO_LIMIT, NULL), SW_OK);
    assert_int_equal(sw_tensor_list_add_file(&list, "a.safetensors", &index, NULL), SW_OK);
    sw_status status = sw_safetensors_read(&list, sw_file_map_of(file, length + 8), length + 8 + 12, index,
                                           "a.safetensors", err);
    sw_tensor_list_clear(&list);
    return status;
}

static sw_status read_index(const char *text, size_t length, sw_error *err)
{
    sw_tensor_list list;

    assert_int_equal(sw_tensor_list_init(&list, NO_LIMIT, NULL), SW_OK);
    sw_status status = sw_index_read(&list, sw_file_map_of(text, length), "an.index.json", err);
    sw_tensor_list_clear(&list);
    return status;
}

static sw_status read_tsv(const char *text, size_t length, sw_error *err)
{
    sw_tensor_list list;

    assert_int_equal(sw_tensor_list_init(&list, NO_LIMIT, NULL), SW_OK);
    sw_status status = sw_params_tsv_read(&list, sw_file_map_of(text, length), "params.tsv", err);
    sw_tensor_list_clear(&list);
    return status;
}

static sw_status read_config(const char *text, size_t length, sw_error *err)
{
    sw_config config = {0};
    sw_status status = sw_config_read(&config, sw_file_map_of(text, length), "config.json", err);

    if (status == SW_OK)
        sw_config_clear(&config);
    return status;
}

static sw_status read_overrides(const char *text, size_t length, sw_error *err)
{
    sw_overrides *overrides = NULL;

    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    sw_status status = sw_overrides_add_text(overrides, text, length, "o.yaml", err);
    sw_overrides_destroy(overrides);
    return status;
}

static sw_status read_plan(const char *text, size_t length, sw_error *err)
{
    sw_plan *plan = NULL;
    sw_status status = sw_plan_read(&plan, text, length, "plan.json", err);

    sw_plan_destroy(plan);
    return status;
}

static sw_status read_mesh(const char *text, size_t length, sw_error *err)
{
    char axes[256];
    sw_mesh *mesh = NULL;

    assert_true(length < sizeof axes);
    memcpy(axes, text, length);
    axes[length] = '\0';
    sw_status status = sw_mesh_create(&mesh, axes, 0, err);
    sw_mesh_destroy(mesh);
    return status;
}

/* ---- faults ---- */

/* Words that stand where another kind of value should, or one out of range. */
static const char *const words[] = {
    "null", "true", "\"x\"", "[]", "{}", "-1", "0",   "1.5", "99999999999", "99999999999999999999",
    "007",  "1e3",  "[1,2]", "'",  "\"", "\\", "- a", "a: b"};

static const char bytes[] = {'"', '{', '}', '[',  ']',  ',',  ':',    '-',
                             '9', '.', '#', '\t', '\n', '\0', '\x7f', '\xff'};

typedef struct walk {
    reader_fn *read;
    const char *name;
    size_t n_read;
    size_t n_refused;
} walk;

static void check_line(const walk *w, const char *text, size_t length, const sw_error *err, const char *line)
{
    bool is_line = line[0] != '\0' && sw_utf8_valid_prefix(line, strlen(line)) == strlen(line);

    for (const char *at = line; *at != '\0'; at++)
        is_line = is_line && (unsigned char)*at >= 0x20;
    if (!is_line)
        fail_msg("%s: what '%s' help '%s' (%s:%d) of: %.*s", w->name, err->what, err->help, err->file,
                 (int)err->line, (int)length, text);
}

static void look(walk *w, const char *text, size_t length)
{
    sw_error err = {0};
    sw_status status = w->read(text, length, &err);

    w->n_read++;
    if (status == SW_OK)
        return;
    w->n_refused++;
    assert_int_equal(err.status, status);
    check_line(w, text, length, &err, err.what);
    check_line(w, text, length, &err, err.help);
}

/* The text with `n` bytes at `at` replaced. */
static void look_replaced(walk *w, const char *text, size_t at, size_t n, const char *by, size_t n_by)
{
    static char edited[MOST_BYTES];
    size_t length = strlen(text);

    assert_true(length + n_by < sizeof edited);
    memcpy(edited, text, at);
    memcpy(edited + at, by, n_by);
    memcpy(edited + at + n_by, text + at + n, length - at - n);
    look(w, edited, length - n + n_by);
}

/* Bytes of the word that begins here: a run between the separators of all formats. */
static size_t word_length(const char *text)
{
    return text[0] == '"' ? strcspn(text + 1, "\"\n") + 2 : strcspn(text, " \t\n,:{}[]=x\"");
}

/* `step` passes over places of a large text. */
static void walk_text(walk *w, const char *text, size_t step)
{
    size_t length = strlen(text);
    sw_error err = {0};

    if (w->read(text, length, &err) != SW_OK)
        fail_msg("%s: the sound text is refused: %s", w->name, err.what);
    for (size_t at = 0; at < length; at += step) {
        look(w, text, at);
        look_replaced(w, text, at, 1, "", 0);
        for (size_t i = 0; i < sizeof bytes; i++)
            look_replaced(w, text, at, 1, &bytes[i], 1);
    }
    for (size_t at = 0; at < length; at++) {
        size_t n = word_length(text + at);
        bool begins = n > 1 && at + n <= length && (at == 0 || strchr(" \t\n,:{}[]=", text[at - 1]) != NULL);
        for (size_t i = 0; begins && i < SW_COUNT(words); i++)
            look_replaced(w, text, at, n, words[i], strlen(words[i]));
        size_t member = strcspn(text + at, ",\n}");
        if (begins && text[at + member] != '\0' && at + member < length)
            look_replaced(w, text, at, 0, text + at, member + 1);
    }
}

static void walk_reader(const char *name, reader_fn *read, const char *text, size_t step)
{
    walk w = {.read = read, .name = name};

    walk_text(&w, text, step);
    if (w.n_refused < w.n_read / 8)
        fail_msg("%s: only %zu of %zu faults are refused", name, w.n_refused, w.n_read);
}

/* ---- texts ---- */

static const char config[] = "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
                             "\"hidden_size\": 8, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,\n"
                             "\"num_hidden_layers\": 2, \"intermediate_size\": 16, \"vocab_size\": 32,\n"
                             "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\",\n"
                             "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": "
                             "[2, 2], \"ignored_layers\": [\"lm_head\"]},\n"
                             "\"layer_types\": [\"full_attention\", \"full_attention\"]}\n";

static void refusals_of_the_formats_of_models_have_two_lines(void **state)
{
    (void)state;
    walk_reader("safetensors", read_safetensors,
                "{\"__metadata__\": {\"format\": \"pt\"},\n"
                "\"a.weight\": {\"dtype\": \"F32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]},\n"
                "\"b\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [8, 12]}}",
                1);
    walk_reader("index", read_index,
                "{\"metadata\": {\"total_size\": 12},\n"
                "\"weight_map\": {\"a.weight\": \"model-1.safetensors\", \"b\": \"model-2.safetensors\"}}",
                1);
    walk_reader("params.tsv", read_tsv,
                "# a list\na.weight\tBF16\t8x16\nb.weight\tF32\t1\nc.0.w\tI64\t2x3x4\n", 1);
    walk_reader("config.json", read_config, config, 1);
}

static void refusals_of_override_files_have_two_lines(void **state)
{
    (void)state;
    walk_reader("overrides", read_overrides,
                "derive: true\n"
                "roles:\n"
                "  extend: true\n"
                "  rules:\n"
                "  - {patterns: [q_proj, k_proj], role: colwise, mode: whole}\n"
                "  - {pattern: wo, role: rowwise}\n"
                "arch_roles:\n"
                "  LlamaForCausalLM: [[[o_proj], rowwise]]\n"
                "overrides:\n"
                "- match: \"*.self_attn\"\n"
                "  when: tp\n"
                "  params: {+: {q_proj.weight: {tp: \"S(0;seg=4+4r2)\", cp: replicate}}}\n"
                "  in_src: {hidden_states: {tp: shard(1)}}\n"
                "  in_dst: auto\n"
                "  out_src: {tp: partial}\n"
                "  out_dst: none\n"
                "  out_names: [output, weights]\n"
                "  layout: {qkv_proj: {kind: stacked, parts: 3, dim: 0}}\n"
                "  tp_divide_attrs: [num_heads]\n"
                "  region_dispatch: true\n"
                "  inner_target: core\n"
                "  inner_wrapper: cp_ring\n"
                "  inner_out_src: first_input\n"
                "- {match: a.b, layout: {segments: [4096, 1024r2, 8r2u4], dim: 0}}\n",
                1);
}

static void refusals_of_meshes_have_two_lines(void **state)
{
    (void)state;
    walk_reader("mesh", read_mesh, "pp=2,dp=4,cp=2,ep=2,tp=8", 1);
    walk_reader("mesh", read_mesh, "dp_replicate=2,dp_shard=2,tp=2", 1);
}

static void refusals_of_plan_files_have_two_lines(void **state)
{
    (void)state;
    tiny t = TINY_PLAN(.config = "'model_type': 'qwen2_moe', 'hidden_size': 8, 'num_attention_heads': 4, "
                                 "'num_key_value_heads': 2, 'num_hidden_layers': 2, 'vocab_size': 32, "
                                 "'intermediate_size': 16, 'moe_intermediate_size': 8, "
                                 "'shared_expert_intermediate_size': 8, 'num_experts': 4",
                       .mesh = "pp=2,dp=2,cp=2,tp=4", .ep = 2,
                       .overrides = "- {match: '*.mlp', tp_divide_attrs: [intermediate_size]}\n");
    char *text = plan_text(t.plan);
    walk_reader("plan", read_plan, text, 97);
    sw_text_free(text);
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_of_the_formats_of_models_have_two_lines),
        cmocka_unit_test(refusals_of_override_files_have_two_lines),
        cmocka_unit_test(refusals_of_meshes_have_two_lines),
        cmocka_unit_test(refusals_of_plan_files_have_two_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
