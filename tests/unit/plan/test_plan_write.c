/*
 * Writing plan files, and that writer, reader, docs/formats/plan.md and docs/formats/plan.schema.json say the
 * same: keys, words, the example, the rows of placements.
 */
#include "json_schema.h"
#include "page.h"
#include "plan_text.h"
#include "tiny_model.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/layout.h"
#include "plan/lowering.h"
#include "plan/plan_read.h"
#include "plan/plan_write.h"

#define PAGE "../formats/plan.md" /* from docs/reference/ */

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 15, "        \
    "'attention_bias': true, 'mlp_bias': true"
#define MOE                                                                                                  \
    "'architectures': ['Qwen2MoeForCausalLM'], 'model_type': 'qwen2_moe', 'num_hidden_layers': 1, "          \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, "       \
    "'vocab_size': 16, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "             \
    "'shared_expert_intermediate_size': 8, 'decoder_sparse_step': 1"
#define NEXT                                                                                                 \
    "'architectures': ['Qwen3NextForCausalLM'], 'model_type': 'qwen3_next', 'num_hidden_layers': 1, "        \
    "'hidden_size': 16, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 4, "                 \
    "'intermediate_size': 16, 'vocab_size': 16, 'full_attention_interval': 4, 'linear_num_key_heads': 2, "   \
    "'linear_num_value_heads': 4, 'linear_key_head_dim': 4, 'linear_value_head_dim': 4, "                    \
    "'linear_conv_kernel_dim': 4, 'num_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 8, "  \
    "'shared_expert_intermediate_size': 8"
#define OLMO2                                                                                                \
    "'architectures': ['Olmo2ForCausalLM'], 'model_type': 'olmo2', 'num_hidden_layers': 1, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 16, 'vocab_size': 16, "        \
    "'tie_word_embeddings': true"
#define EXAMPLE                                                                                              \
    "'architectures': ['ExampleForCausalLM'], 'model_type': 'example', 'num_hidden_layers': 1, "             \
    "'hidden_size': "                                                                                        \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 4, 'intermediate_size': 32, 'vocab_size': 17, "        \
    "'mlp_bias': true"
#define EXAMPLE_PARAMS                                                                                       \
    "model.layers.0.mlp.gate_proj.weight BF16 32x16\nmodel.layers.0.mlp.up_proj.weight BF16 32x16\n"         \
    "model.layers.0.mlp.down_proj.weight BF16 16x32\nmodel.layers.0.mlp.down_proj.bias BF16 16\n"            \
    "lm_head.weight BF16 17x16\n"

/* Plans that have between them most of what a file can hold. */
// clang-format off
static const tiny_case various[] = {
    {.config = LLAMA, .mesh = "pp=2,dp=2,cp=2,tp=4"},
    {.config = LLAMA, .mesh = "tp=2", .overrides =
        "- match: model.layers.0.self_attn\n  out_names: [output, weights]\n  tp_divide_attrs: [intermediate_size]\n"
        "  region_dispatch: false\n  inner_target: self\n  inner_wrapper: cp_ring\n  inner_out_src: first_input\n"
        "- match: model.layers.0.mlp\n  params: {+: {up_proj.weight: {tp: shard(0)}}}\n  out_dst: none\n"
        "- match: model.layers.1.mlp\n  region_dispatch: true\n  local_compute: grouped_experts\n"
        "- match: model.layers.1\n  in_src: {hidden_states: {tp: replicate}}\n"},
    {.config = MOE, .mesh = "dp=2,tp=2", .ep = 4},
    {.config = MOE, .mesh = "ep=2,tp=2"},
    {.config = NEXT, .mesh = "tp=2"},
    {.config = OLMO2, .mesh = "tp=2"},
    {.config = EXAMPLE, .params = EXAMPLE_PARAMS, .mesh = "dp=2,tp=2"},
};
// clang-format on

static json_t *plan_json(const tiny_case *what)
{
    tiny t = tiny_plan(what);
    char *text = plan_text(t.plan);
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &why);

    if (json == NULL)
        fail_msg("not JSON: %s", why.text);
    sw_text_free(text);
    tiny_drop(&t);
    return json;
}

