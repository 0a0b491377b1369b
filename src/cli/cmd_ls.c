/* `shardwright ls`: what is in a checkpoint, equal layers and experts folded. */
#include <inttypes.h>

#include "base/status.h"
#include "checkpoint/contents.h"
#include "cli/checkpoint.h"
#include "io/json_write.h"
#include "plan/explain_text.h"

enum { OPT_ALL, OPT_JSON };
enum { FILES_SHOWN = 16, SHAPE_TEXT = 200 };

// clang-format off
static const sw_option options[] = {
    [OPT_ALL]  = { "all", 'a', NULL, "a line for each tensor and file" },
    [OPT_JSON] = SW_OPTION_JSON,
    { 0 },
};
// clang-format on

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

/* ---- text ---- */

static const char *shape_text(char text[SHAPE_TEXT], const sw_shape *shape)
{
    size_t n = 1;

    if (shape == NULL)
        return "?";
    text[0] = '[';
    for (uint32_t d = 0; d < shape->n_dims; d++) /* 8 dims of 20 digits fit */
        n += (size_t)snprintf(text + n, SHAPE_TEXT - n, "%s%" PRIu64, d == 0 ? "" : ",", shape->dims[d]);
    (void)snprintf(text + n, SHAPE_TEXT - n, "]");
    return text;
}

static void put_head(const sw_contents *c, const char *path, sw_buffer *out)
{
    char elements[SW_TEXT_NUMBER];
    char bytes[SW_TEXT_NUMBER];

    sw_text_line(out, "%s: %s", path, c->kind);
    sw_text_line(out, "parameters   %" PRIu32 ", %s elements%s%s", c->n_params,
                 sw_text_count(elements, c->n_elements), c->n_bytes > 0 ? ", " : "",
                 c->n_bytes > 0 ? sw_text_bytes(bytes, (double)c->n_bytes) : "");
    sw_text_line(out, "fingerprint  %016" PRIx64, c->fingerprint);
    if (c->n_states > 0 || c->state_length > 0)
        sw_text_line(out, "optimizer    %" PRIu32 " tensors, training state of %zu bytes", c->n_states,
                     c->state_length);
}

static void put_files(const sw_contents *c, bool all, sw_arena *arena, sw_buffer *out)
{
    static const char *const titles[] = {"file", "coordinate", "tensors", "bytes"};
    sw_text_table table = {.arena = arena, .n_columns = SW_COUNT(titles), .right = 1U << 2 | 1U << 3};
    uint32_t n_shown = all || c->n_files <= FILES_SHOWN ? c->n_files : FILES_SHOWN;
    char number[SW_TEXT_NUMBER];

    if (c->n_files == 0)
        return;
    sw_buffer_putc(out, '\n');
    sw_text_row(&table, titles);
    for (uint32_t f = 0; f < n_shown; f++) {
        const sw_contents_file *file = &c->files[f];
        sw_text_cell(&table, "%s", file->name);
        sw_text_cell(&table, "%s", file->coord);
        sw_text_cell(&table, "%" PRIu32, file->n_tensors);
        sw_text_cell(&table, "%s", file->is_there ? sw_text_count(number, file->n_bytes) : "not there");
    }
    sw_text_table_put(&table, 0, table.n_columns, out);
    if (n_shown < c->n_files)
        sw_text_line(out, "and %" PRIu32 " more", c->n_files - n_shown);
}

static void put_rows(const sw_contents *c, sw_arena *arena, sw_buffer *out)
{
    static const char *const titles[] = {"name", "tensors", "dtype", "shape", "bytes", "stored"};
    sw_text_table table = {.arena = arena, .n_columns = SW_COUNT(titles), .right = 1U << 1 | 1U << 4};
    char number[SW_TEXT_NUMBER];
    char shape[SHAPE_TEXT];

    sw_buffer_putc(out, '\n');
    sw_text_row(&table, titles);
    for (uint32_t i = 0; i < c->n_rows; i++) {
        const sw_contents_row *row = &c->rows[i];
        sw_text_cell(&table, "%s", row->name);
        sw_text_cell(&table, "%" PRIu32, row->n_tensors);
        sw_text_cell(&table, "%s", row->dtype);
        sw_text_cell(&table, "%s", shape_text(shape, row->shape));
        sw_text_cell(&table, "%s", row->shape == NULL ? "?" : sw_text_count(number, row->n_bytes));
        sw_text_cell(&table, "%s", row->stored);
    }
    sw_text_table_put(&table, 0, table.n_columns, out);
}

