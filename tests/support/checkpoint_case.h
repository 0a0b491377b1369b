/*
 * Checkpoints for tests: a scratch folder that is removed with all that is in it, models whose every element
 * is different (so that a permutation is seen), and comparing of folders by the bytes of their tensors.
 * Nothing here uses the code under test but the readers of src/io.
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
#include "shardwright/plan.h"

/* A folder of its own for each test: setup and teardown of cmocka. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* Path inside the scratch folder, valid for some further calls; "" is the folder itself. */
const char *scratch(const char *name);

/* Remove a file or folder with all that is in it; an absent one is fine. */
void scratch_remove(const char *name);

/* A file with this text; single quotes become double ones when `is_json`. Folders above it are made. */
void scratch_text(const char *name, const char *text, bool is_json);
void scratch_bytes(const char *name, const void *bytes, size_t n_bytes);

/* The bytes of a file; fails the test when it is not there. Clear the buffer. */
sw_buffer scratch_read(const char *name);

bool scratch_has(const char *name);

/* Names in a folder of the scratch folder, sorted, each followed by a blank; valid until the next call. */
const char *scratch_list(const char *name);

/* Replace the first `from` in a file by `to`, which may differ in length. Fails the test when there is none.
 */
void scratch_edit(const char *name, const char *from, const char *to);

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

#ifdef SW_SOURCE_DIR /* not for the support library itself, which is built once for all tests */
/* $SW_SHARED/NAME, or ../shared/NAME beside the project; NULL, with a printed reason, when it is not there.
 */
static inline const char *shared_path(const char *name)
{
    static char path[1024];
    const char *shared = getenv("SW_SHARED");

    if (shared == NULL)
        (void)snprintf(path, sizeof path, "%s/../shared/%s", SW_SOURCE_DIR, name);
    else
        (void)snprintf(path, sizeof path, "%s/%s", shared, name);
    if (sw_file_kind_of(path) != SW_FILE_ABSENT)
        return path;
    print_message("skipped: %s is not there\n", path);
    return NULL;
}
#endif

#endif