static char *page_text(void)
{
    return page_file(SW_SOURCE_DIR "/docs/formats/plan.md");
}

static json_t *schema(void)
{
    json_error_t why;
    json_t *json =
        json_load_file(SW_SOURCE_DIR "/docs/formats/plan.schema.json", JSON_REJECT_DUPLICATES, &why);

    if (json == NULL)
        fail_msg("plan.schema.json: %s", why.text);
    return json;
}

/* ---- the page's keys ---- */

/* A table of keys in the page: its heading, its rule in the schema, and where such an object is in a
 * document. */
typedef struct section {
    const char *heading;
    const char *rule; /* NULL: the schema itself */
    const char *path; /* from the document; '*' is any member or element */
} section;

static const section sections[] = {
    {"The document",     NULL,              ""                                 },
    {"model",            "model",           "/model"                           },
    {"mesh",             "mesh",            "/mesh"                            },
    {"stages",           "stage",           "/stages/*"                        },
    {"Boundaries",       "boundary",        "/boundaries/*"                    },
    {"Parameters",       "parameter",       "/boundaries/*/params/*"           },
    {"layout",           "layout",          "/boundaries/*/params/*/layout"    },
    {"dims",             "dims",            "/boundaries/*/params/*/dims"      },
    {"grad_sum",         "sum",             "/boundaries/*/params/*/grad_sum/*"},
    {"ep_stack",         "stack",           "/boundaries/*/ep_stack/*"         },
    {"lowering",         "lowering",        "/boundaries/*/lowering"           },
    {"Rows of lowering", "row",             "/boundaries/*/lowering/*/*"       },
    {"inner",            "inner",           "/boundaries/*/inner/*"            },
    {"special",          "special",         "/special/*"                       },
    {"parallel_modules", "parallel_module", "/parallel_modules/*"              },
    {"Findings",         "finding",         "/warnings/*"                      },
};

static bool has_row(const page_table *table, const char *key)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        if (strcmp(table->cells[i][0], key) == 0)
            return true;
    }
    return false;
}

static void check_object(const page_table *table, const char *heading, const json_t *object, size_t *n)
{
    const char *key = NULL;
    json_t *value = NULL;
    size_t last = 0;

    json_object_foreach((json_t *)object, key, value)
    {
        size_t row = 0;
        while (row < table->n_rows && strcmp(table->cells[row][0], key) != 0)
            row++;
        if (row == table->n_rows)
            fail_msg("plan.md, %s: has no row '%s', which is written", heading, key);
        if (row < last)
            fail_msg("plan.md, %s: '%s' stands before '%s', and is written behind it", heading, key,
                     table->cells[last][0]);
        last = row;
    }
    for (size_t i = 0; i < table->n_rows; i++) { /* a dash: always written */
        if (strcmp(table->cells[i][2], "-") == 0 && json_object_get(object, table->cells[i][0]) == NULL)
            fail_msg("plan.md, %s: '%s' is said to be always written, and is not", heading,
                     table->cells[i][0]);
    }
    ++*n;
}

/* Every object at `path` below `value`. */
static void check_at(const page_table *table, const char *heading, const json_t *value, const char *path,
                     size_t *n)
{
    char name[64];

    if (value == NULL)
        return;
    if (path[0] == '\0') {
        check_object(table, heading, value, n);
        return;
    }
    size_t length = strcspn(path + 1, "/");
    const char *rest = path + 1 + length;
    (void)snprintf(name, sizeof name, "%.*s", (int)length, path + 1);
    if (strcmp(name, "*") != 0) {
        check_at(table, heading, json_object_get(value, name), rest, n);
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            check_at(table, heading, json_array_get(value, i), rest, n);
    } else {
        const char *key = NULL;
        json_t *member = NULL;
        json_object_foreach((json_t *)value, key, member) check_at(table, heading, member, rest, n);
    }
}

