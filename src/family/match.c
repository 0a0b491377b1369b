/*
 * Finding a family by its names, and a row of it by a parameter's name. Both are called a few hundred times a
 * model (once a pattern), so plain scans are fast enough and there is nothing to build or free.
 */
#include "family/attributes.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/status.h"

enum { MAX_ARCHITECTURE = 128 };

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

size_t sw_architecture_normalise(const char *name, char *out, size_t capacity)
{
    static const char *const suffixes[] = {"forcausallm", "forconditionalgeneration",
                                           "forsequenceclassification", "forimagetexttotext"};
    size_t length = 0;
    if (capacity == 0)
        return 0;
    for (const char *at = name == NULL ? "" : name; *at != '\0' && length + 1 < capacity; at++) {
        if (*at != '_' && *at != '-')
            out[length++] = lower(*at);
    }
    for (size_t i = 0; i < SW_COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (length >= n && memcmp(out + length - n, suffixes[i], n) == 0)
            length -= n;
    }
    out[length] = '\0';
    return length;
}

static bool is_listed(const char *const *names, const char *normalised)
{
    char name[MAX_ARCHITECTURE];
    for (; names != NULL && *names != NULL; names++) {
        sw_architecture_normalise(*names, name, sizeof name);
        if (strcmp(name, normalised) == 0)
            return true;
    }
    return false;
}

const sw_family *sw_family_find(const char *architecture, const char *model_type)
{
    char name[MAX_ARCHITECTURE];
    if (sw_architecture_normalise(architecture, name, sizeof name) > 0) {
        for (const sw_family *const *family = sw_families; *family != NULL; family++) {
            if (is_listed((*family)->architectures, name))
                return *family;
        }
    }
    if (sw_architecture_normalise(model_type, name, sizeof name) > 0) {
        for (const sw_family *const *family = sw_families; *family != NULL; family++) {
            if (is_listed((*family)->model_types, name))
                return *family;
        }
    }
    return NULL;
}

static const char *count_of(const sw_layer_count *exceptions, const char *name, const char *usual)
{
    for (const sw_layer_count *at = exceptions; at != NULL && at->prefix != NULL; at++) {
        if (strncmp(name, at->prefix, strlen(at->prefix)) == 0)
            return at->count;
    }
    return usual;
}

const char *sw_family_layer_count(const sw_family *family, const char *name)
{
    return count_of(family->layer_counts, name, "layers");
}

const char *sw_family_inner_count(const sw_family *family, const char *name)
{
    return count_of(family->inner_counts, name, "experts");
}

/* Two names laid side by side from their ends. */
typedef struct overlap {
    size_t pattern_rest; /* bytes of the pattern before the segments that both end in */
    size_t row_rest;     /* bytes of the row's name before them */
    uint32_t n_segments; /* segments that both end in */
} overlap;

static overlap overlap_of(const char *pattern, size_t length, const char *row, size_t row_length)
{
    overlap found = {length, row_length, 0};
    size_t a = length, b = row_length;
    while (a > 0 && b > 0 && pattern[a - 1] == row[b - 1]) {
        a--;
        b--;
        bool pattern_starts = a == 0 || pattern[a - 1] == '.';
        bool row_starts = b == 0 || row[b - 1] == '.';
        if (row[b] != '.' && pattern_starts && row_starts) {
            found.pattern_rest = a;
            found.row_rest = b;
            found.n_segments++;
        }
    }
    return found;
}

/* Whether `text`, whole segments each with its dot, has only words that wrap a decoder in a larger model. */
static bool is_wrapper(const char *text, size_t length)
{
    static const char *const words[] = {"model",   "language_model", "text_model", "thinker",
                                        "decoder", "transformer",    "base_model", "llm"};
    while (length > 0) {
        const char *dot = memchr(text, '.', length);
        size_t n = dot == NULL ? length : (size_t)(dot - text);
        bool is_known = false;
        for (size_t i = 0; i < SW_COUNT(words) && !is_known; i++)
            is_known = strlen(words[i]) == n && memcmp(words[i], text, n) == 0;
        if (!is_known)
            return false;
        size_t used = dot == NULL ? n : n + 1;
        text += used;
        length -= used;
    }
    return true;
}

/* Bytes of difference of an acceptable overlap, SIZE_MAX otherwise. */
static size_t difference(const overlap *o, const char *pattern, const sw_family_row *row)
{
    bool is_whole_row = o->row_rest == 0;
    if (o->n_segments < 2 && !(is_whole_row && o->n_segments == 1))
        return SIZE_MAX;
    if (is_whole_row)
        return o->pattern_rest;
    if (o->pattern_rest == 0)
        return o->row_rest;
    bool is_one_segment = memchr(row->name, '.', o->row_rest) == row->name + o->row_rest - 1;
    if (!is_one_segment || !is_wrapper(row->name, o->row_rest) || !is_wrapper(pattern, o->pattern_rest))
        return SIZE_MAX;
    return SIZE_MAX / 2 + o->pattern_rest; /* behind every suffix */
}

/* Whether a whole segment of the name is one of the family's towers: text and tower share their last
 * segments. */
static bool is_in_tower(const sw_family *family, const char *name, size_t length)
{
    for (const char *const *tower = family->towers; tower != NULL && *tower != NULL; tower++) {
        size_t n = strlen(*tower);
        for (size_t i = 0; i + n <= length; i++) {
            bool is_whole = (i == 0 || name[i - 1] == '.') && (i + n == length || name[i + n] == '.');
            if (is_whole && memcmp(name + i, *tower, n) == 0)
                return true;
        }
    }
    return false;
}

const sw_family_row *sw_family_match(const sw_family *family, const char *pattern, size_t length,
                                     int *prefix_cut)
{
    const sw_family_row *best = NULL;
    size_t least = SIZE_MAX;
    int cut = 0;
    if (family == NULL || length > INT_MAX)
        return NULL;
    bool in_tower = is_in_tower(family, pattern, length);
    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            overlap o = overlap_of(pattern, length, row->name, strlen(row->name));
            size_t bytes = difference(&o, pattern, row);
            if (bytes < least && is_in_tower(family, row->name, strlen(row->name)) == in_tower) {
                least = bytes;
                best = row;
                cut = o.pattern_rest > 0 ? (int)o.pattern_rest : -(int)o.row_rest;
            }
        }
    }
    if (prefix_cut != NULL)
        *prefix_cut = cut;
    return best;
}

const sw_family_row *sw_family_row_for(const sw_family *family, const sw_family_row *row,
                                       const sw_attributes *attributes, int64_t layer)
{
    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *other = *block; other->name != NULL; other++) {
            int64_t holds = other->when == NULL;
            if (strcmp(other->name, row->name) != 0)
                continue;
            if (other->when != NULL && sw_expression(other->when, attributes, layer, &holds, NULL) != SW_OK)
                continue;
            if (holds != 0)
                return other;
        }
    }
    return row;
}
