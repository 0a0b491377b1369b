/*
 * Placements as text and their equality. The grammar stands in placement.h; the parser is one function a
 * rule, over a cursor. Texts come from files: lengths, counts and numbers are checked before they are used.
 */
#include "mesh/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define SHOWN_BYTES 64 /* of a placement, in a message */

static const char plan_grammar[] =
    "write R, P, S(dim), S(dim;rep=N), S(dim;unit=M), S(dim;seg=A+BrN+CuM) or S(dim;gN=A+BrN)";
static const char word_grammar[] =
    "write replicate, partial or shard(N) with N = 0, 1, ..., or a placement as "
    "plan files have it: R, P, S(0), S(0;seg=64+16r2+16r2)";

static uint32_t or_one_u32(uint32_t n)
{
    return n == 0 ? 1 : n;
}

static uint64_t or_one_u64(uint64_t n)
{
    return n == 0 ? 1 : n;
}

/* Is the cut one segment that takes the whole dim? */
static bool is_whole(const sw_cut *cut)
{
    return cut->n_segments == 1 && cut->n_groups <= 1 && cut->segments[0].extent == 0;
}

/* Does the cut say no more than a plain shard? */
static bool is_plain(const sw_cut *cut)
{
    return cut == NULL || (is_whole(cut) && cut->segments[0].replicas <= 1 && cut->segments[0].unit <= 1);
}

/* ---- printing ---- */

/* Text under construction; `length` counts also what had no room. */
typedef struct writer {
    char *text;
    size_t capacity;
    size_t length;
} writer;

static void put_bytes(writer *w, const char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++, w->length++) {
        if (w->length + 1 < w->capacity)
            w->text[w->length] = bytes[i];
    }
}

static void put(writer *w, const char *text)
{
    put_bytes(w, text, strlen(text));
}

static void put_number(writer *w, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    put_bytes(w, digits + at, sizeof digits - at);
}

/* `mark` and the number, unless the number is the default 1 (or 0). */
static void put_marked(writer *w, const char *mark, uint64_t value)
{
    if (value > 1) {
        put(w, mark);
        put_number(w, value);
    }
}

static void put_cut(writer *w, const sw_cut *cut)
{
    if (is_whole(cut)) {
        put_marked(w, ";rep=", cut->segments[0].replicas);
        put_marked(w, ";unit=", cut->segments[0].unit);
        return;
    }
    if (cut->n_groups > 1) {
        put(w, ";g");
        put_number(w, cut->n_groups);
        put(w, "=");
    } else {
        put(w, ";seg=");
    }
    for (uint32_t i = 0; i < cut->n_segments; i++) {
        if (i > 0)
            put(w, "+");
        put_number(w, cut->segments[i].extent);
        put_marked(w, "r", cut->segments[i].replicas);
        put_marked(w, "u", cut->segments[i].unit);
    }
}

static void put_shard(writer *w, const sw_placement *placement)
{
    int64_t dim = placement->dim;
    put(w, dim < 0 ? "S(-" : "S(");
    put_number(w, (uint64_t)(dim < 0 ? -dim : dim));
    if (placement->cut != NULL)
        put_cut(w, placement->cut);
    put(w, ")");
}

static void put_placement(writer *w, const sw_placement *placement)
{
    switch (placement->kind) {
    case SW_PLACE_REPLICATE:
        put(w, "R");
        break;
    case SW_PLACE_PARTIAL:
        put(w, "P");
        break;
    case SW_PLACE_SHARD:
        put_shard(w, placement);
        break;
    case SW_PLACE_KIND_COUNT_:
    default:
        put(w, "?");
        break;
    }
}

size_t sw_placement_text(const sw_placement *placement, char *text, size_t capacity)
{
    writer w = {text, text == NULL ? 0 : capacity, 0};

    if (placement != NULL)
        put_placement(&w, placement);
    if (text != NULL && capacity > 0)
        text[w.length < capacity ? w.length : capacity - 1] = '\0';
    return w.length;
}

/* ---- equality ---- */

static bool is_same_segment(const sw_segment *a, const sw_segment *b)
{
    return a->extent == b->extent && or_one_u64(a->unit) == or_one_u64(b->unit) &&
           or_one_u32(a->replicas) == or_one_u32(b->replicas);
}

static bool is_same_cut(const sw_cut *a, const sw_cut *b)
{
    if (is_plain(a) || is_plain(b))
        return is_plain(a) && is_plain(b);
    if (or_one_u32(a->n_groups) != or_one_u32(b->n_groups) || a->n_segments != b->n_segments)
        return false;
    for (uint32_t i = 0; i < a->n_segments; i++) {
        if (!is_same_segment(&a->segments[i], &b->segments[i]))
            return false;
    }
    return true;
}