static void every_key_that_is_written_stands_in_the_page_in_its_order(void **state)
{
    size_t seen[SW_COUNT(sections)] = {0};

    (void)state;
    for (size_t c = 0; c < SW_COUNT(various); c++) {
        json_t *plan = plan_json(&various[c]);
        for (size_t i = 0; i < SW_COUNT(sections); i++) {
            page_table table;
            page_open(&table, PAGE, sections[i].heading);
            check_at(&table, sections[i].heading, plan, sections[i].path, &seen[i]);
            page_close(&table);
        }
        json_decref(plan);
    }
    for (size_t i = 0; i < SW_COUNT(sections); i++) {
        if (seen[i] == 0)
            fail_msg("no plan here has a %s", sections[i].heading);
    }
}

static void the_page_and_the_schema_have_the_same_keys(void **state)
{
    json_t *root = schema();

    (void)state;
    for (size_t i = 0; i < SW_COUNT(sections); i++) {
        const json_t *rule = sections[i].rule == NULL
                                 ? root
                                 : json_object_get(json_object_get(root, "$defs"), sections[i].rule);
        const json_t *properties = json_object_get(rule, "properties");
        page_table table;
        const char *key = NULL;
        json_t *value = NULL;
        size_t n_required = 0;
        page_open(&table, PAGE, sections[i].heading);
        json_object_foreach((json_t *)properties, key, value)
        {
            if (!has_row(&table, key))
                fail_msg("plan.md, %s: has no row '%s', which the schema has", sections[i].heading, key);
        }
        for (size_t k = 0; k < table.n_rows; k++) {
            if (json_object_get(properties, table.cells[k][0]) == NULL)
                fail_msg("plan.schema.json, %s: has no '%s'", sections[i].heading, table.cells[k][0]);
            n_required += strcmp(table.cells[k][2], "-") == 0;
        }
        assert_int_equal(json_array_size(json_object_get(rule, "required")), n_required);
        assert_true(json_is_false(json_object_get(rule, "additionalProperties")));
        page_close(&table);
    }
    json_decref(root);
}

/* A document up to the opening brace of an object of the section, with nothing in it that could be refused.
 */
static void open_section(sw_buffer *out, const section *s)
{
    static const struct {
        const char *path, *text;
    } openings[] = {
        {"",                                  "{"                                                           },
        {"/model",                            "{\"model\": {"                                               },
        {"/mesh",                             "{\"mesh\": {"                                                },
        {"/stages/*",                         "{\"stages\": [{"                                             },
        {"/boundaries/*",                     "{\"boundaries\": {\"b\": {"                                  },
        {"/boundaries/*/params/*",            "{\"boundaries\": {\"b\": {\"params\": {\"p\": {"             },
        {"/boundaries/*/params/*/layout",     "{\"boundaries\": {\"b\": {\"params\": {\"p\": {\"layout\": {"},
        {"/boundaries/*/params/*/dims",       "{\"boundaries\": {\"b\": {\"params\": {\"p\": {\"dims\": {"  },
        {"/boundaries/*/params/*/grad_sum/*",
         "{\"boundaries\": {\"b\": {\"params\": {\"p\": {\"grad_sum\": [{"                                  },
        {"/boundaries/*/ep_stack/*",          "{\"boundaries\": {\"b\": {\"ep_stack\": {\"s\": {"           },
        {"/boundaries/*/lowering",            "{\"boundaries\": {\"b\": {\"lowering\": {"                   },
        {"/boundaries/*/lowering/*/*",        "{\"boundaries\": {\"b\": {\"lowering\": {\"in\": [{"         },
        {"/boundaries/*/inner/*",             "{\"boundaries\": {\"b\": {\"inner\": [{"                     },
        {"/special/*",                        "{\"special\": {\"s\": {"                                     },
        {"/parallel_modules/*",               "{\"parallel_modules\": {\"m\": {"                            },
        {"/warnings/*",                       "{\"warnings\": [{"                                           },
    };

    sw_buffer_puts(out, "{\"format\": \"shardwright-plan\", ");
    for (size_t i = 0; i < SW_COUNT(openings); i++) {
        if (strcmp(openings[i].path, s->path) == 0) {
            sw_buffer_puts(out, openings[i].text + 1);
            return;
        }
    }
    fail_msg("no opening for %s", s->heading);
}

/* Is the key read there? A value that no key takes follows: what counts is whether the key or the value is
 * refused. */
