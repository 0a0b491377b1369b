/*
 * The cases of tests/parity/data: a tiny checkpoint each, and beside it a file with what Hugging Face
 * transformers computes with it (tests/parity/README.md). Everything here fails the running test when it
 * cannot do its work.
 */
#ifndef SW_TEST_GOLDEN_CASE_H
#define SW_TEST_GOLDEN_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdbool.h>

#include "base/file.h"
#include "io/tensor_list.h"

/* One tensor of a file. All of it is good until the file is closed. */
typedef struct golden_tensor {
    const char *name; /* NULL: there is none */
    sw_dtype dtype;
    const sw_shape *shape;
    const void *data; /* little-endian, aligned for its dtype */
} golden_tensor;

/* A file of tensors, mapped. */
typedef struct golden_file {
    char path[512];
    sw_file_map map;
    uint64_t data_begin;
    sw_tensor_list list;
} golden_file;

/* Names of all cases, sorted, and how many; the same until the program ends. */
const char *const *golden_names(size_t *n);

/* The folder of a case, a checkpoint as Hugging Face has them; valid until the next call. */
const char *golden_folder(const char *name);

/* What the peer computed: the numbers of a case, or of "schedules", "adamw", "sgd" and "sgd_momentum", which
 * have no folder. */
void golden_open(golden_file *out, const char *name);
void golden_close(golden_file *file);

/* Tensors by number, in the order of the file, and by name (then with no name when there is none). */
size_t golden_count(const golden_file *file);
golden_tensor golden_at(const golden_file *file, size_t i);
golden_tensor golden_find(const golden_file *file, const char *name);

/* The gradient of the parameter with this FQN in the checkpoint. */
golden_tensor golden_gradient(const golden_file *file, const char *fqn);

/* The FQN of the parameter whose gradient this is; NULL when it is no gradient. */
const char *golden_gradient_of(const golden_tensor *tensor);

/* Numbers of a tensor that must be there and of this type. *n gets how many; NULL: do not say. */
const float *golden_f32(const golden_file *file, const char *name, size_t *n);
const double *golden_f64(const golden_file *file, const char *name, size_t *n);
const int32_t *golden_i32(const golden_file *file, const char *name, size_t *n);

#endif
