/*
 * The reference data beside the project: $SW_SHARED, or ../shared. It is not part of the project: a test that
 * needs it skips by name when it is not there.
 */
#ifndef SW_TEST_SHARED_H
#define SW_TEST_SHARED_H

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

#include "base/file.h"

/* The path of a file or folder below it, such as "corpus/gpt2"; "" is the folder itself. */
static inline void shared_path(char *out, size_t capacity, const char *name)
{
    const char *shared = getenv("SW_SHARED");

    int n = snprintf(out, capacity, "%s/%s", shared == NULL ? SW_SOURCE_DIR "/../shared" : shared, name);
    assert_in_range(n, 1, capacity - 1);
}

static inline bool has_shared(const char *name)
{
    char path[1024];

    shared_path(path, sizeof path, name);
    return sw_file_kind_of(path) != SW_FILE_ABSENT;
}

/* Skips the running test, saying why, when it is not there. */
static inline void need_shared(const char *name)
{
    if (has_shared(name))
        return;
    print_message("skipped: no %s in ../shared (set SW_SHARED)\n", name);
    skip();
}

#endif