static bool is_read(const section *s, const char *key)
{
    sw_buffer text SW_AUTO(sw_buffer_clear) = {0};
    sw_plan *plan = NULL;
    sw_error err = {0};

    open_section(&text, s);
    size_t opened = text.length;
    sw_buffer_printf(&text, "\"%s\": -1.5", key);
    for (size_t i = opened; i > 0;
         i--) { /* close everything: a parameter is skipped over before it is read */
        char c = text.bytes[i - 1];
        if (c == '{' || c == '[')
            sw_buffer_putc(&text, c == '{' ? '}' : ']');
    }
    assert_int_not_equal(sw_plan_read(&plan, text.bytes, text.length, "plan.json", &err), SW_OK);
    return strstr(err.what, "has no key") == NULL;
}

static void the_reader_knows_every_key_of_the_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(sections); i++) {
        page_table table;
        page_open(&table, PAGE, sections[i].heading);
        for (size_t k = 0; k < table.n_rows; k++) {
            if (!is_read(&sections[i], table.cells[k][0]))
                fail_msg("plan.md, %s: the reader has no key '%s'", sections[i].heading, table.cells[k][0]);
        }
        assert_false(is_read(&sections[i], "no_such_key"));
        page_close(&table);
    }
}

/* ---- the schema ---- */

static void real_plans_fit_the_schema(void **state)
{
    json_t *root = schema();
    char why[600] = "";

    (void)state;
    for (size_t c = 0; c < SW_COUNT(various); c++) {
        json_t *plan = plan_json(&various[c]);
        if (!json_schema_fits(root, root, plan, why, sizeof why))
            fail_msg("%s", why);
        json_decref(plan);
    }
    json_t *plan = plan_json(&various[0]);
    json_object_set_new(json_object_get(plan, "mesh"), "tq", json_integer(2));
    assert_false(json_schema_fits(root, root, plan, why, sizeof why));
    assert_string_equal(why, "/mesh: no property 'tq'");
    json_decref(plan);
    json_decref(root);
}

/* The words of an enum in the schema are those of the code, each of which the page names. */
static void check_words(const char *rule, const char *property, const char *(*name_of)(unsigned), unsigned n)
{
    json_t *root = schema();
    const json_t *at = json_object_get(json_object_get(root, "$defs"), rule);
    char *page = page_text();

    if (property[0] != '\0')
        at = json_object_get(json_object_get(at, "properties"), property);
    const json_t *words = json_object_get(at, "enum");
    assert_int_equal(json_array_size(words), n);
    for (unsigned i = 0; i < n; i++) {
        char quoted[64];
        bool is_there = false;
        for (size_t k = 0; k < n; k++)
            is_there = is_there || strcmp(json_string_value(json_array_get(words, k)), name_of(i)) == 0;
        if (!is_there)
            fail_msg("plan.schema.json: %s %s lacks '%s'", rule, property, name_of(i));
        (void)snprintf(quoted, sizeof quoted, "`%s`", name_of(i));
        if (strcmp(property, "dtype") != 0 && strstr(page, quoted) == NULL)
            fail_msg("plan.md does not name %s", quoted);
    }
    free(page);
    json_decref(root);
}

static const char *role_name(unsigned i)
{
    return sw_role_name((sw_role)i);
}

static const char *dtype_name(unsigned i)
{
    return sw_dtype_name((sw_dtype)i);
}

static const char *type_name(unsigned i)
{
    return sw_boundary_type_name((sw_boundary_type)i);
}

static const char *layout_name(unsigned i)
{
    return sw_layout_name((sw_layout)i);
}

static const char *collective_name(unsigned i)
{
    return sw_collective_name((sw_collective)i);
}

static const char *mode_name(unsigned i)
{
    return sw_ep_mode_name((sw_ep_mode)i);
}

static const char *axis_name(unsigned i)
{
    return sw_axis_name((sw_axis)i);
}

static void the_words_of_the_schema_are_those_of_the_code(void **state)
{
    (void)state;
    check_words("parameter", "role", role_name, SW_ROLE_COUNT_);
    check_words("parameter", "dtype", dtype_name, SW_DTYPE_COUNT_);
    check_words("boundary", "type", type_name, SW_BOUNDARY_COUNT_);
    check_words("layout", "kind", layout_name, SW_LAYOUT_COUNT_);
    check_words("collective", "", collective_name, SW_COLL_COUNT_);
    check_words("mesh", "ep_mode", mode_name, SW_EP_MODE_COUNT_);
    check_words("axis", "", axis_name, SW_AXIS_COUNT_);
}

