/* Nets for tests (net_case.h). */
#include "net_case.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/short_float.h"
#include "io/safetensors.h"

/* A safetensors file in memory. */
typedef struct tensor_file {
    sw_tensor_list list;
    sw_file_map map;
    size_t data; /* where the data begin */
} tensor_file;

static void open_file(tensor_file *file, const char *path)
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

static double number_at(sw_dtype dtype, const void *at)
{
    uint16_t half = 0;
    float single = 0;

    memcpy(&half, at, sizeof half);
    if (dtype == SW_DTYPE_BF16)
        return (double)sw_float_of_bf16(half);
    if (dtype == SW_DTYPE_F16)
        return (double)sw_float_of_f16(half);
    assert_int_equal(dtype, SW_DTYPE_F32);
    memcpy(&single, at, sizeof single);
    return (double)single;
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

static void fill_parameter(const tensor_file *file, const sw_parameter *p)
{
    const sw_tensor_entry *entry = sw_tensor_list_find(&file->list, p->fqn, strlen(p->fqn));

    assert_non_null(entry);
    const uint8_t *from = file->map.bytes + file->data + entry->begin;
    size_t bytes = sw_dtype_bits((sw_dtype)entry->dtype) / 8;
    assert_int_equal(entry->shape->elems, sw_tensor_elems(p->tensor));
    for (size_t i = 0; i < entry->shape->elems; i++)
        put_number(p->dtype, sw_tensor_data(p->tensor), i,
                   number_at((sw_dtype)entry->dtype, from + i * bytes));
}

static void fill(net_case *c, const char *folder)
{
    char path[4096];
    tensor_file file;

    (void)snprintf(path, sizeof path, "%s/model.safetensors", folder);
    open_file(&file, path);
    for (uint32_t i = 0; i < c->net->n_parameters; i++)
        fill_parameter(&file, &c->net->parameters[i]);
    sw_tensor_list_clear(&file.list);
    sw_file_map_close(&file.map);
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

const sw_tensor *net_case_ids(net_case *c, const int32_t *values, uint64_t rows, uint64_t columns)
{
    uint64_t dims[] = {rows, columns};
    sw_tensor *ids = sw_step_tensor(c->step, SW_DTYPE_I32, 2, dims);

    assert_non_null(ids);
    memcpy(sw_tensor_data(ids), values, (size_t)(rows * columns) * sizeof *values);
    return ids;
}
