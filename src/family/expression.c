/*
 * Expressions over attributes: the shapes and conditions of family tables. One recursive descent, evaluated
 * as it reads; the texts are short, constant and few, so nothing is compiled or kept. Depth is bounded all
 * the same, since overrides may bring such texts from outside.
 */
#include "family/attributes.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { MAX_DEPTH = 32, MAX_WORD = 64 };

typedef struct reader {
    const char *text;
    const char *at;
    const sw_attributes *attributes;
    int64_t layer;
    uint32_t depth;
    uint32_t unused; /* above 0 inside a side whose value does not matter: unset attributes are 0 there */
    sw_error *err;
} reader;

typedef enum operation {
    OP_NONE = 0,
    OP_OR,
    OP_AND,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_LESS_EQUAL,
    OP_GREATER_EQUAL,
    OP_LESS,
    OP_GREATER,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
} operation;

/* Signs, the longer ones first, and how tightly they bind. */
static const struct sign {
    const char *text;
    operation op;
    uint32_t level;
} signs[] = {
    {"||", OP_OR,            1},
    {"&&", OP_AND,           2},
    {"==", OP_EQUAL,         3},
    {"!=", OP_NOT_EQUAL,     3},
    {"<=", OP_LESS_EQUAL,    4},
    {">=", OP_GREATER_EQUAL, 4},
    {"<",  OP_LESS,          4},
    {">",  OP_GREATER,       4},
    {"+",  OP_ADD,           5},
    {"-",  OP_SUBTRACT,      5},
    {"*",  OP_MULTIPLY,      6},
    {"/",  OP_DIVIDE,        6},
    {"%",  OP_REMAINDER,     6},
};

static sw_status read_binary(reader *r, uint32_t level, int64_t *out);

static void skip_space(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

static sw_status fail_here(const reader *r, const char *expected)
{
    return SW_FAIL(r->err, SW_E_FORMAT, "correct the expression",
                   "expression \"%s\": %s expected at byte %zu", r->text, expected,
                   (size_t)(r->at - r->text));
}

static sw_status fail_overflow(const reader *r)
{
    return SW_FAIL(r->err, SW_E_LIMIT, "check the numbers of the config",
                   "expression \"%s\": the value does not fit 64 bits", r->text);
}

static sw_status expect(reader *r, char c)
{
    skip_space(r);
    if (*r->at != c)
        return fail_here(r, (const char[]){'\'', c, '\'', '\0'});
    r->at++;
    return SW_OK;
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static sw_status divide(const reader *r, operation op, int64_t a, int64_t b, int64_t *out)
{
    *out = 0;
    if (r->unused > 0)
        return SW_OK;
    if (b == 0)
        return SW_FAIL(r->err, SW_E_FORMAT, "check the numbers of the config",
                       "expression \"%s\": division by zero", r->text);
    if (a == INT64_MIN && b == -1)
        return fail_overflow(r);
    *out = op == OP_DIVIDE ? a / b : a % b;
    return SW_OK;
}

static sw_status apply(const reader *r, operation op, int64_t a, int64_t b, int64_t *out)
{
    bool overflows = false;
    switch (op) {
    case OP_NONE:
        break;
    case OP_OR:
        *out = a != 0 || b != 0;
        break;
    case OP_AND:
        *out = a != 0 && b != 0;
        break;
    case OP_EQUAL:
        *out = a == b;
        break;
    case OP_NOT_EQUAL:
        *out = a != b;
        break;
    case OP_LESS_EQUAL:
        *out = a <= b;
        break;
    case OP_GREATER_EQUAL:
        *out = a >= b;
        break;
    case OP_LESS:
        *out = a < b;
        break;
    case OP_GREATER:
        *out = a > b;
        break;
    case OP_ADD:
        overflows = __builtin_add_overflow(a, b, out);
        break;
    case OP_SUBTRACT:
        overflows = __builtin_sub_overflow(a, b, out);
        break;
    case OP_MULTIPLY:
        overflows = __builtin_mul_overflow(a, b, out);
        break;
    case OP_DIVIDE:
    case OP_REMAINDER:
        return divide(r, op, a, b, out);
    }
    return overflows ? fail_overflow(r) : SW_OK;
}

static sw_status read_number(reader *r, int64_t *out)
{
    int64_t value = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *r->at - '0', &value))
            return fail_overflow(r);
    }
    *out = value;
    return SW_OK;
}

static sw_status read_call(reader *r, bool is_min, int64_t *out)
{
    int64_t a = 0, b = 0;
    SW_TRY(expect(r, '('));
    SW_TRY(read_binary(r, 1, &a));
    SW_TRY(expect(r, ','));
    SW_TRY(read_binary(r, 1, &b));
    SW_TRY(expect(r, ')'));
    if (is_min) {
        *out = a < b ? a : b;
        return SW_OK;
    }
    int64_t rest = 0;
    SW_TRY(divide(r, OP_REMAINDER, a, b, &rest));
    SW_TRY(divide(r, OP_DIVIDE, a, b, out));
    *out += rest > 0 ? 1 : 0;
    return SW_OK;
}

