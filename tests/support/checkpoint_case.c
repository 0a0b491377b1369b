/* Checkpoints for tests: see the header. */
#include "checkpoint_case.h"

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "model/model.h"

uint8_t data_byte(const char *tensor, size_t length, uint64_t at)
{
    uint64_t z = sw_hash(tensor, length, 7) + (at / 8) * 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (uint8_t)((z ^ (z >> 31)) >> (8 * (at % 8)));
}

/* A tensor to be written: the word of its dtype is kept, so that unknown ones can be made too. */
typedef struct made {
    const char *name;
    size_t length;
    char dtype[32];
    uint32_t n_dims;
    uint64_t dims[SW_MAX_DIMS];
    uint64_t n_bytes;
} made;

static uint64_t bytes_of(const made *t)
{
    uint32_t bits = sw_dtype_bits(sw_dtype_of(t->dtype, strlen(t->dtype)));
    uint64_t elems = 1;

    for (uint32_t d = 0; d < t->n_dims; d++)
        elems *= t->dims[d];
    return bits == 0 ? elems * 3 : elems * bits / 8; /* unknown ones take three bytes here */
}

static void write_file(const char *path, const made *tensors, size_t n)
{
    sw_buffer header = {0};
    sw_buffer all = {0};
    uint64_t at = 0;

    sw_buffer_puts(&header, "{\"__metadata__\":{\"format\":\"pt\",\"made_by\":\"a test\"}");
    for (size_t i = 0; i < n; i++) {
        const made *t = &tensors[i];
        sw_buffer_printf(&header, ",\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", (int)t->length, t->name,
                         t->dtype);
        for (uint32_t d = 0; d < t->n_dims; d++)
            sw_buffer_printf(&header, "%s%" PRIu64, d == 0 ? "" : ",", t->dims[d]);
        sw_buffer_printf(&header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + t->n_bytes);
        at += t->n_bytes;
    }
    sw_buffer_putc(&header, '}');
    for (int i = 0; i < 8; i++)
        sw_buffer_putc(&all, (char)(header.length >> (8 * i) & 0xff));
    sw_buffer_append(&all, header.bytes, header.length);
    for (size_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < tensors[i].n_bytes; k++)
            sw_buffer_putc(&all, (char)data_byte(tensors[i].name, tensors[i].length, k));
    }
    scratch_bytes(path, all.bytes, all.length);
    sw_buffer_clear(&header);
    sw_buffer_clear(&all);
}

static void write_files(const char *name, const made *tensors, size_t n, uint32_t n_files)
{
    char path[512];
    sw_buffer index = {0};

    if (n_files <= 1) {
        (void)snprintf(path, sizeof path, "%s/model.safetensors", name);
        write_file(path, tensors, n);
        return;
    }
    sw_buffer_puts(&index, "{\"metadata\":{},\"weight_map\":{");
    for (uint32_t f = 0; f < n_files; f++) {
        size_t first = n * f / n_files;
        size_t end = n * (f + 1) / n_files;
        (void)snprintf(path, sizeof path, "%s/model-%05u-of-%05u.safetensors", name, f + 1, n_files);
        write_file(path, tensors + first, end - first);
        for (size_t i = first; i < end; i++)
            sw_buffer_printf(&index, "%s\"%.*s\":\"%s\"", i == 0 ? "" : ",", (int)tensors[i].length,
                             tensors[i].name, strrchr(path, '/') + 1);
    }
    sw_buffer_puts(&index, "}}");
    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", name);
    scratch_bytes(path, index.bytes, index.length);
    sw_buffer_clear(&index);
}

