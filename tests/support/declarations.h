/* The functions that the public headers declare, read from the headers: what a test of all of them goes by.
 */
#ifndef SW_TEST_DECLARATIONS_H
#define SW_TEST_DECLARATIONS_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

enum { DECLARED_MOST = 256, DECLARED_NAME = 64, DECLARED_POINTERS = 8 };

typedef struct declaration {
    char name[DECLARED_NAME];
    size_t n_pointers;
    char pointers[DECLARED_POINTERS][DECLARED_NAME]; /* names of the parameters that are pointers */
} declaration;

typedef struct declarations {
    size_t n;
    declaration of[DECLARED_MOST];
} declarations;

/*
 * Read the headers that an umbrella header ("shardwright", "runtime") is made of: of the runtime's, those
 * that it adds. Fails the test when a declaration is not understood.
 */
void declarations_read(declarations *out, const char *umbrella);

const declaration *declaration_find(const declarations *all, const char *name);

#endif
