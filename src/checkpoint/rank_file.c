/* Reading one file of a sharded folder (checkpoint/rank_file.h). */
#include "checkpoint/rank_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/header.h"
#include "io/safetensors.h"

#define HEADER_MEMORY_LIMIT ((size_t)1 << 30)

typedef struct walking {
    sw_rank_file *file;
    sw_opening *o;
    const char *path;
} walking;

sw_status sw_expect_own_file(const char *path, sw_error *err)
{
    struct stat about;

    if (lstat(path, &about) != 0)
        return SW_FAIL(err, SW_E_IO, "copy the whole folder again", "%s: is %s", path,
                       errno == ENOENT ? "missing" : "not to be read");
    if (S_ISREG(about.st_mode))
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "put the file itself there", "%s: is %s, not a regular file", path,
                   S_ISLNK(about.st_mode)   ? "a symbolic link"
                   : S_ISDIR(about.st_mode) ? "a folder"
                                            : "a pipe, socket or device");
}

sw_status sw_rank_file_text(const sw_rank_file *file, sw_json_text raw, sw_json_text *out, sw_error *err)
{
    return sw_json_decode(raw, out, file->list.arena, "metadata", err);
}

static bool read_format(sw_rank_file *file, sw_json_text value)
{
    return file->has_format = sw_json_text_is(value, SW_META_FORMAT_VALUE);
}

static bool read_coord(sw_rank_file *file, sw_json_text value)
{
    return file->has_coord = sw_coord_parse(&file->coord, value.bytes, value.length);
}

static bool read_run(sw_rank_file *file, sw_json_text value)
{
    return file->has_run = sw_hex_parse(&file->run, value.bytes, value.length);
}

static bool read_fingerprint(sw_rank_file *file, sw_json_text value)
{
    return sw_hex_parse(&file->fingerprint, value.bytes, value.length);
}

static sw_status visit_meta(void *user, sw_json_text key, sw_json_text raw, sw_error *err)
{
    static const struct {
        const char *key;
        bool (*read)(sw_rank_file *file, sw_json_text value);
    } short_ones[] = {
        {SW_META_FORMAT,      read_format     },
        {SW_META_COORD,       read_coord      },
        {SW_META_RUN,         read_run        },
        {SW_META_FINGERPRINT, read_fingerprint},
    };
    const walking *w = user;
    sw_json_text value;

    if (sw_json_text_is(key, SW_META_SLICES)) {
        w->file->slices = raw;
        return SW_OK;
    }
    if (sw_json_text_is(key, SW_META_LAYOUT)) {
        w->file->layout = raw;
        return SW_OK;
    }
    for (size_t i = 0; i < SW_COUNT(short_ones); i++) {
        if (!sw_json_text_is(key, short_ones[i].key))
            continue;
        SW_TRY(sw_rank_file_text(w->file, raw, &value, err));
        if (short_ones[i].read(w->file, value))
            return SW_OK;
        return SW_FAIL(err, SW_E_FORMAT, "read it with the program that wrote it",
                       "%s: %.*s is '%.*s', which this program cannot read", w->path, (int)key.length,
                       key.bytes, (int)(value.length < 100 ? value.length : 100), value.bytes);
    }
    return sw_opening_meta(w->o, key, raw);
}

static sw_status visit_tensor(void *user, const sw_header_tensor *tensor, sw_error *err)
{
    const walking *w = user;
    sw_rank_file *file = w->file;
    const sw_tensor_entry *entry = sw_tensor_list_find(&file->list, tensor->name.bytes, tensor->name.length);

    if (entry == NULL || entry->begin != tensor->begin || tensor->end < tensor->begin ||
        tensor->end > file->n_bytes - file->data_begin)
        return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                       w->path);
    size_t i = (size_t)(entry - file->list.tensors);
    file->ends[i] = tensor->end;
    file->words[i] = sw_store_dtype_word(w->o->store, (sw_dtype)entry->dtype, tensor->dtype);
    return file->words[i] == NULL ? sw_opening_no_memory(w->o) : SW_OK;
}

static sw_status read_header(sw_rank_file *out, sw_opening *o, const char *path, sw_error *err)
{
    walking w = {out, o, path};
    sw_header_visitor visitor = {&w, visit_meta, visit_tensor};
    uint32_t file = 0;

    SW_TRY(sw_tensor_list_init(&out->list, HEADER_MEMORY_LIMIT, err));
    SW_TRY(sw_tensor_list_add_file(&out->list, path, &file, err));
    SW_TRY(sw_header_map(&out->head, path, &out->n_bytes, &out->data_begin, err));
    SW_TRY(sw_safetensors_read(&out->list, out->head, out->n_bytes, file, path, err));
    out->words = sw_alloc_zero(out->list.n_tensors + 1, sizeof *out->words);
    out->ends = sw_alloc_zero(out->list.n_tensors + 1, sizeof *out->ends);
    if (out->words == NULL || out->ends == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for its header", path);
    SW_TRY(sw_header_walk(out->head, out->data_begin, path, &visitor, err));
    for (size_t i = 0; i < out->list.n_tensors; i++) {
        if (out->words[i] == NULL)
            return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                           path);
    }
    if (out->has_format && out->has_coord && out->has_run && out->fingerprint != 0)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "move it away if it does not belong here",
                   "%s: its metadata do not say that it is a file of a sharded folder", path);
}

sw_status sw_rank_file_open(sw_rank_file *out, sw_opening *o, const char *path)
{
    *out = (sw_rank_file){0};
    SW_TRY(sw_expect_own_file(path, o->err));
    sw_status status = read_header(out, o, path, o->err);
    if (status != SW_OK)
        sw_rank_file_close(out);
    return status;
}

void sw_rank_file_close(sw_rank_file *file)
{
    sw_file_map_close(&file->head);
    sw_tensor_list_clear(&file->list);
    sw_free(file->words);
    sw_free(file->ends);
    *file = (sw_rank_file){0};
}