/* ---- the page's example ---- */

static void the_example_of_the_page_is_a_real_plan(void **state)
{
    tiny t = TINY_PLAN(.config = EXAMPLE, .params = EXAMPLE_PARAMS, .mesh = "dp=2,tp=2");
    char *text = plan_text(t.plan);
    char *page = page_text();

    (void)state;
    char *begin = strstr(page, "```json\n");
    char *end = begin == NULL ? NULL : strstr(begin, "\n```\n");
    assert_non_null(end);
    end[1] = '\0';
    assert_string_equal(begin + strlen("```json\n"), text);
    plan_same_again(text);
    free(page);
    sw_text_free(text);
    tiny_drop(&t);
}

/* "`S(0)` of 10" and "3, 4, 5" or "0 to 3" or "2, 3; 8, 9". */
static void check_rows(const char *cut, const char *rows)
{
    char text[64];
    char extent[16];
    sw_placement placement;
    sw_range pieces[8];
    sw_buffer found SW_AUTO(sw_buffer_clear) = {0};
    uint32_t n = 0;
    sw_arena *arena = sw_arena_create(0);

    assert_non_null(arena);
    assert_int_equal(sscanf(cut, "%63s of %15s", text, extent), 2);
    assert_int_equal(sw_placement_parse(&placement, text, strlen(text), arena, NULL), SW_OK);
    assert_int_equal(sw_shard_pieces(&placement, strtoull(extent, NULL, 10), 4, 1, pieces, 8, &n, NULL),
                     SW_OK);
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t row = pieces[i].begin; row < pieces[i].end; row++)
            sw_buffer_printf(&found, "%s%llu", found.length == 0 ? "" : " ", (unsigned long long)row);
    }
    char said[64] = "";
    size_t used = 0;
    unsigned first = 0;
    unsigned last = 0;
    if (sscanf(rows, "%u to %u", &first, &last) == 2) {
        for (unsigned row = first; row <= last; row++)
            used += (size_t)snprintf(said + used, sizeof said - used, "%s%u", row == first ? "" : " ", row);
    } else {
        for (const char *at = rows; *at != '\0'; at++) {
            if (*at != ',' && *at != ';')
                said[used++] = *at;
        }
    }
    assert_string_equal(sw_buffer_text(&found), said);
    sw_arena_destroy(arena);
}

static void the_rows_of_the_page_are_those_of_its_placements(void **state)
{
    page_table table;
    size_t n = 0;

    (void)state;
    page_open(&table, PAGE, "Placements");
    for (size_t i = 0; i < table.n_rows; i++, n++)
        check_rows(table.cells[i][0], table.cells[i][1]);
    assert_int_equal(n, 4);
    page_close(&table);
}

static void the_limits_of_the_page_are_those_of_the_code(void **state)
{
    static const struct {
        const char *what;
        unsigned long long most;
    } limits[] = {
        {"parameters, sources of stacks included",              SW_MAX_TENSORS         },
        {"boundaries",                                          SW_PLAN_MAX_BOUNDARIES },
        {"different descriptions of a parameter",               SW_PLAN_MAX_FACTS      },
        {"stages",                                              SW_PLAN_MAX_STAGES     },
        {"inputs, outputs, stacks or attributes of a boundary", SW_PLAN_MAX_MEMBERS    },
        {"bytes of a name",                                     SW_MAX_NAME_BYTES      },
        {"bytes of a placement",                                SW_PLACEMENT_TEXT_LIMIT},
        {"segments of all placements",                          SW_PLAN_MAX_SEGMENTS   },
        {"dims of a tensor",                                    SW_MAX_DIMS            },
        {"gradient sums of a parameter",                        4                      },
    };
    page_table table;

    (void)state;
    page_open(&table, PAGE, "What is refused");
    for (size_t i = 0; i < SW_COUNT(limits); i++) {
        size_t row = 0;
        while (row < table.n_rows && strcmp(table.cells[row][0], limits[i].what) != 0)
            row++;
        if (row == table.n_rows || strtoull(table.cells[row][1], NULL, 10) != limits[i].most)
            fail_msg("plan.md: '%s' is not %llu", limits[i].what, limits[i].most);
    }
    assert_int_equal(table.n_rows, SW_COUNT(limits) + 1);
    assert_string_equal(table.cells[0][1], "128 MiB");
    assert_true(SW_PLAN_MAX_BYTES == (uint64_t)128 << 20);
    page_close(&table);
}

