/* Nets for tests: a folder of Hugging Face's, opened, given memory, filled and ready to run. */
#ifndef SW_TEST_NET_CASE_H
#define SW_TEST_NET_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/file.h"
#include "io/tensor_list.h"
#include "nn/net.h"

/* A safetensors file in memory. */
typedef struct tensor_file {
    sw_tensor_list list;
    sw_file_map map;
    size_t data; /* where the data begin */
} tensor_file;

void tensor_file_open(tensor_file *file, const char *path); /* fails the test when it cannot */
void tensor_file_close(tensor_file *file);
/* Its elements as doubles, to be given to free(); NULL: no such tensor. */
double *tensor_file_values(const tensor_file *file, const char *name, size_t *n);

typedef struct net_case {
    sw_kernel *kernel;
    sw_step *step;
    sw_model *model;
    sw_net *net;
} net_case;

/* Open the folder; the test fails unless it can be run. */
void net_case_open(net_case *c, const char *folder, const sw_net_options *options, bool trains);
void net_case_close(net_case *c);

/* I32 [rows, columns] of the step from doubles; what is below 0 becomes -1. */
const sw_tensor *net_case_ids(net_case *c, const double *values, uint64_t rows, uint64_t columns);

/* Element `i` of dense memory of a type. */
double net_case_number(sw_dtype dtype, const void *values, size_t i);

#endif
