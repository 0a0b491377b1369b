/* Messages, tables of keys, names, lists and numbers of override files: see override_reader.h. */
#include "plan/override_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/nearest.h"
#include "base/status.h"

sw_status sw_reader_fail(const sw_reader *r, const sw_yaml_node *at, const char *help, const char *format,
                         ...)
{
    char what[sizeof r->err->what];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return SW_FAIL(r->err, SW_E_FORMAT, help, "%s:%" PRIu32 ": %s%s%s", r->path, at->line,
                   r->field == NULL ? "" : r->field, r->field == NULL ? "" : ": ", what);
}

/* "known: a, b", cut off between two words where it gets too long. */
static void list_words(char *out, size_t capacity, const char *const *words, size_t n_words)
{
    static const char more[] = ", ...";
    size_t used = 0;

    for (size_t i = 0; i < n_words; i++) {
        const char *before = i == 0 ? "known: " : ", ";
        size_t needed = strlen(before) + strlen(words[i]);
        bool is_last = i + 1 == n_words;
        bool fits = used + needed + (is_last ? 1 : sizeof more) <= capacity;
        used +=
            (size_t)snprintf(out + used, capacity - used, "%s%s", fits ? before : more, fits ? words[i] : "");
        if (!fits)
            return;
    }
}

sw_status sw_reader_unknown(const sw_reader *r, const sw_yaml_node *at, const char *kind, const char *word,
                            const char *const *words, size_t n_words)
{
    char help[sizeof r->err->help] = "";
    const char *near_ = sw_nearest(word, words, n_words);

    if (near_ != NULL) {
        (void)snprintf(help, sizeof help, "did you mean '%s'?", near_);
    } else {
        list_words(help, sizeof help, words, n_words);
    }
    return sw_reader_fail(r, at, help, "unknown %s '%.200s'", kind, word);
}

sw_status sw_reader_no_room(const sw_reader *r)
{
    return sw_arena_fail(r->into->arena, r->path, r->err);
}

static const sw_reader_key *find_key(const sw_reader_key *keys, size_t n_keys, const char *key)
{
    for (size_t i = 0; i < n_keys; i++) {
        if (strcmp(keys[i].key, key) == 0)
            return &keys[i];
    }
    return NULL;
}

sw_status sw_reader_mapping(sw_reader *r, const sw_yaml_node *mapping, const sw_reader_key *keys,
                            size_t n_keys, void *base)
{
    for (const sw_yaml_node *child = mapping->children; child != NULL; child = child->next) {
        const sw_reader_key *row = find_key(keys, n_keys, child->key);
        if (row == NULL) {
            const char *words[SW_READER_MAX_KEYS];
            for (size_t i = 0; i < n_keys; i++)
                words[i] = keys[i].key;
            return sw_reader_unknown(r, child, "key", child->key, words, n_keys);
        }
        if (sw_yaml_is_null(child))
            return sw_reader_fail(r, child, "leave the key out, or give it a value; the empty text is \"\"",
                                  "'%s' has no value", child->key);
        const char *outer = r->field;
        if (outer == NULL)
            r->field = child->key;
        SW_TRY(row->take(r, child, (char *)base + row->offset));
        r->field = outer;
    }
    return SW_OK;
}

sw_status sw_reader_name(const sw_reader *r, const sw_yaml_node *at, const char *kind, const char *text,
                         const char **out)
{
    const char *fault = sw_override_name_fault(text);

    if (fault != NULL)
        return sw_reader_fail(r, at, "write 1 to 1024 bytes of UTF-8 on one line", "the %s '%.60s' %s", kind,
                              text, fault);
    *out = sw_arena_copy(r->into->arena, text, strlen(text));
    return *out == NULL ? sw_reader_no_room(r) : SW_OK;
}

sw_status sw_reader_names(const sw_reader *r, const sw_yaml_node *list, const char *kind, uint32_t most,
                          const char ***out, uint32_t *n_out)
{
    sw_map seen SW_AUTO(sw_map_clear) = {0};
    uint32_t n = 0;

    if (list->kind != SW_YAML_SEQUENCE)
        return sw_reader_fail(r, list, "write [a, b]", "expected a list of %ss", kind);
    if (list->n_children > most)
        return SW_FAIL(r->err, SW_E_LIMIT, "use patterns, or several entries",
                       "%s:%" PRIu32 ": %zu %ss, at most %" PRIu32 " are read", r->path, list->line,
                       list->n_children, kind, most);
    const char **names = sw_arena_zero(r->into->arena, list->n_children + 1, sizeof *names);
    if (names == NULL)
        return sw_reader_no_room(r);
    for (const sw_yaml_node *child = list->children; child != NULL; child = child->next, n++) {
        bool is_new = false;
        if (child->kind != SW_YAML_SCALAR)
            return sw_reader_fail(r, child, "write [a, b]", "a %s is a text, not a list or a mapping", kind);
        SW_TRY(sw_reader_name(r, child, kind, child->text, &names[n]));
        if (sw_map_put(&seen, names[n], strlen(names[n]), n, &is_new) == NULL)
            return SW_FAIL(r->err, SW_E_NO_MEMORY, "", "no memory for %s", r->path);
        if (!is_new)
            return sw_reader_fail(r, child, "remove one", "the %s '%s' stands twice", kind, names[n]);
    }
    *out = names;
    *n_out = n;
    return SW_OK;
}

sw_status sw_reader_number(const sw_reader *r, const sw_yaml_node *value, int64_t least, int64_t most,
                           int64_t *out)
{
    const char *at = value->text;
    bool is_negative = *at == '-';
    int64_t n = 0;

    at += is_negative;
    size_t digits = strspn(at, "0123456789");
    bool ok = value->kind == SW_YAML_SCALAR && digits > 0 && digits <= 15 && at[digits] == '\0';
    for (size_t i = 0; ok && i < digits; i++)
        n = n * 10 + (at[i] - '0');
    n = is_negative ? -n : n;
    if (!ok || n < least || n > most)
        return sw_reader_fail(r, value, "write a number of that range, without quotes or a point",
                              "%s is '%.60s', not a whole number from %" PRId64 " to %" PRId64,
                              value->key == NULL ? "an item" : value->key, value->text, least, most);
    *out = n;
    return SW_OK;
}
