/* Nets for tests (net_case.h). */
#include "net_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/short_float.h"
#include "io/safetensors.h"

void tensor_file_open(tensor_file *file, const char *path)
{
    sw_error err = {0};
    uint32_t number = 0;
    uint64_t header = 0;

    *file = (tensor_file){0};
    if (sw_tensor_list_init(&file->list, SW_TENSOR_LIST_BYTES, &err) != SW_OK ||
        sw_file_map_open(&file->map, path, UINT64_MAX, &err) != SW_OK ||
        sw_tensor_list_add_file(&file->list, path, &number, &err) != SW_OK ||
        sw_safetensors_read(&file->list, file->map, file->map.n_bytes, number, path, &err) != SW_OK)
        fail_msg("%s", err.what);
    memcpy(&header, file->map.bytes, sizeof header);
    file->data = (size_t)header + sizeof header;
}

void tensor_file_close(tensor_file *file)
{
    sw_tensor_list_clear(&file->list);
    sw_file_map_close(&file->map);
}

double net_case_number(sw_dtype dtype, const void *values, size_t i)
{
    switch (dtype) {
    case SW_DTYPE_F64:
        return ((const double *)values)[i];
    case SW_DTYPE_F32:
        return (double)((const float *)values)[i];
    case SW_DTYPE_BF16:
        return (double)sw_float_of_bf16(((const uint16_t *)values)[i]);
    case SW_DTYPE_F16:
        return (double)sw_float_of_f16(((const uint16_t *)values)[i]);
    case SW_DTYPE_I32:
        return ((const int32_t *)values)[i];
    default:
        fail_msg("no numbers of %s here", sw_dtype_name(dtype));
    }
    return 0;
}

static void put_number(sw_dtype dtype, void *values, size_t i, double number)
{
    if (dtype == SW_DTYPE_F64)
        ((double *)values)[i] = number;
    else if (dtype == SW_DTYPE_F32)
        ((float *)values)[i] = (float)number;
    else if (dtype == SW_DTYPE_BF16)
        ((uint16_t *)values)[i] = sw_bf16_of_float((float)number);
    else
        fail_msg("no weights of %s here", sw_dtype_name(dtype));
}

double *tensor_file_values(const tensor_file *file, const char *name, size_t *n)
{
    const sw_tensor_entry *entry = sw_tensor_list_find(&file->list, name, strlen(name));

    if (entry == NULL)
        return NULL;
    const uint8_t *from = file->map.bytes + file->data + entry->begin;
    size_t bytes = sw_dtype_bits((sw_dtype)entry->dtype) / 8;
    *n = (size_t)entry->shape->elems;
    double *values = malloc(*n * sizeof *values + 1);
    assert_non_null(values);
    for (size_t i = 0; i < *n; i++) {
        uint64_t element = 0; /* files are not aligned */
        memcpy(&element, from + i * bytes, bytes);
        values[i] = net_case_number((sw_dtype)entry->dtype, &element, 0);
    }
    return values;
}

static void fill(net_case *c, const char *folder)
{
    char path[4096];
    tensor_file file;

    (void)snprintf(path, sizeof path, "%s/model.safetensors", folder);
    tensor_file_open(&file, path);
    for (uint32_t i = 0; i < c->net->n_parameters; i++) {
        const sw_parameter *p = &c->net->parameters[i];
        size_t n = 0;
        double *values = tensor_file_values(&file, p->fqn, &n);
        assert_non_null(values);
        assert_int_equal(n, sw_tensor_elems(p->tensor));
        for (size_t e = 0; e < n; e++)
            put_number(p->dtype, sw_tensor_data(p->tensor), e, values[e]);
        free(values);
    }
    tensor_file_close(&file);
}

static void print_line(void *context, const char *line)
{
    (void)context;
    print_message("    %s\n", line);
}

void net_case_open(net_case *c, const char *folder, const sw_net_options *given, bool trains)
{
    sw_error err = {0};
    sw_net_options options = *given;

    *c = (net_case){0};
    options.on_tensor = print_line;
    if (sw_model_open(&c->model, folder, &err) != SW_OK ||
        sw_net_create(&c->net, c->model, &options, &err) != SW_OK ||
        sw_net_allocate(c->net, trains, &err) != SW_OK ||
        sw_kernel_create(&c->kernel, 1, SW_KERNEL_BEST, &err) != SW_OK ||
        sw_step_create(&c->step, c->kernel, &err) != SW_OK)
        fail_msg("%s: %s", folder, err.what);
    fill(c, folder);
}

void net_case_close(net_case *c)
{
    sw_step_destroy(c->step);
    sw_kernel_destroy(c->kernel);
    sw_net_destroy(c->net);
    sw_model_close(c->model);
}

const sw_tensor *net_case_ids(net_case *c, const double *values, uint64_t rows, uint64_t columns)
{
    uint64_t dims[] = {rows, columns};
    sw_tensor *ids = sw_step_tensor(c->step, SW_DTYPE_I32, 2, dims);

    assert_non_null(ids);
    for (uint64_t i = 0; i < rows * columns; i++)
        ((int32_t *)sw_tensor_data(ids))[i] = values[i] < 0 ? -1 : (int32_t)values[i];
    return ids;
}