bool sw_placement_equal(const sw_placement *a, const sw_placement *b)
{
    if (a == NULL || b == NULL || a->kind != b->kind)
        return false;
    return a->kind != SW_PLACE_SHARD || (a->dim == b->dim && is_same_cut(a->cut, b->cut));
}

bool sw_placement_dim(const sw_placement *placement, uint32_t n_dims, uint32_t *dim)
{
    int64_t at = placement->dim;
    if (at < 0)
        at += n_dims;
    if (placement->kind != SW_PLACE_SHARD || at < 0 || at >= (int64_t)n_dims)
        return false;
    *dim = (uint32_t)at;
    return true;
}

/* ---- parsing ---- */

/* A place in the text, and what refuses it. */
typedef struct cursor {
    const char *text;
    const char *at;
    const char *end;
    sw_arena *arena;
    sw_error *err;
} cursor;

static sw_status refuse(const cursor *c, const char *expected)
{
    int shown = (int)(c->end - c->text < SHOWN_BYTES ? c->end - c->text : SHOWN_BYTES);
    return SW_FAIL(c->err, SW_E_FORMAT, plan_grammar, "placement '%.*s': expected %s at character %zu", shown,
                   c->text, expected, (size_t)(c->at - c->text) + 1);
}

/* Step over `word` if it stands here. */
static bool take(cursor *c, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool is_digit(const cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* A decimal number from `least` to `most`, without leading zeros; the cursor stays in front of a bad one. */
static sw_status take_number(cursor *c, uint64_t least, uint64_t most, uint64_t *out)
{
    cursor ahead = *c;
    uint64_t value = 0;
    bool has_zero = is_digit(c) && *c->at == '0';

    for (; is_digit(&ahead); ahead.at++) {
        uint64_t digit = (uint64_t)(*ahead.at - '0');
        if (value > (most - digit) / 10)
            return refuse(c, "a smaller number");
        value = value * 10 + digit;
    }
    if (ahead.at == c->at)
        return refuse(c, "a number");
    if (has_zero && ahead.at - c->at > 1)
        return refuse(c, "a number without leading zeros");
    if (value < least)
        return refuse(c, least == 1 ? "a number of at least 1" : "a number of at least 2");
    *out = value;
    c->at = ahead.at;
    return SW_OK;
}

/* `mark` and a number of at least 2, or neither, which leaves *out as it is. */
static sw_status take_marked(cursor *c, const char *mark, uint64_t most, uint64_t *out)
{
    if (!take(c, mark))
        return SW_OK;
    return take_number(c, 2, most, out);
}

/* EXTENT[rN][uM] */
static sw_status take_segment(cursor *c, sw_segment *segment)
{
    uint64_t replicas = 1;
    segment->unit = 1;
    SW_TRY(take_number(c, 1, UINT64_MAX, &segment->extent));
    SW_TRY(take_marked(c, "r", UINT32_MAX, &replicas));
    SW_TRY(take_marked(c, "u", UINT64_MAX, &segment->unit));
    segment->replicas = (uint32_t)replicas;
    return SW_OK;
}

static sw_status make_cut(const cursor *c, uint32_t n_groups, uint32_t n_segments, sw_cut **cut,
                          sw_segment **segments)
{
    *cut = sw_arena_zero(c->arena, 1, sizeof **cut);
    *segments = sw_arena_zero(c->arena, n_segments, sizeof **segments);
    if (*cut == NULL || *segments == NULL) {
        return SW_FAIL(c->err, SW_E_NO_MEMORY, "", "no memory for a placement of %" PRIu32 " segments",
                       n_segments);
    }
    **cut = (sw_cut){n_groups, n_segments, *segments};
    return SW_OK;
}

/* Segments joined by plus signs, to the closing bracket. */
static sw_status take_list(cursor *c, uint32_t n_groups, const sw_cut **out)
{
    sw_cut *cut = NULL;
    sw_segment *segments = NULL;
    uint32_t n_segments = 1;

    for (const char *at = c->at; at < c->end; at++) /* at most SW_PLACEMENT_TEXT_LIMIT */
        n_segments += *at == '+';
    SW_TRY(make_cut(c, n_groups, n_segments, &cut, &segments));
    for (uint32_t i = 0; i < n_segments; i++) {
        if (i > 0 && !take(c, "+"))
            return refuse(c, "'+'");
        SW_TRY(take_segment(c, &segments[i]));
    }
    *out = cut;
    return SW_OK;
}

/* rep=N, rep=N;unit=M or unit=M */
static sw_status take_whole(cursor *c, const sw_cut **out)
{
    sw_cut *cut = NULL;
    sw_segment *segment = NULL;
    const char *begin = c->at;
    uint64_t replicas = 1;
    uint64_t unit = 1;

    SW_TRY(take_marked(c, "rep=", UINT32_MAX, &replicas));
    SW_TRY(take_marked(c, c->at == begin ? "unit=" : ";unit=", UINT64_MAX, &unit));
    if (c->at == begin)
        return refuse(c, "seg=, g, rep= or unit=");
    SW_TRY(make_cut(c, 1, 1, &cut, &segment));
    *segment = (sw_segment){0, unit, (uint32_t)replicas};
    *out = cut;
    return SW_OK;
}

static sw_status take_cut(cursor *c, const sw_cut **out)
{
    uint64_t n_groups = 1;

    if (take(c, "seg="))
        return take_list(c, 1, out);
    if (!take(c, "g"))
        return take_whole(c, out);
    SW_TRY(take_number(c, 2, UINT32_MAX, &n_groups));
    if (!take(c, "="))
        return refuse(c, "'='");
    return take_list(c, (uint32_t)n_groups, out);
}

/* What follows "S(". */
static sw_status take_shard(cursor *c, sw_placement *out)
{
    bool is_negative = take(c, "-");
    uint64_t dim = 0;

    SW_TRY(take_number(c, is_negative ? 1 : 0, INT32_MAX, &dim));
    out->kind = SW_PLACE_SHARD;
    out->dim = is_negative ? -(int32_t)dim : (int32_t)dim;
    if (take(c, ";"))
        SW_TRY(take_cut(c, &out->cut));
    return take(c, ")") ? SW_OK : refuse(c, "')'");
}

static sw_status check_length(size_t length, sw_error *err)
{
    if (length > SW_PLACEMENT_TEXT_LIMIT) {
        return SW_FAIL(err, SW_E_LIMIT, "the file is damaged, or the cut needs fewer segments",
                       "a placement of %zu bytes, the limit is %u", length, SW_PLACEMENT_TEXT_LIMIT);
    }
    return SW_OK;
}

sw_status sw_placement_parse(sw_placement *out, const char *text, size_t length, sw_arena *arena,
                             sw_error *err)
{
    SW_TRY(check_length(length, err));
    cursor c = {text, text, text + length, arena, err};
    sw_placement made = {SW_PLACE_REPLICATE, 0, NULL};

    if (take(&c, "S(")) {
        SW_TRY(take_shard(&c, &made));
    } else if (take(&c, "P")) {
        made.kind = SW_PLACE_PARTIAL;
    } else if (!take(&c, "R")) {
        return refuse(&c, "R, P or S(");
    }
    if (c.at != c.end)
        return refuse(&c, "nothing more");
    *out = made;
    return SW_OK;
}

/* White space left out and letters small, as override files are read. */
static size_t normalise(const char *text, size_t length, char *word)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (strchr(" \t\r\n\v\f", c) != NULL && c != '\0')
            continue;
        word[n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    word[n] = '\0';
    return n;
}

/* Turn a normalised word into the plan file's form where it is not already: "shard(0)" is "s(0)". */
static size_t shorten(char *word, size_t length)
{
    static const char shard[] = "shard(";
    size_t n_head = sizeof shard - 1;

    if (strlen(word) == length && (strcmp(word, "replicate") == 0 || strcmp(word, "partial") == 0)) {
        length = 1;
    } else if (strncmp(word, shard, n_head) == 0 &&
               strspn(word + n_head, "0123456789") + n_head + 1 == length) {
        word[1] = '(';
        memmove(word + 2, word + n_head, length - n_head);
        length -= n_head - 2;
    }
    if (length > 0 && strchr("rps", word[0]) != NULL)
        word[0] = (char)(word[0] - 'a' + 'A');
    return length;
}

sw_status sw_placement_parse_word(sw_placement *out, const char *text, size_t length, sw_arena *arena,
                                  sw_error *err)
{
    SW_TRY(check_length(length, err));
    char *word = sw_arena_alloc(arena, length + 1);
    if (word == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a placement of %zu bytes", length);
    size_t n_word = shorten(word, normalise(text, length, word));
    sw_status status = sw_placement_parse(out, word, n_word, arena, NULL);
    if (status == SW_E_FORMAT) {
        int shown = (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES);
        return SW_FAIL(err, SW_E_FORMAT, word_grammar, "'%.*s' is not a placement", shown, text);
    }
    if (status != SW_OK)
        return SW_FAIL(err, status, "", "no memory for a placement of %zu bytes", length);
    return SW_OK;
}
