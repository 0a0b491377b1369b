/*
 * Checkpoints for tests, in the scratch folder: models whose every element is different (so that a
 * permutation is seen), and comparing of folders by the bytes of their tensors. Nothing here uses the code
 * under test but the readers of src/io.
 */
#ifndef SW_TEST_CHECKPOINT_CASE_H
#define SW_TEST_CHECKPOINT_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/file.h"
#include "io/tensor_list.h"
#include "scratch.h"
#include "shardwright/plan.h"

/*
 * Write a model folder. `config`: members of config.json without braces, single quotes for double ones.
 * `tensors`: lines "NAME DTYPE AxB" ("1" for one element, "-" for a scalar); NULL: those of the family's
 * table. In `n_files` files with an index, or in one without. Data follow from names and offsets alone.
 */
void make_model(const char *name, const char *config, const char *tensors, uint32_t n_files);

/* The same from a folder with config.json and params.tsv or without; false when it is not there. */
bool make_model_like(const char *name, const char *folder, uint32_t n_files);

/* Byte `at` of the data of a tensor, as make_model() writes it. */
uint8_t data_byte(const char *tensor, size_t length, uint64_t at);

/* A plan of a model folder, written as JSON and read again, so that it has no model. Fails the test without
 * one. */
sw_plan *plan_of(const char *model, const char *mesh, uint32_t ep, const char *overrides);

/* The same; NULL when the planner refuses. */
sw_plan *try_plan_of(const char *model, const char *mesh, uint32_t ep, const char *overrides);

/* Every tensor of folder `a` is in `b` with dtype, shape and bytes, and no other; fails the test with the
 * first difference. */
void expect_same_tensors(const char *a, const char *b);

/* All *.safetensors of a folder in one list, with their bytes. */
typedef struct loaded {
    sw_tensor_list list;
    sw_buffer *data; /* data sections, one a file */
} loaded;

loaded load_folder(const char *path);
void unload(loaded *l);
const uint8_t *loaded_bytes(const loaded *l, const sw_tensor_entry *t, uint64_t *n_bytes);

#endif
