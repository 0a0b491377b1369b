/* A scratch folder for tests, removed with all that is in it. */
#ifndef SW_TEST_SCRATCH_H
#define SW_TEST_SCRATCH_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdbool.h>

#include "base/buffer.h"

/* A folder of its own for each test: setup and teardown of cmocka. Faults of base/disk end with the test. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* The same, and the process works in it: command lines name what is there by short paths. */
int scratch_setup_inside(void **state);

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

#endif
