/*
 * Declarations of the public headers. They have one form, which headers.symbols relies on too: SW_API, the
 * type, the name, the parameters in parentheses without parentheses of their own, a semicolon.
 */
#include "declarations.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

enum { HEADER_MOST = 1 << 16 };

static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* The word that ends just before `end`. */
static void last_word(char out[DECLARED_NAME], const char *begin, const char *end)
{
    while (end > begin && strchr(" \n", end[-1]) != NULL)
        end--;
    const char *first = end;
    while (first > begin && strchr(word_bytes, first[-1]) != NULL)
        first--;
    assert_true(end > first && end - first < DECLARED_NAME);
    memcpy(out, first, (size_t)(end - first));
    out[end - first] = '\0';
}

static void read_parameters(declaration *d, const char *at, const char *end)
{
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma == NULL ? end : comma;
        if (memchr(at, '*', (size_t)(stop - at)) != NULL) {
            assert_true(d->n_pointers < DECLARED_POINTERS);
            last_word(d->pointers[d->n_pointers++], at, stop);
        }
        at = stop + 1;
    }
}

static void read_header(declarations *out, const char *text)
{
    for (const char *at = strstr(text, "SW_API "); at != NULL; at = strstr(at + 1, "SW_API ")) {
        if (at >= text + 8 && memcmp(at - 8, "#define ", 8) == 0)
            continue;
        const char *open = strchr(at, '(');
        const char *close = strchr(at, ')');
        assert_true(open != NULL && close > open && close[1] == ';');
        assert_true(out->n < DECLARED_MOST);
        declaration *d = &out->of[out->n++];
        *d = (declaration){.n_pointers = 0};
        last_word(d->name, at, open);
        read_parameters(d, open + 1, close);
    }
}

/* The text of a public header, without .h. */
static void load_header(char text[HEADER_MOST], const char *name)
{
    char path[1024];
    sw_file_map map = {0};

    (void)snprintf(path, sizeof path, "%s/include/shardwright/%s.h", SW_SOURCE_DIR, name);
    assert_int_equal(sw_file_map_open(&map, path, HEADER_MOST - 1, NULL), SW_OK);
    memcpy(text, map.bytes, map.n_bytes);
    text[map.n_bytes] = '\0';
    sw_file_map_close(&map);
}

void declarations_read(declarations *out, const char *umbrella)
{
    static const char include[] = "\n#include \"";
    char list[HEADER_MOST];
    char text[HEADER_MOST];

    out->n = 0;
    load_header(list, umbrella);
    for (const char *at = strstr(list, include); at != NULL; at = strstr(at + 1, include)) {
        char name[DECLARED_NAME];
        const char *end = strstr(at, ".h\"");
        assert_non_null(end);
        last_word(name, at, end);
        if (strcmp(name, "shardwright") == 0)
            continue;
        load_header(text, name);
        read_header(out, text);
    }
    assert_true(out->n > 0);
}

const declaration *declaration_find(const declarations *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->of[i].name, name) == 0)
            return &all->of[i];
    }
    return NULL;
}
