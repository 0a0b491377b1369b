/* Folders with models: see the header. */
#include "model_folder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"

static char folder[64];

int folder_setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/sw-model-XXXXXX");
    return mkdtemp(folder) == NULL;
}

int folder_teardown(void **state)
{
    DIR *dir = opendir(folder);

    (void)state;
    (void)chmod(folder, 0700);
    for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)remove(folder_path(entry->d_name));
    }
    if (dir != NULL)
        (void)closedir(dir);
    return rmdir(folder);
}

const char *folder_path(const char *name)
{
    static char paths[4][400];
    static size_t turn;
    char *path = paths[turn++ % 4];

    (void)snprintf(path, sizeof paths[0], name[0] == '\0' ? "%s" : "%s/%s", folder, name);
    return path;
}

void folder_bytes(const char *name, const void *bytes, size_t n_bytes)
{
    FILE *file = fopen(folder_path(name), "wb");

    if (file == NULL || fwrite(bytes, 1, n_bytes, file) != n_bytes || fclose(file) != 0)
        fail_msg("cannot write %s", folder_path(name));
}

static void write_buffer(const char *name, sw_buffer *buffer)
{
    const char *text = sw_buffer_text(buffer);

    if (text == NULL)
        fail_msg("no memory for %s", name);
    folder_bytes(name, text, buffer->length);
    sw_buffer_clear(buffer);
}

/* `text` with one character in the place of another. */
static void write_replaced(const char *name, const char *text, char from, char to)
{
    sw_buffer buffer = {0};

    for (; *text != '\0'; text++) {
        char c = *text == from ? to : *text;
        sw_buffer_putc(&buffer, c);
    }
    write_buffer(name, &buffer);
}

void folder_json(const char *name, const char *text)
{
    write_replaced(name, text, '\'', '"');
}

void folder_tsv(const char *lines)
{
    write_replaced("params.tsv", lines, ' ', '\t');
}

/* The fields of a line, cut apart at its blanks; returns the next line, or NULL at the end. */
static const char *next_line(const char *lines, char fields[3][300])
{
    size_t length = strcspn(lines, "\n");
    size_t at = 0;

    if (*lines == '\0')
        return NULL;
    for (size_t i = 0; i < 3; i++) {
        size_t n = at < length ? strcspn(lines + at, " \n") : 0;
        assert_true(n < sizeof fields[i]);
        memcpy(fields[i], lines + at, n);
        fields[i][n] = '\0';
        at += n + 1;
    }
    return lines + length + (lines[length] == '\n');
}

static void put_shape(sw_buffer *out, const char *shape, uint64_t *elems)
{
    for (; *shape != '\0'; shape++) {
        sw_buffer_putc(out, *shape == 'x' ? ',' : *shape);
        if (*shape == 'x')
            continue;
        char *end = NULL;
        *elems *= strtoull(shape, &end, 10);
        while (shape + 1 < end)
            sw_buffer_putc(out, *++shape);
    }
}

void folder_tensors(const char *name, const char *lines)
{
    char fields[3][300];
    sw_buffer header = {0};
    sw_buffer all = {0};
    uint64_t at = 0;

    sw_buffer_puts(&header, "{");
    while ((lines = next_line(lines, fields)) != NULL) {
        uint64_t elems = 1;
        sw_buffer_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", header.length > 1 ? "," : "",
                         fields[0], fields[1]);
        put_shape(&header, fields[2], &elems);
        uint64_t bytes = elems * sw_dtype_bits(sw_dtype_of(fields[1], strlen(fields[1]))) / 8;
        sw_buffer_printf(&header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + bytes);
        at += bytes;
    }
    sw_buffer_puts(&header, "}");
    for (int i = 0; i < 8; i++)
        sw_buffer_putc(&all, (char)(header.length >> (8 * i) & 0xff));
    sw_buffer_append(&all, header.bytes, header.length);
    for (uint64_t i = 0; i < at; i++)
        sw_buffer_putc(&all, '\0');
    sw_buffer_clear(&header);
    write_buffer(name, &all);
}

void folder_index(const char *lines)
{
    char fields[3][300];
    sw_buffer text = {0};
    bool is_first = true;

    sw_buffer_puts(&text, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (; (lines = next_line(lines, fields)) != NULL; is_first = false)
        sw_buffer_printf(&text, "%s\"%s\": \"%s\"", is_first ? "" : ", ", fields[0], fields[1]);
    sw_buffer_puts(&text, "}}");
    write_buffer("model.safetensors.index.json", &text);
}

sw_model *folder_open(const char *name)
{
    sw_model *model = NULL;
    sw_error err = {0};

    if (sw_model_open(&model, folder_path(name), &err) != SW_OK)
        fail_msg("%s: %s (%s)", folder_path(name), err.what, err.help);
    return model;
}

void folder_refused(const char *name, sw_status status, const char *what, const char *help)
{
    sw_model *model = NULL;
    sw_error err = {0};

    sw_status found = sw_model_open(&model, folder_path(name), &err);
    if (found == SW_OK)
        fail_msg("%s: was read", folder_path(name));
    assert_null(model);
    assert_int_equal(err.status, found);
    if (found != status || strstr(err.what, what) == NULL || strstr(err.help, help) == NULL)
        fail_msg("%s: status %s: %s (%s)", folder_path(name), sw_status_name(found), err.what, err.help);
    if (strstr(err.what, folder) == NULL)
        fail_msg("the message does not name a path: %s", err.what);
}

const char *folder_listing(const sw_model *model)
{
    static char text[8192];
    size_t used = 0;
    sw_param_info p;

    text[0] = '\0';
    for (size_t i = 0; sw_model_param(model, i, &p) && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s ", p.name, sw_dtype_name(p.dtype));
        for (uint32_t d = 0; d < p.n_dims && used < sizeof text; d++)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, d == 0 ? "" : "x", p.dims[d]);
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", p.dims == NULL ? "?" : "");
    }
    assert_true(used < sizeof text);
    return text;
}

const sw_finding *folder_remark(const sw_model *model, const char *code)
{
    for (uint32_t i = 0; i < model->n_remarks; i++) {
        if (strcmp(model->remarks[i].code, code) == 0)
            return &model->remarks[i];
    }
    return NULL;
}