/* layer, layer_kind, layer_dense: false when the word is none of them. */
static bool is_layer_word(const reader *r, const char *word, int64_t *out)
{
    const sw_attributes *a = r->attributes;
    uint64_t layer = (uint64_t)r->layer;
    if (strcmp(word, "layer") == 0)
        *out = r->layer;
    else if (strcmp(word, "layer_kind") == 0)
        *out = a->layer_kinds != NULL && layer < a->n_layer_kinds ? a->layer_kinds[layer] : SW_LAYER_FULL;
    else if (strcmp(word, "layer_dense") == 0)
        *out = a->dense_layers != NULL && layer < a->n_dense_layers ? a->dense_layers[layer] : 0;
    else
        return false;
    return true;
}

static sw_status fail_unset(const reader *r, sw_attr attr)
{
    const char *key = "a key for it";
    char help[128];
    for (const sw_spelling *spelling = sw_common_spellings; spelling->key != NULL; spelling++) {
        if (spelling->attr == attr) {
            key = spelling->key;
            break;
        }
    }
    (void)snprintf(help, sizeof help, "add %s to the config", key);
    return SW_FAIL(r->err, SW_E_FORMAT, help, "expression \"%s\": attribute %s has no value", r->text,
                   sw_attr_name(attr));
}

static sw_status read_word(reader *r, int64_t *out)
{
    char word[MAX_WORD];
    size_t length = 0;
    for (; is_word_byte(r->at[length]) && length + 1 < sizeof word; length++)
        word[length] = r->at[length];
    word[length] = '\0';
    sw_attr attr = sw_attr_of(word, length);
    bool is_min = strcmp(word, "min") == 0;
    if (attr == SW_ATTR_NONE && !is_min && strcmp(word, "ceil_div") != 0) {
        if (!is_layer_word(r, word, out))
            return fail_here(r, "an attribute");
        r->at += length;
        return SW_OK;
    }
    r->at += length;
    if (attr == SW_ATTR_NONE)
        return read_call(r, is_min, out);
    if (!r->attributes->is_set[attr] && r->unused == 0)
        return fail_unset(r, attr);
    *out = r->attributes->is_set[attr] ? r->attributes->value[attr] : 0;
    return SW_OK;
}

static sw_status read_primary(reader *r, int64_t *out)
{
    skip_space(r);
    char c = *r->at;
    if (c >= '0' && c <= '9')
        return read_number(r, out);
    if (is_word_byte(c))
        return read_word(r, out);
    if (c == '(') {
        r->at++;
        SW_TRY(read_binary(r, 1, out));
        return expect(r, ')');
    }
    if (c != '!' && c != '-')
        return fail_here(r, "a value");
    r->at++;
    int64_t value = 0;
    if (++r->depth > MAX_DEPTH)
        return SW_FAIL(r->err, SW_E_LIMIT, "simplify it", "expression \"%s\": nested too deeply", r->text);
    SW_TRY(read_primary(r, &value));
    r->depth--;
    return c == '!' ? apply(r, OP_EQUAL, value, 0, out) : apply(r, OP_SUBTRACT, 0, value, out);
}

static const struct sign *sign_at(const reader *r)
{
    for (size_t i = 0; i < SW_COUNT(signs); i++) {
        if (strncmp(r->at, signs[i].text, strlen(signs[i].text)) == 0)
            return &signs[i];
    }
    return NULL;
}

/* Operands joined by signs that bind at least as tightly as `level`. */
static sw_status read_binary(reader *r, uint32_t level, int64_t *out)
{
    int64_t left = 0;
    if (++r->depth > MAX_DEPTH)
        return SW_FAIL(r->err, SW_E_LIMIT, "simplify it", "expression \"%s\": nested too deeply", r->text);
    SW_TRY(read_primary(r, &left));
    for (;;) {
        skip_space(r);
        const struct sign *sign = sign_at(r);
        if (sign == NULL || sign->level < level)
            break;
        r->at += strlen(sign->text);
        bool is_decided = (sign->op == OP_OR && left != 0) || (sign->op == OP_AND && left == 0);
        int64_t right = 0;
        r->unused += is_decided;
        SW_TRY(read_binary(r, sign->level + 1, &right));
        r->unused -= is_decided;
        SW_TRY(apply(r, sign->op, left, right, &left));
    }
    r->depth--;
    *out = left;
    return SW_OK;
}

sw_status sw_expression(const char *text, const sw_attributes *attributes, int64_t layer, int64_t *out,
                        sw_error *err)
{
    reader r = {.text = text, .at = text, .attributes = attributes, .layer = layer, .err = err};
    int64_t value = 0;
    SW_TRY(read_binary(&r, 1, &value));
    if (*r.at != '\0')
        return fail_here(&r, "an operator");
    *out = value;
    return SW_OK;
}

sw_status sw_expression_list(const char *text, const sw_attributes *attributes, int64_t layer, int64_t *out,
                             uint32_t capacity, uint32_t *count, sw_error *err)
{
    reader r = {.text = text, .at = text, .attributes = attributes, .layer = layer, .err = err};
    uint32_t n = 0;
    skip_space(&r);
    bool has_more = *r.at != '\0';
    while (has_more) {
        if (n == capacity)
            return SW_FAIL(err, SW_E_LIMIT, "", "expression \"%s\": more than %u values", text, capacity);
        SW_TRY(read_binary(&r, 1, &out[n]));
        n++;
        has_more = *r.at != '\0';
        if (has_more)
            SW_TRY(expect(&r, ','));
    }
    *count = n;
    return SW_OK;
}