/* ---- what is written ---- */

static void two_runs_give_the_same_bytes(void **state)
{
    (void)state;
    for (size_t c = 0; c < SW_COUNT(various); c++) {
        tiny a = tiny_plan(&various[c]);
        tiny b = tiny_plan(&various[c]);
        char *first = plan_text(a.plan);
        char *second = plan_text(b.plan);
        assert_string_equal(first, second);
        assert_int_equal(first[strlen(first) - 1], '\n');
        plan_same_again(first);
        sw_text_free(first);
        sw_text_free(second);
        tiny_drop(&a);
        tiny_drop(&b);
    }
}

static void only_what_is_unusual_is_written(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "dp=2,tp=2");
    char *text = plan_text(t.plan);

    (void)state;
    assert_null(strstr(text, "\"dims\"")); /* every matrix is [out, in] */
    assert_null(strstr(text, "\"trained\""));
    assert_null(strstr(text, "\"overrides\""));
    assert_null(strstr(text, "\"cp\":\"")); /* no placement over an axis of one rank */
    assert_non_null(strstr(text, "\"layout\":{\"kind\":\"vocab\"}"));
    sw_text_free(text);
    tiny_drop(&t);
    t = TINY_PLAN(
            .config =
                "'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_layer': 1, 'n_embd': 16, "
                "'n_head': 4, 'vocab_size': 16, 'n_positions': 8",
            .mesh = "tp=2");
    text = plan_text(t.plan);
    assert_non_null(strstr(text, "\"dims\":{\"out\":1,\"in\":0}")); /* Conv1D */
    sw_text_free(text);
    tiny_drop(&t);
}

static void a_file_appears_whole_or_not_at_all(void **state)
{
    tiny t = TINY_PLAN(.config = LLAMA, .mesh = "tp=2");
    char folder[] = "/tmp/sw-write-XXXXXX";
    char path[64];
    sw_error err = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/plan.json", folder);
    assert_int_equal(sw_plan_save(t.plan, path, &err), SW_OK);
    assert_int_equal(sw_plan_save(t.plan, path, &err), SW_OK); /* over the old one */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing is left beside it */
    assert_int_equal(sw_plan_save(t.plan, path, &err), SW_E_IO);
    assert_non_null(strstr(err.what, path));
    tiny_drop(&t);
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    tiny t = tiny_plan(&various[1]);

    (void)state;
    for (uint64_t n = 1;; n++) {
        char *text = NULL;
        size_t length = 0;
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_plan_json(t.plan, &text, &length, &err);
        sw_alloc_fail_at(0);
        sw_text_free(text);
        assert_int_equal(sw_alloc_live(), live);
        if (status == SW_OK)
            break;
        assert_int_equal(status, SW_E_NO_MEMORY);
        assert_true(n < 1000);
    }
    tiny_drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_that_is_written_stands_in_the_page_in_its_order),
        cmocka_unit_test(the_page_and_the_schema_have_the_same_keys),
        cmocka_unit_test(the_reader_knows_every_key_of_the_page),
        cmocka_unit_test(real_plans_fit_the_schema),
        cmocka_unit_test(the_words_of_the_schema_are_those_of_the_code),
        cmocka_unit_test(the_example_of_the_page_is_a_real_plan),
        cmocka_unit_test(the_rows_of_the_page_are_those_of_its_placements),
        cmocka_unit_test(the_limits_of_the_page_are_those_of_the_code),
        cmocka_unit_test(two_runs_give_the_same_bytes),
        cmocka_unit_test(only_what_is_unusual_is_written),
        cmocka_unit_test(a_file_appears_whole_or_not_at_all),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