static sw_status put_text(const sw_contents *c, const char *path, bool all, sw_buffer *out, sw_error *err)
{
    sw_arena *arena SW_AUTO(drop_arena) = sw_arena_create(0);

    if (arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory to list it", path);
    put_head(c, path, out);
    put_files(c, all, arena, out);
    put_rows(c, arena, out);
    return SW_OK;
}

/* ---- JSON ---- */

static void key_text(sw_json_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_put_string(w, text);
}

static void key_number(sw_json_writer *w, const char *key, uint64_t number)
{
    sw_json_key(w, key);
    sw_json_put_u64(w, number);
}

static void json_file(sw_json_writer *w, const sw_contents_file *file)
{
    sw_json_inline(w);
    sw_json_begin_object(w);
    key_text(w, "name", file->name);
    if (file->coord[0] != '\0')
        key_text(w, "coordinate", file->coord);
    key_number(w, "tensors", file->n_tensors);
    sw_json_key(w, "bytes");
    if (file->is_there)
        sw_json_put_u64(w, file->n_bytes);
    else
        sw_json_put_null(w);
    sw_json_end_object(w);
}

static void json_row(sw_json_writer *w, const sw_contents_row *row)
{
    sw_json_inline(w);
    sw_json_begin_object(w);
    key_text(w, "name", row->name);
    key_number(w, "tensors", row->n_tensors);
    key_text(w, "dtype", row->dtype);
    sw_json_key(w, "shape");
    if (row->shape == NULL) {
        sw_json_put_null(w);
    } else {
        sw_json_begin_array(w);
        for (uint32_t d = 0; d < row->shape->n_dims; d++)
            sw_json_put_u64(w, row->shape->dims[d]);
        sw_json_end_array(w);
        key_number(w, "bytes", row->n_bytes);
    }
    key_text(w, "stored", row->stored);
    sw_json_end_object(w);
}

static void put_json(const sw_contents *c, sw_buffer *out)
{
    char fingerprint[17];
    sw_json_writer w;

    (void)snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, c->fingerprint);
    sw_json_write_init(&w, out, false);
    sw_json_begin_object(&w);
    key_text(&w, "kind", c->kind);
    key_text(&w, "fingerprint", fingerprint);
    key_number(&w, "parameters", c->n_params);
    key_number(&w, "elements", c->n_elements);
    key_number(&w, "optimizer_tensors", c->n_states);
    key_number(&w, "bytes", c->n_bytes);
    sw_json_key(&w, "files");
    sw_json_begin_array(&w);
    for (uint32_t f = 0; f < c->n_files; f++)
        json_file(&w, &c->files[f]);
    sw_json_end_array(&w);
    sw_json_key(&w, "tensors");
    sw_json_begin_array(&w);
    for (uint32_t i = 0; i < c->n_rows; i++)
        json_row(&w, &c->rows[i]);
    sw_json_end_array(&w);
    sw_json_end_object(&w);
    sw_buffer_putc(out, '\n');
}

/* ---- the command ---- */

static sw_status run_ls(sw_run *run, sw_error *err)
{
    sw_contents contents SW_AUTO(sw_contents_clear) = {0};
    const char *path = run->arguments.operands[0];
    bool all = sw_arguments_has(&run->arguments, OPT_ALL);

    SW_TRY(sw_contents_make(&contents, path, all, run->report, err));
    if (!sw_arguments_has(&run->arguments, OPT_JSON))
        return put_text(&contents, path, all, &run->out, err);
    put_json(&contents, &run->out);
    return SW_OK;
}

const sw_command sw_command_ls = {
    .name = "ls",
    .summary = "list what is in a checkpoint",
    .usage = "IN [--all] [--json]",
    .description =
        "List files and tensors of a sharded folder, a Hugging Face folder, an index or a .safetensors "
        "file.\n"
        "Tensors that differ only by numbers of layers or experts are one line. Data are not read.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_ls,
};