/* Names and shapes that a folder without data gives. */
static void write_described(const char *name, const char *described, uint32_t n_files)
{
    sw_model *model = NULL;
    sw_error err = {0};

    if (sw_model_open(&model, described, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    size_t n = sw_model_param_count(model);
    made *tensors = calloc(n, sizeof *tensors);
    for (size_t i = 0; i < n; i++) {
        sw_param_info p;
        assert_true(sw_model_param(model, i, &p));
        tensors[i].name = p.name;
        tensors[i].length = strlen(p.name);
        (void)snprintf(tensors[i].dtype, sizeof tensors[i].dtype, "%s", sw_dtype_name(p.dtype));
        tensors[i].n_dims = p.n_dims;
        memcpy(tensors[i].dims, p.dims, p.n_dims * sizeof *p.dims);
        tensors[i].n_bytes = bytes_of(&tensors[i]);
    }
    write_files(name, tensors, n, n_files);
    free(tensors);
    sw_model_close(model);
}

static size_t read_lines(const char *lines, made **out)
{
    size_t n = 0;

    *out = calloc(strlen(lines) + 1, sizeof **out);
    while (*lines != '\0') {
        made *t = &(*out)[n++];
        t->name = lines;
        t->length = strcspn(lines, " ");
        lines += t->length + 1;
        size_t k = strcspn(lines, " ");
        (void)snprintf(t->dtype, sizeof t->dtype, "%.*s", (int)k, lines);
        lines += k + 1;
        while (*lines != '\n' && *lines != '\0' && *lines != '-') {
            char *end = NULL;
            t->dims[t->n_dims++] = strtoull(lines, &end, 10);
            lines = end + (*end == 'x');
        }
        lines += *lines == '-';
        lines += *lines == '\n';
        t->n_bytes = bytes_of(t);
    }
    return n;
}

void make_model(const char *name, const char *config, const char *tensors, uint32_t n_files)
{
    char path[512];
    sw_buffer json = {0};

    sw_buffer_printf(&json, "{%s}", config);
    (void)snprintf(path, sizeof path, "%s/config.json", name);
    scratch_text(path, sw_buffer_text(&json), true);
    sw_buffer_clear(&json);
    if (tensors == NULL) {
        write_described(name, scratch(name), n_files);
        return;
    }
    made *all = NULL;
    size_t n = read_lines(tensors, &all);
    write_files(name, all, n, n_files);
    free(all);
}

bool make_model_like(const char *name, const char *described, uint32_t n_files)
{
    char path[1024];
    sw_buffer config = {0};

    (void)snprintf(path, sizeof path, "%s/config.json", described);
    if (sw_file_kind_of(path) != SW_FILE_REGULAR)
        return false;
    config = scratch_read(path);
    (void)snprintf(path, sizeof path, "%s/config.json", name);
    scratch_bytes(path, config.bytes, config.length);
    sw_buffer_clear(&config);
    write_described(name, described, n_files);
    return true;
}

/* ---- plans ---- */

/* Written and read again: a plan from a file has no model. */
static sw_plan *reload(sw_plan *plan)
{
    sw_plan *again = NULL;
    sw_error err = {0};
    char *text = NULL;
    size_t length = 0;

    if (sw_plan_json(plan, &text, &length, &err) != SW_OK)
        fail_msg("%s", err.what);
    scratch_bytes("reload.plan.json", text, length);
    if (sw_plan_load(&again, scratch("reload.plan.json"), &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    sw_text_free(text);
    scratch_remove("reload.plan.json");
    return again;
}

sw_plan *try_plan_of(const char *model_name, const char *axes, uint32_t ep, const char *overrides)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_overrides *said = NULL;
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_plan *again = NULL;
    sw_error err = {0};

    if (sw_model_open(&model, scratch(model_name), &err) != SW_OK ||
        sw_mesh_create(&mesh, axes, ep, &err) != SW_OK)
        fail_msg("%s (%s)", err.what, err.help);
    if (overrides != NULL) {
        if (sw_overrides_create(&said, &err) != SW_OK ||
            sw_overrides_add_text(said, overrides, strlen(overrides), "o.yaml", &err) != SW_OK)
            fail_msg("%s (%s)", err.what, err.help);
        options.overrides = said;
    }
    options.allow_uncovered = true;
    if (sw_plan_create(&plan, model, mesh, &options, &err) == SW_OK)
        again = reload(plan);
    else
        print_message("%s %s ep=%u: not planned: %s\n", model_name, axes, ep, err.what);
    sw_plan_destroy(plan);
    sw_overrides_destroy(said);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
    return again;
}

sw_plan *plan_of(const char *model, const char *mesh, uint32_t ep, const char *overrides)
{
    sw_plan *plan = try_plan_of(model, mesh, ep, overrides);

    if (plan == NULL)
        fail_msg("%s: no plan for %s", model, mesh);
    return plan;
}

/* ---- comparing ---- */

loaded load_folder(const char *path)
{
    loaded l = {0};
    sw_error err = {0};
    char files[512][256];
    size_t n = 0;
    DIR *dir = opendir(path);

    if (dir == NULL)
        fail_msg("no folder %s", path);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t length = strlen(entry->d_name);
        if (length > 12 && length < 256 && strcmp(entry->d_name + length - 12, ".safetensors") == 0 &&
            n < 512)
            (void)snprintf(files[n++], sizeof files[0], "%s", entry->d_name);
    }
    (void)closedir(dir);
    if (sw_tensor_list_init(&l.list, 0, &err) != SW_OK)
        fail_msg("%s", err.what);
    l.data = calloc(n + 1, sizeof *l.data);
    for (size_t i = 0; i < n; i++) {
        char full[1400];
        (void)snprintf(full, sizeof full, "%s/%s", path, files[i]);
        if (sw_safetensors_read_file(&l.list, full, &err) != SW_OK)
            fail_msg("%s (%s)", err.what, err.help);
        sw_buffer all = scratch_read(full);
        uint64_t header = 0;
        for (int k = 7; k >= 0; k--)
            header = header << 8 | (uint8_t)all.bytes[k];
        sw_buffer_append(&l.data[i], all.bytes + 8 + header, all.length - 8 - header);
        sw_buffer_clear(&all);
    }
    return l;
}

void unload(loaded *l)
{
    for (uint32_t i = 0; i < l->list.n_files; i++)
        sw_buffer_clear(&l->data[i]);
    free(l->data);
    sw_tensor_list_clear(&l->list);
}

/* The end is where the next tensor of the file begins: good for dtypes that nobody knows too. */
const uint8_t *loaded_bytes(const loaded *l, const sw_tensor_entry *t, uint64_t *n_bytes)
{
    uint64_t end = l->data[t->file].length;
    uint32_t bits = sw_dtype_bits((sw_dtype)t->dtype);

    for (size_t i = 0; i < l->list.n_tensors && bits == 0; i++) {
        const sw_tensor_entry *other = &l->list.tensors[i];
        if (other->file == t->file && other->begin > t->begin && other->begin < end)
            end = other->begin;
    }
    *n_bytes = bits == 0 ? end - t->begin : t->shape->elems * bits / 8;
    return (const uint8_t *)l->data[t->file].bytes + t->begin;
}

void expect_same_tensors(const char *a, const char *b)
{
    loaded left = load_folder(scratch(a));
    loaded right = load_folder(scratch(b));

    for (size_t i = 0; i < left.list.n_tensors; i++) {
        const sw_tensor_entry *t = &left.list.tensors[i];
        const sw_tensor_entry *u = sw_tensor_list_find(&right.list, t->name, t->name_length);
        uint64_t n_left = 0;
        uint64_t n_right = 0;
        if (u == NULL)
            fail_msg("%s: no %s", b, t->name);
        const uint8_t *x = loaded_bytes(&left, t, &n_left);
        const uint8_t *y = loaded_bytes(&right, u, &n_right);
        if (t->dtype != u->dtype || t->shape->n_dims != u->shape->n_dims ||
            memcmp(t->shape->dims, u->shape->dims, t->shape->n_dims * sizeof *t->shape->dims) != 0)
            fail_msg("%s: %s has another dtype or shape", b, t->name);
        if (n_left != n_right || (n_left > 0 && memcmp(x, y, n_left) != 0))
            fail_msg("%s: %s has other bytes", b, t->name);
    }
    if (left.list.n_tensors != right.list.n_tensors)
        fail_msg("%s: %zu tensors, not %zu", b, right.list.n_tensors, left.list.n_tensors);
    unload(&left);
    unload(&right);
}
