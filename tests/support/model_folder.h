/*
 * A temporary folder with the files of a model, made by the test and removed after it. Texts are short:
 * single quotes in JSON stand for double ones, tensors are lines "NAME DTYPE AxB", an index has lines "NAME
 * FILE".
 */
#ifndef SW_TEST_MODEL_FOLDER_H
#define SW_TEST_MODEL_FOLDER_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "model/model.h"

/* A folder of its own for each test: setup and teardown of cmocka. */
int folder_setup(void **state);
int folder_teardown(void **state);

/* Path of a file in the folder, valid for some further calls; "" is the folder itself. */
const char *folder_path(const char *name);

/* Write a file as it is. */
void folder_bytes(const char *name, const void *bytes, size_t n_bytes);

/* Write JSON given with single quotes. */
void folder_json(const char *name, const char *text);

/* Write "NAME DTYPE AxB" lines as params.tsv. */
void folder_tsv(const char *lines);

/* Write a safetensors file with these tensors and zeros for their data. */
void folder_tensors(const char *name, const char *lines);

/* Write model.safetensors.index.json from "NAME FILE" lines. */
void folder_index(const char *lines);

/* Open the folder, or a file in it; the test fails when it cannot be read. Close the model. */
sw_model *folder_open(const char *name);

/* Opening must fail with this status; `what` and `help` must be part of the message. */
void folder_refused(const char *name, sw_status status, const char *what, const char *help);

/* "NAME DTYPE AxB" of all parameters in model order, ended by newlines; "?" for what is not known. Valid
 * until the next call. */
const char *folder_listing(const sw_model *model);

/* The remark of this code; NULL when there is none. */
const sw_finding *folder_remark(const sw_model *model, const char *code);

#endif
