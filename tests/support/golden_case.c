/* Checkpoints and numbers of tests/parity/data; see golden_case.h. */
#include "golden_case.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/header.h"
#include "io/safetensors.h"

static const char data_folder[] = SW_SOURCE_DIR "/tests/parity/data";
static const char gradient[] = "grad.";

enum { MAX_CASES = 256, MAX_CASE_NAME = 64, MAX_FILE_BYTES = 1 << 20 };

/* ---- cases ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t list_cases(const char **names)
{
    static char texts[MAX_CASES][MAX_CASE_NAME];
    size_t n = 0;
    DIR *dir = opendir(data_folder);

    if (dir == NULL)
        fail_msg("cannot read %s", data_folder);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || sw_file_kind_of(golden_folder(entry->d_name)) != SW_FILE_FOLDER)
            continue;
        size_t length = strlen(entry->d_name);
        assert_true(n < MAX_CASES && length < MAX_CASE_NAME);
        memcpy(texts[n], entry->d_name, length + 1);
        names[n] = texts[n];
        n++;
    }
    (void)closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof *names, compare_names);
    return n;
}

const char *const *golden_names(size_t *n)
{
    static const char *names[MAX_CASES];
    static size_t n_names;

    if (n_names == 0)
        n_names = list_cases(names);
    *n = n_names;
    return names;
}

const char *golden_folder(const char *name)
{
    static char path[512];
    int length = snprintf(path, sizeof path, "%s/%s", data_folder, name);

    assert_in_range(length, 1, sizeof path - 1);
    return path;
}

/* ---- files ---- */

static sw_status read_file(golden_file *file, sw_error *err)
{
    sw_file_map head = {0};
    uint64_t n_bytes = 0;

    SW_TRY(sw_tensor_list_init(&file->list, MAX_FILE_BYTES, err));
    SW_TRY(sw_safetensors_read_file(&file->list, file->path, err));
    SW_TRY(sw_header_map(&head, file->path, &n_bytes, &file->data_begin, err));
    sw_file_map_close(&head);
    return sw_file_map_open(&file->map, file->path, MAX_FILE_BYTES, err);
}

void golden_open(golden_file *out, const char *name)
{
    sw_error err = {0};

    *out = (golden_file){0};
    int length = snprintf(out->path, sizeof out->path, "%s/%s.safetensors", data_folder, name);
    assert_in_range(length, 1, sizeof out->path - 1);
    if (read_file(out, &err) != SW_OK) {
        golden_close(out);
        fail_msg("%s", err.what);
    }
}

void golden_close(golden_file *file)
{
    sw_file_map_close(&file->map);
    sw_tensor_list_clear(&file->list);
    *file = (golden_file){0};
}

size_t golden_count(const golden_file *file)
{
    return file->list.n_tensors;
}

static golden_tensor tensor_of(const golden_file *file, const sw_tensor_entry *entry)
{
    assert_int_not_equal(entry->dtype, SW_DTYPE_UNKNOWN);
    golden_tensor out = {entry->name, (sw_dtype)entry->dtype, entry->shape,
                         file->map.bytes + file->data_begin + entry->begin};

    if ((uintptr_t)out.data % ((sw_dtype_bits(out.dtype) + 7) / 8) != 0)
        fail_msg("%s: %s is not aligned", file->path, out.name);
    return out;
}

golden_tensor golden_at(const golden_file *file, size_t i)
{
    assert_true(i < file->list.n_tensors);
    return tensor_of(file, &file->list.tensors[i]);
}

golden_tensor golden_find(const golden_file *file, const char *name)
{
    const sw_tensor_entry *entry = sw_tensor_list_find(&file->list, name, strlen(name));

    return entry == NULL ? (golden_tensor){0} : tensor_of(file, entry);
}

golden_tensor golden_gradient(const golden_file *file, const char *fqn)
{
    char name[512];
    int length = snprintf(name, sizeof name, "%s%s", gradient, fqn);

    assert_in_range(length, 1, sizeof name - 1);
    return golden_find(file, name);
}

const char *golden_gradient_of(const golden_tensor *tensor)
{
    size_t n = sizeof gradient - 1;

    return strncmp(tensor->name, gradient, n) == 0 ? tensor->name + n : NULL;
}

/* ---- numbers ---- */

static const void *numbers(const golden_file *file, const char *name, sw_dtype dtype, size_t *n)
{
    golden_tensor tensor = golden_find(file, name);

    if (tensor.name == NULL)
        fail_msg("%s: has no %s", file->path, name);
    if (tensor.dtype != dtype)
        fail_msg("%s: %s is %s, not %s", file->path, name, sw_dtype_name(tensor.dtype), sw_dtype_name(dtype));
    if (n != NULL)
        *n = (size_t)tensor.shape->elems;
    return tensor.data;
}

const float *golden_f32(const golden_file *file, const char *name, size_t *n)
{
    return numbers(file, name, SW_DTYPE_F32, n);
}

const double *golden_f64(const golden_file *file, const char *name, size_t *n)
{
    return numbers(file, name, SW_DTYPE_F64, n);
}

const int32_t *golden_i32(const golden_file *file, const char *name, size_t *n)
{
    return numbers(file, name, SW_DTYPE_I32, n);
}
